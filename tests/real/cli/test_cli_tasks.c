/* `muster tasks`, `devices`, `barrier` and `preempt` against real clusters, and SIGTERM
 * as a preemption notice. */
#include "tests/real/plugin.h"

static struct cli asked;
static struct cli other;
static char address[64]; /* the chief's */

/* The chief's program goes from step to step until it is told to stop. */
static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <unistd.h>\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    mu_error error;\n"
    "    int stop = 0;\n"
    "    int rv = 0;\n"
    "    (void)user;\n"
    "    for (uint64_t step = 1; rv == 0 && !stop; step++) {\n"
    "        if (step == 3)\n"
    "            printf(\"it is at work\\n\");\n"
    "        usleep(2000);\n"
    "        rv = mu_preemption_reached(node, step, &error, &stop);\n"
    "        if (stop)\n"
    "            printf(\"stops at step %llu\\n\", (unsigned long long)step);\n"
    "    }\n"
    "    while (rv == 0 && mu_node_get_setting(node, \"stay\") != NULL)\n"
    "        rv = mu_node_wait_job(node, -1, NULL);\n"
    "    return rv;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

static void begin(const char *const *more)
{
    const char *flags[8] = {NULL};

    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        assert_true(i < 8);
        flags[i] = more[i];
    }
    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "0", "--color", "never",
              "--reconnect-ms", "100", flags[0], flags[1], flags[2], flags[3], flags[4],
              flags[5], flags[6], flags[7], NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
}

#define ASK(cli, ...) cli_start(cli, NULL, __VA_ARGS__, "--address", address, NULL)

static void expect_end(int code, const char *words)
{
    cli_expect_code(&asked, code);
    if (strstr(asked.text, words) == NULL)
        fail_msg("no \"%s\" in: %s", words, asked.text);
}

static void await_all(void)
{
    ASK(&asked, "tasks", "--wait");
    cli_expect_code(&asked, 0);
}

/* Ask until the exit code is that one: the service learns of things later. */
static void expect_tasks(int code, const char *words)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    do {
        ASK(&asked, "tasks");
        if (cli_wait(&asked) == code && strstr(asked.text, words) != NULL)
            return;
        cli_pause();
    } while (cli_now_ms() < deadline_ms);
    fail_msg("no \"%s\" in: %s", words, asked.text);
}

/* ---- tasks ---- */

static void check_tasks_json(void)
{
    static const char *const names[] = {"/job:chief/task:0", "/job:worker/task:0",
                                        "/job:worker/task:1"};
    cJSON *root;

    ASK(&asked, "tasks", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_int_equal(cJSON_GetArraySize(root), 3);
    for (int i = 0; i < 3; i++) {
        const cJSON *task = cJSON_GetArrayItem(root, i);

        assert_string_equal(cli_text(task, "task"), names[i]);
        assert_string_equal(cli_text(task, "state"), "connected");
        assert_true(strtoull(cli_text(task, "incarnation"), NULL, 16) > 0);
        assert_true(cli_number(task, "heard_ms") >= 0);
        assert_true(cli_number(task, "since_ms") >= 0);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(task, "coordinated")));
    }
    cJSON_Delete(root);
}

TEST(test_tasks)
{
    begin(NULL);
    await_all();
    ASK(&asked, "tasks");
    expect_end(0, "INCARNATION       COORDINATED\n");
    assert_null(strstr(asked.text, "client"));
    ASK(&asked, "status"); /* a client, too, which takes leave */
    expect_end(0, "coordination service on /job:chief/task:0");
    check_tasks_json();
    ASK(&asked, "tasks", "--tasks", "worker:1");
    expect_end(0, "/job:worker/task:1");
    assert_null(strstr(asked.text, "/job:chief/task:0"));
    ASK(&asked, "tasks", "--tasks", "worker:7");
    expect_end(1, "/job:worker/task:7");
    ASK(&asked, "tasks", "--tasks", "worker:");
    expect_end(2, "worker:");
    cli_stop(&run);
}

/* One that is killed, and one that comes back; and somebody who watches both. */
TEST(test_killed_task)
{
    const char *at;

    begin((const char *const[]){"--restart", "worker=always", NULL});
    await_all();
    ASK(&other, "tasks", "--watch");
    (void)cli_expect(&other, NULL, "/job:chief/task:0 is connected\n");
    at = cli_expect(&other, NULL, "/job:worker/task:1 is connected\n");
    /* A client comes and goes. */
    expect_tasks(0, "/job:worker/task:1");
    at = cli_expect(&other, at, "/job:client/task:");
    at = cli_expect(&other, at, " is connected\n/job:client/task:");
    at = cli_expect(&other, at, " is disconnected\n");
    assert_int_equal(kill(cli_task_pid(&run, NULL, "worker/1"), SIGKILL), 0);
    at = cli_expect(&other, at, "/job:worker/task:1 is ");
    (void)cli_expect(&other, at, "/job:worker/task:1 is connected");
    assert_null(strstr(at, "/job:worker/task:0"));
    cli_stop(&other);
    cli_stop(&run);
}

