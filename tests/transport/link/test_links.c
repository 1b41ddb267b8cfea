/* One node's links against a peer that says whatever the test wants: handshakes, bytes
 * that make no sense, silence. The peer dials first, and tells what it hears. */
#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "tests/sim/sim.h"
#include "transport/link/frames.h"
#include "transport/link/links.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { US = 0xa, PEER = 0xb, RAW_OUT = 1 };

/* ---- Us: links that note what they tell ---- */

struct us {
    struct sim_node *node;
    struct mu__links *links;
    struct mu__world *world;
    struct mu__pool pool;
    uint64_t tick_ms;
};

/* ---- The peer ---- */

struct peer {
    struct sim_node *node;
    struct mu__wire *wire;
    struct mu__pool pool;
    uint32_t out;       /* the present one */
    uint32_t in;        /* where the last frame came from */
    char wanted[32];    /* of the last HELLO */
    uint32_t epoch;      /* the same */
};

struct fixture {
    struct sim *sim;
    struct us us;
    struct peer peer;
};

static void note_up(void *owner, uint32_t node, const char *type, uint32_t index,
                    uint64_t incarnation, const char *address)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO,
             "node %" PRIu32 " up: %s %" PRIu32 " %" PRIx64 " %s", node, type, index,
             incarnation, address);
}

static void note_down(void *owner, uint32_t node, const char *reason)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "node %" PRIu32 " down: %s", node,
             reason);
}

static void note_trouble(void *owner, const char *type, uint32_t index,
                         const char *reason)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "trouble: %s %" PRIu32 ": %s", type,
             index, reason);
}

static void note_taken(void *owner, const char *type, uint32_t index, const char *reason)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "taken: %s %" PRIu32 ": %s", type,
             index, reason);
}

static void note_message(void *owner, struct mu__msg *msg)
{
    struct us *us = owner;

    sim_note(sim_node_sim(us->node), MU__LOG_INFO, "%s from node %" PRIu32,
             mu__messages.rows[msg->kind].name, msg->from.node);
    mu__pool_put(&us->pool, msg);
}

static void us_turn(void *owner)
{
    struct us *us = owner;
    uint64_t now_ms = us->world->ops->now_ms(us->world);

    if (now_ms >= us->tick_ms)
        us->tick_ms = mu__links_tick(us->links, now_ms);
    mu__links_flush(us->links);
    us->world->ops->wake_at(us->world, us->tick_ms);
}

static void us_out_up(void *owner, uint32_t out)
{
    mu__links_out_up(((struct us *)owner)->links, out);
}

static void us_out_down(void *owner, uint32_t out, const char *reason)
{
    mu__links_out_down(((struct us *)owner)->links, out, reason);
}

static void us_writable(void *owner, uint32_t out)
{
    mu__links_writable(((struct us *)owner)->links, out);
}

static bool us_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    mu__links_frame(((struct us *)owner)->links, in, frame);
    return true;
}

static void us_in_down(void *owner, uint32_t in, const char *reason)
{
    mu__links_in_down(((struct us *)owner)->links, in, reason);
}

static const struct mu__wire_events us_events = {
    .out_up = us_out_up,
    .out_down = us_out_down,
    .writable = us_writable,
    .frame = us_frame,
    .in_down = us_in_down,
    .burst_end = us_turn,
};

