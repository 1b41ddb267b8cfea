/* Floats of 16 bits: what is rounded, and how. */
#include "runtime/base/narrow_floats.h"

#include "tests/support/test.h"

#include <math.h>

static const struct rounded {
    const char *what;
    float number;
    uint16_t f16;
    uint16_t bf16;
} rounded[] = {
    {"one", 1, 0x3C00, 0x3F80},
    {"minus two", -2, 0xC000, 0xC000},
    {"minus nothing", -0.0F, 0x8000, 0x8000},
    {"half a step above 1 is even", 1 + 0x1p-11F, 0x3C00, 0x3F80},
    {"three halves of a step are even", 1 + 0x3p-11F, 0x3C02, 0x3F80},
    {"half a step of a brain above 1 is even", 1 + 0x1p-8F, 0x3C04, 0x3F80},
    {"more than that", 1 + 0x1p-8F + 0x1p-20F, 0x3C04, 0x3F81},
    {"three halves of it are even", 1 + 0x3p-8F, 0x3C0C, 0x3F82},
    {"the largest half", 65504, 0x7BFF, 0x4780},
    {"beyond it", 65520, 0x7C00, 0x4780},
    {"the largest brain", 0x1.fep127F, 0x7C00, 0x7F7F},
    {"beyond it, too", 0x1.fffffep127F, 0x7C00, 0x7F80},
    {"infinity", INFINITY, 0x7C00, 0x7F80},
    {"minus infinity", -INFINITY, 0xFC00, 0xFF80},
    {"the least half", 0x1p-24F, 0x0001, 0x3380},
    {"half of it", 0x1p-25F, 0x0000, 0x3300},
    {"the least brain", 0x1p-133F, 0x0000, 0x0001},
};

TEST(test_rounding)
{
    for (size_t i = 0; i < sizeof rounded / sizeof rounded[0]; i++) {
        if (mu__f16_of_f32(rounded[i].number) != rounded[i].f16)
            fail_msg("%s: half 0x%04X", rounded[i].what,
                     mu__f16_of_f32(rounded[i].number));
        if (mu__bf16_of_f32(rounded[i].number) != rounded[i].bf16)
            fail_msg("%s: brain 0x%04X", rounded[i].what,
                     mu__bf16_of_f32(rounded[i].number));
    }
}

/* Each of them is itself again; what is no number is none. */
TEST(test_all_are_kept)
{
    for (uint32_t i = 0; i <= UINT16_MAX; i++) {
        uint16_t bits = (uint16_t)i;
        float half = mu__f32_of_f16(bits);
        float brain = mu__f32_of_bf16(bits);

        if ((bits & 0x7FFF) > 0x7C00)
            assert_true(isnan(half) && isnan(mu__f32_of_f16(mu__f16_of_f32(half))));
        else
            assert_int_equal(mu__f16_of_f32(half), bits);
        if ((bits & 0x7FFF) > 0x7F80)
            assert_true(isnan(brain) && isnan(mu__f32_of_bf16(mu__bf16_of_f32(brain))));
        else
            assert_int_equal(mu__bf16_of_f32(brain), bits);
    }
}

/* No number whose upper half alone would be infinity. */
TEST(test_low_bits_of_no_number)
{
    uint32_t bits = 0x7F800001;
    float number;

    memcpy(&number, &bits, sizeof number);
    assert_true(isnan(mu__f32_of_bf16(mu__bf16_of_f32(number))));
}

TEST_PROGRAM()
