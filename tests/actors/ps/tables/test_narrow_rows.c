/* Rows of 16 bits: what is rounded to what, and that small steps add up. */
#include "actors/ps/tables/narrow_rows.h"
#include "actors/ps/tables/table_part.h"
#include "runtime/base/narrow_floats.h"
#include "tests/support/test.h"

#include "muster/value.h"

#include <math.h>

static const uint32_t dtypes[] = {MU_BF16, MU_F16};

enum { DTYPES = 2, DRAWS = 40000 };

static float widen(uint32_t dtype, uint16_t narrow)
{
    float wide;

    mu__narrow_row_widen(dtype, &narrow, 1, &wide);
    return wide;
}

static uint16_t draw(uint32_t dtype, float wide, uint32_t push)
{
    const struct mu__row_chance chance = {3, 77, push};
    uint16_t narrow;

    mu__narrow_row_draw(dtype, &wide, 1, &chance, &narrow);
    return narrow;
}

/* Numbers that 16 bits hold stay as they are; so do infinities. */
TEST(test_what_fits_stays)
{
    for (int d = 0; d < DTYPES; d++)
        for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
            float wide = widen(dtypes[d], (uint16_t)bits);

            if (isnan(wide))
                assert_true(isnan(widen(dtypes[d], draw(dtypes[d], wide, bits))));
            else
                assert_int_equal(draw(dtypes[d], wide, bits), bits);
        }
}

/* Others become one of their neighbours, and are themselves in the mean. */
TEST(test_the_mean_is_the_number)
{
    static const struct {
        uint32_t dtype;
        float number;
        float below; /* its neighbour toward zero, */
        float above; /* and the other one */
    } rows[] = {
        {MU_BF16, 1.001F, 1, 1.0078125F},
        {MU_BF16, -1.001F, -1, -1.0078125F},
        {MU_BF16, 3.0e38F, 2.9906e38F, 3.0039e38F},
        {MU_F16, 1.0003F, 1, 1.0009765625F},
        {MU_F16, -1.0003F, -1, -1.0009765625F},
        {MU_F16, 0x1.8p-25F, 0, 0x1p-24F},
        {MU_F16, 0x1.2p-14F, 0x1.2p-14F, 0x1.2p-14F},
        {MU_F16, 0x1.0008p-15F, 0x1p-15F, 0x1.008p-15F},
        {MU_F16, 0x1p-28F, 0, 0x1p-24F},
    };

    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        double step = fabs((double)rows[r].above - (double)rows[r].below);
        double sum = 0;

        for (uint32_t i = 1; i <= DRAWS; i++) {
            double drawn =
                (double)widen(rows[r].dtype, draw(rows[r].dtype, rows[r].number, i));

            assert_true(fabs(drawn) >= fabs((double)rows[r].below) * 0.9999);
            assert_true(fabs(drawn) <= fabs((double)rows[r].above) * 1.0001);
            sum += drawn;
        }
        assert_true(fabs(sum / DRAWS - (double)rows[r].number) <= 0.01 * step);
    }
}

/* Seed, id, push and column all count, and nothing else does. */
TEST(test_what_chance_is_of)
{
    static const struct mu__row_chance others[] = {{4, 77, 1}, {3, 78, 1}, {3, 77, 2}};
    const struct mu__row_chance chance = {3, 77, 1};
    float wide[64];
    uint16_t rows[2][64];
    uint32_t up = 0;

    for (int i = 0; i < 64; i++)
        wide[i] = 1.00390625F; /* in the middle */
    mu__narrow_row_draw(MU_BF16, wide, 64, &chance, rows[0]);
    mu__narrow_row_draw(MU_BF16, wide, 33, &chance, rows[1]);
    assert_memory_equal(rows[0], rows[1], 33 * sizeof rows[0][0]);
    for (int i = 0; i < 64; i++)
        up += widen(MU_BF16, rows[0][i]) > 1;
    assert_in_range(up, 20, 44);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        mu__narrow_row_draw(MU_BF16, wide, 64, &others[i], rows[1]);
        assert_memory_not_equal(rows[0], rows[1], sizeof rows[0]);
    }
}

