/* What a snapshot of a store is made from: shards by their ids, as they are now. */
#ifndef MU_ACTORS_STORE_WALK_H
#define MU_ACTORS_STORE_WALK_H

#include "actors/ps/variable_store.h"

/* A shard with content, by its id; false: there is none. */
bool mu__store_shard(const struct mu__variable_store *store, uint64_t id,
                     struct mu__store_shard *ret_shard);

/* The ids of all shards with content, the oldest first; the caller frees them. NULL: out
 * of memory. */
uint64_t *mu__store_ids(const struct mu__variable_store *store, uint32_t *ret_count);

/* Whether nobody has begun anything that has not ended, or waits for a shard. */
bool mu__store_is_quiet(const struct mu__variable_store *store);

#endif
