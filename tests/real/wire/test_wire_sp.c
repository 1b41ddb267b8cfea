/* The wire speaks the SP protocol: real nng sockets at the other end understand it, and
 * are understood, over tcp and over unix sockets. */
#include "tests/support/test.h"
#include "transport/wire/sp.h"
#include "transport/wire/uv/streams.h"

#include <signal.h>
#include <unistd.h>

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>

enum { OUT = 3, COUNT = 100, SOON_MS = 20000, SIZE_STEP = 1777 };

struct place {
    uv_loop_t loop;
    uv_timer_t step; /* nng works on threads of its own: look again */
    struct mu__wire_uv *wire;
    char folder[64];
    char own[96];   /* where the wire listens */
    char peers[96]; /* where the nng socket does */
    unsigned ups;
    unsigned downs;
    unsigned frames;
    uint32_t speaks_on;
    bool closed;
};

/* ---- what the wire tells ---- */

static void on_up(void *owner, uint32_t connection)
{
    struct place *place = owner;

    assert_int_equal(connection, OUT);
    place->ups++;
    mu__wire_uv_wire(place->wire)->ops->member(mu__wire_uv_wire(place->wire), OUT);
}

static void on_down(void *owner, uint32_t connection, const char *reason)
{
    struct place *place = owner;

    (void)connection;
    (void)reason;
    place->downs++;
}

static void on_writable(void *owner, uint32_t connection)
{
    (void)owner;
    (void)connection;
}

static void check_content(const uint8_t *data, size_t size, unsigned number)
{
    assert_int_equal(size, (size_t)number * SIZE_STEP);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(data[i], (uint8_t)(number + i));
}

static bool on_frame(void *owner, uint32_t connection, struct mu__buf *frame)
{
    struct place *place = owner;
    struct mu__wire *door = mu__wire_uv_wire(place->wire);

    door->ops->member(door, connection);
    place->speaks_on = connection;
    check_content(frame->data, frame->size, place->frames);
    place->frames++;
    return true;
}

static void on_burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events events = {
    .up = on_up,
    .down = on_down,
    .writable = on_writable,
    .frame = on_frame,
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

/* ---- messages of nng's ---- */

/* The sockets are left to the end of the process: nng_close is what does not always come
 * back (docs/decisions/0006). A pipe is closed for the wire to see the end of it. */
static nng_socket socket_of_nng;
static nng_pipe last_pipe;
static unsigned said;
static unsigned heard;

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    (void)event;
    (void)arg;
    last_pipe = pipe;
}

static void watch(void)
{
    assert_int_equal(nng_pipe_notify(socket_of_nng, NNG_PIPE_EV_ADD_POST, on_pipe, NULL),
                     0);
    assert_int_equal(nng_socket_set_size(socket_of_nng, NNG_OPT_RECVMAXSZ, 1 << 20), 0);
}

/* Give nng what it takes now. `accepts`: it has to be told which connection is meant. */
static void say_more(bool accepts)
{
    const struct mu__sp_preface preface = {.frames = heard};

    while (said < COUNT) {
        size_t size = (size_t)said * SIZE_STEP;
        nng_msg *message;
        uint8_t *data;

        assert_int_equal(nng_msg_alloc(&message, MU__SP_PREFACE_BYTES + size), 0);
        data = nng_msg_body(message);
        mu__sp_write(data, &preface);
        for (size_t i = 0; i < size; i++)
            data[MU__SP_PREFACE_BYTES + i] = (uint8_t)(said + i);
        if (accepts)
            assert_int_equal(
                nng_msg_header_append_u32(message, (uint32_t)nng_pipe_id(last_pipe)), 0);
        if (nng_sendmsg(socket_of_nng, message, NNG_FLAG_NONBLOCK) != 0) {
            nng_msg_free(message);
            return;
        }
        said++;
        if (accepts && said % 32 == 0)
            return; /* it throws away what is more than 64 */
    }
}

