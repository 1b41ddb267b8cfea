/* The real wire: the contract over tcp and ipc, and what only sockets can do wrong. */
#include "tests/real/wire/wire_uv_fixture.h"

#include "transport/wire/sp.h"

#include <sys/time.h>

/* ---- A counting listener for the tests below ---- */

static bool has_in_downs(void *arg)
{
    struct counts *counts = arg;

    return counts->in_downs >= counts->wanted_in_downs;
}

/* ---- Plain sockets ---- */

/* What every SP connection begins with: who dials is a REQ, 0x30, who accepts a REP. */
static const uint8_t req_hello[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

static const uint8_t rep_hello[8] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};

static int plain_connect(const char *url)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const struct timeval limit = {WAIT_MS / 1000, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    address.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void plain_write(int fd, const void *data, size_t size)
{
    assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Whether the other side has closed; a reset counts. */
static bool plain_has_ended(void *arg)
{
    const int *fd = arg;
    char bytes[64];
    ssize_t n;

    do
        n = recv(*fd, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static void plain_expect_end(struct place *place, int fd)
{
    assert_true(place_run(place, plain_has_ended, &fd));
}

static void big_endian(uint8_t bytes[8], uint64_t number)
{
    for (int i = 7; i >= 0; i--) {
        bytes[i] = (uint8_t)(number & 0xff);
        number >>= 8;
    }
}

/* The begin of a message: its length, and the preface. */
static void plain_head(int fd, uint64_t size)
{
    uint8_t head[8 + MU__SP_PREFACE_BYTES];

    big_endian(head, size + MU__SP_PREFACE_BYTES);
    mu__sp_write(head + 8, &(struct mu__sp_preface){.frames = 0});
    plain_write(fd, head, sizeof head);
}

/* A whole SP message. */
static void plain_frame(int fd, const void *data, size_t size)
{
    plain_head(fd, size);
    if (size > 0)
        plain_write(fd, data, size);
}

/* ---- Bad peers ---- */

LISTED_TEST(test_garbage)
{
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27},
        {"\0SP\1\0\0\0\0", 8},
        {"\0SQ\0\0\x30\0\0", 8},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16},
    };
    struct listener *listener = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = plain_connect(place_url(listener->place, 1));

        plain_write(fd, rows[i].bytes, rows[i].size);
        plain_expect_end(listener->place, fd);
        (void)close(fd);
    }
    assert_others_go_on(listener);
    assert_int_equal(listener->counts[1].frames, 1);
}

/* A REP that connects to a REP is sent away. */
LISTED_TEST(test_wrong_protocol)
{
    struct listener *listener = *state;
    int fd = plain_connect(place_url(listener->place, 1));

    plain_write(fd, rep_hello, sizeof rep_hello);
    plain_expect_end(listener->place, fd);
    (void)close(fd);
    assert_others_go_on(listener);
}

/* One says nothing, one greets and stops, one stops within a frame. */
LISTED_TEST(test_half_open)
{
    struct listener *listener = *state;
    const char *url = place_url(listener->place, 1);
    int mute = plain_connect(url);
    int greeted = plain_connect(url);
    int stopped = plain_connect(url);

    plain_write(greeted, req_hello, sizeof req_hello);
    plain_write(stopped, req_hello, sizeof req_hello);
    plain_head(stopped, 1000);
    plain_write(stopped, "abc", 3);
    assert_others_go_on(listener);

    listener->counts[1].wanted_in_downs = 2;
    (void)close(greeted);
    (void)close(stopped);
    run_until(listener, has_in_downs, 1);
    (void)close(mute);
    assert_others_go_on(listener);
    assert_int_equal(listener->counts[1].frames, 2);
}

/* The frame before an oversized one arrives, the oversized one breaks the connection. */
LISTED_TEST(test_oversized)
{
    static const uint64_t sizes[] = {MU__FRAME_BYTES_MAX + 1, UINT64_C(1) << 34,
                                     INT64_MAX - MU__SP_PREFACE_BYTES,
                                     UINT64_MAX - MU__SP_PREFACE_BYTES};
    struct listener *listener = *state;
    struct counts *counts = &listener->counts[1];

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = plain_connect(place_url(listener->place, 1));

        plain_write(fd, req_hello, sizeof req_hello);
        plain_frame(fd, "first", 5);
        plain_head(fd, sizes[i]);
        counts->wanted_in_downs = i + 1;
        run_until(listener, has_in_downs, 1);
        assert_int_equal(counts->frames, i + 1);
        plain_expect_end(listener->place, fd);
        (void)close(fd);
    }
    assert_others_go_on(listener);
}

