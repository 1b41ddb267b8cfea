/* One bound divided among those that use it. */
#include "actors/supervisor/state/shares.h"

#include "sim/world/random.h"
#include "tests/support/test.h"

enum { COUNT_MAX = 6, STEPS = 400, SEEDS = 300 };

struct fixture {
    struct mu__shares shares;
    struct mu__share all[COUNT_MAX];
    struct mu__share *list[COUNT_MAX];
    size_t count;
};

static void make(struct fixture *f, uint64_t max, size_t count)
{
    *f = (struct fixture){.shares.max = max, .count = count};
    for (size_t i = 0; i < count; i++) {
        f->list[i] = &f->all[i];
        f->all[i].is_fresh = true;
    }
}

static void divide(struct fixture *f)
{
    mu__shares_divide(&f->shares, f->list, f->count, true);
    for (size_t i = 0; i < f->count; i++)
        f->all[i].is_fresh = f->all[i].is_fresh && f->all[i].granted == 0;
}

static void answer_all(struct fixture *f)
{
    for (size_t i = 0; i < f->count; i++)
        mu__share_acknowledged(&f->shares, &f->all[i]);
}

static void settle(struct fixture *f)
{
    for (int i = 0; i < 4; i++) {
        divide(f);
        answer_all(f);
    }
}

static void expect_told(const struct fixture *f, const uint64_t *granted)
{
    for (size_t i = 0; i < f->count; i++)
        assert_int_equal(f->all[i].granted, granted[i]);
}

TEST(test_equal_parts)
{
    struct fixture f;

    make(&f, 100, 3);
    settle(&f);
    expect_told(&f, (uint64_t[]){33, 33, 33});
    for (int i = 0; i < 3; i++)
        f.all[i].hungry = true;
    settle(&f);
    expect_told(&f, (uint64_t[]){34, 33, 33});
}

/* One that has less to do keeps what it uses, and an eighth of its part at least. */
TEST(test_idle_part_is_lent)
{
    struct fixture f;

    make(&f, 96, 2);
    settle(&f);
    f.all[0].hungry = true;
    settle(&f);
    expect_told(&f, (uint64_t[]){90, 6});
    f.all[1].hungry = true;
    settle(&f);
    expect_told(&f, (uint64_t[]){48, 48});
    f.all[0].hungry = false;
    mu__share_hold(&f.shares, &f.all[0], 20);
    settle(&f);
    expect_told(&f, (uint64_t[]){20, 76});
}

/* What one holds on top of what it is told is not given to another one. */
TEST(test_grows_only_into_what_is_free)
{
    struct fixture f;

    make(&f, 10, 1);
    settle(&f);
    mu__share_hold(&f.shares, &f.all[0], 10);
    f.all[0].hungry = true;
    f.list[1] = &f.all[1];
    f.all[1].is_fresh = f.all[1].hungry = true;
    f.count = 2;
    divide(&f);
    expect_told(&f, (uint64_t[]){5, 0});
    assert_true(f.shares.is_short);
    answer_all(&f);
    divide(&f);
    expect_told(&f, (uint64_t[]){5, 0});
    for (uint64_t i = 1; i <= 5; i++) {
        mu__share_drop(&f.shares, &f.all[0], 1);
        divide(&f);
        expect_told(&f, (uint64_t[]){5, i});
    }
    assert_false(f.shares.is_short);
}

/* A reservation ends with the answer, not before. */
TEST(test_shrinking_waits_for_the_answer)
{
    struct fixture f;

    make(&f, 8, 2);
    settle(&f);
    f.all[0].hungry = true;
    settle(&f);
    f.all[1].hungry = true;
    divide(&f);
    assert_int_equal(f.all[0].granted, 4);
    assert_int_equal(f.all[1].granted, 0);
    assert_true(mu__share_may_hold(&f.shares, &f.all[0], 8));
    mu__share_acknowledged(&f.shares, &f.all[0]);
    assert_false(mu__share_may_hold(&f.shares, &f.all[1], 5));
    divide(&f);
    assert_int_equal(f.all[1].granted, 4);
}

