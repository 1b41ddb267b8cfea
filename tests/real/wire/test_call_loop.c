/* Calls that run a loop on the program's thread leave its signals as they were: what they
 * write to may have hung up, and SIGPIPE is not to end the program. */
#include "node/call_loop.h"
#include "node/discovery/loop_query.h"
#include "tests/real/nodes.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

static mu_error error;
static unsigned broken_writes;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals = 1;
}

/* The end of a pipe that nobody reads: a write raises SIGPIPE on this thread. */
static void write_to_nobody(void)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(close(ends[1]), 0);
    broken_writes++;
}

static bool is_blocked(void)
{
    sigset_t now;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, SIGPIPE) == 1;
}

static bool is_pending(void)
{
    sigset_t pending;

    assert_int_equal(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE) == 1;
}

static int run(void *owner, struct mu__requests *notes, mu_error *ret_error)
{
    (void)owner;
    (void)notes;
    (void)ret_error;
    write_to_nobody();
    return 0;
}

static int call(void)
{
    const struct mu__loop_query_config config = {
        .run = run, .what = MU__QUERY_RESOLVE, .limits.timeout_ms = SOON_MS};
    struct mu__query_result resolved;

    return mu__loop_query_call(&config, &error, &resolved);
}

static int set_up(void **state)
{
    (void)state;
    broken_writes = 0;
    signals = 0;
    return signal(SIGPIPE, on_signal) == SIG_ERR;
}

static void test_call(void **state)
{
    (void)state;
    assert_int_equal(call(), 0);
    assert_int_equal(broken_writes, 1);
    assert_int_equal(signals, 0);
    assert_false(is_blocked());
    assert_false(is_pending());
}

/* One that was there before is the program's. */
static void test_pending_one_stays(void **state)
{
    sigset_t before;
    sigset_t pipe;
    int number;

    (void)state;
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipe, &before), 0);
    assert_int_equal(pthread_kill(pthread_self(), SIGPIPE), 0);
    assert_int_equal(call(), 0);
    assert_true(is_blocked());
    assert_true(is_pending());
    assert_int_equal(signals, 0);
    assert_int_equal(sigwait(&pipe, &number), 0);
    assert_int_equal(call(), 0);
    assert_false(is_pending());
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* ---- Leaving a loop ---- */

static struct {
    pthread_mutex_t lock;       /* guards all */
    pthread_cond_t changed;
    bool is_done;
    bool was_here;              /* on the thread of the call */
    bool takes_signals;
    pthread_t caller;
} left = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_left(void *arg)
{
    sigset_t blocked;

    (void)arg;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    (void)pthread_mutex_lock(&left.lock);
    left.is_done = true;
    left.was_here = pthread_equal(pthread_self(), left.caller) != 0;
    left.takes_signals = sigismember(&blocked, SIGTERM) != 1;
    (void)pthread_cond_broadcast(&left.changed);
    (void)pthread_mutex_unlock(&left.lock);
}

static void on_end(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, NULL);
}

/* What is left in it takes `takes_ms`. */
static void leave(uint64_t takes_ms, uint64_t timeout_ms)
{
    static uv_loop_t loop;
    static uv_timer_t timer;

    left.is_done = false;
    left.caller = pthread_self();
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &timer), 0);
    assert_int_equal(uv_timer_start(&timer, on_end, takes_ms, 0), 0);
    mu__call_leave(&loop, timeout_ms, on_left, NULL);
    (void)pthread_mutex_lock(&left.lock);
    while (!left.is_done)
        (void)pthread_cond_wait(&left.changed, &left.lock);
    (void)pthread_mutex_unlock(&left.lock);
}

/* In time it is the caller's; else that of a thread which takes no signals. */
static void test_leaving(void **state)
{
    (void)state;
    leave(1, SOON_MS);
    assert_true(left.was_here);
    leave(1000, 1);
    assert_false(left.was_here);
    assert_false(left.takes_signals);
}

static char cluster_path[64];

/* The file that is waited for is there now, and is none. */
static void write_nonsense(void)
{
    FILE *file = fopen(cluster_path, "w");

    assert_non_null(file);
    assert_true(fputs("nonsense\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void on_line(void *user, int level, const char *task, const char *who,
                    const char *line)
{
    (void)user;
    (void)level;
    (void)task;
    (void)who;
    (void)line;
    write_to_nobody();
    write_nonsense();
}

/* A node that waits for its cluster: its log is written on this thread. */
static void test_opening(void **state)
{
    mu_node_options options;
    mu_resolver *resolver;
    mu_node *node;
    int fd;

    (void)state;
    assert_int_equal(mu_resolver_new("file", &error, &resolver), 0);
    (void)snprintf(cluster_path, sizeof cluster_path, "/tmp/muster-call-XXXXXX");
    fd = mkstemp(cluster_path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(cluster_path), 0);
    assert_int_equal(mu_resolver_set(resolver, "path", cluster_path, &error), 0);
    mu_node_options_init(&options);
    options.task_type = "chief";
    options.resolver = resolver;
    options.resolve_ms = SOON_MS;
    options.log = on_line;
    options.log_level = MU_LOG_DEBUG;
    assert_int_equal(mu_node_open(&options, &error, &node), -MU_EINVALID);
    assert_int_equal(unlink(cluster_path), 0);
    assert_int_equal(close(fd), 0);
    assert_true(broken_writes > 0);
    assert_int_equal(signals, 0);
    assert_false(is_blocked());
    assert_false(is_pending());
    mu_resolver_free(resolver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_call, set_up),
        cmocka_unit_test_setup(test_pending_one_stays, set_up),
        cmocka_unit_test_setup(test_opening, set_up),
        cmocka_unit_test_setup(test_leaving, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
