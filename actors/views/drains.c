#include "actors/views/drains.h"

#include "actors/keep.h"
#include "actors/messages.h"

#include <string.h>

static void answer_drain(struct mu__ctx *ctx, const struct mu__server_drain *drain,
                         int code)
{
    struct mu__msg *answer = mu__msg_new(ctx, MU__SERVER_DRAINED);

    if (answer != NULL)
        *(struct mu__server_drained *)mu__body(answer) =
            (struct mu__server_drained){*drain, code};
    if (mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__SUPERVISOR}, answer) != 0)
        mu__log(ctx, MU__LOG_WARN, "node %" PRIu32 " is not told of a drained server",
                drain->requester.node);
}

static void remove_drain(struct mu__view_drains *drains, uint32_t i)
{
    drains->count--;
    memmove(&drains->items[i], &drains->items[i + 1],
            (drains->count - i) * sizeof drains->items[0]);
}

/* The oldest gives way. */
static void keep_drain(struct mu__ctx *ctx, struct mu__view_drains *drains,
                       const struct mu__server_drain *drain)
{
    if (drains->count == MU__VIEW_DRAINS_MAX) {
        answer_drain(ctx, &drains->items[0], -MU_ECANCELLED);
        remove_drain(drains, 0);
    }
    drains->items[drains->count++] = *drain;
}

void mu__view_drains_add(struct mu__ctx *ctx, struct mu__view_drains *drains,
                         struct mu__view_table *table,
                         const struct mu__server_drain *drain)
{
    struct mu__view_roles roles;

    if (!mu__view_table_drain(table, drain->index) ||
        !mu__view_table_roles_of(table, drain->index, &roles)) {
        answer_drain(ctx, drain, -MU_ENOTFOUND);
        return;
    }
    mu__log(ctx, MU__LOG_INFO,
            "/job:ps/task:%" PRIu32 " gives away what it has: %" PRIu32
            " primaries, %" PRIu32 " backups",
            drain->index, roles.primary, roles.backup);
    keep_drain(ctx, drains, drain);
}

static void log_drained(struct mu__ctx *ctx, const struct mu__view_table *table,
                        uint32_t task)
{
    struct mu__view_roles roles;

    (void)mu__view_table_roles_of(table, task, &roles);
    mu__log(ctx, MU__LOG_INFO, "/job:ps/task:%" PRIu32 " has nothing any more%s", task,
            roles.backup > 0 ? ", but backups, for which there is no other server" : "");
}

void mu__view_drains_settle(struct mu__ctx *ctx, struct mu__view_drains *drains,
                            const struct mu__view_table *table)
{
    for (uint32_t i = drains->count; i-- > 0;)
        if (mu__view_table_has_drained(table, drains->items[i].index)) {
            log_drained(ctx, table, drains->items[i].index);
            answer_drain(ctx, &drains->items[i], 0);
            remove_drain(drains, i);
        }
}
