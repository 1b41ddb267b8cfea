/* The simulated world is itself tested: its order of events, its clock, its network and
 * its faults, in stories. What follows from seeds is in test_sim_swarm.c. */
#include "tests/sim/sim_fixture.h"

/* ---- Order ---- */

static void note_call(struct sim *sim, void *arg)
{
    sim_note(sim, MU__LOG_INFO, "%s", (const char *)arg);
}

/* Due time, then the order of queueing. */
TEST(test_events_have_a_total_order)
{
    struct sim *sim = sim_new(1);

    sim_at(sim, 20, note_call, "d");
    sim_at(sim, 10, note_call, "a");
    sim_at(sim, 30, note_call, "f");
    sim_at(sim, 10, note_call, "b");
    sim_at(sim, 20, note_call, "e");
    sim_at(sim, 10, note_call, "c");
    run_and_expect(sim, 30,
                   "[   10] sim note: a\n"
                   "[   10] sim note: b\n"
                   "[   10] sim note: c\n"
                   "[   20] sim note: d\n"
                   "[   20] sim note: e\n"
                   "[   30] sim note: f\n");
    sim_at(sim, 5, note_call, "late");
    run_and_expect(sim, 40, "[   30] sim note: late\n");
    sim_at(sim, 50, note_call, "never, and its memory is freed");
    sim_free(sim);
}

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us;
    return a->order < b->order;
}

