/* The resolver tpu, by rows: by name, by variables, on a TPU's host. */
#include "tests/resolver/cloud/tpu_fixture.h"

#include <string.h>

static mu_resolution resolved(const struct script_row *rows, const char *const *settings)
{
    mu_resolution resolution;
    mu_error error;

    if (script_resolve(kind, rows, settings, &error, &resolution) != 0)
        fail_msg("%s", error.message);
    mu_cluster_free(resolution.cluster);
    resolution.cluster = NULL;
    return resolution;
}

/* ---- By name ---- */

TEST(test_node)
{
    static const struct script_row rows[] = {ROW_NODE("n", .text = TWO_ENDPOINTS),
                                             SCRIPT_END};
    mu_resolution resolution = resolved(rows, named);

    script_expect(kind, rows, named, "{\"worker\":[\"10.0.0.2:8470\",\"10.0.0.3:8470\"]}",
                  "");
    assert_string_equal(resolution.master, "grpc://10.0.0.2:8470");
    assert_false(resolution.master_fixed);
    assert_string_equal(resolution.rpc_layer, "grpc");
    assert_string_equal(resolution.environment, "");
    assert_string_equal(resolution.accelerator, "TPU");
    assert_int_equal(resolution.accelerators, 8);
}

TEST(test_old_endpoint)
{
    static const struct script_row rows[] = {
        ROW_NODE("n", .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.2\", "
                              "\"port\": \"8471\"}"),
        SCRIPT_END,
    };
    static const struct script_row no_port[] = {
        ROW_NODE("n", .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.2\"}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, named, "{\"worker\":[\"10.0.0.2:8471\"]}", "");
    script_expect(kind, no_port, named, "{\"worker\":[\"10.0.0.2:8470\"]}", "");
    assert_int_equal(resolved(rows, named).accelerators, -1);
}

TEST(test_full_name)
{
    static const char *const settings[] = {"tpu=projects/p/locations/z/nodes/n",
                                           "access_token=secret", NULL};
    static const char *const bad[] = {"tpu=projects/p/locations/z/n", NULL};
    static const char *const longer[] = {"tpu=projects/p/locations/z/nodes/n/m", NULL};
    static const struct script_row rows[] = {ROW_NODE("n", .text = TWO_ENDPOINTS),
                                             SCRIPT_END};

    script_expect(kind, rows, settings,
                  "{\"worker\":[\"10.0.0.2:8470\",\"10.0.0.3:8470\"]}", "");
    script_expect_error(kind, rows, bad, -MU_EINVALID,
                        "setting tpu[0]: expected a name or "
                        "projects/PROJECT/locations/ZONE/nodes/NAME");
    script_expect_error(kind, rows, longer, -MU_EINVALID, "setting tpu[0]: expected");
}

TEST(test_several_are_merged)
{
    const char *settings[] = {"tpu=b, a ,grpc://10.1.0.1:99,10.1.0.2",
                              "project=p",
                              "zone=z",
                              "access_token=secret",
                              "port=7000",
                              NULL};
    static const struct script_row rows[] = {
        ROW_NODE("a", .text = TWO_ENDPOINTS),
        ROW_NODE("b", .text = "{\"state\": \"READY\", \"networkEndpoints\": "
                              "[{\"ipAddress\": \"10.0.0.9\", \"port\": 1}]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, settings,
                  "{\"worker\":[\"10.0.0.9:7000\",\"10.0.0.2:7000\",\"10.0.0.3:7000\","
                  "\"10.1.0.1:99\",\"10.1.0.2:7000\"]}",
                  "");
    assert_string_equal(resolved(rows, settings).master, "grpc://10.0.0.9:7000");
    settings[4] = NULL; /* no port */
    script_expect(kind, rows, settings,
                  "{\"worker\":[\"10.0.0.9:1\",\"10.0.0.2:8470\",\"10.0.0.3:8470\","
                  "\"10.1.0.1:99\",\"10.1.0.2:8470\"]}",
                  "");
}

TEST(test_two_of_a_kind)
{
    static const char *const settings[] = {"tpu=a,b", "project=p", "zone=z",
                                           "access_token=secret", NULL};
    static const struct script_row rows[] = {
        ROW_NODE("a", .text = TWO_ENDPOINTS),
        ROW_NODE("b", .text = "{\"state\": \"READY\", \"acceleratorType\": \"v2-16\", "
                              "\"networkEndpoints\": [{\"ipAddress\": \"10.0.1.1\"}, "
                              "{\"ipAddress\": \"10.0.1.2\"}]}"),
        SCRIPT_END,
    };

    assert_int_equal(resolved(rows, settings).accelerators, 8);
}

TEST(test_by_metadata)
{
    static const char *const settings[] = {"tpu=n", "access_token=secret", NULL};
    static const struct script_row rows[] = {
        ROW_GCE,
        ROW_META("project/project-id", .text = "p"),
        ROW_META("instance/zone", .text = "projects/1/zones/z"),
        ROW_META("instance/network-interfaces/0/ip", .text = "10.0.0.9\n"),
        ROW_NODE("n", .text = TWO_ENDPOINTS),
        SCRIPT_END,
    };

    script_expect(kind, rows, settings,
                  "{\"worker\":[\"10.0.0.2:8470\",\"10.0.0.3:8470\"]}", "");
    script_expect_error(kind, NULL, settings, -MU_EPRECONDITION,
                        "TPU \"n\": resolver tpu: the project is not known");
}

/* One that waits must not hide one that is gone. */
TEST(test_one_is_gone)
{
    static const char *const settings[] = {"tpu=a,b,c", "project=p", "zone=z",
                                           "access_token=secret", NULL};
    static const struct script_row rows[] = {
        ROW_NODE("a", .text = "{\"state\": \"CREATING\"}"),
        ROW_NODE("b", .text = "{\"state\": \"STARTING\"}"),
        ROW_NODE("c", .text = "{\"state\": \"PREEMPTED\"}"),
        SCRIPT_END,
    };
    static const struct script_row waiting[] = {
        ROW_NODE("a", .text = "{\"state\": \"CREATING\"}"),
        ROW_NODE("b", .text = "{\"state\": \"STARTING\"}"),
        ROW_NODE("c", .text = TWO_ENDPOINTS),
        SCRIPT_END,
    };

    script_expect_error(kind, rows, settings, -MU_EPRECONDITION, "TPU \"c\"");
    script_expect_error(kind, waiting, settings, -MU_EUNAVAILABLE, "TPU \"a\"");
}

/* Several slices by their names, on a host of the second: its own address tells which. */
TEST(test_own_host)
{
    static const char *const settings[] = {
        "tpu=a,b", "project=p", "zone=z", "access_token=secret", "port=8482", NULL};
    static const struct script_row rows[] = {
        ROW_GCE,
        ROW_META("instance/network-interfaces/0/ip", .text = "10.0.1.2"),
        ROW_NODE("a", .text = TWO_ENDPOINTS),
        ROW_NODE("b", .text = "{\"state\": \"READY\", \"networkEndpoints\": "
                              "[{\"ipAddress\": \"10.0.1.1\"}, "
                              "{\"ipAddress\": \"10.0.1.2\"}]}"),
        SCRIPT_END,
    };
    static const struct script_row unknown[] = {
        ROW_GCE,
        ROW_META("instance/network-interfaces/0/ip", .status = 404),
        ROW_NODE("n", .text = TWO_ENDPOINTS),
        SCRIPT_END,
    };
    static const struct script_row silent[] = {
        ROW_GCE,
        ROW_META("instance/network-interfaces/0/ip", .code = -MU_EUNAVAILABLE,
                 .text = "connection refused"),
        ROW_NODE("n", .text = TWO_ENDPOINTS),
        SCRIPT_END,
    };
    static const struct script_row skipped[] = {
        ROW_GCE,
        SCRIPT_VARIABLE("TPU_SKIP_MDS_QUERY", "true"),
        ROW_NODE("n", .text = TWO_ENDPOINTS),
        SCRIPT_END,
    };

    script_expect(kind, rows, settings,
                  "{\"worker\":[\"10.0.0.2:8482\",\"10.0.0.3:8482\","
                  "\"10.0.1.1:8482\",\"10.0.1.2:8482\"]}",
                  "worker:3");
    assert_int_equal(resolved(unknown, named).task_index, -1);
    assert_int_equal(resolved(silent, named).task_index, -1);
    assert_int_equal(resolved(skipped, named).task_index, -1);
}

/* A node that was made by its chips and their arrangement says no type, or as much. */
TEST(test_chips)
{
    static const struct script_row rows[] = {
        ROW_NODE("n", .text = "{\"state\": \"READY\", \"acceleratorConfig\": "
                              "{\"type\": \"V4\", \"topology\": \"2x2x2\"}, "
                              "\"networkEndpoints\": [{\"ipAddress\": \"10.0.0.2\", "
                              "\"port\": 8470, \"accessConfig\": "
                              "{\"externalIp\": \"192.0.2.1\"}}, "
                              "{\"ipAddress\": \"10.0.0.3\"}]}"),
        SCRIPT_END,
    };
    static const struct {
        const char *chip;
        const char *topology;
        size_t tasks;
        int devices;
    } chips[] = {
        {"V2", "4x4", 4, 8},      {"V3", "2x2", 1, 8},
        {"V4", "2x2x4", 4, 4},    {"V5P", "2x2x1", 1, 4},
        {"V6E", "16x16", 64, 4},  {"V5LITE_POD", "2x4", 1, 8},
        {"V4", "2x2x2", 3, -1},   {"V4", "2x2x", 1, -1},
        {"V4", "", 1, -1},        {"V4", "2x0x2", 1, -1},
        {"V4", "2 x2", 1, -1},    {"", "2x2", 1, -1},
        {"V4", "99999x1", 1, -1}, {"V4", "9999x9999x9999", 1, -1},
        {"V9", "2x2", 1, -1},     {"V4", "2x2x1", 0, -1},
    };

    script_expect(kind, rows, named, "{\"worker\":[\"10.0.0.2:8470\",\"10.0.0.3:8470\"]}",
                  "");
    assert_int_equal(resolved(rows, named).accelerators, 4);
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        assert_int_equal(mu__tpu_chip_devices(chips[i].chip, chips[i].topology,
                                              chips[i].tasks),
                         chips[i].devices);
}

/* ---- By variables ---- */

TEST(test_order_of_variables)
{
    static const char *const settings[] = {"project=p", "zone=z", "access_token=secret",
                                           NULL};
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS",
                        "grpc://10.0.0.5:8470,grpc://10.0.0.6:8471"),
        SCRIPT_VARIABLE("TPU_WORKER_HOSTNAMES", "host-a,host-b"),
        SCRIPT_VARIABLE("TPU_WORKER_ID", "1"),
        SCRIPT_VARIABLE("TPU_NAME", "n"),
        SCRIPT_VARIABLE("TPU_CONFIG", "{\"tpu_node_name\": \"m\"}"),
        ROW_NODE("n", .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.2\"}"),
        ROW_NODE("m", .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.3\"}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, settings,
                  "{\"worker\":[\"10.0.0.5:8470\",\"10.0.0.6:8471\"]}", "");
    script_expect(kind, rows + 1, settings,
                  "{\"worker\":[\"host-a:8482\",\"host-b:8482\"]}", "worker:1");
    script_expect(kind, rows + 3, settings, "{\"worker\":[\"10.0.0.2:8470\"]}", "");
    script_expect(kind, rows + 4, settings, "{\"worker\":[\"10.0.0.3:8470\"]}", "");
    script_expect_error(kind, NULL, NULL, -MU_EPRECONDITION,
                        "neither the setting tpu nor KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS, "
                        "TPU_WORKER_HOSTNAMES, TPU_NAME or TPU_CONFIG says which TPU");
}

TEST(test_setting_wins)
{
    static const char *const settings[] = {"tpu=grpc://10.0.0.1", NULL};
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "grpc://10.0.0.5:8470"),
        SCRIPT_END,
    };

    script_expect(kind, rows, settings, "{\"worker\":[\"10.0.0.1:8470\"]}", "");
}

