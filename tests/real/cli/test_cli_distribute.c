/* One plugin in every mode of `muster run` and `muster node`, in real processes. */
#include "tests/real/cli.h"

static struct cli run;

static char plugin[256];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(plugin, sizeof plugin, "%s/distribute.so",
                   cli_variable("MUSTER_EXAMPLES"));
    return 0;
}

static void expect_sum(const char *needle)
{
    if (strstr(run.text, needle) == NULL) {
        cli_show(&run);
        fail_msg("\"%s\" was not printed", needle);
    }
}

static void start(const char *mode, const char *chief, const char *strategy,
                  const char *more)
{
    cli_start(&run, NULL, "run", "--mode", mode, "--chief", chief, "--workers", "2",
              "--ps", "1", "--plugin", plugin, "--set", strategy, "--set", more, NULL);
}

/* ---- modes ---- */

static const struct {
    const char *mode;
    const char *chief;
    const char *strategy;
    const char *sums[3]; /* that are printed, and by whom */
} modes[] = {
    {"independent",
     "1",
     "strategy=parameter_server",
     {"chief/0  | /job:chief/task:0: 500500",
      "worker/0 | /job:worker/task:0: ", "worker/1 | /job:worker/task:1: "}},
    {"independent", "1", "strategy=default", {"chief/0  | one call for all: 500500"}},
    {"independent",
     "0",
     "strategy=parameter_server",
     {"worker/0 | /job:worker/task:0: 500500", "worker/1 | /job:worker/task:1: "}},
    {"client-worker",
     "1",
     "strategy=parameter_server",
     {"chief/0  | /job:chief/task:0: 500500",
      "chief/0  | /job:worker/task:0: ", "chief/0  | /job:worker/task:1: "}},
    {"client-worker", "0", "strategy=default", {"worker/0 | one call for all: 500500"}},
    {"standalone",
     "1",
     "strategy=parameter_server",
     {"client/0 | /job:chief/task:0: 500500",
      "client/0 | /job:worker/task:0: ", "client/0 | /job:worker/task:1: "}},
    {"standalone", "0", "strategy=default", {"client/0 | one call for all: 500500"}},
    {"local", "1", "strategy=parameter_server", {"chief/0 | one call for all: 500500"}},
};

TEST(test_modes)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        start(modes[i].mode, modes[i].chief, modes[i].strategy, "numbers=1000");
        cli_expect_code(&run, 0);
        for (size_t j = 0; j < 3 && modes[i].sums[j] != NULL; j++)
            expect_sum(modes[i].sums[j]);
        /* Servers of a client that is done have ended well. */
        assert_null(strstr(run.text, "exit code 143"));
    }
}

TEST(test_evaluator)
{
    cli_start(&run, NULL, "run", "--workers", "1", "--ps", "1", "--evaluator", "1",
              "--plugin", plugin, NULL);
    cli_expect_code(&run, 0);
    expect_sum("/job:chief/task:0: 500500");
    expect_sum("distribute: /job:evaluator/task:0 ended with 0");
    expect_sum("evaluator/0 ended with exit code 0");
}

/* Without a cluster there is nothing to be said but the plugin. */
TEST(test_local_node)
{
    cli_start(&run, NULL, "node", "--mode", "local", "--plugin", plugin, "--set",
              "numbers=4", NULL);
    cli_expect_code(&run, 0);
    expect_sum("one call for all: 10");
}

/* Tasks that find each other in a folder: nobody has said an address. */
TEST(test_resolver)
{
    static const char *const types[] = {"worker", "ps", "chief"};
    struct cli nodes[3];
    char folder[64];
    char variable[96];
    const char *variables[] = {variable, "MUSTER_TASKS=chief=1,worker=1,ps=1", NULL};

    cli_folder(folder, sizeof folder);
    (void)snprintf(variable, sizeof variable, "MUSTER_CLUSTER_DIRECTORY=%s", folder);
    for (int i = 0; i < 3; i++)
        cli_start(&nodes[i], variables, "node", "--mode", "independent", "--resolver",
                  "directory", "--type", types[i], "--bind", "tcp://127.0.0.1:0",
                  "--plugin", plugin, "--set", "strategy=parameter_server", "--set",
                  "numbers=1000", NULL);
    for (int i = 0; i < 3; i++)
        cli_expect_code(&nodes[i], 0);
    if (strstr(nodes[2].text, "/job:chief/task:0: 500500") == NULL ||
        strstr(nodes[0].text, "/job:worker/task:0: ") == NULL) {
        cli_show(&nodes[2]);
        cli_show(&nodes[0]);
        fail_msg("there is no sum");
    }
    assert_int_equal(rmdir(folder), 0);
}