/* ---- Tables ---- */

static struct mu__table_form form_of(uint32_t dtype, uint32_t dim)
{
    return (struct mu__table_form){
        .dim = dim,
        .dtype = dtype,
        .initial = {.kind = MU__INITIAL_CONSTANT, .a = 1.0001, .seed = 3},
        .rule = {.kind = MU__RULE_SGD, .numbers = {[MU__RATE] = 1}}};
}

static float look_up(const struct mu__table *table, uint64_t id, uint32_t column)
{
    uint16_t row[128];
    float wide[128];

    mu__table_lookup(table, &id, 1, row);
    mu__narrow_row_widen(table->form.dtype, row, table->form.dim, wide);
    return wide[column];
}

/* What a look-up gives of an id without a row is what sums have of it. */
TEST(test_an_unknown_row_is_narrow_everywhere)
{
    const uint64_t id = 9;
    const uint32_t bag = 0;
    const struct mu__pooled pooled = {
        .count = 1, .ids = (const void *)&id, .bags = (const void *)&bag};

    for (int d = 0; d < DTYPES; d++) {
        const struct mu__table_form form = form_of(dtypes[d], 2);
        float sum[2] = {0, 0};
        uint64_t used = 0;
        struct mu__table table;

        mu__table_init(&table, &form, &(struct mu__table_memory){1 << 20, &used, NULL},
                       1);
        mu__table_pool(&table, &pooled, sum);
        assert_true(sum[1] == 1);
        assert_true(look_up(&table, id, 1) == 1);
        mu__table_done(&table);
    }
}

/* A thousand steps of a thousandth, each less than half of what 16 bits can tell. */
TEST(test_small_steps_add_up)
{
    enum { DIM = 65, STEPS = 1000 };

    for (int d = 0; d < DTYPES; d++) {
        const struct mu__table_form form = form_of(dtypes[d], DIM);
        const uint64_t id = 9;
        float gradient[DIM];
        double sum = 0;
        uint64_t used = 0;
        struct mu__table table;

        for (int i = 0; i < DIM; i++)
            gradient[i] = -0.001F;
        assert_int_equal(mu__table_form_check(&form, NULL), 0);
        mu__table_init(&table, &form, &(struct mu__table_memory){1 << 20, &used, NULL},
                       1);
        assert_true(look_up(&table, id, DIM - 1) == 1); /* as the row will begin */
        for (int i = 0; i < STEPS; i++) {
            mu__table_unreserve(&table);
            assert_int_equal(mu__table_reserve(&table, &id, 1, NULL), 0);
            (void)mu__table_push(&table, &id, gradient, 1, &form.rule);
        }
        for (uint32_t i = 0; i < DIM; i++)
            sum += (double)look_up(&table, id, i);
        assert_true(fabs(sum / DIM - 2) < 0.03);
        mu__table_done(&table);
        assert_int_equal(used, 0);
    }
}

/* The row takes half of the bytes, padded to 4; slots have 32 bits. */
TEST(test_bytes_of_narrow_rows)
{
    static const struct {
        uint32_t dtype;
        uint32_t dim;
        uint32_t bytes;
    } rows[] = {{0, 7, 12 + 28 + 28},
                {MU_BF16, 8, 12 + 16 + 32},
                {MU_F16, 7, 12 + 16 + 28},
                {MU_F16, 1, 12 + 4 + 4}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__table_form form = form_of(rows[i].dtype, rows[i].dim);

        form.rule = mu__rule_defaults(MU__RULE_ADAGRAD);
        assert_int_equal(mu__table_row_bytes(&form), rows[i].bytes);
    }
}

TEST(test_dtypes_that_are_refused)
{
    struct mu__table_form form = form_of(MU_F64, 4);
    mu_error error;

    assert_int_equal(mu__table_form_check(&form, &error), -MU_EINVALID);
    assert_non_null(strstr(error.message, "expected float32, float16 or bfloat16"));
}

TEST_PROGRAM()
