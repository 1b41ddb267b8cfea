/* Packed values, as value_pack.c writes and value_unpack.c reads them. In the head each
 * value is plain msgpack: a list is an array, a map a map with strings for keys, and a
 * tensor an extension of type 1 whose bytes stand in the tail:
 *
 *   u8   dtype
 *   u8   rank
 *   u16  zero
 *   u64  dims[rank]        little-endian
 *   u64  offset            in the tail, little-endian
 *
 * A reference is an extension of type 2: its number, a little-endian u64.
 *
 * There is one way to lay out the tail, and the reader insists on it: the tensors in the
 * order of the head, each at the next multiple of 16, zeros between them, nothing behind
 * the last. So no two tensors can share bytes, which would make a small message large. */
#ifndef MU_RUNTIME_VALUE_WIRE_H
#define MU_RUNTIME_VALUE_WIRE_H

#include "runtime/message/codec.h"
#include "runtime/message/value_layout.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements of tensors travel as they are in memory: little-endian"
#endif

enum {
    MU__TENSOR_EXT = 1,
    MU__REFERENCE_EXT = 2,
    MU__REFERENCE_BYTES = 2 + sizeof(uint64_t),
    MU__TENSOR_EXT_HEAD = 3, /* lead, size and type, before the extension's bytes */
    MU__TENSOR_FIXED = 4,    /* dtype, rank and zero */
    MU__BIN_HEAD_MAX = 5     /* lead and size, before bytes */
};

static inline uint64_t mu__tail_align(uint64_t size)
{
    return (size + MU__TAIL_ALIGN - 1) & ~(uint64_t)(MU__TAIL_ALIGN - 1);
}

/* Bytes of the extension of a tensor. */
static inline size_t mu__tensor_ext_bytes(unsigned rank)
{
    return MU__TENSOR_FIXED + sizeof(uint64_t) * (rank + 1);
}

#endif
