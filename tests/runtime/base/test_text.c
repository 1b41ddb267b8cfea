/* Text from outside: what of it may be shown. */
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"
#include "tests/support/test.h"

static const struct {
    const char *text;
    const char *quoted;
    const char *hidden; /* NULL: it has no control character */
} rows[] = {
    {"", "\"\"", NULL},
    {"a b", "\"a b\"", NULL},
    {"\xc3\xa4\xe2\x82\xac", "\"\xc3\xa4\xe2\x82\xac\"", NULL},
    {"\xc2\xa0", "\"\xc2\xa0\"", NULL},
    {"\"\\", "\"\\\"\\\\\"", NULL},
    {"a\n\x1b[31m", "\"a\\x0a\\x1b[31m\"", "a??[31m"},
    {"\x7f", "\"\\x7f\"", "?"},
    {"a\xc2\x9b"
     "2J",
     "\"a\\xc2\\x9b2J\"", "a??2J"},
    {"\xc2", "\"\\xc2\"", NULL},
    {"\xff\x01", "\"\\xff\\x01\"", "\xff?"},
};

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char shown[MU__QUOTE_BYTES];
        char text[32];

        memcpy(text, rows[i].text, strlen(rows[i].text) + 1);
        mu__quote(shown, sizeof shown, text, strlen(text));
        assert_string_equal(shown, rows[i].quoted);
        assert_int_equal(mu__has_control(text), rows[i].hidden != NULL);
        mu__hide_control(text);
        assert_string_equal(text, rows[i].hidden == NULL ? rows[i].text : rows[i].hidden);
    }
}

/* However little room there is, it ends with a quote. */
TEST(test_no_room)
{
    char shown[16];

    mu__quote(shown, sizeof shown, "\xc2\x9b\xc2\x9b\xc2\x9b", 6);
    assert_string_equal(shown, "\"\\xc2\\x9b...\"");
    mu__quote(shown, sizeof shown, "0123456789abcdef", 16);
    assert_string_equal(shown, "\"0123456789...\"");
}

TEST(test_decimal)
{
    static const struct {
        const char *text;
        int64_t high;
        int64_t number;
    } numbers[] = {
        {"", 9, -1},
        {"0", 9, 0},
        {"9", 9, 9},
        {"10", 9, -1},
        {"007", 9, 7},
        {"-1", 9, -1},
        {"+1", 9, -1},
        {"1 ", 9, -1},
        {"65535", 65535, 65535},
        {"65536", 65535, -1},
        {"9223372036854775807", INT64_MAX, INT64_MAX},
        {"9223372036854775808", INT64_MAX, -1},
        {"99999999999999999999999", INT64_MAX, -1},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_int_equal(mu__decimal(numbers[i].text, strlen(numbers[i].text),
                                     numbers[i].high),
                         numbers[i].number);
    assert_int_equal(mu__decimal("12", 1, 9), 1);
}

TEST(test_refuse)
{
    mu_error error;

    assert_int_equal(mu__refuse(&error, "a\"b", 3, "%s: expected %d", "x", 7),
                     -MU_EINVALID);
    assert_string_equal(error.message, "x: expected 7, got \"a\\\"b\"");
}

TEST_PROGRAM()
