/* What is sent, and when: windows, the queues of servers, and requests under way. The way
 * of all pieces of calls, which has to be fast, is in this file. */
#include "actors/variables/actions.h"
#include "actors/variables/batches.h"
#include "actors/variables/partition_actions.h"

#include "actors/keep.h"
#include "actors/ps/initial/initial.h"
#include "actors/ps/variable_store.h"

#include <assert.h>
#include <stdlib.h>

enum { FLIGHTS_MIN = 64 }; /* for which there is room at first; a power of two */

/* ---- Queues ---- */

void mu__vars_enqueue(struct variables *v, struct op_part *part)
{
    struct placement *placement = &v->placements[part->partition];

    if (part->in != NULL)
        return;
    part->in = placement->served ? &v->servers[placement->server]->queues[CALLS]
                                 : &placement->parts;
    mu__list_append(part->in, &part->node);
}

void mu__vars_dequeue(struct op_part *part)
{
    if (part->in != NULL)
        mu__list_remove(part->in, &part->node);
    part->in = NULL;
}

void mu__vars_unstage(struct variables *v, struct op_part *part)
{
    if (part->staged)
        v->servers[server_of(v, part->partition)]->staged--;
    part->staged = false;
}

/* ---- Numbers of what counts once ---- */

void mu__vars_number(struct variables *v, uint32_t partition, struct numbered *numbered,
                     uint64_t count)
{
    struct placement *placement = &v->placements[partition];

    numbered->first = numbered->settled = placement->effect_last + 1;
    placement->effect_last += count;
    mu__list_append(&placement->numbered, &numbered->node);
}

void mu__vars_settle(struct variables *v, uint32_t partition, struct numbered *numbered)
{
    if (numbered->first != 0)
        mu__list_remove(&v->placements[partition].numbered, &numbered->node);
    numbered->first = 0;
}

uint64_t mu__vars_settled(const struct variables *v, uint32_t partition)
{
    return MU__LIST_FIRST(&v->placements[partition].numbered, struct numbered, node)
        ->settled;
}

/* ---- Flights ---- */

/* Two flights that differ modulo the former size differ modulo the new one. */
static bool grow_flights(struct variables *v)
{
    uint32_t size = v->flights_size == 0 ? FLIGHTS_MIN : v->flights_size * 2;
    struct flight *flights = calloc(size, sizeof *flights);

    if (flights == NULL)
        return false;
    for (uint32_t i = 0; i < v->flights_size; i++)
        if (v->flights[i].token != 0)
            flights[v->flights[i].token & (size - 1)] = v->flights[i];
    free(v->flights);
    v->flights = flights;
    v->flights_size = size;
    return true;
}

int mu__vars_flights_init(struct variables *v)
{
    return grow_flights(v) ? 0 : -MU_ENOMEM;
}

struct flight *mu__vars_flight_new(struct variables *v, uint32_t partition,
                                   enum queue queue, uint16_t answer)
{
    struct flight *flight;

    if (v->flights_count >= v->flights_size / 4 * 3 && !grow_flights(v) &&
        v->flights_count == v->flights_size)
        return NULL;
    do {
        flight = mu__vars_flight_slot(v, ++v->token_last);
    } while (flight->token != 0 || v->token_last == 0);
    *flight = (struct flight){.token = v->token_last,
                              .partition = partition,
                              .server = server_of(v, partition),
                              .queue = queue,
                              .answer = answer};
    v->flights_count++;
    v->call_flights_count += queue == CALLS;
    v->opens_count += answer == MU__VAR_OPENED;
    return flight;
}

void mu__vars_note_sent(struct variables *v, struct flight *flight, uint32_t size)
{
    flight->size += size;
    v->servers[flight->server]->under_way[flight->queue] += size;
}

void mu__vars_note_arrived(struct variables *v, struct flight *flight, uint32_t size)
{
    flight->size -= size;
    v->servers[flight->server]->under_way[flight->queue] -= size;
}

void mu__vars_end_flight(struct variables *v, struct flight *flight)
{
    v->flights_count--;
    v->call_flights_count -= flight->queue == CALLS;
    v->opens_count -= flight->answer == MU__VAR_OPENED;
    v->servers[flight->server]->under_way[flight->queue] -= flight->size;
    if (flight->part != NULL)
        flight->part->op->flights--;
    flight->token = 0;
    flight->part = NULL;
    flight->batch = NULL;
}

struct flight *mu__vars_find_flight(const struct variables *v, const struct mu__msg *msg,
                                    uint64_t token)
{
    struct flight *flight = mu__vars_flight_of(v, token);

    if (flight == NULL || flight->answer != msg->kind ||
        !mu__pid_equal(pid_of(v, flight->server), msg->from))
        return NULL;
    return flight;
}

