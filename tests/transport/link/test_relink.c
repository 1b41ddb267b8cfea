/* Two nodes that dial each other, and lose the link: both begin again, at different
 * times, and what is under way of a former epoch must not end the next one for ever.
 * Between nodes with real links, in virtual time. */
#include "actors/messages.h"
#include "tests/sim/sim.h"
#include "transport/link/links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SEEDS = 1000,
    CUTS = 20,
    SETTLE_MS = 20000,  /* after the last cut */
    CALM_MS = 20000,    /* and then nothing is lost */
    AWAY_MS = 60000,    /* until the pauses of who dials in vain are the longest */
    BACK_MS = 1500      /* the longest pause of a dial that finds nobody, and frames */
};

struct node {
    struct sim_node *node;
    const char *type;
    uint32_t index;
    const char *address;
    struct mu__links *links;
    unsigned ups;
    struct mu__world *world;
    struct mu__pool pool;
    uint64_t tick_ms;
};

struct fixture {
    struct sim *sim;
    struct node chief;
    struct node server;
};

/* ---- a node ---- */

static void note_up(void *owner, uint32_t node, const char *type, uint32_t index,
                    uint64_t incarnation, const char *address)
{
    (void)node;
    (void)type;
    (void)index;
    (void)incarnation;
    (void)address;
    ((struct node *)owner)->ups++;
}

static void note_down(void *owner, uint32_t node, const char *reason)
{
    (void)owner;
    (void)node;
    (void)reason;
}

static void note_trouble(void *owner, const char *type, uint32_t index,
                         const char *reason)
{
    (void)owner;
    (void)type;
    (void)index;
    (void)reason;
}

static void drop_message(void *owner, struct mu__msg *msg)
{
    mu__pool_put(&((struct node *)owner)->pool, msg);
}

static void on_turn(void *owner)
{
    struct node *node = owner;
    uint64_t now_ms = node->world->ops->now_ms(node->world);

    if (now_ms >= node->tick_ms)
        node->tick_ms = mu__links_tick(node->links, now_ms);
    mu__links_flush(node->links);
    node->world->ops->wake_at(node->world, node->tick_ms);
}

static void on_out_up(void *owner, uint32_t out)
{
    mu__links_out_up(((struct node *)owner)->links, out);
}

static void on_out_down(void *owner, uint32_t out, const char *reason)
{
    mu__links_out_down(((struct node *)owner)->links, out, reason);
}

static void on_writable(void *owner, uint32_t out)
{
    mu__links_writable(((struct node *)owner)->links, out);
}

static bool on_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    mu__links_frame(((struct node *)owner)->links, in, frame);
    return true;
}

static void on_in_down(void *owner, uint32_t in, const char *reason)
{
    mu__links_in_down(((struct node *)owner)->links, in, reason);
}

static const struct mu__wire_events events = {
    .out_up = on_out_up,
    .out_down = on_out_down,
    .writable = on_writable,
    .frame = on_frame,
    .in_down = on_in_down,
    .burst_end = on_turn,
};

static int start(void *arg, struct sim_node *place, struct mu__world *world,
                 struct mu__wire *wire)
{
    struct node *node = arg;
    const struct mu__world_hooks hooks = {.owner = node, .turn = on_turn};
    const struct mu__links_upcalls upcalls = {node, note_up, note_down, note_trouble,
                                              drop_message, NULL};
    const struct mu__links_config config = {
        .cluster_name = "test",
        .task_type = node->type,
        .task_index = node->index,
        .address = node->address,
        .incarnation = world->ops->random(world) | 1,
        .heartbeat_ms = 1000,
        .silence_ms = 5000,
        .schema = &mu__messages,
        .pool = &node->pool,
        .world = world,
    };

    node->world = world;
    node->tick_ms = 0;
    mu__pool_init(&node->pool);
    sim_attach(place, &hooks, &events, node);
    world->ops->wake_at(world, 0);
    return mu__links_new(&config, &upcalls, wire, &node->links);
}

static void stop(void *arg)
{
    struct node *node = arg;

    mu__links_free(node->links);
    mu__pool_done(&node->pool);
}

static void add(struct fixture *f, struct node *node, const char *type)
{
    static const struct sim_program program = {start, stop};

    node->type = type;
    node->address = type[0] == 'c' ? "tcp://chief:1" : "tcp://ps:1";
    node->node = sim_node_add(f->sim, type, node->address, &program, node);
    assert_int_equal(sim_start(node->node), 0);
}

/* ---- stories ---- */

/* As between processes on a machine that is too busy: connections are there at once, and
 * frames take about as long as the pause before a link is dialled again. */
static void open_busy(struct fixture *f, uint64_t seed, uint64_t latency_us)
{
    struct sim_settings *settings;

    memset(f, 0, sizeof *f);
    f->sim = sim_new(seed);
    settings = sim_settings(f->sim);
    settings->latency = (struct sim_range){latency_us, latency_us};
    settings->connect = (struct sim_range){1000, 2000};
    settings->notice = (struct sim_range){1000, latency_us};
    add(f, &f->chief, "chief");
    add(f, &f->server, "ps");
    assert_int_equal(mu__links_dial(f->chief.links, "ps", 0, "tcp://ps:1"), 0);
    assert_int_equal(mu__links_dial(f->server.links, "chief", 0, "tcp://chief:1"), 0);
}

static void cut_often(struct fixture *f)
{
    for (unsigned i = 0; i < CUTS; i++) {
        sim_run_until(f->sim, sim_now_ms(f->sim) + 37 * i);
        if (i % 2 == 0)
            sim_cut(f->sim, f->chief.node, f->server.node);
        else
            sim_cut(f->sim, f->server.node, f->chief.node);
    }
}

static void expect_steady(struct fixture *f)
{
    unsigned ups;

    sim_run_until(f->sim, sim_now_ms(f->sim) + SETTLE_MS);
    ups = f->chief.ups;
    sim_run_until(f->sim, sim_now_ms(f->sim) + CALM_MS);
    assert_int_equal(mu__links_count_up(f->chief.links), 1);
    assert_int_equal(mu__links_count_up(f->server.links), 1);
    assert_int_equal(f->chief.ups, ups);
}

static void test_link_that_was_cut_often_holds_again(void **state)
{
    static const uint64_t latencies_us[] = {10000, 60000, 100000, 200000};

    (void)state;
    for (size_t i = 0; i < sizeof latencies_us / sizeof latencies_us[0]; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct fixture f;

            open_busy(&f, seed, latencies_us[i]);
            cut_often(&f);
            expect_steady(&f);
            sim_free(f.sim);
        }
}

/* A link that was lost soon, again and again, and whose peer stood still for long then,
 * is dialled in vain and rests for long: a peer that goes on wakes it. */
static void test_peer_that_goes_on_ends_a_long_rest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct fixture f;

        open_busy(&f, seed, 10000);
        cut_often(&f);
        sim_pause(f.server.node, AWAY_MS);
        sim_run_until(f.sim, sim_now_ms(f.sim) + AWAY_MS);
        assert_int_equal(mu__links_count_up(f.chief.links), 0);
        sim_run_until(f.sim, sim_now_ms(f.sim) + BACK_MS);
        assert_int_equal(mu__links_count_up(f.chief.links), 1);
        assert_int_equal(mu__links_count_up(f.server.links), 1);
        sim_free(f.sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link_that_was_cut_often_holds_again),
        cmocka_unit_test(test_peer_that_goes_on_ends_a_long_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
