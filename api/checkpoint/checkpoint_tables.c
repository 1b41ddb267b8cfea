#include "api/checkpoint/checkpoint_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Saving ---- */

/* Where rows, or ids that were deleted, of a partition go. */
struct saved_span {
    uint64_t first;
    uint32_t count;
};

struct saved_table {
    const mu_table *table;
    struct mu__table_column columns[MU__SAVED_COLUMNS];
    unsigned columns_count;
    uint64_t rows;
    uint64_t deleted;
    struct saved_span rows_of[MU__PARTITIONS];
    struct saved_span deleted_of[MU__PARTITIONS];
    uint8_t whole[MU__MANIFEST_WHOLE_BYTES];
    uint32_t sums[MU__PARTITIONS][MU__SAVED_COLUMNS]; /* of what was put of each */
};

struct mu__saved_tables {
    struct mu__ckpt_writer *writer;
    void *numbers; /* of one column */
    size_t numbers_bytes;
    size_t count;
    struct saved_table tables[];
};

static int no_memory_for_tables(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM,
                        "no memory for the tables of a checkpoint");
}

_Static_assert(MU__MANIFEST_WHOLE_BYTES * 8 == (int)MU__PARTITIONS, "a bit for each");

static void plan_table(struct saved_table *saved, const mu_table *table,
                       const struct mu__snapshot_reader *reader, size_t i)
{
    saved->table = table;
    saved->columns_count = mu__table_columns(&table->form, saved->columns);
    saved->columns[MU__SAVED_DELETED] = mu__ckpt_deleted_column;
    for (uint32_t p = 0; p < MU__PARTITIONS; p++) {
        struct mu__set_copies_size size = mu__snapshot_size(reader, i, p);

        saved->rows_of[p] = (struct saved_span){saved->rows, size.rows};
        saved->deleted_of[p] = (struct saved_span){saved->deleted, size.deleted};
        saved->rows += size.rows;
        saved->deleted += size.deleted;
        if (size.is_whole)
            saved->whole[p / 8] |= (uint8_t)(1U << p % 8);
    }
}

static int note_table(struct mu__ckpt_writer *writer, const struct saved_table *saved,
                      mu_error *ret_error)
{
    const mu_table *table = saved->table;
    const struct mu__table_open open = {.mode = MU__TABLE_RECREATE,
                                        .form = table->form,
                                        .name = mu__view_str(table->name)};
    struct mu__manifest_table noted = {.rows = saved->rows, .deleted = saved->deleted};

    (void)snprintf(noted.name, sizeof noted.name, "%s", table->name);
    memcpy(noted.whole, saved->whole, sizeof noted.whole);
    noted.form_bytes = mu__table_open_pack(&open, noted.form);
    return mu__ckpt_writer_add_table(writer, &noted, ret_error);
}

int mu__saved_tables_new(struct mu__ckpt_writer *writer,
                         const struct mu__snapshot_sources *sources,
                         const struct mu__snapshot_reader *reader, mu_error *ret_error,
                         struct mu__saved_tables **ret_saved)
{
    size_t count = sources->tables_count;
    struct mu__saved_tables *saved =
        calloc(1, sizeof *saved + count * sizeof saved->tables[0]);
    int rv = 0;

    if (saved == NULL)
        return no_memory_for_tables(ret_error);
    saved->writer = writer;
    saved->count = count;
    for (size_t i = 0; rv == 0 && i < count; i++) {
        plan_table(&saved->tables[i], sources->tables[i], reader, i);
        rv = note_table(writer, &saved->tables[i], ret_error);
    }
    if (rv == 0)
        *ret_saved = saved;
    else
        mu__saved_tables_free(saved);
    return rv;
}

void mu__saved_tables_free(struct mu__saved_tables *saved)
{
    if (saved == NULL)
        return;
    free(saved->numbers);
    free(saved);
}

/* Room for a column of so many rows. */
static int reserve_numbers(struct mu__saved_tables *saved, size_t bytes,
                           mu_error *ret_error)
{
    void *numbers;

    if (bytes <= saved->numbers_bytes)
        return 0;
    numbers = realloc(saved->numbers, bytes);
    if (numbers == NULL)
        return no_memory_for_tables(ret_error);
    saved->numbers = numbers;
    saved->numbers_bytes = bytes;
    return 0;
}

/* What is in saved->numbers, from entry `at` of a column on. */
static int put_column(struct mu__saved_tables *saved, struct saved_table *table,
                      unsigned column, size_t tensor, uint32_t partition, uint64_t at,
                      bool is_first, size_t bytes, mu_error *ret_error)
{
    uint32_t *sum = &table->sums[partition][column];

    *sum = mu__crc32c_add(mu__ckpt_writer_crc(saved->writer), is_first ? 0 : *sum,
                          saved->numbers, bytes);
    return mu__ckpt_writer_write_at(saved->writer, tensor,
                                    at * mu__table_column_bytes(&table->columns[column]),
                                    saved->numbers, bytes, ret_error);
}

int mu__saved_tables_put(struct mu__saved_tables *saved, size_t i, const size_t *columns,
                         uint32_t partition, uint32_t first, const void *copies,
                         uint32_t count, mu_error *ret_error)
{
    struct saved_table *table = &saved->tables[i];
    uint32_t row_bytes = mu__table_row_bytes(&table->table->form);
    uint64_t at = table->rows_of[partition].first + first;
    int rv = 0;

    for (unsigned k = 0; rv == 0 && k < table->columns_count; k++) {
        size_t bytes = (size_t)count * mu__table_column_bytes(&table->columns[k]);

        rv = reserve_numbers(saved, bytes, ret_error);
        if (rv != 0)
            return rv;
        mu__table_column_take(&table->columns[k], copies, row_bytes, count,
                              saved->numbers);
        rv = put_column(saved, table, k, columns[k], partition, at, first == 0, bytes,
                        ret_error);
    }
    return rv;
}

