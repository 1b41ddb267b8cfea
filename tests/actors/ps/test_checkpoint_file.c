/* A checkpoint as bytes: what is written is read, each damaged byte is found, and bytes
 * whose sums are right but that make no sense are refused with words. */
#include "actors/ps/checkpoint_format.h"

#include "actors/packing.h"
#include "runtime/message/codec.h"
#include "tests/support/test.h"

enum { FILE_BYTES_MAX = 4096 };

static struct mu__crc32c crc;

struct file {
    uint8_t bytes[FILE_BYTES_MAX];
    uint64_t size;
};

/* ---- Making files ---- */

struct content {
    const char *name;
    struct mu__shape shape;
    const void *data;
    uint64_t bytes;
};

static void make_parts(struct file *file, const struct content *contents, uint32_t count,
                       struct mu__ckpt_part *parts)
{
    file->size = MU__CKPT_HEADER_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t filled = mu__ckpt_filled(contents[i].bytes);

        (void)snprintf(parts[i].name, sizeof parts[i].name, "%s", contents[i].name);
        parts[i].shape = contents[i].shape;
        parts[i].offset = file->size;
        parts[i].bytes = contents[i].bytes;
        memcpy(file->bytes + file->size, contents[i].data, contents[i].bytes);
        parts[i].sum = mu__crc32c_add(&crc, 0, file->bytes + file->size, filled);
        file->size += filled;
    }
}

static void finish_file(struct file *file, const struct mu__ckpt_part *parts,
                        uint32_t count, uint64_t step)
{
    struct mu__ckpt_header header = {
        .parts_count = count,
        .step = step,
        .index_offset = file->size,
        .index_size = mu__ckpt_index_size(parts, count),
    };

    mu__ckpt_index_write(parts, count, file->bytes + file->size);
    header.index_sum = mu__crc32c_add(&crc, 0, file->bytes + file->size,
                                      header.index_size);
    file->size += header.index_size;
    header.file_size = file->size;
    mu__ckpt_header_write(&crc, &header, file->bytes);
}

static const float floats[6] = {1, 2, 3, 4, 5, 6};
static const int64_t number = -7;

static const struct content usual[] = {
    {"a", {MU_F32, 2, {2, 3}, 2}, floats, sizeof floats},
    {"b/counter", {MU_I64, 0, {0}, 1}, &number, sizeof number},
    {"b/z", {MU_U8, 1, {64}, 1}, "0123456789abcdef0123456789abcdef0123456789abcdef"
                                 "0123456789abcdef", 64},
};
enum { USUAL_COUNT = 3 };

static void make_usual(struct file *file)
{
    struct mu__ckpt_part parts[USUAL_COUNT] = {{.offset = 0}};

    memset(file, 0, sizeof *file);
    make_parts(file, usual, USUAL_COUNT, parts);
    finish_file(file, parts, USUAL_COUNT, 42);
}

/* ---- Reading them, as the reader of files does ---- */

static int read_file(const struct file *file, char *why,
                     struct mu__ckpt_header *ret_header, struct mu__ckpt_part **ret_parts)
{
    uint8_t first[MU__CKPT_HEADER_BYTES] = {0};
    int rv;

    memcpy(first, file->bytes, file->size < sizeof first ? file->size : sizeof first);
    rv = mu__ckpt_header_read(&crc, first, file->size, why, ret_header);
    if (rv == 0)
        rv = mu__ckpt_index_read(&crc, ret_header, file->bytes + ret_header->index_offset,
                                 why, ret_parts);
    if (rv != 0)
        return rv;
    for (uint32_t i = 0; rv == 0 && i < ret_header->parts_count; i++) {
        const struct mu__ckpt_part *part = &(*ret_parts)[i];

        if (mu__crc32c_add(&crc, 0, file->bytes + part->offset,
                           mu__ckpt_filled(part->bytes)) != part->sum) {
            (void)snprintf(why, MU__CKPT_WHY_BYTES, "content %u", i);
            rv = -MU_EDATALOSS;
        }
    }
    if (rv != 0)
        free(*ret_parts);
    return rv;
}

static int try_file(const struct file *file, char *why)
{
    struct mu__ckpt_header header;
    struct mu__ckpt_part *parts;
    int rv = read_file(file, why, &header, &parts);

    if (rv == 0)
        free(parts);
    return rv;
}

/* ---- Tests ---- */

