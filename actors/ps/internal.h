/* What the store of a parameter server is made of:
 *
 *     variable_store.c  opening and reading; the store as a whole
 *     openers.c         who opened a shard and waits for it
 *     shards.c          shards by name and id, and how they are made
 *     shard_writes.c    writes, staged assigns, batches of runs
 *     slots/slots.c     what optimizers keep, and gradients
 *     store_copy.c      what a copy is made from, and how
 *     store_snapshots.c shards as they were at one time
 *     store_walk.c      shards one by one, for a journal that is written anew */
#ifndef MU_ACTORS_PS_INTERNAL_H
#define MU_ACTORS_PS_INTERNAL_H

#include "actors/ps/slots/slots.h"
#include "actors/ps/tables/table_set.h"
#include "actors/ps/variable_store.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"

/* The stages of a shard.
 *
 *     ABSENT --> MAKING --> FILLED --> READY      shard 0 goes from MAKING to READY
 *      ^ ^       |    ^      |          |
 *      | '-------'    |      v          |
 *      |              '--- ABANDONED ---+         made anew; or found, READY
 *      '-----------------------'--------'
 *
 * ABSENT: opens wait for it, and it has no creator. FILLED: has its content, but the
 * creator has not said COMMIT. ABANDONED: its creator was lost before COMMIT; only the
 * next opener can tell whether shard 0 has its content: not one of a former creation, who
 * has yet to hear that shard 0 is another one's. */
enum shard_stage { ABSENT, MAKING, FILLED, ABANDONED, READY };

struct open_answer {
    struct mu__list_node node; /* first */
    struct mu__store_opened opened;
    struct mu__shape shape; /* that was asked for */
    bool existing;
    uint64_t creation;
};

struct variable {
    struct mu__list_node node;   /* by age */
    struct variable *next_alike; /* under the same key of by_name */
    uint64_t key;
    uint64_t id;
    struct mu__shape shape; /* this and all below: unless ABSENT */
    uint32_t shard;
    enum shard_stage stage;
    uint64_t bytes;
    uint8_t *data;
    struct mu__slots slots;
    uint64_t version;
    uint64_t reads;
    uint64_t writes;
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t nonfinite;                 /* gradients that were refused for it */
    struct mu__shard_requester creator; /* MAKING, FILLED: owes content or COMMIT */
    uint64_t creation;                  /* whose the content is; 0: not known */
    uint64_t received;                  /* bytes of the content, so far */
    struct mu__list waiting;            /* open_answers that wait for READY */
    char name[];
};

/* An assign under way: bytes 0 to `received` are in `data`. */
struct transfer {
    struct mu__list_node node;
    struct variable *variable;
    mu__pid writer;
    uint64_t number;
    uint64_t received;
    uint8_t *data;
};

struct mu__variable_store {
    struct mu__store_limits limits;
    uint64_t incarnation;
    uint64_t serial;
    uint32_t creations; /* of shards 0 */
    struct mu__map by_id;
    struct mu__map by_name;
    struct mu__list by_age; /* of variables */
    struct mu__list transfers;
    uint8_t *spare;           /* what the last assign replaced, for the next one: */
    uint64_t spare_bytes;     /* fresh memory costs more than the copy into it */
    struct mu__list due;      /* open_answers */
    struct variable *visited; /* by mu__store_visit; NULL: none, or all were */
    bool visited_removed;     /* `visited` is the one behind it */
    struct mu__store_totals totals;
    struct mu__table_set tables;
    struct mu__list snapshots; /* store_snapshots.c */
    uint64_t copied;           /* bytes, unless several stores count together */
};

static inline struct variable *oldest_shard(const struct mu__variable_store *store)
{
    return MU__LIST_FIRST(&store->by_age, struct variable, node);
}

static inline struct variable *next_shard(const struct variable *v)
{
    return MU__LIST_NEXT(v, struct variable, node);
}

/* ---- openers.c ---- */

struct open_answer *mu__opener_take_first(struct mu__list *list);
void mu__opener_free_answers(struct mu__list *list);
struct open_answer *mu__opener_answer_new(const struct mu__store_open *request);

/* Note for an open that waits: the shard does not exist (yet). */
void mu__opener_answer_absent(struct mu__variable_store *store,
                              const struct open_answer *waiting);
void mu__opener_answer(struct mu__variable_store *store, const struct variable *v,
                       bool created, struct open_answer *answer);

