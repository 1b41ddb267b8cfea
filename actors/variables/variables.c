/* The course of every operation: it is planned, sent piece by piece and answered. The
 * path of reads and writes, which has to be fast, is in this file alone. */
#include "actors/variables/variables.h"

#include "actors/variables/actions.h"

#include "actors/keep.h"
#include "actors/ps/variable_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 5 };      /* after a link had no room */

static const struct rule rules[] = {
    [MU__VARIABLE_OPEN] = {"open", 0, true},
    [MU__VARIABLE_READ] = {"read", 0, true},
    [MU__VARIABLE_VERSION] = {"read of the version", 0, true},
    [MU__VARIABLE_ASSIGN] = {"assign", MU__WRITE_ASSIGN, true},
    [MU__VARIABLE_ADD] = {"add", MU__WRITE_ADD, false},
    [MU__VARIABLE_APPLY] = {"gradient", MU__WRITE_MOMENTUM, false},
};

/* ---- Completing ---- */

void mu__vars_retry_later(struct mu__ctx *ctx, struct variables *v)
{
    if (v->retry_timer == 0)
        v->retry_timer = mu__timer_set(ctx, RETRY_MS, 0);
}

/* Take an operation out of all lists, and cancel its timer. */
static void take_out(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    mu__timer_cancel(ctx, op->call->call.timer);
    mu__list_remove(&v->operations, &op->node);
    mu__vars_disown_flights(v, op, NULL);
    for (uint32_t i = 0; i < op->parts_count; i++) {
        mu__vars_dequeue(v, &op->parts[i]);
        mu__vars_unstage(v, &op->parts[i]);
    }
}

static void drop_inner(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct operation *inner = op->inner;

    if (inner == NULL)
        return;
    for (uint32_t i = 0; i < inner->parts_count; i++)
        mu__vars_abandon_part(ctx, v, &inner->parts[i]);
    take_out(ctx, v, inner);
    free(inner->call);
    free(inner);
}

void mu__vars_complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       int code)
{
    struct mu__variable_call *call = op->call;

    drop_inner(ctx, v, op);
    take_out(ctx, v, op);
    if (op->outer != NULL || op->request != NULL)
        mu__vars_reopened(ctx, v, op, code);
    else
        mu__call_complete(&call->call, code);
    free(op);
}

/* ---- Sending ---- */

static bool will_stage(const struct op_part *part)
{
    return part->op->call->call.operation == MU__VARIABLE_ASSIGN &&
           part->bytes > MU__PIECE_BYTES_MAX;
}

/* Opens that wait for a creator leave room for the creator's. */
static uint32_t opens_max(const struct operation *op)
{
    return has_flag(op, MU_VARIABLE_EXISTING) ? MU__OPENS_MAX / 4 * 3 : MU__OPENS_MAX;
}

static bool may_send(struct variables *v, const struct op_part *part)
{
    const struct variable_server *server = &v->servers[part->server];

    if (v->flights_count >= MU__FLIGHTS_MAX ||
        (part->step == OPENING && v->opens_count >= opens_max(part->op))) {
        v->pump_all_due = true;
        return false;
    }
    if (part->bytes > 0 && server->bytes_under_way >= MU__WINDOW_BYTES)
        return false;
    return !will_stage(part) || part->staged || server->staged < MU__STAGED_MAX;
}

static struct op_part *next_part(struct variables *v, uint32_t server)
{
    const struct mu__list *queue = &v->servers[server].queue;
    struct op_part *part = MU__LIST_FIRST(queue, struct op_part, node);

    while (part != NULL && !may_send(v, part))
        part = MU__LIST_NEXT(part, struct op_part, node);
    return part;
}

static int send_open(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                     struct flight *flight)
{
    const struct mu__variable_call *call = part->op->call;
    uint8_t dims[MU__DIMS_BYTES_MAX];
    const struct mu__var_open body = {
        .token = flight->token,
        .name = mu__view_str(call->name),
        .dtype = call->shape->dtype,
        .dims = {dims, mu__shape_pack_dims(call->shape, dims)},
        .shard = part->shard,
        .shards = call->shape->shards,
        .size = part->shard_bytes,
        .existing = mu__vars_requests_existing(part),
        .replaces = part->replaces,
        .creation = part->shard != 0 && part->op->creates ? part->op->creation : 0,
    };

    flight->answer = MU__VAR_OPENED;
    part->transfer = flight->token;
    return mu__send_body(ctx, pid_of(v, part->server), MU__VAR_OPEN, &body, sizeof body);
}

