/* Mailboxes, claimed messages, turns and timers of a kernel. */
#include "tests/runtime/kernel/kernel_fixture.h"

/* ---- Actors of the tests ---- */

static const struct mu__behavior tight_behavior = PROBE("tight", 2);

/* ---- Mailboxes ---- */

static void fill_the_tight_one(struct mu__ctx *ctx, void *arg)
{
    mu__pid *tight = arg;
    int wanted[] = {0, 0, -MU_EEXHAUSTED, -MU_EEXHAUSTED};

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct mu__msg *msg = mu__msg_new(ctx, MU__PING);
        struct mu__ping *body = mu__body(msg);

        body->number = i;
        assert_int_equal(mu__send(ctx, *tight, msg), wanted[i]);
    }
}

TEST_ON(test_a_full_mailbox_refuses, struct bench *bench, setup, teardown)
{
    mu__pid tight = spawn(bench, &tight_behavior);
    mu__pid probe = spawn(bench, &probe_behavior);
    struct step step = {fill_the_tight_one, &tight};

    tell(bench, probe, &step);
    expect(bench, 10,
           "[    0] n tight: 16: ping 0 from 17\n"
           "[    0] n tight: 16: ping 1 from 17\n");
    assert_int_equal(new_dead(bench), 2);
    assert_int_equal(counters_of(bench).queued, 0);
}

static void ask_for_much(struct mu__ctx *ctx, void *arg)
{
    mu__pid *gone = arg;

    fill_the_tight_one(ctx, &ctx->self);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mu__monitor(ctx, *gone), 0);
    assert_int_not_equal(mu__timer_set(ctx, 0, 1), 0);
    assert_int_not_equal(mu__timer_set(ctx, 0, 2), 0);
}

static int count_of(const char *text, const char *words)
{
    int count = 0;

    while ((text = strstr(text, words)) != NULL) {
        text += strlen(words);
        count++;
    }
    return count;
}

/* What the kernel itself sends is bounded by what was asked for, and always fits. */
TEST_ON(test_the_kernel_is_exempt_from_the_bound, struct bench *bench, setup, teardown)
{
    mu__pid tight = spawn(bench, &tight_behavior);
    mu__pid gone = {MU__NODE_SELF, 99999};
    struct step step = {ask_for_much, &gone};
    const char *trace;

    tell(bench, tight, &step);
    sim_run_until(bench->sim, 10);
    trace = sim_trace(bench->sim);
    assert_int_equal(count_of(trace, "ping"), 2);
    assert_int_equal(count_of(trace, "0:99999 is down"), 3);
    assert_int_equal(count_of(trace, "timer"), 2);
    assert_int_equal(new_dead(bench), 2);
}

TEST_ON(test_letters_to_nobody_are_counted, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);
    mu__pid deaf = spawn(bench, &deaf_behavior);
    struct mu__ping body = {1};

    assert_int_equal(ping(bench, (mu__pid){0, 4711}, 1), -MU_ENOTFOUND);
    assert_int_equal(new_dead(bench), 1);
    assert_int_equal(post(bench, probe, MU__UNHEARD, &body, sizeof body), 0);
    assert_int_equal(ping(bench, deaf, 1), 0);
    sim_run_until(bench->sim, 1);
    assert_int_equal(new_dead(bench), 2);
    assert_string_equal(sim_trace(bench->sim), "");
}

static void send_around(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_equal(mu__send(ctx, ctx->self, NULL), -MU_ENOMEM);
    mu__msg_free(ctx, mu__msg_new(ctx, MU__PING));
    assert_int_equal(mu__send(ctx, (mu__pid){5, 1}, mu__msg_new(ctx, MU__PING)), 0);
    assert_int_equal(mu__send(ctx, (mu__pid){9, 1}, mu__msg_new(ctx, MU__PING)),
                     -MU_EUNAVAILABLE);
    assert_int_equal(mu__send(ctx, (mu__pid){0, 4711}, mu__msg_new(ctx, MU__PING)),
                     -MU_ENOTFOUND);
}

