/* Two nodes with real links, and a third process that knows all about them: it says to be
 * each of them, refuses them, and sends frames as them, 38 times a second. By seeds, in
 * virtual time. */
#include "tests/transport/link/two_nodes.h"

#include "runtime/message/codec.h"
#include "sim/world/random.h"
#include "transport/link/frames.h"

enum {
    SEEDS = 400,
    AT_A_TIME_MS = 26,
    BEGIN_MS = 3000,
    ATTACK_MS = 15000,
    BACK_MS = 8000, /* a process that ended and began again is linked by then */
    OUTS_MAX = 64   /* connections that are held */
};

struct stranger {
    struct sim_node *node;
    struct mu__wire *wire;
    struct sim_random random;
    uint32_t out;
    bool up[OUTS_MAX];
};

static struct stranger stranger;

/* ---- what it says ---- */

static struct mu__buf *frame_for(const struct mu__frame_header *header,
                                 const struct mu__schema *schema, uint16_t kind,
                                 const void *body, size_t size)
{
    struct mu__buf *frame = mu__buf_new(4096);
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(frame);
    assert_non_null(msg);
    memcpy(msg->body, body, size);
    mu__frame_write(frame, header);
    frame->size = MU__FRAME_HEADER_BYTES;
    assert_int_equal(mu__encode(schema, msg, frame), 0);
    free(msg);
    return frame;
}

static struct mu__buf *hello_as(const struct node *as,
                                const struct mu__frame_header *head)
{
    static const char *const elsewhere[] = {"tcp://stranger:1", "tcp://nowhere:1"};
    uint64_t pick = sim_draw(&stranger.random) % 4;
    const struct mu__hello hello = {
        .cluster = mu__view_str("test"),
        .type = mu__view_str(as->type),
        .address = mu__view_str(pick < 2 ? as->address : elsewhere[pick - 2]),
    };

    return frame_for(head, &mu__frame_messages, MU__FRAME_HELLO, &hello, sizeof hello);
}

static struct mu__buf *refuse_as(const struct node *as,
                                 const struct mu__frame_header *head)
{
    const struct mu__refuse refuse = {mu__view_str(as->type), 0, mu__view_str("go away"),
                                      sim_draw(&stranger.random) % 2 == 0};

    return frame_for(head, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
}

static struct mu__buf *data_as(const struct mu__frame_header *head)
{
    static const struct mu__cancel cancel = {7, 1};

    return frame_for(head, &mu__messages, MU__CANCEL, &cancel, sizeof cancel);
}

static void say(uint32_t out, struct mu__buf *frame)
{
    if (stranger.wire->ops->send(stranger.wire, out, frame) != 0)
        mu__buf_unref(frame);
}

/* As `as`, to `to`: over a connection that is up. */
static void say_something(const struct node *as, const struct node *to, uint32_t out)
{
    uint64_t other = sim_draw(&stranger.random);
    uint64_t incarnation = other % 2 == 0 ? as->incarnation : other;
    struct mu__frame_header head = {
        1, MU__FRAME_HELLO, incarnation,
        sim_draw(&stranger.random) % 2 == 0 ? to->incarnation : 0, 1};

    if (sim_draw(&stranger.random) % 4 == 0) {
        head.type = MU__FRAME_REFUSE;
        say(out, refuse_as(as, &head));
        return;
    }
    say(out, hello_as(as, &head));
    head.type = MU__FRAME_DATA;
    head.to = to->incarnation;
    say(out, data_as(&head));
}

static void on_its_up(void *owner, uint32_t out)
{
    (void)owner;
    stranger.up[out % OUTS_MAX] = true;
}

static void on_its_down(void *owner, uint32_t out, const char *reason)
{
    (void)owner;
    (void)reason;
    stranger.up[out % OUTS_MAX] = false;
}

static bool on_its_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    (void)owner;
    (void)connection;
    (void)frame;
    return true;
}

static int start_stranger(void *arg, struct sim_node *node, struct mu__world *world,
                          struct mu__wire *wire)
{
    static const struct mu__wire_events its_events = {
        .up = on_its_up, .down = on_its_down, .frame = on_its_frame};
    const struct mu__world_hooks hooks = {.owner = arg};

    (void)world;
    stranger.node = node;
    stranger.wire = wire;
    sim_attach(node, &hooks, &its_events, arg);
    return 0;
}

