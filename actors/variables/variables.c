/* The actor, and the course of every call: it is planned, sent (flights.c), answered. */
#include "actors/variables/variables.h"

#include "actors/variables/actions.h"
#include "actors/variables/partition_actions.h"

#include "actors/keep.h"
#include "actors/ps/rows/row_updates.h"
#include "actors/ps/rows/rows.h"
#include "actors/ps/slots/slots.h"
#include "actors/ps/variable_store.h"

#include <assert.h>
#include <stdlib.h>

enum { EFFECT_WAIT_MS = 60000 };

static const struct rule rules[] = {
    [MU__VARIABLE_OPEN] = {"open", 0, false},
    [MU__VARIABLE_READ] = {"read", 0, false},
    [MU__VARIABLE_VERSION] = {"read of the version", 0, false},
    [MU__VARIABLE_ASSIGN] = {"assign", MU__WRITE_ASSIGN, false},
    [MU__VARIABLE_ADD] = {"add", MU__WRITE_ADD, true},
    [MU__VARIABLE_APPLY] = {"gradient", MU__WRITE_GRADIENT, true},
    [MU__VARIABLE_ROWS_READ] = {"read of rows", 0, false},
    [MU__VARIABLE_ROWS_ASSIGN] = {"assign of rows", MU__WRITE_ROWS_ASSIGN, true},
    [MU__VARIABLE_ROWS_ADD] = {"add to rows", MU__WRITE_ROWS_ADD, true},
    [MU__VARIABLE_GATHER] = {"gather", 0, false},
    [MU__VARIABLE_SCATTER_UPDATE] = {"scatter update", MU__WRITE_SCATTER_UPDATE, true},
    [MU__VARIABLE_SCATTER_ADD] = {"scatter add", MU__WRITE_SCATTER_ADD, true},
    [MU__VARIABLE_SCATTER_MIN] = {"scatter min", MU__WRITE_SCATTER_MIN, true},
    [MU__VARIABLE_SCATTER_MAX] = {"scatter max", MU__WRITE_SCATTER_MAX, true},
    [MU__VARIABLE_SCATTER_MUL] = {"scatter mul", MU__WRITE_SCATTER_MUL, true},
    [MU__VARIABLE_SCATTER_DIV] = {"scatter div", MU__WRITE_SCATTER_DIV, true},
    [MU__VARIABLE_SLOT] = {"slot", MU__WRITE_SLOT, false},
    [MU__VARIABLE_SLOT + 1] = {"slot", MU__WRITE_SLOT + 1, false},
    [MU__VARIABLE_SLOT + 2] = {"slot", MU__WRITE_SLOT + 2, false},
    [MU__VARIABLE_STEP] = {"step", MU__WRITE_STEP, false},
    [MU__VARIABLE_SNAPSHOT] = {"snapshot", 0, false},
    [MU__VARIABLE_SNAPSHOT_READ] = {"read of a snapshot", 0, false},
    [MU__VARIABLE_WINDOWS_PUT] = {"restoring what was applied", 0, false},
};

/* ---- Timers ---- */

void mu__vars_arm(struct mu__ctx *ctx, struct variables *v, enum timer timer,
                  uint64_t delay_ms)
{
    if (v->timers[timer] == 0)
        v->timers[timer] = mu__timer_set(ctx, delay_ms, (uint64_t)timer);
}

