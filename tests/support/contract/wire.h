/* What every wire must do, written once. A test file fills in a struct contract_wire,
 * which says how to make two wires and how to let them run, and gets the whole suite:
 *
 *     return contract_wire_run("nng over tcp", &tcp_fixture);
 *
 * Include it after cmocka.h. */
#ifndef MU_TESTS_CONTRACT_WIRE_H
#define MU_TESTS_CONTRACT_WIRE_H

#include "tests/support/contract/wire_peers.h"

/* ---- What is done ---- */

static void contract_connect(struct contract *contract)
{
    assert_int_equal(contract_dial(contract), 0);
    contract_run_until(contract, contract_is_up);
}

/* Half of a large frame is another buffer's, which the frame holds. */
static void contract_splice(struct mu__buf *frame)
{
    uint32_t size = frame->size / 2;
    uint32_t at = frame->size / 4;
    struct mu__buf *other = mu__buf_new(size);

    assert_non_null(other);
    memcpy(other->data, frame->data + at, size);
    memmove(frame->data + at, frame->data + at + size, frame->size - at - size);
    frame->size -= size;
    frame->splices->items[0] = (struct mu__splice){other->data, other, size, at};
    frame->splices->count = 1;
    frame->splices->bytes = size;
}

/* Its first bytes are `sequence`, and its last byte is as its first. */
static void contract_fill(struct mu__buf *frame, uint32_t size, uint32_t sequence)
{
    assert_true(size <= frame->capacity);
    mu__buf_cut_splices(frame, 0);
    memset(frame->data, (int)(sequence & 0xff), size);
    memcpy(frame->data, &sequence, size < sizeof sequence ? size : sizeof sequence);
    if (size > 0)
        frame->data[size - 1] = frame->data[0];
    frame->size = size;
    if (frame->splices != NULL && size > 4 * MU__SPLICE_BYTES_MIN)
        contract_splice(frame);
}

static struct mu__buf *contract_buffer(struct contract *contract, uint32_t size)
{
    struct mu__wire *wire = contract->peers[contract->speaker].wire;
    struct mu__buf *frame = wire->ops->buffer(wire, (size_t)size + 64);

    assert_non_null(frame);
    assert_int_equal(frame->size, 0);
    assert_int_equal(frame->refs, 1);
    assert_int_equal((uintptr_t)frame->data % 16, 0);
    assert_true(frame->capacity >= size);
    return frame;
}

static int contract_send(struct contract *contract, struct mu__buf *frame)
{
    struct contract_peer *peer = &contract->peers[contract->speaker];

    return peer->wire->ops->send(peer->wire, peer->says_on, frame);
}

/* Send, and wait while the wire says to try again. */
static void contract_send_surely(struct contract *contract, struct mu__buf *frame)
{
    int rv = contract_send(contract, frame);

    while (rv == -MU_EAGAIN) {
        contract->peers[contract->speaker].writables = 0;
        contract_run_until(contract, contract_was_writable);
        rv = contract_send(contract, frame);
    }
    assert_int_equal(rv, 0);
}

static void contract_send_one(struct contract *contract, uint32_t size)
{
    struct mu__buf *frame = contract_buffer(contract, size);

    contract_fill(frame, size, contract->peers[1 - contract->speaker].next_sequence);
    contract_send_surely(contract, frame);
}

/* Peer 1, which has accepted the connection, speaks from now on, and peer 0 hears. */
static void contract_turn_round(struct contract *contract)
{
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
    contract->speaker = 1;
    assert_true(mu__wire_is_accepted(contract->peers[1].says_on));
}

/* ---- The suite ---- */

LISTED_TEST(contract_test_frames_arrive_whole)
{
    static const uint32_t sizes[] = {
        0,
        1,
        3,
        4,
        5,
        16,
        64,
        1000,
        1024,
        65536,
        100001,
        CONTRACT_BIG_BYTES,
        MU__FRAME_BYTES_MAX - 64,
    };
    struct contract *contract = *state;

    contract_connect(contract);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        contract->peers[1].frames = 0;
        contract_send_one(contract, sizes[i]);
        contract_run_until(contract, contract_has_one);
        assert_int_equal(contract->peers[1].last_size, sizes[i]);
    }
}

LISTED_TEST(contract_test_the_largest_frame)
{
    struct contract *contract = *state;
    struct mu__wire *wire = contract->peers[0].wire;
    struct mu__buf *frame = wire->ops->buffer(wire, MU__FRAME_BYTES_MAX);

    assert_non_null(frame);
    contract_connect(contract);
    contract_fill(frame, MU__FRAME_BYTES_MAX, 0);
    contract_send_surely(contract, frame);
    contract_run_until(contract, contract_has_one);
    assert_int_equal(contract->peers[1].last_size, MU__FRAME_BYTES_MAX);
}

