/* The numbers of a row, which has them in 32 bits or in 16, as 32-bit floats. Plain
 * data. */
#ifndef MU_ACTORS_PS_TABLES_ROW_VALUES_H
#define MU_ACTORS_PS_TABLES_ROW_VALUES_H

#include "actors/ps/tables/narrow_rows.h"
#include "actors/ps/tables/table_part.h"

#include <string.h>

/* What a look-up gives for an id without a row, and the same in as many bits as rows
 * have; and for one with this row. `to` is not aligned. */
void mu__values_unknown(const struct mu__table_form *form, uint64_t id, void *to);
void mu__values_unheld(const struct mu__table_form *form, uint64_t id, void *to);

static inline void mu__values_widen(const struct mu__table_form *form,
                                    const unsigned char *row, void *to)
{
    if (form->dtype == 0)
        memcpy(to, row + MU__TABLE_ROW_HEAD, form->dim * sizeof(float));
    else
        mu__narrow_row_widen(form->dtype, row + MU__TABLE_ROW_HEAD, form->dim, to);
}

/* The numbers of a row: what is given, rounded, and not aligned; or the initial ones. */
void mu__values_set(const struct mu__table_form *form, const void *from,
                    unsigned char *row);
void mu__values_start(const struct mu__table_form *form, uint64_t id, unsigned char *row);

#endif
