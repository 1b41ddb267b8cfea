/* What a worker keeps for runs to come: inputs, results that stay, objects. */
#include "tests/support/lone_worker.h"

#include "actors/worker/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Inputs ---- */

/* The input may come before the run or behind it; both places get the same thing. */
TEST_ON(test_input_before_and_after, struct fixture *f, lone_set_up, lone_tear_down)
{
    for (int before = 0; before < 2; before++) {
        uint64_t number = 50 + (uint64_t)before;

        if (before)
            give_input(f, number, mu_value_string("x"));
        RUN(f, 1, "echo", nested(ref(number), ref(number)), .inputs = {number});
        assert_int_equal(f->works.first != NULL, before);
        if (!before)
            give_input(f, number, mu_value_string("x"));
        work(f);
        expect_result(f, 1, nested(mu_value_string("x"), mu_value_string("x")));
        assert_ptr_equal(mu_value_at(mu_value_find(f->seen, "a"), 0),
                         mu_value_find(f->seen, "b"));
    }
    assert_int_equal(mu__worker_pinned_bytes(worker_of(f)), 4);
}

/* All of them must be there; one that comes twice is the first. The whole argument may be
 * a reference. */
TEST_ON(test_several_inputs, struct fixture *f, lone_set_up, lone_tear_down)
{
    RUN(f, 1, "echo", nested(ref(8), ref(7)), .inputs = {8, 7, 8});
    RUN(f, 2, "quick", ref(8), .inputs = {8});
    give_input(f, 7, mu_value_int(70));
    assert_null(f->works.first);
    give_input(f, 8, mu_value_int(80));
    expect_result(f, 2, mu_value_int(80));
    give_input(f, 8, mu_value_int(81));
    work(f);
    expect_result(f, 1, nested(mu_value_int(80), mu_value_int(70)));
    expect_pull(f, 8, 0, mu_value_int(80), "");
}

/* Runs whose input fails are answered at once, also those that wait for another one. */
TEST_ON(test_failed_input, struct fixture *f, lone_set_up, lone_tear_down)
{
    RUN(f, 1, "echo", nested(ref(6), ref(ITEM(7))), .inputs = {6, ITEM(7)});
    TELL(f, MU__INPUT, input, .input = ITEM(7), .code = MU_ENOTFOUND,
         .message = mu__view_str("no item for this worker"));
    expect_error(f, 1, MU_ENOTFOUND, MU_ERROR_INPUT,
                 "per-worker value 7 failed: no item for this worker");
    RUN(f, 2, "quick", nested(ref(6), ref(ITEM(7))), .inputs = {6, ITEM(7)});
    expect_error(f, 2, MU_ENOTFOUND, MU_ERROR_INPUT,
                 "per-worker value 7 failed: no item for this worker");
    assert_int_equal(f->calls, 0);
    expect_pull(f, ITEM(7), MU_ENOTFOUND, NULL, "no item for this worker");
    TELL(f, MU__INPUT, input, .input = 6, .content = {"\xc1", NULL, 1, 0});
    expect_silence(f);
    RUN(f, 3, "quick", ref(6), .inputs = {6});
    assert_int_equal(f->calls, 0);
    free_msg(f, hear(f, MU__RESULT));
}

