#include "actors/ps/journal/store_walk.h"

#include "actors/ps/internal.h"

#include <stdlib.h>

bool mu__store_shard(const struct mu__variable_store *store, uint64_t id,
                     struct mu__store_shard *ret_shard)
{
    return mu__shard_describe(mu__map_get(&store->by_id, id), ret_shard);
}

uint64_t *mu__store_ids(const struct mu__variable_store *store, uint32_t *ret_count)
{
    uint64_t *ids = calloc((size_t)store->totals.variables + 1, sizeof *ids);
    struct mu__store_shard shard;
    uint32_t count = 0;

    if (ids == NULL)
        return NULL;
    for (const struct variable *v = oldest_shard(store); v != NULL; v = next_shard(v))
        if (mu__shard_describe(v, &shard))
            ids[count++] = shard.id;
    *ret_count = count;
    return ids;
}

bool mu__store_is_quiet(const struct mu__variable_store *store)
{
    struct mu__store_shard shard;

    if (store->totals.waiting > 0 || store->totals.transfers > 0)
        return false;
    for (const struct variable *v = oldest_shard(store); v != NULL; v = next_shard(v))
        if (!mu__shard_describe(v, &shard))
            return false;
    return true;
}
