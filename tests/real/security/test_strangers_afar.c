/* Strangers at another machine's address, in a network of the test's own: what they may
 * have together is that address's part, and a cluster at work goes on beside them. Those
 * of this machine, which has no such part: test_strangers.c. */
#define _GNU_SOURCE
#include "tests/real/security/at_work.h"

#include "tests/real/machine.h"
#include "tests/real/needs.h"
#include "transport/wire/tls/endpoint.h"
#include "transport/wire/tls/key.h"
#include "transport/wire/unproven.h"

#include <poll.h>

#define AFAR "198.51.100.7"

enum {
    MANY = 800,
    AGAIN = 100 /* that the address gets back meanwhile, on a slow machine */
};

/* The loopback interface has this address, too: what comes from there is remote. */
static const char *add_address(void)
{
    struct ifreq request = {.ifr_name = "lo:1"};
    struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rv;

    address->sin_family = AF_INET;
    (void)inet_pton(AF_INET, AFAR, &address->sin_addr);
    rv = ioctl(fd, SIOCSIFADDR, &request);
    (void)close(fd);
    return rv == 0 ? NULL : "the loopback interface takes no other address";
}

static int connect_from_afar(size_t task)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *port = strrchr(at_work.addresses[task], ':') + 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)inet_pton(AF_INET, AFAR, &from.sin_addr);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static unsigned count_open(struct pollfd *all)
{
    unsigned count = 0;
    char heard[256];

    (void)poll(all, MANY, 20);
    for (unsigned i = 0; i < MANY; i++) {
        if (all[i].fd >= 0 && all[i].revents != 0 &&
            recv(all[i].fd, heard, sizeof heard, MSG_DONTWAIT) <= 0) {
            (void)close(all[i].fd);
            all[i].fd = -1;
        }
        count += all[i].fd >= 0;
    }
    return count;
}

/* All but the address's part are hung up on; the cluster is as before. */
static void expect_part(struct pollfd *all)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (count_open(all) > MU__UNPROVEN_BURST + AGAIN)
        if (cli_now_ms() >= deadline_ms)
            fail_msg("%u connections of one address stay", count_open(all));
    at_work_is_unharmed();
    for (unsigned i = 0; i < MANY; i++)
        if (all[i].fd >= 0)
            (void)close(all[i].fd);
}

LISTED_TEST(test_silent_ones)
{
    static struct pollfd all[MANY];

    for (unsigned i = 0; i < MANY; i++)
        all[i] = (struct pollfd){connect_from_afar(0), POLLIN, 0};
    expect_part(all);
    (void)cli_expect(&at_work.run, NULL,
                     "too many connections from there have not proven themselves");
}

/* Each begins a handshake, with a key that is not the cluster's. */
LISTED_TEST(test_handshakes)
{
    static struct pollfd all[MANY];
    struct mu__tls_identity *identity;
    struct mu__key key;

    assert_int_equal(mu__key_new(NULL, &key), 0);
    assert_int_equal(mu__tls_identity_of_key(&key, NULL, &identity), 0);
    for (unsigned i = 0; i < MANY; i++) {
        struct mu__tls *tls = mu__tls_new(identity, false);
        struct mu__buf *hello;

        assert_non_null(tls);
        assert_int_equal(mu__tls_begin(tls), 0);
        hello = mu__tls_output(tls);
        all[i] = (struct pollfd){connect_from_afar(1), POLLIN, 0};
        (void)send(all[i].fd, hello->data, hello->size, MSG_NOSIGNAL);
        mu__buf_unref(hello);
        mu__tls_free(tls);
    }
    mu__tls_identity_free(identity);
    expect_part(all);
}

static int begin(void **state)
{
    (void)state;
    at_work_begin();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    at_work_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_ones),
        cmocka_unit_test(test_handshakes),
    };
    const char *reason = machine_make();

    (void)signal(SIGPIPE, SIG_IGN);
    if (reason == NULL)
        reason = add_address();
    return reason != NULL ? needs_skip(reason)
                          : cmocka_run_group_tests(tests, begin, finish);
}
