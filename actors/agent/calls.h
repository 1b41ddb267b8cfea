/* What the node's program and its agent share: the agent's configuration, calls, key
 * requests, watches. */
#ifndef MU_ACTORS_AGENT_CALLS_H
#define MU_ACTORS_AGENT_CALLS_H

#include "actors/call.h"
#include "runtime/base/list.h"
#include "runtime/kernel/kernel.h"
#include "runtime/message/buf.h"

#include "muster/coordination.h"

#include <stdatomic.h>

/* Whether the program may begin another step: mu__agent_shared.gate. */
enum mu__agent_gate {
    MU__GATE_OPEN,      /* there is no step to stop at */
    MU__GATE_REQUESTED, /* a round of preemption goes on: wait until it is decided */
    MU__GATE_AGREED     /* stop at shared.stop */
};

/* Bounds of pending key requests; beyond them -MU_EAGAIN. Values of at most
 * MU__KEY_SMALL_MAX bytes do not count as bytes. */
#ifdef MUSTER_TINY
enum { MU__KEY_REQUESTS_MAX = 64, MU__KEY_SMALL_MAX = 64 };
#define MU__KEY_REQUEST_BYTES_MAX (UINT64_C(1) << 12)
#else
enum { MU__KEY_REQUESTS_MAX = 1 << 16, MU__KEY_SMALL_MAX = 1 << 10 };
#define MU__KEY_REQUEST_BYTES_MAX (UINT64_C(1) << 28)
#endif

/* State shared by the program's threads and the agent, which is on the loop thread. The
 * padding keeps counters that the threads write with each key request and counters that
 * the loop writes in different cache lines. */
struct mu__agent_shared {
    atomic_int state;              /* enum mu_agent_state; written by the loop */
    atomic_int gate;               /* enum mu__agent_gate; written by the loop */
    atomic_uint_fast64_t stop;     /* a step; valid with MU__GATE_AGREED; by the loop */
    atomic_uint_fast64_t progress; /* written by the program */
    atomic_uint_fast64_t step;     /* the last one reached, plus 1; by the program */
    char padding_threads[64];
    atomic_uint_fast64_t begun; /* key requests, and the bytes of their values */
    atomic_uint_fast64_t begun_bytes;
    atomic_uint_fast64_t ids; /* of key requests that can be cancelled */
    char padding_loop[64];
    atomic_uint_fast64_t answered; /* of the begun key requests; written by the loop */
    atomic_uint_fast64_t answered_bytes;
};

struct mu__own_run;

struct mu__agent_config {
    const char *hosts;   /* a task set: tasks that may host the service; "": none */
    const char *address; /* of the first host, for messages */
    const char *tasks;   /* a task set: the coordinated jobs */
    const char *any;     /* the type of a link whose peer is known by address alone
                            until the handshake: it may be a host; NULL: no link is */
    const char *type;    /* of this task; this string and `any` outlive the actor */
    uint32_t index;
    uint64_t incarnation;
    const mu_value *devices; /* of this machine; a reference is taken; may be NULL */
    uint32_t heartbeat_ms;   /* interval of heartbeats to the service */
    uint32_t dead_ms;        /* silence after which the service takes a task for dead */
    bool registers_at_once;  /* without a REGISTER call of the program, as nodes do */
    struct mu__agent_shared *shared; /* outlives the actor */
    const char *run; /* the job's run that the task was started for; NULL: any */
    struct mu__own_run *own_run; /* set to the run that the task takes part in;
                                    outlives the actor, may be NULL */
};

/* The operations of calls, each with the call's members that it reads: those that it
 * sets. */
enum mu__agent_operation {
    MU__AGENT_REGISTER,  /* barrier */
    MU__AGENT_ON_ERROR,  /* on_error, user */
    MU__AGENT_REPORT,    /* failure */
    MU__AGENT_SET_ERROR, /* failure */
    MU__AGENT_STATE,     /* succeeds, with the agent's error in call.error */
    MU__AGENT_SERVICE,   /* : content, the host and this task's registration */
    MU__AGENT_RESET,
    MU__AGENT_LEAVE,
    MU__AGENT_TASKS,          /* what, tasks, version: content, version */
    MU__AGENT_LIST,           /* name, which is a key: content */
    MU__AGENT_WATCH,          /* name, which is a key; below, watch */
    MU__AGENT_WATCH_NEXT,     /* watch: event */
    MU__AGENT_WATCH_CLOSE,    /* watch */
    MU__AGENT_BARRIER,        /* name, tasks, threads */
    MU__AGENT_BARRIER_CANCEL, /* name */
    MU__AGENT_NOTICE,         /* name: the reason; version: the grace in ms */
    MU__AGENT_REACHED,        /* version: the step; number: 1 to stop */
    MU__AGENT_PREEMPTION,     /* version: the round, number: 1 for agreed; preemption */
    MU__AGENT_RUN_END,        /* failure; below: 1 if the node is being closed */
    MU__AGENT_RUNS,           /* : content, the runs in the store */
    MU__AGENT_RUNS_CLEAR,     /* what, name: version, how many entries were deleted */
    MU__AGENT_MARK,           /* tasks, one; failure, whose code 0 means a reset */
    MU__AGENT_OPERATIONS_COUNT
};

