/* Names with several addresses: a wire tries them side by side, and one that is silent
 * holds nothing up. In a network and a file system of the test's own, where this
 * machine's DNS server is the test's. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/machine.h"

#include "transport/wire/uv/streams.h"

#include <netdb.h>

/* One silent address has HOLDUP_MS alone: up before that has not waited for it. */
enum { PORT = 7001, OUT = 1, WAIT_MS = 25000, HOLDUP_MS = 10000, FILLS = 4 };

/* In this order the system gives them, and they are dialled. */
static const char dead[] = "127.0.0.1";   /* nothing listens */
static const char rude[] = "127.0.0.6";   /* hangs up */
static const char deaf[] = "127.0.0.8";   /* lets nobody in, and says nothing */
static const char mute[] = "127.0.0.16";  /* lets everybody in, and says nothing */
static const char live[] = "127.0.0.32";  /* a wire */
static const char spare[] = "127.0.0.64"; /* another one */
static const char v6[] = "::1";

struct fixture {
    struct dnsmasq dnsmasq;
    uv_loop_t loop;
    uv_timer_t look;
    struct mu__wire_uv *sender;
    struct mu__wire_uv *receiver; /* NULL: not opened */
    struct mu__wire_uv *other;    /* the same */
    int fills[FILLS];             /* of the silent one; -1: none */
    unsigned ups;
    unsigned sent_away; /* by the rude one */
    unsigned opened;
    unsigned closed;
    uint64_t until_ms;     /* of is_later */
    char first_error[256]; /* of the sender's first round */
};

/* ---- what the wires tell ---- */

static void on_up(void *owner, uint32_t out)
{
    (void)out;
    ((struct fixture *)owner)->ups++;
}

static void dial(struct fixture *f);

/* As the links do. */
static void on_down(void *owner, uint32_t out, const char *reason)
{
    struct fixture *f = owner;

    (void)reason;
    if (mu__wire_is_accepted(out) || f->sender == NULL)
        return;
    dial(f);
}

static void on_writable(void *owner, uint32_t out)
{
    (void)owner;
    (void)out;
}

static bool on_frame(void *owner, uint32_t in, struct mu__buf *frame)
{
    (void)owner;
    (void)in;
    (void)frame;
    return true;
}

static void on_burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events events = {
    on_up, on_down, on_writable, on_frame, on_burst_end, NULL, NULL,
};

/* ---- a place ---- */

/* Looks again every few milliseconds: nothing is told when an attempt fails. */
static void on_look(uv_timer_t *timer)
{
    struct fixture *f = timer->data;
    struct mu__wire *wire;
    const char *words;

    if (f->sender == NULL || f->first_error[0] != '\0')
        return;
    wire = mu__wire_uv_wire(f->sender);
    words = wire->ops->last_error(wire, OUT);
    if (words != NULL)
        (void)snprintf(f->first_error, sizeof f->first_error, "%s", words);
}

static struct mu__wire_uv *open_wire(struct fixture *f, const char *host)
{
    struct mu__wire_uv *wire = NULL;
    mu_error error;
    char url[80];

    (void)snprintf(url, sizeof url, "tcp://%s:%d", host, (int)PORT);
    if (mu__wire_uv_open(&f->loop, url, &events, f, &error, &wire) != 0)
        fail_msg("%s", error.message);
    f->opened++;
    return wire;
}

static int open_socket(const char *host, struct sockaddr_storage *ret_address,
                       socklen_t *ret_size)
{
    struct sockaddr_in *v4_address = (struct sockaddr_in *)ret_address;
    struct sockaddr_in6 *v6_address = (struct sockaddr_in6 *)ret_address;
    bool is_v6 = uv_ip4_addr(host, PORT, v4_address) != 0;

    if (is_v6)
        assert_int_equal(uv_ip6_addr(host, PORT, v6_address), 0);
    *ret_size = is_v6 ? sizeof *v6_address : sizeof *v4_address;
    return socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  0);
}

