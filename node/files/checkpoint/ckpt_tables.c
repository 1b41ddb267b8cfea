#include "node/files/checkpoint/ckpt_tables.h"

#include "muster/value.h"

#include "actors/ps/tables/table_writes.h"
#include "node/files/checkpoint/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct mu__table_column mu__ckpt_deleted_column = {
    .name = "deleted", .dtype = MU_I64, .bytes = sizeof(uint64_t)};

bool mu__ckpt_column_name(const char *table, const struct mu__table_column *column,
                          char ret_name[MU__MANIFEST_NAME_MAX + 1])
{
    int length = snprintf(ret_name, MU__MANIFEST_NAME_MAX + 1, "%s%s%s", table,
                          column->name[0] == '\0' ? "" : "#", column->name);

    return length > 0 && length <= MU__MANIFEST_NAME_MAX;
}

static int compare_saved_tables(const void *a, const void *b)
{
    return strcmp(((const struct mu__manifest_table *)a)->name,
                  ((const struct mu__manifest_table *)b)->name);
}

const struct mu__manifest_table *mu__ckpt_find_table(const struct mu__ckpt_reader *reader,
                                                     const char *name)
{
    struct mu__manifest_table expected;

    if (strlen(name) > MU__MANIFEST_NAME_MAX || reader->manifest.tables_count == 0)
        return NULL;
    (void)snprintf(expected.name, sizeof expected.name, "%s", name);
    return bsearch(&expected, reader->manifest.tables, reader->manifest.tables_count,
                   sizeof expected, compare_saved_tables);
}

/* -MU_EDATALOSS. */
static int unpack_form(const struct mu__ckpt_reader *reader,
                       const struct mu__manifest_table *saved, mu_error *ret_error,
                       struct mu__table_form *ret_form)
{
    struct mu__table_open open;
    mu_error error;
    const struct mu__view packed = {saved->form, saved->form_bytes};
    int rv = mu__table_open_unpack(packed, &open, &error);

    if (rv != 0 || open.name.size != strlen(saved->name) ||
        memcmp(open.name.data, saved->name, open.name.size) != 0)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "\"%.200s\": the form of table \"%.100s\" is malformed",
                            reader->path, saved->name);
    *ret_form = open.form;
    return 0;
}

bool mu__ckpt_is_column(const struct mu__ckpt_reader *reader,
                        const struct mu__manifest_variable *tensor)
{
    const struct mu__manifest_table *saved = mu__ckpt_find_table(reader, tensor->name);
    struct mu__table_column columns[MU__TABLE_COLUMNS_MAX];
    char name[MU__MANIFEST_NAME_MAX + 1];
    char *mark;
    struct mu__table_form form;

    if (saved != NULL)
        return saved->rows > 0;
    (void)snprintf(name, sizeof name, "%s", tensor->name);
    mark = strrchr(name, '#');
    if (mark == NULL)
        return false;
    *mark = '\0';
    saved = mu__ckpt_find_table(reader, name);
    if (saved != NULL && strcmp(mark + 1, mu__ckpt_deleted_column.name) == 0)
        return saved->deleted > 0;
    if (saved == NULL || saved->rows == 0 || unpack_form(reader, saved, NULL, &form) != 0)
        return false;
    for (unsigned i = mu__table_columns(&form, columns); i > 0; i--)
        if (strcmp(columns[i - 1].name, mark + 1) == 0)
            return true;
    return false;
}

/* ---- Reading ---- */

static bool fits_column(const struct mu__manifest_variable *tensor,
                        const struct mu__table_column *column, uint64_t rows)
{
    uint32_t rank = column->count == 0 ? 1 : 2;

    return tensor != NULL && tensor->dtype == column->dtype && tensor->rank == rank &&
           tensor->parts_count == 1 && tensor->dims[0] == rows &&
           (rank == 1 || tensor->dims[1] == column->count);
}

