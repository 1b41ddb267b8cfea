/* The state of the coordination service, and what every part of it uses. The parts:
 *
 *     coordination.c       the actor: handlers, the store, the clock
 *     replies.c            messages, sent once what they depend on is safe
 *     registration.c       tasks that register, are heard, report errors, are reset
 *     task_states.c        changes of a task's state, and who hears of them
 *     leave.c              tasks that leave, alone or together
 *     task_marks.c         errors and resets that one task reports of another
 *     cluster_changes.c    tasks that come to the coordinated jobs, or leave them
 *     task_requests.c      requests about tasks, and those that wait for tasks, by
 *                          groups: task_groups.c; what is answered: task_listing.c
 *     preemption.c         notices and rounds
 *     job_runs.c           runs of the job: what belongs to one, when another begins
 *     barriers/            barriers: requests, outcomes; who is alive
 *     keys/                key-values: changes, reads, watches, leases
 *
 * What they do for each other is in tasks.h, replies.h, job_runs.h, keys/keys.h and
 * barriers/barrier_requests.h. Below them, as plain data that knows no
 * messages: roster.h, barriers/barrier_table.h, request_results.h, keys/key_map.h. */
#ifndef MU_ACTORS_COORDINATION_INTERNAL_H
#define MU_ACTORS_COORDINATION_INTERNAL_H

#include "actors/coordination/host_config.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/roster.h"
#include "actors/messages.h"
#include "actors/task_set.h"

/* Each part's state, which that part defines. */
struct coord_requests;
struct coord_keys;
struct coord_barriers;
struct coord_preempt;
struct coord_runs;

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

/* Changes that were written to the store, and messages that wait until they are safe. */
struct coord_commits {
    bool dirty;                 /* something was written and not committed */
    bool broken;                /* a write failed: nothing may be sent, `lost` follows */
    uint64_t timer;
    uint64_t sequence;          /* of the last commit */
    uint64_t safe;              /* of the last commit that is safe */
    struct coord_later *later;  /* what waits, in order */
    struct coord_later **later_end;
    uint32_t later_count;
    struct mu__ctx *calling;    /* while a function of the store runs */
};

/* The clock that timeouts of tasks are measured by, and the timer of the next tick. */
struct coord_clock {
    uint64_t timer;
    uint64_t due_ms;            /* by the world's clock */
    uint64_t next_ms;           /* while it ticks: when the next tick is requested */
    bool ticking;
    uint64_t paused_ms;         /* by how much this host was too late in all: no task is
                                   declared dead for it, see mu__coord_clock */
};

/* What all tasks were told, and whether all have come. */
struct coord_tasks {
    mu_error notified; /* what the connected tasks were told last: another one's
                                   failure */
    uint64_t notified_count;
    uint32_t fresh;             /* tasks that registered since then, at most */
    bool gathering;             /* somebody registers with all others, and they were not
                                   all there at once since: who goes may come again */
};

/* Tasks that leave together. */
struct coord_leave {
    uint32_t leavers;           /* tasks that share their fate */
    uint32_t left;              /* of these, that have left already */
    uint32_t leaving;           /* how many of them wait for the others */
    uint64_t due_ms;            /* for so long; valid while some do */
};

struct coordination {
    struct mu__coordination_config config;
    struct mu__store *store;
    bool leads;                 /* the store is held */
    bool retires;               /* it lets the store go, in this tick */
    uint64_t epoch;
    uint64_t number;            /* of the store's content */
    char reason[256];           /* why it does not lead */
    uint64_t revision;          /* of the last change */
    uint64_t records;           /* that a rewrite of the store would have */
    struct coord_commits commits;
    struct coord_clock clock;
    struct mu__map peers;       /* node + 1 -> struct coord_peer, of all that are up; this
                                   node, which has an agent, too, is one */
    struct mu__roster *roster;
    struct coord_tasks tasks;
    struct coord_leave leave;
    struct coord_requests *requests;
    struct coord_keys *keys;
    struct coord_barriers *barriers;
    struct coord_preempt *preempt;
    struct coord_runs *runs;
};

/* Who is at the other end of a link that is up; or this node itself. */
struct coord_peer {
    uint32_t node;
    char type[16];
    uint32_t index;
    uint64_t incarnation;
};

/* Write a record (STORE_CHANGE, STORE_RESULT), which stays the caller's, into the present
 * batch, which is committed in the next turn. After a failure the service does not lead
 * any more. */
int mu__coord_write(struct mu__ctx *ctx, struct coordination *c,
                    const struct mu__msg *record);

/* This host's time, without the time that it was itself paused for. What is measured
 * against timeouts of tasks is measured by it. */
uint64_t mu__coord_clock(struct mu__ctx *ctx, const struct coordination *c);

/* Tick (all mu__coord_..._tick) at `due_ms` of mu__coord_clock, or as soon as possible
 * when that is past: exactly then, where a part waits for a limit. Otherwise ticks come
 * once a second, and more often while the store is busy. It holds for the next tick
 * only: a part that still waits says so again from within its own tick. */
void mu__coord_wake_at(struct mu__ctx *ctx, struct coordination *c, uint64_t due_ms);

/* NULL: no link to that node is up. */
const struct coord_peer *mu__coord_peer(const struct coordination *c, uint32_t node);

#endif
