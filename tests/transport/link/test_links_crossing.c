/* Two nodes that dial each other at once, thousands of times: one connection stays, and
 * both know which before either has a link. And a peer that is cut while it greets, at
 * each moment of it. Between nodes with real links, in virtual time. */
#include "tests/transport/link/two_nodes.h"

enum {
    SEEDS = 10000,
    UP_MS = 200,     /* both have dialled, greeted, and hung up on the other dial */
    CALM_MS = 12000, /* more than two silences */
    CUTS_MS = 80,    /* a greeting takes 50 */
    BACK_MS = 6000
};

static void open_two(struct two_nodes *f, uint64_t seed, uint64_t latency_max_us)
{
    struct sim_settings *settings;

    memset(f, 0, sizeof *f);
    f->sim = sim_new(seed);
    settings = sim_settings(f->sim);
    settings->latency = (struct sim_range){100, latency_max_us};
    settings->connect = (struct sim_range){100, latency_max_us};
    two_nodes_open(f);
}

static void expect_linked(struct two_nodes *f, uint64_t seed)
{
    if (mu__links_count_up(f->chief.links) != 1 ||
        mu__links_count_up(f->server.links) != 1)
        fail_msg("seed %llu: not linked\n%s", (unsigned long long)seed,
                 sim_trace(f->sim));
}

/* Neither side loses a link that it had, and none is dialled a second time. */
static void expect_at_the_first_go(struct two_nodes *f, uint64_t seed)
{
    expect_linked(f, seed);
    if (f->chief.ups != 1 || f->server.ups != 1 || f->chief.downs != 0 ||
        f->server.downs != 0)
        fail_msg("seed %llu: up %u and %u times, down %u and %u\n%s",
                 (unsigned long long)seed, f->chief.ups, f->server.ups, f->chief.downs,
                 f->server.downs, sim_trace(f->sim));
}

static uint64_t crossed_of(const struct node *node)
{
    struct mu__links_counters counters;

    mu__links_counters(node->links, &counters);
    return counters.crossed;
}

TEST(test_both_dial_at_once)
{
    uint64_t crossed = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct two_nodes f;
        uint64_t by_higher;

        open_two(&f, seed, 20000);
        sim_run_until(f.sim, UP_MS);
        expect_at_the_first_go(&f, seed);
        sim_run_until(f.sim, CALM_MS);
        expect_at_the_first_go(&f, seed);
        by_higher =
            crossed_of(f.chief.incarnation > f.server.incarnation ? &f.chief : &f.server);
        assert_int_equal(by_higher, 0);
        crossed += crossed_of(&f.chief) + crossed_of(&f.server);
        sim_free(f.sim);
    }
    assert_true(crossed > SEEDS / 4);
}

/* One of them has no way to the other: a wrong address, or one behind NAT. */
TEST(test_only_one_can_dial)
{
    for (uint64_t seed = 1; seed <= SEEDS / 100; seed++)
        for (int by_chief = 0; by_chief < 2; by_chief++) {
            struct two_nodes f;

            memset(&f, 0, sizeof f);
            f.sim = sim_new(seed);
            add(&f, &f.chief, "chief");
            add(&f, &f.server, "ps");
            assert_int_equal(mu__links_dial(f.chief.links, "ps", 0,
                                            by_chief ? "tcp://ps:1" : "tcp://nowhere:1"),
                             0);
            assert_int_equal(mu__links_dial(f.server.links, "chief", 0,
                                            by_chief ? "tcp://nowhere:1"
                                                     : "tcp://chief:1"),
                             0);
            sim_run_until(f.sim, UP_MS);
            expect_at_the_first_go(&f, seed);
            sim_free(f.sim);
        }
}

/* ---- cut while it greets ---- */

enum fault { CUT, CRASH_DIALLER, CRASH_LISTENER, FAULTS_COUNT };

static void dial_again(struct node *node, const char *type, const char *url)
{
    assert_int_equal(sim_restart(node->node), 0);
    assert_int_equal(mu__links_dial(node->links, type, 0, url), 0);
}

static void break_it(struct two_nodes *f, enum fault fault)
{
    switch (fault) {
    case CUT:
        sim_cut(f->sim, f->chief.node, f->server.node);
        sim_cut(f->sim, f->server.node, f->chief.node);
        break;
    case CRASH_DIALLER:
        dial_again(&f->chief, "ps", "tcp://ps:1");
        break;
    default:
        assert_int_equal(sim_restart(f->server.node), 0);
        break;
    }
}

/* The chief dials, and 20 ms later there is a connection; a HELLO takes 10 ms each way.
 * In each millisecond the connection is cut, or one of both dies and begins again: the
 * link comes up, and no side has a link that the other does not know. */
TEST(test_cut_in_each_state_of_the_greeting)
{
    for (int fault = 0; fault < FAULTS_COUNT; fault++)
        for (uint64_t at_ms = 1; at_ms < CUTS_MS; at_ms++) {
            struct two_nodes f;

            memset(&f, 0, sizeof f);
            f.sim = sim_new(at_ms);
            add(&f, &f.chief, "chief");
            add(&f, &f.server, "ps");
            assert_int_equal(mu__links_dial(f.chief.links, "ps", 0, "tcp://ps:1"), 0);
            sim_run_until(f.sim, at_ms);
            break_it(&f, (enum fault)fault);
            sim_run_until(f.sim, at_ms + BACK_MS);
            expect_linked(&f, at_ms);
            assert_in_range(f.chief.ups - f.chief.downs, 1, 2);
            sim_free(f.sim);
        }
}

/* It stands still instead, in each millisecond: the dialler gives up, and goes on when
 * the other does. */
TEST(test_silent_in_each_state_of_the_greeting)
{
    for (uint64_t at_ms = 1; at_ms < CUTS_MS; at_ms++) {
        struct two_nodes f;

        memset(&f, 0, sizeof f);
        f.sim = sim_new(at_ms);
        add(&f, &f.chief, "chief");
        add(&f, &f.server, "ps");
        assert_int_equal(mu__links_dial(f.chief.links, "ps", 0, "tcp://ps:1"), 0);
        sim_run_until(f.sim, at_ms);
        sim_pause(f.server.node, CALM_MS);
        sim_run_until(f.sim, CALM_MS);
        assert_int_equal(mu__links_count_up(f.chief.links), 0);
        sim_run_until(f.sim, CALM_MS + 2 * BACK_MS);
        expect_linked(&f, at_ms);
        sim_free(f.sim);
    }
}

TEST_PROGRAM()
