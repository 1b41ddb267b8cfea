/* The servers: where each one is, what happens when a link goes down, and servers that
 * stay away: what needs one that was up and is away for `server_lost_ms` fails with
 * -MU_EUNAVAILABLE, until it is back. One that was never up is waited for: tasks start in
 * any order. */
#include "actors/variables/actions.h"
#include "actors/variables/batches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_AGAIN_MS = 1000 }; /* for operations that need a lost server later */

int mu__vars_need_servers(struct mu__ctx *ctx, struct variables *v, uint32_t count)
{
    struct variable_server **servers;

    if (count <= v->servers_count)
        return 0;
    if (count > MU__SERVERS_MAX)
        return -MU_ERANGE;
    servers = realloc(v->servers, count * sizeof *servers);
    if (servers == NULL)
        return -MU_ENOMEM;
    v->servers = servers;
    while (v->servers_count < count) {
        struct variable_server *server = calloc(1, sizeof *server);

        if (server == NULL)
            return -MU_ENOMEM;
        server->down_ms = mu__now_ms(ctx);
        servers[v->servers_count++] = server;
    }
    mu__vars_guess_placements(v);
    return 0;
}

/* The same for one of the cluster's tasks; NULL: there is no room, or it is no server. */
static struct variable_server *need_server(struct mu__ctx *ctx, struct variables *v,
                                           struct mu__view type, uint32_t index)
{
    if (!mu__view_is(type, "ps") || index >= MU__SERVERS_MAX ||
        mu__vars_need_servers(ctx, v, index + 1) != 0)
        return NULL;
    return v->servers[index];
}

/* ---- Servers that are lost ---- */

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
    const struct variable_server *s = v->servers[server];

    return may_be_lost(v, s) && mu__now_ms(ctx) >= lost_at_ms(v, s);
}

static bool needs_lost(struct mu__ctx *ctx, const struct variables *v,
                       const struct operation *op)
{
    for (uint32_t i = 0; i < v->servers_count; i++)
        if (mu__vars_is_lost(ctx, v, i) && mu__vars_waits_for(v, op, i))
            return true;
    return false;
}

bool mu__vars_end_if_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (v->away_count == 0 || !needs_lost(ctx, v, op))
        return false;
    mu__vars_fail_by_loss(ctx, v, op);
    return true;
}

/* Without operations no timer is set. */
void mu__vars_watch_lost(struct mu__ctx *ctx, struct variables *v)
{
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t next_ms = UINT64_MAX;

    if (v->away_count == 0 && v->timers[LOST] == 0)
        return;
    for (uint32_t i = 0; v->away_count > 0 && i < v->servers_count; i++) {
        uint64_t due_ms = lost_at_ms(v, v->servers[i]);

        if (!may_be_lost(v, v->servers[i]))
            continue;
        if (due_ms <= now_ms)
            due_ms = now_ms + LOOK_AGAIN_MS;
        if (due_ms < next_ms)
            next_ms = due_ms;
    }
    mu__timer_cancel(ctx, v->timers[LOST]);
    v->timers[LOST] = 0;
    if (next_ms != UINT64_MAX &&
        !(mu__list_is_empty(&v->calls) && mu__list_is_empty(&v->runs) &&
          mu__list_is_empty(&v->lookups)))
        mu__vars_arm_at(ctx, v, LOST, next_ms);
}

/* After an operation has ended the walk begins again, since its end may end another. */
static void end_lost(struct mu__ctx *ctx, struct variables *v, struct mu__list *list)
{
    struct operation *op = first_operation(list);

    while (op != NULL)
        op =
            mu__vars_end_if_lost(ctx, v, op) ? first_operation(list) : next_operation(op);
}

void mu__vars_lost_tick(struct mu__ctx *ctx, struct variables *v)
{
    end_lost(ctx, v, &v->calls);
    end_lost(ctx, v, &v->runs);
    mu__vars_end_lost_lookups(ctx, v);
    mu__vars_watch_lost(ctx, v);
}

