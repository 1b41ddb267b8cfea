/* A variable's name, its shape, and how it is cut into shards. */
#ifndef MU_ACTORS_SHAPE_H
#define MU_ACTORS_SHAPE_H

#include "muster/error.h"
#include "muster/value.h"
#include "runtime/message/message.h"

/* Bounds; what is beyond one is refused with an error that names it. */
#define MU__VARIABLE_BYTES_MAX (UINT64_C(1) << 42) /* of a whole variable */
enum {
    MU__VARIABLE_SHARDS_MAX = 4096,
    MU__SHAPE_TEXT_MAX = 256, /* mu__shape_text() with its zero */
    MU__DIMS_BYTES_MAX = 8 * MU_TENSOR_RANK_MAX
};

struct mu__shape {
    uint32_t dtype;
    uint32_t rank;
    uint64_t dims[MU_TENSOR_RANK_MAX];
    uint32_t shards; /* 1 to dims[0]; always 1 for rank 0 */
};

/* Everything below but the text needs a shape that passed this check. -MU_EINVALID
 * (dtype, rank, a dimension of 0), -MU_ERANGE (bytes, shards). */
int mu__shape_check(const struct mu__shape *shape, mu_error *ret_error);

/* Bytes of the whole variable. */
uint64_t mu__shape_bytes(const struct mu__shape *shape);

/* Bytes of what is below the first dimension. */
uint64_t mu__shape_row_bytes(const struct mu__shape *shape);

/* Where a shard lies in the variable: the first shards get one row more when the rows do
 * not divide evenly. */
void mu__shape_shard(const struct mu__shape *shape, uint32_t shard, uint64_t *ret_offset,
                     uint64_t *ret_bytes);

bool mu__shape_equal(const struct mu__shape *a, const struct mu__shape *b);

/* Equal but for the number of shards. */
bool mu__shape_alike(const struct mu__shape *a, const struct mu__shape *b);

/* "float32[1000,10] in 2 shards". Takes any shape, also one that is not valid. */
void mu__shape_text(const struct mu__shape *shape, char *out, size_t size);

/* Dimensions as they travel: 8 bytes each, little-endian. Packing returns the bytes used;
 * unpacking sets rank and dims, -MU_EINVALID when the size fits no rank. */
uint32_t mu__shape_pack_dims(const struct mu__shape *shape,
                             uint8_t out[MU__DIMS_BYTES_MAX]);
int mu__shape_unpack_dims(struct mu__view dims, struct mu__shape *shape);

/* A variable's name: 1 to MU__VARIABLE_NAME_MAX bytes of UTF-8 without control
 * characters; -MU_EINVALID. */
int mu__variable_name_check(struct mu__view name, mu_error *ret_error);

/* FNV-1a of 64 bits; by it a shard has its partition (actors/partitions.h). */
uint64_t mu__name_hash(struct mu__view name);

#endif