static int send_read(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                     struct flight *flight)
{
    const struct mu__var_read body = {
        .token = flight->token,
        .variable = part->id,
        .offset = flight->offset,
        .size = flight->size,
    };

    flight->answer = MU__VAR_DATA;
    return mu__send_body(ctx, pid_of(v, part->server), MU__VAR_READ, &body, sizeof body);
}

static int send_write(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                      struct flight *flight)
{
    const struct mu__variable_call *call = part->op->call;
    struct mu__var_write body = {
        .token = flight->token,
        .variable = is_open(part->op) ? call->ids[part->shard] : part->id,
        .operation = part->write,
        .offset = flight->offset,
        .rate = call->rate,
        .momentum = call->momentum,
    };

    flight->answer = MU__VAR_WRITTEN;
    if (!part->begun && !is_open(part->op))
        part->transfer = flight->token;
    body.transfer = part->transfer;
    if (flight->size > 0)
        body.data = (struct mu__view){
            (const uint8_t *)call->source + part->offset + flight->offset, flight->size};
    return mu__send_body(ctx, pid_of(v, part->server), MU__VAR_WRITE, &body, sizeof body);
}

/* Send the next piece of a part. */
static int send_piece(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    uint64_t left = part->bytes - part->sent;
    struct flight *flight = mu__vars_flight_new(v);
    int rv;

    flight->part = part;
    flight->server = part->server;
    flight->offset = part->sent;
    flight->size = left < MU__PIECE_BYTES_MAX ? (uint32_t)left : MU__PIECE_BYTES_MAX;
    if (part->step == OPENING)
        rv = send_open(ctx, v, part, flight);
    else if (part->write == 0)
        rv = send_read(ctx, v, part, flight);
    else
        rv = send_write(ctx, v, part, flight);
    if (rv != 0) {
        *flight = (struct flight){.token = 0};
        return rv;
    }
    mu__vars_count_flight(v, flight);
    part->begun = true;
    part->sent += flight->size;
    if (will_stage(part) && !part->staged) {
        part->staged = true;
        v->servers[part->server].staged++;
    }
    return 0;
}

/* Whether this node has not proven that it may do what the part does. */
static bool fail_forbidden(struct mu__ctx *ctx, struct variables *v,
                           struct op_part *part)
{
    uint16_t kind = part->step == OPENING ? MU__VAR_OPEN
                    : part->write == 0    ? MU__VAR_READ
                                          : MU__VAR_WRITE;
    mu_error error = {0};

    if (!mu__send_is_forbidden(ctx, v->servers[part->server].node, kind, &error))
        return false;
    mu__vars_fail(ctx, v, part->op, part->server, -MU_EPERMISSION, error.message);
    return true;
}

/* Send to a server what its window has room for; parts take turns. */
static void pump(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    struct op_part *part;

    while (v->servers[server].up && (part = next_part(v, server)) != NULL) {
        int rv;

        mu__vars_dequeue(v, part);
        if (fail_forbidden(ctx, v, part))
            continue;
        rv = send_piece(ctx, v, part);
        if (rv != 0 && !mu__send_is_transient(rv)) {
            mu__vars_fail(ctx, v, part->op, server, rv, "a message could not be sent");
            continue;
        }
        if (has_more(part))
            mu__vars_enqueue(v, part);
        if (rv != 0) {
            mu__vars_retry_later(ctx, v);
            return;
        }
    }
}

void mu__vars_pump_all(struct mu__ctx *ctx, struct variables *v)
{
    v->pump_all_due = false;
    v->pumped_first++;
    for (uint32_t i = 0; i < v->servers_count; i++)
        pump(ctx, v, (v->pumped_first + i) % v->servers_count);
}

/* After every event: send on to the server that it came from, or to all. */
static void go_on(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    if (v->pump_all_due)
        mu__vars_pump_all(ctx, v);
    else
        pump(ctx, v, server);
}

/* ---- Calls ---- */

static void plan_part(struct operation *op, uint32_t shard)
{
    const struct mu__variable_call *call = op->call;
    struct op_part *part = &op->parts[shard];
    uint64_t home = mu__name_hash(mu__view_str(call->name)) % call->servers_count;

    part->op = op;
    part->shard = shard;
    part->server = (uint32_t)((home + shard) % call->servers_count);
    mu__shape_shard(call->shape, shard, &part->offset, &part->shard_bytes);
    if (is_open(op))
        return;
    part->id = call->ids[shard];
    part->step = MOVING;
    part->write = op->rule->write;
    if (part->write == MU__WRITE_MOMENTUM && !(call->momentum > 0 || call->momentum < 0))
        part->write = MU__WRITE_SGD;
    if (call->call.operation != MU__VARIABLE_VERSION)
        part->bytes = part->shard_bytes;
}

