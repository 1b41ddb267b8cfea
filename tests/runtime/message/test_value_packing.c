/* Packed values, and bytes that are none. */
#include "tests/runtime/message/value_fixture.h"

/* ---- Packing ---- */

/* Room for a packed value, aligned as a frame is. */
struct packed_value {
    struct mu__buf *buf;
    struct mu__packed packed;
};

static void pack_value(const mu_value *value, struct packed_value *ret)
{
    uint32_t head;
    uint32_t tail;

    assert_int_equal(mu__value_measure(value, &head, &tail), 0);
    ret->buf = mu__buf_new((size_t)tail + head);
    assert_non_null(ret->buf);
    memset(ret->buf->data, 0xee, (size_t)tail + head);
    mu__value_pack(value, ret->buf->data + tail, head, ret->buf->data, tail);
    ret->packed = (struct mu__packed){ret->buf->data + tail,
                                      tail > 0 ? ret->buf->data : NULL, head, tail};
}

static mu_value *unpack_value(const struct mu__packed *packed)
{
    mu_value *value = NULL;
    char why[256] = "";

    if (mu__value_unpack(packed, why, sizeof why, &value) != 0)
        fail_msg("%s", why);
    return value;
}

/* Packed and unpacked again it is the same, in an order of keys that is the same. */
static void check_round_trip(const mu_value *value)
{
    struct packed_value one;
    struct packed_value two;
    mu_value *back;

    pack_value(value, &one);
    back = unpack_value(&one.packed);
    assert_int_equal(mu_value_equal(value, back), 1);
    pack_value(back, &two);
    assert_int_equal(one.packed.head_size, two.packed.head_size);
    assert_int_equal(one.packed.tail_size, two.packed.tail_size);
    assert_memory_equal(one.buf->data, two.buf->data, one.buf->capacity);
    mu_value_free(back);
    mu__buf_unref(one.buf);
    mu__buf_unref(two.buf);
}

static mu_value *list_of(mu_value *a, mu_value *b, mu_value *c)
{
    mu_value *list = mu_value_list();

    assert_int_equal(mu_value_append(list, a), 0);
    assert_int_equal(mu_value_append(list, b), 0);
    assert_int_equal(mu_value_append(list, c), 0);
    return list;
}

static mu_value *float_of_bits(uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof number);
    return mu_value_float(number);
}

static mu_value *sample_tensor(int dtype, unsigned rank)
{
    static const uint64_t dims[] = {3, 1, 2, 1, 1, 1, 1, 1};
    mu_value *value = mu_value_tensor(dtype, rank, dims, NULL);
    mu_tensor tensor;

    assert_int_equal(mu_value_get_tensor(value, &tensor), 0);
    for (size_t i = 0; i < tensor.bytes; i++)
        ((uint8_t *)mu_value_tensor_data(value))[i] = (uint8_t)(i + 1);
    return value;
}

static mu_value *sample_map(void)
{
    mu_value *map = mu_value_map();

    assert_int_equal(mu_value_set(map, "z", mu_value_int(1)), 0);
    assert_int_equal(mu_value_set(map, "a", mu_value_list()), 0);
    assert_int_equal(mu_value_set(map, "\xc3\xa9", mu_value_nil()), 0);
    return map;
}

static mu_value *empty_tensor(void)
{
    static const uint64_t dims[] = {2, 0};

    return mu_value_tensor(MU_F32, 2, dims, NULL);
}

struct sample {
    const char *name;
    mu_value *value;
};

enum { SAMPLES_MAX = 64 };

