/* Messages between the actors and threads of one process. The codec has no rows for them,
 * so that they never leave the node and no peer can forge them. */
#ifndef MU_ACTORS_LOCAL_MESSAGES_H
#define MU_ACTORS_LOCAL_MESSAGES_H

#include "runtime/kernel/system_messages.h"

struct mu__held;
struct mu__http_request;
struct mu__key_request;
struct mu__pending_closure;
struct mu__registered;
struct mu__thread_request;
struct mu__view_request;
struct mu_remote_value;
struct mu_run;

/* From a thread of the program to an actor: a struct that begins with a struct mu__call
 * (call.h), as the actor's header defines it. */
struct mu__call_msg {
    void *call;
};

/* From the program to its own client: a closure with references among its arguments. The
 * client owns it from then on. */
struct mu__schedule_pending {
    struct mu__pending_closure *pending;
};

/* From the program to its own client: cancel the closure of `future`. The message has a
 * reference. */
struct mu__cancel_future {
    struct mu_remote_value *future;
};

/* From the program to its own client: the last reference to `held` was dropped. */
struct mu__release_held {
    struct mu__held *held;
};

/* From a worker to the variables actor of its node, and back: send the writes of a run.
 * The worker owns the run. */
struct mu__effects_send {
    struct mu_run *run;
};

struct mu__effects_sent {
    struct mu_run *run;
};

/* From a thread that runs `function` to the worker: a line for the log. Its bytes are
 * behind this body in the message. */
struct mu__run_log {
    struct mu__registered *function;
    struct mu__view line;
};

/* To the actor that owns an HTTP request: the request is done. */
struct mu__http_done {
    struct mu__http_request *request;
};

/* From the program to its own agent: a key request, in the memory of this message. */
struct mu__key_submit {
    struct mu__key_request *request;
};

/* From a node to its own actors: a task was added to the cluster, removed, or moved to
 * another address. */
struct mu__cluster_change {
    struct mu__view type;
    uint32_t index;
    struct mu__view address; /* the new one */
    bool coordinated;        /* the task is of a coordinated job */
    bool own;                /* this node's task */
};

/* From a node to its supervisor and its coordination service: the process of a task has
 * ended, and nobody will start it again. `what` is the predicate of a message. */
struct mu__task_ended {
    struct mu__view type;
    uint32_t index;
    struct mu__view what;
};

/* From the agent to the views actor of its node: a key request is answered. */
struct mu__views_answered {
    const struct mu__view_request *request;
};

/* From the supervisor to the views actor of its node: a parameter server is to give away
 * all that it has, as `requester` has asked with this token. */
struct mu__server_drain {
    uint32_t index;
    mu__pid requester;
    uint64_t token;
};

/* The answer, with `code` 0 once it has nothing. */
struct mu__server_drained {
    struct mu__server_drain drain;
    int code;
};

/* To a user's actor, from its own office: there is mail. */
struct mu__actor_poke {
    uint64_t unused;
};

/* From the program to the office of actors of its node: a call whose answer resolves a
 * future. The office owns it from then on. */
struct mu__actor_request {
    struct mu__thread_request *request;
};

/* From the office to the client: a future is resolved. The message has the office's
 * reference to it; `result` and `error` (NULL: none) are the future's now. */
struct mu__future_resolved {
    struct mu_remote_value *future;
};

/* From the client to the office: cancel the call `request` of a future. */
struct mu__actor_request_cancel {
    uint64_t request;
};

/* From the agent to the office of its node: the task is registered with the coordination
 * service at `node`. */
struct mu__service_session {
    uint32_t node;
};

/* From the coordination service to the keeper of its node: it knows the records of all
 * actors, and is to be asked whether those of which something is kept have one. */
struct mu__keep_review {
    uint64_t unused;
};

/* The question. */
struct mu__keep_check {
    struct mu__view name;
};

/* The answer; without a question when an actor was stopped. No life up to this epoch has
 * a record, so what these have recorded is dropped. */
struct mu__keep_drop {
    struct mu__view name;
    uint64_t epoch;
};

#define MU__LOCAL_MESSAGES(M)                          \
    M(272, CALL, call_msg)                             \
    M(273, SCHEDULE_PENDING, schedule_pending)         \
    M(274, EFFECTS_SEND, effects_send)                 \
    M(275, EFFECTS_SENT, effects_sent)                 \
    M(276, RUN_LOG, run_log)                           \
    M(277, HTTP_DONE, http_done)                       \
    M(278, KEY_SUBMIT, key_submit)                     \
    M(279, CLUSTER_ADDED, cluster_change)              \
    M(280, CLUSTER_REMOVED, cluster_change)            \
    M(281, CLUSTER_MOVED, cluster_change)              \
    M(282, SUBMIT, submit)                             \
    M(283, CANCEL_FUTURE, cancel_future)               \
    M(284, RELEASE_HELD, release_held)                 \
    M(285, TASK_ENDED, task_ended)                     \
    M(286, VIEWS_ANSWERED, views_answered)             \
    M(287, SERVER_DRAIN, server_drain)                 \
    M(288, SERVER_DRAINED, server_drained)             \
    M(300, ACTOR_POKE, actor_poke)                     \
    M(301, ACTOR_REQUEST, actor_request)               \
    M(302, FUTURE_RESOLVED, future_resolved)           \
    M(303, ACTOR_REQUEST_CANCEL, actor_request_cancel) \
    M(310, SERVICE_SESSION, service_session)           \
    M(311, KEEP_REVIEW, keep_review)                   \
    M(312, KEEP_CHECK, keep_check)                     \
    M(313, KEEP_DROP, keep_drop)

enum mu__local_kind {
    MU__LOCAL_KINDS_END = 314,
#define MU__LOCAL_KIND(number, NAME, name) MU__##NAME = number,
    MU__LOCAL_MESSAGES(MU__LOCAL_KIND)
#undef MU__LOCAL_KIND
};

#endif