static int us_start(void *arg, struct sim_node *node, struct mu__world *world,
                    struct mu__wire *wire)
{
    struct us *us = arg;
    const struct mu__world_hooks hooks = {.owner = us, .turn = us_turn};
    const struct mu__links_upcalls upcalls = {us, note_up, note_down, note_trouble,
                                              note_message, note_taken};
    const struct mu__links_config config = {
        .cluster_name = "test",
        .task_type = "worker",
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

    us->node = node;
    us->world = world;
    us->tick_ms = 0;
    mu__pool_init(&us->pool);
    sim_attach(node, &hooks, &us_events, us);
    world->ops->wake_at(world, 0);
    return mu__links_new(&config, &upcalls, wire, &us->links);
}

static void us_stop(void *arg)
{
    struct us *us = arg;

    mu__links_free(us->links);
    assert_int_equal(us->pool.live, 0);
    mu__pool_done(&us->pool);
}

static const struct sim_program us_program = {us_start, us_stop};

/* ---- What the peer hears ---- */

static void note_record(struct peer *peer, struct mu__buf *frame,
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

        peer->epoch = hello->epoch;
        mu__view_copy(hello->wanted_type, text, sizeof text);
        (void)snprintf(peer->wanted, sizeof peer->wanted, "%.15s %" PRIu32, text,
                       hello->wanted_index);
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

static bool peer_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    struct peer *peer = owner;
    struct mu__frame_header header;

    assert_int_equal(mu__frame_read(frame, &header), 0);
    assert_int_equal(header.from, US);
    peer->in = in;
    if (header.type == MU__FRAME_PING)
        sim_note(sim_node_sim(peer->node), MU__LOG_DEBUG, "hears PING");
    else if (header.type == MU__FRAME_DATA)
        sim_note(sim_node_sim(peer->node), MU__LOG_INFO, "hears DATA of %" PRIu32,
                 header.count);
    else
        note_record(peer, frame, &header);
    return true;
}

static void peer_in_down(void *owner, uint32_t in, const char *reason)
{
    (void)in;
    sim_note(sim_node_sim(((struct peer *)owner)->node), MU__LOG_INFO,
             "hears the end: %s", reason);
}

static const struct mu__wire_events peer_events = {
    .frame = peer_frame,
    .in_down = peer_in_down,
};

static int peer_start(void *arg, struct sim_node *node, struct mu__world *world,
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

static void peer_stop(void *arg)
{
    mu__pool_done(&((struct peer *)arg)->pool);
}

static const struct sim_program peer_program = {peer_start, peer_stop};

/* ---- What the peer says ---- */

static struct mu__buf *frame_of(uint16_t version, uint8_t type, uint64_t from,
                                uint64_t to, uint32_t count)
{
    const struct mu__frame_header header = {version, type, from, to, count, 0};
    struct mu__buf *frame = mu__buf_new(2 << 20);

    assert_non_null(frame);
    mu__frame_write(frame, &header);
    frame->size = MU__FRAME_HEADER_BYTES;
    return frame;
}

/* Takes the frame. */
static void say(struct fixture *f, struct mu__buf *frame)
{
    assert_int_equal(f->peer.wire->ops->send(f->peer.wire, f->peer.out, frame), 0);
}

static void put_record(struct mu__buf *frame, const struct mu__schema *schema,
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
    const char *wanted_type;    /* NULL: whoever answers */
    uint32_t wanted_index;
};

static void say_hello_words(struct fixture *f, const struct hello_words *words)
{
    const char *wanted = words->wanted_type == NULL ? "" : words->wanted_type;
    const struct mu__hello hello = {
        .cluster = mu__view_str(words->cluster),
        .type = mu__view_str(words->type),
        .index = words->index,
        .address = mu__view_str(words->address),
        .wanted_type = mu__view_str(wanted),
        .wanted_index = words->wanted_index,
    };
    struct mu__buf *frame = frame_of(words->version, MU__FRAME_HELLO, words->from, 0, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_HELLO, &hello, sizeof hello);
    say(f, frame);
}

static const struct hello_words good = {1, "test", "chief", 0, "tcp://peer:1", PEER,
                                        NULL, 0};

static void say_data(struct fixture *f, uint64_t from, uint64_t to)
{
    const struct mu__cancel cancel = {7, 1};
    struct mu__buf *frame = frame_of(1, MU__FRAME_DATA, from, to, 1);

    put_record(frame, &mu__messages, MU__CANCEL, &cancel, sizeof cancel);
    say(f, frame);
}

static void say_piece(struct fixture *f, uint64_t offset, uint64_t total,
                      const void *data, uint32_t size)
{
    const struct mu__piece piece = {offset, total, {data, size}};
    struct mu__buf *frame = frame_of(1, MU__FRAME_PIECE, PEER, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_PIECE, &piece, sizeof piece);
    say(f, frame);
}

static void dial_us(struct fixture *f)
{
    f->peer.out++;
    assert_int_equal(f->peer.wire->ops->dial(f->peer.wire, f->peer.out, "tcp://us:1"), 0);
    sim_run_until(f->sim, sim_now_ms(f->sim) + 20);
}

static void run_for(struct fixture *f, uint64_t ms)
{
    sim_run_until(f->sim, sim_now_ms(f->sim) + ms);
}

#define expect_trace(f, text) assert_string_equal(sim_trace((f)->sim), text)

/* Us and the peer are there; nobody has said anything. */
static int setup(void **state)
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

/* The peer has introduced itself as the chief, and is up; it is 50 then. */
static int setup_up(void **state)
{
    struct fixture *f;

    if (setup(state) != 0)
        return -1;
    f = *state;
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    (void)sim_trace(f->sim);
    return mu__links_count_up(f->us.links) == 1 ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    sim_free(f->sim);
    free(f);
    return 0;
}

/* ---- Handshakes ---- */

static void test_up(void **state)
{
    struct fixture *f = *state;

    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    expect_trace(f,
        "[   50] us links: /job:chief/task:0 is up at tcp://peer:1\n"
        "[   50] sim note: node 1 up: chief 0 b tcp://peer:1\n"
        "[   60] sim note: hears HELLO to b of 0 at tcp://us:1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

static void test_refused(void **state)
{
    static const struct {
        struct hello_words words;
        const char *reason;
        const char *who;
    } rows[] = {
        {{2, "test", "chief", 0, "tcp://peer:1", PEER, NULL, 0},
         "protocol version 2, but /job:worker/task:0 speaks version 1", ""},
        {{1, "other", "chief", 0, "tcp://peer:1", PEER, NULL, 0},
         "cluster name \"other\", but /job:worker/task:0 belongs to cluster \"test\"",
         ""},
        {{1, "test", "worker", 0, "tcp://peer:1", PEER, NULL, 0},
         "task /job:worker/task:0 is already played by tcp://us:1 (incarnation "
         "000000000000000a)", " (incarnation 000000000000000b)"},
        {{1, "test", "chief", 0, "tcp://peer:1", PEER, "worker", 7},
         "task /job:worker/task:7 is not here, but /job:worker/task:0", ""},
        {{1, "test", "chief", 0, "tcp://peer:1", PEER, "ps", 0},
         "task /job:ps/task:0 is not here, but /job:worker/task:0", ""},
    };
    struct fixture *f = *state;
    char expected[1024];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t begin_ms = sim_now_ms(f->sim);

        dial_us(f);
        say_hello_words(f, &rows[i].words);
        run_for(f, 2000);
        (void)snprintf(expected, sizeof expected,
                       "[%5" PRIu64 "] us links: refused /job:%s/task:0 at "
                       "tcp://peer:1%s: %s\n[%5" PRIu64 "] sim note: hears "
                       "REFUSE: %s\n[%5" PRIu64
                       "] sim note: hears the end: closed by the peer\n",
                       begin_ms + 30, rows[i].words.type, rows[i].who, rows[i].reason,
                       begin_ms + 60, rows[i].reason, begin_ms + 1040);
        expect_trace(f, expected);
        assert_int_equal(mu__links_count_up(f->us.links), 0);
        f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    }
}

/* A node of another version, which we dial: it is told why in our words, and what it says
 * of us, in a frame of its version, is in our log. */
static void test_another_version(void **state)
{
    const struct mu__refuse refuse = {
        mu__view_str("chief"), 0,
        mu__view_str("protocol version 1, but /job:chief/task:0 speaks version 2"),
        false};
    const struct hello_words words = {2, "test", "chief", 0, "tcp://peer:1", PEER,
                                      NULL, 0};
    struct mu__buf *frame = frame_of(2, MU__FRAME_REFUSE, PEER, 0, 1);
    struct fixture *f = *state;

    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    dial_us(f);
    say(f, frame);
    say_hello_words(f, &words);
    run_for(f, 100);
    expect_trace(f,
        "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
        "[   30] us links: /job:chief/task:0: it refused us: protocol version 1, but "
          "/job:chief/task:0 speaks version 2\n"
        "[   30] sim note: trouble: chief 0: it refused us: protocol version 1, but "
          "/job:chief/task:0 speaks version 2\n"
        "[   30] us links: refused /job:chief/task:0 at tcp://peer:1: protocol version "
          "2, but /job:worker/task:0 speaks version 1\n"
        "[   40] sim note: hears the end: closed by the peer\n"
        "[   60] sim note: hears REFUSE: protocol version 2, but /job:worker/task:0 "
          "speaks version 1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

/* Who comes again while he is told why, by another address or for another task, hears it
 * over the same connection. */
static void test_refused_again(void **state)
{
    struct fixture *f = *state;
    struct hello_words words = good;

    words.wanted_type = "ps";
    for (words.wanted_index = 3; words.wanted_index < 5; words.wanted_index++) {
        dial_us(f);
        say_hello_words(f, &words);
        run_for(f, 80);
    }
    expect_trace(f,
        "[   30] us links: refused /job:chief/task:0 at tcp://peer:1: task "
          "/job:ps/task:3 is not here, but /job:worker/task:0\n"
        "[   60] sim note: hears REFUSE: task /job:ps/task:3 is not here, but "
          "/job:worker/task:0\n"
        "[  130] us links: refused /job:chief/task:0 at tcp://peer:1: task "
          "/job:ps/task:4 is not here, but /job:worker/task:0\n"
        "[  140] sim note: hears REFUSE: task /job:ps/task:4 is not here, but "
          "/job:worker/task:0\n");
    run_for(f, 2000);
    expect_trace(f, "[ 1140] sim note: hears the end: closed by the peer\n");
}

static unsigned count_lines(struct fixture *f, const char *words)
{
    const char *at = sim_trace(f->sim);
    unsigned count = 0;

    while ((at = strstr(at, words)) != NULL) {
        count++;
        at += strlen(words);
    }
    return count;
}

/* A stranger may say HELLO as often as it likes: the log has one line of it in ten
 * seconds, and how many there would have been. Another reason has a line of its own, and
 * a thousand of them in 21 s have seventeen in each ten. */
static void test_refused_lines_are_limited(void **state)
{
    struct fixture *f = *state;
    struct hello_words words = good;

    words.cluster = "other";
    dial_us(f);
    for (int i = 0; i < 100; i++) {
        dial_us(f);
        say_hello_words(f, &words);
        run_for(f, 20);
    }
    assert_int_equal(count_lines(f, "us links: refused /job:chief/task:0 at "), 1);
    run_for(f, 10000);
    (void)sim_trace(f->sim);
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 100);
    assert_non_null(strstr(sim_trace(f->sim),
                           "\"test\" (and 99 more such lines since then were left out)"));

    for (words.index = 1; words.index <= 1000; words.index++) {
        dial_us(f);
        say_hello_words(f, &words);
        run_for(f, 1);
    }
    run_for(f, 50);
    assert_in_range(count_lines(f, "us links: refused /job:chief/task:"), 15, 3 * 17);
}

/* Who is dialled hears that it is meant, and whoever is there when anybody is. */
static void test_who_is_wanted(void **state)
{
    struct fixture *f = *state;
    struct hello_words words = good;

    words.wanted_type = "worker";
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    assert_string_equal(f->peer.wanted, "chief 0");
    assert_int_equal(mu__links_dial(f->us.links, "ps", 3, "tcp://peer:1"), 0);
    run_for(f, 100);
    assert_string_equal(f->peer.wanted, "ps 3");
    assert_int_equal(mu__links_dial_any(f->us.links, "tcp://peer:1"), 0);
    run_for(f, 100);
    assert_string_equal(f->peer.wanted, " 0");
}

static void test_bad_hello(void **state)
{
    struct fixture *f = *state;
    struct mu__buf *frame = frame_of(1, MU__FRAME_HELLO, PEER, 0, 1);

    dial_us(f);
    frame->size += 16;
    memset(frame->data + MU__FRAME_HEADER_BYTES, 0xee, 16);
    say(f, frame);
    run_for(f, 100);
    expect_trace(f,
        "[   30] us links: dropped a connection: bad bytes: byte 32: a head of "
          "4008636142 bytes in a frame that has 8 left\n");
}

static void test_said_twice(void **state)
{
    struct fixture *f = *state;

    say_hello_words(f, &good);
    run_for(f, 100);
    expect_trace(f, "");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* A new incarnation is let in when the end of the former one's connection was seen. */
static void test_restarted(void **state)
{
    struct fixture *f = *state;
    struct hello_words again = good;

    again.from = PEER + 1;
    f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    dial_us(f);
    say_hello_words(f, &again);
    run_for(f, 100);
    expect_trace(f,
        "[   70] us links: /job:chief/task:0 is lost: its connection broke: closed by "
          "the peer\n"
        "[   70] sim note: node 1 down: its connection broke: closed by the peer\n"
        "[   80] sim note: hears the end: closed by the peer\n"
        "[  110] us links: /job:chief/task:0 is up at tcp://peer:1\n"
        "[  110] sim note: node 2 up: chief 0 c tcp://peer:1\n"
        "[  120] sim note: hears HELLO to c of 0 at tcp://us:1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* Two processes play one task, be it at one address or at two: the second one is refused
 * while the first is there, and the first one does not notice. */
static void test_twin(void **state)
{
    struct fixture *f = *state;
    struct hello_words twin = good;
    uint32_t first = f->peer.out;

    twin.from = PEER + 1;
    twin.address = "tcp://twin:1";
    dial_us(f);
    say_hello_words(f, &twin);
    run_for(f, 100);
    expect_trace(f,
        "[   90] us links: refused /job:chief/task:0 at tcp://twin:1 (incarnation "
          "000000000000000c): task /job:chief/task:0 is already played by tcp://peer:1 "
          "(incarnation 000000000000000b)\n");
    twin.address = good.address;
    twin.from = PEER + 2;
    dial_us(f);
    say_hello_words(f, &twin);
    run_for(f, 100);
    expect_trace(f,
        "[  210] us links: refused /job:chief/task:0 at tcp://peer:1 (incarnation "
          "000000000000000d): task /job:chief/task:0 is already played by tcp://peer:1 "
          "(incarnation 000000000000000b)\n"
        "[  240] sim note: hears REFUSE: task /job:chief/task:0 is already played by "
          "tcp://peer:1 (incarnation 000000000000000b)\n");
    f->peer.out = first;
    say_data(f, PEER, US);
    run_for(f, 100);
    expect_trace(f, "[  310] sim note: cancel from node 1\n");
}

/* Once the first process was silent for its limit, the second one has its task. */
static void test_twin_of_a_silent_one(void **state)
{
    struct fixture *f = *state;
    struct hello_words twin = good;

    twin.from = PEER + 1;
    dial_us(f);
    run_for(f, 600);
    (void)sim_trace(f->sim);
    say_hello_words(f, &twin);
    run_for(f, 100);
    expect_trace(f,
        "[  710] us links: /job:chief/task:0 is up at tcp://peer:1\n"
        "[  710] sim note: node 2 up: chief 0 c tcp://peer:1\n"
        "[  720] sim note: hears HELLO to c of 0 at tcp://us:1\n");
}

/* Two say that they are at one address: who answers what we say there is the one. */
static void test_twin_at_our_dial(void **state)
{
    struct fixture *f = *state;
    const struct mu__hello hello = {
        .cluster = mu__view_str("test"),
        .type = mu__view_str("chief"),
        .address = mu__view_str("tcp://peer:1"),
    };
    struct mu__frame_header header = {1, MU__FRAME_HELLO, PEER + 1, US, 1,
                                      f->peer.epoch};
    struct mu__buf *frame = frame_of(1, MU__FRAME_HELLO, PEER + 1, US, 1);

    assert_true(f->peer.epoch != 0);
    mu__frame_write(frame, &header);
    put_record(frame, &mu__frame_messages, MU__FRAME_HELLO, &hello, sizeof hello);
    dial_us(f);
    say(f, frame);
    run_for(f, 100);
    expect_trace(f,
        "[   90] us links: /job:chief/task:0: the process at tcp://peer:1 is another one "
          "than incarnation 000000000000000b, which said that it was there\n"
        "[   90] sim note: node 1 down: another process is at its address\n"
        "[   90] us links: /job:chief/task:0 is up at tcp://peer:1\n"
        "[   90] sim note: node 2 up: chief 0 c tcp://peer:1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

static void say_taken(struct fixture *f, uint64_t to, const char *reason)
{
    const struct mu__refuse refuse = {mu__view_str("chief"), 0, mu__view_str(reason),
                                      true};
    struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, to, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    say(f, frame);
}

/* We are the second one: we try again every second, and the owner hears of it after
 * claim_ms. What is said to another process at our address is not for us. */
static void test_we_are_the_twin(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    dial_us(f);
    run_for(f, 100);
    (void)sim_trace(f->sim);
    say_taken(f, US + 1, "somebody else");
    run_for(f, 100);
    expect_trace(f, "[  220] sim note: trouble: chief 0: nothing has answered yet\n");
    say_taken(f, US, "it is played by X");
    run_for(f, 1000);
    expect_trace(f,
        "[  230] us links: /job:chief/task:0: it refused us: it is played by X\n"
        "[  230] sim note: trouble: chief 0: it refused us: it is played by X\n"
        "[  240] sim note: hears the end: closed by the peer\n"
        "[ 1027] sim note: hears HELLO to 0 of 0 at tcp://us:1\n");
    for (int i = 0; i < 3; i++) {
        say_taken(f, US, "it is played by X");
        run_for(f, 1100);
    }
    assert_non_null(strstr(sim_trace(f->sim),
                           "taken: chief 0: it refused us: it is played by X\n"));
}

/* Clients have no place in the spec: two of one index are two. */
static void test_clients(void **state)
{
    struct fixture *f = *state;
    struct hello_words client = {1, "test", "client", 0, "tcp://peer:1", PEER + 1,
                                 NULL, 0};

    dial_us(f);
    say_hello_words(f, &client);
    client.from = PEER + 2;
    dial_us(f);
    say_hello_words(f, &client);
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 3);
}

/* The address in a HELLO leads nowhere, or is none. */
static void test_cannot_be_dialled(void **state)
{
    struct fixture *f = *state;
    struct hello_words words = good;

    words.address = "tcp://nowhere:1";
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 1000);
    words.address = "nonsense";
    words.from++;
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 1000);
    expect_trace(f,
        "[  530] us links: /job:chief/task:0 says its address is "
          "\"tcp://nowhere:1\", which cannot be reached\n"
        "[ 1050] us links: /job:chief/task:0 says its address is \"nonsense\", "
          "which cannot be dialled\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

/* We dial; the peer takes the connection and says nothing. */
static void test_no_answer(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 1200);
    expect_trace(f,
        "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
        "[  220] sim note: trouble: chief 0: nothing has answered yet\n"
        "[  530] sim note: hears the end: closed by the peer\n"
        "[  648] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
        "[ 1148] sim note: hears the end: closed by the peer\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

/* The peer refuses us: what it says is told, and the next try takes its time. */
static void test_we_are_refused(void **state)
{
    const struct mu__refuse refuse = {mu__view_str("chief"), 0,
                                      mu__view_str("we are full"), false};
    struct fixture *f = *state;

    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    for (int i = 0; i < 2; i++) {
        struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, 0, 1);
        struct mu__refuse said = refuse;

        said.index = (uint32_t)i;
        put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &said, sizeof said);
        dial_us(f);
        say(f, frame);
        run_for(f, 2000);
    }
    expect_trace(f,
        "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
        "[   30] us links: /job:chief/task:0: it refused us: we are full\n"
        "[   30] sim note: trouble: chief 0: it refused us: we are full\n"
        "[   40] sim note: hears the end: closed by the peer\n"
        "[ 2050] us links: refused by somebody who plays chief 1: we are full\n"
        "[ 3100] us links: waiting for /job:chief/task:0 at tcp://peer:1 for 3 s "
          "(resting; it refused us: we are full)\n");
}

static void say_refuse_for(struct fixture *f, uint32_t epoch, const char *reason)
{
    const struct mu__refuse refuse = {mu__view_str("chief"), 0, mu__view_str(reason),
                                      false};
    const struct mu__frame_header header = {1, MU__FRAME_REFUSE, PEER, US, 1, epoch};
    struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, US, 1);

    mu__frame_write(frame, &header);
    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    dial_us(f);
    say(f, frame);
    run_for(f, 20);
}

/* What comes late is of the dial before, or of another link: who refused that one is not
 * whom it was for, and the link to himself goes on. */
static void test_refused_late(void **state)
{
    struct fixture *f = *state;
    uint32_t former_epoch;

    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    former_epoch = f->peer.epoch;
    f->peer.wire->ops->drop(f->peer.wire, f->peer.in);
    run_for(f, 160);
    assert_int_not_equal(f->peer.epoch, former_epoch);
    (void)sim_trace(f->sim);

    say_refuse_for(f, 77, "ps 3 is not here");
    expect_trace(f,
        "[  230] us links: refused by somebody who plays chief 0: ps 3 is not here\n");
    say_refuse_for(f, former_epoch, "we are full");
    expect_trace(f,
        "[  270] us links: /job:chief/task:0: it refused us: we are full\n"
        "[  270] sim note: trouble: chief 0: it refused us: we are full\n"
        "[  280] sim note: hears the end: closed by the peer\n");
}

/* The peer has found us, but at its address somebody else is, who refuses our HELLO. */
static void test_refused_while_up(void **state)
{
    const struct mu__refuse refuse = {mu__view_str("ps"), 0, mu__view_str("not here"),
                                      false};
    struct fixture *f = *state;
    struct mu__frame_header header = {1, MU__FRAME_REFUSE, PEER + 1, US, 1, 0};
    struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER + 1, US, 1);

    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 60);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    header.epoch = f->peer.epoch;
    mu__frame_write(frame, &header);
    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    dial_us(f);
    say(f, frame);
    run_for(f, 60);
    assert_int_equal(mu__links_count_up(f->us.links), 0);
    expect_trace(f,
        "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
        "[   30] us links: /job:chief/task:0 is up at tcp://peer:1\n"
        "[   30] sim note: node 1 up: chief 0 b tcp://peer:1\n"
        "[   40] sim note: hears HELLO to b of 0 at tcp://us:1\n"
        "[  110] us links: /job:chief/task:0: it refused us: not here\n"
        "[  110] sim note: trouble: chief 0: it refused us: not here\n"
        "[  110] us links: /job:chief/task:0 is lost: it refused us: not here\n"
        "[  110] sim note: node 1 down: it refused us: not here\n"
        "[  120] sim note: hears the end: closed by the peer\n");
}

static void test_dial_errors(void **state)
{
    struct fixture *f = *state;
    char url[400];

    memset(url, 'a', sizeof url - 1);
    url[sizeof url - 1] = '\0';
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "nonsense"), -MU_EINVALID);
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, url), -MU_EEXHAUSTED);
    assert_int_equal(mu__links_dial(f->us.links, "a type with a long name", 0,
                                    "tcp://peer:1"),
                     -MU_EEXHAUSTED);
    run_for(f, 1000);
    expect_trace(f, "");
}

