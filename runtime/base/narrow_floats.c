#include "runtime/base/narrow_floats.h"

/* The number of a half: 10 bits of fraction, 5 of exponent. */
float mu__f32_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1F;
    uint32_t fraction = half & 0x3FF;
    uint32_t bits;
    float number;

    if (exponent == 0) { /* zero, or below the least normal number */
        number = (float)fraction * 0x1p-24F;
        return sign != 0 ? -number : number;
    }
    exponent = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
    bits = sign | exponent << 23 | fraction << 13;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* The nearest half; of two the even one. */
uint16_t mu__f16_of_f32(float number)
{
    uint32_t bits;
    uint32_t sign;
    uint32_t rest;
    uint32_t half;
    unsigned shift = 13;

    memcpy(&bits, &number, sizeof bits);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000)
        return 0x7E00;      /* no number */
    if (bits >= 0x477FF000) /* rounds to more than the largest half */
        return (uint16_t)(sign | 0x7C00);
    if (bits < 0x33000000)
        return (uint16_t)sign;
    half = bits - ((127 - 15) << 23);
    if (bits < 0x38800000) { /* below the least normal half */
        shift = 126 - (bits >> 23);
        half = (bits & 0x7FFFFF) | 0x800000;
    }
    rest = half & ((1U << shift) - 1);
    half >>= shift;
    if (rest > 1U << (shift - 1) || (rest == 1U << (shift - 1) && (half & 1) != 0))
        half++;
    return (uint16_t)(sign | half);
}
