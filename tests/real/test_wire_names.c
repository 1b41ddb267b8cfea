/* Names with several addresses: a wire tries them in turn. In a network and a file system
 * of the test's own, where this machine's DNS server is the test's. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/machine.h"

#include "transport/wire_uv.h"

#include <netdb.h>

enum { PORT = 7001, OUT = 1, WAIT_MS = 25000 };

/* In this order the system gives them, and they are dialled. */
static const char dead[] = "127.0.0.1";     /* nothing listens */
static const char rude[] = "127.0.0.6";     /* hangs up */
static const char deaf[] = "127.0.0.8";     /* lets nobody in, and says nothing */
static const char live[] = "127.0.0.16";    /* a wire */

struct fixture {
    struct dnsmasq dnsmasq;
    uv_loop_t loop;
    uv_timer_t look;
    struct mu__wire_uv *sender;
    struct mu__wire_uv *receiver;   /* NULL: not opened */
    unsigned ups;
    unsigned sent_away;             /* by the rude one */
    unsigned opened;
    unsigned closed;
    char first_error[256];          /* of the sender's first round */
};

/* ---- what the wires tell ---- */

static void on_up(void *owner, uint32_t out)
{
    (void)out;
    ((struct fixture *)owner)->ups++;
}

static void on_down(void *owner, uint32_t out, const char *reason)
{
    (void)owner;
    (void)out;
    (void)reason;
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
    on_up, on_down, on_writable, on_frame, on_down, on_burst_end,
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

/* A plain listener; with `backlog` 0 it has room for one connection. */
static int open_plain(const char *host, int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    address.sin_port = htons(PORT);
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static int connect_plain(const char *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    address.sin_port = htons(PORT);
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    (void)connect(fd, (struct sockaddr *)&address, sizeof address);
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
        char name[INET_ADDRSTRLEN];

        text[0] = '\0';
        if (getaddrinfo("many.test", NULL, &hints, &found) == 0)
            for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
                if (uv_ip_name(at->ai_addr, name, sizeof name) == 0)
                    (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                                   "%s ", name);
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

    f = (struct fixture){.ups = 0};
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

static void test_next_at_once(void **state)
{
    struct fixture *f = *state;
    int fd = open_plain(rude, 8);

    set_addresses(f, (const char *const[]){dead, rude, live}, 3);
    f->receiver = open_wire(f, live);
    dial(f);
    assert_true(run_until(f, is_up, fd));
    assert_int_equal(f->ups, 1);
    assert_int_equal(f->sent_away, 1);
    assert_string_equal(f->first_error, "");    /* no look-up has failed as a whole */
    (void)close(fd);
}

/* One that does not answer has the limit of an attempt, and then it is the next one's
 * turn. */
static void test_after_a_deaf_one(void **state)
{
    struct fixture *f = *state;
    uint64_t begin_ms = uv_hrtime() / 1000000;
    int fd = open_plain(deaf, 0);
    int fills[4];

    for (size_t i = 0; i < 4; i++)
        fills[i] = connect_plain(deaf);
    set_addresses(f, (const char *const[]){dead, deaf, live}, 3);
    f->receiver = open_wire(f, live);
    dial(f);
    assert_true(run_until(f, is_up, -1));
    assert_string_equal(f->first_error, "");
    assert_true(uv_hrtime() / 1000000 - begin_ms >= 9000);
    for (size_t i = 0; i < 4; i++)
        (void)close(fills[i]);
    (void)close(fd);
}

/* After the last one the name is looked up anew. */
static void test_all_fail(void **state)
{
    struct fixture *f = *state;
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
static void test_moves_on(void **state)
{
    struct fixture *f = *state;

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_next_at_once, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_after_a_deaf_one, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(test_all_fail, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_moves_on, open_fixture, close_fixture),
    };
    const char *reason =
        dnsmasq_program() == NULL ? "dnsmasq is not installed" : machine_make_names();

    if (reason != NULL) {
        print_message("%s: skipped\n", reason);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
