/* `muster run` knows that it will not start a process again: what waits for that task
 * fails with the reason, and the run ends. All waits of the plugin are without a
 * timeout. */
#include "tests/real/plugin.h"

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <signal.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "MU_PLUGIN;\n"
    "static int die(mu_run *run, void *user)\n"
    "{\n"
    "    (void)run;\n"
    "    (void)user;\n"
    "    return raise(SIGKILL);\n"
    "}\n"
    "static int meet(mu_context *context, void *user)\n"
    "{\n"
    "    mu_error error = {0};\n"
    "    mu_node *node;\n"
    "    int rv;\n"
    "    (void)user;\n"
    "    rv = mu_context_node(context, &error, &node);\n"
    "    if (rv == 0 && strcmp(mu_context_task(context),\n"
    "                          mu_node_get_setting(node, \"dies\")) == 0)\n"
    "        raise(SIGKILL);\n"
    "    if (rv == 0 && mu_node_get_setting(node, \"meets\") != NULL)\n"
    "        rv = mu_context_wait_for_others(context, -1, &error);\n"
    "    return rv == 0 ? 0 : mu_context_fail_with(context, &error);\n"
    "}\n"
    "static int schedule(mu_node *node, void *user)\n"
    "{\n"
    "    mu_coordinator *coordinator = NULL;\n"
    "    mu_error error;\n"
    "    int rv = mu_coordinator_open(node, -1, &error, &coordinator);\n"
    "    (void)user;\n"
    "    for (int i = 0; rv == 0 && i < 10; i++)\n"
    "        rv = mu_coordinator_schedule(coordinator, \"die\", NULL, -1, &error,\n"
    "                                     NULL);\n"
    "    if (rv == 0)\n"
    "        rv = mu_coordinator_join(coordinator, -1, &error);\n"
    "    mu_coordinator_close(coordinator);\n"
    "    return rv == 0 ? 0 : mu_node_fail_with(node, &error);\n"
    "}\n"
    "static int barrier(mu_node *node, void *user)\n"
    "{\n"
    "    mu_barrier_options options;\n"
    "    mu_error error;\n"
    "    int rv;\n"
    "    (void)user;\n"
    "    const char *gate = mu_node_get_setting(node, \"gate\");\n"
    "    if (strcmp(mu_node_task(node), \"/job:worker/task:1\") == 0 && gate != NULL)\n"
    "        _exit(2);\n"
    "    if (strcmp(mu_node_task(node), \"/job:worker/task:1\") == 0)\n"
    "        raise(SIGKILL);\n"
    "    for (int i = 0; gate != NULL && access(gate, F_OK) != 0 && i < 2000; i++)\n"
    "        usleep(10000);\n"
    "    mu_barrier_options_init(&options);\n"
    "    options.tasks = \"chief:0,worker:0-1\";\n"
    "    rv = mu_barrier_wait(node, \"b\", &options, &error);\n"
    "    return rv == 0 ? 0 : mu_node_fail_with(node, &error);\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    const char *what = mu_node_get_setting(node, \"do\");\n"
    "    mu_distribute_options options;\n"
    "    if (strcmp(what, \"meet\") == 0) {\n"
    "        mu_distribute_options_init(&options);\n"
    "        options.worker = meet;\n"
    "        options.strategy = mu_strategy_parameter_server();\n"
    "        return mu_node_set_distribute(node, &options);\n"
    "    }\n"
    "    if (strcmp(what, \"barrier\") == 0) {\n"
    "        (void)mu_node_register_program(node, \"worker\", barrier, NULL);\n"
    "        return mu_node_register_program(node, \"chief\", barrier, NULL);\n"
    "    }\n"
    "    (void)mu_node_register_function(node, \"die\", die, NULL, 0);\n"
    "    return mu_node_register_program(node, \"chief\", schedule, NULL);\n"
    "}\n";

/* The run ends with the code, and its last line has the reason. */
static void expect_end(int code, const char *reason)
{
    const char *last;

    cli_expect_code(&run, code);
    last = strstr(run.text, "muster: ended with exit code");
    if (last != NULL && strstr(last, reason) != NULL &&
        strstr(run.text, "key \"muster/distribute") == NULL)
        return;
    cli_show(&run);
    fail_msg("the end does not say \"%s\"", reason);
}

/* Without a chief the leading worker gathers; with it dead, nobody does. */
static const struct {
    const char *chief;
    const char *dies;
    const char *meets;
    int code;
    const char *reason;
} independents[] = {
    {"1", "dies=/job:worker/task:1", "meets=1", 1,
     "/job:worker/task:1 was killed by signal 9 (Killed), and is not started again"},
    {"1", "dies=/job:worker/task:1", "other=1", 1,
     "/job:worker/task:1 was killed by signal 9 (Killed), and is not started again"},
    {"0", "dies=/job:worker/task:1", "meets=1", 1,
     "/job:worker/task:1 was killed by signal 9 (Killed), and is not started again"},
    {"0", "dies=/job:worker/task:0", "meets=1", 137,
     "/job:worker/task:0 was killed by signal 9 (Killed), and is not started again"},
};