bool mu__vars_end_answered_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token, struct flight *ret_flight)
{
    struct flight *flight = mu__vars_find_flight(v, msg, token);

    if (flight == NULL)
        return false;
    *ret_flight = *flight;
    mu__vars_end_flight(v, flight);
    return true;
}

void mu__vars_disown_flights(struct variables *v, struct operation *op,
                             const struct op_part *part)
{
    for (uint32_t i = 0; i < v->flights_size && op->flights > 0; i++) {
        struct op_part *flying = v->flights[i].part;

        if (flying == NULL || flying->op != op || (part != NULL && flying != part))
            continue;
        v->flights[i].part = NULL;
        op->flights--;
    }
}

/* ---- Pieces of calls ---- */

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
    const struct variable_server *server = v->servers[server_of(v, part->partition)];

    if (v->call_flights_count >= MU__FLIGHTS_MAX ||
        (part->step == OPENING && v->opens_count >= opens_max(part->op))) {
        v->pump_all_due = true;
        return false;
    }
    if (part->op->call->snapshot != NULL && part->op->flights > 0)
        return false; /* little is under way: what a program writes waits behind it */
    if (part->bytes > 0 && server->under_way[CALLS] >= MU__WINDOW_BYTES)
        return false;
    return !will_stage(part) || part->staged || server->staged < MU__STAGED_MAX;
}

static struct op_part *next_part(struct variables *v, uint32_t server)
{
    const struct mu__list *queue = &v->servers[server]->queues[CALLS];
    struct op_part *part = MU__LIST_FIRST(queue, struct op_part, node);

    while (part != NULL && !may_send(v, part))
        part = MU__LIST_NEXT(part, struct op_part, node);
    return part;
}

static int send_to_server(struct mu__ctx *ctx, const struct variables *v,
                          const struct flight *flight, uint16_t kind, const void *body,
                          size_t size)
{
    return mu__send_body(ctx, pid_of(v, flight->server), kind, body, size);
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
        .partition = flight->partition,
        .generation = v->placements[flight->partition].generation,
    };

    part->transfer = flight->token;
    return send_to_server(ctx, v, flight, MU__VAR_OPEN, &body, sizeof body);
}

/* Of a piece in its shard; a list of rows has none. */
static uint64_t wire_offset(const struct op_part *part, const struct flight *flight)
{
    return part->rows.group != NULL ? 0 : part->rows.from + flight->offset;
}

static int send_read(struct mu__ctx *ctx, const struct variables *v,
                     const struct op_part *part, const struct flight *flight)
{
    const struct mu__var_read body = {
        .token = flight->token,
        .variable = part->id,
        .offset = wire_offset(part, flight),
        .size = flight->size,
        .partition = flight->partition,
        .generation = v->placements[flight->partition].generation,
        .rows = mu__vars_row_numbers(part, flight->offset, flight->size),
    };

    return send_to_server(ctx, v, flight, MU__VAR_READ, &body, sizeof body);
}

/* Chosen when it is needed first. */
uint64_t mu__vars_need_origin(struct mu__ctx *ctx, struct variables *v)
{
    while (v->origin == 0)
        v->origin = mu__random(ctx);
    return v->origin;
}

static int send_write(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                      struct flight *flight)
{
    const struct mu__variable_call *call = part->op->call;
    uint8_t generated[MU__INITIAL_BYTES];
    struct mu__var_write body = {
        .token = flight->token,
        .variable = is_open(part->op) ? call->ids[part->shard] : part->id,
        .operation = part->write,
        .offset = wire_offset(part, flight),
        .rule = call->rule,
        .partition = flight->partition,
        .generation = v->placements[flight->partition].generation,
    };

    if (part->numbered.first != 0) {
        body.origin = mu__vars_need_origin(ctx, v);
        body.effect = part->numbered.first + flight->offset / part->rows.piece_bytes;
        body.effects_done = mu__vars_settled(v, flight->partition);
    }
    if (!part->begun && !is_open(part->op))
        part->transfer = flight->token;
    body.transfer = part->transfer;
    if (part->write == MU__WRITE_INITIAL) {
        mu__initial_pack(call->initial, flight->size, generated);
        body.data = (struct mu__view){generated, sizeof generated};
    } else if (flight->size > 0) {
        body.data = (struct mu__view){
            (const uint8_t *)call->source + part->offset + flight->offset, flight->size};
    }
    return send_to_server(ctx, v, flight, MU__VAR_WRITE, &body, sizeof body);
}

