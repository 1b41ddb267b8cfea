/* What the agent is made of; for actors/agent/ only.
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

#include "actors/agent/agent.h"

#include "actors/agent/hosts.h"
#include "actors/agent/requests.h"
#include "actors/coordination/coordination.h"
#include "actors/messages.h"
#include "runtime/base/text_map.h"

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

/* ---- agent.c ---- */

/* The state that the program sees, from what is known. */
void mu__agent_show_state(struct agent *a);

/* Go into error: everything that waits ends with this. */
void mu__agent_enter_error(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

/* A call may go on: the agent is not in error, and is or will be registered. If not, what
 * it is to be told. */
bool mu__agent_admits(const struct agent *a, mu_error *ret_error);

/* An error that a message has. */
mu_error mu__agent_error_of(uint32_t code, struct mu__view message, struct mu__view task,
                            uint32_t kind);

/* ---- task_calls.c ---- */

/* Let a message hold copies of what two of its views (NULL: one) point to: the call that
 * they are of may end before a service on this node hears it. Takes msg; NULL: no
 * memory. */
struct mu__msg *mu__agent_copy_views(struct mu__ctx *ctx, struct mu__msg *msg,
                               struct mu__view *first, struct mu__view *second);

typedef void (*agent_call_fn)(struct mu__ctx *ctx, struct agent *a,
                              struct mu__agent_call *call);
void mu__agent_call_register(struct mu__ctx *ctx, struct agent *a,
                             struct mu__agent_call *call);
void mu__agent_call_report(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_call *call);
void mu__agent_call_reset(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);
void mu__agent_call_leave(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);
void mu__agent_call_tasks(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);

/* It is registered, or (an error) was refused: those who wait for that hear so. */
void mu__agent_report_registered(struct mu__ctx *ctx, struct agent *a,
                               const mu_error *error);

/* The service counts this task as failed: whoever reported that is answered. */
void mu__agent_finish_reports(struct mu__ctx *ctx, struct agent *a);

/* The service that was to hear of a reset is lost: the next one will. */
void mu__agent_finish_resets(struct mu__ctx *ctx, struct agent *a);

/* To the host, if there is one: this task leaves, and waits for no answer. */
void mu__agent_send_goodbye(struct mu__ctx *ctx, struct agent *a);

/* ---- key_requests.c ---- */

void mu__agent_on_key_submit(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_key_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_listed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_call_list(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call);

/* ---- watches.c ---- */

void mu__agent_call_watch(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);
void mu__agent_call_watch_next(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);
void mu__agent_call_watch_close(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_call *call);
void mu__agent_on_key_event(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_watches_done(struct mu__ctx *ctx, struct agent *a);

/* ---- barrier_calls.c ---- */

void mu__agent_call_barrier(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_barrier_cancel(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_call *call);
void mu__agent_on_passed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_barriers_forget(struct agent *a);

/* ---- preemption_calls.c ---- */

void mu__agent_call_notice(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_call *call);
void mu__agent_call_reached(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_preemption(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);
void mu__agent_on_preempt_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_preempt_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A session has begun: a round that goes on is told its step again. */
void mu__agent_preempt_session(struct mu__ctx *ctx, struct agent *a);

/* The task takes part in no round any more. Whoever waits for one is told otherwise. */
void mu__agent_preempt_forget(struct agent *a);

/* A round that takes too long is given up. */
void mu__agent_preempt_tick(struct mu__ctx *ctx, struct agent *a);

/* ---- run_calls.c ---- */

void mu__agent_call_run_end(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_runs(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call);
void mu__agent_call_runs_clear(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);

/* ---- task_reports.c ---- */

void mu__agent_call_mark(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call);
void mu__agent_cleared(struct mu__ctx *ctx, struct agent *a,
                       const struct mu__task_cleared *body);

/* The run that this process takes part in, in the store of the host that is followed; 0:
 * none yet. And: it was registered in this one. */
uint64_t mu__agent_run(const struct agent *a);
void mu__agent_note_run(struct agent *a, uint64_t number);

#endif
