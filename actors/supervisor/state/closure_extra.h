/* The fields of a closure that most closures do without: options, inputs, what is known
 * of a failed attempt, of a backup. They stand in a table of their own, so that a plain
 * closure stays small. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_CLOSURE_EXTRA_H
#define MU_ACTORS_SUPERVISOR_CLOSURE_EXTRA_H

#include "actors/supervisor/state/closures.h"

enum { MU__EXTRAS_CHUNK = 256 };

/* Each closure with a function of Python has an input, so this is kept small. */
struct closure_extra {
    uint32_t index;
    uint32_t next_free;         /* index + 1; 0 ends it */
    uint64_t closure;           /* its id; 0: free */
    uint64_t timer;             /* for the next of the times below; 0: none */
    uint64_t deadline_ms;       /* our clock; 0: none */
    uint64_t held_until_ms;     /* our clock; 0: not held for a time */
    uint64_t effect;            /* 0: none yet */
    uint64_t number;            /* in the journal; 0: not there */
    union {
        uint64_t one;
        uint64_t *many;
    } inputs;                   /* their numbers: mu__closure_extra_inputs */
    char *name;                 /* NULL: none */
    char *failed_task;          /* of the attempt that failed last; NULL: none */
    uint32_t flags;             /* enum mu__closure_flag */
    uint32_t run_timeout_ms;      /* of one attempt; 0: none */
    uint32_t worker;            /* wanted: task index + 1 */
    uint32_t not_worker;
    uint32_t backup_worker;     /* number; 0: there is no backup attempt */
    uint32_t backup_started_ms;
    uint16_t returns;           /* attempts that a worker gave back */
    uint16_t processes_lost;    /* of workers that live, under its runs */
    uint16_t backup_attempt;
    uint16_t attempts_max;      /* 0: the cluster's */
    uint16_t inputs_count;
    uint16_t inputs_missing;    /* held until they are there */
    uint8_t failed_code;        /* why it was tried again last, for those who ask */
    uint8_t priority;
    uint8_t role;               /* that it is for, + 1; 0: any */
    bool backup_begun : 1;
    bool has_many : 1;          /* inputs: an array */
};

_Static_assert(sizeof(struct closure_extra) <= 120, "a queued closure of Python has one");
_Static_assert(MU__INPUTS_MAX <= UINT16_MAX, "inputs are counted in 16 bits");

/* A timeout of a message or a record, in milliseconds: 24 days at most. */
static inline uint32_t mu__run_timeout(uint64_t timeout_ms)
{
    return timeout_ms < INT32_MAX ? (uint32_t)timeout_ms : INT32_MAX;
}

/* The numbers of what it uses, as many as inputs_count. */
static inline const uint64_t *mu__closure_extra_inputs(const struct closure_extra *extra)
{
    return extra->has_many ? extra->inputs.many : &extra->inputs.one;
}

/* Chunks that never move, and a list of the free entries. Zeroed memory is empty. */
struct closure_extras {
    struct closure_extra **chunks;
    uint32_t chunks_count;
    uint32_t free;              /* index + 1 */
};

/* NULL when there is no such entry. */
static inline struct closure_extra *mu__closure_extras_at(
    const struct closure_extras *extras, uint32_t index)
{
    return index / MU__EXTRAS_CHUNK < extras->chunks_count
               ? &extras->chunks[index / MU__EXTRAS_CHUNK][index % MU__EXTRAS_CHUNK]
               : NULL;
}

/* How many entries there are, free ones included. */
static inline uint32_t mu__closure_extras_count(const struct closure_extras *extras)
{
    return extras->chunks_count * MU__EXTRAS_CHUNK;
}

/* The entry of a closure, a new one if it has none; NULL: out of memory. */
struct closure_extra *mu__closure_extras_take(struct closure_extras *extras,
                                              struct mu__closure *closure);

/* Frees a closure's entry with all that it owns. */
void mu__closure_extras_release(struct closure_extras *extras,
                                struct mu__closure *closure);

/* Frees what is left. */
void mu__closure_extras_done(struct closure_extras *extras);

#endif
