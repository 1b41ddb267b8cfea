/* Two nodes that dial each other, and lose the link: both begin again, at different
 * times, and find to one connection. Between nodes with real links, in virtual time. */
#include "tests/transport/link/two_nodes.h"

enum {
    SEEDS = 1000,
    CUTS = 20,
    SETTLE_MS = 20000, /* after the last cut */
    CALM_MS = 20000,   /* and then nothing is lost */
    AWAY_MS = 60000,   /* until the pauses of who dials in vain are the longest */
    BACK_MS = 3000     /* the longest rest of a link that was lost early, and frames */
};

/* ---- stories ---- */

/* As between processes on a machine that is too busy: connections are there at once, and
 * frames take about as long as the pause before a link is dialled again. */
static void open_busy(struct two_nodes *f, uint64_t seed, uint64_t latency_us)
{
    struct sim_settings *settings;

    memset(f, 0, sizeof *f);
    f->sim = sim_new(seed);
    settings = sim_settings(f->sim);
    settings->latency = (struct sim_range){latency_us, latency_us};
    settings->connect = (struct sim_range){1000, 2000};
    settings->notice = (struct sim_range){1000, latency_us};
    two_nodes_open(f);
}

static void cut_often(struct two_nodes *f)
{
    for (unsigned i = 0; i < CUTS; i++) {
        sim_run_until(f->sim, sim_now_ms(f->sim) + 37 * i);
        if (i % 2 == 0)
            sim_cut(f->sim, f->chief.node, f->server.node);
        else
            sim_cut(f->sim, f->server.node, f->chief.node);
    }
}

static void expect_steady(struct two_nodes *f)
{
    unsigned ups;

    sim_run_until(f->sim, sim_now_ms(f->sim) + SETTLE_MS);
    ups = f->chief.ups;
    sim_run_until(f->sim, sim_now_ms(f->sim) + CALM_MS);
    assert_int_equal(mu__links_count_up(f->chief.links), 1);
    assert_int_equal(mu__links_count_up(f->server.links), 1);
    assert_int_equal(f->chief.ups, ups);
}

TEST(test_link_that_was_cut_often_holds_again)
{
    static const uint64_t latencies_us[] = {10000, 60000, 100000, 200000};

    for (size_t i = 0; i < sizeof latencies_us / sizeof latencies_us[0]; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct two_nodes f;

            open_busy(&f, seed, latencies_us[i]);
            cut_often(&f);
            expect_steady(&f);
            sim_free(f.sim);
        }
}

/* A link that was lost soon, again and again, and whose peer stood still for long then,
 * is dialled in vain and rests for long: a peer that goes on wakes it. */
TEST(test_peer_that_goes_on_ends_a_long_rest)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct two_nodes f;

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

TEST_PROGRAM()
