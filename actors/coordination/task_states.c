/* Changes of a task's state: notifications of the other parts, of the task's own agent,
 * and of all other tasks. */
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/internal.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"
#include "runtime/message/codec.h"

#include <stdio.h>

/* ---- Notifications ---- */

static void send_error(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                       const mu_error *error, bool own)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_ERROR);
    struct mu__task_error *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->code = (uint32_t)-error->code;
    body->own = own;
    body->message = mu__view_str(error->message);
    body->task = mu__view_str(error->task);
    mu__coord_back(msg, &body->message, &body->task);
    mu__coord_send(ctx, c, node, msg);
}

void mu__coord_task_notify(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task)
{
    task->notified = true;
    send_error(ctx, c, task->link.node, &c->tasks.notified, false);
}

/* Each agent is told once, and is in error from then on; one whose link is down is told
 * when it is up again. So the failure of all tasks at once does not send a message from
 * each to each. */
static void notify_all_agents(struct mu__ctx *ctx, struct coordination *c,
                              const mu_error *error)
{
    c->tasks.notified = *error;
    c->tasks.notified_count++;
    if (c->tasks.fresh == 0)
        return;
    c->tasks.fresh = 0;
    for (uint32_t i = 0; i < c->roster->count; i++) {
        struct mu__roster_task *task = c->roster->tasks[i];

        if (mu__coord_task_is_connected(task) && task->link.up && !task->notified)
            mu__coord_task_notify(ctx, c, task);
    }
}

/* ---- Changes of state ---- */

void mu__coord_task_move(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, enum mu__task_state state,
                         const mu_error *error)
{
    bool was_connected = mu__coord_task_is_connected(task);

    mu__roster_move(c->roster, task, state, error, mu__coord_clock(ctx, c));
    mu__log(ctx, state == MU__TASK_FAILED ? MU__LOG_WARN : MU__LOG_DEBUG, "%s: %s%s%s",
            task->name, mu__roster_state_word(task), error == NULL ? "" : ": ",
            error == NULL ? "" : error->message);
    mu__coord_requests_changed(c, task, was_connected);
}

/* Tell the other parts that the task is not CONNECTED any more. */
static void close_in_parts(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task, bool failed)
{
    mu__coord_keys_task_ended(ctx, c, task->incarnation);
    if (task->link.up)
        mu__coord_keys_node_down(ctx, c, task->link.node);
    mu__coord_barriers_task_left(ctx, c, task, failed);
    mu__coord_preempt_task_left(ctx, c, task);
}

void mu__coord_fail(struct mu__ctx *ctx, struct coordination *c,
                    struct mu__roster_task *task, const mu_error *error,
                    enum coord_failure how)
{
    mu_error failure = *error;
    mu_error answer = *error;
    bool was_connected = mu__coord_task_is_connected(task);

    mu__coord_leave_drop(c, task);
    task->failure.self_reported = how == COORD_FAILED_OWN;
    mu__coord_task_move(ctx, c, task, MU__TASK_FAILED, &failure);
    task->lost = how == COORD_FAILED_LOST && task->recoverable;
    /* Without a task in the error its agent registers again and repeats the request. */
    if (task->lost)
        answer.task[0] = '\0';
    mu__coord_requests_answer(ctx, c, task, -1, &answer);
    if (was_connected)
        close_in_parts(ctx, c, task, true);
    if (how != COORD_FAILED_OWN && !task->lost && task->link.up)
        send_error(ctx, c, task->link.node, &failure, true);
    if (mu__coord_shares_fate(task))
        notify_all_agents(ctx, c, &failure);
    mu__coord_leave_fail(ctx, c, task, "has failed");
}

void mu__coord_fail_with(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, int code, const char *what)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s %s", task->name, what);
    (void)snprintf(error.task, sizeof error.task, "%s", task->name);
    mu__coord_fail(ctx, c, task, &error, COORD_FAILED);
}

/* Before all have registered, no other task depends on this one yet. */
static void lose_early(struct mu__ctx *ctx, struct coordination *c,
                       struct mu__roster_task *task, const mu_error *error)
{
    mu__log(ctx, MU__LOG_INFO, "%s, before all tasks have registered: it may come again",
            error->message);
    mu__coord_requests_answer(ctx, c, task, -1, error);
    mu__coord_disconnect(ctx, c, task);
    task->lost = true;
}

void mu__coord_task_lose(struct mu__ctx *ctx, struct coordination *c,
                         struct mu__roster_task *task, const char *what)
{
    mu_error error;

    if (task->failure.ended != NULL) {
        mu__coord_fail_ended(ctx, c, task);
        return;
    }
    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s %s", task->name, what);
    if (c->tasks.gathering && !task->recoverable) {
        lose_early(ctx, c, task, &error);
        return;
    }
    (void)snprintf(error.task, sizeof error.task, "%s", task->name);
    mu__coord_fail(ctx, c, task, &error, COORD_FAILED_LOST);
}

void mu__coord_disconnect(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task)
{
    bool was_connected = mu__coord_task_is_connected(task);
    mu_error error;

    (void)mu_error_set(&error, -MU_EPRECONDITION, "%s is no longer registered",
                       task->name);
    mu__coord_leave_drop(c, task);
    mu__coord_requests_answer(ctx, c, task, -1, &error);
    mu__coord_task_move(ctx, c, task, MU__TASK_DISCONNECTED, NULL);
    if (was_connected)
        close_in_parts(ctx, c, task, false);
}
