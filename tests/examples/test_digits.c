/* The digits example's data and model: the file and what is wrong with bad ones, the
 * split, the gradient against finite differences, and the training that the example
 * does, here in one loop with the delays of asynchronous workers.
 *
 * The data is MUSTER_DIGITS_DATA, else the one below MUSTER_SOURCE, which ctest sets,
 * else it is found as the example finds it. MUSTER_DIGITS_SEEDS says how many seeds to
 * train with. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "examples/digits/digits_data.h"
#include "examples/digits/digits_model.h"

/* The example's training, and what it must reach. */
enum {
    SPLIT_SEED = 1,
    HIDDEN = DIGITS_HIDDEN_DEFAULT,
    BATCH = 32,
    STEPS = 3000,
    STALE_MAX = 24,     /* three workers, a window of eight closures each */
    SEEDS_USUAL = 3
};

static const float rate = 0.03f;
static const float momentum = 0.5f;

#define Z8 "0,0,0,0,0,0,0,0,"
#define Z56 Z8 Z8 Z8 Z8 Z8 Z8 Z8
#define Z64 Z56 Z8
#define GOOD_ROW Z64 "7\n"

static struct digits_data *data;

static int load_data(void **state)
{
    struct digits_error error;
    const char *named = getenv("MUSTER_DIGITS_DATA");
    const char *source = getenv("MUSTER_SOURCE");
    char below[DIGITS_PATH_BYTES] = "";
    char path[DIGITS_PATH_BYTES];

    (void)state;
    if (named == NULL && source != NULL)
        (void)snprintf(below, sizeof below, "%s/examples/digits/data/digits.csv", source);
    if (digits_data_find(below, &error, path) != 0 ||
        digits_data_load(path, &error, &data) != 0) {
        print_error("%s\n", error.text);
        return -1;
    }
    return 0;
}

static int free_data(void **state)
{
    (void)state;
    digits_data_free(data);
    return 0;
}

