/* Adding to elements: each dtype, each length around a block, unaligned data. */
#include "actors/ps/optimizer.h"

#include "muster/value.h"
#include "tests/support/test.h"

#include <math.h>

static const struct ability {
    int dtype;
    bool adds;
} abilities[] = {
    {MU_F32, true},         {MU_F64, true}, {MU_I8, true},   {MU_I16, true},
    {MU_I32, true},         {MU_I64, true}, {MU_U8, true},   {MU_BOOL, false},
    {MU_DTYPE_NONE, false}, {MU_F16, true}, {MU_U16, true},  {MU_U32, true},
    {MU_U64, true},         {-1, false},    {MU_BF16, true}, {14, false},
    {255, false},
};

TEST(test_abilities)
{
    for (size_t i = 0; i < sizeof abilities / sizeof abilities[0]; i++)
        assert_int_equal(mu__optimizer_adds(abilities[i].dtype), abilities[i].adds);
}

/* The largest number plus 2: integers wrap, unsigned or not. */
static const struct wrap {
    int dtype;
    uint8_t x[8];
    uint8_t sum[8];
} wraps[] = {
    {MU_I8, {0x7F}, {0x81}},
    {MU_U8, {0xFF}, {0x01}},
    {MU_I16, {0xFF, 0x7F}, {0x01, 0x80}},
    {MU_U16, {0xFF, 0xFF}, {0x01, 0}},
    {MU_U32, {0xFF, 0xFF, 0xFF, 0xFF}, {0x01, 0, 0, 0}},
    {MU_U64,
     {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
     {0x01, 0, 0, 0, 0, 0, 0, 0}},
    {MU_I32, {0xFF, 0xFF, 0xFF, 0x7F}, {0x01, 0, 0, 0x80}},
    {MU_I64,
     {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F},
     {0x01, 0, 0, 0, 0, 0, 0, 0x80}},
};

TEST(test_integers_wrap)
{
    const uint8_t two[8] = {2};

    for (size_t i = 0; i < sizeof wraps / sizeof wraps[0]; i++) {
        size_t bytes = mu_dtype_bytes(wraps[i].dtype);
        uint64_t x;

        memcpy(&x, wraps[i].x, sizeof x);
        mu__optimizer_add(wraps[i].dtype, &x, two, bytes);
        assert_memory_equal(&x, wraps[i].sum, bytes);
    }
}

/* Halves: the sum is exact, or the nearest one, of two the even one. */
static const struct half {
    const char *what;
    uint16_t a;
    uint16_t b;
    uint16_t sum;
} halves[] = {
    {"1 + 1", 0x3C00, 0x3C00, 0x4000},
    {"0 + -0", 0x0000, 0x8000, 0x0000},
    {"-0 + -0", 0x8000, 0x8000, 0x8000},
    {"1.5 + -2.25", 0x3E00, 0xC080, 0xBA00},
    {"65504 + 16 is infinite", 0x7BFF, 0x4C00, 0x7C00},
    {"65504 + 15.99 is not", 0x7BFF, 0x4BFF, 0x7BFF},
    {"-65504 + -65504", 0xFBFF, 0xFBFF, 0xFC00},
    {"2048 + 1 is even", 0x6800, 0x3C00, 0x6800},
    {"2050 + 1 is even", 0x6801, 0x3C00, 0x6802},
    {"2048 + 1.5 is nearest", 0x6800, 0x3E00, 0x6801},
    {"the least ones", 0x0001, 0x0001, 0x0002},
    {"least normal from below", 0x03FF, 0x0001, 0x0400},
    {"least normal and below", 0x0400, 0x8001, 0x03FF},
    {"infinite - infinite", 0x7C00, 0xFC00, 0x7E00},
    {"infinite + 1", 0x7C00, 0x3C00, 0x7C00},
    {"no number", 0x7E00, 0x3C00, 0x7E00},
};

TEST(test_halves_are_added)
{
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        uint16_t sum = halves[i].a;

        mu__optimizer_add(MU_F16, &sum, &halves[i].b, sizeof sum);
        if (sum != halves[i].sum)
            fail_msg("%s: 0x%04X", halves[i].what, sum);
    }
}

/* What is added to 0 stays what it is: every half that is a number. */
TEST(test_each_half_is_kept)
{
    for (uint32_t number = 1; number <= UINT16_MAX; number++) {
        uint16_t half = (uint16_t)number;
        uint16_t sum = 0;

        if ((half & 0x7FFF) > 0x7C00 || half == 0x8000)
            continue;
        mu__optimizer_add(MU_F16, &sum, &half, sizeof sum);
        assert_int_equal(sum, half);
    }
}

/* Element counts around the block that the loops run over, of 1024 floats. */
static const size_t lengths[] = {0, 1, 3, 15, 1023, 1024, 1025, 2048, 5000};
enum { LENGTH_MAX = 5000, OFFSETS = 4 };

struct fixture {
    float x[LENGTH_MAX + 1];
    uint8_t data[LENGTH_MAX * sizeof(float) + OFFSETS];
};

/* Small whole numbers, so that results are exact; data at any offset. */
static void fill(struct fixture *f, size_t count, size_t offset)
{
    for (size_t i = 0; i <= LENGTH_MAX; i++)
        f->x[i] = (float)(i % 100);
    for (size_t i = 0; i < count; i++) {
        float delta = (float)(i % 11) - 5;

        memcpy(f->data + offset + i * sizeof delta, &delta, sizeof delta);
    }
}

static float add_expected(size_t i)
{
    return (float)(i % 100) + ((float)(i % 11) - 5);
}

/* Each element is touched once, and nothing behind the last one. */
static void check_add(struct fixture *f, size_t count, size_t offset)
{
    fill(f, count, offset);
    mu__optimizer_add(MU_F32, f->x, f->data + offset, count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        assert_true(f->x[i] == add_expected(i));
    assert_true(f->x[count] == (float)(count % 100));
}

TEST(test_lengths_and_offsets)
{
    struct fixture *f = malloc(sizeof *f);

    assert_non_null(f);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t offset = 0; offset < OFFSETS; offset++)
            check_add(f, lengths[i], offset);
    free(f);
}

TEST(test_doubles)
{
    const double d[3] = {2, -4, 0.5};
    double x[3] = {1, 2, 3};

    mu__optimizer_add(MU_F64, x, d, sizeof x);
    assert_true(x[0] == 3 && x[1] == -2 && x[2] == 3.5);
}

/* No number is refused: arithmetic decides. */
TEST(test_nan_and_infinity)
{
    const float d[2] = {NAN, INFINITY};
    float x[2] = {1, 1};

    mu__optimizer_add(MU_F32, x, d, sizeof x);
    assert_true(isnan(x[0]));
    assert_true(isinf(x[1]));
}

TEST_PROGRAM()
