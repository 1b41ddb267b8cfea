/* The simulated world is itself tested: its order of events, its clock, its network and
 * its faults, in stories. What follows from seeds is in test_sim_swarm.c. */
#include "tests/sim/chaos.h"
#include "tests/sim/events.h"
#include "tests/sim/random.h"
#include "tests/sim/sim.h"

#include "runtime/kernel/system_messages.h"
#include "runtime/message/pool.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- A process that says everything it hears ---- */

enum { PEERS_MAX = 8, WORKS = 4 };

struct peer {
    struct sim_node *node;
    struct mu__world *world;
    struct mu__wire *wire;
    struct mu__pool pool;
    const char *dials[PEERS_MAX];   /* at its start, as outs 1, 2, ... */
    size_t dials_count;
    bool one_by_one;                /* asks for a pause after each frame */
    struct mu__work works[WORKS];
    bool alive;
};

static void say(struct peer *peer, const char *format, ...) MU_PRINTF(2, 3);

static void say(struct peer *peer, const char *format, ...)
{
    char line[128];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    peer->world->ops->log(peer->world, MU__LOG_INFO, "peer", line);
}

static void on_deliver(void *owner, struct mu__msg *msg)
{
    struct peer *peer = owner;

    if (msg->kind == MU__WORK_DONE) {
        struct mu__work_done *body = (void *)msg->body;

        say(peer, "work %td done", (struct mu__work *)body->work - peer->works);
    } else {
        say(peer, "message %u", msg->kind);
    }
    mu__pool_put(&peer->pool, msg);
}

static void on_turn(void *owner)
{
    struct peer *peer = owner;

    say(peer, "turn at %" PRIu64, peer->world->ops->now_ms(peer->world));
}

static int on_transmit(void *owner, struct mu__msg *msg)
{
    struct peer *peer = owner;

    mu__pool_put(&peer->pool, msg);
    return 0;
}

static void on_out_up(void *owner, uint32_t out)
{
    say(owner, "out %u up", out);
}

static void on_out_down(void *owner, uint32_t out, const char *reason)
{
    say(owner, "out %u down: %s", out, reason);
}

static void on_writable(void *owner, uint32_t out)
{
    say(owner, "out %u writable", out);
}

static bool on_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    struct peer *peer = owner;

    assert_int_equal((uintptr_t)frame->data % 16, 0);
    say(peer, "in %u: %.*s", in, (int)(frame->size < 20 ? frame->size : 20),
        (const char *)frame->data);
    return !peer->one_by_one;
}

static void on_in_down(void *owner, uint32_t in, const char *reason)
{
    say(owner, "in %u down: %s", in, reason);
}

static const struct mu__wire_events events = {
    .out_up = on_out_up,
    .out_down = on_out_down,
    .writable = on_writable,
    .frame = on_frame,
    .in_down = on_in_down,
};

static int peer_start(void *arg, struct sim_node *node, struct mu__world *world,
                      struct mu__wire *wire)
{
    struct peer *peer = arg;
    struct mu__world_hooks hooks = {peer, on_deliver, on_turn, on_transmit};

    peer->world = world;
    peer->wire = wire;
    peer->alive = true;
    mu__pool_init(&peer->pool);
    sim_attach(node, &hooks, &events, peer);
    for (size_t i = 0; i < peer->dials_count; i++)
        assert_int_equal(wire->ops->dial(wire, (uint32_t)i + 1, peer->dials[i]), 0);
    return 0;
}

static void peer_stop(void *arg)
{
    struct peer *peer = arg;

    mu__pool_done(&peer->pool);
    peer->alive = false;
}

static const struct sim_program peer_program = {peer_start, peer_stop};

static int send_bytes(struct peer *peer, uint32_t out, const void *bytes, size_t size)
{
    struct mu__buf *frame = peer->wire->ops->buffer(peer->wire, size);
    int rv;

    assert_non_null(frame);
    memcpy(frame->data, bytes, size);
    frame->size = (uint32_t)size;
    rv = peer->wire->ops->send(peer->wire, out, frame);
    if (rv != 0)
        mu__buf_unref(frame);
    return rv;
}

static int send_text(struct peer *peer, uint32_t out, const char *text)
{
    return send_bytes(peer, out, text, strlen(text));
}

/* ---- Two of them, a dialling b ---- */

