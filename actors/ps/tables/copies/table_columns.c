#include "actors/ps/tables/copies/table_columns.h"

#include "actors/ps/tables/row_values.h"

#include "muster/value.h"

#include <stdio.h>
#include <string.h>

static void add_slot_columns(const struct mu__table_form *form,
                             struct mu__table_column *columns, unsigned *count)
{
    const struct mu__rule_kind *kind = mu__rule_kind(form->rule.kind);
    uint32_t offset = MU__TABLE_ROW_HEAD + mu__table_values_bytes(form);

    for (unsigned k = 0; k < kind->slots + kind->row_slots; k++) {
        struct mu__table_column *column = &columns[(*count)++];
        uint32_t numbers = k < kind->slots ? form->dim : 0;

        *column = (struct mu__table_column){.dtype = MU_F32,
                                            .count = numbers,
                                            .offset = offset,
                                            .bytes = (numbers == 0 ? 1 : numbers) *
                                                     (uint32_t)sizeof(float)};
        (void)snprintf(column->name, sizeof column->name, "%s.%s", kind->name,
                       kind->slot_names[k]);
        offset += column->bytes;
    }
}

unsigned mu__table_columns(const struct mu__table_form *form,
                           struct mu__table_column ret_columns[MU__TABLE_COLUMNS_MAX])
{
    uint32_t number_bytes =
        (uint32_t)(form->dtype == 0 ? sizeof(float) : sizeof(uint16_t));
    unsigned count = MU__TABLE_COLUMN_ROWS + 1;

    ret_columns[MU__TABLE_COLUMN_IDS] = (struct mu__table_column){
        .name = "ids", .dtype = MU_I64, .bytes = sizeof(uint64_t)};
    ret_columns[MU__TABLE_COLUMN_PUSHES] =
        (struct mu__table_column){.name = "pushes",
                                  .dtype = MU_I64,
                                  .offset = sizeof(uint64_t),
                                  .bytes = sizeof(uint32_t)};
    ret_columns[MU__TABLE_COLUMN_ROWS] =
        (struct mu__table_column){.dtype = form->dtype == 0 ? MU_F32 : form->dtype,
                                  .count = form->dim,
                                  .offset = MU__TABLE_ROW_HEAD,
                                  .bytes = form->dim * number_bytes};
    add_slot_columns(form, ret_columns, &count);
    if (mu__table_policy_has_time(&form->policy))
        ret_columns[count++] = (struct mu__table_column){
            .name = "times",
            .dtype = MU_I64,
            .offset = mu__table_row_bytes(form) - (uint32_t)sizeof(uint32_t),
            .bytes = sizeof(uint32_t)};
    return count;
}

static bool is_widened(const struct mu__table_column *column)
{
    return column->dtype == MU_I64 && column->bytes == sizeof(uint32_t);
}

uint32_t mu__table_column_bytes(const struct mu__table_column *column)
{
    return is_widened(column) ? 2 * column->bytes : column->bytes;
}

void mu__table_column_take(const struct mu__table_column *column, const void *copies,
                           uint32_t row_bytes, uint32_t count, void *ret_numbers)
{
    const unsigned char *from = (const unsigned char *)copies + column->offset;
    unsigned char *to = ret_numbers;

    for (uint32_t i = 0; i < count; i++, from += row_bytes) {
        if (is_widened(column)) {
            uint32_t narrow;
            uint64_t wide;

            memcpy(&narrow, from, sizeof narrow);
            wide = narrow;
            memcpy(to, &wide, sizeof wide);
        } else {
            memcpy(to, from, column->bytes);
        }
        to += mu__table_column_bytes(column);
    }
}

void mu__table_rows_take(const struct mu__table_form *form, const void *copies,
                         uint32_t count, float *ret_numbers)
{
    const unsigned char *row = copies;

    for (uint32_t i = 0; i < count; i++, row += mu__table_row_bytes(form))
        mu__values_widen(form, row, ret_numbers + (size_t)i * form->dim);
}

bool mu__table_column_put(const struct mu__table_column *column, const void *numbers,
                          uint32_t count, void *copies, uint32_t row_bytes)
{
    const unsigned char *from = numbers;
    unsigned char *to = (unsigned char *)copies + column->offset;

    for (uint32_t i = 0; i < count; i++, to += row_bytes) {
        if (is_widened(column)) {
            uint64_t wide;
            uint32_t narrow;

            memcpy(&wide, from, sizeof wide);
            narrow = (uint32_t)wide;
            if (wide > UINT32_MAX)
                return false;
            memcpy(to, &narrow, sizeof narrow);
        } else {
            memcpy(to, from, column->bytes);
        }
        from += mu__table_column_bytes(column);
    }
    return true;
}
