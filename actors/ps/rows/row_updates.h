/* What is done to the elements x of a row, with an element d for each: the smaller or the
 * larger one, the product, the quotient.
 *
 * Products of integers wrap. Their quotients are cut towards 0, and what does not fit,
 * the lowest number by -1, wraps. NaN in x or d gives NaN. */
#ifndef MU_ACTORS_PS_ROWS_ROW_UPDATES_H
#define MU_ACTORS_PS_ROWS_ROW_UPDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes to a list of rows, beside enum mu__row_operation: each is one of MU_ROWS_... */
enum {
    MU__WRITE_SCATTER_MIN = 20,
    MU__WRITE_SCATTER_MAX = 21,
    MU__WRITE_SCATTER_MUL = 22,
    MU__WRITE_SCATTER_DIV = 23
};

static inline bool mu__write_updates_rows(uint32_t operation)
{
    return operation >= MU__WRITE_SCATTER_MIN && operation <= MU__WRITE_SCATTER_DIV;
}

/* All but BOOL. */
bool mu__dtype_updates_rows(int dtype);

/* The first of `count` elements by which x cannot be divided, a 0 of integers; `count`:
 * there is none. `d` need not be aligned, also below. */
size_t mu__find_zero_divisor(int dtype, const void *d, size_t count);

/* Update `count` elements, which are aligned. Nothing divides by such a 0. */
void mu__row_update(uint32_t operation, int dtype, void *x, const void *d, size_t count);

#endif
