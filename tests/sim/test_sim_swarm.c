/* The simulated world under all kinds of settings and faults, from many seeds: order
 * holds, everything heals, the same seed repeats and others differ. */
#include "sim/world/chaos.h"
#include "sim/world/sim.h"

#include "muster/error.h"
#include "runtime/kernel/system_messages.h"
#include "runtime/message/pool.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum { SWARM = 5, SWARM_MS = 3000 };

/* Every process dials every other one and sends numbered frames as fast as its turns
 * come; who has accepted a connection answers some of them. Each connection must deliver
 * them in order, both ways, whatever happens. */
struct swarm_peer {
    struct sim_node *node;
    struct mu__world *world;
    struct mu__wire *wire;
    struct mu__pool pool;
    uint64_t life;
    uint64_t next_out[SWARM + 1];
    bool up[SWARM + 1];
    bool full[SWARM + 1];
    uint32_t heard_life[SWARM]; /* of the peers */
    struct mu__work work;
    bool working;
    struct swarm_in {
        uint32_t in;
        uint64_t last;
        uint64_t said; /* answers */
        bool full;
    } ins[512];
    size_t ins_count;
};

struct swarm_frame {
    uint64_t sender;
    uint64_t life;
    uint64_t number;
};

struct swarm {
    struct sim *sim;
    struct swarm_peer peers[SWARM];
};

static const char *const swarm_names[SWARM] = {"p0", "p1", "p2", "p3", "p4"};
static const char *const swarm_urls[SWARM] = {"tcp://p0:1", "tcp://p1:1", "tcp://p2:1",
                                              "tcp://p3:1", "tcp://p4:1"};

static void swarm_send(struct swarm_peer *peer, uint32_t out)
{
    struct mu__buf *buf;
    struct swarm_frame frame = {0};
    int rv;

    if (!peer->up[out] || peer->full[out])
        return;
    buf = peer->wire->ops->buffer(peer->wire, 512);
    assert_non_null(buf);
    frame.sender = strtoull(sim_node_name(peer->node) + 1, NULL, 10);
    frame.life = peer->life;
    frame.number = ++peer->next_out[out];
    memset(buf->data, 0, 512);
    memcpy(buf->data, &frame, sizeof frame);
    buf->size =
        (uint32_t)sizeof frame + (uint32_t)(peer->world->ops->random(peer->world) % 480);
    rv = peer->wire->ops->send(peer->wire, out, buf);
    assert_true(rv == 0 || rv == -MU_EAGAIN);
    if (rv == 0)
        return;
    mu__buf_unref(buf);
    peer->next_out[out]--;
    peer->full[out] = true;
}

static struct swarm_in *swarm_find(struct swarm_peer *peer, uint32_t in)
{
    for (size_t i = 0; i < peer->ins_count; i++)
        if (peer->ins[i].in == in)
            return &peer->ins[i];
    return NULL;
}

static void swarm_forget(struct swarm_peer *peer, uint32_t in)
{
    struct swarm_in *entry = swarm_find(peer, in);

    if (entry != NULL)
        *entry = peer->ins[--peer->ins_count];
}

static void swarm_hangup_in(struct swarm_peer *peer, uint32_t in)
{
    peer->wire->ops->hangup(peer->wire, in);
    swarm_forget(peer, in);
}

static void swarm_answer(struct swarm_peer *peer, struct swarm_in *entry)
{
    struct swarm_frame frame = {
        .sender = strtoull(sim_node_name(peer->node) + 1, NULL, 10),
        .life = peer->life,
        .number = entry->said + 1,
    };
    struct mu__buf *buf;

    if (entry->full)
        return;
    buf = peer->wire->ops->buffer(peer->wire, sizeof frame);
    assert_non_null(buf);
    memcpy(buf->data, &frame, sizeof frame);
    buf->size = (uint32_t)sizeof frame;
    if (peer->wire->ops->send(peer->wire, entry->in, buf) == 0) {
        entry->said++;
        return;
    }
    mu__buf_unref(buf);
    entry->full = true;
}

