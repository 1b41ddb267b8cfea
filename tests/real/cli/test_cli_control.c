/* `muster run --control`: events and commands as JSON lines, and that nothing is left
 * when the commands end. Lines of tasks: python/tests/test_processes.py. */
#include "tests/real/cli.h"

static struct cli run;
static int commands = -1; /* writes the program's standard input */

enum { TASKS = 3 };

static const char *const tasks[TASKS] = {"ps/0", "worker/0", "worker/1"};

static void start_controlled(const char *restart_max)
{
    int own = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int ends[2];

    assert_true(own >= 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    (void)close(ends[0]);
    cli_start(&run, NULL, "run", "--control", "--transport", "ipc", "--restart",
              "on-failure", "--restart-max", restart_max, NULL);
    assert_int_equal(dup2(own, STDIN_FILENO), STDIN_FILENO);
    (void)close(own);
    commands = ends[1];
}

static void send_line(const char *line)
{
    size_t size = strlen(line);

    assert_int_equal(write(commands, line, size), size);
    assert_int_equal(write(commands, "\n", 1), 1);
}

static void close_commands(void)
{
    assert_int_equal(close(commands), 0);
    commands = -1;
}

/* The rest of the next event behind `from` that begins with these members. */
static const char *expect_event(const char *from, const char *members)
{
    char needle[160];

    (void)snprintf(needle, sizeof needle, "{\"event\":%s", members);
    return cli_expect(&run, from, needle);
}

static pid_t expect_running(const char *from, const char *task)
{
    char members[96];
    const char *at;

    (void)snprintf(members, sizeof members,
                   "\"task\",\"task\":\"%s\",\"status\":{\"pid\":", task);
    at = expect_event(from, members);
    (void)cli_expect(&run, at, "\"state\":\"running\"");
    return (pid_t)strtol(at, NULL, 10);
}

/* All tasks run; where their sockets are. */
static void expect_ready(pid_t *ret_pids, char *ret_folder, size_t size)
{
    static const char before[] = "\"ready\",\"cluster\":{\"chief\":[\"ipc://";
    const char *folder = expect_event(NULL, before);

    (void)cli_expect(&run, folder, "/chief-0\"]");
    (void)snprintf(ret_folder, size, "%.*s", (int)strcspn(folder, "\""), folder);
    *strrchr(ret_folder, '/') = '\0';
    assert_int_equal(access(ret_folder, F_OK), 0);
    for (size_t i = 0; i < TASKS; i++)
        ret_pids[i] = expect_running(NULL, tasks[i]);
    assert_null(strstr(run.text, "\"task\":\"chief/0\""));
}

static void expect_end(int code, const pid_t *pids, const char *folder)
{
    char finished[64];

    cli_expect_code(&run, code);
    (void)snprintf(finished, sizeof finished, "\"finished\",\"exit_code\":%d,", code);
    (void)expect_event(NULL, finished);
    for (size_t i = 0; i < TASKS; i++)
        if (kill(pids[i], 0) == 0 || errno != ESRCH)
            fail_msg("%s is left", tasks[i]);
    assert_int_equal(access(folder, F_OK), -1);
    if (commands >= 0)
        close_commands();
}

/* The parent has ended: the tasks are killed, whatever they do. */
TEST(test_end_of_commands_ends_all)
{
    pid_t pids[TASKS];
    char folder[128];

    start_controlled("1");
    expect_ready(pids, folder, sizeof folder);
    assert_int_equal(kill(pids[2], SIGSTOP), 0);
    close_commands();
    expect_end(128 + SIGKILL, pids, folder);
}

TEST(test_bad_lines_are_refused)
{
    static const struct {
        const char *line;
        const char *refusal;
    } rows[] = {
        {"stop", "\"line\":\"stop\",\"message\":\"expected {"},
        {"", "\"line\":\"\",\"message\":\"expected {"},
        {"[\"stop\"]", "\"message\":\"expected {"},
        {"{\"command\": \"stop\"} x", "\"message\":\"expected {"},
        {"{\"command\": \"dance\"}", "\"message\":\"expected {"},
        {"{\"command\": \"stop\", \"leave_ms\": -1}", "\"message\":\"leave_ms: expected"},
        {"{\"command\": \"stop\", \"kill_ms\": 1e9}", "\"message\":\"kill_ms: expected"},
        {"{\"command\": \"stop\", \"kill_ms\": \"1\"}",
         "\"message\":\"kill_ms: expected"},
    };
    const char *at = run.text;
    char long_line[700];
    pid_t pids[TASKS];
    char folder[128];

    start_controlled("1");
    expect_ready(pids, folder, sizeof folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        send_line(rows[i].line);
        at = expect_event(at, "\"refused\",");
        (void)cli_expect(&run, at, rows[i].refusal);
    }
    (void)snprintf(long_line, sizeof long_line, "%699s", "{\"command\": \"stop\"}");
    send_line(long_line);
    (void)expect_event(at, "\"refused\",\"line\":\"    ");
    assert_null(strstr(run.text, "\"state\":\"ended\""));
    send_line("{\"command\": \"stop\"}");
    expect_end(0, pids, folder);
}

/* It is restarted once, and then given up; the others run until they are stopped. */
TEST(test_killed_task)
{
    const char *at;
    pid_t pids[TASKS];
    char folder[128];

    start_controlled("1");
    expect_ready(pids, folder, sizeof folder);
    assert_int_equal(kill(pids[1], SIGKILL), 0);
    at = expect_event(NULL, "\"task\",\"task\":\"worker/0\",\"status\":{\"pid\":null,");
    at = cli_expect(&run, at,
                    "\"state\":\"restarting\",\"restarts\":1,"
                    "\"exit_code\":137,"
                    "\"end\":\"was killed by signal 9 (Killed)\"}}");
    pids[1] = expect_running(at, "worker/0");
    assert_int_equal(kill(pids[1], SIGKILL), 0);
    (void)cli_expect(&run, at,
                     "\"level\":\"error\",\"message\":\"worker/0 was killed by "
                     "signal 9 (Killed) and is not started again");
    (void)cli_expect(&run, at, "\"state\":\"ended\",\"restarts\":1,");
    send_line("{\"command\": \"stop\"}");
    expect_end(0, pids, folder);
    at = expect_event(NULL, "\"line\",\"task\":\"worker/1\",\"stream\":\"err\",");
    assert_non_null(strstr(at, "/job:worker/task:1"));
}

/* The time that tasks have for their end is that of the most urgent command. */
TEST(test_stop_that_is_more_urgent)
{
    pid_t pids[TASKS];
    uint64_t began_ms;
    char folder[128];

    start_controlled("1");
    expect_ready(pids, folder, sizeof folder);
    (void)cli_expect(&run, NULL, "/job:worker/task:1 node: is up");
    assert_int_equal(kill(pids[2], SIGSTOP), 0);
    began_ms = cli_now_ms();
    send_line("{\"command\": \"stop\", \"leave_ms\": 600000}");
    send_line("{\"command\": \"stop\", \"leave_ms\": 0, \"kill_ms\": 600000}");
    send_line("{\"command\": \"stop\", \"leave_ms\": 0, \"kill_ms\": 100}");
    expect_end(5, pids, folder);
    assert_true(cli_now_ms() - began_ms < 10000);
    (void)expect_event(NULL, "\"task\",\"task\":\"worker/1\",\"status\":{\"pid\":null,");
}

TEST(test_what_cannot_begin)
{
    cli_start(&run, NULL, "run", "--control", "--counts", "gpu", NULL);
    cli_expect_code(&run, 2);
    (void)expect_event(NULL, "\"finished\",\"exit_code\":2,\"message\":\"--counts: ");
}

TEST_PROGRAM()
