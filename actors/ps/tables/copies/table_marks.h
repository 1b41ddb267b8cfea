/* Which rows of a part have changed since a mark was set: for increments. A mark has a
 * number that its client chose. There are two at most: the one since which a client asks,
 * and the one that it sets with that, as nobody knows whether it will keep what it gets.
 * Memory is a bit for each row, and a bounded list of ids that were deleted: when that is
 * full, the mark is gone, and so is who asks since then: it gets all rows. Plain data. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_MARKS_H
#define MU_ACTORS_PS_TABLES_TABLE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

enum { MU__TABLE_MARKS = 2, MU__MARK_DELETED_MAX = 1 << 12 };

struct mu__table_mark {
    uint64_t number;    /* 0: there is none */
    uint64_t *changed;  /* a bit for each row */
    uint32_t rows_room; /* rows with a bit */
    uint64_t *deleted;  /* ids, in their order; some may have rows again */
    uint32_t deleted_count;
    uint32_t deleted_room;
};

struct mu__table_marks {
    struct mu__table_mark marks[MU__TABLE_MARKS];
};

/* NULL: it is not known. */
const struct mu__table_mark *mu__marks_find(const struct mu__table_marks *marks,
                                            uint64_t number);

/* Forget all but `since`, and set another one: nothing has changed. Without memory it is
 * not set. */
void mu__marks_set(struct mu__table_marks *marks, uint64_t since, uint64_t number,
                   uint32_t rows);
void mu__marks_clear(struct mu__table_marks *marks);

static inline bool mu__marks_are_set(const struct mu__table_marks *marks)
{
    return marks->marks[0].number != 0 || marks->marks[1].number != 0;
}

/* A row has changed, or is new; one was deleted, whose number `row` the last one has now,
 * which was `last`. */
void mu__marks_changed(struct mu__table_marks *marks, uint32_t row);
void mu__marks_deleted(struct mu__table_marks *marks, uint64_t id, uint32_t row,
                       uint32_t last);

static inline bool mu__mark_has(const struct mu__table_mark *mark, uint32_t row)
{
    return row < mark->rows_room && (mark->changed[row / 64] >> row % 64 & 1) != 0;
}

#endif
