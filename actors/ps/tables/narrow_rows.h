/* Rows of tables in floats of 16 bits. A row is widened, the rule runs on floats of 32
 * bits, and the result is rounded up or down by chance, so that many small steps add up:
 * by a hash of the seed, the id, the number of the row's push, and the column. */
#ifndef MU_ACTORS_PS_TABLES_NARROW_ROWS_H
#define MU_ACTORS_PS_TABLES_NARROW_ROWS_H

#include <stdint.h>

/* What the chance of a row's push is a function of; `push` begins with 1. */
struct mu__row_chance {
    uint64_t seed;
    uint64_t id;
    uint32_t push;
};

/* `dtype` is MU_F16 or MU_BF16; rows need not be aligned. */
void mu__narrow_row_widen(uint32_t dtype, const void *row, uint32_t dim, void *ret_wide);
void mu__narrow_row_round(uint32_t dtype, const float *wide, uint32_t dim, void *ret_row);
void mu__narrow_row_draw(uint32_t dtype, const float *wide, uint32_t dim,
                         const struct mu__row_chance *chance, void *ret_row);

/* Round numbers of 32 bits, not aligned, to the nearest that 16 bits hold. */
void mu__narrow_row_snap(uint32_t dtype, void *wide, uint32_t dim);

#endif