TEST_ON(test_messages_for_other_nodes_leave, struct bench *bench, setup, teardown)
{
    struct step step = {send_around, NULL};

    tell(bench, spawn(bench, &probe_behavior), &step);
    sim_run_until(bench->sim, 1);
    assert_int_equal(bench->sent_to, 9);
    assert_int_equal(mu__kernel_pool(bench->kernel)->live, 0);
}

/* ---- Claiming ---- */

struct forward {
    mu__pid to;
    struct mu__msg *kept;
};

static void forward_it(struct mu__ctx *ctx, void *arg)
{
    struct forward *forward = arg;
    struct mu__msg *msg = mu__claim(ctx);

    msg->kind = MU__PING;
    memset(msg->body, 0, sizeof(struct mu__ping));
    assert_int_equal(mu__send(ctx, forward->to, msg), 0);
}

static void keep_it(struct mu__ctx *ctx, void *arg)
{
    struct forward *forward = arg;

    forward->kept = mu__claim(ctx);
}

static void free_kept(struct mu__ctx *ctx, void *arg)
{
    struct forward *forward = arg;

    mu__msg_free(ctx, forward->kept);
}

/* A claimed message is the claimer's: it goes on whole, or lives until it is freed. */
TEST_ON(test_a_claimed_message_can_go_on, struct bench *bench, setup, teardown)
{
    mu__pid first = spawn(bench, &probe_behavior);
    struct forward forward = {spawn(bench, &probe_behavior), NULL};
    struct step steps[] = {
        {forward_it, &forward}, {keep_it, &forward}, {free_kept, &forward}};

    tell(bench, first, &steps[0]);
    expect(bench, 1, "[    0] n probe: 17: ping 0 from 16\n");
    tell(bench, first, &steps[1]);
    sim_run_until(bench->sim, 2);
    assert_int_equal(forward.kept->kind, MU__STEP);
    tell(bench, first, &steps[2]);
    sim_run_until(bench->sim, 3);
    assert_int_equal(counters_of(bench).queued, 0);
}

/* ---- Turns ---- */

struct look {
    mu__pid at;
    uint64_t pings;
};

static void look_at_pings(struct mu__ctx *ctx, void *arg)
{
    struct look *look = arg;
    struct probe *probe = mu__actor_state(ctx->kernel, look->at);

    assert_non_null(probe);
    look->pings = probe->pings;
}

/* One that is flooded does not keep the others from their mail. */
TEST_ON(test_actors_take_turns, struct bench *bench, setup, teardown)
{
    mu__pid flooded = spawn(bench, &probe_behavior);
    mu__pid other = spawn(bench, &probe_behavior);
    struct look look = {flooded, 0};
    struct step step = {look_at_pings, &look};

    sim_trace_level(bench->sim, MU__LOG_WARN);
    for (uint64_t i = 0; i < MU__ACTOR_BATCH * 4; i++)
        assert_int_equal(ping(bench, flooded, i), 0);
    tell(bench, other, &step);
    mu__kernel_turn(bench->kernel);
    assert_int_equal(look.pings, MU__ACTOR_BATCH);
}

/* A turn handles so many messages and no more; the rest has another turn at once. */
TEST_ON(test_a_turn_is_finite, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);
    int count = MU__TURN_MESSAGES * 2 + 1;
    struct step step = {ping_itself, &count};
    struct probe *seen = mu__actor_state(bench->kernel, probe);

    sim_trace_level(bench->sim, MU__LOG_WARN);
    tell(bench, probe, &step);
    mu__kernel_turn(bench->kernel);
    assert_int_equal(seen->pings, MU__TURN_MESSAGES - 1);
    assert_int_equal(counters_of(bench).queued, MU__TURN_MESSAGES + 2);
    sim_run_until(bench->sim, 0);
    assert_int_equal(seen->pings, count);
    assert_int_equal(counters_of(bench).messages, count + 1);
    assert_true(counters_of(bench).turns >= 3);
}

TEST_ON(test_mail_keeps_its_order, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);

    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(ping(bench, probe, i), 0);
    expect(bench, 1,
           "[    0] n probe: 16: ping 0 from 0\n"
           "[    0] n probe: 16: ping 1 from 0\n"
           "[    0] n probe: 16: ping 2 from 0\n"
           "[    0] n probe: 16: ping 3 from 0\n");
}

