/* Servers over real sockets: birth, the job's end, stops of all kinds. */
#include "tests/real/cluster/server_fixture.h"

#include <muster/resolver.h>

/* ---- Helpers ---- */

static mu_server *start_with(const mu_server_options *options)
{
    mu_server *server = NULL;
    mu_error error = {0};

    if (mu_server_start(options, &error, &server) != 0)
        fail_msg("%s", error.message);
    return server;
}

static mu_server *start(struct nodes *nodes, const char *type, int index)
{
    mu_node_options node;
    mu_server_options options;

    server_options(nodes, type, index, &node, &options);
    return start_with(&options);
}

/* ---- Birth ---- */

TEST(test_option_errors)
{
    static const char *const filters[] = {"worker"};
    struct nodes nodes;
    mu_node_options node;
    mu_server_options good;
    mu_session_config config;
    mu_node_options tasks[8];
    mu_server_options o[8];
    static const char *const words[] = {
        "a server needs a cluster",
        "a server needs a task type",
        "a server needs a task index: /job:ps/task:?",
        "rpc_layer has at most 15 bytes",
        "environment is \"moon\"",
        "device_filters[0] is \"worker\"",
        "index 1 is not in the job",
        "wroker",
    };
    static const int codes[] = {-MU_EINVALID, -MU_EINVALID, -MU_EINVALID, -MU_EINVALID,
                                -MU_EINVALID, -MU_EINVALID, -MU_ERANGE,   -MU_EINVALID};

    nodes_init(&nodes, 1, 1);
    server_options(&nodes, "ps", 0, &node, &good);
    mu_session_config_init(&config);
    config.device_filters = filters;
    config.device_filters_count = 1;
    for (size_t i = 0; i < 8; i++) {
        tasks[i] = node;
        o[i] = good;
        o[i].node = &tasks[i];
    }
    tasks[0].cluster = NULL;
    tasks[1].task_type = NULL;
    tasks[2].task_index = -1;
    o[3].rpc_layer = "a-layer-that-is-too-long";
    o[4].environment = "moon";
    o[5].config = &config;
    tasks[6].task_index = 1;
    tasks[7].task_type = "wroker";
    for (size_t i = 0; i < 8; i++) {
        mu_server *server = NULL;
        mu_error error = {0};
        int rv = mu_server_start(&o[i], &error, &server);

        if (rv != codes[i] || !is_in(error.message, words[i]))
            fail_msg("row %zu: %d %s", i, rv, error.message);
        assert_null(server);
    }
    nodes_done(&nodes);
}

TEST(test_address_in_use)
{
    struct nodes nodes;
    mu_node_options node;
    mu_server_options options;
    mu_server *second = NULL;
    mu_server *first;
    mu_error error;

    nodes_init(&nodes, 1, 1);
    server_options(&nodes, "ps", 0, &node, &options);
    first = start_with(&options);
    assert_int_equal(mu_server_start(&options, &error, &second), -MU_EEXISTS);
    assert_true(is_in(error.message, mu_cluster_address(nodes.cluster, "ps", 0)));
    waiting_options(&nodes, "ps", 0, &node, &options);
    assert_int_equal(mu_server_start(&options, &error, &second), -MU_EEXISTS);
    mu_server_free(first);
    nodes_done(&nodes);
}

TEST(test_looking)
{
    static const char *const filters[] = {"/job:ps", "/job:worker/task:0"};
    struct nodes nodes;
    mu_node_options node;
    mu_server_options options;
    mu_server_options other;
    mu_session_config config;
    mu_node_options changed;
    mu_cluster *smaller = mu_cluster_new();
    mu_server *server;
    char target[320];

    nodes_init(&nodes, 1, 1);
    server_options(&nodes, "worker", 0, &node, &options);
    mu_session_config_init(&config);
    config.inter_op_threads = 3;
    config.intra_op_threads = 2;
    config.device_filters = filters;
    config.device_filters_count = 2;
    options.config = &config;
    server = start_with(&options);
    (void)snprintf(target, sizeof target, "grpc://%s",
                   mu_cluster_address(nodes.cluster, "worker", 0));
    assert_string_equal(mu_server_target(server), target);
    assert_string_equal(mu_server_task(server), "/job:worker/task:0");
    assert_string_equal(mu_node_get_setting(mu_server_node(server), "intra_op_threads"),
                        "2");
    assert_string_equal(mu_node_get_setting(mu_server_node(server), "device_filters"),
                        "/job:ps,/job:worker/task:0");
    assert_int_equal(mu_server_config(server)->inter_op_threads, 3);
    assert_int_equal(mu_cluster_task_count(mu_server_cluster(server), NULL), 3);

    assert_true(mu_server_matches(server, &options));
    other = options;
    other.rpc_layer = "http";
    assert_false(mu_server_matches(server, &other));
    config.device_filters_count = 1;
    assert_false(mu_server_matches(server, &options));
    config.device_filters_count = 2;
    other = options;
    other.node = &changed;
    changed = node;
    changed.task_type = "ps";
    assert_false(mu_server_matches(server, &other));
    changed = node;
    changed.cluster = smaller;
    assert_int_equal(mu_cluster_add(smaller, "worker", 0, "127.0.0.1:1", NULL), 0);
    assert_false(mu_server_matches(server, &other));
    mu_server_free(server);

    options.rpc_layer = "";
    server = start_with(&options);
    assert_string_equal(mu_server_target(server),
                        mu_cluster_address(nodes.cluster, "worker", 0));
    mu_server_free(server);
    mu_cluster_free(smaller);
    nodes_done(&nodes);
}

