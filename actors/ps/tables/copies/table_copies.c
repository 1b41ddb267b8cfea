#include "actors/ps/tables/copies/table_copies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t slabs_of(const struct mu__table_copy *copy)
{
    return (copy->end + copy->table->slab_rows - 1) / copy->table->slab_rows;
}

static uint64_t slab_bytes_of(const struct mu__table_copy *copy)
{
    return (uint64_t)copy->table->slab_rows * copy->table->row_bytes;
}

static void free_slab_copy(struct mu__table_copy *copy, uint32_t slab)
{
    if (copy->slabs[slab] == NULL)
        return;
    free(copy->slabs[slab]);
    copy->slabs[slab] = NULL;
    *copy->memory.bytes_used -= slab_bytes_of(copy);
}

static void free_slab_copies(struct mu__table_copy *copy)
{
    for (uint32_t slab = 0; slab < slabs_of(copy); slab++)
        free_slab_copy(copy, slab);
}

uint32_t mu__table_count_changed(const struct mu__table *table,
                                 const struct mu__table_mark *since)
{
    uint32_t rows = table->rows < since->rows_room ? table->rows : since->rows_room;
    uint32_t count = 0;

    for (uint32_t word = 0; word < rows / 64; word++)
        count += (uint32_t)__builtin_popcountll(since->changed[word]);
    if (rows % 64 != 0)
        count += (uint32_t)__builtin_popcountll(since->changed[rows / 64] &
                                                ((UINT64_C(1) << rows % 64) - 1));
    return count;
}

/* The bits of a mark, of the rows that there are. False: out of memory. */
static bool select_rows(struct mu__table_copy *copy, const struct mu__table_mark *since)
{
    uint32_t words = (copy->end + 63) / 64;
    uint32_t has = since->rows_room / 64;

    copy->selected = calloc((size_t)words + 1, sizeof *copy->selected);
    if (copy->selected == NULL)
        return false;
    if (has > 0)
        memcpy(copy->selected, since->changed,
               (has < words ? has : words) * sizeof *copy->selected);
    copy->rows = mu__table_count_changed(copy->table, since);
    return true;
}

static bool is_selected(const struct mu__table_copy *copy, uint32_t row)
{
    return copy->selected == NULL || (copy->selected[row / 64] >> row % 64 & 1) != 0;
}

int mu__table_copy_begin(struct mu__table_copy *copy, struct mu__table *table,
                         const struct mu__table_mark *since,
                         const struct mu__table_copy_memory *memory)
{
    *copy = (struct mu__table_copy){.table = table,
                                    .copies = &table->copies,
                                    .memory = *memory,
                                    .rows = table->rows,
                                    .end = table->rows};
    copy->slabs = calloc((size_t)slabs_of(copy) + 1, sizeof *copy->slabs);
    if (copy->slabs == NULL || (since != NULL && !select_rows(copy, since))) {
        free(copy->slabs);
        return -MU_ENOMEM;
    }
    mu__list_append(copy->copies, &copy->node);
    return 0;
}

/* False: there is no memory for it. */
static bool copy_slab(struct mu__table_copy *copy, uint32_t slab)
{
    const struct mu__table_copy_memory *memory = &copy->memory;
    uint64_t bytes = slab_bytes_of(copy);
    unsigned char *copied = NULL;

    if (bytes <= memory->bytes_max - *memory->bytes_used)
        copied = malloc((size_t)bytes);
    if (copied == NULL)
        return false;
    *memory->bytes_used += bytes;
    memcpy(copied, copy->table->slabs[slab], (size_t)bytes);
    copy->slabs[slab] = copied;
    return true;
}

static void keep_row(struct mu__table_copy *copy, uint32_t row)
{
    uint32_t slab = row / copy->table->slab_rows;

    if (row >= copy->end || row < copy->next || !is_selected(copy, row) ||
        copy->slabs[slab] != NULL || copy->refused != 0 || copy_slab(copy, slab))
        return;
    copy->refused = slab_bytes_of(copy);
    free_slab_copies(copy);
}

void mu__table_copies_keep(struct mu__table *table, uint32_t row)
{
    for (struct mu__table_copy *copy =
             MU__LIST_FIRST(&table->copies, struct mu__table_copy, node);
         copy != NULL; copy = MU__LIST_NEXT(copy, struct mu__table_copy, node))
        keep_row(copy, row);
}

static const unsigned char *row_then(const struct mu__table_copy *copy, uint32_t row)
{
    const struct mu__table *table = copy->table;
    uint32_t slab = row / table->slab_rows;
    const unsigned char *rows =
        copy->slabs[slab] != NULL ? copy->slabs[slab] : table->slabs[slab];

    return rows + (size_t)(row % table->slab_rows) * table->row_bytes;
}

/* The first row in it from `row` on. */
static uint32_t skip_unselected(const struct mu__table_copy *copy, uint32_t row)
{
    uint64_t bits;

    if (copy->selected == NULL)
        return row;
    while (row < copy->end) {
        bits = copy->selected[row / 64] >> row % 64;
        if (bits != 0)
            return row + (uint32_t)__builtin_ctzll(bits);
        row += 64 - row % 64;
    }
    return copy->end;
}

void mu__table_copy_read(const struct mu__table_copy *copy, uint32_t count,
                         unsigned char *ret_rows)
{
    uint32_t row_bytes = copy->table->row_bytes;
    uint32_t row = copy->next;

    assert(copy->refused == 0 && count <= copy->rows - copy->taken);
    for (uint32_t i = 0; i < count; i++, row++) {
        row = skip_unselected(copy, row);
        memcpy(ret_rows + (size_t)i * row_bytes, row_then(copy, row), row_bytes);
    }
}

void mu__table_copy_take(struct mu__table_copy *copy, uint32_t count)
{
    uint32_t slab = copy->next / copy->table->slab_rows;

    assert(count <= copy->rows - copy->taken);
    for (uint32_t i = 0; i < count; i++)
        copy->next = skip_unselected(copy, copy->next) + 1;
    copy->taken += count;
    for (; slab < copy->next / copy->table->slab_rows; slab++)
        free_slab_copy(copy, slab);
}

void mu__table_copy_end(struct mu__table_copy *copy)
{
    free_slab_copies(copy);
    free(copy->slabs);
    free(copy->selected);
    mu__list_remove(copy->copies, &copy->node);
}
