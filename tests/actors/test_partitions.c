/* Where shards belong, and lists of views, numbers and marks as they travel. */
#include "actors/partitions.h"
#include "tests/support/test.h"

TEST(test_shards_of_a_variable_follow_each_other)
{
    const struct mu__view name = {"weights", 7};
    uint32_t first = mu__partition_of(name, 0);

    for (uint32_t shard = 0; shard < 2 * MU__PARTITIONS; shard++)
        assert_int_equal(mu__partition_of(name, shard), (first + shard) % MU__PARTITIONS);
}

static const struct mu__partition_view sample = {
    .partition = 200,
    .number = UINT64_C(1) << 60,
    .store_id = 77,
    .primary = {1, UINT64_MAX},
    .backup = {2, 5},
    .learner = {0, 0},
};

TEST(test_views_come_as_they_went)
{
    uint8_t bytes[2 * MU__VIEW_BYTES + 3] = {0};
    const struct mu__view view = {bytes, sizeof bytes};
    struct mu__partition_view is;

    assert_ptr_equal(mu__views_put(mu__views_put(bytes, &sample), &sample),
                     bytes + 2 * MU__VIEW_BYTES);
    assert_int_equal(mu__views_count(view), 2);
    assert_true(mu__views_at(view, 1, &is));
    assert_int_equal(is.partition, sample.partition);
    assert_int_equal(is.number, sample.number);
    assert_int_equal(is.store_id, sample.store_id);
    assert_true(mu__replica_is(&is.primary, 1, UINT64_MAX));
    assert_true(mu__replica_is(&is.backup, 2, 5));
    assert_false(mu__replica_is(&is.learner, 0, 0));
}

TEST(test_views_of_no_partition_are_refused)
{
    struct mu__partition_view view = sample;
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__view list = {bytes, sizeof bytes};

    view.partition = MU__PARTITIONS;
    (void)mu__views_put(bytes, &view);
    assert_false(mu__views_at(list, 0, &view));
    view = sample;
    view.number = 0;
    (void)mu__views_put(bytes, &view);
    assert_false(mu__views_at(list, 0, &view));
}

TEST(test_numbers_and_marks_come_as_they_went)
{
    uint8_t bytes[MU__RECORD_MARK_BYTES];
    struct mu__view list = {bytes, MU__NUMBERED_BYTES};
    struct mu__numbered entry = {MU__PARTITIONS - 1, UINT64_MAX};
    struct mu__record_mark mark = {3, MU__RECORDS_BROKEN, 4, 5, 6};

    (void)mu__numbered_put(bytes, &entry);
    assert_int_equal(mu__numbered_count(list), 1);
    assert_true(mu__numbered_at(list, 0, &entry));
    assert_int_equal(entry.partition, MU__PARTITIONS - 1);
    assert_true(entry.number == UINT64_MAX);
    list.size = sizeof bytes;
    (void)mu__record_marks_put(bytes, &mark);
    assert_int_equal(mu__record_marks_count(list), 1);
    assert_true(mu__record_marks_at(list, 0, &mark));
    assert_int_equal(mark.partition, 3);
    assert_int_equal(mark.verdict, MU__RECORDS_BROKEN);
    assert_int_equal(mark.view, 4);
    assert_int_equal(mark.record, 5);
    assert_int_equal(mark.sum, 6);
}

TEST(test_marks_of_no_partition_or_verdict_are_refused)
{
    static const struct mu__record_mark bad[] = {
        {MU__PARTITIONS, MU__RECORDS_APPLIED, 1, 1, 1},
        {0, (enum mu__record_verdict)9, 1, 1, 1},
    };
    uint8_t bytes[MU__RECORD_MARK_BYTES];
    const struct mu__view list = {bytes, sizeof bytes};
    struct mu__record_mark mark;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)mu__record_marks_put(bytes, &bad[i]);
        assert_false(mu__record_marks_at(list, 0, &mark));
    }
}

TEST_PROGRAM()