/* ---- TF_CONFIG ---- */

TEST(test_environment)
{
    static const struct {
        const char *text; /* %s: the cluster */
        int code;
        const char *words;
    } rows[] = {
        {NULL, -MU_EINVALID, "TF_CONFIG is not set"},
        {"", -MU_EINVALID, "TF_CONFIG is not set"},
        {"{\"task\":{\"type\":\"ps\",\"index\":0}}", -MU_EINVALID,
         "TF_CONFIG: cluster is missing"},
        {"{\"cluster\":%s}", -MU_EINVALID, "TF_CONFIG: task is missing"},
        {"{\"cluster\":%s,\"task\":{\"index\":0}}", -MU_EINVALID,
         "TF_CONFIG: task.type is missing"},
        {"{\"cluster\":%s,\"task\":{\"type\":\"ps\",\"index\":4}}", -MU_ERANGE, "index"},
        {"{\"cluster\":%s,\"task\":", -MU_EINVALID, "TF_CONFIG"},
        {"{\"cluster\":%s,\"task\":{\"type\":\"ps\",\"index\":0},"
         "\"environment\":\"moon\"}",
         -MU_EINVALID, "\"moon\""},
    };
    struct nodes nodes;
    char text[2048];
    mu_node_options node;
    mu_server_options options;
    mu_server *server = NULL;
    mu_error error;

    nodes_init(&nodes, 1, 1);
    server_options(&nodes, "worker", 0, &node, &options);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rv;

        (void)unsetenv("TF_CONFIG");
        if (rows[i].text != NULL) {
            const char *at = strstr(rows[i].text, "%s");
            int head = at == NULL ? (int)strlen(rows[i].text) : (int)(at - rows[i].text);

            (void)snprintf(text, sizeof text, "%.*s%s%s", head, rows[i].text,
                           at == NULL ? "" : nodes.json, at == NULL ? "" : at + 2);
            (void)setenv("TF_CONFIG", text, 1);
        }
        rv = mu_server_start_from_environment(&options, &error, &server);
        if (rv != rows[i].code || !is_in(error.message, rows[i].words))
            fail_msg("row %zu: %d %s", i, rv, error.message);
    }
    (void)snprintf(text, sizeof text,
                   "{\"cluster\":%s,\"task\":{\"type\":\"ps\","
                   "\"index\":\"0\"},\"rpc_layer\":\"http\"}",
                   nodes.json);
    (void)setenv("TF_CONFIG", text, 1);
    assert_int_equal(mu_server_start_from_environment(&options, &error, &server), 0);
    assert_string_equal(mu_server_task(server), "/job:ps/task:0");
    assert_true(is_in(mu_server_target(server), "http://127.0.0.1:"));
    mu_server_free(server);
    (void)unsetenv("TF_CONFIG");
    nodes_done(&nodes);
}

static mu_resolver *found_by(const struct nodes *nodes, const char *type, int index,
                             const char *layer)
{
    mu_resolver *resolver = NULL;
    mu_error error;

    if (mu_resolver_new_static(nodes->cluster, NULL, type, index, &error, &resolver) !=
            0 ||
        mu_resolver_set_rpc_layer(resolver, layer, &error) != 0)
        fail_msg("%s", error.message);
    return resolver;
}

static void check_server(mu_server *server, const char *task, const char *target)
{
    assert_string_equal(mu_server_task(server), task);
    if (!is_in(mu_server_target(server), target))
        fail_msg("%s", mu_server_target(server));
    assert_int_equal(mu_cluster_task_count(mu_server_cluster(server), NULL), 2);
    mu_server_free(server);
}

