/* Faults of the simulator, its trace, and the rest of it. */
#include "tests/sim/sim_fixture.h"

/* ---- Faults ---- */

/* A turn, a post, a work, a frame and a connection of the first life are all under way
 * when it ends: the second one hears of none. */
TEST_ON(test_a_crash_leaves_nothing_for_the_next_life, struct pair *pair, pair_setup,
        pair_teardown)
{
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
                   "[  110] a peer: out 1 down: closed by the peer\n"
                   "[  130] a peer: out 1 up\n");
    assert_int_equal(send_text(&pair->a, 1, "for the second"), 0);
    run_and_expect(pair->sim, 400, "[  310] b peer: in 1: for the second\n");
}

TEST_ON(test_what_the_dead_sent_still_arrives, struct pair *pair, pair_setup,
        pair_teardown)
{
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
TEST_ON(test_a_crash_midway_cuts_a_turn, struct pair *pair, pair_setup, pair_teardown)
{
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

TEST_ON(test_exit_ends_the_process_after_its_event, struct pair *pair, pair_setup,
        pair_teardown)
{
    sim_exit(pair->a.node);
    assert_false(pair->a.alive);
    run_and_expect(pair->sim, 200, "[  110] b peer: in 1 down: closed by the peer\n");
}

TEST_ON(test_a_cut_is_noticed_by_both, struct pair *pair, pair_setup, pair_teardown)
{
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
TEST_ON(test_a_half_cut_makes_two_connections, struct pair *pair, pair_setup,
        pair_teardown)
{
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

TEST_ON(test_a_block_holds_frames_back, struct pair *pair, pair_setup, pair_teardown)
{
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
TEST_ON(test_a_partition_is_silence, struct pair *pair, pair_setup, pair_teardown)
{
    struct sim_node *side[] = {pair->b.node};

    sim_partition(pair->sim, side, 1);
    sim_crash(pair->b.node);
    assert_int_equal(sim_restart(pair->b.node), 0);
    run_and_expect(pair->sim, 1000, "");
    sim_heal(pair->sim);
    run_and_expect(pair->sim, 1100,
                   "[ 1010] a peer: out 1 down: closed by the peer\n"
                   "[ 1030] a peer: out 1 up\n");
}

/* What came due meanwhile happens at the end, in the order in which it was due; the clock
 * has gone on. */
TEST_ON(test_a_paused_process_stands_still, struct pair *pair, pair_setup, pair_teardown)
{
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

TEST(test_trace_is_bounded_and_filtered)
{
    struct sim *sim = sim_new(1);
    const char *last = "the last line";
    const char *trace;

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

TEST(test_the_network_draws_from_the_seed)
{
    for (uint64_t seed = 1; seed < 50; seed++) {
        assert_int_equal(drawn_arrival(seed), drawn_arrival(seed));
        assert_int_not_equal(drawn_arrival(seed), drawn_arrival(seed + 1));
    }
}

TEST(test_null_is_fine)
{
    sim_free(NULL);
    assert_string_equal(sim_fault_name(SIM_FAULT_CRASH_MIDWAY), "crash midway");
}

TEST_PROGRAM()