void mu__vars_arm_at(struct mu__ctx *ctx, struct variables *v, enum timer timer,
                     uint64_t due_ms)
{
    uint64_t now_ms = mu__now_ms(ctx);

    mu__vars_arm(ctx, v, timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

/* ---- Completing ---- */

/* Take an operation out of all lists, and cancel its timer. */
static void take_out(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    mu__timer_cancel(ctx, op->call->call.timer);
    mu__list_remove(&v->calls, &op->node);
    mu__vars_disown_flights(v, op, NULL);
    for (uint32_t i = 0; i < op->parts_count; i++) {
        mu__vars_dequeue(&op->parts[i]);
        mu__vars_unstage(v, &op->parts[i]);
        mu__vars_settle(v, op->parts[i].partition, &op->parts[i].numbered);
    }
}

void mu__vars_drop_inners(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct operation *inner = first_operation(&v->calls);

    while (op->inners > 0 && inner != NULL) {
        struct operation *next = next_operation(inner);

        if (inner->outer == op) {
            for (uint32_t i = 0; i < inner->parts_count; i++)
                mu__vars_abandon_part(ctx, v, &inner->parts[i]);
            take_out(ctx, v, inner);
            free(inner->call);
            free(inner);
            op->inners--;
        }
        inner = next;
    }
}

void mu__vars_complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       int code)
{
    struct mu__variable_call *call = op->call;

    mu__vars_drop_inners(ctx, v, op);
    take_out(ctx, v, op);
    if (op->outer != NULL)
        mu__vars_reopened(ctx, v, op, code);
    else
        mu__call_complete(&call->call, code);
    free(op);
}

/* ---- Calls ---- */

static uint32_t count_op_parts(const struct mu__variable_call *call)
{
    if (call->snapshot != NULL)
        return 1;
    return call->rows == NULL ? call->shape->shards
                              : mu__vars_row_parts(call->shape, call->rows);
}

static void plan_part(struct variables *v, struct operation *op, uint32_t i)
{
    const struct mu__variable_call *call = op->call;
    struct op_part *part = &op->parts[i];
    uint32_t shard =
        call->rows == NULL ? i : mu__vars_row_shard(call->shape, call->rows, i);

    part->op = op;
    part->shard = shard;
    part->rows.piece_bytes = mu__slots_piece_bytes(call->rule, call->shape);
    part->partition = mu__partition_of(mu__view_str(call->name), shard);
    mu__shape_shard(call->shape, shard, &part->offset, &part->shard_bytes);
    if (is_open(op))
        return;
    part->id = call->ids[shard];
    part->step = MOVING;
    part->write = op->rule->write;
    if (call->call.operation != MU__VARIABLE_VERSION)
        part->bytes = part->shard_bytes;
    if (call->rows != NULL)
        mu__vars_plan_rows(part, i);
    if (op->rule->counts)
        mu__vars_number(v, part->partition, &part->numbered,
                        (part->bytes + part->rows.piece_bytes - 1) /
                            part->rows.piece_bytes);
}

static struct operation *operation_new(struct variables *v,
                                       struct mu__variable_call *call)
{
    uint32_t count = count_op_parts(call);
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
        if (call->snapshot != NULL)
            mu__vars_plan_snapshot(op);
        else
            plan_part(v, op, i);
    mu__list_prepend(&v->calls, &op->node);
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

bool mu__vars_begin(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (is_open(op))
        mu__vars_begin_open(v, op, 0);
    for (uint32_t i = 0; i < op->parts_count && !is_open(op); i++)
        mu__vars_enqueue(v, &op->parts[i]);
    if (mu__vars_end_if_lost(ctx, v, op))
        return false;
    mu__vars_watch_lost(ctx, v);
    return true;
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__call_msg *body = mu__body(msg);
    struct mu__variable_call *call = body->call;
    struct operation *op;
    int rv;

    if (call->call.operation == MU__VARIABLE_NOTHING) {
        mu__call_complete(&call->call, 0);
        return;
    }
    if (call->call.operation == MU__VARIABLE_SNAPSHOT_CLOSE) {
        mu__vars_close_snapshot(ctx, v, call->snapshot->partition,
                                call->snapshot->number);
        mu__call_complete(&call->call, 0);
        return;
    }
    if (call->call.operation == MU__TABLE_LOOKUP_CALL) {
        mu__vars_begin_lookup(ctx, v, body->call);
        return;
    }
    if (call->call.operation == MU__TABLE_WRITE_CALL) {
        mu__vars_begin_table_write(ctx, v, body->call);
        return;
    }
    if (call->call.operation >= MU__CLOCK_OPEN) {
        mu__vars_on_clock_call(ctx, v, body->call);
        return;
    }
    assert(call->servers_count > 0);
    assert(call->call.operation >= MU__VARIABLE_OPEN &&
           call->call.operation < MU__VARIABLE_SNAPSHOT_CLOSE);
    rv = mu__vars_plan(ctx, v, call, &op);
    if (rv != 0) {
        (void)mu_error_set(&call->call.error, rv, "variable %s: %s: %s", call->name,
                           rules[call->call.operation].verb, mu_strerror(rv));
        mu__call_complete(&call->call, rv);
        return;
    }
    (void)mu__vars_begin(ctx, v, op);
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
    mu__vars_unstage(v, part);
    mu__vars_settle(v, part->partition, &part->numbered);
    op->parts_left--;
    if (is_open(op)) {
        mu__vars_go_through(ctx, v, part);
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
    part->numbered.settled = part->numbered.first + part->done / part->rows.piece_bytes;
    if (part->done < part->bytes || mu__vars_fail_if_replaced(ctx, v, part))
        return;
    part->version = version;
    mu__vars_rest(ctx, v, part);
}

static void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__var_opened *body = mu__body(msg);
    struct flight flight;
    struct op_part *part;

    if (body->code == MU_EAGAIN) {
        mu__vars_take_absent(ctx, v, mu__vars_find_flight(v, msg, body->token));
        mu__vars_pump_all(ctx, v);
        return;
    }
    if (!mu__vars_end_answered_flight(v, msg, body->token, &flight))
        return;
    part = flight.part;
    if (part != NULL && body->code != 0) {
        part->op->call->found_shards = body->shards;
        mu__vars_fail_by_answer(ctx, v, part->op, part->partition, body->code,
                                body->message);
    } else if (part != NULL) {
        mu__vars_take_opened(ctx, v, part, body);
    } else if (body->created) {
        /* The open was given up: another one shall fill it. */
        mu__vars_send_abandon(ctx, v, flight.partition, body->variable, body->token);
    }
    mu__vars_go_on(ctx, v, flight.server);
}

/* -MU_ENOTFOUND: the server was restarted, and does not know the shard any more. */
static void take_refusal(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                         uint32_t code, struct mu__view reason)
{
    if (code == MU_ENOTFOUND && !is_open(part->op) && part->op->call->snapshot == NULL)
        mu__vars_reopen(ctx, v, part);
    else
        mu__vars_fail_by_answer(ctx, v, part->op, part->partition, code, reason);
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
        if (flight.size > 0)
            mu__vars_take_data(part, flight.offset, &body->data);
        advance(ctx, v, &flight, body->version);
    }
    mu__vars_go_on(ctx, v, flight.server);
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
    mu__vars_go_on(ctx, v, flight.server);
}

/* ---- Start and end ---- */

static void on_call_timeout(struct mu__ctx *ctx, struct variables *v, uint64_t id)
{
    struct operation *op = first_operation(&v->calls);

    while (op != NULL && op->id != id)
        op = next_operation(op);
    if (op == NULL)
        op = first_operation(&v->runs);
    while (op != NULL && op->id != id)
        op = next_operation(op);
    if (op != NULL)
        mu__vars_fail_by_timeout(ctx, v, op);
}

static void (*const due[TIMERS])(struct mu__ctx *ctx, struct variables *v) = {
    [RETRY] = mu__vars_retry_abandons,
    [AGAIN] = mu__vars_wake_resting,
    [TIMEOUT] = mu__vars_check_timeouts,
    [LOST] = mu__vars_lost_tick,
};

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    uint64_t token = ((const struct mu__timer *)mu__body(msg))->token;

    if (token < TIMERS) {
        v->timers[token] = 0;
        due[token](ctx, v);
    } else if (!mu__vars_clock_tick(ctx, v, token) &&
               !mu__vars_lookup_timeout(ctx, v, token)) {
        on_call_timeout(ctx, v, token);
    }
    mu__vars_pump_all(ctx, v);
}

