#include "actors/supervisor/state/reported_metrics.h"

#include <string.h>

struct reported_metric *mu__reported_metrics_find(struct reported_metrics *metrics,
                                                  struct mu__view name)
{
    for (uint32_t i = 0; i < metrics->count; i++)
        if (mu__view_is(name, metrics->items[i].name))
            return &metrics->items[i];
    return NULL;
}

static uint32_t count_node_metrics(const struct reported_metrics *metrics, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < metrics->count; i++)
        count += metrics->items[i].node == node;
    return count;
}

/* The one that was reported longest ago, of the node that has the most names; of the
 * reporter if it has many itself. */
static struct reported_metric *oldest_of_many(struct reported_metrics *metrics,
                                              uint32_t reporter)
{
    struct reported_metric *found = NULL;
    uint32_t node = reporter;
    uint32_t most = count_node_metrics(metrics, reporter);

    for (uint32_t i = 0; most < MU__METRICS_OF_NODE_MAX && i < metrics->count; i++) {
        uint32_t count = count_node_metrics(metrics, metrics->items[i].node);

        if (count <= most)
            continue;
        most = count;
        node = metrics->items[i].node;
    }
    for (uint32_t i = 0; i < metrics->count; i++)
        if (metrics->items[i].node == node &&
            (found == NULL || metrics->items[i].at_ms < found->at_ms))
            found = &metrics->items[i];
    return found;
}

struct reported_metric *mu__reported_metrics_take(
    struct reported_metrics *metrics, struct mu__view name, uint32_t node, char *replaced)
{
    struct reported_metric *metric = mu__reported_metrics_find(metrics, name);

    replaced[0] = '\0';
    if (metric != NULL)
        return metric;
    if (metrics->count < MU__METRICS_MAX) {
        metric = &metrics->items[metrics->count++];
    } else {
        metric = oldest_of_many(metrics, node);
        memcpy(replaced, metric->name, sizeof metric->name);
    }
    mu__view_copy(name, metric->name, sizeof metric->name);
    return metric;
}
