/* Lists of rows, cut by shard, as pieces. */
#include "actors/ps/rows/row_list.h"

#include "actors/messages.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/* Shards of ten rows have 4, 3 and 3. */
static const struct mu__shape three = {MU_F32, 2, {10, 2}, 3};

TEST(test_rows_are_where_their_shards_are)
{
    for (uint32_t shards = 1; shards <= 10; shards++) {
        const struct mu__shape shape = {MU_F32, 2, {10, 2}, shards};

        for (uint64_t row = 0; row < 10; row++) {
            uint64_t in_shard;
            uint64_t offset;
            uint64_t bytes;
            uint32_t shard = mu__row_shard(&shape, row, &in_shard);

            mu__shape_shard(&shape, shard, &offset, &bytes);
            assert_int_equal(offset + in_shard * 8, row * 8);
            assert_true(in_shard * 8 < bytes);
        }
    }
}

static void assert_row(const struct mu__row_list *list, uint64_t at, uint64_t number,
                       uint64_t position)
{
    assert_int_equal(mu__row_number(list->numbers, at), number);
    assert_int_equal(list->positions[at], position);
}

TEST(test_a_list_is_grouped_in_its_order)
{
    const int64_t rows[] = {9, 0, 3, 9, 0, 8};
    struct mu__row_list list;

    assert_int_equal(mu__row_list_init(&list, &three, rows, 6, NULL), 0);
    assert_int_equal(list.groups_count, 2);
    assert_int_equal(list.groups[0].shard, 0);
    assert_int_equal(list.groups[0].first, 0);
    assert_int_equal(list.groups[0].count, 3);
    assert_int_equal(list.groups[1].shard, 2);
    assert_int_equal(list.groups[1].first, 3);
    assert_int_equal(list.groups[1].count, 3);
    assert_row(&list, 0, 0, 1);
    assert_row(&list, 1, 3, 2);
    assert_row(&list, 2, 0, 4);
    assert_row(&list, 3, 2, 0);
    assert_row(&list, 4, 2, 3);
    assert_row(&list, 5, 1, 5);
    mu__row_list_done(&list);
}

static const struct bad_list {
    int64_t row;
    const char *message;
} bad_lists[] = {
    {-1, "row -1 at 1 of the list: expected 0 to 9"},
    {10, "row 10 at 1 of the list: expected 0 to 9"},
    {INT64_MAX, "row 9223372036854775807 at 1 of the list: expected 0 to 9"},
    {INT64_MIN, "row -9223372036854775808 at 1 of the list: expected 0 to 9"},
};

TEST(test_rows_that_are_not_there)
{
    for (size_t i = 0; i < sizeof bad_lists / sizeof bad_lists[0]; i++) {
        const int64_t rows[] = {0, bad_lists[i].row};
        struct mu__row_list list;
        mu_error error;

        assert_int_equal(mu__row_list_init(&list, &three, rows, 2, &error), -MU_ERANGE);
        assert_string_equal(error.message, bad_lists[i].message);
    }
}

TEST(test_a_list_is_packed_by_piece)
{
    const struct mu__shape wide = {MU_U8, 2, {4, MU__PIECE_BYTES_MAX / 2 - 8}, 1};
    const int64_t rows[] = {3, 1, 2};
    size_t row_bytes = (size_t)mu__shape_row_bytes(&wide);
    uint8_t *contents = malloc(3 * row_bytes);
    struct mu__row_list list;
    uint8_t *packed;

    assert_non_null(contents);
    for (int i = 0; i < 3; i++)
        memset(contents + (size_t)i * row_bytes, 'a' + i, row_bytes);
    assert_int_equal(mu__row_write_max(&wide), 2);
    assert_int_equal(mu__row_list_init(&list, &wide, rows, 3, NULL), 0);
    assert_int_equal(mu__row_list_bytes(&list, &wide), 3 * (8 + row_bytes));
    packed = mu__row_list_pack(&list, &wide, contents);
    assert_non_null(packed);
    assert_int_equal(mu__row_number(packed, 0), 3);
    assert_int_equal(mu__row_number(packed, 1), 1);
    assert_memory_equal(packed + 16, contents, 2 * row_bytes);
    assert_int_equal(mu__row_number(packed + 16 + 2 * row_bytes, 0), 2);
    assert_memory_equal(packed + 24 + 2 * row_bytes, contents + 2 * row_bytes, row_bytes);
    free(packed);
    free(contents);
    mu__row_list_done(&list);
}

TEST(test_rows_too_large_for_a_piece)
{
    const struct mu__shape fits = {MU_U8, 2, {4, MU__PIECE_BYTES_MAX - 8}, 1};
    const struct mu__shape larger = {MU_U8, 2, {4, MU__PIECE_BYTES_MAX}, 1};
    const struct mu__shape largest = {MU_U8, 2, {4, MU__PIECE_BYTES_MAX + 1}, 1};
    const struct mu__shape bytes = {MU_U8, 1, {4}, 1};

    assert_int_equal(mu__row_write_max(&fits), 1);
    assert_int_equal(mu__row_write_max(&larger), 0);
    assert_int_equal(mu__row_read_max(&larger), 1);
    assert_int_equal(mu__row_read_max(&largest), 0);
    assert_int_equal(mu__row_read_max(&bytes), MU__PIECE_BYTES_MAX / 8);
}

TEST_PROGRAM()