TEST(test_config)
{
    static const char *const token[] = {"access_token=secret", NULL};
    static const char *const moved[] = {"access_token=secret", "zone=z", NULL};
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("TPU_CONFIG", "/etc/tpu.json"),
        SCRIPT_FILE("/etc/tpu.json", "{\"tpu_node_name\": \"n\", \"project\": \"p\", "
                                     "\"zone\": \"z\"}"),
        ROW_NODE("n", .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.2\"}"),
        SCRIPT_END,
    };
    static const struct script_row other_zone[] = {
        SCRIPT_VARIABLE("TPU_CONFIG", "{\"tpu_node_name\": \"n\", \"project\": \"p\", "
                                      "\"zone\": \"y\"}"),
        ROW_NODE("n", .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.2\"}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, token, "{\"worker\":[\"10.0.0.2:8470\"]}", "");
    script_expect(kind, other_zone, moved, "{\"worker\":[\"10.0.0.2:8470\"]}", "");
}

TEST(test_bad_config)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"{\"tpu_node_name\": ", -MU_EINVALID, "TPU_CONFIG: line 1, column 19"},
        {"{}", -MU_EINVALID, "TPU_CONFIG: tpu_node_name is missing"},
        {"{\"tpu_node_name\": \"\"}", -MU_EINVALID, "tpu_node_name is missing"},
        {"{\"tpu_node_name\": 7}", -MU_EINVALID, "tpu_node_name: expected a text"},
        {"{\"tpu_node_name\": \"n\", \"zone\": []}", -MU_EINVALID,
         "zone: expected a text"},
        {"/none", -MU_ENOTFOUND, "TPU_CONFIG: \"/none\" is not there"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {SCRIPT_VARIABLE("TPU_CONFIG", rows[i].text),
                                            SCRIPT_END};

        script_expect_error(kind, script, NULL, rows[i].code, rows[i].words);
    }
}

