/* Kept actors: what is recorded survives, nothing leaves before, and each call takes
 * effect once, whoever dies or is cut off. */
#include "tests/support/test.h"
#include "tests/support/users/kept_net.h"

/* ---- what is kept ---- */

TEST_ON(test_a_kept_actor_answers, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    kept_net_ask(f, "add", 2, 2);
    kept_net_expect(f, 1, 5);
    kept_net_expect(f, 2, 7);
    assert_int_equal(f->born, 1);
    assert_int_equal(kept_net_owned(f, 1)->flushed, kept_net_owned(f, 1)->number);
    assert_null(kept_net_owned(f, 1)->items_first);
}

TEST_ON(test_its_state_survives_its_node, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    kept_net_ask(f, "add", 2, 2);
    kept_net_expect(f, 2, 7);
}

TEST_ON(test_its_state_survives_its_keeper, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    net_crash(f->chief);
    sim_storage_crash(f->storage);
    kept_net_ask(f, "add", 2, 2);
    assert_null(kept_net_answer(f, 2));
    net_start(f->chief);
    net_settle(kept_net_net(f));
    kept_net_expect(f, 2, 7);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    kept_net_ask(f, "get", 0, 3);
    kept_net_expect(f, 3, 7);
}

/* More records than there are between two snapshots, and a file that is written anew. */
TEST_ON(test_a_snapshot_is_in_the_place_of_records, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    const uint64_t count = 2 * MU__KEPT_SNAPSHOT_RECORDS + 10;

    kept_net_own(f, 1);
    for (uint64_t i = 1; i <= count; i++) {
        kept_net_ask(f, "add", 1, i);
        f->users->notes_count = 0;
    }
    assert_true(kept_net_owned(f, 1)->records < MU__KEPT_SNAPSHOT_RECORDS);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    kept_net_ask(f, "get", 0, count + 1);
    kept_net_expect(f, count + 1, (int64_t)count);
}

/* ---- nothing leaves before ---- */

TEST_ON(test_nothing_leaves_a_turn_before_it_is_kept, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    sim_storage_fail(f->storage, SIM_STORAGE_FLUSH, 1000, -MU_EUNAVAILABLE);
    kept_net_ask(f, "tell", 0, 2);
    kept_net_ask(f, "get", 0, 3);
    kept_net_ask(f, "add", -1, 4);
    assert_null(kept_net_answer(f, 2));
    assert_null(kept_net_answer(f, 3)); /* it has seen what is not kept */
    assert_null(kept_net_answer(f, 4));
    assert_int_equal(user_net_count(f->users, MU_NOTICE_ANSWER), 1);
    sim_storage_fail(f->storage, SIM_STORAGE_FLUSH, 0, 0);
    net_run_for(kept_net_net(f), 1000);
    kept_net_expect(f, 3, 6);
    assert_int_equal(kept_net_answer(f, 4)->error.code, -MU_EINVALID);
    assert_int_equal(kept_net_answer(f, 4)->error.ran, MU_RAN_YES);
}

TEST_ON(test_a_failed_turn_is_not_kept, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_call(f, 0, "add", 5, 1);
    kept_net_call(f, 0, "bad", 0, 2);
    kept_net_call(f, 0, "get", 0, 3);
    net_settle(kept_net_net(f));
    net_run_for(kept_net_net(f), 1000);
    kept_net_expect(f, 1, 5);
    assert_int_equal(kept_net_answer(f, 2)->error.code, -MU_EABORTED);
    kept_net_expect(f, 3, 5);
}

/* ---- two lives ---- */

/* The first life is cut off with a turn that waits, and comes back. */
TEST_ON(test_a_fenced_life_never_speaks, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    net_cut(kept_net_node(f, 1));
    kept_net_call(f, 1, "add", 100, 2);
    net_settle(kept_net_net(f));
    assert_null(kept_net_answer(f, 2));
    kept_net_own(f, 2);
    kept_net_ask(f, "add", 1, 3);
    kept_net_expect(f, 3, 6);
    net_heal(kept_net_node(f, 1));
    net_settle(kept_net_net(f));
    net_run_for(kept_net_net(f), 1000);
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->why.code, -MU_EPERMISSION);
    kept_net_expect(f, 2, 106); /* by the second life, once */
    kept_net_ask(f, "get", 0, 4);
    kept_net_expect(f, 4, 106);
}

/* ---- once ---- */