static void stop_stranger(void *arg)
{
    (void)arg;
}

/* ---- stories ---- */

/* `with_keys`: both nodes have the cluster's key, and the stranger one with which it may
 * only observe; else everybody may do everything, and whoever says first to be a task is
 * it. */
static void open_with_stranger(struct two_nodes *f, uint64_t seed, bool with_keys)
{
    static const struct sim_program program = {start_stranger, stop_stranger};
    static const struct sim_credentials all = {SIM_KEY, 1, MU__RIGHT_ALL, NULL, 0};
    static const struct sim_credentials its = {SIM_KEY, 1, MU__RIGHT_OBSERVE, NULL, 0};
    struct sim_node *node;

    memset(f, 0, sizeof *f);
    memset(&stranger, 0, sizeof stranger);
    stranger.random = sim_stream(seed, 4711);
    f->sim = sim_new(seed);
    sim_settings_draw(f->sim);
    two_nodes_open(f);
    node = sim_node_add(f->sim, "stranger", "tcp://stranger:1", &program, &stranger);
    if (with_keys) {
        sim_node_prove(f->chief.node, &all);
        sim_node_prove(f->server.node, &all);
        sim_node_prove(node, &its);
    }
    assert_int_equal(sim_start(node), 0);
}

/* One moment of it: a new connection, and something over an older one. */
static void disturb(struct two_nodes *f)
{
    struct node *nodes[] = {&f->chief, &f->server};
    uint32_t out = ++stranger.out;
    uint32_t older = out > 8 ? out - 8 : 0;

    if (out > OUTS_MAX / 2)
        stranger.wire->ops->hangup(stranger.wire, out - OUTS_MAX / 2);
    stranger.up[out % OUTS_MAX] = false;
    (void)stranger.wire->ops->dial(stranger.wire, out, nodes[out % 2]->address);
    if (older != 0 && stranger.up[older % OUTS_MAX])
        say_something(nodes[1 - older % 2], nodes[older % 2], older);
    sim_run_until(f->sim, sim_now_ms(f->sim) + AT_A_TIME_MS);
}

static void disturb_for(struct two_nodes *f, uint64_t ms)
{
    uint64_t end_ms = sim_now_ms(f->sim) + ms;

    while (sim_now_ms(f->sim) < end_ms)
        disturb(f);
}

static void expect_up(struct two_nodes *f, uint64_t seed, const char *when)
{
    if (mu__links_count_up(f->chief.links) == 0 ||
        mu__links_count_up(f->server.links) == 0)
        fail_msg("seed %llu: not linked %s", (unsigned long long)seed, when);
}

TEST(test_living_link_stands)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct two_nodes f;
        struct mu__links_counters counters;
        unsigned ups[2];

        open_with_stranger(&f, seed, false);
        sim_run_until(f.sim, BEGIN_MS);
        expect_up(&f, seed, "at first");
        ups[0] = f.chief.ups;
        ups[1] = f.server.ups;
        disturb_for(&f, ATTACK_MS);
        expect_up(&f, seed, "in the end");
        if (f.chief.ups != ups[0] || f.server.ups != ups[1])
            fail_msg("seed %llu: the link came down\n%s", (unsigned long long)seed,
                     sim_trace(f.sim));
        assert_int_equal(f.chief.delivered + f.server.delivered, 0);
        mu__links_counters(f.chief.links, &counters);
        assert_true(counters.doubles > 50);
        sim_free(f.sim);
    }
}

/* Processes begin, and one ends and begins again, all the while. */
TEST(test_links_come_up_all_the_same)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct two_nodes f;

        open_with_stranger(&f, seed, true);
        disturb_for(&f, BACK_MS);
        expect_up(&f, seed, "at first");
        sim_crash(f.server.node);
        disturb_for(&f, 100 * (seed % 30));
        assert_int_equal(sim_restart(f.server.node), 0);
        assert_int_equal(mu__links_dial(f.server.links, "chief", 0, "tcp://chief:1"), 0);
        disturb_for(&f, BACK_MS);
        expect_up(&f, seed, "after a restart");
        assert_int_equal(f.chief.delivered + f.server.delivered, 0);
        sim_free(f.sim);
    }
}

TEST_PROGRAM()
