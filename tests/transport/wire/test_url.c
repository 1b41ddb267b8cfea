/* Addresses of wires, taken apart. */
#include "tests/support/test.h"
#include "transport/wire/url.h"

/* Host or path when right; part of the complaint when wrong. */
static const struct row {
    const char *text;
    bool listening;
    bool right;
    bool ipc;
    unsigned port;
    const char *words;
} rows[] = {
    {"tcp://host:7000", false, true, false, 7000, "host"},
    {"tcp://10.0.0.1:1", false, true, false, 1, "10.0.0.1"},
    {"tcp://[::1]:7000", false, true, false, 7000, "::1"},
    {"tcp://*:0", true, true, false, 0, "*"},
    {"tcp://127.0.0.1:65535", true, true, false, 65535, "127.0.0.1"},
    {"ipc:///run/muster/a", false, true, true, 0, "/run/muster/a"},
    {"tcp://host:0", false, false, false, 0, "port 0"},
    {"tcp://host:65536", false, false, false, 0, "up to 65535"},
    {"tcp://host:999999", false, false, false, 0, "up to 65535"},
    {"tcp://host:7000/path", false, false, false, 0, "port"},
    {"tcp://host:", false, false, false, 0, "port"},
    {"tcp://host:-1", false, false, false, 0, "port"},
    {"tcp://host", false, false, false, 0, "tcp://host:port"},
    {"tcp://:7000", false, false, false, 0, "host"},
    {"tcp://", false, false, false, 0, "tcp://host:port"},
    {"tcp://a b:7000", false, false, false, 0, "plain"},
    {"tcp://a/b:7000", false, false, false, 0, "plain"},
    {"tcp://::1:7000", false, false, false, 0, "brackets"},
    {"tcp://[::1:7000", false, false, false, 0, "bracket"},
    {"tcp://[]:7000", false, false, false, 0, "bracket"},
    {"ipc://relative", false, false, false, 0, "absolute"},
    {"ipc://", false, false, false, 0, "absolute"},
    {"udp://host:7000", false, false, false, 0, "tcp:// or ipc://"},
    {"", false, false, false, 0, "tcp:// or ipc://"},
};

/* What only nng's sockets have: refused of the others, and so read of all. */
TEST(test_schemes_of_nng)
{
    static const struct {
        const char *text;
        enum mu__scheme scheme;
        const char *name;
        unsigned port;
        const char *rest;
    } of_nng[] = {
        {"tls+tcp://host:7000", MU__SCHEME_TLS_TCP, "tls+tcp", 7000, "host"},
        {"ws://10.0.0.1:80", MU__SCHEME_WS, "ws", 80, "10.0.0.1"},
        {"wss://[::1]:443", MU__SCHEME_WSS, "wss", 443, "::1"},
        {"inproc://a-name", MU__SCHEME_INPROC, "inproc", 0, "a-name"},
    };
    static const char *const wrong[] = {
        "ws://",        "ws://host",        "ws://host:80/path",
        "wss://:1",     "tls+tcp://host:0", "inproc://",
        "inproc://a b", "inproc://a/b",     "tls://host:1",
        "ws:/host:1",
    };
    struct mu__url url;

    for (size_t i = 0; i < sizeof of_nng / sizeof of_nng[0]; i++) {
        assert_non_null(mu__url_parse(of_nng[i].text, false, &url));
        assert_null(mu__url_parse_any(of_nng[i].text, false, &url));
        assert_int_equal(url.scheme, of_nng[i].scheme);
        assert_false(url.ipc);
        assert_int_equal(url.port, of_nng[i].port);
        assert_string_equal(url.port == 0 ? url.path : url.host, of_nng[i].rest);
        assert_string_equal(mu__scheme_name(url.scheme), of_nng[i].name);
        assert_true(mu__url_is_of_nng(of_nng[i].text));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_non_null(mu__url_parse_any(wrong[i], false, &url));
    assert_null(mu__url_parse_any("ws://host:0", true, &url));
    assert_false(mu__url_is_of_nng("tcp://host:1"));
    assert_false(mu__url_is_of_nng("host:1"));
    assert_false(mu__url_is_of_nng(NULL));
}

static void check_row(const struct row *row)
{
    struct mu__url url;
    const char *fault;

    memset(&url, 0x5a, sizeof url);
    fault = mu__url_parse(row->text, row->listening, &url);
    if (!row->right) {
        if (fault == NULL || strstr(fault, row->words) == NULL)
            fail_msg("\"%s\": \"%s\" lacks \"%s\"", row->text,
                     fault == NULL ? "(no complaint)" : fault, row->words);
        assert_int_equal(url.port, 0x5a5a);
        return;
    }
    if (fault != NULL)
        fail_msg("\"%s\": %s", row->text, fault);
    assert_int_equal(url.ipc, row->ipc);
    assert_int_equal(url.port, row->port);
    assert_string_equal(row->ipc ? url.path : url.host, row->words);
}

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_row(&rows[i]);
}

/* One byte beyond each bound, and the bound itself. */
TEST(test_bounds_of_length)
{
    char text[400] = "ipc://";
    struct mu__url url;

    memset(text + 6, '/', MU__URL_PATH_MAX);
    assert_null(mu__url_parse(text, false, &url));
    text[6 + MU__URL_PATH_MAX] = '/';
    assert_non_null(mu__url_parse(text, false, &url));

    memset(text, 0, sizeof text);
    memcpy(text, "tcp://", 6);
    memset(text + 6, 'h', MU__URL_HOST_MAX);
    memcpy(text + 6 + MU__URL_HOST_MAX, ":1", 2);
    assert_null(mu__url_parse(text, false, &url));
    memcpy(text + 6 + MU__URL_HOST_MAX, "h:1", 3);
    assert_non_null(mu__url_parse(text, false, &url));
}

TEST_PROGRAM()
