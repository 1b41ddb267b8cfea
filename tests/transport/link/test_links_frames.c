/* Frames over a link that is up, large messages, sending and silence. */
#include "tests/transport/link/links_fixture.h"

#include "transport/link/link.h"

/* ---- What the peer says ---- */

static void say_piece_as(struct fixture *f, uint64_t from, uint64_t offset,
                         uint64_t total, const void *data, uint32_t size)
{
    const struct mu__piece piece = {offset, total, {data, size}};
    struct mu__buf *frame = frame_of(1, MU__FRAME_PIECE, from, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_PIECE, &piece, sizeof piece);
    say(f, frame);
}

static void say_piece(struct fixture *f, uint64_t offset, uint64_t total,
                      const void *data, uint32_t size)
{
    say_piece_as(f, PEER, offset, total, data, size);
}

/* ---- Frames ---- */

TEST_ON(test_data, struct fixture *f, setup_up, teardown)
{
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
TEST_ON(test_stale, struct fixture *f, setup_up, teardown)
{
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

/* What comes over another connection than the link's is not the link's, whoever it says
 * that it is from, and for whom. */
TEST_ON(test_epoch_is_the_connection, struct fixture *f, setup_up, teardown)
{
    uint32_t first = f->peer.out;

    dial_us(f);
    say_data(f, PEER, US);
    run_for(f, 20);
    assert_int_equal(f->us.delivered, 0);
    f->peer.out = first;
    say_data(f, PEER, US);
    run_for(f, 20);
    assert_int_equal(f->us.delivered, 1);
}

/* Data before any HELLO. */
TEST_ON(test_stranger, struct fixture *f, setup, teardown)
{
    struct mu__links_counters counters;

    dial_us(f);
    say_data(f, PEER, US);
    run_for(f, 100);
    expect_trace(
        f, "[   30] us links: dropped a connection: bad bytes: a frame before a HELLO\n"
           "[   40] sim note: hears the end: closed by the peer\n");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.messages_in, 0);
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
TEST_ON(test_bad_bytes, struct fixture *f, setup_up, teardown)
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

TEST_ON(test_pieces, struct fixture *f, setup_up, teardown)
{
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
TEST_ON(test_half_a_message, struct fixture *f, setup, teardown)
{
    struct mu__buf *record = large_record();

    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    assert_int_equal(mu__links_adopt(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    say_piece(f, 0, record->size, record->data, MU__LINK_PIECE_BYTES);
    run_for(f, 20);
    f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    run_for(f, 100);
    speak_to_dialler(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    (void)sim_trace(f->sim);
    say_piece(f, MU__LINK_PIECE_BYTES, record->size, record->data + MU__LINK_PIECE_BYTES,
              MU__LINK_PIECE_BYTES);
    run_for(f, 20);
    assert_non_null(strstr(sim_trace(f->sim),
                           "bad bytes: a piece that does not follow its predecessor"));
    mu__buf_unref(record);
}

TEST_ON(test_bad_pieces, struct fixture *f, setup_up, teardown)
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

/* One more client announces a message of `total` bytes; true: it may. */
static bool may_begin(struct fixture *f, uint32_t number, uint64_t total)
{
    static const uint8_t zeros[8];
    const struct hello_words words = {
        1, "test", "client", number, "tcp://peer:1", PEER + number, NULL, 0};
    uint32_t up;

    sim_settings(f->sim)->latency = (struct sim_range){5000, 5000};
    sim_settings(f->sim)->connect = (struct sim_range){10000, 10000};
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 40);
    up = mu__links_count_up(f->us.links);
    (void)sim_trace(f->sim);
    say_piece_as(f, PEER + number, 0, total, zeros, sizeof zeros);
    run_for(f, 15);
    if (mu__links_count_up(f->us.links) == up)
        return true;
    assert_int_equal(mu__links_count_up(f->us.links), up - 1);
    assert_non_null(strstr(sim_trace(f->sim), "bad bytes: RESOURCE EXHAUSTED: "));
    return false;
}

/* However many clients begin large messages, what they announce together is bounded. A
 * task's own is not counted, and what a lost client had announced is given back. */
TEST_ON(test_clients_announce_too_much, struct fixture *f, setup_up, teardown)
{
    static const uint8_t zeros[8];
    const uint64_t largest = MU__LINK_MESSAGE_BYTES_MAX;
    uint32_t first;

    say_piece(f, 0, largest, zeros, sizeof zeros);
    assert_true(may_begin(f, 1, largest));
    first = f->peer.out;
    assert_true(may_begin(f, 2, largest));
    assert_true(may_begin(f, 3, largest));
    assert_true(may_begin(f, 4, largest - 100));
    assert_false(may_begin(f, 5, 101));
    f->peer.wire->ops->hangup(f->peer.wire, first);
    run_for(f, 40);
    assert_true(may_begin(f, 6, largest));
    assert_false(may_begin(f, 7, 101));
}

TEST(test_observers_announce_little)
{
    static const struct mu__proof proof = {.right = MU__RIGHT_OBSERVE};
    struct fixture *f;

    proven = &proof;
    assert_int_equal(setup(state), 0);
    f = *state;
    assert_true(may_begin(f, 1, MU__LINK_OBSERVER_BYTES_MAX));
    assert_false(may_begin(f, 2, MU__LINK_OBSERVER_BYTES_MAX + 1));
    proven = NULL;
    (void)teardown(state);
}

/* A second beginning, another total. */
TEST_ON(test_pieces_do_not_mix, struct fixture *f, setup_up, teardown)
{
    static const uint8_t zeros[8];

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

TEST_ON(test_transmit, struct fixture *f, setup_up, teardown)
{
    assert_int_equal(transmit(f, 1), 0);
    assert_int_equal(transmit(f, 1), 0);
    assert_int_equal(transmit(f, 2), -MU_EUNAVAILABLE);
    assert_int_equal(transmit(f, 0), -MU_EUNAVAILABLE);
    mu__links_flush(f->us.links);
    run_for(f, 20);
    expect_trace(f, "[   70] sim note: hears DATA of 2\n");
}

/* A peer that says nothing is lost after 500 ms; heartbeats tell it of us until then. */
TEST_ON(test_silence, struct fixture *f, setup_up, teardown)
{
    sim_trace_level(f->sim, MU__LOG_DEBUG);
    run_for(f, 700);
    expect_trace(f, "[  110] sim note: hears PING\n"
                    "[  210] sim note: hears PING\n"
                    "[  310] sim note: hears PING\n"
                    "[  410] sim note: hears PING\n"
                    "[  510] sim note: hears PING\n"
                    "[  550] us links: /job:chief/task:0 is lost: silent for 525 ms\n"
                    "[  550] sim note: node 1 down: silent for 525 ms\n"
                    "[  560] sim note: hears the end: closed by the peer\n");
}

/* Any frame is a sign of life. */
TEST_ON(test_sign_of_life, struct fixture *f, setup_up, teardown)
{
    for (int i = 0; i < 10; i++) {
        run_for(f, 400);
        say(f, frame_of(1, MU__FRAME_PING, PEER, US, 0));
        run_for(f, 20);
    }
    expect_trace(f, "");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* But not one that is not for us. */
TEST_ON(test_stale_frames_are_no_sign_of_life, struct fixture *f, setup_up, teardown)
{
    for (int i = 0; i < 5; i++) {
        run_for(f, 90);
        say(f, frame_of(1, MU__FRAME_PING, PEER, US + 1, 0));
    }
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

TEST_ON(test_bye, struct fixture *f, setup_up, teardown)
{
    const struct mu__bye bye = {mu__view_str("going home")};
    struct mu__buf *frame = frame_of(1, MU__FRAME_BYE, PEER, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_BYE, &bye, sizeof bye);
    say(f, frame);
    run_for(f, 40);
    expect_trace(f, "[   70] us links: /job:chief/task:0 is gone: it left: going home\n"
                    "[   70] sim note: node 1 gone: it left: going home\n"
                    "[   80] sim note: hears the end: closed by the peer\n");
}

TEST_ON(test_leave, struct fixture *f, setup_up, teardown)
{
    struct hello_words other = {1, "test", "chief", 1, "tcp://peer:1", PEER + 1, NULL, 0};

    mu__links_leave(f->us.links, "the job is done");
    mu__links_flush(f->us.links);
    run_for(f, 20);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    dial_us(f);
    say_hello_words(f, &other);
    run_for(f, 20);
    sim_crash(f->peer.node);
    run_for(f, 20);
    expect_trace(
        f, "[   70] sim note: hears BYE: the job is done\n"
           "[  120] sim note: hears the end: closed by the peer\n"
           "[  130] us links: /job:chief/task:0 is lost: its connection broke: closed by "
           "the peer\n"
           "[  130] sim note: node 1 down: its connection broke: closed by the peer\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

TEST_PROGRAM()
