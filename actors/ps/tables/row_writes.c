#include "actors/ps/tables/row_writes.h"

#include "actors/messages.h"

#include <inttypes.h>

static int check_copied_rows(struct mu__named_table *table, struct mu__view rows,
                             mu_error *ret_error)
{
    uint32_t row_bytes = table->part.row_bytes;
    int rv = 0;

    if (rows.size % row_bytes != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no rows of table %s, with %" PRIu32
                            " bytes each",
                            rows.size, table->name, row_bytes);
    for (uint32_t at = 0; rv == 0 && at < rows.size; at += row_bytes)
        rv = mu__table_reserve(&table->part, (const uint8_t *)rows.data + at, 1,
                               ret_error);
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
    return check_copied_rows(table, write->data, ret_error);
}

uint64_t mu__row_write_apply(struct mu__named_table *table,
                             const struct mu__table_write *write)
{
    uint64_t sum = 0;

    if (write->operation == MU__WRITE_TABLE_CLEAR) {
        mu__table_clear(&table->part);
        return 0;
    }
    for (uint32_t at = 0; at < write->data.size; at += table->part.row_bytes)
        sum += mu__table_set_row(&table->part, (const uint8_t *)write->data.data + at);
    return sum;
}
