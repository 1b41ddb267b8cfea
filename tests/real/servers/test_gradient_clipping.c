/* Clipping of gradients: by value, by norm, by the norm of all. */
#include "muster/optimizer.h"

#include "muster/value.h"
#include "tests/support/test.h"

#include <math.h>

static const struct clipped {
    int by;
    double limit;
    float first[2]; /* of (3, 4) */
    double second;  /* of (-12) */
} rows[] = {
    {MU_CLIP_VALUE, 3.5, {3, 3.5F}, -3.5},     {MU_CLIP_VALUE, 100, {3, 4}, -12},
    {MU_CLIP_NORM, 2.5, {1.5F, 2}, -2.5},      {MU_CLIP_NORM, 5, {3, 4}, -5},
    {MU_CLIP_GLOBAL_NORM, 6.5, {1.5F, 2}, -6}, /* the norm of all is 13 */
    {MU_CLIP_GLOBAL_NORM, 13, {3, 4}, -12},
};

TEST(test_gradients_are_clipped)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float first[2] = {3, 4};
        double second = -12;
        const mu_gradient gradients[] = {{MU_F32, first, 2}, {MU_F64, &second, 1}};

        assert_int_equal(mu_clip_gradients(gradients, 2, rows[i].by, rows[i].limit, NULL),
                         0);
        assert_memory_equal(first, rows[i].first, sizeof first);
        assert_true(fabs(second - rows[i].second) < 1e-15);
    }
}

/* 1, -2 and 4 as float16, and as bfloat16; and more than a block of them. */
TEST(test_floats_of_16_bits_are_clipped)
{
    uint16_t halves[] = {0x3C00, 0xC000, 0x4400};
    uint16_t brains[1500];
    const mu_gradient gradients[] = {{MU_F16, halves, 3}, {MU_BF16, brains, 1500}};

    for (int i = 0; i < 1500; i++)
        brains[i] = i % 2 == 0 ? 0x4080 : 0xC000;
    assert_int_equal(mu_clip_gradients(gradients, 2, MU_CLIP_VALUE, 1, NULL), 0);
    assert_memory_equal(halves, ((uint16_t[]){0x3C00, 0xBC00, 0x3C00}), sizeof halves);
    for (int i = 0; i < 1500; i++)
        assert_int_equal(brains[i], i % 2 == 0 ? 0x3F80 : 0xBF80);
}

TEST(test_a_norm_that_is_not_finite)
{
    for (int by = MU_CLIP_NORM; by <= MU_CLIP_GLOBAL_NORM; by++) {
        float bad[2] = {1, INFINITY};
        float good = 0.5F;
        const mu_gradient gradients[] = {{MU_F32, bad, 2}, {MU_F32, &good, 1}};

        assert_int_equal(mu_clip_gradients(gradients, 2, by, 1, NULL), 0);
        assert_true(isnan(bad[0]) && isnan(bad[1]));
        assert_true(by == MU_CLIP_NORM ? good > 0.4F : isnan(good));
    }
}

TEST(test_clipping_that_is_refused)
{
    float number = 2;
    const struct {
        mu_gradient gradient;
        int by;
        double limit;
        const char *words;
    } refused[] = {
        {{MU_F32, &number, 1}, 0, 1, "no clipping 0"},
        {{MU_F32, &number, 1}, 4, 1, "no clipping 4"},
        {{MU_F32, &number, 1}, MU_CLIP_VALUE, 0, "clipping to 0: expected"},
        {{MU_F32, &number, 1}, MU_CLIP_VALUE, (double)NAN, "clipping to nan: expected"},
        {{MU_I32, &number, 1}, MU_CLIP_VALUE, 1, "gradient 1 has no data, or dtype"},
        {{MU_F32, NULL, 1}, MU_CLIP_NORM, 1, "gradient 1 has no data"},
    };

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const mu_gradient gradients[] = {{MU_F32, &number, 1}, refused[i].gradient};
        mu_error error = {0};

        assert_int_equal(mu_clip_gradients(gradients, 2, refused[i].by, refused[i].limit,
                                           &error),
                         -MU_EINVALID);
        assert_non_null(strstr(error.message, refused[i].words));
        assert_true(number >= 2);
    }
}

TEST_PROGRAM()
