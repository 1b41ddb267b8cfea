/* All rows of a table: how many there are, read as a whole, and set. */
#include "tests/real/nodes.h"

#include <muster/table.h>

enum { DIM = 3, IDS = 2000 };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_table *table;
    uint64_t ids[IDS];
    float rows[IDS * DIM];
};

static int set_up(void **state)
{
    static struct fixture f;
    const mu_optimizer optimizer = mu_optimizer_make(MU_OPTIMIZER_ADAGRAD, 0.5);
    const mu_initializer initial = {MU_INITIALIZER_CONSTANT, 0, 2, 0};
    const mu_table_spec spec = {
        .name = "emb", .dim = DIM, .initializer = &initial, .optimizer = &optimizer};
    mu_error error = {.message = ""};

    nodes_init(&f.nodes, 0, 2);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    (void)nodes_open(&f.nodes, "ps", 0);
    (void)nodes_open(&f.nodes, "ps", 1);
    check(mu_table_open(f.chief, &spec, SOON_MS, &error, &f.table), &error);
    for (uint32_t i = 0; i < IDS; i++)
        f.ids[i] = i * UINT64_C(0x123456789);
    for (uint32_t i = 0; i < IDS * DIM; i++)
        f.rows[i] = (float)i;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_table_close(f->table);
    nodes_done(&f->nodes);
    return 0;
}

static void insert(struct fixture *f, uint32_t count)
{
    mu_error error = {.message = ""};

    check(mu_table_insert(f->table, f->ids, f->rows, count, SOON_MS, &error), &error);
}

static void assert_row(struct fixture *f, uint64_t id, const float *expected)
{
    float row[DIM];

    assert_int_equal(mu_table_lookup(f->table, &id, 1, row, SOON_MS, NULL), 0);
    assert_memory_equal(row, expected, sizeof row);
}

/* The last one of an id counts; what the optimizer keeps stays. */
TEST_ON(test_rows_are_set, struct fixture *f, set_up, tear_down)
{
    const uint64_t twice[] = {7, 7};
    const float rows[] = {1, 2, 3, 4, 5, 6};
    const float ones[] = {1, 1, 1};
    float first[DIM];
    float second[DIM];

    assert_int_equal(mu_table_insert(f->table, twice, rows, 2, SOON_MS, NULL), 0);
    assert_row(f, 7, rows + DIM);
    assert_int_equal(mu_table_apply(f->table, twice, ones, 1, NULL, SOON_MS, NULL), 0);
    assert_int_equal(mu_table_lookup(f->table, twice, 1, first, SOON_MS, NULL), 0);
    assert_int_equal(mu_table_insert(f->table, twice, rows, 1, SOON_MS, NULL), 0);
    assert_row(f, 7, rows);
    assert_int_equal(mu_table_apply(f->table, twice, ones, 1, NULL, SOON_MS, NULL), 0);
    assert_int_equal(mu_table_lookup(f->table, twice, 1, second, SOON_MS, NULL), 0);
    assert_true(rows[0] - second[0] < rows[DIM] - first[0]);
}

TEST_ON(test_a_table_says_how_large_it_is, struct fixture *f, set_up, tear_down)
{
    mu_table_stats stats;

    assert_int_equal(mu_table_get_stats(f->table, SOON_MS, NULL, &stats), 0);
    assert_int_equal(stats.rows, 0);
    insert(f, IDS);
    assert_int_equal(mu_table_get_stats(f->table, SOON_MS, NULL, &stats), 0);
    assert_int_equal(stats.rows, IDS);
    assert_true(stats.bytes > IDS * (8 + 2 * DIM * sizeof(float)));
    assert_int_equal(mu_table_delete(f->table, f->ids, 10, SOON_MS, NULL), 0);
    assert_int_equal(mu_table_get_stats(f->table, SOON_MS, NULL, &stats), 0);
    assert_int_equal(stats.rows, IDS - 10);
}

/* ---- Export ---- */

struct exported {
    const struct fixture *f;
    uint32_t count;
    bool seen[IDS];
    int code;
};

static int take_exported(void *user, const uint64_t *ids, const float *rows, size_t count)
{
    struct exported *exported = user;

    for (size_t i = 0; i < count; i++) {
        uint64_t at = ids[i] / UINT64_C(0x123456789);

        assert_true(at < IDS && !exported->seen[at]);
        assert_memory_equal(rows + i * DIM, exported->f->rows + at * DIM,
                            DIM * sizeof *rows);
        exported->seen[at] = true;
        exported->count++;
    }
    return exported->code;
}

TEST_ON(test_all_rows_are_given, struct fixture *f, set_up, tear_down)
{
    struct exported exported = {.f = f};
    mu_error error = {.message = ""};

    check(mu_table_export(f->table, take_exported, &exported, SOON_MS, &error), &error);
    assert_int_equal(exported.count, 0);
    insert(f, IDS);
    check(mu_table_export(f->table, take_exported, &exported, SOON_MS, &error), &error);
    assert_int_equal(exported.count, IDS);
}

TEST_ON(test_a_function_ends_the_export, struct fixture *f, set_up, tear_down)
{
    struct exported exported = {.f = f, .code = 5};
    mu_error error = {.message = ""};

    insert(f, IDS);
    assert_int_equal(mu_table_export(f->table, take_exported, &exported, SOON_MS, &error),
                     5);
    assert_true(exported.count > 0 && exported.count < IDS);
    exported = (struct exported){.f = f};
    check(mu_table_export(f->table, take_exported, &exported, SOON_MS, &error), &error);
    assert_int_equal(exported.count, IDS);
}

TEST_PROGRAM()
