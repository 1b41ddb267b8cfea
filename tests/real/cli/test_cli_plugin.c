/* What plugins' programs and functions come to: exit codes, progress, the end. The plugin
 * is compiled here, as its author would: against the public headers alone. */
#define _XOPEN_SOURCE 700 /* posix_openpt() */

#include "tests/real/needs.h"
#include "tests/real/plugin.h"

#include <sys/ioctl.h>

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "static int stuck(mu_run *run, void *user)\n"
    "{\n"
    "    (void)run; (void)user;\n"
    "    printf(\"stuck begins\\n\");\n"
    "    for (;;)\n"
    "        sleep(1);\n"
    "}\n"
    "static int wait_for_stuck(mu_node *node)\n"
    "{\n"
    "    mu_coordinator *c;\n"
    "    int rv = mu_coordinator_open(node, 20000, NULL, &c);\n"
    "    if (rv == 0)\n"
    "        rv = mu_coordinator_schedule(c, \"stuck\", NULL, -1, NULL, NULL);\n"
    "    if (rv == 0)\n"
    "        rv = mu_coordinator_join(c, -1, NULL);\n"
    "    printf(\"join returned %s\\n\", mu_err_name(rv));\n"
    "    mu_coordinator_close(c);\n"
    "    return rv;\n"
    "}\n"
    "static int progress(void)\n"
    "{\n"
    "    for (int i = 1; i <= 100; i++) {\n"
    "        printf(\"step %d of 100\\r\", i);\n"
    "        if (i == 50)\n"
    "            printf(\"half\\n\");\n"
    "        fflush(stdout);\n"
    "        usleep(2000);\n"
    "    }\n"
    "    return 0;\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    const char *what = mu_node_get_setting(node, \"do\");\n"
    "    (void)user;\n"
    "    if (strcmp(what, \"fail\") == 0)\n"
    "        return -MU_EDATALOSS;\n"
    "    if (strcmp(what, \"progress\") == 0)\n"
    "        return progress();\n"
    "    if (strcmp(what, \"stuck function\") == 0)\n"
    "        return wait_for_stuck(node);\n"
    "    printf(\"program begins\\n\");\n"
    "    while (strcmp(what, \"stuck program\") == 0)\n"
    "        sleep(1);\n"
    "    return 0;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    const char *what = mu_node_get_setting(node, \"do\");\n"
    "    if (what == NULL)\n"
    "        return -MU_EINVALID;\n"
    "    (void)mu_node_register_function(node, \"stuck\", stuck, NULL, 0);\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

static void start(const char *what, const char *grace_ms)
{
    char setting[64];

    (void)snprintf(setting, sizeof setting, "do=%s", what);
    cli_start(&run, NULL, "run", "--plugin", plugin, "--set", setting, "--workers", "1",
              "--ps", "1", "--grace-ms", grace_ms, "--color", "never", NULL);
}

static size_t count_of(const char *text, const char *needle)
{
    size_t count = 0;

    for (; (text = strstr(text, needle)) != NULL; text++)
        count++;
    return count;
}

/* ---- the job ends ---- */

TEST(test_job_that_ends_well)
{
    start("nothing", "10000");
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "chief/0  | program begins\n");
    (void)cli_expect(&run, NULL, "muster   | chief/0 ended with exit code 0\n");
    (void)cli_expect(&run, NULL, "muster   | ps/0 ended with exit code 0\n");
    (void)cli_expect(&run, NULL, "muster   | worker/0 ended with exit code 0\n");
}

TEST(test_job_that_fails)
{
    start("fail", "10000");
    cli_expect_code(&run, 1);
    (void)cli_expect(&run, NULL, "the program of /job:chief/task:0 ended with EDATALOSS");
    (void)cli_expect(&run, NULL, "muster   | chief/0 ended with exit code 1\n");
    (void)cli_expect(&run, NULL, "muster   | ps/0 ended with exit code 1\n");
    (void)cli_expect(&run, NULL, "muster   | worker/0 ended with exit code 1\n");
}

/* Tasks that end because the job has are not started again, whatever the policy. */
TEST(test_end_of_the_job_is_no_reason_to_restart)
{
    static const char *const variables[] = {"MUSTER_RESTART=always", NULL};

    cli_start(&run, variables, "run", "--plugin", plugin, "--set", "do=nothing", NULL);
    cli_expect_code(&run, 0);
    assert_int_equal(count_of(run.text, "muster   | worker/0 pid "), 1);
    assert_int_equal(count_of(run.text, "muster   | worker/1 pid "), 1);
}

