/* The wire speaks the SP protocol: real nng sockets at the other end understand it, and
 * are understood, over tcp and over unix sockets. */
#include "transport/wire/uv/streams.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

enum { OUT = 3, COUNT = 100, SOON_MS = 20000, SIZE_STEP = 1777 };

struct place {
    uv_loop_t loop;
    uv_timer_t step;            /* nng works on threads of its own: look again */
    struct mu__wire_uv *wire;
    char folder[64];
    char own[96];               /* where the wire listens */
    char peers[96];             /* where the nng socket does */
    unsigned ups;
    unsigned downs;
    unsigned frames;
    bool closed;
};

/* ---- what the wire tells ---- */

static void on_out_up(void *owner, uint32_t out)
{
    struct place *place = owner;

    assert_int_equal(out, OUT);
    place->ups++;
}

static void on_out_down(void *owner, uint32_t out, const char *reason)
{
    struct place *place = owner;

    (void)reason;
    assert_int_equal(out, OUT);
    place->downs++;
}

static void on_writable(void *owner, uint32_t out)
{
    (void)owner;
    (void)out;
}

static void check_content(const uint8_t *data, size_t size, unsigned number)
{
    assert_int_equal(size, (size_t)number * SIZE_STEP);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(data[i], (uint8_t)(number + i));
}

static bool on_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    struct place *place = owner;

    mu__wire_uv_wire(place->wire)->ops->member(mu__wire_uv_wire(place->wire), in);
    check_content(frame->data, frame->size, place->frames);
    place->frames++;
    return true;
}

static void on_in_down(void *owner, uint32_t in, const char *reason)
{
    struct place *place = owner;

    (void)in;
    (void)reason;
    place->downs++;
}

static void on_burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events events = {
    .out_up = on_out_up,
    .out_down = on_out_down,
    .writable = on_writable,
    .frame = on_frame,
    .in_down = on_in_down,
    .burst_end = on_burst_end,
};

/* ---- a place with a wire ---- */

static void on_step(uv_timer_t *timer)
{
    (void)timer;
}

static void run_until(struct place *place, bool (*done)(struct place *place))
{
    uint64_t end_ms = uv_hrtime() / 1000000 + SOON_MS;

    while (!done(place) && uv_hrtime() / 1000000 < end_ms)
        (void)uv_run(&place->loop, UV_RUN_ONCE);
    assert_true(done(place));
}

static void open_place(struct place *place, bool ipc)
{
    mu_error error = {0};

    memset(place, 0, sizeof *place);
    (void)snprintf(place->folder, sizeof place->folder, "/tmp/muster-sp-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    assert_int_equal(uv_loop_init(&place->loop), 0);
    (void)uv_timer_init(&place->loop, &place->step);
    (void)uv_timer_start(&place->step, on_step, 1, 1);
    (void)snprintf(place->own, sizeof place->own,
                   ipc ? "ipc://%s/own" : "tcp://127.0.0.1:0", place->folder);
    if (mu__wire_uv_open(&place->loop, place->own, &events, place, &error, &place->wire))
        fail_msg("%s", error.message);
    (void)snprintf(place->own, sizeof place->own, "%s", mu__wire_uv_url(place->wire));
}

static void on_closed(void *arg)
{
    ((struct place *)arg)->closed = true;
}

static bool is_closed(struct place *place)
{
    return place->closed;
}

static void close_place(struct place *place)
{
    char path[96];

    mu__wire_uv_close(place->wire, on_closed, place);
    run_until(place, is_closed);
    uv_close((uv_handle_t *)&place->step, NULL);
    (void)uv_run(&place->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&place->loop), 0);
    (void)snprintf(path, sizeof path, "%s/peer", place->folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/own", place->folder);
    (void)unlink(path);
    (void)rmdir(place->folder);
}

/* ---- nng pushes, the wire listens ---- */

static bool has_all(struct place *place)
{
    return place->frames == COUNT;
}

static bool has_lost_it(struct place *place)
{
    return place->downs == 1;
}

/* The sockets are left to the end of the process: nng_close is what does not always come
 * back (docs/decisions/0006). A pipe is closed for the wire to see the end of it. */
static nng_socket pusher;
static unsigned pushed;

static nng_pipe last_pipe;

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    (void)event;
    (void)arg;
    last_pipe = pipe;
}