/* ---- Timers ---- */

static void set_timers(struct mu__ctx *ctx, void *arg)
{
    static const uint64_t delays[] = {30, 10, 20, 10, 30};
    uint64_t *timers = arg;

    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        timers[i] = mu__timer_set(ctx, delays[i], i);
        assert_int_not_equal(timers[i], 0);
    }
}

static void cancel_two(struct mu__ctx *ctx, void *arg)
{
    uint64_t *timers = arg;

    mu__timer_cancel(ctx, timers[2]);
    mu__timer_cancel(ctx, timers[0]);
    mu__timer_cancel(ctx, timers[0]);
    mu__timer_cancel(ctx, 0);
    mu__timer_cancel(ctx, UINT64_MAX);
}

TEST_ON(test_timers_fire_in_order, struct bench *bench, setup, teardown)
{
    uint64_t timers[5];
    struct step step = {set_timers, timers};

    tell(bench, spawn(bench, &probe_behavior), &step);
    expect(bench, 100,
           "[   10] n probe: 16: timer 1\n"
           "[   10] n probe: 16: timer 3\n"
           "[   20] n probe: 16: timer 2\n"
           "[   30] n probe: 16: timer 0\n"
           "[   30] n probe: 16: timer 4\n");
    assert_int_equal(counters_of(bench).timers, 0);
}

TEST_ON(test_cancelled_timers_are_silent, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);
    uint64_t timers[5];
    struct step steps[] = {{set_timers, timers}, {cancel_two, timers}};

    tell(bench, probe, &steps[0]);
    tell(bench, probe, &steps[1]);
    sim_run_until(bench->sim, 0);
    assert_int_equal(counters_of(bench).timers, 3);
    expect(bench, 100,
           "[   10] n probe: 16: timer 1\n"
           "[   10] n probe: 16: timer 3\n"
           "[   30] n probe: 16: timer 4\n");
    tell(bench, probe, &steps[1]);
    expect(bench, 100, "");
}

/* The number of a timer that has fired does not cancel the one that has its place. */
static void cancel_stale(struct mu__ctx *ctx, void *arg)
{
    uint64_t *stale = arg;
    uint64_t fresh = mu__timer_set(ctx, 10, 77);

    assert_true(fresh != *stale);
    mu__timer_cancel(ctx, *stale);
}

static void set_one(struct mu__ctx *ctx, void *arg)
{
    uint64_t *timer = arg;

    *timer = mu__timer_set(ctx, 1, 1);
}

TEST_ON(test_stale_timer_numbers_are_harmless, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);
    uint64_t timer;
    struct step steps[] = {{set_one, &timer}, {cancel_stale, &timer}};

    tell(bench, probe, &steps[0]);
    expect(bench, 10, "[    1] n probe: 16: timer 1\n");
    tell(bench, probe, &steps[1]);
    expect(bench, 90, "[   20] n probe: 16: timer 77\n");
}

struct again {
    unsigned turns_left;
    uint64_t turn; /* of the kernel, when the last one fired */
};

static const struct mu__behavior again_behavior;

static void set_now(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, 0, 0), 0);
}

static void on_again(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct again *again = state;
    struct mu__kernel_counters counters;

    (void)msg;
    mu__kernel_counters(ctx->kernel, &counters);
    assert_true(counters.turns > again->turn);
    again->turn = counters.turns;
    if (again->turns_left-- > 0)
        set_now(ctx, NULL);
}

static const struct mu__handler again_handlers[] = {{MU__TIMER, on_again}};

static int again_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct again *again = state;

    (void)arg;
    again->turns_left = 10;
    set_now(ctx, NULL);
    return 0;
}

static const struct mu__behavior again_behavior = {.name = "again",
                                                   .state_size = sizeof(struct again),
                                                   .handlers = again_handlers,
                                                   .handlers_count = 1,
                                                   .init = again_init};

/* A timer set in a handler waits for the next turn, even when it is due at once. */
TEST_ON(test_a_timer_never_fires_in_its_own_turn, struct bench *bench, setup, teardown)
{
    mu__pid pid = spawn(bench, &again_behavior);
    struct again *again = mu__actor_state(bench->kernel, pid);

    sim_run_until(bench->sim, 0);
    assert_int_equal(again->turns_left, UINT32_MAX);
    assert_true(counters_of(bench).turns >= 11);
}

