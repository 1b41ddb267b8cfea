/* Two processes that both say that they are one task: the second one is refused while the
 * first is there, and takes its place when that stands still. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

static struct cli chief;
static struct cli first;
static struct cli second;

static const char *const quick[] = {"MUSTER_HEARTBEAT_MS=100", "MUSTER_SILENCE_MS=1000",
                                    NULL};

static void expect_pid(struct cli *cli, const char *from, pid_t pid)
{
    char text[32];

    (void)snprintf(text, sizeof text, "pid %d,", (int)pid);
    (void)cli_expect(cli, from, text);
}

TEST(test_second_process)
{
    struct nodes nodes;
    const char *at;

    nodes_init(&nodes, 1, 0);
    cli_start(&chief, quick, "node", "--cluster", nodes.json, "--task", "chief:0", NULL);
    cli_start(&first, quick, "node", "--cluster", nodes.json, "--task", "worker:0", NULL);
    (void)cli_expect(&chief, NULL, "/job:worker/task:0 is up at ");
    cli_start(&second, quick, "node", "--cluster", nodes.json, "--task", "worker:0",
              "--bind", "tcp://127.0.0.1:0", NULL);
    at = cli_expect(&chief, NULL, "refused /job:worker/task:0 at ");
    expect_pid(&chief, at, second.pid);
    at = cli_expect(&chief, at, "task /job:worker/task:0 is already played by ");
    expect_pid(&chief, at, first.pid);

    cli_expect_code(&second, 3);
    at =
        cli_expect(&second, NULL, "another process is /job:worker/task:0: this one ends");
    expect_pid(&second, at, first.pid);
    cli_read(&chief);
    assert_null(strstr(chief.text, "is lost"));
    cli_read(&first);
    assert_null(strstr(first.text, "is lost"));

    /* The first one stands still, and holds its port. */
    assert_int_equal(kill(first.pid, SIGSTOP), 0);
    cli_start(&second, quick, "node", "--cluster", nodes.json, "--task", "worker:0",
              "--bind", "tcp://127.0.0.1:0", NULL);
    at = cli_expect(&chief, NULL, "/job:worker/task:0 is lost: silent for ");
    (void)cli_expect(&chief, at, "/job:worker/task:0 is up at ");
    assert_int_equal(kill(first.pid, SIGCONT), 0);
    cli_expect_code(&first, 3);
    at = cli_expect(&first, NULL, "another process is /job:worker/task:0: this one ends");
    expect_pid(&first, at, second.pid);
    cli_kill(&second, SIGTERM);
    (void)cli_wait(&second);
    cli_kill(&chief, SIGTERM);
    (void)cli_wait(&chief);
    nodes_done(&nodes);
}

/* A task that is started again at once is let in at once. */
TEST(test_restart_is_no_second_process)
{
    struct nodes nodes;
    const char *at;

    nodes_init(&nodes, 1, 0);
    cli_start(&chief, NULL, "node", "--cluster", nodes.json, "--task", "chief:0", NULL);
    cli_start(&first, NULL, "node", "--cluster", nodes.json, "--task", "worker:0", NULL);
    (void)cli_expect(&chief, NULL, "/job:worker/task:0 is up at ");
    cli_kill(&first, SIGKILL);
    (void)cli_wait(&first);
    cli_start(&first, NULL, "node", "--cluster", nodes.json, "--task", "worker:0", NULL);
    at = cli_expect(&chief, NULL, "/job:worker/task:0 is lost: ");
    (void)cli_expect(&chief, at, "/job:worker/task:0 is up at ");
    assert_null(strstr(chief.text, "already played"));
    cli_kill(&first, SIGTERM);
    (void)cli_wait(&first);
    cli_kill(&chief, SIGTERM);
    (void)cli_wait(&chief);
    nodes_done(&nodes);
}

TEST_PROGRAM()