TEST(test_unknown_mode)
{
    cli_start(&run, NULL, "node", "--mode", "moon", "--plugin", plugin, NULL);
    cli_expect_code(&run, 2);
    expect_sum("--mode: expected one of independent|standalone|local|client-worker, got "
               "\"moon\"");
}

TEST(test_bad_tf_config)
{
    static const char *const variables[] = {
        "TF_CONFIG={\"cluster\":{\"chief\":[\"127.0.0.1:0\"]},\"task\":{\"type\":"
        "\"worker\",\"index\":0}}",
        NULL,
    };

    cli_start(&run, variables, "node", "--plugin", plugin, NULL);
    cli_expect_code(&run, 2);
    expect_sum("TF_CONFIG: task.type: ");
}

/* ---- failures ---- */

TEST(test_worker_fails)
{
    start("independent", "1", "fails=/job:worker/task:1", "timeout_ms=30000");
    cli_expect_code(&run, 1);
    expect_sum("chief/0 ended with exit code 1");
    expect_sum("worker/0 ended with exit code 1");
    expect_sum("ps/0 ended with exit code 1");
    expect_sum("/job:chief/task:0 node: /job:worker/task:1 was told to fail in step 5");
    expect_sum("/job:worker/task:0 node: /job:worker/task:1 was told to fail in step 5");
}

/* Killed in the middle, and not started again: the others do not wait for it, however
 * long they said. */
TEST(test_worker_is_killed)
{
    pid_t pid;

    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "1", "--plugin", plugin,
              "--set", "steps=1000", "--set", "pause_ms=20", "--set", "timeout_ms=600000",
              NULL);
    pid = cli_task_pid(&run, NULL, "worker/1");
    (void)cli_expect(&run, NULL, "/job:worker/task:1 begins");
    (void)cli_expect(&run, NULL, "/job:chief/task:0 begins");
    assert_int_equal(kill(pid, SIGKILL), 0);
    cli_expect_code(&run, 1);
    expect_sum("worker/1 was killed by signal 9");
    expect_sum("needs /job:worker/task:1, which is in error: /job:worker/task:1 was "
               "killed by signal 9 (Killed), and is not started again");
}

/* With fate sharing they do not wait at all. */
TEST(test_worker_is_killed_and_missed)
{
    pid_t pid;

    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "1", "--plugin", plugin,
              "--set", "steps=1000", "--set", "pause_ms=20", "--recoverable", "ps", NULL);
    pid = cli_task_pid(&run, NULL, "worker/1");
    (void)cli_expect(&run, NULL, "/job:worker/task:1 begins");
    (void)cli_expect(&run, NULL, "/job:chief/task:0 begins");
    assert_int_equal(kill(pid, SIGKILL), 0);
    cli_expect_code(&run, 1);
    expect_sum("/job:worker/task:1 is lost");
}

/* A client that is stopped: its threads do not wait for each other any more. */
TEST(test_stopped)
{
    static const char *const stopped[] = {"client-worker", "independent", "standalone"};

    for (size_t i = 0; i < sizeof stopped / sizeof stopped[0]; i++) {
        cli_start(&run, NULL, "run", "--mode", stopped[i], "--workers", "2", "--ps", "1",
                  "--plugin", plugin, "--set", "steps=10000", "--set", "pause_ms=20",
                  NULL);
        (void)cli_expect(&run, NULL, "/job:worker/task:1 begins");
        (void)cli_expect(&run, NULL, "/job:chief/task:0 begins");
        cli_stop(&run);
        if (strstr(run.text, "did not end") != NULL) {
            cli_show(&run);
            fail_msg("%s: somebody did not end", stopped[i]);
        }
    }
}

TEST_PROGRAM_WITH(setup, NULL)