TEST_ON(test_a_repeat_gets_the_same_answer, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 1, 1);
    kept_net_call(f, 0, "get", 0, 2);
    kept_net_call(f, 0, "add", 5, 3);
    kept_net_call(f, 0, "get", 0, 4);
    kept_net_node(f, 0)->deaf = true;
    net_run_to_frame(kept_net_net(f), MU__KEPT); /* they are kept, and answers are lost */
    net_crash(kept_net_node(f, 1));
    kept_net_node(f, 0)->deaf = false;
    net_settle(kept_net_net(f));
    assert_null(kept_net_answer(f, 3));
    kept_net_own(f, 2);
    net_settle(kept_net_net(f));
    kept_net_expect(f, 2, 1); /* as it was answered before the call behind it */
    kept_net_expect(f, 3, 6);
    kept_net_expect(f, 4, 6);
}

TEST_ON(test_a_broken_link_repeats_nothing, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    for (uint64_t i = 1; i < 6; i++)
        kept_net_call(f, 0, "add", 1, i);
    net_run_to_frame(kept_net_net(f), MU__ACTOR_ANSWER);
    net_link_down(kept_net_node(f, 0), kept_net_node(f, 1));
    net_settle(kept_net_net(f));
    net_link_up(kept_net_node(f, 0), kept_net_node(f, 1));
    net_settle(kept_net_net(f));
    for (uint64_t i = 1; i < 6; i++)
        kept_net_expect(f, i, (int64_t)i);
}

/* Calls that come before their owner knows that it is one. */
TEST_ON(test_an_early_call_is_sent_again, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_route(f, 0, 1);
    kept_net_call(f, 0, "add", 5, 1);
    net_run_to_frame(kept_net_net(f), MU__KEPT_AWAY);
    kept_net_call(f, 0, "add", 1, 2); /* comes to an owner, the first one did not */
    kept_net_own(f, 1);
    net_run_for(kept_net_net(f), 1000);
    kept_net_expect(f, 1, 5);
    kept_net_expect(f, 2, 6);
}

TEST_ON(test_an_answer_that_was_put_off_comes, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "hold", 0, 1);
    assert_null(kept_net_answer(f, 1));
    net_link_down(kept_net_node(f, 0), kept_net_node(f, 1));
    net_settle(kept_net_net(f));
    net_link_up(kept_net_node(f, 0), kept_net_node(f, 1));
    net_settle(kept_net_net(f));
    kept_net_ask(f, "give", 0, 2);
    kept_net_expect(f, 1, 1);
}

TEST_ON(test_an_answer_that_its_life_owed_is_an_error, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "hold", 0, 1);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    net_settle(kept_net_net(f));
    assert_int_equal(kept_net_answer(f, 1)->error.code, -MU_EABORTED);
    assert_int_equal(kept_net_answer(f, 1)->error.ran, MU_RAN_YES);
    kept_net_ask(f, "get", 0, 2);
    kept_net_expect(f, 2, 1);
}

/* ---- streams ---- */

TEST_ON(test_what_is_given_leaves_when_its_turn_is_kept, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    sim_storage_fail(f->storage, SIM_STORAGE_FLUSH, 1000, -MU_EUNAVAILABLE);
    kept_net_ask(f, "flow", 0, 1);
    assert_int_equal(user_net_count(f->users, MU_NOTICE_ITEM), 0);
    sim_storage_fail(f->storage, SIM_STORAGE_FLUSH, 0, 0);
    net_run_for(kept_net_net(f), 1000);
    assert_int_equal(user_net_count(f->users, MU_NOTICE_ITEM), 1);
    assert_int_equal(user_net_last(f->users, MU_NOTICE_ITEM)->value, 1);
    assert_null(kept_net_answer(f, 1));
}

TEST_ON(test_a_stream_is_of_one_life, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "flow", 0, 1);
    assert_int_equal(user_net_count(f->users, MU_NOTICE_ITEM), 1);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    net_settle(kept_net_net(f));
    assert_int_equal(kept_net_answer(f, 1)->error.code, -MU_EUNAVAILABLE);
    assert_int_equal(kept_net_answer(f, 1)->error.ran, MU_RAN_MAYBE);
    kept_net_ask(f, "get", 0, 2);
    kept_net_expect(f, 2, 1);
    assert_int_equal(user_net_count(f->users, MU_NOTICE_ITEM), 1);
}

/* Its actor knows nothing of it any more. */
TEST_ON(test_a_state_that_is_loaded_anew_has_no_streams, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "flow", 0, 1);
    assert_null(kept_net_answer(f, 1));
    kept_net_ask(f, "bad", 0, 2);
    assert_int_equal(kept_net_answer(f, 1)->error.code, -MU_EABORTED);
    assert_int_equal(kept_net_answer(f, 1)->error.ran, MU_RAN_MAYBE);
    kept_net_ask(f, "get", 0, 3);
    kept_net_expect(f, 3, 1);
}

