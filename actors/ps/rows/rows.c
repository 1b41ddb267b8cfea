/* Rows of a shard: reads and writes of those with given numbers, and writes of a range
 * in place. */
#include "actors/ps/rows/rows.h"

#include "actors/ps/initial/initial.h"
#include "actors/ps/internal.h"
#include "actors/ps/optimizer.h"
#include "actors/ps/rows/row_list.h"
#include "actors/ps/rows/row_updates.h"

#include <inttypes.h>
#include <string.h>

bool mu__rows_are_written(uint32_t operation)
{
    return (operation >= MU__WRITE_ROWS_ASSIGN && operation <= MU__WRITE_SCATTER_ADD) ||
           mu__write_updates_rows(operation);
}

bool mu__rows_are_listed(uint32_t operation)
{
    return operation == MU__WRITE_SCATTER_UPDATE || operation == MU__WRITE_SCATTER_ADD ||
           mu__write_updates_rows(operation);
}

/* ---- Checking ---- */

static int check_numbers(const struct variable *v, const uint8_t *numbers, uint64_t count,
                         mu_error *ret_error)
{
    uint64_t rows = v->bytes / mu__shape_row_bytes(&v->shape);

    for (uint64_t i = 0; i < count; i++)
        if (mu__row_number(numbers, i) >= rows)
            return mu_error_set(ret_error, -MU_ERANGE,
                                "row %" PRIu64 " of a shard of %" PRIu64 " of variable "
                                "%s",
                                mu__row_number(numbers, i), rows, v->name);
    return 0;
}

/* Rows that a write of a list has. */
static uint64_t rows_of_write(const struct variable *v,
                              const struct mu__store_write *write)
{
    return write->data.size / (MU__ROW_NUMBER_BYTES + mu__shape_row_bytes(&v->shape));
}

/* Of a list that is whole. */
static int check_row_update(const struct variable *v, const struct mu__store_write *write,
                            mu_error *ret_error)
{
    int dtype = (int)v->shape.dtype;
    uint64_t rows = rows_of_write(v, write);
    size_t count =
        (size_t)(rows * mu__shape_row_bytes(&v->shape)) / mu_dtype_bytes(dtype);
    const uint8_t *content =
        (const uint8_t *)write->data.data + rows * MU__ROW_NUMBER_BYTES;

    if (!mu__dtype_updates_rows(dtype))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s is %s, which has no minimum, maximum, product "
                            "or quotient",
                            v->name, mu_dtype_name(dtype));
    if (write->operation == MU__WRITE_SCATTER_DIV &&
        mu__find_zero_divisor(dtype, content, count) < count)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "rows of variable %s, which is %s, divided by 0", v->name,
                            mu_dtype_name(dtype));
    return 0;
}

int mu__rows_check(const struct variable *v, const struct mu__store_write *write,
                   mu_error *ret_error)
{
    uint64_t each = MU__ROW_NUMBER_BYTES + mu__shape_row_bytes(&v->shape);
    int rv;

    if (write->data.size == 0 || write->data.size % each != 0 || write->offset != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes at %" PRIu64
                            " are not a list of rows of variable %s",
                            write->data.size, write->offset, v->name);
    rv = check_numbers(v, write->data.data, rows_of_write(v, write), ret_error);
    return rv == 0 && mu__write_updates_rows(write->operation)
               ? check_row_update(v, write, ret_error)
               : rv;
}

/* ---- Writing ---- */

int mu__rows_assign(struct mu__variable_store *store, struct variable *v,
                    const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    (void)ret_error;
    memcpy(v->data + write->offset, write->data.data, write->data.size);
    return 0;
}

/* What an operation writes to one row. */
typedef void (*row_fn)(uint32_t operation, int dtype, uint8_t *row,
                       const uint8_t *content, size_t bytes);

static void replace_row(uint32_t operation, int dtype, uint8_t *row,
                        const uint8_t *content, size_t bytes)
{
    (void)operation;
    (void)dtype;
    memcpy(row, content, bytes);
}

