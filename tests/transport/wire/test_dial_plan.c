/* When which address of a name is tried, in virtual time; in which order; and what is
 * said when all have failed. */
#include "tests/support/test.h"

#include "transport/wire/dial_plan.h"

enum { TEXT_BYTES = 512, FAILURES_MAX = 16 };

/* ---- the order ---- */

/* '4' and '6' are the families as the system gives them, '!' stands behind those that
 * were tried; the order is told as letters, a for the first of them. */
static const struct order_row {
    const char *what;
    const char *addresses;
    const char *order;
} order_rows[] = {
    {"none", "", ""},
    {"one", "6", "a"},
    {"one family stays", "4444", "abcd"},
    {"by turns already", "6464", "abcd"},
    {"two of each", "6644", "acbd"},
    {"the first one's family", "4466", "acbd"},
    {"one of the other", "66664", "aebcd"},
    {"the other at the end", "464466", "abcedf"},
    {"as many as there may be", "6666666644444444", "aibjckdlemfngohp"},
    {"one that was tried", "4!", "a"},
    {"the first was tried", "4!44", "bca"},
    {"one in the middle", "44!4", "acb"},
    {"all but the last", "4!4!4!4", "dabc"},
    {"all of them", "6!6!4!4!", "acbd"},
    {"the family of what is left", "6!644", "bcda"},
    {"the only one of its family", "6!44", "bca"},
    {"those that were, by turns", "6!6!64!4!", "cadbe"},
};
static unsigned read_addresses(const char *text, bool *ret_v6, bool *ret_tried)
{
    unsigned count = 0;

    for (; *text != '\0'; text++) {
        if (*text == '!') {
            ret_tried[count - 1] = true;
            continue;
        }
        ret_v6[count] = *text == '6';
        ret_tried[count++] = false;
    }
    return count;
}

TEST(test_order)
{
    for (size_t i = 0; i < sizeof order_rows / sizeof order_rows[0]; i++) {
        const struct order_row *row = &order_rows[i];
        bool is_v6[MU__DIAL_ADDRESSES_MAX];
        bool is_tried[MU__DIAL_ADDRESSES_MAX];
        unsigned count = read_addresses(row->addresses, is_v6, is_tried);
        unsigned order[MU__DIAL_ADDRESSES_MAX];
        char text[MU__DIAL_ADDRESSES_MAX + 1] = "";

        mu__dial_order(is_v6, is_tried, count, order);
        for (unsigned j = 0; j < count; j++)
            text[j] = (char)('a' + order[j]);
        if (strcmp(text, row->order) != 0)
            fail_msg("%s: %s, not %s", row->what, text, row->order);
    }
}

/* ---- rounds ---- */

/* What is reached, one after the other, each with how many addresses the name has then;
 * told as '>' (go on at once) and '.' (the round is over). */
static const struct round_row {
    const char *what;
    const char *reached;
    const char *story;
} round_rows[] = {
    {"one address", "a1 a1 a1", "..."},
    {"two", "a2 b2", ">."},
    {"each round is as the first", "a2 b2 a2 b2", ">.>."},
    {"three, in any order", "c3 a3 b3 c3", ">>.>"},
    {"the others do not answer", "a3 a3 a3 a3", ">.>."},
    {"one of the others does", "a3 b3 b3 a3", ">>.>"},
    {"the name has one more", "a2 b3 c3", ">>."},
    {"the name has one left", "a2 b1 a2", ">.>"},
    {"the name has others", "a2 c2 d2", ">.>"},
    {"as many as there may be", "aG bG cG dG eG fG gG hG iG jG kG lG mG nG oG pG aG",
     ">>>>>>>>>>>>>>>.>"},
};

TEST(test_rounds)
{
    for (size_t i = 0; i < sizeof round_rows / sizeof round_rows[0]; i++) {
        const struct round_row *row = &round_rows[i];
        struct mu__dial_tried tried = {0};
        char story[TEXT_BYTES] = "";

        for (const char *at = row->reached; *at != '\0'; at += at[2] == '\0' ? 2 : 3) {
            unsigned count =
                at[1] == 'G' ? MU__DIAL_ADDRESSES_MAX : (unsigned)(at[1] - '0');
            bool more = mu__dial_tried_add(&tried, (uint32_t)at[0], count);

            story[strlen(story)] = more ? '>' : '.';
            assert_int_equal(mu__dial_tried_has(&tried, (uint32_t)at[0]), more);
        }
        if (strcmp(story, row->story) != 0)
            fail_msg("%s: %s, not %s", row->what, story, row->story);
    }
}

/* ---- the plan ---- */

struct failing {
    uint64_t at_ms;
    unsigned which;
};

