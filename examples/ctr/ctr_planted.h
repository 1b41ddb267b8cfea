/* A generator of click logs whose probabilities are known: the best that any model can
 * reach on them is the score of these probabilities. Knows nothing of muster.
 *
 * A line is a function of the seed and its number. The contents of each column have
 * frequencies as in Zipf's law, and as many different ones as in Criteo's: of 3 to 10
 * million in a column of categories. Some are empty. The logit of a click is the sum of a
 * weight for each content of each column; with `factors`, and of the products of two
 * factors for each pair of some columns. Weights and factors are normal, and smaller for
 * rare contents, about which nobody can learn much. */
#ifndef CTR_PLANTED_H
#define CTR_PLANTED_H

#include "ctr_lines.h"

struct ctr_planted {
    uint64_t seed;
    int factors; /* 1: with products */
    double bias;
    double logs[CTR_FIELDS]; /* ln of how many contents a column has, and 1 */
};

/* A quarter of the lines, about, are clicks. */
void ctr_planted_init(uint64_t seed, int factors, struct ctr_planted *ret_planted);

/* Write line `number` with its end, without a zero. Returns its bytes; what its
 * probability of a click was. */
size_t ctr_planted_line(const struct ctr_planted *planted, uint64_t number,
                        char ret_text[CTR_LINE_MAX], double *ret_probability);

#endif
