/* What a table has: its size, and all rows. */
#include "api/checkpoint/snapshot_reader.h"

#include "actors/ps/tables/copies/table_columns.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>

int mu_table_get_stats(mu_table *table, int64_t timeout_ms, mu_error *ret_error,
                       mu_table_stats *ret_stats)
{
    MU__REQUIRE(ret_error, table, ret_stats);

    const struct mu__snapshot_target target = {.only_sizes = true};
    struct mu__snapshot_reader *reader;
    mu_table_stats stats = {.rows = 0};
    int rv = mu__snapshot_read_table(table, timeout_ms, &target, ret_error, &reader);

    if (rv != 0)
        return rv;
    for (uint32_t p = 0; p < MU__PARTITIONS; p++) {
        struct mu__set_copies_size size = mu__snapshot_size(reader, 0, p);

        stats.rows += size.rows;
        stats.dropped += size.dropped;
        stats.refused += size.refused;
        stats.expired += size.expired;
        stats.evicted += size.evicted;
    }
    stats.bytes = mu__snapshot_table_bytes(reader, 0);
    mu__snapshot_reader_free(reader);
    *ret_stats = stats;
    return 0;
}

/* ---- Export ---- */

struct exporting {
    const mu_table *table;
    mu_table_export_fn function;
    void *user;
    struct mu__table_column columns[MU__TABLE_COLUMNS_MAX];
    int code; /* that the function returned */
};

static int end_export(const struct exporting *exporting, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ECANCELLED,
                        "table %s: the function that takes its rows returned %d",
                        exporting->table->name, exporting->code);
}

/* The columns of ids and of the rows, which has the table's own name. */
static int export_columns(struct exporting *exporting, const void *copies, uint32_t count,
                          mu_error *ret_error)
{
    uint32_t row_bytes = mu__table_row_bytes(&exporting->table->form);
    uint64_t *ids = malloc((size_t)count * sizeof *ids);
    float *rows = malloc((size_t)count * exporting->table->form.dim * sizeof *rows);
    int rv = ids == NULL || rows == NULL
                 ? mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a table")
                 : 0;

    if (rv == 0) {
        mu__table_column_take(&exporting->columns[MU__TABLE_COLUMN_IDS], copies,
                              row_bytes, count, ids);
        mu__table_rows_take(&exporting->table->form, copies, count, rows);
        exporting->code = exporting->function(exporting->user, ids, rows, count);
        if (exporting->code != 0)
            rv = end_export(exporting, ret_error);
    }
    free(ids);
    free(rows);
    return rv;
}

static int export_rows(void *owner, size_t table, uint32_t partition, uint32_t first,
                       const void *copies, uint32_t count, mu_error *ret_error)
{
    (void)table;
    (void)partition;
    (void)first;
    return export_columns(owner, copies, count, ret_error);
}

int mu_table_export(mu_table *table, mu_table_export_fn function, void *user,
                    int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, function);

    struct exporting exporting = {.table = table, .function = function, .user = user};
    const struct mu__snapshot_target target = {.put_rows = export_rows,
                                               .owner = &exporting};
    struct mu__snapshot_reader *reader;
    int rv;

    (void)mu__table_columns(&table->form, exporting.columns);
    rv = mu__snapshot_read_table(table, timeout_ms, &target, ret_error, &reader);
    if (rv == 0)
        mu__snapshot_reader_free(reader);
    return exporting.code != 0 ? exporting.code : rv;
}