LISTED_TEST(test_many_connections)
{
    struct listener *listener = *state;
    struct counts *counts = &listener->counts[1];
    int fds[MANY_CONNECTIONS];

    for (unsigned i = 0; i < MANY_CONNECTIONS; i++) {
        fds[i] = plain_connect(place_url(listener->place, 1));
        plain_write(fds[i], req_hello, sizeof req_hello);
        plain_frame(fds[i], &i, sizeof i);
    }
    counts->wanted_frames = MANY_CONNECTIONS;
    run_until(listener, has_frames, 1);
    assert_others_go_on(listener);

    for (unsigned i = 0; i < MANY_CONNECTIONS; i++)
        (void)close(fds[i]);
    counts->wanted_in_downs = MANY_CONNECTIONS;
    run_until(listener, has_in_downs, 1);
    assert_int_equal(counts->frames, MANY_CONNECTIONS + 1);
    assert_int_equal(counts->in_downs, MANY_CONNECTIONS);
}

/* Closing with connections open and messages waiting leaves nothing behind. */
LISTED_TEST(test_close_in_full_swing)
{
    struct place *place = place_new(false);
    struct counts counts = {.wanted_frames = 1};
    int fds[MANY_CONNECTIONS];

    counts.wire = place_open(place, 0, &count_events, &counts);
    for (unsigned i = 0; i < MANY_CONNECTIONS; i++) {
        fds[i] = plain_connect(place_url(place, 0));
        plain_write(fds[i], req_hello, sizeof req_hello);
        plain_frame(fds[i], &i, sizeof i);
        plain_frame(fds[i], &i, sizeof i);
    }
    assert_int_equal(counts.wire->ops->dial(counts.wire, 1, place_url(place, 0)), 0);
    assert_int_equal(counts.wire->ops->dial(counts.wire, 2, "tcp://127.0.0.1:1"), 0);
    assert_true(place_run(place, has_frames, &counts));
    place_close(place, 0);
    for (unsigned i = 0; i < MANY_CONNECTIONS; i++)
        (void)close(fds[i]);
    place_free(place);
}

/* Messages that are none: too short for a preface, another preface, a note that has
 * bytes; each after a good one. */
LISTED_TEST(test_bad_prefaces)
{
    static const struct {
        uint8_t head[24];
        size_t size;
    } rows[] = {
        {{[7] = 15, [8] = 0x80}, 23},
        {{[7] = 0}, 8},
        {{[7] = 20, [8] = 0}, 24},
        {{[7] = 20, [8] = 0x80, [9] = 1}, 24},
        {{[7] = 20, [8] = 0x80, [11] = 4}, 24},
        {{[7] = 20, [8] = 0x80, [11] = 2}, 24},
    };
    struct listener *listener = *state;
    struct counts *counts = &listener->counts[1];

    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = plain_connect(place_url(listener->place, 1));

        plain_write(fd, req_hello, sizeof req_hello);
        plain_frame(fd, "first", 5);
        plain_write(fd, rows[i].head, rows[i].size);
        counts->wanted_in_downs = i + 1;
        if (rows[i].size < 24)
            plain_write(fd, "x", 1);
        if (i == 1)
            plain_write(fd, rows[2].head, 24);
        run_until(listener, has_in_downs, 1);
        assert_int_equal(counts->frames, i + 1);
        (void)close(fd);
    }
    assert_others_go_on(listener);
}