/* One of each, and what is at the ends of ranges. */
static size_t make_samples(struct sample *out)
{
    const struct sample samples[] = {
        {"nil", mu_value_nil()},
        {"true", mu_value_bool(1)},
        {"false", mu_value_bool(0)},
        {"int.zero", mu_value_int(0)},
        {"int.small", mu_value_int(127)},
        {"int.minus", mu_value_int(-33)},
        {"int.least", mu_value_int(INT64_MIN)},
        {"int.most", mu_value_int(INT64_MAX)},
        {"float.half", mu_value_float(0.5)},
        {"float.minus_zero", float_of_bits(UINT64_C(0x8000000000000000))},
        {"float.infinity", float_of_bits(UINT64_C(0x7ff0000000000000))},
        {"float.nan", float_of_bits(UINT64_C(0x7ff800000000beef))},
        {"float.signalling_nan", float_of_bits(UINT64_C(0xfff0000000000001))},
        {"string", mu_value_string("gr\xc3\xbc\xc3\x9f")},
        {"string.empty", mu_value_string("")},
        {"bytes", mu_value_bytes("\0\xff", 2)},
        {"bytes.empty", mu_value_bytes("", 0)},
        {"list", list_of(mu_value_int(1), mu_value_string("two"), mu_value_float(3))},
        {"list.empty", mu_value_list()},
        {"map", sample_map()},
        {"map.empty", mu_value_map()},
        {"tensor.float32", sample_tensor(MU_F32, 1)},
        {"tensor.float64", sample_tensor(MU_F64, 2)},
        {"tensor.int8", sample_tensor(MU_I8, 3)},
        {"tensor.int16", sample_tensor(MU_I16, 1)},
        {"tensor.int32", sample_tensor(MU_I32, 1)},
        {"tensor.int64", sample_tensor(MU_I64, 1)},
        {"tensor.uint8", sample_tensor(MU_U8, 8)},
        {"tensor.bool", sample_tensor(MU_BOOL, 1)},
        {"tensor.scalar", sample_tensor(MU_I32, 0)},
        {"tensor.empty", empty_tensor()},
        {"tensors", list_of(sample_tensor(MU_U8, 1), sample_tensor(MU_F64, 1),
                            sample_tensor(MU_I16, 1))},
        {"tensors.empty_between",
         list_of(sample_tensor(MU_U8, 1), empty_tensor(), sample_tensor(MU_U8, 1))},
        {"tensors.empty_last",
         list_of(sample_tensor(MU_U8, 1), mu_value_int(5), empty_tensor())},
    };

    memcpy(out, samples, sizeof samples);
    return sizeof samples / sizeof samples[0];
}

TEST(test_golden)
{
    static struct golden golden;
    struct sample samples[SAMPLES_MAX];
    size_t count = make_samples(samples);
    size_t lines = 0;
    char name[64];

    assert_int_equal(golden_open(&golden, "tests/golden/values.txt"), 0);
    for (size_t i = 0; i < count; i++) {
        struct packed_value one;

        pack_value(samples[i].value, &one);
        snprintf(name, sizeof name, "%s head", samples[i].name);
        if (!golden_is(&golden, name, one.packed.head, one.packed.head_size))
            fail_msg("%s: the head is not the golden one", samples[i].name);
        lines++;
        if (one.packed.tail_size > 0) {
            snprintf(name, sizeof name, "%s tail", samples[i].name);
            if (!golden_is(&golden, name, one.packed.tail, one.packed.tail_size))
                fail_msg("%s: the tail is not the golden one", samples[i].name);
            lines++;
        }
        mu__buf_unref(one.buf);
        mu_value_free(samples[i].value);
    }
    assert_int_equal(golden_lines(&golden), lines);
    assert_int_equal(golden_close(&golden), 0);
}

/* Every sample comes back, and no two samples are equal. */
TEST(test_round_trips)
{
    struct sample samples[SAMPLES_MAX];
    size_t count = make_samples(samples);

    for (size_t i = 0; i < count; i++) {
        check_round_trip(samples[i].value);
        for (size_t j = 0; j < count; j++)
            assert_int_equal(mu_value_equal(samples[i].value, samples[j].value), i == j);
    }
    for (size_t i = 0; i < count; i++)
        mu_value_free(samples[i].value);
}

/* Lengths around each change of msgpack's forms. */
TEST(test_lengths)
{
    static const size_t sizes[] = {0, 15, 16, 31, 32, 255, 256, 65535, 65536};
    static char text[65537];

    memset(text, 'a', sizeof text - 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        mu_value *list = mu_value_list();
        mu_value *map = mu_value_map();
        char key[16];

        text[sizes[i]] = '\0';
        assert_int_equal(mu_value_set(map, text, mu_value_string(text)), 0);
        assert_int_equal(mu_value_append(list, mu_value_bytes(text, sizes[i])), 0);
        text[sizes[i]] = 'a';
        while (mu_value_count(list) < sizes[i])
            assert_int_equal(mu_value_append(list, mu_value_bool(1)), 0);
        while (mu_value_count(map) < sizes[i]) {
            snprintf(key, sizeof key, "%zu", mu_value_count(map));
            assert_int_equal(mu_value_set(map, key, mu_value_nil()), 0);
        }
        check_round_trip(list);
        check_round_trip(map);
        mu_value_free(list);
        mu_value_free(map);
    }
}

