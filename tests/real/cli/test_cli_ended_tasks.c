/* `muster run` knows that it will not start a process again: what waits for that task
 * fails with the reason, and the run ends. All waits of the plugin are without a
 * timeout. */
#include "tests/real/cli.h"

static struct cli run;
static char folder[64];
static char plugin[96];

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
    "    if (strcmp(mu_node_task(node), \"/job:worker/task:1\") == 0)\n"
    "        raise(SIGKILL);\n"
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

static int compile(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    return cli_compile(folder, plugin_text, plugin, sizeof plugin);
}

static int clean(void **state)
{
    (void)state;
    (void)unlink(plugin);
    return rmdir(folder);
}

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

static void test_independent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof independents / sizeof independents[0]; i++) {
        cli_start(&run, NULL, "run", "--mode", "independent", "--chief",
                  independents[i].chief, "--workers", "3", "--ps", "1", "--plugin",
                  plugin, "--set", "do=meet", "--set", independents[i].dies, "--set",
                  independents[i].meets, "--log-level", "warn", "--color", "never", NULL);
        expect_end(independents[i].code, independents[i].reason);
    }
}

/* Given up after so many restarts, which is the same. */
static void test_given_up(void **state)
{
    (void)state;
    cli_start(&run, NULL, "run", "--mode", "independent", "--workers", "2", "--ps", "0",
              "--plugin", plugin, "--set", "do=meet", "--set", "dies=/job:worker/task:1",
              "--set", "meets=1", "--restart", "on-failure", "--restart-max", "1",
              "--log-level", "warn", "--color", "never", NULL);
    expect_end(1, "/job:worker/task:1 was killed by signal 9 (Killed)");
    (void)cli_expect(&run, NULL, "given up after 1 restarts in a row");
}

static void test_closures_without_workers(void **state)
{
    (void)state;
    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "0", "--plugin", plugin,
              "--set", "do=schedule", "--log-level", "warn", "--color", "never", NULL);
    expect_end(1, "no worker is left: /job:worker/task:");
}

static void test_barrier_of_a_program(void **state)
{
    (void)state;
    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "0", "--plugin", plugin,
              "--set", "do=barrier", "--log-level", "warn", "--color", "never", NULL);
    expect_end(1, "/job:worker/task:1 was killed by signal 9 (Killed), and is not "
               "started again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_independent),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_closures_without_workers),
        cmocka_unit_test(test_barrier_of_a_program),
    };

    return cmocka_run_group_tests_name("cli ended tasks", tests, compile, clean);
}
