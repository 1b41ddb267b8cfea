/* The map from strings, against a plain list. */
#include "runtime/base/text_map.h"

#include "sim/world/random.h"
#include "tests/support/test.h"

enum { NAMES = 200, STEPS = 20000 };

struct item {
    struct mu__text_node node;
    char text[16];
    bool is_there;
};

static size_t count_nodes(const struct mu__text_map *map)
{
    const struct mu__text_node *node = NULL;
    size_t count = 0;

    while ((node = mu__text_map_next(map, node)) != NULL) {
        assert_true(((const struct item *)(const void *)node)->is_there);
        count++;
    }
    return count;
}

TEST(test_as_a_list)
{
    static struct item items[NAMES];
    struct mu__text_map map = {.secret = 77};
    struct sim_random random = sim_stream(3, 0);
    size_t there = 0;

    for (unsigned i = 0; i < NAMES; i++)
        (void)snprintf(items[i].text, sizeof items[i].text, "%.*s%u", (int)(i % 3), "//",
                       i);
    items[0].text[0] = '\0';
    for (unsigned step = 0; step < STEPS; step++) {
        struct item *item = &items[sim_draw(&random) % NAMES];
        struct mu__text_node *found = mu__text_map_find(&map, mu__view_str(item->text));

        assert_ptr_equal(found, item->is_there ? &item->node : NULL);
        if (item->is_there) {
            mu__text_map_remove(&map, &item->node);
        } else {
            item->node.text = mu__view_str(item->text);
            assert_int_equal(mu__text_map_add(&map, &item->node), 0);
        }
        there = item->is_there ? there - 1 : there + 1;
        item->is_there = !item->is_there;
        assert_int_equal(map.table.count, there);
        if (step % 100 == 0)
            assert_int_equal(count_nodes(&map), there);
    }
    mu__text_map_done(&map);
    assert_int_equal(map.table.count, 0);
    assert_null(mu__text_map_find(&map, mu__view_str("1")));
    assert_null(mu__text_map_next(&map, NULL));
}

TEST_PROGRAM()