struct pair {
    struct sim *sim;
    struct peer a;
    struct peer b;
};

static int pair_setup(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);

    assert_non_null(pair);
    pair->sim = sim_new(1);
    pair->a.dials[0] = "tcp://b:1";
    pair->a.dials_count = 1;
    pair->a.node = sim_node_add(pair->sim, "a", "tcp://a:1", &peer_program, &pair->a);
    pair->b.node = sim_node_add(pair->sim, "b", "tcp://b:1", &peer_program, &pair->b);
    assert_int_equal(sim_start(pair->a.node), 0);
    assert_int_equal(sim_start(pair->b.node), 0);
    sim_run_until(pair->sim, 100);
    assert_string_equal(sim_trace(pair->sim), "[   20] a peer: out 1 up\n");
    *state = pair;
    return 0;
}

static int pair_teardown(void **state)
{
    struct pair *pair = *state;

    sim_free(pair->sim);
    assert_false(pair->a.alive);
    assert_false(pair->b.alive);
    free(pair);
    return 0;
}

static void run_and_expect(struct sim *sim, uint64_t until_ms, const char *lines)
{
    sim_run_until(sim, until_ms);
    assert_string_equal(sim_trace(sim), lines);
}

/* ---- Order ---- */

static void note_call(struct sim *sim, void *arg)
{
    sim_note(sim, MU__LOG_INFO, "%s", (const char *)arg);
}

/* Due time, then the order of queueing. */
static void test_events_have_a_total_order(void **state)
{
    struct sim *sim = sim_new(1);

    (void)state;
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

static void test_queue_keeps_its_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++)
        check_queue(seed);
}

/* ---- The world ---- */

