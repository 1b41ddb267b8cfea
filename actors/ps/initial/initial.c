#include "actors/ps/initial/initial.h"

#include "actors/ps/initial/philox.h"
#include "actors/ps/initial/quantile.h"
#include "runtime/base/byte_order.h"
#include "runtime/base/narrow_floats.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- Checks ---- */

/* What elements of a dtype can be. */
static const struct bounds {
    double low;
    double high;
    bool is_float;
} bounds[] = {
    [MU_F32] = {-FLT_MAX, FLT_MAX, true},
    [MU_F64] = {-DBL_MAX, DBL_MAX, true},
    [MU_I8] = {INT8_MIN, INT8_MAX, false},
    [MU_I16] = {INT16_MIN, INT16_MAX, false},
    [MU_I32] = {INT32_MIN, INT32_MAX, false},
    [MU_I64] = {-0x1p63, 0x1.fffffffffffffp62, false},
    [MU_U8] = {0, UINT8_MAX, false},
    [MU_BOOL] = {0, 1, false},
    [MU_F16] = {-65504, 65504, true},
    [MU_U16] = {0, UINT16_MAX, false},
    [MU_U32] = {0, UINT32_MAX, false},
    [MU_U64] = {0, 0x1.fffffffffffffp63, false},
    [MU_BF16] = {-0x1.fep127, 0x1.fep127, true},
};

/* The range that all values lie in: deviations of doubles from a uniform number end
 * before 9. */
static int get_value_range(const struct mu__initial *initial, double *ret_low,
                           double *ret_high)
{
    double reach = initial->kind == MU__INITIAL_TRUNCATED ? 2 : 9;

    *ret_low = *ret_high = 0;
    if (initial->kind == MU__INITIAL_ZEROS)
        return 0;
    *ret_low = *ret_high = initial->a;
    if (!isfinite(initial->a) || !isfinite(initial->b))
        return -MU_EINVALID;
    if (initial->kind == MU__INITIAL_CONSTANT)
        return 0;
    if (initial->kind == MU__INITIAL_UNIFORM) {
        *ret_high = initial->b;
        return initial->a <= initial->b ? 0 : -MU_EINVALID;
    }
    *ret_low = initial->a - reach * initial->b;
    *ret_high = initial->a + reach * initial->b;
    return initial->b >= 0 ? 0 : -MU_EINVALID;
}

const char *mu__initial_name(uint32_t kind)
{
    static const char *const names[] = {"zeros", "constant", "uniform", "normal",
                                        "truncated normal"};

    return kind < MU__INITIAL_KINDS ? names[kind] : "";
}

int mu__initial_check(const struct mu__initial *initial, uint32_t dtype,
                      mu_error *ret_error)
{
    const struct bounds *of_dtype;
    double low;
    double high;

    if (mu_dtype_bytes((int)dtype) == 0 || initial->kind >= MU__INITIAL_KINDS)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "initial values of kind %" PRIu32 " are unknown",
                            initial->kind);
    of_dtype = &bounds[dtype];
    if (get_value_range(initial, &low, &high) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "initial values with the parameters %g and %g: expected "
                            "finite ones, the lower one first, and a deviation from 0 on",
                            initial->a, initial->b);
    if (!of_dtype->is_float && (initial->kind > MU__INITIAL_CONSTANT || floor(low) < low))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s has no such initial values: a whole number was expected",
                            mu_dtype_name((int)dtype));
    if (low < of_dtype->low || high > of_dtype->high)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "initial values from %g to %g are out of the range of %s",
                            low, high, mu_dtype_name((int)dtype));
    return 0;
}

/* ---- Values ---- */

enum { CHUNK = 512 }; /* elements; even */

/* Numbers between 0 and 1, without both; two of one block of Philox. */
static double unit_of(uint32_t low, uint32_t high)
{
    uint64_t bits = low | (uint64_t)high << 32;

    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

/* `first` is even. */
static void fill_units(const struct mu__initial *initial, uint64_t hash, uint64_t first,
                       size_t count, double units[CHUNK])
{
    const uint32_t key[2] = {(uint32_t)initial->seed, (uint32_t)(initial->seed >> 32)};

    for (size_t i = 0; i < count; i += 2) {
        uint64_t block = (first + i) / 2;
        const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32),
                                     (uint32_t)hash, (uint32_t)(hash >> 32)};
        uint32_t bits[4];

        mu__philox(counter, key, bits);
        units[i] = unit_of(bits[0], bits[1]);
        units[i + 1] = unit_of(bits[2], bits[3]);
    }
}

/* Shares of the normal distribution below -2 and 2 deviations. */
static const double BELOW_LEFT = 0.022750131948179207;
static const double BELOW_RIGHT = 0.97724986805182079;

