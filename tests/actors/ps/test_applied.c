/* What a server knows of effects that are applied once. */
#include "actors/ps/applied.h"

#include "muster/error.h"
#include "tests/support/test.h"

static enum mu__applied_verdict check(struct mu__applied *applied, uint64_t origin,
                                      uint64_t effect, uint64_t effects_done)
{
    const struct mu__effect_id id = {origin, effect, effects_done};

    return mu__applied_check(applied, &id);
}

TEST(test_fences)
{
    struct mu__applied applied = {.fenced = false};

    assert_int_equal(check(&applied, 7, 1, 0), MU__APPLIED_UNFENCED);
    assert_int_equal(check(&applied, 0, 1, 0), MU__APPLIED_UNFENCED);
    assert_true(mu__applied_fence(&applied, 7, 1));
    assert_int_equal(check(&applied, 7, 1, 0), MU__APPLIED_NOT);
    assert_int_equal(mu__applied_mark(&applied, 1), 0);
    assert_int_equal(check(&applied, 7, 1, 0), MU__APPLIED_BEFORE);
    assert_false(mu__applied_fence(&applied, 7, 2));
    assert_int_equal(applied.epoch, 2);
    assert_int_equal(check(&applied, 7, 1, 0), MU__APPLIED_BEFORE);
    assert_int_equal(check(&applied, 8, 1, 0), MU__APPLIED_FENCED);
    assert_true(mu__applied_fence(&applied, 8, 1));
    assert_int_equal(check(&applied, 7, 1, 0), MU__APPLIED_FENCED);
    assert_int_equal(check(&applied, 8, 1, 0), MU__APPLIED_NOT);
    mu__applied_done(&applied);
}

TEST(test_finished)
{
    struct mu__applied applied = {.fenced = false};

    (void)mu__applied_fence(&applied, 7, 1);
    assert_int_equal(mu__applied_mark(&applied, 12), 0);
    assert_int_equal(check(&applied, 7, 20, 10), MU__APPLIED_NOT);
    assert_int_equal(check(&applied, 7, 9, 0), MU__APPLIED_BEFORE);
    assert_int_equal(check(&applied, 7, 10, 0), MU__APPLIED_NOT);
    assert_int_equal(check(&applied, 7, 12, 0), MU__APPLIED_BEFORE);
    mu__applied_done(&applied);
}

/* What a supervisor of a former life says is finished is of no concern. */
TEST(test_finished_elsewhere)
{
    struct mu__applied applied = {.fenced = false};

    (void)mu__applied_fence(&applied, 7, 1);
    assert_int_equal(check(&applied, 6, 100, 100), MU__APPLIED_FENCED);
    assert_int_equal(check(&applied, 7, 50, 0), MU__APPLIED_NOT);
    mu__applied_done(&applied);
}

/* An effect is never finished with before itself, whatever a message says. */
TEST(test_nonsense)
{
    struct mu__applied applied = {.fenced = false};

    (void)mu__applied_fence(&applied, 7, 1);
    assert_int_equal(check(&applied, 7, 5, UINT64_MAX), MU__APPLIED_NOT);
    assert_int_equal(mu__applied_mark(&applied, 5), 0);
    assert_int_equal(check(&applied, 7, 6, 0), MU__APPLIED_NOT);
    assert_int_equal(mu__applied_mark(&applied, UINT64_MAX), -MU_EEXHAUSTED);
    assert_int_equal(check(&applied, 7, UINT64_MAX, UINT64_MAX), MU__APPLIED_NOT);
    mu__applied_done(&applied);
}

TEST_PROGRAM()
