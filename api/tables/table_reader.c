/* A table from a checkpoint and the increments after it. */
#include "muster/table_reader.h"

#include "actors/ps/tables/row_values.h"
#include "api/tables/table_index.h"
#include "node/files/checkpoint/ckpt_tables.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A tensor in a file that is mapped. */
struct mapped_tensor {
    void *begin; /* NULL: there is none */
    size_t bytes;
    const uint8_t *numbers;
};

struct read_file {
    struct mapped_tensor ids;
    struct mapped_tensor rows;
    struct mapped_tensor deleted;
};

struct mu_table_reader {
    struct mu__table_form form;
    uint64_t step;
    uint64_t mark; /* of the last file */
    struct mu__table_index index;
    size_t count;
    struct read_file files[];
};

/* ---- One file ---- */

static void unmap_tensor(struct mapped_tensor *mapped)
{
    if (mapped->begin != NULL)
        (void)munmap(mapped->begin, mapped->bytes);
}

/* `tensor` NULL: there is none. */
static int map_tensor(const struct mu__ckpt_reader *ckpt,
                      const struct mu__manifest_variable *tensor, mu_error *ret_error,
                      struct mapped_tensor *ret_mapped)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const struct mu__manifest_part *part;
    struct mu__shape shape;
    uint64_t begin;
    void *mapped;

    if (tensor == NULL)
        return 0;
    part = &ckpt->manifest.parts[tensor->parts_from];
    shape = mu__ckpt_shape(tensor);
    begin = part->offset / page * page;
    ret_mapped->bytes = (size_t)(part->offset - begin + mu__shape_bytes(&shape));
    mapped = mmap(NULL, ret_mapped->bytes, PROT_READ, MAP_PRIVATE, ckpt->fds[part->file],
                  (off_t)begin);
    if (mapped == MAP_FAILED)
        return mu_error_set(ret_error, -MU_ENOMEM, "\"%.200s\" cannot be mapped",
                            ckpt->path);
    ret_mapped->begin = mapped;
    ret_mapped->numbers = (const uint8_t *)mapped + (part->offset - begin);
    return 0;
}

static int map_file(const struct mu__ckpt_reader *ckpt,
                    const struct mu__ckpt_table *table, mu_error *ret_error,
                    struct read_file *file)
{
    int rv =
        map_tensor(ckpt, table->tensors[MU__TABLE_COLUMN_IDS], ret_error, &file->ids);

    if (rv == 0)
        rv = map_tensor(ckpt, table->tensors[MU__TABLE_COLUMN_ROWS], ret_error,
                        &file->rows);
    if (rv == 0)
        rv = map_tensor(ckpt, table->deleted, ret_error, &file->deleted);
    return rv;
}

static uint64_t id_in(const struct mapped_tensor *mapped, uint64_t i)
{
    uint64_t id;

    memcpy(&id, mapped->numbers + i * sizeof id, sizeof id);
    return id;
}

/* Deletions come before rows. */
static int index_file(mu_table_reader *reader, const struct mu__ckpt_table *table,
                      uint32_t number, mu_error *ret_error)
{
    const struct read_file *file = &reader->files[number - 1];
    const struct mu__manifest_table *saved = table->saved;

    if (saved->rows >= MU__INDEXED_NO_ROW)
        return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                            "table %.100s has too many rows for a reader", saved->name);
    if (!mu__table_index_reserve(&reader->index, saved->rows + saved->deleted))
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a table");
    mu__table_index_drop(&reader->index, saved->whole);
    for (uint64_t i = 0; i < saved->deleted; i++)
        mu__table_index_set(&reader->index, id_in(&file->deleted, i), number,
                            MU__INDEXED_NO_ROW);
    for (uint64_t i = 0; i < saved->rows; i++)
        mu__table_index_set(&reader->index, id_in(&file->ids, i), number, (uint32_t)i);
    return 0;
}

/* ---- Opening ---- */

static int check_order(const mu_table_reader *reader, const struct mu__ckpt_reader *ckpt,
                       bool is_first, mu_error *ret_error)
{
    const struct mu__manifest *manifest = &ckpt->manifest;

    if (is_first && manifest->base_mark != 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "\"%.200s\" is an increment of %.100s: it comes after that",
                            ckpt->path, manifest->base_name);
    if (!is_first && manifest->base_mark == 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "\"%.200s\" is no increment: it comes first", ckpt->path);
    if (!is_first && manifest->base_mark != reader->mark)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "\"%.200s\" is an increment of %.100s, and not of the "
                            "checkpoint before it",
                            ckpt->path, manifest->base_name);
    return 0;
}

/* The same rows, and initial rows. */
static bool is_same_table(const struct mu__table_form *a, const struct mu__table_form *b)
{
    return a->dim == b->dim && a->dtype == b->dtype &&
           a->policy.unknown_zeros == b->policy.unknown_zeros &&
           a->initial.kind == b->initial.kind &&
           memcmp(&a->initial.a, &b->initial.a, sizeof a->initial.a) == 0 &&
           memcmp(&a->initial.b, &b->initial.b, sizeof a->initial.b) == 0 &&
           a->initial.seed == b->initial.seed;
}