static int find_column(const struct mu__ckpt_reader *reader,
                       const struct mu__manifest_table *saved,
                       const struct mu__table_column *column, uint64_t rows,
                       mu_error *ret_error,
                       const struct mu__manifest_variable **ret_tensor)
{
    char name[MU__MANIFEST_NAME_MAX + 1];

    if (mu__ckpt_column_name(saved->name, column, name))
        *ret_tensor = mu__ckpt_reader_find(reader, name);
    if (fits_column(*ret_tensor, column, rows))
        return 0;
    return mu_error_set(ret_error, -MU_EDATALOSS,
                        "\"%.200s\": the tensor \"%.100s\" does not fit its table",
                        reader->path, name);
}

int mu__ckpt_table_begin(const struct mu__ckpt_reader *reader,
                         const struct mu__manifest_table *saved, mu_error *ret_error,
                         struct mu__ckpt_table *ret_table)
{
    struct mu__ckpt_table table = {.saved = saved};
    int rv = unpack_form(reader, saved, ret_error, &table.form);

    if (rv != 0)
        return rv;
    table.columns_count = mu__table_columns(&table.form, table.columns);
    for (unsigned i = 0; rv == 0 && saved->rows > 0 && i < table.columns_count; i++)
        rv = find_column(reader, saved, &table.columns[i], saved->rows, ret_error,
                         &table.tensors[i]);
    if (rv == 0 && saved->deleted > 0)
        rv = find_column(reader, saved, &mu__ckpt_deleted_column, saved->deleted,
                         ret_error, &table.deleted);
    if (rv == 0)
        *ret_table = table;
    return rv;
}

static int refuse_column(const struct mu__ckpt_reader *reader,
                         const struct mu__ckpt_table *table, unsigned i,
                         const char *reason, mu_error *ret_error)
{
    return mu__ckpt_refuse_tensor(reader, NULL, table->tensors[i]->name, reason,
                                  ret_error);
}

/* Rows of one column, by `numbers`, which has room for them. */
static int read_table_column(const struct mu__ckpt_reader *reader,
                             struct mu__ckpt_table *table, unsigned i, uint32_t count,
                             void *numbers, void *copies, mu_error *ret_error)
{
    const struct mu__table_column *column = &table->columns[i];
    const struct mu__manifest_part *part =
        &reader->manifest.parts[table->tensors[i]->parts_from];
    uint64_t bytes = (uint64_t)count * mu__table_column_bytes(column);
    uint64_t at = table->next * mu__table_column_bytes(column);
    int rv = mu__ckpt_read_bytes(reader, reader->fds[part->file], NULL, numbers, bytes,
                                 part->offset + at, ret_error);

    if (rv != 0)
        return rv;
    table->sums[i] = mu__crc32c_add(&reader->crc, table->sums[i], numbers, (size_t)bytes);
    if (table->next + count == table->saved->rows && table->sums[i] != part->crc)
        return refuse_column(reader, table, i, "is damaged", ret_error);
    if (!mu__table_column_put(column, numbers, count, copies,
                              mu__table_row_bytes(&table->form)))
        return refuse_column(reader, table, i, "has too large a number", ret_error);
    return 0;
}

int mu__ckpt_table_next(const struct mu__ckpt_reader *reader,
                        struct mu__ckpt_table *table, uint32_t count, void *ret_copies,
                        mu_error *ret_error, uint32_t *ret_count)
{
    uint64_t left = table->saved->rows - table->next;
    uint32_t some = left < count ? (uint32_t)left : count;
    void *numbers = malloc((size_t)some * 2 * mu__table_row_bytes(&table->form) + 1);
    int rv = numbers == NULL ? mu__ckpt_no_memory(reader, ret_error) : 0;

    for (unsigned i = 0; rv == 0 && some > 0 && i < table->columns_count; i++)
        rv = read_table_column(reader, table, i, some, numbers, ret_copies, ret_error);
    free(numbers);
    if (rv != 0)
        return rv;
    table->next += some;
    *ret_count = some;
    return 0;
}
