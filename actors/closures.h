/* The closures that a supervisor holds: one queue, and one list for each worker of what
 * is in flight there. Plain data; knows no messages and no time.
 *
 * A closure is in exactly one place from add to remove: the queue, or the list of one
 * worker. Its id finds it with one look and is never given to another closure. */
#ifndef MU_ACTORS_CLOSURES_H
#define MU_ACTORS_CLOSURES_H

#include "runtime/message.h"

struct mu__closure {
    uint32_t next;          /* in its list; index + 1, 0 ends it */
    uint32_t prev;
    uint32_t index;         /* where it lives; with the generation, its id */
    uint32_t generation;
    uint32_t list;          /* which list it is in; MU__LIST_NONE when it is free */
    uint32_t function;      /* the supervisor's number for the name */
    uint32_t client;        /* the supervisor's number for who scheduled it */
    uint32_t started_ms;    /* low bits of when the attempt began */
    uint16_t attempt;       /* the present or last one, from 1; 0: not run yet */
    bool drop_result;
    bool cancelled;         /* in flight, but nobody wants it run again */
    uint32_t head_offset;   /* of the arguments, in `backing` */
    uint64_t token;         /* the client's */
    struct mu__buf *backing; /* holds the arguments; NULL: there are none */
    uint32_t tail_offset;
    uint32_t head_size;
    uint32_t tail_size;
};

/* List 0 is the queue; list n belongs to worker n. */
enum { MU__LIST_QUEUE = 0 };
#define MU__LIST_NONE UINT32_MAX

struct mu__closure_list {
    uint32_t first;     /* index + 1, 0: empty */
    uint32_t last;
    uint32_t count;
};

struct mu__closures {
    struct mu__closure **chunks;
    uint32_t chunks_count;
    uint32_t free_first;            /* index + 1, 0: none */
    struct mu__closure_list *lists;
    uint32_t lists_count;
    uint32_t count;                 /* in any list */
};

int mu__closures_init(struct mu__closures *closures);

/* Drops all that is left. */
void mu__closures_done(struct mu__closures *closures);

/* A new closure at the end of the queue, zeroed but for its place. NULL: no memory. */
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

uint32_t mu__closures_count(const struct mu__closures *closures, uint32_t list);

#endif
