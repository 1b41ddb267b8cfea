/* The nodes whose links are up. */
#include "actors/supervisor/state/live_nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void add(struct live_nodes *nodes, uint32_t number)
{
    const struct live_node node = {.node = number, .index = 10 * number};

    assert_non_null(mu__live_nodes_add(nodes, &node));
}

static void test_found_by_number_whatever_was_removed(void **state)
{
    struct live_nodes nodes = {0};

    (void)state;
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

static void test_unknown_ones_are_fine(void **state)
{
    struct live_nodes nodes = {0};

    (void)state;
    assert_null(mu__live_nodes_find(&nodes, 1));
    assert_null(mu__live_nodes_find(&nodes, 0));
    mu__live_nodes_remove(&nodes, 1);
    add(&nodes, 1);
    mu__live_nodes_remove(&nodes, 2);
    assert_int_equal(nodes.count, 1);
    mu__live_nodes_done(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_by_number_whatever_was_removed),
        cmocka_unit_test(test_unknown_ones_are_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
