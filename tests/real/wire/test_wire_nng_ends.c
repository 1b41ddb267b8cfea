/* The ends of connections and sockets. nng's close stops for ever now and then: nothing
 * of a node waits for it. nng frees a connection that it still sends on: we do not. */
#include "tests/real/wire/wire_nng_fixture.h"

#include "transport/wire/nng/closer.h"
#include "transport/wire/sp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

enum {
    SLACK_MS = 3000,
    MANY = 100,
    SOCKETS_KEPT = 80,
    FRAME_BYTES = 16,
    MESSAGE_BYTES = 8 + MU__SP_PREFACE_BYTES + FRAME_BYTES
};

static sem_t go_on; /* closes that hang end when it is posted */
static sem_t has_ended;

static int hang(nng_socket socket)
{
    int rv;

    (void)sem_wait(&go_on);
    rv = nng_close(socket);
    (void)sem_post(&has_ended);
    return rv;
}

static void up(void *owner, uint32_t out)
{
    (void)out;
    (*(unsigned *)owner)++;
}

static void down(void *owner, uint32_t number, const char *reason)
{
    (void)owner;
    (void)number;
    (void)reason;
}

static void writable(void *owner, uint32_t out)
{
    (void)owner;
    (void)out;
}

static bool frame(void *owner, uint32_t in, struct mu__buf *buf)
{
    (void)owner;
    (void)in;
    (void)buf;
    return true;
}

static void burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events events = {
    .up = up,
    .down = down,
    .writable = writable,
    .frame = frame,
    .burst_end = burst_end,
};

static bool is_one(void *arg)
{
    return *(unsigned *)arg == 1;
}

/* The closes of `count` sockets end, after all; if nng stops in one, not for ever. */
static void let_them_end(unsigned count)
{
    struct timespec limit;
    unsigned ended = 0;

    (void)clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += WAIT_MS / 1000;
    for (unsigned i = 0; i < count; i++)
        (void)sem_post(&go_on);
    while (ended < count && sem_timedwait(&has_ended, &limit) == 0)
        ended++;
    mu__nng_close_socket = nng_close;
    if (ended < count)
        fail_msg("nng has closed %u of %u sockets, and stopped", ended, count);
}

/* ---- peers that are no nng ---- */

/* Its close() does not stop for ever. Returns what listens, and writes its address. */
static int listen_plainly(char url[ADDRESS_MAX])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, ADDRESS_MAX, "tcp://127.0.0.1:%u",
                   (unsigned)ntohs(address.sin_port));
    return fd;
}

/* What nng's protocol begins with. */
static void greet(int fd, uint8_t protocol)
{
    uint8_t greeting[MU__SP_GREETING_BYTES];

    mu__sp_greeting(greeting, protocol);
    assert_int_equal(write(fd, greeting, sizeof greeting), (ssize_t)sizeof greeting);
}

static int accept_plainly(int listening)
{
    struct pollfd comes = {.fd = listening, .events = POLLIN};
    int fd;

    assert_int_equal(poll(&comes, 1, WAIT_MS), 1);
    fd = accept(listening, NULL, NULL);
    assert_true(fd >= 0);
    greet(fd, MU__SP_ACCEPTS);
    return fd;
}

/* nng stops for ever when a message is cut off. */
static void read_plainly(int fd, size_t size)
{
    struct pollfd comes = {.fd = fd, .events = POLLIN};
    char bytes[64];

    for (size_t done = 0; done < size;) {
        ssize_t more;

        assert_int_equal(poll(&comes, 1, WAIT_MS), 1);
        more = read(fd, bytes, sizeof bytes);
        assert_true(more > 0);
        done += (size_t)more;
    }
}

static int send_one(struct mu__wire *wire)
{
    struct mu__buf *buf = wire->ops->buffer(wire, FRAME_BYTES);
    int rv;

    assert_non_null(buf);
    memset(buf->data, 0, FRAME_BYTES);
    buf->size = FRAME_BYTES;
    rv = wire->ops->send(wire, 1, buf);
    if (rv != 0)
        mu__buf_unref(buf);
    return rv;
}

/* From the moment in which nng tells the end of a connection its memory may be gone, and
 * the loop may be late to hear of it: after a pause of the process, or in a long turn. */
TEST(test_what_has_ended_is_not_sent_on)
{
    struct place *place = place_new("tcp://127.0.0.1:0");
    unsigned ups = 0;
    struct mu__wire *wire = place_open(place, 0, &events, &ups);
    char url[ADDRESS_MAX];
    int listening = listen_plainly(url);
    int peer;
    struct pollfd loop = {.fd = uv_backend_fd(&place->loop), .events = POLLIN};

    assert_int_equal(wire->ops->dial(wire, 1, url), 0);
    peer = accept_plainly(listening);
    assert_true(place_run(place, is_one, &ups));
    while (uv_run(&place->loop, UV_RUN_NOWAIT) != 0 && poll(&loop, 1, 0) > 0)
        continue;
    assert_int_equal(send_one(wire), 0);

    read_plainly(peer, MU__SP_GREETING_BYTES + MESSAGE_BYTES);
    (void)close(peer);
    assert_int_equal(poll(&loop, 1, WAIT_MS), 1); /* the loop is woken: not run */
    assert_int_equal(send_one(wire), -MU_EUNAVAILABLE);
    (void)close(listening);
    place_close(place, 0);
    place_free(place);
}