/* ---- Frames ---- */

static void test_data(void **state)
{
    struct fixture *f = *state;
    struct mu__links_counters counters;

    say_data(f, PEER, US);
    run_for(f, 20);
    expect_trace(f, "[   70] sim note: cancel from node 1\n");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.messages_in, 1);
    assert_int_equal(counters.stale_frames, 0);
}

/* For a former epoch of ours, or from a former process of the peer's: dropped, and
 * counted. */
static void test_stale(void **state)
{
    struct fixture *f = *state;
    struct mu__links_counters counters;

    say_data(f, PEER, US + 1);
    say_data(f, PEER + 1, US);
    say_data(f, PEER, 0);
    run_for(f, 20);
    expect_trace(f, "");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.stale_frames, 3);
    assert_int_equal(counters.messages_in, 0);
    assert_int_equal(counters.links_up, 1);
}

/* A record for one epoch of our link with the peer. */
static void say_data_for(struct fixture *f, uint32_t epoch)
{
    const struct mu__frame_header header = {1, MU__FRAME_DATA, PEER, US, 1, epoch};
    const struct mu__cancel cancel = {7, 1};
    struct mu__buf *frame = frame_of(1, MU__FRAME_DATA, PEER, US, 1);

    mu__frame_write(frame, &header);
    frame->size = MU__FRAME_HEADER_BYTES;
    put_record(frame, &mu__messages, MU__CANCEL, &cancel, sizeof cancel);
    say(f, frame);
}