/* A task's error is reported and reset from outside; it comes back by itself. */
TEST(test_error_is_reported_and_reset)
{
    begin(NULL);
    await_all();
    ASK(&asked, "task", "report", "worker:1", "its disk is broken", "--code", "dataloss");
    expect_end(0, "worker:1 is error\n");
    expect_tasks(1, "  /job:worker/task:1: its disk is broken (reported by "
                    "/job:client/task:");
    (void)cli_expect(&run, NULL, "is in error: EDATALOSS: its disk is broken");
    ASK(&asked, "task", "report", "worker:1");
    expect_end(1, "/job:worker/task:1 is in error already: its disk is broken");
    ASK(&asked, "task", "reset", "worker:1", "-o", "json");
    expect_end(0, "\"reset\"");
    expect_tasks(0, "/job:worker/task:1");
    ASK(&asked, "task", "reset", "worker:1");
    expect_end(1, "/job:worker/task:1 is connected: a task is reset from being in error");
    ASK(&asked, "task", "reset", "worker:8");
    expect_end(1, "/job:worker/task:8 is not known");
    ASK(&asked, "task", "reset", "worker:0-1");
    expect_end(2, "expected one task, as worker:1, got \"worker:0-1\"");
    ASK(&asked, "task", "report", "worker:1", "--code", "nonsense");
    expect_end(2, "--code: expected the name of a code");
    cli_stop(&run);
}

/* One that is of no coordinated job is not known before it was there. */
TEST(test_wait_for_a_task_that_was_never_there)
{
    char spec[256];

    begin(NULL);
    await_all();
    ASK(&asked, "tasks", "--tasks", "evaluator:0", "--wait", "--timeout-ms", "200");
    expect_end(4, "after 200 ms: /job:evaluator/task:0 is not known");
    ASK(&asked, "tasks", "--tasks", "evaluator:0", "--wait");
    (void)cli_expect(&asked, NULL, "muster tasks: waiting: /job:evaluator/task:0");
    (void)snprintf(spec, sizeof spec, "{\"chief\": [\"%s\"]}",
                   address + strlen("tcp://"));
    cli_start(&other, NULL, "node", "--cluster", spec, "--task", "evaluator:0", "--bind",
              "tcp://127.0.0.1:0", NULL);
    expect_end(0, "/job:evaluator/task:0  connected");
    cli_kill(&other, SIGKILL);
    (void)cli_wait(&other);
    cli_stop(&run);
}

TEST(test_task_that_stays_away)
{
    begin(NULL);
    await_all();
    ASK(&other, "tasks", "--watch", "-o", "json");
    (void)cli_expect(&other, NULL, "\"task\":\"/job:worker/task:0\"");
    assert_int_equal(kill(cli_task_pid(&run, NULL, "worker/0"), SIGKILL), 0);
    (void)cli_expect(&other, NULL, "\"state\":\"error\"");
    expect_tasks(1, "\nerrors\n  /job:worker/task:0: ");
    ASK(&asked, "tasks", "--wait", "--timeout-ms", "2000");
    expect_end(4, "/job:worker/task:0");
    ASK(&asked, "tasks", "--tasks", "worker:1,chief:0");
    expect_end(0, "/job:worker/task:1");
    ASK(&asked, "tasks", "--watch", "--tasks", "worker:1", "--timeout-ms", "2000");
    expect_end(4, "/job:worker/task:1 is connected\n");
    cli_kill(&other, SIGTERM);
    cli_expect_code(&other, 128 + SIGTERM);
    cli_stop(&run);
}

TEST(test_nobody_there)
{
    static const char *const verbs[][4] = {
        {"tasks", "--wait", "-o", "json"},
        {"devices", "-o", "json", "--log-level=error"},
        {"barrier", "b", "--tasks", "client:0"},
        {"preempt", "reason", "-o", "json"},
    };

    for (size_t i = 0; i < 4; i++) {
        cli_start(&asked, NULL, verbs[i][0], verbs[i][1], verbs[i][2], verbs[i][3],
                  "--address", "tcp://127.0.0.1:1", "--timeout-ms", "200", NULL);
        expect_end(4, "tcp://127.0.0.1:1");
    }
}

/* ---- devices ---- */

