/* Ids by partition: one alone, which has a way of its own, as several. */
#include "actors/variables/table_calls.h"
#include "tests/support/test.h"

enum { IDS_MAX = 600 };

static void check_sorted(const uint64_t *ids, uint32_t count)
{
    struct mu__sorted_ids sorted;

    assert_int_equal(mu__ids_sort(ids, count, &sorted), 0);
    assert_int_equal(sorted.count, count);
    assert_in_range(sorted.last, sorted.first, MU__PARTITIONS - 1);
    assert_int_equal(sorted.ends[sorted.first], 0);
    assert_int_equal(sorted.ends[sorted.last + 1], count);
    for (uint32_t p = sorted.first; p <= sorted.last; p++)
        for (uint32_t i = sorted.ends[p]; i < sorted.ends[p + 1]; i++) {
            assert_int_equal(mu__partition_of_id(sorted.ids[i]), p);
            assert_int_equal(sorted.ids[i], ids[sorted.positions[i]]);
            assert_true(i == sorted.ends[p] ||
                        sorted.positions[i] > sorted.positions[i - 1]);
        }
    if (count > 0)
        assert_true(sorted.ends[sorted.first + 1] > 0);
    mu__sorted_ids_done(&sorted);
}

TEST(test_ids_are_sorted_by_partition)
{
    uint64_t ids[IDS_MAX];

    for (uint64_t i = 0; i < IDS_MAX; i++)
        ids[i] = i * 7 % 500;
    for (uint32_t i = 0; i < IDS_MAX; i++) {
        check_sorted(ids + i, 1);
        check_sorted(ids + i, IDS_MAX - i < 5 ? IDS_MAX - i : 5);
    }
    for (uint32_t count = 0; count <= IDS_MAX; count += 1 + count / 3)
        check_sorted(ids, count);
}

TEST_PROGRAM()
