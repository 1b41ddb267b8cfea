/* Numbers of actors, in a kernel over the simulated world. */
#include "tests/runtime/kernel/kernel_fixture.h"

/* ---- Numbers ---- */

TEST_ON(test_numbers_are_never_used_again, struct bench *bench, setup, teardown)
{
    mu__pid before = spawn(bench, &probe_behavior);

    for (int i = 0; i < 1000; i++) {
        mu__pid pid = spawn(bench, &probe_behavior);

        assert_true(pid.actor > before.actor);
        mu__stop(bench->kernel, pid);
        assert_null(mu__actor_state(bench->kernel, pid));
        assert_int_equal(ping(bench, pid, 1), -MU_ENOTFOUND);
        before = pid;
    }
    assert_int_equal(counters_of(bench).actors, 1);
    assert_int_equal(new_dead(bench), 1000);
}

TEST_ON(test_named_numbers_are_asked_for, struct bench *bench, setup, teardown)
{
    mu__pid pid = {0, 0};
    mu__pid other = {3, 3};

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 5, NULL, &pid), 0);
    assert_int_equal(pid.actor, 5);
    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 5, NULL, &other),
                     -MU_EEXISTS);
    assert_int_equal(other.actor, 3);
    mu__stop(bench->kernel, pid);
    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 5, NULL, NULL), 0);
    assert_true(spawn(bench, &probe_behavior).actor >= MU__ACTOR_NAMED_MAX);
}

/* The table grows, and everybody is still found; at the bound there are no more. */
TEST_ON(test_many_actors, struct bench *bench, setup, teardown)
{
    enum { MANY = 3000 };
    static mu__pid pids[MANY];
    int count = 0;
    int rv = 0;

    sim_trace_level(bench->sim, MU__LOG_WARN);
    while (count < MANY && rv == 0) {
        rv = mu__spawn(bench->kernel, &probe_behavior, 0, NULL, &pids[count]);
        count += rv == 0;
    }
    assert_true(count == MANY || (rv == -MU_EEXHAUSTED && count >= MU__ACTORS_MAX / 2));
    for (int i = 0; i < count; i++)
        assert_int_equal(ping(bench, pids[i], 1), 0);
    sim_run_until(bench->sim, 1);
    for (int i = 0; i < count; i++)
        assert_int_equal(((struct probe *)mu__actor_state(bench->kernel, pids[i]))->pings,
                         1);
}

static void begin_well(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, 5, 1), 0);
    assert_int_equal(mu__monitor(ctx, ctx->self), 0);
    assert_int_equal(mu__send(ctx, ctx->self, mu__msg_new(ctx, MU__PING)), 0);
}

/* What it had begun is undone, and its done() is not called. */
TEST_ON(test_an_init_that_fails_leaves_nothing, struct bench *bench, setup, teardown)
{
    struct step step = {begin_well, NULL};
    struct probe_arg arg = {&step, NULL, -MU_EPERMISSION};
    mu__pid pid = {1, 2};

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 3, &arg, &pid),
                     -MU_EPERMISSION);
    assert_int_equal(pid.actor, 2);
    assert_int_equal(counters_of(bench).actors, 0);
    assert_int_equal(counters_of(bench).timers, 0);
    assert_int_equal(counters_of(bench).queued, 0);
    expect(bench, 100, "");
    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 3, NULL, &pid), 0);
}

/* An actor may begin to talk in its init. */
TEST_ON(test_init_may_send_and_set_timers, struct bench *bench, setup, teardown)
{
    struct step step = {begin_well, NULL};
    struct probe_arg arg = {&step, NULL, 0};
    mu__pid pid;

    assert_int_equal(mu__spawn(bench->kernel, &probe_behavior, 3, &arg, &pid), 0);
    expect(bench, 100,
           "[    0] n probe: 3: ping 0 from 3\n"
           "[    5] n probe: 3: timer 1\n");
}

TEST_PROGRAM()
