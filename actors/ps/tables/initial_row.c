#include "actors/ps/tables/initial_row.h"

#include "actors/ps/initial/philox.h"
#include "actors/ps/initial/quantile.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PHILOX_WORDS = 4 };

static float number_of(const struct mu__row_initial *initial, uint32_t word)
{
    if (initial->kind == MU__ROW_INITIAL_UNIFORM)
        return initial->a + (initial->b - initial->a) * ((float)(word >> 8) * 0x1p-24F);
    return initial->a +
           initial->b * (float)mu__normal_quantile(((double)word + 0.5) * 0x1p-32);
}

static void put_constant(float number, uint32_t dim, unsigned char *row)
{
    for (uint32_t i = 0; i < dim; i++)
        memcpy(row + i * sizeof number, &number, sizeof number);
}

void mu__initial_row(const struct mu__row_initial *initial, uint64_t id, uint32_t dim,
                     void *row)
{
    const uint32_t key[2] = {(uint32_t)initial->seed, (uint32_t)(initial->seed >> 32)};
    unsigned char *at = row;

    if (initial->kind == MU__ROW_INITIAL_ZEROS) {
        memset(row, 0, dim * sizeof(float));
        return;
    }
    if (initial->kind == MU__ROW_INITIAL_CONSTANT) {
        put_constant(initial->a, dim, row);
        return;
    }
    for (uint32_t i = 0; i < dim; i += PHILOX_WORDS) {
        const uint32_t counter[4] = {(uint32_t)id, (uint32_t)(id >> 32), i / PHILOX_WORDS,
                                     0};
        uint32_t words[PHILOX_WORDS];

        mu__philox(counter, key, words);
        for (uint32_t k = 0; k < PHILOX_WORDS && i + k < dim; k++) {
            float number = number_of(initial, words[k]);

            memcpy(at + (i + k) * sizeof number, &number, sizeof number);
        }
    }
}

int mu__row_initial_check(const struct mu__row_initial *initial, mu_error *ret_error)
{
    if (initial->kind > MU__ROW_INITIAL_NORMAL)
        return mu_error_set(ret_error, -MU_EINVALID, "no initializer %" PRIu32,
                            initial->kind);
    if (!isfinite(initial->a) || !isfinite(initial->b) ||
        !isfinite(initial->b - initial->a))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the initializer's numbers %g and %g are not finite",
                            (double)initial->a, (double)initial->b);
    if (initial->kind == MU__ROW_INITIAL_NORMAL && initial->b < 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a standard deviation of %g: expected at least 0",
                            (double)initial->b);
    if (initial->kind == MU__ROW_INITIAL_UNIFORM && initial->a > initial->b)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "numbers from %g to %g: expected the lower one first",
                            (double)initial->a, (double)initial->b);
    return 0;
}
