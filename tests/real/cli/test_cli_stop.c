/* `muster stop`, and `muster node --wait-cluster`: how serving tasks end, and how they
 * learn what they are. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include <muster/compat/server.h>

static struct cli tasks[3];
static struct cli asker;

static void start_task(struct cli *cli, const struct nodes *nodes, const char *task)
{
    cli_start(cli, NULL, "node", "--cluster", nodes->json, "--task", task, NULL);
}

static void wait_up(struct cli *cli)
{
    (void)cli_expect(cli, NULL, " is up at ");
}

static void kill_task(struct cli *cli)
{
    cli_kill(cli, SIGKILL);
    (void)cli_wait(cli);
}

/* ---- Stopping ---- */

TEST(test_stop)
{
    struct nodes nodes;
    cJSON *root;

    nodes_init(&nodes, 1, 1);
    start_task(&tasks[0], &nodes, "chief:0");
    start_task(&tasks[1], &nodes, "ps:0");
    start_task(&tasks[2], &nodes, "worker:0");
    for (size_t i = 0; i < 3; i++)
        wait_up(&tasks[i]);

    cli_start(&asker, NULL, "stop", "ps:0", "moved to rack 7", "--cluster", nodes.json,
              NULL);
    cli_expect_code(&asker, 0);
    assert_string_equal(asker.text, "/job:ps/task:0 has stopped\n");
    cli_expect_code(&tasks[1], 0);
    (void)cli_expect(&tasks[1], NULL,
                     "job: stopped by /job:chief/task:0: requested by /job:client/task:");
    (void)cli_expect(&tasks[1], NULL, ": moved to rack 7");

    cli_start(&asker, NULL, "stop", "/job:worker/task:0", "--cluster", nodes.json, "-o",
              "json", NULL);
    cli_expect_code(&asker, 0);
    root = cJSON_Parse(asker.text);
    assert_non_null(root);
    assert_string_equal(cJSON_GetObjectItem(root, "task")->valuestring,
                        "/job:worker/task:0");
    assert_string_equal(cJSON_GetObjectItem(root, "reason")->valuestring, "");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "stopped")));
    cJSON_Delete(root);
    cli_expect_code(&tasks[2], 0);

    cli_start(&asker, NULL, "stop", "chief:0", "--cluster", nodes.json, NULL);
    cli_expect_code(&asker, 1);
    (void)cli_expect(&asker, NULL,
                     "muster stop: the chief is not stopped: it ends the job");
    cli_start(&asker, NULL, "stop", "ps:0", "--timeout-ms", "3000", "--cluster",
              nodes.json, NULL);
    cli_expect_code(&asker, 4);
    (void)cli_expect(&asker, NULL,
                     "/job:ps/task:0 was not stopped within 3000 ms: it is "
                     "not connected to the chief");
    kill_task(&tasks[0]);
    cli_start(&asker, NULL, "stop", "ps:0", "--timeout-ms", "300", "--cluster",
              nodes.json, NULL);
    cli_expect_code(&asker, 4);
    nodes_done(&nodes);
}

/* Who stops on request has left, whatever is recoverable: nobody is in error for it,
 * waits for it, or asks it which step it has reached. */
TEST(test_who_stops_has_left)
{
    static const char *const variables[2][2] = {{"MUSTER_RECOVERABLE=none", NULL},
                                                {"MUSTER_RECOVERABLE=all", NULL}};

    for (size_t i = 0; i < 2; i++) {
        struct nodes nodes;

        nodes_init(&nodes, 2, 0);
        cli_start(&tasks[0], variables[i], "node", "--cluster", nodes.json, "--task",
                  "chief:0", NULL);
        start_task(&tasks[1], &nodes, "worker:0");
        start_task(&tasks[2], &nodes, "worker:1");
        cli_start(&asker, NULL, "tasks", "--wait", "--cluster", nodes.json, NULL);
        cli_expect_code(&asker, 0);
        cli_start(&asker, NULL, i == 0 ? "stop" : "drain", "worker:0", "--cluster",
                  nodes.json, NULL);
        cli_expect_code(&asker, 0);
        cli_expect_code(&tasks[1], 0);
        cli_start(&asker, NULL, "preempt", "moved", "--cluster", nodes.json, NULL);
        cli_expect_code(&asker, 0);
        cli_start(&asker, NULL, "tasks", "--cluster", nodes.json, NULL);
        cli_expect_code(&asker, 1);
        (void)cli_expect(&asker, NULL, "disconnected");
        assert_null(strstr(asker.text, "error"));
        /* For longer than the first note of who is missing takes. */
        cli_start(&asker, NULL, "tasks", "--wait", "--timeout-ms", "4000", "--cluster",
                  nodes.json, NULL);
        cli_expect_code(&asker, 4);
        cli_read(&tasks[0]);
        assert_null(strstr(tasks[0].text, "waiting for /job:worker/task:0"));
        assert_null(strstr(tasks[0].text, "is in error"));
        kill_task(&tasks[2]);
        kill_task(&tasks[0]);
        nodes_done(&nodes);
    }
}

