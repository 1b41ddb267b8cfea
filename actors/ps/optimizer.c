/* The loops run over blocks of a fixed length, copied to a local array first: so data
 * from the network need not be aligned, nothing overlaps, and the compiler, which knows
 * the number of rounds, makes vector code of them already at -O2. */
#include "actors/ps/optimizer.h"

#include "muster/value.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK_BYTES = 4096 };

typedef void (*block_fn)(void *restrict x, const void *restrict d, size_t count);

/* The same for a full block, of a number of elements that the compiler knows. */
#define LOOPS(type, count, statement)               \
    do {                                            \
        enum { FULL = BLOCK_BYTES / sizeof(type) }; \
                                                    \
        if ((count) == FULL)                        \
            for (size_t i = 0; i < FULL; i++)       \
                statement;                          \
        else                                        \
            for (size_t i = 0; i < (count); i++)    \
                statement;                          \
    } while (0)

/* Signed numbers add as unsigned ones, so that they wrap. */
#define ADD(name, type)                                                              \
    static void add_##name(void *restrict x_, const void *restrict d_, size_t count) \
    {                                                                                \
        type *x = x_;                                                                \
        const type *d = d_;                                                          \
                                                                                     \
        LOOPS(type, count, x[i] = (type)(x[i] + d[i]));                              \
    }

/* The number of a half: 10 bits of fraction, 5 of exponent. */
static float float_of(uint16_t half)
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
static uint16_t half_of(float number)
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

static void add_f16(void *restrict x_, const void *restrict d_, size_t count)
{
    uint16_t *x = x_;
    const uint16_t *d = d_;

    for (size_t i = 0; i < count; i++)
        x[i] = half_of(float_of(x[i]) + float_of(d[i]));
}

ADD(f32, float)
ADD(f64, double)
ADD(i8, uint8_t)
ADD(i16, uint16_t)
ADD(i32, uint32_t)
ADD(i64, uint64_t)

static const block_fn adders[] = {
    [MU_F32] = add_f32, [MU_F64] = add_f64, [MU_I8] = add_i8,   [MU_I16] = add_i16,
    [MU_I32] = add_i32, [MU_I64] = add_i64, [MU_U8] = add_i8,   [MU_F16] = add_f16,
    [MU_U16] = add_i16, [MU_U32] = add_i32, [MU_U64] = add_i64,
};

static block_fn find_adder(int dtype)
{
    if (dtype < 0 || (size_t)dtype >= sizeof adders / sizeof adders[0])
        return NULL;
    return adders[dtype];
}

bool mu__optimizer_adds(int dtype)
{
    return find_adder(dtype) != NULL;
}

void mu__optimizer_add(int dtype, void *x, const void *delta, size_t bytes)
{
    _Alignas(64) uint8_t aligned[BLOCK_BYTES];
    const block_fn add = find_adder(dtype);
    const size_t element_bytes = mu_dtype_bytes(dtype);
    const uint8_t *from = delta;
    uint8_t *to = x;

    assert(add != NULL && bytes % element_bytes == 0);
    while (bytes > 0) {
        size_t size = bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES;

        memcpy(aligned, from, size);
        add(to, aligned, size / element_bytes);
        bytes -= size;
        from += size;
        to += size;
    }
}
