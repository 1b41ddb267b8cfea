/* Numbers that programs report under names: the last one of each name. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_REPORTED_METRICS_H
#define MU_ACTORS_SUPERVISOR_REPORTED_METRICS_H

#include "runtime/message/message.h"

enum {
    MU__METRICS_MAX = 256,
    MU__METRICS_OF_NODE_MAX = 64, /* of one node, when there are MU__METRICS_MAX */
    MU__METRIC_NAME_MAX = 63
};

struct reported_metric {
    double number;
    uint64_t step;
    uint64_t at_ms;
    uint32_t node; /* that reported it last */
    char name[MU__METRIC_NAME_MAX + 1];
};

/* Zeroed memory is empty. */
struct reported_metrics {
    struct reported_metric items[MU__METRICS_MAX];
    uint32_t count;
};

/* NULL when there is none. */
struct reported_metric *mu__reported_metrics_find(struct reported_metrics *metrics,
                                                  struct mu__view name);

/* The one of a name, a new one if there is none, for a report of `node`. When there are
 * MU__METRICS_MAX another one is replaced, whose name is copied to `replaced`, which has
 * MU__METRIC_NAME_MAX + 1 bytes and is "" otherwise. */
struct reported_metric *mu__reported_metrics_take(struct reported_metrics *metrics,
                                                  struct mu__view name, uint32_t node,
                                                  char *replaced);

#endif
