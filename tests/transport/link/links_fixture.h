/* One node's links against a peer that says whatever the test wants: handshakes, bytes
 * that make no sense, silence. The peer dials first, and tells what it hears. */
#ifndef MU_TESTS_TRANSPORT_LINK_LINKS_FIXTURE_H
#define MU_TESTS_TRANSPORT_LINK_LINKS_FIXTURE_H

#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "sim/world/sim.h"
#include "tests/support/test.h"
#include "transport/link/frames.h"
#include "transport/link/links.h"

#include <inttypes.h>

enum { US = 0xa, PEER = 0xb };

/* ---- Us: links that note what they tell ---- */

struct us {
    struct sim_node *node;
    struct mu__links *links;
    struct mu__world *world;
    struct mu__pool pool;
    uint32_t delivered; /* messages */
};

/* What peers have proven, where a test says so: on wires of nodes that are made then. */
static const struct mu__proof *proven;

static inline void read_proven(struct mu__wire *wire, uint32_t connection,
                               struct mu__proof *ret_proof)
{
    (void)wire;
    (void)connection;
    *ret_proof = *proven;
}

/* Who we are, where a test says so. */
static const char *own_type = "worker";

/* Of how many connections the links have said that they are a member's. */
static unsigned members;

static inline void note_member(struct mu__wire *wire, uint32_t connection)
{
    (void)wire;
    assert_int_not_equal(connection, 0);
    members++;
}

/* Where peers are, where a test says so: "10.0.0.7:5000". */
static const char *seen_at = "";

static inline void write_seen(struct mu__wire *wire, uint32_t connection,
                              char *ret_address, size_t size)
{
    (void)wire;
    (void)connection;
    (void)snprintf(ret_address, size, "%s", seen_at);
}

/* The same wire, with peers that have proven something, or are somewhere. */
static inline void prove(struct mu__wire *wire)
{
    static struct mu__wire_ops ops;

    ops = *wire->ops;
    if (proven != NULL)
        ops.proof = read_proven;
    if (seen_at[0] != '\0')
        ops.peer = write_seen;
    ops.member = note_member;
    wire->ops = &ops;
}

/* ---- The peer ---- */

struct peer {
    struct sim_node *node;
    struct mu__wire *wire;
    struct mu__pool pool;
    uint32_t out;     /* the connection on which it speaks */
    uint32_t dialled; /* the last one that it has dialled */
    uint32_t in;      /* where the last frame came from */
    char wanted[32];  /* of the last HELLO */
};

struct fixture {
    struct sim *sim;
    struct us us;
    struct peer peer;
};

static inline void note_up(void *owner, uint32_t node, const char *type, uint32_t index,
                           uint64_t incarnation, const char *address)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO,
             "node %" PRIu32 " up: %s %" PRIu32 " %" PRIx64 " %s", node, type, index,
             incarnation, address);
}

static inline void note_down(void *owner, uint32_t node, const char *reason, bool left)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "node %" PRIu32 " %s: %s", node,
             left ? "gone" : "down", reason);
}

static inline void note_trouble(void *owner, const char *type, uint32_t index,
                                const char *reason)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "trouble: %s %" PRIu32 ": %s", type,
             index, reason);
}

static inline void note_taken(void *owner, const char *type, uint32_t index,
                              const char *reason)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "taken: %s %" PRIu32 ": %s", type,
             index, reason);
}

static inline void note_refused(void *owner, const char *type, uint32_t index,
                                const char *reason)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "refused for good: %s %" PRIu32 ": %s",
             type, index, reason);
}

static inline void note_message(void *owner, struct mu__msg *msg)
{
    struct us *us = owner;

    us->delivered++;
    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "%s from node %" PRIu32,
             mu__messages.rows[msg->kind].name, msg->from.node);
    mu__pool_put(&us->pool, msg);
}

static inline void us_turn(void *owner)
{
    struct us *us = owner;
    uint64_t now_ms = us->world->ops->now_ms(us->world);

    if (now_ms >= mu__links_due_ms(us->links))
        (void)mu__links_tick(us->links, now_ms);
    mu__links_flush(us->links);
    us->world->ops->wake_at(us->world, mu__links_due_ms(us->links));
}

static inline void us_up(void *owner, uint32_t connection)
{
    mu__links_connected(((struct us *)owner)->links, connection);
}

static inline void us_down(void *owner, uint32_t connection, const char *reason)
{
    mu__links_disconnected(((struct us *)owner)->links, connection, reason);
}

