/* The click example's scores, against numbers worked out by hand. */
#include "tests/support/test.h"

#include "examples/ctr/ctr_score.h"

#include <errno.h>
#include <math.h>

#define LN2 0.69314718055994531

static const struct score_row {
    const char *what;
    size_t count;
    uint8_t labels[6];
    double probabilities[6];
    double auc;
    double loss;
} score_rows[] = {
    {"all in order", 4, {0, 0, 1, 1}, {0.25, 0.25, 0.5, 0.5}, 1, 0.490414627},
    {"all the wrong way round", 2, {1, 0}, {0.25, 0.5}, 0, 1.5 * LN2},
    {"no difference", 4, {0, 1, 0, 1}, {0.5, 0.5, 0.5, 0.5}, 0.5, LN2},
    {"one pair of four is wrong",
     4,
     {0, 1, 0, 1},
     {0.125, 0.25, 0.5, 0.5},
     0.625,
     (0.13353139 + 2 * LN2 + LN2 + LN2) / 4},
    {"no click", 2, {0, 0}, {0.5, 0.25}, 0.5, (LN2 + 0.28768207) / 2},
    {"clicks alone", 1, {1}, {0.5}, 0.5, LN2},
    {"certain, and wrong", 2, {1, 0}, {0, 1}, 0, 34.538776},
};

TEST(test_scores_are_those_by_hand)
{
    for (size_t i = 0; i < sizeof score_rows / sizeof score_rows[0]; i++) {
        const struct score_row *row = &score_rows[i];
        struct ctr_score score;

        assert_int_equal(
            ctr_score_compute(row->labels, row->probabilities, row->count, &score), 0);
        if (fabs(score.auc - row->auc) > 1e-12 || fabs(score.loss - row->loss) > 1e-3)
            fail_msg("%s: AUC %.9f, loss %.9f", row->what, score.auc, score.loss);
    }
}

TEST(test_no_lines_have_no_score)
{
    struct ctr_score score = {.auc = 7};

    assert_int_equal(ctr_score_compute(NULL, NULL, 0, &score), -EINVAL);
    assert_true(score.auc == 7);
}

TEST(test_sigmoid)
{
    assert_true(ctr_sigmoid(0) == 0.5);
    assert_true(fabs(ctr_sigmoid(2) + ctr_sigmoid(-2) - 1) < 1e-15);
    assert_true(ctr_sigmoid(-1000) == 0 && ctr_sigmoid(1000) == 1);
}

TEST_PROGRAM()
