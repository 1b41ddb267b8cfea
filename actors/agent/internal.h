/* The agent's state; for actors/agent/ only. Functions that its files share are declared
 * in call_handlers.h and requests.h.
 *
 *   agent.c             handlers, heartbeats, the error state
 *   hosts.c             tasks that may host the service, and the one that is followed
 *   host_registration.c registering with the host
 *   requests.c          tokens, timeouts, sending and sending again
 *   task_calls.c        calls about tasks
 *   key_requests.c      key requests, lists of keys
 *   watches.c           watches
 *   barrier_calls.c     barriers
 *   preemption_calls.c  preemption
 *   run_calls.c         runs of the job
 *   task_reports.c      errors and resets of other tasks
 *   wait_log.c          log lines about long waits */
#ifndef MU_AGENT_INTERNAL_H
#define MU_AGENT_INTERNAL_H

#include "actors/agent/calls.h"
#include "actors/coordination/host_config.h"
#include "actors/messages.h"
#include "actors/task_set.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/base/text_map.h"

enum {
    AGENT_WORDS_MAX = 256,
    AGENT_HOSTS_MAX = 1024 /* with a link that is up */
};

/* A task that may host the service, and whose link is up. */
struct agent_host {
    struct mu__list_node linked_node;
    uint32_t node;
    char task[64];
    bool leads; /* from its last SERVICE_HERE, as the members below */
    uint64_t epoch;
    uint64_t store;
    char reason[AGENT_WORDS_MAX]; /* why it does not lead */
};

struct agent_hosts {
    struct mu__task_set set; /* tasks that may host the service */
    char first_words[320];   /* of the first task: "/job:chief/task:0 at tcp://..." */
    char first_task[64];
    struct agent_host *followed; /* the leader; NULL: there is none */
    uint64_t epoch;              /* of the followed host, when it was chosen */
    uint64_t store;
    uint64_t heard_ms;      /* time of the followed host's last answer */
    struct mu__list linked; /* agent_host: those whose link is up, the latest first */
    uint32_t linked_count;
    uint64_t lost_ms; /* when the last link to a host went down; 0: none did */
    char lost_reason[AGENT_WORDS_MAX];
    char lost_task[64];
    char reported_error[AGENT_WORDS_MAX]; /* why no host can be reached */
};

struct agent_registration {
    bool is_requested;
    bool registered;
    bool reset_unreported; /* the service does not know yet of this task's reset */
    bool leave_unreported; /* the service may not know that this task has left */
    bool used;             /* keys or barriers were used since registering */
    uint64_t store;        /* of the last registration; 0: none */
    uint32_t session;
    uint64_t token;   /* of the unanswered TASK_REGISTER; 0: none */
    uint64_t sent_ms; /* when that was sent */
    struct mu__packed devices;
    struct mu__buf *devices_buf;   /* the memory of `devices`; NULL: there are none */
    char refusal[AGENT_WORDS_MAX]; /* why the host refused; "": it did not */
};

enum {
    AGENT_QUEUES = 16,      /* timeout queues: one for each length in use */
    AGENT_ANSWER_MS = 1000, /* beyond a timeout, for the service's answer to it */
#ifdef MUSTER_TINY
    AGENT_RING_FIRST = 4,
    AGENT_RING_MAX = 16,
    AGENT_IN_FLIGHT_BYTES = 256,
#else
    AGENT_RING_FIRST = 1 << 8,
    AGENT_RING_MAX = 1 << 17,         /* slots: further tokens need a lookup in a map */
    AGENT_IN_FLIGHT_BYTES = 16 << 20, /* of requests that the service has not answered */
#endif
};

/* Pending requests with a timeout of one length, the next one to pass first. */
struct agent_timeout_queue {
    int64_t timeout_ms;
    struct mu__list requests;
    uint64_t timer; /* 0: not set */
    uint64_t timer_due_ms;
};

struct agent_requests {
    uint64_t token_next;
    struct mu__list pending;          /* mu__agent_request, in the order of tokens */
    struct mu__agent_request *unsent; /* the first that may not be sent in this session */
    bool resend;              /* some request must be sent again at the next tick */
    uint64_t in_flight_bytes; /* of requests sent and not answered */
    struct mu__list changes;  /* mu__key_request: changes, in the order of tokens */
    struct mu__agent_request **ring; /* by token */
    uint32_t ring_size;
    struct mu__map overflow; /* by token: requests without a slot in the ring */
    struct mu__map ids;      /* mu__key_request by id: those that can be cancelled */
    struct agent_timeout_queue queues[AGENT_QUEUES];
};

enum {
    AGENT_REGISTER_MS = 1000,    /* between two attempts to register */
    AGENT_ROUND_MS = 200 * 1000, /* of preemption: longer than the service's own bound */
#ifdef MUSTER_TINY
    AGENT_BARRIERS_MAX = 64,
    AGENT_EVENTS_MAX = 16,
#else
    AGENT_BARRIERS_MAX = 1 << 17, /* names with a known generation: twice the service's
                                     bound, so that the least recently used one, which is
                                     evicted, is unknown to the service, too */
    AGENT_EVENTS_MAX = 1 << 16,   /* changed keys that the program has not read */
#endif
    AGENT_EVENT_BYTES_MAX = 1 << 28
};

/* A barrier's name, with its generation and this task's arrival. */
struct mu__agent_barrier {
    struct mu__text_node node;        /* first */
    uint64_t generation;              /* the next one */
    struct mu__agent_request pending; /* the arrival of this task */
    struct mu__list calls; /* of the threads at the barrier; empty: it is idle */
    unsigned arrived;      /* threads at the barrier */
    unsigned threads;      /* that must arrive before the task has arrived */
    char *tasks;           /* from the first call */
    struct mu__list_node idle_node;
    char name[];
};

struct agent_barriers {
    struct mu__text_map by_name;
    uint64_t store;       /* that the generations belong to. Kept over a reset: no
                             generation is passed twice */
    uint64_t since;       /* from the first registration of this process in that
                             store: see MU__TASK_REGISTER_FIELDS */
    struct mu__list idle; /* no thread is at them; the least recently used first */
};

struct agent_preemption {
    uint64_t rounds;   /* that have begun here */
    uint64_t number;   /* of the last round, from the service */
    uint64_t store;    /* of the service that began it */
    uint64_t due_ms;   /* when the agent gives the round up by itself */
    uint64_t since_ms; /* when it began here */
    mu_preemption last;
    struct mu__preempt_step vote; /* the step that this task had reached */
};

struct agent_heartbeat {
    uint64_t timer;       /* of the next tick */
    uint64_t wait_log_ms; /* when the wait log may write its next line */
    uint64_t progress;    /* as the program reported it last */
    uint64_t progress_ms; /* when it changed */
};

struct agent_job_run {
    struct mu__own_run own; /* the run that this process takes part in */
    char name[64];          /* of the run it was started for; "": any */
};

struct agent {
    struct mu__agent_config config;
    char *own_task;        /* the task set of this task alone: "worker:1" */
    bool has_joined_tasks; /* tasks were added to the coordinated jobs */
    bool is_passive;       /* no task may host a service */
    struct mu__agent_shared *shared;
    mu_error error; /* code 0: the agent is not in the error state */
    mu_agent_error_fn on_error;
    void *on_error_user;
    struct agent_hosts hosts;
    struct agent_registration registration;
    struct agent_requests requests;
    struct agent_heartbeat heartbeat;
    struct mu__list watches; /* mu__agent_watch, the latest first */
    struct agent_barriers barriers;
    struct agent_preemption preemption;
    struct agent_job_run job_run;
};

#endif
