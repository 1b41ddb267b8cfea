/* The workers that a supervisor knows, ordered by load, so that the least loaded one with
 * room is found with one look. Plain data.
 *
 * A worker has a number from 1 on, which is also the number of its list of closures.
 * Numbers of workers that have gone are used again. */
#ifndef MU_ACTORS_MEMBERSHIP_H
#define MU_ACTORS_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MU__WINDOW_MAX = 65536 };

struct mu__member_worker {
    bool present;
    bool waiting;           /* in the list of its load: it has room */
    uint32_t number;
    uint32_t node;
    uint32_t index;         /* task index */
    uint32_t threads;
    uint32_t window;        /* most closures in flight */
    uint32_t load;          /* closures in flight */
    uint64_t load_bytes;    /* and the size of their arguments */
    uint64_t finished;
    uint64_t failed;
    uint64_t since_ms;      /* when it joined */
    uint32_t next;          /* in the list of its load; number, 0 ends it */
    uint32_t prev;
};

struct mu__membership {
    struct mu__member_worker *workers;  /* [0] is not used */
    uint32_t workers_size;
    uint32_t count;
    uint32_t *loads;        /* [load]: first worker of that load with room, 0: none */
    uint32_t loads_size;
    uint32_t lowest;        /* no worker with room has a lower load */
};

/* Arguments in flight at one worker: above this it gets nothing more until one is
 * done. */
enum { MU__WORKER_BYTES_MAX = 32 << 20 };

/* Zeroed memory is an empty membership. */
void mu__membership_done(struct mu__membership *members);

/* A worker joins, idle. Returns its number, 0 when out of memory. */
uint32_t mu__membership_add(struct mu__membership *members, uint32_t node, uint32_t index,
                            uint32_t threads, uint32_t window);

void mu__membership_remove(struct mu__membership *members, uint32_t number);

/* NULL when nobody plays that node or number. */
struct mu__member_worker *mu__membership_by_node(const struct mu__membership *members,
                                                 uint32_t node);
struct mu__member_worker *mu__membership_get(const struct mu__membership *members,
                                             uint32_t number);

/* The number of the least loaded worker with room, 0 when there is none. */
uint32_t mu__membership_pick(struct mu__membership *members);

/* A closure of `bytes` was given to, or came back from, a worker. */
void mu__membership_load(struct mu__membership *members, uint32_t number, uint64_t bytes);
void mu__membership_unload(struct mu__membership *members, uint32_t number,
                           uint64_t bytes);

#endif
