/* Which ids get rows and which rows stay, in one partition's part of a table. Each row of
 * a list is a story: what is pushed when, and what is there at its end. */
#include "actors/ps/tables/policies/table_sweeps.h"
#include "tests/support/test.h"

enum { STEPS = 24, IDS_SEEN = 8 };

#define ADMIT(n)                            \
    {                                       \
        .admit_after = (n), .candidates = 8 \
    }

struct part {
    struct mu__table table;
    uint64_t used;
};

static void part_init(struct part *part, const struct mu__table_policy *policy)
{
    const struct mu__table_form form = {
        .dim = 1,
        .initial = {.kind = MU__INITIAL_CONSTANT, .a = 10, .seed = 3},
        .rule = {.kind = MU__RULE_SGD, .numbers = {[MU__RATE] = 1}},
        .policy = *policy};

    assert_int_equal(mu__table_form_check(&form, NULL), 0);
    part->used = 0;
    mu__table_init(&part->table, &form,
                   &(struct mu__table_memory){1 << 30, &part->used, NULL}, 0x5eed);
    assert_int_equal(mu__table_make_candidates(&part->table, NULL), 0);
}

static void part_done(struct part *part)
{
    mu__table_done(&part->table);
    assert_int_equal(part->used, 0);
}

/* A gradient of 1. */
static void push_id(struct part *part, uint32_t time, uint64_t id)
{
    const float one = 1;

    mu__table_unreserve(&part->table);
    assert_int_equal(mu__table_reserve(&part->table, &id, 1, NULL), 0);
    (void)mu__table_push_at(&part->table, time, &id, &one, 1, &part->table.form.rule);
}

static float value_of(const struct part *part, uint64_t id)
{
    float row;

    mu__table_lookup(&part->table, &id, 1, &row);
    return row;
}

static bool has_row(const struct part *part, uint64_t id)
{
    for (uint32_t i = 0; i < part->table.rows; i++)
        if (mu__table_row_id(mu__table_row_at(&part->table, i)) == id)
            return true;
    return false;
}

/* As a primary does after each push. */
static void sweep_what_is_due(struct part *part)
{
    struct mu__table_bound bound;

    while (mu__table_sweep_due(&part->table, &bound))
        (void)mu__table_sweep(&part->table, &bound);
}

struct pushed {
    uint32_t time;
    uint64_t id;
};

/* The rows' ids, in rising order; behind the last one, zeros. */
struct story {
    const char *what;
    struct mu__table_policy policy;
    struct pushed pushes[STEPS]; /* of ids that are not 0 */
    uint64_t ids[IDS_SEEN];
    struct mu__table_state state; /* but for `made` */
};

static void tell(struct part *part, const struct story *story)
{
    part_init(part, &story->policy);
    for (size_t i = 0; i < STEPS && story->pushes[i].id != 0; i++) {
        push_id(part, story->pushes[i].time, story->pushes[i].id);
        sweep_what_is_due(part);
    }
}

static void assert_story(const struct part *part, const struct story *story)
{
    struct mu__table_state state = part->table.state;
    uint32_t count = 0;

    state.made = 0;
    for (size_t i = 0; i < IDS_SEEN && story->ids[i] != 0; i++, count++)
        if (!has_row(part, story->ids[i]))
            fail_msg("%s: no row of %d", story->what, (int)story->ids[i]);
    if (part->table.rows != count)
        fail_msg("%s: %u rows, expected %u", story->what, part->table.rows, count);
    if (memcmp(&state, &story->state, sizeof state) != 0)
        fail_msg("%s: %d pushes, latest %d, swept %d, dropped %d, expired %d, evicted %d",
                 story->what, (int)state.pushes, (int)state.latest, (int)state.swept,
                 (int)state.dropped, (int)state.expired, (int)state.evicted);
}

