/* The workers that a supervisor knows, ordered by load, so that the least loaded one with
 * room is found with one look. Plain data.
 *
 * A worker has room for a number of closures, its window. A worker measured by time has
 * room while a thread is free, or while the closures in flight are expected to take its
 * threads less than `time_us`. A thread that runs something long is not counted: it is
 * unknown when it will be free. A worker that was filled is not offered
 * again before half of its room is free, so that its closures travel in few large frames;
 * but it is in the same turn, since what is sent in one turn travels in one frame.
 *
 * A worker has a number from 1 on, by which its lists of closures are found. One that is
 * lost keeps its number, and takes it up again when it comes back as the same task, until
 * it is forgotten: then another one may get it. */
#ifndef MU_ACTORS_MEMBERSHIP_H
#define MU_ACTORS_MEMBERSHIP_H

#include "actors/worker_types.h"
#include "runtime/base/map.h"

#include <stdbool.h>

enum { MU__WINDOW_MAX = 65536 };

#define MU__ROLE_ANY UINT32_MAX

/* Which task a worker is. */
struct mu__worker_id {
    uint32_t role;  /* of its type: the place in struct mu__worker_types */
    uint32_t index; /* task index */
};

/* Why a worker that is present gets nothing. */
enum mu__hold {
    MU__HOLD_START = 1,     /* it joined a moment ago: staggered start */
    MU__HOLD_BUILD = 2,     /* its per-worker values are being built */
    MU__HOLD_DRAIN = 4,     /* it is about to leave */
    MU__HOLD_EXCLUSIVE = 8, /* kept free for one closure */
    MU__HOLD_STUCK = 16     /* all its threads have runs that do not end */
};

/* How far an attempt is, as far as the supervisor knows. */
enum mu__stage {
    MU__STAGE_SENT,   /* it may have begun */
    MU__STAGE_BEGUN,  /* it runs as long as was expected */
    MU__STAGE_LASTING /* it runs, and nobody knows how much longer */
};

/* What an attempt adds to the load of its worker. */
struct mu__charge {
    uint32_t cost_us; /* what it is expected to take still; 0 if it is LASTING */
    enum mu__stage stage;
};

struct mu__member_worker {
    bool known; /* the number is taken; by one that may be away */
    bool present;
    bool waiting;  /* in the list of its load: it has room */
    uint8_t holds; /* enum mu__hold */
    uint32_t number;
    uint32_t node;
    uint32_t role; /* as in struct mu__worker_id */
    uint32_t index;
    uint32_t threads;
    uint32_t window;      /* most closures in flight */
    uint32_t time_us;     /* work that each thread may have; 0: not measured by time */
    bool full;            /* filled, and not half empty since, */
    uint64_t filled_turn; /* in this turn */
    uint32_t load;        /* closures in flight, */
    uint32_t begun;       /* of these, known to run for some time already, */
    uint32_t lasting;     /* and of these, for longer than was expected */
    uint64_t load_us;     /* what all but the last are expected to take still */
    uint64_t load_bytes;  /* the size of the arguments of all */
    uint64_t finished;
    uint64_t failed;
    uint64_t since_ms; /* when it joined */
    uint32_t next;     /* in the list of its load; number, 0 ends it */
    uint32_t prev;
};

/* The workers of one role that have room, by load. */
struct mu__load_lists {
    uint32_t *first; /* [load]: number of a worker; 0: none */
    uint32_t size;
    uint32_t lowest; /* no worker with room has a lower load */
};

struct mu__membership {
    struct mu__member_worker *workers; /* [0] is not used */
    uint32_t workers_size;
    uint64_t turn; /* of the last unload; its owner sets it */
    uint32_t count;
    uint64_t load;          /* closures in flight at all of them */
    uint32_t crowded;       /* workers with more in flight than threads */
    uint32_t threads_max;   /* no worker has or had more */
    uint32_t unknown;       /* no number before this one is free */
    struct mu__map by_node; /* present workers: node to number */
    struct mu__map by_id;   /* a worker's id to the number known under it last */
    struct mu__load_lists by_role[MU__WORKER_TYPES_MAX];
    uint32_t roles; /* no worker has had a higher role than this - 1 */
};

/* Arguments in flight at one worker: above this it gets nothing more until one is
 * done. */
