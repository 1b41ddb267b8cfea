/* Manifests of checkpoints: what is written is read, each damaged byte is found, and
 * texts whose sums are right but that make no sense are refused with words. */
#include "runtime/document/manifest.h"

#include "tests/support/test.h"

static struct mu__crc32c crc;

/* ---- Round trip ---- */

static struct mu__manifest_file files[] = {
    {.bytes = 104, .header_crc = UINT32_MAX},
    {.bytes = UINT64_C(1) << 48, .header_crc = 0},
};
static struct mu__manifest_part parts[] = {
    {.file = 0, .first_row = 0, .end_row = 2, .crc = 1},
    {.file = 1, .first_row = 2, .end_row = 3, .crc = 2},
    {.file = 1, .first_row = 0, .end_row = 1, .crc = 3},
};
static struct mu__manifest_variable variables[] = {
    {.name = "a\"\\",
     .dtype = MU_F32,
     .rank = 2,
     .dims = {3, 4},
     .shards = 2,
     .parts_count = 2},
    {.name = "b", .dtype = MU_BOOL, .shards = 1, .parts_count = 1, .parts_from = 2},
};
static struct mu__manifest_partition partitions[] = {
    {.partition = 0, .position = UINT64_MAX, .sum = UINT64_MAX, .windows_bytes = 40},
    {.partition = 255, .position = 7, .sum = 1},
};
static const struct mu__manifest written = {
    .step = UINT64_MAX,
    .files = files,
    .files_count = 2,
    .variables = variables,
    .variables_count = 2,
    .parts = parts,
    .parts_count = 3,
    .partitions = partitions,
    .partitions_count = 2,
    .windows = {120, 5},
    .index = {90, 4},
};

static void write_written(struct mu__build *out)
{
    mu__manifest_write(&crc, &written, "{\"epoch\": 3}", out);
    assert_true(mu__build_whole(out));
}

TEST(test_round_trip)
{
    struct mu__manifest read;
    struct mu__build out = {0};
    mu_error error = {0};
    int64_t epoch = 0;

    write_written(&out);
    if (mu__manifest_read(&crc, out.text, out.size, &error, &read) != 0)
        fail_msg("%s", error.message);
    assert_true(read.step == UINT64_MAX);
    assert_int_equal(read.files_count, 2);
    assert_memory_equal(read.files, files, sizeof files);
    assert_int_equal(read.variables_count, 2);
    assert_memory_equal(read.variables, variables, sizeof variables);
    assert_int_equal(read.parts_count, 3);
    assert_memory_equal(read.parts, parts, sizeof parts);
    assert_int_equal(read.partitions_count, 2);
    assert_memory_equal(read.partitions, partitions, sizeof partitions);
    assert_int_equal(read.windows.bytes, 120);
    assert_int_equal(read.windows.crc, 5);
    assert_int_equal(read.index.bytes, 90);
    assert_int_equal(read.index.crc, 4);
    assert_int_equal(read.packed.bytes, 0);
    assert_int_equal(mu_value_get_int(mu_value_find(read.values, "epoch"), &epoch), 0);
    assert_int_equal(epoch, 3);
    mu__manifest_done(&read);
    mu__build_done(&out);
}

TEST(test_packed_and_empty)
{
    const struct mu__manifest packed = {
        .step = 1, .packed = {100, 8}, .head_bytes = 20, .tail_bytes = 17};
    struct mu__manifest read;
    struct mu__build out = {0};

    assert_int_equal(mu__manifest_packed_bytes(20, 17), 52);
    mu__manifest_write(&crc, &packed, NULL, &out);
    assert_int_equal(mu__manifest_read(&crc, out.text, out.size, NULL, &read), 0);
    assert_int_equal(read.files_count + read.variables_count + read.parts_count, 0);
    assert_null(read.values);
    assert_int_equal(read.packed.bytes, 100);
    assert_int_equal(read.packed.crc, 8);
    assert_int_equal(read.head_bytes, 20);
    assert_int_equal(read.tail_bytes, 17);
    mu__manifest_done(&read);
    mu__build_done(&out);
}

