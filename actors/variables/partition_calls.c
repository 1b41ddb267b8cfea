/* Calls about a partition: each has one part and one request, which is sent again when
 * its server has changed. A snapshot is bound to its server; so reads of it are refused
 * then, and the program begins with another one. */
#include "actors/variables/partition_actions.h"

#include "actors/variables/actions.h"

#include "actors/keep.h"
#include "actors/ps/store_snapshots.h"
#include "actors/ps/tables/copies/set_copies.h"

#include <string.h>

void mu__vars_plan_snapshot(struct operation *op)
{
    struct op_part *part = &op->parts[0];

    part->op = op;
    part->partition = op->call->snapshot->partition;
    part->step = MOVING;
    part->rows.piece_bytes = MU__PIECE_BYTES_MAX;
    if (op->call->call.operation != MU__VARIABLE_SNAPSHOT_READ)
        return;
    part->bytes = part->shard_bytes = op->call->snapshot->size;
    part->rows.piece_bytes = op->call->snapshot->piece_bytes;
}

uint16_t mu__vars_snapshot_answer(const struct op_part *part)
{
    switch (part->op->call->call.operation) {
    case MU__VARIABLE_SNAPSHOT:
        return MU__SNAPSHOT_OPENED;
    case MU__VARIABLE_SNAPSHOT_READ:
        return MU__VAR_DATA;
    default:
        return MU__VAR_WRITTEN;
    }
}

static int send_snapshot_open(struct mu__ctx *ctx, const struct variables *v,
                              const struct mu__snapshot_call *call,
                              const struct flight *flight)
{
    const struct mu__snapshot_open body = {
        .token = flight->token,
        .ids = call->bytes,
        .with_slots = call->slots != NULL,
        .tables = call->tables,
        .only_sizes = call->only_sizes,
        .since = call->since,
        .mark = call->mark,
        .partition = flight->partition,
        .generation = v->placements[flight->partition].generation,
    };

    return mu__send_body(ctx, pid_of(v, flight->server), MU__SNAPSHOT_OPEN, &body,
                         sizeof body);
}

static int send_snapshot_read(struct mu__ctx *ctx, const struct variables *v,
                              const struct mu__snapshot_call *call,
                              const struct flight *flight)
{
    const struct mu__snapshot_read body = {
        .token = flight->token,
        .snapshot = call->number,
        .variable = call->id,
        .offset = call->offset + flight->offset,
        .size = flight->size,
        .partition = flight->partition,
        .generation = v->placements[flight->partition].generation,
    };

    return mu__send_body(ctx, pid_of(v, flight->server), MU__SNAPSHOT_READ, &body,
                         sizeof body);
}

static int send_windows_put(struct mu__ctx *ctx, const struct variables *v,
                            const struct mu__snapshot_call *call,
                            const struct flight *flight)
{
    const struct mu__windows_put body = {
        .token = flight->token,
        .windows = call->bytes,
        .partition = flight->partition,
        .generation = v->placements[flight->partition].generation,
    };

    return mu__send_body(ctx, pid_of(v, flight->server), MU__WINDOWS_PUT, &body,
                         sizeof body);
}

int mu__vars_send_snapshot(struct mu__ctx *ctx, const struct variables *v,
                           const struct op_part *part, const struct flight *flight)
{
    const struct mu__snapshot_call *call = part->op->call->snapshot;

    switch (part->op->call->call.operation) {
    case MU__VARIABLE_SNAPSHOT:
        return send_snapshot_open(ctx, v, call, flight);
    case MU__VARIABLE_SNAPSHOT_READ:
        return send_snapshot_read(ctx, v, call, flight);
    default:
        return send_windows_put(ctx, v, call, flight);
    }
}

/* False: the server has not said it. */
static bool take_table_sizes(const struct mu__snapshot_call *call,
                             const struct mu__snapshot_opened *body)
{
    uint32_t size =
        call->tables.size / MU__SET_COPIES_ID_BYTES * MU__SET_COPIES_SIZE_BYTES;

    if (body->sizes.size != size)
        return false;
    if (size > 0)
        memcpy(call->sizes, body->sizes.data, size);
    return true;
}

static void take_snapshot(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                          const struct mu__snapshot_opened *body)
{
    struct mu__snapshot_call *call = part->op->call->snapshot;

    call->number = body->token;
    call->record = body->record;
    call->sum = body->sum;
    call->windows_bytes = body->windows;
    if (call->slots != NULL) {
        uint32_t size =
            call->bytes.size / MU__SNAPSHOT_ID_BYTES * MU__SNAPSHOT_SLOTS_BYTES;

        memset(call->slots, 0, size);
        if (body->slots.size == size && size > 0)
            memcpy(call->slots, body->slots.data, size);
    }
    if (take_table_sizes(call, body))
        mu__vars_rest(ctx, v, part);
    else
        mu__vars_fail_by_answer(ctx, v, part->op, part->partition, MU_ENOMEM,
                                mu__view_str("the server is out of memory"));
}

/* One that was given up meanwhile is closed. */
void mu__vars_on_snapshot_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__snapshot_opened *body = mu__body(msg);
    struct flight flight;

    if (!mu__vars_end_answered_flight(v, msg, body->token, &flight))
        return;
    if (flight.part != NULL && body->code != 0)
        mu__vars_fail_by_answer(ctx, v, flight.part->op, flight.part->partition,
                                body->code, body->message);
    else if (flight.part != NULL)
        take_snapshot(ctx, v, flight.part, body);
    else if (body->code == 0)
        mu__vars_close_snapshot(ctx, v, flight.partition, body->token);
    mu__vars_go_on(ctx, v, flight.server);
}
