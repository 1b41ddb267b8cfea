/* The click example's model: batches, and gradients against finite differences of a loss
 * that is written from the model's definition, pair by pair. */
#include "tests/support/test.h"

#include "examples/ctr/ctr_model.h"
#include "examples/ctr/ctr_score.h"

#include <math.h>
#include <string.h>

enum { LINES = 3, IDS = 50, DIM = 3 };

TEST(test_each_id_is_there_once)
{
    const uint64_t ids[] = {7, 7, 0, 9, 0, UINT64_MAX, 7};
    const uint64_t expected[] = {7, 0, 9, UINT64_MAX};
    const uint32_t places[] = {0, 0, 1, 2, 1, 3, 0};
    struct ctr_batch batch;

    assert_int_equal(ctr_batch_make(ids, 7, &batch), 0);
    assert_int_equal(batch.features, 7);
    assert_int_equal(batch.count, 4);
    assert_memory_equal(batch.ids, expected, sizeof expected);
    assert_memory_equal(batch.places, places, sizeof places);
    ctr_batch_done(&batch);
    assert_int_equal(ctr_batch_make(NULL, 0, &batch), 0);
    assert_int_equal(batch.count, 0);
    ctr_batch_done(&batch);
}

struct fixture {
    uint64_t ids[LINES * CTR_FIELDS];
    uint8_t labels[LINES];
    float weights[IDS];
    float factors[IDS * DIM];
    struct ctr_batch batch;
    struct ctr_rows rows;
};

/* Ids are drawn from a few, so that lines share them; one line has an id twice. */
static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    for (size_t i = 0; i < LINES * CTR_FIELDS; i++)
        f->ids[i] = ctr_mix(i) % IDS;
    for (size_t i = 0; i < IDS; i++)
        f->weights[i] = (float)(ctr_mix(i + 1000) % 200) / 1000 - 0.1f;
    for (size_t i = 0; i < IDS * DIM; i++)
        f->factors[i] = (float)(ctr_mix(i + 5000) % 200) / 1000 - 0.1f;
    f->weights[3] = 0;
    f->weights[7] = 0;
    f->labels[1] = 1;
    assert_int_equal(ctr_batch_make(f->ids, LINES * CTR_FIELDS, &f->batch), 0);
    f->rows = (struct ctr_rows){DIM, -0.5f, f->weights, f->factors};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    ctr_batch_done(&f->batch);
    free(f);
    return 0;
}

/* What has no weight has no factors. */
static double factor(const struct fixture *f, uint32_t place, size_t k)
{
    return f->weights[place] == 0 ? 0 : f->factors[place * DIM + k];
}

/* The loss of one line: weights, and the products of all pairs of its features. */
static double plain_loss(const struct fixture *f, size_t line)
{
    const uint32_t *places = f->batch.places + line * CTR_FIELDS;
    double logit = f->rows.bias;
    double p;

    for (size_t i = 0; i < CTR_FIELDS; i++) {
        logit += f->weights[places[i]];
        for (size_t j = i + 1; j < CTR_FIELDS; j++)
            for (size_t k = 0; k < f->rows.dim; k++)
                logit += factor(f, places[i], k) * factor(f, places[j], k);
    }
    p = 1 / (1 + exp(-logit));
    return -log(f->labels[line] ? p : 1 - p);
}

static double plain_sum(const struct fixture *f)
{
    double sum = 0;

    for (size_t i = 0; i < LINES; i++)
        sum += plain_loss(f, i);
    return sum;
}

TEST_ON(test_predictions_are_those_of_all_pairs, struct fixture *f, set_up, tear_down)
{
    double probabilities[LINES];

    ctr_predict(&f->batch, &f->rows, probabilities);
    for (size_t i = 0; i < LINES; i++) {
        const double p = f->labels[i] ? probabilities[i] : 1 - probabilities[i];

        assert_true(fabs(-log(p) - plain_loss(f, i)) < 1e-9);
    }
}

static void assert_slope(const struct fixture *f, float *number, float gradient)
{
    const float step = 0x1p-8f;
    const float kept = *number;
    double above;
    double below;

    *number = kept + step;
    above = plain_sum(f);
    *number = kept - step;
    below = plain_sum(f);
    *number = kept;
    if (fabs((above - below) / (2 * step) - gradient) > 1e-3)
        fail_msg("%g, expected %g", gradient, (above - below) / (2 * step));
}

TEST_ON(test_gradient_is_the_slope_of_the_loss, struct fixture *f, set_up, tear_down)
{
    float weights[IDS];
    float factors[IDS * DIM];
    float bias;

    ctr_gradient(&f->batch, &f->rows, f->labels, &bias, weights, factors);
    assert_slope(f, &f->rows.bias, bias);
    for (size_t i = 0; i < f->batch.count; i++)
        if (f->weights[i] != 0)
            assert_slope(f, &f->weights[i], weights[i]);
    for (size_t i = 0; i < f->batch.count * DIM; i++)
        assert_slope(f, &f->factors[i], factors[i]);
}

TEST_ON(test_without_factors_it_is_logistic_regression, struct fixture *f, set_up,
        tear_down)
{
    float weights[IDS];
    float bias;

    f->rows.dim = 0;
    f->rows.factors = NULL;
    ctr_gradient(&f->batch, &f->rows, f->labels, &bias, weights, NULL);
    assert_slope(f, &f->rows.bias, bias);
    for (size_t i = 0; i < f->batch.count; i++)
        assert_slope(f, &f->weights[i], weights[i]);
}

TEST_PROGRAM()
