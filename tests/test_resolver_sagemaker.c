/* The resolver sagemaker, by rows. */
#include "script.h"

#include <muster/cluster.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define V SCRIPT_VARIABLE
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define CONFIG "/opt/ml/input/config/resourceconfig.json"

static const struct mu__resolver_kind *const kind = &mu__resolver_sagemaker;

static const char config[] =
    "{\"current_host\": \"algo-2\", \"current_instance_type\": \"ml.m5.large\", "
    "\"hosts\": [\"algo-2\", \"algo-1\"], \"network_interface_name\": \"eth0\"}";

static void test_hosts_are_sorted(void **state)
{
    static const struct script_row rows[] = {
        V("SM_HOSTS", "[\"algo-2\", \"algo-10\",\"algo-1\"]"),
        V("SM_CURRENT_HOST", "algo-2"), SCRIPT_END};
    static const char *const settings[] = {"port=70", "jobs=chief=1,worker=*", NULL};

    (void)state;
    script_expect(kind, rows, NULL,
                  "{\"worker\":[\"algo-1:2223\",\"algo-10:2223\",\"algo-2:2223\"]}",
                  "worker:2");
    script_expect(kind, rows, settings,
                  "{\"chief\":[\"algo-1:70\"],\"worker\":[\"algo-10:70\",\"algo-2:70\"]}",
                  "worker:1");
}

static void test_one_host_has_no_master(void **state)
{
    static const struct script_row rows[] = {
        V("SM_HOSTS", "[\"algo-1\"]"), V("SM_CURRENT_HOST", "algo-1"), SCRIPT_END};
    mu_resolution resolution;
    mu_error error;

    (void)state;
    assert_int_equal(script_resolve(kind, rows, NULL, &error, &resolution), 0);
    assert_int_equal(mu_cluster_task_count(resolution.cluster, "worker"), 1);
    assert_int_equal(resolution.alone_has_no_master, 1);
    assert_string_equal(resolution.rpc_layer, "grpc");
    mu_cluster_free(resolution.cluster);
}

static void test_no_cluster(void **state)
{
    static const struct script_row other[] = {
        V("SM_HOSTS", "[\"algo-1\"]"), V("SM_CURRENT_HOST", "algo-2"), SCRIPT_END};
    static const struct script_row empty[] = {
        V("SM_HOSTS", "[]"), V("SM_CURRENT_HOST", "algo-1"), SCRIPT_END};

    (void)state;
    script_expect(kind, other, NULL, "", "");
    script_expect(kind, empty, NULL, "", "");
}

static void test_newer_configuration(void **state)
{
    static const struct script_row variable[] = {V("SM_RESOURCE_CONFIG", config),
                                                 SCRIPT_END};
    static const struct script_row file[] = {SCRIPT_FILE(CONFIG, config), SCRIPT_END};
    static const struct script_row half[] = {V("SM_HOSTS", "[\"x\"]"),
                                             SCRIPT_FILE(CONFIG, config), SCRIPT_END};
    static const char cluster[] = "{\"worker\":[\"algo-1:2223\",\"algo-2:2223\"]}";

    (void)state;
    script_expect(kind, variable, NULL, cluster, "worker:1");
    script_expect(kind, file, NULL, cluster, "worker:1");
    script_expect(kind, half, NULL, cluster, "worker:1");
}

static void test_detection(void **state)
{
    static const struct script_row hosts[] = {V("SM_HOSTS", "[]"), SCRIPT_END};
    static const struct script_row file[] = {SCRIPT_FILE(CONFIG, "{}"), SCRIPT_END};
    mu_error why;

    (void)state;
    assert_int_equal(script_detect(kind, hosts, NULL, &why), 1);
    assert_int_equal(script_detect(kind, file, NULL, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_non_null(strstr(why.message, "SM_HOSTS and SM_RESOURCE_CONFIG are not set"));
}

static void test_refused(void **state)
{
    static const struct {
        const char *hosts;
        const char *words;
    } rows[] = {
        {"algo-1", "SM_HOSTS: expected a JSON list of hosts, as in [\"algo-1\"], got "
                   "\"algo-1\""},
        {"[\"a\"", "SM_HOSTS: expected a JSON list"},
        {"\"a\"", "SM_HOSTS: expected a JSON list"},
        {"{\"a\": 1}", "SM_HOSTS: expected a JSON list"},
        {"[\"a\"],\"b\":1", "SM_HOSTS: expected a JSON list"},
        {"[\"a\", 7]", "SM_HOSTS[1]: expected a host's name of at most 255 bytes, got "
                       "number 7"},
        {"[\"a\", \"b c\"]", "SM_HOSTS: "},
        {"[\"a\", \"a\"]", "SM_HOSTS: \"a\" stands there twice"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {V("SM_HOSTS", rows[i].hosts),
                                            V("SM_CURRENT_HOST", "a"), SCRIPT_END};
        mu_resolution resolution;
        mu_error error;

        assert_int_not_equal(script_resolve(kind, script, NULL, &error, &resolution), 0);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %s", rows[i].hosts, error.message);
    }
}

static void test_configuration_refused(void **state)
{
    static const struct script_row broken[] = {SCRIPT_FILE(CONFIG, "{\"hosts\": "),
                                               SCRIPT_END};
    static const struct script_row other[] = {
        SCRIPT_FILE(CONFIG, "{\"hosts\": \"a\", \"current_host\": \"a\"}"), SCRIPT_END};
    static const struct script_row no_current[] = {
        V("SM_RESOURCE_CONFIG", "{\"hosts\": [\"a\"]}"), SCRIPT_END};
    static const struct script_row no_current_host[] = {V("SM_HOSTS", "[\"a\"]"),
                                                        SCRIPT_END};

    (void)state;
    script_expect_error(kind, NULL, NULL, -MU_ENOTFOUND, "is this SageMaker?");
    script_expect_error(kind, no_current_host, NULL, -MU_ENOTFOUND,
                        "SM_CURRENT_HOST is not set");
    script_expect_error(kind, broken, NULL, -MU_EINVALID, CONFIG ": line 1");
    script_expect_error(kind, other, NULL, -MU_EINVALID,
                        CONFIG ": expected \"hosts\", a list");
    script_expect_error(kind, no_current, NULL, -MU_EINVALID,
                        "SM_RESOURCE_CONFIG: expected \"hosts\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_are_sorted),
        cmocka_unit_test(test_one_host_has_no_master),
        cmocka_unit_test(test_no_cluster),
        cmocka_unit_test(test_newer_configuration),
        cmocka_unit_test(test_detection),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_configuration_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
