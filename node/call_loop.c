#include "node/call_loop.h"

#include "runtime/uv/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* ---- Threads of loops ---- */

static _Thread_local unsigned loops_here;

void mu__loop_thread_begin(void)
{
    loops_here++;
}

void mu__loop_thread_end(void)
{
    loops_here--;
}

int mu__call_may_wait(mu_error *ret_error)
{
    if (loops_here == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "this call waits, so it must not be made on a loop's thread "
                        "(nor by an inline function)");
}

/* ---- SIGPIPE ---- */

void mu__pipe_guard(struct mu__pipe_guard *ret_guard)
{
    sigset_t pipe;
    sigset_t pending;

    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)sigpending(&pending);
    ret_guard->was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &ret_guard->before);
}

void mu__pipe_unguard(const struct mu__pipe_guard *guard)
{
    static const struct timespec at_once;
    sigset_t pipe;

    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    if (!guard->was_pending)
        (void)sigtimedwait(&pipe, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

/* ---- Leaving ---- */

struct loop_end {
    uv_loop_t *loop;
    uv_timer_t timer;
    bool late;
    void (*done)(void *arg);
    void *arg;
};

static void on_late(uv_timer_t *timer)
{
    ((struct loop_end *)timer->data)->late = true;
}

static void finish(uv_loop_t *loop, void (*done)(void *arg), void *arg)
{
    (void)uv_run(loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(loop);
    done(arg);
}

static void *finish_late(void *arg)
{
    struct loop_end *l = arg;

    finish(l->loop, l->done, l->arg);
    free(l);
    return NULL;
}

void mu__call_leave(uv_loop_t *loop, uint64_t timeout_ms, void (*done)(void *arg),
                    void *arg)
{
    struct loop_end *l = calloc(1, sizeof *l);
    pthread_t thread;

    if (l == NULL) {
        finish(loop, done, arg);
        return;
    }
    *l = (struct loop_end){.loop = loop, .done = done, .arg = arg};
    uv_update_time(loop);
    (void)uv_timer_init(loop, &l->timer);
    l->timer.data = l;
    (void)uv_timer_start(&l->timer, on_late, timeout_ms, 0);
    uv_unref((uv_handle_t *)&l->timer);
    while (uv_run(loop, UV_RUN_ONCE) != 0 && !l->late)
        ;
    uv_close((uv_handle_t *)&l->timer, NULL);
    if (uv_run(loop, UV_RUN_NOWAIT) != 0 &&
        mu__thread_start(finish_late, l, &thread) == 0)
        (void)pthread_detach(thread);
    else
        (void)finish_late(l);
}
