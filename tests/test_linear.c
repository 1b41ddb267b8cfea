/* The checker of histories: good ones and bad ones that are known, and random small ones
 * against all orders tried one by one. */
#include "tests/linear.h"
#include "tests/sim/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPS_MAX = 6, HISTORIES = 30000 };

#define NEVER LINEAR_UNKNOWN
#define GET(from, to, found, its)                                           \
    {.kind = LINEAR_GET, .begin = from, .end = to, .number = found, .revision = its}
#define MISS(from, to)                                                      \
    {.kind = LINEAR_GET, .begin = from, .end = to, .code = -MU_ENOTFOUND}
#define PUT(from, to, what, its)                                            \
    {.kind = LINEAR_PUT, .begin = from, .end = to, .value = what, .revision = its}
#define INSERT(from, to, what, answer)                                      \
    {.kind = LINEAR_INSERT, .begin = from, .end = to, .value = what, .code = answer}
#define COMPARE(from, to, what, with, answer, its)                          \
    {.kind = LINEAR_COMPARE, .begin = from, .end = to, .value = what,       \
     .expected = with, .code = answer, .revision = its}
#define ADD(from, to, by, sum)                                              \
    {.kind = LINEAR_INCREMENT, .begin = from, .end = to, .value = by, .number = sum}
#define DELETE(from, to, many)                                              \
    {.kind = LINEAR_DELETE, .begin = from, .end = to, .number = many}

struct row {
    const char *what;
    bool good;
    struct linear_op ops[OPS_MAX];
};

static const struct row rows[] = {
    {"a value is read", true, {PUT(1, 2, 5, 1), GET(3, 4, 5, 1)}},
    {"one that was never put", false, {PUT(1, 2, 5, 0), GET(3, 4, 6, 0)}},
    {"not yet there", true, {MISS(1, 2), PUT(3, 4, 5, 0)}},
    {"lost", false, {PUT(1, 2, 5, 0), MISS(3, 4)}},
    {"read while it is put", true, {PUT(1, 9, 5, 0), GET(2, 3, 5, 0), GET(4, 5, 5, 0)}},
    {"new, then old again", false, {PUT(1, 2, 5, 0), PUT(3, 9, 6, 0), GET(4, 5, 6, 0),
     GET(6, 7, 5, 0)}},
    {"old, then new", true, {PUT(1, 2, 5, 0), PUT(3, 9, 6, 0), GET(4, 5, 5, 0),
     GET(6, 7, 6, 0)}},
    {"at one moment is overlapping", true, {PUT(1, 3, 5, 0), MISS(3, 4)}},
    {"fate unknown: it was", true, {PUT(1, NEVER, 5, 0), MISS(2, 3), GET(4, 5, 5, 0)}},
    {"fate unknown: it was not", true, {PUT(1, NEVER, 5, 0), MISS(2, 3), MISS(4, 5)}},
    {"but not twice", false, {PUT(1, NEVER, 5, 0), GET(2, 3, 5, 0), DELETE(4, 5, 1),
     GET(6, 7, 5, 0)}},
    {"and not before its begin", false, {GET(1, 2, 5, 0), PUT(3, NEVER, 5, 0)}},
    {"inserted once", true, {INSERT(1, 5, 7, 0), INSERT(1, 5, 8, -MU_EEXISTS),
     GET(6, 7, 7, 0)}},
    {"inserted twice", false, {INSERT(1, 5, 7, 0), INSERT(1, 5, 8, 0)}},
    {"there, but nobody put it", false, {INSERT(1, 5, 7, -MU_EEXISTS)}},
    {"counted", true, {ADD(1, 9, 1, 2), ADD(1, 9, 1, 3), ADD(1, 9, 1, 1)}},
    {"counted twice", false, {ADD(1, 2, 1, 1), ADD(3, 4, 1, 3)}},
    {"counted once more by one of unknown fate", true, {ADD(1, NEVER, 1, 0),
     ADD(3, 4, 1, 2), GET(5, 6, 2, 0)}},
    {"by the same one twice", false, {ADD(1, NEVER, 1, 0), ADD(3, 4, 1, 2),
     ADD(5, 6, 1, 4)}},
    {"two have the same sum", false, {ADD(1, 9, 1, 1), ADD(1, 9, 1, 1)}},
    {"deleted", true, {PUT(1, 2, 5, 0), DELETE(3, 4, 1), DELETE(5, 6, 0), MISS(7, 8)}},
    {"deleted twice", false, {PUT(1, 2, 5, 0), DELETE(3, 9, 1), DELETE(3, 9, 1)}},
    {"deleted, and there", false, {PUT(1, 2, 5, 0), DELETE(3, 4, 1), GET(5, 6, 5, 0)}},
    {"compared", true, {PUT(1, 2, 5, 3), COMPARE(3, 4, 6, 3, 0, 4), GET(5, 6, 6, 4)}},
    {"both won", false, {PUT(1, 2, 5, 3), COMPARE(3, 9, 6, 3, 0, 4),
     COMPARE(3, 9, 7, 3, 0, 5)}},
    {"one won", true, {PUT(1, 2, 5, 3), COMPARE(3, 9, 6, 3, 0, 4),
     COMPARE(3, 9, 7, 3, -MU_EPRECONDITION, 4)}},
    {"none won", false, {PUT(1, 2, 5, 3), COMPARE(3, 9, 6, 3, -MU_EPRECONDITION, 3),
     COMPARE(3, 9, 7, 3, -MU_EPRECONDITION, 3)}},
    {"none won: an unknown one did", true, {PUT(1, 2, 5, 3), PUT(3, NEVER, 9, 0),
     COMPARE(3, 9, 6, 3, -MU_EPRECONDITION, 4), GET(10, 11, 9, 4)}},
    {"with nothing", true, {COMPARE(1, 2, 5, 0, 0, 1),
     COMPARE(3, 4, 6, 0, -MU_EPRECONDITION, 1)}},
    {"with an unknown put's revision", true, {PUT(1, NEVER, 5, 0), GET(2, 3, 5, 8),
     COMPARE(4, 5, 6, 8, 0, 9)}},
    {"which is another one", false, {PUT(1, NEVER, 5, 0), GET(2, 3, 5, 8),
     COMPARE(4, 5, 6, 7, 0, 9)}},
    {"revisions ascend", false, {PUT(1, 2, 5, 3), PUT(3, 4, 6, 2)}},
    {"revisions are of one put", false, {PUT(1, 2, 5, 3), GET(3, 4, 5, 4)}},
    {"ascend over an unknown one", false, {PUT(1, 2, 5, 3), PUT(3, NEVER, 6, 0),
     GET(5, 6, 6, 3)}},
    {"keys are apart", true, {PUT(1, 2, 5, 0), {.kind = LINEAR_GET, .key = 1, .begin = 3,
     .end = 4, .code = -MU_ENOTFOUND}}},
    {"but each counts", false, {PUT(1, 2, 5, 0), {.kind = LINEAR_GET, .key = 1,
     .begin = 3, .end = 4, .number = 5}}},
};

