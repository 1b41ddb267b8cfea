/* The checker of histories: good ones and bad ones that are known, and random small ones
 * against all orders tried one by one. */
#include "sim/world/random.h"
#include "tests/support/linear/linear.h"
#include "tests/support/test.h"

enum { OPS_MAX = 6, HISTORIES = 30000 };

#define NEVER LINEAR_UNKNOWN
/* clang-format off */
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

#define TXN(from, to, answer, its, first, how_many, ...)                    \
    {.kind = LINEAR_TRANSACT, .begin = from, .end = to, .code = answer,     \
     .revision = its, .number = first, .parts_count = how_many,             \
     .parts = {__VA_ARGS__}}
#define KEY_GET(of, from, to, found, its)                                   \
    {.kind = LINEAR_GET, .key = of, .begin = from, .end = to, .number = found, \
     .revision = its}
#define KEY_MISS(of, from, to)                                              \
    {.kind = LINEAR_GET, .key = of, .begin = from, .end = to, .code = -MU_ENOTFOUND}
#define SET(of, what) {LINEAR_PART_PUT, of, what, 0}
#define PLUS(of, by) {LINEAR_PART_INCREMENT, of, by, 0}
#define GONE(of) {LINEAR_PART_DELETE, of, 0, 0}
#define IS(of, what) {LINEAR_IF_VALUE, of, what, 0}
#define AT(of, its) {LINEAR_IF_REVISION, of, 0, its}
#define NONE(of) {LINEAR_IF_ABSENT, of, 0, 0}
#define SOME(of) {LINEAR_IF_PRESENT, of, 0, 0}
/* clang-format on */
#define FAILS -MU_EPRECONDITION

struct row {
    const char *what;
    bool good;
    struct linear_op ops[OPS_MAX];
};

static const struct row rows[] = {
    /* clang-format off */
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
    {"two keys change together", true, {TXN(1, 9, 0, 2, 0, 2, SET(0, 5), SET(1, 5)),
     KEY_GET(0, 2, 3, 5, 1), KEY_GET(1, 4, 5, 5, 2)}},
    {"seen halfway", false, {TXN(1, 9, 0, 2, 0, 2, SET(0, 5), SET(1, 5)),
     KEY_GET(0, 2, 3, 5, 0), KEY_MISS(1, 4, 5)}},
    {"halfway, of unknown fate", false, {TXN(1, NEVER, 0, 0, 0, 2, SET(0, 5), SET(1, 5)),
     KEY_GET(0, 2, 3, 5, 0), KEY_MISS(1, 4, 5)}},
    {"not begun, then done", true, {TXN(1, 9, 0, 2, 0, 2, SET(0, 5), SET(1, 5)),
     KEY_MISS(0, 2, 3), KEY_GET(1, 4, 5, 5, 2), KEY_GET(0, 6, 7, 5, 1)}},
    {"keys that a third one joins", false, {TXN(1, 2, 0, 0, 0, 2, SET(0, 5), SET(1, 5)),
     TXN(3, 9, 0, 0, 0, 2, SET(1, 6), SET(2, 6)), KEY_GET(2, 4, 5, 6, 0),
     KEY_GET(1, 6, 7, 5, 0)}},
    {"moved from one to the other", true, {PUT(1, 2, 5, 1),
     TXN(3, 9, 0, 3, 3, 2, PLUS(0, -2), PLUS(1, 2)),
     TXN(3, 9, 0, 5, 4, 2, PLUS(0, 1), PLUS(1, -1)), KEY_GET(1, 10, 11, 1, 5)}},
    {"the first sum is told", false, {PUT(1, 2, 5, 1),
     TXN(3, 4, 0, 3, 2, 2, PLUS(0, -2), PLUS(1, 2))}},
    {"revisions one by one", false, {TXN(1, 2, 0, 4, 0, 2, SET(0, 5), SET(1, 5)),
     KEY_GET(0, 3, 4, 5, 4)}},
    {"what is deleted has the last ones", true, {PUT(1, 2, 7, 3),
     TXN(3, 4, 0, 5, 0, 2, GONE(0), SET(1, 5)), KEY_MISS(0, 5, 6),
     KEY_GET(1, 5, 6, 5, 4)}},
    {"where nothing was", false, {TXN(1, 2, 0, 5, 0, 2, GONE(0), SET(1, 5)),
     KEY_GET(1, 5, 6, 5, 4)}},
    {"all of it held", true, {PUT(1, 2, 7, 3),
     TXN(3, 4, 0, 4, 0, 4, AT(0, 3), NONE(1), IS(0, 7), SET(1, 5)),
     TXN(5, 6, 0, 4, 0, 2, SOME(1), AT(1, 4))}},
    {"it did not", false, {PUT(1, 2, 7, 3), TXN(3, 4, 0, 0, 0, 2, SOME(1), SET(1, 5))}},
    {"the second did not", true, {PUT(1, 2, 7, 3),
     TXN(3, 4, FAILS, 0, 2, 3, AT(0, 3), SOME(1), SET(1, 5)), KEY_MISS(1, 5, 6)}},
    {"but it did", false, {PUT(1, 2, 7, 3),
     TXN(3, 4, FAILS, 0, 1, 3, AT(0, 3), SOME(1), SET(1, 5))}},
    {"and nothing is changed", false, {PUT(1, 2, 7, 3),
     TXN(3, 4, FAILS, 0, 2, 3, AT(0, 3), SOME(1), SET(1, 5)), KEY_GET(1, 5, 6, 5, 0)}},
    {"an unknown one that could not be", false, {
     TXN(1, NEVER, 0, 0, 0, 2, SOME(0), SET(1, 5)), KEY_GET(1, 2, 3, 5, 0)}},
    {"seen together", false, {TXN(1, 9, 0, 0, 0, 2, SET(0, 5), SET(1, 5)),
     TXN(2, 3, 0, 0, 0, 2, IS(0, 5), NONE(1))}},
    /* clang-format on */
};

