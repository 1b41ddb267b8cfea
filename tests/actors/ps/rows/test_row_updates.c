/* Minimum, maximum, product and quotient of rows: of each dtype, against sums that can be
 * done in the head, and what is refused. */
#include "actors/ps/rows/row_updates.h"

#include "actors/ps/rows/row_list.h"
#include "actors/ps/rows/rows.h"
#include "runtime/base/narrow_floats.h"
#include "tests/support/variable_store.h"

#include <math.h>

static const uint32_t all[] = {MU__WRITE_SCATTER_MIN, MU__WRITE_SCATTER_MAX,
                               MU__WRITE_SCATTER_MUL, MU__WRITE_SCATTER_DIV};

/* More elements than a block has; d lies at an odd address. */
#define assert_updates(type, dtype, x0, d0, ...)                            \
    do {                                                                    \
        enum { COUNT = 5000 };                                              \
        const type expected[4] = {__VA_ARGS__};                             \
        static type x[COUNT];                                               \
        static uint8_t d[COUNT * sizeof(type) + 1];                         \
                                                                            \
        for (int k = 0; k < 4; k++) {                                       \
            const type x_start = x0;                                        \
            const type d_start = d0;                                        \
                                                                            \
            for (size_t i = 0; i < COUNT; i++) {                            \
                x[i] = x_start;                                             \
                memcpy(d + 1 + i * sizeof(type), &d_start, sizeof d_start); \
            }                                                               \
            mu__row_update(all[k], dtype, x, d + 1, COUNT);                 \
            for (size_t i = 0; i < COUNT; i++)                              \
                assert_memory_equal(&x[i], &expected[k], sizeof(type));     \
        }                                                                   \
    } while (0)

TEST(test_each_dtype)
{
    assert_updates(float, MU_F32, 3, -2, -2, 3, -6, -1.5F);
    assert_updates(double, MU_F64, 3, -2, -2, 3, -6, -1.5);
    assert_updates(int8_t, MU_I8, 100, -3, -3, 100, -44, -33);
    assert_updates(int16_t, MU_I16, -32767, 32767, -32767, 32767, -1, -1);
    assert_updates(int32_t, MU_I32, -7, 2, -7, 2, -14, -3);
    assert_updates(int64_t, MU_I64, INT64_MIN, 2, INT64_MIN, 2, 0, INT64_MIN / 2);
    assert_updates(uint8_t, MU_U8, 200, 3, 3, 200, 88, 66);
    assert_updates(uint16_t, MU_U16, 65535, 65535, 65535, 65535, 1, 1);
    assert_updates(uint32_t, MU_U32, UINT32_MAX, 2, 2, UINT32_MAX, UINT32_MAX - 1,
                   UINT32_MAX / 2);
    assert_updates(uint64_t, MU_U64, UINT64_MAX, 2, 2, UINT64_MAX, UINT64_MAX - 1,
                   UINT64_MAX / 2);
    assert_updates(uint16_t, MU_F16, mu__f16_of_f32(3), mu__f16_of_f32(-2),
                   mu__f16_of_f32(-2), mu__f16_of_f32(3), mu__f16_of_f32(-6),
                   mu__f16_of_f32(-1.5F));
    assert_updates(uint16_t, MU_BF16, mu__bf16_of_f32(3), mu__bf16_of_f32(-2),
                   mu__bf16_of_f32(-2), mu__bf16_of_f32(3), mu__bf16_of_f32(-6),
                   mu__bf16_of_f32(-1.5F));
}

/* Which C leaves undefined. */
TEST(test_the_lowest_number_divided_by_minus_one)
{
    assert_updates(int8_t, MU_I8, INT8_MIN, -1, INT8_MIN, -1, INT8_MIN, INT8_MIN);
    assert_updates(int32_t, MU_I32, INT32_MIN, -1, INT32_MIN, -1, INT32_MIN, INT32_MIN);
    assert_updates(int64_t, MU_I64, INT64_MIN, -1, INT64_MIN, -1, INT64_MIN, INT64_MIN);
}

TEST(test_nan_and_zero_of_floats)
{
    for (int k = 0; k < 4; k++) {
        float x[2] = {1, NAN};
        const float d[2] = {NAN, 1};

        mu__row_update(all[k], MU_F32, x, d, 2);
        assert_true(isnan(x[0]) && isnan(x[1]));
    }
    float x = 1;

    mu__row_update(MU__WRITE_SCATTER_DIV, MU_F32, &x, &(float){0}, 1);
    assert_true(isinf(x));
}