/* The rows that the publisher counts per class, and the first image. */
static void test_file_is_the_published_one(void **state)
{
    static const unsigned published[DIGITS_CLASSES] = {178, 182, 177, 183, 181,
                                                       182, 181, 179, 174, 180};
    unsigned counts[DIGITS_CLASSES] = {0};
    float greys = 0.0f;

    (void)state;
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
    const char *expected;   /* "" when the text is good */
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

static void test_bad_text_is_named(void **state)
{
    struct digits_data *const untouched = data;

    (void)state;
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
static void test_any_byte_may_be_wrong(void **state)
{
    struct digits_random random = {7};
    char *text = make_text(DIGITS_ROWS, 0, "");
    const size_t size = strlen(text);
    char *exact = malloc(size);
    unsigned refused = 0;

    (void)state;
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

static void test_bad_files_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        struct digits_data *loaded = NULL;
        struct digits_error error = {""};

        assert_int_equal(digits_data_load(bad_files[i].path, &error, &loaded),
                         bad_files[i].rv);
        assert_null(loaded);
        if (strncmp(error.text, bad_files[i].expected,
                    strlen(bad_files[i].expected)) != 0)
            fail_msg("\"%s\", expected \"%s\"", error.text, bad_files[i].expected);
    }
}

/* A path that is given wins over the environment, which wins over the places known. */
static void test_file_is_found(void **state)
{
    char here[4096];
    char before[DIGITS_PATH_BYTES];
    char path[DIGITS_PATH_BYTES] = "untouched";
    char *named = getenv("MUSTER_DIGITS_DATA");
    struct digits_error error = {""};

    (void)state;
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

static void test_path_too_long_is_refused(void **state)
{
    char longest[DIGITS_PATH_BYTES + 1];
    char path[DIGITS_PATH_BYTES] = "untouched";
    struct digits_error error = {""};

    (void)state;
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

static void test_random_numbers_are_even(void **state)
{
    struct digits_random random = {1};
    unsigned counts[10] = {0};
    float sum = 0.0f;

    (void)state;
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

static void test_split_is_disjoint_and_complete(void **state)
{
    (void)state;
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
static void test_split_is_decided_by_its_seed(void **state)
{
    static const uint32_t first[] = {1331, 239, 1152, 1110, 326, 814};
    static const uint32_t first_train[] = {1226, 1438, 764, 589, 1697, 641};
    struct digits_split one;
    struct digits_split two;

    (void)state;
    digits_split_make(SPLIT_SEED, &one);
    digits_split_make(SPLIT_SEED, &two);
    assert_memory_equal(&one, &two, sizeof one);
    assert_memory_equal(one.held, first, sizeof first);
    assert_memory_equal(one.train, first_train, sizeof first_train);

    digits_split_make(SPLIT_SEED + 1, &two);
    assert_memory_not_equal(&one, &two, sizeof one);
}

static void test_batches_deal_each_row_once_an_epoch(void **state)
{
    const uint64_t steps = DIGITS_TRAIN_ROWS / BATCH;
    unsigned char held[DIGITS_ROWS] = {0};
    struct digits_split split;

    (void)state;
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

static void test_batches_are_decided_by_seed_and_step(void **state)
{
    const uint64_t steps = DIGITS_TRAIN_ROWS / BATCH;
    const struct {
        uint64_t seed;
        uint64_t step;
        bool same;
    } cases[] = {
        {5, 0, true}, {5, 1, false}, {6, 0, false}, {4, steps, false},
        {5, steps, false}, {5, UINT64_MAX, false},
    };
    struct digits_split split;
    uint32_t base[BATCH];
    uint32_t rows[BATCH];

    (void)state;
    digits_split_make(SPLIT_SEED, &split);
    assert_int_equal(digits_batch(&split, 5, 0, BATCH, base), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            digits_batch(&split, cases[i].seed, cases[i].step, BATCH, rows), 0);
        assert_true((memcmp(rows, base, sizeof base) == 0) == cases[i].same);
    }
    memcpy(rows, base, sizeof base);
    assert_int_equal(digits_batch(&split, 5, 1, 0, rows), -ERANGE);
    assert_int_equal(digits_batch(&split, 5, 1, DIGITS_TRAIN_ROWS + 1, rows), -ERANGE);
    assert_memory_equal(rows, base, sizeof base);
}

static void test_tensors_fill_the_flat_array(void **state)
{
    static const char *const names[DIGITS_TENSORS] = {"W1", "b1", "W2", "b2"};
    const size_t bad_hidden[] = {0, DIGITS_HIDDEN_MAX + 1, SIZE_MAX};
    struct digits_tensor tensor;
    size_t end = 0;
    float one = 1.0f;

    (void)state;
    for (size_t i = 0; i < DIGITS_TENSORS; i++) {
        assert_int_equal(digits_model_tensor(64, i, &tensor), 0);
        assert_string_equal(tensor.name, names[i]);
        assert_int_equal(tensor.offset, end);
        assert_int_equal(tensor.count, tensor.dims[0] *
                                           (tensor.rank == 2 ? tensor.dims[1] : 1));
        end += tensor.count;
    }
    assert_int_equal(end, 4810);
    assert_int_equal(digits_model_size(64), end);
    assert_int_equal(digits_model_tensor(64, DIGITS_TENSORS, &tensor), -ERANGE);

    for (size_t i = 0; i < sizeof bad_hidden / sizeof bad_hidden[0]; i++) {
        assert_int_equal(digits_model_size(bad_hidden[i]), 0);
        assert_int_equal(digits_model_tensor(bad_hidden[i], 0, &tensor), -EINVAL);
        assert_int_equal(digits_model_init(bad_hidden[i], 1, &one), -EINVAL);
    }
    assert_float_equal(one, 1.0f, 0.0f);
}

static float *new_floats(size_t count)
{
    float *floats = calloc(count, sizeof *floats);

    assert_non_null(floats);
    return floats;
}

static void test_first_parameters_are_decided_by_their_seed(void **state)
{
    const size_t size = digits_model_size(HIDDEN);
    float *one = new_floats(size);
    float *two = new_floats(size);
    struct digits_model model = digits_model_view(HIDDEN, one);
    const float limit = sqrtf(6.0f / 64.0f);

    (void)state;
    assert_int_equal(digits_model_init(HIDDEN, 3, one), 0);
    assert_int_equal(digits_model_init(HIDDEN, 3, two), 0);
    assert_memory_equal(one, two, size * sizeof *one);
    assert_int_equal(digits_model_init(HIDDEN, 4, two), 0);
    assert_memory_not_equal(one, two, size * sizeof *one);

    for (size_t i = 0; i < size; i++)
        assert_true(fabsf(one[i]) <= limit);
    for (size_t i = 0; i < HIDDEN; i++)
        assert_float_equal(model.b1[i], 0.0f, 0.0f);
    for (size_t i = 0; i < DIGITS_CLASSES; i++)
        assert_float_equal(model.b2[i], 0.0f, 0.0f);
    free(one);
    free(two);
}

/* One row's loss in doubles, written from the model's definition and sharing no code
 * with it. `p` holds W1, b1, W2, b2 behind each other. */
static double plain_row_loss(size_t hidden, const double *p, uint32_t row)
{
    const double *b1 = p + DIGITS_PIXELS * hidden;
    const double *w2 = b1 + hidden;
    const double *b2 = w2 + hidden * DIGITS_CLASSES;
    double out[DIGITS_CLASSES];
    double sum = 0.0;

    memcpy(out, b2, sizeof out);
    for (size_t j = 0; j < hidden; j++) {
        double h = b1[j];

        for (size_t i = 0; i < DIGITS_PIXELS; i++)
            h += ((double)data->pixels[row][i] - (double)DIGITS_MIDDLE) *
                 p[i * hidden + j];
        for (size_t c = 0; c < DIGITS_CLASSES && h > 0.0; c++)
            out[c] += h * w2[j * DIGITS_CLASSES + c];
    }
    for (size_t c = 0; c < DIGITS_CLASSES; c++)
        sum += exp(out[c]);
    return log(sum) - out[data->labels[row]];
}

static double plain_loss(size_t hidden, const double *p, struct digits_rows rows)
{
    double loss = 0.0;

    for (size_t i = 0; i < rows.count; i++)
        loss += plain_row_loss(hidden, p, rows.index[i]);
    return loss / (double)rows.count;
}

/* The slope of the plain loss along parameter `i`, by central difference. */
static double plain_slope(size_t hidden, double *p, size_t i, struct digits_rows rows)
{
    const double step = 1e-6;
    const double kept = p[i];
    double up;
    double down;

    p[i] = kept + step;
    up = plain_loss(hidden, p, rows);
    p[i] = kept - step;
    down = plain_loss(hidden, p, rows);
    p[i] = kept;
    return (up - down) / (2.0 * step);
}

static void check_gradient(size_t hidden, struct digits_rows rows)
{
    const size_t size = digits_model_size(hidden);
    struct digits_random random = {hidden};
    float *flat = new_floats(size);
    float *gradient = new_floats(size);
    double *p = calloc(size, sizeof *p);
    struct digits_model model = digits_model_view(hidden, flat);
    double loss = 0.0;

    assert_non_null(p);
    for (size_t i = 0; i < size; i++) {
        flat[i] = 0.3f * digits_random_sign(&random);
        p[i] = (double)flat[i];
    }
    assert_int_equal(digits_model_gradient(&model, data, rows, gradient, &loss), 0);
    assert_true(fabs(loss - plain_loss(hidden, p, rows)) < 1e-5);
    for (size_t i = 0; i < size; i++) {
        double slope = plain_slope(hidden, p, i, rows);

        if (!(fabs(slope - (double)gradient[i]) < 1e-5 + 1e-4 * fabs(slope)))
            fail_msg("hidden %zu, rows %zu, parameter %zu: gradient %g, difference %g",
                     hidden, rows.count, i, (double)gradient[i], slope);
    }
    free(p);
    free(gradient);
    free(flat);
}

static void test_gradient_is_the_slope_of_the_loss(void **state)
{
    static const uint32_t index[] = {0, 1, 7, 7, 500, 1234, 1796};
    static const size_t hiddens[] = {1, 5, 8, 19};

    (void)state;
    for (size_t i = 0; i < sizeof hiddens / sizeof hiddens[0]; i++) {
        check_gradient(hiddens[i], (struct digits_rows){index, 1});
        check_gradient(hiddens[i], (struct digits_rows){index, 7});
    }
}

static void test_bad_batches_are_refused(void **state)
{
    static const uint32_t good[] = {0, DIGITS_ROWS - 1};
    static const uint32_t bad[] = {0, DIGITS_ROWS};
    static const struct {
        size_t hidden;
        struct digits_rows rows;
        int rv;
    } cases[] = {
        {2, {good, 2}, 0},
        {2, {good, 0}, -EINVAL},
        {2, {bad, 2}, -ERANGE},
        {0, {good, 2}, -EINVAL},
        {DIGITS_HIDDEN_MAX + 1, {good, 2}, -EINVAL},
        {SIZE_MAX, {good, 2}, -EINVAL},
    };
    float flat[256] = {0.0f};

    (void)state;
    assert_true(digits_model_size(2) <= sizeof flat / sizeof flat[0]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct digits_model model = digits_model_view(2, flat);
        struct digits_score score = {-1.0, -1.0};
        float gradient[256] = {-1.0f};
        double loss = -1.0;

        model.hidden = cases[i].hidden;
        assert_int_equal(
            digits_model_gradient(&model, data, cases[i].rows, gradient, &loss),
            cases[i].rv);
        assert_int_equal(digits_model_score(&model, data, cases[i].rows, &score),
                         cases[i].rv);
        assert_true((loss < 0.0) == (cases[i].rv != 0));
        assert_true((gradient[0] < 0.0f) == (cases[i].rv != 0));
        assert_true((score.loss < 0.0) == (cases[i].rv != 0));
        assert_true((score.accuracy < 0.0) == (cases[i].rv != 0));
    }
}

/* Parameters of 0 guess class 0 with a tenth each; a bias decides all; and logits far
 * beyond what expf() can hold still give a finite loss. */
static void test_score_knows_simple_models(void **state)
{
    static const uint32_t index[] = {0, 10, 20, 1};     /* 0, 0, 0, 1 */
    const struct digits_rows rows = {index, 4};
    float flat[256] = {0.0f};
    float gradient[256];
    struct digits_model model = digits_model_view(2, flat);
    struct digits_score score;
    double loss;

    (void)state;
    assert_int_equal(digits_model_score(&model, data, rows, &score), 0);
    assert_true(fabs(score.loss - log(10.0)) < 1e-6);
    assert_true(fabs(score.accuracy - 0.75) < 1e-12);

    flat[digits_model_size(2) - DIGITS_CLASSES + 1] = 1000.0f;
    assert_int_equal(digits_model_score(&model, data, rows, &score), 0);
    assert_true(fabs(score.loss - 750.0) < 1e-3);
    assert_true(fabs(score.accuracy - 0.25) < 1e-12);
    assert_int_equal(digits_model_gradient(&model, data, rows, gradient, &loss), 0);
    assert_true(fabs(loss - 750.0) < 1e-3);
    assert_float_equal(gradient[digits_model_size(2) - DIGITS_CLASSES], -0.75f, 1e-6f);
}

/* How old the parameters are that a gradient was computed on, in steps. */
enum staleness { FRESH, OLDEST, MIXED };

static uint64_t draw_age(enum staleness staleness, uint64_t step,
                         struct digits_random *random)
{
    uint64_t age = 0;

    if (staleness == OLDEST)
        age = STALE_MAX;
    if (staleness == MIXED)
        age = digits_random_below(random, STALE_MAX + 1);
    return age < step ? age : step;
}

/* One training: the parameters, and those of the steps before. */
struct training {
    struct digits_split split;
    size_t size;
    float *parameters;
    float *velocity;
    float *gradient;
    float *past;        /* the last STALE_MAX + 1 parameters, in turn */
};

static void training_init(struct training *t, uint64_t seed)
{
    digits_split_make(SPLIT_SEED, &t->split);
    t->size = digits_model_size(HIDDEN);
    t->parameters = new_floats(t->size);
    t->velocity = new_floats(t->size);
    t->gradient = new_floats(t->size);
    t->past = new_floats(t->size * (STALE_MAX + 1));
    assert_int_equal(digits_model_init(HIDDEN, seed, t->parameters), 0);
}

static void training_done(struct training *t)
{
    free(t->past);
    free(t->gradient);
    free(t->velocity);
    free(t->parameters);
}

static float *past_of(struct training *t, uint64_t step)
{
    return t->past + (size_t)(step % (STALE_MAX + 1)) * t->size;
}

/* One step of SGD with momentum, its gradient `age` steps old. */
static void training_step(struct training *t, uint64_t seed, uint64_t step, uint64_t age)
{
    struct digits_model model = digits_model_view(HIDDEN, past_of(t, step - age));
    uint32_t rows[BATCH];
    double loss;

    memcpy(past_of(t, step), t->parameters, t->size * sizeof *t->parameters);
    assert_int_equal(digits_batch(&t->split, seed, step, BATCH, rows), 0);
    assert_int_equal(digits_model_gradient(&model, data,
                                           (struct digits_rows){rows, BATCH},
                                           t->gradient, &loss), 0);
    for (size_t i = 0; i < t->size; i++) {
        t->velocity[i] = momentum * t->velocity[i] + t->gradient[i];
        t->parameters[i] -= rate * t->velocity[i];
    }
}

static struct digits_score train(uint64_t seed, enum staleness staleness, uint64_t steps)
{
    struct digits_random random = {seed};
    struct digits_score score;
    struct digits_model model;
    struct training t;

    training_init(&t, seed);
    for (uint64_t step = 0; step < steps; step++)
        training_step(&t, seed, step, draw_age(staleness, step, &random));
    model = digits_model_view(HIDDEN, t.parameters);
    assert_int_equal(digits_model_score(&model, data,
                                        (struct digits_rows){t.split.held,
                                                             DIGITS_HELD_ROWS},
                                        &score), 0);
    training_done(&t);
    return score;
}

static uint64_t seeds_count(void)
{
    const char *text = getenv("MUSTER_DIGITS_SEEDS");
    unsigned long count = text != NULL ? strtoul(text, NULL, 10) : 0;

    return count > 0 ? count : SEEDS_USUAL;
}

static void check_training(const char *what, enum staleness staleness, double wanted)
{
    const uint64_t count = seeds_count();
    double worst = 1.0;
    double sum = 0.0;

    for (uint64_t seed = 1; seed <= count; seed++) {
        double accuracy = train(seed, staleness, STEPS).accuracy;

        worst = accuracy < worst ? accuracy : worst;
        sum += accuracy;
        if (!(accuracy >= wanted))
            fail_msg("%s, seed %llu: held-out accuracy %.4f, expected %.2f", what,
                     (unsigned long long)seed, accuracy, wanted);
    }
    print_message("%s: held-out accuracy, worst %.4f, mean %.4f of %llu seeds\n", what,
                  worst, sum / (double)count, (unsigned long long)count);
}

static void test_training_reaches_its_accuracy(void **state)
{
    (void)state;
    check_training("fresh gradients", FRESH, 0.97);
}

static void test_training_stands_oldest_gradients(void **state)
{
    (void)state;
    check_training("gradients 24 steps old", OLDEST, 0.96);
}

static void test_training_stands_mixed_gradients(void **state)
{
    (void)state;
    check_training("gradients 0 to 24 steps old", MIXED, 0.96);
}

static void test_training_is_decided_by_its_seed(void **state)
{
    (void)state;
    for (enum staleness s = FRESH; s <= MIXED; s++) {
        double loss = train(1, s, 60).loss;

        assert_true(fabs(train(1, s, 60).loss - loss) <= 0.0);
        assert_true(fabs(train(2, s, 60).loss - loss) > 0.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_is_the_published_one),
        cmocka_unit_test(test_bad_text_is_named),
        cmocka_unit_test(test_any_byte_may_be_wrong),
        cmocka_unit_test(test_bad_files_are_named),
        cmocka_unit_test(test_file_is_found),
        cmocka_unit_test(test_path_too_long_is_refused),
        cmocka_unit_test(test_random_numbers_are_even),
        cmocka_unit_test(test_split_is_disjoint_and_complete),
        cmocka_unit_test(test_split_is_decided_by_its_seed),
        cmocka_unit_test(test_batches_deal_each_row_once_an_epoch),
        cmocka_unit_test(test_batches_are_decided_by_seed_and_step),
        cmocka_unit_test(test_tensors_fill_the_flat_array),
        cmocka_unit_test(test_first_parameters_are_decided_by_their_seed),
        cmocka_unit_test(test_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(test_bad_batches_are_refused),
        cmocka_unit_test(test_score_knows_simple_models),
        cmocka_unit_test(test_training_reaches_its_accuracy),
        cmocka_unit_test(test_training_stands_oldest_gradients),
        cmocka_unit_test(test_training_stands_mixed_gradients),
        cmocka_unit_test(test_training_is_decided_by_its_seed),
    };

    return cmocka_run_group_tests(tests, load_data, free_data);
}
