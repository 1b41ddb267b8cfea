/* The nodes whose links are up. */
#include "actors/supervisor/state/live_nodes.h"
#include "tests/support/test.h"

static void add(struct live_nodes *nodes, uint32_t number)
{
    const struct live_node node = {.node = number, .index = 10 * number};

    assert_non_null(mu__live_nodes_add(nodes, &node));
}

TEST(test_found_by_number_whatever_was_removed)
{
    struct live_nodes nodes = {0};

    for (uint32_t i = 1; i <= 50; i++)
        add(&nodes, i);
    for (uint32_t i = 1; i <= 50; i += 3)
        mu__live_nodes_remove(&nodes, i);
    for (uint32_t i = 1; i <= 50; i++) {
        const struct live_node *node = mu__live_nodes_find(&nodes, i);

        if (i % 3 == 1) {
            assert_null(node);
            continue;
        }
        assert_non_null(node);
        assert_int_equal(node->index, 10 * i);
    }
    assert_int_equal(nodes.count, 33);
    mu__live_nodes_done(&nodes);
}

TEST(test_unknown_ones_are_fine)
{
    struct live_nodes nodes = {0};

    assert_null(mu__live_nodes_find(&nodes, 1));
    assert_null(mu__live_nodes_find(&nodes, 0));
    mu__live_nodes_remove(&nodes, 1);
    add(&nodes, 1);
    mu__live_nodes_remove(&nodes, 2);
    assert_int_equal(nodes.count, 1);
    mu__live_nodes_done(&nodes);
}

TEST_PROGRAM()
