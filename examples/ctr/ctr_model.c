#include "ctr_model.h"

#include "ctr_score.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Each id once ---- */

/* A hash table with places of ids, 0: free, else the place and 1. */
struct index {
    uint32_t *slots;
    size_t mask;
};

static uint32_t place_of(const struct index *index, struct ctr_batch *batch, uint64_t id)
{
    size_t at = (size_t)ctr_mix(id) & index->mask;

    while (index->slots[at] != 0) {
        if (batch->ids[index->slots[at] - 1] == id)
            return index->slots[at] - 1;
        at = (at + 1) & index->mask;
    }
    batch->ids[batch->count] = id;
    index->slots[at] = (uint32_t)++batch->count;
    return index->slots[at] - 1;
}

int ctr_batch_make(const uint64_t *ids, size_t features, struct ctr_batch *ret_batch)
{
    struct ctr_batch batch = {.features = features};
    struct index index = {.mask = 1};

    while (index.mask < 2 * features)
        index.mask = 2 * index.mask + 1;
    index.slots = calloc(index.mask + 1, sizeof *index.slots);
    batch.ids = malloc((features + 1) * sizeof *batch.ids);
    batch.places = malloc((features + 1) * sizeof *batch.places);
    if (index.slots == NULL || batch.ids == NULL || batch.places == NULL) {
        free(index.slots);
        ctr_batch_done(&batch);
        return -ENOMEM;
    }
    for (size_t i = 0; i < features; i++)
        batch.places[i] = place_of(&index, &batch, ids[i]);
    free(index.slots);
    *ret_batch = batch;
    return 0;
}

void ctr_batch_done(struct ctr_batch *batch)
{
    free(batch->ids);
    free(batch->places);
    *batch = (struct ctr_batch){0};
}

/* ---- The model ---- */

/* The logit of a line; `sums` are those of its factors. */
static double line_logit(const uint32_t *places, const struct ctr_rows *rows,
                         double sums[CTR_DIM_MAX])
{
    double logit = rows->bias;

    for (unsigned i = 0; i < CTR_FIELDS; i++)
        logit += rows->weights[places[i]];
    for (unsigned k = 0; k < rows->dim; k++) {
        double squares = 0;

        sums[k] = 0;
        for (unsigned i = 0; i < CTR_FIELDS; i++) {
            const double v = rows->weights[places[i]] == 0
                                 ? 0
                                 : rows->factors[(size_t)places[i] * rows->dim + k];

            sums[k] += v;
            squares += v * v;
        }
        logit += (sums[k] * sums[k] - squares) / 2;
    }
    return logit;
}

void ctr_predict(const struct ctr_batch *batch, const struct ctr_rows *rows,
                 double *ret_probabilities)
{
    double sums[CTR_DIM_MAX];

    for (size_t i = 0; i < batch->features / CTR_FIELDS; i++)
        ret_probabilities[i] =
            ctr_sigmoid(line_logit(batch->places + i * CTR_FIELDS, rows, sums));
}

/* Add what one line says, with the derivative `error` of its loss by its logit. */
static void add_line(const uint32_t *places, const struct ctr_rows *rows, double error,
                     const double *sums, float *weights, float *factors)
{
    for (unsigned i = 0; i < CTR_FIELDS; i++) {
        const size_t row = (size_t)places[i] * rows->dim;

        weights[places[i]] += (float)error;
        if (rows->weights[places[i]] == 0)
            continue;
        for (unsigned k = 0; k < rows->dim; k++)
            factors[row + k] += (float)(error * (sums[k] - rows->factors[row + k]));
    }
}

void ctr_gradient(const struct ctr_batch *batch, const struct ctr_rows *rows,
                  const uint8_t *labels, float *ret_bias, float *ret_weights,
                  float *ret_factors)
{
    double sums[CTR_DIM_MAX];
    double bias = 0;

    memset(ret_weights, 0, batch->count * sizeof *ret_weights);
    if (rows->dim > 0)
        memset(ret_factors, 0, batch->count * rows->dim * sizeof *ret_factors);
    for (size_t i = 0; i < batch->features / CTR_FIELDS; i++) {
        const uint32_t *places = batch->places + i * CTR_FIELDS;
        const double error = ctr_sigmoid(line_logit(places, rows, sums)) - labels[i];

        add_line(places, rows, error, sums, ret_weights, ret_factors);
        bias += error;
    }
    *ret_bias = (float)bias;
}
