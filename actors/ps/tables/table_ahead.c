#include "actors/ps/tables/table_ahead.h"

#include <string.h>

const unsigned char *const *mu__ahead_add(struct mu__table_ahead *ahead,
                                          struct mu__table *table, const uint8_t *ids,
                                          uint32_t count)
{
    uint32_t first = ahead->ids;

    if (count > MU__AHEAD_IDS_OF_ONE || table->index == NULL)
        return NULL;
    ahead->items[ahead->count++] = (struct mu__table_some){table, first, count};
    ahead->ids += count;
    mu__table_prefetch_index(table, ids, count, ahead->hashes + first);
    if (ahead->with_slots) {
        memset(ahead->guessed + first, 0, count * sizeof ahead->guessed[0]);
        table->guess = (struct mu__table_guess){ids, count, ahead->guessed + first};
    }
    return ahead->guessed + first;
}

void mu__ahead_end(struct mu__table_ahead *ahead)
{
    for (uint32_t i = 0; i < ahead->count; i++)
        ahead->items[i].table->guess.ids = NULL;
    ahead->count = 0;
}

void mu__ahead_fetch(struct mu__table_ahead *ahead, uint32_t ids)
{
    for (uint32_t fetched = 0; fetched < ids && ahead->fetched < ahead->count;) {
        const struct mu__table_some *some = &ahead->items[ahead->fetched++];

        mu__table_prefetch_rows(some->table, ahead->hashes + some->first, some->count,
                                ahead->with_slots, ahead->guessed + some->first);
        fetched += some->count;
    }
}
