/* Frames, as they go over a wire: a header of 32 bytes, then records.
 *
 *   u32 magic       "MUST"
 *   u16 version     of this protocol
 *   u8  type        of the frame
 *   u8  zero
 *   u64 from        incarnation of the sender
 *   u64 to          incarnation of the receiver; 0: not known yet (in a dialler's HELLO)
 *   u32 count       records that follow
 *   u32 zero
 *
 * All numbers are little-endian. HELLO, REFUSE, BYE and PIECE carry one record of the
 * table below, DATA records of the node's own table, PING none. HELLO and REFUSE keep
 * their layout over all versions, so that nodes of different versions can refuse each
 * other. */
#ifndef MU_TRANSPORT_FRAMES_H
#define MU_TRANSPORT_FRAMES_H

#include "runtime/message/message.h"

enum { MU__FRAME_MAGIC = 0x5453554d, MU__FRAME_VERSION = 1, MU__FRAME_HEADER_BYTES = 32 };

enum mu__frame_type {
    MU__FRAME_HELLO = 1,
    MU__FRAME_REFUSE,
    MU__FRAME_DATA,
    MU__FRAME_PING,
    MU__FRAME_PIECE,
    MU__FRAME_BYE,
    MU__FRAME_TYPES_END
};

struct mu__frame_header {
    uint16_t version;
    uint8_t type;
    uint64_t from;
    uint64_t to;
    uint32_t count;
};

enum { MU__LINK_PIECE_BYTES = 1 << 20 };

/* `address` is where peers can dial the task; "": nowhere. `expected_type` and
 * `expected_index` are the task that was dialled, whose address may have become another
 * task's; none: any task. `host` and `pid` are the process's, for messages. */
#define MU__HELLO_FIELDS(F, S)                   \
    F(S, REQUIRED, str, cluster, 63)             \
    F(S, REQUIRED, str, type, 15)                \
    F(S, REQUIRED, u32, index, 1 << 20)          \
    F(S, REQUIRED, str, address, 255)            \
    F(S, OPTIONAL, str, software, 63)            \
    F(S, OPTIONAL, u64, capabilities, 0)         \
    F(S, OPTIONAL, str, expected_type, 15)       \
    F(S, OPTIONAL, u32, expected_index, 1 << 20) \
    F(S, OPTIONAL, str, host, 63)                \
    F(S, OPTIONAL, u64, pid, 0)

/* `taken`: another process plays the refused process's task. */
#define MU__REFUSE_FIELDS(F, S)         \
    F(S, REQUIRED, str, type, 15)       \
    F(S, REQUIRED, u32, index, 1 << 20) \
    F(S, REQUIRED, str, reason, 511)    \
    F(S, OPTIONAL, flag, taken, 0)

#define MU__BYE_FIELDS(F, S) F(S, REQUIRED, str, reason, 255)

/* One part of a record too large for a frame. Parts arrive in order. */
#define MU__PIECE_FIELDS(F, S)     \
    F(S, REQUIRED, u64, offset, 0) \
    F(S, REQUIRED, u64, total, 0)  \
    F(S, REQUIRED, raw, data, MU__LINK_PIECE_BYTES)

#define MU__FRAME_MESSAGES(M)                     \
    M(1, HELLO, hello, NONE, MU__HELLO_FIELDS)    \
    M(2, REFUSE, refuse, NONE, MU__REFUSE_FIELDS) \
    M(5, PIECE, piece, NONE, MU__PIECE_FIELDS)    \
    M(6, BYE, bye, NONE, MU__BYE_FIELDS)

MU__MESSAGE_STRUCT(hello, MU__HELLO_FIELDS)
MU__MESSAGE_STRUCT(refuse, MU__REFUSE_FIELDS)
MU__MESSAGE_STRUCT(bye, MU__BYE_FIELDS)
MU__MESSAGE_STRUCT(piece, MU__PIECE_FIELDS)

/* The table of the records above, indexed by frame type. */
extern const struct mu__schema mu__frame_messages;

/* Write the header into the first bytes of `frame`, which has room for it. */
void mu__frame_write(struct mu__buf *frame, const struct mu__frame_header *header);

/* Read a header. -MU_EDATALOSS when it is no header of ours (too short, other magic,
 * unknown type of this version); another version's HELLO and REFUSE are let through. */
int mu__frame_read(const struct mu__buf *frame, struct mu__frame_header *ret_header);

#endif
