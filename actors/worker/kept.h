/* What a worker keeps for its chiefs between runs: results that stay, inputs that were
 * sent, per-worker values. Plain data; knows no messages. Loop thread only.
 *
 * An item is found by its owner, the number of the chief's node, and by the chief's own
 * number for it, which is not 0. Its content is a value. An object is kept as a reference
 * value that holds it: whoever uses the content holds the value, so that dropping an item
 * takes nothing away from runs that have it.
 *
 *     EXPECTED --> BUILDING --> READY, FAILED
 *         '----------------------^
 *
 * BUILDING may be begun anew from anywhere, and a dropped item that somebody waits for is
 * EXPECTED again. */
#ifndef MU_ACTORS_KEPT_H
#define MU_ACTORS_KEPT_H

#include "runtime/base/map.h"

#include "muster/value.h"

#include <stdbool.h>

enum mu__kept_state {
    MU__KEPT_EXPECTED,      /* somebody waits for it; gone as soon as nobody does */
    MU__KEPT_BUILDING,      /* a run of this worker makes it */
    MU__KEPT_READY,
    MU__KEPT_FAILED
};

struct mu__kept_owner;

/* One thing that somebody waits for; embedded in what the waiting one has. */
struct mu__kept_wait {
    struct mu__kept_wait *next;
    struct mu__kept_wait *prev;
    struct mu__kept_item *item;     /* NULL: waits for nothing */
};

struct mu__kept_item {
    struct mu__kept_owner *owner;
    uint64_t number;
    enum mu__kept_state state;
    const void *builder;            /* BUILDING: who makes it; only compared */
    mu_value *value;                /* READY */
    uint64_t bytes;                 /* READY: what the value would need on the wire */
    mu_error *error;                /* FAILED; NULL: there was no memory for it */
    struct mu__kept_wait *first;    /* who waits, in the order of coming */
    struct mu__kept_wait *last;
};

/* Numbers that were dropped before they came are remembered, so many for each owner, and
 * the latest ones. */
enum { MU__KEPT_NOTES_MAX = 64 };

/* Zeroed memory is an empty one. */
struct mu__kept {
    struct mu__kept_owner *owners;
    uint64_t bytes;                 /* of all that is READY */
    uint64_t seed;                  /* of maps of numbers that peers choose */
};

/* Everything goes. Nobody may wait any more. */
void mu__kept_done(struct mu__kept *kept);

/* NULL when there is none. */
struct mu__kept_item *mu__kept_find(const struct mu__kept *kept, uint32_t owner,
                                    uint64_t number);

/* The item, a new EXPECTED one if there is none; a note that it was dropped is taken
 * back. The caller at once waits for it or gives it another state. NULL: no memory. */
struct mu__kept_item *mu__kept_expect(struct mu__kept *kept, uint32_t owner,
                                      uint64_t number);

/* `builder` makes it from now on; what was there is dropped. */
void mu__kept_build(struct mu__kept *kept, struct mu__kept_item *item,
                    const void *builder);

/* It is READY; takes `value`. */
void mu__kept_succeed(struct mu__kept *kept, struct mu__kept_item *item, mu_value *value,
                      uint64_t bytes);

/* It is FAILED; copies `error`. */
void mu__kept_fail(struct mu__kept *kept, struct mu__kept_item *item,
                   const mu_error *error);

/* Nobody makes it any more, and it is not there: EXPECTED if somebody waits for it, else
 * gone. */
void mu__kept_forget(struct mu__kept *kept, struct mu__kept_item *item);

/* The owner does not need it any more. One that is not there is noted. */
void mu__kept_drop(struct mu__kept *kept, uint32_t owner, uint64_t number);

/* Whether it was dropped and never came; asked once, the note is gone. */
bool mu__kept_take_note(struct mu__kept *kept, uint32_t owner, uint64_t number);

/* All of an owner, with its notes. Nobody may wait for any of it any more. */
void mu__kept_drop_owner(struct mu__kept *kept, uint32_t owner);

/* Wait for an item, behind those who do already; and no more, which is fine for who does
 * not. */
void mu__kept_wait(struct mu__kept_item *item, struct mu__kept_wait *wait);
void mu__kept_unwait(struct mu__kept *kept, struct mu__kept_wait *wait);

/* The first of those who wait, who then waits no more; NULL: nobody does. The item stays,
 * whatever its state. */
struct mu__kept_wait *mu__kept_take_wait(struct mu__kept_item *item);

#endif
