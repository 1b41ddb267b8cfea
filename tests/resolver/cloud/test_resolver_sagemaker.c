/* The resolver sagemaker, by rows. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#include <muster/cluster.h>

#define V SCRIPT_VARIABLE
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define CONFIG "/opt/ml/input/config/resourceconfig.json"

static const struct mu__resolver_kind *const kind = &mu__resolver_sagemaker;

static const char config[] =
    "{\"current_host\": \"algo-2\", \"current_instance_type\": \"ml.m5.large\", "
    "\"hosts\": [\"algo-2\", \"algo-1\"], \"network_interface_name\": \"eth0\"}";

TEST(test_hosts_are_sorted)
{
    static const struct script_row rows[] = {
        V("SM_HOSTS", "[\"algo-2\", \"algo-10\",\"algo-1\"]"),
        V("SM_CURRENT_HOST", "algo-2"), SCRIPT_END};
    static const char *const settings[] = {"port=70", "jobs=chief=1,worker=*", NULL};

    script_expect(kind, rows, NULL,
                  "{\"worker\":[\"algo-1:2223\",\"algo-10:2223\",\"algo-2:2223\"]}",
                  "worker:2");
    script_expect(kind, rows, settings,
                  "{\"chief\":[\"algo-1:70\"],\"worker\":[\"algo-10:70\",\"algo-2:70\"]}",
                  "worker:1");
}

TEST(test_one_host_has_no_master)
{
    static const struct script_row rows[] = {V("SM_HOSTS", "[\"algo-1\"]"),
                                             V("SM_CURRENT_HOST", "algo-1"), SCRIPT_END};
    mu_resolution resolution;
    mu_error error;

    assert_int_equal(script_resolve(kind, rows, NULL, &error, &resolution), 0);
    assert_int_equal(mu_cluster_task_count(resolution.cluster, "worker"), 1);
    assert_int_equal(resolution.alone_has_no_master, 1);
    assert_string_equal(resolution.rpc_layer, "");
    mu_cluster_free(resolution.cluster);
}

TEST(test_no_cluster)
{
    static const struct script_row other[] = {V("SM_HOSTS", "[\"algo-1\"]"),
                                              V("SM_CURRENT_HOST", "algo-2"), SCRIPT_END};
    static const struct script_row empty[] = {V("SM_HOSTS", "[]"),
                                              V("SM_CURRENT_HOST", "algo-1"), SCRIPT_END};
    static const struct script_row nobody[] = {V("SM_HOSTS", " [ ]"), SCRIPT_END};

    script_expect(kind, other, NULL, "", "");
    script_expect(kind, empty, NULL, "", "");
    script_expect(kind, nobody, NULL, "", "");
}

TEST(test_newer_configuration)
{
    static const struct script_row variable[] = {V("SM_RESOURCE_CONFIG", config),
                                                 SCRIPT_END};
    static const struct script_row file[] = {SCRIPT_FILE(CONFIG, config), SCRIPT_END};
    static const struct script_row half[] = {V("SM_HOSTS", "[\"x\"]"),
                                             SCRIPT_FILE(CONFIG, config), SCRIPT_END};
    static const char cluster[] = "{\"worker\":[\"algo-1:2223\",\"algo-2:2223\"]}";

    script_expect(kind, variable, NULL, cluster, "worker:1");
    script_expect(kind, file, NULL, cluster, "worker:1");
    script_expect(kind, half, NULL, cluster, "worker:1");
}

TEST(test_detection)
{
    static const struct script_row hosts[] = {V("SM_HOSTS", "[]"), SCRIPT_END};
    static const struct script_row file[] = {SCRIPT_FILE(CONFIG, "{}"), SCRIPT_END};
    mu_error why;

    assert_int_equal(script_detect(kind, hosts, NULL, &why), 1);
    assert_int_equal(script_detect(kind, file, NULL, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_non_null(strstr(why.message, "SM_HOSTS and SM_RESOURCE_CONFIG are not set"));
}

TEST(test_refused)
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
        {"[\"a\", \"b c\"]",
         "SM_HOSTS[1]: expected the name of a host, got text \"b c\""},
        {"[\"b c\", \"d\"]", "SM_HOSTS[0]: expected the name of a host"},
        {"[\"a\", \"a\"]", "SM_HOSTS: \"a\" appears twice"},
    };

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

TEST(test_configuration_refused)
{
    static const struct script_row broken[] = {SCRIPT_FILE(CONFIG, "{\"hosts\": "),
                                               SCRIPT_END};
    static const struct script_row other[] = {
        SCRIPT_FILE(CONFIG, "{\"hosts\": \"a\", \"current_host\": \"a\"}"), SCRIPT_END};
    static const struct script_row no_current[] = {
        V("SM_RESOURCE_CONFIG", "{\"hosts\": [\"a\"]}"), SCRIPT_END};
    static const struct script_row no_current_host[] = {V("SM_HOSTS", "[\"a\"]"),
                                                        SCRIPT_END};

    script_expect_error(kind, NULL, NULL, -MU_ENOTFOUND, "is this SageMaker?");
    script_expect_error(kind, no_current_host, NULL, -MU_ENOTFOUND,
                        "SM_CURRENT_HOST is not set");
    script_expect_error(kind, broken, NULL, -MU_EINVALID, CONFIG ": line 1");
    script_expect_error(kind, other, NULL, -MU_EINVALID,
                        CONFIG ": expected \"hosts\", a list");
    script_expect_error(kind, no_current, NULL, -MU_EINVALID,
                        "SM_RESOURCE_CONFIG: expected \"hosts\"");
}

/* ---- Instance groups ---- */

