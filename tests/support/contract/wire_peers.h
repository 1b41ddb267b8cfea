/* The two peers of the contract of wires: what they note, how they are set up, and what
 * is waited for. For wire.h alone. */
#ifndef MU_TESTS_CONTRACT_WIRE_PEERS_H
#define MU_TESTS_CONTRACT_WIRE_PEERS_H

#include "muster/error.h"
#include "transport/wire/wire.h"

#include <stdlib.h>
#include <string.h>

struct contract_wire {
    /* A place where wires 0 and 1 can be. Never NULL. */
    void *(*setup)(void);
    void (*teardown)(void *place);

    /* Open wire `which`. The second time it listens where it did the first time. */
    struct mu__wire *(*open)(void *place, unsigned which,
                             const struct mu__wire_events *events, void *owner);

    /* Close it, as when its process ends. No event of it follows. */
    void (*close)(void *place, unsigned which);

    /* Where wire `which` listens, or did before it was closed. */
    const char *(*url)(void *place, unsigned which);

    /* Let things happen until done(arg): true. False after a time in which all that the
     * suite waits for should have happened. */
    bool (*run)(void *place, bool (*done)(void *arg), void *arg);
};

enum {
    CONTRACT_DIALLED = 7, /* the number that peer 0 dials peer 1 with */
    CONTRACT_MANY = 2000, /* frames in the test of order */
    CONTRACT_BIG_BYTES = 1 << 20,
    CONTRACT_BIG_MAX = 256,   /* big frames after which a wire must have pushed back */
    CONTRACT_INS_MAX = 64,    /* connections that peer 1 accepts */
    CONTRACT_HELLO_BYTES = 13 /* of the frame by which peer 0 proves itself */
};

struct contract_peer {
    struct contract *contract;
    struct mu__wire *wire;
    unsigned ups;
    unsigned downs;
    unsigned writables;
    unsigned in_downs; /* of accepted connections */
    unsigned bursts;
    bool news; /* something was told since the last burst_end */
    unsigned frames;
    uint32_t last_size;
    uint32_t last_in;       /* where the last frame came from */
    uint32_t says_on;       /* what it sends on: the last that it has accepted, or
                               CONTRACT_DIALLED */
    uint32_t next_sequence; /* that a numbered frame must have */
    bool ended[CONTRACT_INS_MAX];
    struct mu__buf *kept; /* a reference to the last frame, when `keep` */
    bool keep;
    bool pause;      /* answer every frame with a wish for a pause */
    bool drop_first; /* drop the connection of the first frame */
    bool hangup_when_up;
    bool redial_when_down;
    char reason[80];
};

struct contract {
    const struct contract_wire *fixture;
    void *place;
    struct contract_peer peers[2];
    bool (*wanted)(struct contract *contract);
    uint32_t sent;    /* numbered frames, for contract_has_all */
    bool wants_hello; /* the wire of peer 1, which listens, does */
    unsigned speaker; /* the peer that sends */
};

/* ---- What the peers note ---- */

static const uint8_t contract_hello[CONTRACT_HELLO_BYTES] = "hello, I am 0";

/* As the links do: the first frame of a connection makes it a member's. */
static void contract_prove(struct contract_peer *peer, uint32_t connection)
{
    struct mu__wire *wire = peer->wire;
    struct mu__buf *frame;

    if (!peer->contract->wants_hello)
        return;
    frame = wire->ops->buffer(wire, CONTRACT_HELLO_BYTES);
    assert_non_null(frame);
    memcpy(frame->data, contract_hello, CONTRACT_HELLO_BYTES);
    frame->size = CONTRACT_HELLO_BYTES;
    assert_int_equal(wire->ops->send(wire, connection, frame), 0);
}

static bool contract_is_hello(const struct contract_peer *peer,
                              const struct mu__buf *frame)
{
    return peer->contract->wants_hello && frame->size == CONTRACT_HELLO_BYTES &&
           memcmp(frame->data, contract_hello, CONTRACT_HELLO_BYTES) == 0;
}

static int contract_dial(struct contract *contract)
{
    struct mu__wire *wire = contract->peers[0].wire;

    return wire->ops->dial(wire, CONTRACT_DIALLED,
                           contract->fixture->url(contract->place, 1));
}

static void contract_up(void *owner, uint32_t connection)
{
    struct contract_peer *peer = owner;

    assert_int_equal(connection, CONTRACT_DIALLED);
    assert_int_equal(peer->ups, peer->downs);
    peer->ups++;
    peer->news = true;
    if (peer->hangup_when_up) {
        peer->wire->ops->hangup(peer->wire, connection);
        return;
    }
    if (peer->wire->ops->member != NULL)
        peer->wire->ops->member(peer->wire, connection);
    contract_prove(peer, connection);
}

static void contract_in_down(struct contract_peer *peer, uint32_t in)
{
    assert_true(in < CONTRACT_INS_MAX);
    assert_false(peer->ended[in]);
    peer->ended[in] = true;
    peer->in_downs++;
}