static size_t ops_of(const struct row *row)
{
    size_t count = 0;

    while (count < OPS_MAX && row->ops[count].begin != 0)
        count++;
    return count;
}

TEST(test_known)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[1024] = "";

        if (linear_check(rows[i].ops, ops_of(&rows[i]), why, sizeof why) != rows[i].good)
            fail_msg("%s: %s", rows[i].what, why);
        assert_int_equal(why[0] == '\0', rows[i].good);
    }
}

TEST(test_recorded)
{
    struct linear history = {0};
    char why[512];
    size_t one;
    size_t two;
    size_t three;

    one = linear_begin(&history, &(struct linear_op){.kind = LINEAR_PUT, .value = 5});
    two = linear_begin(&history, &(struct linear_op){.kind = LINEAR_GET});
    linear_end(&history, two, -MU_ENOTFOUND, 0, 0);
    linear_end(&history, one, 0, 0, 7);
    assert_true(linear_check(history.ops, history.count, why, sizeof why));
    three =
        linear_begin(&history, &(struct linear_op){.kind = LINEAR_INSERT, .value = 6});
    linear_drop(&history, three);
    two = linear_begin(&history, &(struct linear_op){.kind = LINEAR_GET});
    linear_end(&history, two, 0, 6, 8);
    assert_false(linear_check(history.ops, history.count, why, sizeof why));
    assert_non_null(strstr(why, "key 0 is not linearizable: at most 2 of 4"));
    linear_done(&history);
}

/* ---- Against all orders ---- */

/* Two keys. */
struct plain {
    bool there[2];
    int64_t value[2];
};

/* Whether a comparison holds; revisions are not told in these histories, and compared
 * with 0 alone. */
static bool holds(const struct plain *plain, const struct linear_part *part)
{
    bool there = plain->there[part->key];

    if (part->kind == LINEAR_IF_VALUE)
        return there && plain->value[part->key] == part->value;
    return part->kind == LINEAR_IF_PRESENT ? there : !there;
}

static void set(struct plain *plain, unsigned key, bool there, int64_t value)
{
    plain->there[key] = there;
    plain->value[key] = there ? value : 0;
}

static int64_t add(struct plain *plain, unsigned key, int64_t by)
{
    set(plain, key, true, plain->value[key] + by);
    return plain->value[key];
}

