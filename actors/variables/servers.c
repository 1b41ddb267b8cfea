/* The servers: where each one is, and what happens when a link goes down. */
#include "actors/variables/actions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int mu__vars_need_servers(struct mu__ctx *ctx, struct variables *v, uint32_t count)
{
    struct variable_server *servers;

    if (count <= v->servers_count)
        return 0;
    if (count > MU__SERVERS_MAX)
        return -MU_ERANGE;
    servers = realloc(v->servers, count * sizeof *servers);
    if (servers == NULL)
        return -MU_ENOMEM;
    v->servers = servers;
    for (uint32_t i = v->servers_count; i < count; i++)
        servers[i] = (struct variable_server){.down_ms = mu__now_ms(ctx)};
    v->servers_count = count;
    return 0;
}

/* ---- Servers that go down ---- */

/* Send again what the server may have forgotten. Not for parts of an open. */
static void start_over(struct variables *v, struct op_part *part)
{
    if (part->op->call->call.operation == MU__VARIABLE_ASSIGN)
        part->done = 0;
    if (part->op->rule->repeats) {
        part->sent = part->done;
        part->begun = false;
        mu__vars_unstage(v, part);
    }
    if (has_more(part))
        mu__vars_enqueue(v, part);
}

static void lose_server(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    struct variable_server *s = &v->servers[server];

    s->up = false;
    v->away_count++;
    s->down_ms = mu__now_ms(ctx);
    mu__vars_watch_lost(ctx, v);
    for (struct op_part *part = MU__LIST_FIRST(&s->queue, struct op_part, node);
         part != NULL; part = MU__LIST_NEXT(part, struct op_part, node))
        if (!is_open(part->op))
            start_over(v, part);
    for (uint32_t i = 0; i < MU__FLIGHTS_MAX; i++) {
        struct op_part *part;

        if (v->flights[i].token == 0 || v->flights[i].server != server)
            continue;
        part = mu__vars_end_flight(v, &v->flights[i]).part;
        if (part == NULL || is_open(part->op))
            continue;
        if (part->op->rule->repeats)
            start_over(v, part);
        else
            mu__vars_fail_unknown(ctx, v, part);
    }
    for (struct operation *op = first_operation(v); op != NULL; op = next_operation(op))
        if (is_open(op))
            mu__vars_lose_in_open(ctx, v, op, server);
}

/* ---- Node news ---- */

void mu__vars_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_up *body = mu__body(msg);
    struct variable_server *server;

    if (!mu__view_is(body->type, "ps"))
        return;
    if (body->index >= MU__SERVERS_MAX ||
        mu__vars_need_servers(ctx, v, body->index + 1) != 0) {
        mu__log(ctx, MU__LOG_ERROR, "no room for parameter server %" PRIu32, body->index);
        return;
    }
    if (v->servers[body->index].up)
        lose_server(ctx, v, body->index);
    server = &v->servers[body->index];
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
        if (!v->servers[i].up || v->servers[i].node != body->node)
            continue;
        mu__view_copy(body->reason, v->servers[i].trouble, TROUBLE_BYTES_MAX);
        lose_server(ctx, v, i);
    }
    mu__vars_pump_all(ctx, v);
}

void mu__vars_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_trouble *body = mu__body(msg);

    if (!mu__view_is(body->type, "ps") || body->index >= MU__SERVERS_MAX ||
        mu__vars_need_servers(ctx, v, body->index + 1) != 0)
        return;
    mu__view_copy(body->reason, v->servers[body->index].trouble, TROUBLE_BYTES_MAX);
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
        mu__log(ctx, MU__LOG_ERROR, "out of memory: messages have the former address of "
                "/job:ps/task:%" PRIu32, body->index);
        return;
    }
    free(v->servers[body->index].address);
    v->servers[body->index].address = address;
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
    v->servers[options->index].up = true;
    v->servers[options->index].node = MU__NODE_SELF;
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
        v->servers[i].address = strdup(options->addresses[i]);
        if (v->servers[i].address == NULL)
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
    for (uint32_t i = 0; i < v->servers_count; i++)
        free(v->servers[i].address);
    free(v->servers);
}