static void swarm_turn(void *owner)
{
    struct swarm_peer *peer = owner;
    struct mu__world *world = peer->world;
    uint64_t chance = world->ops->random(world);

    assert_true(sim_alive(peer->node));
    for (uint32_t out = 1; out <= SWARM; out++)
        if (out == chance % SWARM + 1)
            swarm_send(peer, out);
    if (!peer->working && chance % 7 == 0) {
        peer->working = true;
        world->ops->submit(world, &peer->work);
    }
    if (chance % 97 == 0)
        swarm_hangup_in(peer, MU__WIRE_ACCEPTED | (uint32_t)(chance >> 40) % 20);
    if (chance % 101 == 0) {
        uint32_t out = (uint32_t)(chance >> 40) % SWARM + 1;

        peer->wire->ops->hangup(peer->wire, out);
        assert_int_equal(peer->wire->ops->dial(peer->wire, out, swarm_urls[out - 1]), 0);
        peer->up[out] = false;
        peer->full[out] = false;
        swarm_forget(peer, out);
    }
    world->ops->wake_at(world, world->ops->now_ms(world) + chance % 20);
}

static void swarm_deliver(void *owner, struct mu__msg *msg)
{
    struct swarm_peer *peer = owner;

    assert_int_equal(msg->kind, MU__WORK_DONE);
    assert_true(peer->working);
    peer->working = false;
    mu__pool_put(&peer->pool, msg);
}

static void swarm_up(void *owner, uint32_t out)
{
    struct swarm_peer *peer = owner;

    assert_false(peer->up[out]);
    peer->up[out] = true;
    peer->next_out[out] = 0;
    swarm_send(peer, out);
}

static void swarm_down(void *owner, uint32_t connection, const char *reason)
{
    struct swarm_peer *peer = owner;

    assert_non_null(reason);
    swarm_forget(peer, connection);
    if (mu__wire_is_accepted(connection))
        return;
    assert_true(peer->up[connection]);
    peer->up[connection] = false;
    peer->full[connection] = false;
    assert_int_equal(
        peer->wire->ops->dial(peer->wire, connection, swarm_urls[connection - 1]), 0);
}

static void swarm_writable(void *owner, uint32_t connection)
{
    struct swarm_peer *peer = owner;
    struct swarm_in *entry = swarm_find(peer, connection);

    if (mu__wire_is_accepted(connection)) {
        assert_true(entry != NULL && entry->full);
        entry->full = false;
    } else {
        assert_true(peer->full[connection]);
        peer->full[connection] = false;
    }
}

static bool swarm_frame(void *owner, uint32_t connection, struct mu__buf *buf)
{
    struct swarm_peer *peer = owner;
    struct swarm_in *entry = swarm_find(peer, connection);
    struct swarm_frame frame;

    assert_true(buf->size >= sizeof frame);
    memcpy(&frame, buf->data, sizeof frame);
    if (entry == NULL) {
        assert_true(peer->ins_count < sizeof peer->ins / sizeof peer->ins[0]);
        entry = &peer->ins[peer->ins_count++];
        *entry = (struct swarm_in){.in = connection};
    }
    assert_int_equal(frame.number, entry->last + 1);
    entry->last = frame.number;
    peer->heard_life[frame.sender] = (uint32_t)frame.life;
    if (mu__wire_is_accepted(connection) && frame.number % 3 == 0)
        swarm_answer(peer, entry);
    return frame.number % 11 != 0;
}

static void swarm_burst_end(void *owner)
{
    struct swarm_peer *peer = owner;

    assert_true(sim_alive(peer->node));
}

static const struct mu__wire_events swarm_events = {
    swarm_up, swarm_down, swarm_writable, swarm_frame, swarm_burst_end, NULL, NULL};

static void work_run(struct mu__work *work)
{
    (void)work;
}

static int swarm_start(void *arg, struct sim_node *node, struct mu__world *world,
                       struct mu__wire *wire)
{
    struct swarm_peer *peer = arg;
    struct mu__world_hooks hooks = {peer, swarm_deliver, swarm_turn, NULL};

