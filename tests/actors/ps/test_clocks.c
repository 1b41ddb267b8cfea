/* The clocks of a partition as plain data: who waits for whom. */
#include "actors/ps/clocks.h"
#include "tests/support/test.h"

enum { ADA = 1, BOB = 2, CLEO = 3 }; /* members, and the nodes where they wait */

static const char *const tasks[] = {"", "/job:worker/task:0", "/job:worker/task:1",
                                    "/job:worker/task:2"};

static int clocks_set_up(void **state)
{
    *state = calloc(1, sizeof(struct mu__clocks));
    return *state == NULL;
}

static int clocks_tear_down(void **state)
{
    mu__clocks_done(*state);
    free(*state);
    return 0;
}

static struct mu__clock_step step_of(uint64_t member, uint64_t staleness, uint64_t step)
{
    return (struct mu__clock_step){
        .name = mu__view_str("train"),
        .task = mu__view_str(tasks[member % 4]),
        .member = member,
        .incarnation = 10 + member,
        .staleness = staleness,
        .step = step,
        .waiter = {(uint32_t)member, 5},
        .token = 100 * member + step,
    };
}

static int set_step_of(struct mu__clocks *clocks, uint64_t member, uint64_t staleness,
                       uint64_t step, struct mu__clock_outcome *ret_outcome)
{
    const struct mu__clock_step request = step_of(member, staleness, step);
    mu_error error;

    return mu__clocks_set(clocks, &request, &error, ret_outcome);
}

/* Whether it has to wait. */
static bool waits_at(struct mu__clocks *clocks, uint64_t member, uint64_t staleness,
                     uint64_t step)
{
    struct mu__clock_outcome outcome;

    assert_int_equal(set_step_of(clocks, member, staleness, step, &outcome), 0);
    return outcome.waits;
}

/* The next one that is let through; 0: nobody is. */
static uint64_t next_passed(struct mu__clocks *clocks)
{
    struct mu__clock_outcome outcome;

    return mu__clocks_next_passed(clocks, &outcome) ? outcome.token : 0;
}

static uint64_t minimum_of(const struct mu__clocks *clocks)
{
    const struct mu__clock *clock = mu__clocks_find(clocks, mu__view_str("train"));

    return clock == NULL ? UINT64_MAX : clock->minimum;
}

/* ---- The three settings ---- */

/* Ada goes ahead of Bob, who is at 0; `ahead` steps are let through. */
static const struct staleness_row {
    uint64_t staleness;
    uint64_t ahead;
} staleness_rows[] = {{0, 0}, {1, 1}, {2, 2}, {7, 7}, {UINT64_MAX, 50}};

TEST(test_a_member_is_let_through_up_to_the_staleness)
{
    for (size_t i = 0; i < sizeof staleness_rows / sizeof staleness_rows[0]; i++) {
        const struct staleness_row *row = &staleness_rows[i];
        struct mu__clocks clocks = {.count = 0};

        assert_false(waits_at(&clocks, ADA, row->staleness, 0));
        assert_false(waits_at(&clocks, BOB, row->staleness, 0));
        for (uint64_t step = 1; step <= row->ahead; step++)
            assert_false(waits_at(&clocks, ADA, row->staleness, step));
        if (row->staleness != UINT64_MAX) {
            assert_true(waits_at(&clocks, ADA, row->staleness, row->ahead + 1));
            assert_int_equal(next_passed(&clocks), 0);
            assert_false(waits_at(&clocks, BOB, row->staleness, 1) && row->staleness > 0);
            assert_int_equal(next_passed(&clocks), 100 * ADA + row->ahead + 1);
        }
        mu__clocks_done(&clocks);
    }
}

TEST_ON(test_all_of_a_synchronous_step_are_let_through_by_the_last_one,
        struct mu__clocks *clocks, clocks_set_up, clocks_tear_down)
{
    for (uint64_t member = ADA; member <= CLEO; member++)
        assert_false(waits_at(clocks, member, 0, 0));
    assert_true(waits_at(clocks, BOB, 0, 1));
    assert_true(waits_at(clocks, ADA, 0, 1));
    assert_int_equal(next_passed(clocks), 0);
    assert_false(waits_at(clocks, CLEO, 0, 1));
    assert_int_equal(next_passed(clocks), 100 * ADA + 1);
    assert_int_equal(next_passed(clocks), 100 * BOB + 1);
    assert_int_equal(next_passed(clocks), 0);
    assert_int_equal(minimum_of(clocks), 1);
}

/* ---- Requests that are repeated ---- */

