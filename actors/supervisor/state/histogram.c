#include "actors/supervisor/state/histogram.h"

#include <stddef.h>

/* The last bucket has no upper limit. */
static const double limits_s[MU__HISTOGRAM_BUCKETS - 1] = {0.001, 0.01, 0.1, 1, 10, 100};

void mu__histogram_add(struct mu__histogram *histogram, double seconds)
{
    size_t bucket = 0;

    /* A clock that went backwards, or NaN. */
    if (!(seconds > 0))
        seconds = 0;
    while (bucket < MU__HISTOGRAM_BUCKETS - 1 && seconds > limits_s[bucket])
        bucket++;
    if (histogram->count == 0 || seconds < histogram->min_s)
        histogram->min_s = seconds;
    if (histogram->count == 0 || seconds > histogram->max_s)
        histogram->max_s = seconds;
    histogram->count++;
    histogram->sum_s += seconds;
    histogram->buckets[bucket]++;
}

static mu_value *bucket_value(const struct mu__histogram *histogram, size_t bucket)
{
    mu_value *map = mu_value_map();
    mu_value *limit = bucket < MU__HISTOGRAM_BUCKETS - 1
                          ? mu_value_float(limits_s[bucket])
                          : mu_value_nil();

    if (map == NULL) {
        mu_value_free(limit);
        return NULL;
    }
    if (mu_value_set(map, "up_to_s", limit) == 0 &&
        mu_value_set(map, "count", mu_value_int((int64_t)histogram->buckets[bucket])) ==
            0)
        return map;
    mu_value_free(map);
    return NULL;
}

static mu_value *buckets_value(const struct mu__histogram *histogram)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (size_t i = 0; rv == 0 && i < MU__HISTOGRAM_BUCKETS; i++)
        rv = mu_value_append(list, bucket_value(histogram, i));
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

mu_value *mu__histogram_value(const struct mu__histogram *histogram)
{
    const struct {
        const char *key;
        double seconds;
    } times[] = {
        {"sum_s", histogram->sum_s},
        {"min_s", histogram->min_s},
        {"max_s", histogram->max_s},
        {"mean_s",
         histogram->count == 0 ? 0 : histogram->sum_s / (double)histogram->count},
    };
    mu_value *map = mu_value_map();
    int rv;

    if (map == NULL)
        return NULL;
    rv = mu_value_set(map, "count", mu_value_int((int64_t)histogram->count));
    for (size_t i = 0; rv == 0 && i < sizeof times / sizeof times[0]; i++)
        rv = mu_value_set(map, times[i].key, mu_value_float(times[i].seconds));
    if (rv == 0)
        rv = mu_value_set(map, "buckets", buckets_value(histogram));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}
