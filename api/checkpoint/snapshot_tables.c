#include "api/snapshot_state.h"

#include "actors/ps/tables/set_copies.h"

#include <stdlib.h>
#include <string.h>

static int check_reader_tables(const struct mu__snapshot_reader *reader,
                               mu_error *ret_error)
{
    for (size_t i = 0; i < reader->tables_count; i++) {
        const mu_table *table = reader->tables[i];

        if (table->node != reader->node)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "table %s is of another node than others", table->name);
        for (size_t k = 0; k < i; k++)
            if (reader->tables[k]->id == table->id)
                return mu_error_set(ret_error, -MU_EINVALID, "table %s appears twice",
                                    table->name);
    }
    return 0;
}

int mu__reader_add_tables(struct mu__snapshot_reader *reader, mu_error *ret_error)
{
    size_t count = reader->tables_count;
    int rv = check_reader_tables(reader, ret_error);

    if (rv != 0 || count == 0)
        return rv;
    reader->table_ids = malloc(count * MU__SET_COPIES_ID_BYTES);
    if (reader->table_ids == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a snapshot");
    for (size_t i = 0; i < count; i++)
        memcpy(reader->table_ids + i * MU__SET_COPIES_ID_BYTES, &reader->tables[i]->id,
               MU__SET_COPIES_ID_BYTES);
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct reader_partition *p = &reader->partitions[i];

        p->sizes = calloc(count, MU__SET_COPIES_SIZE_BYTES);
        p->rows = calloc(count, sizeof *p->rows);
        if (p->sizes == NULL || p->rows == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a snapshot");
    }
    return 0;
}

struct mu__set_copies_size mu__reader_size(const struct reader_partition *p, size_t table)
{
    return mu__set_copies_size_at(p->sizes, table);
}

uint64_t mu__reader_rows_bytes(const struct mu__snapshot_reader *reader,
                               const struct reader_partition *p, size_t table)
{
    return (uint64_t)mu__reader_size(p, table).rows *
           mu__table_row_bytes(&reader->tables[table]->form);
}

uint32_t mu__reader_rows_piece(const struct mu__snapshot_reader *reader, size_t table)
{
    uint32_t row_bytes = mu__table_row_bytes(&reader->tables[table]->form);

    return PIECE_BYTES / row_bytes * row_bytes;
}

void mu__reader_settle_rows(struct mu__snapshot_reader *reader)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        for (size_t k = 0; k < reader->tables_count; k++)
            reader->partitions[i].rows[k] =
                mu__reader_size(&reader->partitions[i], k).rows;
}

bool mu__reader_is_settled(const struct mu__snapshot_reader *reader,
                           const struct reader_partition *p)
{
    for (size_t k = 0; k < reader->tables_count; k++)
        if (p->rows[k] != mu__reader_size(p, k).rows)
            return false;
    return true;
}

uint32_t mu__snapshot_rows(const struct mu__snapshot_reader *reader, size_t table,
                           uint32_t partition)
{
    return mu__reader_size(&reader->partitions[partition], table).rows;
}

/* ---- Tables alone ---- */

int mu__snapshot_read_table(mu_table *table, int64_t timeout_ms,
                            const struct mu__snapshot_target *target, mu_error *ret_error,
                            struct mu__snapshot_reader **ret_reader)
{
    const struct mu__snapshot_sources sources = {.tables = &table, .tables_count = 1};

    return mu__snapshot_read_all(&sources, timeout_ms, target, ret_error, ret_reader);
}

uint64_t mu__snapshot_table_bytes(const struct mu__snapshot_reader *reader, size_t table)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        bytes += mu__reader_size(&reader->partitions[i], table).bytes;
    return bytes;
}
