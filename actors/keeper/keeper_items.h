/* What is kept of each actor, in memory: items as they came, which are what the file has
 * and what is loaded. Plain data. */
#ifndef MU_ACTORS_KEEPER_ITEMS_H
#define MU_ACTORS_KEEPER_ITEMS_H

#include "actors/keeper/keeper_walk.h"
#include "actors/messages.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/base/text_map.h"
#include "runtime/kernel/pid.h"
#include "runtime/message/pool.h"

struct items {
    struct mu__msg *first;
    struct mu__msg *last;
};

/* The answers that one process may ask for again, as they were given. Of two of one call
 * the later one counts. */
struct kept_sender {
    uint64_t id;
    uint64_t base; /* it asks for none below */
    struct items answers;
    struct mu__list_node node; /* of its actor's, by `order` */
    uint64_t order;
};

struct kept_actor {
    struct mu__text_node named; /* first */
    uint64_t epoch;
    uint64_t owner;         /* the process of that life, */
    mu__pid pid;            /* and its office */
    uint64_t last;          /* item of this life */
    uint64_t flushed;       /* up to this one they were acknowledged */
    uint64_t bytes;         /* of all that is kept, */
    struct items kept;      /* the snapshot and the records since, */
    struct items open;      /* and what waits for the rest of its turn */
    struct mu__map senders; /* struct kept_sender, by id, */
    struct mu__list senders_all;
    uint64_t senders_made;
    struct mu__list_node node; /* of all */
    uint64_t walk;             /* the last one that has come to it */
    bool is_loading;           /* what is kept is sent when the fence is flushed */
    bool is_touched; /* in the list of those that get an answer after the flush */
    struct kept_actor *next_touched;
    struct mu__list_node review; /* it is not known yet whether it has a record */
    bool is_reviewed;
    struct mu__list_node full; /* it was told that there is no room */
    bool is_reported_full;
    char name[];
};

struct kept_actors {
    struct mu__text_map by_name; /* struct kept_actor, */
    struct mu__list all;
    struct kept_walk walk;
    struct mu__pool *pool;
    const struct mu__schema *schema;
    uint32_t count;
    uint64_t bytes; /* of all */
    uint64_t bytes_max;
};

void mu__kept_actors_done(struct kept_actors *actors);

struct kept_actor *mu__kept_actor_find(const struct kept_actors *actors,
                                       struct mu__view name);
/* -MU_EEXHAUSTED: there are MU__KEPT_ACTORS_MAX; -MU_ENOMEM. */
int mu__kept_actor_add(struct kept_actors *actors, struct mu__view name,
                       struct kept_actor **ret_actor);

/* A new life: what its former one left open does not count. */
void mu__kept_actor_fence(struct kept_actors *actors, struct kept_actor *actor,
                          const struct mu__keep_fence *fence);

/* It was stopped. */
void mu__kept_actor_remove(struct kept_actors *actors, struct kept_actor *actor);

/* Nothing is kept of it: another actor has the name now. */
void mu__kept_actor_clear(struct kept_actors *actors, struct kept_actor *actor);

/* Whether there is room for an item; -MU_EEXHAUSTED or -MU_EINVALID with the reason. */
int mu__kept_actor_check(const struct kept_actors *actors, const struct kept_actor *actor,
                         const struct mu__keep_item *item, mu_error *ret_error);

/* Take in a copy of an item. -MU_ENOMEM: nothing changed. */
int mu__kept_actor_put(struct kept_actors *actors, struct kept_actor *actor,
                       const struct mu__msg *msg);

/* In memory. */
uint64_t mu__kept_item_bytes(const struct mu__msg *item);

/* Each item, in an order in which putting them again gives the same. Nonzero ends it. */
typedef int (*mu__kept_visit_fn)(void *owner, struct mu__msg *item);
int mu__kept_actor_each(const struct kept_actor *actor, mu__kept_visit_fn visit,
                        void *owner);

#endif
