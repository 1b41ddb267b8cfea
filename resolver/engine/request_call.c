#include "resolver/engine/request_call.h"

#include <stddef.h>

enum phase {
    WAITS,
    RUNS,
    HAS_RUN,
    RUNS_CANCELLED, /* nobody waits for it */
    HAS_RUN_CANCELLED,
    NEVER_RUNS      /* it was cancelled before it began */
};

void mu__request_call_init(struct mu__request_call *call,
                           const struct mu__request_call_ops *ops)
{
    call->ops = ops;
    atomic_init(&call->refs, 1);
    atomic_init(&call->phase, WAITS);
}

void mu__request_call_ref(struct mu__request_call *call)
{
    (void)atomic_fetch_add(&call->refs, 1);
}

void mu__request_call_unref(struct mu__request_call *call)
{
    if (call != NULL && atomic_fetch_sub(&call->refs, 1) == 1)
        call->ops->free(call);
}

bool mu__request_call_is_async(const struct mu__request_call *call)
{
    return call->ops->start != NULL;
}

static bool move(struct mu__request_call *call, enum phase from, enum phase to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong(&call->phase, &expected, (int)to);
}

static void end(struct mu__request_call *call)
{
    if (!move(call, RUNS, HAS_RUN))
        (void)move(call, RUNS_CANCELLED, HAS_RUN_CANCELLED);
}

void mu__request_call_run(struct mu__request_call *call)
{
    if (!move(call, WAITS, RUNS))
        return;
    call->ops->run(call);
    end(call);
}

void mu__request_call_start(struct mu__request_call *call, void (*finished)(void *owner),
                            void *owner)
{
    if (!move(call, WAITS, RUNS)) {
        finished(owner);
        return;
    }
    call->finished = finished;
    call->owner = owner;
    call->ops->start(call);
}

void mu__request_call_finish(struct mu__request_call *call)
{
    end(call);
    call->finished(call->owner);
}

bool mu__request_call_cancel(struct mu__request_call *call)
{
    if (move(call, WAITS, NEVER_RUNS))
        return false;
    if (move(call, RUNS, RUNS_CANCELLED) && call->ops->cancel != NULL)
        call->ops->cancel(call);
    return mu__request_call_is_running(call);
}

bool mu__request_call_has_begun(const struct mu__request_call *call)
{
    int phase = atomic_load(&call->phase);

    return phase != WAITS && phase != NEVER_RUNS;
}

bool mu__request_call_is_running(const struct mu__request_call *call)
{
    int phase = atomic_load(&call->phase);

    return phase == RUNS || phase == RUNS_CANCELLED;
}

bool mu__request_call_has_returned(const struct mu__request_call *call)
{
    return atomic_load(&call->phase) == HAS_RUN;
}