/* Opens for which `leaves` is true wait no more; they are handed to `leave`. */
void mu__opener_stop_waiting(
    struct mu__variable_store *store, struct variable *v,
    bool (*leaves)(const struct open_answer *answer, const void *arg), const void *arg,
    void (*leave)(struct mu__variable_store *store, struct open_answer *answer));
bool mu__opener_same_requester(const struct mu__shard_requester *a,
                               const struct mu__shard_requester *b);
bool mu__opener_is_of_requester(const struct open_answer *answer, const void *requester);
bool mu__opener_is_of_node(const struct open_answer *answer, const void *node);
bool mu__opener_is_mismatch(const struct open_answer *answer, const void *shape);
void mu__opener_answer_cancelled(struct mu__variable_store *store,
                                 struct open_answer *answer);

/* Before mu__opener_answer_mismatch: tell opens the number of shards, if only that
 * differs. */
void mu__opener_set_shards(const struct variable *v);
void mu__opener_answer_mismatch(struct mu__variable_store *store,
                                struct open_answer *answer);
void mu__opener_drop_answer(struct mu__variable_store *store, struct open_answer *answer);

/* ---- shards.c ---- */

/* Whether the shard is of a later creation of the variable, by the same life of the
 * server of shard 0. */
bool mu__shard_is_later(const struct variable *v, uint64_t creation);

struct variable *mu__shard_find_by_name(const struct mu__variable_store *store,
                                        struct mu__view name, uint32_t shard);
struct variable *mu__shard_find_by_id(const struct mu__variable_store *store, uint64_t id,
                                      mu_error *ret_error);

/* Count `bytes` more, within bytes_max. */
int mu__shard_charge(struct mu__variable_store *store, uint64_t bytes,
                     mu_error *ret_error);

/* Count `bytes` less. */
void mu__shard_discharge(struct mu__variable_store *store, uint64_t bytes);

/* Charged and zeroed memory. */
int mu__shard_get_memory(struct mu__variable_store *store, uint64_t bytes,
                         mu_error *ret_error, uint8_t **ret_data);
void mu__shard_give_memory(struct mu__variable_store *store, uint8_t *data,
                           uint64_t bytes);
int mu__shard_list(struct mu__variable_store *store, struct variable *v);
void mu__shard_free_variable(struct mu__variable_store *store, struct variable *v);

/* A new ABSENT shard. */
int mu__shard_variable_new(struct mu__variable_store *store,
                           const struct mu__store_open *request, mu_error *ret_error,
                           struct variable **ret_variable);

/* Remove a shard that is ABSENT and that nobody waits for. */
void mu__shard_remove_unused(struct mu__variable_store *store, struct variable *v);

/* An ABSENT shard is MAKING, by the requester, under a new id. */
int mu__shard_create(struct mu__variable_store *store, struct variable *v,
                     const struct mu__store_open *request, mu_error *ret_error);

/* A shard of any stage is ABSENT: its content and id are dropped. */
void mu__shard_strip(struct mu__variable_store *store, struct variable *v);
void mu__shard_make_ready(struct mu__variable_store *store, struct variable *v);

/* The creator gave up, or was lost, before it said COMMIT. May free `v`. */
void mu__shard_lose_creator(struct mu__variable_store *store, struct variable *v);

/* ---- store_copy.c ---- */

/* False: it has no content yet, or `v` is NULL. */
bool mu__shard_describe(const struct variable *v, struct mu__store_shard *ret_shard);

/* ---- variable_store.c ---- */

int mu__store_check_range(const struct variable *v, uint64_t offset, uint64_t size,
                          mu_error *ret_error);

/* ---- shard_writes.c ---- */

/* Drop the transfers to a shard, or with `v` NULL those of a node. */
void mu__shard_drop_transfers(struct mu__variable_store *store, const struct variable *v,
                              uint32_t node);

bool mu__shard_has_transfers(const struct mu__variable_store *store, uint32_t node);

/* One piece; the last one makes all of them visible. */
int mu__shard_stage(struct mu__variable_store *store, struct variable *v,
                    const struct mu__store_write *write, mu_error *ret_error);
bool mu__shard_has_creator(const struct variable *v);

/* ---- store_snapshots.c ---- */

/* Its content is about to change, or to be dropped: snapshots copy it. */
void mu__shard_will_change(struct mu__variable_store *store, const struct variable *v);

#endif
