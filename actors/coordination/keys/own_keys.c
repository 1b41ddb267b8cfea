/* The service's own keys, and measuring and deleting the contents of a run. */
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/request_results.h"

#include <assert.h>
#include <string.h>

/* ---- The service's own keys ---- */

static int put_own_key(struct mu__ctx *ctx, struct coordination *c, const char *key,
                       struct mu__view value, uint64_t revision)
{
    struct mu__key_value entry = {.key = mu__view_str(key), .value = value};

    assert(mu__key_is_below(entry.key, mu__view_str(MU__KEYS_OWN)));
    assert(mu__key_is_normal(entry.key) && value.size <= MU__KEY_VALUE_MAX);
    return mu__coord_key_put(ctx, c, &entry, revision, NULL);
}

int mu__coord_keys_put_own(struct mu__ctx *ctx, struct coordination *c, const char *key,
                           const void *value, size_t size)
{
    return put_own_key(ctx, c, key, (struct mu__view){value, (uint32_t)size},
                       mu__coord_next_revision(c));
}

int mu__coord_keys_put_quietly(struct mu__ctx *ctx, struct coordination *c,
                               const char *key, const void *value, size_t size)
{
    return put_own_key(ctx, c, key, (struct mu__view){value, (uint32_t)size},
                       c->revision);
}

bool mu__coord_keys_get_own(struct coordination *c, const char *key,
                            struct mu__key_value *ret_entry)
{
    return mu__key_values_find(c->keys->kv, mu__view_str(key), ret_entry);
}

bool mu__coord_keys_next_own(const struct coordination *c, struct mu__view from,
                             struct mu__key_value *ret_entry)
{
    return mu__key_values_next(c->keys->kv, from, true, ret_entry);
}

int mu__coord_keys_delete_own(struct mu__ctx *ctx, struct coordination *c,
                              const char *key)
{
    struct mu__key_value entry;

    if (!mu__key_values_find(c->keys->kv, mu__view_str(key), &entry))
        return -MU_ENOTFOUND;
    mu__coord_key_delete(ctx, c, &entry);
    return 0;
}

/* ---- Contents of a run ---- */

static bool is_own_key(struct mu__view key)
{
    return mu__view_is(key, MU__KEYS_OWN) ||
           mu__key_is_below(key, mu__view_str(MU__KEYS_OWN));
}

uint64_t mu__coord_keys_drop_others(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__key_value entry;
    struct mu__view from = mu__view_str("");
    char copy[MU__KEY_MAX];
    uint64_t count = 0;

    while (mu__key_values_next(c->keys->kv, from, true, &entry)) {
        assert(entry.key.size <= sizeof copy);
        memcpy(copy, entry.key.data, entry.key.size);
        from = (struct mu__view){copy, entry.key.size};
        if (is_own_key(from))
            continue;
        mu__coord_key_delete(ctx, c, &entry);
        count++;
    }
    return count;
}

void mu__coord_keys_measure(const struct coordination *c, struct mu__view directory,
                            uint64_t *ret_count, uint64_t *ret_bytes)
{
    struct mu__key_value entry = {.key = directory};

    *ret_count = *ret_bytes = 0;
    while (mu__key_values_next(c->keys->kv, entry.key, true, &entry) &&
           mu__key_is_below(entry.key, directory)) {
        ++*ret_count;
        *ret_bytes += (uint64_t)entry.key.size + entry.value.size;
    }
}

uint64_t mu__coord_keys_results(const struct coordination *c)
{
    return mu__results_count(c->keys->results);
}

/* End all leases that were read from the store: their owners belong to the former run. */
static void drop_leases(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__map *unproved = &c->keys->unproved;

    for (size_t i = 0; i < unproved->capacity; i++)
        if (unproved->entries[i].key != 0)
            mu__coord_key_end_leases(ctx, c, unproved->entries[i].key);
    mu__map_done(unproved);
}

struct dropping {
    struct mu__ctx *ctx;
    struct coordination *c;
    uint64_t agent; /* of the last result */
};

static int drop_results_of(void *user, uint64_t agent, uint64_t done,
                           const struct mu__request_result *result)
{
    struct dropping *d = user;

    (void)done;
    (void)result;
    if (agent != d->agent)
        mu__coord_key_write_result(d->ctx, d->c, agent, UINT64_MAX,
                                   &(struct mu__request_result){0});
    d->agent = agent;
    return 0;
}

void mu__coord_keys_drop_agents(struct mu__ctx *ctx, struct coordination *c)
{
    struct dropping d = {ctx, c, 0};

    drop_leases(ctx, c);
    (void)mu__results_each(c->keys->results, drop_results_of, &d);
    mu__results_clear(c->keys->results);
}
