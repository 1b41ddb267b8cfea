/* Snapshots of a store: some of its shards as they were at one time. A shard is copied
 * before its first change after that, unless all of it was read already. Copies count in
 * limits of their own, so that no write fails for them: when there is no memory for a
 * copy, the snapshot has failed. The number of open ones is limited, too. Plain data. */
#ifndef MU_ACTORS_PS_STORE_SNAPSHOTS_H
#define MU_ACTORS_PS_STORE_SNAPSHOTS_H

#include "actors/ps/tables/copies/set_copies.h"
#include "actors/ps/variable_store.h"

/* What is bounded. */
struct mu__snapshot_usage {
    uint64_t copied; /* bytes */
    uint32_t count;
};

/* Those of all partitions of a server. */
struct open_snapshots {
    struct mu__snapshot_usage usage;
    uint64_t timer; /* 0: not set */
};

/* The client that opened it, and its number there. */
struct mu__snapshot_key {
    mu__pid client;
    uint64_t number;
};

/* With `slots`: for each id in turn a kind of rule, 4 bytes, and a step, 8 bytes, in host
 * order. */
enum { MU__SNAPSHOT_ID_BYTES = 8, MU__SNAPSHOT_SLOTS_BYTES = 4 + 8 };

struct mu__snapshot_slots {
    uint32_t rule; /* 0: there are none */
    uint64_t step;
};

/* What the shards have now, as it travels; in the order of `ids`. NULL: out of memory. */
uint8_t *mu__snapshot_slots_pack(const struct mu__variable_store *store,
                                 struct mu__view ids, uint32_t *ret_size);
struct mu__snapshot_slots mu__snapshot_slots_at(const uint8_t *slots, size_t i);

/* What is in one. */
struct mu__snapshot_content {
    struct mu__view ids;    /* of shards, in the byte order of this machine's messages
                               (mu__snapshot_id_put) */
    bool with_slots;        /* behind the content of each shard its slots */
    struct mu__view tables; /* ids of tables (tables/set_copies.h) */
    struct mu__set_copies_marks marks;
    uint8_t *extra; /* bytes besides, under the id 0 */
    uint64_t extra_bytes;
};

/* Open one; it takes the extra bytes in any case. -MU_ENOTFOUND (shard), -MU_EDATALOSS
 * (table), -MU_EPRECONDITION (no content yet), -MU_EINVALID, -MU_EEXHAUSTED,
 * -MU_ENOMEM. */
int mu__snapshot_open(struct mu__variable_store *store,
                      const struct mu__snapshot_key *key,
                      const struct mu__snapshot_content *content, mu_error *ret_error);

uint8_t *mu__snapshot_id_put(uint8_t *at, uint64_t id);

/* Read a part of a shard, as mu__store_read does; each part once. Of a table: copies of
 * whole rows, in their order; `ret_data` is borrowed until they are taken. -MU_EABORTED:
 * the snapshot is not known, or the shard was read; -MU_EEXHAUSTED: it has failed. */
int mu__snapshot_read(struct mu__variable_store *store,
                      const struct mu__snapshot_key *key,
                      const struct mu__store_read *request, mu_error *ret_error,
                      struct mu__view *ret_data);

/* What was read is not needed any more. With the last bytes the snapshot ends. */
void mu__snapshot_taken(struct mu__variable_store *store,
                        const struct mu__snapshot_key *key,
                        const struct mu__store_read *request);

/* End one, those of a node, those that were not read since the last call of this, or
 * all. */
void mu__snapshot_close(struct mu__variable_store *store,
                        const struct mu__snapshot_key *key);
void mu__snapshots_drop_node(struct mu__variable_store *store, uint32_t node);
void mu__snapshots_drop_idle(struct mu__variable_store *store);
void mu__snapshots_drop(struct mu__variable_store *store);

#endif