/* A plain listener; with `backlog` 0 it has room for one connection. */
static int open_plain(const char *host, int backlog)
{
    struct sockaddr_storage address;
    socklen_t size;
    int fd = open_socket(host, &address, &size);
    int on = 1;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static int connect_plain(const char *host)
{
    struct sockaddr_storage address;
    socklen_t size;
    int fd = open_socket(host, &address, &size);

    (void)connect(fd, (struct sockaddr *)&address, size);
    return fd;
}

/* A listener whose queue is full: it is silent from now on. */
static int open_deaf(struct fixture *f, const char *host)
{
    int fd = open_plain(host, 0);

    for (size_t i = 0; i < FILLS; i++)
        f->fills[i] = connect_plain(host);
    return fd;
}

/* Run until `done`, or for WAIT_MS; meanwhile whoever comes to the rude one is sent
 * away. */
static bool run_until(struct fixture *f, bool (*done)(const struct fixture *f),
                      int rude_fd)
{
    uint64_t end_ms = uv_hrtime() / 1000000 + WAIT_MS;

    while (!done(f) && uv_hrtime() / 1000000 < end_ms) {
        int fd = rude_fd < 0 ? -1 : accept(rude_fd, NULL, NULL);

        if (fd >= 0) {
            (void)close(fd);
            f->sent_away++;
        }
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    return done(f);
}

/* Until the system says so too: all of them, in that order. */
static void set_addresses(struct fixture *f, const char *const *addresses, size_t count)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char hosts[256] = "127.0.0.1 ready.test\n";
    char expected[256] = "";
    char text[256] = "";

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(hosts + strlen(hosts), sizeof hosts - strlen(hosts),
                       "%s many.test\n", addresses[i]);
        (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
                       "%s ", addresses[i]);
    }
    dnsmasq_change(&f->dnsmasq, hosts);
    for (int i = 0; i < SOON_MS && strcmp(text, expected) != 0; i++) {
        struct addrinfo *found = NULL;
        char name[INET6_ADDRSTRLEN];

        text[0] = '\0';
        if (getaddrinfo("many.test", NULL, &hints, &found) == 0)
            for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
                if (uv_ip_name(at->ai_addr, name, sizeof name) == 0)
                    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s ",
                                   name);
        if (found != NULL)
            freeaddrinfo(found);
        nodes_pause();
    }
    assert_string_equal(text, expected);
}

static void dial(struct fixture *f)
{
    struct mu__wire *wire = mu__wire_uv_wire(f->sender);
    char url[80];

    (void)snprintf(url, sizeof url, "tcp://many.test:%d", (int)PORT);
    assert_int_equal(wire->ops->dial(wire, OUT, url), 0);
}

static int open_fixture(void **state)
{
    static struct fixture f;

    f = (struct fixture){.fills = {-1, -1, -1, -1}};
    dnsmasq_open(&f.dnsmasq, 53, "no-round-robin\n", "127.0.0.1 ready.test\n");
    assert_int_equal(uv_loop_init(&f.loop), 0);
    assert_int_equal(uv_timer_init(&f.loop, &f.look), 0);
    f.look.data = &f;
    (void)uv_timer_start(&f.look, on_look, 1, 1);
    f.sender = open_wire(&f, "127.0.0.99");
    *state = &f;
    return 0;
}

static void on_closed(void *arg)
{
    ((struct fixture *)arg)->closed++;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    mu__wire_uv_close(f->sender, on_closed, f);
    f->sender = NULL;
    if (f->receiver != NULL)
        mu__wire_uv_close(f->receiver, on_closed, f);
    if (f->other != NULL)
        mu__wire_uv_close(f->other, on_closed, f);
    for (size_t i = 0; i < FILLS; i++)
        if (f->fills[i] >= 0)
            (void)close(f->fills[i]);
    uv_close((uv_handle_t *)&f->look, NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->closed, f->opened);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    dnsmasq_close(&f->dnsmasq);
    return 0;
}

static bool is_up(const struct fixture *f)
{
    return f->ups > 0;
}

static bool has_failed(const struct fixture *f)
{
    return f->first_error[0] != '\0';
}

/* ---- tests ---- */

TEST_ON(test_next_at_once, struct fixture *f, open_fixture, close_fixture)
{
    int fd = open_plain(rude, 8);

    set_addresses(f, (const char *const[]){dead, rude, live}, 3);
    f->receiver = open_wire(f, live);
    dial(f);
    assert_true(run_until(f, is_up, fd));
    assert_int_equal(f->ups, 1);
    assert_int_equal(f->sent_away, 1);
    assert_string_equal(f->first_error, ""); /* no look-up has failed as a whole */
    (void)close(fd);
}

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

