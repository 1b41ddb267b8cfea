/* `muster explain` and `muster drain`, the status of a cluster that is busy, and workers
 * that are told to end while they run something. The functions of the plugin go on until
 * a file is there, so that nothing depends on time. */
#include "tests/real/cli.h"

static struct cli run;
static struct cli asked;
static char folder[64];
static char plugin[96];
static char go[96];      /* the file that functions wait for */
static char address[64]; /* the chief's */

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "static int hold(mu_run *run, void *user)\n"
    "{\n"
    "    (void)user;\n"
    "    printf(\"%s begins\\n\", mu_run_closure_name(run));\n"
    "    while (access(mu_node_get_setting(mu_run_node(run), \"go\"), F_OK) != 0) {\n"
    "        if (mu_run_cancelled(run)) {\n"
    "            printf(\"%s was told to stop\\n\", mu_run_closure_name(run));\n"
    "            return mu_run_fail(run, -MU_ECANCELLED, \"told to stop\");\n"
    "        }\n"
    "        usleep(2000);\n"
    "    }\n"
    "    printf(\"%s ends\\n\", mu_run_closure_name(run));\n"
    "    mu_run_return(run, mu_value_int(mu_run_attempt(run)));\n"
    "    return 0;\n"
    "}\n"
    "static int seven(mu_run *run, void *user)\n"
    "{\n"
    "    (void)user;\n"
    "    mu_run_return(run, mu_value_int(7));\n"
    "    return 0;\n"
    "}\n"
    "static void await_worker(mu_node *node)\n"
    "{\n"
    "    for (int is_up = 0; !is_up; usleep(2000)) {\n"
    "        mu_value *status = NULL;\n"
    "        const mu_value *tasks;\n"
    "        if (mu_node_status(node, -1, NULL, &status) != 0)\n"
    "            return;\n"
    "        tasks = mu_value_find(status, \"tasks\");\n"
    "        for (size_t i = 0; i < mu_value_count(tasks); i++)\n"
    "            is_up |= mu_value_find(mu_value_at(tasks, i), \"threads\") != NULL;\n"
    "        mu_value_free(status);\n"
    "    }\n"
    "}\n"
    "static int named(mu_coordinator *c, mu_per_worker *pw)\n"
    "{\n"
    "    mu_value *args = mu_value_per_worker(pw), *result = NULL;\n"
    "    mu_remote_value *value = NULL;\n"
    "    mu_closure_options o;\n"
    "    mu_error e;\n"
    "    int rv;\n"
    "    mu_closure_options_init(&o);\n"
    "    o.name = \"named\";\n"
    "    rv = mu_coordinator_schedule_with(c, \"check\", args, &o, -1, &e, &value);\n"
    "    if (rv == 0)\n"
    "        rv = mu_remote_value_fetch(value, -1, &e, &result);\n"
    "    printf(\"named: %s\\n\", rv == 0 ? \"fine\" : e.message);\n"
    "    mu_remote_value_free(value);\n"
    "    mu_value_free(result);\n"
    "    mu_value_free(args);\n"
    "    mu_per_worker_close(pw);\n"
    "    mu_coordinator_close(c);\n"
    "    return rv;\n"
    "}\n"
    "static int check(mu_run *run, void *user)\n"
    "{\n"
    "    int64_t number;\n"
    "    if (mu_value_get_int(mu_run_args(run), &number) == 0)\n"
    "        return hold(run, user);\n"
    "    printf(\"it has no input\\n\");\n"
    "    return mu_run_fail(run, -MU_EINVALID, \"it has no input\");\n"
    "}\n"
    "static mu_remote_value *begin(mu_coordinator *c, const char *name, int worker)\n"
    "{\n"
    "    mu_remote_value *value = NULL;\n"
    "    mu_closure_options o;\n"
    "    mu_closure_options_init(&o);\n"
    "    o.name = name;\n"
    "    o.worker = worker;\n"
    "    mu_coordinator_schedule_with(c, \"hold\", NULL, &o, -1, NULL, &value);\n"
    "    return value;\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    mu_remote_value *one;\n"
    "    mu_per_worker *pw;\n"
    "    mu_value *result;\n"
    "    mu_coordinator *c;\n"
    "    long long attempt = 0;\n"
    "    int64_t number = 0;\n"
    "    (void)user;\n"
    "    mu_coordinator_open(node, -1, NULL, &c);\n"
    "    await_worker(node);\n"
    "    mu_per_worker_open(c, \"seven\", NULL, -1, NULL, &pw);\n"
    "    if (mu_node_get_setting(node, \"named\") != NULL)\n"
    "        return named(c, pw);\n"
    "    one = begin(c, \"one\", -1);\n"
    "    if (mu_node_get_setting(node, \"more\") != NULL) {\n"
    "        mu_remote_value_free(begin(c, \"two\", -1));\n"
    "        mu_remote_value_free(begin(c, \"three\", -1));\n"
    "        mu_remote_value_free(begin(c, \"1234\", 9));\n"
    "    }\n"
    "    if (mu_remote_value_fetch(one, -1, NULL, &result) == 0) {\n"
    "        mu_value_get_int(result, &number);\n"
    "        attempt = number;\n"
    "        mu_value_free(result);\n"
    "    }\n"
    "    printf(\"one came of run %lld\\n\", attempt);\n"
    "    mu_remote_value_free(one);\n"
    "    while (mu_node_get_setting(node, \"stay\") != NULL)\n"
    "        if (mu_node_wait_job(node, -1, NULL) != 0)\n"
    "            break;\n"
    "    mu_per_worker_close(pw);\n"
    "    mu_coordinator_close(c);\n"
    "    return 0;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    (void)mu_node_register_function(node, \"hold\", hold, NULL, 0);\n"
    "    (void)mu_node_register_function(node, \"check\", check, NULL, 0);\n"
    "    (void)mu_node_register_function(node, \"seven\", seven, NULL, 0);\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

