/* Headers of safetensors files: what is written is read, and what makes no sense is
 * refused with words. */
#include "runtime/document/safetensors.h"

#include "runtime/base/byte_order.h"
#include "tests/support/test.h"

/* ---- Round trip ---- */

static const struct mu__safetensor written[] = {
    {.name = "b", .dtype = MU_U8, .rank = 1, .dims = {3}, .bytes = 3},
    {.name = "a", .dtype = MU_F32, .rank = 2, .dims = {2, 3}, .bytes = 24},
    {.name = "scalar \"\\\x01\xc3\xa9", .dtype = MU_F64, .bytes = 8},
    {.name = "none", .dtype = MU_I16, .rank = 2, .dims = {0, 4}},
};
enum { WRITTEN_COUNT = 4, CONTENT_BYTES = 35 };

static void write_all(struct mu__build *out)
{
    struct mu__safetensor tensors[WRITTEN_COUNT];

    memcpy(tensors, written, sizeof tensors);
    assert_int_equal(mu__safetensors_arrange(tensors, WRITTEN_COUNT), CONTENT_BYTES);
    mu__safetensors_write(out, tensors, WRITTEN_COUNT);
    assert_true(mu__build_whole(out));
}

TEST(test_round_trip)
{
    struct mu__safetensor *tensors;
    struct mu__build out = {0};
    size_t count;
    size_t size;

    write_all(&out);
    assert_int_equal(out.size % 8, 0);
    assert_int_equal(mu__safetensors_read_size((uint8_t *)out.text,
                                               out.size + CONTENT_BYTES, NULL, &size),
                     0);
    assert_int_equal(size, out.size - 8);
    assert_int_equal(mu__safetensors_read(out.text + 8, size, CONTENT_BYTES, NULL,
                                          &tensors, &count),
                     0);
    assert_int_equal(count, WRITTEN_COUNT);
    for (size_t i = 0; i < count; i++) {
        const struct mu__safetensor *tensor = &tensors[i];
        size_t k = 0;

        while (strcmp(written[k].name, tensor->name) != 0)
            k++;
        assert_int_equal(tensor->dtype, written[k].dtype);
        assert_int_equal(tensor->rank, written[k].rank);
        assert_memory_equal(tensor->dims, written[k].dims, sizeof tensor->dims);
        assert_int_equal(tensor->bytes, written[k].bytes);
        if (tensor->bytes > 0)
            assert_int_equal(tensor->offset % mu_dtype_bytes((int)tensor->dtype), 0);
    }
    free(tensors);
    mu__build_done(&out);
}

TEST(test_dtypes)
{
    static const char *const names[] = {"F32",  "F64", "I8",  "I16", "I32", "I64", "U8",
                                        "BOOL", "F16", "U16", "U32", "U64", "BF16"};

    for (uint32_t dtype = 1; dtype <= 13; dtype++) {
        assert_string_equal(mu__safetensors_dtype_name(dtype), names[dtype - 1]);
        assert_int_equal(mu__safetensors_dtype(names[dtype - 1]), dtype);
    }
    assert_null(mu__safetensors_dtype_name(14));
    assert_int_equal(mu__safetensors_dtype("F8_E4M3"), MU_DTYPE_NONE);
}

/* ---- Refused ---- */

