/* What the parts of the coordination service share.
 *
 *   coordination.c            handlers, the store, what is said when; the tick
 *   coordination_tasks.c      registering, heartbeats, failures, resets
 *   coordination_leave.c      leaving, alone or together
 *   coordination_questions.c  questions about tasks (but for those alive), and all that
 *                             waits for tasks
 *   coordination_states.c     what is told about tasks
 *   coordination_keys.c       key-values: changes, leases
 *   coordination_reads.c      key-values: gets, lists, watches
 *   coordination_barriers.c   barriers, tasks alive
 *   coordination_preempt.c    preemption: notices and rounds
 *   coordination_cluster.c    tasks that come to the coordinated jobs, or leave them
 *   coordination/transactions.c   changes of several keys at one moment
 *   coordination/runs.h       runs of the job: what belongs to one, when another begins
 *   coordination/own_keys.c   the service's own keys
 *
 * Below them, as plain data: roster.h (tasks), key_values.h, barriers.h, task_set.h,
 * asked.h (results of what agents asked).
 *
 * What is said may depend on what was written to the store a moment ago; so everything is
 * said through mu__coord_send, which waits until that is safe. */
#ifndef MU_ACTORS_COORDINATION_INTERNAL_H
#define MU_ACTORS_COORDINATION_INTERNAL_H

#include "actors/coordination/coordination.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/roster.h"
#include "actors/messages.h"
#include "actors/task_set.h"

struct coord_tasks;     /* of coordination_tasks.c */

struct coord_requests; /* of coordination_questions.c */

struct coord_keys;      /* of coordination_keys.c */

struct coord_barriers;  /* of coordination_barriers.c */

struct coord_preempt;   /* of coordination_preempt.c */

struct coord_runs;      /* of coordination/runs.c */

/* Messages that wait for the store. Of changes of keys, and reads, no more are taken when
 * there are so many, and a watch that would add one is over; above the most they are
 * dropped, as when there is no memory. */
enum {
    COORD_LATER_REQUESTS = 1 << 17,
    COORD_LATER_EVENTS = 3 << 16,
    COORD_LATER_MAX = 1 << 18
};

/* A message that waits for the store. */
struct coord_later {
    struct coord_later *next;
    uint64_t sequence;          /* of the commit that it waits for */
    uint32_t node;
    struct mu__msg *msg;
};

struct coordination {
    struct mu__coordination_config config;
    struct mu__store *store;
    bool leads;                 /* the store is held */
    uint64_t epoch;
    uint64_t number;            /* of the store's content */
    char reason[256];           /* why it does not lead */

    uint64_t revision;          /* of the last change */
    bool dirty;                 /* something was written and not committed */
    uint64_t commit_timer;
    uint64_t sequence;          /* of the last commit */
    uint64_t safe;              /* of the last commit that is safe */
    struct coord_later *later;  /* what waits, in order */
    struct coord_later **later_end;
    uint64_t records;           /* that a rewrite of the store would have */

    uint64_t tick_timer;
    uint64_t tick_due_ms;       /* by the world's clock */
    uint64_t next_ms;         /* while it ticks: when the next tick is wanted */
    bool ticking;
    uint64_t paused_ms;         /* by how much this host was too late in all, so that
                                   nobody is declared dead for it: see mu__coord_clock */

    struct mu__roster *roster;
    struct coord_keys *keys;
    struct coord_barriers *barriers;
    struct coord_preempt *preempt;
    struct coord_runs *runs;

    struct coord_tasks *tasks;
    struct {
        uint32_t leavers;       /* tasks that leave together */
        uint32_t left;          /* of these, that have left already */
        uint32_t leaving;       /* how many of them wait for the others */
        uint64_t due_ms;        /* for so long; valid while some do */
    } leave;
    struct coord_requests *questions;
    struct mu__map peers;       /* node + 1 -> struct coord_peer, of all that are up; this
                                   node, which has an agent, too, is one */
    struct mu__ctx *calling;    /* while a function of the store runs */
    uint32_t later_count;
    bool retires;               /* it lets the store go, in this tick */
    bool broken;                /* a write failed: nothing may be said, `lost` follows */
};

/* Who is at the other end of a link that is up; or this node itself. */
struct coord_peer {
    uint32_t node;
    char type[16];
    uint32_t index;
    uint64_t incarnation;
};

/* Write a record (STORE_CHANGE, STORE_RESULT) into the present batch, which is committed
 * in the next turn. Takes msg, NULL is -MU_ENOMEM. After a failure the service does not
 * lead any more. */
int mu__coord_write(struct mu__ctx *ctx, struct coordination *c, struct mu__msg *record);

/* The same, and the record stays the caller's. */
int mu__coord_write_record(struct mu__ctx *ctx, struct coordination *c,
                           const struct mu__msg *record);

/* This host's time, without the time that it was itself paused for. What is measured
 * against limits of tasks is measured by it. */
uint64_t mu__coord_clock(struct mu__ctx *ctx, const struct coordination *c);

/* Tick (all mu__coord_..._tick) at `due_ms` of mu__coord_clock, or as soon as possible
 * when that is past: exactly then, where a part waits for a limit. Otherwise ticks come
 * once a second, and more often while the store is busy. It holds for the next tick
 * only: a part that still waits says so again from within its own tick. */
void mu__coord_wake_at(struct mu__ctx *ctx, struct coordination *c, uint64_t due_ms);

/* NULL: no link to that node is up. */
const struct coord_peer *mu__coord_peer(const struct coordination *c, uint32_t node);

/* What it is made of, for tests. */
struct mu__barriers;

#endif
