/* The digits example's data: the file and what is wrong with bad ones, the split, the
 * batches. */
#include "tests/examples/digits/digits_fixture.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define Z8 "0,0,0,0,0,0,0,0,"
#define Z56 Z8 Z8 Z8 Z8 Z8 Z8 Z8
#define Z64 Z56 Z8
#define GOOD_ROW Z64 "7\n"

/* The rows that the publisher counts per class, and the first image. */
TEST(test_file_is_the_published_one)
{
    static const unsigned published[DIGITS_CLASSES] = {178, 182, 177, 183, 181,
                                                       182, 181, 179, 174, 180};
    unsigned counts[DIGITS_CLASSES] = {0};
    float greys = 0.0f;

    for (size_t row = 0; row < DIGITS_ROWS; row++)
        counts[data->labels[row]]++;
    assert_memory_equal(counts, published, sizeof counts);

    assert_int_equal(data->labels[0], 0);
    assert_float_equal(data->pixels[0][2], 5.0f / 16.0f, 0.0f);
    for (size_t i = 0; i < DIGITS_PIXELS; i++)
        greys += data->pixels[0][i] * DIGITS_GREY_MAX;
    assert_float_equal(greys, 294.0f, 0.0f);
}

/* A file's text of `rows` good rows, except that line `bad_line` is `bad_text`. */
static char *make_text(unsigned rows, unsigned bad_line, const char *bad_text)
{
    char *text = malloc(rows * strlen(GOOD_ROW) + strlen(bad_text) + 1);
    char *end = text;

    assert_non_null(text);
    for (unsigned line = 1; line <= rows; line++) {
        const char *row = line == bad_line ? bad_text : GOOD_ROW;
        size_t size = strlen(row);

        memcpy(end, row, size);
        end += size;
    }
    *end = '\0';
    return text;
}

static const struct bad_row {
    const char *what;
    unsigned rows;
    unsigned line;
    const char *text;
    const char *expected; /* "" when the text is good */
} bad_rows[] = {
    {"all good", 1797, 1, GOOD_ROW, ""},
    {"no newline at the end", 1797, 1797, Z64 "7", ""},
    {"full range", 1797, 2, "16," Z56 "16,0,0,0,0,0,0,9\n", ""},
    {"pixel too large", 1797, 3, Z56 "17,0,0,0,0,0,0,0,5\n",
     "f.csv:3: column 57: expected an integer from 0 to 16, found \"17\""},
    {"label too large", 1797, 1797, Z64 "10\n",
     "f.csv:1797: column 65: expected an integer from 0 to 9, found \"10\""},
    {"negative", 1797, 1, "-1," Z56 "0,0,0,0,0,0,0,5\n",
     "f.csv:1: column 1: expected an integer from 0 to 16, found \"-1\""},
    {"a word", 1797, 9, "pixel_0_0_of_all," Z56 "0,0,0,0,0,0,0,5\n",
     "f.csv:9: column 1: expected an integer from 0 to 16, found \"pixel_0_0_of\""},
    {"fraction", 1797, 4, "0,1.5,0,0,0,0,0,0," Z56 "5\n",
     "f.csv:4: column 2: expected an integer from 0 to 16, found \"1.5\""},
    {"space", 1797, 4, "0, 1,0,0,0,0,0,0," Z56 "5\n",
     "f.csv:4: column 2: expected an integer from 0 to 16, found \"?1\""},
    {"huge", 1797, 4, "0,99999999999999999999,0,0,0,0,0,0," Z56 "5\n",
     "f.csv:4: column 2: expected an integer from 0 to 16, found \"999999999999\""},
    {"long but zero", 1797, 4, "0,00000000,0,0,0,0,0,0," Z56 "5\n",
     "f.csv:4: column 2: expected an integer from 0 to 16, found \"00000000\""},
    {"empty column", 1797, 4, "0,,0,0,0,0,0,0," Z56 "5\n",
     "f.csv:4: column 2: expected an integer from 0 to 16, found \"\""},
    {"empty line", 1797, 5, "\n",
     "f.csv:5: column 1: expected an integer from 0 to 16, found \"\""},
    {"no label", 1797, 6, Z64 "\n",
     "f.csv:6: column 65: expected an integer from 0 to 9, found \"\""},
    {"carriage return", 1797, 6, Z64 "5\r\n",
     "f.csv:6: column 65: expected an integer from 0 to 9, found \"5?\""},
    {"one column short", 1797, 7, Z56 "0,0,0,0,0,0,0,5\n",
     "f.csv:7: the line ends after column 64, expected 65 columns"},
    {"one column more", 1797, 8, Z64 "5,5\n",
     "f.csv:8: expected the end of the line after 65 columns, found more"},
    {"last line cut", 1797, 1797, Z56 "0,0",
     "f.csv:1797: the line ends after column 58, expected 65 columns"},
    {"one row short", 1796, 1, GOOD_ROW,
     "f.csv:1797: the file ends after 1796 rows, expected 1797"},
    {"one row more", 1798, 1, GOOD_ROW,
     "f.csv:1798: expected the end of the file after 1797 rows, found more"},
    {"nothing", 0, 0, "", "f.csv:1: the file ends after 0 rows, expected 1797"},
};

