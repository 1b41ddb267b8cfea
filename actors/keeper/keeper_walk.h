/* All that is kept is visited once, in steps, while it changes: what was visited, in that
 * order, together with what was kept behind the walk, gives what is there at its end.
 *
 *     behind     actors that were visited: what they get from now on is appended there
 *     at         the actor that is being visited: what it gets is visited by the walk,
 *                now or later
 *     ahead      what these get is visited later
 *
 * Actors are visited in the order in which they came, each one's snapshot and records
 * first, then the answers of one sender after the other, then what waits for the rest of
 * its turn. keeper_items.c tells what changes. */
#ifndef MU_ACTORS_KEEPER_WALK_H
#define MU_ACTORS_KEEPER_WALK_H

#include "runtime/message/message.h"

#include <stdbool.h>
#include <stdint.h>

struct kept_actor;
struct kept_actors;
struct kept_sender;
struct mu__keep_item;

enum kept_walk_phase { KEPT_BEHIND, KEPT_AT, KEPT_AHEAD };

struct kept_visitor {
    /* A fence: the actor begins, or has got other numbers while it was visited. */
    void (*actor)(void *owner, const struct kept_actor *actor);
    void (*item)(void *owner, struct mu__msg *item);
    void *owner;
};

struct kept_walk {
    bool runs;
    uint64_t number; /* of the walks that were begun */
    struct kept_visitor visitor;
    struct kept_actor *upcoming; /* the first one ahead; NULL: there is none */
    struct kept_actor *actor;    /* it is at this one; NULL: between two */
    uint64_t epoch;              /* as they were when it came there */
    uint64_t last;
    bool is_at_senders;
    struct kept_sender *sender; /* the answers of this one; NULL: behind the last */
    struct mu__msg *item;       /* the next one of that list */
    uint64_t bytes;             /* that were visited */
};

void mu__kept_walk_begin(struct kept_actors *actors, const struct kept_visitor *visitor);
void mu__kept_walk_end(struct kept_actors *actors);

/* Visit until there are so many bytes, and the item that goes beyond them. True: nothing
 * is ahead. What comes later is, so that there may be more steps. */
bool mu__kept_walk_step(struct kept_actors *actors, uint64_t bytes_max);

/* Without a walk everything is behind. */
enum kept_walk_phase mu__kept_walk_phase(const struct kept_actors *actors,
                                         const struct kept_actor *actor);

/* ---- What changes ---- */

void mu__kept_walk_actor_came(struct kept_actors *actors, struct kept_actor *actor);
void mu__kept_walk_actor_goes(struct kept_actors *actors, struct kept_actor *actor);
void mu__kept_walk_sender_goes(struct kept_actors *actors, struct kept_sender *sender);

/* The last one of the snapshot and the records (`sender` is NULL), or of the answers. */
void mu__kept_walk_item_came(struct kept_actors *actors, struct kept_actor *actor,
                             const struct kept_sender *sender, struct mu__msg *item);
void mu__kept_walk_item_goes(struct kept_actors *actors, const struct mu__msg *item);

/* One that is applied and not kept. */
void mu__kept_walk_forgets(struct kept_actors *actors, struct kept_actor *actor,
                           struct mu__msg *item);

#endif