TEST(test_int_widths)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int step = -1; step <= 1; step++) {
            uint64_t bits = (UINT64_C(1) << bit) + (uint64_t)step;
            mu_value *up = mu_value_int((int64_t)bits);
            mu_value *down = mu_value_int((int64_t)(0 - bits));

            check_round_trip(up);
            check_round_trip(down);
            mu_value_free(up);
            mu_value_free(down);
        }
    }
}

static mu_value *nest(unsigned levels)
{
    mu_value *value = mu_value_int(1);

    for (unsigned i = 0; i < levels; i++) {
        mu_value *outer = i % 2 == 0 ? mu_value_list() : mu_value_map();

        assert_int_equal(i % 2 == 0 ? mu_value_append(outer, value)
                                    : mu_value_set(outer, "k", value),
                         0);
        value = outer;
    }
    return value;
}

TEST(test_depth)
{
    mu_value *deepest = nest(MU_VALUE_DEPTH_MAX);
    mu_value *deeper = nest(MU_VALUE_DEPTH_MAX + 1);
    uint32_t head;
    uint32_t tail;

    check_round_trip(deepest);
    assert_int_equal(mu__value_measure(deeper, &head, &tail), -MU_ERANGE);
    mu_value_free(deepest);
    mu_value_free(deeper);
}

TEST(test_equal)
{
    mu_value *one = mu_value_map();
    mu_value *two = mu_value_map();
    mu_value *integer = mu_value_int(0);
    mu_value *real = mu_value_float(0);

    assert_int_equal(mu_value_set(one, "a", mu_value_int(1)), 0);
    assert_int_equal(mu_value_set(one, "b", mu_value_int(2)), 0);
    assert_int_equal(mu_value_set(two, "b", mu_value_int(2)), 0);
    assert_int_equal(mu_value_equal(one, two), 0);
    assert_int_equal(mu_value_set(two, "a", mu_value_int(1)), 0);
    assert_int_equal(mu_value_equal(one, two), 1);
    assert_int_equal(mu_value_set(two, "a", mu_value_int(3)), 0);
    assert_int_equal(mu_value_equal(one, two), 0);
    assert_int_equal(mu_value_set(two, "c", mu_value_int(1)), 0);
    assert_int_equal(mu_value_set(one, "d", mu_value_int(1)), 0);
    assert_int_equal(mu_value_equal(one, two), 0);
    assert_int_equal(mu_value_equal(integer, real), 0);
    assert_int_equal(mu_value_equal(NULL, NULL), 1);
    assert_int_equal(mu_value_equal(NULL, one), 0);
    mu_value_free(one);
    mu_value_free(two);
    mu_value_free(integer);
    mu_value_free(real);
}

TEST(test_no_value_is_nil)
{
    struct mu__packed none = {NULL, NULL, 0, 0};
    struct packed_value packed;
    mu_value *value;

    pack_value(NULL, &packed);
    assert_int_equal(packed.packed.head_size, 1);
    value = unpack_value(&packed.packed);
    assert_int_equal(mu_value_type(value), MU_VALUE_NIL);
    mu_value_free(value);
    mu__buf_unref(packed.buf);

    value = unpack_value(&none);
    assert_int_equal(mu_value_type(value), MU_VALUE_NIL);
    mu_value_free(value);
}

/* ---- Bytes that are no value ---- */

struct bad_row {
    const char *what;
    const char *head;
    const char *tail;
    const char *why;
};

/* A tensor's extension: dtype, rank, zeros, one dim of 3, offset 0 or 16. */
#define DIM3 "0300000000000000"

#define AT0 "0000000000000000"

#define AT16 "1000000000000000"

#define TENSOR3_AT0 "c71401 07 01 0000" DIM3 AT0

#define TENSOR3_AT16 "c71401 07 01 0000" DIM3 AT16

#define THREE "010203"

#define PAD13 "00000000000000000000000000"

