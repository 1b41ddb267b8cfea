/* Tasks, as the parts of the coordination service see them: each function on the whole
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

/* ---- registration.c: tasks that register, are heard, report errors ---- */

/* Each part has init, and done, which also undoes an init that failed or was not
 * called. */
int mu__coord_tasks_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_done(struct coordination *c);
void mu__coord_tasks_node_up(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__node_up *news);
void mu__coord_tasks_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                               const char *reason);
void mu__coord_tasks_tick(struct mu__ctx *ctx, struct coordination *c);

/* The service begins to lead: no task has registered yet. Or it has stopped leading. */
void mu__coord_tasks_lead(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_lost(struct mu__ctx *ctx, struct coordination *c);

/* The service ends while it leads: requests that wait are answered, unless another host
 * may take over and answer them. */
void mu__coord_tasks_stop(struct mu__ctx *ctx, struct coordination *c);

/* The task at the other end of a link; NULL when that one has not registered here. What
 * its message asks is answered, when it has a token, with FAILED_PRECONDITION or with the
 * task's error, and NULL returned, unless it is CONNECTED. */
struct mu__roster_task *mu__coord_requester(struct mu__ctx *ctx, struct coordination *c,
                                            uint32_t node, uint64_t token);

/* From ERROR, its own or that of others, to DISCONNECTED. */
void mu__coord_reset(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task);

/* A process leaves, or resets its task, at a host where it is not registered: another one
 * had registered it, and its leases are those of then. `task` may be NULL. */
void mu__coord_end_former_leases(struct mu__ctx *ctx, struct coordination *c,
                                 const struct coord_peer *peer,
                                 const struct mu__roster_task *task);

/* ---- task_states.c: changes of a task's state, and who hears of them ---- */

/* The task fails: it is in ERROR with that error, which the other parts are told, and all
 * other tasks when it shares its fate; and its own agent, unless that knows or will. */
enum coord_failure {
    COORD_FAILED,       /* its agent is told */
    COORD_FAILED_OWN,   /* it said so itself */
    COORD_FAILED_LOST   /* it is not there; a recoverable one may come back */
};

void mu__coord_fail(struct mu__ctx *ctx, struct coordination *c,
                    struct mu__roster_task *task, const mu_error *error,
                    enum coord_failure how);

/* The same, in words that follow its name. And: it goes without a failure. */
void mu__coord_fail_with(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, int code, const char *what);
void mu__coord_disconnect(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task);

static inline bool mu__coord_task_is_connected(const struct mu__roster_task *task)
{
    return task->state == MU__TASK_CONNECTED;
}

/* Whether its failures are those of all others, too. */
static inline bool mu__coord_shares_fate(const struct mu__roster_task *task)
{
    return task->coordinated && !task->recoverable;
}

void mu__coord_task_notify(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task);

void mu__coord_task_move(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, enum mu__task_state state,
                         const mu_error *error);
void mu__coord_task_lose(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, const char *what);

/* ---- leave.c: tasks that leave, alone or together ---- */

void mu__coord_leave_init(struct coordination *c);

/* A task that shared the others' fate, or did not, is one of the coordinated jobs now, or
 * is not any more: those who leave may be all. */
void mu__coord_leave_cluster(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task, bool shared);
void mu__coord_leave_tick(struct mu__ctx *ctx, struct coordination *c);

/* Whether it has left by its own wish, and has not come again. */
void mu__coord_leave_left(struct coordination *c, struct mu__roster_task *task,
                          bool left);

/* It does not wait for others any more; or only if it has asked to. */
void mu__coord_leave_drop(struct coordination *c, struct mu__roster_task *task);
void mu__coord_leave_update(struct coordination *c, struct mu__roster_task *task);

/* Something has happened to it, without which tasks cannot leave together. */
void mu__coord_leave_fail(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__roster_task *task, const char *what);

/* ---- task_requests.c: requests about tasks, and those that wait for tasks ---- */

enum coord_request_kind {
    COORD_REQUEST_REGISTER,    /* to register with all others */
    COORD_REQUEST_WAIT,
    COORD_REQUEST_WATCH,
    COORD_REQUEST_LEAVE        /* with all others */
};

struct coord_request {
    enum coord_request_kind kind;
    uint32_t node;
    uint64_t token;
    uint64_t version;           /* WATCH: the one that is known */
    uint64_t timeout_ms;        /* from now; 0: none */
    struct mu__view tasks;      /* a set; "": all */
};

int mu__coord_requests_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_requests_done(struct coordination *c);
void mu__coord_requests_tick(struct mu__ctx *ctx, struct coordination *c);

/* A request that waits, of a task; with a token that it has asked already, it is that
 * request. On failure it is answered with the reason. */
void mu__coord_request_add(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task, const struct coord_request *get);

/* Whether a task waits with a request of a kind; answer all of those that it has of a
 * kind, or (`kind` negative) all, with an error or 0. */
bool mu__coord_request_waits(const struct coordination *c,
                             const struct mu__roster_task *task,
                             enum coord_request_kind kind);
void mu__coord_requests_answer(struct mu__ctx *ctx, struct coordination *c,
                               const struct mu__roster_task *task, int kind,
                               const mu_error *error);

/* Forget what a task asked over a link: it will be asked again. And everything. */
void mu__coord_requests_drop(struct coordination *c, const struct mu__roster_task *task,
                             uint32_t node);
void mu__coord_requests_forget(struct coordination *c);

/* Answer everything that waits. */
void mu__coord_requests_stop(struct mu__ctx *ctx, struct coordination *c,
                             const mu_error *error);

/* STATES, DEVICES (of those that are connected), or WAIT, which is both, of the tasks of
 * a set; NULL: of all that are known. The caller's; NULL: out of memory. */
mu_value *mu__coord_states(struct mu__ctx *ctx, const struct coordination *c,
                           const struct mu__task_set *set, enum mu__tasks_what what);

/* A task is one of the coordinated jobs, or is not any more. -MU_ENOMEM: nothing has
 * changed. */
int mu__coord_requests_cluster(struct mu__ctx *ctx, struct coordination *c,
                               const struct mu__roster_task *task);

/* A task was removed from the cluster: nobody waits any longer until it is connected. */
void mu__coord_requests_removed(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task);

/* The coordinated jobs. */
const struct mu__task_set *mu__coord_requests_all(const struct coordination *c);

/* The state of a task has changed, after it was connected or not. */
void mu__coord_requests_changed(struct mu__ctx *ctx, struct coordination *c,
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
void mu__coord_preempt_lost(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_preempt_forget_over(struct mu__ctx *ctx, struct coordination *c);

#endif
