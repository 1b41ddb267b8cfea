/* The supervisor's state, and what its files call of each other. For this folder only.
 *
 *     supervisor.c       the actor: init, timers, nodes; a closure's end
 *     clients.c          clients; a closure from SCHEDULE to its queue; cancelling
 *     admission.c        how much each client may have here; shares.c divides it
 *     unread.c           results that a client does not read for now
 *     dispatch.c         which closure goes to which worker; roles.c by task type
 *     recall.c           what was sent and has not begun is taken back
 *     begun.c            runs that have begun, and for how long they go on
 *     finish_attempts.c  what becomes of an attempt: result, retry, time limits
 *     stragglers.c       backup attempts
 *     workers.c          workers join, are lost, are waited for, leave
 *     inputs.c           inputs of closures; pinning.c, per_worker_values.c,
 *                        builds.c
 *     journaling.c       named closures over a restart
 *     status.c           the status; explain.c: one closure's, and the watchdog
 *
 * The parts of the state are structs with files of their own, which know nothing of this
 * one: closures, closure_extra, membership, worker_state, live_nodes, named_closures,
 * closure_journal, sent_bodies, pinned_results, backups, reported_metrics,
 * function_times, names. */
#ifndef MU_ACTORS_SUPERVISOR_INTERNAL_H
#define MU_ACTORS_SUPERVISOR_INTERNAL_H

#include "actors/keep.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/ps/server_failures.h"
#include "actors/supervisor/admission.h"
#include "actors/supervisor/config.h"
#include "actors/supervisor/state/backups.h"
#include "actors/supervisor/state/closure_extra.h"
#include "actors/supervisor/state/closure_journal.h"
#include "actors/supervisor/state/histogram.h"
#include "actors/supervisor/state/live_nodes.h"
#include "actors/supervisor/state/membership.h"
#include "actors/supervisor/state/pinned_results.h"
#include "actors/supervisor/state/reported_metrics.h"
#include "actors/supervisor/state/unread_results.h"
#include "actors/supervisor/state/worker_state.h"

enum {
    STATUS_REQUESTS_MAX = 64,
    QUARANTINE_CRASHES = 2 /* workers lost under a closure before it is quarantined */
};

/* A client that schedules closures. An entry is used again when its client has left and
 * none of its closures is left. Entry 0 is the sentinel, the client of closures that
 * nobody waits for. */
struct supervisor_client {
    mu__pid pid;
    bool present;
    uint32_t closures;
    uint64_t scheduled;
    uint32_t *slots; /* by token - 1: index + 1 of the closure */
    uint32_t slots_count;
    struct mu__map tokens; /* the same, for tokens beyond these */
    struct mu__client_room room;
    struct mu__unread_results unread;
};

struct supervisor_clients {
    struct supervisor_client *items;
    uint32_t count;
    uint32_t last;         /* index of the one found last: SCHEDULEs come in runs */
    uint64_t unread_timer; /* 0: nothing is kept for any client */
};

/* A STATUS_GET that waits for the parameter servers, and what they have answered so
 * far. */
struct status_request {
    mu__pid requester;
    uint64_t token;  /* the requester's */
    uint64_t number; /* our token for the servers; 0: the entry is free */
    uint64_t timer;
    uint32_t missing; /* servers that have not answered */
    mu_value *variables;
};

struct status_requests {
    struct status_request requests[STATUS_REQUESTS_MAX];
    uint64_t next;
    uint32_t refused;    /* since the log said so last */
    uint64_t refused_ms; /* when that was; 0: never */
};

/* Reported failures of servers, and DEADLINE results, that still count. */
struct failure_counts {
    struct mu__server_failures *servers;
    struct mu__server_failures *timeouts;
};

/* RECALLs under way: see recall.h. */
struct recalls {
    uint64_t timer;    /* of the next check; 0: not set */
    uint64_t due_ms;   /* when that is */
    uint64_t delay_ms; /* between checks */
    bool is_late;      /* nothing can move now: the check is LATE_MS away */
    uint64_t sent;     /* RECALLs sent */
    uint64_t returned; /* closures that came back, */
    uint64_t refused;  /* and those that had begun */
    bool has_ranks;    /* closures may differ in rank: one with a priority or worker
                          of its own was queued */
};