TEST(test_independent)
{
    for (size_t i = 0; i < sizeof independents / sizeof independents[0]; i++) {
        cli_start(&run, NULL, "run", "--mode", "independent", "--chief",
                  independents[i].chief, "--workers", "3", "--ps", "1", "--plugin",
                  plugin, "--set", "do=meet", "--set", independents[i].dies, "--set",
                  independents[i].meets, "--log-level", "warn", "--color", "never", NULL);
        expect_end(independents[i].code, independents[i].reason);
    }
}

/* Given up after so many restarts, which is the same. */
TEST(test_given_up)
{
    cli_start(&run, NULL, "run", "--mode", "independent", "--workers", "2", "--ps", "0",
              "--plugin", plugin, "--set", "do=meet", "--set", "dies=/job:worker/task:1",
              "--set", "meets=1", "--restart", "on-failure", "--restart-max", "1",
              "--log-level", "warn", "--color", "never", NULL);
    expect_end(1, "/job:worker/task:1 was killed by signal 9 (Killed)");
    (void)cli_expect(&run, NULL, "given up after 1 restarts in a row");
}

TEST(test_closures_without_workers)
{
    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "0", "--plugin", plugin,
              "--set", "do=schedule", "--log-level", "warn", "--color", "never", NULL);
    expect_end(1, "no worker is left: /job:worker/task:");
}

TEST(test_barrier_of_a_program)
{
    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "0", "--plugin", plugin,
              "--set", "do=barrier", "--log-level", "warn", "--color", "never", NULL);
    expect_end(1, "/job:worker/task:1 was killed by signal 9 (Killed), and is not "
                  "started again");
}

/* The host of the service is started again after that end: it hears of it, too. */
TEST(test_host_that_comes_later)
{
    char gate[96];
    char setting[112];
    const char *from;
    pid_t host;

    (void)snprintf(gate, sizeof gate, "%s/gate", folder);
    (void)snprintf(setting, sizeof setting, "gate=%s", gate);
    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "1", "--service-hosts", "ps:0",
              "--plugin", plugin, "--set", "do=barrier", "--set", setting, "--restart",
              "on-failure", "--color", "never", NULL);
    host = cli_task_pid(&run, NULL, "ps/0");
    (void)cli_expect(&run, NULL, "worker/1 ended with exit code 2");
    assert_int_equal(kill(host, SIGKILL), 0);
    from = cli_expect(&run, NULL, "ps/0 was killed by signal 9");
    (void)cli_expect(&run, from, "/job:ps/task:0 agent: registered with ");
    cli_write_file(gate, "");
    expect_end(1, "/job:worker/task:1 ended with exit code 2, and is not started again");
    assert_int_equal(unlink(gate), 0);
}

static uint64_t processor_ms(clockid_t clock)
{
    struct timespec used;

    assert_int_equal(clock_gettime(clock, &used), 0);
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

/* That of another version gives its tasks a pipe. When it has ended, they do not look at
 * that again and again. */
TEST(test_parent_with_a_pipe)
{
    const struct timespec second = {.tv_sec = 1};
    char variable[64];
    const char *const variables[] = {variable, NULL};
    clockid_t clock;
    uint64_t used_ms;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
    (void)snprintf(variable, sizeof variable, "MUSTER_PARENT_FD=%d:%d", ends[1],
                   (int)getpid());
    cli_start(&run, variables, "node", "--cluster", "{\"chief\":[\"127.0.0.1:0\"]}",
              "--task", "chief:0", NULL);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)cli_expect(&run, NULL, " is up at ");
    assert_int_equal(clock_getcpuclockid(run.pid, &clock), 0);
    used_ms = processor_ms(clock);
    (void)nanosleep(&second, NULL);
    assert_true(processor_ms(clock) - used_ms < 300);
    cli_kill(&run, SIGTERM);
    cli_expect_code(&run, 128 + SIGTERM);
}

/* A task that reaches neither the chief nor a host of the service ends by itself. */
TEST(test_orphan)
{
    cli_start(&run, NULL, "node", "--cluster",
              "{\"chief\":[\"127.0.0.1:1\"],\"worker\":[\"127.0.0.1:0\"]}", "--task",
              "worker:0", "--orphan-ms", "500", "--log-level", "warn", NULL);
    cli_expect_code(&run, 1);
    (void)cli_expect(&run, NULL,
                     "ERROR /job:worker/task:0 job: for 500 ms there has "
                     "been no link to /job:chief/task:0 at ");
}

PLUGIN_PROGRAM(plugin_text)