TEST(test_plugin_that_refuses)
{
    cli_start(&run, NULL, "run", "--plugin", plugin, NULL);
    cli_expect_code(&run, 2);
    (void)cli_expect(&run, NULL, "mu_plugin_open returned -3");
}

/* Both values of a variable's list arrive; the last setting of a key counts. */
TEST(test_lists_in_variables)
{
    char plugins[128];
    const char *const variables[] = {plugins, "MUSTER_SET=do=fail;other=1;do=x", NULL};

    (void)snprintf(plugins, sizeof plugins, "MUSTER_PLUGIN=%s", plugin);
    cli_start(&run, variables, "run", "--workers", "0", "--ps", "0", NULL);
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "program begins");
}

/* ---- what does not end ---- */

TEST(test_function_that_does_not_end)
{
    const char *from;

    start("stuck function", "400");
    from = cli_expect(&run, NULL, "stuck begins");
    cli_kill(&run, SIGINT);
    cli_expect_code(&run, 5);
    (void)cli_expect(&run, from, "function \"stuck\" on /job:worker/task:0 did not end");
    (void)cli_expect(&run, from, "worker/0 ended with exit code 5");
    (void)cli_expect(&run, from, "join returned ECLOSED");
    (void)cli_expect(&run, from, "chief/0 ended with exit code 143");
}

TEST(test_program_that_does_not_end)
{
    start("stuck program", "400");
    (void)cli_expect(&run, NULL, "program begins");
    cli_kill(&run, SIGTERM);
    cli_expect_code(&run, 5);
    (void)cli_expect(&run, NULL, "the program of /job:chief/task:0 did not end");
    (void)cli_expect(&run, NULL, "chief/0 ended with exit code 5");
}

/* ---- where a plugin is ---- */

/* The loader alone would not find it. */
TEST(test_plugin_in_the_current_folder)
{
    char *before = getcwd(NULL, 0);

    assert_non_null(before);
    assert_int_equal(chdir(folder), 0);
    cli_start(&run, NULL, "run", "--plugin", "plugin.so", "--set", "do=nothing",
              "--workers", "0", "--ps", "0", NULL);
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "program begins\n");
    cli_start(&run, NULL, "node", "--mode", "local", "--plugin", "plugni.so", NULL);
    cli_expect_code(&run, 2);
    (void)cli_expect(&run, NULL, "\"plugni.so\" does not load: there is no such file");
    (void)cli_expect(&run, NULL, folder);
    assert_int_equal(chdir(before), 0);
    free(before);
}

/* A program that prints its own lines, and nothing else to read. */
TEST(test_only_the_program_is_heard)
{
    static const char *const variables[] = {"MUSTER_LOG_LEVEL=", NULL};

    cli_start(&run, variables, "run", "--plugin", plugin, "--set", "do=nothing",
              "--workers", "2", "--ps", "1", "--color", "never", NULL);
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "chief/0  | program begins\n");
    (void)cli_expect(&run, NULL, "muster: ended with exit code 0 after ");
    if (count_of(run.text, "\n") > 4)
        fail_msg("more than four lines:\n%s", run.text);
}

/* ---- progress ---- */

TEST(test_progress_in_a_pipe)
{
    start("progress", "10000");
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "chief/0  | half\n");
    (void)cli_expect(&run, NULL, "chief/0  | step 1 of 100\n");
    (void)cli_expect(&run, NULL, "chief/0  | step 100 of 100\n");
    assert_true(count_of(run.text, "step") < 10);
    assert_null(strchr(run.text, '\r'));
}

/* On a terminal the line is cleared before anything else is written there, and steps are
 * shown as they come. */
TEST(test_progress_on_a_terminal)
{
    char *arguments[] = {"muster",    "run", "--plugin", plugin, "--set", "do=progress",
                         "--workers", "0",   "--ps",     "0",    NULL};
    const struct winsize size = {.ws_row = 25, .ws_col = 60};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    int other;

    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        needs_skip_test("there are no pseudo-terminals");
    other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    if (other < 0)
        needs_skip_test("/dev/pts is not mounted");
    assert_int_equal(ioctl(other, TIOCSWINSZ, &size), 0);
    assert_int_equal(fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
    run = (struct cli){.fd = terminal, .code = -1};
    run.pid = cli_fork(other, NULL, arguments);
    cli_expect_code(&run, 0);
    (void)close(other);
    (void)cli_expect(&run, NULL, "\r\033[2K\033[36m");
    assert_true(count_of(run.text, "step") > 20);
    (void)cli_expect(&run, NULL, "step 100 of 100");
    (void)cli_expect(&run, cli_expect(&run, NULL, "half"), "\r\033[2K");
}

PLUGIN_PROGRAM(plugin_text)