static struct operation *operation_new(struct variables *v,
                                       struct mu__variable_call *call)
{
    uint32_t count = call->shape->shards;
    struct operation *op = calloc(1, sizeof *op + count * sizeof op->parts[0]);

    if (op == NULL)
        return NULL;
    op->call = call;
    op->rule = &rules[call->call.operation];
    op->id = ++v->id_last;
    op->parts_count = count;
    op->parts_left = is_open(op) ? 0 : count;
    op->recreates = has_flag(op, MU_VARIABLE_RECREATE);
    for (uint32_t i = 0; i < count; i++)
        plan_part(op, i);
    mu__list_prepend(&v->operations, &op->node);
    return op;
}

/* A call whose timer cannot be set is refused. */
int mu__vars_plan(struct mu__ctx *ctx, struct variables *v,
                  struct mu__variable_call *call, struct operation **ret_op)
{
    int rv = mu__vars_need_servers(ctx, v, call->servers_count);

    if (rv != 0)
        return rv;
    call->call.timer = 0;
    call->version = UINT64_MAX;
    call->reopened = false;
    call->found_shards = 0;
    if (call->call.timeout_ms >= 0) {
        call->call.timer =
            mu__timer_set(ctx, (uint64_t)call->call.timeout_ms, v->id_last + 1);
        if (call->call.timer == 0)
            return -MU_EEXHAUSTED;
    }
    *ret_op = operation_new(v, call);
    if (*ret_op == NULL) {
        mu__timer_cancel(ctx, call->call.timer);
        return -MU_ENOMEM;
    }
    (*ret_op)->began_ms = mu__now_ms(ctx);
    return 0;
}

void mu__vars_begin(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (is_open(op))
        mu__vars_begin_open(v, op, 0);
    for (uint32_t i = 0; i < op->parts_count && !is_open(op); i++)
        mu__vars_enqueue(v, &op->parts[i]);
    if (!mu__vars_end_if_lost(ctx, v, op))
        mu__vars_watch_lost(ctx, v);
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__call_msg *body = mu__body(msg);
    struct mu__variable_call *call = body->call;
    struct operation *op;
    int rv;

    assert(call->servers_count > 0);
    assert(call->call.operation >= MU__VARIABLE_OPEN &&
           call->call.operation <= MU__VARIABLE_APPLY);
    rv = mu__vars_plan(ctx, v, call, &op);
    if (rv != 0) {
        (void)mu_error_set(&call->call.error, rv, "variable %s: %s: %s", call->name,
                           rules[call->call.operation].verb, mu_strerror(rv));
        mu__call_complete(&call->call, rv);
        return;
    }
    mu__vars_begin(ctx, v, op);
    mu__vars_pump_all(ctx, v);
}

/* ---- Answers ---- */

/* The call's version is the lowest of the shards'. */
static void note_version(const struct operation *op)
{
    for (uint32_t i = 0; i < op->parts_count; i++)
        if (op->parts[i].version < op->call->version)
            op->call->version = op->parts[i].version;
}

void mu__vars_rest(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    struct operation *op = part->op;

    part->step = RESTING;
    unpark(part);
    mu__vars_unstage(v, part);
    op->parts_left--;
    if (is_open(op)) {
        mu__vars_go_through(ctx, v, op);
    } else if (op->parts_left == 0) {
        note_version(op);
        mu__vars_complete(ctx, v, op, 0);
    }
}

/* A piece of a part was answered. */
static void advance(struct mu__ctx *ctx, struct variables *v, const struct flight *flight,
                    uint64_t version)
{
    struct op_part *part = flight->part;

    part->done += flight->size;
    if (part->done < part->bytes || mu__vars_fail_if_replaced(ctx, v, part))
        return;
    part->version = version;
    mu__vars_rest(ctx, v, part);
}

static void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__var_opened *body = mu__body(msg);
    struct flight flight = {.part = NULL};
    struct op_part *part;
    bool was_flying;

    if (body->code == MU_EAGAIN) {
        mu__vars_take_absent(ctx, v, mu__vars_find_flight(v, msg, body->token));
        mu__vars_pump_all(ctx, v);
        return;
    }
    was_flying = mu__vars_end_answered_flight(v, msg, body->token, &flight);
    part = flight.part;
    /* Created for this node after the open was given up: another one shall fill it. */
    if (part == NULL && body->created)
        mu__vars_send_abandon(ctx, v, msg->from, body->variable, body->token);
    if (!was_flying)
        return;
    if (part != NULL && body->code != 0) {
        part->op->call->found_shards = body->shards;
        mu__vars_fail_by_answer(ctx, v, part, body->code, body->message);
    } else if (part != NULL) {
        mu__vars_take_opened(ctx, v, part, body);
    }
    go_on(ctx, v, flight.server);
}