TEST(test_devices)
{
    cJSON *root;

    begin(NULL);
    await_all();
    ASK(&asked, "devices");
    expect_end(0, "/job:worker/task:1");
    ASK(&asked, "devices", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_int_equal(cJSON_GetArraySize(root), 3);
    for (int i = 0; i < 3; i++) {
        const cJSON *machine = cJSON_GetArrayItem(root, i);

        assert_true(cli_text(machine, "host")[0] != '\0');
        assert_true(cli_number(machine, "cores") >= 1);
        assert_true(cli_number(machine, "memory_bytes") > 0);
        assert_true(cJSON_IsArray(cJSON_GetObjectItem(machine, "gpus")));
    }
    cJSON_Delete(root);
    cli_stop(&run);
}

/* ---- barrier ---- */

TEST(test_barrier)
{
    begin(NULL);
    ASK(&other, "barrier", "b", "--tasks", "client:0-1", "--as", "client:1");
    ASK(&asked, "barrier", "late", "--tasks", "client:7,client:9", "--as", "client:9",
        "--timeout-ms", "1500");
    expect_end(4, "/job:client/task:7");
    assert_int_equal(waitpid(other.pid, NULL, WNOHANG), 0);
    ASK(&asked, "barrier", "b", "--tasks", "client:0-1", "--as", "client:0", "-o",
        "json");
    expect_end(0, "\"barrier\":\t\"b\"");
    cli_expect_code(&other, 0);
    assert_string_equal(other.text, "b: all are there\n");
    /* The same name again is another barrier, although these are other processes. */
    ASK(&asked, "barrier", "b", "--tasks", "client:0-1", "--as", "client:1",
        "--timeout-ms", "500");
    expect_end(4, "/job:client/task:0");
    ASK(&other, "barrier", "b", "--tasks", "client:0-1", "--as", "client:1");
    ASK(&asked, "barrier", "b", "--tasks", "client:0-1", "--as", "client:0");
    expect_end(0, "b: all are there\n");
    cli_expect_code(&other, 0);
    cli_stop(&run);
}

/* ---- preemption ---- */

static void begin_work(const char *preempts, const char *setting)
{
    begin((const char *const[]){"--plugin", plugin, "--preempt-on-sigterm", preempts,
                                "--set", setting, NULL});
    (void)cli_expect(&run, NULL, "it is at work\n");
    await_all();
}

TEST(test_preempt)
{
    const char *at;
    char line[64];
    cJSON *root;

    begin_work("0", "stay=1");
    ASK(&asked, "preempt", "moved", "--grace-ms", "9000", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_string_equal(cli_text(root, "reason"), "moved");
    assert_true(cli_number(root, "step") > 0);
    assert_true(cli_number(root, "left_ms") <= 9000);
    (void)snprintf(line, sizeof line, "stops at step %.0f\n", cli_number(root, "step"));
    cJSON_Delete(root);
    at = cli_expect(&run, NULL, line);
    assert_null(strstr(at, "stops at step"));
    cli_stop(&run);
}

static double agreed_step(const char *reason)
{
    cJSON *root;
    double step;

    ASK(&asked, "preempt", reason, "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_string_equal(cli_text(root, "reason"), reason);
    step = cli_number(root, "step");
    cJSON_Delete(root);
    return step;
}

/* Each says what came of its own notice, and one that is early says nothing of those
 * before. */
TEST(test_preempt_again)
{
    double step;

    begin_work("0", "stay=1");
    step = agreed_step("first");
    (void)cli_expect(&run, NULL, "stops at step ");
    assert_true(agreed_step("second") == step + 1);
    ASK(&asked, "preempt", "third", "--grace-ms", "3600000", "--timeout-ms", "2000");
    expect_end(0, "the notice was taken; the tasks agree on a step to stop at in 2700 s, "
                  "15 minutes before the end");
    cli_stop(&run);
}

/* The first SIGTERM is a notice, and the program ends as it likes. */
TEST(test_notice_by_signal)
{
    begin_work("1", "a=b");
    assert_int_equal(kill(cli_task_pid(&run, NULL, "chief/0"), SIGTERM), 0);
    (void)cli_expect(&run, NULL, "all tasks agree on a step to stop at");
    (void)cli_expect(&run, NULL, "stops at step ");
    cli_expect_code(&run, 0);
}

/* The second one is the end, and so is the end of the grace. */
TEST(test_signal_after_notice)
{
    pid_t chief;

    begin_work("1", "stay=1");
    chief = cli_task_pid(&run, NULL, "chief/0");
    assert_int_equal(kill(chief, SIGTERM), 0);
    (void)cli_expect(&run, NULL, "stops at step ");
    assert_int_equal(kill(chief, SIGTERM), 0);
    cli_expect_code(&run, 128 + SIGTERM);
}

TEST(test_end_of_grace)
{
    begin((const char *const[]){"--plugin", plugin, "--preempt-on-sigterm=1", "--set",
                                "stay=1", "--grace-ms", "1000", NULL});
    (void)cli_expect(&run, NULL, "it is at work\n");
    await_all();
    assert_int_equal(kill(cli_task_pid(&run, NULL, "chief/0"), SIGTERM), 0);
    (void)cli_expect(&run, NULL, "stops at step ");
    cli_expect_code(&run, 128 + SIGTERM);
}

/* Where nobody can be told, it is the end at once. */
TEST(test_signal_without_service)
{
    uint64_t began_ms;

    begin((const char *const[]){"--service-hosts", "none", "--preempt-on-sigterm", "1",
                                "--grace-ms", "20000", NULL});
    began_ms = cli_now_ms();
    assert_int_equal(kill(cli_task_pid(&run, NULL, "chief/0"), SIGTERM), 0);
    (void)cli_expect(&run, NULL, "the preemption notice was not given");
    (void)cli_expect(&run, NULL, "chief/0 ended with exit code 143");
    assert_true(cli_now_ms() - began_ms < 15000);
    cli_expect_code(&run, 128 + SIGTERM);
}

PLUGIN_PROGRAM(plugin_text)
