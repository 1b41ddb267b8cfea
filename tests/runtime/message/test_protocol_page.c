/* docs/protocol.md lists every message that travels. The list is made from the tables
 * themselves: this test makes it again and compares. With MUSTER_UPDATE=1 it writes the
 * page instead. MUSTER_SOURCE names the source tree. */
#include "actors/messages.h"
#include "transport/link/frames.h"

#include "muster/error.h"
#include "tests/support/test.h"

enum { PAGE_BYTES_MAX = 64 << 10 };

static const char *const type_names[] = {
    [MU__FIELD_u64] = "unsigned 64 bits",
    [MU__FIELD_u32] = "unsigned 32 bits",
    [MU__FIELD_i64] = "signed 64 bits",
    [MU__FIELD_f64] = "float 64 bits",
    [MU__FIELD_flag] = "bool",
    [MU__FIELD_str] = "text",
    [MU__FIELD_bytes] = "bytes",
    [MU__FIELD_raw] = "raw bytes behind the record",
    [MU__FIELD_value] = "packed value",
};

struct page {
    char text[PAGE_BYTES_MAX];
    size_t size;
};

static void add(struct page *page, const char *format, ...) MU_PRINTF(2, 3);

static void add(struct page *page, const char *format, ...)
{
    va_list args;
    int written;

    va_start(args, format);
    written =
        vsnprintf(page->text + page->size, sizeof page->text - page->size, format, args);
    va_end(args);
    assert_true(written >= 0 && (size_t)written < sizeof page->text - page->size);
    page->size += (size_t)written;
}

static void add_row(struct page *page, unsigned number, const struct mu__row *row)
{
    add(page,
        "\n### %u `%s`\n\nRight: %s.\n\n"
        "| field | type | needed | bound |\n| --- | --- | --- | --- |\n",
        number, row->name,
        row->right == MU__RIGHT_STORED ? "none, it is only stored"
        : row->right == MU__RIGHT_NONE ? "none"
        : row->by_chief != 0           ? "to be the chief"
                                       : mu__right_name(row->right));
    for (uint16_t i = 0; i < row->fields_count; i++) {
        const struct mu__field *field = &row->fields[i];

        add(page, "| %s | %s | %s | ", field->name, type_names[field->type],
            field->required != 0 ? "yes" : "no");
        if (field->bound == 0)
            add(page, "none |\n");
        else
            add(page, "%u |\n", field->bound);
    }
}

static void add_schema(struct page *page, const struct mu__schema *schema)
{
    for (unsigned i = 0; i < schema->rows_count; i++)
        if (schema->rows[i].name != NULL)
            add_row(page, i, &schema->rows[i]);
}

static void make_page(struct page *page)
{
    page->size = 0;
    add(page,
        "# The protocol between nodes\n\n"
        "Made by `tests/runtime/message/test_protocol_page.c` from the message tables; "
        "not edited by hand.\n\n"
        "A frame is a header of %d bytes (`transport/link/frames.h`) and records "
        "(`runtime/message/codec.h`).\n"
        "Protocol version %d. A bound is the most bytes of text, bytes, raw bytes or a "
        "packed value, and the largest number\n"
        "of an unsigned field. The right is what the sender must have proven ([security]"
        "(security.md)).\n\n"
        "## Records of the protocol itself\n",
        MU__FRAME_HEADER_BYTES, MU__FRAME_VERSION);
    add_schema(page, &mu__frame_messages);
    add(page, "\n## Messages between actors\n");
    add_schema(page, &mu__messages);
}

static void page_path(char *out, size_t size)
{
    const char *source = getenv("MUSTER_SOURCE");

    (void)snprintf(out, size, "%s/docs/protocol.md", source == NULL ? "." : source);
}

TEST(test_page_is_what_the_tables_say)
{
    struct page *page = calloc(1, sizeof *page);
    char *found = calloc(1, PAGE_BYTES_MAX);
    char path[1024];
    FILE *file;
    size_t size;

    assert_non_null(page);
    assert_non_null(found);
    make_page(page);
    page_path(path, sizeof path);
    if (getenv("MUSTER_UPDATE") != NULL) {
        file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(page->text, 1, page->size, file), page->size);
        assert_int_equal(fclose(file), 0);
    }
    file = fopen(path, "r");
    assert_non_null(file);
    size = fread(found, 1, PAGE_BYTES_MAX - 1, file);
    (void)fclose(file);
    assert_int_equal(size, page->size);
    assert_string_equal(found, page->text);
    free(found);
    free(page);
}

/* Rows that cannot be right whatever the page says. */
TEST(test_rows_make_sense)
{
    for (unsigned i = 0; i < mu__messages.rows_count; i++) {
        const struct mu__row *row = &mu__messages.rows[i];
        int tails = 0;
        bool optional = false;

        if (row->name == NULL)
            continue;
        assert_int_not_equal(row->right, MU__RIGHT_NONE);
        for (uint16_t j = 0; j < row->fields_count; j++) {
            const struct mu__field *field = &row->fields[j];

            tails += field->type == MU__FIELD_value || field->type == MU__FIELD_raw;
            assert_true(field->required == 0 || !optional);
            optional = field->required == 0;
        }
        assert_true(tails <= 1);
    }
}

TEST_PROGRAM()