TEST(test_round_trip)
{
    struct file file;
    struct mu__ckpt_header header;
    struct mu__ckpt_part *parts;
    char why[MU__CKPT_WHY_BYTES];

    make_usual(&file);
    assert_int_equal(read_file(&file, why, &header, &parts), 0);
    assert_int_equal(header.step, 42);
    assert_int_equal(header.parts_count, USUAL_COUNT);
    for (uint32_t i = 0; i < USUAL_COUNT; i++) {
        assert_string_equal(parts[i].name, usual[i].name);
        assert_true(mu__shape_equal(&parts[i].shape, &usual[i].shape));
        assert_int_equal(parts[i].bytes, usual[i].bytes);
        assert_int_equal(parts[i].offset % MU__CKPT_ALIGN, 0);
        assert_memory_equal(file.bytes + parts[i].offset, usual[i].data, usual[i].bytes);
    }
    free(parts);
}

TEST(test_empty)
{
    struct file file = {.size = MU__CKPT_HEADER_BYTES};
    struct mu__ckpt_part none = {.offset = 0};
    char why[MU__CKPT_WHY_BYTES];

    finish_file(&file, &none, 0, 0);
    assert_int_equal(file.size, MU__CKPT_HEADER_BYTES);
    assert_int_equal(try_file(&file, why), 0);
}

/* Every bit of every byte counts. */
TEST(test_every_bit)
{
    struct file file;
    char why[MU__CKPT_WHY_BYTES];

    make_usual(&file);
    for (uint64_t at = 0; at < file.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            file.bytes[at] ^= (uint8_t)(1U << bit);
            why[0] = '\0';
            if (try_file(&file, why) != -MU_EDATALOSS || why[0] == '\0')
                fail_msg("bit %u of byte %llu", bit, (unsigned long long)at);
            file.bytes[at] ^= (uint8_t)(1U << bit);
        }
    assert_int_equal(try_file(&file, why), 0);
}

TEST(test_every_length)
{
    struct file file;
    uint64_t whole;
    char why[MU__CKPT_WHY_BYTES];

    make_usual(&file);
    whole = file.size;
    for (file.size = 0; file.size < whole + 70; file.size++) {
        if (file.size == whole)
            continue;
        assert_int_equal(try_file(&file, why), -MU_EDATALOSS);
        assert_string_equal(why, file.size < MU__CKPT_HEADER_BYTES
                                     ? "the file is cut short, in its header"
                            : file.size < whole ? "the file is cut short"
                                                : "there are bytes behind its end");
    }
}

/* Numbers of one part of three, or of the header, that make no sense; the sums are
 * right. */
static const struct row {
    const char *words;
    const char *name;       /* NULL: as it was, as all that is 0 here */
    uint32_t dtype;
    uint32_t rank;
    uint32_t shards;
    uint64_t dim;           /* the first one */
    int64_t offset;         /* is added */
    int64_t bytes;
    int32_t count;          /* of the header */
} rows[] = {
    {"its names do not ascend", .name = "a"},
    {"its names do not ascend", .name = "b/zz"},
    {"a variable's name is not valid", .name = "a\x01"},
    {"a variable's name is not valid", .name = "a\xff"},
    {"the value beside the variables is malformed", .name = ""},
    {"a variable's shape is not valid", .dtype = 99},
    {"a variable's shape is not valid", .rank = 1, .dim = 1, .shards = 2},
    {"a variable's shape is not valid", .shards = 5},
    {"a variable has another size than its shape says", .rank = 1, .dim = 3},
    {"a variable has another size than its shape says", .bytes = 1},
    {"a variable has another size than its shape says", .bytes = -8},
    {"a variable's shape is not valid", .rank = 1, .dim = UINT64_C(1) << 60},
    {"a content is not where it was expected", .offset = 64},
    {"a content is not where it was expected", .offset = -64},
    {"an entry of its index is malformed", .rank = 9},
    {"there are bytes behind its index", .count = -1},
    {"its index is cut short", .count = 1},
    {"its index is cut short", .count = 10000},
    {"it is beyond the bounds of a checkpoint", .count = 2000000},
};

static void change_part(struct mu__ckpt_part *part, const struct row *row)
{
    if (row->name != NULL)
        (void)snprintf(part->name, sizeof part->name, "%s", row->name);
    if (row->dtype != 0)
        part->shape.dtype = row->dtype;
    if (row->rank != 0)
        part->shape.rank = row->rank;
    if (row->shards != 0)
        part->shape.shards = row->shards;
    if (row->dim != 0)
        part->shape.dims[0] = row->dim;
    part->offset += (uint64_t)row->offset;
    part->bytes += (uint64_t)row->bytes;
}

