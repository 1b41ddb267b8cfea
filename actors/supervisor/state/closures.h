/* The closures that a supervisor holds, in lists: queues, and what is in flight at each
 * worker. Plain data; knows no messages and no time.
 *
 * A closure is in exactly one list from add to remove. Its id finds it with one look and
 * is never given to another closure. */
#ifndef MU_ACTORS_CLOSURES_H
#define MU_ACTORS_CLOSURES_H

#include "actors/messages.h"
#include "actors/worker_types.h"

struct mu__closure {
    uint32_t next; /* in its list; index + 1, 0 ends it */
    uint32_t prev;
    uint32_t index; /* where it lives; with the generation, its id */
    uint32_t generation;
    uint32_t list;           /* which list it is in; MU__LIST_NONE when it is free */
    uint32_t function;       /* the supervisor's number for the name */
    uint16_t client;         /* index of the client that scheduled it */
    uint16_t cost;           /* in flight: what its worker is charged for it, as in
                                struct mu__function_time */
    uint32_t started_ms;     /* low bits of when the attempt was sent, or is known to have
                                begun */
    uint16_t attempt;        /* the present or last one, from 1; 0: not run yet */
    uint8_t marks;           /* MU__MARK_... */
    uint8_t crashes;         /* workers that were lost under it; stays at 255 */
    uint32_t head_offset;    /* of the arguments, in `backing` */
    uint64_t token;          /* the client's */
    struct mu__buf *backing; /* holds the arguments; NULL: there are none */
    uint32_t tail_offset;
    uint32_t head_size;
    uint32_t tail_size;
    uint32_t extra; /* number of its closure_extra; 0: none */
};

enum mu__mark {
    MU__MARK_DROP_RESULT = 1, /* its client does not want the result */
    MU__MARK_CANCELLED = 2,   /* in flight, and not to be run again */
    MU__MARK_UNWANTED = 4,    /* the same, and its result is not looked at */
    MU__MARK_RESOLVED = 8,    /* its client was answered, and its result is pinned */
    MU__MARK_BEGUN = 16,      /* in flight, and its worker has said that it runs; */
    MU__MARK_LONG = 32,       /* and nobody knows how much longer */
    MU__MARKS_RUNNING = MU__MARK_BEGUN | MU__MARK_LONG
};

/* The lists of closures: a queue for each priority; those that are held; those that only
 * some workers may run now; those whose client is to read first; for each role a queue
 * for each priority; those whose result is pinned; then two for each worker: in flight
 * there, and queued for it alone. */
enum {
    MU__LIST_QUEUES = 0,
    MU__LIST_QUEUE = MU__LIST_QUEUES + MU__PRIORITY_DEFAULT,
    MU__LIST_HELD = MU__PRIORITIES, /* for a time to pass, or for inputs */
    MU__LIST_CONSTRAINED,           /* no worker with room may run them */
    MU__LIST_UNREAD,                /* their client does not read its results for now */
    MU__LIST_ROLES,                 /* the first queue of the first role */
    MU__LIST_PINNED =               /* done; the result is pinned */
    MU__LIST_ROLES + MU__PRIORITIES * MU__WORKER_TYPES_MAX,
    MU__LIST_WORKERS = MU__LIST_PINNED + 1
};
#define MU__LIST_NONE UINT32_MAX

_Static_assert(MU__LIST_WORKERS % 2 == 0, "lists of what is in flight are even");

static inline uint32_t mu__list_of_role(uint32_t role, uint32_t priority)
{
    return MU__LIST_ROLES + MU__PRIORITIES * role + priority;
}

/* The priority of a queue: of a role's, or of a common one. */
static inline uint32_t mu__list_priority(uint32_t list)
{
    return list < MU__LIST_ROLES ? list - MU__LIST_QUEUES
                                 : (list - MU__LIST_ROLES) % MU__PRIORITIES;
}

static inline uint32_t mu__list_in_flight(uint32_t worker)
{
    return MU__LIST_WORKERS + 2 * worker;
}

static inline uint32_t mu__list_affine(uint32_t worker)
{
    return MU__LIST_WORKERS + 2 * worker + 1;
}

/* The worker that a list of closures in flight belongs to; 0 for any other list. */
static inline uint32_t mu__list_worker(uint32_t list)
{
    return list > MU__LIST_WORKERS && list % 2 == 0 ? (list - MU__LIST_WORKERS) / 2 : 0;
}

struct mu__closure_list {
    uint32_t first; /* index + 1, 0: empty */
    uint32_t last;
    uint32_t count;
};

struct mu__closures {
    struct mu__closure **chunks;
    uint32_t chunks_count;
    uint32_t free_first; /* index + 1, 0: none */
    struct mu__closure_list *lists;
    uint32_t lists_count;
    uint32_t count;  /* in any list */
    uint32_t urgent; /* all queues before this one are empty */
};

int mu__closures_init(struct mu__closures *closures);

/* Drops all that is left. */
void mu__closures_done(struct mu__closures *closures);

/* A new closure at the end of MU__LIST_QUEUE, zeroed but for its place. NULL: no
 * memory. */
struct mu__closure *mu__closures_add(struct mu__closures *closures);

/* Takes it out of its list, drops its backing, frees its place. */
void mu__closures_remove(struct mu__closures *closures, struct mu__closure *closure);

/* Let a new closure have `args`, which lie in `backing`: one more reference is taken. */
void mu__closure_set_args(struct mu__closure *closure, const struct mu__packed *args,
                          struct mu__buf *backing);

/* Valid as long as the closure. */
struct mu__packed mu__closure_args(const struct mu__closure *closure);

static inline uint64_t mu__closure_bytes(const struct mu__closure *closure)
{
    return (uint64_t)closure->head_size + closure->tail_size;
}

static inline uint64_t mu__closure_id(const struct mu__closure *closure)
{
    return (uint64_t)closure->generation << 32 | closure->index;
}

/* NULL when there is no such closure any more. */
struct mu__closure *mu__closures_find(const struct mu__closures *closures, uint64_t id);

/* The one that lives at an index; NULL when there is none. */
struct mu__closure *mu__closures_at(const struct mu__closures *closures, uint32_t index);

/* Room for list `list`; lists stay once made. */
int mu__closures_make_list(struct mu__closures *closures, uint32_t list);

/* Move to the end, or to the front, of another list. */
void mu__closures_move_last(struct mu__closures *closures, struct mu__closure *closure,
                            uint32_t list);
void mu__closures_move_first(struct mu__closures *closures, struct mu__closure *closure,
                             uint32_t list);

/* NULL when the list is empty. */
struct mu__closure *mu__closures_first(const struct mu__closures *closures,
                                       uint32_t list);
struct mu__closure *mu__closures_last(const struct mu__closures *closures, uint32_t list);

/* The one behind, NULL at the end. */
struct mu__closure *mu__closures_next(const struct mu__closures *closures,
                                      const struct mu__closure *closure);

/* The one before, NULL at the front. */
struct mu__closure *mu__closures_prev(const struct mu__closures *closures,
                                      const struct mu__closure *closure);

/* The first of the most urgent queue that has any; NULL when all are empty. */
struct mu__closure *mu__closures_first_queued(struct mu__closures *closures);

static inline uint32_t mu__closures_count(const struct mu__closures *closures,
                                          uint32_t list)
{
    return closures->lists[list].count;
}

#endif
