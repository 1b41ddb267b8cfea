/* Rows of tables as they are on the servers, with pushes and slots: set, or deleted. */
#include "api/tables/opened_table.h"

#include "actors/messages.h"
#include "actors/variables/variables.h"

#include <stdlib.h>
#include <string.h>

int mu__table_clear_all(const mu_table *table, uint64_t deadline_ns, mu_error *ret_error)
{
    struct mu__table_call call =
        mu__table_make_call(table, MU__TABLE_WRITE_CALL, deadline_ns);
    struct mu__effect write = {
        .operation = MU__WRITE_TABLE_CLEAR, .variable = table->id, .size = 1};
    int rv = 0;

    for (write.partition = 0; rv == 0 && write.partition < MU__PARTITIONS;
         write.partition++)
        rv = mu__effects_add(&call.run.effects, &write, "");
    return mu__table_send(table, &call, rv, ret_error);
}

/* ---- Rows ---- */

static uint64_t id_of_copy(const uint8_t *copy)
{
    uint64_t id;

    memcpy(&id, copy, sizeof id);
    return id;
}

/* The rows of a partition, in pieces that one message holds; `gathered` has room for one
 * of them. */
static int add_rows_of(struct mu__effects *effects, const mu_table *table,
                       const struct mu__sorted_ids *sorted, uint32_t partition,
                       const uint8_t *copies, uint8_t *gathered)
{
    uint32_t row_bytes = mu__table_row_bytes(&table->form);
    struct mu__effect write = {
        .partition = partition, .operation = MU__WRITE_TABLE_ROWS, .variable = table->id};
    int rv = 0;

    for (uint32_t i = sorted->ends[partition]; rv == 0 && i < sorted->ends[partition + 1];
         i++) {
        memcpy(gathered + write.size, copies + (size_t)sorted->positions[i] * row_bytes,
               row_bytes);
        write.size += row_bytes;
        if (i + 1 < sorted->ends[partition + 1] &&
            write.size + row_bytes <= MU__PIECE_BYTES_MAX)
            continue;
        rv = mu__effects_add(effects, &write, gathered);
        write.size = 0;
    }
    return rv;
}

static int add_rows(struct mu__effects *effects, const mu_table *table,
                    const uint8_t *copies, const struct mu__sorted_ids *sorted)
{
    uint8_t *gathered = malloc(MU__PIECE_BYTES_MAX);
    int rv = gathered == NULL ? -MU_ENOMEM : 0;

    for (uint32_t p = 0; rv == 0 && p < MU__PARTITIONS; p++)
        rv = add_rows_of(effects, table, sorted, p, copies, gathered);
    free(gathered);
    return rv;
}

static int sort_copies(const mu_table *table, const uint8_t *copies, uint32_t count,
                       struct mu__sorted_ids *ret_sorted)
{
    uint32_t row_bytes = mu__table_row_bytes(&table->form);
    uint64_t *ids = malloc((size_t)count * sizeof *ids + 1);
    int rv;

    if (ids == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = id_of_copy(copies + (size_t)i * row_bytes);
    rv = mu__ids_sort(ids, count, ret_sorted);
    free(ids);
    return rv;
}

int mu__table_set_rows(const mu_table *table, const void *copies, uint32_t count,
                       uint64_t deadline_ns, mu_error *ret_error)
{
    struct mu__table_call call =
        mu__table_make_call(table, MU__TABLE_WRITE_CALL, deadline_ns);
    struct mu__sorted_ids sorted;
    int rv = sort_copies(table, copies, count, &sorted);

    if (rv == 0) {
        rv = add_rows(&call.run.effects, table, copies, &sorted);
        mu__sorted_ids_done(&sorted);
    }
    return mu__table_send(table, &call, rv, ret_error);
}
