#include "actors/ps/tables/narrow_rows.h"

#include "actors/ps/initial/philox.h"
#include "runtime/base/narrow_floats.h"

#include "muster/value.h"

#include <string.h>

static uint16_t narrow_at(const void *row, uint32_t i)
{
    uint16_t narrow;

    memcpy(&narrow, (const unsigned char *)row + i * sizeof narrow, sizeof narrow);
    return narrow;
}

static void set_narrow(void *row, uint32_t i, uint16_t narrow)
{
    memcpy((unsigned char *)row + i * sizeof narrow, &narrow, sizeof narrow);
}

static float widened(uint32_t dtype, uint16_t narrow)
{
    return dtype == MU_BF16 ? mu__f32_of_bf16(narrow) : mu__f32_of_f16(narrow);
}

static uint16_t narrow_nearest(uint32_t dtype, float wide)
{
    return dtype == MU_BF16 ? mu__bf16_of_f32(wide) : mu__f16_of_f32(wide);
}

void mu__narrow_row_widen(uint32_t dtype, const void *row, uint32_t dim, void *ret_wide)
{
    for (uint32_t i = 0; i < dim; i++) {
        float wide = widened(dtype, narrow_at(row, i));

        memcpy((unsigned char *)ret_wide + i * sizeof wide, &wide, sizeof wide);
    }
}

void mu__narrow_row_round(uint32_t dtype, const float *wide, uint32_t dim, void *ret_row)
{
    for (uint32_t i = 0; i < dim; i++)
        set_narrow(ret_row, i, narrow_nearest(dtype, wide[i]));
}

void mu__narrow_row_snap(uint32_t dtype, void *wide, uint32_t dim)
{
    unsigned char *at = wide;
    float number;

    for (uint32_t i = 0; i < dim; i++, at += sizeof number) {
        memcpy(&number, at, sizeof number);
        number = widened(dtype, narrow_nearest(dtype, number));
        memcpy(at, &number, sizeof number);
    }
}

/* ---- By chance ---- */

static uint16_t draw_bf16(float wide, uint32_t drawn)
{
    uint32_t bits;

    memcpy(&bits, &wide, sizeof bits);
    if ((bits & 0x7F800000) == 0x7F800000) /* infinite, or no number */
        return mu__bf16_of_f32(wide);
    return (uint16_t)((bits + drawn) >> 16);
}

/* The neighbour toward zero, and the chance of the other one by how far it is. Numbers
 * are 2^-24 times an integer below the least normal half. */
static uint16_t draw_f16(float wide, uint32_t drawn)
{
    uint32_t bits;
    uint32_t sign;
    uint32_t half;
    uint32_t shift = 13;
    uint32_t rest;

    memcpy(&bits, &wide, sizeof bits);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7FFFFFFF;
    if (bits >= 0x47800000) /* 2^16 or more, or no number */
        return mu__f16_of_f32(wide);
    if (bits < 0x2F800000) /* below 2^-32: less than the chance can say */
        return (uint16_t)sign;
    half = bits - ((127 - 15) << 23);
    if (bits < 0x38800000) {
        shift = 126 - (bits >> 23);
        half = (bits & 0x7FFFFF) | 0x800000;
    }
    rest = (uint32_t)(((uint64_t)half << 16 >> shift) & 0xFFFF);
    half >>= shift;
    return (uint16_t)(sign | (half + (rest + drawn > 0xFFFF)));
}

enum { PHILOX_DRAWS = 8 };

void mu__narrow_row_draw(uint32_t dtype, const float *wide, uint32_t dim,
                         const struct mu__row_chance *chance, void *ret_row)
{
    const uint32_t key[2] = {(uint32_t)chance->seed, (uint32_t)(chance->seed >> 32)};
    uint32_t words[PHILOX_DRAWS / 2];

    for (uint32_t i = 0; i < dim; i++) {
        const uint32_t counter[4] = {(uint32_t)chance->id, (uint32_t)(chance->id >> 32),
                                     i / PHILOX_DRAWS, chance->push};
        uint32_t drawn;

        if (i % PHILOX_DRAWS == 0)
            mu__philox(counter, key, words);
        drawn = words[i / 2 % (PHILOX_DRAWS / 2)] >> i % 2 * 16 & 0xFFFF;
        set_narrow(ret_row, i,
                   dtype == MU_BF16 ? draw_bf16(wide[i], drawn)
                                    : draw_f16(wide[i], drawn));
    }
}
