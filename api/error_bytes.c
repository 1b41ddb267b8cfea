/* The bytes that functions gave with their errors. */
#include "api/internal.h"

#include <stddef.h>

void mu__coordinator_keep_data(struct mu__session *session, uint32_t number,
                               mu_value *data)
{
    mu_coordinator *c =
        (mu_coordinator *)(void *)((char *)session - offsetof(mu_coordinator, session));

    uv_mutex_lock(&c->node->lock);
    mu__error_data_put(&c->node->program.error_data, number, data);
    uv_mutex_unlock(&c->node->lock);
}

static mu_value *find_error_data(mu_node *node, const mu_error *error)
{
    mu_value *data;

    if (error->data == 0 || mu__node_is_forked(node))
        return NULL;
    uv_mutex_lock(&node->lock);
    data = mu__error_data_get(&node->program.error_data, error->data);
    uv_mutex_unlock(&node->lock);
    return data;
}

mu_value *mu_coordinator_error_data(mu_coordinator *c, const mu_error *error)
{
    return c == NULL || error == NULL ? NULL : find_error_data(c->node, error);
}

mu_value *mu_remote_value_error_data(const mu_remote_value *value)
{
    if (value == NULL || value->held.owner == NULL ||
        mu_remote_value_state(value) == MU_REMOTE_NOT_READY || value->error == NULL)
        return NULL;
    return find_error_data(value->held.owner->node, value->error);
}
