/* The resolvers environment and aws, by rows. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#include <muster/cluster.h>

#define V SCRIPT_VARIABLE
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define OWN_ADDRESSES                                       \
    {                                                       \
        .kind = MU__REQUEST_ADDRESSES, .name = "this-host", \
        .text = "127.0.1.1\n10.0.0.7\nfd00::7\n"            \
    }

static const struct mu__resolver_kind *const kind = &mu__resolver_environment;

static void expect_bind(const struct mu__resolver_kind *resolver,
                        const struct script_row *rows, const char *const *settings,
                        const char *cluster, const char *task, const char *bind)
{
    mu_resolution resolution;
    mu_error error;

    script_expect(resolver, rows, settings, cluster, task);
    assert_int_equal(script_resolve(resolver, rows, settings, &error, &resolution), 0);
    assert_string_equal(resolution.bind_address, bind);
    mu_cluster_free(resolution.cluster);
}

/* ---- All hosts ---- */

TEST(test_hosts)
{
    static const struct script_row rows[] = {V("MUSTER_HOSTS", "a,n[1-2],n1,b:99"),
                                             V("MUSTER_RANK", "3"), SCRIPT_END};
    static const char *const settings[] = {"jobs=chief=1,worker=*", "port=500",
                                           "bind_address=0.0.0.0:501", NULL};

    expect_bind(kind, rows, NULL,
                "{\"worker\":[\"a:8888\",\"n1:8888\",\"n2:8888\",\"n1:8889\",\"b:99\"]}",
                "worker:3", "");
    expect_bind(kind, rows, settings,
                "{\"chief\":[\"a:500\"],"
                "\"worker\":[\"n1:500\",\"n2:500\",\"n1:501\",\"b:99\"]}",
                "worker:2", "tcp://0.0.0.0:501");
}

TEST(test_hosts_refused)
{
    static const struct {
        const char *variable;
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"NOTHING", "", -MU_ENOTFOUND,
         "MUSTER_RANK is not set: the place of this process"},
        {"MUSTER_RANK", "2", -MU_EINVALID,
         "MUSTER_RANK: expected a number below 2 (MUSTER_HOSTS), got 2"},
        {"MUSTER_NUM_PROCESSES", "3", -MU_EINVALID,
         "MUSTER_HOSTS: it has 2 hosts, one for each process, but MUSTER_NUM_PROCESSES"},
        {"MUSTER_PROCESS_ID", "x", -MU_EINVALID, "MUSTER_PROCESS_ID: expected a whole"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {
            V("MUSTER_HOSTS", "a,b"), V(rows[i].variable, rows[i].text), SCRIPT_END};

        script_expect_error(kind, script, NULL, rows[i].code, rows[i].words);
    }
}

/* ---- The address of process 0 ---- */

#define JAX(id)                                                                 \
    V("JAX_COORDINATOR_ADDRESS", "10.0.0.1:1234"), V("JAX_NUM_PROCESSES", "3"), \
        V("JAX_PROCESS_ID", id)

TEST(test_jax)
{
    static const struct script_row first[] = {
        JAX("0"), V("JAX_COORDINATOR_BIND_ADDRESS", "[::]:1234"), SCRIPT_END};
    static const struct script_row last[] = {
        JAX("2"), V("JAX_COORDINATOR_BIND_ADDRESS", "[::]:1234"), OWN_ADDRESSES,
        SCRIPT_END};
    static const char *const settings[] = {"jobs=chief=1,worker=2",
                                           "bind_address=0.0.0.0:0", NULL};
    static const char cluster[] = "{\"chief\":[\"10.0.0.1:1234\"]}";

    expect_bind(kind, first, NULL, cluster, "chief:0", "tcp://[::]:1234");
    expect_bind(kind, last, NULL, cluster, "worker:1", "tcp://10.0.0.7:0");
    expect_bind(kind, last, settings, cluster, "worker:1", "tcp://0.0.0.0:0");
    expect_bind(kind, first, settings, cluster, "chief:0", "tcp://0.0.0.0:1234");
}

