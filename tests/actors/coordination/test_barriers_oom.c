/* Every allocation of barriers fails once: nothing is half done, nobody is released
 * early, and what did not fail goes on as if nothing had happened. */
#include "actors/coordination/barriers/barrier_table.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

enum { TASKS = 9, NAMES = 12, FAULTS_MAX = 500, FAULTS_MIN = 40 };

static const uint32_t slots[TASKS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

/* All go through one generation, asking again where memory was missing; `fails`: with an
 * error. */
static void go_through(struct mu__barriers *barriers, const char *name,
                       uint64_t generation, bool fails)
{
    const mu_error error = {.code = -MU_EINTERNAL, .message = "failed"};
    const struct mu__barrier_outcome *outcome = NULL;
    struct mu__barrier *barrier = NULL;
    uint64_t replaced = 0;

    for (uint32_t slot = 0; slot < TASKS; slot++) {
        const struct mu__barrier_arrival arrival = {.name = mu__view_str(name),
                                                    .generation = generation,
                                                    .set = "worker:0-8",
                                                    .slot = slot,
                                                    .incarnation = slot + 1,
                                                    .token = generation + 1};
        enum mu__arrived how;

        while (slot == 0 && mu__barriers_begin(barriers, &arrival, slots, TASKS, 0, 0,
                                               NULL, &barrier) != 0)
            assert_true(mu__barriers_check(barriers));
        how = mu__barriers_arrive(barriers, &arrival, &outcome, &replaced);
        assert_int_equal(how, slot == TASKS - 1 ? MU__ARRIVED_LAST : MU__ARRIVED_WAITS);
    }
    outcome = mu__barriers_end(barriers, barrier, fails ? &error : NULL, 0, 0);
    assert_int_equal(outcome->code, fails ? -MU_EINTERNAL : 0);
    assert_true(mu__barriers_check(barriers));
}

/* Their outcomes, in another table. */
static void read_again(const struct mu__barriers *barriers, struct mu__view name)
{
    const struct mu__barrier *barrier = mu__barriers_find(barriers, name);
    char text[MU__BARRIER_TEXT_MAX];
    struct mu__view view = {text, (uint32_t)mu__barrier_write(barrier, text)};
    struct mu__barriers other = {.seats = 0};
    int rv;

    while ((rv = mu__barriers_read(&other, name, view, 0)) != 0) {
        assert_int_equal(rv, -MU_ENOMEM);
        assert_null(mu__barriers_find(&other, name));
    }
    assert_int_equal(mu__barriers_find(&other, name)->generation, barrier->generation);
    assert_true(mu__barriers_check(&other));
    mu__barriers_done(&other);
}

static void work(void)
{
    struct mu__barriers barriers = {.seats = 0};
    char name[16];

    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof name, "b%d", i);
        go_through(&barriers, name, 0, i % 3 == 0);
        go_through(&barriers, name, 1, i % 3 == 1);
        if (i % 4 == 0)
            read_again(&barriers, mu__view_str(name));
    }
    mu__barriers_done(&barriers);
}

TEST(test_every_allocation_can_fail)
{
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        fault_arm(n);
        work();
        failed = fault_disarm();
        assert_true(n < FAULTS_MAX);
    }
    assert_true(n > FAULTS_MIN);
}

TEST_PROGRAM()