/* ---- Node news ---- */

static void lose_server(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    struct variable_server *s = v->servers[server];

    s->up = false;
    v->away_count++;
    s->down_ms = mu__now_ms(ctx);
    mu__vars_watch_lost(ctx, v);
    mu__vars_lose_placements(ctx, v, server);
}

void mu__vars_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_up *body = mu__body(msg);
    struct variable_server *server;

    if (!mu__view_is(body->type, "ps"))
        return;
    server = need_server(ctx, v, body->type, body->index);
    if (server == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "no room for parameter server %" PRIu32, body->index);
        return;
    }
    if (server->up)
        lose_server(ctx, v, body->index);
    v->away_count -= server->was_up;
    server->up = true;
    server->was_up = true;
    server->node = body->node;
    server->trouble[0] = '\0';
    free(server->address);
    server->address = mu__view_dup(body->address);
    mu__vars_pump_all(ctx, v);
}

void mu__vars_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_down *body = mu__body(msg);

    for (uint32_t i = 0; i < v->servers_count; i++) {
        if (!v->servers[i]->up || v->servers[i]->node != body->node)
            continue;
        mu__view_copy(body->reason, v->servers[i]->trouble, TROUBLE_BYTES_MAX);
        lose_server(ctx, v, i);
    }
    mu__vars_pump_all(ctx, v);
}

void mu__vars_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_trouble *body = mu__body(msg);
    struct variable_server *server = need_server(ctx, v, body->type, body->index);

    if (server != NULL)
        mu__view_copy(body->reason, server->trouble, TROUBLE_BYTES_MAX);
}

/* The address is for error messages only: the links know where to dial. */
void mu__vars_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__cluster_change *body = mu__body(msg);
    char *address;

    if (!mu__view_is(body->type, "ps") || body->index >= v->servers_count)
        return;
    address = mu__view_dup(body->address);
    if (address == NULL) {
        mu__log(ctx, MU__LOG_ERROR,
                "out of memory: messages have the former address of "
                "/job:ps/task:%" PRIu32,
                body->index);
        return;
    }
    free(v->servers[body->index]->address);
    v->servers[body->index]->address = address;
}

/* ---- Start and end ---- */

/* The server on this node, of which there is no node news. */
static int learn_own(struct mu__ctx *ctx, struct variables *v,
                     const struct mu__variables_options *options)
{
    int rv;

    if (options == NULL || !options->is_server)
        return 0;
    if (options->index >= MU__SERVERS_MAX)
        return -MU_ERANGE;
    rv = mu__vars_need_servers(ctx, v, options->index + 1);
    if (rv != 0)
        return rv;
    v->servers[options->index]->up = true;
    v->servers[options->index]->node = MU__NODE_SELF;
    return 0;
}

static int learn_addresses(struct mu__ctx *ctx, struct variables *v,
                           const struct mu__variables_options *options)
{
    int rv;

    if (options == NULL)
        return 0;
    if (options->addresses_count > MU__SERVERS_MAX)
        return -MU_ERANGE;
    rv = mu__vars_need_servers(ctx, v, (uint32_t)options->addresses_count);
    if (rv != 0)
        return rv;
    for (size_t i = 0; i < options->addresses_count; i++) {
        if (options->addresses[i] == NULL)
            continue;
        v->servers[i]->address = strdup(options->addresses[i]);
        if (v->servers[i]->address == NULL)
            return -MU_ENOMEM;
    }
    return 0;
}

int mu__vars_servers_init(struct mu__ctx *ctx, struct variables *v,
                          const struct mu__variables_options *options)
{
    int rv = learn_addresses(ctx, v, options);

    v->server_lost_ms = options == NULL ? 0 : options->server_lost_ms;
    return rv == 0 ? learn_own(ctx, v, options) : rv;
}

void mu__vars_servers_done(struct variables *v)
{
    for (uint32_t i = 0; i < v->servers_count; i++) {
        free(v->servers[i]->address);
        free(v->servers[i]);
    }
    free(v->servers);
}