static inline void us_writable(void *owner, uint32_t connection)
{
    mu__links_writable(((struct us *)owner)->links, connection);
}

static inline bool us_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    mu__links_frame(((struct us *)owner)->links, connection, frame);
    return true;
}

static const struct mu__wire_events us_events = {
    .up = us_up,
    .down = us_down,
    .writable = us_writable,
    .frame = us_frame,
    .burst_end = us_turn,
};

static inline int us_start(void *arg, struct sim_node *node, struct mu__world *world,
                           struct mu__wire *wire)
{
    struct us *us = arg;
    const struct mu__world_hooks hooks = {.owner = us, .turn = us_turn};
    const struct mu__links_upcalls upcalls = {us,           note_up,      note_down,
                                              note_trouble, note_message, note_taken,
                                              NULL,         note_refused};
    const struct mu__links_config config = {
        .cluster_name = "test",
        .task_type = own_type,
        .task_index = 0,
        .address = "tcp://us:1",
        .incarnation = US,
        .heartbeat_ms = 100,
        .silence_ms = 500,
        .claim_ms = 3000,
        .schema = &mu__messages,
        .pool = &us->pool,
        .world = world,
    };

    if (proven != NULL || seen_at[0] != '\0')
        prove(wire);
    us->node = node;
    us->world = world;
    mu__pool_init(&us->pool);
    sim_attach(node, &hooks, &us_events, us);
    world->ops->wake_at(world, 0);
    return mu__links_new(&config, &upcalls, wire, &us->links);
}

static inline void us_stop(void *arg)
{
    struct us *us = arg;

    mu__links_free(us->links);
    assert_int_equal(us->pool.live, 0);
    mu__pool_done(&us->pool);
}

static const struct sim_program us_program = {us_start, us_stop};

/* ---- What the peer hears ---- */

static inline void note_record(struct peer *peer, struct mu__buf *frame,
                               const struct mu__frame_header *header)
{
    struct sim *sim = sim_node_sim(peer->node);
    size_t offset = MU__FRAME_HEADER_BYTES;
    struct mu__msg *msg = NULL;
    char text[512];

    assert_int_equal(
        mu__decode(&mu__frame_messages, &peer->pool, frame, &offset, NULL, 0, &msg), 0);
    if (header->type == MU__FRAME_HELLO) {
        struct mu__hello *hello = (void *)msg->body;

        mu__view_copy(hello->expected_type, text, sizeof text);
        (void)snprintf(peer->wanted, sizeof peer->wanted, "%.15s %" PRIu32, text,
                       hello->expected_index);
        mu__view_copy(hello->address, text, sizeof text);
        sim_note(sim, MU__LOG_INFO, "hears HELLO to %" PRIx64 " of %" PRIu32 " at %s",
                 header->to, hello->index, text);
    } else if (header->type == MU__FRAME_REFUSE) {
        mu__view_copy(((struct mu__refuse *)(void *)msg->body)->reason, text,
                      sizeof text);
        sim_note(sim, MU__LOG_INFO, "hears REFUSE: %s", text);
    } else {
        mu__view_copy(((struct mu__bye *)(void *)msg->body)->reason, text, sizeof text);
        sim_note(sim, MU__LOG_INFO, "hears BYE: %s", text);
    }
    mu__pool_put(&peer->pool, msg);
}

static inline bool peer_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    struct peer *peer = owner;
    struct mu__frame_header header;

    assert_int_equal(mu__frame_read(frame, &header), 0);
    assert_int_equal(header.from, US);
    peer->in = connection;
    if (header.type == MU__FRAME_PING)
        sim_note(sim_node_sim(peer->node), MU__LOG_DEBUG, "hears PING");
    else if (header.type == MU__FRAME_DATA)
        sim_note(sim_node_sim(peer->node), MU__LOG_INFO, "hears DATA of %" PRIu32,
                 header.count);
    else
        note_record(peer, frame, &header);
    return true;
}

static inline void peer_down(void *owner, uint32_t connection, const char *reason)
{
    (void)connection;
    sim_note(sim_node_sim(((struct peer *)owner)->node), MU__LOG_INFO,
             "hears the end: %s", reason);
}

static const struct mu__wire_events peer_events = {
    .frame = peer_frame,
    .down = peer_down,
};

static inline int peer_start(void *arg, struct sim_node *node, struct mu__world *world,
                             struct mu__wire *wire)
{
    struct peer *peer = arg;
    const struct mu__world_hooks hooks = {.owner = peer};