/* What has come: nng has taken four bytes of the preface. */
static void hear_more(void)
{
    enum { LEFT = MU__SP_PREFACE_BYTES - 4 };
    nng_msg *message;

    while (nng_recvmsg(socket_of_nng, &message, NNG_FLAG_NONBLOCK) == 0) {
        assert_true(nng_msg_len(message) >= LEFT);
        check_content((uint8_t *)nng_msg_body(message) + LEFT,
                      nng_msg_len(message) - LEFT, heard);
        heard++;
        nng_msg_free(message);
    }
}

static unsigned sent;

static void send_more(struct place *place)
{
    struct mu__wire *door = mu__wire_uv_wire(place->wire);

    while (sent < COUNT && place->speaks_on != 0) {
        size_t size = (size_t)sent * SIZE_STEP;
        struct mu__buf *frame = door->ops->buffer(door, size);

        assert_non_null(frame);
        for (size_t i = 0; i < size; i++)
            frame->data[i] = (uint8_t)(sent + i);
        frame->size = (uint32_t)size;
        if (door->ops->send(door, place->speaks_on, frame) != 0) {
            mu__buf_unref(frame);
            return;
        }
        sent++;
    }
}

static bool has_all(const struct place *place)
{
    return place->frames == COUNT && heard == COUNT;
}

static bool has_lost_it(struct place *place)
{
    return place->downs == 1;
}

/* ---- nng dials, the wire accepts ---- */

static bool has_talked_as_dialler(struct place *place)
{
    say_more(false);
    send_more(place);
    hear_more();
    return has_all(place);
}

static void check_nng_dials(bool ipc)
{
    struct place place;

    said = heard = sent = 0;
    open_place(&place, ipc);
    assert_int_equal(nng_req0_open_raw(&socket_of_nng), 0);
    watch();
    assert_int_equal(nng_dial(socket_of_nng, place.own, NULL, NNG_FLAG_NONBLOCK), 0);
    run_until(&place, has_talked_as_dialler);
    assert_int_equal(nng_pipe_close(last_pipe), 0);
    run_until(&place, has_lost_it);
    close_place(&place);
}

TEST(test_nng_dials_over_tcp)
{
    check_nng_dials(false);
}

TEST(test_nng_dials_over_ipc)
{
    check_nng_dials(true);
}

/* ---- the wire dials, nng accepts ---- */

static bool has_talked_as_listener(struct place *place)
{
    if (heard > 0 && said - place->frames < 32)
        say_more(true);
    send_more(place);
    hear_more();
    return has_all(place);
}

static void listen_at_port(struct place *place)
{
    nng_listener listener;
    nng_sockaddr address;

    assert_int_equal(nng_listen(socket_of_nng, "tcp://127.0.0.1:0", &listener, 0), 0);
    assert_int_equal(nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address), 0);
    (void)snprintf(place->peers, sizeof place->peers, "tcp://127.0.0.1:%u",
                   (unsigned)((address.s_in.sa_port & 0xff) << 8 |
                              address.s_in.sa_port >> 8));
}

static void check_wire_dials(bool ipc)
{
    struct place place;
    struct mu__wire *door;

    said = heard = sent = 0;
    open_place(&place, ipc);
    door = mu__wire_uv_wire(place.wire);
    assert_int_equal(nng_rep0_open_raw(&socket_of_nng), 0);
    watch();
    if (ipc) {
        (void)snprintf(place.peers, sizeof place.peers, "ipc://%s/peer", place.folder);
        assert_int_equal(nng_listen(socket_of_nng, place.peers, NULL, 0), 0);
    } else {
        listen_at_port(&place);
    }
    place.speaks_on = OUT;
    assert_int_equal(door->ops->dial(door, OUT, place.peers), 0);
    run_until(&place, has_talked_as_listener);
    assert_int_equal(place.ups, 1);
    assert_int_equal(place.downs, 0);
    close_place(&place);
}

TEST(test_wire_dials_over_tcp)
{
    check_wire_dials(false);
}

TEST(test_wire_dials_over_ipc)
{
    check_wire_dials(true);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return tests_run(NULL, NULL);
}
