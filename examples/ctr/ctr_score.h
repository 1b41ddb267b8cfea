/* How good predicted probabilities are: area under the ROC curve, and log loss. Knows
 * nothing of muster. */
#ifndef CTR_SCORE_H
#define CTR_SCORE_H

#include <stddef.h>
#include <stdint.h>

struct ctr_score {
    double auc;  /* 0.5 where one of the classes is missing */
    double loss; /* mean of -ln of the probability of what has happened */
};

/* Returns: 0; -ENOMEM. -EINVAL: `count` is 0. */
int ctr_score_compute(const uint8_t *labels, const double *probabilities, size_t count,
                      struct ctr_score *ret_score);

/* The probability of a logit. */
double ctr_sigmoid(double logit);

#endif
