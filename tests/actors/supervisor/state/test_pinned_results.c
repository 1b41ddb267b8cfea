/* Results that stay on the workers that made them. */
#include "actors/supervisor/state/pinned_results.h"
#include "tests/support/test.h"

static const mu__pid client = {2, 1};

TEST(test_found_by_closure_until_removed)
{
    struct pinned_results results = {0};
    struct pinned_result *result = mu__pinned_results_add(&results, 8, client, 3);

    assert_non_null(result);
    assert_int_equal(result->holder, 3);
    assert_ptr_equal(mu__pinned_results_find(&results, 8), result);
    assert_null(mu__pinned_results_find(&results, 9));
    assert_null(mu__pinned_results_find(&results, 0));
    assert_null(mu__pinned_results_find(&results, MU__PER_WORKER_BIT | 8));
    mu__pinned_results_remove(&results, result);
    assert_null(mu__pinned_results_find(&results, 8));
    mu__pinned_results_done(&results);
}

TEST(test_copies_are_noted_by_node)
{
    struct pinned_results results = {0};
    struct pinned_result *result = mu__pinned_results_add(&results, 8, client, 3);

    for (uint32_t node = 1; node <= 30; node += 2)
        mu__pinned_result_note_sent(result, node);
    for (uint32_t node = 1; node <= 30; node++)
        assert_int_equal(mu__pinned_result_was_sent(result, node), node % 2 == 1);
    mu__pinned_results_done(&results);
}

TEST(test_closures_and_fetches_wait)
{
    struct pinned_results results = {0};
    struct pinned_result *result = mu__pinned_results_add(&results, 8, client, 0);

    for (uint64_t i = 0; i < 20; i++)
        assert_true(mu__pinned_result_add_waiting(result, 100 + i));
    assert_int_equal(result->waiting_count, 20);
    assert_int_equal(result->waiting[19], 119);
    assert_true(mu__pinned_result_add_fetch(result, client, 5));
    assert_true(mu__pinned_result_add_fetch(result, client, 6));
    assert_int_equal(result->fetches->token, 6);
    assert_int_equal(result->fetches->next->token, 5);
    mu__pinned_results_done(&results);
}

TEST_PROGRAM()
