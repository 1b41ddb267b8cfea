/* Partitions of the parameter servers: what is placed, copied and moved as a whole. Each
 * shard of a variable is in one; a partition has its own store, window of applied effects
 * and stream of records.
 *
 * A view says who holds a partition. Views of a partition are numbered; the chief's views
 * actor (actors/views/views.h) decides them, and servers refuse older ones. */
#ifndef MU_ACTORS_PARTITIONS_H
#define MU_ACTORS_PARTITIONS_H

#include "runtime/message/message.h"

#include <stdbool.h>
#include <stdint.h>

enum { MU__PARTITIONS = 256 }; /* of each job, for its whole life */

/* One process of a parameter server. */
struct mu__replica {
    uint32_t task;        /* /job:ps/task:N */
    uint64_t incarnation; /* of the process; 0: there is no such replica */
};

/* `primary` alone answers clients. What it answers, the `backup` has. A `learner` is
 * being filled; it is not counted on. It may be there beside a backup, whose place it is
 * to take. In a `handover` the primary is to stop, so that the backup can take its
 * place. */
struct mu__partition_view {
    uint32_t partition;
    uint64_t number;   /* from 1; 0: the partition was never placed */
    uint64_t store_id; /* a random number of the store that began empty */
    struct mu__replica primary;
    struct mu__replica backup;
    struct mu__replica learner;
    bool handover;
};

static inline bool mu__replica_is(const struct mu__replica *replica, uint32_t task,
                                  uint64_t incarnation)
{
    return replica->incarnation != 0 && replica->incarnation == incarnation &&
           replica->task == task;
}

/* The partition of a shard. Shards of a variable are in partitions that follow each
 * other. */
uint32_t mu__partition_of(struct mu__view name, uint32_t shard);

/* Changes every bit of a number with those of all others; 0 stays 0. */
static inline uint64_t mu__mix64(uint64_t number)
{
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

/* The partition of a table's id. Ids that are all multiples of a number are common. */
static inline uint32_t mu__partition_of_id(uint64_t id)
{
    return (uint32_t)(mu__mix64(id) % MU__PARTITIONS);
}

/* Where a partition is placed first, in a cluster of so many servers, at least 1. */
static inline uint32_t mu__partition_home(uint32_t partition, uint32_t servers)
{
    return partition % servers;
}

/* ---- Lists of views, as they travel in VIEWS_SET and VIEWS_HELD ---- */

enum { MU__VIEW_BYTES = 60 };

/* The count of views in `bytes`; trailing bytes that make up no view are ignored. */
uint32_t mu__views_count(struct mu__view bytes);

/* View `i`. False: it is of no partition, or has no number. */
bool mu__views_at(struct mu__view bytes, uint32_t i, struct mu__partition_view *ret_view);

/* Write a view at `at`; returns the address behind it. */
uint8_t *mu__views_put(uint8_t *at, const struct mu__partition_view *view);

/* ---- Lists of partitions with a number: SERVES, REPLICA_NEWS ---- */

enum { MU__NUMBERED_BYTES = 12 };

struct mu__numbered {
    uint32_t partition;
    uint64_t number; /* SERVES: the generation; REPLICA_NEWS: the view's number */
};

uint32_t mu__numbered_count(struct mu__view bytes);

/* Entry `i`; false: it is of no partition. */
bool mu__numbered_at(struct mu__view bytes, uint32_t i, struct mu__numbered *ret_entry);
uint8_t *mu__numbered_put(uint8_t *at, const struct mu__numbered *entry);

/* The first generation of a view; those that follow in it come before those of the next
 * view. */
enum { MU__GENERATION_BITS = 16 };

static inline uint64_t mu__generation_of(uint64_t view)
{
    return view << MU__GENERATION_BITS;
}

/* ---- Lists of marks: RECORDS_DONE ---- */

enum { MU__RECORD_MARK_BYTES = 32, MU__WINDOW_BYTES_MAX = 1 << 20 };

enum mu__record_verdict {
    MU__RECORDS_APPLIED,
    MU__RECORDS_BROKEN /* one is missing, or had no room: fill the replica anew */
};

/* The last record that a replica has applied, and the running sum of what came of all. */
struct mu__record_mark {
    uint32_t partition;
    enum mu__record_verdict verdict;
    uint64_t view;
    uint64_t record;
    uint64_t sum;
};

uint32_t mu__record_marks_count(struct mu__view bytes);

/* Entry `i`; false: it is of no partition. */
bool mu__record_marks_at(struct mu__view bytes, uint32_t i,
                         struct mu__record_mark *ret_mark);
uint8_t *mu__record_marks_put(uint8_t *at, const struct mu__record_mark *mark);

/* ---- Journals of servers ---- */

enum { MU__FORMER_MAX = 256 }; /* processes that a journal remembers, the last ones */

#endif
