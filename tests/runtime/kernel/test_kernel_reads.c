/* Reads of nodes that are behind wait, in their order, and nothing else does. */
#include "tests/runtime/kernel/kernel_fixture.h"

enum { NODE = 3, OTHER = 4 };

static void from_node(struct bench *bench, mu__pid to, uint16_t kind, uint32_t node,
                      uint64_t number, struct mu__buf *frame)
{
    struct mu__msg *msg = mu__msg_heap(kind, sizeof(struct mu__look));
    struct mu__world *world = mu__kernel_world(bench->kernel);

    assert_non_null(msg);
    msg->to = to;
    msg->from.node = node;
    memcpy(msg->body, &number, sizeof number);
    if (frame != NULL)
        msg->backing = mu__buf_ref(frame);
    world->ops->wake_at(world, 0);
    assert_int_equal(mu__kernel_deliver(bench->kernel, msg), 0);
}

static void look(struct bench *bench, mu__pid to, uint32_t node, uint64_t number)
{
    from_node(bench, to, MU__LOOK, node, number, NULL);
}

static mu__pid begin(struct bench *bench)
{
    mu__kernel_node_up(bench->kernel, NODE, "client", 0, 1, "tcp://c:1");
    mu__kernel_node_up(bench->kernel, OTHER, "client", 1, 2, "tcp://c:2");
    return spawn(bench, &probe_behavior);
}

TEST_ON(test_reads_wait_until_the_node_has_caught_up, struct bench *bench, setup,
        teardown)
{
    mu__pid probe = begin(bench);

    look(bench, probe, NODE, 1);
    expect(bench, 10, "[    0] n probe: 16: look 1 of 3\n");
    mu__kernel_node_behind(bench->kernel, NODE, true);
    look(bench, probe, NODE, 2);
    from_node(bench, probe, MU__PING, NODE, 3, NULL);
    look(bench, probe, OTHER, 4);
    look(bench, probe, NODE, 5);
    expect(bench, 10,
           "[   10] n probe: 16: ping 3 from 0\n"
           "[   10] n probe: 16: look 4 of 4\n");
    mu__kernel_node_behind(bench->kernel, NODE, false);
    look(bench, probe, NODE, 6);
    expect(bench, 10,
           "[   20] n probe: 16: look 2 of 3\n"
           "[   20] n probe: 16: look 5 of 3\n"
           "[   20] n probe: 16: look 6 of 3\n");
}

/* More of them than one turn handles: one that comes meanwhile is the last. */
TEST_ON(test_reads_of_several_turns, struct bench *bench, setup, teardown)
{
    mu__pid probe = begin(bench);
    char expected[1 << 12] = "";
    uint64_t last = 40;

    mu__kernel_node_behind(bench->kernel, NODE, true);
    for (uint64_t i = 1; i < last; i++)
        look(bench, probe, NODE, i);
    expect(bench, 10, "");
    mu__kernel_node_behind(bench->kernel, NODE, false);
    look(bench, probe, NODE, last);
    for (uint64_t i = 1; i <= last; i++)
        (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
                       "[   10] n probe: 16: look %" PRIu64 " of 3\n", i);
    expect(bench, 10, expected);
}

/* What an actor keeps back counts as what waits in the link. */
static void owe(struct mu__ctx *ctx, void *arg)
{
    mu__owe(ctx, NODE, *(int64_t *)arg);
}

TEST_ON(test_what_is_owed_counts, struct bench *bench, setup, teardown)
{
    mu__pid probe = begin(bench);
    int64_t bytes = MU__OWED_BYTES + 1;
    struct step step = {owe, &bytes};

    tell(bench, probe, &step);
    look(bench, probe, NODE, 1);
    expect(bench, 10, "");
    bytes = -bytes;
    tell(bench, probe, &step);
    expect(bench, 10, "[   10] n probe: 16: look 1 of 3\n");
}

TEST_ON(test_a_node_that_is_lost_leaves_nothing, struct bench *bench, setup, teardown)
{
    mu__pid probe = begin(bench);

    mu__kernel_node_behind(bench->kernel, NODE, true);
    for (uint64_t i = 0; i < 5; i++)
        look(bench, probe, NODE, i);
    expect(bench, 10, "");
    mu__kernel_node_down(bench->kernel, NODE, "gone", false);
    expect(bench, 10, "");
    assert_int_equal(mu__kernel_pool(bench->kernel)->live, 0);
}

