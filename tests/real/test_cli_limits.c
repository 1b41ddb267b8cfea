/* `muster run` and what the machine lets processes have: a limit that is too low is said
 * before anything starts, and one that may be raised is. */
#include "tests/real/cli.h"

static char text[1 << 16];

/* Run it in a shell with a limit of open files; the exit code, output in `text`. */
static int run_with(const char *limit, const char *arguments)
{
    char command[1024];
    FILE *pipe;
    int status;

    (void)snprintf(command, sizeof command, "ulimit %s && exec '%s' run %s 2>&1", limit,
                   cli_variable("MUSTER_BIN"), arguments);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_too_few_open_files_are_refused_before_the_start(void **state)
{
    (void)state;
    assert_int_equal(run_with("-n 200", "--workers 300"), 1);
    assert_string_equal(text,
                        "muster run: 302 tasks need 668 open files in a process, and at "
                        "most 200 are allowed (ulimit -Hn): expected at most 68 tasks, "
                        "or a higher limit\n");
}

static void test_soft_limit_of_open_files_is_raised(void **state)
{
    char arguments[512];

    (void)state;
    (void)snprintf(arguments, sizeof arguments,
                   "--workers 40 --ps 1 --log-level warn --plugin '%s/counter.so' --set "
                   "closures=400",
                   cli_variable("MUSTER_EXAMPLES"));
    if (run_with("-Sn 64", arguments) != 0 ||
        strstr(text, "the counter is 400 after 400 closures") == NULL) {
        (void)fprintf(stderr, "%s", text);
        fail_msg("forty workers did not start with a limit that can be raised");
    }
}

static void test_number_of_workers_has_a_bound(void **state)
{
    (void)state;
    assert_int_equal(run_with("-n 64", "--workers 1001"), 2);
    assert_non_null(strstr(text, "expected a whole number of 0 to 1000, got \"1001\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_few_open_files_are_refused_before_the_start),
        cmocka_unit_test(test_soft_limit_of_open_files_is_raised),
        cmocka_unit_test(test_number_of_workers_has_a_bound),
    };

    return cmocka_run_group_tests_name("cli limits", tests, NULL, NULL);
}
