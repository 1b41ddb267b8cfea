/* Numbers that programs report under names. */
#include "actors/supervisor/state/reported_metrics.h"
#include "tests/support/test.h"

static struct reported_metrics metrics;

static char replaced[MU__METRIC_NAME_MAX + 1];

static void report(const char *name, uint32_t node, uint64_t at_ms)
{
    struct reported_metric *metric =
        mu__reported_metrics_take(&metrics, mu__view_str(name), node, replaced);

    assert_non_null(metric);
    metric->node = node;
    metric->at_ms = at_ms;
}

/* Nodes from 1 on, each with so many names "NODE.NUMBER", the first one the oldest. */
static void fill(uint32_t per_node)
{
    char name[32];

    metrics.count = 0;
    for (uint32_t i = 0; i < MU__METRICS_MAX; i++) {
        (void)snprintf(name, sizeof name, "%u.%u", 1 + i / per_node, i % per_node);
        report(name, 1 + i / per_node, 100 + i);
        assert_string_equal(replaced, "");
    }
}

TEST(test_name_has_one_number)
{
    metrics.count = 0;
    report("loss", 1, 1);
    report("loss", 2, 5);
    assert_int_equal(metrics.count, 1);
    assert_int_equal(mu__reported_metrics_find(&metrics, mu__view_str("loss"))->node, 2);
    assert_null(mu__reported_metrics_find(&metrics, mu__view_str("los")));
}

TEST(test_node_with_many_names_replaces_its_own_oldest)
{
    fill(MU__METRICS_OF_NODE_MAX);
    report("new", 3, 1000);
    assert_string_equal(replaced, "3.0");
    assert_int_equal(metrics.count, MU__METRICS_MAX);
    assert_non_null(mu__reported_metrics_find(&metrics, mu__view_str("new")));
    assert_null(mu__reported_metrics_find(&metrics, mu__view_str("3.0")));
}

TEST(test_node_with_few_names_replaces_those_of_who_has_most)
{
    fill(MU__METRICS_MAX / 2);
    report("1.3", 1, 1); /* now the oldest of node 1 */
    metrics.items[MU__METRICS_MAX - 1].node = 1;
    report("new", 9, 1000);
    assert_string_equal(replaced, "1.3");
}

TEST_PROGRAM()
