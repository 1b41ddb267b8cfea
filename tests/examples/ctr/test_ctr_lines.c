/* The click example's reader: good lines, what is wrong with bad ones, features. */
#include "tests/support/test.h"

#include "examples/ctr/ctr_lines.h"

#include <stdbool.h>
#include <string.h>

/* The first line of the Kaggle set. */
#define NUMBERS "\t1\t1\t5\t0\t1382\t4\t15\t2\t181\t1\t2\t\t2"
#define C7 "\t68fd1e64\t80e26c9b\tfb936136\t7b4723c4\t25c83c98\t7e0ccccf\tde7995b8"
#define C12 C7 "\t1f89b562\ta73ee510\ta8cd5504\tb2cb9c98\t37c9c164"
#define C18 C12 "\t2824a5f6\t1adce6ef\t8ba8b39a\t891b62e7\te5ba7672\tf54016b9"
#define C25 C18 "\t21ddcdc9\tb1252a9d\t07b5194c\t\t3a171ecb\tc5c50484\te8b83407"
#define GOOD "0" NUMBERS C25 "\t9727dd16"
#define TABS9 "\t\t\t\t\t\t\t\t\t"
#define TABS39 TABS9 TABS9 TABS9 TABS9 "\t\t\t"
#define TABS26 TABS9 TABS9 "\t\t\t\t\t\t\t\t"

static const struct line_row {
    const char *what;
    const char *line;
    const char *wrong; /* NULL: nothing */
} line_rows[] = {
    {"the first of the Kaggle set", GOOD, NULL},
    {"all empty", "1" TABS39, NULL},
    {"negative", "1\t-2" TABS9 "\t\t\t" TABS26, NULL},
    {"the largest number", "1\t999999999999999\t-99999999999999" TABS9 "\t\t" TABS26,
     NULL},
    {"capital digits, one digit",
     "1" TABS9 "\t\t\t\t\tABCDEF\tf" TABS9 TABS9 "\t\t\t\t\t\t", NULL},
    {"no label", TABS39, "column 1 is \"\", expected 0 or 1"},
    {"label 2", "2" TABS39, "column 1 is \"2\", expected 0 or 1"},
    {"label of two digits", "01" TABS39, "column 1 is \"01\", expected 0 or 1"},
    {"nothing", "", "column 1 is \"\", expected 0 or 1"},
    {"a label alone", "1", "too few columns, expected 40"},
    {"one column short", "0" NUMBERS C25, "too few columns, expected 40"},
    {"one column more", GOOD "\t", "too many columns, expected 40"},
    {"a word for a number", "1\tmany" TABS9 "\t\t\t" TABS26,
     "column 2 is \"many\", expected a whole number or nothing"},
    {"a fraction", "1\t\t1.5" TABS9 "\t\t" TABS26,
     "column 3 is \"1.5\", expected a whole number or nothing"},
    {"a sign alone", "1\t\t-" TABS9 "\t\t" TABS26,
     "column 3 is \"-\", expected a whole number or nothing"},
    {"a number too long", "1\t12345678901234567" TABS9 "\t\t\t" TABS26,
     "column 2 is \"12345678901234567\", expected a whole number or nothing"},
    {"not hexadecimal", "1" TABS9 "\t\t\t\t\t68fd1e6g" TABS9 TABS9 "\t\t\t\t\t\t",
     "column 15 is \"68fd1e6g\", expected hexadecimal digits or nothing"},
    {"a category too long",
     "1" TABS9 "\t\t\t\t\t0123456789abcdef0123456789" TABS9 TABS9 "\t\t\t\t\t\t\t",
     "column 15 is \"0123456789abcdef0123456\", expected hexadecimal digits or nothing"},
    {"not printable", "1\t\x01\xff" TABS9 "\t\t\t" TABS26,
     "column 2 is \"??\", expected a whole number or nothing"},
};

TEST(test_line_is_read_or_named)
{
    for (size_t i = 0; i < sizeof line_rows / sizeof line_rows[0]; i++) {
        const struct line_row *row = &line_rows[i];
        uint64_t ids[CTR_FIELDS];
        char text[128];
        uint8_t label = 9;
        const char *wrong =
            ctr_line_parse(row->line, strlen(row->line), &label, ids, text);

        if ((wrong == NULL) != (row->wrong == NULL) ||
            (wrong != NULL && strcmp(wrong, row->wrong) != 0))
            fail_msg("%s: %s", row->what, wrong == NULL ? "no error" : wrong);
        if (wrong == NULL)
            assert_int_equal(label, row->line[0] - '0');
    }
}

