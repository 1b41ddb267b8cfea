/* Logistic regression, and a factorization machine, on features that are there or not.
 * Knows nothing of muster: rows of the tables come in, gradients come out.
 *
 *     logit = bias + sum of w_i + 1/2 sum over k of ((sum of v_ik)^2 - sum of v_ik^2)
 *
 * over the features i of a line. Features whose weight is 0 have no factors: FTRL keeps
 * the weights of rare ones at 0, and products with what is not known are noise. A batch
 * has each of its ids once, and for each feature of each line the place of its id. Sums
 * are made in the order of the lines, so that they are the same however often they are
 * made. */
#ifndef CTR_MODEL_H
#define CTR_MODEL_H

#include "ctr_lines.h"

enum { CTR_DIM_MAX = 64 };

struct ctr_batch {
    size_t features;
    size_t count;     /* different ids */
    uint64_t *ids;    /* in the order in which they first appeared */
    uint32_t *places; /* of each feature, in `ids` */
};

/* Of `features` ids, less than 2^31, each in its place: CTR_FIELDS for each line.
 *
 * Returns: 0; -ENOMEM.
 * Owns:    the caller frees *ret_batch with ctr_batch_done(). */
int ctr_batch_make(const uint64_t *ids, size_t features, struct ctr_batch *ret_batch);
void ctr_batch_done(struct ctr_batch *batch);

/* The rows of a batch's ids: a weight for each, and `dim` factors (0: none). */
struct ctr_rows {
    unsigned dim;
    float bias;
    const float *weights;
    const float *factors;
};

/* The probability of a click for each line. */
void ctr_predict(const struct ctr_batch *batch, const struct ctr_rows *rows,
                 double *ret_probabilities);

/* Gradients of the sum of the lines' losses, of the same shapes. */
void ctr_gradient(const struct ctr_batch *batch, const struct ctr_rows *rows,
                  const uint8_t *labels, float *ret_bias, float *ret_weights,
                  float *ret_factors);

#endif
