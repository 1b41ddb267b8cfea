/* Listening at a name: which of its addresses it is, and what is said when it is none.
 * The system's look-up is the test's own here. */
#define _GNU_SOURCE /* RTLD_NEXT, EAI_NODATA */

#include "node/discovery/own_address.h"
#include "runtime/uv/look_up.h"
#include "tests/real/needs.h"
#include "tests/support/test.h"
#include "transport/wire/uv/listen.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

enum { SOON_MS = 20000, TRIES = 10, ADDRESSES = 20 };

/* ---- The system ---- */

/* Of no machine: 203.0.113.0/24 and 2001:db8::/32 are for documents. */
static const struct {
    const char *name;
    int status;
    const char *addresses[ADDRESSES];
} names[] = {
    {"near.test", 0, {"203.0.113.1", "127.0.0.1"}},
    {"two.test", 0, {"127.0.0.1", "127.0.0.2"}},
    {"far.test", 0, {"203.0.113.1", "203.0.113.2"}},
    {"one.test", 0, {"203.0.113.1"}},
    {"mixed.test", 0, {"2001:db8::1", "127.0.0.1", "2001:db8::1", "127.0.0.1"}},
    {"many.test",
     0,
     {"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.5",
      "203.0.113.6", "203.0.113.7", "203.0.113.8", "203.0.113.9", "203.0.113.10",
      "203.0.113.11", "203.0.113.12", "203.0.113.13", "203.0.113.14", "203.0.113.15",
      "203.0.113.16", "203.0.113.17", "203.0.113.18", "203.0.113.19"}},
    {"unknown.test", EAI_NONAME, {NULL}},
    {"empty.test", EAI_NODATA, {NULL}},
    {"away.test", EAI_AGAIN, {NULL}},
    {"poor.test", EAI_MEMORY, {NULL}},
    {"nothing.test", 0, {NULL}},
};

static int ask_system(const char *node, const char *service, const struct addrinfo *hints,
                      struct addrinfo **res)
{
    int (*system)(const char *, const char *, const struct addrinfo *,
                  struct addrinfo **);
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&system, &symbol, sizeof system);
    return system(node, service, hints, res);
}

/* The real one makes what freeaddrinfo frees. */
static int chain(const char *const *addresses, const char *service,
                 const struct addrinfo *hints, struct addrinfo **res)
{
    struct addrinfo **last = res;
    int rv = 0;

    *res = NULL;
    for (size_t i = 0; rv == 0 && i < ADDRESSES && addresses[i] != NULL; i++) {
        rv = ask_system(addresses[i], service, hints, last);
        if (rv == 0)
            last = &(*last)->ai_next;
    }
    return rv;
}

MU_EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                          const struct addrinfo *restrict hints,
                          struct addrinfo **restrict res)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (node != NULL && strcmp(node, names[i].name) == 0)
            return names[i].status != 0 ? names[i].status
                                        : chain(names[i].addresses, service, hints, res);
    return ask_system(node, service, hints, res);
}

/* ---- Looking up ---- */

static void look_up(const char *name, struct mu__addresses *ret_addresses)
{
    mu_error error = {0};

    if (mu__look_up(name, 7000, SOON_MS, &error, ret_addresses) != 0)
        fail_msg("%s", error.message);
}

/* In the system's order, each once. */
TEST(test_addresses)
{
    struct mu__addresses addresses;
    char text[INET6_ADDRSTRLEN];

    look_up("mixed.test", &addresses);
    assert_int_equal(addresses.count, 2);
    assert_int_equal(addresses.items[0].v6.sin6_family, AF_INET6);
    assert_int_equal(ntohs(addresses.items[0].v6.sin6_port), 7000);
    assert_int_equal(addresses.items[1].v4.sin_family, AF_INET);
    assert_int_equal(ntohs(addresses.items[1].v4.sin_port), 7000);
    look_up("many.test", &addresses);
    assert_int_equal(addresses.count, MU__ADDRESSES_MAX);
    assert_non_null(inet_ntop(
        AF_INET, &addresses.items[MU__ADDRESSES_MAX - 1].v4.sin_addr, text, sizeof text));
    assert_string_equal(text, "203.0.113.16");
}

TEST(test_failures)
{
    static const struct {
        const char *name;
        int code;
        const char *words; /* NULL: the system's */
        int status;
    } rows[] = {
        {"unknown.test", -MU_ENOTFOUND, NULL, EAI_NONAME},
        {"empty.test", -MU_ENOTFOUND, NULL, EAI_NODATA},
        {"away.test", -MU_EUNAVAILABLE, NULL, EAI_AGAIN},
        {"poor.test", -MU_ENOMEM, NULL, EAI_MEMORY},
        {"nothing.test", -MU_ENOTFOUND, "it has no address", 0},
    };
    struct mu__addresses addresses;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};

        assert_int_equal(mu__look_up(rows[i].name, 1, SOON_MS, &error, &addresses),
                         rows[i].code);
        assert_string_equal(error.message, rows[i].words != NULL
                                               ? rows[i].words
                                               : gai_strerror(rows[i].status));
    }
}

