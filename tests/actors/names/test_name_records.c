/* Damaged records of names. */
#include "actors/coordination/names/record_bytes.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static const struct mu__view name = {"total", 5};
static struct mu__crc32c crc;
static uint8_t *bytes;
static size_t size;

static int pack_one(void **state)
{
    mu_value *map = mu_value_map();
    int rv;

    (void)state;
    mu__crc32c_init(&crc);
    assert_int_equal(mu_value_set(map, "type", mu_value_string("counter")), 0);
    assert_int_equal(mu_value_set(map, "epoch", mu_value_int(77)), 0);
    assert_int_equal(mu_value_set(map, "args", mu_value_bytes("0123456789", 10)), 0);
    rv = mu__name_record_pack(&crc, map, name, &bytes, &size);
    mu_value_free(map);
    return rv;
}

static int free_one(void **state)
{
    (void)state;
    free(bytes);
    return 0;
}

static int read_record(size_t length, struct mu__view of)
{
    mu_value *map = NULL;
    int rv = mu__name_record_unpack(&crc, (struct mu__view){bytes, (uint32_t)length}, of,
                                    &map);
    int64_t epoch = 0;

    if (rv == 0) {
        assert_int_equal(mu_value_get_int(mu_value_find(map, "epoch"), &epoch), 0);
        assert_int_equal(epoch, 77);
    }
    mu_value_free(map);
    return rv;
}

TEST_ON(test_each_bit, void *none, pack_one, free_one)
{
    (void)none;
    assert_int_equal(read_record(size, name), 0);
    for (size_t i = 0; i < 8 * size; i++) {
        bytes[i / 8] ^= (uint8_t)(1U << i % 8);
        assert_int_equal(read_record(size, name), -MU_EDATALOSS);
        bytes[i / 8] ^= (uint8_t)(1U << i % 8);
    }
    assert_int_equal(read_record(size, name), 0);
}

TEST_ON(test_each_length, void *none, pack_one, free_one)
{
    (void)none;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(read_record(i, name), -MU_EDATALOSS);
}

TEST_ON(test_of_another_name, void *none, pack_one, free_one)
{
    (void)none;
    assert_int_equal(read_record(size, mu__view_str("totel")), -MU_EDATALOSS);
    assert_int_equal(read_record(size, mu__view_str("")), -MU_EDATALOSS);
}

TEST_PROGRAM()
