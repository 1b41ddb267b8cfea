#include "actors/client/future.h"

#include <stdlib.h>

static void held_init(struct mu__held *held, struct mu__future_owner *owner,
                      unsigned refs)
{
    atomic_init(&held->refs, refs);
    held->is_per_worker = false;
    held->chief_epoch = 0;
    held->number = 0;
    held->owner = owner;
    if (owner != NULL)
        owner->ref(owner);
}

const mu_error mu__error_lost = {
    .code = -MU_ENOMEM,
    .message = "the closure failed; there was no memory for its error",
};

mu_remote_value *mu__future_new(struct mu__future_owner *owner)
{
    mu_remote_value *future = malloc(sizeof *future);

    if (future == NULL)
        return NULL;
    held_init(&future->held, owner, 2);
    atomic_init(&future->state, MU_REMOTE_NOT_READY);
    future->token = 0;
    future->attempt = 0;
    future->closure = 0;
    future->request = 0;
    future->result = NULL;
    future->error = NULL;
    future->waiters = NULL;
    future->notify = NULL;
    future->notify_user = NULL;
    return future;
}

mu_per_worker *mu__per_worker_new(struct mu__future_owner *owner)
{
    mu_per_worker *per_worker = malloc(sizeof *per_worker);

    if (per_worker == NULL)
        return NULL;
    held_init(&per_worker->held, owner, 1);
    per_worker->held.is_per_worker = true;
    return per_worker;
}

void mu__held_free(struct mu__held *held)
{
    struct mu__future_owner *owner = held->owner;

    if (!held->is_per_worker) {
        mu_remote_value *future = (mu_remote_value *)held;

        mu_value_free(future->result);
        if (future->error != &mu__error_lost)
            free((void *)future->error);
    }
    free(held);
    if (owner != NULL)
        owner->unref(owner);
}

void mu__held_unref(struct mu__held *held)
{
    if (atomic_fetch_sub_explicit(&held->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (held->number != 0 && held->owner != NULL)
        held->owner->give_back(held->owner, held);
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

    return state == MU__REMOTE_PINNED ? MU_REMOTE_READY
                                      : (enum mu_remote_value_state)state;
}
