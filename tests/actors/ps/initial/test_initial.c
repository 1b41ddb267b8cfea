/* Initial values: the generator's published rows, quantiles, moments, and that each
 * element depends on the seed, the name and its index alone. */
#include "actors/ps/initial/initial.h"
#include "actors/ps/initial/philox.h"
#include "actors/ps/initial/quantile.h"
#include "runtime/base/narrow_floats.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Philox: known answers of Random123 (kat_vectors) ---- */

static const struct known {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t out[4];
} knowns[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(test_philox)
{
    for (size_t i = 0; i < sizeof knowns / sizeof knowns[0]; i++) {
        uint32_t out[4];

        mu__philox(knowns[i].counter, knowns[i].key, out);
        assert_memory_equal(out, knowns[i].out, sizeof out);
    }
}

/* ---- Quantiles of the normal distribution ---- */

static const struct quantile {
    double p;
    double number;
} quantiles[] = {
    {0.5, 0.0},
    {0.75, 0.6744897501960817},
    {0.25, -0.6744897501960817},
    {0.975, 1.9599639845400536},
    {0.99, 2.3263478740408408},
    {0.02275013194817921, -2.0},
    {1e-05, -4.2648907939228256},
    {1e-15, -7.941345326170995},
    {0x1p-54, -8.292361075813595},
};

TEST(test_quantiles)
{
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++)
        assert_true(fabs(mu__normal_quantile(quantiles[i].p) - quantiles[i].number) <
                    4e-15 * (1 + fabs(quantiles[i].number)));
}

/* ---- Distributions ---- */

enum { MANY = 1 << 18 };

static const struct moments {
    struct mu__initial initial;
    double mean;
    double deviation;
    double kurtosis;
    double low;
    double high;
} distributions[] = {
    {{MU__INITIAL_UNIFORM, 7, -1, 3}, 1, 1.1547005383792515, 1.8, -1, 3},
    {{MU__INITIAL_NORMAL, 7, 5, 2}, 5, 2, 3, -13, 23},
    {{MU__INITIAL_TRUNCATED, 7, 5, 2}, 5, 2 * 0.87962566103423978, 2.3656, 1, 9},
    {{MU__INITIAL_CONSTANT, 7, 5, 0}, 5, 0, 0, 5, 5},
    {{MU__INITIAL_ZEROS, 7, 5, 1}, 0, 0, 0, 0, 0},
};

static double mean_power(const double *numbers, double mean, int power)
{
    double sum = 0;

    for (size_t i = 0; i < MANY; i++)
        sum += pow(numbers[i] - mean, power);
    return sum / MANY;
}

TEST(test_moments)
{
    double *numbers = malloc(MANY * sizeof *numbers);

    assert_non_null(numbers);
    for (size_t i = 0; i < sizeof distributions / sizeof distributions[0]; i++) {
        const struct moments *m = &distributions[i];
        double mean;
        double variance;

        mu__initial_fill(&m->initial, mu__view_str("w"), MU_F64, 0, MANY, numbers);
        for (size_t j = 0; j < MANY; j++)
            assert_true(numbers[j] >= m->low && numbers[j] <= m->high);
        mean = mean_power(numbers, 0, 1);
        variance = mean_power(numbers, mean, 2);
        assert_true(fabs(mean - m->mean) < 0.01 * (1 + m->deviation));
        assert_true(fabs(sqrt(variance) - m->deviation) < 0.01 * (1 + m->deviation));
        assert_true(
            fabs(mean_power(numbers, mean, 4) - m->kurtosis * variance * variance) <=
            0.05 * variance * variance);
    }
    free(numbers);
}

/* ---- A function of seed, name and index ---- */

static const struct mu__initial normal = {MU__INITIAL_NORMAL, 42, 0, 1};

TEST(test_parts_are_those_of_the_whole)
{
    float whole[3000];
    float part[3000];

    mu__initial_fill(&normal, mu__view_str("w"), MU_F32, 0, 3000, whole);
    for (uint64_t first = 0; first < 1100; first += 1 + first / 3)
        for (uint64_t count = 0; count < 1900; count += 1 + count / 2) {
            mu__initial_fill(&normal, mu__view_str("w"), MU_F32, first, count, part);
            assert_memory_equal(part, whole + first, count * sizeof part[0]);
        }
}

