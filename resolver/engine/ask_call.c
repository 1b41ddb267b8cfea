/* Functions of the program's own that a question runs on a thread. */
#include "resolver/engine/ask.h"

enum { WAITS, RUNS, HAS_RUN, IS_OFF };

void mu__ask_call_init(struct mu__ask_call *call, void (*run)(struct mu__ask_call *call),
                       void (*free)(struct mu__ask_call *call))
{
    call->run = run;
    call->free = free;
    atomic_init(&call->refs, 1);
    atomic_init(&call->phase, WAITS);
}

void mu__ask_call_ref(struct mu__ask_call *call)
{
    (void)atomic_fetch_add(&call->refs, 1);
}

void mu__ask_call_unref(struct mu__ask_call *call)
{
    if (call != NULL && atomic_fetch_sub(&call->refs, 1) == 1)
        call->free(call);
}

static bool move(struct mu__ask_call *call, int to)
{
    int from = WAITS;

    return atomic_compare_exchange_strong(&call->phase, &from, to);
}

void mu__ask_call_run(struct mu__ask_call *call)
{
    if (!move(call, RUNS))
        return;
    call->run(call);
    atomic_store(&call->phase, HAS_RUN);
}

bool mu__ask_call_off(struct mu__ask_call *call)
{
    return !move(call, IS_OFF) && mu__ask_call_runs(call);
}

bool mu__ask_call_runs(const struct mu__ask_call *call)
{
    return atomic_load(&call->phase) == RUNS;
}

bool mu__ask_call_has_run(const struct mu__ask_call *call)
{
    return atomic_load(&call->phase) == HAS_RUN;
}
