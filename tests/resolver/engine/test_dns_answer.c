/* The bytes of DNS: requests as they must stand on the wire, answers of all shapes, and
 * answers that lie. */
#include "resolver/engine/dns_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A name as it stands at byte 12 of an answer, "a.b", and its request. */
#define HEAD(answers)                         \
    "\x12\x34\x81\x80\0\1" answers "\0\0\0\0" \
    "\1"                                      \
    "a\1"                                     \
    "b\0"
#define ASKED(type) "\0" type "\0\1"
#define OWNER "\xC0\x0C"
#define RECORD(type, size) \
    "\0" type "\0\1"       \
    "\0\0\0\x3C" size
#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void test_question(void **state)
{
    static const char expected[] = HEAD("\0\0") ASKED("\x1C");
    uint8_t bytes[MU__DNS_QUERY_BYTES];
    size_t size = 0;

    (void)state;
    assert_int_equal(
        mu__dns_query_write("A.b.", MU__DNS_AAAA, 0x1234, NULL, bytes, &size), 0);
    assert_int_equal(size, sizeof expected - 1);
    bytes[2] = (uint8_t)expected[2];
    bytes[3] = (uint8_t)expected[3];
    assert_memory_equal(bytes, expected, size);
}

static void test_bad_names(void **state)
{
    static const struct {
        const char *name;
        const char *words;
    } rows[] = {
        {"", "at 1: expected a part of a name, got nothing"},
        {".", "at 1: expected a part of a name, got nothing"},
        {"a..b", "at 3: expected a part of a name, got nothing"},
        {"a b", "at 2: expected a letter, a digit, \"-\", \"_\" or \".\""},
        {"a.b..", "at 5: expected a part of a name, got nothing"},
    };
    char long_part[80] = "";
    char long_name[300] = "";
    uint8_t bytes[MU__DNS_QUERY_BYTES];
    size_t size = 0;
    mu_error error;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(
            mu__dns_query_write(rows[i].name, MU__DNS_A, 1, &error, bytes, &size),
            -MU_EINVALID);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s", error.message);
    }
    memset(long_part, 'x', 64);
    assert_int_equal(mu__dns_query_write(long_part, MU__DNS_A, 1, &error, bytes, &size),
                     -MU_EINVALID);
    long_part[63] = '\0';
    assert_int_equal(mu__dns_query_write(long_part, MU__DNS_A, 1, &error, bytes, &size),
                     0);
    for (size_t i = 0; i < 254; i++)
        long_name[i] = i % 2 == 0 ? 'a' : '.';
    assert_int_equal(mu__dns_query_write(long_name, MU__DNS_A, 1, &error, bytes, &size),
                     0);
    memcpy(long_name + 253, "aa", 3);
    assert_int_equal(mu__dns_query_write(long_name, MU__DNS_A, 1, &error, bytes, &size),
                     -MU_EINVALID);
}

static void expect_text(const char *what, const uint8_t *bytes, size_t size, int type,
                        const char *expected)
{
    struct mu__dns_records records = {0};
    size_t text_size = 0;
    mu_error error;
    char *text;

    if (mu__dns_answer_read(bytes, size, type, &error, &records) != 0)
        fail_msg("%s: %s", what, error.message);
    text = mu__dns_records_text(&records, &text_size);
    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(text_size, strlen(expected));
    free(text);
    mu__dns_records_done(&records);
}

static void test_answers(void **state)
{
    (void)state;
    expect_text("none", BYTES(HEAD("\0\0") ASKED("\1")), MU__DNS_A, "");
    expect_text(
        "sorted, each once",
        BYTES(
            HEAD("\0\3") ASKED("\1")
                OWNER RECORD("\1", "\0\4") "\x0A\0\0\x0A" OWNER RECORD(
                    "\1", "\0\4") "\x0A\0\0\2" OWNER RECORD("\1", "\0\4") "\x0A\0\0\x0A"),
        MU__DNS_A, "10.0.0.2\n10.0.0.10\n");
    expect_text("IPv6",
                BYTES(HEAD("\0\1") ASKED("\x1C") OWNER RECORD(
                    "\x1C", "\0\x10") "\xFD\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"),
                MU__DNS_AAAA, "fd00::1\n");
    expect_text("an alias, after what it stands for",
                BYTES(HEAD("\0\2") ASKED(
                    "\1") "\1"
                          "c" OWNER RECORD("\1", "\0\4") "\x0A\0\0\1" OWNER RECORD(
                              "\5", "\0\4") "\1"
                                            "C" OWNER),
                MU__DNS_A, "10.0.0.1\n");
    expect_text("what is of another name does not count",
                BYTES(HEAD("\0\1") ASKED("\1") "\1"
                                               "c\0" RECORD("\1", "\0\4") "\x0A\0\0\1"),
                MU__DNS_A, "");
    expect_text(
        "by priority, then target and port",
        BYTES(HEAD("\0\3") ASKED("\x21") OWNER RECORD(
            "\x21", "\0\x0A") "\0\2\0\0\0\x50\1"
                              "a" OWNER OWNER RECORD(
                                  "\x21", "\0\x0A") "\0\1\0\7\0\x51\1"
                                                    "z" OWNER OWNER RECORD(
                                                        "\x21",
                                                        "\0\x0A") "\0\1\0\7\0\x50\1"
                                                                  "z" OWNER),
        MU__DNS_SRV, "1 7 80 z.a.b\n1 7 81 z.a.b\n2 0 80 a.a.b\n");
    expect_text(
        "no such service",
        BYTES(HEAD("\0\1") ASKED("\x21") OWNER RECORD("\x21", "\0\7") "\0\0\0\0\0\0\0"),
        MU__DNS_SRV, "0 0 0 .\n");
}

