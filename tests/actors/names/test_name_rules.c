/* The rules of names: names, where an actor is started, and whether it is again. */
#include "actors/names/name_rules.h"
#include "muster/actor.h"
#include "tests/support/test.h"

#include <string.h>

/* ---- names ---- */

static const struct {
    const char *what;
    const char *name;
    int rv;
} name_rows[] = {
    {"a word", "total", 0},
    {"a letter", "a", 0},
    {"other letters", "\xc3\xa4\xc3\xb6 1-2:3.4", 0},
    {"63 bytes", "123456789012345678901234567890123456789012345678901234567890123", 0},
    {"64 bytes", "1234567890123456789012345678901234567890123456789012345678901234",
     -MU_EINVALID},
    {"nothing", "", -MU_EINVALID},
    {"a slash", "a/b", -MU_EINVALID},
    {"a number sign", "a#b", -MU_EINVALID},
    {"a line", "a\nb", -MU_EINVALID},
    {"a deletion", "a\x7f", -MU_EINVALID},
    {"half a letter", "a\xc3", -MU_EINVALID},
};

TEST(test_names)
{
    for (size_t i = 0; i < sizeof name_rows / sizeof name_rows[0]; i++)
        if (mu__name_check(mu__view_str(name_rows[i].name), NULL) != name_rows[i].rv)
            fail_msg("%s: not %d", name_rows[i].what, name_rows[i].rv);
}

static const struct {
    const char *types;
    const char *type;
    bool has;
} type_rows[] = {
    {"a\nbc\nd\n", "a", true}, {"a\nbc\nd\n", "bc", true}, {"a\nbc\nd\n", "d", true},
    {"a\nbc\nd", "d", true},   {"a\nbc\n", "b", false},    {"a\nbc\n", "c", false},
    {"", "a", false},          {"\n\n", "a", false},       {"ab\n", "a", false},
};

TEST(test_lists_of_types)
{
    for (size_t i = 0; i < sizeof type_rows / sizeof type_rows[0]; i++)
        assert_int_equal(mu__name_types_have(mu__view_str(type_rows[i].types),
                                             mu__view_str(type_rows[i].type)),
                         type_rows[i].has);
}

/* ---- where ---- */

static const struct {
    const char *what;
    struct mu__name_candidate candidates[3];
    int best; /* -1: none */
} best_rows[] = {
    {"the fewest",
     {{"w", 0, true, false, 3, 0},
      {"w", 1, true, false, 1, 0},
      {"w", 2, true, false, 2, 0}},
     1},
    {"the first of equals",
     {{"w", 2, true, false, 1, 0},
      {"w", 1, true, false, 1, 0},
      {"w", 10, true, false, 1, 0}},
     1},
    {"types in their order",
     {{"worker", 0, true, false, 1, 0},
      {"gpu", 7, true, false, 1, 0},
      {"ps", 0, true, false, 1, 0}},
     1},
    {"who drains gets none",
     {{"w", 0, true, true, 0, 0},
      {"w", 1, true, false, 9, 0},
      {"w", 2, true, true, 0, 0}},
     1},
    {"who does not offer it gets none",
     {{"w", 0, false, false, 0, 0},
      {"w", 1, false, false, 0, 0},
      {"w", 2, true, false, 5, 0}},
     2},
    {"50 are starting",
     {{"w", 0, true, false, 50, 50},
      {"w", 1, true, false, 60, 49},
      {"w", 2, true, false, 51, 50}},
     1},
    {"nobody",
     {{"w", 0, false, false, 0, 0},
      {"w", 1, true, true, 0, 0},
      {"w", 2, true, false, 50, 50}},
     -1},
};

TEST(test_the_best_task)
{
    for (size_t i = 0; i < sizeof best_rows / sizeof best_rows[0]; i++) {
        const struct mu__name_candidate *best = NULL;

        for (int j = 0; j < 3; j++)
            if (mu__name_is_better(&best_rows[i].candidates[j], best))
                best = &best_rows[i].candidates[j];
        if ((best == NULL ? -1 : (int)(best - best_rows[i].candidates)) !=
            best_rows[i].best)
            fail_msg("%s: not %d", best_rows[i].what, best_rows[i].best);
    }
}

