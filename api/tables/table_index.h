/* Which row of which file an id has: of a table that is read from several files, the last
 * of which counts. Plain data. */
#ifndef MU_API_TABLE_INDEX_H
#define MU_API_TABLE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu__indexed_row {
    uint64_t id;
    uint32_t file; /* from 1; 0: nothing is here */
    uint32_t row;
};

struct mu__table_index {
    struct mu__indexed_row *slots;
    uint64_t room; /* a power of two */
    uint64_t used; /* slots, of which some have no row any more, */
    uint64_t rows; /* and these have one */
};

#define MU__INDEXED_NO_ROW UINT32_MAX

/* Room for so many ids more. False: out of memory. */
bool mu__table_index_reserve(struct mu__table_index *index, uint64_t count);
void mu__table_index_done(struct mu__table_index *index);

/* Set the row of an id, for which there is room; or MU__INDEXED_NO_ROW. */
void mu__table_index_set(struct mu__table_index *index, uint64_t id, uint32_t file,
                         uint32_t row);

/* Ids of partitions with a bit have no rows any more. */
void mu__table_index_drop(struct mu__table_index *index, const uint8_t *partitions);

/* NULL: it has none. */
const struct mu__indexed_row *mu__table_index_find(const struct mu__table_index *index,
                                                   uint64_t id);

#endif
