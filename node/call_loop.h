/* What a call needs that runs a loop of its own on the calling thread. */
#ifndef MU_NODE_CALL_LOOP_H
#define MU_NODE_CALL_LOOP_H

#include <muster/error.h>

#include <signal.h>
#include <stdbool.h>
#include <uv.h>

enum { MU__CALL_LEAVE_MS = 50 };    /* what closing takes where nothing hangs */

/* Count the nodes' loops that run on this thread: one more, one less. */
void mu__loop_thread_begin(void);
void mu__loop_thread_end(void);

/* Whether this thread may wait: -MU_EPRECONDITION where it runs a node's loop. */
int mu__call_may_wait(mu_error *ret_error);

/* Blocks SIGPIPE on the program's thread while the library uses it: a write to a TLS
 * connection that the server has closed raises it. */
struct mu__pipe_guard {
    sigset_t before;
    bool was_pending;
};

void mu__pipe_guard(struct mu__pipe_guard *ret_guard);

/* Restore the signal mask. A SIGPIPE that was raised meanwhile is discarded, unless one
 * was pending before. */
void mu__pipe_unguard(const struct mu__pipe_guard *guard);

/* Run `loop`, in which all handles are closing, until nothing is left in it. A pool
 * thread that looks a name up, or reads a file on a network, cannot be cancelled; so
 * after `timeout_ms` a thread of its own goes on with the loop. Then the loop is
 * closed, and `done` called with `arg`, on the calling thread or that other one: it
 * frees the loop's memory. */
void mu__call_leave(uv_loop_t *loop, uint64_t timeout_ms, void (*done)(void *arg),
                    void *arg);

#endif