/* Without a limit, too: a task that is not there is named, and not waited for. */
TEST(test_nobody_to_stop)
{
    struct nodes nodes;

    nodes_init(&nodes, 2, 0);
    start_task(&tasks[0], &nodes, "chief:0");
    wait_up(&tasks[0]);
    cli_start(&asker, NULL, "stop", "worker:9", "--cluster", nodes.json, NULL);
    cli_expect_code(&asker, 1);
    (void)cli_expect(&asker, NULL,
                     "the cluster has no /job:worker/task:9, and none has joined it");
    cli_start(&asker, NULL, "stop", "worker:1", "--cluster", nodes.json, NULL);
    cli_expect_code(&asker, 4);
    (void)cli_expect(&asker, NULL,
                     "/job:worker/task:1 was not stopped within 5000 ms: "
                     "it is not connected to the chief");
    kill_task(&tasks[0]);
    nodes_done(&nodes);
}

TEST(test_usage)
{
    static const char *const wrong[] = {"ps",
                                        "ps:",
                                        "ps:x",
                                        "px:0",
                                        "/job:ps/task:",
                                        "/job:ps",
                                        "a-type-that-is-too-long:0",
                                        ""};
    struct nodes nodes;

    nodes_init(&nodes, 1, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cli_start(&asker, NULL, "stop", wrong[i], "--cluster", nodes.json, NULL);
        cli_expect_code(&asker, 2);
        (void)cli_expect(&asker, NULL, ": expected a task, as ps:0 or /job:ps/task:0");
    }
    cli_start(&asker, NULL, "stop", "ps:0", NULL);
    cli_expect_code(&asker, 2);
    cli_start(&asker, NULL, "stop", NULL);
    cli_expect_code(&asker, 2);
    nodes_done(&nodes);
}

/* In a cluster without a chief the task itself is asked. */
TEST(test_without_chief)
{
    struct nodes nodes;
    char *json;
    mu_cluster *cluster = mu_cluster_new();

    nodes_init(&nodes, 2, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mu_cluster_add(cluster, "worker", i,
                                        mu_cluster_address(nodes.cluster, "worker", i),
                                        NULL),
                         0);
    json = mu_cluster_to_json(cluster);
    cli_start(&tasks[0], NULL, "node", "--cluster", json, "--task", "worker:1", NULL);
    wait_up(&tasks[0]);
    cli_start(&asker, NULL, "stop", "worker:1", "--cluster", json, NULL);
    cli_expect_code(&asker, 0);
    cli_expect_code(&tasks[0], 0);
    cli_start(&asker, NULL, "stop", "ps:0", "--cluster", json, NULL);
    cli_expect_code(&asker, 2);
    (void)cli_expect(&asker, NULL, "the cluster has no /job:ps/task:0");
    free(json);
    mu_cluster_free(cluster);
    nodes_done(&nodes);
}

/* ---- Waiting for a cluster ---- */

static void start_waiting(struct cli *cli, const struct nodes *nodes, const char *type,
                          int index)
{
    char url[300];

    (void)snprintf(url, sizeof url, "tcp://%s",
                   mu_cluster_address(nodes->cluster, type, index));
    cli_start(cli, NULL, "node", "--wait-cluster", "--bind", url, NULL);
    (void)cli_expect(cli, NULL, "/job:server/task:0 node: waits at ");
}

TEST(test_wait_cluster)
{
    struct nodes nodes;
    mu_node_options node;
    mu_session_config config;
    mu_server_options offer;
    mu_error error = {0};

    nodes_init(&nodes, 1, 1);
    start_task(&tasks[0], &nodes, "chief:0");
    start_waiting(&tasks[1], &nodes, "ps", 0);
    start_waiting(&tasks[2], &nodes, "worker", 0);
    for (int i = 0; i < 2; i++) {
        mu_node_options_init(&node);
        node.cluster = nodes.cluster;
        node.task_type = i == 0 ? "ps" : "worker";
        node.insecure = getenv("MUSTER_INSECURE") != NULL;
        mu_session_config_init(&config);
        config.inter_op_threads = 3;
        mu_server_options_init(&offer);
        offer.node = &node;
        offer.config = &config;
        if (mu_server_assign_cluster(&offer, SOON_MS, &error) != 0)
            fail_msg("%s", error.message);
    }
    (void)cli_expect(&tasks[1], NULL, "/job:ps/task:0 node: is up at ");
    (void)cli_expect(&tasks[2], NULL, "/job:worker/task:0 node: is up at ");
    (void)cli_expect(&tasks[0], NULL, "/job:worker/task:0 takes closures (3 threads");
    cli_start(&asker, NULL, "stop", "worker:0", "--cluster", nodes.json, NULL);
    cli_expect_code(&asker, 0);
    cli_expect_code(&tasks[2], 0);
    cli_kill(&tasks[1], SIGTERM);
    cli_expect_code(&tasks[1], 0);
    kill_task(&tasks[0]);
    nodes_done(&nodes);
}

