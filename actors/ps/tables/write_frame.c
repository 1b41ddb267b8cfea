#include "actors/ps/tables/write_frame.h"

#include "actors/partitions.h"
#include "runtime/base/byte_order.h"

/* Where a head has its fields. */
enum {
    AT_PARTITION = 0,
    AT_OPERATION = 4,
    AT_LAST = 5,
    AT_BEFORE = 8,
    AT_SIZE = 12,
    AT_TOKEN = 16,
    AT_VARIABLE = 24,
    AT_GENERATION = 32,
    AT_RECORD = 40,
    AT_EFFECT = 48,
    AT_EFFECTS_DONE = 56
};

static const uint8_t *head_at(const struct mu__effect_writes *frame, uint32_t i)
{
    return (const uint8_t *)frame->heads.data + (size_t)i * MU__FRAME_HEAD_BYTES;
}

bool mu__frame_is_valid(const struct mu__effect_writes *frame)
{
    uint32_t count = frame->heads.size / MU__FRAME_HEAD_BYTES;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (mu__load_little32(head_at(frame, i) + AT_PARTITION) >= MU__PARTITIONS)
            return false;
        bytes += mu__load_little32(head_at(frame, i) + AT_SIZE);
    }
    return frame->heads.size % MU__FRAME_HEAD_BYTES == 0 && bytes == frame->data.size;
}

bool mu__frame_next(struct mu__frame_reader *reader, struct mu__effect_write *ret_write)
{
    const struct mu__effect_writes *frame = reader->frame;
    const uint8_t *head = head_at(frame, reader->i);
    uint32_t size;

    if (reader->i == frame->heads.size / MU__FRAME_HEAD_BYTES)
        return false;
    size = mu__load_little32(head + AT_SIZE);
    *ret_write = (struct mu__effect_write){
        .token = mu__load_little64(head + AT_TOKEN),
        .batch = mu__load_little64(head + AT_TOKEN),
        .variable = mu__load_little64(head + AT_VARIABLE),
        .operation = head[AT_OPERATION],
        .data = {(const uint8_t *)frame->data.data + reader->taken, size},
        .last = head[AT_LAST] != 0,
        .own = frame->own,
        .origin = frame->origin,
        .effect = mu__load_little64(head + AT_EFFECT),
        .effects_done = mu__load_little64(head + AT_EFFECTS_DONE),
        .before = mu__load_little32(head + AT_BEFORE),
        .partition = mu__load_little32(head + AT_PARTITION),
        .generation = mu__load_little64(head + AT_GENERATION),
        .record = mu__load_little64(head + AT_RECORD),
        .writer = frame->writer,
    };
    reader->i++;
    reader->taken += size;
    return true;
}

uint8_t *mu__frame_head_put(uint8_t *at, const struct mu__effect_write *write)
{
    memset(at, 0, MU__FRAME_HEAD_BYTES);
    mu__store_little32(at + AT_PARTITION, write->partition);
    at[AT_OPERATION] = (uint8_t)write->operation;
    at[AT_LAST] = write->last;
    mu__store_little32(at + AT_BEFORE, write->before);
    mu__store_little32(at + AT_SIZE, write->data.size);
    mu__store_little64(at + AT_TOKEN, write->token);
    mu__store_little64(at + AT_VARIABLE, write->variable);
    mu__store_little64(at + AT_GENERATION, write->generation);
    mu__store_little64(at + AT_RECORD, write->record);
    mu__store_little64(at + AT_EFFECT, write->effect);
    mu__store_little64(at + AT_EFFECTS_DONE, write->effects_done);
    return at + MU__FRAME_HEAD_BYTES;
}