/* A resolver says cluster, task and layer; the task of the options wins. TF_CONFIG comes
 * first, where it has a cluster. */
TEST(test_resolver)
{
    struct nodes nodes;
    mu_node_options node;
    mu_server_options options;
    mu_resolver *resolver;
    mu_server *server = NULL;
    mu_error error = {0};
    char text[1200];

    nodes_init(&nodes, 1, 0);
    resolver = found_by(&nodes, "worker", 0, "found");
    server_options(&nodes, "worker", 0, &node, &options);
    node.cluster = NULL;
    node.task_type = NULL;
    node.task_index = -1;
    node.resolver = resolver;
    check_server(start_with(&options), "/job:worker/task:0", "found://127.0.0.1:");
    node.task_type = "chief";
    node.task_index = 0;
    check_server(start_with(&options), "/job:chief/task:0", "found://127.0.0.1:");

    (void)unsetenv("TF_CONFIG");
    assert_int_equal(mu_server_start_from_environment(&options, &error, &server), 0);
    check_server(server, "/job:chief/task:0", "found://");
    (void)setenv("TF_CONFIG", "{\"rpc_layer\":\"http\"}", 1);
    assert_int_equal(mu_server_start_from_environment(&options, &error, &server), 0);
    check_server(server, "/job:chief/task:0", "found://");
    (void)snprintf(text, sizeof text, "{\"cluster\":%s,\"task\":{\"type\":\"worker\"}}",
                   nodes.json);
    (void)setenv("TF_CONFIG", text, 1);
    assert_int_equal(mu_server_start_from_environment(&options, &error, &server), 0);
    check_server(server, "/job:worker/task:0", "grpc://");
    (void)unsetenv("TF_CONFIG");
    mu_resolver_free(resolver);

    resolver = found_by(&nodes, NULL, -1, "found");
    node.resolver = resolver;
    node.task_type = NULL;
    node.task_index = -1;
    assert_int_equal(mu_server_start(&options, &error, &server), -MU_EINVALID);
    assert_true(is_in(error.message, "does not say which task this process is"));
    mu_resolver_free(resolver);
    nodes_done(&nodes);
}

/* Somebody else's servers: no node, and a join that only a stop ends. */
TEST(test_google)
{
    struct nodes nodes;
    mu_node_options node;
    mu_server_options options;
    struct joiner joiner;
    mu_server *server;
    mu_error error;

    nodes_init(&nodes, 1, 1);
    server_options(&nodes, "ps", 0, &node, &options);
    options.environment = "google";
    server = start_with(&options);
    assert_null(mu_server_node(server));
    assert_string_equal(mu_server_target(server), "");
    assert_int_equal(mu_server_join(server, 20, &error), -MU_EDEADLINE);
    assert_string_equal(error.message, "/job:ps/task:0 was not stopped after 20 ms");
    begin_join(&joiner, server);
    assert_int_equal(mu_server_stop(server, 0, &error), 0);
    end_join(&joiner);
    mu_server_free(server);
    nodes_done(&nodes);
}

/* ---- The end ---- */

TEST(test_job_done)
{
    struct nodes nodes;
    mu_server *servers[2];
    struct joiner joiners[3];
    mu_error error;
    mu_node *chief;

    nodes_init(&nodes, 1, 1);
    servers[0] = start(&nodes, "worker", 0);
    servers[1] = start(&nodes, "ps", 0);
    assert_int_equal(mu_server_join(servers[1], 20, &error), -MU_EDEADLINE);
    assert_true(is_in(error.message, "the job is not done after 20 ms: "
                                     "/job:chief/task:0 at tcp://127.0.0.1:"));
    assert_true(is_in(error.message, " is not connected"));
    chief = nodes_open(&nodes, "chief", 0);
    nodes_wait_log(&nodes, "/job:chief/task:0 links: /job:ps/task:0 is up");
    begin_join(&joiners[0], servers[0]);
    begin_join(&joiners[1], servers[1]);
    begin_join(&joiners[2], servers[1]);
    nodes_wait_log(&nodes, "/job:worker/task:0 takes closures");
    assert_int_equal(mu_node_finish_job(chief, -MU_EDATALOSS, "the data is bad", 0,
                                        &error),
                     -MU_EDEADLINE);
    for (size_t i = 0; i < 3; i++) {
        end_join(&joiners[i]);
        assert_int_equal(joiners[i].error.code, -MU_EDATALOSS);
        assert_string_equal(joiners[i].error.message, "the data is bad");
    }
    mu_server_free(servers[0]);
    mu_server_free(servers[1]);
    nodes_done(&nodes);
}