/* The present epoch of the link is its first. What is for another one was under way for
 * long: its answers are for requests of that epoch. */
static void test_former_epoch_of_the_link(void **state)
{
    struct fixture *f = *state;
    struct mu__links_counters counters;

    say_data_for(f, 2);
    run_for(f, 20);
    expect_trace(f, "");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.stale_frames, 1);
    assert_int_equal(counters.messages_in, 0);
    say_data_for(f, 1);
    run_for(f, 20);
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.stale_frames, 1);
    assert_int_equal(counters.messages_in, 1);
}

/* Data before any HELLO. */
static void test_stranger(void **state)
{
    struct fixture *f = *state;
    struct mu__links_counters counters;

    dial_us(f);
    say_data(f, PEER, US);
    run_for(f, 100);
    expect_trace(f, "");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.stale_frames, 1);
}

static struct mu__buf *bad_magic(void)
{
    struct mu__buf *frame = frame_of(1, MU__FRAME_PING, PEER, US, 0);

    frame->data[0] ^= 1;
    return frame;
}

static struct mu__buf *bad_record(void)
{
    struct mu__buf *frame = frame_of(1, MU__FRAME_DATA, PEER, US, 1);

    memset(frame->data + MU__FRAME_HEADER_BYTES, 0xff, 100);
    frame->size += 100;
    return frame;
}