LISTED_TEST(contract_test_order)
{
    struct contract *contract = *state;

    contract_connect(contract);
    for (uint32_t i = 0; i < CONTRACT_MANY; i++) {
        struct mu__buf *frame = contract_buffer(contract, 8 + i % 100);

        contract_fill(frame, 8 + i % 100, i);
        contract_send_surely(contract, frame);
    }
    contract_run_until(contract, contract_has_many);
    assert_int_equal(contract->peers[1].next_sequence, CONTRACT_MANY);
    assert_int_equal(contract->peers[0].downs, 0);
}

LISTED_TEST(contract_test_pauses_lose_nothing)
{
    struct contract *contract = *state;

    contract->peers[1].pause = true;
    contract_connect(contract);
    for (uint32_t i = 0; i < CONTRACT_MANY; i++) {
        struct mu__buf *frame = contract_buffer(contract, 8);

        contract_fill(frame, 8, i);
        contract_send_surely(contract, frame);
    }
    contract_run_until(contract, contract_has_many);
    contract_run_until(contract, contract_is_told);
    assert_true(contract->peers[1].bursts >= CONTRACT_MANY);
}

LISTED_TEST(contract_test_every_burst_ends)
{
    struct contract *contract = *state;

    contract_connect(contract);
    contract_run_until(contract, contract_is_told);
    assert_true(contract->peers[0].bursts >= 1);
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
    contract_run_until(contract, contract_is_told);
    assert_true(contract->peers[1].bursts >= 1);
}

/* What was accepted goes both ways: so does the order of frames, and their content. */
LISTED_TEST(contract_test_the_way_back)
{
    static const uint32_t sizes[] = {
        0, 1, 5, 64, 1000, 65536, CONTRACT_BIG_BYTES, MU__FRAME_BYTES_MAX - 64};
    struct contract *contract = *state;

    contract_connect(contract);
    contract_turn_round(contract);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        contract->peers[0].frames = 0;
        contract_send_one(contract, sizes[i]);
        contract_run_until(contract, contract_has_one);
        assert_int_equal(contract->peers[0].last_size, sizes[i]);
        assert_int_equal(contract->peers[0].last_in, CONTRACT_DIALLED);
    }
}

LISTED_TEST(contract_test_order_of_the_way_back)
{
    struct contract *contract = *state;

    contract_connect(contract);
    contract_turn_round(contract);
    for (uint32_t i = 0; i < CONTRACT_MANY; i++) {
        struct mu__buf *frame = contract_buffer(contract, 8 + i % 100);

        contract_fill(frame, 8 + i % 100, i);
        contract_send_surely(contract, frame);
    }
    contract_run_until(contract, contract_has_many);
    assert_int_equal(contract->peers[0].next_sequence, CONTRACT_MANY);
    assert_int_equal(contract->peers[0].downs, 0);
    assert_int_equal(contract->peers[1].in_downs, 0);
}

/* The content of a frame that was refused is as it was, and it can be sent later. */
LISTED_TEST(contract_test_send_before_up)
{
    struct contract *contract = *state;
    struct mu__buf *frame = contract_buffer(contract, 100);

    contract_fill(frame, 100, 0);
    assert_int_equal(contract_send(contract, frame), -MU_EUNAVAILABLE);
    assert_int_equal(contract_dial(contract), 0);
    assert_int_equal(contract_send(contract, frame), -MU_EUNAVAILABLE);
    assert_int_equal(frame->size, 100);
    contract_run_until(contract, contract_is_up);
    contract_send_surely(contract, frame);
    contract_run_until(contract, contract_has_one);
    assert_int_equal(contract->peers[1].last_size, 100);
}

/* A wire that is full says so, keeps its hands off the frame, and tells when to go on. */
static void contract_fill_up(struct contract *contract)
{
    struct contract_peer *hearer = &contract->peers[1 - contract->speaker];
    struct mu__buf *frame = NULL;
    uint32_t sent = 0;
    int rv = 0;

    for (; rv == 0 && sent < CONTRACT_BIG_MAX; sent++) {
        frame = contract_buffer(contract, CONTRACT_BIG_BYTES);
        contract_fill(frame, CONTRACT_BIG_BYTES, sent);
        rv = contract_send(contract, frame);
    }
    assert_int_equal(rv, -MU_EAGAIN);
    assert_int_equal(mu__buf_total(frame), CONTRACT_BIG_BYTES);
    assert_int_equal(frame->data[frame->size - 1], frame->data[0]);
    assert_int_equal(contract_send(contract, frame), -MU_EAGAIN);

    contract_run_until(contract, contract_was_writable);
    contract_fill(frame, CONTRACT_BIG_BYTES + 64, sent - 1);
    contract_send_surely(contract, frame);
    contract->sent = sent;
    contract_run_until(contract, contract_has_all);
    assert_int_equal(hearer->frames, sent);
    assert_int_equal(hearer->last_size, CONTRACT_BIG_BYTES + 64);
}