/* -MU_ENOTFOUND: the server was restarted, and does not know the shard any more. */
static void take_refusal(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                         uint32_t code, struct mu__view reason)
{
    if (code == MU_ENOTFOUND && !is_open(part->op))
        mu__vars_reopen(ctx, v, part);
    else
        mu__vars_fail_by_answer(ctx, v, part, code, reason);
}

static void on_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__var_data *body = mu__body(msg);
    struct flight flight;
    struct op_part *part;

    if (!mu__vars_end_answered_flight(v, msg, body->token, &flight))
        return;
    part = flight.part;
    if (part != NULL && body->code != 0) {
        take_refusal(ctx, v, part, body->code, body->message);
    } else if (part != NULL &&
               (body->data.size != flight.size || flight.offset != part->done)) {
        mu__vars_fail_bad_answer(ctx, v, part);
    } else if (part != NULL) {
        uint8_t *target = part->op->call->target;

        if (flight.size > 0)
            memcpy(target + part->offset + flight.offset, body->data.data, flight.size);
        advance(ctx, v, &flight, body->version);
    }
    go_on(ctx, v, flight.server);
}

static void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__var_written *body = mu__body(msg);
    struct flight flight;

    if (!mu__vars_end_answered_flight(v, msg, body->token, &flight))
        return;
    if (flight.part != NULL && body->code != 0)
        take_refusal(ctx, v, flight.part, body->code, body->message);
    else if (flight.part != NULL && flight.offset != flight.part->done)
        mu__vars_fail_bad_answer(ctx, v, flight.part);
    else if (flight.part != NULL)
        advance(ctx, v, &flight, body->version);
    go_on(ctx, v, flight.server);
}

/* ---- Start and end ---- */

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__timer *body = mu__body(msg);
    struct operation *op = first_operation(v);

    if (body->token == 0) {
        v->retry_timer = 0;
        mu__vars_retry_abandons(ctx, v);
    } else if (body->token == LOST_TOKEN) {
        mu__vars_lost_tick(ctx, v);
    } else {
        while (op != NULL && op->id != body->token)
            op = next_operation(op);
        if (op != NULL)
            mu__vars_fail_by_timeout(ctx, v, op);
    }
    mu__vars_pump_all(ctx, v);
}

static void free_memory(struct variables *v)
{
    mu__vars_drop_abandons(v);
    mu__vars_servers_done(v);
    free(v->flights);
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct variables *v = state;
    int rv;

    v->flights = calloc(MU__FLIGHTS_MAX, sizeof *v->flights);
    v->id_last = LOST_TOKEN;
    rv = v->flights == NULL ? -MU_ENOMEM : mu__vars_servers_init(ctx, v, arg);
    if (rv == 0)
        rv = mu__watch_nodes(ctx);
    if (rv != 0)
        free_memory(v);
    return rv;
}

/* Servers are not told: their links to this node go down. */
static void done(struct mu__ctx *ctx, void *state)
{
    struct variables *v = state;

    struct operation *op;

    while ((op = first_operation(v)) != NULL) {
        struct mu__variable_call *call = op->call;

        if (op->request != NULL) {
            mu__list_remove(&v->operations, &op->node);
            free(op);
            continue;
        }
        (void)mu_error_set(&call->call.error, -MU_ECLOSED,
                           "variable %s: %s: the node is being closed", call->name,
                           op->rule->verb);
        mu__vars_complete(ctx, v, op, -MU_ECLOSED);
    }
    free_memory(v);
}

static const struct mu__handler handlers[] = {
    {MU__CALL, on_call},
    {MU__VAR_OPENED, on_opened},
    {MU__VAR_DATA, on_data},
    {MU__VAR_WRITTEN, on_written},
    {MU__TIMER, on_timer},
    {MU__VAR_REOPEN, mu__vars_on_reopen},
    {MU__NODE_UP, mu__vars_on_node_up},
    {MU__NODE_DOWN, mu__vars_on_node_down},
    {MU__NODE_TROUBLE, mu__vars_on_node_trouble},
    {MU__CLUSTER_MOVED, mu__vars_on_cluster_moved},
};

const struct mu__behavior mu__variables = {
    .name = "variables",
    .state_size = sizeof(struct variables),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
