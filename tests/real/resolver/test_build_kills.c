/* A per-worker value whose function ends its worker's process, each time: the workers are
 * lost under it a few times, then those who use it are told, and everything else runs. */
#include "tests/real/plugin.h"

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <signal.h>\n"
    "#include <stdio.h>\n"
    "#include <unistd.h>\n"
    "static int poison(mu_run *run, void *user)\n"
    "{\n"
    "    (void)run; (void)user;\n"
    "    kill(getpid(), SIGKILL);\n"
    "    pause();\n"
    "    return 0;\n"
    "}\n"
    "static int fine(mu_run *run, void *user)\n"
    "{\n"
    "    (void)run; (void)user;\n"
    "    return 0;\n"
    "}\n"
    "static int call(mu_coordinator *c, mu_per_worker *value, mu_error *error)\n"
    "{\n"
    "    mu_value *args = value == NULL ? NULL : mu_value_per_worker(value);\n"
    "    mu_remote_value *result = NULL;\n"
    "    int rv = mu_coordinator_schedule(c, \"fine\", args, -1, error, &result);\n"
    "    mu_value_free(args);\n"
    "    if (rv == 0)\n"
    "        rv = mu_remote_value_fetch(result, 25000, error, NULL);\n"
    "    mu_remote_value_free(result);\n"
    "    return rv;\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    mu_coordinator *c;\n"
    "    mu_per_worker *value;\n"
    "    mu_error error = {0};\n"
    "    int rv = mu_coordinator_open(node, 20000, &error, &c);\n"
    "    (void)user;\n"
    "    if (rv == 0)\n"
    "        rv = mu_per_worker_open(c, \"poison\", NULL, 20000, &error, &value);\n"
    "    if (rv != 0)\n"
    "        return rv;\n"
    "    rv = call(c, NULL, &error);\n"
    "    printf(\"others: %s\\n\", mu_err_name(rv));\n"
    "    rv = call(c, value, &error);\n"
    "    printf(\"users: %s kind %d: %s\\n\", mu_err_name(rv), error.kind,\n"
    "           error.message);\n"
    "    (void)mu_coordinator_join(c, 20000, NULL);\n"
    "    rv = call(c, NULL, &error);\n"
    "    printf(\"after: %d\\n\", rv);\n"
    "    mu_per_worker_close(value);\n"
    "    mu_coordinator_close(c);\n"
    "    return 0;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    (void)mu_node_register_function(node, \"poison\", poison, NULL, 0);\n"
    "    (void)mu_node_register_function(node, \"fine\", fine, NULL, 0);\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

static size_t count_of(const char *text, const char *needle)
{
    size_t count = 0;

    for (; (text = strstr(text, needle)) != NULL; text++)
        count++;
    return count;
}

TEST(test_a_build_that_kills_is_given_up)
{
    cli_start(&run, NULL, "run", "--plugin", plugin, "--workers", "1", "--ps", "0",
              "--restart", "on-failure", "--attempts-max", "3", "--color", "never", NULL);
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL,
                     "users: EABORTED kind 2: per-worker value 1, made by "
                     "function \"poison\", lost its worker 3 times");
    (void)cli_expect(&run, NULL, "after: 0\n");
    assert_int_equal(count_of(run.text, "was killed by signal 9"), 3);
}

PLUGIN_PROGRAM(plugin_text)