/* A note is no frame; who counts what it sends gets notes. */
LISTED_TEST(test_notes)
{
    struct listener *listener = *state;
    struct counts *counts = &listener->counts[1];
    int fd = plain_connect(place_url(listener->place, 1));
    struct mu__sp_preface preface = {.is_note = true};
    uint8_t head[8 + MU__SP_PREFACE_BYTES];
    uint8_t heard[8 + 8 + MU__SP_PREFACE_BYTES];

    plain_write(fd, req_hello, sizeof req_hello);
    big_endian(head, MU__SP_PREFACE_BYTES);
    mu__sp_write(head + 8, &preface);
    plain_write(fd, head, sizeof head);
    preface = (struct mu__sp_preface){.counts = true};
    mu__sp_write(head + 8, &preface);
    for (unsigned i = 0; i < MU__SP_NOTE_FRAMES; i++)
        plain_write(fd, head, sizeof head);
    counts->wanted_frames = MU__SP_NOTE_FRAMES;
    run_until(listener, has_frames, 1);
    assert_int_equal(recv(fd, heard, sizeof heard, MSG_WAITALL), sizeof heard);
    assert_memory_equal(heard, rep_hello, sizeof rep_hello);
    assert_true(mu__sp_read(heard + 16, &preface));
    assert_true(preface.is_note && !preface.counts);
    assert_int_equal(preface.frames, MU__SP_NOTE_FRAMES);
    assert_int_equal(preface.bytes, 0);
    assert_int_equal(counts->frames, MU__SP_NOTE_FRAMES);
    (void)close(fd);
}

/* ---- A wire that only dials ---- */

LISTED_TEST(test_a_deaf_wire)
{
    struct listener *listener = *state;
    struct counts counts = {.greets = true};
    struct mu__wire_uv *wire = NULL;
    bool closed = false;

    assert_int_equal(mu__wire_uv_open_deaf(&listener->place->loop, &count_events, &counts,
                                           NULL, &wire),
                     0);
    counts.wire = mu__wire_uv_wire(wire);
    assert_string_equal(mu__wire_uv_url(wire), "");
    assert_int_equal(
        counts.wire->ops->dial(counts.wire, 1, place_url(listener->place, 1)), 0);
    listener->counts[1].wanted_frames = 1;
    run_until(listener, has_frames, 1);
    mu__wire_uv_close(wire, on_closed, &closed);
    assert_true(place_run(listener->place, is_set, &closed));
}

static const char *last_error_of(struct mu__wire_uv *wire, uint32_t out)
{
    struct mu__wire *door = mu__wire_uv_wire(wire);

    return door->ops->last_error(door, out);
}

static bool knows_refusal(void *arg)
{
    struct listener *listener = arg;
    const char *words = last_error_of(listener->place->wires[0], 3);

    return words != NULL && strcmp(words, "connection refused") == 0;
}

static bool knows_no_host(void *arg)
{
    struct listener *listener = arg;
    const char *words = last_error_of(listener->place->wires[0], 4);

    return words != NULL && strncmp(words, "no such host", 12) == 0;
}

/* Looks again every few milliseconds: nothing is told when an attempt fails. */
static void on_look(uv_timer_t *timer)
{
    (void)timer;
}

LISTED_TEST(test_last_error)
{
    struct listener *listener = *state;
    struct mu__wire_uv *wire = listener->place->wires[0];
    struct mu__wire *door = listener->counts[0].wire;
    uv_timer_t look;

    assert_null(last_error_of(wire, 3));
    (void)uv_timer_init(&listener->place->loop, &look);
    (void)uv_timer_start(&look, on_look, 5, 5);
    assert_int_equal(door->ops->dial(door, 3, "tcp://127.0.0.1:1"), 0);
    assert_true(place_run(listener->place, knows_refusal, listener));
    assert_int_equal(door->ops->dial(door, 4, "tcp://no-such-host.invalid:1"), 0);
    assert_true(place_run(listener->place, knows_no_host, listener));
    uv_close((uv_handle_t *)&look, NULL);

    assert_others_go_on(listener);
    assert_null(last_error_of(wire, 1));
    assert_null(last_error_of(wire, 99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LISTENER(test_garbage),          WITH_LISTENER(test_wrong_protocol),
        WITH_LISTENER(test_half_open),        WITH_LISTENER(test_oversized),
        WITH_LISTENER(test_many_connections), cmocka_unit_test(test_close_in_full_swing),
        WITH_LISTENER(test_bad_prefaces),     WITH_LISTENER(test_notes),
        WITH_LISTENER(test_a_deaf_wire),      WITH_LISTENER(test_last_error),
    };
    int failed = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    failed += contract_wire_run("wire contract: streams over tcp", &tcp_fixture);
    failed += contract_wire_run("wire contract: streams over ipc", &ipc_fixture);
    failed += cmocka_run_group_tests_name("stream wire", tests, NULL, NULL);
    return failed;
}