/* ---- On a TPU's host ---- */

TEST(test_host_of_metadata)
{
    static const struct script_row rows[] = {
        ROW_GCE,
        ROW_META("instance/attributes/agent-worker-number", .text = "1"),
        ROW_META("instance/attributes/worker-network-endpoints",
                 .text = "unknown:unknown:10.0.0.2,unknown:unknown:10.0.0.3"),
        ROW_META("instance/attributes/accelerator-type", .text = "v4-16"),
        ROW_META("instance/attributes/tpu-env", .status = 404),
        SCRIPT_END,
    };
    mu_error why;

    assert_int_equal(script_detect(kind, rows, NULL, &why), 1);
    script_expect(kind, rows, NULL, "{\"worker\":[\"10.0.0.2:8482\",\"10.0.0.3:8482\"]}",
                  "worker:1");
    assert_int_equal(resolved(rows, NULL).accelerators, 4);
}

TEST(test_host_of_several_slices)
{
    static const struct script_row metadata[] = {
        ROW_GCE,
        ROW_META("instance/attributes/agent-worker-number", .text = "0"),
        ROW_META("instance/attributes/worker-network-endpoints", .text = "10.0.0.2"),
        ROW_META("instance/attributes/accelerator-type", .status = 404),
        ROW_META("instance/attributes/tpu-env",
                 .text = "ZONE: 'z'\nMEGASCALE_NUM_SLICES: '2'\n"),
        SCRIPT_END,
    };
    static const struct script_row variables[] = {
        SCRIPT_VARIABLE("TPU_WORKER_HOSTNAMES", "a"),
        SCRIPT_VARIABLE("TPU_WORKER_ID", "0"),
        SCRIPT_VARIABLE("MEGASCALE_NUM_SLICES", "2"),
        SCRIPT_END,
    };

    script_expect_error(kind, metadata, NULL, -MU_EPRECONDITION, "MEGASCALE_NUM_SLICES");
    script_expect_error(kind, variables, NULL, -MU_EPRECONDITION,
                        "use the resolver kubernetes_job");
}

