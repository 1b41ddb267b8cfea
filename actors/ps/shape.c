/* Shapes: checking, cutting, describing. */
#include "actors/ps/shape.h"

#include "actors/messages.h"
#include "runtime/base/byte_order.h"
#include "runtime/base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int check_shards(const struct mu__shape *shape, mu_error *ret_error)
{
    uint64_t rows = shape->rank == 0 ? 1 : shape->dims[0];

    if (shape->shards == 0 || shape->shards > rows)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "%" PRIu32 " shards of %" PRIu64
                            " rows: expected 1 to the number of rows",
                            shape->shards, rows);
    if (shape->shards > MU__VARIABLE_SHARDS_MAX)
        return mu_error_set(ret_error, -MU_ERANGE, "%" PRIu32 " shards: at most %d",
                            shape->shards, MU__VARIABLE_SHARDS_MAX);
    return 0;
}

int mu__shape_check(const struct mu__shape *shape, mu_error *ret_error)
{
    uint64_t bytes = mu_dtype_bytes((int)shape->dtype);

    if (bytes == 0)
        return mu_error_set(ret_error, -MU_EINVALID, "dtype %" PRIu32 " is unknown",
                            shape->dtype);
    if (shape->rank > MU_TENSOR_RANK_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "%" PRIu32 " dimensions: at most %d",
                            shape->rank, MU_TENSOR_RANK_MAX);
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "dimension %" PRIu32 " is 0: expected at least 1", i);
        if (shape->dims[i] > MU__VARIABLE_BYTES_MAX / bytes)
            return mu_error_set(ret_error, -MU_ERANGE,
                                "dimension %" PRIu32 " is %" PRIu64
                                ": the variable would have more than %" PRIu64 " bytes",
                                i, shape->dims[i], MU__VARIABLE_BYTES_MAX);
        bytes *= shape->dims[i];
    }
    return check_shards(shape, ret_error);
}

uint64_t mu__shape_row_bytes(const struct mu__shape *shape)
{
    uint64_t bytes = mu_dtype_bytes((int)shape->dtype);

    for (uint32_t i = 1; i < shape->rank; i++)
        bytes *= shape->dims[i];
    return bytes;
}

uint64_t mu__shape_bytes(const struct mu__shape *shape)
{
    return mu__shape_row_bytes(shape) * (shape->rank == 0 ? 1 : shape->dims[0]);
}

void mu__shape_shard(const struct mu__shape *shape, uint32_t shard, uint64_t *ret_offset,
                     uint64_t *ret_bytes)
{
    uint64_t rows = shape->rank == 0 ? 1 : shape->dims[0];
    uint64_t each = rows / shape->shards;
    uint64_t longer = rows % shape->shards;
    uint64_t first = each * shard + (shard < longer ? shard : longer);

    assert(shard < shape->shards);
    *ret_offset = first * mu__shape_row_bytes(shape);
    *ret_bytes = (each + (shard < longer)) * mu__shape_row_bytes(shape);
}

bool mu__shape_equal(const struct mu__shape *a, const struct mu__shape *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->shards == b->shards &&
           memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool mu__shape_alike(const struct mu__shape *a, const struct mu__shape *b)
{
    struct mu__shape other = *b;

    other.shards = a->shards;
    return mu__shape_equal(a, &other);
}

void mu__shape_text(const struct mu__shape *shape, char *out, size_t size)
{
    char text[MU__SHAPE_TEXT_MAX];
    const char *dtype = mu_dtype_name((int)shape->dtype);
    uint32_t rank = shape->rank < MU_TENSOR_RANK_MAX ? shape->rank : MU_TENSOR_RANK_MAX;
    int at = snprintf(text, sizeof text, "%s[", dtype == NULL ? "?" : dtype);

    for (uint32_t i = 0; i < rank; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%" PRIu64,
                       i == 0 ? "" : ",", shape->dims[i]);
    (void)snprintf(text + at, sizeof text - (size_t)at, "] in %" PRIu32 " shard%s",
                   shape->shards, shape->shards == 1 ? "" : "s");
    mu__view_copy(mu__view_str(text), out, size);
}

uint32_t mu__shape_pack_dims(const struct mu__shape *shape,
                             uint8_t out[MU__DIMS_BYTES_MAX])
{
    for (uint32_t i = 0; i < shape->rank; i++)
        mu__store_little(out + 8 * (size_t)i, shape->dims[i], 8);
    return 8 * shape->rank;
}

int mu__shape_unpack_dims(struct mu__view dims, struct mu__shape *shape)
{
    const uint8_t *bytes = dims.data;

    if (dims.size % 8 != 0 || dims.size > MU__DIMS_BYTES_MAX)
        return -MU_EINVALID;
    shape->rank = dims.size / 8;
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->dims[i] = mu__load_little64(bytes + 8 * (size_t)i);
    return 0;
}

int mu__variable_name_check(struct mu__view name, mu_error *ret_error)
{
    const uint8_t *bytes = name.data;

    if (name.size == 0 || name.size > MU__VARIABLE_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a variable's name has %" PRIu32 " bytes: expected 1 to %d",
                            name.size, MU__VARIABLE_NAME_MAX);
    for (uint32_t i = 0; i < name.size; i++)
        if (bytes[i] < 0x20 || bytes[i] == 0x7F)
            return mu_error_set(
                ret_error, -MU_EINVALID,
                "a variable's name has a control character at byte %" PRIu32, i);
    if (!mu__utf8_valid(name.data, name.size))
        return mu_error_set(ret_error, -MU_EINVALID, "a variable's name is not UTF-8");
    return 0;
}

uint64_t mu__name_hash(struct mu__view name)
{
    const uint8_t *bytes = name.data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (uint32_t i = 0; i < name.size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}