static struct mu__buf *missing_record(void)
{
    return frame_of(1, MU__FRAME_DATA, PEER, US, 1);
}

static struct mu__buf *bytes_behind(void)
{
    const struct mu__cancel cancel = {7, 1};
    struct mu__buf *frame = frame_of(1, MU__FRAME_DATA, PEER, US, 1);

    put_record(frame, &mu__messages, MU__CANCEL, &cancel, sizeof cancel);
    frame->size += 4;
    return frame;
}

static struct mu__buf *other_record(void)
{
    const struct mu__bye bye = {mu__view_str("x")};
    struct mu__buf *frame = frame_of(1, MU__FRAME_PIECE, PEER, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_BYE, &bye, sizeof bye);
    return frame;
}

/* A peer that sends what makes no sense is cut off, and the reason is told. */
static void test_bad_bytes(void **state)
{
    static const struct {
        struct mu__buf *(*make)(void);
        const char *reason;
    } rows[] = {
        {bad_magic, "bad bytes: no frame of muster's"},
        {bad_record, "bad bytes: "},
        {missing_record, "bad bytes: "},
        {bytes_behind, "bad bytes: bytes behind the last record"},
        {other_record, "bad bytes: a frame whose record is of another kind"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hello_words words = good;
        const char *trace;

        words.from = PEER;
        assert_int_equal(mu__links_count_up(f->us.links), 1);
        say(f, rows[i].make());
        run_for(f, 15);
        trace = sim_trace(f->sim);
        if (strstr(trace, rows[i].reason) == NULL || strstr(trace, " down: bad") == NULL)
            fail_msg("row %zu: %s", i, trace);
        assert_int_equal(mu__links_count_up(f->us.links), 0);
        f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
        dial_us(f);
        say_hello_words(f, &words);
        run_for(f, 60);
        (void)sim_trace(f->sim);
    }
}

/* ---- Large messages ---- */

/* A RUN of 2 MiB and a half, as bytes. */
static struct mu__buf *large_record(void)
{
    static const uint8_t args[5 << 19];
    const struct mu__run run = {.closure = 7,
                                .attempt = 1,
                                .function = mu__view_str("f"),
                                .args = {args, NULL, sizeof args, 0}};
    struct mu__buf *buf = mu__buf_new(sizeof args + 4096);

    assert_non_null(buf);
    put_record(buf, &mu__messages, MU__RUN, &run, sizeof run);
    return buf;
}

static void test_pieces(void **state)
{
    struct fixture *f = *state;
    struct mu__buf *record = large_record();
    uint32_t at = 0;

    while (at < record->size) {
        uint32_t left = record->size - at;
        uint32_t size = left < MU__LINK_PIECE_BYTES ? left : MU__LINK_PIECE_BYTES;

        say_piece(f, at, record->size, record->data + at, size);
        say_data(f, PEER, US);
        at += size;
    }
    run_for(f, 30);
    expect_trace(f, "[   70] sim note: cancel from node 1\n"
                    "[   70] sim note: cancel from node 1\n"
                    "[   70] sim note: run from node 1\n"
                    "[   70] sim note: cancel from node 1\n");
    mu__buf_unref(record);
}

/* A link that goes down in the middle of a large message forgets it, also when it stays
 * ours to keep. */
static void test_half_a_message(void **state)
{
    struct fixture *f = *state;
    struct mu__buf *record = large_record();

    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    say_piece(f, 0, record->size, record->data, MU__LINK_PIECE_BYTES);
    run_for(f, 20);
    f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    run_for(f, 40);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 400);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    (void)sim_trace(f->sim);
    say_piece(f, MU__LINK_PIECE_BYTES, record->size, record->data + MU__LINK_PIECE_BYTES,
              MU__LINK_PIECE_BYTES);
    run_for(f, 20);
    assert_non_null(strstr(sim_trace(f->sim),
                           "bad bytes: a piece that does not follow its predecessor"));
    mu__buf_unref(record);
}