TEST(test_divisors_of_zero_are_found)
{
    const int32_t numbers[] = {1, -1, 256, 0, 5};

    assert_int_equal(mu__find_zero_divisor(MU_I32, numbers, 5), 3);
    assert_int_equal(mu__find_zero_divisor(MU_I32, numbers, 3), 3);
    assert_int_equal(mu__find_zero_divisor(MU_I8, numbers, 1), 1);
    assert_int_equal(mu__find_zero_divisor(MU_F32, numbers, 5), 5);
}

/* ---- In the store ---- */

enum { ROWS = 3 };

static uint64_t make_numbers(struct mu__variable_store *store, int dtype)
{
    struct mu__store_open request = open_of("v", ALICE, 1);
    uint64_t id;

    request.shape = (struct mu__shape){(uint32_t)dtype, 1, {ROWS}, 1};
    request.bytes = ROWS * mu_dtype_bytes(dtype);
    id = opens(store, &request).id;
    zero_it(store, id, ALICE, 1);
    return id;
}

/* Two rows: number 2, and number 0. */
static struct mu__store_write update_of(uint64_t id, uint32_t operation,
                                        const int32_t contents[2], uint8_t bytes[24])
{
    mu__store_little(bytes, 2, 8);
    mu__store_little(bytes + 8, 0, 8);
    memcpy(bytes + 16, contents, 8);
    return (struct mu__store_write){
        .id = id, .operation = operation, .data = {bytes, 24}, .writer = pid(BOB)};
}

static void assert_numbers(struct mu__variable_store *store, uint64_t id,
                           const int32_t expected[ROWS])
{
    struct mu__view data;
    uint64_t version;

    assert_int_equal(mu__store_read(store,
                                    &(struct mu__store_read){id, 0, ROWS * sizeof(int)},
                                    NULL, &data, &version),
                     0);
    assert_memory_equal(data.data, expected, ROWS * sizeof expected[0]);
}

TEST_ON(test_rows_are_updated, struct mu__variable_store *store, set_up, tear_down)
{
    static const struct {
        uint32_t operation;
        int32_t given[2];
        int32_t expected[ROWS];
    } steps[] = {
        {MU__WRITE_SCATTER_MAX, {5, -1}, {0, 0, 5}},
        {MU__WRITE_SCATTER_MIN, {4, -6}, {-6, 0, 4}},
        {MU__WRITE_SCATTER_MUL, {3, 2}, {-12, 0, 12}},
        {MU__WRITE_SCATTER_DIV, {5, 5}, {-2, 0, 2}},
    };
    uint64_t id = make_numbers(store, MU_I32);
    uint64_t version = mu__store_version(store, id);
    uint8_t bytes[24];

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        write_ok(store, update_of(id, steps[i].operation, steps[i].given, bytes));
        assert_numbers(store, id, steps[i].expected);
    }
    assert_int_equal(mu__store_version(store, id), version);
}

/* Alone, and in a batch, of which nothing is applied. */
static void assert_refused(struct mu__variable_store *store, struct mu__store_write write)
{
    assert_int_equal(write_it(store, write, NULL), -MU_EINVALID);
    assert_int_equal(mu__store_check_batch(store, &write, NULL), -MU_EINVALID);
}

TEST_ON(test_updates_that_are_refused, struct mu__variable_store *store, set_up,
        tear_down)
{
    static const int32_t ones[2] = {1, 1};
    uint64_t id = make_numbers(store, MU_I32);
    uint8_t bytes[24];
    struct mu__store_write write =
        update_of(id, MU__WRITE_SCATTER_DIV, (const int32_t[]){1, 0}, bytes);

    assert_refused(store, write);
    write = update_of(id, MU__WRITE_SCATTER_MUL, ones, bytes);
    write.data.size--;
    assert_refused(store, write);
    write = update_of(id, MU__WRITE_SCATTER_MIN, ones, bytes);
    bytes[0] = ROWS;
    assert_int_equal(write_it(store, write, NULL), -MU_ERANGE);
    assert_numbers(store, id, (const int32_t[ROWS]){0, 0, 0});
}

TEST_ON(test_truth_values_have_no_updates, struct mu__variable_store *store, set_up,
        tear_down)
{
    uint64_t id = make_numbers(store, MU_BOOL);
    uint8_t bytes[9] = {0};

    for (int k = 0; k < 4; k++)
        assert_refused(store, (struct mu__store_write){.id = id,
                                                       .operation = all[k],
                                                       .data = {bytes, sizeof bytes},
                                                       .writer = pid(BOB)});
}

TEST_PROGRAM()
