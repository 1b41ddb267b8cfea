/* The state of the coordination service, and what every part of it uses. The parts:
 *
 *     coordination.c       the actor: handlers, the store, the clock
 *     replies.c            messages, sent once what they depend on is safe
 *     registration.c       registration, heartbeats, error reports, resets
 *     task_states.c        changes of a task's state, and their notifications
 *     leave.c              tasks that leave, alone or together
 *     task_marks.c         errors and resets that one task reports of another
 *     cluster_changes.c    tasks added to or removed from the coordinated jobs
 *     task_requests.c      requests about tasks; task_groups.c has those that wait,
 *                          by group, and task_listing.c the values that are answered
 *     preemption.c         notices and rounds; preemption_messages.c: their messages
 *     job_runs.c           runs of the job: what belongs to one, when another begins
 *     barriers/            barriers: requests, outcomes; who is alive
 *     names/               actors with names: their owners
 *     keys/                key-values: changes, reads, watches, leases
 *
 * They call each other through tasks.h, replies.h, job_runs.h, keys/keys.h and
 * barriers/barrier_requests.h. Plain data without messages: roster.h,
 * barriers/barrier_table.h, request_results.h, keys/key_map.h. */
#ifndef MU_ACTORS_COORDINATION_INTERNAL_H
#define MU_ACTORS_COORDINATION_INTERNAL_H

#include "actors/coordination/host_config.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/roster.h"
#include "actors/messages.h"
#include "actors/task_set.h"
#include "runtime/base/list.h"

/* The state of each part, defined there. */
struct coord_requests;
struct coord_keys;
struct coord_barriers;
struct coord_preempt;
struct coord_runs;
struct coord_names;

/* Bounds of the messages that wait for the store: from the first on, changes and reads of
 * keys are refused; from the second on, a watch with a new event is ended; at the last,
 * messages are dropped, as without memory. */
enum {
    COORD_LATER_REQUESTS = 1 << 17,
    COORD_LATER_EVENTS = 3 << 16,
    COORD_LATER_MAX = 1 << 18
};

/* A message that waits for the store. */
struct coord_later {
    struct mu__list_node link;
    uint64_t sequence; /* of the commit that it waits for */
    uint32_t node;
    struct mu__msg *msg;
};

/* Changes that were written to the store, and messages that wait until they are safe. */
struct coord_commits {
    bool dirty;  /* something was written and not committed */
    bool broken; /* a write failed: nothing may be sent, `lost` follows */
    uint64_t timer;
    uint64_t sequence;     /* of the last commit */
    uint64_t safe;         /* of the last commit that is safe */
    struct mu__list later; /* of struct coord_later, in the order of sending */
    uint32_t later_count;
    struct mu__ctx *calling; /* while a function of the store runs */
};

/* The clock that timeouts of tasks are measured by, and the timer of the next tick. */
struct coord_clock {
    uint64_t timer;
    uint64_t due_ms;    /* by the world's clock */
    bool at_once;       /* the next tick is due, whatever the parts need */
    uint64_t paused_ms; /* the sum of this host's own pauses, which no timeout of
                           a task counts: mu__coord_clock */
};

/* Notifications of failures, and registration with all others. */
struct coord_tasks {
    mu_error notified; /* the last failure that connected tasks were notified
                          of */
    uint64_t notified_count;
    uint32_t fresh; /* an upper bound of the tasks registered since then */
    bool gathering; /* a task has registered with the option to wait for all,
                       and not all have been connected at once since: one
                       that is lost may register again */
};

/* Tasks that leave together. */
struct coord_leave {
    uint32_t leavers; /* how many tasks leave together */
    uint32_t left;    /* of these, those that have left already */
    uint32_t leaving; /* of these, those that wait for the others */
    uint64_t due_ms;  /* the deadline; valid while `leaving` is not 0 */
};

struct coordination {
    struct mu__coordination_config config;
    struct mu__store *store; /* NULL: closed, and never held again */
    bool leads;              /* the store is held */
    bool retires;            /* the store is to be closed in this tick */
    uint64_t epoch;
    uint64_t number;   /* of the store's content */
    char reason[256];  /* why it does not lead; "" while it does */
    uint64_t revision; /* of the last change */
    uint64_t records;  /* how many a rewrite of the store would write */
    struct coord_commits commits;
    struct coord_clock clock;
    struct mu__map peers; /* node + 1 -> struct coord_peer of each link that is up,
                             and of this node itself, which has an agent, too */
    struct mu__roster *roster;
    struct coord_tasks tasks;
    struct coord_leave leave;
    struct coord_requests *requests;
    struct coord_keys *keys;
    struct coord_barriers *barriers;
    struct coord_preempt *preempt;
    struct coord_runs *runs;
    struct coord_names *names;
};

/* The task at the other end of a link that is up; or this node's own. */
struct coord_peer {
    uint32_t node;
    char type[16];
    uint32_t index;
    uint64_t incarnation;
};

/* Write a record (STORE_CHANGE, STORE_RESULT; it stays the caller's) into the present
 * batch, which is committed in the next turn. A failure ends this host's lead. */
int mu__coord_write(struct mu__ctx *ctx, struct coordination *c,
                    const struct mu__msg *record);

/* This host's time without its own pauses. Timeouts of tasks are measured by it. */
uint64_t mu__coord_clock(struct mu__ctx *ctx, const struct coordination *c);

/* After each batch of messages the parts are asked when they need the next tick
 * (mu__coord_..._due_ms, by mu__coord_clock; UINT64_MAX: they need none). Without a need
 * ticks come once a second, and more often while the store is busy. */
static inline uint64_t mu__coord_earlier(uint64_t one_ms, uint64_t other_ms)
{
    return one_ms < other_ms ? one_ms : other_ms;
}

/* NULL: no link to that node is up. */
const struct coord_peer *mu__coord_peer(const struct coordination *c, uint32_t node);

#endif