/* Nothing of it has come before the cut: its call is sent again. */
TEST_ON(test_a_repeat_gets_no_second_stream, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_call(f, 0, "flow", 0, 1);
    net_run_to_frame(kept_net_net(f), MU__KEPT);
    kept_net_node(f, 0)->deaf = true;
    net_run_to_frame(kept_net_net(f), MU__STREAM_BEGIN);
    net_link_down(kept_net_node(f, 0), kept_net_node(f, 1));
    kept_net_node(f, 0)->deaf = false;
    net_settle(kept_net_net(f));
    net_link_up(kept_net_node(f, 0), kept_net_node(f, 1));
    net_run_for(kept_net_net(f), 1000);
    assert_int_equal(user_net_count(f->users, MU_NOTICE_ITEM), 0);
    assert_int_equal(kept_net_answer(f, 1)->error.code, -MU_EABORTED);
    assert_int_equal(kept_net_answer(f, 1)->error.ran, MU_RAN_YES);
    kept_net_ask(f, "get", 0, 2);
    kept_net_expect(f, 2, 1);
}

static uint64_t items_of(const struct kept_net *f, size_t node)
{
    return kept_net_owned(f, node)->number;
}

TEST_ON(test_a_call_that_was_put_off_is_that_of_the_next_life, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    uint64_t before;

    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    before = items_of(f, 1);
    kept_net_ask(f, "wait", 0, 2);
    assert_int_equal(items_of(f, 1), before);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    net_settle(kept_net_net(f));
    assert_null(kept_net_answer(f, 2));
    kept_net_call(f, 2, "work", 0, 3);
    net_settle(kept_net_net(f));
    kept_net_expect(f, 2, 6);
}

/* What is recorded meanwhile says nothing of it. */
TEST_ON(test_a_call_that_was_put_off_is_answered_once, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "wait", 0, 1);
    kept_net_ask(f, "add", 5, 2);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    net_settle(kept_net_net(f));
    assert_null(kept_net_answer(f, 1));
    kept_net_node(f, 0)->deaf = true;
    kept_net_call(f, 2, "work", 0, 3);
    net_settle(kept_net_net(f));
    net_crash(kept_net_node(f, 2));
    kept_net_node(f, 0)->deaf = false;
    net_start(kept_net_node(f, 1));
    kept_net_own(f, 1);
    net_settle(kept_net_net(f));
    kept_net_expect(f, 1, 6);
    kept_net_ask(f, "get", 0, 4);
    kept_net_expect(f, 4, 6);
}

TEST_ON(test_a_call_that_was_put_off_and_read_is_not_written_down, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    uint64_t before;

    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    kept_net_ask(f, "wait", 0, 2);
    before = items_of(f, 1);
    kept_net_ask(f, "give", 0, 3);
    kept_net_expect(f, 2, 5);
    assert_int_equal(items_of(f, 1), before);
}

/* Its state is loaded anew, so nobody in it can answer. */
TEST_ON(test_a_call_that_was_put_off_comes_again_to_a_state_that_is_loaded,
        struct kept_net *f, kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    kept_net_ask(f, "wait", 0, 2);
    kept_net_call(f, 2, "bad", 0, 3);
    net_settle(kept_net_net(f));
    net_run_for(kept_net_net(f), 1000);
    kept_net_call(f, 2, "work", 0, 4);
    net_settle(kept_net_net(f));
    kept_net_expect(f, 2, 6);
}

TEST_ON(test_an_answer_that_a_dropped_state_owed_is_an_error, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "hold", 0, 1);
    kept_net_ask(f, "bad", 0, 2);
    net_run_for(kept_net_net(f), 1000);
    assert_int_equal(kept_net_answer(f, 1)->error.code, -MU_EABORTED);
    assert_int_equal(kept_net_answer(f, 1)->error.ran, MU_RAN_YES);
    kept_net_ask(f, "get", 0, 3);
    kept_net_expect(f, 3, 1);
}

/* The call waits twice when it fails the first time: it comes by a new link, too. */
TEST_ON(test_a_repeat_fails_as_it_has_failed, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    sim_storage_fail(f->storage, SIM_STORAGE_FLUSH, 1000, -MU_EUNAVAILABLE);
    kept_net_call(f, 1, "add", 1, 2); /* the failure behind it waits to leave */
    kept_net_call(f, 0, "flip", 7, 3);
    net_settle(kept_net_net(f));
    assert_int_equal(f->flips, 1);
    net_link_down(kept_net_node(f, 0), kept_net_node(f, 1));
    net_settle(kept_net_net(f));
    net_link_up(kept_net_node(f, 0), kept_net_node(f, 1));
    net_settle(kept_net_net(f));
    sim_storage_fail(f->storage, SIM_STORAGE_FLUSH, 0, 0);
    net_run_for(kept_net_net(f), 1000);
    assert_int_equal(kept_net_answer(f, 3)->error.code, -MU_EABORTED);
    kept_net_ask(f, "get", 0, 4);
    kept_net_expect(f, 4, 6);
    assert_int_equal(f->flips, 1);
}

