/* What the agent is made of; for actors/agent*.c only.
 *
 *   agent.c             handlers, hosts, registering, heartbeats, being in error
 *   agent_asked.c       tokens, limits, sending and sending again
 *   agent_tasks.c       calls about tasks
 *   agent_keys.c        key requests, lists
 *   agent_watches.c     watches
 *   agent_barriers.c    barriers
 *   agent_preempt.c     preemption
 *   agent/runs.c        runs of the job
 *   agent/mark.c        errors of other tasks, reported or reset
 *
 * Everything that waits is a struct mu__asked, in one list in the order of tokens, from
 * its arrival until it is forgotten. What is to be sent is sent in that order, once the
 * task is registered, and again in each later session: a time of being registered. */
#ifndef MU_ACTORS_AGENT_PARTS_H
#define MU_ACTORS_AGENT_PARTS_H

#include "actors/agent/agent.h"

#include "actors/coordination/coordination.h"
#include "actors/messages.h"
#include "actors/task_set.h"
#include "runtime/base/map.h"
#include "runtime/base/text_map.h"

enum {
    AGENT_WORDS_MAX = 256,
    AGENT_QUEUES = 16,          /* of limits: one for each length that programs use */
    AGENT_ANSWER_MS = 1000,     /* for what the service says at the end of a limit */
    AGENT_REGISTER_MS = 1000,   /* before the service is asked again to register */
    AGENT_ROUND_MS = 200 * 1000, /* of preemption: more than the service allows itself */
    AGENT_HOSTS_MAX = 1024,     /* that are up at a time */
#ifdef MUSTER_TINY
    AGENT_RING_FIRST = 4,
    AGENT_RING_MAX = 16,
    AGENT_BARRIERS_MAX = 64,
    AGENT_EVENTS_MAX = 16,
    AGENT_FLYING_BYTES = 256,
#else
    AGENT_RING_FIRST = 1 << 8,
    AGENT_RING_MAX = 1 << 17,   /* tokens that are found by one look */
    AGENT_BARRIERS_MAX = 1 << 17, /* names, whose generations are remembered: twice as
                                     many as the service has. The one that was used least
                                     lately goes: the service has forgotten it, too */
    AGENT_EVENTS_MAX = 1 << 16, /* changed keys that a program did not read */
    AGENT_FLYING_BYTES = 16 << 20, /* of requests that the service has not answered */
#endif
    AGENT_EVENT_BYTES_MAX = 1 << 28
};

struct agent;

/* What is done with something that was asked. */
struct mu__asked_kind {
    /* The message that asks; NULL: out of memory. A kind without this waits for something
     * here. */
    struct mu__msg *(*say)(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked);

    /* A TASKS_ANSWER has come; NULL: it is answered otherwise. The code is not 0 when
     * `error` is there. */
    void (*answered)(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked,
                     const struct mu__tasks_answer *body, const mu_error *error);

    /* What it is, for messages: "key \"a/b\"". */
    void (*name)(const struct mu__asked *asked, char *out, size_t size);

    /* It ends with this error. Forgets it. */
    void (*fail)(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked,
                 const mu_error *error);

    /* What did not happen when its limit has passed, words behind the name. */
    const char *late;

    /* It changes something, which may have happened although it was not answered. */
    bool changes;

    /* The service was told the limit and says what is missing at its end. */
    bool is_limited;

    /* It comes to the same for several tasks, by the service's word alone: that is waited
     * for as long as the host may be paused, which counts for no limit there. */
    bool is_shared;

    /* It stays when the agent goes into error. */
    bool stays;

    /* It may wait for what others do, without anybody being able to say who. */
    bool is_open;
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

/* What waits for limits of one length: the next one to pass comes first. */
struct agent_queue {
    int64_t timeout_ms;
    struct mu__asked *first;
    struct mu__asked *last;
    uint64_t timer;
    uint64_t timer_due_ms;
};

/* A name of a barrier. */
struct mu__agent_barrier {
    struct mu__text_node node;  /* first */
    uint64_t generation;
    struct mu__asked asked;     /* the arrival of this task */
    struct mu__agent_call *calls;   /* of threads that meet; NULL: nobody is here */
    unsigned arrived;
    unsigned threads;
    char *tasks;                /* of the first who came */
    struct mu__agent_barrier *older;    /* of those that nobody is at, by last use */
    struct mu__agent_barrier *newer;
    char name[];
};

struct agent_preempt {
    uint64_t rounds;            /* that have begun here */
    uint64_t number;            /* of the last, as the service counts */
    uint64_t store;             /* of the service that asked */
    uint64_t due_ms;            /* when the agent gives it up by itself */
    uint64_t since_ms;
    mu_preemption last;
    struct mu__preempt_step said;   /* what this task has reached, of that round */
};

struct agent {
    struct mu__agent_config config;     /* strings: copies */
    struct mu__task_set hosts;
    char *own_task;             /* the set of this task alone: "worker:1" */
    char first_host[320];       /* "/job:chief/task:0 at tcp://..." */
    char first_task[64];
    bool has_company;           /* tasks have come to the coordinated jobs since */
    bool is_passive;            /* nobody hosts a service */
    struct mu__agent_shared *shared;

