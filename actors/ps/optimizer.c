/* The loops run over blocks of a fixed length, copied to a local array first: so data
 * from the network need not be aligned, nothing overlaps, and the compiler, which knows
 * the number of rounds, makes vector code of them already at -O2. */
#include "actors/ps/optimizer.h"

#include "muster/value.h"
#include "runtime/base/narrow_floats.h"

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

static void add_f16(void *restrict x_, const void *restrict d_, size_t count)
{
    uint16_t *x = x_;
    const uint16_t *d = d_;

    for (size_t i = 0; i < count; i++)
        x[i] = mu__f16_of_f32(mu__f32_of_f16(x[i]) + mu__f32_of_f16(d[i]));
}

static void add_bf16(void *restrict x_, const void *restrict d_, size_t count)
{
    uint16_t *x = x_;
    const uint16_t *d = d_;

    for (size_t i = 0; i < count; i++)
        x[i] = mu__bf16_of_f32(mu__f32_of_bf16(x[i]) + mu__f32_of_bf16(d[i]));
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
    [MU_U16] = add_i16, [MU_U32] = add_i32, [MU_U64] = add_i64, [MU_BF16] = add_bf16,
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
