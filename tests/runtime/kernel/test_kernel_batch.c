/* What an actor does once after each batch of its messages. */
#include "tests/runtime/kernel/kernel_fixture.h"

enum { LONG_MAIL = 3 * MU__ACTOR_BATCH };

/* A probe that logs the end of each batch, and does something there. */
struct counting {
    struct probe probe;
    uint64_t pings_seen;
    uint32_t batches;
    struct step *at_batch; /* run once */
};

static void after_batch(struct mu__ctx *ctx, void *state)
{
    struct counting *counting = state;
    struct step *step = counting->at_batch;

    assert_null(ctx->current);
    counting->batches++;
    mu__log(ctx, MU__LOG_INFO, "%u: %" PRIu64 " pings", ctx->self.actor,
            counting->probe.pings - counting->pings_seen);
    counting->pings_seen = counting->probe.pings;
    counting->at_batch = NULL;
    if (step != NULL)
        step->run(ctx, step->arg);
}

static const struct mu__behavior counting_behavior = {
    .name = "counting",
    .state_size = sizeof(struct counting),
    .handlers = probe_handlers,
    .handlers_count = sizeof probe_handlers / sizeof probe_handlers[0],
    .init = probe_init,
    .after_batch = after_batch,
    .done = probe_done,
};

static mu__pid spawn_counting(struct bench *bench, struct step *at_batch)
{
    mu__pid pid = spawn(bench, &counting_behavior);

    ((struct counting *)mu__actor_state(bench->kernel, pid))->at_batch = at_batch;
    (void)sim_trace(bench->sim);
    return pid;
}

static uint32_t batches_of(struct bench *bench, mu__pid pid)
{
    return ((struct counting *)mu__actor_state(bench->kernel, pid))->batches;
}

/* Between the messages of two actors, and not after each message. */
TEST_ON(test_a_batch_ends_before_the_next_actor_runs, struct bench *bench, setup,
        teardown)
{
    mu__pid first = spawn_counting(bench, NULL);
    mu__pid second = spawn_counting(bench, NULL);

    if (MU__ACTOR_BATCH < 2)
        skip();
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(ping(bench, first, i), 0);
        assert_int_equal(ping(bench, second, i), 0);
    }
    expect(bench, 10,
           "[    0] n counting: 16: ping 1 from 0\n"
           "[    0] n counting: 16: ping 2 from 0\n"
           "[    0] n counting: 16: 2 pings\n"
           "[    0] n counting: 17: ping 1 from 0\n"
           "[    0] n counting: 17: ping 2 from 0\n"
           "[    0] n counting: 17: 2 pings\n");
    expect(bench, 10, "");
}

TEST_ON(test_each_batch_of_long_mail_ends, struct bench *bench, setup, teardown)
{
    mu__pid pid = spawn_counting(bench, NULL);
    uint32_t before = batches_of(bench, pid);

    for (uint64_t i = 0; i < LONG_MAIL; i++)
        assert_int_equal(ping(bench, pid, i), 0);
    sim_run_until(bench->sim, 10);
    assert_int_equal(batches_of(bench, pid) - before, LONG_MAIL / MU__ACTOR_BATCH);
}

/* What it sends to itself is another batch; an actor with mail is not overtaken. */
TEST_ON(test_what_is_sent_there_is_handled_later, struct bench *bench, setup, teardown)
{
    int once = 1;
    struct step step = {ping_itself, &once};
    mu__pid first = spawn_counting(bench, &step);
    mu__pid second = spawn_counting(bench, NULL);

    assert_int_equal(ping(bench, first, 1), 0);
    assert_int_equal(ping(bench, second, 2), 0);
    expect(bench, 10,
           "[    0] n counting: 16: ping 1 from 0\n"
           "[    0] n counting: 16: 1 pings\n"
           "[    0] n counting: 17: ping 2 from 0\n"
           "[    0] n counting: 17: 1 pings\n"
           "[    0] n counting: 16: ping 0 from 16\n"
           "[    0] n counting: 16: 1 pings\n");
    assert_int_equal(counters_of(bench).queued, 0);
}

static void set_timer(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_not_equal(mu__timer_set(ctx, 0, 1), 0);
}

