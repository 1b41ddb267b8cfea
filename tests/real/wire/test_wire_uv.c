/* The real wire: the contract over tcp and ipc, and what only sockets can do wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/wire/uv/streams.h"

#include "tests/support/contract_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WAIT_MS = 20000,        /* after which a test fails: far more than anything takes */
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
    char directory[64];             /* "" for tcp */
};

static void on_limit(uv_timer_t *timer)
{
    struct place *place = timer->data;

    place->late = true;
}

static void set_url(struct place *place, unsigned which, const char *url)
{
    (void)snprintf(place->urls[which], ADDRESS_MAX, "%s", url);
}

static struct place *place_new(bool is_ipc)
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

static void *tcp_setup(void)
{
    return place_new(false);
}

static void *ipc_setup(void)
{
    return place_new(true);
}

/* Run the loop until done(arg), or for WAIT_MS. */
static bool place_run(void *arg, bool (*done)(void *arg), void *done_arg)
{
    struct place *place = arg;

    place->late = false;
    (void)uv_timer_start(&place->limit, on_limit, WAIT_MS, 0);
    while (!done(done_arg) && !place->late)
        (void)uv_run(&place->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&place->limit);
    return done(done_arg);
}

static struct mu__wire *place_open(void *arg, unsigned which,
                                   const struct mu__wire_events *events, void *owner)
{
    struct place *place = arg;
    mu_error error;
    int rv = mu__wire_uv_open(&place->loop, place->urls[which], events, owner, &error,
                               &place->wires[which]);

    if (rv != 0)
        fail_msg("%s", error.message);
    place->open++;
    set_url(place, which, mu__wire_uv_url(place->wires[which]));
    return mu__wire_uv_wire(place->wires[which]);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static bool is_set(void *arg)
{
    return *(bool *)arg;
}

static void place_close(void *arg, unsigned which)
{
    struct place *place = arg;
    bool closed = false;

    mu__wire_uv_close(place->wires[which], on_closed, &closed);
    assert_true(place_run(place, is_set, &closed));
    place->open--;
}

static const char *place_url(void *arg, unsigned which)
{
    return ((struct place *)arg)->urls[which];
}

static void place_free(void *arg)
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
    bool greets;                /* sends a frame on each connection */
    bool drops;                 /* drops each connection that sends a frame */
    unsigned ups;
    unsigned downs;
    unsigned frames;
    unsigned in_downs;
    unsigned wanted_frames;
    unsigned wanted_in_downs;
};

static void count_up(void *owner, uint32_t out)
{
    struct counts *counts = owner;
    struct mu__buf *frame;

    counts->ups++;
    if (!counts->greets)
        return;
    frame = counts->wire->ops->buffer(counts->wire, 8);
    assert_non_null(frame);
    assert_int_equal(counts->wire->ops->send(counts->wire, out, frame), 0);
}

static void count_down(void *owner, uint32_t out, const char *reason)
{
    (void)out;
    (void)reason;
    ((struct counts *)owner)->downs++;
}

static void count_writable(void *owner, uint32_t out)
{
    (void)owner;
    (void)out;
}

static bool count_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    struct counts *counts = owner;

    (void)frame;
    counts->frames++;
    if (counts->drops)
        counts->wire->ops->drop(counts->wire, in);
    return true;
}

static void count_in_down(void *owner, uint32_t in, const char *reason)
{
    (void)in;
    (void)reason;
    ((struct counts *)owner)->in_downs++;
}

static void count_burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events count_events = {
    count_up, count_down, count_writable, count_frame, count_in_down, count_burst_end,
};

static bool has_frames(void *arg)
{
    struct counts *counts = arg;

    return counts->frames >= counts->wanted_frames;
}

static bool has_in_downs(void *arg)
{
    struct counts *counts = arg;

    return counts->in_downs >= counts->wanted_in_downs;
}

static bool is_up(void *arg)
{
    struct counts *counts = arg;

    return counts->ups > counts->downs;
}

static bool was_down(void *arg)
{
    return ((struct counts *)arg)->downs > 0;
}

struct listener {
    struct place *place;
    struct counts counts[2];
};

static int listener_setup(void **state)
{
    struct listener *listener = calloc(1, sizeof *listener);

    assert_non_null(listener);
    listener->place = place_new(false);
    for (unsigned i = 0; i < 2; i++)
        listener->counts[i].wire = place_open(listener->place, i, &count_events,
                                              &listener->counts[i]);
    *state = listener;
    return 0;
}

static int listener_teardown(void **state)
{
    struct listener *listener = *state;

    place_close(listener->place, 0);
    place_close(listener->place, 1);
    place_free(listener->place);
    free(listener);
    return 0;
}

static void run_until(struct listener *listener, bool (*done)(void *arg), unsigned which)
{
    assert_true(place_run(listener->place, done, &listener->counts[which]));
}