/* Push and take out of the middle as chance has it: what is left comes out in order. */
static void check_queue(uint64_t seed)
{
    enum { COUNT = 700 };
    static struct sim_event list[COUNT];
    struct sim_random random = sim_stream(seed, 0);
    struct sim_queue queue;
    const struct sim_event *last = NULL;
    size_t left = COUNT;

    sim_queue_init(&queue);
    for (size_t i = 0; i < COUNT; i++) {
        list[i] = (struct sim_event){.due_us = sim_between(&random, 0, 50), .order = i};
        sim_queue_push(&queue, &list[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        if (sim_chance(&random, 40)) {
            sim_queue_remove(&queue, &list[i]);
            left--;
        }
    assert_int_equal(queue.count, left);
    for (; left > 0; left--) {
        const struct sim_event *event = sim_queue_pop(&queue);

        assert_true(last == NULL || event_before(last, event));
        last = event;
    }
    sim_queue_done(&queue);
}

TEST(test_queue_keeps_its_order)
{
    for (uint64_t seed = 0; seed < 100; seed++)
        check_queue(seed);
}

/* ---- The world ---- */

TEST_ON(test_earliest_wake_wins, struct pair *pair, pair_setup, pair_teardown)
{
    struct mu__world *world = pair->a.world;

    world->ops->wake_at(world, 300);
    world->ops->wake_at(world, 200);
    world->ops->wake_at(world, 250);
    run_and_expect(pair->sim, 1000, "[  200] a peer: turn at 200\n");
    world->ops->wake_at(world, 10);
    assert_string_equal(sim_trace(pair->sim), "");
    run_and_expect(pair->sim, 1000, "[ 1000] a peer: turn at 1000\n");
    world->ops->wake_at(world, UINT64_MAX);
    assert_true(sim_step(pair->sim));
    assert_true(sim_now_ms(pair->sim) > UINT64_C(1) << 40);
}

/* Two at a time, 10 ms each, in the order of submitting. */
TEST_ON(test_executor_has_slots_and_a_queue, struct pair *pair, pair_setup, pair_teardown)
{
    struct mu__world *world = pair->a.world;
    struct sim_counters counters;

    for (size_t i = 0; i < WORKS; i++) {
        pair->a.works[i].run = work_run;
        world->ops->submit(world, &pair->a.works[i]);
    }
    assert_int_equal(sim_works(pair->a.node), 4);
    sim_slow(pair->a.node, 3);
    run_and_expect(pair->sim, 300,
                   "[  110] a peer: work 0 done\n"
                   "[  110] a peer: turn at 110\n"
                   "[  110] a peer: work 1 done\n"
                   "[  110] a peer: turn at 110\n"
                   "[  140] a peer: work 2 done\n"
                   "[  140] a peer: turn at 140\n"
                   "[  140] a peer: work 3 done\n"
                   "[  140] a peer: turn at 140\n");
    assert_int_equal(sim_works(pair->a.node), 0);
    sim_counters(pair->sim, &counters);
    assert_int_equal(counters.works, 4);
}

/* One that hangs, until its time comes; one that begins when works do not hang any
 * more. */
TEST_ON(test_a_work_may_be_stuck, struct pair *pair, pair_setup, pair_teardown)
{
    struct sim_settings *settings = sim_settings(pair->sim);
    struct mu__world *world = pair->a.world;
    struct sim_counters counters;

    settings->executors = 1;
    settings->stuck_percent = 100;
    settings->stuck = (struct sim_range){200000, 200000};
    settings->stuck_until_us = 150000;
    for (size_t i = 0; i < 2; i++) {
        pair->a.works[i].run = work_run;
        world->ops->submit(world, &pair->a.works[i]);
    }
    run_and_expect(pair->sim, 400,
                   "[  100] sim note: a work of a is stuck for 200 ms\n"
                   "[  300] a peer: work 0 done\n"
                   "[  300] a peer: turn at 300\n"
                   "[  310] a peer: work 1 done\n"
                   "[  310] a peer: turn at 310\n");
    sim_counters(pair->sim, &counters);
    assert_int_equal(counters.works, 2);
    assert_int_equal(counters.stuck, 1);
}

TEST_ON(test_posts_come_in_order_before_a_turn, struct pair *pair, pair_setup,
        pair_teardown)
{
    sim_post(pair->a.node, mu__msg_heap(8, 0));
    sim_post(pair->a.node, mu__msg_heap(9, 0));
    run_and_expect(pair->sim, 100,
                   "[  100] a peer: message 8\n"
                   "[  100] a peer: message 9\n"
                   "[  100] a peer: turn at 100\n");
    sim_post(pair->a.node, mu__msg_heap(8, 0));
    sim_crash(pair->a.node);
    sim_post(pair->a.node, mu__msg_heap(9, 0));
    run_and_expect(pair->sim, 110, "[  110] b peer: in 1 down: closed by the peer\n");
}

/* ---- The network ---- */

TEST_ON(test_frames_take_their_time, struct pair *pair, pair_setup, pair_teardown)
{
    assert_int_equal(send_text(&pair->a, 1, "one"), 0);
    assert_int_equal(send_text(&pair->a, 1, "two"), 0);
    assert_int_equal(send_text(&pair->a, 2, "nobody"), -MU_EUNAVAILABLE);
    run_and_expect(pair->sim, 200,
                   "[  110] b peer: in 1: one\n"
                   "[  110] b peer: in 1: two\n");
    sim_slow_link(pair->sim, pair->a.node, pair->b.node, 5);
    assert_int_equal(send_text(&pair->a, 1, "three"), 0);
    run_and_expect(pair->sim, 300, "[  250] b peer: in 1: three\n");
}

TEST_ON(test_bad_dials_are_refused, struct pair *pair, pair_setup, pair_teardown)
{
    struct mu__wire *wire = pair->a.wire;

    assert_int_equal(wire->ops->dial(wire, 1, "tcp://b:1"), -MU_EEXISTS);
    assert_int_equal(wire->ops->dial(wire, 2, "b:1"), -MU_EINVALID);
    assert_int_equal(wire->ops->dial(wire, 2, "tcp://"), -MU_EINVALID);
    assert_int_equal(wire->ops->dial(wire, 2, "ipc:///b"), 0);
    run_and_expect(pair->sim, 10000, "");
    wire->ops->hangup(wire, 2);
    assert_true(sim_run_idle(pair->sim, 10000));
}

/* 20 ms, then twice as long each time, until there is somebody. */
TEST_ON(test_dial_backs_off_until_somebody_listens, struct pair *pair, pair_setup,
        pair_teardown)
{
    sim_settings(pair->sim)->redial = (struct sim_range){20000, 20000};
    sim_crash(pair->b.node);
    run_and_expect(pair->sim, 200, "[  110] a peer: out 1 down: closed by the peer\n");
    assert_int_equal(sim_restart(pair->b.node), 0);
    run_and_expect(pair->sim, 300, "[  210] a peer: out 1 up\n");
    assert_int_equal(sim_lives(pair->b.node), 2);
}

TEST_ON(test_a_full_connection_pushes_back, struct pair *pair, pair_setup, pair_teardown)
{
    char frame[600];

    memset(frame, 'x', sizeof frame);
    sim_settings(pair->sim)->connection_bytes_max = 1000;
    assert_int_equal(send_bytes(&pair->a, 1, frame, sizeof frame), 0);
    assert_int_equal(send_bytes(&pair->a, 1, frame, sizeof frame), -MU_EAGAIN);
    assert_int_equal(send_bytes(&pair->a, 1, frame, 1), -MU_EAGAIN);
    run_and_expect(pair->sim, 200,
                   "[  110] b peer: in 1: xxxxxxxxxxxxxxxxxxxx\n"
                   "[  120] a peer: out 1 writable\n");
    assert_int_equal(send_bytes(&pair->a, 1, frame, sizeof frame), 0);
}

TEST_ON(test_a_line_takes_time_for_bytes, struct pair *pair, pair_setup, pair_teardown)
{
    char frame[600];

    memset(frame, 'x', sizeof frame);
    sim_settings(pair->sim)->bytes_per_ms = 100;
    assert_int_equal(send_bytes(&pair->a, 1, frame, sizeof frame), 0);
    assert_int_equal(send_text(&pair->a, 1, ""), 0);
    run_and_expect(pair->sim, 200,
                   "[  116] b peer: in 1: xxxxxxxxxxxxxxxxxxxx\n"
                   "[  116] b peer: in 1: \n");
}

TEST_ON(test_a_reader_may_pause, struct pair *pair, pair_setup, pair_teardown)
{
    uint64_t first_us;

    pair->b.one_by_one = true;
    assert_int_equal(send_text(&pair->a, 1, "one"), 0);
    assert_int_equal(send_text(&pair->a, 1, "two"), 0);
    assert_true(sim_step(pair->sim));
    first_us = sim_now_us(pair->sim);
    assert_string_equal(sim_trace(pair->sim), "[  110] b peer: in 1: one\n");
    run_and_expect(pair->sim, 111, "[  110] b peer: in 1: two\n");
    assert_int_equal(first_us, 110000);
}

TEST_ON(test_hangup_ends_after_the_last_frame, struct pair *pair, pair_setup,
        pair_teardown)
{
    assert_int_equal(send_text(&pair->a, 1, "bye"), 0);
    pair->a.wire->ops->hangup(pair->a.wire, 1);
    pair->a.wire->ops->hangup(pair->a.wire, 1);
    assert_int_equal(send_text(&pair->a, 1, "?"), -MU_EUNAVAILABLE);
    run_and_expect(pair->sim, 200,
                   "[  110] b peer: in 1: bye\n"
                   "[  110] b peer: in 1 down: closed by the peer\n");
}

TEST_ON(test_hanging_up_is_silent_here_and_a_loss_there, struct pair *pair, pair_setup,
        pair_teardown)
{
    assert_int_equal(send_text(&pair->a, 1, "lost"), 0);
    pair->b.wire->ops->hangup(pair->b.wire, MU__WIRE_ACCEPTED | 1);
    pair->b.wire->ops->hangup(pair->b.wire, MU__WIRE_ACCEPTED | 1);
    pair->b.wire->ops->hangup(pair->b.wire, MU__WIRE_ACCEPTED | 99);
    assert_int_equal(send_text(&pair->a, 1, "lost without knowing"), 0);
    run_and_expect(pair->sim, 120, "[  110] a peer: out 1 down: closed by the peer\n");
    assert_int_equal(send_text(&pair->a, 1, "?"), -MU_EUNAVAILABLE);
    run_and_expect(pair->sim, 200, "[  130] a peer: out 1 up\n");
    assert_int_equal(send_text(&pair->a, 1, "a new one"), 0);
    run_and_expect(pair->sim, 300, "[  210] b peer: in 2: a new one\n");
}

TEST_ON(test_a_frame_too_large_breaks_the_connection, struct pair *pair, pair_setup,
        pair_teardown)
{
    size_t size = MU__FRAME_BYTES_MAX + 1;
    char *bytes = calloc(1, size);

    assert_non_null(bytes);
    assert_int_equal(send_bytes(&pair->a, 1, bytes, size), 0);
    assert_int_equal(send_text(&pair->a, 1, "never"), 0);
    run_and_expect(pair->sim, 125,
                   "[  110] b peer: in 1 down: frame is too large\n"
                   "[  120] a peer: out 1 down: connection reset by the peer\n");
    free(bytes);
}

/* The sender keeps a reference and writes on: the frame on its way does not change. */
TEST_ON(test_a_kept_frame_is_copied, struct pair *pair, pair_setup, pair_teardown)
{
    struct mu__buf *frame = pair->a.wire->ops->buffer(pair->a.wire, 4);

    assert_non_null(frame);
    memcpy(frame->data, "kept", 4);
    frame->size = 4;
    mu__buf_ref(frame);
    assert_int_equal(pair->a.wire->ops->send(pair->a.wire, 1, frame), 0);
    memcpy(frame->data, "XXXX", 4);
    run_and_expect(pair->sim, 200, "[  110] b peer: in 1: kept\n");
    assert_int_equal(frame->refs, 1);
    mu__buf_unref(frame);
}

TEST_PROGRAM()
