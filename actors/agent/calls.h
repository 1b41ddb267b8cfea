/* What the node's program and its agent share: the agent's configuration, calls, key
 * requests, watches. */
#ifndef MU_ACTORS_AGENT_CALLS_H
#define MU_ACTORS_AGENT_CALLS_H

#include "actors/call.h"
#include "runtime/kernel/kernel.h"
#include "runtime/message/buf.h"

#include "muster/coordination.h"

#include <stdatomic.h>

/* How a program's step passes: mu__agent_shared.gate. */
enum mu__agent_gate {
    MU__GATE_OPEN,          /* no step to stop at */
    MU__GATE_REQUESTED,     /* the tasks are agreeing: wait for the agent's word */
    MU__GATE_AGREED         /* stop at shared.stop */
};

/* Bounds of key requests under way: -MU_EAGAIN above them. Values of at most
 * MU__KEY_SMALL_MAX bytes do not count as bytes. */
#ifdef MUSTER_TINY
enum { MU__KEY_REQUESTS_MAX = 64, MU__KEY_SMALL_MAX = 64 };
#define MU__KEY_REQUEST_BYTES_MAX (UINT64_C(1) << 12)
#else
enum { MU__KEY_REQUESTS_MAX = 1 << 16, MU__KEY_SMALL_MAX = 1 << 10 };
#define MU__KEY_REQUEST_BYTES_MAX (UINT64_C(1) << 28)
#endif

/* What the program's threads and the agent share. What the threads write and what the
 * loop writes with each request are not in one cache line. */
struct mu__agent_shared {
    atomic_int state;               /* enum mu_agent_state; by the loop, as */
    atomic_int gate;                /* enum mu__agent_gate */
    atomic_uint_fast64_t stop;      /* valid behind MU__GATE_AGREED */
    atomic_uint_fast64_t progress;  /* by the program, as */
    atomic_uint_fast64_t step;      /* the last that it has reached, plus 1 */
    char apart[64];
    atomic_uint_fast64_t begun;     /* key requests, and bytes of their values */
    atomic_uint_fast64_t begun_bytes;
    atomic_uint_fast64_t ids;       /* given to those that can be cancelled */
    char apart_too[64];
    atomic_uint_fast64_t answered;  /* of those; by the loop */
    atomic_uint_fast64_t answered_bytes;
};

struct mu__own_run;

struct mu__agent_config {
    const char *hosts;      /* a task set: who may host the service; "": nobody */
    const char *address;    /* of the first of them, for messages */
    const char *tasks;      /* a task set: the coordinated jobs */
    const char *any;        /* type of a link to whoever is at an address, until that one
                               has answered: a host, perhaps; NULL: there is none */
    const char *type;       /* of this task; the strings outlive the actor */
    uint32_t index;
    uint64_t incarnation;
    const mu_value *devices;    /* what this machine has; a reference is taken; may be
                                   NULL */
    uint32_t heartbeat_ms;  /* to the service */
    uint32_t dead_ms;
    bool registers_at_once; /* without being told to: real nodes do */
    struct mu__agent_shared *shared;    /* outlives the actor */
    const char *run;        /* the job's run that the task was started for; NULL: any */
    struct mu__own_run *own_run;    /* is told which one it takes part in; outlives the
                                       actor, may be NULL */
};

enum mu__agent_operation {
    MU__AGENT_REGISTER,     /* barrier */
    MU__AGENT_ON_ERROR,     /* on_error, user */
    MU__AGENT_REPORT,       /* failure */
    MU__AGENT_SET_ERROR,    /* failure */
    MU__AGENT_STATE,        /* answers with the error in call.error, and 0 */
    MU__AGENT_SERVICE,      /* content: what it knows of the service */
    MU__AGENT_RESET,
    MU__AGENT_LEAVE,
    MU__AGENT_TASKS,        /* what, tasks, version: content, version */
    MU__AGENT_LIST,         /* name, a key: content */
    MU__AGENT_WATCH,        /* name, a key; below, watch */
    MU__AGENT_WATCH_NEXT,   /* watch: event */
    MU__AGENT_WATCH_CLOSE,  /* watch */
    MU__AGENT_BARRIER,      /* name, tasks, threads */
    MU__AGENT_BARRIER_CANCEL,   /* name */
    MU__AGENT_NOTICE,       /* name: the reason; version: the grace in ms */
    MU__AGENT_REACHED,      /* version: the step; number: 1 to stop */
    MU__AGENT_PREEMPTION,   /* version: the round, number: 1 for agreed; preemption */
    MU__AGENT_RUN_END,      /* failure; below: the node is being closed */
    MU__AGENT_RUNS,         /* content: what the store has */
    MU__AGENT_RUNS_CLEAR,   /* what, name: version, how many were deleted */
    MU__AGENT_MARK,         /* tasks: one; failure, code 0: it is reset */
    MU__AGENT_OPERATIONS_COUNT
};

