/* Resolvers of the program's own that take their time: they keep no loop from its rounds,
 * and nobody longer than was said. And calls on threads that must not wait. */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include "runtime/uv/blocking.h"

#include <muster/compat/tpu.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <uv.h>

enum { SHORT_MS = 200 };

static mu_error error;

static void expect_words(const char *part)
{
    if (strstr(error.message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, error.message);
}

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

/* ---- A function that waits until the gate is open ---- */

static struct {
    pthread_mutex_t lock; /* guards all */
    pthread_cond_t changed;
    bool is_shut;
    unsigned entered;
    unsigned left;
    bool was_here; /* on the thread of the call */
    bool takes_signals;
    bool takes_faults; /* that it has brought upon itself */
    pthread_t caller;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass(void)
{
    sigset_t blocked;

    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    (void)pthread_mutex_lock(&gate.lock);
    gate.was_here = pthread_equal(pthread_self(), gate.caller) != 0;
    gate.takes_signals = sigismember(&blocked, SIGTERM) != 1;
    gate.takes_faults = sigismember(&blocked, SIGSEGV) != 1;
    gate.entered++;
    (void)pthread_cond_broadcast(&gate.changed);
    while (gate.is_shut)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    gate.left++;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void gate_set(bool is_shut)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.is_shut = is_shut;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static unsigned count_of(const unsigned *counter)
{
    unsigned count;

    (void)pthread_mutex_lock(&gate.lock);
    count = *counter;
    (void)pthread_mutex_unlock(&gate.lock);
    return count;
}

static void gate_wait(const unsigned *counter, unsigned count)
{
    (void)pthread_mutex_lock(&gate.lock);
    while (*counter < count)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
}

static int on_detect(void *user, mu_error *ret_why)
{
    (void)user;
    (void)ret_why;
    pass();
    return 1;
}

static int on_resolve(void *user, int64_t timeout_ms, mu_error *ret_error,
                      mu_resolution *ret_resolution)
{
    (void)user;
    (void)timeout_ms;
    (void)ret_error;
    pass();
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "chief");
    ret_resolution->task_index = 0;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    gate.is_shut = false;
    gate.entered = gate.left = 0;
    gate.caller = pthread_self();
    return 0;
}

/* Nothing of a test runs any more. */
static int tear_down(void **state)
{
    (void)state;
    gate_set(false);
    gate_wait(&gate.left, count_of(&gate.entered));
    return mu_resolver_unregister("gate", NULL);
}

static mu_resolver *resolver_of(const char *name, bool detects)
{
    const mu_resolver_kind kind = {
        .name = "gate", .resolve = on_resolve, .detect = detects ? on_detect : NULL};
    mu_resolver *resolver = NULL;

    assert_int_equal(mu_resolver_register(&kind, &error), 0);
    if (mu_resolver_new(name, &error, &resolver) != 0)
        fail_msg("%s", error.message);
    return resolver;
}

/* ---- Calls ---- */

TEST_WITH(test_on_a_thread_of_its_own, set_up, tear_down)
{
    mu_resolver *resolver = resolver_of("auto", true);
    mu_resolution found;

    if (mu_resolver_resolve(resolver, SOON_MS, &error, &found) != 0)
        fail_msg("%s", error.message);
    assert_string_equal(found.source, "gate");
    assert_int_equal(count_of(&gate.left), 2);
    assert_false(gate.was_here);
    assert_false(gate.takes_signals);
    assert_true(gate.takes_faults);
    mu_resolver_free(resolver);
}

/* The call returns; the function is not called again before it has returned. */
static void expect_left_alone(mu_resolver *resolver)
{
    uint64_t begin_ms = now_ms();
    mu_resolution found;

    gate_set(true);
    assert_int_equal(mu_resolver_resolve(resolver, SHORT_MS, &error, &found),
                     -MU_EDEADLINE);
    expect_words("resolver gate: its function has not returned (no answer ");
    assert_in_range(now_ms() - begin_ms, SHORT_MS - 1, SOON_MS);
    assert_int_equal(mu_resolver_resolve(resolver, 0, &error, &found), -MU_EUNAVAILABLE);
    expect_words("resolver gate: its function has not returned yet");
    assert_int_equal(count_of(&gate.entered), 1);
    gate_set(false);
    gate_wait(&gate.left, 1);
    if (mu_resolver_resolve(resolver, SOON_MS, &error, &found) != 0)
        fail_msg("%s", error.message);
    assert_string_equal(found.task_type, "chief");
    mu_resolver_free(resolver);
}

TEST_WITH(test_resolve_takes_too_long, set_up, tear_down)
{
    expect_left_alone(resolver_of("gate", false));
}

TEST_WITH(test_detect_takes_too_long, set_up, tear_down)
{
    expect_left_alone(resolver_of("auto", true));
}

/* The resolver is gone before its function has returned. */
TEST_WITH(test_freed_while_it_runs, set_up, tear_down)
{
    mu_resolver *resolver = resolver_of("gate", false);
    mu_resolution found;

    gate_set(true);
    assert_int_equal(mu_resolver_resolve(resolver, SHORT_MS, &error, &found),
                     -MU_EDEADLINE);
    mu_resolver_free(resolver);
    assert_int_equal(count_of(&gate.left), 0);
}

/* As many hang as there are threads: the next one is not called, and says why. A call
 * within so short a limit may come too late on a busy machine, so that there are more. */
TEST_WITH(test_no_thread_is_left, set_up, tear_down)
{
    mu_resolver *resolvers[64];
    mu_resolution found;
    unsigned count = 1;

    resolvers[0] = resolver_of("gate", false);
    gate_set(true);
    while (count_of(&gate.entered) < MU__BLOCKING_THREADS_MAX) {
        assert_true(count < 64);
        assert_int_equal(mu_resolver_new("gate", &error, &resolvers[count]), 0);
        assert_int_equal(mu_resolver_resolve(resolvers[count], 50, &error, &found),
                         -MU_EDEADLINE);
        count++;
    }
    assert_int_equal(mu_resolver_resolve(resolvers[0], SHORT_MS, &error, &found),
                     -MU_EDEADLINE);
    expect_words("resolver gate: its function was not called before others return (no "
                 "answer ");
    assert_int_equal(count_of(&gate.entered), MU__BLOCKING_THREADS_MAX);
    gate_set(false);
    if (mu_resolver_resolve(resolvers[0], SOON_MS, &error, &found) != 0)
        fail_msg("%s", error.message);
    for (unsigned i = 0; i < count; i++)
        mu_resolver_free(resolvers[i]);
}

/* ---- A node that looks again ---- */

static struct nodes nodes = {.log.lock = PTHREAD_MUTEX_INITIALIZER};

/* A file, which changes, and the gate. */
static mu_resolver *watching(const char *path)
{
    mu_resolver *members[2] = {NULL, resolver_of("gate", false)};
    mu_resolver *whole = NULL;

    files_replace(path, "{\"chief\":[\"127.0.0.1:1\"]}");
    assert_int_equal(mu_resolver_new("file", &error, &members[0]), 0);
    assert_int_equal(mu_resolver_set(members[0], "path", path, &error), 0);
    assert_int_equal(mu_resolver_new_union(members, 2, &error, &whole), 0);
    return whole;
}

static mu_node *open_chief(mu_resolver *resolver)
{
    mu_node_options options;
    mu_node *node = NULL;

    nodes_options(&nodes, "chief", 0, &options);
    options.resolver = resolver;
    options.bind_address = "tcp://127.0.0.1:0";
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);
    return node;
}

/* What is written before the path is watched is seen only seconds later. */
static void wait_for_look(const char *path)
{
    for (int i = 0; i < SOON_MS && count_of(&gate.entered) < 3; i++) {
        if (i % 100 == 0)
            files_replace(path, "{\"chief\":[\"127.0.0.1:1\"],\"worker\":[]}");
        nodes_pause();
    }
    assert_int_equal(count_of(&gate.entered), 3);
}

/* The node goes on with everything else, and closes; who is left behind is told. */
TEST_WITH(test_node_while_it_hangs, set_up, tear_down)
{
    static char folder[] = "/tmp/muster-own-XXXXXX";
    char path[64];
    mu_value *devices = NULL;
    mu_resolver *resolver;
    uint64_t begin_ms;
    mu_node *node;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/cluster.json", folder);
    resolver = watching(path);
    node = open_chief(resolver);
    gate_wait(&gate.left, 2); /* to find the cluster, and to begin to watch it */
    gate_set(true);
    wait_for_look(path);

    if (mu_tasks_devices(node, SOON_MS, &error, &devices) != 0)
        fail_msg("%s", error.message);
    mu_value_free(devices);
    begin_ms = now_ms();
    assert_int_equal(mu_node_close(node, SOON_MS, NULL), 0);
    assert_in_range(now_ms() - begin_ms, MU_RESOLVER_CLOSE_TIMEOUT_MS, SOON_MS);
    assert_true(nodes_has_logged(&nodes, "resolver gate: its function has not returned "
                                         "within 2000 ms of the closing"));
    assert_int_equal(count_of(&gate.left), 2);
    mu_resolver_free(resolver);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- Threads that must not wait ---- */

static void expect_refused(int rv)
{
    assert_int_equal(rv, -MU_EPRECONDITION);
    expect_words("must not be made on a loop's thread");
    memset(&error, 0, sizeof error);
}

static void call_all(mu_resolver *resolver)
{
    char master[MU_MASTER_BYTES];
    mu_cluster *cluster = NULL;
    mu_value *counts = NULL;
    mu_tpu_state tpu_state;
    mu_resolution found;
    int recoverable;
    size_t count;
    mu_tpu *tpu;

    assert_int_equal(mu_tpu_new(&error, &tpu), 0);
    expect_refused(mu_resolver_resolve(resolver, SOON_MS, &error, &found));
    expect_refused(mu_resolver_cluster(resolver, 0, &error, &cluster));
    expect_refused(mu_resolver_master(resolver, NULL, -1, NULL, 0, &error, master));
    expect_refused(mu_resolver_accelerators(resolver, NULL, NULL, -1, 0, &error,
                                            &counts));
    expect_refused(mu_tpu_describe(tpu, 0, &error, &tpu_state, 1, &count));
    expect_refused(mu_tpu_recoverable(tpu, 0, &error, &recoverable, NULL));
    expect_refused(mu_tpu_request_version(tpu, "1", NULL, 0, &error));
    expect_refused(mu_tpu_wait_healthy(tpu, SOON_MS, 1, &error));
    mu_tpu_free(tpu);
}

static void on_closed(void *user)
{
    *(bool *)user = true;
}

/* The program's own loop: its thread is one as long as a node is in it. */
TEST_WITH(test_thread_of_the_programs_loop, set_up, tear_down)
{
    mu_resolver *resolver = resolver_of("gate", false);
    mu_cluster *cluster = mu_cluster_new();
    bool is_closed = false;
    mu_node_options options;
    mu_resolution found;
    uv_loop_t loop;
    mu_node *node;

    assert_int_equal(mu_cluster_add(cluster, "chief", 0, "127.0.0.1:1", &error), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.cluster = cluster;
    options.bind_address = "tcp://127.0.0.1:0";
    options.loop = &loop;
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);
    call_all(resolver);
    assert_int_equal(count_of(&gate.entered), 0);
    mu_node_close_async(node, on_closed, &is_closed);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(is_closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(mu_resolver_resolve(resolver, SOON_MS, &error, &found), 0);
    mu_cluster_free(cluster);
    mu_resolver_free(resolver);
}

struct line {
    mu_resolver *resolver;
    mu_error error;
    int rv;
    bool was_called; /* on the thread of the node's loop */
};

static void on_line(void *user, int level, const char *task, const char *who,
                    const char *words)
{
    struct line *line = user;
    mu_resolution found;

    (void)level;
    (void)task;
    (void)who;
    (void)words;
    if (line->was_called || pthread_equal(pthread_self(), gate.caller) != 0)
        return;
    line->rv = mu_resolver_resolve(line->resolver, SOON_MS, &line->error, &found);
    line->was_called = true;
}

TEST_WITH(test_thread_of_a_nodes_loop, set_up, tear_down)
{
    struct line line = {.resolver = resolver_of("gate", false)};
    mu_cluster *cluster = mu_cluster_new();
    mu_node_options options;
    mu_node *node;

    assert_int_equal(mu_cluster_add(cluster, "chief", 0, "127.0.0.1:1", &error), 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.cluster = cluster;
    options.bind_address = "tcp://127.0.0.1:0";
    options.log = on_line;
    options.log_user = &line;
    options.log_level = MU_LOG_DEBUG;
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_node_close(node, SOON_MS, NULL), 0);
    assert_true(line.was_called);
    error = line.error;
    expect_refused(line.rv);
    assert_int_equal(count_of(&gate.entered), 0);
    mu_cluster_free(cluster);
    mu_resolver_free(line.resolver);
}

TEST_PROGRAM()