static size_t ops_of(const struct row *row)
{
    size_t count = 0;

    while (count < OPS_MAX && row->ops[count].begin != 0)
        count++;
    return count;
}

static void test_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[1024] = "";

        if (linear_check(rows[i].ops, ops_of(&rows[i]), why, sizeof why) != rows[i].good)
            fail_msg("%s: %s", rows[i].what, why);
        assert_int_equal(why[0] == '\0', rows[i].good);
    }
}

static void test_recorded(void **state)
{
    struct linear history = {0};
    char why[512];
    size_t one;
    size_t two;
    size_t three;

    (void)state;
    one = linear_begin(&history, &(struct linear_op){.kind = LINEAR_PUT, .value = 5});
    two = linear_begin(&history, &(struct linear_op){.kind = LINEAR_GET});
    linear_end(&history, two, -MU_ENOTFOUND, 0, 0);
    linear_end(&history, one, 0, 0, 7);
    assert_true(linear_check(history.ops, history.count, why, sizeof why));
    three = linear_begin(&history, &(struct linear_op){.kind = LINEAR_INSERT,
                                                       .value = 6});
    linear_drop(&history, three);
    two = linear_begin(&history, &(struct linear_op){.kind = LINEAR_GET});
    linear_end(&history, two, 0, 6, 8);
    assert_false(linear_check(history.ops, history.count, why, sizeof why));
    assert_non_null(strstr(why, "key 0 is not linearizable: at most 2 of 4"));
    linear_done(&history);
}

/* ---- Against all orders ---- */

/* One order of some operations, done by the letter. A revision is not told in these
 * histories, and COMPARE is only with 0. */
static bool explains(const struct linear_op *ops, const unsigned *order, size_t count)
{
    bool there = false;
    int64_t value = 0;

    for (size_t i = 0; i < count; i++) {
        const struct linear_op *op = &ops[order[i]];
        bool known = op->end != LINEAR_UNKNOWN;
        bool once = op->kind == LINEAR_INSERT || op->kind == LINEAR_COMPARE;
        int code = 0;
        int64_t number = 0;

        if (op->kind == LINEAR_GET) {
            code = there ? 0 : -MU_ENOTFOUND;
            number = there ? value : 0;
        } else if (op->kind == LINEAR_DELETE) {
            number = there;
            there = false;
        } else if (op->kind == LINEAR_INCREMENT) {
            value = number = (there ? value : 0) + op->value;
            there = true;
        } else if (once && there) {
            code = op->kind == LINEAR_INSERT ? -MU_EEXISTS : -MU_EPRECONDITION;
        } else {
            value = op->value;
            there = true;
        }
        if (known && (code != op->code || number != op->number))
            return false;
    }
    return true;
}