TEST(test_index)
{
    struct mu__build out = {0};

    mu__manifest_write_index(&written, &out);
    assert_string_equal(out.text,
                        "{\"weight_map\": {\n"
                        " \"a\\u0022\\u005c[0:2]\": \"00001-of-00002.safetensors\",\n"
                        " \"a\\u0022\\u005c[2:3]\": \"00002-of-00002.safetensors\",\n"
                        " \"b\": \"00002-of-00002.safetensors\"},\n"
                        "\"metadata\": {\"total_size\": 49}}\n");
    mu__build_done(&out);
}

/* ---- Damage ---- */

static int try_text(const char *text, size_t size, mu_error *error)
{
    struct mu__manifest read;
    int rv = mu__manifest_read(&crc, text, size, error, &read);

    if (rv == 0)
        mu__manifest_done(&read);
    return rv;
}

TEST(test_every_bit)
{
    struct mu__build out = {0};

    write_written(&out);
    for (size_t at = 0; at < out.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            mu_error error = {0};

            out.text[at] = (char)(out.text[at] ^ (1 << bit));
            if (try_text(out.text, out.size, &error) != -MU_EDATALOSS ||
                error.code != -MU_EDATALOSS || error.message[0] == '\0')
                fail_msg("bit %u of byte %zu", bit, at);
            out.text[at] = (char)(out.text[at] ^ (1 << bit));
        }
    assert_int_equal(try_text(out.text, out.size, NULL), 0);
    mu__build_done(&out);
}

TEST(test_every_length)
{
    struct mu__build out = {0};
    mu_error error;
    size_t whole;

    write_written(&out);
    whole = out.size;
    for (size_t size = 0; size < whole; size++) {
        assert_int_equal(try_text(out.text, size, &error), -MU_EDATALOSS);
        assert_string_equal(error.message,
                            size < strlen("\"manifest_crc32c\": \"00000000\"}\n")
                                ? "it is cut short"
                                : "it is damaged: its sum is not that at its end");
    }
    mu__build_add(&out, " ");
    assert_int_equal(try_text(out.text, out.size, &error), -MU_EDATALOSS);
    mu__build_done(&out);
}

/* ---- No sense ---- */

/* A text of which one piece is another one; the sum is right. */
static const char *const original[] = {
    "{\"format\": \"muster checkpoint\",",
    " \"version\": 1,",
    " \"step\": \"7\",",
    " \"files\": [{\"file\": \"00001-of-00001.safetensors\","
    " \"bytes\": 9, \"header_crc32c\": 1}],",
    " \"partitions\": [{\"partition\": 3, \"position\": \"1\","
    " \"sum\": \"00000000000000ff\", \"windows\": 8}],",
    " \"windows\": {\"file\": \"windows.safetensors\", \"bytes\": 90,"
    " \"crc32c\": 1},",
    " \"index\": {\"file\": \"model.safetensors.index.json\", \"bytes\": 9,"
    " \"crc32c\": 1},",
    " \"values\": 3,",
    " \"variables\": [{\"name\": \"w\", \"dtype\": \"U8\", \"shape\": [4],"
    " \"shards\": 1,",
    " \"parts\": [{\"file\": 1, \"tensor\": \"w[0:2]\", \"rows\": [0, 2],"
    " \"crc32c\": 1},",
    " {\"file\": 1, \"tensor\": \"w[2:4]\", \"rows\": [2, 4], \"crc32c\": 1}]}],",
};
enum {
    FORMAT,
    VERSION,
    STEP,
    FILES,
    PARTITIONS,
    WINDOWS,
    INDEX,
    VALUES,
    FORM,
    FIRST,
    SECOND,
    PIECES
};

#define FILE_ROW(name, bytes) \
    " \"files\": [{\"file\": \"" name "\", \"bytes\": " bytes ", \"header_crc32c\": 1}],"
#define PARTITION_ROW(partition, position, sum, windows)                       \
    "{\"partition\": " partition ", \"position\": " position ", \"sum\": " sum \
    ", \"windows\": " windows "}"