/* A call that is sent again while it waits is there once. */
TEST_ON(test_a_call_waits_once, struct kept_net *f, kept_net_set_up, kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    kept_net_owned(f, 1)->is_held = true;
    kept_net_call(f, 0, "add", 1, 2);
    for (int i = 0; i < 5; i++) {
        net_settle(kept_net_net(f));
        net_link_down(kept_net_node(f, 0), kept_net_node(f, 1));
        net_settle(kept_net_net(f));
        net_link_up(kept_net_node(f, 0), kept_net_node(f, 1));
    }
    net_settle(kept_net_net(f));
    assert_int_equal(kept_net_owned(f, 1)->actor->mail_count, 1);
    mu__kept_ready(kept_net_owned(f, 1));
    net_settle(kept_net_net(f));
    kept_net_expect(f, 2, 6);
}

/* The window of a sender is there as long as it can ask again, in later lives, too. */
TEST_ON(test_windows_of_senders_that_are_gone_are_dropped, struct kept_net *f,
        kept_net_set_up, kept_net_tear_down)
{
    const uint64_t asks_ms = 60000 + 60000 / 8 + MU__KEPT_STRAY_MS;

    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    net_crash(kept_net_node(f, 0));
    net_run_for(kept_net_net(f), asks_ms - 1000);
    kept_net_call(f, 2, "add", 1, 2);
    net_settle(kept_net_net(f));
    assert_int_equal(kept_net_owned(f, 1)->windows.count, 2);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    kept_net_call(f, 2, "add", 1, 3);
    net_settle(kept_net_net(f));
    kept_net_call(f, 2, "add", 1, 4); /* windows are reviewed, and stay */
    net_settle(kept_net_net(f));
    kept_net_expect(f, 4, 8);
    assert_int_equal(kept_net_owned(f, 2)->windows.count, 2);
    net_run_for(kept_net_net(f), asks_ms + 1000);
    kept_net_call(f, 2, "add", 1, 5); /* its own begins anew */
    net_settle(kept_net_net(f));
    kept_net_expect(f, 5, 9);
    assert_int_equal(kept_net_owned(f, 2)->windows.count, 1);
    mu__kept_disown(user_net_office(f->users, 2), "total");
    net_settle(kept_net_net(f));
    kept_net_own(f, 2);
    net_settle(kept_net_net(f));
    assert_int_equal(kept_net_owned(f, 2)->windows.count, 1); /* at the keeper, too */
    kept_net_call(f, 2, "add", 1, 6);
    net_settle(kept_net_net(f));
    kept_net_expect(f, 6, 10);
}

/* One more than there may be is refused until a window is not used any more. */
TEST_ON(test_more_processes_than_have_windows, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    const uint64_t first = UINT64_C(1) << 32;
    struct kept *kept;

    kept_net_own(f, 1);
    net_settle(kept_net_net(f));
    kept = kept_net_owned(f, 1);
    for (uint64_t i = 0; i < MU__KEPT_SENDERS_MAX; i++)
        mu__kept_window_get(kept, first + i)->until_ms = UINT64_MAX;
    kept_net_ask(f, "add", 5, 1);
    assert_int_equal(kept_net_answer(f, 1)->error.code, -MU_EEXHAUSTED);
    assert_int_equal(kept_net_answer(f, 1)->error.ran, MU_RAN_NO);
    assert_non_null(strstr(kept_net_answer(f, 1)->error.message,
                           "too many processes call the actor"));
    mu__kept_window_find(kept, first)->until_ms = 0;
    net_run_for(kept_net_net(f), MU__KEPT_REVIEW_MS);
    kept_net_ask(f, "add", 5, 2);
    kept_net_expect(f, 2, 5);
}

/* The process owns the actor again when what its former life has answered comes. */
TEST_ON(test_a_former_life_answers_too_late, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    kept_net_call(f, 0, "flip", 7, 2);
    net_run_to_frame(kept_net_net(f), MU__ACTOR_ANSWER); /* that it has failed */
    mu__kept_disown(user_net_office(f->users, 1), "total");
    kept_net_own(f, 2);
    kept_net_own(f, 1);
    net_run_for(kept_net_net(f), 1000);
    kept_net_expect(f, 2, 12);
    kept_net_ask(f, "get", 0, 3);
    kept_net_expect(f, 3, 12);
}