TEST(test_bad_text_is_named)
{
    struct digits_data *const untouched = data;

    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        const struct bad_row *row = &bad_rows[i];
        char *text = make_text(row->rows, row->line, row->text);
        struct digits_data *parsed = untouched;
        struct digits_error error = {""};
        int rv = digits_data_parse(text, strlen(text), "f.csv", &error, &parsed);

        if (strcmp(error.text, row->expected) != 0)
            fail_msg("%s: \"%s\", expected \"%s\"", row->what, error.text, row->expected);
        assert_int_equal(rv, row->expected[0] == '\0' ? 0 : -EINVAL);
        assert_true((parsed == untouched) == (rv != 0));
        if (rv == 0)
            digits_data_free(parsed);
        free(text);
    }
}

/* Any one byte may be any other: the text is parsed or refused in words, whatever it
 * is. A copy of exact size lets the sanitizer see a step past the end. */
TEST(test_any_byte_may_be_wrong)
{
    struct digits_random random = {7};
    char *text = make_text(DIGITS_ROWS, 0, "");
    const size_t size = strlen(text);
    char *exact = malloc(size);
    unsigned refused = 0;

    assert_non_null(exact);
    for (unsigned i = 0; i < 300; i++) {
        size_t cut = i % 3 == 0 ? (size_t)digits_random_below(&random, size) + 1 : size;
        struct digits_data *parsed = NULL;
        struct digits_error error = {""};
        int rv;

        memcpy(exact, text, size);
        exact[digits_random_below(&random, cut)] = (char)digits_random_next(&random);
        memmove(exact + size - cut, exact, cut);
        rv = digits_data_parse(exact + size - cut, cut, "f.csv", &error, &parsed);
        assert_true(rv == 0 || rv == -EINVAL);
        assert_true((rv == 0) == (error.text[0] == '\0'));
        refused += rv != 0;
        digits_data_free(parsed);
    }
    assert_true(refused > 200);
    free(exact);
    free(text);
}

static const struct bad_file {
    const char *path;
    int rv;
    const char *expected;
} bad_files[] = {
    {"no/such/digits.csv", -ENOENT, "no/such/digits.csv: cannot open: "},
    {"/", -EISDIR, "/: cannot read: "},
    {"/dev/null", -EINVAL, "/dev/null:1: the file ends after 0 rows, expected 1797"},
    {"/dev/zero", -EFBIG, "/dev/zero: more than 1048576 bytes, "},
};

TEST(test_bad_files_are_named)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        struct digits_data *loaded = NULL;
        struct digits_error error = {""};

        assert_int_equal(digits_data_load(bad_files[i].path, &error, &loaded),
                         bad_files[i].rv);
        assert_null(loaded);
        if (strncmp(error.text, bad_files[i].expected, strlen(bad_files[i].expected)) !=
            0)
            fail_msg("\"%s\", expected \"%s\"", error.text, bad_files[i].expected);
    }
}