/* Each task that waits is told by the command line; one that is told already, and one
 * that never waited, has it already; one that is not there is named. */
TEST(test_offer)
{
    struct nodes nodes;

    nodes_init(&nodes, 1, 1);
    start_task(&tasks[0], &nodes, "chief:0");
    wait_up(&tasks[0]);
    start_waiting(&tasks[1], &nodes, "ps", 0);
    cli_start(&asker, NULL, "assign", "--cluster", nodes.json, "--tasks", "ps:0,worker:0",
              "--timeout-ms", "1500", NULL);
    cli_expect_code(&asker, 4);
    (void)cli_expect(&asker, NULL, "/job:ps/task:0 at tcp://127.0.0.1:");
    (void)cli_expect(&asker, NULL, "muster assign: /job:worker/task:0: ");
    (void)cli_expect(&asker, NULL, "did not get its cluster spec within ");
    (void)cli_expect(&tasks[1], NULL, "/job:ps/task:0 node: is up at ");

    start_waiting(&tasks[2], &nodes, "worker", 0);
    cli_start(&asker, NULL, "assign", "--cluster", nodes.json, NULL);
    cli_expect_code(&asker, 0);
    (void)cli_expect(&asker, NULL, "/job:chief/task:0 at tcp://127.0.0.1:");
    (void)cli_expect(&tasks[2], NULL, "/job:worker/task:0 node: is up at ");
    (void)cli_expect(&tasks[0], NULL, "/job:worker/task:0 takes closures");
    for (int i = 0; i < 3; i++)
        kill_task(&tasks[i]);
    nodes_done(&nodes);
}

TEST(test_offer_usage)
{
    struct nodes nodes;
    cJSON *root;

    nodes_init(&nodes, 1, 0);
    cli_start(&asker, NULL, "assign", "--cluster", nodes.json, "--tasks", "worker:7",
              NULL);
    cli_expect_code(&asker, 2);
    assert_string_equal(asker.text, "muster assign: --tasks: the cluster has no "
                                    "/job:worker/task:7\n");
    cli_start(&asker, NULL, "assign", "--cluster", nodes.json, "--tasks",
              "worker:", NULL);
    cli_expect_code(&asker, 2);
    start_waiting(&tasks[0], &nodes, "worker", 0);
    cli_start(&asker, NULL, "assign", "--cluster", nodes.json, "--tasks", "worker:0",
              "-o", "json", NULL);
    cli_expect_code(&asker, 0);
    root = cJSON_Parse(asker.text);
    assert_string_equal(
        cJSON_GetObjectItem(cJSON_GetArrayItem(root, 0), "task")->valuestring,
        "/job:worker/task:0");
    assert_true(
        cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetArrayItem(root, 0), "assigned")));
    cJSON_Delete(root);
    kill_task(&tasks[0]);
    nodes_done(&nodes);
}

/* Signals end the waiting, and flags that would be overruled are refused. */
TEST(test_wait_cluster_ends)
{
    struct nodes nodes;

    nodes_init(&nodes, 1, 1);
    start_waiting(&tasks[0], &nodes, "ps", 0);
    cli_kill(&tasks[0], SIGTERM);
    cli_expect_code(&tasks[0], 143);
    start_waiting(&tasks[0], &nodes, "ps", 0);
    cli_kill(&tasks[0], SIGINT);
    cli_expect_code(&tasks[0], 130);
    cli_start(&tasks[0], NULL, "node", "--wait-cluster", NULL);
    cli_expect_code(&tasks[0], 2);
    (void)cli_expect(&tasks[0], NULL, "--wait-cluster: expected --bind beside it");
    cli_start(&tasks[0], NULL, "node", "--wait-cluster", "--bind", "tcp://127.0.0.1:0",
              "--task", "ps:0", NULL);
    cli_expect_code(&tasks[0], 2);
    (void)cli_expect(&tasks[0], NULL, "--wait-cluster: expected no --task beside it");
    cli_start(&tasks[0], NULL, "node", "--wait-cluster", "--bind", "nowhere", NULL);
    cli_expect_code(&tasks[0], 2);
    nodes_done(&nodes);
}

TEST_PROGRAM()
