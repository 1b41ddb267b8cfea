/* Servers that were up and are away for `server_lost_ms`: operations that need one fail
 * with -MU_EUNAVAILABLE, until it is back. One that was never up is waited for: tasks
 * start in any order. */
#include "actors/variables/actions.h"

enum { LOOK_AGAIN_MS = 1000 };  /* for operations that need a lost server later */

static uint64_t lost_at_ms(const struct variables *v,
                           const struct variable_server *server)
{
    return server->down_ms + v->server_lost_ms;
}

static bool may_be_lost(const struct variables *v, const struct variable_server *server)
{
    return v->server_lost_ms != 0 && !server->up && server->was_up;
}

bool mu__vars_is_lost(struct mu__ctx *ctx, const struct variables *v, uint32_t server)
{
    const struct variable_server *s = &v->servers[server];

    return may_be_lost(v, s) && mu__now_ms(ctx) >= lost_at_ms(v, s);
}

bool mu__vars_end_if_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    for (uint32_t i = 0; v->away_count > 0 && i < op->parts_count; i++)
        if (mu__vars_needs_server(v, &op->parts[i]) &&
            mu__vars_is_lost(ctx, v, op->parts[i].server)) {
            mu__vars_fail_by_loss(ctx, v, op);
            return true;
        }
    return false;
}

/* Without operations no timer is set. */
void mu__vars_watch_lost(struct mu__ctx *ctx, struct variables *v)
{
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t next_ms = UINT64_MAX;

    for (uint32_t i = 0; v->away_count > 0 && i < v->servers_count; i++) {
        uint64_t due_ms = lost_at_ms(v, &v->servers[i]);

        if (!may_be_lost(v, &v->servers[i]))
            continue;
        if (due_ms <= now_ms)
            due_ms = now_ms + LOOK_AGAIN_MS;
        if (due_ms < next_ms)
            next_ms = due_ms;
    }
    mu__timer_cancel(ctx, v->lost_timer);
    v->lost_timer = 0;
    if (next_ms != UINT64_MAX && !mu__list_is_empty(&v->operations))
        v->lost_timer = mu__timer_set(ctx, next_ms - now_ms, LOST_TOKEN);
}

/* After an operation has ended the walk begins again, since its end may end another. */
void mu__vars_lost_tick(struct mu__ctx *ctx, struct variables *v)
{
    struct operation *op = first_operation(v);

    v->lost_timer = 0;
    while (op != NULL)
        op = mu__vars_end_if_lost(ctx, v, op) ? first_operation(v) : next_operation(op);
    mu__vars_watch_lost(ctx, v);
}
