/* Names that a node needs before it begins, whose look-up hangs: whoever waits does so
 * for a while, and says why. */
#include "node/discovery/own_address.h"
#include "runtime/uv/blocking.h"
#include "runtime/uv/look_up.h"
#include "tests/real/hanging_dns.h"
#include "tests/support/test.h"
#include "transport/wire/uv/listen.h"

#include <unistd.h>

enum {
    SHORT_MS = 100,
    SOON_MS = 20000,
    TRIES = 10,
    ROUNDS = 300,
    HANGING = MU__BLOCKING_THREADS_MAX
};

static int hang(void **state)
{
    (void)state;
    (void)pthread_mutex_lock(&dns.lock);
    dns.answers = false;
    dns.entered = 0;
    dns.left = 0;
    (void)pthread_mutex_unlock(&dns.lock);
    return 0;
}

/* All threads are back from here. */
static int answer(void **state)
{
    (void)state;
    dns_answer(true);
    dns_wait(&dns.left, dns_count(&dns.entered));
    return 0;
}

/* What hangs goes on by itself, and more of it waits in its lane. One whose thread had no
 * turn within the limit never begins. */
TEST_WITH(test_limit, hang, answer)
{
    struct mu__addresses addresses;
    bool is_full = false;

    for (int i = 0; i < ROUNDS && !is_full; i++) {
        unsigned begun = dns_count(&dns.entered);
        mu_error error = {0};

        is_full = begun == HANGING;
        assert_int_equal(mu__look_up("hangs.test", 1, SHORT_MS, &error, &addresses),
                         -MU_EDEADLINE);
        if (is_full)
            assert_string_equal(error.message,
                                "no answer within 100 ms: it has not begun, since 8 "
                                "others have not ended");
        else if (strcmp(error.message, "no answer within 100 ms") == 0)
            dns_wait(&dns.entered, begun + 1);
        else
            assert_non_null(strstr(error.message, "within 100 ms: it has not begun, "));
    }
    if (!is_full)
        fail_msg("%u of %d look-ups have begun after %d rounds", dns_count(&dns.entered),
                 (int)HANGING, (int)ROUNDS);
    assert_int_equal(dns_count(&dns.left), 0);
    assert_int_equal(dns_count(&dns.entered), HANGING);
}

TEST_WITH(test_answer, hang, answer)
{
    struct mu__addresses addresses;
    mu_error error = {0};

    dns_answer(true);
    assert_int_equal(mu__look_up("away.test", 1, SOON_MS, &error, &addresses),
                     -MU_EUNAVAILABLE);
    assert_string_equal(error.message, gai_strerror(EAI_AGAIN));
}

TEST_WITH(test_listen, hang, answer)
{
    static const char begin[] =
        "cannot listen at tcp://hangs.test:7000: its host cannot be looked up: no answer "
        "within 100 ms";
    static const char end[] = "; expected one that this machine can look up, or a "
                              "number, as in --bind tcp://0.0.0.0:7000";
    struct mu__listening listening;
    mu_error error = {0};

    assert_int_equal(mu__listen_within("tcp://hangs.test:7000", SHORT_MS, &error,
                                       &listening),
                     -MU_EUNAVAILABLE);
    assert_memory_equal(error.message, begin, sizeof begin - 1);
    assert_non_null(strstr(error.message, end));
    if (strstr(error.message, "it has not begun") == NULL)
        dns_wait(&dns.entered, 1);
}

/* Nothing has to be looked up for these. */
TEST_WITH(test_numbers, hang, answer)
{
    static const char *const urls[] = {"tcp://127.0.0.1:0", "tcp://0.0.0.0:0",
                                       "tcp://*:0"};
    struct mu__addresses addresses;
    struct mu__listening listening;
    mu_error error = {0};

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        if (mu__listen(urls[i], &error, &listening) != 0)
            fail_msg("%s", error.message);
        mu__listening_close(&listening);
    }
    assert_int_equal(mu__look_up("2001:db8::1", 7000, SOON_MS, &error, &addresses), 0);
    assert_int_equal(addresses.count, 1);
    assert_int_equal(addresses.items[0].v6.sin6_family, AF_INET6);
    assert_int_equal(ntohs(addresses.items[0].v6.sin6_port), 7000);
    assert_int_equal(dns_count(&dns.entered), 0);
}

/* It goes on without its name, as if that stood for nothing; and says so. */
TEST_WITH(test_own_host, hang, answer)
{
    char host[MU__OWN_HOST_BYTES];
    char nameless[MU__OWN_HOST_BYTES];
    const char *words = mu__own_host(host);

    assert_non_null(words);
    assert_non_null(strstr(words, "this machine's own name is not looked up"));
    dns_answer(true);
    for (int i = 0; i < TRIES && words != NULL; i++)
        words = mu__own_host(nameless);
    assert_null(words);
    assert_string_equal(host, nameless);
}

TEST_PROGRAM()
