/* The click example's generator: lines are a function of the seed and their number, are
 * read without damage, and happen as often as their probabilities say. */
#include "tests/support/test.h"

#include "examples/ctr/ctr_planted.h"
#include "examples/ctr/ctr_score.h"

#include <math.h>
#include <string.h>

enum { LINES = 20000 };

/* Lines from `first` on as text, with their probabilities. */
struct generated {
    char *text;
    size_t bytes;
    double *probabilities;
    struct ctr_lines lines;
};

static struct generated generate(uint64_t seed, int factors, uint64_t first)
{
    struct ctr_planted planted;
    struct generated g = {
        .text = malloc((size_t)LINES * CTR_LINE_MAX),
        .probabilities = malloc(LINES * sizeof(double)),
    };

    assert_true(g.text != NULL && g.probabilities != NULL);
    ctr_planted_init(seed, factors, &planted);
    for (uint64_t i = 0; i < LINES; i++)
        g.bytes +=
            ctr_planted_line(&planted, first + i, g.text + g.bytes, &g.probabilities[i]);
    assert_int_equal(ctr_lines_read(g.text, g.bytes, 0, &g.lines), 0);
    return g;
}

static void free_generated(struct generated *g)
{
    free(g->text);
    free(g->probabilities);
    ctr_lines_done(&g->lines);
}

TEST(test_lines_are_decided_by_seed_and_number)
{
    struct generated a = generate(1, 0, 1000);
    struct generated b = generate(1, 0, 1001);
    struct generated c = generate(2, 0, 1000);
    const char *second = strchr(a.text, '\n') + 1;

    assert_memory_equal(b.text, second, a.bytes - (size_t)(second - a.text));
    assert_memory_equal(b.probabilities, a.probabilities + 1,
                        (LINES - 1) * sizeof(double));
    assert_memory_not_equal(a.text, c.text, 200);
    free_generated(&a);
    free_generated(&b);
    free_generated(&c);
}

TEST(test_all_generated_lines_can_be_read)
{
    for (int factors = 0; factors < 2; factors++) {
        struct generated g = generate(3, factors, UINT64_C(1) << 40);

        assert_int_equal(g.lines.count, LINES);
        assert_int_equal(g.lines.damaged, 0);
        free_generated(&g);
    }
}

/* The mean of the labels is that of the probabilities, and the loss of the probabilities
 * is their entropy: four standard deviations are 0.013 and 0.02. */
TEST(test_clicks_happen_as_often_as_planted)
{
    for (int factors = 0; factors < 2; factors++) {
        struct generated g = generate(4, factors, 0);
        double entropy = 0;
        double clicks = 0;
        double mean = 0;
        struct ctr_score score;

        for (size_t i = 0; i < LINES; i++) {
            const double p = g.probabilities[i];

            clicks += g.lines.labels[i];
            mean += p;
            entropy -= p * log(p) + (1 - p) * log(1 - p);
        }
        assert_int_equal(
            ctr_score_compute(g.lines.labels, g.probabilities, LINES, &score), 0);
        assert_true(fabs(clicks - mean) / LINES < 0.013);
        assert_true(mean / LINES > 0.2 && mean / LINES < 0.35);
        assert_true(fabs(score.loss - entropy / LINES) < 0.02);
        assert_true(score.auc > 0.75 && score.auc < 0.9);
        free_generated(&g);
    }
}

static int compare_ids(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* How many different ids a column has, and how often the most frequent one is there. */
static void count_ids(const struct ctr_lines *lines, unsigned field,
                      size_t *ret_different, size_t *ret_most)
{
    uint64_t *ids = malloc(lines->count * sizeof *ids);
    size_t run = 0;

    assert_non_null(ids);
    for (size_t i = 0; i < lines->count; i++)
        ids[i] = lines->ids[i * CTR_FIELDS + field];
    qsort(ids, lines->count, sizeof *ids, compare_ids);
    *ret_different = 0;
    *ret_most = 0;
    for (size_t i = 0; i < lines->count; i++) {
        run = i > 0 && ids[i] == ids[i - 1] ? run + 1 : 1;
        *ret_different += run == 1;
        *ret_most = run > *ret_most ? run : *ret_most;
    }
    free(ids);
}

/* In a column of n contents content r is there with probability about
 * 1 / (r ln n). Column 15 has 10 million, of which 20,000 lines show a good part once. */
TEST(test_contents_have_the_frequencies_of_zipf)
{
    struct generated g = generate(5, 0, 0);
    size_t different;
    size_t most;

    count_ids(&g.lines, 15, &different, &most);
    assert_true(different > LINES / 3 && different < LINES);
    assert_true(most > LINES * 3 / 100 && most < LINES * 6 / 100);
    count_ids(&g.lines, 21, &different, &most);
    assert_int_equal(different, 3);
    count_ids(&g.lines, 17, &different, &most);
    assert_int_equal(different, 305 + 1); /* and the empty one */
    free_generated(&g);
}

TEST_PROGRAM()