    *peer = (struct swarm_peer){.node = node, .world = world, .wire = wire};
    peer->life = sim_lives(node);
    peer->work.run = work_run;
    mu__pool_init(&peer->pool);
    sim_attach(node, &hooks, &swarm_events, peer);
    for (uint32_t i = 0; i < SWARM; i++)
        assert_int_equal(wire->ops->dial(wire, i + 1, swarm_urls[i]), 0);
    world->ops->wake_at(world, world->ops->now_ms(world));
    return 0;
}

static void swarm_stop(void *arg)
{
    struct swarm_peer *peer = arg;

    mu__pool_done(&peer->pool);
}

static const struct sim_program swarm_program = {swarm_start, swarm_stop};

static void swarm_open(struct swarm *swarm, uint64_t seed)
{
    struct sim_chaos chaos;

    memset(swarm, 0, sizeof *swarm);
    swarm->sim = sim_new(seed);
    sim_settings_draw(swarm->sim);
    sim_trace_level(swarm->sim, MU__LOG_WARN);
    for (size_t i = 0; i < SWARM; i++)
        assert_int_equal(sim_start(sim_node_add(swarm->sim, swarm_names[i], swarm_urls[i],
                                                &swarm_program, &swarm->peers[i])),
                         0);
    sim_chaos_draw(swarm->sim, &chaos);
    sim_chaos_start(swarm->sim, &chaos, SWARM_MS);
}

/* Everybody has heard the present life of everybody. */
static bool swarm_is_whole(void *arg)
{
    struct swarm *swarm = arg;

    for (size_t i = 0; i < SWARM; i++)
        for (size_t j = 0; j < SWARM; j++)
            if (swarm->peers[i].heard_life[j] != swarm->peers[j].life)
                return false;
    return true;
}

static void swarm_run(struct swarm *swarm, uint64_t seed)
{
    swarm_open(swarm, seed);
    sim_run_until(swarm->sim, SWARM_MS);
    for (size_t i = 0; i < SWARM; i++) {
        assert_true(sim_alive(swarm->peers[i].node));
        memset(swarm->peers[i].heard_life, 0, sizeof swarm->peers[i].heard_life);
    }
    if (!sim_run_to(swarm->sim, swarm_is_whole, swarm, SWARM_MS + 60000))
        fail_msg("%sMUSTER_SIM_SEED=%" PRIu64 ": not whole again", sim_trace(swarm->sim),
                 seed);
}

/* Whatever the faults: order holds while they last, and afterwards everybody hears from
 * everybody. The same seed repeats, others differ. */
TEST(test_seeds_decide_everything)
{
    static struct swarm one;
    static struct swarm two;
    uint64_t first, end, differ = 0, before = 0;
    struct sim_counters counters;
    uint64_t lost = 0, lives = 0;

    sim_seeds(150, &first, &end);
    for (uint64_t seed = first; seed < end; seed++) {
        swarm_run(&one, seed);
        swarm_run(&two, seed);
        assert_string_equal(sim_trace(one.sim), sim_trace(two.sim));
        if (sim_digest(one.sim) != sim_digest(two.sim))
            fail_msg("MUSTER_SIM_SEED=%" PRIu64 ": does not repeat", seed);
        differ += sim_digest(one.sim) != before;
        before = sim_digest(one.sim);
        sim_counters(one.sim, &counters);
        lost += counters.frames_lost;
        lives += counters.lives - SWARM;
        sim_free(one.sim);
        sim_free(two.sim);
    }
    assert_int_equal(differ, end - first);
    if (end - first > 20) {
        assert_true(lost > 100);
        assert_true(lives > 20);
    }
}

/* ---- The check ---- */

static void count_events(struct sim *sim, void *arg)
{
    uint64_t *count = arg;
    struct sim_counters counters;

    sim_counters(sim, &counters);
    *count += 1;
    assert_int_equal(*count, counters.events);
}

TEST(test_the_check_sees_every_event)
{
    static struct swarm swarm;
    uint64_t count = 0;

    swarm_open(&swarm, 7);
    sim_set_check(swarm.sim, count_events, &count);
    sim_run_until(swarm.sim, 1000);
    assert_true(count > 100);
    sim_free(swarm.sim);
}

TEST_PROGRAM()
