/* Bytes that came with errors: the last ones are kept. */
#include "actors/client/error_data.h"
#include "tests/support/test.h"

static void put(struct mu__error_data *data, uint32_t number, size_t size)
{
    void *bytes = calloc(1, size + 1);

    mu__error_data_put(data, number, mu_value_bytes(bytes, size));
    free(bytes);
}

/* The size of what is there; -1: nothing. */
static long get(const struct mu__error_data *data, uint32_t number)
{
    mu_value *value = mu__error_data_get(data, number);
    const void *bytes;
    size_t size;

    if (value == NULL)
        return -1;
    assert_int_equal(mu_value_get_bytes(value, &bytes, &size), 0);
    mu_value_free(value);
    return (long)size;
}

TEST(test_is_found_by_its_number)
{
    struct mu__error_data data = {0};

    assert_int_equal(get(&data, 0), -1);
    assert_int_equal(get(&data, 1), -1);
    put(&data, 1, 10);
    put(&data, 2, 20);
    assert_int_equal(get(&data, 1), 10);
    assert_int_equal(get(&data, 2), 20);
    assert_int_equal(get(&data, 2), 20);
    assert_int_equal(get(&data, 0), -1);
    assert_int_equal(get(&data, 3), -1);
    mu__error_data_done(&data);
}

TEST(test_the_last_ones_are_kept)
{
    struct mu__error_data data = {0};
    const uint32_t last = 3 * MU__ERROR_DATA_ITEMS_MAX;

    for (uint32_t number = 1; number <= last; number++)
        put(&data, number, number % 100);
    assert_int_equal(get(&data, last - MU__ERROR_DATA_ITEMS_MAX), -1);
    for (uint32_t number = last - MU__ERROR_DATA_ITEMS_MAX + 1; number <= last; number++)
        assert_int_equal(get(&data, number), number % 100);
    mu__error_data_done(&data);
}

TEST(test_bytes_are_bounded)
{
    struct mu__error_data data = {0};
    const size_t large = MU__ERROR_DATA_BYTES_MAX / 4;

    for (uint32_t number = 1; number <= 6; number++) {
        put(&data, number, large);
        assert_true(data.bytes <= MU__ERROR_DATA_BYTES_MAX);
    }
    assert_int_equal(get(&data, 2), -1);
    assert_int_equal(get(&data, 3), (long)large);
    assert_int_equal(get(&data, 6), (long)large);
    put(&data, 7, 1);
    assert_int_equal(get(&data, 3), -1);
    assert_int_equal(get(&data, 7), 1);
    mu__error_data_done(&data);
}

/* After the largest number they begin again. */
TEST(test_numbers_begin_again)
{
    struct mu__error_data data = {0};

    put(&data, UINT32_MAX - 1, 5);
    put(&data, UINT32_MAX, 6);
    assert_int_equal(get(&data, UINT32_MAX), 6);
    put(&data, 1, 7);
    assert_int_equal(get(&data, 1), 7);
    assert_int_equal(get(&data, UINT32_MAX), -1);
    assert_int_equal(data.bytes, 7);
    mu__error_data_done(&data);
}

TEST_PROGRAM()
