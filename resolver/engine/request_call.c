#include "resolver/engine/request_call.h"

#include <stddef.h>

enum { WAITS, RUNS, HAS_RUN };

void mu__request_call_init(struct mu__request_call *call,
                           void (*run)(struct mu__request_call *call),
                           void (*free)(struct mu__request_call *call))
{
    call->run = run;
    call->free = free;
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
        call->free(call);
}

void mu__request_call_run(struct mu__request_call *call)
{
    atomic_store(&call->phase, RUNS);
    call->run(call);
    atomic_store(&call->phase, HAS_RUN);
}

bool mu__request_call_has_begun(const struct mu__request_call *call)
{
    return atomic_load(&call->phase) != WAITS;
}

bool mu__request_call_is_running(const struct mu__request_call *call)
{
    return atomic_load(&call->refs) > 1 && atomic_load(&call->phase) != HAS_RUN;
}