#define SUM "\"00000000000000ff\""
#define FORM_ROW(name, dtype, shape, shards)                                        \
    " \"variables\": [{\"name\": " name ", \"dtype\": " dtype ", \"shape\": " shape \
    ", \"shards\": " shards ","
#define PART_ROW(file, tensor, rows) \
    " {\"file\": " file ", \"tensor\": " tensor ", \"rows\": " rows ", \"crc32c\": 1}"
#define FILE_NAME "00001-of-00001.safetensors"

static const struct row {
    int piece;
    const char *text;
    const char *words;
} rows[] = {
    {FORMAT, "{\"format\": \"another\",", "its format is not \"muster checkpoint\""},
    {FORMAT, "{", "its format is not \"muster checkpoint\""},
    {FORMAT, "[", NULL},
    {FORMAT, "{\"step\": \"7\",", "it: the key \"step\" appears twice; expected it once"},
    {VERSION, " \"version\": 2,", "its version is not 1"},
    {VERSION, " \"version\": \"1\",", "its version is not 1"},
    {STEP, " \"step\": 7,", "its step is no text of digits"},
    {STEP, " \"step\": \"-7\",", "its step is no text of digits"},
    {STEP, " \"step\": \"7 \",", "its step is no text of digits"},
    {STEP, " \"step\": \"18446744073709551616\",", "its step is no text of digits"},
    {FILES, "", "\"files\" is no list of at most 99999"},
    {FILES, " \"files\": {},", "\"files\" is no list of at most 99999"},
    {FILES, " \"files\": [],", "a part is in file 1, of 0"},
    {FILES, " \"files\": [3],", "its file " FILE_NAME " is malformed"},
    {FILES, FILE_ROW("../" FILE_NAME, "9"), "its file " FILE_NAME " is malformed"},
    {FILES, FILE_ROW(FILE_NAME, "-1"), "its file " FILE_NAME " is malformed"},
    {FILES, FILE_ROW(FILE_NAME, "281474976710657"),
     "its file " FILE_NAME " is malformed"},
    {PARTITIONS, "", "\"windows\" is malformed"},
    {PARTITIONS, " \"partitions\": 3,", "\"partitions\" is no list of at most 65536"},
    {PARTITIONS, " \"partitions\": [" PARTITION_ROW("3", "\"1\"", SUM, "0") "],",
     "\"windows\" is malformed"},
    {PARTITIONS, " \"partitions\": [" PARTITION_ROW("3", "1", SUM, "8") "],",
     "a partition is malformed"},
    {PARTITIONS, " \"partitions\": [" PARTITION_ROW("3", "\"1\"", "\"ff\"", "8") "],",
     "a partition is malformed"},
    {PARTITIONS,
     " \"partitions\": [" PARTITION_ROW("3", "\"1\"", SUM, "8") "," PARTITION_ROW(
         "3", "\"1\"", SUM, "8") "],",
     "a partition is malformed"},
    {WINDOWS, "", "\"windows\" is malformed"},
    {WINDOWS, " \"windows\": {\"file\": \"other\", \"bytes\": 9, \"crc32c\": 1},",
     "\"windows\" is malformed"},
    {INDEX, "", "\"index\" is malformed"},
    {INDEX, " \"index\": {\"file\": \"/etc/passwd\", \"bytes\": 9, \"crc32c\": 1},",
     "\"index\" is malformed"},
    {VALUES, " \"values\": {\"$x\": 1},",
     "\"values\": a key with \"$\" has no known meaning"},
    {VALUES, " \"packed_values\": 3,", "\"packed_values\" is malformed"},
    {VALUES,
     " \"packed_values\": {\"file\": \"values.safetensors\", \"bytes\": 9,"
     " \"crc32c\": 1, \"head_bytes\": 4294967295, \"tail_bytes\": 4294967295},",
     "\"packed_values\" is malformed"},
    {FORM, FORM_ROW("3", "\"U8\"", "[4]", "1"), "a variable is malformed"},
    {FORM, FORM_ROW("\"\xff\n\"", "\"U9\"", "[4]", "1"), NULL},
    {FORM, FORM_ROW("\"w\"", "\"U9\"", "[4]", "1"), "variable \"w\" is malformed"},
    {FORM, FORM_ROW("\"w\"", "\"U8\"", "4", "1"), "variable \"w\" is malformed"},
    {FORM, FORM_ROW("\"w\"", "\"U8\"", "[4]", "-1"), "variable \"w\" is malformed"},
    {FORM, FORM_ROW("\"w\"", "\"U8\"", "[0]", "1"),
     "variable \"w\": its shape has no or too many bytes"},
    {FORM, FORM_ROW("\"w\"", "\"U8\"", "[281474976710656, 281474976710656]", "1"),
     "variable \"w\": its shape has no or too many bytes"},
    {FORM, FORM_ROW("\"w\"", "\"U8\"", "[5]", "1"),
     "variable \"w\": rows are missing at its end"},
    {FORM, FORM_ROW("\"w\"", "\"U8\"", "[3]", "1"),
     "variable \"w\": a part is malformed"},
    {FORM, FORM_ROW("\"v\"", "\"U8\"", "[4]", "1"),
     "variable \"v\": a part has another tensor than its rows say"},
    {FIRST, " \"parts\": 3}, {\"name\": \"x\", \"parts\": [",
     "variable \"w\": rows are missing at its end"},
    {FIRST, " \"parts\": [" PART_ROW("0", "\"w[0:2]\"", "[0, 2]") ",",
     "variable \"w\": a part is malformed"},
    {FIRST, " \"parts\": [" PART_ROW("2", "\"w[0:2]\"", "[0, 2]") ",",
     "a part is in file 2, of 1"},
    {FIRST, " \"parts\": [" PART_ROW("1", "\"w[0:2]\"", "[2, 0]") ",",
     "variable \"w\": a part is malformed"},
    {FIRST, " \"parts\": [" PART_ROW("1", "\"w[0:3]\"", "[0, 3]") ",",
     "variable \"w\": rows overlap, or are missing between parts"},
    {FIRST, " \"parts\": [" PART_ROW("1", "\"w[1:2]\"", "[1, 2]") ",",
     "variable \"w\": rows overlap, or are missing between parts"},
    {FIRST, " \"parts\": [" PART_ROW("1", "\"w\"", "[0, 2]") ",",
     "variable \"w\": a part has another tensor than its rows say"},
    {SECOND,
     PART_ROW("1", "\"w[2:4]\"",
              "[2, 4]") "]}, {\"name\": \"w\", \"dtype\": "
                        "\"U8\", \"shape\": [], \"shards\": 1, \"parts\": []}],",
     "variable \"w\": names do not ascend, or it is there twice"},
    {SECOND, PART_ROW("1", "\"w[2:4]\"", "[2, 4]") "]}], \"variables\": [],",
     "it: the key \"variables\" appears twice; expected it once"},
};

static void write_pieces(const struct row *row, struct mu__build *out)
{
    for (int i = 0; i < PIECES; i++)
        mu__build_add(out, row != NULL && row->piece == i ? row->text : original[i]);
    mu__build_add(out, "\n");
    mu__build_format(out, "\"manifest_crc32c\": \"%08x\"}\n",
                     (unsigned)mu__crc32c_add(&crc, 0, out->text, out->size));
}

TEST(test_no_sense)
{
    struct mu__build fine = {0};

    write_pieces(NULL, &fine);
    assert_int_equal(try_text(fine.text, fine.size, NULL), 0);
    mu__build_done(&fine);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__build out = {0};
        mu_error error = {0};

        write_pieces(&rows[i], &out);
        if (try_text(out.text, out.size, &error) != -MU_EDATALOSS ||
            error.code != -MU_EDATALOSS || error.message[0] == '\0' ||
            (rows[i].words != NULL && strcmp(error.message, rows[i].words) != 0))
            fail_msg("row %zu: \"%s\"", i, error.message);
        mu__build_done(&out);
    }
}

int main(void)
{
    mu__crc32c_init(&crc);
    return tests_run(NULL, NULL);
}