/* Each gets a turn when there is not one for each. */
TEST(test_turns)
{
    struct fixture f;
    unsigned turns[5] = {0};

    make(&f, 2, 5);
    for (int i = 0; i < 5; i++)
        f.all[i].hungry = true;
    for (int round = 0; round < 50; round++) {
        settle(&f);
        assert_true(f.shares.must_rotate);
        for (int i = 0; i < 5; i++)
            turns[i] += f.all[i].granted > 0;
        f.shares.rotation++;
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(turns[i], 20);
}

/* All make room for one that needs more than its part, when its time has come. */
TEST(test_need)
{
    struct fixture f;

    make(&f, 100, 4);
    for (int i = 0; i < 4; i++)
        f.all[i].hungry = true;
    f.all[2].need = 80;
    f.all[2].need_order = 1;
    f.all[3].need = 90;
    f.all[3].need_order = 2;
    settle(&f);
    expect_told(&f, (uint64_t[]){25, 25, 25, 25});
    f.all[2].may_take = f.all[3].may_take = true;
    settle(&f);
    expect_told(&f, (uint64_t[]){7, 7, 80, 6});
    mu__share_hold(&f.shares, &f.all[2], 80);
    f.all[2].need = 0;
    f.all[2].hungry = false;
    settle(&f);
    assert_true(f.all[3].granted <= 20);
    mu__share_drop(&f.shares, &f.all[2], 80);
    settle(&f);
    assert_int_equal(f.all[3].granted, 90);
}

/* ---- whatever happens ---- */

static void check(const struct fixture *f, uint64_t seed, int step)
{
    uint64_t sum = 0;
    uint64_t held = 0;

    for (size_t i = 0; i < COUNT_MAX; i++) {
        sum += mu__share_reserved(&f->all[i]);
        held += f->all[i].held;
    }
    if (sum != f->shares.reserved || sum > f->shares.max || held > f->shares.max)
        fail_msg("seed %d, step %d: %d reserved, counted %d, %d held, of %d", (int)seed,
                 step, (int)sum, (int)f->shares.reserved, (int)held, (int)f->shares.max);
}

static void do_something(struct fixture *f, struct sim_random *random)
{
    struct mu__share *share = &f->all[sim_between(random, 0, f->count - 1)];

    switch (sim_between(random, 0, 6)) {
    case 0:
        share->hungry = !share->hungry;
        break;
    case 1:
        share->need = sim_chance(random, 50) ? 0 : sim_between(random, 1, f->shares.max);
        share->need_order++;
        share->may_take = sim_chance(random, 50);
        break;
    case 2:
        mu__share_acknowledged(&f->shares, share);
        break;
    case 3:
        if (share->held > 0)
            mu__share_drop(&f->shares, share, sim_between(random, 1, share->held));
        break;
    case 4:
        mu__shares_divide(&f->shares, f->list, f->count, sim_chance(random, 50));
        break;
    default:
        if (mu__share_may_hold(&f->shares, share, 1))
            mu__share_hold(&f->shares, share, 1);
        break;
    }
}

/* The bound holds at every step; and when all are hungry and answer, all get their
 * parts. */
TEST(test_bound_holds)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_random random = sim_stream(seed, 1);
        struct fixture f;

        make(&f, sim_between(&random, 1, 50), sim_between(&random, 1, COUNT_MAX));
        for (int step = 0; step < STEPS; step++) {
            do_something(&f, &random);
            check(&f, seed, step);
        }
        for (size_t i = 0; i < f.count; i++) {
            mu__share_drop(&f.shares, &f.all[i], f.all[i].held);
            f.all[i].hungry = true;
            f.all[i].need = 0;
        }
        settle(&f);
        for (size_t i = 0; i < f.count; i++)
            assert_in_range(f.all[i].granted, f.shares.max / f.count,
                            f.shares.max / f.count + 1);
        check(&f, seed, STEPS);
    }
}

TEST_PROGRAM()
