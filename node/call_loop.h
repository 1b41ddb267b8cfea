/* What a call needs that runs a loop of its own on the calling thread. */
#ifndef MU_NODE_CALL_LOOP_H
#define MU_NODE_CALL_LOOP_H

#include <muster/error.h>

#include <signal.h>
#include <stdbool.h>
#include <uv.h>

enum { MU__CALL_LEAVE_MS = 50 };    /* what closing takes where nothing hangs */

/* This thread runs a node's loop from now on, or one less. */
void mu__loop_thread_begin(void);
void mu__loop_thread_end(void);

/* Whether this thread may wait: -MU_EPRECONDITION where it runs a node's loop. */
int mu__call_may_wait(mu_error *ret_error);

/* Of a connection over TLS that the server has closed, a write raises SIGPIPE: it is not
 * to end the program, whose thread this is. */
struct mu__pipe_guard {
    sigset_t before;
    bool was_pending;
};

void mu__pipe_guard(struct mu__pipe_guard *ret_guard);

/* As it was before. A SIGPIPE that came meanwhile is taken away, unless one was there
 * already. */
void mu__pipe_unguard(const struct mu__pipe_guard *guard);

/* Run `loop`, in which all is closing, until nothing is left in it. A thread that looks a
 * name up, or reads a file that is far away, cannot be called back, and the caller is not
 * to wait for it: what is left after `timeout_ms` is waited for by a thread of its own.
 * Then the loop is closed, and `done` called with `arg`, on the calling thread or that
 * other one: it frees the loop's memory. */
void mu__call_leave(uv_loop_t *loop, uint64_t timeout_ms, void (*done)(void *arg),
                    void *arg);

#endif
