/* A node's side of the coordination service. One on every node.
 *
 * Hears:  CALL from the node's program; SERVICE_HERE, answers, TASK_ERROR, PREEMPT_ASK,
 *         PREEMPT_STOP and KEY_EVENT from the service; node news; its timers
 * Says:   TASK_..., TASKS_GET, BARRIER_..., PREEMPT_..., KEY_... to the service
 * Owns:   calls that wait, until their limits; what was asked and not answered, which it
 *         asks again when the service is elsewhere
 * Fails:  never by itself. In error state every call does, with that error */
#ifndef MU_ACTORS_AGENT_H
#define MU_ACTORS_AGENT_H

#include "actors/call.h"
#include "runtime/kernel.h"

#include "muster/coordination.h"

#include <stdatomic.h>

/* What the program's threads and the agent share. */
struct mu__agent_shared {
    atomic_int state;               /* enum mu_agent_state; by the loop */
    atomic_uint_fast64_t progress;  /* by the program */
    atomic_uint_fast64_t step;      /* the last that the program has reached, plus 1 */
    atomic_uint_fast64_t round;     /* of preemption that began last; by the loop */
};

struct mu__agent_config {
    const char *hosts;      /* a task set: who may host the service; "": nobody */
    const char *address;    /* of the first of them, for messages */
    const char *tasks;      /* a task set: the coordinated jobs */
    const char *type;       /* of this task; the strings outlive the actor */
    uint32_t index;
    uint64_t incarnation;
    const mu_value *devices;    /* what this machine has; a reference is taken; may be
                                   NULL */
    uint32_t heartbeat_ms;  /* to the service */
    uint32_t dead_ms;
    bool registers_at_once; /* without being told to: real nodes do */
    struct mu__agent_shared *shared;    /* outlives the actor */
};

enum mu__agent_operation {
    MU__AGENT_REGISTER,     /* barrier */
    MU__AGENT_ON_ERROR,     /* on_error, user */
    MU__AGENT_REPORT,       /* failure */
    MU__AGENT_SET_ERROR,    /* failure */
    MU__AGENT_STATE,        /* answers with the error in call.error, and 0 */
    MU__AGENT_RESET,
    MU__AGENT_LEAVE,
    MU__AGENT_TASKS,        /* what, tasks, version: content, version */
    MU__AGENT_KEY,          /* ask: answer_... */
    MU__AGENT_KEY_CANCEL,   /* number: the request's */
    MU__AGENT_LIST,         /* ask.key: content */
    MU__AGENT_WATCH,        /* ask.key, below: watch */
    MU__AGENT_WATCH_NEXT,   /* watch: event */
    MU__AGENT_WATCH_CLOSE,  /* watch */
    MU__AGENT_BARRIER,      /* name, tasks, threads */
    MU__AGENT_BARRIER_CANCEL,   /* name */
    MU__AGENT_NOTICE,       /* name: the reason; version: the grace in ms */
    MU__AGENT_REACHED,      /* version: the step; number: 1 to stop */
    MU__AGENT_PREEMPTION,   /* version: the round, number: 1 for agreed; preemption */
    MU__AGENT_OPERATIONS_COUNT
};

/* One watch of the program; made and freed by the program, with the actor's hold on it
 * between WATCH and WATCH_CLOSE (or the actor's end). */
struct mu__agent_watch;

/* What a program asks. Strings and buffers are the caller's until it is completed. */
struct mu__agent_call {
    struct mu__call call;       /* call.operation is enum mu__agent_operation */
    uint64_t number;
    uint64_t version;
    uint32_t what;              /* TASKS: enum mu__tasks_what */
    unsigned threads;
    bool barrier;
    bool below;
    const char *name;
    const char *tasks;          /* a canonical task set; "": all */
    mu_error failure;           /* REPORT, SET_ERROR */
    mu_agent_error_fn on_error;
    void *user;
    mu_kv_ask ask;              /* KEY: `key` is normalized */
    struct mu__agent_watch *watch;

    mu_value *content;          /* the caller's */
    mu_preemption preemption;
    mu_kv_event event;
    struct mu__view answer_value;   /* KEY: valid within complete() */
    struct mu__buf *answer_backing; /* and after it, if complete() takes a reference */
    uint64_t answer_revision;
    int64_t answer_number;

    uint64_t token;             /* the actor's, as what follows */
    uint64_t since_ms;
    struct mu__agent_call *prev;
};

/* A watch that the program may wait on after the actor has gone. */
struct mu__agent_watch *mu__agent_watch_new(void);
void mu__agent_watch_free(struct mu__agent_watch *watch);

extern const struct mu__behavior mu__agent;     /* init takes the config */

#endif
