/* Lines of a log that strangers cause, and what stands in them. */
#include "transport/link/log_limit.h"

#include "runtime/base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- how many ---- */

static void test_one_line_in_ten_seconds(void **state)
{
    struct mu__log_limit limit = {0};
    uint64_t hidden = 99;
    unsigned shown = 0;

    (void)state;
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

static void test_addresses_do_not_hide_each_other(void **state)
{
    struct mu__log_limit limit = {0};
    uint64_t hidden;

    (void)state;
    assert_true(mu__log_limit_show(&limit, "10.0.0.1:1", 5, &hidden));
    assert_true(mu__log_limit_show(&limit, "10.0.0.2:1", 5, &hidden));
    assert_true(mu__log_limit_show(&limit, "[::1]:1", 5, &hidden));
    assert_true(mu__log_limit_show(&limit, "unix", 5, &hidden));
    assert_true(mu__log_limit_show(&limit, "", 5, &hidden));
    assert_false(mu__log_limit_show(&limit, "10.0.0.2:7", 6, &hidden));
    assert_false(mu__log_limit_show(&limit, "[::1]:7", 6, &hidden));
    assert_false(mu__log_limit_show(&limit, "unix", 6, &hidden));
}

/* Ten thousand addresses a second give no more lines than there are slots. */
static void test_many_addresses_are_bounded(void **state)
{
    struct mu__log_limit limit = {0};
    uint64_t hidden;
    unsigned shown = 0;

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        char address[32];

        (void)snprintf(address, sizeof address, "10.%u.%u.%u:9", i >> 16, i >> 8 & 255,
                       i & 255);
        shown += mu__log_limit_show(&limit, address, i / 10, &hidden);
    }
    assert_in_range(shown, 1, 2 * (MU__LOG_LIMIT_ADDRESSES + 1));
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

static void test_printable(void **state)
{
    (void)state;
    expect_printed("plain words, 1 < 2 \\", "plain words, 1 < 2 \\");
    expect_printed("a\nERROR forged", "a\\nERROR forged");
    expect_printed("a\r\tb", "a\\r\\tb");
    expect_printed("\x1b[2Jgone\x07\x7f", "\\x1b[2Jgone\\x07\\x7f");
    expect_printed("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb1",
                   "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb1");
    expect_printed("\xc2\x9b" "31m", "\\xc2\\x9b31m");
    expect_printed("a\xe2\x80\xa8" "b", "a\\xe2\\x80\\xa8b");
    expect_printed("\xff\xfe\xc3", "\\xff\\xfe\\xc3");
    expect_printed("\xc0\xaf\xed\xa0\x80\xf5\x80\x80\x80",
                   "\\xc0\\xaf\\xed\\xa0\\x80\\xf5\\x80\\x80\\x80");
}

static void test_printable_is_cut(void **state)
{
    char out[12];

    (void)state;
    mu__printable("\n\n\n\n\n\n\n\n", out, sizeof out);
    assert_string_equal(out, "\\n\\n\\n\\n");
    mu__printable("x", out, 1);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line_in_ten_seconds),
        cmocka_unit_test(test_addresses_do_not_hide_each_other),
        cmocka_unit_test(test_many_addresses_are_bounded),
        cmocka_unit_test(test_printable),
        cmocka_unit_test(test_printable_is_cut),
    };

    return cmocka_run_group_tests_name("log_limit", tests, NULL, NULL);
}