static double value_of(const struct mu__initial *initial, double unit)
{
    switch (initial->kind) {
    case MU__INITIAL_ZEROS:
        return 0;
    case MU__INITIAL_UNIFORM:
        return initial->a + (initial->b - initial->a) * unit;
    case MU__INITIAL_NORMAL:
        return initial->a + initial->b * mu__normal_quantile(unit);
    case MU__INITIAL_TRUNCATED:
        unit = BELOW_LEFT + (BELOW_RIGHT - BELOW_LEFT) * unit;
        return initial->a + initial->b * mu__normal_quantile(unit);
    default:
        return initial->a;
    }
}

void mu__initial_values(const struct mu__initial *initial, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = value_of(initial, values[i]);
}

#define STORE(name, type, expression)                                                 \
    static void store_##name(const double *values, size_t count, void *restrict out_) \
    {                                                                                 \
        type *out = out_;                                                             \
                                                                                      \
        for (size_t i = 0; i < count; i++)                                            \
            out[i] = (type)(expression);                                              \
    }

STORE(initial_f32, float, values[i])
STORE(initial_f64, double, values[i])
STORE(initial_i8, int8_t, values[i])
STORE(initial_i16, int16_t, values[i])
STORE(initial_i32, int32_t, values[i])
STORE(initial_i64, int64_t, values[i])
STORE(initial_u8, uint8_t, values[i])
STORE(initial_u16, uint16_t, values[i])
STORE(initial_u32, uint32_t, values[i])
STORE(initial_u64, uint64_t, values[i])
STORE(initial_f16, uint16_t, mu__f16_of_f32((float)values[i]))
STORE(initial_bf16, uint16_t, mu__bf16_of_f32((float)values[i]))

static void (*const stores[])(const double *values, size_t count, void *restrict out) = {
    [MU_F32] = store_initial_f32,   [MU_F64] = store_initial_f64,
    [MU_I8] = store_initial_i8,     [MU_I16] = store_initial_i16,
    [MU_I32] = store_initial_i32,   [MU_I64] = store_initial_i64,
    [MU_U8] = store_initial_u8,     [MU_BOOL] = store_initial_u8,
    [MU_F16] = store_initial_f16,   [MU_U16] = store_initial_u16,
    [MU_U32] = store_initial_u32,   [MU_U64] = store_initial_u64,
    [MU_BF16] = store_initial_bf16,
};

void mu__initial_store(uint32_t dtype, const double *values, size_t count, void *out)
{
    stores[dtype](values, count, out);
}

void mu__initial_fill(const struct mu__initial *initial, struct mu__view name,
                      uint32_t dtype, uint64_t first, uint64_t count, void *out)
{
    uint64_t hash = mu__name_hash(name);
    size_t skipped = first % 2;
    uint8_t *to = out;
    double values[CHUNK];

    first -= skipped;
    count += skipped;
    while (count > 0) {
        size_t some = count < CHUNK ? (size_t)count : CHUNK;

        if (initial->kind > MU__INITIAL_CONSTANT)
            fill_units(initial, hash, first, some, values);
        mu__initial_values(initial, values, some);
        mu__initial_store(dtype, values + skipped, some - skipped, to);
        to += (some - skipped) * mu_dtype_bytes((int)dtype);
        skipped = 0;
        first += some;
        count -= some;
    }
}

/* ---- As bytes ---- */

static void put_double(uint8_t *out, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    mu__store_little(out, bits, 8);
}

static double get_double(const uint8_t *bytes)
{
    uint64_t bits = mu__load_little64(bytes);
    double number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

void mu__initial_pack(const struct mu__initial *initial, uint64_t size,
                      uint8_t out[MU__INITIAL_BYTES])
{
    mu__store_little(out, initial->kind, 8);
    mu__store_little(out + 8, initial->seed, 8);
    put_double(out + 16, initial->a);
    put_double(out + 24, initial->b);
    mu__store_little(out + 32, size, 8);
}

int mu__initial_unpack(struct mu__view data, struct mu__initial *ret_initial,
                       uint64_t *ret_size)
{
    const uint8_t *bytes = data.data;

    if (data.size != MU__INITIAL_BYTES || mu__load_little64(bytes) > UINT32_MAX)
        return -MU_EINVALID;
    ret_initial->kind = (uint32_t)mu__load_little64(bytes);
    ret_initial->seed = mu__load_little64(bytes + 8);
    ret_initial->a = get_double(bytes + 16);
    ret_initial->b = get_double(bytes + 24);
    *ret_size = mu__load_little64(bytes + 32);
    return 0;
}