static const struct story stories[] = {
    {.what = "each id at its first push",
     .pushes = {{0, 1}, {0, 2}, {0, 1}},
     .ids = {1, 2},
     .state = {.pushes = 3, .latest = 3}},

    /* ---- admission by count ---- */
    {.what = "at the third push of its id",
     .policy = ADMIT(3),
     .pushes = {{0, 1}, {0, 2}, {0, 1}, {0, 2}, {0, 1}},
     .ids = {1},
     .state = {.pushes = 5, .latest = 5, .dropped = 4}},
    {.what = "one short of it",
     .policy = ADMIT(3),
     .pushes = {{0, 1}, {0, 1}},
     .state = {.pushes = 2, .latest = 2, .dropped = 2}},
    {.what = "eight are counted, the ninth takes the place of the oldest",
     .policy = ADMIT(2),
     .pushes = {{0, 1},
                {0, 2},
                {0, 3},
                {0, 4},
                {0, 5},
                {0, 6},
                {0, 7},
                {0, 8},
                {0, 9},
                {0, 1},
                {0, 3}},
     .ids = {3},
     .state = {.pushes = 11, .latest = 11, .dropped = 10}},
    {.what = "a push makes a candidate young",
     .policy = ADMIT(3),
     .pushes = {{0, 1},
                {0, 2},
                {0, 3},
                {0, 4},
                {0, 5},
                {0, 6},
                {0, 7},
                {0, 8},
                {0, 1},
                {0, 9},
                {0, 1}},
     .ids = {1},
     .state = {.pushes = 11, .latest = 11, .dropped = 10}},

    /* ---- time to live ---- */
    {.what = "older than eight",
     .policy = {.ttl = 8},
     .pushes = {{100, 1}, {101, 2}, {108, 3}, {110, 2}},
     .ids = {2, 3},
     .state = {.pushes = 4, .latest = 110, .swept = 102, .expired = 1}},
    {.what = "just as old as eight",
     .policy = {.ttl = 8},
     .pushes = {{100, 1}, {108, 2}},
     .ids = {1, 2},
     .state = {.pushes = 2, .latest = 108, .swept = 100}},
    {.what = "the largest time counts",
     .policy = {.ttl = 8},
     .pushes = {{100, 1}, {50, 1}, {107, 2}, {60, 3}},
     .ids = {1, 2, 3},
     .state = {.pushes = 4, .latest = 107, .swept = 99}},
    {.what = "not before an eighth of it has gone",
     .policy = {.ttl = 80},
     .pushes = {{100, 1}, {105, 2}, {191, 3}},
     .ids = {3},
     .state = {.pushes = 3, .latest = 191, .swept = 111, .expired = 2}},
    {.what = "still within that eighth",
     .policy = {.ttl = 80},
     .pushes = {{100, 1}, {191, 2}, {111, 3}, {201, 4}},
     .ids = {2, 3, 4},
     .state = {.pushes = 4, .latest = 201, .swept = 111, .expired = 1}},
    {.what = "without times: numbers of pushes",
     .policy = {.ttl = 3},
     .pushes = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}},
     .ids = {2, 3, 4, 5},
     .state = {.pushes = 5, .latest = 5, .swept = 2, .expired = 1}},

    /* ---- capacity ---- */
    {.what = "the least recent one goes",
     .policy = {.capacity = 3, .eviction = MU__EVICT_LRU},
     .pushes = {{0, 1}, {0, 2}, {0, 3}, {0, 1}, {0, 4}},
     .ids = {1, 3, 4},
     .state = {.pushes = 5, .latest = 5, .evicted = 1}},
    {.what = "the least frequent ones go",
     .policy = {.capacity = 3, .eviction = MU__EVICT_LFU},
     .pushes = {{0, 1}, {0, 2}, {0, 1}, {0, 2}, {0, 3}, {0, 3}, {0, 3}, {0, 4}},
     .ids = {1, 2, 3},
     .state = {.pushes = 8, .latest = 8, .evicted = 1}},
    {.what = "of equal ones, those with the smaller ids",
     .policy = {.capacity = 2, .eviction = MU__EVICT_LRU},
     .pushes = {{7, 5}, {7, 9}, {7, 6}, {7, 8}},
     .ids = {8, 9},
     .state = {.pushes = 4, .latest = 7, .evicted = 2}},
    {.what = "ids that differ in their highest bits",
     .policy = {.capacity = 1, .eviction = MU__EVICT_LFU},
     .pushes = {{0, UINT64_C(1) << 63}, {0, 1}},
     .ids = {UINT64_C(1) << 63},
     .state = {.pushes = 2, .latest = 2, .evicted = 1}},
    {.what = "7 of 8 stay",
     .policy = {.capacity = 8, .eviction = MU__EVICT_LRU},
     .pushes = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}, {0, 8}, {0, 9}},
     .ids = {3, 4, 5, 6, 7, 8, 9},
     .state = {.pushes = 9, .latest = 9, .evicted = 2}},
    {.what = "age and capacity together",
     .policy = {.ttl = 8, .capacity = 2, .eviction = MU__EVICT_LFU},
     .pushes = {{100, 1}, {100, 1}, {101, 2}, {112, 3}, {113, 4}, {113, 4}, {113, 5}},
     .ids = {4, 5},
     .state = {.pushes = 7, .latest = 113, .swept = 104, .expired = 2, .evicted = 1}},
};

