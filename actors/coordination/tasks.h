/* Tasks, for all parts of the coordination service. Each function works on the whole
 * actor. */
#ifndef MU_ACTORS_COORDINATION_TASKS_H
#define MU_ACTORS_COORDINATION_TASKS_H

#include "actors/coordination/internal.h"

/* ---- Handlers of messages ---- */

void mu__coord_on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_heartbeat(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_reset(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_leave(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_tasks_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_preempt_notice(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_preempt_step(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_task_mark(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_cluster_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_task_ended(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- registration.c: registration, heartbeats, error reports, resets ---- */

/* Each part has an init, and a done that is right also after an init that failed or was
 * not called. */
int mu__coord_tasks_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_done(struct coordination *c);
void mu__coord_tasks_node_up(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__node_up *news);
void mu__coord_tasks_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                               const char *reason);
void mu__coord_tasks_tick(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_tasks_due_ms(const struct coordination *c);

/* This host begins to lead, and no task has registered with it; it does not lead any
 * more. */
void mu__coord_tasks_lead(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_lost(struct mu__ctx *ctx, struct coordination *c);

/* The actor ends while it leads: waiting requests are answered, unless another host may
 * take over. */
void mu__coord_tasks_stop(struct mu__ctx *ctx, struct coordination *c);

/* The CONNECTED task at the other end of a link. NULL: there is none, and a request with
 * a token (not 0) was answered with the reason. */
struct mu__roster_task *mu__coord_requester(struct mu__ctx *ctx, struct coordination *c,
                                            uint32_t node, uint64_t token);

/* From ERROR, its own or another task's, to DISCONNECTED. */
void mu__coord_reset(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task);

/* End the leases of a process that leaves, or resets its task, without being registered
 * here: a former host had registered it. `task` may be NULL. */
void mu__coord_end_former_leases(struct mu__ctx *ctx, struct coordination *c,
                                 const struct coord_peer *peer,
                                 const struct mu__roster_task *task);

/* ---- task_states.c: changes of a task's state, and their notifications ---- */

enum coord_failure {
    COORD_FAILED,     /* its agent is told */
    COORD_FAILED_OWN, /* its own report */
    COORD_FAILED_LOST /* not reachable; a recoverable one may come back */
};

/* The task fails with an error, of which the other parts are told, all other tasks if it
 * shares their fate, and its own agent, unless that knows or will register again. */
void mu__coord_fail(struct mu__ctx *ctx, struct coordination *c,
                    struct mu__roster_task *task, const mu_error *error,
                    enum coord_failure how);

/* The same with the error "NAME `what`". */
void mu__coord_fail_with(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, int code, const char *what);

/* The process of a task has ended for good (failure.ended). As if the task had reported
 * this itself: barriers fail without it, although it may be recoverable. Does nothing
 * when it has left, or has reported an error. */
void mu__coord_fail_ended(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task);

/* To DISCONNECTED, without a failure. */
void mu__coord_disconnect(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task);

static inline bool mu__coord_task_is_connected(const struct mu__roster_task *task)
{
    return task->state == MU__TASK_CONNECTED;
}

/* Whether all other tasks are notified of its failures. */
static inline bool mu__coord_shares_fate(const struct mu__roster_task *task)
{
    return task->coordinated && !task->recoverable;
}

/* Tell a task of the last failure that others share. */
void mu__coord_task_notify(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task);

/* Change the state, and tell the requests that wait for it. `error` for ERROR. */
void mu__coord_task_move(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, enum mu__task_state state,
                         const mu_error *error);

/* A task is not reachable: it fails, or may register again while tasks gather. */
void mu__coord_task_lose(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, const char *what);

/* ---- leave.c: tasks that leave, alone or together ---- */

void mu__coord_leave_init(struct coordination *c);

/* A task was added to or removed from the coordinated jobs; `shared`: whether it shared
 * the others' fate before. Those that leave may be complete now. */
void mu__coord_leave_cluster(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task, bool shared);
void mu__coord_leave_tick(struct mu__ctx *ctx, struct coordination *c);

/* Note whether the task has left by its own request, and has not registered since. */
void mu__coord_leave_left(struct coordination *c, struct mu__roster_task *task,
                          bool left);

/* The task does not wait for others any more; or only if it has a request to leave. */
void mu__coord_leave_drop(struct coordination *c, struct mu__roster_task *task);
void mu__coord_leave_update(struct coordination *c, struct mu__roster_task *task);

/* A task with which the others were to leave is lost: their leave fails. */
void mu__coord_leave_fail(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__roster_task *task, const char *what);

/* ---- task_requests.c: requests about tasks, and those that wait for tasks ---- */

enum coord_request_kind {
    COORD_REQUEST_REGISTER, /* to register with all others */
    COORD_REQUEST_WAIT,
    COORD_REQUEST_WATCH,
    COORD_REQUEST_LEAVE /* with all others */
};

struct coord_request {
    enum coord_request_kind kind;
    uint32_t node;
    uint64_t token;
    uint64_t version;      /* WATCH: the one that is known */
    uint64_t timeout_ms;   /* from now; 0: none */
    struct mu__view tasks; /* a set; "": all */
};

int mu__coord_requests_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_requests_done(struct coordination *c);
void mu__coord_requests_tick(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_requests_due_ms(const struct coordination *c);

/* Add a waiting request of a task; one with a known token replaces the former. On failure
 * it is answered with the reason. */
void mu__coord_request_add(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task, const struct coord_request *get);

/* Whether a task has a waiting request of a kind; answer all of a kind, or (`kind`
 * negative) of any kind, with an error or 0. */
bool mu__coord_request_waits(const struct mu__roster_task *task,
                             enum coord_request_kind kind);
void mu__coord_requests_answer(struct mu__ctx *ctx, struct coordination *c,
                               const struct mu__roster_task *task, int kind,
                               const mu_error *error);

/* Forget the requests that a task made over a link, or all: they will be repeated. */
void mu__coord_requests_drop(struct coordination *c, const struct mu__roster_task *task,
                             uint32_t node);
void mu__coord_requests_forget(struct coordination *c);

/* Answer all waiting requests. */
void mu__coord_requests_stop(struct mu__ctx *ctx, struct coordination *c,
                             const mu_error *error);

/* The STATES, the DEVICES (of connected tasks), or for WAIT both, of the tasks of a set;
 * `set` NULL: all known tasks. The caller's; NULL: out of memory. */
mu_value *mu__coord_states(struct mu__ctx *ctx, const struct coordination *c,
                           const struct mu__task_set *set, enum mu__tasks_what what);

/* A task was added to or removed from the coordinated jobs. -MU_ENOMEM: nothing has
 * changed. */
int mu__coord_requests_cluster(struct coordination *c,
                               const struct mu__roster_task *task);

/* A task was removed from the cluster: requests that wait for it are answered. */
void mu__coord_requests_removed(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task);

/* The coordinated jobs. */
const struct mu__task_set *mu__coord_requests_all(const struct coordination *c);

/* The state of a task has changed. */
void mu__coord_requests_changed(struct coordination *c,
                                const struct mu__roster_task *task, bool was_connected);

/* ---- preemption.c: notices, and rounds that agree on a step ---- */

void mu__coord_preempt_task_left(struct mu__ctx *ctx, struct coordination *c,
                                 struct mu__roster_task *task);
void mu__coord_preempt_task_joined(struct mu__ctx *ctx, struct coordination *c,
                                   struct mu__roster_task *task);

/* A key that starts a preemption round when a program puts it. */
#define MU__KEY_PREEMPTION "RECEIVED_PREEMPTION_NOTICE"

void mu__coord_preempt_key(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           struct mu__view value);
int mu__coord_preempt_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_preempt_done(struct coordination *c);
void mu__coord_preempt_tick(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_preempt_due_ms(const struct coordination *c);
void mu__coord_preempt_lost(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_preempt_forget_over(struct mu__ctx *ctx, struct coordination *c);

#endif