/* Wire 0 dials wire 1 and one frame gets through. */
static void assert_others_go_on(struct listener *listener)
{
    struct counts *sender = &listener->counts[0];
    struct counts *receiver = &listener->counts[1];
    struct mu__buf *frame;

    if (sender->ups == 0)
        assert_int_equal(sender->wire->ops->dial(sender->wire, 1,
                                                 place_url(listener->place, 1)), 0);
    run_until(listener, is_up, 0);
    frame = sender->wire->ops->buffer(sender->wire, 8);
    assert_non_null(frame);
    frame->size = 8;
    receiver->wanted_frames = receiver->frames + 1;
    assert_int_equal(sender->wire->ops->send(sender->wire, 1, frame), 0);
    run_until(listener, has_frames, 1);
}

/* ---- Plain sockets ---- */

/* What every SP connection begins with: protocol 0x50 is a PUSH, 0x51 a PULL. */
static const uint8_t push_hello[8] = {0, 'S', 'P', 0, 0, 0x50, 0, 0};
static const uint8_t pull_hello[8] = {0, 'S', 'P', 0, 0, 0x51, 0, 0};

static int plain_connect(const char *url)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
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

/* A whole SP message. */
static void plain_frame(int fd, const void *data, size_t size)
{
    uint8_t length[8];

    big_endian(length, size);
    plain_write(fd, length, sizeof length);
    if (size > 0)
        plain_write(fd, data, size);
}

/* ---- Bad peers ---- */

static void test_garbage(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27},
        {"\0SP\1\0\0\0\0", 8},
        {"\0SQ\0\0\x50\0\0", 8},
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

/* A PULL that connects to a PULL is sent away. */
static void test_wrong_protocol(void **state)
{
    struct listener *listener = *state;
    int fd = plain_connect(place_url(listener->place, 1));

    plain_write(fd, pull_hello, sizeof pull_hello);
    plain_expect_end(listener->place, fd);
    (void)close(fd);
    assert_others_go_on(listener);
}

/* One says nothing, one greets and stops, one stops within a frame. */
static void test_half_open(void **state)
{
    struct listener *listener = *state;
    const char *url = place_url(listener->place, 1);
    int mute = plain_connect(url);
    int greeted = plain_connect(url);
    int stopped = plain_connect(url);
    uint8_t length[8];

    big_endian(length, 1000);
    plain_write(greeted, push_hello, sizeof push_hello);
    plain_write(stopped, push_hello, sizeof push_hello);
    plain_write(stopped, length, sizeof length);
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
static void test_oversized(void **state)
{
    static const uint64_t sizes[] = {
        MU__FRAME_BYTES_MAX + 1, UINT64_C(1) << 34, INT64_MAX, UINT64_MAX,
    };
    struct listener *listener = *state;
    struct counts *counts = &listener->counts[1];

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = plain_connect(place_url(listener->place, 1));
        uint8_t length[8];

        plain_write(fd, push_hello, sizeof push_hello);
        plain_frame(fd, "first", 5);
        big_endian(length, sizes[i]);
        plain_write(fd, length, sizeof length);
        counts->wanted_in_downs = i + 1;
        run_until(listener, has_in_downs, 1);
        assert_int_equal(counts->frames, i + 1);
        plain_expect_end(listener->place, fd);
        (void)close(fd);
    }
    assert_others_go_on(listener);
}