/* An error that went through several hands says it once. */
TEST_ON(test_errors_are_not_nested, struct fixture *f, lone_set_up, lone_tear_down)
{
    static const char words[] =
        "per-worker value 1, made by function \"fail\", failed: bad data";

    RUN(f, ITEM(1), "fail", .flags = MU__CLOSURE_BUILD);
    RUN(f, ITEM(2), "echo", ref(ITEM(1)), MU__CLOSURE_BUILD, {ITEM(1)});
    RUN(f, 3, "echo", ref(ITEM(2)), 0, {ITEM(2)});
    work(f);
    expect_error(f, ITEM(1), MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
    expect_error(f, ITEM(2), MU_EINVALID, MU_ERROR_INPUT, words);
    expect_error(f, 3, MU_EINVALID, MU_ERROR_INPUT, words);
    RUN(f, 4, "echo", ref(ITEM(2)), 0, {ITEM(2)});
    expect_error(f, 4, MU_EINVALID, MU_ERROR_INPUT, words);
    assert_int_equal(f->calls, 1);
    RUN(f, ITEM(5), "nothing", .flags = MU__CLOSURE_BUILD);
    free_msg(f, hear(f, MU__RESULT));
    RUN(f, 6, "echo", ref(ITEM(5)), 0, {ITEM(5)});
    expect_error(f, 6, MU_ENOTFOUND, MU_ERROR_INPUT,
                 "per-worker value 5 failed: no function \"nothing\" on "
                 "/job:worker/task:3, which has 9 (is its plugin loaded there?)");
}

TEST_ON(test_senseless_inputs, struct fixture *f, lone_set_up, lone_tear_down)
{
    static const char words[] = "the list of inputs is malformed";

    RUN(f, 1, "quick", ref(5), 0, {5, 6}, 12);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_OTHER, words);
    RUN(f, 1, "quick", ref(5), 0, {5, 0}, 16);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_OTHER, words);
    RUN(f, 1, "quick", ref(1), MU__CLOSURE_KEEP, {1});
    expect_error(f, 1, MU_EINVALID, MU_ERROR_OTHER, words);
    RUN(f, 0, "quick", NULL, MU__CLOSURE_KEEP);
    expect_error(f, 0, MU_EINVALID, MU_ERROR_OTHER, "what is kept has a number, got 0");
    give_input(f, 5, mu_value_int(5));
    give_input(f, 0, mu_value_int(5));
    drop_item(f, 0);
    RUN(f, 1, "quick", nested(ref(5), ref(6)), 0, {5});
    expect_error(f, 1, MU_EDATALOSS, MU_ERROR_OTHER,
                 "the arguments refer to number 6, which is not among the inputs of the "
                 "closure");
    expect_not_there(f, 0);
    assert_int_equal(f->calls, 0);
}

/* A long line of inline runs, each of which makes the input of the next, is no depth, and
 * no depth either when the first fails. */
TEST_ON(test_long_line, struct fixture *f, lone_set_up, lone_tear_down)
{
    enum { LENGTH = 20000 };

    for (int fails = 0; fails < 2; fails++) {
        uint32_t flags = fails ? MU__CLOSURE_BUILD : MU__CLOSURE_KEEP;
        uint64_t first = fails ? ITEM(1) : 1;

        f->calls = 0;
        for (uint64_t i = first + LENGTH - 1; i > first; i--)
            RUN(f, i, "quick", ref(i - 1), flags, {i - 1});
        expect_silence(f);
        if (fails)
            RUN(f, first, "quick_fail", NULL, flags);
        else
            give_input(f, first, mu_value_int(33));
        assert_int_equal(f->calls, fails ? 1 : LENGTH - 1);
        free_msgs(f, &f->said);
    }
    expect_pull(f, LENGTH, 0, mu_value_int(33), "");
    assert_int_equal(mu__worker_pinned_bytes(worker_of(f)), LENGTH);
}

/* ---- Results that stay ---- */

TEST_ON(test_keep, struct fixture *f, lone_set_up, lone_tear_down)
{
    RUN(f, 1, "echo", mu_value_string("abc"), MU__CLOSURE_KEEP);
    expect_not_there(f, 1);
    work(f);
    expect_result(f, 1, NULL);
    expect_pull(f, 1, 0, mu_value_string("abc"), "");
    assert_int_equal(mu__worker_pinned_bytes(worker_of(f)), 4);
    RUN(f, 2, "echo", ref(1), 0, {1});
    drop_item(f, 1);
    work(f);
    expect_result(f, 2, mu_value_string("abc"));
    expect_not_there(f, 1);
    assert_int_equal(mu__worker_pinned_bytes(worker_of(f)), 0);
    RUN(f, 3, "make", NULL, MU__CLOSURE_KEEP);
    work(f);
    expect_result(f, 3, NULL);
    RUN(f, 4, "use", ref(3), 0, {3});
    work(f);
    expect_result(f, 4, NULL);
    assert_int_equal(f->drops, 0);
}

