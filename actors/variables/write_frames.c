/* Batches for the tables of one server, several in one message. */
#include "actors/variables/batches.h"

#include "actors/keep.h"
#include "actors/ps/tables/write_frame.h"
#include "actors/worker/function_run.h"

#include <stdlib.h>
#include <string.h>

enum { FRAME_DATA_BYTES = 64 << 10 }; /* of one message, if a batch has less */

/* One that is put together. */
struct write_frame {
    struct write_batch *batches[MU__FRAME_WRITES_MAX];
    uint32_t count;
    uint32_t writes;
    uint64_t bytes;
};

static struct write_batch *batch_behind(const struct write_batch *batch)
{
    return MU__LIST_NEXT(batch, struct write_batch, node);
}

/* Whether a batch has the same kind of numbers as the first one. */
static bool is_alike(const struct write_batch *a, const struct write_batch *b)
{
    const struct mu__effects *of_a = &a->op->run->effects;
    const struct mu__effects *of_b = &b->op->run->effects;

    return (a->op->writer.table != NULL) == (b->op->writer.table != NULL) &&
           (of_a->effect != 0) == (of_b->effect != 0) &&
           (of_a->effect == 0 || of_a->origin == of_b->origin);
}

static void gather_batches(const struct variable_server *server,
                           struct write_frame *frame)
{
    struct write_batch *batch =
        MU__LIST_FIRST(&server->queues[SINGLES], struct write_batch, node);
    const struct write_batch *first = batch;

    while (batch != NULL && batch->is_of_tables && is_alike(first, batch) &&
           (batch == first ||
            (frame->writes + batch->writes_count <= MU__FRAME_WRITES_MAX &&
             frame->bytes + batch->bytes <= FRAME_DATA_BYTES))) {
        frame->batches[frame->count++] = batch;
        frame->writes += batch->writes_count;
        frame->bytes += batch->bytes;
        batch = batch_behind(batch);
    }
}

/* Where the next head and the next data go. */
struct frame_packer {
    uint8_t *heads;
    uint8_t *data;
};

static void pack_batch(struct mu__ctx *ctx, struct variables *v,
                       const struct write_batch *batch, struct frame_packer *packer)
{
    struct write_batch cursor = *batch;
    struct mu__effect_write write;

    for (; cursor.writes_left > 0; cursor.writes_left--) {
        write = (struct mu__effect_write){.record = 0};
        mu__vars_fill_piece(ctx, v, &cursor, &write);
        packer->heads = mu__frame_head_put(packer->heads, &write);
        memcpy(packer->data, write.data.data, write.data.size);
        packer->data += write.data.size;
        cursor.pieces++;
        cursor.at = cursor.at->next;
    }
}

static int send_packed(struct mu__ctx *ctx, struct variables *v, uint32_t index,
                       const struct write_frame *frame)
{
    const struct write_batch *first = frame->batches[0];
    const struct mu__effects *effects = &first->op->run->effects;
    uint32_t heads_bytes = frame->writes * MU__FRAME_HEAD_BYTES;
    struct mu__buf *memory = mu__buf_new(heads_bytes + (size_t)frame->bytes);
    struct mu__effect_writes body = {
        .own = effects->effect == 0,
        .origin = effects->effect == 0 ? mu__vars_need_origin(ctx, v) : effects->origin,
    };
    struct frame_packer packer;
    int rv;

    if (memory == NULL)
        return -MU_ENOMEM;
    memory->size = memory->capacity;
    packer = (struct frame_packer){memory->data, memory->data + heads_bytes};
    body.heads = (struct mu__view){packer.heads, heads_bytes};
    body.data = (struct mu__view){packer.data, (uint32_t)frame->bytes};
    for (uint32_t i = 0; i < frame->count; i++)
        pack_batch(ctx, v, frame->batches[i], &packer);
    rv = mu__send_backed(ctx, pid_of(v, index),
                         first->op->writer.table != NULL ? MU__OWN_WRITES
                                                         : MU__EFFECT_WRITES,
                         &body, sizeof body, memory);
    mu__buf_unref(memory);
    return rv;
}

static int begin_batches(struct variables *v, const struct write_frame *frame)
{
    for (uint32_t i = 0; i < frame->count; i++)
        if (mu__vars_begin_batch(v, frame->batches[i]) == NULL)
            return -MU_ENOMEM;
    return 0;
}

static void note_batch_sent(struct variables *v, struct variable_server *server,
                            struct write_batch *batch)
{
    struct flight *flight = mu__vars_flight_of(v, batch->token);

    while (mu__vars_move_on(v, batch, flight))
        continue;
    mu__vars_put_batch_last(&server->flying, batch);
}

int mu__vars_send_frame(struct mu__ctx *ctx, struct variables *v, uint32_t index)
{
    struct write_frame frame = {.count = 0};
    int rv;

    gather_batches(v->servers[index], &frame);
    rv = begin_batches(v, &frame);
    if (rv == 0)
        rv = send_packed(ctx, v, index, &frame);
    for (uint32_t i = 0; i < frame.count; i++) {
        if (rv == 0)
            note_batch_sent(v, v->servers[index], frame.batches[i]);
        else
            mu__vars_rewind_batch(v, frame.batches[i]);
    }
    if (rv == 0)
        return 1;
    if (mu__send_is_transient(rv))
        return rv;
    mu__vars_fail(ctx, v, frame.batches[0]->op, index, rv, "a message could not be sent");
    return 1;
}
