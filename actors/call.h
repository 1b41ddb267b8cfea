/* A call of a program's thread to an actor of its own node.
 *
 * The thread fills in a call, posts it in a CALL message and waits. The actor completes
 * it exactly once, with mu__call_complete, within its timeout. The actor keeps the
 * timeout, by a timer of the kernel: so the error can name the missing task, and the
 * caller's memory is never accessed after the wait. */
#ifndef MU_ACTORS_CALL_H
#define MU_ACTORS_CALL_H

#include "runtime/kernel/kernel.h"

#include "muster/error.h"

#include <stddef.h>
#include <string.h>

struct mu__call {
    void (*complete)(struct mu__call *call); /* wakes the thread, which may free the
                                                call at once */
    void *owner;                             /* for complete */
    struct mu__call *next;                   /* in a list of the actor */
    int operation;                           /* one of the actor's own enum */
    int64_t timeout_ms;                      /* negative: none */
    uint64_t timer;                          /* of the actor, for the timeout; 0: none */
    uint64_t spun_ns;                        /* when its thread began to wait, if it has
                                                spun already; 0: it has not */
    int code;                                /* 0, or negative with `error` filled in */
    mu_error error;
};

/* Clear a call, and what follows it in a struct of `size` bytes that begins with it; not
 * the texts of its error, which are read with a code only. */
static inline void mu__call_clear(struct mu__call *call, size_t size)
{
    const size_t behind = offsetof(struct mu__call, error) + sizeof call->error;

    memset(call, 0, offsetof(struct mu__call, error) + sizeof call->error.code);
    memset((char *)call + behind, 0, size - behind);
}

/* Put a call in front of a list, and start its timeout: a TIMER message with
 * call->timer. */
static inline void mu__call_hold(struct mu__ctx *ctx, struct mu__call **list,
                                 struct mu__call *call)
{
    call->timer = 0;
    if (call->timeout_ms >= 0)
        call->timer = mu__timer_set(ctx, (uint64_t)call->timeout_ms, 0);
    call->next = *list;
    *list = call;
}

static inline void mu__call_complete(struct mu__call *call, int code)
{
    call->code = code;
    call->complete(call);
}

#endif