/* ---- sends ---- */

static void send_to_total(struct kept_net *f, const char *method, int64_t number)
{
    const mu_address total = {.name = "total"};
    mu_value *args = mu_value_int(number);
    struct mail *mail;

    assert_int_equal(mu__kept_send_make(user_net_office(f->users, 0), &total, method,
                                        args, 0, NULL, &mail),
                     0);
    mu_value_free(args);
    mu__turn_do(user_net_office(f->users, 0), mail);
}

static void expect_warning(struct kept_net *f, const char *words)
{
    assert_string_equal(kept_net_net(f)->warning, words);
    kept_net_net(f)->warning[0] = '\0';
}

/* Nobody hears of it but the log of the sender's process. */
TEST_ON(test_a_lost_send_is_logged, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    const mu_error stopped = {.code = -MU_ENOTFOUND, .ran = MU_RAN_NO, .message = "no"};

    send_to_total(f, "add", 5); /* it has no owner yet */
    mu__kept_way_fail(user_net_office(f->users, 0), "total", &stopped);
    expect_warning(f, "what was sent to the actor \"total\" is lost: add: no");
    kept_net_own(f, 1);
    send_to_total(f, "bad", 0);
    net_settle(kept_net_net(f));
    expect_warning(f, "what was sent to the actor \"total\" has failed: bad: it has "
                      "changed its mind");
    net_crash(kept_net_node(f, 1));
    send_to_total(f, "add", 5);
    net_run_for(kept_net_net(f), MU__KEPT_SEND_MS + 1000);
    assert_non_null(strstr(kept_net_net(f)->warning,
                           "what was sent to the actor \"total\" is perhaps lost: add"));
}

TEST_ON(test_sends_take_effect_once_and_in_order, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    send_to_total(f, "add", 5);
    kept_net_call(f, 0, "get", 0, 1);
    send_to_total(f, "bad", 0);
    send_to_total(f, "add", 2);
    kept_net_node(f, 0)->deaf = true;
    net_run_to_frame(kept_net_net(f), MU__KEPT);
    net_crash(kept_net_node(f, 1));
    kept_net_node(f, 0)->deaf = false;
    kept_net_own(f, 2);
    kept_net_call(f, 0, "get", 0, 2);
    net_run_for(kept_net_net(f), 1000);
    kept_net_expect(f, 1, 5);
    kept_net_expect(f, 2, 7);
    assert_true(mu__list_is_empty(&user_net_office(f->users, 0)->requests));
}

/* The keeper's file is that of the second actor alone. */
TEST_ON(test_the_next_actor_of_a_name_begins_anew, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    mu__kept_disown(user_net_office(f->users, 1), "total");
    net_settle(kept_net_net(f));
    f->is_born = false;
    f->made = f->epoch + 1;
    kept_net_own(f, 2);
    kept_net_ask(f, "add", 2, 2);
    kept_net_expect(f, 2, 2);
    net_crash(f->chief);
    sim_storage_crash(f->storage);
    net_start(f->chief);
    f->made = 0;
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 1, 3);
    kept_net_expect(f, 3, 3);
}

/* The first life has kept something, and dies before anybody has heard of it. */
TEST_ON(test_a_first_life_is_gone_on_with, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    f->made = ++f->epoch;
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    net_crash(kept_net_node(f, 1));
    f->is_born = false;
    kept_net_own(f, 2);
    kept_net_ask(f, "add", 2, 2);
    kept_net_expect(f, 2, 7);
    assert_int_equal(f->starts, 1);
}

/* A file that is older than the actor. */
TEST_ON(test_what_is_of_another_actor_is_no_state, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    net_crash(kept_net_node(f, 1));
    f->made = ++f->epoch;
    kept_net_own(f, 2); /* it is born, as the service says */
    net_settle(kept_net_net(f));
    assert_int_equal(f->why.code, -MU_EDATALOSS);
}

/* A life that was told that it is over, and is not gone yet, does not keep the next one
 * from beginning in its process. */
TEST_ON(test_the_next_life_is_in_the_same_process, struct kept_net *f, kept_net_set_up,
        kept_net_tear_down)
{
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 5, 1);
    mu__kept_disown(user_net_office(f->users, 1), "total");
    kept_net_own(f, 1);
    kept_net_ask(f, "add", 2, 2);
    kept_net_expect(f, 2, 7);
    assert_int_equal(f->ended, 1);
}

TEST_PROGRAM()