/* ---- Listening ---- */

static unsigned listens_at(const struct mu__listening *listening, const char *expected)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    char text[INET_ADDRSTRLEN];

    assert_int_equal(getsockname(listening->fd, (struct sockaddr *)&address, &size), 0);
    assert_non_null(inet_ntop(AF_INET, &address.sin_addr, text, sizeof text));
    assert_string_equal(text, expected);
    return ntohs(address.sin_port);
}

/* The first that this machine has, by the name that was said. */
TEST(test_first_of_ours)
{
    static const char *const rows[] = {"near.test", "two.test", "mixed.test"};
    struct mu__listening listening;
    char expected[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};
        char url[64];

        (void)snprintf(url, sizeof url, "tcp://%s:0", rows[i]);
        if (mu__listen(url, &error, &listening) != 0)
            fail_msg("%s", error.message);
        (void)snprintf(expected, sizeof expected, "tcp://%s:%u", rows[i],
                       listens_at(&listening, "127.0.0.1"));
        assert_string_equal(listening.text, expected);
        mu__listening_close(&listening);
    }
}

TEST(test_none_of_ours)
{
    static const struct {
        const char *url;
        int code;
        const char *words;
    } rows[] = {
        {"tcp://far.test:0", -MU_EINVALID,
         "cannot listen at tcp://far.test:0: 203.0.113.1, 203.0.113.2: address not "
         "available; expected an address of this machine, whose interface is up"},
        {"tcp://one.test:0", -MU_EINVALID,
         "cannot listen at tcp://one.test:0: 203.0.113.1: address not available; "
         "expected an address of this machine, whose interface is up"},
        {"tcp://203.0.113.1:0", -MU_EINVALID,
         "cannot listen at tcp://203.0.113.1:0: address not available; expected an "
         "address of this machine, whose interface is up"},
        {"tcp://nothing.test:0", -MU_EINVALID,
         "cannot listen at tcp://nothing.test:0: its host is not found: it has no "
         "address; expected one that this machine can look up, or a number, as in "
         "--bind tcp://0.0.0.0:7000"},
    };
    struct mu__listening listening;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};

        assert_int_equal(mu__listen(rows[i].url, &error, &listening), rows[i].code);
        assert_string_equal(error.message, rows[i].words);
    }
}

TEST(test_not_found)
{
    static const struct {
        const char *url;
        int code;
        int status;
    } rows[] = {
        {"tcp://unknown.test:0", -MU_EINVALID, EAI_NONAME},
        {"tcp://empty.test:0", -MU_EINVALID, EAI_NODATA},
        {"tcp://away.test:0", -MU_EUNAVAILABLE, EAI_AGAIN},
        {"tcp://poor.test:0", -MU_ENOMEM, EAI_MEMORY},
    };
    struct mu__listening listening;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};

        assert_int_equal(mu__listen(rows[i].url, &error, &listening), rows[i].code);
        assert_non_null(strstr(error.message, rows[i].url));
        assert_non_null(strstr(error.message, gai_strerror(rows[i].status)));
    }
}

/* Where another one listens already, the name's other addresses are not taken. */
TEST(test_taken)
{
    static const struct {
        const char *name;
        const char *words;
    } rows[] = {
        {"two.test", ": 127.0.0.1: address already in use; another process (or node) "
                     "listens there"},
        {"near.test", ": 203.0.113.1: address not available; 127.0.0.1: address already "
                      "in use; another process (or node) listens there"},
    };
    struct mu__listening listening;
    struct mu__listening other;
    mu_error error = {0};
    unsigned port;

    assert_int_equal(mu__listen("tcp://127.0.0.1:0", &error, &listening), 0);
    port = listens_at(&listening, "127.0.0.1");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[256];
        char url[64];

        (void)snprintf(url, sizeof url, "tcp://%s:%u", rows[i].name, port);
        (void)snprintf(expected, sizeof expected, "cannot listen at %s%s", url,
                       rows[i].words);
        assert_int_equal(mu__listen(url, &error, &other), -MU_EEXISTS);
        assert_string_equal(error.message, expected);
    }
    mu__listening_close(&listening);
}

/* What is said of many has an end. */
TEST(test_many)
{
    struct mu__listening listening;
    mu_error error = {0};

    assert_int_equal(mu__listen("tcp://many.test:0", &error, &listening), -MU_EINVALID);
    assert_non_null(strstr(error.message, "203.0.113.15, 203.0.113.16: address not "
                                          "available; expected an address of this"));
    assert_null(strstr(error.message, "203.0.113.17"));
}

/* NULL, or why not: with ip_nonlocal_bind a machine listens where others are. */
static const char *check_addresses(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(0xCB007101)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int rv;

    assert_true(fd >= 0);
    rv = bind(fd, (const struct sockaddr *)&address, sizeof address);
    assert_int_equal(close(fd), 0);
    return rv == 0 ? "this machine can listen at 203.0.113.1" : NULL;
}

NEEDS_PROGRAM(check_addresses(), NULL, NULL)