static uint16_t answer_to(const struct op_part *part)
{
    if (part->step == OPENING)
        return MU__VAR_OPENED;
    if (part->op->call->snapshot != NULL)
        return mu__vars_snapshot_answer(part);
    return part->write == 0 ? MU__VAR_DATA : MU__VAR_WRITTEN;
}

/* Send the next piece of a part. */
static int send_piece(struct mu__ctx *ctx, struct variables *v, struct op_part *part)
{
    uint64_t left = part->bytes - part->sent;
    struct flight *flight =
        mu__vars_flight_new(v, part->partition, CALLS, answer_to(part));
    int rv;

    if (flight == NULL)
        return -MU_ENOMEM;
    flight->part = part;
    part->op->flights++;
    flight->offset = part->sent;
    mu__vars_note_sent(v, flight,
                       left < part->rows.piece_bytes ? (uint32_t)left
                                                     : part->rows.piece_bytes);
    if (part->step == OPENING)
        rv = send_open(ctx, v, part, flight);
    else if (part->op->call->snapshot != NULL)
        rv = mu__vars_send_snapshot(ctx, v, part, flight);
    else if (part->write == 0)
        rv = send_read(ctx, v, part, flight);
    else
        rv = send_write(ctx, v, part, flight);
    if (rv != 0) {
        mu__vars_end_flight(v, flight);
        return rv;
    }
    part->begun = true;
    part->sent += flight->size;
    if (will_stage(part) && !part->staged) {
        part->staged = true;
        v->servers[flight->server]->staged++;
    }
    return 0;
}

/* Whether this node has not proven to the server that it may do what the part does. */
static bool fail_forbidden(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                           uint32_t server)
{
    uint16_t kind = part->step == OPENING ? MU__VAR_OPEN
                    : part->write == 0    ? MU__VAR_READ
                                          : MU__VAR_WRITE;
    mu_error error = {0};

    if (!mu__send_is_forbidden(ctx, v->servers[server]->node, kind, &error))
        return false;
    mu__vars_fail(ctx, v, part->op, server, -MU_EPERMISSION, error.message);
    return true;
}

static bool has_more(const struct op_part *part)
{
    return !part->begun || (part->step == MOVING && part->sent < part->bytes);
}

/* Send a piece of the next part; parts take turns. As mu__vars_send_batch. */
static int send_part(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    struct op_part *part = next_part(v, server);
    int rv;

    if (part == NULL)
        return 0;
    mu__vars_dequeue(part);
    if (fail_forbidden(ctx, v, part, server))
        return 1;
    rv = send_piece(ctx, v, part);
    if (rv != 0 && !mu__send_is_transient(rv)) {
        mu__vars_fail(ctx, v, part->op, server, rv, "a message could not be sent");
        return 1;
    }
    if (has_more(part))
        mu__vars_enqueue(v, part);
    return rv == 0 ? 1 : rv;
}

/* ---- Servers ---- */

static bool has_queued(const struct variable_server *server, enum queue queue)
{
    return !mu__list_is_empty(&server->queues[queue]) ||
           (queue == LARGES && !mu__list_is_empty(&server->active));
}

/* The same from one of its queues. */
static int send_next(struct mu__ctx *ctx, struct variables *v, uint32_t server,
                     enum queue queue)
{
    if (!has_queued(v->servers[server], queue))
        return 0;
    return queue == CALLS ? send_part(ctx, v, server)
                          : mu__vars_send_batch(ctx, v, server, queue);
}

/* Send to a server what its windows have room for. */
static void pump_server(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    enum queue queue = CALLS;
    unsigned idle = 0;

    while (v->servers[server]->up && idle < QUEUES) {
        int rv = send_next(ctx, v, server, queue);

        if (rv < 0) {
            mu__vars_arm(ctx, v, RETRY, RETRY_MS);
            return;
        }
        idle = rv == 0 ? idle + 1 : 0;
        queue = queue + 1 == QUEUES ? CALLS : queue + 1;
    }
}

void mu__vars_pump_all(struct mu__ctx *ctx, struct variables *v)
{
    v->pump_all_due = false;
    v->pumped_first++;
    for (uint32_t i = 0; i < v->servers_count; i++)
        pump_server(ctx, v, (v->pumped_first + i) % v->servers_count);
    mu__vars_pump_clocks(ctx, v);
    mu__vars_pump_lookups(ctx, v);
}

void mu__vars_go_on(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    if (v->pump_all_due)
        mu__vars_pump_all(ctx, v);
    else
        pump_server(ctx, v, server);
}
