/* A request of a program's thread to an actor of its own node.
 *
 * The thread fills in a call, posts it in a CALL message and waits. The actor answers
 * exactly once, through mu__call_complete, within the call's limit: limits are kept by
 * the actor with the kernel's timers, so that the error can say who is missing, and so
 * that memory of the caller is never touched after it gave up. */
#ifndef MU_ACTORS_CALL_H
#define MU_ACTORS_CALL_H

#include "runtime/kernel/kernel.h"

#include "muster/error.h"

struct mu__call {
    void (*complete)(struct mu__call *call);  /* wakes the waiter; the call may be gone */
    void *owner;                              /* for complete */
    struct mu__call *next;                    /* for the actor that holds it */
    int operation;                            /* what is asked: the actor's own list */
    int64_t timeout_ms;                         /* from now; negative: no limit */
    uint64_t timer;                           /* the actor's, while it is held */
    int code;                                 /* 0, or negative with `error` filled in */
    mu_error error;
};

/* Put a call in front of a list of those that wait; its limit begins: the TIMER message
 * of it has call->timer. */
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
