/* The fields of a closure that most closures do without: options, inputs, what is known
 * of a failed attempt, of a backup. They stand in a table of their own, so that a plain
 * closure stays small. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_CLOSURE_EXTRA_H
#define MU_ACTORS_SUPERVISOR_CLOSURE_EXTRA_H

#include "actors/supervisor/state/closures.h"

enum { MU__EXTRAS_CHUNK = 256 };

/* What its client asked for. */
struct closure_options {
    uint32_t flags;          /* enum mu__closure_flag */
    uint32_t run_timeout_ms; /* of one attempt; 0: none */
    uint32_t worker;         /* the only one: task index + 1; 0: any */
    uint32_t not_worker;     /* one to avoid, the same way; 0: none */
    uint16_t attempts_max;   /* 0: the cluster's */
    uint8_t priority;
    uint8_t role; /* of the workers that may run it, + 1; 0: any */
};

/* The numbers of the pinned results and per-worker values that it uses. */
struct closure_inputs {
    union {
        uint64_t one;
        uint64_t *many;
    }; /* see mu__closure_extra_inputs */
    uint16_t count;
    uint16_t missing; /* held until they are there */
    bool has_many;
};

struct backup_attempt {
    uint32_t worker; /* number; 0: there is no backup attempt */
    uint32_t started_ms;
    uint16_t attempt;
    bool begun;
};

/* Each closure with a function of Python has an input, so this is kept small. */
struct closure_extra {
    uint64_t closure; /* its id; 0: free */
    union {
        uint64_t timer;     /* for the next of the times below; 0: none */
        uint32_t next_free; /* while it is free: index + 1; 0 ends the list */
    };
    uint64_t deadline_ms;   /* on the kernel's clock; 0: none */
    uint64_t held_until_ms; /* the same clock; 0: not held for a time */
    uint64_t effect;        /* its number; 0: none yet */
    uint64_t number;        /* in the journal; 0: not there */
    struct closure_inputs inputs;
    char *name;        /* NULL: none */
    char *failed_task; /* of the attempt that failed last; NULL: none */
    struct closure_options options;
    struct backup_attempt backup;
    uint16_t returns;        /* attempts that a worker gave back */
    uint16_t processes_lost; /* of its runs, while the worker lived on */
    uint16_t avoided;        /* number of a worker that is cut off from a server of
                                the closure's; 0: none */
    uint8_t failed_code;     /* of the attempt that failed last, for status requests */
    uint8_t stuck;           /* of its runs, given up at their limit; at most 255 */
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
    return extra->inputs.has_many ? extra->inputs.many : &extra->inputs.one;
}

/* Chunks that never move, and a list of the free entries. Zeroed memory is empty. */
struct closure_extras {
    struct closure_extra **chunks;
    uint32_t chunks_count;
    uint32_t free; /* index + 1 */
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
