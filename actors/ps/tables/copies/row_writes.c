#include "actors/ps/tables/copies/row_writes.h"

#include "actors/messages.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of one row in a write. */
static uint32_t written_bytes(const struct mu__named_table *table, uint32_t operation)
{
    return operation == MU__WRITE_TABLE_ROWS
               ? table->part.row_bytes
               : (uint32_t)(sizeof(uint64_t) + table->part.form.dim * sizeof(float));
}

static uint64_t written_id(const uint8_t *row)
{
    uint64_t id;

    memcpy(&id, row, sizeof id);
    return id;
}

static int check_written_rows(struct mu__named_table *table, uint32_t each,
                              struct mu__view rows, mu_error *ret_error)
{
    int rv = 0;

    if (rows.size % each != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no rows of table %s, with %" PRIu32
                            " bytes each",
                            rows.size, table->name, each);
    for (uint32_t at = 0; rv == 0 && at < rows.size; at += each)
        rv = mu__table_reserve_row(
            &table->part, written_id((const uint8_t *)rows.data + at), ret_error);
    return rv;
}

int mu__row_write_check(struct mu__named_table *table,
                        const struct mu__table_write *write, mu_error *ret_error)
{
    if (table == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "the server does not have the table");
    if (write->operation == MU__WRITE_TABLE_CLEAR)
        return 0;
    return check_written_rows(table, written_bytes(table, write->operation), write->data,
                              ret_error);
}

static uint64_t apply_row(struct mu__named_table *table, uint32_t operation,
                          const uint8_t *row)
{
    if (operation == MU__WRITE_TABLE_ROWS)
        return mu__table_set_row(&table->part, row);
    return mu__table_insert(&table->part, written_id(row), row + sizeof(uint64_t));
}

uint64_t mu__row_write_apply(struct mu__named_table *table,
                             const struct mu__table_write *write)
{
    uint32_t each = written_bytes(table, write->operation);
    uint64_t sum = 0;

    if (write->operation == MU__WRITE_TABLE_CLEAR) {
        mu__table_clear(&table->part);
        return 0;
    }
    for (uint32_t at = 0; at < write->data.size; at += each)
        sum += apply_row(table, write->operation, (const uint8_t *)write->data.data + at);
    return sum;
}