LISTED_TEST(contract_test_full_then_writable)
{
    struct contract *contract = *state;

    contract_connect(contract);
    contract_fill_up(contract);
}

LISTED_TEST(contract_test_the_way_back_is_full)
{
    struct contract *contract = *state;

    contract_connect(contract);
    contract_turn_round(contract);
    contract_fill_up(contract);
}

/* A frame from elsewhere can be sent, and so can one that the sender wants to keep. */
LISTED_TEST(contract_test_frames_of_others)
{
    struct contract *contract = *state;
    struct mu__buf *frame = mu__buf_new(200);

    assert_non_null(frame);
    contract_fill(frame, 150, 0);
    contract_connect(contract);
    contract_send_surely(contract, frame);
    contract_run_until(contract, contract_has_one);
    assert_int_equal(contract->peers[1].last_size, 150);

    frame = contract_buffer(contract, 300);
    contract_fill(frame, 300, 1);
    contract_send_surely(contract, mu__buf_ref(frame));
    assert_int_equal(frame->refs, 1);
    assert_int_equal(frame->size, 300);
    assert_int_equal(frame->data[0], 1);
    mu__buf_unref(frame);
    contract->peers[1].frames = 0;
    contract_run_until(contract, contract_has_one);
    assert_int_equal(contract->peers[1].last_size, 300);
}

/* A received frame that is kept outlives its connection and its wire. */
LISTED_TEST(contract_test_kept_frames_stay)
{
    struct contract *contract = *state;
    struct contract_peer *peer = &contract->peers[1];

    peer->keep = true;
    contract_connect(contract);
    contract_send_one(contract, 5000);
    contract_run_until(contract, contract_has_one);
    contract_close(contract, 0);
    contract_run_until(contract, contract_in_has_ended);
    contract_close(contract, 1);
    assert_int_equal(peer->kept->size, 5000);
    assert_int_equal(peer->kept->data[4999], peer->kept->data[0]);
    assert_int_equal(peer->kept->refs, 1);
}

LISTED_TEST(contract_test_hangup)
{
    struct contract *contract = *state;
    struct mu__wire *wire = contract->peers[0].wire;
    struct mu__buf *frame;

    contract_connect(contract);
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
    wire->ops->hangup(wire, CONTRACT_DIALLED);
    contract_run_until(contract, contract_in_has_ended);
    assert_int_equal(contract->peers[0].downs, 0);

    frame = contract_buffer(contract, 10);
    assert_int_equal(contract_send(contract, frame), -MU_EUNAVAILABLE);
    mu__buf_unref(frame);
    wire->ops->hangup(wire, CONTRACT_DIALLED);
}

/* The number is free again at once, and the connection is a new one for the peer. */
LISTED_TEST(contract_test_dial_again_after_hangup)
{
    struct contract *contract = *state;
    struct mu__wire *wire = contract->peers[0].wire;
    uint32_t first_in;

    contract_connect(contract);
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
    first_in = contract->peers[1].last_in;
    wire->ops->hangup(wire, CONTRACT_DIALLED);
    contract->peers[0].ups = 0;
    contract_connect(contract);
    contract->peers[1].frames = 0;
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
    assert_int_not_equal(contract->peers[1].last_in, first_in);
}

LISTED_TEST(contract_test_hangup_inside_an_event)
{
    struct contract *contract = *state;

    contract->peers[0].hangup_when_up = true;
    contract_connect(contract);
    contract_run_until(contract, contract_in_has_ended);
    assert_int_equal(contract->peers[0].ups, 1);
    assert_int_equal(contract->peers[0].downs, 0);
}

LISTED_TEST(contract_test_dial_is_refused)
{
    static const char *const bad[] = {"", "tcp://", "no url", "127.0.0.1:80", "x://y:1"};
    struct contract *contract = *state;
    struct mu__wire *wire = contract->peers[0].wire;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true(wire->ops->dial(wire, CONTRACT_DIALLED, bad[i]) < 0);
    contract_connect(contract);
    assert_true(contract_dial(contract) < 0);
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
}

LISTED_TEST(contract_test_peer_lost_and_back)
{
    struct contract *contract = *state;
    struct mu__buf *frame;

    contract_connect(contract);
    contract_close(contract, 1);
    contract_run_until(contract, contract_was_down);
    assert_true(strlen(contract->peers[0].reason) > 0);
    frame = contract_buffer(contract, 10);
    contract_fill(frame, 10, 0);
    assert_int_equal(contract_send(contract, frame), -MU_EUNAVAILABLE);

    contract_open(contract, 1);
    assert_int_equal(contract_dial(contract), 0);
    contract_run_until(contract, contract_is_up_again);
    contract_send_surely(contract, frame);
    contract_run_until(contract, contract_has_one);
}