#define CPU                                                                   \
    "{\"instance_group_name\": \"cpu\", \"instance_type\": \"ml.c5.large\", " \
    "\"hosts\": [\"algo-4\", \"algo-2\"]}"
#define GPU                                                                     \
    "{\"instance_group_name\": \"gpu\", \"instance_type\": \"ml.p3.2xlarge\", " \
    "\"hosts\": [\"algo-3\", \"algo-1\"]}"
#define HOSTS "[\"algo-1\", \"algo-2\", \"algo-3\", \"algo-4\"]"
#define GROUPED                                                                     \
    "{\"current_host\": \"algo-3\", \"current_instance_type\": \"ml.p3.2xlarge\", " \
    "\"current_group_name\": \"gpu\", \"hosts\": " HOSTS ", "                       \
    "\"instance_groups\": [" CPU ", " GPU "], \"network_interface_name\": \"eth0\"}"
#define VARIABLES(current)                               \
    V("SM_HOSTS", HOSTS), V("SM_CURRENT_HOST", current), \
        V("SM_INSTANCE_GROUPS", "[\"cpu\", \"gpu\"]"),   \
        V("SM_INSTANCE_GROUPS_DICT", "{\"cpu\": " CPU ", \"gpu\": " GPU "}")

/* What each group is; without it the hosts are one list. */
TEST(test_groups)
{
    static const struct script_row rows[] = {VARIABLES("algo-3"), SCRIPT_END};
    static const struct {
        const char *setting;
        const char *cluster;
        const char *task;
    } cases[] = {
        {"groups=ps=cpu,worker=gpu",
         "{\"ps\":[\"algo-2:2223\",\"algo-4:2223\"],"
         "\"worker\":[\"algo-1:2223\",\"algo-3:2223\"]}",
         "worker:1"},
        {"groups=chief=gpu:1,worker=gpu,ps=cpu",
         "{\"chief\":[\"algo-1:2223\"],\"ps\":[\"algo-2:2223\",\"algo-4:2223\"],"
         "\"worker\":[\"algo-3:2223\"]}",
         "worker:0"},
        {"groups=worker=gpu,ps=cpu:1,worker=cpu",
         "{\"ps\":[\"algo-2:2223\"],"
         "\"worker\":[\"algo-1:2223\",\"algo-3:2223\",\"algo-4:2223\"]}",
         "worker:1"},
        {"groups=worker=gpu", "{\"worker\":[\"algo-1:2223\",\"algo-3:2223\"]}",
         "worker:1"},
        {"groups=worker=cpu", "{\"worker\":[\"algo-2:2223\",\"algo-4:2223\"]}", ""},
        {"port=2223",
         "{\"worker\":[\"algo-1:2223\",\"algo-2:2223\",\"algo-3:2223\","
         "\"algo-4:2223\"]}",
         "worker:2"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const settings[] = {cases[i].setting, NULL};

        script_expect(kind, rows, settings, cases[i].cluster, cases[i].task);
    }
}

/* The other places that have them: the variable with the whole file, and the file. */
TEST(test_groups_of_the_configuration)
{
    static const struct script_row variable[] = {V("SM_RESOURCE_CONFIG", GROUPED),
                                                 SCRIPT_END};
    static const struct script_row file[] = {SCRIPT_FILE(CONFIG, GROUPED), SCRIPT_END};
    static const struct script_row beside[] = {V("SM_HOSTS", HOSTS),
                                               V("SM_CURRENT_HOST", "algo-3"),
                                               SCRIPT_FILE(CONFIG, GROUPED), SCRIPT_END};
    static const struct script_row *const all[] = {variable, file, beside};
    static const char *const settings[] = {"groups=ps=cpu,worker=gpu", NULL};

    for (size_t i = 0; i < COUNT(all); i++)
        script_expect(kind, all[i], settings,
                      "{\"ps\":[\"algo-2:2223\",\"algo-4:2223\"],"
                      "\"worker\":[\"algo-1:2223\",\"algo-3:2223\"]}",
                      "worker:1");
}

/* Where several groups are known and nothing says what they are, that is noted. */
TEST(test_several_groups_are_noted)
{
    static const struct script_row variables[] = {VARIABLES("algo-3"), SCRIPT_END};
    static const struct script_row variable[] = {V("SM_RESOURCE_CONFIG", GROUPED),
                                                 SCRIPT_END};
    static const struct script_row file[] = {SCRIPT_FILE(CONFIG, GROUPED), SCRIPT_END};
    static const struct script_row no_groups[] = {SCRIPT_FILE(CONFIG, config),
                                                  SCRIPT_END};
    static const struct {
        const struct script_row *rows;
        const char *said; /* NULL: nothing */
    } cases[] = {
        {variables, "SM_INSTANCE_GROUPS_DICT: the hosts are in 2 instance groups"},
        {variable, "SM_RESOURCE_CONFIG: the hosts are in 2 instance groups"},
        {file, CONFIG ": the hosts are in 2 instance groups"},
        {no_groups, NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mu__settings settings;
        struct mu__requests *requests;
        struct script script;
        mu_resolution resolution;
        mu_error error;
        const char *said;

        script_init(&script, cases[i].rows);
        mu_resolution_init(&resolution);
        assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
        assert_int_equal(mu__settings_init(&settings, kind->name, kind->settings), 0);
        mu__requests_begin_pass(requests, kind->name);
        assert_int_equal(kind->resolve(&(struct mu__pass){requests, &settings}, &error,
                                       &resolution),
                         0);
        said = mu__requests_explanation(requests, 0);
        assert_int_equal(said != NULL, cases[i].said != NULL);
        if (said != NULL && strstr(said, cases[i].said) == NULL)
            fail_msg("%s", said);
        mu_cluster_free(resolution.cluster);
        mu__requests_free(requests);
        mu__settings_done(&settings);
    }
}

TEST(test_group_settings_refused)
{
    static const struct script_row rows[] = {VARIABLES("algo-3"), SCRIPT_END};
    static const struct {
        const char *setting;
        int code;
        const char *words;
    } cases[] = {
        {"groups=worker", -MU_EINVALID,
         "setting groups of resolver sagemaker: job 1: expected TYPE=GROUP or "
         "TYPE=GROUP:COUNT, as in \"chief=gpu:1,worker=gpu,ps=cpu\", got \"worker\""},
        {"groups=", -MU_EINVALID, "job 1: expected TYPE=GROUP"},
        {"groups=ps=cpu,", -MU_EINVALID, "job 2: expected TYPE=GROUP"},
        {"groups=ps=", -MU_EINVALID, "job 1: expected TYPE=GROUP"},
        {"groups=ps=cpu:0", -MU_EINVALID, "job 1: expected TYPE=GROUP"},
        {"groups=pz=cpu", -MU_EINVALID, "job 1: "},
        {"groups=ps=tpu", -MU_ENOTFOUND,
         "job 1: SM_INSTANCE_GROUPS_DICT has no group \"tpu\", only \"cpu\", \"gpu\""},
        {"groups=ps=cpu:3", -MU_ERANGE,
         "job 1: 3 hosts are wanted of the group \"cpu\", which has 2 left"},
        {"groups=ps=cpu,worker=cpu", -MU_ERANGE,
         "job 2: no host is left of the group \"cpu\""},
    };
    static const char *const both[] = {"groups=ps=cpu", "jobs=worker=*", NULL};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const settings[] = {cases[i].setting, NULL};

        script_expect_error(kind, rows, settings, cases[i].code, cases[i].words);
    }
    script_expect_error(kind, rows, both, -MU_EINVALID,
                        "setting jobs of resolver sagemaker: expected nothing beside the "
                        "setting groups");
}

#define WITH(dict)                                           \
    {                                                        \
        V("SM_HOSTS", "[\"a\"]"), V("SM_CURRENT_HOST", "a"), \
            V("SM_INSTANCE_GROUPS_DICT", dict), SCRIPT_END   \
    }

TEST(test_groups_refused)
{
    static const char *const settings[] = {"groups=worker=g", NULL};
    static const struct {
        struct script_row rows[4];
        int code;
        const char *words;
    } cases[] = {
        {WITH("7"), -MU_EINVALID, "SM_INSTANCE_GROUPS_DICT: "},
        {WITH("{\"g\": 7}"), -MU_EINVALID,
         "SM_INSTANCE_GROUPS_DICT: group 0: expected an object with \"hosts\", a list, "
         "got number 7"},
        {WITH("{\"g\": {}}"), -MU_EINVALID, "group 0: expected an object with \"hosts\""},
        {WITH("{\"g\": {\"hosts\": [7]}}"), -MU_EINVALID,
         "SM_INSTANCE_GROUPS_DICT: group 0[0]: expected a host's name of at most 255 "
         "bytes, got number 7"},
        {WITH("{\"g\": {\"hosts\": []}}"), -MU_ERANGE, "no host is left of the group"},
        {WITH("{\"g\": {\"hosts\": [\"a\", \"a\"]}}"), -MU_EEXISTS,
         "SM_INSTANCE_GROUPS_DICT: \"a\" appears twice"},
        {WITH("{\"g\": {\"hosts\": [\"a\"]}, \"h\": {\"hosts\": [\"a\"]}}"), -MU_EEXISTS,
         "SM_INSTANCE_GROUPS_DICT: \"a\" appears twice"},
        {WITH("{\"g\": {\"hosts\": [\"b c\"]}}"), -MU_EINVALID,
         "SM_INSTANCE_GROUPS_DICT: "},
        {WITH("{\"g\": {\"hosts\": [\"a\", \"b\"]}}"), -MU_EINVALID,
         "SM_INSTANCE_GROUPS_DICT: group \"g\": expected hosts of SM_HOSTS alone, got "
         "\"b\""},
        {WITH("{\"g\": {\"hosts\": [\"a\"]}, \"h\": {\"hosts\": [\"b\"]}}"), -MU_EINVALID,
         "group \"h\": expected hosts of SM_HOSTS alone, got \"b\""},
        {{V("SM_HOSTS", "[\"a\", \"b\"]"), V("SM_CURRENT_HOST", "b"),
          V("SM_INSTANCE_GROUPS_DICT", "{\"g\": {\"hosts\": [\"a\"]}}"), SCRIPT_END},
         -MU_EINVALID,
         "SM_INSTANCE_GROUPS_DICT: expected the current host \"b\" in one "
         "of the 1 groups"},
        {{V("SM_HOSTS", "[\"a\", \"a\"]"), V("SM_CURRENT_HOST", "a"),
          V("SM_INSTANCE_GROUPS_DICT", "{\"g\": {\"hosts\": [\"a\"]}}"), SCRIPT_END},
         -MU_EEXISTS,
         "SM_HOSTS: \"a\" appears twice"},
        {{V("SM_RESOURCE_CONFIG", "{\"current_host\": \"a\", \"hosts\": [\"a\"]}"),
          SCRIPT_END},
         -MU_ENOTFOUND,
         "SM_RESOURCE_CONFIG: it has no \"instance_groups\", which the setting groups of "
         "resolver sagemaker is about"},
        {{V("SM_RESOURCE_CONFIG", "{\"current_host\": \"a\", \"hosts\": [\"a\"], "
                                  "\"instance_groups\": [{\"hosts\": [\"a\"]}]}"),
          SCRIPT_END},
         -MU_EINVALID,
         "SM_RESOURCE_CONFIG: group 0: expected \"instance_group_name\", a text"},
        {{V("SM_HOSTS", "[\"a\"]"), V("SM_CURRENT_HOST", "a"), SCRIPT_END},
         -MU_ENOTFOUND,
         "and neither SM_INSTANCE_GROUPS_DICT nor SM_RESOURCE_CONFIG is set"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        script_expect_error(kind, cases[i].rows, settings, cases[i].code, cases[i].words);
}

/* More groups than there can be, and more parts of the setting. */
TEST(test_many_groups)
{
    static const char *const settings[] = {"groups=worker=g1", NULL};
    static const char *const nine[] = {
        "groups=ps=g0,ps=g1,ps=g2,ps=g3,ps=g4,ps=g5,ps=g6,ps=g7,ps=g8", NULL};
    char text[1024] = "{";
    char hosts[256] = "[";
    const struct script_row rows[] = {V("SM_HOSTS", hosts), V("SM_CURRENT_HOST", "a1"),
                                      V("SM_INSTANCE_GROUPS_DICT", text), SCRIPT_END};
    size_t hosts_used = 1;
    size_t used = 1;

    for (int i = 0; i < 16; i++) {
        const char *comma = i == 0 ? "" : ", ";

        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s\"g%d\": {\"hosts\": [\"a%d\"]}", comma, i, i);
        hosts_used += (size_t)snprintf(hosts + hosts_used, sizeof hosts - hosts_used,
                                       "%s\"a%d\"", comma, i);
    }
    (void)snprintf(hosts + hosts_used, sizeof hosts - hosts_used, "]");
    (void)snprintf(text + used, sizeof text - used, "}");
    script_expect(kind, rows, settings, "{\"worker\":[\"a1:2223\"]}", "worker:0");
    script_expect_error(kind, rows, nine, -MU_EINVALID,
                        "setting groups of resolver sagemaker: expected at most 8 jobs");
    (void)snprintf(text + used, sizeof text - used, ", \"h\": {\"hosts\": []}}");
    script_expect_error(kind, rows, settings, -MU_EEXHAUSTED,
                        "SM_INSTANCE_GROUPS_DICT: expected at most 16 instance groups");
}

TEST_PROGRAM()
