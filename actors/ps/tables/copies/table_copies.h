/* The rows of a part of a table as they were at one time. A slab of rows is copied before
 * the first of its rows that are still to be read changes. Copies count in a bound of
 * their own: when there is no memory for one, this has failed, and no write has. Plain
 * data. */
#ifndef MU_ACTORS_PS_TABLES_TABLE_COPIES_H
#define MU_ACTORS_PS_TABLES_TABLE_COPIES_H

#include "actors/ps/tables/table_part.h"

/* What copies may have, of several tables together. */
struct mu__table_copy_memory {
    uint64_t bytes_max;
    uint64_t *bytes_used;
};

struct mu__table_copy {
    struct mu__list_node node; /* of the table's copies */
    const struct mu__table *table;
    struct mu__list *copies; /* the table's */
    struct mu__table_copy_memory memory;
    uint32_t rows;         /* that are in it, */
    uint32_t taken;        /* and of these those that are not needed any more */
    uint32_t next;         /* the number of the next row that is; */
    uint32_t end;          /* behind the last one's */
    uint64_t *selected;    /* a bit for each row; NULL: all are in it */
    uint64_t refused;      /* bytes for which there was no memory; 0: all is well */
    unsigned char **slabs; /* NULL: not changed since, or taken */
};

/* Begin with all rows that there are, or those that have changed since a mark.
 * -MU_ENOMEM. */
int mu__table_copy_begin(struct mu__table_copy *copy, struct mu__table *table,
                         const struct mu__table_mark *since,
                         const struct mu__table_copy_memory *memory);

/* Write the next rows, which are there. */
void mu__table_copy_read(const struct mu__table_copy *copy, uint32_t count,
                         unsigned char *ret_rows);

/* So many more rows are not needed any more. */
void mu__table_copy_take(struct mu__table_copy *copy, uint32_t count);

/* How many rows that there are have changed since a mark. */
uint32_t mu__table_count_changed(const struct mu__table *table,
                                 const struct mu__table_mark *since);

/* The end: nothing is kept back any more. */
void mu__table_copy_end(struct mu__table_copy *copy);

/* The bytes of this row are about to change: of a table with copies. */
void mu__table_copies_keep(struct mu__table *table, uint32_t row);

#endif
