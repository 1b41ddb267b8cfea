#include "runtime/message/value_references.h"

struct replacing {
    mu__replace_fn replace;
    void *arg;
    unsigned depth; /* lists and maps that may still be entered */
};

static int replace_one(mu_value **item, const struct replacing *how)
{
    mu_value *with = NULL;
    int rv = how->replace(how->arg, ((struct mu__reference *)*item)->number, &with);

    if (rv != 0)
        return rv;
    mu_value_free(*item);
    *item = with;
    return 0;
}

static int replace_in(mu_value **item, struct replacing how)
{
    struct mu__container *container;
    int rv = 0;

    if ((*item)->type == MU_VALUE_REFERENCE)
        return replace_one(item, &how);
    if (!mu__value_is_container(*item))
        return 0;
    if (how.depth == 0)
        return -MU_ERANGE;
    container = (struct mu__container *)*item;
    how.depth--;
    for (uint32_t i = 0; rv == 0 && i < container->count; i++)
        rv = replace_in(&container->items[i], how);
    return rv;
}

int mu__value_replace_references(mu_value **value, mu__replace_fn replace, void *arg)
{
    return replace_in(value, (struct replacing){replace, arg, MU_VALUE_DEPTH_MAX});
}

void *mu__value_holder(const mu_value *value, void (*drop)(void *holder))
{
    const struct mu__reference *reference = (const struct mu__reference *)value;

    if (mu_value_type(value) != MU_VALUE_REFERENCE || reference->drop != drop)
        return NULL;
    return reference->holder;
}

static bool has_holder(const mu_value *value, void (*drop)(void *holder), unsigned depth)
{
    bool has = mu__value_holder(value, drop) != NULL;

    if (depth == 0)
        return has;
    for (size_t i = 0; !has && i < mu_value_count(value); i++)
        has = has_holder(mu_value_at(value, i), drop, depth - 1);
    return has;
}

bool mu__value_has_holder(const mu_value *value, void (*drop)(void *holder))
{
    return has_holder(value, drop, MU_VALUE_DEPTH_MAX);
}
