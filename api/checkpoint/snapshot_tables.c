#include "api/snapshot_state.h"

#include "actors/ps/tables/copies/set_copies.h"

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
        p->settled = calloc(count, sizeof *p->settled);
        if (p->sizes == NULL || p->settled == NULL)
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

uint64_t mu__reader_table_bytes(const struct mu__snapshot_reader *reader,
                                const struct reader_partition *p, size_t table)
{
    return mu__reader_rows_bytes(reader, p, table) +
           (uint64_t)mu__reader_size(p, table).deleted * sizeof(uint64_t);
}

_Static_assert(MU__MARK_DELETED_MAX * sizeof(uint64_t) <= REQUEST_BYTES,
               "all ids that were deleted are one request");

uint32_t mu__reader_table_piece(const struct mu__snapshot_reader *reader,
                                const struct reader_partition *p, size_t table,
                                uint64_t offset)
{
    uint32_t row_bytes = mu__table_row_bytes(&reader->tables[table]->form);
    uint64_t rows_bytes = mu__reader_rows_bytes(reader, p, table);
    uint32_t most = PIECE_BYTES / row_bytes * row_bytes;

    if (offset >= rows_bytes)
        return (uint32_t)(mu__reader_table_bytes(reader, p, table) - offset);
    return rows_bytes - offset < most ? (uint32_t)(rows_bytes - offset) : most;
}

uint32_t mu__reader_table_request(const struct mu__snapshot_reader *reader, size_t table)
{
    uint32_t row_bytes = mu__table_row_bytes(&reader->tables[table]->form);

    return REQUEST_BYTES / row_bytes * row_bytes;
}

void mu__reader_settle_rows(struct mu__snapshot_reader *reader)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        for (size_t k = 0; k < reader->tables_count; k++)
            reader->partitions[i].settled[k] = mu__reader_size(&reader->partitions[i], k);
}

bool mu__reader_is_settled(const struct mu__snapshot_reader *reader,
                           const struct reader_partition *p)
{
    for (size_t k = 0; k < reader->tables_count; k++) {
        struct mu__set_copies_size size = mu__reader_size(p, k);

        if (p->settled[k].rows != size.rows || p->settled[k].deleted != size.deleted ||
            p->settled[k].is_whole != size.is_whole)
            return false;
    }
    return true;
}

struct mu__set_copies_size mu__snapshot_size(const struct mu__snapshot_reader *reader,
                                             size_t table, uint32_t partition)
{
    return mu__reader_size(&reader->partitions[partition], table);
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