/* One watch of the program. The program and, from WATCH to WATCH_CLOSE or its own end,
 * the actor have a hold on it each; what is inside is the actor's. */
struct mu__agent_watch;
struct mu__agent_request_kind;

/* The actor's part of a call or a key request, under a token, from its arrival to its
 * answer. */
struct mu__agent_request {
    struct mu__agent_request *next;       /* in the order of tokens */
    struct mu__agent_request *prev;
    struct mu__agent_request *later;      /* in its queue of timeouts */
    struct mu__agent_request *sooner;
    const struct mu__agent_request_kind *kind;
    uint64_t token;                 /* 0: it is in no list */
    uint64_t due_ms;                /* UINT64_MAX: no timeout */
    int64_t timeout_ms;
    uint64_t since_ms;              /* when it arrived */
    uint32_t session;               /* in which it was sent last; 0: it never was */
    uint32_t bytes;                 /* that it takes on its way */
    bool may_be_done;               /* it was sent in a former session, too, which has not
                                       answered */
    uint8_t queue;                  /* of timeouts, plus 1; 0: none */
    bool extended;                  /* its timeout has passed, the service may still say
                                       what was missing */
};

/* What a program asks. Strings and buffers are the caller's until it is completed. */
struct mu__agent_call {
    struct mu__call call;       /* call.operation is enum mu__agent_operation */
    uint64_t version;
    uint64_t number;
    uint32_t what;              /* TASKS: enum mu__tasks_what */
    unsigned threads;           /* BARRIER: 0 is 1 */
    bool barrier;
    bool below;
    const char *name;
    const char *tasks;          /* a canonical task set; "" or NULL: all */
    mu_error failure;           /* REPORT, SET_ERROR: code, message */
    mu_agent_error_fn on_error;
    void *user;
    struct mu__agent_watch *watch;

    mu_value *content;          /* the answer, the caller's, as what follows */
    mu_preemption preemption;
    mu_kv_event event;

    struct mu__agent_request pending;     /* the actor's, as what follows */
    struct mu__agent_call *next;
    struct mu__agent_barrier *meeting;
    char *after;                /* LIST: the last key of the page before */
};

/* A request about one key, with its key and value: in one block of memory, that of the
 * KEY_SUBMIT message which brings it to the agent. */
struct mu__key_request {
    struct mu__agent_request pending;
    struct mu__key_request *change_next;    /* of those that change something */
    struct mu__key_request *change_prev;
    struct mu__buf bytes;       /* what messages about it borrow */
    struct mu__msg *msg;        /* the block */
    struct mu__agent_shared *shared;
    mu_kv_done_fn done;
    void *user;
    uint64_t id;                /* for KEY_CANCEL; 0: it cannot be */
    uint64_t revision;
    int64_t by;
    int64_t timeout_ms;
    int operation;              /* enum mu_kv_operation */
    unsigned flags;             /* enum mu__put_flag */
    uint32_t key_size;          /* of bytes.data; the value is behind it */
    uint32_t value_size;
    bool answered;
    bool frees_later;           /* answered while messages borrow from it */
};

/* As the operation of a request: a transaction. Its value is what KEY_TXN has, its key
 * is one of the keys, for messages. */
enum { MU__KV_TRANSACT = MU_KV_DELETE + 1 };

/* A KEY_SUBMIT message, to be posted to MU__AGENT. `kv_request->key` is normalized, and
 * copied, as the value. From the post on `done` is called once, on the loop's thread,
 * whatever becomes of the message. With `ret_id` it can be cancelled: by a KEY_CANCEL
 * message with that token from the node's own program. Any thread. -MU_ENOMEM;
 * -MU_EAGAIN when too many are under way, with words. */
int mu__key_request_new(struct mu__agent_shared *shared, const mu_kv_request *kv_request,
                        mu_kv_done_fn done, void *user, mu_error *ret_error,
                        uint64_t *ret_id, struct mu__msg **ret_msg);

/* One that could not be posted: nobody is told. */
void mu__key_request_drop(struct mu__msg *msg);

/* With one hold, which unref lets go. */
struct mu__agent_watch *mu__agent_watch_new(void);
void mu__agent_watch_unref(struct mu__agent_watch *watch);

#endif