/* `failing` ends with a time of 0; what happens is told as "0 begin a, ...". */
static const struct plan_row {
    const char *what;
    unsigned count;
    uint32_t timeout_ms;
    struct failing failing[FAILURES_MAX];
    const char *story;
} plan_rows[] = {
    /* clang-format off */
    {"no address", 0, 10000, {{0, 0}}, "0 over"},
    {"one that is silent", 1, 10000, {{0, 0}},
     "0 begin a, 10000 give up a, 10000 over"},
    {"one that refuses", 1, 10000, {{3, 0}}, "0 begin a, 3 over"},
    {"all are silent", 3, 10000, {{0, 0}},
     "0 begin a, 250 begin b, 500 begin c, 10000 give up a, 10250 give up b, "
     "10500 give up c, 10500 over"},
    {"a refusal begins the next at once", 3, 10000, {{1, 0}, {2, 1}},
     "0 begin a, 1 begin b, 2 begin c, 10002 give up c, 10002 over"},
    {"the pause counts from the last begin", 3, 10000, {{100, 0}},
     "0 begin a, 100 begin b, 350 begin c, 10100 give up b, 10350 give up c, "
     "10350 over"},
    {"an earlier one that fails later", 3, 10000, {{260, 0}},
     "0 begin a, 250 begin b, 260 begin c, 10250 give up b, 10260 give up c, "
     "10260 over"},
    {"two fail at once: one begins, the other waits its turn", 4, 10000,
     {{300, 0}, {300, 1}},
     "0 begin a, 250 begin b, 300 begin c, 550 begin d, 10300 give up c, "
     "10550 give up d, 10550 over"},
    {"the last failure ends it", 2, 10000, {{400, 1}, {700, 0}},
     "0 begin a, 250 begin b, 700 over"},
    {"a limit shorter than the pause", 2, 100, {{0, 0}},
     "0 begin a, 100 give up a, 100 begin b, 200 give up b, 200 over"},
    /* clang-format on */
};

static void tell(char *out, uint64_t now_ms, const char *what, int which)
{
    size_t used = strlen(out);

    (void)snprintf(out + used, TEXT_BYTES - used, "%s%u %s%s%c", used == 0 ? "" : ", ",
                   (unsigned)now_ms, what, which < 0 ? "" : " ",
                   which < 0 ? '\0' : (char)('a' + which));
}

/* Until the plan waits; when that ends, or UINT64_MAX when all is over. */
static uint64_t steps(struct mu__dial_plan *plan, uint64_t now_ms, char *out)
{
    struct mu__dial_step step = mu__dial_plan_step(plan, now_ms);

    while (step.move == MU__DIAL_BEGIN || step.move == MU__DIAL_GIVE_UP) {
        tell(out, now_ms, step.move == MU__DIAL_BEGIN ? "begin" : "give up",
             (int)step.which);
        step = mu__dial_plan_step(plan, now_ms);
    }
    if (step.move == MU__DIAL_WAIT) {
        assert_true(step.until_ms > now_ms);
        return step.until_ms;
    }
    tell(out, now_ms, "over", -1);
    return UINT64_MAX;
}

static void run(const struct plan_row *row, char *out)
{
    const struct failing *next = row->failing;
    struct mu__dial_plan plan;
    uint64_t now_ms = 0;
    uint64_t until_ms;

    out[0] = '\0';
    mu__dial_plan_init(&plan, row->count, row->timeout_ms);
    while ((until_ms = steps(&plan, now_ms, out)) != UINT64_MAX) {
        now_ms = next->at_ms != 0 && next->at_ms <= until_ms ? next->at_ms : until_ms;
        while (next->at_ms == now_ms)
            mu__dial_plan_fail(&plan, next++->which);
    }
}

TEST(test_plan)
{
    char story[TEXT_BYTES];

    for (size_t i = 0; i < sizeof plan_rows / sizeof plan_rows[0]; i++) {
        run(&plan_rows[i], story);
        if (strcmp(story, plan_rows[i].story) != 0)
            fail_msg("%s:\n%s\nnot\n%s", plan_rows[i].what, story, plan_rows[i].story);
    }
}

/* A process that stood still gives up what is beyond its limit, and goes on. */
TEST(test_late_look)
{
    struct mu__dial_plan plan;
    char story[TEXT_BYTES] = "";

    mu__dial_plan_init(&plan, 3, 10000);
    assert_int_equal(steps(&plan, 0, story), 250);
    assert_int_equal(steps(&plan, 60000, story), 60250);
    assert_string_equal(story, "0 begin a, 60000 give up a, 60000 begin b");
}

/* ---- words ---- */

static const struct words_row {
    const char *what;
    unsigned count;
    struct mu__dial_failure rows[4];
    const char *words;
} words_rows[] = {
    {"nothing", 0, {{0}}, ""},
    {"one", 1, {{"::1", "refused"}}, "::1: refused"},
    {"two", 2, {{"a", "refused"}, {"b", "silent"}}, "a: refused; b: silent"},
    {"the same of two", 2, {{"a", "refused"}, {"b", "refused"}}, "a, b: refused"},
    {"the same, not side by side",
     4,
     {{"a", "refused"}, {"b", "silent"}, {"c", "refused"}, {"d", "silent"}},
     "a, c: refused; b, d: silent"},
};

TEST(test_words)
{
    char words[TEXT_BYTES];

    for (size_t i = 0; i < sizeof words_rows / sizeof words_rows[0]; i++) {
        const struct words_row *row = &words_rows[i];

        mu__dial_words(row->rows, row->count, words, sizeof words);
        if (strcmp(words, row->words) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", row->what, words, row->words);
    }
}

TEST(test_words_are_cut)
{
    const struct mu__dial_failure rows[] = {{"a", "refused"}, {"b", "silent"}};
    char words[8];

    for (size_t size = 1; size <= sizeof words; size++) {
        memset(words, 'x', sizeof words);
        mu__dial_words(rows, 2, words, size);
        assert_int_equal(strlen(words), size - 1);
    }
    assert_string_equal(words, "a: refu");
}

TEST_PROGRAM()