/* Its link is not read while many wait, by their number or by the frames that they hold;
 * what comes all the same is bounded. */
static void expect_full(struct bench *bench, bool is_full)
{
    uint32_t node = 0;
    bool said = !is_full;

    assert_true(mu__kernel_next_full(bench->kernel, &node, &said));
    assert_int_equal(node, NODE);
    assert_int_equal(said, is_full);
    assert_false(mu__kernel_next_full(bench->kernel, &node, &said));
}

TEST_ON(test_a_link_with_many_reads_is_not_read, struct bench *bench, setup, teardown)
{
    mu__pid probe = begin(bench);
    uint32_t node;
    bool is_full;

    mu__kernel_node_behind(bench->kernel, NODE, true);
    for (uint64_t i = 1; i < MU__READS_FULL; i++)
        look(bench, probe, NODE, i);
    expect(bench, 100, "");
    assert_false(mu__kernel_next_full(bench->kernel, &node, &is_full));
    look(bench, probe, NODE, 0);
    expect(bench, 10, "");
    expect_full(bench, true);
    mu__kernel_node_behind(bench->kernel, NODE, false);
    sim_run_until(bench->sim, 1000);
    (void)sim_trace(bench->sim);
    expect_full(bench, false);
    assert_int_equal(mu__kernel_pool(bench->kernel)->live, 0);
}

TEST_ON(test_reads_beyond_the_bound_are_dropped, struct bench *bench, setup, teardown)
{
    mu__pid probe = begin(bench);

    mu__kernel_node_behind(bench->kernel, NODE, true);
    for (uint64_t i = 0; i < MU__READS_MAX + 7; i++) {
        look(bench, probe, NODE, i);
        if (i % 32 == 0)
            expect(bench, 100, "");
    }
    expect(bench, 1000, "");
    assert_int_equal(new_dead(bench), 7);
}

/* By the memory that they hold, too: a wire may not be able to leave a link unread. */
TEST_ON(test_frames_beyond_the_bound_are_dropped, struct bench *bench, setup, teardown)
{
    enum { FRAME = MU__READS_BYTES_MAX / 4, FRAMES = 7 };
    mu__pid probe = begin(bench);

    mu__kernel_node_behind(bench->kernel, NODE, true);
    for (uint64_t i = 0; i < FRAMES; i++) {
        struct mu__buf *frame = mu__buf_new(FRAME);

        from_node(bench, probe, MU__LOOK, NODE, i, frame);
        mu__buf_unref(frame);
    }
    expect(bench, 10, "");
    assert_int_equal(new_dead(bench), FRAMES - 4);
    mu__kernel_node_behind(bench->kernel, NODE, false);
    expect(bench, 10,
           "[   10] n probe: 16: look 0 of 3\n"
           "[   10] n probe: 16: look 1 of 3\n"
           "[   10] n probe: 16: look 2 of 3\n"
           "[   10] n probe: 16: look 3 of 3\n");
}

TEST_ON(test_large_frames_count, struct bench *bench, setup, teardown)
{
    mu__pid probe = begin(bench);
    struct mu__buf *frame = mu__buf_new(MU__READS_BYTES / 2 + 1);
    struct mu__buf *next = mu__buf_new(MU__READS_BYTES / 2 + 1);
    uint32_t node;
    bool is_full;

    mu__kernel_node_behind(bench->kernel, NODE, true);
    from_node(bench, probe, MU__LOOK, NODE, 1, frame);
    from_node(bench, probe, MU__LOOK, NODE, 2, frame); /* counted once */
    expect(bench, 10, "");
    assert_false(mu__kernel_next_full(bench->kernel, &node, &is_full));
    from_node(bench, probe, MU__LOOK, NODE, 3, next);
    expect(bench, 10, "");
    expect_full(bench, true);
    mu__buf_unref(frame);
    mu__buf_unref(next);
}

TEST_PROGRAM()
