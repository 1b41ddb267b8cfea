/* The one codec: packs and unpacks any message from its row in the table.
 *
 * A record on the wire:
 *
 *   u32 head_size   little-endian
 *   u32 tail_size
 *   head            a msgpack array [kind, to.actor, from.actor, field, field, ...]
 *   padding         zeros up to a multiple of 16 from the frame's begin; only with a tail
 *   tail            raw bytes of the field of type value or raw
 *
 * An absent optional field is nil, or left out at the end: a zero number (all bits zero),
 * false, a view without data, a value without head. A `value` stands in the head as a bin
 * holding its own msgpack part, empty for head_size 0, which is nil; a `raw` stands in
 * the head as its size. Fields that a newer peer appended are skipped, with the tail if
 * no field known here takes it; messages of unknown kind are skipped whole. */
#ifndef MU_RUNTIME_CODEC_H
#define MU_RUNTIME_CODEC_H

#include "muster/value.h"
#include "runtime/message/message.h"
#include "runtime/message/pool.h"

enum { MU__TAIL_ALIGN = 16 };

enum { MU__ENCODED_BYTES_MAX = 4 << 20 };

/* The most bytes that mu__encode may need for `msg`, wherever the record begins. */
size_t mu__encode_bound(const struct mu__schema *schema, const struct mu__msg *msg);

/* Append one record to `frame` at frame->size, which moves behind it. The frame's begin
 * is aligned to 16 bytes. -MU_EEXHAUSTED when capacity - size is too small (nothing
 * changed; a frame with splices never grows beyond its splices' bytes_max in all),
 * -MU_ERANGE when a field is beyond its bound, -MU_EINVALID when the message
 * does not travel. Does not take `msg`. */
int mu__encode(const struct mu__schema *schema, const struct mu__msg *msg,
               struct mu__buf *frame);

/* How many bytes of mu__encode_bound need no room in a frame that can have splices: the
 * large pieces of msg->backing, which become splices. */
size_t mu__encode_spliceable(const struct mu__schema *schema, const struct mu__msg *msg);

/* Decode the record at *offset of `frame`, which moves behind it on success. When a view
 * of the message points into the frame, the message holds it (msg->backing). to.node and
 * from.node are left 0. *ret_msg is NULL when the kind is unknown. On bad bytes, and for
 * a kind that does not travel, returns -MU_EDATALOSS and `why` (why_size bytes; may be
 * NULL when that is 0) says what and at which byte of the frame. -MU_ENOMEM. After a
 * failure nothing is kept. */
int mu__decode(const struct mu__schema *schema, struct mu__pool *pool,
               struct mu__buf *frame, size_t *offset, char *why, size_t why_size,
               struct mu__msg **ret_msg);

/* Sizes of a packed value; NULL reads as nil. -MU_ERANGE beyond MU_VALUE_DEPTH_MAX or
 * 32-bit sizes. */
int mu__value_measure(const mu_value *value, uint32_t *ret_head, uint32_t *ret_tail);

/* Pack into memory of the measured sizes; `tail` is aligned to 16 bytes. The value must
 * not have changed since it was measured. */
void mu__value_pack(const mu_value *value, uint8_t *head, uint32_t head_size,
                    uint8_t *tail, uint32_t tail_size);

/* The packed form of bytes or a tensor inside the value's own allocation, which begins at
 * `value` and has *ret_memory_bytes; the tail is at its end. False for all other
 * values. */
bool mu__value_packed_in_place(const mu_value *value, struct mu__packed *ret_packed,
                               size_t *ret_memory_bytes);

/* Unpack a whole value from untrusted bytes: depth, counts, sizes, dtypes, alignment and
 * UTF-8 of strings are checked, and a key may stand in a map once only. Copies what it
 * needs; a byte of the head costs at most some 100 bytes of memory, a byte of the tail
 * one. -MU_EDATALOSS with `why` on bad bytes, -MU_ENOMEM. A packed value with head_size 0
 * is nil. */
int mu__value_unpack(const struct mu__packed *packed, char *why, size_t why_size,
                     mu_value **ret_value);

#endif
