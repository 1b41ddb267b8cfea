#include "actors/future.h"

#include <stdlib.h>

mu_remote_value *mu__future_new(mu_node *node)
{
    mu_remote_value *future = malloc(sizeof *future);

    if (future == NULL)
        return NULL;
    atomic_init(&future->refs, 2);
    atomic_init(&future->state, MU_REMOTE_NOT_READY);
    future->result = NULL;
    future->error = NULL;
    future->waiters = NULL;
    future->node = node;
    return future;
}

void mu_remote_value_free(mu_remote_value *value)
{
    if (value == NULL ||
        atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) != 1)
        return;
    mu_value_free(value->result);
    free(value->error);
    free(value);
}

enum mu_remote_value_state mu_remote_value_state(const mu_remote_value *value)
{
    return (enum mu_remote_value_state)atomic_load_explicit(&value->state,
                                                            memory_order_acquire);
}
