/* The agent's state; for actors/agent/ only. What its files call of each other is in
 * call_handlers.h and requests.h.
 *
 *   agent.c             handlers, heartbeats, being in error
 *   hosts.c             who hosts the service, and which one is followed
 *   host_registration.c registering with it
 *   requests.c          tokens, timeouts, sending and sending again
 *   task_calls.c        calls about tasks
 *   key_requests.c      key requests, lists
 *   watches.c           watches
 *   barrier_calls.c     barriers
 *   preemption_calls.c  preemption
 *   run_calls.c         runs of the job
 *   task_reports.c      errors of other tasks, reported or reset
 *   wait_log.c          what waits for long, in the log */
#ifndef MU_AGENT_INTERNAL_H
#define MU_AGENT_INTERNAL_H

#include "actors/agent/calls.h"
#include "actors/coordination/host_config.h"
#include "actors/messages.h"
#include "actors/task_set.h"
#include "runtime/base/map.h"
#include "runtime/base/text_map.h"

enum {
    AGENT_WORDS_MAX = 256,
    AGENT_HOSTS_MAX = 1024      /* that are up at a time */
};

/* A task that may host the service, and whose link is up. */
struct agent_host {
    struct agent_host *next;
    uint32_t node;
    char task[64];
    bool has_said;              /* SERVICE_HERE */
    bool leads;
    uint64_t epoch;
    uint64_t store;
    char reason[AGENT_WORDS_MAX];   /* why it does not lead */
};

struct agent_hosts {
    struct mu__task_set set;    /* tasks that may host the service */
    char first_words[320];      /* "/job:chief/task:0 at tcp://..." */
    char first_task[64];
    struct agent_host *followed;    /* NULL: nobody leads */
    uint64_t epoch;             /* with which it is followed */
    uint64_t store;
    uint64_t heard_ms;          /* when it was heard last */
    struct agent_host *linked;  /* all that are up */
    uint32_t linked_count;
    uint64_t lost_ms;           /* when the last link to a host went down; 0: none did */
    char lost_reason[AGENT_WORDS_MAX];
    char lost_task[64];
    char reported_error[AGENT_WORDS_MAX];   /* why none can be reached */
};

struct agent_registration {
    bool is_requested;
    bool registered;
    bool reset_unreported;      /* the service was not told of a reset, */
    bool leave_unreported;      /* or may not know that this task has left */
    bool used;                  /* keys or barriers, in this registration */
    uint64_t store;             /* that it registered with last; 0: none */
    uint32_t session;
    uint64_t token;             /* of the request that is not answered; 0: none */
    uint64_t sent_ms;           /* when that was sent */
    struct mu__packed devices;
    struct mu__buf *devices_buf;
    char refusal[AGENT_WORDS_MAX];  /* why it was not registered; "": nobody refused */
};

enum {
    AGENT_QUEUES = 16,          /* of timeouts: one for each length that programs use */
    AGENT_ANSWER_MS = 1000,     /* for what the service says at the end of a timeout */
#ifdef MUSTER_TINY
    AGENT_RING_FIRST = 4,
    AGENT_RING_MAX = 16,
    AGENT_IN_FLIGHT_BYTES = 256,
#else
    AGENT_RING_FIRST = 1 << 8,
    AGENT_RING_MAX = 1 << 17,   /* tokens that are found by one look */
    AGENT_IN_FLIGHT_BYTES = 16 << 20, /* of requests that the service has not answered */
#endif
};

/* Requests with a timeout of one length: the next one to pass comes first. */
struct agent_timeout_queue {
    int64_t timeout_ms;
    struct mu__agent_request *first;
    struct mu__agent_request *last;
    uint64_t timer;
    uint64_t timer_due_ms;
};

struct agent_requests {
    uint64_t token_next;
    struct mu__agent_request *first;  /* all that waits, in the order of tokens */
    struct mu__agent_request *last;
    struct mu__agent_request *unsent; /* the first to be looked at for sending */
    bool resend;                /* something is to be sent once more, at the next tick */
    uint64_t in_flight_bytes;   /* sent and not answered */
    struct mu__key_request *changes;    /* in the order of tokens */
    struct mu__key_request *changes_last;
    struct mu__agent_request **ring;  /* by token */
    uint32_t ring_size;
    struct mu__map overflow;    /* by token: those that the ring has no place for */
    struct mu__map ids;         /* requests that can be cancelled */
    struct agent_timeout_queue queues[AGENT_QUEUES];
};

enum {
    AGENT_REGISTER_MS = 1000,   /* before the service is asked again to register */
    AGENT_ROUND_MS = 200 * 1000, /* of preemption: more than the service allows itself */
#ifdef MUSTER_TINY
    AGENT_BARRIERS_MAX = 64,
    AGENT_EVENTS_MAX = 16,
#else
    AGENT_BARRIERS_MAX = 1 << 17, /* names, whose generations are remembered: twice as
                                     many as the service has. The one that was used least
                                     lately goes: the service has forgotten it, too */
    AGENT_EVENTS_MAX = 1 << 16, /* changed keys that a program did not read */
#endif
    AGENT_EVENT_BYTES_MAX = 1 << 28
};

/* A name of a barrier. */
struct mu__agent_barrier {
    struct mu__text_node node;  /* first */
    uint64_t generation;
    struct mu__agent_request pending;     /* the arrival of this task */
    struct mu__agent_call *calls;   /* of threads that meet; NULL: nobody is here */
    unsigned arrived;
    unsigned threads;
    char *tasks;                /* of the first who came */
    struct mu__agent_barrier *older;    /* of those that nobody is at, by last use */
    struct mu__agent_barrier *newer;
    char name[];
};

struct agent_barriers {
    struct mu__text_map by_name;
    uint64_t store;             /* in which their generations count, also after a reset:
                                   one of them is not gone through twice */
    uint64_t since;             /* what the service said when it registered this process
                                   first in that store */
    struct mu__agent_barrier *idle_first;   /* those that nobody is at: the one used
                                               least lately */
    struct mu__agent_barrier *idle_last;
};

struct agent_preemption {
    uint64_t rounds;            /* that have begun here */
    uint64_t number;            /* of the last, as the service counts */
    uint64_t store;             /* of the service that asked */
    uint64_t due_ms;            /* when the agent gives it up by itself */
    uint64_t since_ms;
    mu_preemption last;
    struct mu__preempt_step said;   /* what this task has reached, of that round */
};

struct agent_heartbeat {
    uint64_t timer;             /* of the tick */
    uint64_t wait_log_ms;       /* when the log has next what waits for long */
    uint64_t progress;
    uint64_t progress_ms;       /* when that moved */
};

struct agent_job_run {
    struct mu__own_run own;
    char name[64];              /* that it was started for; "": any */
};

struct agent {
    struct mu__agent_config config;     /* strings: copies */
    char *own_task;             /* the set of this task alone: "worker:1" */
    bool has_joined_tasks;      /* tasks have come to the coordinated jobs since */
    bool is_passive;            /* nobody hosts a service */
    struct mu__agent_shared *shared;
    mu_error error;             /* of MU_AGENT_ERROR; its code is 0 otherwise */
    mu_agent_error_fn on_error;
    void *on_error_user;
    struct agent_hosts hosts;
    struct agent_registration registration;
    struct agent_requests requests;
    struct agent_heartbeat heartbeat;
    struct mu__agent_watch *watches;
    struct agent_barriers barriers;
    struct agent_preemption preemption;
    struct agent_job_run job_run;
};

#endif