static void test_earliest_wake_wins(void **state)
{
    struct pair *pair = *state;
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

static void work_run(struct mu__work *work)
{
    (void)work;
}

/* Two at a time, 10 ms each, in the order of submitting. */
static void test_executor_has_slots_and_a_queue(void **state)
{
    struct pair *pair = *state;
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
static void test_a_work_may_be_stuck(void **state)
{
    struct pair *pair = *state;
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

static void test_posts_come_in_order_before_a_turn(void **state)
{
    struct pair *pair = *state;

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

static void test_frames_take_their_time(void **state)
{
    struct pair *pair = *state;

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

static void test_bad_dials_are_refused(void **state)
{
    struct pair *pair = *state;
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
static void test_dial_backs_off_until_somebody_listens(void **state)
{
    struct pair *pair = *state;

    sim_settings(pair->sim)->redial = (struct sim_range){20000, 20000};
    sim_crash(pair->b.node);
    run_and_expect(pair->sim, 200, "[  110] a peer: out 1 down: "
                                   "connection reset by the peer\n");
    assert_int_equal(sim_restart(pair->b.node), 0);
    run_and_expect(pair->sim, 300, "[  210] a peer: out 1 up\n");
    assert_int_equal(sim_lives(pair->b.node), 2);
}

static void test_a_full_connection_pushes_back(void **state)
{
    struct pair *pair = *state;
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

static void test_a_line_takes_time_for_bytes(void **state)
{
    struct pair *pair = *state;
    char frame[600];

    memset(frame, 'x', sizeof frame);
    sim_settings(pair->sim)->bytes_per_ms = 100;
    assert_int_equal(send_bytes(&pair->a, 1, frame, sizeof frame), 0);
    assert_int_equal(send_text(&pair->a, 1, ""), 0);
    run_and_expect(pair->sim, 200,
                   "[  116] b peer: in 1: xxxxxxxxxxxxxxxxxxxx\n"
                   "[  116] b peer: in 1: \n");
}

static void test_a_reader_may_pause(void **state)
{
    struct pair *pair = *state;
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

static void test_hangup_ends_after_the_last_frame(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(send_text(&pair->a, 1, "bye"), 0);
    pair->a.wire->ops->hangup(pair->a.wire, 1);
    pair->a.wire->ops->hangup(pair->a.wire, 1);
    assert_int_equal(send_text(&pair->a, 1, "?"), -MU_EUNAVAILABLE);
    run_and_expect(pair->sim, 200,
                   "[  110] b peer: in 1: bye\n"
                   "[  110] b peer: in 1 down: closed by the peer\n");
}

static void test_drop_is_silent_here_and_a_loss_there(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(send_text(&pair->a, 1, "lost"), 0);
    pair->b.wire->ops->drop(pair->b.wire, 1);
    pair->b.wire->ops->drop(pair->b.wire, 1);
    pair->b.wire->ops->drop(pair->b.wire, 99);
    assert_int_equal(send_text(&pair->a, 1, "lost without knowing"), 0);
    run_and_expect(pair->sim, 120, "[  110] a peer: out 1 down: "
                                   "connection reset by the peer\n");
    assert_int_equal(send_text(&pair->a, 1, "?"), -MU_EUNAVAILABLE);
    run_and_expect(pair->sim, 200, "[  130] a peer: out 1 up\n");
    assert_int_equal(send_text(&pair->a, 1, "a new one"), 0);
    run_and_expect(pair->sim, 300, "[  210] b peer: in 2: a new one\n");
}

static void test_a_frame_too_large_breaks_the_connection(void **state)
{
    struct pair *pair = *state;
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
static void test_a_kept_frame_is_copied(void **state)
{
    struct pair *pair = *state;
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

/* ---- Faults ---- */

/* A turn, a post, a work, a frame and a connection of the first life are all under way
 * when it ends: the second one hears of none. */
static void test_a_crash_leaves_nothing_for_the_next_life(void **state)
{
    struct pair *pair = *state;
    struct mu__world *world = pair->b.world;

    world->ops->wake_at(world, 105);
    pair->b.works[0].run = work_run;
    world->ops->submit(world, &pair->b.works[0]);
    sim_post(pair->b.node, mu__msg_heap(8, 0));
    assert_int_equal(send_text(&pair->a, 1, "for the first life"), 0);
    sim_crash(pair->b.node);
    assert_false(sim_alive(pair->b.node));
    assert_int_equal(sim_restart(pair->b.node), 0);
    run_and_expect(pair->sim, 300,
                   "[  110] a peer: out 1 down: connection reset by the peer\n"
                   "[  130] a peer: out 1 up\n");
    assert_int_equal(send_text(&pair->a, 1, "for the second"), 0);
    run_and_expect(pair->sim, 400, "[  310] b peer: in 1: for the second\n");
}

static void test_what_the_dead_sent_still_arrives(void **state)
{
    struct pair *pair = *state;
    struct sim_counters counters;

    assert_int_equal(send_text(&pair->a, 1, "last words"), 0);
    sim_crash(pair->a.node);
    run_and_expect(pair->sim, 200,
                   "[  110] b peer: in 1: last words\n"
                   "[  110] b peer: in 1 down: closed by the peer\n");
    sim_counters(pair->sim, &counters);
    assert_int_equal(counters.frames_of_dead, 1);
}

static void send_three(struct sim *sim, void *arg)
{
    struct peer *peer = arg;

    (void)sim;
    sim_post(peer->node, mu__msg_heap(8, 0));
}

static void on_deliver_send_three(void *owner, struct mu__msg *msg)
{
    struct peer *peer = owner;

    mu__pool_put(&peer->pool, msg);
    assert_int_equal(send_text(peer, 1, "one"), 0);
    assert_int_equal(send_text(peer, 1, "two"), 0);
    assert_int_equal(send_text(peer, 1, "three"), 0);
}

/* It dies inside of a turn: the first frame is out, the others never were. */
static void test_a_crash_midway_cuts_a_turn(void **state)
{
    struct pair *pair = *state;
    struct mu__world_hooks hooks = {&pair->a, on_deliver_send_three, NULL, NULL};

    sim_attach(pair->a.node, &hooks, &events, &pair->a);
    sim_crash_midway(pair->a.node, 1);
    assert_true(sim_alive(pair->a.node));
    sim_at(pair->sim, 150, send_three, &pair->a);
    run_and_expect(pair->sim, 200,
                   "[  160] b peer: in 1: one\n"
                   "[  160] b peer: in 1 down: closed by the peer\n");
    assert_false(sim_alive(pair->a.node));
    assert_false(pair->a.alive);
}

static void test_exit_ends_the_process_after_its_event(void **state)
{
    struct pair *pair = *state;

    sim_exit(pair->a.node);
    assert_false(pair->a.alive);
    run_and_expect(pair->sim, 200, "[  110] b peer: in 1 down: closed by the peer\n");
}

static void test_a_cut_is_noticed_by_both(void **state)
{
    struct pair *pair = *state;

    sim_settings(pair->sim)->lose_percent = 100;
    sim_settings(pair->sim)->notice = (struct sim_range){30000, 30000};
    assert_int_equal(send_text(&pair->a, 1, "lost"), 0);
    sim_cut(pair->sim, pair->a.node, pair->b.node);
    run_and_expect(pair->sim, 135,
                   "[  130] a peer: out 1 down: connection broken\n"
                   "[  130] b peer: in 1 down: connection broken\n");
}

/* The receiver keeps a connection that its peer has long replaced, and still gets what
 * was under way in it. */
static void test_a_half_cut_makes_two_connections(void **state)
{
    struct pair *pair = *state;
    struct sim_counters counters;

    assert_int_equal(send_text(&pair->a, 1, "old"), 0);
    sim_cut_half(pair->sim, pair->a.node, pair->b.node, 500);
    sim_run_until(pair->sim, 130);
    assert_int_equal(send_text(&pair->a, 1, "new"), 0);
    sim_run_until(pair->sim, 140);
    assert_non_null(strstr(sim_trace(pair->sim), "[  140] b peer: in 2: new\n"));
    sim_run_until(pair->sim, 700);
    assert_non_null(strstr(sim_trace(pair->sim),
                           "[  600] b peer: in 1 down: connection timed out\n"));
    sim_counters(pair->sim, &counters);
    assert_int_equal(counters.frames, 2);
    assert_int_equal(counters.frames_overtaken, 1);
    assert_int_equal(counters.frames_of_dead, 0);
}

static void test_a_block_holds_frames_back(void **state)
{
    struct pair *pair = *state;

    sim_block(pair->sim, pair->a.node, pair->b.node);
    assert_int_equal(send_text(&pair->a, 1, "one"), 0);
    assert_int_equal(send_text(&pair->a, 1, "two"), 0);
    run_and_expect(pair->sim, 500, "");
    sim_unblock(pair->sim, pair->a.node, pair->b.node);
    run_and_expect(pair->sim, 600,
                   "[  510] b peer: in 1: one\n"
                   "[  510] b peer: in 1: two\n");
}

/* Even the news of a death does not pass. */
static void test_a_partition_is_silence(void **state)
{
    struct pair *pair = *state;
    struct sim_node *side[] = {pair->b.node};

    sim_partition(pair->sim, side, 1);
    sim_crash(pair->b.node);
    assert_int_equal(sim_restart(pair->b.node), 0);
    run_and_expect(pair->sim, 1000, "");
    sim_heal(pair->sim);
    run_and_expect(pair->sim, 1100,
                   "[ 1010] a peer: out 1 down: connection reset by the peer\n"
                   "[ 1030] a peer: out 1 up\n");
}

/* What came due meanwhile happens at the end, in the order in which it was due; the clock
 * has gone on. */
static void test_a_paused_process_stands_still(void **state)
{
    struct pair *pair = *state;
    struct mu__world *world = pair->b.world;

    world->ops->wake_at(world, 150);
    sim_pause(pair->b.node, 100);
    assert_int_equal(send_text(&pair->a, 1, "one"), 0);
    assert_int_equal(send_text(&pair->a, 1, "two"), 0);
    sim_run_until(pair->sim, 190);
    assert_int_equal(send_text(&pair->a, 1, "three"), 0);
    assert_string_equal(sim_trace(pair->sim), "");
    run_and_expect(pair->sim, 300,
                   "[  200] b peer: in 1: one\n"
                   "[  200] b peer: in 1: two\n"
                   "[  200] b peer: in 1: three\n"
                   "[  200] b peer: turn at 200\n");
    sim_pause(pair->b.node, 1000000);
    sim_pause(pair->b.node, 1000000);
    assert_int_equal(send_text(&pair->a, 1, "four"), 0);
    sim_run_until(pair->sim, 400);
    sim_resume(pair->b.node);
    sim_resume(pair->b.node);
    run_and_expect(pair->sim, 400, "[  400] b peer: in 1: four\n");
    sim_pause(pair->b.node, 100);
    assert_int_equal(send_text(&pair->a, 1, "five"), 0);
    sim_run_until(pair->sim, 450);
    assert_int_equal(sim_restart(pair->b.node), 0);
    assert_string_equal(sim_trace(pair->sim), "");
}

/* ---- The trace ---- */

static void test_trace_is_bounded_and_filtered(void **state)
{
    struct sim *sim = sim_new(1);
    const char *last = "the last line";
    const char *trace;

    (void)state;
    sim_note(sim, MU__LOG_DEBUG, "not kept");
    assert_string_equal(sim_trace(sim), "");
    sim_trace_level(sim, MU__LOG_DEBUG);
    sim_note(sim, MU__LOG_DEBUG, "kept");
    assert_string_equal(sim_trace(sim), "[    0] sim note: kept\n");
    assert_string_equal(sim_trace(sim), "");
    for (int i = 0; i < SIM_TRACE_BYTES_MAX / 10; i++)
        sim_note(sim, MU__LOG_INFO, "line %d", i);
    sim_note(sim, MU__LOG_INFO, "%s", last);
    trace = sim_trace(sim);
    assert_true(strlen(trace) < SIM_TRACE_BYTES_MAX);
    assert_memory_equal(trace, "[    0] sim note: line ", 23);
    assert_string_equal(trace + strlen(trace) - strlen(last) - 1, "the last line\n");
    sim_free(sim);
}

/* ---- The rest ---- */

/* When a frame arrives after a drawn while, in microseconds. */
static uint64_t drawn_arrival(uint64_t seed)
{
    struct peer a = {.dials = {"tcp://b:1"}, .dials_count = 1};
    struct peer b = {.dials_count = 0};
    struct sim *sim = sim_new(seed);
    uint64_t at_us;

    sim_settings(sim)->latency = (struct sim_range){0, 1000000};
    a.node = sim_node_add(sim, "a", "tcp://a:1", &peer_program, &a);
    b.node = sim_node_add(sim, "b", "tcp://b:1", &peer_program, &b);
    assert_int_equal(sim_start(a.node), 0);
    assert_int_equal(sim_start(b.node), 0);
    sim_run_until(sim, 20);
    assert_int_equal(send_text(&a, 1, "x"), 0);
    assert_true(sim_step(sim));
    at_us = sim_now_us(sim);
    sim_free(sim);
    return at_us;
}

static void test_the_network_draws_from_the_seed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        assert_int_equal(drawn_arrival(seed), drawn_arrival(seed));
        assert_int_not_equal(drawn_arrival(seed), drawn_arrival(seed + 1));
    }
}

static void test_null_is_fine(void **state)
{
    (void)state;
    sim_free(NULL);
    assert_string_equal(sim_fault_name(SIM_FAULT_CRASH_MIDWAY), "crash midway");
}

#define STORY(test) cmocka_unit_test_setup_teardown(test, pair_setup, pair_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_have_a_total_order),
        cmocka_unit_test(test_queue_keeps_its_order),
        STORY(test_earliest_wake_wins),
        STORY(test_executor_has_slots_and_a_queue),
        STORY(test_a_work_may_be_stuck),
        STORY(test_posts_come_in_order_before_a_turn),
        STORY(test_frames_take_their_time),
        STORY(test_bad_dials_are_refused),
        STORY(test_dial_backs_off_until_somebody_listens),
        STORY(test_a_full_connection_pushes_back),
        STORY(test_a_line_takes_time_for_bytes),
        STORY(test_a_reader_may_pause),
        STORY(test_hangup_ends_after_the_last_frame),
        STORY(test_drop_is_silent_here_and_a_loss_there),
        STORY(test_a_frame_too_large_breaks_the_connection),
        STORY(test_a_kept_frame_is_copied),
        STORY(test_a_crash_leaves_nothing_for_the_next_life),
        STORY(test_what_the_dead_sent_still_arrives),
        STORY(test_a_crash_midway_cuts_a_turn),
        STORY(test_exit_ends_the_process_after_its_event),
        STORY(test_a_cut_is_noticed_by_both),
        STORY(test_a_half_cut_makes_two_connections),
        STORY(test_a_block_holds_frames_back),
        STORY(test_a_partition_is_silence),
        STORY(test_a_paused_process_stands_still),
        cmocka_unit_test(test_trace_is_bounded_and_filtered),
        cmocka_unit_test(test_the_network_draws_from_the_seed),
        cmocka_unit_test(test_null_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