static bool is_before(const struct linear_op *a, const struct linear_op *b)
{
    return a->end < b->begin;
}

/* All orders of all subsets that have every known one, and keep to real time. */
static bool some_order(const struct linear_op *ops, size_t count, unsigned *order,
                       size_t used, unsigned taken)
{
    bool whole = true;

    for (size_t i = 0; i < count; i++)
        whole = whole && ((taken >> i & 1) != 0 || ops[i].end == LINEAR_UNKNOWN);
    if (whole && explains(ops, order, used))
        return true;
    for (unsigned i = 0; i < count; i++) {
        bool may = (taken >> i & 1) == 0;

        for (size_t k = 0; k < count; k++)
            may = may && ((taken >> k & 1) != 0 || !is_before(&ops[k], &ops[i]));
        order[used] = i;
        if (may && some_order(ops, count, order, used + 1, taken | 1u << i))
            return true;
    }
    return false;
}

static struct linear_op draw_op(struct sim_random *random)
{
    static const int codes[] = {
        [LINEAR_GET] = -MU_ENOTFOUND, [LINEAR_PUT] = 0, [LINEAR_INSERT] = -MU_EEXISTS,
        [LINEAR_COMPARE] = -MU_EPRECONDITION, [LINEAR_INCREMENT] = 0,
        [LINEAR_DELETE] = 0};
    struct linear_op op = {
        .kind = (enum linear_kind)sim_between(random, LINEAR_GET, LINEAR_DELETE),
        .value = (int64_t)sim_between(random, 1, 2),
        .begin = sim_between(random, 1, 8),
    };

    op.end = op.begin + sim_between(random, 1, 6);
    if (sim_chance(random, 40))
        op.code = codes[op.kind];
    if (op.code == 0 && (op.kind == LINEAR_GET || op.kind == LINEAR_INCREMENT))
        op.number = (int64_t)sim_between(random, 1, 3);
    if (op.kind == LINEAR_DELETE)
        op.number = (int64_t)sim_between(random, 0, 1);
    if (sim_chance(random, 20) && op.kind != LINEAR_GET) {
        op.end = LINEAR_UNKNOWN;
        op.code = 0;
    }
    return op;
}

static void test_against_all_orders(void **state)
{
    struct sim_random random = sim_stream(3, 4);
    unsigned good = 0;

    (void)state;
    for (unsigned i = 0; i < HISTORIES; i++) {
        struct linear_op ops[OPS_MAX];
        unsigned order[OPS_MAX];
        size_t count = (size_t)sim_between(&random, 2, OPS_MAX - 1);
        char why[1024] = "";
        bool wanted;

        for (size_t k = 0; k < count; k++)
            ops[k] = draw_op(&random);
        wanted = some_order(ops, count, order, 0, 0);
        if (linear_check(ops, count, why, sizeof why) != wanted)
            fail_msg("history %u is %s: %s", i, wanted ? "good" : "bad", why);
        good += wanted;
    }
    assert_true(good > HISTORIES / 20 && good < HISTORIES / 2);
}

/* ---- Long ones ---- */

enum { LONG_OPS = 3000, CLIENTS = 8 };

/* Clients that overlap all the time, and one operation in fifty whose end nobody knows;
 * with `wrong`, one answer near the end is wrong. */
static bool check_long(uint64_t seed, bool wrong)
{
    struct sim_random random = sim_stream(seed, 5);
    struct linear history = {0};
    size_t open[CLIENTS];
    int64_t sums[CLIENTS];
    int64_t sum = 0;
    char why[64];
    bool good;

    for (unsigned c = 0; c < CLIENTS; c++)
        open[c] = SIZE_MAX;
    for (unsigned i = 0; i < LONG_OPS; i++) {
        unsigned c = (unsigned)sim_between(&random, 0, CLIENTS - 1);

        if (open[c] == SIZE_MAX) {
            open[c] = linear_begin(&history, &(struct linear_op){
                .kind = LINEAR_INCREMENT, .value = 1});
            sums[c] = ++sum;
            continue;
        }
        if (wrong && i > LONG_OPS - 100) {
            sums[c]++;
            wrong = false;
        }
        if (!sim_chance(&random, 2))
            linear_end(&history, open[c], 0, sums[c], 0);
        open[c] = SIZE_MAX;
    }
    good = linear_check(history.ops, history.count, why, sizeof why);
    linear_done(&history);
    return good;
}

static void test_long(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        assert_true(check_long(seed, false));
        assert_false(check_long(seed, true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_against_all_orders),
        cmocka_unit_test(test_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