TEST(test_shards_are_those_of_the_whole)
{
    static const uint32_t shards[] = {1, 2, 5};
    double whole[99];
    double part[99];

    mu__initial_fill(&normal, mu__view_str("w"), MU_F64, 0, 99, whole);
    for (size_t i = 0; i < 3; i++) {
        const struct mu__shape shape = {MU_F64, 2, {33, 3}, shards[i]};

        for (uint32_t shard = 0; shard < shards[i]; shard++) {
            uint64_t offset;
            uint64_t bytes;

            mu__shape_shard(&shape, shard, &offset, &bytes);
            mu__initial_fill(&normal, mu__view_str("w"), MU_F64, offset / 8, bytes / 8,
                             part);
            assert_memory_equal(part, whole + offset / 8, bytes);
        }
    }
}

/* Written down once: they are the same on any machine, and stay what they are. */
TEST(test_values_stay)
{
    const struct mu__initial uniform = {MU__INITIAL_UNIFORM, 42, 0, 1};
    float numbers[4];

    mu__initial_fill(&uniform, mu__view_str("w"), MU_F32, 0, 4, numbers);
    for (size_t i = 0; i < 4; i++)
        assert_true(numbers[i] == ((const float[]){0x1.0f345p-1F, 0x1.e68e5ep-1F,
                                                   0x1.3eeeaap-2F, 0x1.672e52p-1F})[i]);
    mu__initial_fill(&normal, mu__view_str("w"), MU_F32, 0, 4, numbers);
    for (size_t i = 0; i < 4; i++)
        assert_true(numbers[i] == ((const float[]){0x1.312ceap-4F, 0x1.a5d76p+0F,
                                                   -0x1.f78674p-2F, 0x1.0ebde2p-1F})[i]);
}

TEST(test_seeds_and_names_differ)
{
    struct mu__initial other = normal;
    double first[4];
    double second[4];

    mu__initial_fill(&normal, mu__view_str("w"), MU_F64, 0, 4, first);
    mu__initial_fill(&normal, mu__view_str("v"), MU_F64, 0, 4, second);
    for (size_t i = 0; i < 4; i++)
        assert_true(first[i] < second[i] || first[i] > second[i]);
    other.seed = 43;
    mu__initial_fill(&other, mu__view_str("w"), MU_F64, 0, 4, second);
    for (size_t i = 0; i < 4; i++)
        assert_true(first[i] < second[i] || first[i] > second[i]);
    other.seed = UINT64_C(42) | UINT64_C(1) << 40;
    mu__initial_fill(&other, mu__view_str("w"), MU_F64, 0, 4, second);
    assert_true(first[0] < second[0] || first[0] > second[0]);
}

/* Narrow elements are the wide ones, rounded. */
TEST(test_dtypes_agree)
{
    double doubles[100];
    float floats[100];
    uint16_t halves[100];
    uint16_t brains[100];

    mu__initial_fill(&normal, mu__view_str("w"), MU_F64, 3, 100, doubles);
    mu__initial_fill(&normal, mu__view_str("w"), MU_F32, 3, 100, floats);
    mu__initial_fill(&normal, mu__view_str("w"), MU_F16, 3, 100, halves);
    mu__initial_fill(&normal, mu__view_str("w"), MU_BF16, 3, 100, brains);
    for (size_t i = 0; i < 100; i++) {
        assert_true(floats[i] == (float)doubles[i]);
        assert_int_equal(halves[i], mu__f16_of_f32(floats[i]));
        assert_int_equal(brains[i], mu__bf16_of_f32(floats[i]));
    }
}

/* ---- Checks ---- */