/* Queues of closures for one task type alone: see roles.h. */
struct role_queues {
    bool has_queued;     /* a queue of a role may hold a closure */
    bool common_is_next; /* of two equally urgent closures, the one of the common
                            queues is next */
};

/* How far the start is with its journal: the next to be done. */
enum journal_phase {
    JOURNAL_READ,
    JOURNAL_DROP_LATE, /* names of closures that only the former chief could run */
    JOURNAL_QUEUE,     /* what is still to be run */
    JOURNAL_BEGIN,     /* an epoch of this chief */
    JOURNAL_OPEN,      /* nothing, or there is none */
    JOURNAL_FAILED
};

/* A large journal is read in many turns. */
struct journal_opening {
    enum journal_phase phase;
    bool is_late; /* it was not read at once: messages are held */
    struct mu__journal_reading *reading;
    struct mu__journal_progress progress;
    uint64_t cut;                /* bytes of its torn end */
    struct named_closure *named; /* where the next two go on */
    struct mu__closure *closure;
    uint32_t closures_left;
    uint64_t said_ms; /* when the log said how far it is */
    mu_error error;   /* FAILED */
};

struct watchdog {
    uint64_t timer;
    uint64_t progress_ms; /* when a closure was resolved last, or began to wait */
    uint64_t stalls;
};

struct per_worker_values {
    struct mu__map by_number; /* -> struct per_worker */
    struct mu__list all;      /* in the order in which they were made */
    uint64_t next;
    uint32_t slow_builds; /* on all workers */
};

/* For the status. */
struct supervisor_counts {
    uint64_t args_bytes; /* of closures that are not done */
    uint64_t scheduled;
    uint64_t finished;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t retried;
    uint64_t forgotten; /* of clients that left */
    uint64_t stale;     /* results of attempts that are not awaited */
    uint64_t workers_lost;
    uint64_t stuck;
    struct mu__histogram execution;
    struct mu__histogram recovery;
};

struct supervisor {
    struct mu__supervisor_config config;
    struct mu__closures closures;
    struct closure_extras extras;
    struct mu__membership members;
    struct worker_states worker_states;
    uint32_t exclusive_worker; /* reserved for a quarantined closure; 0: none */
    struct role_queues roles;
    struct recalls recalls;
    struct backups backups;
    struct mu__function_times times;
    struct failure_counts failures;
    struct mu__names functions;
    struct supervisor_clients clients;
    struct mu__admission admission;
    struct live_nodes nodes;
    struct effect_numbers effects;
    struct closure_journal journal;
    struct journal_opening opening;
    struct pinned_results pinned;
    struct per_worker_values per_worker;
    struct reported_metrics metrics;
    struct status_requests status;
    struct watchdog watchdog;
    struct supervisor_counts counts;
};

/* The purpose of a timer: the upper byte of its token. */
enum timer_purpose {
    TIMER_STATUS,  /* rest: the request's number */
    TIMER_CLOSURE, /* rest: index of its closure_extra */
    TIMER_WORKER,  /* rest: number of the worker */
    TIMER_BUILD,   /* the same */
    TIMER_WATCHDOG,
    TIMER_BACKUP,
    TIMER_JOURNAL,
    TIMER_OPENING,
    TIMER_COMPACTION,
    TIMER_ROOM,
    TIMER_RECALL,
    TIMER_UNREAD
};

static inline uint64_t timer_token(enum timer_purpose purpose, uint64_t rest)
{
    return (uint64_t)purpose << 56 | rest;
}

/* How a closure ended. Strings may be empty; `result` borrows from `backing`. */
struct closure_outcome {
    int code;      /* negative, or 0 */
    uint32_t kind; /* enum mu_error_kind */
    struct mu__packed result;
    struct mu__buf *backing;
    struct mu__view message;
    struct mu__view task;
    struct mu__view detail;
    struct mu__view error_data;
    bool pinned;
};

/* NULL when the closure has none. */
static inline struct closure_extra *mu__sup_extra(const struct supervisor *s,
                                                  const struct mu__closure *closure)
{
    return closure->extra == 0 ? NULL
                               : mu__closure_extras_at(&s->extras, closure->extra - 1);
}

#endif