enum { MU__WORKER_BYTES_MAX = 32 << 20 };

/* Zeroed memory is an empty membership. */
void mu__membership_done(struct mu__membership *members);

/* The number of a worker, known from now on, if it was not; 0 when out of memory. */
uint32_t mu__membership_enroll(struct mu__membership *members, struct mu__worker_id id);

/* The number of a worker; 0 when it is not known. */
uint32_t mu__membership_find(const struct mu__membership *members,
                             struct mu__worker_id id);

/* An absent worker is not expected back: its number may be given to another. */
void mu__membership_forget(struct mu__membership *members, uint32_t number);

/* A worker joins, idle, without holds. Returns its number, 0 when out of memory. */
uint32_t mu__membership_add(struct mu__membership *members, uint32_t node,
                            struct mu__worker_id id, uint32_t threads, uint32_t window);

void mu__membership_remove(struct mu__membership *members, uint32_t number);

/* NULL when no present worker has that node or number. */
struct mu__member_worker *mu__membership_by_node(const struct mu__membership *members,
                                                 uint32_t node);

static inline struct mu__member_worker *mu__membership_get(
    const struct mu__membership *members, uint32_t number)
{
    if (number == 0 || number >= members->workers_size ||
        !members->workers[number].present)
        return NULL;
    return &members->workers[number];
}

/* The number of the least loaded worker with room, 0 when there is none. */
uint32_t mu__membership_pick(struct mu__membership *members);

/* Move a worker that has just kept a result behind the others of its load: of equal
 * workers another one is picked next. */
void mu__membership_step_back(struct mu__membership *members, uint32_t number);

/* The least loaded worker of one role with room; 0: there is none. */
uint32_t mu__membership_pick_role(struct mu__membership *members, uint32_t role);

/* The first worker of a role, or of MU__ROLE_ANY, that `fits` accepts, in order of load;
 * only 64 with room are looked at. 0: none. */
uint32_t mu__membership_pick_fitting(const struct mu__membership *members, uint32_t role,
                                     bool (*fits)(const struct mu__member_worker *worker,
                                                  const void *arg),
                                     const void *arg);

/* Whether a worker may get one more. */
bool mu__membership_has_room(const struct mu__member_worker *worker);

/* Set or take away a reason to give it nothing. */
void mu__membership_hold(struct mu__membership *members, uint32_t number, unsigned hold);
void mu__membership_release(struct mu__membership *members, uint32_t number,
                            unsigned hold);

/* Measure a worker by time from now on. */
void mu__membership_set_time(struct mu__membership *members, uint32_t number,
                             uint32_t time_us);

/* A closure was given to a worker. */
void mu__membership_load(struct mu__membership *members, uint32_t number, uint64_t bytes,
                         uint32_t cost_us);

/* A closure has left a worker, which was charged so for it. */
void mu__membership_unload(struct mu__membership *members, uint32_t number,
                           uint64_t bytes, struct mu__charge charge);

/* More is known of a closure at a worker. */
void mu__membership_recharge(struct mu__membership *members, uint32_t number,
                             struct mu__charge from, struct mu__charge to);

static inline uint32_t mu__member_threads(const struct mu__member_worker *worker)
{
    return worker->threads == 0 ? 1 : worker->threads;
}

/* Whether a worker with room may have a free thread; false is certain, after a pick. */
static inline bool mu__membership_may_idle(const struct mu__membership *members)
{
    for (uint32_t role = 0; role < members->roles; role++)
        if (members->by_role[role].lowest < members->threads_max)
            return true;
    return false;
}

static inline struct mu__worker_id mu__member_id(const struct mu__member_worker *worker)
{
    return (struct mu__worker_id){worker->role, worker->index};
}

/* Threads that may be free: not known to run something. */
static inline uint32_t mu__member_free_threads(const struct mu__member_worker *worker)
{
    uint32_t threads = mu__member_threads(worker);

    return worker->begun < threads ? threads - worker->begun : 0;
}

/* Threads that are free soon, if runs take what they are expected to. */
static inline uint32_t mu__member_soon_free_threads(
    const struct mu__member_worker *worker)
{
    uint32_t threads = mu__member_threads(worker);

    return worker->lasting < threads ? threads - worker->lasting : 0;
}

#endif
