/* A histogram of durations: count, sum, smallest, largest, and counts in exponential
 * buckets: up to 0.001 s, 0.01 s, ... 100 s, and above. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_STATE_HISTOGRAM_H
#define MU_ACTORS_SUPERVISOR_STATE_HISTOGRAM_H

#include "muster/value.h"

enum { MU__HISTOGRAM_BUCKETS = 7 };

struct mu__histogram {
    uint64_t count;
    double sum_s;
    double min_s;
    double max_s;
    uint64_t buckets[MU__HISTOGRAM_BUCKETS];
};

/* Zeroed memory is an empty histogram. A negative duration or NaN counts as 0. */
void mu__histogram_add(struct mu__histogram *histogram, double seconds);

/* As a map: count, sum_s, min_s, max_s, mean_s, buckets (a list of maps: up_to_s, which
 * is nil in the last one, and count; counts are not cumulative). The caller frees it;
 * NULL: out of memory. */
mu_value *mu__histogram_value(const struct mu__histogram *histogram);

#endif