TEST(test_bad_hosts)
{
    static const struct {
        const char *hosts;
        const char *own;
        int code;
        const char *words;
    } rows[] = {
        {"a,b", NULL, -MU_EPRECONDITION, "TPU_WORKER_ID is not set"},
        {"a,b", "2", -MU_EINVALID, "TPU_WORKER_ID: expected a number below 2"},
        {"a,b", "x", -MU_EINVALID, "TPU_WORKER_ID: expected a number below 2"},
        {"a,b", "-1", -MU_EINVALID, "TPU_WORKER_ID: expected a number below 2"},
        {"a,,b", "0", -MU_EINVALID, "TPU_WORKER_HOSTNAMES[1]: expected HOST"},
        {"a,b:x", "0", -MU_EINVALID, "TPU_WORKER_HOSTNAMES[1]: expected HOST"},
        {"a,b:0", "0", -MU_EINVALID, "TPU_WORKER_HOSTNAMES[1]: expected HOST"},
        {"a,b:70000", "0", -MU_EINVALID, "TPU_WORKER_HOSTNAMES[1]: expected HOST"},
        {"a,[::1", "0", -MU_EINVALID, "TPU_WORKER_HOSTNAMES[1]: expected HOST"},
        {"a,b c", "0", -MU_EINVALID, "TPU_WORKER_HOSTNAMES[1]: expected HOST"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {
            SCRIPT_VARIABLE("TPU_WORKER_HOSTNAMES", rows[i].hosts),
            rows[i].own == NULL
                ? (struct script_row)SCRIPT_END
                : (struct script_row)SCRIPT_VARIABLE("TPU_WORKER_ID", rows[i].own),
            SCRIPT_END,
        };

        script_expect_error(kind, script, NULL, rows[i].code, rows[i].words);
    }
}

TEST(test_hosts_of_version_6)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("TPU_WORKER_HOSTNAMES", "fd00::1,[fd00::2],[fd00::3]:99"),
        SCRIPT_VARIABLE("TPU_WORKER_ID", "0"),
        SCRIPT_END,
    };

    script_expect(kind, rows, NULL,
                  "{\"worker\":[\"[fd00::1]:8482\",\"[fd00::2]:8482\","
                  "\"[fd00::3]:99\"]}",
                  "worker:0");
    assert_string_equal(resolved(rows, NULL).master, "grpc://[fd00::1]:8482");
}