static const struct bad_row bad_rows[] = {
    {"two values", "c0c0", "", "byte 1: 1 bytes behind the value"},
    {"not msgpack", "c1", "", "byte 0: expected a value, found a byte that is not msgpa"},
    {"int cut short", "cd00", "", "byte 0: an unsigned number is cut short"},
    {"int of more than 63 bits", "cf8000000000000000", "",
     "byte 0: an unsigned number is cut short or too large"},
    {"signed cut short", "d300", "", "a signed number is cut short"},
    {"float cut short", "cb00000000000000", "", "a float is cut short"},
    {"narrow float cut short", "ca000000", "", "a float is cut short"},
    {"string cut short", "a36162", "", "a string is cut short"},
    {"string of four billion", "dbffffffff61", "", "a string is cut short"},
    {"string not UTF-8", "92 01 a2c328", "", "byte 2: a string of 2 bytes that is not U"},
    {"bytes cut short", "c403 0102", "", "bytes is cut short"},
    {"list cut short", "93 01 02", "", "byte 1: 3 items promised, but only 2 bytes foll"},
    {"list's head cut short", "dc00", "", "a list is cut short"},
    {"list of four billion", "ddffffffff", "", "byte 5: 4294967295 items where at most"},
    {"list of sixteen million", "dd01000000", "", "16777216 items promised, but only 0"},
    {"lists that promise the same bytes", "94 91 93 01 02 03", "", "byte 3: 3 items pro"},
    {"map of four billion", "dfffffffff", "", "4294967295 items where at most"},
    {"map of sixteen million", "df01000000", "", "16777216 items promised"},
    {"map's head cut short", "de", "", "a map is cut short"},
    {"map of half an item", "81 a161", "", "byte 3: expected a value, found the end"},
    {"map with one byte", "81 a0", "", "byte 1: 1 items promised, but only 1 bytes foll"},
    {"key is an int", "81 01 01", "", "byte 1: expected a string for a key, found an un"},
    {"key cut short", "81 a561 01", "", "byte 1: expected a string for a key"},
    {"key not UTF-8", "81 a1ff 01", "", "byte 1: a key of 1 bytes that is not UTF-8"},
    {"key with a zero", "81 a3610062 01", "",
     "byte 1: a key of 3 bytes that is not UTF-8 without zeros"},
    {"key twice", "82 a161 01 a161 01", "", "byte 4: key \"a\" appears twice in a map"},
    {"deep", "91919191919191919191919191919191 91919191919191919191919191919191 91 c0",
     "", "byte 33: lists and maps are more than 32 deep"},

    {"extension cut short", "c7", "", "an extension is cut short"},
    {"extension of another type", "d40301", "",
     "an extension of type 3 in 1 bytes, expected type 1, or 2 in 8 bytes"},
    {"timestamp", "d6ff00000000", "", "an extension of type -1"},
    {"tensor of nothing", "d40107", "", "a tensor described in 1 bytes, which fits no r"},
    {"tensor without offset", "c70c01 07 01 0000" DIM3, "", "described in 12 bytes, whi"},
    {"tensor of rank 9",
     "c75401 07 09 0000" DIM3 DIM3 DIM3 DIM3 DIM3 DIM3 DIM3 DIM3 DIM3 AT0, "",
     "which fits no rank"},
    {"tensor of dtype 0", "c70c01 00 00 0000" AT0, "", "dtype 0 and rank 0 that cannot"},
    {"tensor of dtype 14", "c70c01 0e 00 0000" AT0, "", "dtype 14"},
    {"tensor with flags", "c71401 07 01 0100" DIM3 AT0, THREE, "that cannot be"},
    {"tensor that overflows",
     "c71c01 02 02 0000"
     "ffffffffffffff7f" DIM3 AT0,
     THREE, "dtype 2 and rank 2 that cannot be"},
    {"tensor without tail", TENSOR3_AT0, "", "a tensor of 3 bytes at 0 of a tail of 0"},
    {"tensor longer than the tail", TENSOR3_AT0, "0102", "a tensor of 3 bytes at 0 of a"},
    {"tail longer than the tensor", TENSOR3_AT0, "01020304", "a tail of 4 bytes, of whi"},
    {"tail without tensor", "c0", "01", "byte 1: a tail of 1 bytes, of which tensors ta"},
    {"tensor not at the begin", TENSOR3_AT16, "00000000000000000000000000000000" THREE,
     "a tensor at byte 16 of the tail, expected 0"},
    {"tensors that share bytes", "92" TENSOR3_AT0 TENSOR3_AT0, THREE,
     "byte 24: a tensor at byte 0 of the tail, expected 16"},
    {"tensor unaligned", "92" TENSOR3_AT0 "c71401 07 01 0000" DIM3 DIM3, THREE THREE,
     "a tensor at byte 3 of the tail, expected 16"},
    {"tensor behind the tail", "92" TENSOR3_AT0 TENSOR3_AT16, THREE,
     "a tensor of 3 bytes at 16 of a tail of 3"},
    {"bytes between tensors", "92" TENSOR3_AT0 TENSOR3_AT16,
     THREE "00000000000000000000000001" THREE, "the bytes before a tensor are not zero"},
};

