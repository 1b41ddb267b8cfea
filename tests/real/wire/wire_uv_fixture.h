/* The real wire: the contract over tcp and ipc, and what only sockets can do wrong. */
#ifndef MU_TESTS_REAL_WIRE_WIRE_UV_FIXTURE_H
#define MU_TESTS_REAL_WIRE_WIRE_UV_FIXTURE_H

#include "tests/support/test.h"

#include "transport/wire/tls/tls_identity.h"
#include "transport/wire/uv/streams.h"

#include "tests/support/contract/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WAIT_MS = 20000, /* after which a test fails: far more than anything takes */
    MANY_CONNECTIONS = 200,
    ADDRESS_MAX = 200
};

/* ---- A place: a loop and the wires on it ---- */

struct place {
    uv_loop_t loop;
    uv_timer_t limit;
    bool late;
    struct mu__wire_uv *wires[2];
    unsigned open;
    char urls[2][ADDRESS_MAX];
    char directory[64];                     /* "" for tcp */
    struct mu__tls_identity *identities[2]; /* of the wires; NULL: plain */
    struct mu__tls_source sources[2];
};

static inline struct mu__tls_identity *identity_now(void *owner)
{
    return *(struct mu__tls_identity **)owner;
}

static inline void on_limit(uv_timer_t *timer)
{
    struct place *place = timer->data;

    place->late = true;
}

static inline void set_url(struct place *place, unsigned which, const char *url)
{
    (void)snprintf(place->urls[which], ADDRESS_MAX, "%s", url);
}

static inline struct place *place_new(bool is_ipc)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    assert_int_equal(uv_loop_init(&place->loop), 0);
    assert_int_equal(uv_timer_init(&place->loop, &place->limit), 0);
    place->limit.data = place;
    if (!is_ipc) {
        set_url(place, 0, "tcp://127.0.0.1:0");
        set_url(place, 1, "tcp://127.0.0.1:0");
        return place;
    }
    (void)snprintf(place->directory, sizeof place->directory, "/tmp/muster-wire-XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    for (unsigned i = 0; i < 2; i++)
        (void)snprintf(place->urls[i], ADDRESS_MAX, "ipc://%s/%u", place->directory, i);
    return place;
}

static inline void *tcp_setup(void)
{
    return place_new(false);
}

static inline void *ipc_setup(void)
{
    return place_new(true);
}

/* Run the loop until done(arg), or for WAIT_MS. */
static inline bool place_run(void *arg, bool (*done)(void *arg), void *done_arg)
{
    struct place *place = arg;

    place->late = false;
    (void)uv_timer_start(&place->limit, on_limit, WAIT_MS, 0);
    while (!done(done_arg) && !place->late)
        (void)uv_run(&place->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&place->limit);
    return done(done_arg);
}

static inline struct mu__wire *place_open(
    void *arg, unsigned which, const struct mu__wire_events *events, void *owner)
{
    struct place *place = arg;
    mu_error error;
    int rv = mu__wire_uv_open(&place->loop, place->urls[which], events, owner, &error,
                              &place->wires[which]);

    if (rv != 0)
        fail_msg("%s", error.message);
    place->sources[which] =
        (struct mu__tls_source){identity_now, &place->identities[which]};
    if (place->identities[which] != NULL)
        mu__wire_uv_secure(place->wires[which], &place->sources[which]);
    place->open++;
    set_url(place, which, mu__wire_uv_url(place->wires[which]));
    return mu__wire_uv_wire(place->wires[which]);
}

static inline void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static inline bool is_set(void *arg)
{
    return *(bool *)arg;
}

static inline void place_close(void *arg, unsigned which)
{
    struct place *place = arg;
    bool closed = false;

    mu__wire_uv_close(place->wires[which], on_closed, &closed);
    assert_true(place_run(place, is_set, &closed));
    place->open--;
}

static inline const char *place_url(void *arg, unsigned which)
{
    return ((struct place *)arg)->urls[which];
}