static void contract_down(void *owner, uint32_t connection, const char *reason)
{
    struct contract_peer *peer = owner;

    assert_non_null(reason);
    peer->news = true;
    if (mu__wire_is_accepted(connection)) {
        contract_in_down(peer, connection & ~MU__WIRE_ACCEPTED);
        return;
    }
    assert_int_equal(connection, CONTRACT_DIALLED);
    assert_int_equal(peer->ups, peer->downs + 1);
    peer->downs++;
    strncpy(peer->reason, reason, sizeof peer->reason - 1);
    if (peer->redial_when_down)
        assert_int_equal(contract_dial(peer->contract), 0);
}

static void contract_writable(void *owner, uint32_t connection)
{
    struct contract_peer *peer = owner;

    assert_int_equal(connection, peer->says_on);
    peer->writables++;
    peer->news = true;
}

static void contract_note(struct contract_peer *peer, uint32_t connection,
                          struct mu__buf *frame)
{
    uint32_t sequence;

    peer->frames++;
    peer->news = true;
    peer->last_size = frame->size;
    peer->last_in = connection;
    if (frame->size >= sizeof sequence) {
        memcpy(&sequence, frame->data, sizeof sequence);
        assert_int_equal(sequence, peer->next_sequence);
        peer->next_sequence++;
        assert_int_equal(frame->data[frame->size - 1], frame->data[0]);
    }
    if (peer->keep) {
        mu__buf_unref(peer->kept);
        peer->kept = mu__buf_ref(frame);
    }
}

static bool contract_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    struct contract_peer *peer = owner;
    uint32_t in = connection & ~MU__WIRE_ACCEPTED;

    assert_true(in < CONTRACT_INS_MAX);
    assert_false(peer->ended[in]);
    assert_int_equal((uintptr_t)frame->data % 16, 0);
    assert_true(frame->size <= frame->capacity);
    if (mu__wire_is_accepted(connection))
        peer->says_on = connection;
    if (contract_is_hello(peer, frame)) {
        peer->wire->ops->member(peer->wire, connection);
        return true;
    }
    contract_note(peer, connection, frame);
    if (peer->drop_first && peer->frames == 1) {
        peer->ended[in] = true;
        peer->wire->ops->hangup(peer->wire, connection);
    }
    return !peer->pause;
}

static void contract_burst_end(void *owner)
{
    struct contract_peer *peer = owner;

    peer->bursts++;
    peer->news = false;
}

static const struct mu__wire_events contract_events = {
    .up = contract_up,
    .down = contract_down,
    .writable = contract_writable,
    .frame = contract_frame,
    .burst_end = contract_burst_end,
};

/* ---- Set-up ---- */

static void contract_open(struct contract *contract, unsigned which)
{
    struct contract_peer *peer = &contract->peers[which];

    peer->contract = contract;
    if (which == 0)
        peer->says_on = CONTRACT_DIALLED;
    peer->wire = contract->fixture->open(contract->place, which, &contract_events, peer);
    assert_non_null(peer->wire);
    if (which == 1)
        contract->wants_hello = peer->wire->ops->member != NULL;
}

static void contract_close(struct contract *contract, unsigned which)
{
    contract->peers[which].wire = NULL;
    contract->fixture->close(contract->place, which);
}

static int contract_setup(void **state)
{
    struct contract *contract = calloc(1, sizeof *contract);

    assert_non_null(contract);
    contract->fixture = *state;
    contract->place = contract->fixture->setup();
    *state = contract;
    contract_open(contract, 0);
    contract_open(contract, 1);
    return 0;
}

static int contract_teardown(void **state)
{
    struct contract *contract = *state;

    for (unsigned i = 0; i < 2; i++) {
        if (contract->peers[i].wire != NULL)
            contract_close(contract, i);
        mu__buf_unref(contract->peers[i].kept);
    }
    contract->fixture->teardown(contract->place);
    free(contract);
    return 0;
}

static bool contract_is_wanted(void *arg)
{
    struct contract *contract = arg;

    return contract->wanted(contract);
}

static void contract_run_until(struct contract *contract,
                               bool (*wanted)(struct contract *contract))
{
    contract->wanted = wanted;
    assert_true(contract->fixture->run(contract->place, contract_is_wanted, contract));
}

/* ---- What is waited for ---- */

static bool contract_is_up(struct contract *contract)
{
    return contract->peers[0].ups > contract->peers[0].downs;
}

static bool contract_was_down(struct contract *contract)
{
    return contract->peers[0].downs > 0;
}

static bool contract_is_up_again(struct contract *contract)
{
    return contract->peers[0].ups >= 2 &&
           contract->peers[0].ups > contract->peers[0].downs;
}

/* Of the peer that hears. */
static bool contract_has_one(struct contract *contract)
{
    return contract->peers[1 - contract->speaker].frames == 1;
}

static bool contract_has_many(struct contract *contract)
{
    return contract->peers[1 - contract->speaker].frames == CONTRACT_MANY;
}

static bool contract_has_all(struct contract *contract)
{
    return contract->peers[1 - contract->speaker].next_sequence == contract->sent;
}

static bool contract_in_has_ended(struct contract *contract)
{
    return contract->peers[1].in_downs >= 1;
}

static bool contract_was_writable(struct contract *contract)
{
    return contract->peers[contract->speaker].writables > 0;
}

static bool contract_is_told(struct contract *contract)
{
    return !contract->peers[0].news && !contract->peers[1].news;
}

#endif