static void set_very_late(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, UINT64_MAX, 1), 0);
    assert_int_not_equal(mu__timer_set(ctx, UINT64_MAX / 2, 2), 0);
}

TEST_ON(test_late_timers_do_not_overflow, struct bench *bench, setup, teardown)
{
    struct step step = {set_very_late, NULL};

    tell(bench, spawn(bench, &probe_behavior), &step);
    expect(bench, 1000000, "");
    assert_int_equal(counters_of(bench).timers, 2);
}

static void set_too_many(struct mu__ctx *ctx, void *arg)
{
    uint32_t *count = arg;

    while (mu__timer_set(ctx, 1000, 1) != 0)
        ++*count;
}

/* With the real bound this takes a million timers; the tiny build looks at it. */
TEST_ON(test_timers_are_bounded, struct bench *bench, setup, teardown)
{
    uint32_t count = 0;
    struct step step = {set_too_many, &count};

    if (MU__TIMERS_MAX > 1000)
        skip();
    tell(bench, spawn(bench, &probe_behavior), &step);
    sim_run_until(bench->sim, 1);
    assert_int_equal(count, MU__TIMERS_MAX);
}

/* ---- Holding back ---- */

static void hold_ping(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)state;
    (void)msg;
    mu__hold(ctx);
}

static const struct mu__handler shy_handlers[] = {
    {MU__PING, hold_ping},
    {MU__LOOK, on_look},
    {MU__STEP, on_step},
};

static const struct mu__behavior shy_behavior = {
    .name = "shy",
    .state_size = sizeof(struct probe),
    .handlers = shy_handlers,
    .handlers_count = sizeof shy_handlers / sizeof shy_handlers[0],
    .done = probe_done,
};

static void become_shy(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_equal(mu__become(ctx, &shy_behavior), 0);
}

static void open_up(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_equal(mu__become(ctx, &probe_behavior), 0);
    mu__release_held(ctx);
}

TEST_ON(test_held_messages_come_first, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);
    struct step shy = {become_shy, NULL};
    struct step open = {open_up, NULL};
    struct mu__look look = {7};

    tell(bench, probe, &shy);
    assert_int_equal(ping(bench, probe, 1), 0);
    assert_int_equal(ping(bench, probe, 2), 0);
    assert_int_equal(post(bench, probe, MU__LOOK, &look, sizeof look), 0);
    expect(bench, 10, "[    0] n shy: 16: look 7 of 0\n");
    assert_int_equal(counters_of(bench).queued, 0);
    tell(bench, probe, &open);
    assert_int_equal(ping(bench, probe, 3), 0);
    expect(bench, 20,
           "[   10] n probe: 16: ping 1 from 0\n"
           "[   10] n probe: 16: ping 2 from 0\n"
           "[   10] n probe: 16: ping 3 from 0\n");
    assert_int_equal(counters_of(bench).queued, 0);
    tell(bench, probe, &open); /* nothing is held */
    expect(bench, 30, "");
}

/* Of those beyond the bound, and of an actor that ends, nothing is left. */
TEST_ON(test_held_messages_are_bounded, struct bench *bench, setup, teardown)
{
    mu__pid probe = spawn(bench, &probe_behavior);
    struct step shy = {become_shy, NULL};
    uint64_t live = mu__kernel_pool(bench->kernel)->live;

    tell(bench, probe, &shy);
    for (uint64_t i = 0; i < MU__HELD_MAX + 3; i++) {
        assert_int_equal(ping(bench, probe, i), 0);
        if (i % 32 == 0)
            sim_run_until(bench->sim, 1 + i / 32);
    }
    sim_run_until(bench->sim, 100000);
    assert_int_equal(new_dead(bench), 3);
    mu__stop(bench->kernel, probe);
    assert_int_equal(new_dead(bench), MU__HELD_MAX);
    assert_int_equal(counters_of(bench).queued, 0);
    assert_int_equal(mu__kernel_pool(bench->kernel)->live, live);
}

TEST_PROGRAM()