/* Names have neither dots nor colons. */
TEST(test_addresses_without_a_scheme)
{
    static const struct {
        const char *text;
        const char *cluster;
    } cases[] = {
        {"1.2.3.4:1234", "{\"worker\":[\"1.2.3.4:1234\"]}"},
        {"1.2.3.4:1234,5.6.7.8", "{\"worker\":[\"1.2.3.4:1234\",\"5.6.7.8:8470\"]}"},
        {"host.svc:99", "{\"worker\":[\"host.svc:99\"]}"},
        {"[fd00::1]:99", "{\"worker\":[\"[fd00::1]:99\"]}"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct script_row rows[] = {
            SCRIPT_VARIABLE("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", cases[i].text),
            SCRIPT_END};

        script_expect(kind, rows, NULL, cases[i].cluster, "");
    }
}

/* ---- Not in the cloud ---- */

TEST(test_noncloud_names)
{
    static const struct {
        const char *setting;
        const char *master;
    } rows[] = {
        {"tpu=", ""},
        {"tpu=local", ""},
        {"tpu=localhost:8470", "localhost:8470"},
        {"tpu=/bns/cell/job/0", "/bns/cell/job/0"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const settings[] = {rows[i].setting, NULL};
        mu_resolution resolution = resolved(NULL, settings);

        script_expect(kind, NULL, settings, "", "");
        assert_string_equal(resolution.master, rows[i].master);
        assert_true(resolution.master_fixed);
        assert_string_equal(resolution.environment, "google");
        assert_string_equal(resolution.rpc_layer, "");
    }
}

TEST(test_empty_name_on_gce)
{
    static const char *const settings[] = {"tpu=", NULL};
    static const struct script_row rows[] = {ROW_GCE, SCRIPT_END};

    script_expect_error(kind, rows, settings, -MU_EPRECONDITION,
                        "setting tpu is empty: expected the name of a TPU on Google "
                        "Compute Engine");
}

/* ---- The coordinator ---- */

TEST(test_coordinator)
{
    static const char *const given[] = {"tpu=grpc://10.0.0.1", "coordinator_name=chief",
                                        "coordinator_address=10.9.9.9:77", "job_name=ps",
                                        NULL};
    static const char *const by_itself[] = {"tpu=grpc://10.0.0.1",
                                            "coordinator_name=chief", NULL};
    static const char *const same[] = {"tpu=grpc://10.0.0.1", "coordinator_name=worker",
                                       NULL};
    static const char *const wrong[] = {"tpu=grpc://10.0.0.1", "coordinator_name=Boss",
                                        "coordinator_address=a:1", NULL};
    static const struct script_row here[] = {
        ROW_GCE, ROW_META("instance/network-interfaces/0/ip", .text = "10.4.4.4"),
        SCRIPT_END};

    script_expect(kind, NULL, given,
                  "{\"chief\":[\"10.9.9.9:77\"],\"ps\":[\"10.0.0.1:8470\"]}", "chief:0");
    script_expect(kind, here, by_itself,
                  "{\"chief\":[\"10.4.4.4:0\"],\"worker\":[\"10.0.0.1:8470\"]}",
                  "chief:0");
    script_expect(kind, NULL, by_itself,
                  "{\"chief\":[\"this-host:0\"],\"worker\":[\"10.0.0.1:8470\"]}",
                  "chief:0");
    assert_string_equal(resolved(NULL, given).master, "grpc://10.0.0.1:8470");
    script_expect_error(kind, NULL, same, -MU_EINVALID, "setting coordinator_name");
    script_expect_error(kind, NULL, wrong, -MU_EINVALID, "setting coordinator_address");
}

/* ---- Detection ---- */

TEST(test_detection)
{
    static const char *const variables[] = {"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS",
                                            "TPU_WORKER_HOSTNAMES", "TPU_NAME",
                                            "TPU_CONFIG"};
    static const struct script_row elsewhere[] = {
        ROW_GCE, ROW_META("instance/attributes/agent-worker-number", .status = 404),
        SCRIPT_END};
    static const struct script_row broken[] = {
        ROW_GCE,
        ROW_META("instance/attributes/agent-worker-number", .code = -MU_EDEADLINE,
                 .text = "no answer within 1 s"),
        SCRIPT_END};
    static const struct script_row skipped[] = {
        ROW_GCE, SCRIPT_VARIABLE("TPU_SKIP_MDS_QUERY", "1"), SCRIPT_END};
    mu_error why;

    for (size_t i = 0; i < 4; i++) {
        const struct script_row rows[] = {SCRIPT_VARIABLE(variables[i], "n"), SCRIPT_END};

        assert_int_equal(script_detect(kind, rows, NULL, &why), 1);
    }
    assert_int_equal(script_detect(kind, NULL, named, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_non_null(strstr(why.message, "this is no machine of Google's"));
    assert_int_equal(script_detect(kind, elsewhere, NULL, &why), 0);
    assert_int_equal(script_detect(kind, broken, NULL, &why), 0);
    assert_non_null(strstr(why.message, "no answer within 1 s"));
    assert_int_equal(script_detect(kind, skipped, NULL, &why), 0);
    assert_non_null(strstr(why.message, "TPU_SKIP_MDS_QUERY"));
}

/* ---- Small parts ---- */

TEST(test_devices)
{
    static const struct {
        const char *type;
        size_t tasks;
        int devices;
    } rows[] = {
        {"v2-8", 1, 8},         {"v3-32", 4, 8},  {"v4-8", 1, 4},  {"v5p-16", 2, 4},
        {"v5litepod-16", 4, 4}, {"v6e-8", 2, 4},  {"v2-8", 3, -1}, {"v9-8", 1, -1},
        {"v2", 1, -1},          {"v2-x", 1, -1},  {"", 1, -1},     {"v2-8", 0, -1},
        {"-8", 1, -1},          {"v22-8", 1, -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(mu__tpu_devices(rows[i].type, rows[i].tasks), rows[i].devices);
}

TEST_PROGRAM()
