/* The row of an id that a table does not hold: a function of the initial values' seed,
 * which was made of the table's name, too, of the id and of the column. So every server
 * computes the same. */
#ifndef MU_ACTORS_PS_TABLES_INITIAL_ROW_H
#define MU_ACTORS_PS_TABLES_INITIAL_ROW_H

#include "actors/ps/initial/initial.h"

/* `row` has `dim` numbers, not aligned. The initial values were checked. */
void mu__initial_row(const struct mu__initial *initial, uint64_t id, uint32_t dim,
                     void *row);

#endif
