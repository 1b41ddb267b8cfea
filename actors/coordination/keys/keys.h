/* Key-values, as the other parts of the service see them. */
#ifndef MU_ACTORS_COORDINATION_KEYS_H
#define MU_ACTORS_COORDINATION_KEYS_H

#include "actors/coordination/internal.h"

/* The incarnation has registered; its results are kept while it is here. Or has ended:
 * its leases do, too. And: nothing comes from the node now (barriers stay as they are: a
 * task whose link is down is still there). */
void mu__coord_keys_task_joined(struct coordination *c, uint64_t incarnation);
void mu__coord_keys_task_ended(struct mu__ctx *ctx, struct coordination *c,
                               uint64_t incarnation);
void mu__coord_keys_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node);
int mu__coord_keys_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_keys_done(struct coordination *c);
void mu__coord_on_key_put(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_increment(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_delete(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_txn(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_list(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_watch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_key_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* One record of the store, while it is read; and: everything of before is forgotten,
 * because it will be read again. */
int mu__coord_keys_visit(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__msg *record);
void mu__coord_keys_forget(struct coordination *c);

/* Write all that counts into a store that is being rewritten. */
int mu__coord_keys_rewrite(struct mu__ctx *ctx, struct coordination *c);

/* Leases of tasks that did not register within dead_ms after it began to lead. */
void mu__coord_keys_tick(struct mu__ctx *ctx, struct coordination *c);

/* The service's own keys, below MU__KEYS_OWN, which programs may read and not change. */
#define MU__KEYS_OWN "_muster"

int mu__coord_keys_put_own(struct mu__ctx *ctx, struct coordination *c, const char *key,
                           const void *value, size_t size);
bool mu__coord_keys_get_own(struct coordination *c, const char *key,
                            struct mu__key_value *ret_entry);
int mu__coord_keys_delete_own(struct mu__ctx *ctx, struct coordination *c,
                              const char *key);

/* Under the revision of the last change, which it does not count as. */
int mu__coord_keys_put_quietly(struct mu__ctx *ctx, struct coordination *c,
                               const char *key, const void *value, size_t size);

/* Delete a key and all below it; and all that are not the service's own: how many. */
uint64_t mu__coord_keys_drop(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__view directory);
uint64_t mu__coord_keys_drop_others(struct mu__ctx *ctx, struct coordination *c);

/* Before any task has registered: the results of what agents asked, and the leases. */
void mu__coord_keys_drop_agents(struct mu__ctx *ctx, struct coordination *c);

/* What is below a directory, "" for all; and how many results of agents are kept. */
void mu__coord_keys_measure(const struct coordination *c, struct mu__view directory,
                            uint64_t *ret_count, uint64_t *ret_bytes);
uint64_t mu__coord_keys_results(const struct coordination *c);

/* The revision of the next change: whatever changes from now on has this or a later one,
 * also at other hosts of a store that lasts. */
uint64_t mu__coord_next_revision(const struct coordination *c);

/* The next key of all behind `from`, in their order; valid until one is changed. */
bool mu__coord_keys_next_own(const struct coordination *c, struct mu__view from,
                             struct mu__key_value *ret_entry);

#endif
