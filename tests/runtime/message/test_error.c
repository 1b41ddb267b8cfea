/* Codes, their words, and the filling of a mu_error. */
#include "tests/support/test.h"

#include <muster/error.h>

#include <limits.h>

static const struct row {
    int code;
    const char *name;
    const char *words;
} rows[] = {
    {0, "OK", "no error"},
    {-MU_ECANCELLED, "ECANCELLED", "cancelled"},
    {-MU_ENOTFOUND, "ENOTFOUND", "not found"},
    {MU_ENOTFOUND, "ENOTFOUND", "not found"},
    {-MU_EAGAIN, "EAGAIN", "would block; try again"},
    {-MU_ECLOSED, "ECLOSED", "closed"},
    {-MU_EUNKNOWN, "EUNKNOWN", "unknown error"},
    {-9999, "EUNKNOWN", "unknown error"},
    {INT_MIN, "EUNKNOWN", "unknown error"},
    {INT_MAX, "EUNKNOWN", "unknown error"},
};

TEST(test_names_and_words)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(mu_err_name(rows[i].code), rows[i].name);
        assert_string_equal(mu_strerror(rows[i].code), rows[i].words);
    }
}

/* The canonical numbers are part of the wire format. */
TEST(test_numbers_stay)
{
    assert_int_equal(MU_EINVALID, 3);
    assert_int_equal(MU_ERANGE, 11);
    assert_int_equal(MU_EUNAVAILABLE, 14);
    assert_int_equal(MU_EUNAUTHENTICATED, 16);
}

/* No two codes have the same number or name. */
TEST(test_codes_are_distinct)
{
    int known = 0;

    for (int a = 1; a < 100; a++) {
        if (a != MU_EUNKNOWN && strcmp(mu_err_name(a), "EUNKNOWN") == 0)
            continue;
        known++;
        for (int b = a + 1; b < 100; b++) {
            if (strcmp(mu_err_name(b), "EUNKNOWN") != 0)
                assert_string_not_equal(mu_err_name(a), mu_err_name(b));
        }
    }
    assert_int_equal(known, 19);
}

TEST(test_set_fills_and_clears)
{
    mu_error error;

    memset(&error, 'x', sizeof error);
    assert_int_equal(mu_error_set(&error, -MU_ERANGE, "%s has %d", "worker", 3),
                     -MU_ERANGE);
    assert_int_equal(error.code, -MU_ERANGE);
    assert_string_equal(error.message, "worker has 3");
    assert_int_equal(error.attempt, 0);
    assert_int_equal(error.closure, 0);
    assert_string_equal(error.task, "");
    assert_string_equal(error.function, "");
}

TEST(test_set_takes_null)
{
    assert_int_equal(mu_error_set(NULL, -MU_EABORTED, "%d", 1), -MU_EABORTED);
}

/* An older message may be an argument of the newer one. */
TEST(test_set_may_wrap_itself)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EINVALID, "no port");
    (void)mu_error_set(&error, error.code, "worker[2]: %s", error.message);
    assert_int_equal(error.code, -MU_EINVALID);
    assert_string_equal(error.message, "worker[2]: no port");
}

/* A message too long ends in dots; the longest that fits stays whole. */
TEST(test_set_cuts_long_text)
{
    char text[2000];
    mu_error error;

    memset(text, 'a', sizeof text);
    text[sizeof error.message - 1] = '\0';
    (void)mu_error_set(&error, -MU_EINVALID, "%s", text);
    assert_string_equal(error.message, text);

    text[sizeof error.message - 1] = 'a';
    text[sizeof text - 1] = '\0';
    (void)mu_error_set(&error, -MU_EINVALID, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_string_equal(error.message + sizeof error.message - 5, "a...");
}

/* The cut never leaves half a UTF-8 character, wherever it falls. */
TEST(test_set_cuts_between_characters)
{
    char text[2000];

    for (size_t shift = 0; shift < 3; shift++) {
        size_t used = shift;
        mu_error error;
        size_t length;

        memset(text, 'a', shift);
        while (used + 4 < sizeof text) {
            memcpy(text + used, "\xE2\x82\xAC", 3);
            used += 3;
        }
        text[used] = '\0';
        (void)mu_error_set(&error, -MU_EINVALID, "%s", text);
        length = strlen(error.message);
        assert_string_equal(error.message + length - 6, "\xE2\x82\xAC...");
        assert_int_equal((length - 3 - shift) % 3, 0);
    }
}

/* Whatever the parts of a message are, the message is UTF-8. */
TEST(test_message_is_utf8)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EINVALID, "%s",
                       "a\xff"
                       "b\xc3\xa9"
                       "c\xc3");
    assert_string_equal(error.message, "a?b\xc3\xa9"
                                       "c?");
    (void)mu_error_set(&error, -MU_EINVALID, "%s", "\xed\xa0\x80|\xe2\x82\xac|\xf5");
    assert_string_equal(error.message, "???|\xe2\x82\xac|?");
}

TEST_PROGRAM()
