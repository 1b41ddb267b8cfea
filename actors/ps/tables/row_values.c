#include "actors/ps/tables/row_values.h"

#include "actors/ps/tables/narrow_rows.h"

#include <string.h>

void mu__values_unknown(const struct mu__table_form *form, uint64_t id, void *to)
{
    if (form->policy.unknown_zeros)
        memset(to, 0, form->dim * sizeof(float));
    else
        mu__initial_row(&form->initial, id, form->dim, to);
    if (form->dtype != 0)
        mu__narrow_row_snap(form->dtype, to, form->dim);
}

void mu__values_unheld(const struct mu__table_form *form, uint64_t id, void *to)
{
    float wide[MU__TABLE_DIM_MAX];

    mu__values_unknown(form, id, form->dtype == 0 ? to : wide);
    if (form->dtype != 0)
        mu__narrow_row_round(form->dtype, wide, form->dim, to);
}

void mu__values_start(const struct mu__table_form *form, uint64_t id, unsigned char *row)
{
    float wide[MU__TABLE_DIM_MAX];

    mu__initial_row(&form->initial, id, form->dim,
                    form->dtype == 0 ? (void *)(row + MU__TABLE_ROW_HEAD) : wide);
    if (form->dtype != 0)
        mu__narrow_row_round(form->dtype, wide, form->dim, row + MU__TABLE_ROW_HEAD);
}

void mu__values_set(const struct mu__table_form *form, const void *from,
                    unsigned char *row)
{
    float wide[MU__TABLE_DIM_MAX];

    memcpy(wide, from, form->dim * sizeof(float));
    if (form->dtype == 0)
        memcpy(row + MU__TABLE_ROW_HEAD, wide, form->dim * sizeof(float));
    else
        mu__narrow_row_round(form->dtype, wide, form->dim, row + MU__TABLE_ROW_HEAD);
}
