/* Writes that generate the initial content of a shard, at each of its replicas. */
#include "actors/ps/initial/initial.h"

#include "actors/messages.h"
#include "actors/ps/internal.h"

#include <assert.h>
#include <inttypes.h>

uint64_t mu__write_bytes(const struct mu__store_write *write)
{
    struct mu__initial initial;
    uint64_t size = 0;

    if (write->operation != MU__WRITE_INITIAL)
        return write->data.size;
    (void)mu__initial_unpack(write->data, &initial, &size);
    return size;
}

int mu__initial_check_write(const struct variable *v, const struct mu__store_write *write,
                            mu_error *ret_error)
{
    size_t element_bytes = mu_dtype_bytes((int)v->shape.dtype);
    struct mu__initial initial;
    uint64_t size;

    if (mu__initial_unpack(write->data, &initial, &size) != 0 || size == 0 ||
        size > MU__PIECE_BYTES_MAX || size % element_bytes != 0 ||
        write->offset % element_bytes != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes do not say how a piece of variable %s "
                            "begins",
                            write->data.size, v->name);
    if (mu__store_check_range(v, write->offset, size, ret_error) != 0)
        return -MU_ERANGE;
    return mu__initial_check(&initial, v->shape.dtype, ret_error);
}

void mu__initial_write(struct variable *v, const struct mu__store_write *write)
{
    size_t element_bytes = mu_dtype_bytes((int)v->shape.dtype);
    struct mu__initial initial;
    uint64_t shard_offset;
    uint64_t shard_bytes;
    uint64_t size;
    int rv = mu__initial_unpack(write->data, &initial, &size);

    assert(rv == 0);
    (void)rv;
    mu__shape_shard(&v->shape, v->shard, &shard_offset, &shard_bytes);
    mu__initial_fill(&initial, mu__view_str(v->name), v->shape.dtype,
                     (shard_offset + write->offset) / element_bytes, size / element_bytes,
                     v->data + write->offset);
}
