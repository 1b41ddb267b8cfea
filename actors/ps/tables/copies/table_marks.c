#include "actors/ps/tables/copies/table_marks.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_FIRST = 1024, DELETED_FIRST = 16 };

const struct mu__table_mark *mu__marks_find(const struct mu__table_marks *marks,
                                            uint64_t number)
{
    for (unsigned i = 0; i < MU__TABLE_MARKS; i++)
        if (number != 0 && marks->marks[i].number == number)
            return &marks->marks[i];
    return NULL;
}

static void forget_mark(struct mu__table_mark *mark)
{
    free(mark->changed);
    free(mark->deleted);
    *mark = (struct mu__table_mark){.number = 0};
}

void mu__marks_clear(struct mu__table_marks *marks)
{
    for (unsigned i = 0; i < MU__TABLE_MARKS; i++)
        forget_mark(&marks->marks[i]);
}

/* Bits for so many rows; false, and the mark is gone: there is no memory. */
static bool reserve_bits(struct mu__table_mark *mark, uint32_t rows)
{
    uint64_t room = mark->rows_room == 0 ? ROWS_FIRST : mark->rows_room;
    uint64_t *changed;

    if (rows <= mark->rows_room)
        return true;
    while (room < rows)
        room *= 2;
    changed = room > UINT32_MAX ? NULL : realloc(mark->changed, (size_t)(room / 8));
    if (changed == NULL) {
        forget_mark(mark);
        return false;
    }
    memset(changed + mark->rows_room / 64, 0, (size_t)(room - mark->rows_room) / 8);
    mark->changed = changed;
    mark->rows_room = (uint32_t)room;
    return true;
}

void mu__marks_set(struct mu__table_marks *marks, uint64_t since, uint64_t number,
                   uint32_t rows)
{
    struct mu__table_mark *unused = NULL;

    for (unsigned i = 0; i < MU__TABLE_MARKS; i++) {
        struct mu__table_mark *mark = &marks->marks[i];

        if (mark->number != since || since == 0)
            forget_mark(mark);
        if (mark->number == 0)
            unused = mark;
    }
    if (number == 0 || number == since || unused == NULL)
        return;
    unused->number = number;
    (void)reserve_bits(unused, rows);
}

static void set_changed_bit(struct mu__table_mark *mark, uint32_t row, bool is_changed)
{
    uint64_t bit = UINT64_C(1) << row % 64;

    if (is_changed)
        mark->changed[row / 64] |= bit;
    else
        mark->changed[row / 64] &= ~bit;
}

void mu__marks_changed(struct mu__table_marks *marks, uint32_t row)
{
    for (unsigned i = 0; i < MU__TABLE_MARKS; i++) {
        struct mu__table_mark *mark = &marks->marks[i];

        if (mark->number != 0 && reserve_bits(mark, row + 1))
            set_changed_bit(mark, row, true);
    }
}

static bool reserve_deleted(struct mu__table_mark *mark)
{
    uint32_t room = mark->deleted_room == 0 ? DELETED_FIRST : 2 * mark->deleted_room;
    uint64_t *deleted;

    if (mark->deleted_count < mark->deleted_room)
        return true;
    deleted = mark->deleted_count >= MU__MARK_DELETED_MAX
                  ? NULL
                  : realloc(mark->deleted, room * sizeof *deleted);
    if (deleted == NULL) {
        forget_mark(mark);
        return false;
    }
    mark->deleted = deleted;
    mark->deleted_room = room;
    return true;
}

static void delete_in(struct mu__table_mark *mark, uint64_t id, uint32_t row,
                      uint32_t last)
{
    if (!reserve_bits(mark, last + 1) || !reserve_deleted(mark))
        return;
    mark->deleted[mark->deleted_count++] = id;
    set_changed_bit(mark, row, mu__mark_has(mark, last));
    set_changed_bit(mark, last, false);
}

void mu__marks_deleted(struct mu__table_marks *marks, uint64_t id, uint32_t row,
                       uint32_t last)
{
    for (unsigned i = 0; i < MU__TABLE_MARKS; i++)
        if (marks->marks[i].number != 0)
            delete_in(&marks->marks[i], id, row, last);
}