/* Give nng what it takes now; done when all has come back out of the wire. */
static bool has_pushed_all(struct place *place)
{
    while (pushed < COUNT) {
        size_t size = (size_t)pushed * SIZE_STEP;
        uint8_t *data = malloc(size + 1);
        int rv;

        assert_non_null(data);
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)(pushed + i);
        rv = nng_send(pusher, data, size, NNG_FLAG_NONBLOCK);
        free(data);
        if (rv != 0) {
            assert_int_equal(rv, NNG_EAGAIN);
            return false;
        }
        pushed++;
    }
    return has_all(place);
}

static void check_nng_pushes(bool ipc)
{
    struct place place;

    pushed = 0;
    open_place(&place, ipc);
    assert_int_equal(nng_push0_open(&pusher), 0);
    assert_int_equal(nng_pipe_notify(pusher, NNG_PIPE_EV_ADD_POST, on_pipe, NULL), 0);
    assert_int_equal(nng_dial(pusher, place.own, NULL, NNG_FLAG_NONBLOCK), 0);
    run_until(&place, has_pushed_all);
    assert_int_equal(nng_pipe_close(last_pipe), 0);
    run_until(&place, has_lost_it);
    close_place(&place);
}

static void test_nng_pushes_over_tcp(void **state)
{
    (void)state;
    check_nng_pushes(false);
}

static void test_nng_pushes_over_ipc(void **state)
{
    (void)state;
    check_nng_pushes(true);
}

/* ---- the wire pushes, nng listens ---- */

static nng_socket puller;
static unsigned sent;
static unsigned pulled;

static void send_more(struct place *place)
{
    struct mu__wire *door = mu__wire_uv_wire(place->wire);

    while (sent < COUNT) {
        size_t size = (size_t)sent * SIZE_STEP;
        struct mu__buf *frame = door->ops->buffer(door, size);

        assert_non_null(frame);
        for (size_t i = 0; i < size; i++)
            frame->data[i] = (uint8_t)(sent + i);
        frame->size = (uint32_t)size;
        if (door->ops->send(door, OUT, frame) != 0) {
            mu__buf_unref(frame);
            return;
        }
        sent++;
    }
}

static bool has_pulled_all(struct place *place)
{
    void *data;
    size_t size;

    send_more(place);
    while (nng_recv(puller, &data, &size, NNG_FLAG_NONBLOCK | NNG_FLAG_ALLOC) == 0) {
        check_content(data, size, pulled);
        nng_free(data, size);
        pulled++;
    }
    return pulled == COUNT;
}

static void listen_at_port(struct place *place)
{
    nng_listener listener;
    nng_sockaddr address;

    assert_int_equal(nng_listen(puller, "tcp://127.0.0.1:0", &listener, 0), 0);
    assert_int_equal(nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address), 0);
    (void)snprintf(place->peers, sizeof place->peers, "tcp://127.0.0.1:%u",
                   (unsigned)((address.s_in.sa_port & 0xff) << 8 |
                              address.s_in.sa_port >> 8));
}

static void check_wire_pushes(bool ipc)
{
    struct place place;
    struct mu__wire *door;

    sent = 0;
    pulled = 0;
    open_place(&place, ipc);
    door = mu__wire_uv_wire(place.wire);
    assert_int_equal(nng_pull0_open(&puller), 0);
    if (ipc) {
        (void)snprintf(place.peers, sizeof place.peers, "ipc://%s/peer", place.folder);
        assert_int_equal(nng_listen(puller, place.peers, NULL, 0), 0);
    } else {
        listen_at_port(&place);
    }
    assert_int_equal(door->ops->dial(door, OUT, place.peers), 0);
    run_until(&place, has_pulled_all);
    assert_int_equal(place.ups, 1);
    assert_int_equal(place.downs, 0);
    close_place(&place);
}

static void test_wire_pushes_over_tcp(void **state)
{
    (void)state;
    check_wire_pushes(false);
}

static void test_wire_pushes_over_ipc(void **state)
{
    (void)state;
    check_wire_pushes(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nng_pushes_over_tcp),
        cmocka_unit_test(test_nng_pushes_over_ipc),
        cmocka_unit_test(test_wire_pushes_over_tcp),
        cmocka_unit_test(test_wire_pushes_over_ipc),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
