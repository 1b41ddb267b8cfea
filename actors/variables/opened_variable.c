#include "actors/variables/opened_variable.h"

#include <stdlib.h>
#include <string.h>

struct mu__opened_variable *mu__opened_variable_new(
    const char *name, const struct mu__shape *shape, uint32_t servers_count)
{
    struct mu__opened_variable *opened =
        calloc(1, sizeof *opened + shape->shards * sizeof opened->ids[0]);

    if (opened == NULL)
        return NULL;
    atomic_init(&opened->refs, 1);
    opened->servers_count = servers_count;
    opened->shape = *shape;
    memcpy(opened->name, name, strlen(name));
    return opened;
}

struct mu__opened_variable *mu__opened_variable_ref(struct mu__opened_variable *opened)
{
    (void)atomic_fetch_add_explicit(&opened->refs, 1, memory_order_relaxed);
    return opened;
}

void mu__opened_variable_unref(struct mu__opened_variable *opened)
{
    if (opened != NULL && atomic_fetch_sub(&opened->refs, 1) == 1)
        free(opened);
}

void mu__opened_variable_load(const struct mu__opened_variable *opened, uint64_t *ids)
{
    for (uint32_t i = 0; i < opened->shape.shards; i++)
        ids[i] = atomic_load_explicit(&opened->ids[i], memory_order_relaxed);
}

void mu__opened_variable_store(struct mu__opened_variable *opened, const uint64_t *ids)
{
    for (uint32_t i = 0; i < opened->shape.shards; i++)
        atomic_store_explicit(&opened->ids[i], ids[i], memory_order_relaxed);
}