    (void)world;
    peer->node = node;
    peer->wire = wire;
    mu__pool_init(&peer->pool);
    sim_attach(node, &hooks, &peer_events, peer);
    return 0;
}

static inline void peer_stop(void *arg)
{
    struct peer *peer = arg;

    mu__pool_done(&peer->pool);
}

static const struct sim_program peer_program = {peer_start, peer_stop};

/* ---- What the peer says ---- */

static inline struct mu__buf *frame_of(uint16_t version, uint8_t type, uint64_t from,
                                       uint64_t to, uint32_t count)
{
    const struct mu__frame_header header = {version, type, from, to, count};
    struct mu__buf *frame = mu__buf_new(2 << 20);

    assert_non_null(frame);
    mu__frame_write(frame, &header);
    frame->size = MU__FRAME_HEADER_BYTES;
    return frame;
}

/* Takes the frame. */
static inline void say(struct fixture *f, struct mu__buf *frame)
{
    assert_int_equal(f->peer.wire->ops->send(f->peer.wire, f->peer.out, frame), 0);
}

static inline void put_record(struct mu__buf *frame, const struct mu__schema *schema,
                              uint16_t kind, const void *body, size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    assert_int_equal(mu__encode(schema, msg, frame), 0);
    free(msg);
}

struct hello_words {
    uint16_t version;
    const char *cluster;
    const char *type;
    uint32_t index;
    const char *address;
    uint64_t from;
    const char *expected_type; /* NULL: whoever answers */
    uint32_t expected_index;
};

static inline void say_hello_words(struct fixture *f, const struct hello_words *words)
{
    const char *wanted = words->expected_type == NULL ? "" : words->expected_type;
    const struct mu__hello hello = {
        .cluster = mu__view_str(words->cluster),
        .type = mu__view_str(words->type),
        .index = words->index,
        .address = mu__view_str(words->address),
        .expected_type = mu__view_str(wanted),
        .expected_index = words->expected_index,
    };
    struct mu__buf *frame = frame_of(words->version, MU__FRAME_HELLO, words->from, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_HELLO, &hello, sizeof hello);
    say(f, frame);
}

static const struct hello_words good = {1,    "test", "chief", 0, "tcp://peer:1",
                                        PEER, NULL,   0};

static inline void say_data(struct fixture *f, uint64_t from, uint64_t to)
{
    const struct mu__cancel cancel = {7, 1};
    struct mu__buf *frame = frame_of(1, MU__FRAME_DATA, from, to, 1);

    put_record(frame, &mu__messages, MU__CANCEL, &cancel, sizeof cancel);
    say(f, frame);
}

static inline void dial_us(struct fixture *f)
{
    f->peer.out = ++f->peer.dialled;
    assert_int_equal(f->peer.wire->ops->dial(f->peer.wire, f->peer.out, "tcp://us:1"), 0);
    sim_run_until(f->sim, sim_now_ms(f->sim) + 20);
}

/* The peer speaks on the connection by which we have reached it. */
static inline void speak_to_dialler(struct fixture *f)
{
    f->peer.out = f->peer.in;
}

static inline void run_for(struct fixture *f, uint64_t ms)
{
    sim_run_until(f->sim, sim_now_ms(f->sim) + ms);
}

#define expect_trace(f, text) assert_string_equal(sim_trace((f)->sim), text)

/* Us and the peer are there; nobody has said anything. */
static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->sim = sim_new(1);
    f->us.node = sim_node_add(f->sim, "us", "tcp://us:1", &us_program, &f->us);
    f->peer.node = sim_node_add(f->sim, "peer", "tcp://peer:1", &peer_program, &f->peer);
    *state = f;
    return sim_start(f->us.node) == 0 && sim_start(f->peer.node) == 0 ? 0 : -1;
}

/* The peer has introduced itself as the chief, and is up; it is 60 then. */
static inline int setup_up(void **state)
{
    struct sim_settings usual;
    struct fixture *f;

    if (setup(state) != 0)
        return -1;
    f = *state;
    dial_us(f);
    usual = *sim_settings(f->sim);
    sim_settings(f->sim)->latency = (struct sim_range){5000, 5000};
    sim_settings(f->sim)->connect = (struct sim_range){10000, 10000};
    say_hello_words(f, &good);
    run_for(f, 40);
    *sim_settings(f->sim) = usual;
    (void)sim_trace(f->sim);
    return mu__links_count_up(f->us.links) == 1 ? 0 : -1;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    sim_free(f->sim);
    free(f);
    return 0;
}

#endif