TEST(test_stories)
{
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        struct part part;

        tell(&part, &stories[i]);
        assert_story(&part, &stories[i]);
        part_done(&part);
    }
}

/* ---- Rows ---- */

/* Gradients before the row are dropped; the row begins as it looked. */
TEST(test_a_row_begins_with_the_push_that_makes_it)
{
    struct part part;

    part_init(&part, &(struct mu__table_policy)ADMIT(3));
    for (int i = 0; i < 2; i++) {
        push_id(&part, 0, 7);
        assert_true(value_of(&part, 7) == 10);
    }
    push_id(&part, 0, 7);
    assert_true(value_of(&part, 7) == 9);
    assert_int_equal(mu__table_row_pushes(mu__table_row_at(&part.table, 0)), 1);
    push_id(&part, 0, 7);
    assert_true(value_of(&part, 7) == 8);
    part_done(&part);
}

TEST(test_unknown_ids_give_zeros_if_asked)
{
    struct mu__table_policy policy = ADMIT(2);
    struct part part;

    policy.unknown_zeros = true;
    part_init(&part, &policy);
    assert_true(value_of(&part, 7) == 0);
    push_id(&part, 0, 7);
    assert_true(value_of(&part, 7) == 0);
    push_id(&part, 0, 7);
    assert_true(value_of(&part, 7) == 9);
    assert_true(value_of(&part, 8) == 0);
    part_done(&part);
}

/* As if never pushed to: its candidate's pushes do not count, and a row that went is
 * counted anew. */
TEST(test_a_deleted_id_is_counted_anew)
{
    struct part part;

    part_init(&part, &(struct mu__table_policy)ADMIT(2));
    push_id(&part, 0, 7);
    assert_false(mu__table_delete(&part.table, 7));
    push_id(&part, 0, 7);
    assert_false(has_row(&part, 7));
    push_id(&part, 0, 7);
    assert_true(has_row(&part, 7));
    assert_true(mu__table_delete(&part.table, 7));
    push_id(&part, 0, 7);
    assert_false(has_row(&part, 7));
    part_done(&part);
}

/* A learner makes no row while it does not know who has one. */
TEST(test_a_bucket_that_has_not_come_counts_nothing)
{
    struct part part;

    part_init(&part, &(struct mu__table_policy)ADMIT(2));
    part.table.candidates.unfilled = part.table.candidates.count;
    for (int i = 0; i < 3; i++)
        push_id(&part, 0, 7);
    assert_int_equal(part.table.rows, 0);
    part.table.candidates.unfilled = 0;
    push_id(&part, 0, 7);
    assert_false(has_row(&part, 7));
    push_id(&part, 0, 7);
    assert_true(has_row(&part, 7));
    part_done(&part);
}

/* Slots go with a row: what returns begins anew. */
TEST(test_an_evicted_row_returns_as_new)
{
    const struct mu__table_policy policy = {.capacity = 1, .eviction = MU__EVICT_LRU};
    struct part part;

    part_init(&part, &policy);
    for (int i = 0; i < 3; i++)
        push_id(&part, 0, 1);
    push_id(&part, 0, 2);
    sweep_what_is_due(&part);
    assert_false(has_row(&part, 1));
    assert_true(value_of(&part, 1) == 10);
    push_id(&part, 0, 1);
    assert_true(value_of(&part, 1) == 9);
    part_done(&part);
}

