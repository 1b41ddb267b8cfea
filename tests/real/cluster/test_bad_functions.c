/* Functions that take their process with them, and functions that never return. Workers
 * are processes of their own: this very program, started with a task as arguments. */
#include "tests/real/tasks.h"

#include <pthread.h>

enum { CLOSE_MS = 200 };

/* ---- functions ---- */

/* Ends the process the first time that anybody runs it: a file remembers. */
static int abort_once(mu_run *run, void *user)
{
    const char *path = NULL;
    size_t size = 0;
    int fd;

    (void)user;
    if (mu_value_get_string(mu_run_args(run), &path, &size) != 0)
        return mu_run_fail(run, -MU_EINVALID, "abort_once wants a path");
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0)
        abort();
    mu_run_return(run, mu_value_int(42));
    return 0;
}

static int abort_always(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    abort();
}

static int end_thread(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    pthread_exit(NULL);
}

static int never_return(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    while (pause() != 0)
        continue;
    return 0;
}

/* ---- processes ---- */

static int play_worker(char **argv)
{
    static const struct tasks_function functions[] = {
        {"abort_once", abort_once, 0},
        {"abort_always", abort_always, 0},
        {"end_thread", end_thread, 0},
        {"end_loop", end_thread, MU_FUNCTION_INLINE},
    };
    mu_node_options options;

    mu_node_options_init(&options);
    return tasks_play(argv, &options, functions, sizeof functions / sizeof functions[0]);
}

/* ---- two workers that die easily ---- */

struct fixture {
    struct nodes nodes;
    mu_coordinator *coordinator;
    pid_t workers[2];
    char path[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;

    assert_non_null(f);
    nodes_init(&f->nodes, 2, 0);
    for (int i = 0; i < 2; i++)
        f->workers[i] = tasks_start("worker", i, f->nodes.json);
    (void)snprintf(f->path, sizeof f->path, "/tmp/muster-abort-%d", (int)getpid());
    (void)unlink(f->path);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.attempts_max = 2;
    f->coordinator = nodes_coordinator(nodes_open_with(&f->nodes, &options));
    nodes_wait_log(&f->nodes, "/job:worker/task:0 takes closures");
    nodes_wait_log(&f->nodes, "/job:worker/task:1 takes closures");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    for (int i = 0; i < 2; i++) {
        (void)kill(f->workers[i], SIGKILL);
        (void)waitpid(f->workers[i], NULL, 0);
    }
    (void)unlink(f->path);
    free(f);
    return 0;
}

TEST_ON(test_closure_outlives_its_worker, struct fixture *f, setup, teardown)
{
    mu_value *path = mu_value_string(f->path);
    mu_coordinator_stats counts;
    mu_remote_value *value = NULL;
    mu_error error = {0};

    assert_int_equal(mu_coordinator_schedule(f->coordinator, "abort_once", path, SOON_MS,
                                             &error, &value),
                     0);
    if (mu_remote_value_fetch(value, SOON_MS, &error, NULL) != 0)
        fail_msg("%s", error.message);
    mu_coordinator_get_stats(f->coordinator, &counts);
    assert_int_equal(counts.finished, 1);
    assert_int_equal(counts.retried, 1);
    mu_value_free(path);
    mu_remote_value_free(value);
}

/* What kills every worker it meets is given up before it has met them all. */
static void expect_given_up(struct fixture *f, const char *function)
{
    mu_error error = {0};
    char words[128];

    assert_int_equal(mu_coordinator_schedule(f->coordinator, function, NULL, SOON_MS,
                                             &error, NULL),
                     0);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), -MU_EABORTED);
    (void)snprintf(
        words, sizeof words,
        "function \"%s\" lost its worker 2 times, last /job:worker/task:", function);
    assert_non_null(strstr(error.message, words));
    assert_int_equal(error.attempt, 2);
}

TEST_WITH(test_closure_that_kills_is_given_up, setup, teardown)
{
    expect_given_up(*state, "abort_always");
}

/* The signal that has ended a process; 0: it lives on. */
static int end_of(pid_t pid)
{
    int status = 0;

    for (int i = 0; i < SOON_MS && waitpid(pid, &status, WNOHANG) == 0; i++)
        nodes_pause();
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The process ends at once: its worker does not live on without a loop. */
TEST_ON(test_inline_function_that_ends_the_loop, struct fixture *f, setup, teardown)
{
    expect_given_up(f, "end_loop");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(end_of(f->workers[i]), SIGABRT);
        f->workers[i] = tasks_start("worker", i, f->nodes.json);
    }
}

/* It has failed, and the one thread of each worker is there for the next one. */
TEST_ON(test_function_that_ends_its_thread, struct fixture *f, setup, teardown)
{
    mu_value *path = mu_value_string(f->path);
    mu_error error = {0};

    for (int i = 0; i < 20; i++) {
        assert_int_equal(mu_coordinator_schedule(f->coordinator, "end_thread", NULL,
                                                 SOON_MS, &error, NULL),
                         0);
        assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error),
                         -MU_EINTERNAL);
        assert_int_equal(error.kind, MU_ERROR_FUNCTION);
        assert_non_null(strstr(error.message, "has ended its thread (pthread_exit)"));
    }
    close(open(f->path, O_CREAT | O_WRONLY, 0600));
    for (int i = 0; i < 20; i++)
        assert_int_equal(mu_coordinator_schedule(f->coordinator, "abort_once", path,
                                                 SOON_MS, &error, NULL),
                         0);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    mu_value_free(path);
}

/* ---- a function that does not end ---- */

/* In a process of its own, since what was left behind stays until the process ends. */
static int play_stuck(char **argv)
{
    struct nodes *nodes = calloc(1, sizeof *nodes);
    mu_coordinator *coordinator;
    mu_error error = {0};
    mu_node *worker;

    (void)argv;
    nodes_init(nodes, 1, 0);
    worker = nodes_open(nodes, "worker", 0);
    if (mu_node_register_function(worker, "never", never_return, NULL, 0) != 0 ||
        mu_node_serve(worker) != 0)
        _exit(2);
    coordinator = nodes_coordinator(nodes_open(nodes, "chief", 0));
    if (mu_coordinator_schedule(coordinator, "never", NULL, SOON_MS, &error, NULL) != 0)
        _exit(3);
    if (mu_coordinator_join(coordinator, 300, &error) != -MU_EDEADLINE ||
        strstr(error.message, "\"never\" runs on /job:worker/task:0 for ") == NULL)
        _exit(4);
    if (mu_node_close(worker, CLOSE_MS, &error) != -MU_EDEADLINE ||
        strstr(error.message, "function \"never\" on /job:worker/task:0 did not end") ==
            NULL)
        _exit(5);
    if (mu_coordinator_join(coordinator, 100, &error) != -MU_EDEADLINE ||
        strstr(error.message, "no worker is up") == NULL)
        _exit(6);
    _exit(0);
}

TEST(test_function_that_never_returns)
{
    pid_t pid = tasks_start("stuck", 0, "");

    assert_int_equal(tasks_end(&pid), 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "worker") == 0)
        return play_worker(argv);
    if (argc == 4 && strcmp(argv[1], "stuck") == 0)
        return play_stuck(argv);
    return tests_run(NULL, NULL);
}