static void test_many_connections(void **state)
{
    struct listener *listener = *state;
    struct counts *counts = &listener->counts[1];
    int fds[MANY_CONNECTIONS];

    for (unsigned i = 0; i < MANY_CONNECTIONS; i++) {
        fds[i] = plain_connect(place_url(listener->place, 1));
        plain_write(fds[i], push_hello, sizeof push_hello);
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
static void test_close_in_full_swing(void **state)
{
    struct place *place = place_new(false);
    struct counts counts = {.wanted_frames = 1};
    int fds[MANY_CONNECTIONS];

    (void)state;
    counts.wire = place_open(place, 0, &count_events, &counts);
    for (unsigned i = 0; i < MANY_CONNECTIONS; i++) {
        fds[i] = plain_connect(place_url(place, 0));
        plain_write(fds[i], push_hello, sizeof push_hello);
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

/* ---- Connections come and go ---- */

static bool was_down_often(void *arg)
{
    return ((struct counts *)arg)->downs >= 4;
}

/* A peer that drops us at our first frame is dialled again, but later and later. */
static void test_a_peer_that_drops_is_not_stormed(void **state)
{
    struct listener *listener = *state;
    struct counts *sender = &listener->counts[0];
    uint64_t begin_ms = uv_hrtime() / 1000000;

    sender->greets = true;
    listener->counts[1].drops = true;
    assert_int_equal(sender->wire->ops->dial(sender->wire, 5,
                                             place_url(listener->place, 1)), 0);
    run_until(listener, was_down_often, 0);
    assert_true(uv_hrtime() / 1000000 - begin_ms >= 50 + 100 + 200);
    assert_int_equal(sender->ups, 4);
    assert_int_equal(listener->counts[1].frames, 4);
    assert_int_equal(listener->counts[1].in_downs, 0);
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

static void test_last_error(void **state)
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

/* ---- Another process ---- */

/* What the test runs itself as: listens, says where, and lives until it is killed. */
static int child_main(const char *bind_url)
{
    struct counts counts = {.ups = 0};
    struct mu__wire_uv *wire;
    mu_error error;
    uv_loop_t loop;

    (void)uv_loop_init(&loop);
    if (mu__wire_uv_open(&loop, bind_url, &count_events, &counts, &error, &wire) != 0)
        return 1;
    (void)printf("%s\n", mu__wire_uv_url(wire));
    (void)fflush(stdout);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return 0;
}

static pid_t child_start(const char *bind_url, char url[ADDRESS_MAX])
{
    int ends[2];
    pid_t pid;
    FILE *said;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "test_wire_uv", "child", bind_url, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    said = fdopen(ends[0], "r");
    assert_non_null(said);
    assert_non_null(fgets(url, ADDRESS_MAX, said));
    url[strcspn(url, "\n")] = '\0';
    (void)fclose(said);
    return pid;
}

static void child_kill(pid_t pid)
{
    int status;

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

/* A killed peer is noticed at once, not by silence; a new process at the same address is
 * found by itself. */
static void test_killed_peer(void **state)
{
    struct listener *listener = *state;
    struct counts *sender = &listener->counts[0];
    char url[ADDRESS_MAX];
    char same[ADDRESS_MAX];
    pid_t pid = child_start("tcp://127.0.0.1:0", url);
    uint64_t begin_ms;

    assert_int_equal(sender->wire->ops->dial(sender->wire, 9, url), 0);
    run_until(listener, is_up, 0);
    begin_ms = uv_hrtime() / 1000000;
    child_kill(pid);
    run_until(listener, was_down, 0);
    assert_true(uv_hrtime() / 1000000 - begin_ms < 5000);

    pid = child_start(url, same);
    assert_string_equal(same, url);
    run_until(listener, is_up, 0);
    child_kill(pid);
}

/* The socket file of a living process is not taken over, that of a dead one is. */
static void test_stale_socket_file(void **state)
{
    struct place *place = place_new(true);
    struct counts counts = {.ups = 0};
    char url[ADDRESS_MAX];
    pid_t pid = child_start(place_url(place, 0), url);
    struct mu__wire_uv *thief;
    mu_error error;

    (void)state;
    assert_int_equal(mu__wire_uv_open(&place->loop, place_url(place, 0), &count_events,
                                       &counts, &error, &thief), -MU_EEXISTS);
    assert_non_null(strstr(error.message, place_url(place, 0)));
    child_kill(pid);
    assert_int_equal(access(url + strlen("ipc://"), F_OK), 0);
    counts.wire = place_open(place, 0, &count_events, &counts);
    assert_int_equal(counts.wire->ops->dial(counts.wire, 1, place_url(place, 0)), 0);
    assert_true(place_run(place, is_up, &counts));
    place_close(place, 0);
    place_free(place);
}

/* ---- Addresses ---- */

static void test_where_it_can_listen(void **state)
{
    static const struct {
        const char *bind;
        const char *begins;
    } rows[] = {
        {"tcp://127.0.0.1:0", "tcp://127.0.0.1:"},
        {"tcp://0.0.0.0:0", "tcp://0.0.0.0:"},
        {"tcp://localhost:0", "tcp://localhost:"},
        {"tcp://[::1]:0", "tcp://[::1]:"},
    };
    struct place *place = place_new(false);
    struct counts counts = {.ups = 0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].begins);

        set_url(place, 0, rows[i].bind);
        counts.wire = place_open(place, 0, &count_events, &counts);
        assert_int_equal(strncmp(place->urls[0], rows[i].begins, length), 0);
        assert_true(strtoul(place->urls[0] + length, NULL, 10) > 0);
        counts.ups = 0;
        counts.downs = 0;
        assert_int_equal(counts.wire->ops->dial(counts.wire, 1, place->urls[0]), 0);
        assert_true(place_run(place, is_up, &counts));
        place_close(place, 0);
    }
    place_free(place);
}

static void test_where_it_cannot_listen(void **state)
{
    static const struct {
        const char *bind;
        int rv;
    } rows[] = {
        {"", -MU_EINVALID},
        {"127.0.0.1:80", -MU_EINVALID},
        {"http://127.0.0.1:80", -MU_EINVALID},
        {"inproc://x", -MU_EINVALID},
        {"tcp://", -MU_EINVALID},
        {"tcp://127.0.0.1", -MU_EINVALID},
        {"tcp://127.0.0.1:", -MU_EINVALID},
        {"tcp://127.0.0.1:65536", -MU_EINVALID},
        {"tcp://127.0.0.1:99999999999999999999", -MU_EINVALID},
        {"tcp://127.0.0.1:8o", -MU_EINVALID},
        {"tcp://127.0.0.1:-1", -MU_EINVALID},
        {"tcp://127.0.0.1:0/path", -MU_EINVALID},
        {"tcp://[::1:0", -MU_EINVALID},
        {"tcp://a b:0", -MU_EINVALID},
        {"tcp://192.0.2.7:0", -MU_EINVALID},
        {"tcp://no-such-host.invalid:0", -MU_EINVALID},
        {"ipc://", -MU_EINVALID},
        {"ipc://relative", -MU_EINVALID},
        {"ipc:///no/such/directory/x", -MU_EINVALID},
        {"ipc:///tmp/a-path-that-is-longer-than-the-one-hundred-and-seven-bytes-which-"
         "the-system-allows-for-the-name-of-a-socket", -MU_EINVALID},
    };
    struct place *place = place_new(false);
    struct mu__wire_uv *untouched = NULL;
    mu_error error;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rv = mu__wire_uv_open(&place->loop, rows[i].bind, &count_events, NULL,
                                   &error, &untouched);

        if (rv != rows[i].rv)
            fail_msg("\"%s\" gave %s", rows[i].bind, mu_err_name(rv));
        assert_int_equal(error.code, rv);
        assert_non_null(strstr(error.message, rows[i].bind));
        assert_null(untouched);
        assert_int_equal(mu__wire_uv_open(&place->loop, rows[i].bind, &count_events,
                                           NULL, NULL, &untouched), rv);
    }
    place_free(place);
}

static void test_port_in_use(void **state)
{
    struct listener *listener = *state;
    struct mu__wire_uv *second = NULL;
    mu_error error;

    assert_int_equal(mu__wire_uv_open(&listener->place->loop,
                                       place_url(listener->place, 1), &count_events, NULL,
                                       &error, &second), -MU_EEXISTS);
    assert_non_null(strstr(error.message, place_url(listener->place, 1)));
    assert_null(second);
    assert_others_go_on(listener);
}

static void test_where_it_cannot_dial(void **state)
{
    static const char *const bad[] = {
        "", "x", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:0",
        "tcp://127.0.0.1:65536", "tcp://:80", "tcp://a b:1", "tcp://[::1:1",
        "tcp://h:1/x", "ipc://relative", "inproc://x", "http://127.0.0.1:80",
    };
    struct listener *listener = *state;
    struct mu__wire *wire = listener->counts[0].wire;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wire->ops->dial(wire, 1, bad[i]), -MU_EINVALID);
    assert_others_go_on(listener);
    assert_int_equal(wire->ops->dial(wire, 1, place_url(listener->place, 1)),
                     -MU_EEXISTS);
}

/* A buffer that no frame may fill is refused. */
static void test_buffer_bounds(void **state)
{
    struct listener *listener = *state;
    struct mu__wire *wire = listener->counts[0].wire;
    struct mu__buf *buf = wire->ops->buffer(wire, MU__FRAME_BYTES_MAX);

    assert_non_null(buf);
    mu__buf_unref(buf);
    assert_null(wire->ops->buffer(wire, MU__FRAME_BYTES_MAX + 1));
    assert_null(wire->ops->buffer(wire, SIZE_MAX));
}

#define WITH_LISTENER(test) \
    cmocka_unit_test_setup_teardown(test, listener_setup, listener_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_LISTENER(test_garbage),
        WITH_LISTENER(test_wrong_protocol),
        WITH_LISTENER(test_half_open),
        WITH_LISTENER(test_oversized),
        WITH_LISTENER(test_many_connections),
        cmocka_unit_test(test_close_in_full_swing),
        WITH_LISTENER(test_a_peer_that_drops_is_not_stormed),
        WITH_LISTENER(test_last_error),
        WITH_LISTENER(test_killed_peer),
        cmocka_unit_test(test_stale_socket_file),
        cmocka_unit_test(test_where_it_can_listen),
        cmocka_unit_test(test_where_it_cannot_listen),
        WITH_LISTENER(test_port_in_use),
        WITH_LISTENER(test_where_it_cannot_dial),
        WITH_LISTENER(test_buffer_bounds),
    };
    int failed = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return child_main(argv[2]);
    failed += contract_wire_run("wire contract: streams over tcp", &tcp_fixture);
    failed += contract_wire_run("wire contract: streams over ipc", &ipc_fixture);
    failed += cmocka_run_group_tests_name("stream wire", tests, NULL, NULL);
    return failed;
}
