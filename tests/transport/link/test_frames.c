/* Headers of frames, byte by byte, and the records of the protocol itself. */
#include "muster/error.h"
#include "runtime/message/codec.h"
#include "tests/support/hex.h"
#include "tests/support/test.h"
#include "transport/link/frames.h"

static struct mu__buf *buf_of(const uint8_t *bytes, uint32_t size)
{
    struct mu__buf *buf = mu__buf_new(4096);

    assert_non_null(buf);
    memcpy(buf->data, bytes, size);
    buf->size = size;
    return buf;
}

TEST(test_bytes)
{
    static const struct {
        struct mu__frame_header header;
        const char *hex;
    } rows[] = {
        /* clang-format off */
        {{1, MU__FRAME_HELLO, 0x1122334455667788, 0, 1},
         "4d555354" "0100" "01" "00" "8877665544332211" "0000000000000000" "01000000"
         "00000000"},
        {{1, MU__FRAME_DATA, 1, UINT64_MAX, 0x01020304},
         "4d555354" "0100" "03" "00" "0100000000000000" "ffffffffffffffff" "04030201"
         "00000000"},
        {{7, MU__FRAME_REFUSE, 2, 3, 1},
         "4d555354" "0700" "02" "00" "0200000000000000" "0300000000000000" "01000000"
         "00000000"},
        /* clang-format on */
    };
    uint8_t expected[MU__FRAME_HEADER_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__buf *buf = mu__buf_new(MU__FRAME_HEADER_BYTES);
        struct mu__frame_header header = {0};
        size_t size;

        assert_non_null(buf);
        assert_true(hex_read(rows[i].hex, expected, sizeof expected, &size));
        assert_int_equal(size, sizeof expected);
        mu__frame_write(buf, &rows[i].header);
        buf->size = MU__FRAME_HEADER_BYTES;
        assert_memory_equal(buf->data, expected, sizeof expected);
        assert_int_equal(mu__frame_read(buf, &header), 0);
        assert_int_equal(header.version, rows[i].header.version);
        assert_int_equal(header.type, rows[i].header.type);
        assert_true(header.from == rows[i].header.from);
        assert_true(header.to == rows[i].header.to);
        assert_int_equal(header.count, rows[i].header.count);
        mu__buf_unref(buf);
    }
}

/* One byte of a good header is changed, or the whole is cut. */
TEST(test_bad_headers)
{
    static const struct {
        const char *what;
        size_t at;
        uint8_t byte;
        uint32_t size;
        int rv;
    } rows[] = {
        {"as it is", 7, 0, 32, 0},
        {"nothing", 7, 0, 0, -MU_EDATALOSS},
        {"one byte short", 7, 0, 31, -MU_EDATALOSS},
        {"first byte of the magic", 0, 'N', 32, -MU_EDATALOSS},
        {"last byte of the magic", 3, 'U', 32, -MU_EDATALOSS},
        {"type 0", 6, 0, 32, -MU_EDATALOSS},
        {"type behind the last", 6, MU__FRAME_TYPES_END, 32, -MU_EDATALOSS},
        {"type 255", 6, 255, 32, -MU_EDATALOSS},
        {"another version's data", 4, 2, 32, -MU_EDATALOSS},
        {"version 257", 5, 1, 32, -MU_EDATALOSS},
        {"from nobody", 8, 0, 32, -MU_EDATALOSS},
    };
    const struct mu__frame_header good = {1, MU__FRAME_DATA, 5, 6, 0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__frame_header header = {.count = 99};
        struct mu__buf *buf = mu__buf_new(MU__FRAME_HEADER_BYTES);
        int rv;

        assert_non_null(buf);
        mu__frame_write(buf, &good);
        buf->data[rows[i].at] = rows[i].byte;
        buf->size = rows[i].size;
        rv = mu__frame_read(buf, &header);
        if (rv != rows[i].rv)
            fail_msg("%s: %d", rows[i].what, rv);
        assert_int_equal(header.count, rv == 0 ? 0 : 99);
        mu__buf_unref(buf);
    }
}

/* HELLO and REFUSE of any version are let through; nothing else is. */
TEST(test_other_versions)
{
    for (unsigned type = 0; type < 256; type++) {
        const struct mu__frame_header given = {2, (uint8_t)type, 5, 6, 1};
        struct mu__frame_header header;
        uint8_t bytes[MU__FRAME_HEADER_BYTES] = {0};
        struct mu__buf *buf = buf_of(bytes, sizeof bytes);
        bool greets = type == MU__FRAME_HELLO || type == MU__FRAME_REFUSE;

        mu__frame_write(buf, &given);
        assert_int_equal(mu__frame_read(buf, &header), greets ? 0 : -MU_EDATALOSS);
        mu__buf_unref(buf);
    }
}

/* ---- Records ---- */

static char long_text[600];

static struct mu__view text_of(uint32_t size)
{
    memset(long_text, 'a', sizeof long_text);
    return (struct mu__view){long_text, size};
}

/* Each field of a HELLO at its bound and behind it. */
TEST(test_hello_bounds)
{
    static const struct {
        uint32_t cluster;
        uint32_t type;
        uint32_t index;
        uint32_t address;
        int rv;
    } rows[] = {
        {63, 15, 1 << 20, 255, 0},    {64, 15, 0, 255, -MU_ERANGE},
        {63, 16, 0, 255, -MU_ERANGE}, {63, 15, (1 << 20) + 1, 255, -MU_ERANGE},
        {63, 15, 0, 256, -MU_ERANGE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__msg *msg = mu__msg_heap(MU__FRAME_HELLO, sizeof(struct mu__hello));
        struct mu__buf *buf = mu__buf_new(4096);
        struct mu__hello *hello;

        assert_non_null(msg);
        assert_non_null(buf);
        hello = (void *)msg->body;
        hello->cluster = text_of(rows[i].cluster);
        hello->type = text_of(rows[i].type);
        hello->index = rows[i].index;
        hello->address = text_of(rows[i].address);
        assert_int_equal(mu__encode(&mu__frame_messages, msg, buf), rows[i].rv);
        mu__buf_unref(buf);
        free(msg);
    }
}

TEST(test_refuse_travels)
{
    struct mu__msg *msg = mu__msg_heap(MU__FRAME_REFUSE, sizeof(struct mu__refuse));
    struct mu__buf *buf = mu__buf_new(4096);
    struct mu__pool pool;
    struct mu__msg *got;
    struct mu__refuse *refuse;
    size_t offset = 0;

    assert_non_null(msg);
    assert_non_null(buf);
    mu__pool_init(&pool);
    *(struct mu__refuse *)(void *)msg->body =
        (struct mu__refuse){mu__view_str("worker"), 7, text_of(511), true};
    assert_int_equal(mu__encode(&mu__frame_messages, msg, buf), 0);
    assert_int_equal(mu__decode(&mu__frame_messages, &pool, buf, &offset, NULL, 0, &got),
                     0);
    assert_int_equal(offset, buf->size);
    assert_int_equal(got->kind, MU__FRAME_REFUSE);
    refuse = (void *)got->body;
    assert_true(mu__view_is(refuse->type, "worker"));
    assert_int_equal(refuse->index, 7);
    assert_int_equal(refuse->reason.size, 511);
    mu__pool_put(&pool, got);
    mu__pool_done(&pool);
    mu__buf_unref(buf);
    free(msg);
}

TEST_PROGRAM()