/* One watch of the program, opaque to it. The program has a reference, and the actor has
 * one from WATCH to WATCH_CLOSE or to its own end. */
struct mu__agent_watch;
struct mu__agent_request_kind;

/* The agent's part of a call or a key request, from its submission to its answer. */
struct mu__agent_request {
    struct mu__list_node node;         /* among all pending, in the order of tokens */
    struct mu__list_node timeout_node; /* in its timeout queue */
    const struct mu__agent_request_kind *kind;
    uint64_t token;  /* 0: it is in no list */
    uint64_t due_ms; /* UINT64_MAX: no timeout */
    int64_t timeout_ms;
    uint64_t since_ms; /* when it was submitted */
    uint32_t session;  /* of the last sending; 0: never sent */
    uint32_t bytes;    /* it counts for in flight */
    bool may_be_done;  /* an earlier session, which has not answered, may
                          have applied it */
    uint8_t queue;     /* of timeouts, plus 1; 0: none */
    bool extended;     /* its timeout has passed; it waits a little longer
                          for the service's answer, which says more */
};

/* A call of a program's thread. Strings and buffers are the caller's until the call is
 * completed. */
struct mu__agent_call {
    struct mu__call call; /* call.operation is enum mu__agent_operation */
    uint64_t version;
    uint64_t number;
    uint32_t what;    /* TASKS: enum mu__tasks_what; RUNS_CLEAR: bits of enum
                         mu__runs_clear_what */
    unsigned threads; /* BARRIER: of this task that meet; 0 means 1 */
    bool barrier;     /* REGISTER: wait until all tasks have registered */
    bool below;       /* WATCH: the keys below, too */
    const char *name;
    const char *tasks; /* a canonical task set; "" or NULL: all */
    mu_error failure;  /* code and message */
    mu_agent_error_fn on_error;
    void *user; /* for on_error */
    struct mu__agent_watch *watch;

    /* The answer; the caller owns it. */
    mu_value *content;
    mu_preemption preemption;
    mu_kv_event event;

    /* The actor's, while it holds the call. */
    struct mu__agent_request pending;
    struct mu__list_node node; /* BARRIER, WATCH_NEXT: among the waiting calls */
    char *after;               /* LIST: the last key of the page before */
};

/* A request about one key, with copies of key and value, in the memory block of the
 * KEY_SUBMIT message that brings it to the agent. */
struct mu__key_request {
    struct mu__agent_request pending; /* first */
    struct mu__list_node change_node; /* among the pending changes */
    struct mu__buf bytes; /* key and value; messages to the service borrow them */
    struct mu__msg *msg;  /* the block */
    struct mu__agent_shared *shared;
    mu_kv_done_fn done;
    void *user;        /* for done */
    uint64_t id;       /* for KEY_CANCEL; 0: it cannot be cancelled */
    uint64_t revision; /* PUT: to compare */
    int64_t by;        /* INCREMENT */
    int64_t timeout_ms;
    int operation;     /* enum mu_kv_operation, or MU__KV_TRANSACT */
    unsigned flags;    /* PUT: enum mu__put_flag */
    uint32_t key_size; /* in bytes.data; the value is behind it */
    uint32_t value_size;
    bool answered;
    bool frees_later; /* answered while messages borrow from it */
};

/* The operation of a transaction: the value of the request is the content of KEY_TXN, the
 * key is one of its keys, for messages. */
enum { MU__KV_TRANSACT = MU_KV_DELETE + 1 };

/* A flag of MU_KV_GET: nothing waits for the key, which may never be put, so that the log
 * does not say that it was not. */
enum { MU__KV_NEWS = 1 << 8 };

/* A flag of PUT and TRY_GET: the request is the node's own, not its program's. It goes on
 * in the error state, counts for no bound, and does not mean that the task has used keys,
 * whose loss would be an error. */
enum { MU__KV_OWN = 1 << 9 };

/* Make a KEY_SUBMIT message, to be posted to MU__AGENT. Key, which must be normalized,
 * and value are copied. Once the message is posted, `done` is called exactly once, on the
 * loop thread, whatever happens to the message. If `ret_id` is not NULL, a KEY_CANCEL
 * message of the node's own program with *ret_id as its token cancels the request. Any
 * thread. -MU_ENOMEM; -MU_EAGAIN with a message when too many requests are pending. */
int mu__key_request_new(struct mu__agent_shared *shared, const mu_kv_request *kv_request,
                        mu_kv_done_fn done, void *user, mu_error *ret_error,
                        uint64_t *ret_id, struct mu__msg **ret_msg);

/* Free a request that could not be posted; `done` is not called. */
void mu__key_request_drop(struct mu__msg *msg);

/* One reference; NULL: out of memory. */
struct mu__agent_watch *mu__agent_watch_new(void);
void mu__agent_watch_unref(struct mu__agent_watch *watch);

#endif