static void test_bad_pieces(void **state)
{
    static const struct {
        uint64_t offset;
        uint64_t total;
        uint32_t size;
        const char *reason;
    } rows[] = {
        {1, 10, 5, "a piece that does not follow its predecessor"},
        {0, UINT64_MAX, 5, "a message larger than the limit"},
        {0, MU__LINK_MESSAGE_BYTES_MAX + 1ULL, 5, "a message larger than the limit"},
        {0, 4, 5, "a piece that does not follow its predecessor"},
        {0, 10, 0, "a piece that does not follow its predecessor"},
        {0, 0, 0, "a piece that does not follow its predecessor"},
        {0, 100, 100, "bad bytes: "},
    };
    static const uint8_t zeros[128];
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *trace;

        say_piece(f, rows[i].offset, rows[i].total, zeros, rows[i].size);
        run_for(f, 15);
        trace = sim_trace(f->sim);
        if (strstr(trace, rows[i].reason) == NULL || strstr(trace, " down: bad") == NULL)
            fail_msg("row %zu: %s", i, trace);
        f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
        dial_us(f);
        say_hello_words(f, &good);
        run_for(f, 60);
        (void)sim_trace(f->sim);
    }
}

/* A second beginning, another total. */
static void test_pieces_do_not_mix(void **state)
{
    static const uint8_t zeros[8];
    struct fixture *f = *state;

    say_piece(f, 0, 100, zeros, 8);
    say_piece(f, 0, 100, zeros, 8);
    run_for(f, 15);
    assert_non_null(strstr(sim_trace(f->sim), "begins inside another one"));
    f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 60);
    say_piece(f, 0, 100, zeros, 8);
    say_piece(f, 8, 101, zeros, 8);
    run_for(f, 15);
    assert_non_null(strstr(sim_trace(f->sim), "does not follow its predecessor"));
}