/* ---- strangers ---- */

struct stranger {
    int fd;
    unsigned told;
    char reason[80];
};

static void on_refused(void *owner, const char *address, const char *reason)
{
    struct stranger *stranger = owner;

    assert_non_null(strstr(address, "127.0.0.1:"));
    stranger->told++;
    (void)snprintf(stranger->reason, sizeof stranger->reason, "%s", reason);
}

static bool is_hung_up_on(void *arg)
{
    struct pollfd poll_one = {.fd = ((struct stranger *)arg)->fd, .events = POLLIN};
    char bytes[64];

    return poll(&poll_one, 1, 0) == 1 && read(poll_one.fd, bytes, sizeof bytes) <= 0;
}

/* Speaks nng's protocol, and says nothing. */
static int connect_silently(const char *url)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    greet(fd, MU__SP_DIALS);
    return fd;
}

/* Who is no member in time is hung up on, and where it came from is told. */
TEST(test_who_says_nothing_is_hung_up_on)
{
    struct place *place = place_new("tcp://127.0.0.1:0");
    struct mu__wire_events with = events;
    struct stranger stranger = {.told = 0};

    with.refused = on_refused;
    (void)place_open(place, 0, &with, &stranger);
    stranger.fd = connect_silently(place_url(place, 0));
    assert_true(place_run(place, is_hung_up_on, &stranger));
    assert_int_equal(stranger.told, 1);
    assert_string_equal(stranger.reason, "it has not proven itself in time");
    (void)close(stranger.fd);
    place_close(place, 0);
    place_free(place);
}

/* ---- the end of the wire ---- */

/* The wire is closed in time, and what nng does later finds what it needs. */
TEST(test_the_end_is_bounded)
{
    struct place *place = place_new("tcp://127.0.0.1:0");
    unsigned ups = 0;
    struct mu__wire *wire = place_open(place, 0, &events, &ups);
    uint64_t begin_ms;

    (void)place_open(place, 1, &events, &ups);
    assert_int_equal(wire->ops->dial(wire, 1, place_url(place, 1)), 0);
    assert_true(place_run(place, is_one, &ups));

    mu__nng_close_socket = hang;
    begin_ms = uv_hrtime() / 1000000;
    place_close(place, 0);
    assert_true(uv_hrtime() / 1000000 - begin_ms >= MU__NNG_CLOSE_MS - 100);
    assert_true(uv_hrtime() / 1000000 - begin_ms < MU__NNG_CLOSE_MS + SLACK_MS);
    let_them_end(2);
    place_close(place, 1);
    place_free(place);
}

struct churn {
    struct place *place;
    unsigned ups;
    uint64_t until_ms;
};

static bool is_over(void *arg)
{
    return uv_hrtime() / 1000000 >= ((struct churn *)arg)->until_ms;
}

static unsigned count_fds(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Peers that come once and go, each at another address. */
static void churn(struct churn *churn, unsigned count)
{
    struct mu__wire *wire = place_open(churn->place, 0, &events, &churn->ups);

    for (unsigned i = 0; i < count; i++) {
        (void)place_open(churn->place, 1, &events, &churn->ups);
        churn->ups = 0;
        assert_int_equal(wire->ops->dial(wire, 1, place_url(churn->place, 1)), 0);
        assert_true(place_run(churn->place, is_one, &churn->ups));
        wire->ops->hangup(wire, 1);
        place_close(churn->place, 1);
        set_url(churn->place, 1, "tcp://127.0.0.1:0");
    }
}

/* Sockets of peers that are gone are closed, and at the end nothing is left. */
TEST(test_peers_that_come_and_go)
{
    struct churn peers = {.place = place_new("tcp://127.0.0.1:0")};
    unsigned fds = 0;

    churn(&peers, MANY / 10);
    fds = count_fds();
    place_close(peers.place, 0);
    churn(&peers, MANY);
    peers.until_ms = uv_hrtime() / 1000000 + 200;
    assert_true(place_run(peers.place, is_over, &peers));
    assert_true(count_fds() <= fds + SOCKETS_KEPT);
    place_close(peers.place, 0);
    place_free(peers.place);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sem_init(&go_on, 0, 0);
    (void)sem_init(&has_ended, 0, 0);
    return tests_run(NULL, NULL);
}
