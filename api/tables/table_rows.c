/* Rows that are set: as they are on servers, with pushes and slots, or their numbers. */
#include "api/tables/opened_table.h"

#include "actors/messages.h"
#include "actors/variables/variables.h"
#include "node/deadline.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

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

/* Rows to be written, one behind the other: the id, and more. */
struct written_rows {
    const mu_table *table;
    uint32_t operation;
    const uint64_t *ids;
    const uint8_t *rows; /* without the ids, unless they are copies */
    uint32_t count;
    uint32_t bytes; /* of a row of those */
    bool has_ids;   /* they are copies */
};

static uint32_t gather_row(const struct written_rows *written, uint32_t i, uint8_t *to)
{
    uint32_t head = written->has_ids ? 0 : sizeof(uint64_t);

    memcpy(to, &written->ids[i], head);
    memcpy(to + head, written->rows + (size_t)i * written->bytes, written->bytes);
    return head + written->bytes;
}

/* The rows of a partition, in pieces that one message holds; `gathered` has room for one
 * of them. */
static int add_rows_of(struct mu__effects *effects, const struct written_rows *written,
                       const struct mu__sorted_ids *sorted, uint32_t partition,
                       uint8_t *gathered)
{
    uint32_t end = sorted->ends[partition + 1];
    struct mu__effect write = {.partition = partition,
                               .operation = written->operation,
                               .variable = written->table->id};
    int rv = 0;

    for (uint32_t i = sorted->ends[partition]; rv == 0 && i < end; i++) {
        write.size += gather_row(written, sorted->positions[i], gathered + write.size);
        if (i + 1 < end &&
            write.size + sizeof(uint64_t) + written->bytes <= MU__PIECE_BYTES_MAX)
            continue;
        rv = mu__effects_add(effects, &write, gathered);
        write.size = 0;
    }
    return rv;
}

static int add_rows(struct mu__effects *effects, const struct written_rows *written)
{
    uint8_t *gathered = malloc(MU__PIECE_BYTES_MAX);
    struct mu__sorted_ids sorted = {.count = 0};
    int rv = gathered == NULL ? -MU_ENOMEM : 0;

    if (rv == 0)
        rv = mu__ids_sort(written->ids, written->count, &sorted);
    if (rv == 0) {
        for (uint32_t p = sorted.first; rv == 0 && p <= sorted.last; p++)
            rv = add_rows_of(effects, written, &sorted, p, gathered);
        mu__sorted_ids_done(&sorted);
    }
    free(gathered);
    return rv;
}

static int add_copies(struct mu__effects *effects, const mu_table *table,
                      const uint8_t *copies, uint32_t count)
{
    uint32_t row_bytes = mu__table_row_bytes(&table->form);
    uint64_t *ids = malloc((size_t)count * sizeof *ids + 1);
    const struct written_rows written = {
        table, MU__WRITE_TABLE_ROWS, ids, copies, count, row_bytes, true};
    int rv;

    if (ids == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        memcpy(&ids[i], copies + (size_t)i * row_bytes, sizeof ids[i]);
    rv = add_rows(effects, &written);
    free(ids);
    return rv;
}

int mu__table_set_rows(const mu_table *table, const void *copies, uint32_t count,
                       uint64_t deadline_ns, mu_error *ret_error)
{
    struct mu__table_call call =
        mu__table_make_call(table, MU__TABLE_WRITE_CALL, deadline_ns);
    int rv = add_copies(&call.run.effects, table, copies, count);

    return mu__table_send(table, &call, rv, ret_error);
}

/* ---- Inserts ---- */

static int add_insert(struct mu__effects *effects, const mu_table *table,
                      const uint64_t *ids, const float *rows, size_t count)
{
    const struct written_rows written = {table,
                                         MU__WRITE_TABLE_INSERT,
                                         ids,
                                         (const uint8_t *)rows,
                                         (uint32_t)count,
                                         table->form.dim * (uint32_t)sizeof(float),
                                         false};

    return add_rows(effects, &written);
}

static int check_insert(const mu_table *table, size_t count, mu_error *ret_error)
{
    if (count <= INT32_MAX)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "table %s: %zu rows: expected at most 2^31", table->name, count);
}

int mu_table_insert(mu_table *table, const uint64_t *ids, const float *rows, size_t count,
                    int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids, rows);

    struct mu__table_call call =
        mu__table_make_call(table, MU__TABLE_WRITE_CALL, mu__deadline_in(timeout_ms));
    int rv = check_insert(table, count, ret_error);

    if (rv != 0 || count == 0)
        return rv;
    rv = add_insert(&call.run.effects, table, ids, rows, count);
    return mu__table_send(table, &call, rv, ret_error);
}

/* All of it, or nothing. */
int mu_run_table_insert(mu_run *run, mu_table *table, const uint64_t *ids,
                        const float *rows, size_t count)
{
    MU__REQUIRE(NULL, run);

    struct mu__effect *last = run->effects.last;
    uint64_t before = run->effects.bytes;
    mu_error error;
    int rv;

    if (table == NULL || ids == NULL || rows == NULL)
        return mu_run_fail(run, -MU_EINVALID, "an insert without table, ids or rows");
    if (table->node != run->node)
        return mu_run_fail(run, -MU_EINVALID,
                           "table %s was opened on another node than the run's",
                           table->name);
    rv = check_insert(table, count, &error);
    if (rv != 0)
        return mu_run_fail(run, rv, "%s", error.message);
    rv = count == 0 ? 0 : add_insert(&run->effects, table, ids, rows, count);
    if (rv == 0)
        return 0;
    mu__effects_cut(&run->effects, last, before);
    return mu_run_fail(run, rv, "table %s: %zu rows: %s", table->name, count,
                       mu_strerror(rv));
}