    bool wants;                 /* to be registered */
    bool registered;
    bool reset_owed;            /* the service was not told of a reset, */
    bool leave_owed;            /* or may not know that this task has left */
    bool used;                  /* keys or barriers, in this registration */
    uint64_t store;             /* that it registered with last; 0: none */
    uint32_t session;
    uint64_t register_token;    /* of what was asked and not answered; 0: nothing */
    uint64_t register_ms;       /* when that was */
    struct mu__packed devices;
    struct mu__buf *devices_buf;
    char refusal[AGENT_WORDS_MAX];  /* why it was not registered; "": nobody refused */

    struct agent_host *host;    /* that is followed; NULL: nobody leads */
    uint64_t host_epoch;        /* with which it is followed */
    uint64_t host_store;
    uint64_t heard_ms;          /* when it was heard last */
    struct agent_host *linked;  /* all that are up */
    uint32_t linked_count;
    uint64_t lost_ms;           /* when the last link to a host went down; 0: none did */
    char lost[AGENT_WORDS_MAX];
    char lost_task[64];
    char trouble[AGENT_WORDS_MAX];

    mu_error error;             /* of MU_AGENT_ERROR; its code is 0 otherwise */
    mu_agent_error_fn on_error;
    void *on_error_user;

    uint64_t token_next;
    struct mu__asked *first;    /* all that waits, in the order of tokens */
    struct mu__asked *last;
    struct mu__asked *unsent;   /* the first to be looked at for sending */
    bool again;                 /* something is to be sent once more, at the next tick */
    uint64_t flying;            /* bytes that were sent and not answered */
    struct mu__key_request *changes;        /* in the order of tokens */
    struct mu__key_request *changes_last;
    struct mu__asked **ring;    /* by token */
    uint32_t ring_size;
    struct mu__map old;         /* by token: those that the ring has no place for */
    struct mu__map ids;         /* requests that can be cancelled */
    struct agent_queue queues[AGENT_QUEUES];

    uint64_t tick_timer;
    uint64_t note_ms;           /* when the log has next what waits for long */
    uint64_t progress;
    uint64_t progress_ms;       /* when that moved */