TEST(test_other_families)
{
    static const struct script_row torch[] = {V("MASTER_ADDR", "head"),
                                              V("MASTER_PORT", "29500"),
                                              V("WORLD_SIZE", "4"),
                                              V("RANK", "1"),
                                              OWN_ADDRESSES,
                                              SCRIPT_END};
    static const struct script_row ours[] = {
        V("MUSTER_COORDINATOR_ADDRESS", "127.0.0.1:77"), V("MUSTER_NUM_PROCESSES", "2"),
        V("MUSTER_PROCESS_ID", "1"), JAX("0"), SCRIPT_END};
    static const struct script_row v6[] = {
        V("JAX_COORDINATOR_ADDRESS", "fd00::1"), V("JAX_COORDINATOR_PORT", "70"),
        V("JAX_NUM_PROCESSES", "1"), V("JAX_PROCESS_ID", "0"), SCRIPT_END};

    expect_bind(kind, torch, NULL, "{\"chief\":[\"head:29500\"]}", "worker:0",
                "tcp://10.0.0.7:0");
    expect_bind(kind, ours, NULL, "{\"chief\":[\"127.0.0.1:77\"]}", "worker:0",
                "tcp://127.0.0.1:0");
    expect_bind(kind, v6, NULL, "{\"chief\":[\"[fd00::1]:70\"]}", "chief:0", "");
}

static void expect_partition(const struct script_row *rows, int partition)
{
    mu_resolution resolution;
    mu_error error;

    assert_int_equal(script_resolve(kind, rows, NULL, &error, &resolution), 0);
    assert_int_equal(resolution.partition, partition);
    mu_cluster_free(resolution.cluster);
}

TEST(test_devices)
{
    static const struct script_row two[] = {JAX("0"), V("JAX_LOCAL_DEVICE_IDS", "1,3"),
                                            SCRIPT_END};
    static const struct script_row all[] = {JAX("0"), V("JAX_LOCAL_DEVICE_IDS", "all"),
                                            SCRIPT_END};
    static const struct script_row bad[] = {JAX("0"), V("JAX_LOCAL_DEVICE_IDS", "1;3"),
                                            SCRIPT_END};
    mu_resolution resolution;
    mu_error error;

    assert_int_equal(script_resolve(kind, two, NULL, &error, &resolution), 0);
    assert_string_equal(resolution.visible_devices, "1,3");
    mu_cluster_free(resolution.cluster);
    assert_int_equal(script_resolve(kind, all, NULL, &error, &resolution), 0);
    assert_string_equal(resolution.visible_devices, "");
    mu_cluster_free(resolution.cluster);
    script_expect_error(kind, bad, NULL, -MU_EINVALID,
                        "JAX_LOCAL_DEVICE_IDS: expected numbers with commas between");
}

TEST(test_partitions)
{
    static const struct {
        const char *variable;
        const char *text;
        int partition;
    } rows[] = {
        {"JAX_PARTITION_INDEX", "3", 3},
        {"JAX_SLICE_INDEX", "0", 0},
        {"NOTHING", "1", -1},
        {"MUSTER_PARTITION_INDEX", "1", -1},
    };
    static const struct script_row both[] = {JAX("0"), V("JAX_SLICE_INDEX", "2"),
                                             V("JAX_PARTITION_INDEX", "1"), SCRIPT_END};
    static const struct script_row ours[] = {
        V("MUSTER_COORDINATOR_ADDRESS", "127.0.0.1:77"), V("MUSTER_NUM_PROCESSES", "2"),
        V("MUSTER_PROCESS_ID", "1"), V("MUSTER_PARTITION_INDEX", "5"), SCRIPT_END};
    static const struct script_row bad[] = {JAX("0"), V("JAX_PARTITION_INDEX", "-1"),
                                            SCRIPT_END};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {JAX("0"), V(rows[i].variable, rows[i].text),
                                            SCRIPT_END};

        expect_partition(script, rows[i].partition);
    }
    expect_partition(both, 1);
    expect_partition(ours, 5);
    script_expect_error(kind, bad, NULL, -MU_EINVALID,
                        "JAX_PARTITION_INDEX: expected a whole number of 0 to");
}

