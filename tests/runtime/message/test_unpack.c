/* Our msgpack reader and packer against msgpack-c's own: the same bytes mean the same. */
#include "runtime/message/unpack.h"
#include "tests/support/test.h"

#include <msgpack.h>

/* splitmix64. */
static uint64_t chance(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number of any width, so that each of msgpack's forms comes up. */
static uint64_t any_width(uint64_t *state)
{
    return chance(state) >> (chance(state) % 64);
}

/* Lengths on both sides of each change of form. */
static size_t any_length(uint64_t *state)
{
    static const size_t lengths[] = {0, 1, 2, 4, 8, 15, 16, 17, 31, 32, 255, 256, 70000};

    return lengths[chance(state) % (sizeof lengths / sizeof lengths[0])];
}

/* ---- msgpack-c writes, we read ---- */

static void write_any(msgpack_packer *out, uint64_t *state, int depth)
{
    static const char bytes[70000];
    size_t length = any_length(state);
    size_t items = chance(state) % 100 == 0 ? 70000 : chance(state) % 20;

    switch (chance(state) % (depth > 0 ? 11 : 9)) {
    case 0:
        msgpack_pack_nil(out);
        return;
    case 1:
        if (chance(state) % 2 == 0)
            msgpack_pack_true(out);
        else
            msgpack_pack_false(out);
        return;
    case 2:
        msgpack_pack_uint64(out, any_width(state));
        return;
    case 3:
        msgpack_pack_int64(out, (int64_t)(0 - any_width(state)));
        return;
    case 4:
        msgpack_pack_double(out, (double)any_width(state) / 3);
        return;
    case 5:
        msgpack_pack_float(out, (float)any_width(state));
        return;
    case 6:
        msgpack_pack_str_with_body(out, bytes, length);
        return;
    case 7:
        msgpack_pack_bin_with_body(out, bytes, length);
        return;
    case 8:
        length += length == 0;
        msgpack_pack_ext_with_body(out, bytes, length, (int8_t)(chance(state) & 0x7f));
        return;
    case 9:
        msgpack_pack_array(out, items);
        for (size_t i = 0; i < items; i++)
            write_any(out, state, items > 1000 ? 0 : depth - 1);
        return;
    default:
        items %= 100;
        msgpack_pack_map(out, items);
        for (size_t i = 0; i < 2 * items; i++)
            write_any(out, state, depth - 1);
        return;
    }
}

/* Where nothing begins is not compared: msgpack-c points anywhere then. */
static void compare_span(struct mu__reader *in, const void *data, size_t size,
                         bool (*read)(struct mu__reader *in, const uint8_t **ret_data,
                                      uint32_t *ret_size))
{
    const uint8_t *found;
    uint32_t found_size;

    assert_true(read(in, &found, &found_size));
    assert_int_equal(found_size, size);
    if (size > 0)
        assert_ptr_equal(found, data);
}

/* Read at the cursor what msgpack-c says is there. */
static void compare(struct mu__reader *in, const msgpack_object *object)
{
    const uint8_t *data;
    uint64_t bits;
    uint32_t count;
    double number;
    int64_t sign;
    int8_t type;
    bool flag;

    switch (object->type) {
    case MSGPACK_OBJECT_NIL:
        assert_true(mu__read_nil(in));
        return;
    case MSGPACK_OBJECT_BOOLEAN:
        assert_true(mu__read_flag(in, &flag));
        assert_int_equal(flag, object->via.boolean);
        return;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        assert_true(mu__read_u64(in, &bits));
        assert_true(bits == object->via.u64);
        return;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        assert_false(mu__read_u64(in, &bits));
        assert_true(mu__read_i64(in, &sign));
        assert_true(sign == object->via.i64);
        return;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        assert_true(mu__read_f64(in, &number));
        assert_memory_equal(&number, &object->via.f64, sizeof number);
        return;
    case MSGPACK_OBJECT_STR:
        compare_span(in, object->via.str.ptr, object->via.str.size, mu__read_str);
        return;
    case MSGPACK_OBJECT_BIN:
        compare_span(in, object->via.bin.ptr, object->via.bin.size, mu__read_bin);
        return;
    case MSGPACK_OBJECT_EXT:
        assert_true(mu__read_ext(in, &type, &data, &count));
        assert_int_equal(type, object->via.ext.type);
        assert_int_equal(count, object->via.ext.size);
        if (count > 0)
            assert_ptr_equal(data, object->via.ext.ptr);
        return;
    case MSGPACK_OBJECT_ARRAY:
        assert_true(mu__read_array(in, &count));
        assert_int_equal(count, object->via.array.size);
        for (uint32_t i = 0; i < count; i++)
            compare(in, &object->via.array.ptr[i]);
        return;
    case MSGPACK_OBJECT_MAP:
        assert_true(mu__read_map(in, &count));
        assert_int_equal(count, object->via.map.size);
        for (uint32_t i = 0; i < count; i++) {
            compare(in, &object->via.map.ptr[i].key);
            compare(in, &object->via.map.ptr[i].val);
        }
        return;
    }
    fail_msg("msgpack-c read something unknown");
}

TEST(test_reads_what_msgpack_c_writes)
{
    uint64_t seed = 1;

    for (int round = 0; round < 500; round++) {
        struct mu__reader in;
        msgpack_unpacked result;
        msgpack_sbuffer buffer;
        msgpack_packer packer;
        size_t offset = 0;

        msgpack_sbuffer_init(&buffer);
        msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
        write_any(&packer, &seed, 4);
        msgpack_unpacked_init(&result);
        assert_int_equal(msgpack_unpack_next(&result, buffer.data, buffer.size, &offset),
                         MSGPACK_UNPACK_SUCCESS);

        in.at = (const uint8_t *)buffer.data;
        in.end = in.at + buffer.size;
        compare(&in, &result.data);
        assert_ptr_equal(in.at, in.end);
        in.at = (const uint8_t *)buffer.data;
        assert_true(mu__skip(&in));
        assert_ptr_equal(in.at, in.end);

        msgpack_unpacked_destroy(&result);
        msgpack_sbuffer_destroy(&buffer);
    }
}

/* ---- Random bytes ---- */

/* A first byte that promises more items than `size` bytes can hold: msgpack-c would take
 * memory for them before it looks. */
static bool promises_much(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] >= 0xdc && data[i] <= 0xdf)
            return true;
    return false;
}

