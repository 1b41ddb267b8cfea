#include "actors/client/future.h"

#include <stdlib.h>

static void held_init(struct mu__held *held, struct mu__home *home, unsigned refs)
{
    atomic_init(&held->refs, refs);
    held->is_per_worker = false;
    held->life = 0;
    held->number = 0;
    held->home = home;
    if (home != NULL)
        home->ref(home);
}

const mu_error mu__error_lost = {
    .code = -MU_ENOMEM,
    .message = "the closure failed; there was no memory for its error",
};

mu_remote_value *mu__future_new(struct mu__home *home)
{
    mu_remote_value *future = malloc(sizeof *future);

    if (future == NULL)
        return NULL;
    held_init(&future->held, home, 2);
    atomic_init(&future->state, MU_REMOTE_NOT_READY);
    future->place = 0;
    future->attempt = 0;
    future->closure = 0;
    future->result = NULL;
    future->error = NULL;
    future->waiters = NULL;
    future->notify = NULL;
    future->notify_user = NULL;
    return future;
}

mu_per_worker *mu__per_worker_new(struct mu__home *home)
{
    mu_per_worker *per_worker = malloc(sizeof *per_worker);

    if (per_worker == NULL)
        return NULL;
    held_init(&per_worker->held, home, 1);
    per_worker->held.is_per_worker = true;
    return per_worker;
}

void mu__held_free(struct mu__held *held)
{
    struct mu__home *home = held->home;

    if (!held->is_per_worker) {
        mu_remote_value *future = (mu_remote_value *)held;

        mu_value_free(future->result);
        if (future->error != &mu__error_lost)
            free((void *)future->error);
    }
    free(held);
    if (home != NULL)
        home->unref(home);
}

void mu__held_unref(struct mu__held *held)
{
    if (atomic_fetch_sub_explicit(&held->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (held->number != 0 && held->home != NULL)
        held->home->give_back(held->home, held);
    else
        mu__held_free(held);
}

void mu_remote_value_free(mu_remote_value *value)
{
    if (value != NULL)
        mu__held_unref(&value->held);
}

enum mu_remote_value_state mu_remote_value_state(const mu_remote_value *value)
{
    int state = value == NULL ? MU_REMOTE_ABORTED
                              : atomic_load_explicit(&value->state, memory_order_acquire);

    return state == MU__REMOTE_KEPT ? MU_REMOTE_READY : (enum mu_remote_value_state)state;
}