/* Without an eviction, a push beyond the capacity is refused and changes nothing. */
TEST(test_a_capacity_without_an_eviction)
{
    const struct mu__table_policy policy = {.capacity = 2};
    const uint64_t ids[3] = {1, 2, 3};
    struct part part;
    mu_error error;

    part_init(&part, &policy);
    assert_int_equal(mu__table_reserve(&part.table, ids, 3, &error), -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "3 rows in a partition: at most 2"));
    push_id(&part, 0, 1);
    push_id(&part, 0, 2);
    push_id(&part, 0, 1);
    assert_int_equal(part.table.rows, 2);
    part_done(&part);
}

/* What a push only counts needs no memory of rows. */
TEST(test_candidates_reserve_no_rows)
{
    struct mu__table_policy policy = ADMIT(2);
    const uint64_t ids[3] = {1, 2, 3};
    struct part part;

    policy.capacity = 2;
    part_init(&part, &policy);
    assert_int_equal(mu__table_reserve(&part.table, ids, 3, NULL), 0);
    assert_int_equal(part.table.reserved, 0);
    assert_int_equal(mu__table_reserve(&part.table, ids, 3, NULL), -MU_EEXHAUSTED);
    part_done(&part);
}

/* Rows that are given back from elsewhere are older than pushes that come after them. */
TEST(test_pushes_come_behind_rows_that_were_put)
{
    const struct mu__table_policy policy = {.capacity = 2, .eviction = MU__EVICT_LRU};
    struct part from;
    struct part to;

    part_init(&from, &policy);
    part_init(&to, &policy);
    push_id(&from, 500, 1);
    push_id(&from, 501, 2);
    for (uint32_t i = 0; i < from.table.rows; i++)
        assert_int_equal(
            mu__table_put_row(&to.table, mu__table_row_at(&from.table, i), NULL), 0);
    push_id(&to, 0, 3);
    sweep_what_is_due(&to);
    assert_false(has_row(&to, 1));
    assert_true(has_row(&to, 2));
    assert_true(has_row(&to, 3));
    part_done(&from);
    part_done(&to);
}

/* ---- Chance ---- */

/* Of many ids that are pushed to once, a quarter gets a row; the same ones each time. */
TEST(test_chance)
{
    enum { MANY = 40000 };
    const struct mu__table_policy policy = {.admit_chance = UINT32_C(1) << 30};
    struct part parts[2];

    for (int p = 0; p < 2; p++) {
        part_init(&parts[p], &policy);
        for (uint64_t id = 0; id < MANY; id++)
            push_id(&parts[p], 0, id);
    }
    assert_in_range(parts[0].table.rows, MANY / 4 - 400, MANY / 4 + 400);
    assert_int_equal(parts[0].table.rows, parts[1].table.rows);
    assert_int_equal(parts[0].table.state.dropped, MANY - parts[0].table.rows);
    for (uint32_t i = 0; i < parts[0].table.rows; i++)
        assert_memory_equal(mu__table_row_at(&parts[0].table, i),
                            mu__table_row_at(&parts[1].table, i),
                            parts[0].table.row_bytes);
    part_done(&parts[0]);
    part_done(&parts[1]);
}

/* An id that is pushed to again has another chance. */
TEST(test_each_push_has_its_chance)
{
    const struct mu__table_policy policy = {.admit_chance = UINT32_C(1) << 28};
    struct part part;

    part_init(&part, &policy);
    for (int i = 0; i < 400 && !has_row(&part, 7); i++)
        push_id(&part, 0, 7);
    assert_true(has_row(&part, 7));
    assert_true(part.table.state.dropped > 0);
    part_done(&part);
}

/* ---- Exactly the best ones ---- */