/* ---- Sending, leaving, silence ---- */

static int transmit(struct fixture *f, uint32_t node)
{
    struct mu__msg *msg =
        mu__pool_get(&f->us.pool, MU__CANCEL, sizeof(struct mu__cancel));

    assert_non_null(msg);
    msg->to.node = node;
    return mu__links_transmit(f->us.links, msg);
}

static void test_transmit(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(transmit(f, 1), 0);
    assert_int_equal(transmit(f, 1), 0);
    assert_int_equal(transmit(f, 2), -MU_EUNAVAILABLE);
    assert_int_equal(transmit(f, 0), -MU_EUNAVAILABLE);
    mu__links_flush(f->us.links);
    run_for(f, 20);
    expect_trace(f, "[   70] sim note: hears DATA of 2\n");
}

/* A peer that says nothing is lost after 500 ms; heartbeats tell it of us until then. */
static void test_silence(void **state)
{
    struct fixture *f = *state;

    sim_trace_level(f->sim, MU__LOG_DEBUG);
    run_for(f, 700);
    expect_trace(f,
        "[  160] sim note: hears PING\n"
        "[  260] sim note: hears PING\n"
        "[  360] sim note: hears PING\n"
        "[  460] sim note: hears PING\n"
        "[  550] us links: /job:chief/task:0 is lost: silent for 520 ms\n"
        "[  550] sim note: node 1 down: silent for 520 ms\n"
        "[  560] sim note: hears the end: closed by the peer\n");
}

/* Any frame is a sign of life. */
static void test_sign_of_life(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 10; i++) {
        run_for(f, 400);
        say(f, frame_of(1, MU__FRAME_PING, PEER, US, 0));
        run_for(f, 20);
    }
    expect_trace(f, "");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* But not one that is not for us. */
static void test_stale_frames_are_no_sign_of_life(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 5; i++) {
        run_for(f, 90);
        say(f, frame_of(1, MU__FRAME_PING, PEER, US + 1, 0));
    }
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

static void test_bye(void **state)
{
    const struct mu__bye bye = {mu__view_str("going home")};
    struct fixture *f = *state;
    struct mu__buf *frame = frame_of(1, MU__FRAME_BYE, PEER, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_BYE, &bye, sizeof bye);
    say(f, frame);
    run_for(f, 40);
    expect_trace(f,
        "[   70] us links: /job:chief/task:0 is lost: it left: going home\n"
        "[   70] sim note: node 1 down: it left: going home\n"
        "[   80] sim note: hears the end: closed by the peer\n");
}

