/* The named closures that have finished, with their results, in the order in which they
 * did: some 50 bytes each beside the name and a small result. Found by name. The oldest
 * are forgotten first: by number, by age, or all.
 *
 * No call takes long, however many there are: the table of names grows by one bucket for
 * each closure, and what is forgotten is not found any more at once, but freed by
 * mu__finished_sweep, a few at a time. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_FINISHED_CLOSURES_H
#define MU_ACTORS_SUPERVISOR_FINISHED_CLOSURES_H

#include "actors/supervisor/state/names.h"
#include "runtime/message/message.h"

struct mu__buf;

/* Where a closure is: in units of 8 bytes, of a ring of 2^32 units. */
typedef uint32_t mu__finished_ref;
#define MU__FINISHED_NONE UINT32_MAX

/* In a chunk; valid until it is swept. */
struct finished_closure {
    uint64_t number;       /* in the journal */
    mu__finished_ref next; /* of the same bucket */
    uint32_t hash;
    uint32_t function; /* held in `functions` */
    uint16_t name_size;
    uint8_t is_large; /* behind the name: a struct large_result */
    uint8_t is_removed;
    uint32_t result_size; /* of the head, which is behind the name; no tail */
    char bytes[];         /* the name, then the result */
};

/* `functions` is set before use and outlives the table; all else zeroed is empty. */
struct finished_closures {
    struct mu__names *functions;
    uint64_t count;                 /* that can be found */
    struct finished_chunk **chunks; /* a ring, by number modulo its size */
    uint32_t chunks_size;           /* a power of two */
    mu__finished_ref head;          /* the oldest, which may be forgotten already */
    mu__finished_ref known;         /* those before are forgotten, and not yet freed */
    mu__finished_ref tail;          /* where the next one goes */
    uint32_t **segments;            /* of buckets */
    uint32_t segments_size;
    uint32_t buckets;
    uint32_t level; /* the highest power of two up to `buckets` */
};

/* Their functions are not released. */
void mu__finished_done(struct finished_closures *finished);

/* NULL: there is none. */
const struct finished_closure *mu__finished_find(const struct finished_closures *finished,
                                                 struct mu__view name);

/* The name is not in it. Times do not decrease. -MU_ENOMEM. */
int mu__finished_add(struct finished_closures *finished, uint64_t number,
                     uint32_t function, struct mu__view name,
                     const struct mu__packed *result, uint64_t now_ms);

/* One that was found is not found any more. */
void mu__finished_remove(struct finished_closures *finished,
                         const struct finished_closure *closure);

static inline struct mu__view mu__finished_name(const struct finished_closure *closure)
{
    return (struct mu__view){closure->bytes, closure->name_size};
}

/* The result; *ret_buf: the buffer that it is in, borrowed, or NULL. */
struct mu__packed mu__finished_result(const struct finished_closure *closure,
                                      struct mu__buf **ret_buf);

/* Forget all; all but the `count` youngest; those that finished before `time_ms` (of
 * their chunk the last one did, so some are known for an eighth of `age_ms` longer). */
void mu__finished_forget_all(struct finished_closures *finished);
void mu__finished_keep(struct finished_closures *finished, uint64_t count);
void mu__finished_forget_old(struct finished_closures *finished, uint64_t now_ms,
                             uint64_t age_ms);

/* Free up to `max` that are forgotten. */
void mu__finished_sweep(struct finished_closures *finished, unsigned max);

static inline bool mu__finished_has_forgotten(const struct finished_closures *finished)
{
    return finished->head != finished->known;
}

/* From the oldest to the youngest: the first one at `at` or behind it, and where to go
 * on. NULL: there is none before `end`, a former `tail`. What was swept meanwhile is left
 * out. */
const struct finished_closure *mu__finished_walk(
    const struct finished_closures *finished, mu__finished_ref *at, mu__finished_ref end);

#endif