TEST_ON(test_timers_set_there_fire_in_the_next_turn, struct bench *bench, setup, teardown)
{
    struct step step = {set_timer, NULL};
    mu__pid pid = spawn_counting(bench, &step);
    uint64_t turns = counters_of(bench).turns;

    assert_int_equal(ping(bench, pid, 1), 0);
    expect(bench, 10,
           "[    0] n counting: 16: ping 1 from 0\n"
           "[    0] n counting: 16: 1 pings\n"
           "[    0] n counting: 16: timer 1\n"
           "[    0] n counting: 16: 0 pings\n");
    assert_true(counters_of(bench).turns >= turns + 2);
}

static void stop_itself(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    mu__stop(ctx->kernel, ctx->self);
}

/* An actor that has stopped itself only ends. */
TEST_ON(test_a_stopping_actor_is_not_called, struct bench *bench, setup, teardown)
{
    struct step step = {stop_itself, NULL};
    mu__pid pid = spawn_counting(bench, NULL);

    tell(bench, pid, &step);
    assert_int_equal(ping(bench, pid, 1), 0);
    expect(bench, 10, "[    0] n counting: 16 ends\n");
    assert_int_equal(new_dead(bench), 1);
}

TEST_ON(test_an_actor_may_stop_itself_there, struct bench *bench, setup, teardown)
{
    struct step step = {stop_itself, NULL};
    mu__pid pid = spawn_counting(bench, &step);

    assert_int_equal(ping(bench, pid, 1), 0);
    expect(bench, 10,
           "[    0] n counting: 16: ping 1 from 0\n"
           "[    0] n counting: 16: 1 pings\n"
           "[    0] n counting: 16 ends\n");
    assert_int_equal(counters_of(bench).actors, 0);
}

/* Init is a batch, too, unless it fails. */
TEST_ON(test_it_is_called_after_init, struct bench *bench, setup, teardown)
{
    struct probe_arg fails = {.rv = -MU_EPERMISSION};
    mu__pid pid;

    assert_int_equal(mu__spawn(bench->kernel, &counting_behavior, 3, &fails, &pid),
                     -MU_EPERMISSION);
    assert_string_equal(sim_trace(bench->sim), "");
    assert_int_equal(mu__spawn(bench->kernel, &counting_behavior, 3, NULL, &pid), 0);
    assert_string_equal(sim_trace(bench->sim), "[    0] n counting: 3: 0 pings\n");
}

/* Reads that have waited for their node are batches of one. */
TEST_ON(test_it_is_called_after_a_late_read, struct bench *bench, setup, teardown)
{
    enum { NODE = 3 };
    struct mu__look body = {7};
    mu__pid pid = spawn_counting(bench, NULL);
    struct mu__msg *msg = mu__msg_heap(MU__LOOK, sizeof body);

    assert_non_null(msg);
    mu__kernel_node_up(bench->kernel, NODE, "client", 0, 1, "tcp://c:1");
    mu__kernel_node_behind(bench->kernel, NODE, true);
    msg->to = pid;
    msg->from.node = NODE;
    memcpy(msg->body, &body, sizeof body);
    assert_int_equal(mu__kernel_deliver(bench->kernel, msg), 0);
    mu__kernel_turn(bench->kernel);
    (void)sim_trace(bench->sim);
    mu__kernel_node_behind(bench->kernel, NODE, false);
    expect(bench, 10,
           "[    0] n counting: 16: look 7 of 3\n"
           "[    0] n counting: 16: 0 pings\n");
}

static void become_plain(struct mu__ctx *ctx, void *arg)
{
    (void)arg;
    assert_int_equal(mu__become(ctx, &probe_behavior), 0);
}

/* The behavior that the actor has at the end of the batch counts. */
TEST_ON(test_another_behavior_has_its_own, struct bench *bench, setup, teardown)
{
    struct step step = {become_plain, NULL};
    mu__pid pid = spawn_counting(bench, NULL);

    tell(bench, pid, &step);
    assert_int_equal(ping(bench, pid, 1), 0);
    expect(bench, 10, "[    0] n probe: 16: ping 1 from 0\n");
}

TEST_PROGRAM()
