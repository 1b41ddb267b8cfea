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
#ifndef MU_ACTORS_WORKER_PINNED_H
#define MU_ACTORS_WORKER_PINNED_H

#include "runtime/base/list.h"
#include "runtime/base/map.h"

#include "muster/value.h"

#include <stdbool.h>

enum mu__pinned_state {
    MU__PINNED_EXPECTED, /* somebody waits for it; removed when nobody does */
    MU__PINNED_BUILDING, /* a run of this worker makes it */
    MU__PINNED_READY,
    MU__PINNED_FAILED
};

struct mu__pinned_owner;

/* A wait for one item; embedded in the struct of who waits. */
struct mu__pinned_wait {
    struct mu__list_node node;    /* first */
    struct mu__pinned_item *item; /* NULL: it does not wait */
};

struct mu__pinned_item {
    struct mu__pinned_owner *owner;
    uint64_t number;
    enum mu__pinned_state state;
    const void *builder;   /* BUILDING: its run; only compared */
    mu_value *value;       /* READY */
    uint64_t bytes;        /* READY: what the value would need on the wire */
    mu_error *error;       /* FAILED; NULL: there was no memory for it */
    struct mu__list waits; /* in the order in which they began */
};

/* Numbers that were dropped before they came are remembered, the latest so many of each
 * owner. */
enum { MU__PINNED_NOTES_MAX = 64 };

/* Zeroed memory is an empty one. */
struct mu__pinned {
    struct mu__pinned_owner *owners;
    uint64_t bytes; /* of all that is READY */
    uint64_t seed;  /* of maps of numbers that peers choose */
};

/* Frees all. There may be no waits left. */
void mu__pinned_done(struct mu__pinned *pinned);

/* NULL when there is none. */
struct mu__pinned_item *mu__pinned_find(const struct mu__pinned *pinned, uint32_t owner,
                                        uint64_t number);

/* The item, a new EXPECTED one if there is none; a note that it was dropped is taken
 * back. The caller at once waits for it or gives it another state. NULL: no memory. */
struct mu__pinned_item *mu__pinned_expect(struct mu__pinned *pinned, uint32_t owner,
                                          uint64_t number);

/* `builder` makes it from now on; an earlier value or error is dropped. */
void mu__pinned_build(struct mu__pinned *pinned, struct mu__pinned_item *item,
                      const void *builder);

/* Make an item READY; takes `value`. */
void mu__pinned_succeed(struct mu__pinned *pinned, struct mu__pinned_item *item,
                        mu_value *value, uint64_t bytes);

/* Make an item FAILED; copies `error`. */
void mu__pinned_fail(struct mu__pinned *pinned, struct mu__pinned_item *item,
                     const mu_error *error);

/* Drop an item's content: it is EXPECTED if somebody waits for it, and removed
 * otherwise. */
void mu__pinned_forget(struct mu__pinned *pinned, struct mu__pinned_item *item);

/* The owner does not need it any more. One that is not there is noted. */
void mu__pinned_drop(struct mu__pinned *pinned, uint32_t owner, uint64_t number);

/* Whether a number was dropped before it came; forgets the note. */
bool mu__pinned_take_note(struct mu__pinned *pinned, uint32_t owner, uint64_t number);

/* Remove all items and notes of an owner. There may be no waits for them left. */
void mu__pinned_drop_owner(struct mu__pinned *pinned, uint32_t owner);

/* Bytes of memory that an owner's items need, about: their content as on the wire, their
 * errors, and the items themselves. */
uint64_t mu__pinned_bytes_of(const struct mu__pinned *pinned, uint32_t owner);

/* Begin to wait for an item, behind earlier waits; stop waiting, which is fine for a wait
 * that has not begun. */
void mu__pinned_wait(struct mu__pinned_item *item, struct mu__pinned_wait *wait);
void mu__pinned_unwait(struct mu__pinned *pinned, struct mu__pinned_wait *wait);

/* The first wait, which ends; NULL: there is none. The item stays, whatever its state. */
struct mu__pinned_wait *mu__pinned_take_wait(struct mu__pinned_item *item);

#endif
