/* The keeper of kept actors: what they have recorded, in a file. Parts of the actor:
 *
 *     keeper.c        what offices ask, and what is answered when
 *     keeper_items.c  what is kept of each actor
 *     keeper_walk.c   the same, visited in steps while it changes
 *     keeper_file.c   its file
 *
 * Hears:  KEEP_FENCE and KEEP_ITEM from the offices that own kept actors; KEEP_REVIEW and
 *         KEEP_DROP from its node's coordination service; its timer
 * Says:   KEPT once all up to a number is flushed, or why it is not; KEPT_ITEM of all
 *         that is kept, once a fence is flushed; KEEP_CHECK to the service
 * Owns:   the items of each actor by name: its snapshot, the records since, and for each
 *         sender of calls the answers that it may ask for again
 * Fails:  in init, when its file is damaged, of another use or newer: by name and offset.
 *         A file that is not read in one step is refused to each life, by the same words
 *
 * A life of an actor begins with a fence: its epoch and its process. From then on items
 * of a lower epoch are refused, so of two lives one can record. The items of a life have
 * numbers without a gap, and those with `more` count together with the next: a turn is
 * kept whole or not at all. What came in one batch is flushed together.
 *
 * What is kept of an actor is dropped when it is stopped; a life of it that did not know
 * gets an error.
 *
 * A keeper that has what it may have of all actors says so with each KEPT: turns that
 * record fail from then on, until some of it is dropped. What was under way then has a
 * quarter more room, and waits beyond it, as for a full disk.
 *
 * A full disk is said with each item, which its office sends again; nothing behind it is
 * taken meanwhile. When the file cannot be flushed, answers wait until it can.
 *
 * The file is read in steps, until which nothing is taken, and written anew in steps,
 * while all goes on: what is acknowledged meanwhile is in the present file and in the new
 * one. */
#ifndef MU_ACTORS_KEEPER_H
#define MU_ACTORS_KEEPER_H

#include "actors/keeper/keeper_bounds.h"
#include "muster/error.h"

#include <stdint.h>

struct mu__storage;

struct mu__keeper_config {
    struct mu__storage *storage; /* outlives the actor */
    uint64_t bytes_max;          /* kept of all actors */
    uint64_t rewrite_bytes; /* of its file, which is not written anew below; a step is
                               a 32nd of it. 0: 16 MiB */
    mu_error *error;        /* why the file cannot be used; NULL: it is logged */
};

/* Spawned as MU__KEEPER; its argument is a struct mu__keeper_config. */
extern const struct mu__behavior mu__keeper;

#endif