    struct mu__agent_watch *watches;
    struct mu__text_map barriers;
    uint64_t barriers_store;    /* in which their generations count, also after a reset:
                                   one of them is not gone through twice */
    uint64_t since;             /* what the service said when it registered this process
                                   first in that store */
    struct mu__agent_barrier *idle_first;   /* of them, that nobody is at: the one used
                                               least lately */
    struct mu__agent_barrier *idle_last;
    struct agent_preempt preempt;
    struct mu__own_run run;
    char run_name[64];          /* that it was started for; "": any */
};

/* ---- agent.c ---- */

static inline mu__pid agent_service(const struct agent *a)
{
    return (mu__pid){a->host->node, MU__COORDINATION};
}

bool mu__agent_is_from_host(const struct agent *a, const struct mu__msg *msg);

/* Go into error: everything that waits ends with this. */
void mu__agent_enter_error(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

/* Not registered, and it does not want to be. What waits ends with `error`. */
void mu__agent_withdraw(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

/* Register if that is wanted, and possible now. */
void mu__agent_register(struct mu__ctx *ctx, struct agent *a);

/* How things are with the service, words behind a colon. */
void mu__agent_host_words(struct mu__ctx *ctx, const struct agent *a, char *out,
                          size_t size);

/* A call may go on: the agent is not in error, and is or will be registered. If not, what
 * it is to be told. */
bool mu__agent_admits(const struct agent *a, mu_error *ret_error);

/* An error that a message has. */
mu_error mu__agent_error_of(uint32_t code, struct mu__view message, struct mu__view task,
                            uint32_t kind);

/* ---- agent_asked.c ---- */

/* Give it a token and a limit (negative: none), and send it when its turn comes. `bytes`
 * is about what it takes. False: no memory; it has ended then. */
bool mu__agent_ask(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked,
                   const struct mu__asked_kind *kind, int64_t timeout_ms, uint32_t bytes);

/* The same under a new token, at the end of the list, with the limit going on. */
bool mu__agent_ask_on(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked);

/* It is in no list any more. */
void mu__agent_forget(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked);

/* What is asked under a token; NULL: nothing is. */
struct mu__asked *mu__agent_find(const struct agent *a, uint64_t token);

/* Send what has not been sent in this session, as far as there is room. */
void mu__agent_pump(struct mu__ctx *ctx, struct agent *a);

/* Whether an answer is to what was asked in this session. What the service says of a
 * former one, which may be that it does not know this task, does not count: it is asked
 * again. */
bool mu__agent_is_asked(const struct agent *a, const struct mu__asked *asked);

/* Whether the service may have done it, for all that is known here. */
bool mu__agent_may_be_done(const struct mu__asked *asked);

/* Something was not sent, or the service asks to be asked again. */
void mu__agent_again(struct agent *a, struct mu__asked *asked);

/* Look through all at the next pump: at a tick, and when a session begins. */
void mu__agent_pump_all(struct mu__ctx *ctx, struct agent *a);

/* End everything with an error. `all`: those that stay, too. */
void mu__agent_fail_all(struct mu__ctx *ctx, struct agent *a, const mu_error *error,
                        bool all);

/* The limits that have passed. */
void mu__agent_limits(struct mu__ctx *ctx, struct agent *a);

/* What is left of a limit, for the service; 0: none. */
uint64_t mu__agent_left_ms(struct mu__ctx *ctx, const struct mu__asked *asked);

/* All changes below this were answered. */
uint64_t mu__agent_done_floor(const struct agent *a);

/* It has no limit any more. */
void mu__agent_unlimit(struct agent *a, struct mu__asked *asked);

void mu__agent_asked_done(struct agent *a);

/* ---- agent_tasks.c ---- */

static inline struct mu__agent_call *agent_call_of(struct mu__asked *asked)
{
    return (struct mu__agent_call *)(void *)((char *)asked -
                                             offsetof(struct mu__agent_call, asked));
}

static inline const struct mu__agent_call *agent_call_in(const struct mu__asked *asked)
{
    return (const struct mu__agent_call *)(const void *)((const char *)asked -
                                                         offsetof(struct mu__agent_call,
                                                                  asked));
}

/* Let a message hold copies of what two of its views (NULL: one) point to: the call that
 * they are of may end before a service on this node hears it. Takes msg; NULL: no
 * memory. */
struct mu__msg *mu__agent_hold(struct mu__ctx *ctx, struct mu__msg *msg,
                               struct mu__view *first, struct mu__view *second);

/* Complete a call that is in no list. `error` NULL: 0. */
void mu__agent_complete(struct mu__agent_call *call, const mu_error *error);

/* The common fail() of calls. */
void mu__agent_call_fail(struct mu__ctx *ctx, struct agent *a, struct mu__asked *asked,
                         const mu_error *error);

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
void mu__agent_tell_registered(struct mu__ctx *ctx, struct agent *a,
                               const mu_error *error);

/* The service counts this task as failed: whoever reported that is answered. */
void mu__agent_tell_reported(struct mu__ctx *ctx, struct agent *a);

/* The service that was to hear of a reset is lost: the next one will. */
void mu__agent_tell_reset(struct mu__ctx *ctx, struct agent *a);

/* To the host, if there is one: this task leaves, and waits for no answer. */
void mu__agent_say_goodbye(struct mu__ctx *ctx, struct agent *a);

/* ---- agent_keys.c ---- */

void mu__agent_on_key_ask(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_key_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_listed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_call_list(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call);

/* ---- agent_watches.c ---- */

void mu__agent_call_watch(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);
void mu__agent_call_watch_next(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);
void mu__agent_call_watch_close(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_call *call);
void mu__agent_on_key_event(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_watches_done(struct mu__ctx *ctx, struct agent *a);

/* ---- agent_barriers.c ---- */

void mu__agent_call_barrier(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_barrier_cancel(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_call *call);
void mu__agent_on_passed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_barriers_forget(struct agent *a);

/* ---- agent_preempt.c ---- */

void mu__agent_call_notice(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_call *call);
void mu__agent_call_reached(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_preemption(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);
void mu__agent_on_preempt_ask(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_preempt_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A session has begun: a round that goes on is told its step again. */
void mu__agent_preempt_session(struct mu__ctx *ctx, struct agent *a);

/* The task takes part in no round any more. Whoever waits for one is told otherwise. */
void mu__agent_preempt_forget(struct agent *a);

/* A round that takes too long is given up. */
void mu__agent_preempt_tick(struct mu__ctx *ctx, struct agent *a);

/* ---- agent/notes.c ---- */

/* The host says who is missing: a line for the log. */
void mu__agent_on_wait_note(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A line about what waits for long, from time to time. */
void mu__agent_notes_tick(struct mu__ctx *ctx, struct agent *a);

/* ---- agent/runs.c ---- */

void mu__agent_call_run_end(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_runs(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call);
void mu__agent_call_runs_clear(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);

/* ---- agent/mark.c ---- */

void mu__agent_call_mark(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call);
void mu__agent_cleared(struct mu__ctx *ctx, struct agent *a,
                       const struct mu__task_cleared *body);

/* The run that this process takes part in, in the store of the host that is followed; 0:
 * none yet. And: it was registered in this one. */
uint64_t mu__agent_run(const struct agent *a);
void mu__agent_note_run(struct agent *a, uint64_t number);

#endif