/* The next one does not wait for the limit of one that does not answer. */
TEST_ON(test_past_a_deaf_one, struct fixture *f, open_fixture, close_fixture)
{
    uint64_t begin_ms;
    int fd = open_deaf(f, deaf);

    set_addresses(f, (const char *const[]){dead, deaf, live}, 3);
    f->receiver = open_wire(f, live);
    begin_ms = now_ms();
    dial(f);
    assert_true(run_until(f, is_up, -1));
    assert_int_equal(f->ups, 1);
    assert_string_equal(f->first_error, "");
    assert_true(now_ms() - begin_ms < HOLDUP_MS);
    (void)close(fd);
}

/* A machine that has an address of the other family, which leads nowhere. */
TEST_ON(test_past_a_deaf_family, struct fixture *f, open_fixture, close_fixture)
{
    uint64_t begin_ms;
    int fd;

    if (access("/proc/sys/net/ipv6", F_OK) != 0)
        needs_skip_test("the machine has no IPv6");
    fd = open_deaf(f, v6);
    set_addresses(f, (const char *const[]){v6, live}, 2);
    f->receiver = open_wire(f, live);
    begin_ms = now_ms();
    dial(f);
    assert_true(run_until(f, is_up, -1));
    assert_true(now_ms() - begin_ms < HOLDUP_MS);
    (void)close(fd);
}

/* What is at a recycled address may take connections and be no node. It is not waited
 * for, and hung up on when a node has answered elsewhere: one connection remains. */
TEST_ON(test_past_a_mute_one, struct fixture *f, open_fixture, close_fixture)
{
    int fd = open_plain(mute, 8);
    char heard[16];
    uint64_t begin_ms;
    int taken;

    set_addresses(f, (const char *const[]){mute, live}, 2);
    f->receiver = open_wire(f, live);
    begin_ms = now_ms();
    dial(f);
    assert_true(run_until(f, is_up, -1));
    assert_true(now_ms() - begin_ms < HOLDUP_MS);
    (void)uv_run(&f->loop, UV_RUN_ONCE);
    taken = accept(fd, NULL, NULL);
    assert_true(taken >= 0);
    assert_int_equal(recv(taken, heard, sizeof heard, MSG_WAITALL), 8);
    assert_int_equal(recv(taken, heard, sizeof heard, 0), 0);
    assert_int_equal(accept(fd, NULL, NULL), -1);
    (void)close(taken);
    (void)close(fd);
}

/* Another address of the same name is at hand when a node has gone, though its own is
 * silent from then on. */
TEST_ON(test_killed_one_is_replaced, struct fixture *f, open_fixture, close_fixture)
{
    uint64_t begin_ms;
    int fd;

    set_addresses(f, (const char *const[]){live, spare}, 2);
    f->receiver = open_wire(f, live);
    dial(f);
    assert_true(run_until(f, is_up, -1));
    f->ups = 0;
    mu__wire_uv_close(f->receiver, on_closed, f);
    f->receiver = open_wire(f, spare);
    fd = open_deaf(f, live);
    begin_ms = now_ms();
    assert_true(run_until(f, is_up, -1));
    assert_true(now_ms() - begin_ms < HOLDUP_MS);
    (void)close(fd);
}

static bool is_later(const struct fixture *f)
{
    return now_ms() >= f->until_ms;
}

/* At any moment of the look-up and of the attempts; nothing is told afterwards. */
TEST_ON(test_hung_up_meanwhile, struct fixture *f, open_fixture, close_fixture)
{
    struct mu__wire *wire = mu__wire_uv_wire(f->sender);
    int deaf_fd = open_deaf(f, deaf);
    int mute_fd = open_plain(mute, 64);

    set_addresses(f, (const char *const[]){dead, deaf, mute}, 3);
    for (unsigned i = 0; i < 40; i++) {
        dial(f);
        f->until_ms = now_ms() + (i < 20 ? i / 4 : (i - 20) * 20);
        (void)run_until(f, is_later, -1);
        wire->ops->hangup(wire, OUT);
    }
    assert_int_equal(f->ups, 0);
    set_addresses(f, (const char *const[]){dead, deaf, mute, live}, 4);
    f->receiver = open_wire(f, live);
    dial(f);
    assert_true(run_until(f, is_up, -1));
    assert_int_equal(f->ups, 1);
    (void)close(deaf_fd);
    (void)close(mute_fd);
}