static int compile(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    (void)snprintf(go, sizeof go, "%s/go", folder);
    return cli_compile(folder, plugin_text, plugin, sizeof plugin);
}

static int clean(void **state)
{
    (void)state;
    (void)unlink(plugin);
    (void)unlink(go);
    return rmdir(folder);
}

/* `more`: a setting for the chief's program. */
static void start(const char *workers, const char *more, const char *grace_ms)
{
    char setting[128];

    (void)unlink(go);
    (void)snprintf(setting, sizeof setting, "go=%s", go);
    cli_start(&run, NULL, "run", "--plugin", plugin, "--set", setting, "--set", more,
              "--workers", workers, "--ps", "0", "--window", "1", "--measure", "1",
              "--grace-ms", grace_ms, "--color", "never", NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
}

static void expect_words(const char *const *words)
{
    for (; *words != NULL; words++)
        if (strstr(asked.text, *words) == NULL)
            fail_msg("no \"%s\" in: %s", *words, asked.text);
}

/* Ask about a closure until the words are there: the chief learns of things later. */
static void expect_explained(const char *closure, const char *words)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    do {
        cli_start(&asked, NULL, "explain", closure, "--address", address, NULL);
        if (cli_wait(&asked) == 0 && strstr(asked.text, words) != NULL)
            return;
        cli_pause();
    } while (cli_now_ms() < deadline_ms);
    fail_msg("no \"%s\" in: %s", words, asked.text);
}

/* ---- explain ---- */