static uint64_t draw_next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* What is kept is better than what goes, and as much as was said. */
TEST(test_the_best_are_kept)
{
    enum { MANY = 500 };
    uint64_t seed = 5;

    for (int round = 0; round < 40; round++) {
        const struct mu__table_policy policy = {
            .capacity = MANY - 1,
            .eviction = round % 2 == 0 ? MU__EVICT_LRU : MU__EVICT_LFU};
        struct mu__table_bound bound;
        uint32_t better = 0;
        struct part part;

        part_init(&part, &policy);
        while (part.table.rows < MANY)
            push_id(&part, 1 + (uint32_t)draw_next(&seed) % 300,
                    draw_next(&seed) << 20 | draw_next(&seed) % 3);
        assert_true(mu__table_sweep_due(&part.table, &bound));
        for (uint32_t i = 0; i < part.table.rows; i++) {
            const unsigned char *row = mu__table_row_at(&part.table, i);
            uint32_t score = round % 2 == 0 ? mu__table_row_time(&part.table, row)
                                            : mu__table_row_pushes(row);

            better += score > bound.score ||
                      (score == bound.score && mu__table_row_id(row) >= bound.id);
        }
        assert_int_equal(better, mu__table_policy_retained(&policy));
        assert_int_equal(mu__table_sweep(&part.table, &bound), MANY - better);
        assert_int_equal(part.table.rows, better);
        part_done(&part);
    }
}

/* ---- What is refused ---- */

TEST(test_policies_that_are_refused)
{
    static const struct {
        struct mu__table_policy policy;
        const char *words;
    } rows[] = {
        {{.admit_after = 2}, "no ids are counted"},
        {{.admit_after = 2, .candidates = 8, .admit_chance = 1}, "not by both"},
        {{.admit_after = 2, .candidates = MU__CANDIDATES_MAX + 1}, "expected at most"},
        {{.eviction = MU__EVICTIONS}, "no eviction 3"},
    };
    mu_error error;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(mu__table_policy_check(&rows[i].policy, &error), -MU_EINVALID);
        assert_non_null(strstr(error.message, rows[i].words));
    }
}

/* Without policies rows are as they were: no word more. */
TEST(test_only_policies_of_time_cost_a_word)
{
    struct mu__table_form form = {.dim = 4, .rule = mu__rule_defaults(MU__RULE_ADAGRAD)};
    uint32_t plain = mu__table_row_bytes(&form);

    assert_int_equal(plain, MU__TABLE_ROW_HEAD + 8 * sizeof(float));
    form.policy = (struct mu__table_policy){.capacity = 9, .eviction = MU__EVICT_LFU};
    assert_int_equal(mu__table_row_bytes(&form), plain);
    form.policy = (struct mu__table_policy){.ttl = 9};
    assert_int_equal(mu__table_row_bytes(&form), plain + sizeof(uint32_t));
}

/* The bound of memory holds with it, of rows of 32 bytes and more: 1.15 times the row,
 * its slots and 28 bytes. */
TEST(test_memory_with_times_has_its_bound)
{
    static const struct {
        uint32_t dim;
        uint32_t dtype;
        double bytes;
    } rows[] = {{8, 0, 32}, {16, MU_BF16, 32}, {64, MU_F16, 128}};

    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const struct mu__table_form form = {
            .dim = rows[r].dim,
            .dtype = rows[r].dtype,
            .rule = {.kind = MU__RULE_SGD, .numbers = {[MU__RATE] = 1}},
            .policy = {.ttl = 1 << 20}};
        uint64_t used = 0;
        struct mu__table table;

        mu__table_init(&table, &form, &(struct mu__table_memory){1 << 30, &used, NULL},
                       1);
        for (uint64_t id = 1; id <= 60000; id++) {
            mu__table_unreserve(&table);
            assert_int_equal(mu__table_reserve(&table, &id, 1, NULL), 0);
            (void)mu__table_push(&table, &id, (float[64]){0}, 1, &form.rule);
            if (id > 20000)
                assert_true((double)table.bytes <
                            1.15 * (rows[r].bytes + 28) * (double)id);
        }
        mu__table_done(&table);
    }
}

TEST_PROGRAM()
