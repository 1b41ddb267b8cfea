/* TASK_MARK: one task reports an error of another, or resets it. TASK_ENDED: a task's
 * process has ended for good. */
#include "actors/coordination/tasks.h"

#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The task named "worker:1". NULL: none is known; the error says why. */
static struct mu__roster_task *find_named_task(const struct coordination *c,
                                               struct mu__view name, mu_error *ret_error)
{
    struct mu__task_set set = {0};
    struct mu__roster_task *task = NULL;

    if (mu__task_set_parse(name, ret_error, &set) != 0)
        return NULL;
    if (set.count != 1 || set.ranges[0].first != set.ranges[0].last)
        (void)mu_error_set(ret_error, -MU_EINVALID, "expected one task, got \"%.*s\"",
                           (int)name.size, (const char *)name.data);
    else
        task = mu__roster_find(c->roster, set.ranges[0].type, set.ranges[0].first);
    if (task == NULL && set.count == 1 && set.ranges[0].first == set.ranges[0].last)
        (void)mu_error_set(ret_error, -MU_ENOTFOUND,
                           "/job:%s/task:%" PRIu32 " is not known", set.ranges[0].type,
                           set.ranges[0].first);
    mu__task_set_done(&set);
    return task;
}

/* ---- reporting an error ---- */

static int check_report(const struct mu__roster_task *task, mu_error *ret_error)
{
    if (task->state == MU__TASK_CONNECTED)
        return 0;
    if (task->state == MU__TASK_FAILED)
        return mu_error_set(ret_error, -MU_EPRECONDITION, "%s is in error already: %s",
                            task->name, task->failure.error.message);
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s is not connected: an error is that of a task that is",
                        task->name);
}

/* The answer is sent before the notifications, since the reporting task may get one. */
static void report_task_failure(struct mu__ctx *ctx, struct coordination *c,
                                struct mu__roster_task *task,
                                const struct mu__roster_task *by,
                                const struct mu__task_mark *body)
{
    mu_error error;

    (void)mu_error_set(&error, -(int)body->code, "%.*s%s(reported by %s)",
                       (int)body->message.size, (const char *)body->message.data,
                       body->message.size == 0 ? "" : " ", by->name);
    (void)snprintf(error.task, sizeof error.task, "%s", task->name);
    mu__coord_answer(ctx, c, by->link.node, body->token, NULL);
    mu__coord_fail(ctx, c, task, &error, COORD_FAILED);
}

/* ---- resetting ---- */

static int check_reset(const struct mu__roster_task *task, mu_error *ret_error)
{
    if (task->state == MU__TASK_FAILED || task->notified)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s is %s: a task is reset from being in error", task->name,
                        mu__roster_state_word(task));
}

/* The agent of the task is in error, too, and registers again on TASK_CLEARED. */
static void reset_marked_task(struct mu__ctx *ctx, struct coordination *c,
                              struct mu__roster_task *task,
                              const struct mu__roster_task *by,
                              const struct mu__task_mark *body)
{
    const bool up = task->link.up;
    const uint32_t node = task->link.node;
    const uint32_t by_node = by->link.node;
    struct mu__view name = mu__view_str(by->name);
    struct mu__msg *msg;

    mu__log(ctx, MU__LOG_WARN, "%s was reset by %s", task->name, by->name);
    mu__coord_reset(ctx, c, task);
    mu__coord_answer(ctx, c, by_node, body->token, NULL);
    msg = up ? mu__msg_new(ctx, MU__TASK_CLEARED) : NULL;
    if (msg == NULL)
        return;
    mu__coord_back(msg, &name, NULL);
    ((struct mu__task_cleared *)mu__body(msg))->by = name;
    mu__coord_send(ctx, c, node, msg);
}

void mu__coord_on_task_mark(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__task_mark *body = mu__body(msg);
    struct mu__roster_task *by = mu__coord_requester(ctx, c, msg->from.node, body->token);
    struct mu__roster_task *task;
    mu_error error = {0};

    if (by == NULL)
        return;
    task = find_named_task(c, body->task, &error);
    if (task != NULL &&
        (body->code != 0 ? check_report(task, &error) : check_reset(task, &error)) == 0) {
        (body->code != 0 ? report_task_failure : reset_marked_task)(ctx, c, task, by,
                                                                    body);
        return;
    }
    mu__coord_answer(ctx, c, msg->from.node, body->token, &error);
}

/* ---- processes that have ended for good ---- */

/* It has not left, and has not reported an error of its own. */
static bool is_task_missed(const struct mu__roster_task *task)
{
    return task->state == MU__TASK_CONNECTED || task->lost ||
           (task->state == MU__TASK_DISCONNECTED && !task->left);
}

void mu__coord_fail_ended(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task)
{
    mu_error error;

    if (!is_task_missed(task))
        return;
    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s %s", task->name,
                       task->failure.ended);
    error.kind = MU_ERROR_WORKER;
    (void)snprintf(error.task, sizeof error.task, "%s", task->name);
    mu__coord_fail(ctx, c, task, &error, COORD_FAILED_OWN);
    mu__coord_barriers_task_left(ctx, c, task, true);
}

void mu__coord_on_task_ended(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__task_ended *body = mu__body(msg);
    struct mu__roster_task *task;
    char type[16];

    mu__view_copy(body->type, type, sizeof type);
    task = mu__roster_find(c->roster, type, body->index);
    if (task == NULL)
        return;
    free(task->failure.ended);
    task->failure.ended = mu__view_dup(body->what);
    if (task->failure.ended != NULL && c->leads && !c->commits.broken)
        mu__coord_fail_ended(ctx, c, task);
}