static int do_parts(struct plain *plain, const struct linear_op *op, int64_t *number)
{
    bool has_sum = false;

    for (unsigned i = 0; i < op->parts_count && op->parts[i].kind <= LINEAR_IF_VALUE; i++)
        if (!holds(plain, &op->parts[i])) {
            *number = (int64_t)i + 1;
            return -MU_EPRECONDITION;
        }
    for (unsigned i = 0; i < op->parts_count; i++) {
        const struct linear_part *part = &op->parts[i];
        int64_t sum;

        if (part->kind == LINEAR_PART_PUT)
            set(plain, part->key, true, part->value);
        if (part->kind == LINEAR_PART_DELETE)
            set(plain, part->key, false, 0);
        if (part->kind != LINEAR_PART_INCREMENT)
            continue;
        sum = add(plain, part->key, part->value);
        *number = has_sum ? *number : sum;
        has_sum = true;
    }
    return 0;
}

/* By the letter. The code, and the number that comes with it. */
static int do_plain(struct plain *plain, const struct linear_op *op, int64_t *number)
{
    bool there = plain->there[op->key];

    switch (op->kind) {
    case LINEAR_GET:
        *number = there ? plain->value[op->key] : 0;
        return there ? 0 : -MU_ENOTFOUND;
    case LINEAR_DELETE:
        *number = there;
        set(plain, op->key, false, 0);
        return 0;
    case LINEAR_INCREMENT:
        *number = add(plain, op->key, op->value);
        return 0;
    case LINEAR_TRANSACT:
        return do_parts(plain, op, number);
    default:
        if (there && op->kind != LINEAR_PUT)
            return op->kind == LINEAR_INSERT ? -MU_EEXISTS : -MU_EPRECONDITION;
        set(plain, op->key, true, op->value);
        return 0;
    }
}