static void *stop_it(void *arg)
{
    return mu_server_stop(arg, SOON_MS, NULL) == 0 ? arg : NULL;
}

/* Threads that stop and threads that join, all at a time. */
TEST(test_stop)
{
    struct nodes nodes;
    struct joiner joiners[3];
    pthread_t stoppers[3];
    mu_server *server;
    mu_error error = {0};
    void *stopped;

    nodes_init(&nodes, 1, 1);
    for (int round = 0; round < 10; round++) {
        server = start(&nodes, round % 2 == 0 ? "ps" : "worker", 0);
        for (size_t i = 0; i < 3; i++)
            begin_join(&joiners[i], server);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&stoppers[i], NULL, stop_it, server), 0);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(pthread_join(stoppers[i], &stopped), 0);
            assert_ptr_equal(stopped, server);
            end_join(&joiners[i]);
        }
        assert_int_equal(mu_server_stop(server, SOON_MS, &error), 0);
        assert_int_equal(mu_server_join(server, SOON_MS, &error), 0);
        mu_server_free(server);
    }
    mu_server_free(NULL);
    nodes_done(&nodes);
}

static int slow(mu_run *run, void *user)
{
    (void)user;
    for (int i = 0; i < 300 && !mu_run_cancelled(run); i++)
        nodes_pause();
    mu_run_return(run, mu_value_int(7));
    return 0;
}

/* A worker finishes what it has before it is gone, whoever stops it. */
TEST(test_stop_drains)
{
    for (int remote = 0; remote < 2; remote++) {
        struct nodes nodes;
        mu_coordinator *coordinator;
        mu_remote_value *value = NULL;
        mu_server *server;
        struct joiner joiner;
        mu_value *result = NULL;
        mu_error error = {0};
        int64_t number = 0;
        mu_node *chief;
        mu_node *client;

        nodes_init(&nodes, 1, 0);
        server = start(&nodes, "worker", 0);
        assert_int_equal(
            mu_node_register_function(mu_server_node(server), "slow", slow, NULL, 0), 0);
        chief = nodes_open(&nodes, "chief", 0);
        client = nodes_open(&nodes, "client", 0);
        coordinator = nodes_coordinator(chief);
        begin_join(&joiner, server);
        assert_int_equal(mu_coordinator_schedule(coordinator, "slow", NULL, SOON_MS,
                                                 &error, &value),
                         0);
        nodes_wait_log(&nodes, "takes closures");
        for (int i = 0; i < 50; i++)
            nodes_pause();
        if (remote) {
            assert_int_equal(mu_server_stop_remote(client, "/job:worker/task:0", "enough",
                                                   SOON_MS, &error),
                             0);
            nodes_wait_log(&nodes, "job: stopped by /job:chief/task:0: requested by "
                                   "/job:client/task:0: enough");
        } else {
            assert_int_equal(mu_server_stop(server, SOON_MS, &error), 0);
        }
        end_join(&joiner);
        assert_int_equal(mu_remote_value_fetch(value, SOON_MS, &error, &result), 0);
        assert_int_equal(mu_value_get_int(result, &number), 0);
        assert_int_equal(number, 7);
        mu_value_free(result);
        mu_remote_value_free(value);
        mu_coordinator_close(coordinator);
        mu_server_free(server);
        nodes_done(&nodes);
    }
}

TEST(test_stop_remote_errors)
{
    static const struct {
        const char *task;
        int code;
        const char *words;
    } rows[] = {
        {NULL, -MU_EINVALID, "argument task is NULL"},
        {"", -MU_EINVALID, "expected one task"},
        {"worker", -MU_EINVALID, "expected a task"},
        {"ps:0-1", -MU_EINVALID, "expected one task"},
        {"chief:0", -MU_EPRECONDITION, "it ends the job"},
        {"ps:1", -MU_EDEADLINE, "/job:ps/task:1 was not stopped within 200 ms"},
    };
    struct nodes nodes;
    mu_node *client;
    mu_error error;

    nodes_init(&nodes, 1, 2);
    (void)nodes_open(&nodes, "chief", 0);
    client = nodes_open(&nodes, "client", 0);
    nodes_wait_log(&nodes, "/job:chief/task:0 is up");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rv = mu_server_stop_remote(client, rows[i].task, NULL, 200, &error);

        if (rv != rows[i].code || !is_in(error.message, rows[i].words))
            fail_msg("row %zu: %d %s", i, rv, error.message);
    }
    nodes_done(&nodes);
}

TEST_PROGRAM()