static inline void place_free(void *arg)
{
    struct place *place = arg;

    assert_int_equal(place->open, 0);
    uv_close((uv_handle_t *)&place->limit, NULL);
    (void)uv_run(&place->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&place->loop), 0);
    if (place->directory[0] != '\0') {
        for (unsigned i = 0; i < 2; i++)
            (void)unlink(place->urls[i] + strlen("ipc://"));
        assert_int_equal(rmdir(place->directory), 0);
    }
    free(place);
}

static const struct contract_wire tcp_fixture = {
    tcp_setup, place_free, place_open, place_close, place_url, place_run,
};

static const struct contract_wire ipc_fixture = {
    ipc_setup, place_free, place_open, place_close, place_url, place_run,
};

/* ---- A counting listener for the tests below ---- */

struct counts {
    struct mu__wire *wire;
    bool greets; /* sends a frame on each connection */
    bool drops;  /* drops each connection that sends a frame */
    unsigned ups;
    unsigned downs;
    unsigned frames;
    unsigned in_downs;
    unsigned wanted_frames;
    unsigned wanted_in_downs;
};

static inline void count_up(void *owner, uint32_t connection)
{
    struct counts *counts = owner;
    struct mu__buf *frame;

    counts->ups++;
    if (!counts->greets)
        return;
    frame = counts->wire->ops->buffer(counts->wire, 8);
    assert_non_null(frame);
    assert_int_equal(counts->wire->ops->send(counts->wire, connection, frame), 0);
}

static inline void count_down(void *owner, uint32_t connection, const char *reason)
{
    struct counts *counts = owner;

    (void)reason;
    if (mu__wire_is_accepted(connection))
        counts->in_downs++;
    else
        counts->downs++;
}

static inline void count_writable(void *owner, uint32_t connection)
{
    (void)owner;
    (void)connection;
}

static inline bool count_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    struct counts *counts = owner;

    (void)frame;
    counts->frames++;
    counts->wire->ops->member(counts->wire, connection);
    if (counts->drops)
        counts->wire->ops->hangup(counts->wire, connection);
    return true;
}

static inline void count_burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events count_events = {
    count_up, count_down, count_writable, count_frame, count_burst_end, NULL, NULL,
};

static inline bool has_frames(void *arg)
{
    struct counts *counts = arg;

    return counts->frames >= counts->wanted_frames;
}

static inline bool is_up(void *arg)
{
    struct counts *counts = arg;

    return counts->ups > counts->downs;
}

struct listener {
    struct place *place;
    struct counts counts[2];
};

static inline int listener_setup(void **state)
{
    struct listener *listener = calloc(1, sizeof *listener);

    assert_non_null(listener);
    listener->place = place_new(false);
    for (unsigned i = 0; i < 2; i++)
        listener->counts[i].wire =
            place_open(listener->place, i, &count_events, &listener->counts[i]);
    *state = listener;
    return 0;
}

static inline int listener_teardown(void **state)
{
    struct listener *listener = *state;

    place_close(listener->place, 0);
    place_close(listener->place, 1);
    place_free(listener->place);
    free(listener);
    return 0;
}

static inline void run_until(struct listener *listener, bool (*done)(void *arg),
                             unsigned which)
{
    assert_true(place_run(listener->place, done, &listener->counts[which]));
}

/* Wire 0 dials wire 1 and one frame gets through. */
static inline void assert_others_go_on(struct listener *listener)
{
    struct counts *sender = &listener->counts[0];
    struct counts *receiver = &listener->counts[1];
    struct mu__buf *frame;

    if (sender->ups == 0)
        assert_int_equal(
            sender->wire->ops->dial(sender->wire, 1, place_url(listener->place, 1)), 0);
    run_until(listener, is_up, 0);
    frame = sender->wire->ops->buffer(sender->wire, 8);
    assert_non_null(frame);
    frame->size = 8;
    receiver->wanted_frames = receiver->frames + 1;
    assert_int_equal(sender->wire->ops->send(sender->wire, 1, frame), 0);
    run_until(listener, has_frames, 1);
}

#define WITH_LISTENER(test) \
    cmocka_unit_test_setup_teardown(test, listener_setup, listener_teardown)

#endif