TEST_ON(test_a_step_that_is_sent_again_counts_once, struct mu__clocks *clocks,
        clocks_set_up, clocks_tear_down)
{
    struct mu__clock_outcome outcome;

    assert_false(waits_at(clocks, ADA, 1, 0));
    assert_false(waits_at(clocks, BOB, 1, 0));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(set_step_of(clocks, ADA, 1, 1, &outcome), 0);
        assert_false(outcome.waits);
        assert_int_equal(outcome.step, 1);
    }
    for (int i = 0; i < 3; i++)
        assert_true(waits_at(clocks, ADA, 1, 2));
    assert_false(waits_at(clocks, BOB, 1, 1));
    assert_int_equal(next_passed(clocks), 100 * ADA + 2);
    assert_int_equal(next_passed(clocks), 0);
    assert_int_equal(minimum_of(clocks), 1);
}

TEST_ON(test_an_older_step_changes_nothing, struct mu__clocks *clocks, clocks_set_up,
        clocks_tear_down)
{
    struct mu__clock_outcome outcome;

    assert_false(waits_at(clocks, ADA, 9, 5));
    assert_int_equal(set_step_of(clocks, ADA, 9, 3, &outcome), 0);
    assert_int_equal(outcome.step, 5);
    assert_int_equal(minimum_of(clocks), 5);
}

/* ---- Those who come and go ---- */

TEST_ON(test_a_new_member_joins_at_the_minimum, struct mu__clocks *clocks, clocks_set_up,
        clocks_tear_down)
{
    struct mu__clock_outcome outcome;

    assert_false(waits_at(clocks, ADA, 2, 0));
    assert_false(waits_at(clocks, BOB, 2, 0));
    assert_false(waits_at(clocks, ADA, 2, 1));
    assert_false(waits_at(clocks, BOB, 2, 1));
    assert_false(waits_at(clocks, ADA, 2, 3));
    assert_int_equal(set_step_of(clocks, CLEO, 2, 0, &outcome), 0);
    assert_int_equal(outcome.step, 1);
    assert_non_null(outcome.joined);
    assert_int_equal(minimum_of(clocks), 1);
    assert_true(waits_at(clocks, ADA, 2, 4));
    assert_false(waits_at(clocks, BOB, 2, 2));
    assert_int_equal(next_passed(clocks), 0);
    assert_false(waits_at(clocks, CLEO, 2, 2));
    assert_int_equal(next_passed(clocks), 100 * ADA + 4);
}

TEST_ON(test_nobody_waits_for_one_that_has_left, struct mu__clocks *clocks, clocks_set_up,
        clocks_tear_down)
{
    for (uint64_t member = ADA; member <= CLEO; member++)
        assert_false(waits_at(clocks, member, 0, 0));
    assert_true(waits_at(clocks, ADA, 0, 1));
    mu__clocks_leave(clocks, BOB, MU__CLOCK_LOST);
    assert_int_equal(next_passed(clocks), 0);
    mu__clocks_leave(clocks, CLEO, MU__CLOCK_CLOSED);
    assert_int_equal(next_passed(clocks), 100 * ADA + 1);
    mu__clocks_leave(clocks, CLEO, MU__CLOCK_CLOSED);
    assert_int_equal(minimum_of(clocks), 1);
}

/* One that was away for long is at its own step, or at the minimum. */
TEST_ON(test_one_that_comes_back_never_lowers_the_minimum, struct mu__clocks *clocks,
        clocks_set_up, clocks_tear_down)
{
    struct mu__clock_outcome outcome;

    assert_false(waits_at(clocks, ADA, 3, 4));
    assert_int_equal(set_step_of(clocks, BOB, 3, 2, &outcome), 0);
    assert_int_equal(outcome.step, 4);
    assert_int_equal(set_step_of(clocks, CLEO, 3, 6, &outcome), 0);
    assert_int_equal(outcome.step, 6);
    assert_int_equal(minimum_of(clocks), 4);
}

TEST_ON(test_a_clock_ends_with_its_last_member_unless_that_was_lost,
        struct mu__clocks *clocks, clocks_set_up, clocks_tear_down)
{
    struct mu__clock_outcome outcome;

    assert_false(waits_at(clocks, ADA, 0, 7));
    mu__clocks_leave(clocks, ADA, MU__CLOCK_LOST);
    assert_int_equal(minimum_of(clocks), 7);
    assert_int_equal(set_step_of(clocks, BOB, 5, 0, &outcome), 0);
    assert_int_equal(outcome.step, 7);
    mu__clocks_leave(clocks, BOB, MU__CLOCK_CLOSED);
    assert_int_equal(clocks->count, 0);
    assert_int_equal(clocks->members, 0);
}

TEST_ON(test_those_who_wait_are_forgotten_by_node, struct mu__clocks *clocks,
        clocks_set_up, clocks_tear_down)
{
    for (uint64_t member = ADA; member <= CLEO; member++)
        assert_false(waits_at(clocks, member, 0, 0));
    assert_true(waits_at(clocks, ADA, 0, 1));
    assert_true(waits_at(clocks, BOB, 0, 1));
    assert_true(mu__clocks_has_node(clocks, BOB));
    mu__clocks_forget_node(clocks, BOB);
    assert_false(mu__clocks_has_node(clocks, BOB));
    assert_false(waits_at(clocks, CLEO, 0, 1));
    assert_int_equal(next_passed(clocks), 100 * ADA + 1);
    assert_int_equal(next_passed(clocks), 0);
}

