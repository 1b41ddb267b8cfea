#include "actors/ps/tables/table_ahead.h"

void mu__ahead_add(struct mu__table_ahead *ahead, const struct mu__table *table,
                   const uint8_t *ids, uint32_t count)
{
    if (count > MU__AHEAD_IDS / 4 || table->index == NULL)
        return;
    ahead->items[ahead->count++] = (struct mu__table_some){table, ids, count};
    ahead->ids += count;
}

void mu__ahead_fetch(struct mu__table_ahead *ahead, bool with_slots)
{
    for (uint32_t i = 0; i < ahead->count; i++)
        mu__table_prefetch_index(ahead->items[i].table, ahead->items[i].ids,
                                 ahead->items[i].count);
    for (uint32_t i = 0; i < ahead->count; i++)
        mu__table_prefetch_slabs(ahead->items[i].table, ahead->items[i].ids,
                                 ahead->items[i].count);
    for (uint32_t i = 0; i < ahead->count; i++)
        mu__table_prefetch_rows(ahead->items[i].table, ahead->items[i].ids,
                                ahead->items[i].count, with_slots);
    ahead->count = ahead->ids = 0;
}