/* Each address is named with its reason, once the last has had its time. */
TEST_ON(test_each_has_its_reason, struct fixture *f, open_fixture, close_fixture)
{
    int deaf_fd = open_deaf(f, deaf);
    int mute_fd = open_plain(mute, 8);

    set_addresses(f, (const char *const[]){dead, deaf, mute, live}, 4);
    dial(f);
    assert_true(run_until(f, has_failed, -1));
    assert_string_equal(f->first_error, "127.0.0.1, 127.0.0.32: connection refused; "
                                        "127.0.0.8: the attempt to connect timed out; "
                                        "127.0.0.16: it is connected, and says nothing");
    (void)close(deaf_fd);
    (void)close(mute_fd);
}

/* After the last one the name is looked up anew. */
TEST_ON(test_all_fail, struct fixture *f, open_fixture, close_fixture)
{
    int fd = open_plain(rude, 8);

    set_addresses(f, (const char *const[]){dead, rude}, 2);
    dial(f);
    assert_true(run_until(f, has_failed, fd));
    assert_string_equal(f->first_error,
                        "127.0.0.1: connection refused; "
                        "127.0.0.6: the connection broke during the greeting");
    assert_int_equal(f->ups, 0);

    f->receiver = open_wire(f, live);
    set_addresses(f, (const char *const[]){live}, 1);
    assert_true(run_until(f, is_up, fd));
    (void)close(fd);
}

/* A connection that is lost is made again at an address that has come since. */
TEST_ON(test_moves_on, struct fixture *f, open_fixture, close_fixture)
{
    set_addresses(f, (const char *const[]){dead, live}, 2);
    f->receiver = open_wire(f, live);
    dial(f);
    assert_true(run_until(f, is_up, -1));
    f->ups = 0;
    mu__wire_uv_close(f->receiver, on_closed, f);
    set_addresses(f, (const char *const[]){dead, deaf}, 2);
    f->receiver = open_wire(f, deaf);
    assert_true(run_until(f, is_up, -1));
}

/* Where the sender is connected once it is up. It hangs up then. */
static uint32_t place_reached(struct fixture *f, const struct mu__dial_tried *tried,
                              unsigned expected_count)
{
    struct mu__wire *wire = mu__wire_uv_wire(f->sender);
    unsigned count = 0;
    uint32_t place;

    f->ups = 0;
    dial(f);
    wire->ops->avoid(wire, OUT, tried);
    assert_int_equal(wire->ops->address_number(wire, OUT, &count), 0);
    assert_true(run_until(f, is_up, -1));
    place = wire->ops->address_number(wire, OUT, &count);
    assert_int_equal(count, expected_count);
    wire->ops->hangup(wire, OUT);
    return place;
}

/* An address at which somebody else was is tried last, in each look-up. */
TEST_ON(test_avoided, struct fixture *f, open_fixture, close_fixture)
{
    struct mu__dial_tried tried = {0};
    uint32_t places[2];

    f->receiver = open_wire(f, live);
    f->other = open_wire(f, spare);
    set_addresses(f, (const char *const[]){dead, live, spare}, 3);
    places[0] = place_reached(f, NULL, 3);
    assert_true(mu__dial_tried_add(&tried, places[0], 3));
    places[1] = place_reached(f, &tried, 3);
    assert_int_not_equal(places[0], places[1]);
    set_addresses(f, (const char *const[]){live, spare}, 2);
    assert_int_equal(place_reached(f, &tried, 2), places[1]);
    assert_true(mu__dial_tried_add(&tried, places[1], 3));
    assert_int_equal(place_reached(f, &tried, 2), places[0]);
}

int main(void)
{
    const char *missing = needs_programs("dnsmasq", NULL);
    const char *reason = missing == NULL ? machine_make_names() : missing;

    if (reason != NULL)
        return needs_skip(reason);
    return tests_run(NULL, NULL);
}