/* One order of some operations. What is unknown, and would not be done, need not be. */
static bool explains(const struct linear_op *ops, const unsigned *order, size_t count)
{
    struct plain plain = {.there = {false}};

    for (size_t i = 0; i < count; i++) {
        const struct linear_op *op = &ops[order[i]];
        int64_t number = 0;
        int code = do_plain(&plain, op, &number);

        if (op->end != LINEAR_UNKNOWN && (code != op->code || number != op->number))
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

/* A comparison, or one change of each key, at most. */
static void draw_parts(struct sim_random *random, struct linear_op *op)
{
    unsigned first = (unsigned)sim_between(random, 0, 1);

    if (sim_chance(random, 50))
        op->parts[op->parts_count++] = (struct linear_part){
            (enum linear_part_kind)sim_between(random, LINEAR_IF_REVISION,
                                               LINEAR_IF_VALUE),
            (unsigned)sim_between(random, 0, 1), (int64_t)sim_between(random, 1, 2), 0};
    for (unsigned i = 0; i < 2; i++)
        if (i == 0 || sim_chance(random, 70))
            op->parts[op->parts_count++] = (struct linear_part){
                (enum linear_part_kind)sim_between(random, LINEAR_PART_PUT,
                                                   LINEAR_PART_DELETE),
                (first + i) % 2, (int64_t)sim_between(random, 1, 2), 0};
}

static void draw_transaction(struct sim_random *random, struct linear_op *op)
{
    bool has_sum = false;

    draw_parts(random, op);
    for (unsigned i = 0; i < op->parts_count; i++)
        has_sum = has_sum || op->parts[i].kind == LINEAR_PART_INCREMENT;
    if (op->code != 0)
        op->number = 1;
    else if (has_sum)
        op->number = (int64_t)sim_between(random, 1, 3);
}

static struct linear_op draw_op(struct sim_random *random)
{
    static const int codes[] = {[LINEAR_GET] = -MU_ENOTFOUND,
                                [LINEAR_PUT] = 0,
                                [LINEAR_INSERT] = -MU_EEXISTS,
                                [LINEAR_COMPARE] = -MU_EPRECONDITION,
                                [LINEAR_INCREMENT] = 0,
                                [LINEAR_DELETE] = 0,
                                [LINEAR_TRANSACT] = -MU_EPRECONDITION};
    struct linear_op op = {
        .kind = (enum linear_kind)sim_between(random, LINEAR_GET, LINEAR_TRANSACT),
        .key = sim_chance(random, 30),
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
    if (op.kind == LINEAR_TRANSACT)
        draw_transaction(random, &op);
    if (sim_chance(random, 20) && op.kind != LINEAR_GET) {
        op.end = LINEAR_UNKNOWN;
        op.code = 0;
    }
    return op;
}

TEST(test_against_all_orders)
{
    struct sim_random random = sim_stream(3, 4);
    unsigned good = 0;

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

/* ---- Drawn from an order ---- */

enum { DRAWN = 300, DRAWN_OPS = 120, STEP = 10, OVERLAP = 60 };

static uint64_t count_there(const struct plain *plain)
{
    return (uint64_t)plain->there[0] + plain->there[1];
}

/* How many changes an operation makes that is done now: each has a revision. */
static uint64_t count_changes(const struct linear_op *op, const struct plain *before,
                              const struct plain *after)
{
    uint64_t count = 0;

    if (op->code != 0 || op->kind == LINEAR_GET)
        return 0;
    if (op->kind == LINEAR_DELETE)
        return count_there(before) - count_there(after);
    if (op->kind != LINEAR_TRANSACT)
        return 1;
    for (unsigned i = 0; i < op->parts_count; i++)
        count += op->parts[i].kind == LINEAR_PART_DELETE
                     ? before->there[op->parts[i].key]
                     : op->parts[i].kind > LINEAR_IF_VALUE;
    return count;
}

/* The answer that it has at its place in the order, and when it was under way. */
static void answer_in_order(struct linear_op *op, struct plain *plain, uint64_t *revision,
                            uint64_t moment, struct sim_random *random)
{
    struct plain before = *plain;

    op->number = 0;
    op->code = do_plain(plain, op, &op->number);
    *revision += count_changes(op, &before, plain);
    op->revision = op->code == 0 && op->kind != LINEAR_GET ? *revision : 0;
    op->begin = moment - sim_between(random, 0, OVERLAP);
    op->end = moment + sim_between(random, 0, OVERLAP);
    if (op->kind != LINEAR_GET && sim_chance(random, 8)) {
        op->end = LINEAR_UNKNOWN;
        op->code = 0;
        op->number = 0;
    }
}

static void draw_history(struct sim_random *random, struct linear_op *ops)
{
    struct plain plain = {.there = {false}};
    uint64_t revision = 0;

    for (unsigned i = 0; i < DRAWN_OPS; i++) {
        ops[i] = draw_op(random);
        if (ops[i].kind == LINEAR_PUT)
            ops[i].value = 1000 + i;
        answer_in_order(&ops[i], &plain, &revision, 1000 + STEP * i, random);
    }
}

/* Told a revision that another change has, which was over before it began. */
static bool spoil_revision(struct linear_op *ops)
{
    for (unsigned i = 0; i < DRAWN_OPS; i++)
        for (unsigned k = 0; k < DRAWN_OPS; k++)
            if (ops[i].kind == LINEAR_PUT && ops[k].kind == LINEAR_PUT &&
                ops[i].key == ops[k].key && ops[i].end < ops[k].begin &&
                ops[k].end != LINEAR_UNKNOWN) {
                uint64_t of_first = ops[i].revision;

                ops[i].revision = ops[k].revision;
                ops[k].revision = of_first;
                return true;
            }
    return false;
}

/* A history that has an order is good, whatever else is not known of it; one in which two
 * changes have each other's revisions is not. */
TEST(test_drawn_from_an_order)
{
    struct sim_random random = sim_stream(5, 6);
    static struct linear_op ops[DRAWN_OPS];

    for (unsigned i = 0; i < DRAWN; i++) {
        char why[1024] = "";

        draw_history(&random, ops);
        if (!linear_check(ops, DRAWN_OPS, why, sizeof why))
            fail_msg("history %u is good: %s", i, why);
        assert_true(spoil_revision(ops));
        assert_false(linear_check(ops, DRAWN_OPS, why, sizeof why));
    }
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
            open[c] = linear_begin(&history, &(struct linear_op){.kind = LINEAR_INCREMENT,
                                                                 .value = 1});
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

TEST(test_long)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        assert_true(check_long(seed, false));
        assert_false(check_long(seed, true));
    }
}

TEST_PROGRAM()