int mu__saved_tables_put_deleted(struct mu__saved_tables *saved, size_t i, size_t column,
                                 uint32_t partition, const void *ids, uint32_t count,
                                 mu_error *ret_error)
{
    struct saved_table *table = &saved->tables[i];
    size_t bytes = (size_t)count * sizeof(uint64_t);
    int rv = reserve_numbers(saved, bytes, ret_error);

    if (rv != 0)
        return rv;
    memcpy(saved->numbers, ids, bytes);
    return put_column(saved, table, MU__SAVED_DELETED, column, partition,
                      table->deleted_of[partition].first, true, bytes, ret_error);
}

uint32_t mu__saved_tables_sum(const struct mu__saved_tables *saved, size_t i,
                              unsigned column)
{
    const struct saved_table *table = &saved->tables[i];
    bool is_deleted = column == (unsigned)MU__SAVED_DELETED;
    uint64_t each = mu__table_column_bytes(&table->columns[column]);
    uint64_t all = is_deleted ? table->deleted : table->rows;
    uint32_t sum = 0;

    for (uint32_t p = 0; p < MU__PARTITIONS; p++) {
        struct saved_span span = is_deleted ? table->deleted_of[p] : table->rows_of[p];

        if (span.count > 0)
            sum ^= mu__crc32c_shift(table->sums[p][column],
                                    (all - span.first - span.count) * each);
    }
    return sum;
}

/* ---- Restoring ---- */

enum { RESTORE_BYTES = 4 << 20 }; /* that are read and sent together */

bool mu__ckpt_is_variable(const struct mu__ckpt_reader *reader,
                          const struct mu__manifest_variable *tensor)
{
    return !mu__ckpt_is_slot(reader, tensor) && !mu__ckpt_is_column(reader, tensor);
}

int mu__ckpt_refuse_increment(const struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "\"%.200s\" is an increment of %.100s: it has only what has "
                        "changed since, for a mu_table_reader",
                        reader->path, reader->manifest.base_name);
}

int mu__ckpt_check_tables(const struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    struct mu__ckpt_table table;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < reader->manifest.tables_count; i++)
        rv = mu__ckpt_table_begin(reader, &reader->manifest.tables[i], ret_error, &table);
    return rv;
}

static int restore_rows(const mu_table *table, const struct mu__ckpt_reader *reader,
                        struct mu__ckpt_table *from, uint64_t deadline_ns,
                        mu_error *ret_error)
{
    uint32_t most = RESTORE_BYTES / mu__table_row_bytes(&from->form);
    void *copies = malloc(RESTORE_BYTES);
    uint32_t count = 1;
    int rv = copies == NULL ? no_memory_for_tables(ret_error) : 0;

    while (rv == 0 && count > 0) {
        rv = mu__ckpt_table_next(reader, from, most, copies, ret_error, &count);
        if (rv == 0 && count > 0)
            rv = mu__table_set_rows(table, copies, count, deadline_ns, ret_error);
    }
    free(copies);
    return rv;
}

int mu__ckpt_restore_table(mu_node *node, const struct mu__ckpt_reader *reader,
                           const struct mu__manifest_table *saved, uint64_t deadline_ns,
                           mu_error *ret_error)
{
    struct mu__ckpt_table from;
    mu_table *table = NULL;
    int rv = mu__ckpt_table_begin(reader, saved, ret_error, &from);

    if (rv == 0)
        rv = mu__table_open_form(node, saved->name, &from.form, MU_TABLE_RECREATE,
                                 deadline_ns, ret_error, &table);
    if (rv == 0)
        rv = mu__table_clear_all(table, deadline_ns, ret_error);
    if (rv == 0)
        rv = restore_rows(table, reader, &from, deadline_ns, ret_error);
    mu_table_close(table);
    return rv;
}

/* ---- Looking inside ---- */

static mu_value *make_initial_value(const struct mu__initial *initial)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    if (rv == 0)
        rv = mu_value_append(list, mu_value_float(initial->a));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_float(initial->b));
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

static mu_value *describe_table(const struct mu__ckpt_table *table)
{
    const struct mu__table_form *form = &table->form;
    const char *rule = mu__rule_kind(form->rule.kind)->name;
    mu_value *map = mu_value_map();
    int rv = map == NULL ? -MU_ENOMEM : 0;

    if (rv == 0)
        rv = mu_value_set(map, "name", mu_value_string(table->saved->name));
    if (rv == 0)
        rv = mu_value_set(map, "dim", mu_value_int(form->dim));
    if (rv == 0)
        rv = mu_value_set(map, "initializer",
                          mu_value_string(mu__initial_name(form->initial.kind)));
    if (rv == 0)
        rv = mu_value_set(map, "initial", make_initial_value(&form->initial));
    if (rv == 0)
        rv = mu_value_set(map, "optimizer", mu_value_string(rule));
    if (rv == 0)
        rv = mu_value_set(map, "rows", mu_value_int((int64_t)table->saved->rows));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

mu_value *mu__ckpt_describe_tables(const struct mu__ckpt_reader *reader)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (size_t i = 0; rv == 0 && i < reader->manifest.tables_count; i++) {
        struct mu__ckpt_table table;

        rv = mu__ckpt_table_begin(reader, &reader->manifest.tables[i], NULL, &table);
        if (rv == 0)
            rv = mu_value_append(list, describe_table(&table));
    }
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}