/* Nothing is kept of an error, but who waits goes on waiting. */
TEST_ON(test_keep_error, struct fixture *f, lone_set_up, lone_tear_down)
{
    RUN(f, 1, "fail", NULL, MU__CLOSURE_KEEP);
    RUN(f, 2, "quick", ref(1), 0, {1});
    work(f);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
    expect_silence(f);
    expect_not_there(f, 1);
    RUN(f, 1, "quick", mu_value_int(3), MU__CLOSURE_KEEP, .attempt = 2);
    expect_result(f, 1, NULL);
    expect_result(f, 2, mu_value_int(3));
}

/* What comes of a value that was dropped while it was made is dropped. */
TEST_ON(test_drop_while_building, struct fixture *f, lone_set_up, lone_tear_down)
{
    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    drop_item(f, ITEM(1));
    work(f);
    expect_result(f, ITEM(1), NULL);
    assert_int_equal(f->drops, 1);
    expect_not_there(f, ITEM(1));

    RUN(f, ITEM(2), "make", NULL, MU__CLOSURE_BUILD);
    RUN(f, 3, "use", ref(ITEM(2)), 0, {ITEM(2)});
    drop_item(f, ITEM(2));
    work(f);
    expect_result(f, ITEM(2), NULL);
    assert_int_equal(f->drops, 2);
    expect_silence(f);
    TELL(f, MU__CANCEL, cancel, 3, 1);
    expect_error(f, 3, MU_ECANCELLED, MU_ERROR_OTHER,
                 "cancelled while it waited for inputs");
}

/* The later attempt counts, whichever ends first. */
TEST_ON(test_begun_anew, struct fixture *f, lone_set_up, lone_tear_down)
{
    struct mu__work *one;
    struct mu__work *two;

    RUN(f, ITEM(1), "echo", mu_value_int(1), MU__CLOSURE_BUILD);
    RUN(f, ITEM(1), "echo", mu_value_int(2), MU__CLOSURE_BUILD, .attempt = 2);
    RUN(f, 5, "quick", ref(ITEM(1)), 0, {ITEM(1)});
    one = begin_work(f);
    two = begin_work(f);
    end_work(f, one);
    expect_result(f, ITEM(1), NULL);
    expect_silence(f);
    end_work(f, two);
    expect_result(f, ITEM(1), NULL);
    expect_result(f, 5, mu_value_int(2));
}

static mu_value *large(void)
{
    static const char zeros[2 << 20];

    return mu_value_bytes(zeros, sizeof zeros);
}

/* Large messages may be overtaken: an INPUT that comes behind its DROP is not kept. A
 * small one is a new one, as is one that a run asks for. */
