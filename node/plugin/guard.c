#include "node/plugin/guard.h"

#include "node/deadline.h"
#include "node/node.h"
#include "node/supervision_pipe.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPORT_MS = 10000 };

static const int signals[MU__PLUGIN_SIGNALS] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* The innermost guard; NULL: no plugin is being loaded. A global, since handlers of exit
 * and signals get no argument. */
static _Atomic(struct mu__plugin_guard *) current;
static pthread_mutex_t one_at_a_time;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

/* The guard of this thread; NULL: it loads nothing. */
static struct mu__plugin_guard *own_guard(void)
{
    struct mu__plugin_guard *guard = atomic_load(&current);

    return guard != NULL && pthread_equal(guard->loader, pthread_self()) ? guard : NULL;
}

/* ---- The process ends ---- */

/* Append to a line what fits of a text. */
static size_t append_fitting(char *line, size_t size, size_t used, const char *text)
{
    size_t length = strlen(text);

    if (length > size - used)
        length = size - used;
    memcpy(line + used, text, length);
    return used + length;
}

/* Called by the handlers of exit and signals. One write, so that no other line of this
 * process gets into it. */
static void print_load_ended(const struct mu__plugin_guard *guard, const char *how)
{
    const char *parts[] = {"muster: plugin \"", guard->path, "\" ", how,
                           " while it was being loaded\n"};
    char line[4608];
    size_t used = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        used = append_fitting(line, sizeof line, used, parts[i]);
    (void)!write(STDERR_FILENO, line, used);
}

/* A plugin that ends the process is a failure, whatever its exit code. */
static void on_exit(void)
{
    const struct mu__plugin_guard *guard = own_guard();

    if (guard == NULL)
        return;
    print_load_ended(guard, "ended the process");
    _exit(MU__PLUGIN_EXIT_CODE);
}

static const char *crash_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "crashed (SIGSEGV)";
    case SIGBUS:
        return "crashed (SIGBUS)";
    case SIGILL:
        return "crashed (SIGILL)";
    case SIGFPE:
        return "crashed (SIGFPE)";
    default:
        return "aborted (SIGABRT)";
    }
}

/* Name the plugin, restore the former handler and raise the signal again. */
static void on_crash(int number)
{
    struct mu__plugin_guard *guard = own_guard();
    struct mu__plugin_guard *first = atomic_load(&current);

    if (guard != NULL)
        print_load_ended(guard, crash_of(number));
    while (first != NULL && first->outer != NULL)
        first = first->outer;
    for (size_t i = 0; first != NULL && i < MU__PLUGIN_SIGNALS; i++)
        if (signals[i] == number)
            (void)sigaction(number, &first->former[i], NULL);
    (void)raise(number);
}

static void watch_crash_signals(struct mu__plugin_guard *guard)
{
    struct sigaction action = {.sa_handler = on_crash};

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < MU__PLUGIN_SIGNALS; i++)
        (void)sigaction(signals[i], &action, &guard->former[i]);
}

/* Handlers that a plugin has set stay. */
static void restore_signals(const struct mu__plugin_guard *guard)
{
    struct sigaction now;

    for (size_t i = 0; i < MU__PLUGIN_SIGNALS; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == on_crash)
            (void)sigaction(signals[i], &guard->former[i], NULL);
}

/* ---- A plugin takes long ---- */

static uint64_t passed_ms(const struct mu__plugin_guard *guard)
{
    return (uv_hrtime() - guard->began_ns) / 1000000;
}

static void end_stuck_load(const struct mu__plugin_guard *guard)
{
    mu__node_log(guard->node, MU_LOG_ERROR, "plugin",
                 "plugin \"%.300s\" is not loaded after %" PRIu64
                 " ms (plugin_timeout_ms): the process ends",
                 guard->path, passed_ms(guard));
    _exit(MU__PLUGIN_EXIT_CODE);
}

/* How long until the next log line, or the timeout. */
static uint64_t next_ms(const struct mu__plugin_guard *guard, uint64_t report_ms)
{
    uint64_t timeout_ms = guard->node->program.plugin_timeout_ms;
    uint64_t now_ms = passed_ms(guard);

    if (timeout_ms != 0 && timeout_ms < report_ms)
        report_ms = timeout_ms;
    return report_ms > now_ms ? report_ms - now_ms : 1;
}

static void watch_plugin_load(void *arg)
{
    struct mu__plugin_guard *guard = arg;
    uint64_t timeout_ms = guard->node->program.plugin_timeout_ms;
    uint64_t report_ms = REPORT_MS;

    uv_mutex_lock(&guard->lock);
    while (!guard->over) {
        (void)uv_cond_timedwait(&guard->changed, &guard->lock,
                                next_ms(guard, report_ms) * 1000000);
        if (guard->over)
            break;
        if (timeout_ms != 0 && passed_ms(guard) >= timeout_ms)
            end_stuck_load(guard);
        if (passed_ms(guard) >= report_ms) {
            mu__node_log(guard->node, MU_LOG_WARN, "plugin",
                         "still loading plugin \"%.300s\" for %" PRIu64 " s", guard->path,
                         passed_ms(guard) / 1000);
            report_ms += REPORT_MS;
        }
    }
    uv_mutex_unlock(&guard->lock);
}

static void begin_watch(struct mu__plugin_guard *guard)
{
    if (mu__lock_init(&guard->lock, &guard->changed) != 0)
        return;
    guard->watched = uv_thread_create(&guard->watcher, watch_plugin_load, guard) == 0;
    if (!guard->watched)
        mu__lock_destroy(&guard->lock, &guard->changed);
}

static void end_load_watch(struct mu__plugin_guard *guard)
{
    if (!guard->watched)
        return;
    uv_mutex_lock(&guard->lock);
    guard->over = true;
    uv_cond_signal(&guard->changed);
    uv_mutex_unlock(&guard->lock);
    (void)uv_thread_join(&guard->watcher);
    mu__lock_destroy(&guard->lock, &guard->changed);
}

/* ---- Begin and end ---- */

static void init_load_mutex(void)
{
    pthread_mutexattr_t attributes;

    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&one_at_a_time, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    (void)atexit(on_exit);
}

void mu__plugin_guard_begin(struct mu__plugin_guard *guard, mu_node *node,
                            const char *path)
{
    (void)pthread_once(&prepared, init_load_mutex);
    (void)pthread_mutex_lock(&one_at_a_time);
    *guard = (struct mu__plugin_guard){
        .outer = atomic_load(&current),
        .node = node,
        .path = path,
        .loader = pthread_self(),
        .began_ns = uv_hrtime(),
    };
    mu__node_log(node, MU_LOG_INFO, "plugin", "loading plugin \"%.300s\"", path);
    mu__supervision_report(MU_SUPERVISION_LOADING, path);
    begin_watch(guard);
    watch_crash_signals(guard);
    atomic_store(&current, guard);
}

void mu__plugin_guard_end(struct mu__plugin_guard *guard)
{
    atomic_store(&current, guard->outer);
    restore_signals(guard);
    end_load_watch(guard);
    mu__supervision_report(MU_SUPERVISION_LOADING,
                           guard->outer == NULL ? "" : guard->outer->path);
    mu__node_log(guard->node, MU_LOG_DEBUG, "plugin",
                 "plugin \"%.300s\" was loaded within %" PRIu64 " ms", guard->path,
                 passed_ms(guard));
    (void)pthread_mutex_unlock(&one_at_a_time);
}