static int check_read_form(mu_table_reader *reader, const struct mu__ckpt_reader *ckpt,
                           const struct mu__ckpt_table *table, bool is_first,
                           mu_error *ret_error)
{
    if (is_first)
        reader->form = table->form;
    if (!is_same_table(&reader->form, &table->form))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "\"%.200s\" has the table with other rows", ckpt->path);
    return 0;
}

static int read_checkpoint(mu_table_reader *reader, const struct mu__ckpt_reader *ckpt,
                           const char *name, mu_error *ret_error)
{
    const struct mu__manifest_table *saved = mu__ckpt_find_table(ckpt, name);
    bool is_first = reader->count == 0;
    struct mu__ckpt_table table;
    int rv = check_order(reader, ckpt, is_first, ret_error);

    if (rv == 0 && saved == NULL)
        rv = mu_error_set(ret_error, -MU_ENOTFOUND,
                          "there is no table \"%.100s\" in \"%.200s\"", name, ckpt->path);
    if (rv == 0)
        rv = mu__ckpt_table_begin(ckpt, saved, ret_error, &table);
    if (rv == 0)
        rv = check_read_form(reader, ckpt, &table, is_first, ret_error);
    if (rv != 0)
        return rv;
    reader->mark = ckpt->manifest.mark;
    reader->step = ckpt->manifest.step;
    rv = map_file(ckpt, &table, ret_error, &reader->files[reader->count++]);
    return rv == 0 ? index_file(reader, &table, (uint32_t)reader->count, ret_error) : rv;
}

static int read_path(mu_table_reader *reader, const char *path, const char *name,
                     mu_error *ret_error)
{
    struct mu__ckpt_reader *ckpt;
    int rv = mu__ckpt_reader_open(path, ret_error, &ckpt);

    if (rv != 0)
        return rv;
    rv = read_checkpoint(reader, ckpt, name, ret_error);
    mu__ckpt_reader_close(ckpt);
    return rv;
}

int mu_table_reader_open(const char *const *paths, size_t count, const char *table,
                         mu_error *ret_error, mu_table_reader **ret_reader)
{
    MU__REQUIRE(ret_error, table, ret_reader);
    MU__REQUIRE_MANY(ret_error, paths, count);

    mu_table_reader *reader;
    int rv = 0;

    if (count == 0 || count >= UINT32_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "%zu checkpoints of a table", count);
    reader = calloc(1, sizeof *reader + count * sizeof reader->files[0]);
    if (reader == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a table");
    for (size_t i = 0; rv == 0 && i < count; i++)
        rv = read_path(reader, paths[i], table, ret_error);
    if (rv == 0)
        *ret_reader = reader;
    else
        mu_table_reader_close(reader);
    return rv;
}

void mu_table_reader_close(mu_table_reader *reader)
{
    if (reader == NULL)
        return;
    for (size_t i = 0; i < reader->count; i++) {
        unmap_tensor(&reader->files[i].ids);
        unmap_tensor(&reader->files[i].rows);
        unmap_tensor(&reader->files[i].deleted);
    }
    mu__table_index_done(&reader->index);
    free(reader);
}

/* ---- Reading ---- */

unsigned mu_table_reader_dim(const mu_table_reader *reader)
{
    MU__REQUIRE_OR(0, reader);
    return reader->form.dim;
}

uint64_t mu_table_reader_rows(const mu_table_reader *reader)
{
    MU__REQUIRE_OR(0, reader);
    return reader->index.rows;
}

uint64_t mu_table_reader_step(const mu_table_reader *reader)
{
    MU__REQUIRE_OR(0, reader);
    return reader->step;
}

static void copy_found_row(const mu_table_reader *reader,
                           const struct mu__indexed_row *found, float *to)
{
    const struct mu__table_form *form = &reader->form;
    size_t bytes = form->dim * (form->dtype == 0 ? sizeof *to : sizeof(uint16_t));
    const uint8_t *from = reader->files[found->file - 1].rows.numbers;

    from += found->row * bytes;
    if (form->dtype == 0)
        memcpy(to, from, bytes);
    else
        mu__narrow_row_widen(form->dtype, from, form->dim, to);
}

int mu_table_reader_lookup(const mu_table_reader *reader, const uint64_t *ids,
                           size_t count, float *rows, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, reader, ids, rows);

    for (size_t i = 0; i < count; i++) {
        const struct mu__indexed_row *found =
            mu__table_index_find(&reader->index, ids[i]);
        float *to = rows + i * reader->form.dim;

        if (found == NULL)
            mu__values_unknown(&reader->form, ids[i], to);
        else
            copy_found_row(reader, found, to);
    }
    return 0;
}
