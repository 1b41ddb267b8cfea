#include "actors/ps/tables/initial_row.h"

#include "actors/ps/initial/philox.h"

#include <string.h>

enum { PHILOX_WORDS = 4 };

/* The numbers of one block, which begins at a column. */
static void make_block(const struct mu__initial *initial, uint64_t id, uint32_t column,
                       float numbers[PHILOX_WORDS])
{
    const uint32_t key[2] = {(uint32_t)initial->seed, (uint32_t)(initial->seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)id, (uint32_t)(id >> 32),
                                 column / PHILOX_WORDS, 0};
    uint32_t words[PHILOX_WORDS];
    double values[PHILOX_WORDS];

    mu__philox(counter, key, words);
    for (int i = 0; i < PHILOX_WORDS; i++)
        values[i] = ((double)words[i] + 0.5) * 0x1p-32;
    mu__initial_values(initial, values, PHILOX_WORDS);
    mu__initial_store(MU_F32, values, PHILOX_WORDS, numbers);
}

static void put_constant(double number, uint32_t dim, unsigned char *row)
{
    float narrow = (float)number;

    for (uint32_t i = 0; i < dim; i++)
        memcpy(row + i * sizeof narrow, &narrow, sizeof narrow);
}

void mu__initial_row(const struct mu__initial *initial, uint64_t id, uint32_t dim,
                     void *row)
{
    unsigned char *at = row;

    if (initial->kind == MU__INITIAL_ZEROS)
        memset(row, 0, dim * sizeof(float));
    else if (initial->kind == MU__INITIAL_CONSTANT)
        put_constant(initial->a, dim, row);
    else
        for (uint32_t i = 0; i < dim; i += PHILOX_WORDS) {
            uint32_t some = dim - i < PHILOX_WORDS ? dim - i : PHILOX_WORDS;
            float numbers[PHILOX_WORDS];

            make_block(initial, id, i, numbers);
            memcpy(at + i * sizeof(float), numbers, some * sizeof(float));
        }
}
