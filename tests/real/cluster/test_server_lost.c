/* A parameter server is killed and does not come back: whatever the chief's program does
 * with it then says so within moments, and the chief ends as one that wants to be started
 * again. The plugin is compiled here, against the public headers alone. */
#include "tests/real/cli.h"
#include "tests/real/files.h"

#include <stdint.h>

enum {
    LOST_MS = 500,   /* server_lost_ms */
    QUICK_MS = 15000 /* the default of other limits is four times a minute */
};

static struct cli run;
static char folder[64];
static char plugin[96];

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "static const uint64_t dims[1] = {4};\n"
    "static const float ones[4] = {1, 1, 1, 1};\n"
    "static mu_variable *w;\n"
    "static int open_w(mu_node *node, unsigned flags, mu_error *error)\n"
    "{\n"
    "    mu_variable_spec spec = {.name = \"w\", .dtype = MU_F32, .rank = 1,\n"
    "                             .dims = dims, .flags = flags};\n"
    "    return w != NULL ? 0 : mu_variable_open(node, &spec, 20000, error, &w);\n"
    "}\n"
    "static int look(mu_run *run, void *user)\n"
    "{\n"
    "    float data[4];\n"
    "    mu_error error;\n"
    "    int rv = open_w(mu_run_node(run), MU_VARIABLE_EXISTING, &error);\n"
    "    (void)user;\n"
    "    if (rv == 0)\n"
    "        rv = mu_variable_read(w, data, sizeof data, -1, &error);\n"
    "    return rv == 0 ? 0 : mu_run_fail_with(run, &error);\n"
    "}\n"
    "static int add(mu_run *run, void *user)\n"
    "{\n"
    "    mu_error error;\n"
    "    int rv = open_w(mu_run_node(run), MU_VARIABLE_EXISTING, &error);\n"
    "    (void)user;\n"
    "    if (rv != 0)\n"
    "        return mu_run_fail_with(run, &error);\n"
    "    return mu_run_add(run, w, ones, sizeof ones);\n"
    "}\n"
    "static int call(mu_coordinator *c, const char *function, mu_error *error)\n"
    "{\n"
    "    mu_closure_options options;\n"
    "    int rv;\n"
    "    mu_closure_options_init(&options);\n"
    "    options.flags = MU_CLOSURE_EFFECT_ONCE;\n"
    "    rv = mu_coordinator_schedule_with(c, function, NULL, &options, -1, error,\n"
    "                                      NULL);\n"
    "    return rv == 0 ? mu_coordinator_join(c, -1, error) : rv;\n"
    "}\n"
    "static int once(mu_node *node, mu_coordinator *c, const char *what,\n"
    "                mu_error *error)\n"
    "{\n"
    "    float data[4];\n"
    "    mu_checkpoint_options options;\n"
    "    mu_variable_spec spec = {.name = \"w\", .dtype = MU_F32, .rank = 1,\n"
    "                             .dims = dims};\n"
    "    mu_variable *other;\n"
    "    int rv;\n"
    "    if (strcmp(what, \"read\") == 0)\n"
    "        return mu_variable_read(w, data, sizeof data, -1, error);\n"
    "    if (strcmp(what, \"open\") == 0) {\n"
    "        rv = mu_variable_open(node, &spec, -1, error, &other);\n"
    "        if (rv == 0)\n"
    "            mu_variable_close(other);\n"
    "        return rv;\n"
    "    }\n"
    "    if (strcmp(what, \"save\") == 0) {\n"
    "        mu_checkpoint_options_init(&options);\n"
    "        options.directory = mu_node_get_setting(node, \"folder\");\n"
    "        return mu_checkpoint_save(&options, 1, &w, 1, NULL, error, NULL);\n"
    "    }\n"
    "    return call(c, what, error);\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    const char *what = mu_node_get_setting(node, \"do\");\n"
    "    mu_coordinator *c = NULL;\n"
    "    mu_error error;\n"
    "    int rv = open_w(node, 0, &error);\n"
    "    (void)user;\n"
    "    if (rv == 0)\n"
    "        rv = mu_coordinator_open(node, 20000, &error, &c);\n"
    "    if (rv == 0)\n"
    "        rv = once(node, c, what, &error);\n"
    "    printf(\"ready %d\\n\", rv);\n"
    "    fflush(stdout);\n"
    "    while (rv == 0)\n"
    "        rv = once(node, c, what, &error);\n"
    "    printf(\"raised %s kind %d of %s, exit code %d: %s\\n\", mu_err_name(rv),\n"
    "           error.kind, error.task, mu_restart_exit_code(&error), error.message);\n"
    "    mu_coordinator_close(c);\n"
    "    return rv;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    (void)mu_node_register_function(node, \"look\", look, NULL, 0);\n"
    "    (void)mu_node_register_function(node, \"add\", add, NULL, 0);\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
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
    files_remove_folder(folder);
    return 0;
}

/* The exit code of the one that is to be started again; both names of it are heard. */
static void assert_loss_is_said_by(const char *what)
{
    static const char *const variables[] = {"MUSTER_RESTART_EXIT_CODE=42", NULL};
    char setting[64];
    char kept[96];
    char lost_ms[16];
    uint64_t killed_ms;
    pid_t server;

    (void)snprintf(setting, sizeof setting, "do=%s", what);
    (void)snprintf(kept, sizeof kept, "folder=%s", folder);
    (void)snprintf(lost_ms, sizeof lost_ms, "%d", LOST_MS);
    cli_start(&run, variables, "run", "--plugin", plugin, "--set", setting, "--set", kept,
              "--workers", "1", "--ps", "1", "--server-lost-ms", lost_ms, "--color",
              "never", NULL);
    server = cli_task_pid(&run, NULL, "ps/0");
    (void)cli_expect(&run, NULL, "ready 0\n");
    assert_int_equal(kill(server, SIGKILL), 0);
    killed_ms = cli_now_ms();
    (void)cli_expect(&run, NULL,
                     "raised EUNAVAILABLE kind 4 of /job:ps/task:0, exit code 42: ");
    assert_true(cli_now_ms() - killed_ms < QUICK_MS);
    cli_expect_code(&run, 42);
    (void)cli_expect(&run, NULL,
                     "the program of /job:chief/task:0 ended with EUNAVAILABLE: ");
}

TEST(test_read)
{
    assert_loss_is_said_by("read");
}

TEST(test_open)
{
    assert_loss_is_said_by("open");
}

TEST(test_checkpoint)
{
    assert_loss_is_said_by("save");
}

TEST(test_call_in_a_function)
{
    assert_loss_is_said_by("look");
}

TEST(test_writes_of_a_function)
{
    assert_loss_is_said_by("add");
}

TEST_PROGRAM_WITH(compile, clean)
