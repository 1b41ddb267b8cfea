/* Key-values, for the other parts of the service. */
#ifndef MU_ACTORS_COORDINATION_KEYS_H
#define MU_ACTORS_COORDINATION_KEYS_H

#include "actors/coordination/internal.h"

/* An incarnation has registered: its results are kept. It has ended, and with it its
 * leases. A link is down, and with it the waits of that node. */
void mu__coord_keys_task_joined(struct coordination *c, uint64_t incarnation);
void mu__coord_keys_task_ended(struct mu__ctx *ctx, struct coordination *c,
                               uint64_t incarnation);
void mu__coord_keys_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node);
int mu__coord_keys_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_keys_done(struct coordination *c);
void mu__coord_on_key_put(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_increment(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_delete(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_txn(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Take one record of the store, while it is read; forget all, before it is read again. */
int mu__coord_keys_visit(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__msg *record);
void mu__coord_keys_forget(struct coordination *c);

/* Write all present records into a store that is being rewritten. */
int mu__coord_keys_rewrite(struct mu__ctx *ctx, struct coordination *c);

/* Ends the leases of tasks that did not register within dead_ms of this host's lead;
 * sends pages and held reads. */
void mu__coord_keys_tick(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_keys_due_ms(const struct coordination *c);

/* The service's own keys, below MU__KEYS_OWN, which programs may read and not change. */
#define MU__KEYS_OWN "_muster"

int mu__coord_keys_put_own(struct mu__ctx *ctx, struct coordination *c, const char *key,
                           const void *value, size_t size);
bool mu__coord_keys_get_own(struct coordination *c, const char *key,
                            struct mu__key_value *ret_entry);
int mu__coord_keys_delete_own(struct mu__ctx *ctx, struct coordination *c,
                              const char *key);

/* The same without a new revision: watches are not told. */
int mu__coord_keys_put_quietly(struct mu__ctx *ctx, struct coordination *c,
                               const char *key, const void *value, size_t size);

/* Delete a key and all below it; delete all that are not the service's own. Both return
 * how many. */
uint64_t mu__coord_keys_drop(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__view directory);
uint64_t mu__coord_keys_drop_others(struct mu__ctx *ctx, struct coordination *c);

/* Delete all results and leases. Before any task has registered. */
void mu__coord_keys_drop_agents(struct mu__ctx *ctx, struct coordination *c);

/* Number and bytes of the keys below a directory ("": all); the number of results. */
void mu__coord_keys_measure(const struct coordination *c, struct mu__view directory,
                            uint64_t *ret_count, uint64_t *ret_bytes);
uint64_t mu__coord_keys_results(const struct coordination *c);

/* The revision of the next change. All later changes, also at later hosts of a persistent
 * store, have this or a higher one. */
uint64_t mu__coord_next_revision(const struct coordination *c);

/* The next of all keys behind `from`; valid until a key is changed. */
bool mu__coord_keys_next_own(const struct coordination *c, struct mu__view from,
                             struct mu__key_value *ret_entry);

#endif
