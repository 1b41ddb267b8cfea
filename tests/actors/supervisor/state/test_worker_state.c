/* What the supervisor keeps about workers: abandoned attempts. */
#include "actors/supervisor/state/worker_state.h"
#include "tests/support/test.h"

TEST(test_states_grow_zeroed_and_keep_what_is_there)
{
    struct worker_states states = {0};

    assert_int_equal(mu__worker_states_size_for(&states, 3), 8);
    assert_true(mu__worker_states_grow(&states, 8));
    states.items[3].lost_ms = 17;
    assert_int_equal(mu__worker_states_size_for(&states, 7), 8);
    assert_int_equal(mu__worker_states_size_for(&states, 20), 32);
    assert_true(mu__worker_states_grow(&states, 32));
    assert_int_equal(states.items[3].lost_ms, 17);
    assert_int_equal(states.items[31].lost_ms, 0);
    assert_true(mu__worker_states_grow(&states, 8));
    assert_int_equal(states.size, 32);
    mu__worker_states_done(&states);
}

TEST(test_abandoned_attempts_are_found_by_closure_and_attempt)
{
    struct worker_states states = {0};
    struct worker_state *worker;
    struct abandoned_attempt was;

    assert_true(mu__worker_states_grow(&states, 1));
    worker = &states.items[0];
    for (uint32_t i = 0; i < 100; i++) {
        was = (struct abandoned_attempt){.closure = i / 2, .attempt = i % 2, .bytes = i};
        assert_true(mu__abandoned_add(worker, &was));
    }
    assert_null(mu__abandoned_find(worker, 7, 2));
    assert_null(mu__abandoned_find(worker, 50, 0));
    was = mu__abandoned_remove(worker, mu__abandoned_find(worker, 7, 1));
    assert_int_equal(was.bytes, 15);
    assert_null(mu__abandoned_find(worker, 7, 1));
    assert_int_equal(mu__abandoned_find(worker, 7, 0)->bytes, 14);
    assert_int_equal(mu__abandoned_find(worker, 49, 1)->bytes, 99);
    assert_int_equal(worker->abandoned_count, 99);
    mu__worker_states_done(&states);
}

TEST_PROGRAM()