static void add_to_row(uint32_t operation, int dtype, uint8_t *row,
                       const uint8_t *content, size_t bytes)
{
    (void)operation;
    mu__optimizer_add(dtype, row, content, bytes);
}

static void update_row(uint32_t operation, int dtype, uint8_t *row,
                       const uint8_t *content, size_t bytes)
{
    mu__row_update(operation, dtype, row, content, bytes / mu_dtype_bytes(dtype));
}

static int scatter_to_rows(struct variable *v, const struct mu__store_write *write,
                           row_fn put)
{
    uint64_t row_bytes = mu__shape_row_bytes(&v->shape);
    uint64_t count = rows_of_write(v, write);
    const uint8_t *numbers = write->data.data;
    const uint8_t *content = numbers + count * MU__ROW_NUMBER_BYTES;

    for (uint64_t i = 0; i < count; i++, content += row_bytes)
        put(write->operation, (int)v->shape.dtype,
            v->data + mu__row_number(numbers, i) * row_bytes, content, (size_t)row_bytes);
    return 0;
}

int mu__rows_scatter_update(struct mu__variable_store *store, struct variable *v,
                            const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    (void)ret_error;
    return scatter_to_rows(v, write, replace_row);
}

int mu__rows_scatter_add(struct mu__variable_store *store, struct variable *v,
                         const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    (void)ret_error;
    return scatter_to_rows(v, write, add_to_row);
}

int mu__rows_scatter_update_by(struct mu__variable_store *store, struct variable *v,
                               const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    (void)ret_error;
    return scatter_to_rows(v, write, update_row);
}

/* ---- Reading ---- */

static int check_row_read(const struct variable *v,
                          const struct mu__store_read_rows *request, mu_error *ret_error)
{
    uint64_t row_bytes = mu__shape_row_bytes(&v->shape);
    uint64_t count = request->numbers.size / MU__ROW_NUMBER_BYTES;

    if (v->stage != READY)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "variable %s has no initial content yet", v->name);
    if (request->numbers.size % MU__ROW_NUMBER_BYTES != 0 ||
        request->size % row_bytes != 0 || request->size / row_bytes != count)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes of rows by %" PRIu32 " bytes of numbers "
                            "of variable %s",
                            request->size, request->numbers.size, v->name);
    return check_numbers(v, request->numbers.data, count, ret_error);
}

int mu__store_read_rows(struct mu__variable_store *store,
                        const struct mu__store_read_rows *request, mu_error *ret_error,
                        void *out, uint64_t *ret_version)
{
    struct variable *v = mu__shard_find_by_id(store, request->id, ret_error);
    uint64_t row_bytes;
    uint8_t *to = out;
    int rv;

    if (v == NULL)
        return -MU_ENOTFOUND;
    rv = check_row_read(v, request, ret_error);
    if (rv != 0)
        return rv;
    row_bytes = mu__shape_row_bytes(&v->shape);
    for (uint64_t i = 0; i < request->size / row_bytes; i++, to += row_bytes)
        memcpy(to, v->data + mu__row_number(request->numbers.data, i) * row_bytes,
               (size_t)row_bytes);
    v->reads++;
    v->bytes_read += request->size;
    *ret_version = v->version;
    return 0;
}

/* ---- Comparing: the first row of a list stands for all ---- */

uint64_t mu__store_sample_write(const struct mu__variable_store *store,
                                const struct mu__store_write *write)
{
    const struct variable *v = mu__map_get(&store->by_id, write->id);
    uint64_t row;

    if (v == NULL || !mu__rows_are_listed(write->operation) ||
        mu__rows_check(v, write, NULL) != 0)
        return mu__store_sample(store, write->id, write->offset, mu__write_bytes(write));
    row = mu__row_number(write->data.data, 0) * mu__shape_row_bytes(&v->shape);
    return mu__store_sample(store, write->id, row, mu__shape_row_bytes(&v->shape));
}