static void free_memory(struct variables *v)
{
    mu__vars_drop_abandons(v);
    mu__vars_servers_done(v);
    mu__vars_clocks_free(v);
    free(v->flights);
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    const struct mu__variables_options *options = arg;
    struct variables *v = state;
    int rv;

    v->id_last = TIMERS;
    v->effect_wait_ms = options == NULL || options->effect_wait_ms == 0
                            ? EFFECT_WAIT_MS
                            : options->effect_wait_ms;
    rv = mu__vars_flights_init(v);
    if (rv == 0)
        rv = mu__vars_servers_init(ctx, v, options);
    if (rv == 0)
        rv = mu__vars_clocks_init(v, options);
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

    mu__vars_drop_runs(ctx, v);
    mu__vars_clocks_close(v);
    mu__vars_close_lookups(ctx, v);
    while ((op = first_operation(&v->calls)) != NULL) {
        struct mu__variable_call *call = op->call;

        (void)mu_error_set(&call->call.error, -MU_ECLOSED,
                           "variable %s: %s: the node is being closed", call->name,
                           op->rule->verb);
        mu__vars_complete(ctx, v, op, -MU_ECLOSED);
    }
    free_memory(v);
}

static const struct mu__handler handlers[] = {
    {MU__CALL, on_call},
    {MU__EFFECTS_SEND, mu__vars_on_effects_send},
    {MU__VAR_OPENED, on_opened},
    {MU__VAR_DATA, on_data},
    {MU__VAR_WRITTEN, on_written},
    {MU__EFFECT_WRITTEN, mu__vars_on_effect_written},
    {MU__EFFECTS_WRITTEN, mu__vars_on_effects_written},
    {MU__SNAPSHOT_OPENED, mu__vars_on_snapshot_opened},
    {MU__CLOCK_PASSED, mu__vars_on_clock_passed},
    {MU__CLOCK_STATE, mu__vars_on_clock_state},
    {MU__TABLE_ROWS, mu__vars_on_table_rows},
    {MU__SERVES, mu__vars_on_serves},
    {MU__TIMER, on_timer},
    {MU__NODE_UP, mu__vars_on_node_up},
    {MU__NODE_DOWN, mu__vars_on_node_down},
    {MU__NODE_TROUBLE, mu__vars_on_node_trouble},
    {MU__CLUSTER_MOVED, mu__vars_on_cluster_moved},
};

const struct mu__behavior mu__variables = {
    .name = "variables",
    .state_size = sizeof(struct variables),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* as the worker's: runs bound what comes, and
                                              threads of the program */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