TEST(test_missing)
{
    static const struct {
        struct script_row rows[3];
        const char *words;
    } rows[] = {
        {{SCRIPT_END},
         "none of these is set: MUSTER_HOSTS, MUSTER_COORDINATOR_ADDRESS, JAX_"},
        {{V("MUSTER_PROCESS_ID", "0"), SCRIPT_END},
         "MUSTER_NUM_PROCESSES is not set: how many processes there are"},
        {{V("JAX_COORDINATOR_ADDRESS", "a:1"), SCRIPT_END},
         "JAX_NUM_PROCESSES is not set"},
        {{V("JAX_COORDINATOR_ADDRESS", "a:1"), V("JAX_NUM_PROCESSES", "2"), SCRIPT_END},
         "JAX_PROCESS_ID is not set: which process this is, from 0"},
        {{V("MUSTER_PROCESS_ID", "0"), V("MUSTER_NUM_PROCESSES", "2"), SCRIPT_END},
         "MUSTER_COORDINATOR_ADDRESS is not set: where process 0 is, HOST:PORT"},
        {{V("MASTER_ADDR", "a"), V("WORLD_SIZE", "2"), SCRIPT_END}, "RANK is not set"},
    };
    static const struct script_row no_port[] = {
        V("MASTER_ADDR", "a"), V("WORLD_SIZE", "2"), V("RANK", "0"), SCRIPT_END};

    for (size_t i = 0; i < COUNT(rows); i++)
        script_expect_error(kind, rows[i].rows, NULL, -MU_ENOTFOUND, rows[i].words);
    script_expect_error(kind, no_port, NULL, -MU_ENOTFOUND,
                        "MASTER_PORT is not set, and the address has no port");
}

TEST(test_family_refused)
{
    static const struct script_row above[] = {JAX("3"), SCRIPT_END};
    static const struct script_row chief[] = {JAX("0"), SCRIPT_END};
    static const struct script_row lost[] = {JAX("1"), SCRIPT_END};
    static const char *const with_ps[] = {"jobs=chief=1,ps=1,worker=1", NULL};
    static const char *const no_chief[] = {"jobs=worker=3", NULL};
    static const char *const bind[] = {"bind_address=nowhere", NULL};

    script_expect_error(kind, above, NULL, -MU_EINVALID,
                        "JAX_PROCESS_ID: expected a number below 3 (JAX_NUM_PROCESSES)");
    script_expect_error(kind, chief, with_ps, -MU_EINVALID,
                        "only the address of rank 0 is known");
    script_expect_error(kind, chief, no_chief, -MU_EINVALID,
                        "only the address of rank 0 is known");
    script_expect_error(kind, chief, bind, -MU_EINVALID, "bind_address: ");
    script_expect_error(
        kind, lost, NULL, -MU_EINVALID,
        "this host's name, \"this-host\", has no address at which others");
}

TEST(test_detection)
{
    static const struct script_row hosts[] = {V("MUSTER_HOSTS", "a"), SCRIPT_END};
    static const struct script_row ours[] = {V("MUSTER_PROCESS_ID", "1"), SCRIPT_END};
    static const struct script_row address[] = {V("JAX_COORDINATOR_ADDRESS", "a:1"),
                                                V("MASTER_ADDR", "a"), SCRIPT_END};
    static const struct script_row torch[] = {V("MASTER_ADDR", "a"), V("RANK", "1"),
                                              SCRIPT_END};
    mu_error why;

    assert_int_equal(script_detect(kind, hosts, NULL, &why), 1);
    assert_int_equal(script_detect(kind, ours, NULL, &why), 1);
    assert_int_equal(script_detect(kind, torch, NULL, &why), 1);
    assert_int_equal(script_detect(kind, address, NULL, &why), 0);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_non_null(strstr(why.message, "MUSTER_HOSTS"));
}

/* Proxies are said, and change nothing. */
TEST(test_proxies_are_noted)
{
    static const struct script_row rows[] = {
        JAX("0"), V("https_proxy", "http://user:secret@proxy:1"), SCRIPT_END};
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    mu_resolution resolution;
    mu_error error;

    script_init(&script, rows);
    mu_resolution_init(&resolution);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, kind->name, kind->settings), 0);
    mu__requests_begin_pass(requests, kind->name);
    assert_int_equal(
        kind->resolve(&(struct mu__pass){requests, &settings}, &error, &resolution), 0);
    assert_non_null(mu__requests_explanation(requests, 0));
    assert_non_null(strstr(mu__requests_explanation(requests, 0), "https_proxy is set"));
    assert_null(strstr(mu__requests_explanation(requests, 0), "secret"));
    assert_null(mu__requests_explanation(requests, 1));
    mu_cluster_free(resolution.cluster);
    mu__requests_free(requests);
    mu__settings_done(&settings);
}

/* ---- AWS Batch ---- */

TEST_PROGRAM()
