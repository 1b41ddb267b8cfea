/* Which closures have a backup attempt, and which should get one. */
#include "actors/supervisor/state/backups.h"
#include "tests/support/test.h"

TEST(test_added_until_full_and_removed_by_closure)
{
    struct backups backups = {0};

    for (uint64_t i = 1; i <= MU__BACKUPS_MAX; i++)
        assert_true(mu__backups_add(&backups, i));
    assert_false(mu__backups_add(&backups, 5000));
    mu__backups_remove(&backups, 17);
    mu__backups_remove(&backups, 17);
    assert_int_equal(backups.count, MU__BACKUPS_MAX - 1);
    for (uint32_t i = 0; i < backups.count; i++)
        assert_true(backups.closures[i] != 17);
    assert_true(mu__backups_add(&backups, 5000));
    mu__backups_done(&backups);
}

TEST(test_straggler_exceeds_percent_of_a_mean_that_is_believed)
{
    struct mu__function_time time = {.count = MU__BACKUP_SAMPLES, .mean_us = 200000};

    assert_true(mu__is_straggler(&time, 300, 150));
    assert_false(mu__is_straggler(&time, 299, 150));
    time.count--;
    assert_false(mu__is_straggler(&time, 300, 150));
    assert_false(mu__is_straggler(NULL, 100000, 150));
}

TEST(test_short_runs_are_no_stragglers)
{
    const struct mu__function_time time = {.count = 100, .mean_us = 10};

    assert_false(mu__is_straggler(&time, MU__BACKUP_AFTER_MS - 1, 150));
    assert_true(mu__is_straggler(&time, MU__BACKUP_AFTER_MS, 150));
}

TEST_PROGRAM()
