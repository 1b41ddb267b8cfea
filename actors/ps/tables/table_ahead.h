/* Rows that are needed soon, of parts of tables in many partitions, a few of each: what
 * tells where they are is asked of memory together, before the first is looked at; then
 * they are, some rows before they are needed, so that memory is never waited for alone.
 */
#ifndef MU_ACTORS_PS_TABLES_TABLE_AHEAD_H
#define MU_ACTORS_PS_TABLES_TABLE_AHEAD_H

#include "actors/ps/tables/table_part.h"

enum { MU__AHEAD_MAX = 64, MU__AHEAD_IDS = 256 };

enum {
    MU__AHEAD_IDS_OF_ONE = MU__AHEAD_IDS / 4,
    MU__AHEAD_ROWS = 12 /* that are asked for before the first is needed */
};

struct mu__table_some {
    struct mu__table *table;
    uint32_t first;
    uint32_t count;
};

struct mu__table_ahead {
    bool with_slots;
    uint32_t count;
    uint32_t fetched; /* of these, the rows were asked for */
    uint32_t ids;
    struct mu__table_some items[MU__AHEAD_MAX];
    uint64_t hashes[MU__AHEAD_IDS + MU__AHEAD_IDS_OF_ONE];
    const unsigned char *guessed[MU__AHEAD_IDS + MU__AHEAD_IDS_OF_ONE];
};

/* There are none yet. */
static inline void mu__ahead_begin(struct mu__table_ahead *ahead, bool with_slots)
{
    ahead->with_slots = with_slots;
    ahead->count = ahead->fetched = ahead->ids = 0;
}

/* Whether there is room for more. */
static inline bool mu__ahead_has_room(const struct mu__table_ahead *ahead)
{
    return ahead->count < MU__AHEAD_MAX && ahead->ids < MU__AHEAD_IDS;
}

/* What was added is not needed any more, or will not come. */
void mu__ahead_end(struct mu__table_ahead *ahead);

/* There is room. Where the rows will be said to be (mu__table_lookup_guessed); NULL: many
 * ids of one part, or a part without rows, are left to that part. With slots, the part
 * knows them, too, until the end. */
const unsigned char *const *mu__ahead_add(struct mu__table_ahead *ahead,
                                          struct mu__table *table, const uint8_t *ids,
                                          uint32_t count);

/* Ask for the rows of the next ones, of at least so many ids. MU__AHEAD_ROWS to begin
 * with, then 1 before each of those that were added: it is among them. */
void mu__ahead_fetch(struct mu__table_ahead *ahead, uint32_t ids);

#endif
