#include "actors/ps/tables/table_copies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t slabs_of(const struct mu__table_copy *copy)
{
    return (copy->rows + copy->table->slab_rows - 1) / copy->table->slab_rows;
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

int mu__table_copy_begin(struct mu__table_copy *copy, struct mu__table *table,
                         const struct mu__table_copy_memory *memory)
{
    *copy = (struct mu__table_copy){
        .table = table, .copies = &table->copies, .memory = *memory, .rows = table->rows};
    copy->slabs = calloc((size_t)slabs_of(copy) + 1, sizeof *copy->slabs);
    if (copy->slabs == NULL)
        return -MU_ENOMEM;
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

    if (row >= copy->rows || row < copy->taken || copy->slabs[slab] != NULL ||
        copy->refused != 0 || copy_slab(copy, slab))
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

void mu__table_copy_read(const struct mu__table_copy *copy, uint32_t first,
                         uint32_t count, unsigned char *ret_rows)
{
    const struct mu__table *table = copy->table;

    assert(copy->refused == 0 && first >= copy->taken && count <= copy->rows - first);
    while (count > 0) {
        uint32_t slab = first / table->slab_rows;
        uint32_t at = first % table->slab_rows;
        uint32_t some = count < table->slab_rows - at ? count : table->slab_rows - at;
        const unsigned char *rows =
            copy->slabs[slab] != NULL ? copy->slabs[slab] : table->slabs[slab];

        memcpy(ret_rows, rows + (size_t)at * table->row_bytes,
               (size_t)some * table->row_bytes);
        ret_rows += (size_t)some * table->row_bytes;
        first += some;
        count -= some;
    }
}

void mu__table_copy_take(struct mu__table_copy *copy, uint32_t count)
{
    uint32_t slab = copy->taken / copy->table->slab_rows;

    assert(count <= copy->rows - copy->taken);
    copy->taken += count;
    for (; slab < copy->taken / copy->table->slab_rows; slab++)
        free_slab_copy(copy, slab);
}

void mu__table_copy_end(struct mu__table_copy *copy)
{
    free_slab_copies(copy);
    free(copy->slabs);
    mu__list_remove(copy->copies, &copy->node);
}
