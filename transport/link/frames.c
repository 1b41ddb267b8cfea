#include "transport/link/frames.h"

#include "muster/error.h"

#include <assert.h>
#include <string.h>

MU__FRAME_MESSAGES(MU__DESCRIBE_FIELDS)

static const struct mu__row rows[MU__FRAME_TYPES_END] = {
    MU__FRAME_MESSAGES(MU__DESCRIBE_ROW)};

const struct mu__schema mu__frame_messages = {.rows = rows,
                                              .rows_count = MU__FRAME_TYPES_END};

static void put_little(uint8_t *at, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t get_little(const uint8_t *at, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

void mu__frame_write(struct mu__buf *frame, const struct mu__frame_header *header)
{
    uint8_t *at = frame->data;

    assert(frame->capacity >= MU__FRAME_HEADER_BYTES);
    put_little(at, MU__FRAME_MAGIC, 4);
    put_little(at + 4, header->version, 2);
    put_little(at + 6, header->type, 1);
    put_little(at + 7, 0, 1);
    put_little(at + 8, header->from, 8);
    put_little(at + 16, header->to, 8);
    put_little(at + 24, header->count, 4);
    put_little(at + 28, 0, 4);
}

int mu__frame_read(const struct mu__buf *frame, struct mu__frame_header *ret_header)
{
    const uint8_t *at = frame->data;
    struct mu__frame_header header;

    if (frame->size < MU__FRAME_HEADER_BYTES || get_little(at, 4) != MU__FRAME_MAGIC)
        return -MU_EDATALOSS;
    header.version = (uint16_t)get_little(at + 4, 2);
    header.type = (uint8_t)get_little(at + 6, 1);
    header.from = get_little(at + 8, 8);
    header.to = get_little(at + 16, 8);
    header.count = (uint32_t)get_little(at + 24, 4);
    if (header.from == 0)
        return -MU_EDATALOSS;
    if (header.version == MU__FRAME_VERSION) {
        if (header.type == 0 || header.type >= MU__FRAME_TYPES_END)
            return -MU_EDATALOSS;
    } else if (header.type != MU__FRAME_HELLO && header.type != MU__FRAME_REFUSE) {
        return -MU_EDATALOSS;
    }
    *ret_header = header;
    return 0;
}