TEST(test_features_are_those_of_the_columns)
{
    uint64_t ids[CTR_FIELDS];
    char text[128];
    uint8_t label;

    assert_null(ctr_line_parse(GOOD, strlen(GOOD), &label, ids, text));
    assert_true(ids[0] == ctr_number_id(0, 1));
    assert_true(ids[4] == ctr_number_id(4, 1382));
    assert_true(ids[11] == ctr_empty_id(11));
    assert_true(ids[13] == ctr_category_id(13, 0x68fd1e64));
    assert_true(ids[34] == ctr_empty_id(34));
    assert_true(ids[38] == ctr_category_id(38, 0x9727dd16));
    for (unsigned field = 0; field < CTR_FIELDS; field++)
        assert_int_equal(ids[field] >> 56, field);
}

/* Numbers up to 2 are features of their own, larger ones share buckets. */
TEST(test_numbers_are_put_into_buckets)
{
    static const struct {
        int64_t a;
        int64_t b;
        bool is_same;
    } rows[] = {
        {-2, -1, false},
        {-1, 0, false},
        {0, 1, false},
        {1, 2, false},
        {2, 3, false},
        {3, 4, true} /* ln^2: 1.2, 1.9 */,
        {4, 5, false},
        {20, 21, false} /* 8.97, 9.27 */,
        {1000, 1050, false} /* 47.7, 48.4 */,
        {1000, 1020, true} /* 47.7, 47.99 */,
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(ctr_number_id(3, rows[i].a) == ctr_number_id(3, rows[i].b),
                         rows[i].is_same);
}

TEST(test_equal_contents_of_two_columns_are_two_features)
{
    assert_true(ctr_category_id(13, 7) != ctr_category_id(14, 7));
    assert_true(ctr_number_id(0, 7) != ctr_number_id(1, 7));
    assert_true(ctr_empty_id(20) != ctr_category_id(20, 0));
    assert_true(ctr_empty_id(2) != ctr_number_id(2, 0));
    assert_true((ctr_category_id(13, 7) << 8) != (ctr_category_id(14, 7) << 8));
}

static const struct text_row {
    const char *what;
    const char *text;
    size_t count;
    uint64_t damaged;
    const char *first_bad;
} text_rows[] = {
    {"nothing", "", 0, 0, ""},
    {"two lines", GOOD "\n1" TABS39 "\n", 2, 0, ""},
    {"no end of the last", GOOD "\n1" TABS39, 2, 0, ""},
    {"ends of DOS", GOOD "\r\n" GOOD "\r\n", 2, 0, ""},
    {"one damaged", GOOD "\n2" TABS39 "\n" GOOD "\n", 2, 1,
     "line 101: column 1 is \"2\", expected 0 or 1"},
    {"two damaged", "1\n\n" GOOD "\n", 1, 2, "line 100: too few columns, expected 40"},
    {"all damaged", "\n\n\n", 0, 3, "line 100: column 1 is \"\", expected 0 or 1"},
};

TEST(test_damaged_lines_are_counted_and_named)
{
    for (size_t i = 0; i < sizeof text_rows / sizeof text_rows[0]; i++) {
        const struct text_row *row = &text_rows[i];
        struct ctr_lines lines;

        assert_int_equal(ctr_lines_read(row->text, strlen(row->text), 100, &lines), 0);
        if (lines.count != row->count || lines.damaged != row->damaged ||
            strcmp(lines.first_bad, row->first_bad) != 0)
            fail_msg("%s: %zu read, %u damaged: %s", row->what, lines.count,
                     (unsigned)lines.damaged, lines.first_bad);
        ctr_lines_done(&lines);
    }
}

/* Any one byte may be any other; a copy of exact size lets the sanitizer see a step past
 * the end. */
TEST(test_any_byte_of_a_line_may_be_wrong)
{
    static const char text[] = GOOD "\n" GOOD;
    const size_t size = sizeof text - 1;
    char *exact = malloc(size);

    assert_non_null(exact);
    for (size_t i = 0; i < 4 * size; i++) {
        const uint64_t random = ctr_mix(i);
        struct ctr_lines lines;

        memcpy(exact, text, size);
        exact[i % size] = (char)random;
        assert_int_equal(ctr_lines_read(exact, size, 1, &lines), 0);
        assert_in_range(lines.count + lines.damaged, 1, 3);
        ctr_lines_done(&lines);
    }
    free(exact);
}

TEST_PROGRAM()
