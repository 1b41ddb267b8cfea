/* Numbers of tasks, and how ranks are dealt out, against what the words mean. */
#include "resolver/spec/layout.h"
#include "tests/support/test.h"

#include <muster/cluster.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TEST(test_counts)
{
    static const struct {
        const char *text;
        size_t nodes;
        unsigned counts[6];
    } rows[] = {
        {"3(x2),2,1", 4, {3, 3, 2, 1}},   {"7", 1, {7}},
        {"1(x6)", 6, {1, 1, 1, 1, 1, 1}}, {"2(x1),65536", 2, {2, 65536}},
        {"2,3(x3)", 4, {2, 3, 3, 3}},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned *counts;
        mu_error error;

        assert_int_equal(mu__task_counts_parse(rows[i].text, "COUNTS", rows[i].nodes,
                                               &error, &counts),
                         0);
        assert_memory_equal(counts, rows[i].counts, rows[i].nodes * sizeof *counts);
        free(counts);
    }
}

/* "NODE.LOCAL" of each rank. */
static void write_layout(const struct mu__layout *layout, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < layout->tasks; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%u.%u", i == 0 ? "" : " ",
                                 layout->nodes[i], layout->locals[i]);
}

TEST(test_deals)
{
    static const struct {
        enum mu__distribution deal;
        unsigned plane;
        unsigned counts[4];
        size_t nodes;
        unsigned most;
        const char *layout;
    } rows[] = {
        {MU__DISTRIBUTION_BLOCK, 1, {2, 1, 3}, 3, 3, "0.0 0.1 1.0 2.0 2.1 2.2"},
        {MU__DISTRIBUTION_CYCLIC, 1, {2, 1, 3}, 3, 3, "0.0 1.0 2.0 0.1 2.1 2.2"},
        {MU__DISTRIBUTION_PLANE, 2, {3, 1, 4}, 3, 4, "0.0 0.1 1.0 2.0 2.1 0.2 2.2 2.3"},
        {MU__DISTRIBUTION_PLANE, 65536, {2, 2}, 2, 2, "0.0 0.1 1.0 1.1"},
        {MU__DISTRIBUTION_CYCLIC, 1, {1}, 1, 1, "0.0"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mu__layout layout;
        char text[128];

        assert_int_equal(mu__layout_assign(rows[i].deal, rows[i].plane, rows[i].counts,
                                           rows[i].nodes, &layout),
                         0);
        write_layout(&layout, text, sizeof text);
        assert_string_equal(text, rows[i].layout);
        assert_int_equal(layout.node_tasks_max, rows[i].most);
        mu__layout_done(&layout);
    }
}

TEST(test_listed)
{
    struct mu__host_list ranks;
    struct mu__host_list hosts;
    struct mu__layout layout;
    mu_error error;
    char text[128];

    assert_int_equal(mu__host_list_parse("b,a,b,c,a", 9, "RANKS", &error, &ranks), 0);
    assert_int_equal(mu__host_list_parse("a,b,c", 5, "HOSTS", &error, &hosts), 0);
    assert_int_equal(mu__layout_listed(&ranks, &hosts, "RANKS", &error, &layout), 0);
    write_layout(&layout, text, sizeof text);
    assert_string_equal(text, "1.0 0.0 1.1 2.0 0.1");
    mu__layout_done(&layout);
    assert_int_equal(mu__layout_listed(&hosts, &hosts, "HOSTS", &error, &layout), 0);
    write_layout(&layout, text, sizeof text);
    assert_string_equal(text, "0.0 1.0 2.0");
    mu__layout_done(&layout);
    mu__host_list_done(&hosts);
    assert_int_equal(mu__host_list_parse("a,b", 3, "HOSTS", &error, &hosts), 0);
    assert_int_equal(mu__layout_listed(&ranks, &hosts, "RANKS", &error, &layout),
                     -MU_ENOTFOUND);
    assert_string_equal(error.message,
                        "RANKS: task 3 is on \"c\", which is none of the hosts");
    mu__host_list_done(&hosts);
    mu__host_list_done(&ranks);
}

TEST_PROGRAM()
