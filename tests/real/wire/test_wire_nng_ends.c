/* nng's close stops for ever now and then: nothing of a node waits for it. */
#include "tests/real/wire/wire_nng_fixture.h"

#include "transport/wire/nng/closer.h"

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>

enum { SLACK_MS = 3000, MANY = 100, SOCKETS_KEPT = 80 };

static sem_t go_on;         /* closes that hang end when it is posted */
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
    .out_up = up,
    .out_down = down,
    .writable = writable,
    .frame = frame,
    .in_down = down,
    .burst_end = burst_end,
};

static bool is_one(void *arg)
{
    return *(unsigned *)arg == 1;
}

/* The closes of `count` sockets end, after all. */
static void let_them_end(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)sem_post(&go_on);
    for (unsigned i = 0; i < count; i++)
        (void)sem_wait(&has_ended);
    mu__nng_close_socket = nng_close;
}

/* The wire is closed in time, and what nng does later finds what it needs. */
static void test_the_end_is_bounded(void **state)
{
    struct place *place = place_new("tcp://127.0.0.1:0");
    unsigned ups = 0;
    struct mu__wire *wire = place_open(place, 0, &events, &ups);
    uint64_t begin_ms;

    (void)state;
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
static void test_peers_that_come_and_go(void **state)
{
    struct churn peers = {.place = place_new("tcp://127.0.0.1:0")};
    unsigned fds = 0;

    (void)state;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_end_is_bounded),
        cmocka_unit_test(test_peers_that_come_and_go),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sem_init(&go_on, 0, 0);
    (void)sem_init(&has_ended, 0, 0);
    return cmocka_run_group_tests_name("ends of nng's sockets", tests, NULL, NULL);
}
