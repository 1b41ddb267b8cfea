/* `muster run` and what the machine lets processes have: a limit that is too low is said
 * before anything starts, and one that may be raised is. */
#define _GNU_SOURCE /* setgroups */
#include "tests/real/cli.h"

#include <grp.h>
#include <sys/resource.h>

enum { NOBODY = 65534, TASKS_THREADS = 302 * 4, CANNOT = 126 };

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

TEST(test_too_few_open_files_are_refused_before_the_start)
{
    assert_int_equal(run_with("-n 200", "--workers 300"), 1);
    assert_string_equal(text,
                        "muster run: 302 tasks need 970 open files in a process, and at "
                        "most 200 are allowed (ulimit -Hn): expected at most 45 tasks, "
                        "or a higher limit\n");
}

/* In the child. Root has no limit of threads: then it is somebody else who runs it. */
static void be_user_with(rlim_t threads, bool may_be_root)
{
    const struct rlimit files = {200, 200};
    const struct rlimit processes = {threads, threads};

    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        _exit(CANNOT);
    if (geteuid() == 0 && !may_be_root &&
        (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(CANNOT);
    if (setrlimit(RLIMIT_NPROC, &processes) != 0)
        _exit(CANNOT);
}

/* `muster run --workers 300`, which may have 200 open files, in `text`; the exit code.
 * The program is opened before: the user of the child may not be let into its folder. */
static int run_of_user(rlim_t threads, bool may_be_root)
{
    char name[] = "muster";
    char verb[] = "run";
    char option[] = "--workers";
    char number[] = "300";
    char *const argv[] = {name, verb, option, number, NULL};
    int program = open(cli_variable("MUSTER_BIN"), O_RDONLY);
    size_t size = 0;
    ssize_t got;
    int ends[2];
    int status;
    pid_t pid;

    assert_true(program >= 0);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        be_user_with(threads, may_be_root);
        (void)fexecve(program, argv, environ);
        _exit(CANNOT);
    }
    (void)close(ends[1]);
    (void)close(program);
    while (size < sizeof text - 1 &&
           (got = read(ends[0], text + size, sizeof text - 1 - size)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Three of each node's own, and one that runs functions. */
TEST(test_too_few_threads_are_refused_before_the_start)
{
    int code = run_of_user(TASKS_THREADS - 1, false);

    if (code == CANNOT)
        skip(); /* root here may not become somebody else */
    assert_int_equal(code, 1);
    assert_string_equal(text,
                        "muster run: 302 tasks have 1208 threads, and this user may have "
                        "1207 (ulimit -u): expected fewer tasks, or a higher limit\n");
}

/* The next limit is that of open files. */
TEST(test_enough_threads_are_not_refused)
{
    int code = run_of_user(TASKS_THREADS, false);

    if (code == CANNOT)
        skip();
    assert_int_equal(code, 1);
    assert_non_null(strstr(text, "302 tasks need 970 open files"));
}

TEST(test_root_has_no_limit_of_threads)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(run_of_user(64, true), 1);
    assert_non_null(strstr(text, "302 tasks need 970 open files"));
}

TEST(test_soft_limit_of_open_files_is_raised)
{
    char arguments[512];

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

TEST(test_number_of_workers_has_a_bound)
{
    assert_int_equal(run_with("-n 64", "--workers 1001"), 2);
    assert_non_null(strstr(text, "expected a whole number of 0 to 1000, got \"1001\""));
}

TEST_PROGRAM()
