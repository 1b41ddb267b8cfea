/* The simulated world is itself tested: its order of events, its clock, its network and
 * its faults, in stories. What follows from seeds is in test_sim_swarm.c. */
#ifndef MU_TESTS_SIM_SIM_FIXTURE_H
#define MU_TESTS_SIM_SIM_FIXTURE_H

#include "sim/world/chaos.h"
#include "sim/world/events.h"
#include "sim/world/random.h"
#include "sim/world/sim.h"

#include "runtime/kernel/system_messages.h"
#include "runtime/message/pool.h"
#include "tests/support/test.h"

#include <inttypes.h>

/* ---- A process that says everything it hears ---- */

enum { PEERS_MAX = 8, WORKS = 4 };

struct peer {
    struct sim_node *node;
    struct mu__world *world;
    struct mu__wire *wire;
    struct mu__pool pool;
    const char *dials[PEERS_MAX]; /* at its start, as outs 1, 2, ... */
    size_t dials_count;
    bool one_by_one; /* asks for a pause after each frame */
    struct mu__work works[WORKS];
    bool alive;
};

static inline void say(struct peer *peer, const char *format, ...) MU_PRINTF(2, 3);

static inline void say(struct peer *peer, const char *format, ...)
{
    char line[128];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    peer->world->ops->log(peer->world, MU__LOG_INFO, "peer", line);
}

static inline void on_deliver(void *owner, struct mu__msg *msg)
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

static inline void on_turn(void *owner)
{
    struct peer *peer = owner;

    say(peer, "turn at %" PRIu64, peer->world->ops->now_ms(peer->world));
}

static inline int on_transmit(void *owner, struct mu__msg *msg)
{
    struct peer *peer = owner;

    mu__pool_put(&peer->pool, msg);
    return 0;
}

/* A connection as it is shown: of those that were accepted the first is "in 1". */
static inline const char *kind_of(uint32_t connection)
{
    return mu__wire_is_accepted(connection) ? "in" : "out";
}

static inline unsigned number_of(uint32_t connection)
{
    return connection & ~MU__WIRE_ACCEPTED;
}

static inline void on_up(void *owner, uint32_t connection)
{
    say(owner, "out %u up", connection);
}

/* What was dialled is dialled again. */
static inline void on_down(void *owner, uint32_t connection, const char *reason)
{
    struct peer *peer = owner;

    say(peer, "%s %u down: %s", kind_of(connection), number_of(connection), reason);
    if (!mu__wire_is_accepted(connection))
        assert_int_equal(peer->wire->ops->dial(peer->wire, connection,
                                               peer->dials[connection - 1]),
                         0);
}

static inline void on_writable(void *owner, uint32_t connection)
{
    say(owner, "%s %u writable", kind_of(connection), number_of(connection));
}

static inline bool on_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    struct peer *peer = owner;

    assert_int_equal((uintptr_t)frame->data % 16, 0);
    say(peer, "%s %u: %.*s", kind_of(connection), number_of(connection),
        (int)(frame->size < 20 ? frame->size : 20), (const char *)frame->data);
    return !peer->one_by_one;
}

static const struct mu__wire_events events = {
    .up = on_up,
    .down = on_down,
    .writable = on_writable,
    .frame = on_frame,
};

static inline int peer_start(void *arg, struct sim_node *node, struct mu__world *world,
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

static inline void peer_stop(void *arg)
{
    struct peer *peer = arg;

    mu__pool_done(&peer->pool);
    peer->alive = false;
}

static const struct sim_program peer_program = {peer_start, peer_stop};

static inline int send_bytes(struct peer *peer, uint32_t out, const void *bytes,
                             size_t size)
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

static inline int send_text(struct peer *peer, uint32_t out, const char *text)
{
    return send_bytes(peer, out, text, strlen(text));
}

/* ---- Two of them, a dialling b ---- */

struct pair {
    struct sim *sim;
    struct peer a;
    struct peer b;
};

static inline int pair_setup(void **state)
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

static inline int pair_teardown(void **state)
{
    struct pair *pair = *state;

    sim_free(pair->sim);
    assert_false(pair->a.alive);
    assert_false(pair->b.alive);
    free(pair);
    return 0;
}

static inline void run_and_expect(struct sim *sim, uint64_t until_ms, const char *lines)
{
    sim_run_until(sim, until_ms);
    assert_string_equal(sim_trace(sim), lines);
}

/* ---- The world ---- */

static inline void work_run(struct mu__work *work)
{
    (void)work;
}

#endif