static void check_explain_json(void)
{
    static const char *const running[] = {"Closure ",
                                          " \"one\", function \"hold\", is "
                                          "running on /job:worker/task:0 for ",
                                          "It waits for its function to return.", NULL};
    char number[32];
    cJSON *root;

    cli_start(&asked, NULL, "explain", "-o", "json", "one", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    root = cJSON_Parse(asked.text);
    assert_non_null(root);
    assert_string_equal(cJSON_GetObjectItem(root, "state")->valuestring, "running");
    assert_int_equal(cJSON_GetObjectItem(root, "attempt")->valueint, 1);
    (void)snprintf(number, sizeof number, "%.0f",
                   cJSON_GetObjectItem(root, "closure")->valuedouble);
    cJSON_Delete(root);
    cli_start(&asked, NULL, "explain", number, "--address", address, NULL);
    cli_expect_code(&asked, 0);
    expect_words(running);
    assert_non_null(strstr(asked.text, number));
}

static void check_status(void)
{
    static const char *const words[] = {"/job:worker/task:9",
                                        "missing",
                                        "\nclosures\n",
                                        "queued 3, in flight 1,",
                                        "longest in flight",
                                        "  hold      one   /job:worker/task:0",
                                        "per-worker values",
                                        "  1      seven     ",
                                        NULL};

    cli_start(&asked, NULL, "status", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    expect_words(words);
}

TEST(test_explain)
{
    start("1", "more=1", "10000");
    (void)cli_expect(&run, NULL, "one begins");
    expect_explained("1234", "It waits for /job:worker/task:9, which is missing.");
    expect_explained("two", "is queued.\nIt was not given to a worker yet.\nIt waits for "
                            "a worker, as the next: the only worker has no room");
    expect_explained("three", "for a worker, behind 1 other: the only worker");
    check_explain_json();
    check_status();
    cli_start(&asked, NULL, "explain", "4242", "--address", address, NULL);
    cli_expect_code(&asked, 1);
    (void)cli_expect(&asked, NULL, "knows no closure with the number or name 4242");
    cli_stop(&run);
}

TEST(test_no_chief)
{
    static const char *const verbs[][2] = {{"explain", "one"}, {"drain", "worker:0"}};

    for (size_t i = 0; i < 2; i++) {
        cli_start(&asked, NULL, verbs[i][0], verbs[i][1], "--address",
                  "tcp://127.0.0.1:1", "--timeout-ms", "100", NULL);
        cli_expect_code(&asked, 4);
        (void)cli_expect(&asked, NULL,
                         "/job:chief/task:0 at tcp://127.0.0.1:1 was not reached within "
                         "100 ms");
    }
}

/* ---- drain ---- */

static void drain_fails(const char *worker, int code, const char *words)
{
    cli_start(&asked, NULL, "drain", worker, "--address", address, "--timeout-ms", "700",
              NULL);
    cli_expect_code(&asked, code);
    (void)cli_expect(&asked, NULL, words);
}

/* Those who gave up waiting do not keep others from it. */
TEST(test_drain)
{
    const char *from = NULL;

    start("1", "stay=1", "10000");
    (void)cli_expect(&run, NULL, "one begins");
    drain_fails("worker:7", 1, "there is no /job:worker/task:7 that takes closures");
    drain_fails("ps:7", 1, "there is no such parameter server");
    drain_fails("chief:0", 2, "\"chief:0\": expected a worker or a parameter server");
    drain_fails("worker:x", 2, "\"worker:x\": expected a worker");
    for (int i = 0; i < 6; i++) {
        drain_fails("/job:worker/task:0", 4,
                    "after 700 ms /job:worker/task:0 still has closures to finish; it "
                    "gets no more, and leaves then");
        from = cli_expect(&run, from, "finishes 1 closure (");
    }
    cli_start(&asked, NULL, "status", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    (void)cli_expect(&asked, NULL, "up, draining");
    cli_start(&asked, NULL, "drain", "worker:0", "--address", address, NULL);
    (void)cli_expect(&run, from, "finishes 1 closure (");
    cli_write_file(go, "");
    cli_expect_code(&asked, 0);
    (void)cli_expect(&asked, NULL, "/job:worker/task:0 has left\n");
    (void)cli_expect(&run, NULL, "worker/0 ended with exit code 0");
    (void)cli_expect(&run, NULL, "one came of run 1");
    (void)cli_expect(&run, NULL, "/job:worker/task:0 has left; nothing was in flight");
    cli_start(&asked, NULL, "status", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    (void)cli_expect(&asked, NULL, "workers lost 0");
    assert_null(strstr(asked.text, "worker/task:0"));
    cli_stop(&run);
}

/* ---- a worker that is told to end ---- */

/* What it has is finished, and ran once. */
TEST(test_signal_drains)
{
    start("1", "stay=1", "600000");
    (void)cli_expect(&run, NULL, "one begins");
    assert_int_equal(kill(cli_task_pid(&run, NULL, "worker/0"), SIGTERM), 0);
    (void)cli_expect(&run, NULL, "/job:worker/task:0 finishes 1 closure (");
    cli_write_file(go, "");
    (void)cli_expect(&run, NULL, "/job:worker/task:0 node: has finished its closures");
    (void)cli_expect(&run, NULL, "worker/0 ended with exit code 143");
    (void)cli_expect(&run, NULL, "one came of run 1");
    cli_stop(&run);
}

/* In half of the grace it does not finish: then its functions are told to stop, and
 * another worker runs what they did not do. */
TEST(test_signal_tells_functions)
{
    const char *from;
    const char *task;

    start("2", "stay=1", "300");
    from = cli_expect(&run, NULL, "one begins");
    task = strstr(run.text, "worker/0 | one begins") != NULL ? "worker/0" : "worker/1";
    assert_int_equal(kill(cli_task_pid(&run, NULL, task), SIGTERM), 0);
    (void)cli_expect(
        &run, NULL,
        "leaves with unfinished closures: after 150 ms this worker still has "
        "closures to finish");
    (void)cli_expect(&run, NULL, "one was told to stop");
    (void)cli_expect(&run, NULL, "ended with exit code 143");
    (void)cli_expect(&run, from, "one begins");
    cli_write_file(go, "");
    (void)cli_expect(&run, NULL, "one came of run 2");
    cli_stop(&run);
}

TEST(test_second_signal)
{
    pid_t pid;

    start("1", "stay=1", "600000");
    (void)cli_expect(&run, NULL, "one begins");
    pid = cli_task_pid(&run, NULL, "worker/0");
    assert_int_equal(kill(pid, SIGTERM), 0);
    (void)cli_expect(&run, NULL, "/job:worker/task:0 finishes 1 closure (");
    assert_int_equal(kill(pid, SIGTERM), 0);
    (void)cli_expect(&run, NULL, "again: ends at once");
    (void)cli_expect(&run, NULL, "worker/0 ended with exit code 143");
    cli_stop(&run);
}

/* Without a chief there is nothing to finish, and nothing to wait for. */
TEST(test_signal_without_chief)
{
    cli_start(&run, NULL, "node", "--cluster",
              "{\"worker\": [\"127.0.0.1:0\"], \"chief\": [\"127.0.0.1:1\"]}", "--task",
              "worker:0", "--grace-ms", "3600000", NULL);
    (void)cli_expect(&run, NULL, "is up at");
    cli_kill(&run, SIGTERM);
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "is not connected");
}

/* ---- a chief that comes back ---- */

static void start_task(struct cli *cli, const char *cluster, const char *task,
                       const char *journal, const char *grace_ms)
{
    char setting[128];

    (void)snprintf(setting, sizeof setting, "go=%s", go);
    cli_start(cli, NULL, "node", "--cluster", cluster, "--task", task, "--plugin", plugin,
              "--set", setting, "--set", "named=1", "--journal", journal, "--grace-ms",
              grace_ms, NULL);
}

/* With the worker at work. */
static void start_tasks(struct cli *chief, const char *grace_ms, char journal[96],
                        char cluster[256])
{
    (void)unlink(go);
    (void)snprintf(journal, 96, "%s/journal", folder);
    (void)snprintf(cluster, 256,
                   "{\"chief\": [\"ipc://%s/c\"], \"worker\": [\"ipc://%s/w\"]}", folder,
                   folder);
    start_task(&run, cluster, "worker:0", journal, grace_ms);
    start_task(chief, cluster, "chief", journal, grace_ms);
    (void)cli_expect(&run, NULL, "named begins");
}

/* A worker that finishes what it has ends with 0, so that a service manager does not take
 * its end for a failure; one whose function had to be told to stop ends with the signal's
 * code. So does the chief, whose program did not end its job. */
TEST(test_code_of_signal)
{
    static const struct {
        const char *grace_ms;
        bool finishes;
        int code;
    } rows[] = {{"600000", true, 0}, {"300", false, 143}};
    static struct cli chief;
    char cluster[256];
    char journal[96];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start_tasks(&chief, rows[i].grace_ms, journal, cluster);
        cli_kill(&run, SIGTERM);
        (void)cli_expect(&chief, NULL, "/job:worker/task:0 finishes 1 closure (");
        if (rows[i].finishes)
            cli_write_file(go, "");
        cli_expect_code(&run, rows[i].code);
        cli_kill(&chief, rows[i].finishes ? SIGKILL : SIGTERM);
        if (rows[i].finishes)
            (void)cli_wait(&chief);
        else
            cli_expect_code(&chief, 128 + SIGTERM);
        (void)unlink(journal);
    }
}

/* A named closure with a per-worker value: after the restart its program brings the new
 * one, and the closure is not run without it. */
TEST(test_restart_with_inputs)
{
    static struct cli chief;
    char cluster[256];
    char journal[96];

    start_tasks(&chief, "5000", journal, cluster);
    cli_kill(&chief, SIGKILL);
    cli_expect_code(&chief, 128 + SIGKILL);
    cli_write_file(go, "");
    start_task(&chief, cluster, "chief", journal, "5000");
    cli_expect_code(&chief, 0);
    (void)cli_expect(&chief, NULL, "named: fine");
    cli_expect_code(&run, 0);
    assert_null(strstr(run.text, "it has no input"));
    (void)unlink(journal);
}

TEST_PROGRAM_WITH(compile, clean)