TEST_ON(test_drop_overtakes, struct fixture *f, lone_set_up, lone_tear_down)
{
    drop_item(f, 1);
    give_input(f, 1, large());
    expect_not_there(f, 1);
    give_input(f, 1, large());
    expect_pull(f, 1, 0, large(), "");
    drop_item(f, 2);
    give_input(f, 2, mu_value_int(2));
    expect_pull(f, 2, 0, mu_value_int(2), "");
    drop_item(f, 3);
    RUN(f, 9, "quick_fail", ref(3), 0, {3});
    give_input(f, 3, large());
    expect_error(f, 9, MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
    drop_item(f, 1);
    give_input(f, 1, large());
    expect_pull(f, 1, 0, large(), "");
}

/* At its bound a chief's input fails, with words; what it drops makes room again. */
TEST_ON(test_inputs_bound, struct fixture *f, lone_set_up, lone_tear_down)
{
    const struct worker *worker = worker_of(f);
    uint64_t number = 1;
    uint64_t one;
    char words[256];

    give_input(f, number, large());
    one = worker->pinned.bytes;
    while (worker->pinned.bytes + one + 4096 <= LONE_RETAINED_BYTES_MAX)
        give_input(f, ++number, large());
    RUN(f, 9, "quick", ref(100), .inputs = {100});
    (void)snprintf(words, sizeof words,
                   "result of closure 100 failed: "
                   "/job:worker/task:3 keeps %" PRIu64 " bytes for this chief, and may "
                   "keep 16777216 (half of its machine's memory): there is no room for "
                   "%" PRIu64 " more",
                   mu__pinned_bytes_of(&worker->pinned, CHIEF), one);
    give_input(f, 100, large());
    expect_error(f, 9, MU_EEXHAUSTED, MU_ERROR_INPUT, words);
    assert_int_equal(f->calls, 0);
    drop_item(f, 1);
    drop_item(f, 100);
    give_input(f, 101, large());
    expect_pull(f, 101, 0, large(), "");
}

/* However many inputs come, also without content, and the errors that refuse them: what
 * is kept is bounded, and one line says it. */
TEST_ON(test_flood_of_inputs, struct fixture *f, lone_set_up, lone_tear_down)
{
    const struct worker *worker = worker_of(f);

    for (uint64_t i = 1; i < 20000; i++)
        TELL(f, MU__INPUT, input, .input = i, .code = MU_ENOTFOUND,
             .message = mu__view_str("nothing"));
    assert_in_range(mu__pinned_bytes_of(&worker->pinned, CHIEF), LONE_RETAINED_BYTES_MAX,
                    LONE_RETAINED_BYTES_MAX + (1 << 20) + 4096);
    assert_non_null(strstr(f->log, "more inputs than may be kept"));
    assert_null(strstr(strstr(f->log, "more inputs than may be kept") + 1,
                       "more inputs than may be kept"));
}

/* Runs that wait have a bound, too; who ends makes room, and one alone is never
 * refused. */
TEST_ON(test_runs_bound, struct fixture *f, lone_set_up, lone_tear_down)
{
    const struct worker *worker = worker_of(f);
    char words[256];
    uint64_t one;
    uint64_t i = 1;

    RUN(f, i, "quick", large(), .inputs = {50});
    one = worker->runs_bytes;
    while (worker->runs_bytes + one <= LONE_RETAINED_BYTES_MAX)
        RUN(f, ++i, "quick", large(), .inputs = {50});
    (void)snprintf(words, sizeof words,
                   "/job:worker/task:3 has runs of %" PRIu64 " "
                   "bytes, and may have 16777216 (half of its machine's memory): there "
                   "is no room for %" PRIu64 " more",
                   i * one, one);
    expect_silence(f);
    RUN(f, 100, "quick", large(), .inputs = {50});
    expect_error(f, 100, MU_EEXHAUSTED, MU_ERROR_OTHER, words);
    TELL(f, MU__CANCEL, cancel, .closure = 1, .attempt = 1);
    free_msg(f, hear(f, MU__RESULT));
    RUN(f, 101, "quick", large(), .inputs = {50});
    expect_silence(f);
    lose_chief(f);
    assert_int_equal(worker->runs_bytes, 0);
}

/* ---- Objects ---- */

TEST_ON(test_objects, struct fixture *f, lone_set_up, lone_tear_down)
{
    struct mu__work *one;

    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    work(f);
    expect_result(f, ITEM(1), NULL);
    expect_pull(f, ITEM(1), MU_EPRECONDITION, NULL,
                "it is an object or holds one, which cannot leave /job:worker/task:3");
    RUN(f, 2, "use", ref(ITEM(1)), 0, {ITEM(1)});
    RUN(f, 3, "use", ref(ITEM(1)), 0, {ITEM(1)});
    one = begin_work(f);
    drop_item(f, ITEM(1));
    assert_int_equal(f->drops, 0);
    work(f);
    end_work(f, one);
    expect_result(f, 3, NULL);
    expect_result(f, 2, NULL);
    mu_value_free(f->seen); /* the last holder */
    f->seen = NULL;
    assert_int_equal(f->drops, 1);
    RUN(f, 4, "use", mu_value_int(1));
    work(f);
    expect_error(f, 4, MU_EINVALID, MU_ERROR_FUNCTION, "no object");
    RUN(f, 5, "use", ref(77));
    work(f);
    expect_error(f, 5, MU_EINVALID, MU_ERROR_FUNCTION, "no object");
}

/* An object stays where it is: results that hold one are kept, or an error. */
TEST_ON(test_objects_do_not_travel, struct fixture *f, lone_set_up, lone_tear_down)
{
    static const char words[] =
        "the result is an object or holds one, which cannot be sent: expected a function "
        "of a per-worker value, or a closure whose result is kept on its worker";

    RUN(f, 1, "make");
    work(f);
    expect_error(f, 1, MU_EPRECONDITION, MU_ERROR_FUNCTION, words);
    assert_int_equal(f->drops, 1);
    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    work(f);
    expect_result(f, ITEM(1), NULL);
    RUN(f, 2, "wrap", ref(ITEM(1)), 0, {ITEM(1)});
    work(f);
    expect_error(f, 2, MU_EPRECONDITION, MU_ERROR_FUNCTION, words);
    RUN(f, 3, "wrap", ref(ITEM(1)), MU__CLOSURE_KEEP, {ITEM(1)});
    work(f);
    expect_result(f, 3, NULL);
    expect_pull(f, 3, MU_EPRECONDITION, NULL,
                "it is an object or holds one, which cannot leave /job:worker/task:3");
}

/* ---- Results that no message has room for ---- */

/* One tensor of a MiB, 1,025 times. */
static int give_large(mu_run *run, void *user)
{
    static const uint64_t dims[1] = {1 << 20};
    mu_value *tensor = mu_value_tensor(MU_U8, 1, dims, NULL);
    mu_value *list = mu_value_list();

    (void)lone_called(run, user);
    for (int i = 0; i < 1025; i++)
        assert_int_equal(mu_value_append(list, mu_value_ref(tensor)), 0);
    mu_value_free(tensor);
    mu_run_return(run, list);
    return 0;
}

static int set_up_large(void **state)
{
    static const struct lone_function own[] = {{"large", give_large, 0}};

    return lone_set_up_with(state, own, 1);
}

/* The error says how large it is, and how large it may be. */
TEST_ON(test_result_beyond_the_bound, struct fixture *f, set_up_large, lone_tear_down)
{
    RUN(f, 1, "large");
    work(f);
    expect_error(f, 1, MU_EEXHAUSTED, MU_ERROR_FUNCTION,
                 "the result has 1074813978 bytes, and at most 1073741824 can be sent: "
                 "return it in parts");
}

/* One that was kept is found to be too large when it is fetched. */
TEST_ON(test_kept_result_beyond_the_bound, struct fixture *f, lone_set_up, lone_tear_down)
{
    struct worker *worker = worker_of(f);
    struct mu__pinned_item *item;
    uint64_t bytes;

    RUN(f, 1, "echo", mu_value_int(7), MU__CLOSURE_KEEP);
    work(f);
    expect_result(f, 1, NULL);
    item = mu__pinned_find(&worker->pinned, CHIEF, 1);
    bytes = item->bytes;
    item->bytes = MU__VALUE_BYTES_MAX + 1;
    expect_pull(f, 1, MU_EEXHAUSTED, NULL,
                "it has 1073741825 bytes, and at most 1073741824 can be sent");
    item->bytes = bytes;
}

TEST_PROGRAM()
