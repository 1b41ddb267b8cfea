/* Times by size: the bucket of each, and what the map says. */
#include "actors/supervisor/state/histogram.h"
#include "tests/support/test.h"

#include <math.h>

static double float_at(const mu_value *map, const char *key)
{
    double number = NAN;

    assert_int_equal(mu_value_get_float(mu_value_find(map, key), &number), 0);
    return number;
}

static int64_t count_at(const mu_value *map)
{
    int64_t number = -1;

    assert_int_equal(mu_value_get_int(mu_value_find(map, "count"), &number), 0);
    return number;
}

TEST(test_buckets)
{
    static const struct {
        double seconds;
        size_t bucket;
    } rows[] = {
        {0, 0},   {0.0005, 0}, {0.001, 0}, {0.0011, 1}, {0.01, 1}, {0.011, 2},
        {0.1, 2}, {0.5, 3},    {1, 3},     {1.5, 4},    {10, 4},   {99, 5},
        {100, 5}, {100.5, 6},  {1e300, 6}, {-1, 0},     {NAN, 0},  {INFINITY, 6},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__histogram histogram = {0};

        mu__histogram_add(&histogram, rows[i].seconds);
        for (size_t b = 0; b < MU__HISTOGRAM_BUCKETS; b++)
            if (histogram.buckets[b] != (b == rows[i].bucket))
                fail_msg("row %zu: bucket %zu has %d", i, b, (int)histogram.buckets[b]);
    }
}

TEST(test_sums)
{
    struct mu__histogram histogram = {0};

    mu__histogram_add(&histogram, 2);
    mu__histogram_add(&histogram, 0.5);
    mu__histogram_add(&histogram, -3);
    mu__histogram_add(&histogram, 4);
    assert_int_equal(histogram.count, 4);
    assert_true(histogram.sum_s == 6.5);
    assert_true(histogram.min_s == 0);
    assert_true(histogram.max_s == 4);
}

TEST(test_value)
{
    static const double limits[] = {0.001, 0.01, 0.1, 1, 10, 100};
    struct mu__histogram histogram = {0};
    const mu_value *buckets;
    mu_value *map;

    mu__histogram_add(&histogram, 1);
    mu__histogram_add(&histogram, 3);
    mu__histogram_add(&histogram, 1000);
    map = mu__histogram_value(&histogram);
    assert_int_equal(count_at(map), 3);
    assert_true(float_at(map, "sum_s") == 1004);
    assert_true(float_at(map, "min_s") == 1);
    assert_true(float_at(map, "max_s") == 1000);
    assert_true(float_at(map, "mean_s") == 1004.0 / 3);
    buckets = mu_value_find(map, "buckets");
    assert_int_equal(mu_value_count(buckets), MU__HISTOGRAM_BUCKETS);
    for (size_t i = 0; i < MU__HISTOGRAM_BUCKETS; i++) {
        const mu_value *bucket = mu_value_at(buckets, i);

        assert_int_equal(count_at(bucket), i == 3 || i == 4 || i == 6);
        if (i < 6)
            assert_true(float_at(bucket, "up_to_s") == limits[i]);
        else
            assert_int_equal(mu_value_type(mu_value_find(bucket, "up_to_s")),
                             MU_VALUE_NIL);
    }
    mu_value_free(map);
}

TEST(test_empty)
{
    const struct mu__histogram histogram = {0};
    mu_value *map = mu__histogram_value(&histogram);

    assert_int_equal(count_at(map), 0);
    assert_true(float_at(map, "mean_s") == 0);
    mu_value_free(map);
}

TEST_PROGRAM()