/* Both agree whether random bytes begin with one whole item, and where it ends. */
TEST(test_agrees_on_random_bytes)
{
    uint64_t seed = 2;
    int whole = 0;
    int broken = 0;

    for (int round = 0; round < 200000; round++) {
        size_t size = 1 + chance(&seed) % 12;
        uint8_t *data = malloc(size);
        struct mu__reader in = {data, data + size};
        msgpack_unpacked result;
        size_t offset = 0;
        int rv;

        assert_non_null(data);
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)(chance(&seed) % 4 == 0 ? chance(&seed)
                                                       : 0x80 + chance(&seed) % 0x70);
        if (promises_much(data, size)) {
            free(data);
            continue;
        }
        msgpack_unpacked_init(&result);
        rv = msgpack_unpack_next(&result, (const char *)data, size, &offset);
        if (rv == MSGPACK_UNPACK_SUCCESS || rv == MSGPACK_UNPACK_EXTRA_BYTES) {
            assert_true(mu__skip(&in));
            assert_int_equal(in.at - data, offset);
            in.at = data;
            compare(&in, &result.data);
            assert_int_equal(in.at - data, offset);
            whole++;
        } else {
            assert_false(mu__skip(&in));
            assert_ptr_equal(in.at, data);
            broken++;
        }
        msgpack_unpacked_destroy(&result);
        free(data);
    }
    assert_true(whole > 10000);
    assert_true(broken > 10000);
}

/* ---- What is not there ---- */

/* Every reader, at every first byte and with nothing behind it or before the end, leaves
 * the cursor where it was when it says no, and moves it when it says yes. */
TEST(test_refusal_moves_nothing)
{
    uint8_t data[9] = {0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    for (unsigned first = 0; first < 256; first++) {
        data[0] = (uint8_t)first;
        for (size_t size = 0; size <= sizeof data; size++) {
            const struct mu__reader begin = {data, data + size};
            struct mu__reader in[10];
            const uint8_t *span;
            uint64_t bits;
            uint32_t count;
            double number;
            int64_t sign;
            int8_t type;
            bool flag;
            int yes = 0;

            for (size_t i = 0; i < 10; i++)
                in[i] = begin;
            const bool answers[10] = {
                mu__read_nil(&in[0]),
                mu__read_flag(&in[1], &flag),
                mu__read_u64(&in[2], &bits),
                mu__read_i64(&in[3], &sign),
                mu__read_f64(&in[4], &number),
                mu__read_str(&in[5], &span, &count),
                mu__read_bin(&in[6], &span, &count),
                mu__read_ext(&in[7], &type, &span, &count),
                mu__read_array(&in[8], &count),
                mu__read_map(&in[9], &count),
            };

            for (size_t i = 0; i < 10; i++) {
                assert_int_equal(answers[i], in[i].at != begin.at);
                assert_true(in[i].at <= begin.end);
                yes += answers[i] && i != 3;
            }
            assert_true(yes <= 1);
            assert_true(size > 0 || yes == 0);
            assert_non_null(mu__wire_word(&begin));
        }
    }
}

/* Nesting costs no stack: a million lists and a million maps, to the end. */
TEST(test_skip_is_not_deep)
{
    enum { LEVELS = 1000000 };
    uint8_t *data = malloc(2 * LEVELS + 1);
    struct mu__reader in = {data, data + 2 * LEVELS + 1};

    assert_non_null(data);
    memset(data, 0x91, LEVELS);
    for (size_t i = 0; i < LEVELS / 2; i++) {
        data[LEVELS + 2 * i] = 0x81;
        data[LEVELS + 2 * i + 1] = 0x05;
    }
    data[2 * LEVELS] = 0xc0;
    assert_true(mu__skip(&in));
    assert_ptr_equal(in.at, in.end);

    in = (struct mu__reader){data, data + 2 * LEVELS};
    assert_false(mu__skip(&in));
    assert_ptr_equal(in.at, data);
    free(data);
}

TEST(test_upper_bound)
{
    const uint8_t data[] = {0xcd, 0x01, 0x00};
    struct mu__reader in = {data, data + sizeof data};
    uint64_t number = 9;

    assert_false(mu__read_u64_up_to(&in, 255, &number));
    assert_ptr_equal(in.at, data);
    assert_int_equal(number, 9);
    assert_true(mu__read_u64_up_to(&in, 256, &number));
    assert_int_equal(number, 256);
}

TEST_PROGRAM()
