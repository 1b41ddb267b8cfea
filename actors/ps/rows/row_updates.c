#include "actors/ps/rows/row_updates.h"

#include "muster/value.h"
#include "runtime/base/narrow_floats.h"

#include <assert.h>
#include <string.h>

enum { BLOCK_BYTES = 4096, OPERATIONS = 4 };

typedef void (*update_fn)(void *restrict x, const void *restrict d, size_t count);

#define UPDATE(name, type, expression)                                                  \
    static void update_##name(void *restrict x_, const void *restrict d_, size_t count) \
    {                                                                                   \
        type *x = x_;                                                                   \
        const type *d = d_;                                                             \
                                                                                        \
        for (size_t i = 0; i < count; i++)                                              \
            x[i] = (type)(expression);                                                  \
    }

#define LOWER(x, d) ((d) < (x) || (d) != (d) ? (d) : (x))
#define HIGHER(x, d) ((d) > (x) || (d) != (d) ? (d) : (x))

/* clang-format off */
#define FLOATS(name, type)                           \
    UPDATE(min_##name, type, LOWER(x[i], d[i]))      \
    UPDATE(max_##name, type, HIGHER(x[i], d[i]))     \
    UPDATE(mul_##name, type, x[i] * d[i])            \
    UPDATE(div_##name, type, x[i] / d[i])

/* Products are those of unsigned numbers, so that they wrap. */
#define INTEGERS(name, type, quotient)               \
    UPDATE(min_##name, type, d[i] < x[i] ? d[i] : x[i]) \
    UPDATE(max_##name, type, d[i] > x[i] ? d[i] : x[i]) \
    UPDATE(mul_##name, type, (uint64_t)x[i] * (uint64_t)d[i]) \
    UPDATE(div_##name, type, quotient)

#define SIGNED(name, type) \
    INTEGERS(name, type, d[i] == -1 ? (type)(0 - (uint64_t)x[i]) : x[i] / d[i])
#define UNSIGNED(name, type) INTEGERS(name, type, x[i] / d[i])
/* clang-format on */

FLOATS(f32, float)
FLOATS(f64, double)
SIGNED(i8, int8_t)
SIGNED(i16, int16_t)
SIGNED(i32, int32_t)
SIGNED(i64, int64_t)
UNSIGNED(u8, uint8_t)
UNSIGNED(u16, uint16_t)
UNSIGNED(u32, uint32_t)
UNSIGNED(u64, uint64_t)

#define ALL_OF(name)                                                               \
    {                                                                              \
        update_min_##name, update_max_##name, update_mul_##name, update_div_##name \
    }

static const update_fn updates[][OPERATIONS] = {
    [MU_F32] = ALL_OF(f32), [MU_F64] = ALL_OF(f64), [MU_I8] = ALL_OF(i8),
    [MU_I16] = ALL_OF(i16), [MU_I32] = ALL_OF(i32), [MU_I64] = ALL_OF(i64),
    [MU_U8] = ALL_OF(u8),   [MU_U16] = ALL_OF(u16), [MU_U32] = ALL_OF(u32),
    [MU_U64] = ALL_OF(u64),
};

static bool is_narrow_float(int dtype)
{
    return dtype == MU_F16 || dtype == MU_BF16;
}

bool mu__dtype_updates_rows(int dtype)
{
    return mu_dtype_bytes(dtype) > 0 && dtype != MU_BOOL;
}

size_t mu__find_zero_divisor(int dtype, const void *d, size_t count)
{
    static const uint8_t zero[8];
    size_t bytes = mu_dtype_bytes(dtype);
    const uint8_t *at = d;

    if (dtype == MU_F32 || dtype == MU_F64 || is_narrow_float(dtype))
        return count;
    for (size_t i = 0; i < count; i++)
        if (memcmp(at + i * bytes, zero, bytes) == 0)
            return i;
    return count;
}

static void update_narrow(update_fn update, int dtype, uint16_t *x, const uint16_t *d,
                          size_t count)
{
    float wide[BLOCK_BYTES / sizeof(uint16_t)];
    float given[BLOCK_BYTES / sizeof(uint16_t)];

    for (size_t i = 0; i < count; i++) {
        wide[i] = dtype == MU_F16 ? mu__f32_of_f16(x[i]) : mu__f32_of_bf16(x[i]);
        given[i] = dtype == MU_F16 ? mu__f32_of_f16(d[i]) : mu__f32_of_bf16(d[i]);
    }
    update(wide, given, count);
    for (size_t i = 0; i < count; i++)
        x[i] = dtype == MU_F16 ? mu__f16_of_f32(wide[i]) : mu__bf16_of_f32(wide[i]);
}

void mu__row_update(uint32_t operation, int dtype, void *x, const void *d, size_t count)
{
    _Alignas(64) uint8_t aligned[BLOCK_BYTES];
    bool is_narrow = is_narrow_float(dtype);
    const uint32_t which = operation - MU__WRITE_SCATTER_MIN;
    const update_fn update = updates[is_narrow ? MU_F32 : dtype][which];
    const size_t bytes = mu_dtype_bytes(dtype);
    const uint8_t *from = d;
    uint8_t *to = x;

    assert(mu__write_updates_rows(operation) && mu__dtype_updates_rows(dtype));
    for (size_t done = 0; done < count; done += BLOCK_BYTES / bytes) {
        size_t some =
            count - done < BLOCK_BYTES / bytes ? count - done : BLOCK_BYTES / bytes;

        memcpy(aligned, from + done * bytes, some * bytes);
        if (is_narrow)
            update_narrow(update, dtype, (uint16_t *)(void *)(to + done * bytes),
                          (const uint16_t *)(const void *)aligned, some);
        else
            update(to + done * bytes, aligned, some);
    }
}
