#include "cli/vars/element_text.h"

#include "runtime/base/narrow_floats.h"

#include "muster/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float float_at(int dtype, const void *at)
{
    uint16_t bits;
    float number;

    if (dtype == MU_F32) {
        memcpy(&number, at, sizeof number);
        return number;
    }
    memcpy(&bits, at, sizeof bits);
    return dtype == MU_F16 ? mu__f32_of_f16(bits) : mu__f32_of_bf16(bits);
}

static bool is_equal(double a, double b)
{
    return !(a < b) && !(a > b);
}

static void print_float(float number, char out[CMD_ELEMENT_BYTES])
{
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(out, CMD_ELEMENT_BYTES, "%.*g", digits, (double)number);
        if (is_equal((double)strtof(out, NULL), (double)number))
            return;
    }
}

static void print_double(const void *at, char out[CMD_ELEMENT_BYTES])
{
    double number;

    memcpy(&number, at, sizeof number);
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, CMD_ELEMENT_BYTES, "%.*g", digits, number);
        if (is_equal(strtod(out, NULL), number))
            return;
    }
}

static bool is_unsigned(int dtype)
{
    return dtype == MU_U8 || dtype == MU_U16 || dtype == MU_U32 || dtype == MU_U64;
}

/* Little-endian or big-endian: by the type of that size. */
static void print_integer(int dtype, const void *at, char out[CMD_ELEMENT_BYTES])
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
    } element = {.u64 = 0};
    size_t size = mu_dtype_bytes(dtype);

    memcpy(&element, at, size);
    if (is_unsigned(dtype))
        (void)snprintf(out, CMD_ELEMENT_BYTES, "%" PRIu64,
                       size == 1   ? element.u8
                       : size == 2 ? element.u16
                       : size == 4 ? element.u32
                                   : element.u64);
    else
        (void)snprintf(out, CMD_ELEMENT_BYTES, "%" PRId64,
                       size == 1   ? element.i8
                       : size == 2 ? element.i16
                       : size == 4 ? element.i32
                                   : element.i64);
}

static bool is_not_finite(const char *text)
{
    text += *text == '-';
    return *text == 'n' || *text == 'i';
}

const char *cmd_element_text(int dtype, const void *at, bool is_json,
                             char out[CMD_ELEMENT_BYTES])
{
    if (dtype == MU_F32 || dtype == MU_F16 || dtype == MU_BF16)
        print_float(float_at(dtype, at), out);
    else if (dtype == MU_F64)
        print_double(at, out);
    else if (dtype == MU_BOOL)
        (void)snprintf(out, CMD_ELEMENT_BYTES, "%s",
                       *(const unsigned char *)at != 0 ? "true" : "false");
    else
        print_integer(dtype, at, out);
    if (is_json && is_not_finite(out))
        (void)snprintf(out, CMD_ELEMENT_BYTES, "null");
    return out;
}