static int try_unpack(const char *head_hex, const char *tail_hex, char *why, size_t room,
                      mu_value **ret_value)
{
    uint8_t head[256];
    uint8_t tail[256];
    size_t head_size = 0;
    size_t tail_size = 0;
    struct mu__packed packed;
    struct mu__buf *tail_buf;
    uint8_t *tight;
    int rv;

    assert_true(hex_read(head_hex, head, sizeof head, &head_size));
    assert_true(hex_read(tail_hex, tail, sizeof tail, &tail_size));
    tight = malloc(head_size);
    tail_buf = mu__buf_new(tail_size);
    assert_non_null(tight);
    assert_non_null(tail_buf);
    memcpy(tight, head, head_size);
    memcpy(tail_buf->data, tail, tail_size);
    packed = (struct mu__packed){tight, tail_size > 0 ? tail_buf->data : NULL,
                                 (uint32_t)head_size, (uint32_t)tail_size};
    rv = mu__value_unpack(&packed, why, room, ret_value);
    mu__buf_unref(tail_buf);
    free(tight);
    return rv;
}

TEST(test_bad_bytes)
{
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        const struct bad_row *row = &bad_rows[i];
        mu_value *value = NULL;
        char why[256] = "";

        assert_int_equal(try_unpack(row->head, row->tail, why, sizeof why, &value),
                         -MU_EDATALOSS);
        assert_null(value);
        if (strstr(why, row->why) == NULL)
            fail_msg("%s: refused with \"%s\"", row->what, why);
        assert_int_equal(try_unpack(row->head, row->tail, NULL, 0, &value),
                         -MU_EDATALOSS);
    }
}

/* Two tensors with the zeros between them, to show that the rows above fail for their
 * own reasons; and a float of 32 bits, which others write. */
TEST(test_good_bytes)
{
    mu_value *value = NULL;
    double number;

    assert_int_equal(
        try_unpack("92" TENSOR3_AT0 TENSOR3_AT16, THREE PAD13 THREE, NULL, 0, &value), 0);
    assert_int_equal(mu_value_equal(mu_value_at(value, 0), mu_value_at(value, 1)), 1);
    mu_value_free(value);
    assert_int_equal(try_unpack("ca3fc00000", "", NULL, 0, &value), 0);
    assert_int_equal(mu_value_get_float(value, &number), 0);
    assert_true(number > 1.4 && number < 1.6);
    mu_value_free(value);
}

/* Each golden value, cut anywhere, is refused. */
TEST(test_cut_values)
{
    struct sample samples[SAMPLES_MAX];
    size_t count = make_samples(samples);

    for (size_t i = 0; i < count; i++) {
        struct packed_value whole;

        pack_value(samples[i].value, &whole);
        for (uint32_t size = 1; size < whole.packed.head_size; size++) {
            struct mu__packed part = whole.packed;
            uint8_t *tight = malloc(size);
            mu_value *value;

            assert_non_null(tight);
            memcpy(tight, whole.packed.head, size);
            part.head = tight;
            part.head_size = size;
            assert_int_equal(mu__value_unpack(&part, NULL, 0, &value), -MU_EDATALOSS);
            free(tight);
        }
        mu__buf_unref(whole.buf);
        mu_value_free(samples[i].value);
    }
}

/* A list or a map never becomes a part of itself, at whatever depth. */
TEST(test_rings_are_refused)
{
    mu_value *outer = mu_value_list();
    mu_value *inner = mu_value_list();
    mu_value *map = mu_value_map();

    assert_int_equal(mu_value_append(outer, mu_value_ref(outer)), -MU_EINVALID);
    assert_int_equal(mu_value_append(outer, mu_value_ref(inner)), 0);
    assert_int_equal(mu_value_append(inner, mu_value_ref(map)), 0);
    assert_int_equal(mu_value_append(inner, mu_value_ref(outer)), -MU_EINVALID);
    assert_int_equal(mu_value_set(map, "up", mu_value_ref(outer)), -MU_EINVALID);
    assert_int_equal(mu_value_append(outer, mu_value_ref(map)), 0);
    assert_int_equal(mu_value_count(outer), 2);
    mu_value_free(outer);
    mu_value_free(inner);
    mu_value_free(map);
}

TEST_PROGRAM()