TEST(test_sizes)
{
    static const struct {
        uint64_t size;
        uint64_t file_bytes;
        const char *words;
    } rows[] = {
        {2, 7, "the file is cut short, in its header"},
        {2, 9, "the file is cut short, in its header"},
        {100000001, UINT64_C(1) << 40,
         "its header has 100000001 bytes, expected at most 100000000"},
        {UINT64_MAX, UINT64_MAX,
         "its header has 18446744073709551615 bytes, expected at most 100000000"},
        {2, (UINT64_C(1) << 48) + 1,
         "the file has 281474976710657 bytes, expected at most 281474976710656"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t bytes[8];
        mu_error error = {0};
        size_t size = 77;

        mu__store_little(bytes, rows[i].size, 8);
        assert_int_equal(mu__safetensors_read_size(bytes, rows[i].file_bytes, &error,
                                                   &size),
                         -MU_EDATALOSS);
        assert_string_equal(error.message, rows[i].words);
        assert_int_equal(size, 77);
    }
}

#define ENTRY(dtype, shape, offsets) \
    "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define A(shape, offsets) "\"a\":" ENTRY("\"U8\"", shape, offsets)
#define B(shape, offsets) "\"b\":" ENTRY("\"U8\"", shape, offsets)

/* Of a file with 8 bytes of contents. */
static const struct row {
    const char *json;
    const char *words; /* with which it is refused, and more; NULL: it is fine */
} rows[] = {
    {"{" A("[8]", "[0,8]") "}   ", NULL},
    {"{" B("[2]", "[6,8]") "," A("[2,3]", "[0,6]") "}", NULL},
    {"{\"__metadata__\":{\"x\":\"y\"}," A("[8]", "[0,8]") "}", NULL},
    {"{" A("[8]", "[0,8]") "," B("[0]", "[8,8]") "}", NULL},
    {"{" A("[8]", "[0,8]") "," B("[0]", "[0,0]") "}", NULL},
    {"", "its header: the text is empty; expected a JSON object"},
    {"[]", "its header: line 1, column 1: expected an object"},
    {"{" A("[8]", "[0,8]") "} x",
     "its header: line 1, column 55: expected nothing after the object"},
    {"{" A("[8]", "[0,8]"), "its header: line 1, column 53: expected JSON, got the end"},
    {"{\"a\xff\":" ENTRY("\"U8\"", "[8]", "[0,8]") "}",
     "its header: line 1, column 4: expected UTF-8"},
    {"{\"a\xff\n\":1}", "tensor \"a\\xff\\x0a\": it is no object"},
    {"{\"__metadata__\":3}", "tensor \"__metadata__\": it is no object"},
    {"{\"a\":3}", "tensor \"a\": it is no object of dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8]}}",
     "tensor \"a\": it is no object of dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,8]}}",
     "tensor \"a\": it is no object of dtype, shape and data_offsets"},
    {"{\"a\":" ENTRY("7", "[8]", "[0,8]") "}", "tensor \"a\": its dtype is no text"},
    {"{\"a\":" ENTRY("\"F32\"", "[8]", "[0,8]") "}",
     "tensor \"a\": its data_offsets do not fit its dtype and shape"},
    {"{" A("8", "[0,8]") "}", "tensor \"a\": its shape is no list of at most 8 numbers"},
    {"{" A("[1,1,1,1,1,1,1,1,8]", "[0,8]") "}",
     "tensor \"a\": its shape is no list of at most 8 numbers"},
    {"{" A("[-8]", "[0,8]") "}", "tensor \"a\": its shape is no list of at most 8 "
                                 "numbers"},
    {"{" A("[8.5]", "[0,8]") "}", "tensor \"a\": its shape is no list of at most 8 "
                                  "numbers"},
    {"{" A("[1e999]", "[0,8]") "}", "tensor \"a\": its shape is no list of at most 8 "
                                    "numbers"},
    {"{" A("[\"8\"]", "[0,8]") "}", "tensor \"a\": its shape is no list of at most 8 "
                                    "numbers"},
    {"{" A("[281474976710656,281474976710656]", "[0,8]") "}",
     "tensor \"a\": its data_offsets do not fit its dtype and shape"},
    {"{" A("[8]", "[0]") "}", "tensor \"a\": its data_offsets are not two numbers"},
    {"{" A("[8]", "{\"x\":0,\"y\":8}") "}",
     "tensor \"a\": its data_offsets are not two numbers"},
    {"{" A("[8]", "[0,18446744073709551624]") "}",
     "tensor \"a\": its data_offsets are not two numbers"},
    {"{" A("[8]", "[0,9]") "}", "tensor \"a\": its data_offsets are beyond the file"},
    {"{" A("[8]", "[8,0]") "}", "tensor \"a\": its data_offsets are beyond the file"},
    {"{" A("[7]", "[0,7]") "}", "there are bytes behind its last tensor"},
    {"{" A("[7]", "[1,8]") "}", "tensor \"a\": there is a hole before its content"},
    {"{" A("[6]", "[0,6]") "," B("[4]", "[4,8]") "}",
     "tensor \"b\": its content overlaps with another one"},
    {"{" A("[3]", "[0,3]") "," B("[4]", "[4,8]") "}",
     "tensor \"b\": there is a hole before its content"},
    {"{" A("[4]", "[0,4]") "," A("[4]", "[4,8]") "}", "tensor \"a\": it is there twice"},
    {"{}", "there are bytes behind its last tensor"},
};

static int read_row(const char *json, mu_error *error)
{
    struct mu__safetensor *tensors = NULL;
    size_t count;
    int rv = mu__safetensors_read(json, strlen(json), 8, error, &tensors, &count);

    free(tensors);
    return rv;
}

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};
        int rv = read_row(rows[i].json, &error);

        if (rv != (rows[i].words == NULL ? 0 : -MU_EDATALOSS) || error.code != rv ||
            (rv != 0 &&
             strncmp(error.message, rows[i].words, strlen(rows[i].words)) != 0))
            fail_msg("row %zu: %d \"%s\"", i, rv, error.message);
    }
}

/* Not damaged, but nothing for variables. */
TEST(test_other_dtype)
{
    mu_error error = {0};

    assert_int_equal(read_row("{\"a\":" ENTRY("\"F8_E4M3\"", "[8]", "[0,8]") "}", &error),
                     -MU_EUNIMPLEMENTED);
    assert_string_equal(error.message, "tensor \"a\": variables cannot have its dtype, "
                                       "\"F8_E4M3\"");
}

TEST(test_long_name)
{
    char json[512];
    mu_error error = {0};

    (void)snprintf(json, sizeof json, "{\"%0320d\":" ENTRY("\"U8\"", "[8]", "[0,8]") "}",
                   0);
    assert_int_equal(read_row(json, &error), -MU_EDATALOSS);
    assert_non_null(strstr(error.message, ": its name is too long"));
}

TEST_PROGRAM()
