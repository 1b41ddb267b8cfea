/* Lines of a log that strangers cause, and what stands in them. */
#include "transport/link/log_limit.h"

#include "runtime/base/printable.h"
#include "tests/support/test.h"

/* ---- how many ---- */

TEST(test_one_line_of_an_address_in_ten_seconds)
{
    struct mu__log_limit limit = {0};
    uint64_t hidden = 99;
    unsigned shown = 0;

    for (uint64_t ms = 0; ms < 30000; ms++) {
        char address[32];

        (void)snprintf(address, sizeof address, "10.0.0.1:%u", (unsigned)(ms % 60000));
        if (mu__log_limit_show(&limit, address, ms, &hidden)) {
            assert_int_equal(hidden, shown == 0 ? 0 : 9999);
            shown++;
        }
    }
    assert_int_equal(shown, 3);
}

/* What is shown, step by step, and how many it says were not. */
TEST(test_one_line_a_second)
{
    static const struct {
        uint64_t now_ms;
        const char *address;
        int hidden; /* -1: it is not shown */
    } rows[] = {
        {5, "10.0.0.1:1", 0},     {6, "10.0.0.2:1", -1},
        {1004, "[::1]:1", -1},    {1005, "10.0.0.2:1", 2},
        {2005, "10.0.0.2:7", -1}, /* the same, within ten seconds */
        {2006, "10.0.0.1:7", -1}, {2007, "[::1]:7", 2},
        {3007, "unix", 0},        {4007, "", 0},
        {9000, "10.0.0.1:1", -1}, {10005, "10.0.0.1:1", 1},
        {11005, "10.0.0.2:1", 0},
    };
    struct mu__log_limit limit = {0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t hidden = 99;
        bool shown = mu__log_limit_show(&limit, rows[i].address, rows[i].now_ms, &hidden);

        if (shown != (rows[i].hidden >= 0) || (shown && (int)hidden != rows[i].hidden))
            fail_msg("row %zu: shown %d, hidden %d", i, shown, (int)hidden);
    }
}

/* Addresses and texts share the limit. */
TEST(test_texts_are_limited_as_addresses)
{
    struct mu__log_limit limit = {0};
    uint64_t hidden = 99;

    assert_true(mu__log_limit_show_line(&limit, "refused a", 5, &hidden));
    assert_false(mu__log_limit_show_line(&limit, "refused b", 6, &hidden));
    assert_false(mu__log_limit_show(&limit, "10.0.0.1:1", 7, &hidden));
    assert_false(mu__log_limit_show_line(&limit, "refused a", 1005, &hidden));
    assert_true(mu__log_limit_show_line(&limit, "refused b", 1005, &hidden));
    assert_int_equal(hidden, 3);
}

/* Ten thousand addresses a second give one line a second, and every other is counted. */
TEST(test_many_addresses_are_bounded)
{
    struct mu__log_limit limit = {0};
    uint64_t hidden;
    uint64_t counted = 0;
    unsigned shown = 0;

    for (unsigned i = 0; i <= 600000; i++) {
        char address[32];

        (void)snprintf(address, sizeof address, "10.%u.%u.%u:9", i >> 16, i >> 8 & 255,
                       i & 255);
        if (!mu__log_limit_show(&limit, address, i / 10, &hidden))
            continue;
        shown++;
        counted += hidden;
    }
    assert_int_equal(shown, 61);
    assert_int_equal(counted, 600001 - 61);
}

/* ---- what stands in them ---- */

static void expect_printed(const char *text, const char *shown)
{
    char out[128];
    char again[128];

    mu__printable(text, out, sizeof out);
    assert_string_equal(out, shown);
    mu__printable(out, again, sizeof again);
    assert_string_equal(again, shown);
}

TEST(test_printable)
{
    expect_printed("plain words, 1 < 2 \\", "plain words, 1 < 2 \\");
    expect_printed("a\nERROR forged", "a\\nERROR forged");
    expect_printed("a\r\tb", "a\\r\\tb");
    expect_printed("\x1b[2Jgone\x07\x7f", "\\x1b[2Jgone\\x07\\x7f");
    expect_printed("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb1",
                   "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb1");
    expect_printed("\xc2\x9b"
                   "31m",
                   "\\xc2\\x9b31m");
    expect_printed("a\xe2\x80\xa8"
                   "b",
                   "a\\xe2\\x80\\xa8b");
    expect_printed("\xff\xfe\xc3", "\\xff\\xfe\\xc3");
    expect_printed("\xc0\xaf\xed\xa0\x80\xf5\x80\x80\x80",
                   "\\xc0\\xaf\\xed\\xa0\\x80\\xf5\\x80\\x80\\x80");
}

TEST(test_printable_is_cut)
{
    char out[12];

    mu__printable("\n\n\n\n\n\n\n\n", out, sizeof out);
    assert_string_equal(out, "\\n\\n\\n\\n");
    mu__printable("x", out, 1);
    assert_string_equal(out, "");
}

TEST_PROGRAM()
