/* The heads of an EFFECT_WRITES: for each write 64 bytes, little-endian. */
#ifndef MU_ACTORS_PS_TABLES_WRITE_FRAME_H
#define MU_ACTORS_PS_TABLES_WRITE_FRAME_H

#include "actors/messages.h"

/* What a frame is read with: its writes one by one. */
struct mu__frame_reader {
    const struct mu__effect_writes *frame;
    uint32_t i;     /* the next one, */
    uint32_t taken; /* behind so many bytes of data */
};

/* Whether the heads are whole, of partitions, and say as many bytes as there are. */
bool mu__frame_is_valid(const struct mu__effect_writes *frame);

/* The next write of a valid frame, as the message that it stands for; false: there are no
 * more. */
bool mu__frame_next(struct mu__frame_reader *reader, struct mu__effect_write *ret_write);

/* Write the head of a write to a table; returns the address behind it. */
uint8_t *mu__frame_head_put(uint8_t *at, const struct mu__effect_write *write);

#endif