/* A path that is given wins over the environment, which wins over the places known. */
TEST(test_file_is_found)
{
    char here[4096];
    char before[DIGITS_PATH_BYTES];
    char path[DIGITS_PATH_BYTES] = "untouched";
    char *named = getenv("MUSTER_DIGITS_DATA");
    struct digits_error error = {""};

    (void)snprintf(before, sizeof before, "%s", named != NULL ? named : "");
    assert_non_null(getcwd(here, sizeof here));

    assert_int_equal(unsetenv("MUSTER_DIGITS_DATA"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(digits_data_find("", &error, path), -ENOENT);
    assert_non_null(strstr(error.text, "expected a path or MUSTER_DIGITS_DATA"));
    assert_string_equal(path, "untouched");
    assert_int_equal(chdir(here), 0);

    assert_int_equal(setenv("MUSTER_DIGITS_DATA", "named.csv", 1), 0);
    assert_int_equal(digits_data_find(NULL, &error, path), 0);
    assert_string_equal(path, "named.csv");
    assert_int_equal(digits_data_find("given.csv", &error, path), 0);
    assert_string_equal(path, "given.csv");
    assert_int_equal(setenv("MUSTER_DIGITS_DATA", before, 1), 0);
}

TEST(test_path_too_long_is_refused)
{
    char longest[DIGITS_PATH_BYTES + 1];
    char path[DIGITS_PATH_BYTES] = "untouched";
    struct digits_error error = {""};

    memset(longest, 'x', sizeof longest);
    longest[DIGITS_PATH_BYTES] = '\0';
    assert_int_equal(digits_data_find(longest, &error, path), -ENAMETOOLONG);
    assert_string_equal(error.text, "path of the digits' data: 1024 bytes, expected at "
                                    "most 1023");
    assert_string_equal(path, "untouched");

    longest[DIGITS_PATH_BYTES - 1] = '\0';
    assert_int_equal(digits_data_find(longest, &error, path), 0);
    assert_string_equal(path, longest);
}

TEST(test_random_numbers_are_even)
{
    struct digits_random random = {1};
    unsigned counts[10] = {0};
    float sum = 0.0f;

    assert_int_equal(digits_random_below(&random, 1), 0);
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t drawn = digits_random_below(&random, 10);
        float sign = digits_random_sign(&random);

        assert_true(drawn < 10);
        assert_true(sign >= -1.0f && sign < 1.0f);
        counts[drawn]++;
        sum += sign;
    }
    for (unsigned i = 0; i < 10; i++)
        assert_in_range(counts[i], 880, 1120);
    assert_true(fabsf(sum) < 300.0f);
}

TEST(test_split_is_disjoint_and_complete)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        unsigned char seen[DIGITS_ROWS] = {0};
        struct digits_split split;

        digits_split_make(seed, &split);
        for (size_t i = 0; i < DIGITS_HELD_ROWS; i++)
            assert_int_equal(seen[split.held[i]]++, 0);
        for (size_t i = 0; i < DIGITS_TRAIN_ROWS; i++)
            assert_int_equal(seen[split.train[i]]++, 0);
        assert_null(memchr(seen, 0, sizeof seen));
    }
}

/* The same seed gives the same split everywhere: the numbers are written here. */
TEST(test_split_is_decided_by_its_seed)
{
    static const uint32_t first[] = {1331, 239, 1152, 1110, 326, 814};
    static const uint32_t first_train[] = {1226, 1438, 764, 589, 1697, 641};
    struct digits_split one;
    struct digits_split two;

    digits_split_make(SPLIT_SEED, &one);
    digits_split_make(SPLIT_SEED, &two);
    assert_memory_equal(&one, &two, sizeof one);
    assert_memory_equal(one.held, first, sizeof first);
    assert_memory_equal(one.train, first_train, sizeof first_train);

    digits_split_make(SPLIT_SEED + 1, &two);
    assert_memory_not_equal(&one, &two, sizeof one);
}

TEST(test_batches_deal_each_row_once_an_epoch)
{
    const uint64_t steps = DIGITS_TRAIN_ROWS / BATCH;
    unsigned char held[DIGITS_ROWS] = {0};
    struct digits_split split;

    digits_split_make(SPLIT_SEED, &split);
    for (size_t i = 0; i < DIGITS_HELD_ROWS; i++)
        held[split.held[i]] = 1;

    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        unsigned char seen[DIGITS_ROWS];
        uint32_t rows[BATCH];

        memcpy(seen, held, sizeof seen);
        for (uint64_t i = 0; i < steps; i++) {
            assert_int_equal(digits_batch(&split, 5, epoch * steps + i, BATCH, rows), 0);
            for (size_t j = 0; j < BATCH; j++)
                assert_int_equal(seen[rows[j]]++, 0);
        }
    }
}

TEST(test_batches_are_decided_by_seed_and_step)
{
    const uint64_t steps = DIGITS_TRAIN_ROWS / BATCH;
    const struct {
        uint64_t seed;
        uint64_t step;
        bool same;
    } cases[] = {
        {5, 0, true},      {5, 1, false},     {6, 0, false},
        {4, steps, false}, {5, steps, false}, {5, UINT64_MAX, false},
    };
    struct digits_split split;
    uint32_t base[BATCH];
    uint32_t rows[BATCH];

    digits_split_make(SPLIT_SEED, &split);
    assert_int_equal(digits_batch(&split, 5, 0, BATCH, base), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(digits_batch(&split, cases[i].seed, cases[i].step, BATCH, rows),
                         0);
        assert_true((memcmp(rows, base, sizeof base) == 0) == cases[i].same);
    }
    memcpy(rows, base, sizeof base);
    assert_int_equal(digits_batch(&split, 5, 1, 0, rows), -ERANGE);
    assert_int_equal(digits_batch(&split, 5, 1, DIGITS_TRAIN_ROWS + 1, rows), -ERANGE);
    assert_memory_equal(rows, base, sizeof base);
}

TEST_PROGRAM_WITH(load_data, free_data)
