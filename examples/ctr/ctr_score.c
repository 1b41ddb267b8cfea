#include "ctr_score.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Losses are cut off at probabilities of this and 1 less this. */
static const double EDGE = 1e-15;

struct scored {
    double probability;
    uint8_t label;
};

static int compare_scored(const void *left, const void *right)
{
    const struct scored *a = left;
    const struct scored *b = right;

    return (a->probability > b->probability) - (a->probability < b->probability);
}

/* Mean rank of the positives, by Mann and Whitney; equal probabilities share a rank. */
static double area(const struct scored *rows, size_t count)
{
    double positives = 0;
    double ranks = 0;
    double negatives;

    for (size_t begin = 0; begin < count;) {
        size_t end = begin;
        double hits = 0;

        for (; end < count && rows[end].probability == rows[begin].probability; end++)
            hits += rows[end].label;
        ranks += hits * ((double)begin + (double)end + 1) / 2;
        positives += hits;
        begin = end;
    }
    negatives = (double)count - positives;
    if (positives == 0 || negatives == 0)
        return 0.5;
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

static double mean_loss(const struct scored *rows, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        const double p = fmin(fmax(rows[i].probability, EDGE), 1 - EDGE);

        sum -= log(rows[i].label ? p : 1 - p);
    }
    return sum / (double)count;
}

int ctr_score_compute(const uint8_t *labels, const double *probabilities, size_t count,
                      struct ctr_score *ret_score)
{
    struct scored *rows;

    if (count == 0)
        return -EINVAL;
    rows = malloc(count * sizeof *rows);
    if (rows == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct scored){probabilities[i], labels[i]};
    qsort(rows, count, sizeof *rows, compare_scored);
    *ret_score = (struct ctr_score){
        .auc = area(rows, count),
        .loss = mean_loss(rows, count),
    };
    free(rows);
    return 0;
}

double ctr_sigmoid(double logit)
{
    return 1 / (1 + exp(-logit));
}
