/* Plugins that end the process while they are loaded, take for ever, or are not what they
 * should be: each is named. They are compiled here, against the public headers alone. */
#include "tests/real/cli.h"

#include <sys/stat.h>

static struct cli run;
static char folder[64];

/* What its constructor or mu_plugin_open does is said by a variable. */
static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "MU_PLUGIN;\n"
    "static void act(const char *at)\n"
    "{\n"
    "    const char *what = getenv(\"PLUGIN_DOES\");\n"
    "    if (what == NULL || strncmp(what, at, strlen(at)) != 0)\n"
    "        return;\n"
    "    what += strlen(at);\n"
    "    if (strcmp(what, \"exit\") == 0)\n"
    "        exit(0);\n"
    "    if (strcmp(what, \"_exit\") == 0)\n"
    "        _exit(0);\n"
    "    if (strcmp(what, \"crash\") == 0)\n"
    "        *(volatile int *)8 = 1;\n"
    "    if (strcmp(what, \"abort\") == 0)\n"
    "        abort();\n"
    "    while (strcmp(what, \"hang\") == 0)\n"
    "        sleep(1);\n"
    "}\n"
    "__attribute__((constructor)) static void begin(void)\n"
    "{\n"
    "    act(\"constructor \");\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    (void)node; (void)user;\n"
    "    return 0;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    act(\"open \");\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

static const char data_text[] = "int mu_plugin_open[64] = {1};\n";

static const char newer_text[] =
    "const unsigned mu_plugin_api_version = 7;\n"
    "int mu_plugin_open(void *node);\n"
    "int mu_plugin_open(void *node) { (void)node; return 0; }\n";

static const char version_function_text[] =
    "unsigned mu_plugin_api_version(void);\n"
    "unsigned mu_plugin_api_version(void) { return 1; }\n"
    "int mu_plugin_open(void *node);\n"
    "int mu_plugin_open(void *node) { (void)node; return 0; }\n";

static int make_folder(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* `muster run` of a chief alone with that plugin; the exit code, and what is printed, as
 * "plugin \"...\"" and the words. */
static void load(const char *text, const char *does, const char *timeout_ms, int code,
                 const char *words)
{
    char variable[64];
    char plugin[96];
    char line[256];
    /* A sanitizer that takes a crash itself ends the process in a way of its own. */
    const char *const variables[] = {variable, "ASAN_OPTIONS=handle_segv=0",
                                     "TSAN_OPTIONS=handle_segv=0", NULL};

    (void)snprintf(variable, sizeof variable, "PLUGIN_DOES=%s", does);
    assert_int_equal(cli_compile(folder, text, plugin, sizeof plugin), 0);
    cli_start(&run, variables, "run", "--plugin", plugin, "--workers", "0", "--ps", "0",
              "--plugin-timeout-ms", timeout_ms, "--color", "never", NULL);
    cli_expect_code(&run, code);
    (void)snprintf(line, sizeof line, "plugin \"%s\"%s", plugin, words);
    if (words[0] != '\0')
        (void)cli_expect(&run, NULL, line);
    (void)unlink(plugin);
}

TEST(test_one_that_is_fine)
{
    load(plugin_text, "nothing", "60000", 0, "");
    assert_non_null(strstr(run.text, "loading plugin \""));
    assert_null(strstr(run.text, "while it was being loaded"));
}

TEST(test_exit_is_no_success)
{
    load(plugin_text, "constructor exit", "60000", 2,
         " ended the process while it was being loaded");
    load(plugin_text, "open exit", "60000", 2,
         " ended the process while it was being loaded");
    load(plugin_text, "constructor _exit", "60000", 2, "");
    (void)cli_expect(&run, NULL, "chief/0 ended while it was loading plugin \"/tmp/");
    (void)cli_expect(&run, NULL, " s: chief/0 ended while it was loading plugin \"/tmp/");
}

TEST(test_a_crash_is_named)
{
    load(plugin_text, "constructor crash", "60000", 128 + SIGSEGV,
         " crashed (SIGSEGV) while it was being loaded");
    load(plugin_text, "open abort", "60000", 128 + SIGABRT,
         " aborted (SIGABRT) while it was being loaded");
    assert_int_equal(run.code, 128 + SIGABRT);
}

TEST(test_a_hang_is_named_and_ended)
{
    load(plugin_text, "constructor hang", "500", 2, " is not loaded after ");
    assert_non_null(strstr(run.text, "(plugin_timeout_ms): the process ends"));
}

TEST(test_what_is_no_plugin)
{
    load(data_text, "", "60000", 2, ": \"mu_plugin_open\" is data: expected a function");
    load(newer_text, "", "60000", 2,
         " is made for version 7 of the plugin interface: this muster has version 1");
    load(version_function_text, "", "60000", 2,
         ": mu_plugin_api_version is a function: expected the number that MU_PLUGIN "
         "defines");
    assert_int_equal(run.code, 2);
}

/* What is left of a copy that was interrupted, wherever: an error, and not a signal. */
TEST(test_one_that_is_cut_short)
{
    char plugin[96];
    struct stat status;

    assert_int_equal(cli_compile(folder, plugin_text, plugin, sizeof plugin), 0);
    assert_int_equal(stat(plugin, &status), 0);
    for (unsigned eighths = 7; eighths > 0; eighths--) {
        off_t size = eighths == 7 ? 8192 : (off_t)(eighths * 1000);

        if (size >= status.st_size)
            continue;
        assert_int_equal(truncate(plugin, size), 0);
        cli_start(&run, NULL, "run", "--plugin", plugin, "--workers", "0", "--ps", "0",
                  "--color", "never", NULL);
        cli_expect_code(&run, 2);
        (void)cli_expect(&run, NULL, " does not load: it is cut short: it has ");
    }
    (void)unlink(plugin);
}

TEST_PROGRAM_WITH(make_folder, remove_folder)
