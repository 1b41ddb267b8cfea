#include "api/tables/table_index.h"

#include "actors/partitions.h"

#include <stdlib.h>

enum { ROOM_FIRST = 16 };

static struct mu__indexed_row *find_index_slot(const struct mu__table_index *index,
                                               uint64_t id)
{
    uint64_t mask = index->room - 1;
    uint64_t at = mu__mix64(id) >> 8 & mask; /* the lowest bits are of the partition */

    while (index->slots[at].file != 0 && index->slots[at].id != id)
        at = (at + 1) & mask;
    return &index->slots[at];
}

bool mu__table_index_reserve(struct mu__table_index *index, uint64_t count)
{
    struct mu__table_index larger = {.room = index->room == 0 ? ROOM_FIRST : index->room};

    while (larger.room < 2 * (index->used + count))
        larger.room *= 2;
    if (larger.room == index->room)
        return true;
    larger.slots = larger.room > SIZE_MAX / sizeof *larger.slots
                       ? NULL
                       : calloc((size_t)larger.room, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (uint64_t i = 0; i < index->room; i++)
        if (index->slots[i].file != 0)
            *find_index_slot(&larger, index->slots[i].id) = index->slots[i];
    larger.used = index->used;
    larger.rows = index->rows;
    free(index->slots);
    *index = larger;
    return true;
}

void mu__table_index_done(struct mu__table_index *index)
{
    free(index->slots);
    *index = (struct mu__table_index){.room = 0};
}

static bool has_row(const struct mu__indexed_row *slot)
{
    return slot->file != 0 && slot->row != MU__INDEXED_NO_ROW;
}

void mu__table_index_set(struct mu__table_index *index, uint64_t id, uint32_t file,
                         uint32_t row)
{
    struct mu__indexed_row *slot = find_index_slot(index, id);

    index->rows -= has_row(slot);
    index->used += slot->file == 0;
    *slot = (struct mu__indexed_row){id, file, row};
    index->rows += has_row(slot);
}

void mu__table_index_drop(struct mu__table_index *index, const uint8_t *partitions)
{
    for (uint64_t i = 0; i < index->room; i++) {
        struct mu__indexed_row *slot = &index->slots[i];
        uint32_t partition = mu__partition_of_id(slot->id);

        if (!has_row(slot) || (partitions[partition / 8] >> partition % 8 & 1) == 0)
            continue;
        slot->row = MU__INDEXED_NO_ROW;
        index->rows--;
    }
}

const struct mu__indexed_row *mu__table_index_find(const struct mu__table_index *index,
                                                   uint64_t id)
{
    const struct mu__indexed_row *slot =
        index->room == 0 ? NULL : find_index_slot(index, id);

    return slot != NULL && has_row(slot) ? slot : NULL;
}
