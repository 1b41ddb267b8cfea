#include "actors/references.h"

#include "actors/packing.h"
#include "runtime/message/arguments.h"
#include "runtime/message/value_layout.h"

#include <string.h>

static void drop_held_reference(void *holder)
{
    mu__held_unref(holder);
}

mu_value *mu__reference_to(struct mu__held *held)
{
    uint64_t number = held->is_per_worker ? held->number : 0;
    mu_value *reference = mu__value_reference(number, held, drop_held_reference);

    if (reference != NULL)
        mu__held_ref(held);
    return reference;
}

mu_value *mu_value_remote(mu_remote_value *value)
{
    MU__REQUIRE_OR(NULL, value);
    return mu__reference_to(&value->held);
}

mu_value *mu_value_per_worker(mu_per_worker *per_worker)
{
    MU__REQUIRE_OR(NULL, per_worker);
    return mu__reference_to(&per_worker->held);
}

struct mu__held *mu__reference_held(const mu_value *value)
{
    const struct mu__reference *reference = (const struct mu__reference *)value;

    if (mu_value_type(value) != MU_VALUE_REFERENCE ||
        reference->drop != drop_held_reference)
        return NULL;
    return reference->holder;
}

static bool is_container_value(const mu_value *value)
{
    return value->type == MU_VALUE_LIST || value->type == MU_VALUE_MAP;
}

bool mu__has_references(const mu_value *value)
{
    const struct mu__container *container = (const struct mu__container *)value;

    if (!is_container_value(value))
        return value->type == MU_VALUE_REFERENCE;
    for (uint32_t i = 0; i < container->count; i++)
        if (mu__has_references(container->items[i]))
            return true;
    return false;
}

/* ---- collecting ---- */

static uint64_t get_handle_key(const struct mu__held *held)
{
    return (uint64_t)(uintptr_t)held;
}

size_t mu__references_index(const struct mu__references *references,
                            const struct mu__held *held)
{
    size_t found = 0;

    if (references->count > MU__REFERENCES_FEW) {
        found = (size_t)mu__map_get(&references->indices, get_handle_key(held));
        return found == 0 ? references->count : found - 1;
    }
    while (found < references->count && references->held[found] != held)
        found++;
    return found;
}

static int index_handle(struct mu__references *references, size_t index)
{
    return mu__map_set(&references->indices, get_handle_key(references->held[index]),
                       (void *)(index + 1));
}

void mu__references_swap(struct mu__references *references, size_t a, size_t b)
{
    struct mu__held *held = references->held[a];

    references->held[a] = references->held[b];
    references->held[b] = held;
    if (references->count <= MU__REFERENCES_FEW)
        return;
    (void)index_handle(references, a); /* replacing an entry takes no memory */
    (void)index_handle(references, b);
}

/* Moves the handles to an allocation, and indexes them by the map. */
static int move_handles_to_heap(struct mu__references *references)
{
    struct mu__held **held = NULL;

    if (!mu__grow_array((void **)&held, 2 * MU__REFERENCES_FEW, sizeof *held))
        return -MU_ENOMEM;
    memcpy(held, references->few, sizeof references->few);
    references->held = held;
    references->capacity = 2 * MU__REFERENCES_FEW;
    for (size_t i = 0; i < MU__REFERENCES_FEW; i++)
        if (index_handle(references, i) != 0)
            return -MU_ENOMEM;
    return 0;
}

static int reserve_handle(struct mu__references *references)
{
    size_t capacity = references->capacity * 2;

    if (references->count < references->capacity)
        return 0;
    if (references->capacity == MU__REFERENCES_FEW)
        return move_handles_to_heap(references);
    if (references->capacity == 0) {
        references->held = references->few;
        references->capacity = MU__REFERENCES_FEW;
        return 0;
    }
    if (!mu__grow_array((void **)&references->held, capacity, sizeof(struct mu__held *)))
        return -MU_ENOMEM;
    references->capacity = capacity;
    return 0;
}

static int collect_reference(struct mu__held *held, struct mu__references *references)
{
    int rv;

    if (held == NULL)
        return -MU_EINVALID;
    if (mu__references_index(references, held) < references->count)
        return 0;
    rv = reserve_handle(references);
    if (rv != 0)
        return rv;
    references->held[references->count] = held;
    if (references->count >= MU__REFERENCES_FEW)
        rv = index_handle(references, references->count);
    if (rv == 0)
        references->count++;
    return rv;
}

int mu__references_collect(const mu_value *value, struct mu__references *references)
{
    const struct mu__container *container = (const struct mu__container *)value;
    int rv = 0;

    if (value->type == MU_VALUE_REFERENCE)
        return collect_reference(mu__reference_held(value), references);
    if (!is_container_value(value))
        return 0;
    for (uint32_t i = 0; rv == 0 && i < container->count; i++)
        rv = mu__references_collect(container->items[i], references);
    return rv;
}

void mu__references_done(struct mu__references *references)
{
    if (references->capacity > MU__REFERENCES_FEW)
        mu__free_array(references->held);
    mu__map_done(&references->indices);
}

/* ---- replacing ---- */

static mu_value *replace_items(const mu_value *value, mu__substitute_fn substitute,
                               void *arg)
{
    const struct mu__container *container = (const struct mu__container *)value;
    bool is_map = value->type == MU_VALUE_MAP;
    mu_value *copy = is_map ? mu_value_map() : mu_value_list();

    for (uint32_t i = 0; copy != NULL && i < container->count; i++) {
        mu_value *item = mu__references_replace(container->items[i], substitute, arg);
        int rv = is_map ? mu_value_set(copy, container->keys[i], item)
                        : mu_value_append(copy, item);

        if (rv != 0) {
            mu_value_free(copy);
            return NULL;
        }
    }
    return copy;
}

mu_value *mu__references_replace(const mu_value *value, mu__substitute_fn substitute,
                                 void *arg)
{
    if (value->type == MU_VALUE_REFERENCE)
        return substitute(arg, value);
    if (!is_container_value(value) || !mu__has_references(value))
        return mu_value_ref(value);
    return replace_items(value, substitute, arg);
}