static void test_leave(void **state)
{
    struct fixture *f = *state;
    struct hello_words other = {1, "test", "chief", 1, "tcp://peer:1", PEER + 1,
                                NULL, 0};

    mu__links_leave(f->us.links, "the job is done");
    mu__links_flush(f->us.links);
    run_for(f, 20);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    dial_us(f);
    say_hello_words(f, &other);
    run_for(f, 20);
    sim_crash(f->peer.node);
    run_for(f, 20);
    expect_trace(f,
        "[   70] sim note: hears BYE: the job is done\n"
        "[  130] us links: /job:chief/task:0 is lost: its connection broke: "
          "closed by the peer\n"
        "[  130] sim note: node 1 down: its connection broke: closed by the peer\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

/* ---- A task that leaves the cluster, or moves ---- */

#define GONE "it is not in the cluster any more"

/* The owner hears at once; the peer hears why, and is refused until it is allowed. */
static void test_hangup(void **state)
{
    struct fixture *f = *state;

    mu__links_hangup(f->us.links, "chief", 0, GONE);
    assert_int_equal(mu__links_count_up(f->us.links), 0);
    mu__links_flush(f->us.links);
    run_for(f, 20);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 50);
    expect_trace(f,
        "[   60] us links: hung up on /job:chief/task:0: " GONE "\n"
        "[   60] sim note: node 1 down: " GONE "\n"
        "[   70] sim note: hears BYE: " GONE "\n"
        "[  110] us links: refused /job:chief/task:0 at tcp://peer:1: " GONE "\n"
        "[  140] sim note: hears REFUSE: " GONE "\n");
    run_for(f, 2000);
    mu__links_allow(f->us.links, "chief", 0);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* What still comes over the link is not heard, though its connections are there. */
static void test_hung_up_is_not_heard(void **state)
{
    struct fixture *f = *state;
    struct mu__links_counters counters;

    mu__links_hangup(f->us.links, "chief", 0, GONE);
    say_data(f, PEER, US);
    run_for(f, 100);
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.messages_in, 0);
    assert_int_equal(counters.stale_frames, 1);
}

/* One that is not up is forgotten: nobody waits for it. */
static void test_hangup_while_dialling(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mu__links_dial(f->us.links, "ps", 1, "tcp://nobody:1"), 0);
    run_for(f, 100);
    mu__links_hangup(f->us.links, "ps", 1, GONE);
    run_for(f, 20000);
    expect_trace(f, "");
}

/* A peer that began the link by itself, and is dialled then, is waited for from then
 * on. */
static void test_dial_what_is_up(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mu__links_adopt(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 100);
    expect_trace(f, "");
    sim_crash(f->peer.node);
    run_for(f, 3500);
    expect_trace(f,
        "[  170] us links: /job:chief/task:0 is lost: its connection broke: closed by "
          "the peer\n"
        "[  170] sim note: node 1 down: its connection broke: closed by the peer\n"
        "[ 3268] us links: waiting for /job:chief/task:0 at tcp://peer:1 for 3 s "
          "(dialling; its connection broke: closed by the peer)\n");
}

/* The former process is told where the task is, and is refused; the new one may come. */
static void test_move(void **state)
{
    struct fixture *f = *state;
    struct hello_words here = good;

    assert_int_equal(mu__links_adopt(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    assert_int_equal(mu__links_move(f->us.links, "chief", 0, "tcp://new:1"), 0);
    mu__links_flush(f->us.links);
    run_for(f, 20);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 50);
    expect_trace(f,
        "[   60] us links: hung up on /job:chief/task:0: the task is at tcp://new:1 now\n"
        "[   60] sim note: node 1 down: the task is at tcp://new:1 now\n"
        "[   70] sim note: hears BYE: the task is at tcp://new:1 now\n"
        "[  110] us links: refused /job:chief/task:0 at tcp://peer:1: the task is at "
          "tcp://new:1 now\n"
        "[  140] sim note: hears REFUSE: the task is at tcp://new:1 now\n");

    /* Another process at the old place is the former process, too. */
    here.from = PEER + 1;
    dial_us(f);
    say_hello_words(f, &here);
    run_for(f, 2000);
    assert_non_null(strstr(sim_trace(f->sim), "hears REFUSE: the task is at "));

    /* Back again: it is the one. */
    assert_int_equal(mu__links_move(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    dial_us(f);
    say_hello_words(f, &here);
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* A link leads already to where the task is said to be. */
static void test_move_to_where_it_is(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mu__links_move(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    assert_int_equal(mu__links_move(f->us.links, "worker", 7, "tcp://peer:1"), 0);
    run_for(f, 100);
    expect_trace(f, "");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_UP(name) cmocka_unit_test_setup_teardown(name, setup_up, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_up),
        TEST(test_refused),
        TEST(test_another_version),
        TEST(test_refused_again),
        TEST(test_refused_lines_are_limited),
        TEST(test_who_is_wanted),
        TEST(test_bad_hello),
        TEST_UP(test_said_twice),
        TEST_UP(test_restarted),
        TEST_UP(test_twin),
        TEST_UP(test_twin_of_a_silent_one),
        TEST_UP(test_twin_at_our_dial),
        TEST(test_we_are_the_twin),
        TEST_UP(test_clients),
        TEST(test_cannot_be_dialled),
        TEST(test_no_answer),
        TEST(test_we_are_refused),
        TEST(test_refused_late),
        TEST(test_refused_while_up),
        TEST(test_dial_errors),
        TEST_UP(test_data),
        TEST_UP(test_stale),
        TEST_UP(test_former_epoch_of_the_link),
        TEST(test_stranger),
        TEST_UP(test_bad_bytes),
        TEST_UP(test_pieces),
        TEST(test_half_a_message),
        TEST_UP(test_bad_pieces),
        TEST_UP(test_pieces_do_not_mix),
        TEST_UP(test_transmit),
        TEST_UP(test_silence),
        TEST_UP(test_sign_of_life),
        TEST_UP(test_stale_frames_are_no_sign_of_life),
        TEST_UP(test_bye),
        TEST_UP(test_leave),
        TEST_UP(test_hangup),
        TEST_UP(test_hung_up_is_not_heard),
        TEST(test_hangup_while_dialling),
        TEST_UP(test_dial_what_is_up),
        TEST_UP(test_move),
        TEST_UP(test_move_to_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
