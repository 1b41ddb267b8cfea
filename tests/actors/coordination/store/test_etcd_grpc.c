/* Transactions by gRPC, byte by byte, and which answers are success. The same bytes go to
 * a real etcd in tests/real/resolver/test_etcd.c. */
#include "actors/coordination/store/etcd_grpc.h"
#include "tests/support/test.h"

static const struct mu__view none = {"", 0};

static void expect_body(struct mu__build *body, const void *bytes, size_t size)
{
    assert_true(mu__build_whole(body));
    assert_int_equal(body->size, size);
    assert_memory_equal(body->text, bytes, size);
    mu__build_done(body);
}

TEST(test_transaction)
{
    static const char expected[] =
        "\0\0\0\0\x2e"
        "\x0a\x07\x10\x01\x1a\x01k\x28\x05"          /* CREATE of "k" is 5 */
        "\x0a\x06\x1a\x01k\x20\xac\x02"              /* VERSION of "k" is 300 */
        "\x12\x0a\x12\x08\x0a\x01k\x12\x01v\x18\x07" /* put, lease 7 */
        "\x12\x05\x1a\x03\x0a\x01"
        "a" /* delete one */
        "\x12\x08\x1a\x06\x0a\x01"
        "a\x12\x01"
        "b"; /* delete a range */
    struct mu__build body = {0};

    mu__etcd_grpc_begin(&body);
    mu__etcd_grpc_compare(&body, MU__ETCD_CREATE, mu__view_str("k"), 5);
    mu__etcd_grpc_compare(&body, MU__ETCD_VERSION, mu__view_str("k"), 300);
    mu__etcd_grpc_put(&body, mu__view_str("k"), mu__view_str("v"), 7);
    mu__etcd_grpc_delete(&body, mu__view_str("a"), none);
    mu__etcd_grpc_delete(&body, mu__view_str("a"), mu__view_str("b"));
    mu__etcd_grpc_end(&body);
    expect_body(&body, expected, sizeof expected - 1);
}

/* Sizes of more than one byte, and a frame of more than 64 KiB. */
TEST(test_large_value)
{
    static char value[70000];
    struct mu__build body = {0};
    const char *at;

    memset(value, 'v', sizeof value);
    mu__etcd_grpc_begin(&body);
    mu__etcd_grpc_put(&body, mu__view_str("k"), (struct mu__view){value, sizeof value},
                      0);
    mu__etcd_grpc_end(&body);
    assert_true(mu__build_whole(&body));
    at = body.text;
    assert_memory_equal(at, "\0\0\x01\x11\x7f", 5);
    assert_memory_equal(at + 5,
                        "\x12\xfb\xa2\x04\x12\xf7\xa2\x04\x0a\x01k\x12\xf0\xa2\x04", 15);
    assert_int_equal(body.size, 20 + sizeof value);
    assert_memory_equal(at + 20, value, sizeof value);
    mu__build_done(&body);
}

TEST(test_answers)
{
#define ROW(bytes, succeeded)              \
    {                                      \
        bytes, sizeof bytes - 1, succeeded \
    }
    static const struct {
        const char *bytes;
        size_t size;
        bool succeeded;
    } rows[] = {
        ROW("\0\0\0\0\x06\x0a\x02\x18\x07\x10\x01", true),
        ROW("\0\0\0\0\x0a\x0a\x02\x18\x07\x10\x01\x1a\x02\x12\0", true),
        ROW("\0\0\0\0\x09\x39\1\2\3\4\5\6\7\x08", false), /* a field is cut */
        ROW("\0\0\0\0\x0b\x39\1\2\3\4\5\6\7\x08\x10\x01", true),
        ROW("\0\0\0\0\x07\x3d\1\2\3\4\x10\x01", true),
        ROW("\0\0\0\0\x04\x0a\x02\x18\x07", false), /* a comparison failed */
        ROW("\0\0\0\0\x06\x0a\x02\x18\x07\x10\0", false),
        ROW("\0\0\0\0\x04\x10\x01\x0a\x05", false), /* cut behind it */
        ROW("\0\0\0\0\x02\x10\x81", false),
        ROW("\0\0\0\0\x03\x10\x01\x0b", false), /* no kind of field */
        ROW("\0\0\0\0\x0c\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", false),
        ROW("\x01\0\0\0\x02\x10\x01", false), /* compressed */
        ROW("\0\0\0\0\x03\x10\x01", false),   /* less than it says */
        ROW("\0\0\0\0\x01\x10\x01", false),
        ROW("\0\0\0\0\0", false),
        ROW("\0\0\0\0", false),
        ROW("{\"succeeded\":true}", false),
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (mu__etcd_grpc_succeeded(rows[i].bytes, rows[i].size) != rows[i].succeeded)
            fail_msg("row %zu", i);
    assert_false(mu__etcd_grpc_succeeded(NULL, 0));
}

TEST_PROGRAM()
