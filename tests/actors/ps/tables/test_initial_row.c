/* What rows begin as: numbers that an independent generator gives, their distribution,
 * and what they depend on. */
#include "actors/ps/tables/initial_row.h"
#include "tests/support/test.h"

#include <math.h>

#define SEED UINT64_C(0x0123456789abcdef)

enum { GOLDEN_DIM = 6 };

/* Philox in Python, and its statistics.NormalDist. */
static const struct golden {
    struct mu__initial initial;
    float row[GOLDEN_DIM];
} goldens[] = {
    {{MU__INITIAL_ZEROS, SEED, 1, 2}, {0, 0, 0, 0, 0, 0}},
    {{MU__INITIAL_CONSTANT, SEED, 0.5, 0}, {0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F}},
    {{MU__INITIAL_UNIFORM, SEED, -1, 3},
     {-0.312277406F, 2.38492227F, 0.050389614F, 1.11747742F, -0.326591492F, 0.4364236F}},
    {{MU__INITIAL_NORMAL, SEED, 5, 2},
     {3.10687327F, 7.04079962F, 3.72928357F, 5.14736938F, 3.07860494F, 4.27830076F}},
    {{MU__INITIAL_TRUNCATED, SEED, 5, 2},
     {3.22093058F, 6.91210365F, 3.79487133F, 5.14065266F, 3.19535065F, 4.31249714F}},
};

TEST(test_initial_rows_are_the_published_ones)
{
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        float row[GOLDEN_DIM];

        mu__initial_row(&goldens[i].initial, UINT64_C(0xfedcba9876543210), GOLDEN_DIM,
                        row);
        assert_memory_equal(row, goldens[i].row, sizeof row);
    }
}

static void moments(const struct mu__initial *initial, double *ret_mean,
                    double *ret_deviation)
{
    enum { COLUMNS = 10, IDS = 10000 };
    float row[COLUMNS];
    double sum = 0;
    double squares = 0;

    for (uint64_t id = 0; id < IDS; id++) {
        mu__initial_row(initial, id, COLUMNS, row);
        for (int i = 0; i < COLUMNS; i++) {
            sum += (double)row[i];
            squares += (double)row[i] * (double)row[i];
        }
    }
    *ret_mean = sum / (COLUMNS * IDS);
    *ret_deviation = sqrt(squares / (COLUMNS * IDS) - *ret_mean * *ret_mean);
}

TEST(test_initial_rows_have_their_distribution)
{
    static const struct {
        struct mu__initial initial;
        double mean;
        double deviation;
    } rows[] = {
        {{MU__INITIAL_UNIFORM, 1, -1, 1}, 0, 0.57735},
        {{MU__INITIAL_NORMAL, 1, 2, 0.5}, 2, 0.5},
        {{MU__INITIAL_TRUNCATED, 1, 2, 0.5}, 2, 0.5 * 0.87962566103423978},
    };
    double mean;
    double deviation;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        moments(&rows[i].initial, &mean, &deviation);
        assert_true(fabs(mean - rows[i].mean) < 0.01);
        assert_true(fabs(deviation - rows[i].deviation) < 0.01);
    }
}

/* A prefix of a row is that of a longer one; seed, id and column all count. */
TEST(test_an_initial_number_is_of_seed_id_and_column)
{
    struct mu__initial initial = {MU__INITIAL_UNIFORM, 1, 0, 1};
    float row[8];
    float other[8];

    mu__initial_row(&initial, 5, 8, row);
    mu__initial_row(&initial, 5, 3, other);
    assert_memory_equal(row, other, 3 * sizeof row[0]);
    for (int i = 1; i < 8; i++)
        assert_true(row[i] > row[0] || row[i] < row[0]);
    mu__initial_row(&initial, 6, 8, other);
    assert_memory_not_equal(row, other, sizeof row);
    initial.seed = 2;
    mu__initial_row(&initial, 5, 8, other);
    assert_memory_not_equal(row, other, sizeof row);
}

TEST_PROGRAM()
