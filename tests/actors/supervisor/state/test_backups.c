/* Which closures have a backup attempt, and which should get one. */
#include "actors/supervisor/state/backups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_added_until_full_and_removed_by_closure(void **state)
{
    struct backups backups = {0};

    (void)state;
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

static void test_straggler_exceeds_percent_of_a_mean_that_is_believed(void **state)
{
    struct mu__function_time time = {.count = MU__BACKUP_SAMPLES, .mean_us = 200000};

    (void)state;
    assert_true(mu__is_straggler(&time, 300, 150));
    assert_false(mu__is_straggler(&time, 299, 150));
    time.count--;
    assert_false(mu__is_straggler(&time, 300, 150));
    assert_false(mu__is_straggler(NULL, 100000, 150));
}

static void test_short_runs_are_no_stragglers(void **state)
{
    const struct mu__function_time time = {.count = 100, .mean_us = 10};

    (void)state;
    assert_false(mu__is_straggler(&time, MU__BACKUP_AFTER_MS - 1, 150));
    assert_true(mu__is_straggler(&time, MU__BACKUP_AFTER_MS, 150));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_added_until_full_and_removed_by_closure),
        cmocka_unit_test(test_straggler_exceeds_percent_of_a_mean_that_is_believed),
        cmocka_unit_test(test_short_runs_are_no_stragglers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
