/* When the bytes of a new connection are enough for a TLS session. */
#include "tests/support/test.h"
#include "transport/wire/client_hello.h"

/* Each text is bytes; a row tells from how many of them on the answer is yes. */
struct row {
    const char *name;
    const char *bytes;
    size_t size;
    size_t decided_from; /* more than size: never */
};

#define ROW(name, bytes, decided_from)              \
    {                                               \
        name, bytes, sizeof bytes - 1, decided_from \
    }

static const struct row rows[] = {
    ROW("one record", "\x16\3\1\0\7\1\0\0\3abc", 12),
    ROW("bytes behind it", "\x16\3\1\0\7\1\0\0\3abc\x14\3\3\0\1\1", 12),
    ROW("two records", "\x16\3\1\0\5\1\0\0\3a\x16\3\1\0\2bc", 17),
    ROW("its header in two records", "\x16\3\1\0\2\1\0\x16\3\1\0\5\0\3abc", 17),
    ROW("empty records before it", "\x16\3\1\0\0\x16\3\1\0\0\x16\3\1\0\4\1\0\0\0", 19),
    ROW("of no bytes", "\x16\3\1\0\4\1\0\0\0", 9),
    ROW("longer than what came", "\x16\3\1\0\7\1\0\1\0abc", 13),
    ROW("longer than any",
        "\x16\3\1\0\7\1\xff\xff\xff"
        "abc",
        13),
    ROW("half a record",
        "\x16\3\1\1\0\1\0\0\xfc"
        "abc",
        13),
    ROW("another message", "\x16\3\1\0\4\2\0\0\3", 9),
    ROW("another record behind half a hello", "\x16\3\1\0\4\1\0\0\3\x17\3\3\0\1", 14),
    ROW("a greeting without TLS", "\0SP\0\0\x50\0\0", 5),
    ROW("HTTP", "GET / HTTP/1.1", 5),
    ROW("the record of SSL 2", "\x16\2\0\0\1\1", 5),
    ROW("nothing", "", 1),
};

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t size = 0; size <= rows[i].size; size++) {
            /* Exactly sized memory: a sanitizer sees a look beyond it. */
            uint8_t *bytes = test_malloc(size + 1);

            memcpy(bytes + 1, rows[i].bytes, size);
            if (mu__client_hello_is_decided(bytes + 1, size) !=
                (size >= rows[i].decided_from))
                fail_msg("%s: wrong with %zu bytes", rows[i].name, size);
            test_free(bytes);
        }
}

TEST_PROGRAM()
