/* Which ids of a part get rows, as its policy says. */
#ifndef MU_ACTORS_PS_TABLES_ROW_ADMISSION_H
#define MU_ACTORS_PS_TABLES_ROW_ADMISSION_H

#include "actors/ps/tables/table_part.h"

/* Whether the last of the pending pushes may make a row for an id: each of those before
 * it may have been one of this id. */
bool mu__admission_may_make(const struct mu__table *table, uint64_t id);

/* Whether the push that is being applied makes the row of an id; it is counted. */
bool mu__admission_admit(struct mu__table *table, uint64_t id);

#endif