static const struct checked {
    uint32_t dtype;
    struct mu__initial initial;
    int rv;
} checks[] = {
    {MU_F32, {MU__INITIAL_NORMAL, 0, 0, 1}, 0},
    {MU_F32, {MU__INITIAL_NORMAL, 0, 0, -1}, -MU_EINVALID},
    {MU_F32, {MU__INITIAL_TRUNCATED, 0, 0, -1}, -MU_EINVALID},
    {MU_F32, {MU__INITIAL_UNIFORM, 0, 1, 1}, 0},
    {MU_F32, {MU__INITIAL_UNIFORM, 0, 1, 0.5}, -MU_EINVALID},
    {MU_F32, {MU__INITIAL_UNIFORM, 0, (double)NAN, 1}, -MU_EINVALID},
    {MU_F32, {MU__INITIAL_UNIFORM, 0, 0, (double)INFINITY}, -MU_EINVALID},
    {MU_F32, {MU__INITIAL_UNIFORM, 0, -1e39, 0}, -MU_ERANGE},
    {MU_BOOL, {MU__INITIAL_ZEROS, 0, (double)NAN, 0}, 0},
    {MU_F32, {MU__INITIAL_KINDS, 0, 0, 0}, -MU_EINVALID},
    {99, {MU__INITIAL_CONSTANT, 0, 0, 0}, -MU_EINVALID},
    {MU_F16, {MU__INITIAL_CONSTANT, 0, 65504, 0}, 0},
    {MU_F16, {MU__INITIAL_CONSTANT, 0, 65536, 0}, -MU_ERANGE},
    {MU_F16, {MU__INITIAL_NORMAL, 0, 0, 8000}, -MU_ERANGE},
    {MU_BF16, {MU__INITIAL_CONSTANT, 0, 1e38, 0}, 0},
    {MU_BF16, {MU__INITIAL_CONSTANT, 0, 1e39, 0}, -MU_ERANGE},
    {MU_I32, {MU__INITIAL_UNIFORM, 0, 0, 1}, -MU_EINVALID},
    {MU_I32, {MU__INITIAL_CONSTANT, 0, 7, 0}, 0},
    {MU_I32, {MU__INITIAL_CONSTANT, 0, 7.5, 0}, -MU_EINVALID},
    {MU_I8, {MU__INITIAL_CONSTANT, 0, -128, 0}, 0},
    {MU_I8, {MU__INITIAL_CONSTANT, 0, 128, 0}, -MU_ERANGE},
    {MU_I64, {MU__INITIAL_CONSTANT, 0, -0x1p63, 0}, 0},
    {MU_I64, {MU__INITIAL_CONSTANT, 0, 0x1p63, 0}, -MU_ERANGE},
    {MU_U64, {MU__INITIAL_CONSTANT, 0, 0x1p63, 0}, 0},
    {MU_U64, {MU__INITIAL_CONSTANT, 0, 0x1p64, 0}, -MU_ERANGE},
    {MU_U64, {MU__INITIAL_CONSTANT, 0, -1, 0}, -MU_ERANGE},
    {MU_BOOL, {MU__INITIAL_CONSTANT, 0, 1, 0}, 0},
    {MU_BOOL, {MU__INITIAL_CONSTANT, 0, 2, 0}, -MU_ERANGE},
};

TEST(test_checks)
{
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        assert_int_equal(mu__initial_check(&checks[i].initial, checks[i].dtype, NULL),
                         checks[i].rv);
}

TEST(test_bytes)
{
    const struct mu__initial initial = {MU__INITIAL_NORMAL, UINT64_MAX - 1, -0.5, 1e300};
    struct mu__initial unpacked;
    uint8_t bytes[MU__INITIAL_BYTES];
    uint64_t size = 0;

    mu__initial_pack(&initial, 1 << 20, bytes);
    assert_int_equal(
        mu__initial_unpack((struct mu__view){bytes, sizeof bytes}, &unpacked, &size), 0);
    assert_int_equal(size, 1 << 20);
    assert_int_equal(unpacked.kind, initial.kind);
    assert_int_equal(unpacked.seed, initial.seed);
    assert_true(unpacked.a <= -0.5 && unpacked.a >= -0.5);
    assert_true(unpacked.b <= 1e300 && unpacked.b >= 1e300);
    assert_int_equal(mu__initial_unpack((struct mu__view){bytes, sizeof bytes - 1},
                                        &unpacked, &size),
                     -MU_EINVALID);
    bytes[4] = 1;
    assert_int_equal(mu__initial_unpack((struct mu__view){bytes, sizeof bytes}, &unpacked,
                                        &size),
                     -MU_EINVALID);
}

TEST_PROGRAM()