/* ---- Refusals ---- */

TEST_ON(test_another_staleness_is_refused_and_names_both, struct mu__clocks *clocks,
        clocks_set_up, clocks_tear_down)
{
    const struct mu__clock_step other = step_of(BOB, UINT64_MAX, 0);
    struct mu__clock_outcome outcome;
    mu_error error;

    assert_false(waits_at(clocks, ADA, 2, 0));
    assert_int_equal(mu__clocks_set(clocks, &other, &error, &outcome), -MU_EPRECONDITION);
    assert_string_equal(error.message, "/job:worker/task:0 has opened it with staleness "
                                       "2, and /job:worker/task:1 with unlimited");
    assert_int_equal(clocks->members, 1);
}

static const struct refusal_row {
    const char *what;
    const char *name;
    size_t name_size;
    const char *task;
    uint64_t member;
} refusals[] = {
    {"no name", "", 0, "/job:worker/task:0", 1},
    {"a name with a zero", "a\0b", 3, "/job:worker/task:0", 1},
    {"no task", "train", 5, "", 1},
    {"no member", "train", 5, "/job:worker/task:0", 0},
};

TEST_ON(test_what_makes_no_member_is_refused, struct mu__clocks *clocks, clocks_set_up,
        clocks_tear_down)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct mu__clock_step request = {
            .name = {refusals[i].name, (uint32_t)refusals[i].name_size},
            .task = mu__view_str(refusals[i].task),
            .member = refusals[i].member};
        struct mu__clock_outcome outcome;
        mu_error error;

        if (mu__clocks_set(clocks, &request, &error, &outcome) != -MU_EINVALID)
            fail_msg("%s: it is not refused", refusals[i].what);
        assert_int_equal(clocks->count, 0);
    }
}

static int open_named(struct mu__clocks *clocks, unsigned number, uint64_t member)
{
    struct mu__clock_step request = step_of(member, 0, 0);
    struct mu__clock_outcome outcome;
    char name[16];
    mu_error error;

    (void)snprintf(name, sizeof name, "c%u", number);
    request.name = mu__view_str(name);
    request.task = mu__view_str("/job:worker/task:0");
    return mu__clocks_set(clocks, &request, &error, &outcome);
}

/* A clock that has no member any more makes room. */
TEST_ON(test_clocks_and_members_are_bounded, struct mu__clocks *clocks, clocks_set_up,
        clocks_tear_down)
{
    uint64_t member = 1;

    for (unsigned i = 0; i < MU__CLOCKS_MAX; i++)
        assert_int_equal(open_named(clocks, i, member++), 0);
    assert_int_equal(open_named(clocks, MU__CLOCKS_MAX, member), -MU_EEXHAUSTED);
    mu__clocks_leave(clocks, 1, MU__CLOCK_LOST);
    assert_int_equal(open_named(clocks, MU__CLOCKS_MAX, member++), 0);
    while (clocks->members < MU__CLOCK_MEMBERS_MAX)
        assert_int_equal(open_named(clocks, 5, member++), 0);
    assert_int_equal(open_named(clocks, 5, member), -MU_EEXHAUSTED);
    assert_int_equal(clocks->count, MU__CLOCKS_MAX);
}

/* ---- Texts ---- */

TEST_ON(test_the_slowest_members_are_named, struct mu__clocks *clocks, clocks_set_up,
        clocks_tear_down)
{
    const struct mu__clock *clock;
    char text[MU__CLOCK_TEXT_SIZE];

    for (uint64_t member = ADA; member <= CLEO; member++)
        assert_false(waits_at(clocks, member, 9, 4));
    clock = mu__clocks_find(clocks, mu__view_str("train"));
    assert_false(waits_at(clocks, ADA, 9, 5));
    mu__clock_slowest_text(clock, text, sizeof text);
    assert_string_equal(text, "/job:worker/task:1 is at step 4, /job:worker/task:2 is at "
                              "step 4");
    for (uint64_t member = 4; member < 10; member++)
        assert_false(waits_at(clocks, member * 4 + ADA, 9, 0));
    mu__clock_slowest_text(clock, text, sizeof text);
    assert_string_equal(text, "/job:worker/task:1 is at step 4, /job:worker/task:2 is at "
                              "step 4, /job:worker/task:0 is at step 4, so are 5 more");
    mu__clocks_leave(clocks, ADA, MU__CLOCK_CLOSED);
}

TEST_PROGRAM()
