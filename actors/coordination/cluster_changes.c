/* Changes of the cluster: tasks are added to the coordinated jobs, or removed from them;
 * registration with all, barriers of all and leaving together wait for these tasks. A
 * removed one has not failed: it counts as if it had left. Its links are closed by the
 * node, not here.
 *
 * Every host learns of changes by itself, so two hosts may coordinate different tasks for
 * a while; the one that leads decides. A task that it does not know yet is a guest, for
 * which no other task waits. */
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/internal.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"

#include <inttypes.h>

/* Tell all parts that count the coordinated tasks. Without memory they count as before,
 * and an error is logged. */
static void set_coordinated(struct mu__ctx *ctx, struct coordination *c,
                            struct mu__roster_task *task, bool is_coordinated)
{
    bool shared = mu__coord_shares_fate(task);

    mu__roster_coordinate(c->roster, task, is_coordinated);
    if (mu__coord_requests_cluster(c, task) == 0)
        mu__coord_barriers_cluster(ctx, c, task);
    else
        mu__log(ctx, MU__LOG_ERROR,
                "out of memory: requests and barriers of all tasks "
                "miss that %s was added or removed",
                task->name);
    mu__coord_leave_cluster(ctx, c, task, shared);
}

void mu__coord_on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__cluster_change *body = mu__body(msg);
    struct mu__roster_task *task;
    char type[16];

    if (!body->coordinated)
        return;
    mu__view_copy(body->type, type, sizeof type);
    task = mu__roster_add(c->roster, type, body->index);
    if (task == NULL) {
        mu__log(ctx, MU__LOG_ERROR,
                "/job:%s/task:%" PRIu32 " is not waited for: there "
                "is no memory, or there are too many tasks",
                type, body->index);
        return;
    }
    if (task->coordinated)
        return;
    set_coordinated(ctx, c, task, true);
}

void mu__coord_on_cluster_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__cluster_change *body = mu__body(msg);
    struct mu__roster_task *task;
    char type[16];

    mu__view_copy(body->type, type, sizeof type);
    task = mu__roster_find(c->roster, type, body->index);
    if (task == NULL)
        return;
    mu__coord_leave_drop(c, task);
    if (task->coordinated)
        set_coordinated(ctx, c, task, false);
    mu__coord_requests_removed(ctx, c, task);
    if (task->state != MU__TASK_DISCONNECTED)
        mu__coord_disconnect(ctx, c, task);
}