/* The index's writer refuses names that do not ascend: parts one by one. */
static void write_loosely(struct file *file, const struct mu__ckpt_part *parts,
                          uint32_t count, int32_t more)
{
    struct mu__ckpt_header header = {
        .parts_count = (uint32_t)((int32_t)count + more),
        .index_offset = file->size,
    };

    for (uint32_t i = 0; i < count; i++) {
        struct mu__ckpt_part part = parts[i];

        /* What is more than a rank can be would be read beyond the dims there are. */
        if (part.shape.rank > MU_TENSOR_RANK_MAX)
            part.shape.rank = 0;
        mu__ckpt_index_write(&part, 1, file->bytes + file->size);
        if (parts[i].shape.rank > MU_TENSOR_RANK_MAX)
            file->bytes[file->size + 3] = (uint8_t)parts[i].shape.rank;
        file->size += mu__ckpt_index_size(&part, 1);
    }
    header.file_size = file->size;
    header.index_size = file->size - header.index_offset;
    header.index_sum = mu__crc32c_add(&crc, 0, file->bytes + header.index_offset,
                                      header.index_size);
    mu__ckpt_header_write(&crc, &header, file->bytes);
}

TEST(test_no_sense)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__ckpt_part parts[USUAL_COUNT] = {{.offset = 0}};
        struct file file = {.size = 0};
        char why[MU__CKPT_WHY_BYTES] = "";

        make_parts(&file, usual, USUAL_COUNT, parts);
        change_part(&parts[1], &rows[i]);
        write_loosely(&file, parts, USUAL_COUNT, rows[i].count);
        if (try_file(&file, why) != -MU_EDATALOSS || strcmp(why, rows[i].words) != 0)
            fail_msg("row %zu: \"%s\"", i, why);
    }
}

/* The same of the header alone. */
TEST(test_header_no_sense)
{
    static const struct {
        const char *words;
        struct mu__ckpt_header header;
    } headers[] = {
        {"its index is not at its end", {0, 0, 0, 0, 128, 0}},
        {"its index is not at its end", {0, 0, 65, 63, 128, 0}},
        {"its index is not at its end", {0, 0, 64, 63, 128, 0}},
        {"its index is not at its end", {0, 0, 192, 0, 128, 0}},
        {"its index is not at its end", {0, 0, UINT64_MAX - 63, 64, 128, 0}},
        {"the file is cut short", {0, 0, 64, 65, 129, 0}},
        {"there are bytes behind its end", {0, 0, 64, 63, 127, 0}},
    };
    uint8_t bytes[MU__CKPT_HEADER_BYTES];
    struct mu__ckpt_header header;
    char why[MU__CKPT_WHY_BYTES];

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        mu__ckpt_header_write(&crc, &headers[i].header, bytes);
        assert_int_equal(mu__ckpt_header_read(&crc, bytes, 128, why, &header),
                         -MU_EDATALOSS);
        assert_string_equal(why, headers[i].words);
    }
    mu__ckpt_header_write(&crc, &headers[0].header, bytes);
    bytes[8] = 2;
    bytes[60] = bytes[61] = bytes[62] = bytes[63] = 0;
    for (unsigned k = 0; k < 4; k++)
        bytes[60 + k] = (uint8_t)(mu__crc32c_add(&crc, 0, bytes, 60) >> (8 * k));
    assert_int_equal(mu__ckpt_header_read(&crc, bytes, 128, why, &header), -MU_EDATALOSS);
    assert_string_equal(why, "it has another format than 1");
}

/* The value that was saved beside the variables, with a tensor and without. */
TEST(test_value)
{
    const uint64_t dims[1] = {6};
    mu_value *values[2] = {mu_value_tensor(MU_F32, 1, dims, floats),
                           mu_value_string("epoch 3")};

    for (size_t i = 0; i < 2; i++) {
        struct mu__packed packed;
        struct mu__buf *buf = mu__pack_value(values[i], &packed);
        struct content content = {"", {.rank = 2}, buf->data, buf->size};
        struct mu__ckpt_part part = {.offset = 0};
        struct file file = {.size = 0};
        struct mu__ckpt_header header;
        struct mu__ckpt_part *parts;
        char why[MU__CKPT_WHY_BYTES];
        mu_value *read;

        content.shape.dims[0] = packed.head_size;
        content.shape.dims[1] = packed.tail_size;
        make_parts(&file, &content, 1, &part);
        finish_file(&file, &part, 1, 1);
        assert_int_equal(read_file(&file, why, &header, &parts), 0);
        packed = mu__ckpt_packed(&parts[0], file.bytes + parts[0].offset);
        assert_int_equal(mu__value_unpack(&packed, why, sizeof why, &read), 0);
        assert_true(mu_value_equal(read, values[i]));
        mu_value_free(read);
        free(parts);
        mu__buf_unref(buf);
        mu_value_free(values[i]);
    }
}

int main(void)
{
    mu__crc32c_init(&crc);
    return tests_run(NULL, NULL);
}
