/* Floats of 16 bits, to and from those of 32: float16 (IEEE 754's binary16) and bfloat16,
 * the upper half of a float32. Rounded to the nearest, of two to the even one; beyond the
 * largest is infinity. */
#ifndef MU_RUNTIME_NARROW_FLOATS_H
#define MU_RUNTIME_NARROW_FLOATS_H

#include <stdint.h>
#include <string.h>

float mu__f32_of_f16(uint16_t half);
uint16_t mu__f16_of_f32(float number);

static inline float mu__f32_of_bf16(uint16_t brain)
{
    uint32_t bits = (uint32_t)brain << 16;
    float number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

/* What is no number stays none. */
static inline uint16_t mu__bf16_of_f32(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#endif
