/* Tasks that leave: each by itself, or, with option leave_ms, those that share their fate
 * together. Then the first one begins the barrier at shutdown, and each task that waits
 * in it is `leaving`. */
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/internal.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"

#include <inttypes.h>
#include <stdio.h>

enum { NAMED_MAX = 5 }; /* tasks that are named in a message */

static bool shares_leave(const struct coordination *c, const struct mu__roster_task *task)
{
    return c->config.leave_ms > 0 && mu__coord_shares_fate(task);
}

static void set_leaving(struct coordination *c, struct mu__roster_task *task,
                        bool leaving)
{
    c->leave.leaving = c->leave.leaving + leaving - task->leaving;
    task->leaving = leaving;
}

void mu__coord_leave_left(struct coordination *c, struct mu__roster_task *task, bool left)
{
    if (shares_leave(c, task))
        c->leave.left = c->leave.left + left - task->left;
    task->left = left;
}

/* No leaver is missing any more. */
static bool is_leave_complete(const struct coordination *c)
{
    return c->leave.leaving + c->leave.left == c->leave.leavers;
}

void mu__coord_leave_drop(struct coordination *c, struct mu__roster_task *task)
{
    set_leaving(c, task, false);
}

void mu__coord_leave_update(struct coordination *c, struct mu__roster_task *task)
{
    set_leaving(c, task, mu__coord_request_waits(task, COORD_REQUEST_LEAVE));
}

static bool is_missing_leaver(void *user, const struct mu__roster_task *task)
{
    return shares_leave(user, task) && !task->leaving && !task->left;
}

/* All waiting tasks leave, with `error` as their answer; NULL: success. */
static void end_leave(struct mu__ctx *ctx, struct coordination *c, const mu_error *error)
{
    for (uint32_t i = 0; i < c->roster->count; i++) {
        struct mu__roster_task *task = c->roster->tasks[i];

        if (!task->leaving)
            continue;
        set_leaving(c, task, false);
        mu__coord_barriers_left(ctx, c, task);
        mu__coord_requests_answer(ctx, c, task, COORD_REQUEST_LEAVE, error);
        mu__coord_disconnect(ctx, c, task);
        mu__coord_leave_left(c, task, true);
    }
}

static void fail_common_leave(struct mu__ctx *ctx, struct coordination *c,
                              const char *why)
{
    char missing[320];
    mu_error error;

    (void)mu__roster_describe(c->roster, mu__coord_clock(ctx, c), is_missing_leaver, c,
                              NAMED_MAX, missing, sizeof missing);
    (void)mu_error_set(&error, -MU_EINTERNAL,
                       "tasks could not leave together: %s; %" PRIu32 " of %" PRIu32
                       " were leaving, missing: %s",
                       why, c->leave.leaving, c->leave.leavers, missing);
    end_leave(ctx, c, &error);
}

void mu__coord_leave_fail(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__roster_task *task, const char *what)
{
    char why[160];

    if (c->leave.leaving == 0 || !shares_leave(c, task))
        return;
    (void)snprintf(why, sizeof why, "%s %s", task->name, what);
    fail_common_leave(ctx, c, why);
}

/* The barrier at shutdown has timed out: the tasks that are missing fail. */
static void end_leave_late(struct mu__ctx *ctx, struct coordination *c)
{
    char why[64];

    (void)snprintf(why, sizeof why, "%" PRIu32 " ms are over", c->config.leave_ms);
    fail_common_leave(ctx, c, why);
    for (uint32_t i = 0; i < c->roster->count; i++) {
        struct mu__roster_task *task = c->roster->tasks[i];

        if (task->state == MU__TASK_CONNECTED && shares_leave(c, task))
            mu__coord_fail_with(ctx, c, task, -MU_EINTERNAL,
                                "did not leave with the others");
    }
}