/* What was sent to one connection never comes out of the next. */
LISTED_TEST(contract_test_nothing_left_over)
{
    struct contract *contract = *state;

    contract_connect(contract);
    for (unsigned i = 0; i < CONTRACT_BIG_MAX; i++) {
        struct mu__buf *frame = contract_buffer(contract, CONTRACT_BIG_BYTES);

        contract_fill(frame, CONTRACT_BIG_BYTES, 1000000 + i);
        if (contract_send(contract, frame) != 0) {
            mu__buf_unref(frame);
            break;
        }
    }
    contract_close(contract, 1);
    contract_run_until(contract, contract_was_down);
    contract_open(contract, 1);
    assert_int_equal(contract_dial(contract), 0);
    contract_run_until(contract, contract_is_up_again);
    contract->peers[1].next_sequence = 5;
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
    assert_int_equal(contract->peers[1].next_sequence, 6);
}

LISTED_TEST(contract_test_dial_before_listen)
{
    struct contract *contract = *state;

    contract_close(contract, 1);
    assert_int_equal(contract_dial(contract), 0);
    contract_open(contract, 1);
    contract_run_until(contract, contract_is_up);
    assert_int_equal(contract->peers[0].downs, 0);
}

LISTED_TEST(contract_test_redial_inside_an_event)
{
    struct contract *contract = *state;

    contract->peers[0].redial_when_down = true;
    contract_connect(contract);
    contract_close(contract, 1);
    contract_run_until(contract, contract_was_down);
    contract_open(contract, 1);
    contract_run_until(contract, contract_is_up_again);
}

/* Who hangs up hears nothing more of the connection; the other side, which has dialled,
 * sees it break, and comes back with a new one. */
LISTED_TEST(contract_test_hangup_by_the_listener)
{
    struct contract *contract = *state;
    struct mu__wire *receiver = contract->peers[1].wire;

    contract->peers[1].drop_first = true;
    contract->peers[0].redial_when_down = true;
    contract_connect(contract);
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_was_down);
    contract_run_until(contract, contract_is_up_again);

    contract->peers[1].drop_first = false;
    contract->peers[1].frames = 0;
    contract_send_one(contract, 10);
    contract_run_until(contract, contract_has_one);
    receiver->ops->hangup(receiver, MU__WIRE_ACCEPTED | 60);
    receiver->ops->hangup(receiver, 0);
    assert_int_equal(contract->peers[0].downs, 1);
}

/* A peer that sent nothing is told as gone, too. */
LISTED_TEST(contract_test_silent_peer_goes)
{
    struct contract *contract = *state;

    contract_connect(contract);
    contract_close(contract, 0);
    contract_run_until(contract, contract_in_has_ended);
    assert_int_equal(contract->peers[1].frames, 0);
}

#define CONTRACT_TEST(test)                                  \
    {                                                        \
#test, test, contract_setup, contract_teardown, NULL \
    }

static inline int contract_wire_run(const char *name, const struct contract_wire *fixture)
{
    struct CMUnitTest tests[] = {
        CONTRACT_TEST(contract_test_frames_arrive_whole),
        CONTRACT_TEST(contract_test_the_largest_frame),
        CONTRACT_TEST(contract_test_order),
        CONTRACT_TEST(contract_test_pauses_lose_nothing),
        CONTRACT_TEST(contract_test_every_burst_ends),
        CONTRACT_TEST(contract_test_send_before_up),
        CONTRACT_TEST(contract_test_full_then_writable),
        CONTRACT_TEST(contract_test_the_way_back),
        CONTRACT_TEST(contract_test_order_of_the_way_back),
        CONTRACT_TEST(contract_test_the_way_back_is_full),
        CONTRACT_TEST(contract_test_frames_of_others),
        CONTRACT_TEST(contract_test_kept_frames_stay),
        CONTRACT_TEST(contract_test_hangup),
        CONTRACT_TEST(contract_test_dial_again_after_hangup),
        CONTRACT_TEST(contract_test_hangup_inside_an_event),
        CONTRACT_TEST(contract_test_dial_is_refused),
        CONTRACT_TEST(contract_test_peer_lost_and_back),
        CONTRACT_TEST(contract_test_nothing_left_over),
        CONTRACT_TEST(contract_test_dial_before_listen),
        CONTRACT_TEST(contract_test_redial_inside_an_event),
        CONTRACT_TEST(contract_test_hangup_by_the_listener),
        CONTRACT_TEST(contract_test_silent_peer_goes),
    };

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tests[i].initial_state = (void *)(uintptr_t)fixture;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

#undef CONTRACT_TEST

#endif