static void expect_bad(const char *words, const uint8_t *bytes, size_t size, int type)
{
    struct mu__dns_records records = {0};
    mu_error error;

    if (mu__dns_answer_read(bytes, size, type, &error, &records) != -MU_EINVALID)
        fail_msg("it was taken, where \"%s\" was expected", words);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
    mu__dns_records_done(&records);
}

static void test_malformed(void **state)
{
    (void)state;
    expect_bad("at byte 0 of 4: it ends within its head", BYTES("\x12\x34\x81\x80"),
               MU__DNS_A);
    expect_bad("it ends within a name",
               BYTES("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\3"
                     "a"),
               MU__DNS_A);
    expect_bad("it ends within a number", BYTES(HEAD("\0\0") "\0"), MU__DNS_A);
    expect_bad("it ends within a name", BYTES(HEAD("\0\1") ASKED("\1")), MU__DNS_A);
    expect_bad("it ends within a record",
               BYTES(HEAD("\0\1") ASKED("\1") OWNER RECORD("\1", "\0\4") "\x0A\0\0"),
               MU__DNS_A);
    expect_bad("an address does not have its size",
               BYTES(HEAD("\0\1") ASKED("\1") OWNER RECORD("\1", "\0\3") "\x0A\0\0"),
               MU__DNS_A);
    expect_bad("a service does not have its size",
               BYTES(HEAD("\0\1") ASKED("\x21")
                         OWNER RECORD("\x21", "\0\x0B") "\0\2\0\0\0\x50\1"
                                                        "a" OWNER "\0"),
               MU__DNS_SRV);
    expect_bad("a name does not point back",
               BYTES(HEAD("\0\1") ASKED("\1") "\xC0\x15" RECORD("\1", "\0\4")),
               MU__DNS_A);
    expect_bad("a name does not point back",
               BYTES(HEAD("\0\1") ASKED("\1") "\1"
                                              "x\xC0\x15" RECORD("\1", "\0\4")),
               MU__DNS_A);
    expect_bad("a part of a name has no such length",
               BYTES(HEAD("\0\1") ASKED("\1") "\x40" RECORD("\1", "\0\4")), MU__DNS_A);
    expect_bad("a name has a byte that no host's name has",
               BYTES(HEAD("\0\1") ASKED("\1") "\1 \0" RECORD("\1", "\0\4")), MU__DNS_A);
    expect_bad("an alias of an alias without end",
               BYTES(HEAD("\0\1") ASKED("\1") OWNER RECORD("\5", "\0\2") OWNER),
               MU__DNS_A);
}

static void test_whose_answer(void **state)
{
    static const char answer[] = HEAD("\0\0") ASKED("\1");
    uint8_t query[MU__DNS_QUERY_BYTES];
    uint8_t bytes[sizeof answer - 1];
    size_t size = 0;

    (void)state;
    assert_int_equal(mu__dns_query_write("a.b", MU__DNS_A, 0x1234, NULL, query, &size),
                     0);
    memcpy(bytes, answer, sizeof bytes);
    assert_true(mu__dns_is_answer(bytes, sizeof bytes, query, size));
    bytes[13] = 'A';
    assert_true(mu__dns_is_answer(bytes, sizeof bytes, query, size));
    bytes[13] = 'c';
    assert_false(mu__dns_is_answer(bytes, sizeof bytes, query, size));
    memcpy(bytes, answer, sizeof bytes);
    bytes[1] ^= 1;
    assert_false(mu__dns_is_answer(bytes, sizeof bytes, query, size));
    memcpy(bytes, answer, sizeof bytes);
    assert_false(mu__dns_is_answer(query, size, query, size));
    assert_false(mu__dns_is_answer(bytes, sizeof bytes - 1, query, size));
    assert_false(mu__dns_is_answer(bytes, 11, query, size));
    assert_false(mu__dns_is_cut(bytes));
    bytes[2] |= 2;
    assert_true(mu__dns_is_cut(bytes));
    bytes[3] = 0x85;
    assert_string_equal(mu__dns_code_name(mu__dns_code(bytes)), "REFUSED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question),     cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_answers),      cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_whose_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