static const struct mu__roster_task *in_error(const struct coordination *c)
{
    for (uint32_t i = 0; i < c->roster->count; i++)
        if (shares_leave(c, c->roster->tasks[i]) &&
            c->roster->tasks[i]->state == MU__TASK_FAILED)
            return c->roster->tasks[i];
    return NULL;
}

static void leave_with_others(struct mu__ctx *ctx, struct coordination *c,
                              struct mu__roster_task *task,
                              const struct mu__task_leave *body)
{
    const struct mu__roster_task *failed = c->leave.leaving == 0 ? in_error(c) : NULL;

    if (c->leave.leaving == 0)
        c->leave.due_ms = mu__coord_clock(ctx, c) + c->config.leave_ms;
    mu__coord_request_add(ctx, c, task,
                          &(struct coord_request){
                              .kind = COORD_REQUEST_LEAVE,
                              .node = task->link.node,
                              .token = body->token,
                              .timeout_ms = body->timeout_ms,
                          });
    mu__coord_leave_update(c, task);
    if (!task->leaving)
        return;
    if (failed != NULL)
        mu__coord_leave_fail(ctx, c, failed, "is in error");
    else if (is_leave_complete(c))
        end_leave(ctx, c, NULL);
}

/* A task in error leaves all the same; the answer has the error. */
static void leave_despite_error(struct mu__ctx *ctx, struct coordination *c,
                                struct mu__roster_task *task, uint64_t token)
{
    mu_error error;

    mu__coord_barriers_left(ctx, c, task);
    (void)mu_error_set(&error, -MU_EPRECONDITION, "%s leaves in error: %s", task->name,
                       task->failure.error.message);
    mu__coord_answer(ctx, c, task->link.node, token, &error);
    mu__coord_disconnect(ctx, c, task);
    mu__coord_leave_left(c, task, true);
}

/* The task waits for no others; it may be the last one that others wait for. */
static void leave_at_once(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__roster_task *task)
{
    mu__coord_disconnect(ctx, c, task);
    mu__coord_leave_left(c, task, true);
    if (c->leave.leaving > 0 && is_leave_complete(c))
        end_leave(ctx, c, NULL);
}

void mu__coord_on_leave(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__task_leave *body = mu__body(msg);
    const struct coord_peer *peer = mu__coord_peer(c, msg->from.node);
    struct mu__roster_task *task = mu__roster_at_node(c->roster, msg->from.node);

    if (peer != NULL)
        mu__coord_end_former_leases(ctx, c, peer, task);
    if (task != NULL && task->state == MU__TASK_FAILED) {
        leave_despite_error(ctx, c, task, body->token);
        return;
    }
    task = mu__coord_requester(ctx, c, msg->from.node, body->token);
    if (task == NULL)
        return;
    if (shares_leave(c, task) && !body->now) {
        leave_with_others(ctx, c, task, body);
        return;
    }
    mu__coord_barriers_left(ctx, c, task);
    mu__coord_answer(ctx, c, msg->from.node, body->token, NULL);
    leave_at_once(ctx, c, task);
}

void mu__coord_leave_tick(struct mu__ctx *ctx, struct coordination *c)
{
    if (c->leave.leaving > 0 && c->leave.due_ms <= mu__coord_clock(ctx, c))
        end_leave_late(ctx, c);
}

void mu__coord_leave_cluster(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task, bool shared)
{
    if (c->config.leave_ms == 0)
        return;
    c->leave.leavers = c->leave.leavers + mu__coord_shares_fate(task) - shared;
    if (task->left)
        c->leave.left = c->leave.left + mu__coord_shares_fate(task) - shared;
    if (c->leave.leaving > 0 && is_leave_complete(c))
        end_leave(ctx, c, NULL);
}

void mu__coord_leave_init(struct coordination *c)
{
    c->leave.leavers = 0;
    for (uint32_t i = 0; i < c->roster->count; i++)
        c->leave.leavers += shares_leave(c, c->roster->tasks[i]);
}