/* ---- again ---- */

static const struct {
    uint32_t policy;
    enum mu__name_end end;
    enum mu__name_verdict verdict;
} verdict_rows[] = {
    {MU_RESTART_FAILED, MU__NAME_BROKEN, MU__NAME_AGAIN},
    {MU_RESTART_FAILED, MU__NAME_LOST, MU__NAME_AGAIN},
    {MU_RESTART_FAILED, MU__NAME_STOPPED, MU__NAME_FORGET},
    {MU_RESTART_FAILED, MU__NAME_MOVED, MU__NAME_AGAIN},
    {MU_RESTART_NEVER, MU__NAME_BROKEN, MU__NAME_GIVE_UP},
    {MU_RESTART_NEVER, MU__NAME_LOST, MU__NAME_GIVE_UP},
    {MU_RESTART_NEVER, MU__NAME_STOPPED, MU__NAME_FORGET},
    {MU_RESTART_NEVER, MU__NAME_MOVED, MU__NAME_AGAIN},
    {MU_RESTART_ALWAYS, MU__NAME_BROKEN, MU__NAME_AGAIN},
    {MU_RESTART_ALWAYS, MU__NAME_STOPPED, MU__NAME_AGAIN},
};

TEST(test_what_follows_an_end)
{
    for (size_t i = 0; i < sizeof verdict_rows / sizeof verdict_rows[0]; i++) {
        const struct mu__name_limits limits = {verdict_rows[i].policy, 5, 60000};
        struct mu__name_history history = {0};
        uint64_t delay_ms;

        assert_int_equal(mu__name_judge(&limits, verdict_rows[i].end, 1000, 0, &history,
                                        &delay_ms),
                         verdict_rows[i].verdict);
    }
}

/* The time before each restart doubles from 10 ms to 5 s, and half of it is chance. */
TEST(test_back_off)
{
    static const uint64_t most_ms[] = {10,  20,   40,   80,   160,  320,
                                       640, 1280, 2560, 5000, 5000, 5000};
    const struct mu__name_limits limits = {MU_RESTART_FAILED, 64, 60000};
    struct mu__name_history least = {0};
    struct mu__name_history most = {0};
    uint64_t delay_ms;

    for (size_t i = 0; i < sizeof most_ms / sizeof most_ms[0]; i++) {
        assert_int_equal(mu__name_judge(&limits, MU__NAME_LOST, 5000, 0, &least,
                                        &delay_ms),
                         MU__NAME_AGAIN);
        assert_int_equal(delay_ms, most_ms[i] / 2);
        assert_int_equal(mu__name_judge(&limits, MU__NAME_LOST, 5000, most_ms[i] / 2,
                                        &most, &delay_ms),
                         MU__NAME_AGAIN);
        assert_int_equal(delay_ms, most_ms[i]);
    }
}

TEST(test_a_limit_of_restarts)
{
    const struct mu__name_limits limits = {MU_RESTART_FAILED, 2, 1000};
    struct mu__name_history history = {0};
    uint64_t delay_ms;

    assert_int_equal(mu__name_judge(&limits, MU__NAME_BROKEN, 0, 0, &history, &delay_ms),
                     MU__NAME_AGAIN);
    assert_int_equal(mu__name_judge(&limits, MU__NAME_LOST, 500, 0, &history, &delay_ms),
                     MU__NAME_AGAIN);
    assert_int_equal(mu__name_judge(&limits, MU__NAME_MOVED, 600, 0, &history, &delay_ms),
                     MU__NAME_AGAIN);
    assert_int_equal(delay_ms, 0);
    assert_int_equal(mu__name_judge(&limits, MU__NAME_BROKEN, 999, 0, &history,
                                    &delay_ms),
                     MU__NAME_GIVE_UP);
    assert_int_equal(mu__name_judge(&limits, MU__NAME_BROKEN, 1000, 0, &history,
                                    &delay_ms),
                     MU__NAME_AGAIN);
    assert_int_equal(history.count, 3);
}

TEST(test_an_owner_counts_less_of_a_lease)
{
    assert_int_equal(mu__name_own_lease(1000), 900);
    assert_int_equal(mu__name_own_lease(300), 270);
}

TEST_PROGRAM()
