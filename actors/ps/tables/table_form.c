/* What all parts of a table have in common, and where in a row what is. */
#include "actors/ps/tables/table_part.h"

#include "muster/value.h"

#include <inttypes.h>
#include <string.h>

/* Floats of the slots of a row. */
static uint32_t slot_floats(const struct mu__table_form *form)
{
    const struct mu__rule_kind *kind = mu__rule_kind(form->rule.kind);

    return kind->slots * form->dim + kind->row_slots;
}

uint32_t mu__table_values_bytes(const struct mu__table_form *form)
{
    return (mu__table_numbers_bytes(form) + 3) / 4 * 4;
}

uint32_t mu__table_row_bytes(const struct mu__table_form *form)
{
    uint32_t time =
        mu__table_policy_has_time(&form->policy) ? (uint32_t)sizeof(uint32_t) : 0;

    return MU__TABLE_ROW_HEAD + mu__table_values_bytes(form) +
           slot_floats(form) * (uint32_t)sizeof(float) + time;
}

int mu__table_form_check(const struct mu__table_form *form, mu_error *ret_error)
{
    int rv = mu__initial_check(&form->initial, MU_F32, ret_error);

    if (rv == 0)
        rv = mu__rule_check(&form->rule, MU_F32, ret_error);
    if (rv == 0)
        rv = mu__table_policy_check(&form->policy, ret_error);
    if (rv != 0)
        return rv;
    if (form->dim == 0 || form->dim > MU__TABLE_DIM_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "rows of %" PRIu32 " numbers: expected 1 to %d", form->dim,
                            MU__TABLE_DIM_MAX);
    if (form->dtype != 0 && form->dtype != MU_F16 && form->dtype != MU_BF16)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "rows of dtype %" PRIu32 ": expected float32, float16 or "
                            "bfloat16",
                            form->dtype);
    if (mu__rule_kind(form->rule.kind)->dense_only)
        return mu_error_set(ret_error, -MU_EINVALID, "%s is not for rows of tables",
                            mu__rule_kind(form->rule.kind)->name);
    return 0;
}

uint64_t mu__table_row_id(const unsigned char *row)
{
    uint64_t id;

    memcpy(&id, row, sizeof id);
    return id;
}

uint32_t mu__table_row_pushes(const unsigned char *row)
{
    uint32_t pushes;

    memcpy(&pushes, row + sizeof(uint64_t), sizeof pushes);
    return pushes;
}

uint32_t mu__table_row_time(const struct mu__table *table, const unsigned char *row)
{
    uint32_t time;

    memcpy(&time, row + table->row_bytes - sizeof time, sizeof time);
    return time;
}
