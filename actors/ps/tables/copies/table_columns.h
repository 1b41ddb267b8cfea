/* What a copy of a row is made of (mu__table_row_at), by columns, as files have them: the
 * one place that knows where in a copy a number is. Plain data.
 *
 * A column is a tensor with one entry for each row: of the table "emb" the ids
 * "emb#ids", the pushes "emb#pushes", the rows "emb", and the slots of its optimizer,
 * say "emb#adam.momentum"; of some policies the times of last pushes, "emb#times". */
#ifndef MU_ACTORS_PS_TABLES_TABLE_COLUMNS_H
#define MU_ACTORS_PS_TABLES_TABLE_COLUMNS_H

#include "actors/ps/tables/table_part.h"

enum { MU__TABLE_COLUMNS_MAX = 4 + MU__RULE_SLOTS_MAX, MU__TABLE_COLUMN_NAME_MAX = 64 };

struct mu__table_column {
    char name[MU__TABLE_COLUMN_NAME_MAX]; /* behind the table's name and "#"; "": the
                                             rows, which have the table's name */
    uint32_t dtype;                       /* enum mu_dtype, of the tensor */
    uint32_t count;                       /* numbers of a row; 0: one, without a dim */
    uint32_t offset;                      /* in a copy */
    uint32_t bytes; /* in a copy: of one row; half of the tensor's: a u32 as I64 */
};

/* The first ones. */
enum { MU__TABLE_COLUMN_IDS, MU__TABLE_COLUMN_PUSHES, MU__TABLE_COLUMN_ROWS };

/* The columns of a table. The form was checked. */
unsigned mu__table_columns(const struct mu__table_form *form,
                           struct mu__table_column ret_columns[MU__TABLE_COLUMNS_MAX]);

/* Bytes of one row in the tensor. */
uint32_t mu__table_column_bytes(const struct mu__table_column *column);

/* A column of `count` copies of rows, of `row_bytes` each. */
void mu__table_column_take(const struct mu__table_column *column, const void *copies,
                           uint32_t row_bytes, uint32_t count, void *ret_numbers);

/* The numbers of `count` copies of rows as 32-bit floats. */
void mu__table_rows_take(const struct mu__table_form *form, const void *copies,
                         uint32_t count, float *ret_numbers);

/* A column back into the copies. False: a number is not one of such a column. */
bool mu__table_column_put(const struct mu__table_column *column, const void *numbers,
                          uint32_t count, void *copies, uint32_t row_bytes);

#endif
