/* Writes that set whole rows of a table, with their pushes and slots, or delete all: a
 * table that is restored. The data of MU__WRITE_TABLE_ROWS are copies of rows
 * (mu__table_row_at); those of MU__WRITE_TABLE_INSERT ids, each with the numbers of its
 * row; MU__WRITE_TABLE_CLEAR has one byte that is not looked at. */
#ifndef MU_ACTORS_PS_TABLES_ROW_WRITES_H
#define MU_ACTORS_PS_TABLES_ROW_WRITES_H

#include "actors/ps/tables/table_set.h"

/* As mu__tables_check and mu__tables_apply. `table` NULL: it is not there. */
int mu__row_write_check(struct mu__named_table *table,
                        const struct mu__table_write *write, mu_error *ret_error);

/* Returns a sum of what came of it. */
uint64_t mu__row_write_apply(struct mu__named_table *table,
                             const struct mu__table_write *write);

#endif
