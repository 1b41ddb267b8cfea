/* Many processes at one barrier, some of which die before it; and a preemption in a whole
 * cluster: all workers stop at the same step. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include <inttypes.h>

enum { CROWD = 32, KILLED = 4, MISSING = 2 };

#define LIMIT "4000"

/* ---- A barrier of many ---- */

struct crowd {
    struct nodes nodes;
    mu_node *chief;
    char address[64];
    char set[32];
    struct cli each[CROWD];
};

static struct crowd crowd;

static int set_up_crowd(void **state)
{
    mu_node_options options;

    memset(&crowd, 0, sizeof crowd);
    for (int i = 0; i < CROWD; i++)
        crowd.each[i].ended = true;
    nodes_init(&crowd.nodes, 0, 0);
    nodes_options(&crowd.nodes, "chief", 0, &options);
    options.reconnect_ms = 100;
    crowd.chief = nodes_open_with(&crowd.nodes, &options);
    (void)snprintf(crowd.address, sizeof crowd.address, "%s",
                   mu_node_address(crowd.chief));
    (void)snprintf(crowd.set, sizeof crowd.set, "client:0-%d", CROWD - 1);
    *state = &crowd;
    return 0;
}

static int tear_down_crowd(void **state)
{
    struct crowd *c = *state;

    for (int i = 0; i < CROWD; i++)
        if (!c->each[i].ended) {
            cli_kill(&c->each[i], SIGKILL);
            (void)cli_wait(&c->each[i]);
        }
    nodes_done(&c->nodes);
    return 0;
}

static void come(struct crowd *c, int i, const char *name, const char *timeout_ms)
{
    char as[16];

    (void)snprintf(as, sizeof as, "client:%d", i);
    cli_start(&c->each[i], NULL, "barrier", name, "--tasks", c->set, "--as", as,
              "--address", c->address, timeout_ms == NULL ? NULL : "--timeout-ms",
              timeout_ms, NULL);
}

/* Until these are registered. */
static void await_connected(struct crowd *c, int first, int last)
{
    mu_value *tasks = NULL;
    mu_error error = {0};
    char set[32];

    (void)snprintf(set, sizeof set, "client:%d-%d", first, last);
    for (uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;; nodes_pause()) {
        int rv = mu_tasks_wait(c->chief, set, SOON_MS, &error, &tasks);

        if (rv == 0)
            break;
        /* Before it has come for the first time, a client is not known. */
        if (rv != -MU_ENOTFOUND || cli_now_ms() >= deadline_ms)
            fail_msg("%s: %s", mu_err_name(rv), error.message);
    }
    mu_value_free(tasks);
}

/* Some are killed while they wait, and are started again: all pass, and the barrier is
 * not passed before the last one has come. */
TEST_ON(test_crowd, struct crowd *c, set_up_crowd, tear_down_crowd)
{
    for (int i = 0; i < CROWD - 1; i++)
        come(c, i, "all", NULL);
    await_connected(c, 0, CROWD - 2);
    for (int i = 0; i < KILLED; i++) {
        cli_kill(&c->each[i], SIGKILL);
        cli_expect_code(&c->each[i], 128 + SIGKILL);
    }
    come(c, CROWD - 1, "all", NULL);
    await_connected(c, CROWD - 1, CROWD - 1);
    for (int i = KILLED; i < CROWD; i++) {
        cli_read(&c->each[i]);
        assert_string_equal(c->each[i].text, "");
    }
    for (int i = 0; i < KILLED; i++)
        come(c, i, "all", NULL);
    for (int i = 0; i < CROWD; i++) {
        cli_expect_code(&c->each[i], 0);
        assert_string_equal(c->each[i].text, "all: all are there\n");
    }
}

/* All get the same words, which name those who are missing. */
TEST_ON(test_crowd_late, struct crowd *c, set_up_crowd, tear_down_crowd)
{
    const char *words = c->each[0].text;

    for (int i = 0; i < CROWD; i++)
        come(c, i, "first", NULL);
    for (int i = 0; i < CROWD; i++)
        cli_expect_code(&c->each[i], 0);
    for (int i = 0; i < CROWD - MISSING; i++)
        come(c, i, "late", LIMIT);
    for (int i = 0; i < CROWD - MISSING; i++) {
        cli_expect_code(&c->each[i], 4);
        assert_string_equal(c->each[i].text, words);
    }
    print_message("%s", words);
    assert_non_null(strstr(words, "30 of 32 tasks arrived"));
    words = strstr(words, "missing: /job:client/task:3");
    assert_non_null(words);
    assert_non_null(strstr(words, "/job:client/task:30 (has left"));
    assert_non_null(strstr(words, "/job:client/task:31 (has left"));
}

/* ---- Preemption ---- */

static struct cli run;

static int set_up_run(void **state)
{
    run.ended = true;
    *state = &run;
    return 0;
}

static int tear_down_run(void **state)
{
    (void)state;
    if (!run.ended) {
        cli_kill(&run, SIGKILL);
        (void)cli_wait(&run);
    }
    return 0;
}

/* Every worker has gone through a step. */
static void await_work(const char *address, int workers)
{
    static struct cli get;
    char key[16];

    for (int i = 0; i < workers; i++) {
        (void)snprintf(key, sizeof key, "at/%d", i);
        cli_start(&get, NULL, "kv", "get", key, "--wait", "--address", address, NULL);
        cli_expect_code(&get, 0);
    }
}

static unsigned long stop_of(int worker)
{
    char words[64];

    (void)snprintf(words, sizeof words, "worker/%d | rounds: stops at step ", worker);
    return strtoul(cli_expect(&run, NULL, words), NULL, 10);
}

/* One of the workers hears SIGTERM: all of them stop at one step, which is returned.
 * Servers, which have no steps, do not hold them up. */
static unsigned long preempt(const char *servers)
{
    enum { WORKERS = 3 };
    char plugin[256];
    char address[64];
    unsigned long step;

    (void)snprintf(plugin, sizeof plugin, "%s/rounds.so",
                   cli_variable("MUSTER_EXAMPLES"));
    cli_start(&run, NULL, "run", "--workers", "3", "--ps", servers, "--color", "never",
              "--plugin", plugin, "--set", "barriers=0", "--set", "rounds=1000000",
              "--set", "increments=1", "--set", "pause_ms=2", "--preempt-on-sigterm", "1",
              "--grace-ms", "1000", NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    await_work(address, WORKERS);
    assert_int_equal(kill(cli_task_pid(&run, NULL, "worker/1"), SIGTERM), 0);
    step = stop_of(0);
    for (int i = 1; i < WORKERS; i++)
        assert_int_equal(stop_of(i), step);
    for (int i = 0; i < WORKERS; i++) {
        char words[64];

        (void)snprintf(words, sizeof words, "worker/%d ended with exit code 0", i);
        (void)cli_expect(&run, NULL, words);
    }
    cli_stop(&run);
    return step;
}

TEST_WITH(test_preempt, set_up_run, tear_down_run)
{
    assert_true(preempt("0") > 0);
}

TEST_WITH(test_preempt_with_servers, set_up_run, tear_down_run)
{
    assert_true(preempt("2") > 0);
}

TEST_PROGRAM()
