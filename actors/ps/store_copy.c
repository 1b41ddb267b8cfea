/* Copies of a store: what they are made from, and how. */
#include "actors/ps/internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- The original ---- */

struct mu__store_position mu__store_get_position(const struct mu__variable_store *store)
{
    return (struct mu__store_position){store->serial, store->creations};
}

void mu__store_visit(struct mu__variable_store *store)
{
    store->visited = oldest_shard(store);
    store->visited_removed = true;
}

bool mu__shard_describe(const struct variable *v, struct mu__store_shard *ret_shard)
{
    if (v == NULL || (v->stage != READY && v->stage != ABANDONED))
        return false;
    *ret_shard = (struct mu__store_shard){
        .name = mu__view_str(v->name),
        .shape = v->shape,
        .shard = v->shard,
        .id = v->id,
        .creation = v->creation,
        .version = v->version,
        .ready = v->stage == READY,
        .bytes = v->bytes,
        .data = v->data,
        .rule = v->slots.kind,
        .step = v->slots.step,
        .slots_bytes = v->slots.bytes,
        .slots = v->slots.data,
    };
    return true;
}

bool mu__store_visit_next(struct mu__variable_store *store,
                          struct mu__store_shard *ret_shard)
{
    do {
        if (!store->visited_removed && store->visited != NULL)
            store->visited = next_shard(store->visited);
        store->visited_removed = false;
        if (store->visited == NULL)
            return false;
    } while (!mu__shard_describe(store->visited, ret_shard));
    return true;
}

bool mu__store_visited(const struct mu__variable_store *store,
                       struct mu__store_shard *ret_shard)
{
    return !store->visited_removed && mu__shard_describe(store->visited, ret_shard);
}

/* ---- The copy ---- */

void mu__store_set_position(struct mu__variable_store *store,
                            struct mu__store_position position)
{
    store->serial = position.serial;
    store->creations = position.creations;
}

/* The shard with its memory, under the id of the original. */
static int copy_shard(struct mu__variable_store *store, struct variable *v,
                      const struct mu__store_shard *shard, mu_error *ret_error)
{
    int rv = mu__shard_get_memory(store, shard->bytes, ret_error, &v->data);

    if (rv != 0)
        return rv;
    v->bytes = shard->bytes;
    if (mu__map_set(&store->by_id, shard->id, v) != 0) {
        mu__shard_give_memory(store, v->data, v->bytes);
        v->data = NULL;
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    }
    v->id = shard->id;
    v->shape = shard->shape;
    v->creation = shard->creation;
    v->version = shard->version;
    v->received = shard->bytes;
    v->stage = shard->ready ? READY : ABANDONED;
    store->totals.variables++;
    if (shard->rule == 0)
        return 0;
    rv = mu__slots_make(store, v, shard->rule, ret_error);
    if (rv == 0)
        v->slots.step = shard->step;
    return rv;
}

static bool is_rule_with_slots(uint32_t rule)
{
    const struct mu__rule_kind *kind = mu__rule_kind(rule);

    return rule == 0 || (kind != NULL && kind->slots + kind->row_slots > 0);
}

int mu__store_put_shard(struct mu__variable_store *store,
                        const struct mu__store_shard *shard, mu_error *ret_error)
{
    const struct mu__store_open request = {.name = shard->name, .shard = shard->shard};
    struct variable *v = mu__shard_find_by_name(store, shard->name, shard->shard);
    uint64_t offset;
    uint64_t bytes;
    int rv = mu__variable_name_check(shard->name, ret_error);

    if (rv == 0)
        rv = mu__shape_check(&shard->shape, ret_error);
    if (rv != 0)
        return rv;
    if (v != NULL || shard->id == 0 || !is_rule_with_slots(shard->rule) ||
        mu__map_get(&store->by_id, shard->id) != NULL ||
        shard->shard >= shard->shape.shards)
        return mu_error_set(ret_error, -MU_EINVALID, "a shard that cannot be filled");
    mu__shape_shard(&shard->shape, shard->shard, &offset, &bytes);
    if (bytes != shard->bytes)
        return mu_error_set(ret_error, -MU_EINVALID, "shard of %" PRIu64 " bytes",
                            shard->bytes);
    rv = mu__shard_variable_new(store, &request, ret_error, &v);
    if (rv == 0)
        rv = copy_shard(store, v, shard, ret_error);
    if (rv != 0 && v != NULL)
        mu__shard_remove_unused(store, v);
    return rv;
}

int mu__store_put_bytes(struct mu__variable_store *store,
                        const struct mu__store_bytes *bytes, mu_error *ret_error)
{
    struct variable *v = mu__map_get(&store->by_id, bytes->id);
    uint64_t room;

    if (v == NULL || bytes->data.size == 0)
        return 0;
    room = bytes->slots ? v->slots.bytes : v->bytes;
    if (bytes->offset > room || bytes->data.size > room - bytes->offset)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "%" PRIu32 " bytes at %" PRIu64 " of %" PRIu64,
                            bytes->data.size, bytes->offset, room);
    memcpy((bytes->slots ? v->slots.data : v->data) + bytes->offset, bytes->data.data,
           bytes->data.size);
    return 0;
}

/* ---- Comparing ---- */

enum { SAMPLE_BYTES = 64 };

static uint64_t mix_bytes(uint64_t sum, const uint8_t *data, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
    return sum;
}

uint64_t mu__store_sample(const struct mu__variable_store *store, uint64_t id,
                          uint64_t offset, uint64_t size)
{
    const struct variable *v = mu__map_get(&store->by_id, id);
    uint64_t sum;

    if (v == NULL)
        return mu__tables_sample(&store->tables, id);
    if (offset > v->bytes || size > v->bytes - offset)
        return 0;
    sum = v->version + 1 + (v->slots.step << 8) + v->slots.kind;
    if (size <= SAMPLE_BYTES)
        return mix_bytes(sum, v->data + offset, size);
    sum = mix_bytes(sum, v->data + offset, SAMPLE_BYTES / 2);
    return mix_bytes(sum, v->data + offset + size - SAMPLE_BYTES / 2, SAMPLE_BYTES / 2);
}
