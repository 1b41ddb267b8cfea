/* Look-ups and pushes of a table that nobody waits for. */
#include "tests/real/nodes.h"

#include <muster/table.h>

#include <math.h>
#include <sched.h>
#include <stdatomic.h>

enum { DIM = 2, MANY = 500 };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_table *table;
    atomic_uint ended;
    atomic_uint failed;
    mu_error error; /* of the last one that has failed */
};

static int set_up(void **state)
{
    static struct fixture f;
    const mu_optimizer optimizer = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    const mu_table_spec spec = {.name = "emb", .dim = DIM, .optimizer = &optimizer};
    mu_error error = {.message = ""};

    atomic_store(&f.ended, 0);
    atomic_store(&f.failed, 0);
    nodes_init(&f.nodes, 0, 2);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    (void)nodes_open(&f.nodes, "ps", 0);
    (void)nodes_open(&f.nodes, "ps", 1);
    check(mu_table_open(f.chief, &spec, SOON_MS, &error, &f.table), &error);
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

static void note_end(void *user, int code, const mu_error *error)
{
    struct fixture *f = user;

    if (code != 0) {
        f->error = *error;
        atomic_fetch_add(&f->failed, 1);
    }
    atomic_fetch_add(&f->ended, 1);
}

static void await_ends(struct fixture *f, unsigned count)
{
    while (atomic_load(&f->ended) < count)
        (void)sched_yield();
}

static void begin_push(struct fixture *f, uint64_t id, float number)
{
    const float gradient[DIM] = {number, 1};

    assert_int_equal(
        mu_table_apply_async(f->table, &id, gradient, 1, NULL, SOON_MS, note_end, f), 0);
}

/* Ids and gradients are the caller's again at once. */
TEST_ON(test_many_are_under_way, struct fixture *f, set_up, tear_down)
{
    static float rows[MANY * DIM];

    for (uint64_t id = 0; id < MANY; id++)
        begin_push(f, id, -(float)id);
    await_ends(f, MANY);
    for (uint64_t id = 0; id < MANY; id++)
        assert_int_equal(mu_table_lookup_async(f->table, &id, 1, rows + id * DIM, SOON_MS,
                                               note_end, f),
                         0);
    await_ends(f, 2 * MANY);
    assert_int_equal(atomic_load(&f->failed), 0);
    for (uint64_t id = 0; id < MANY; id++)
        assert_int_equal((uint64_t)rows[id * DIM], id);
}

/* What has begun goes on without the handle. */
TEST_ON(test_the_table_is_closed_meanwhile, struct fixture *f, set_up, tear_down)
{
    for (uint64_t id = 0; id < MANY; id++)
        begin_push(f, id, 1);
    mu_table_close(f->table);
    f->table = NULL;
    await_ends(f, MANY);
    assert_int_equal(atomic_load(&f->failed), 0);
}

TEST_ON(test_what_the_servers_refuse, struct fixture *f, set_up, tear_down)
{
    begin_push(f, 1, NAN);
    await_ends(f, 1);
    assert_int_equal(atomic_load(&f->failed), 1);
    assert_int_equal(f->error.code, -MU_EINVALID);
    assert_non_null(strstr(f->error.message, "emb"));
}

TEST_ON(test_what_is_not_begun, struct fixture *f, set_up, tear_down)
{
    const uint64_t id = 1;
    float row[DIM] = {0};

    assert_int_equal(mu_table_lookup_async(f->table, &id, 0, row, 0, note_end, f),
                     -MU_EINVALID);
    assert_int_equal(mu_table_lookup_async(f->table, &id, 1, row, 0, NULL, NULL),
                     -MU_EINVALID);
    assert_int_equal(mu_table_apply_async(f->table, &id, row, SIZE_MAX, NULL, 0, note_end,
                                          f),
                     -MU_EINVALID);
    assert_int_equal(atomic_load(&f->ended), 0);
}

/* One is begun while its end would be awaited: beyond the bound there are none. */
TEST_ON(test_no_more_than_the_bound, struct fixture *f, set_up, tear_down)
{
    static float rows[DIM];
    const uint64_t id = 1;
    unsigned begun = 0;
    int rv = 0;

    while (rv == 0 && begun < (1 << 20)) {
        rv = mu_table_lookup_async(f->table, &id, 1, rows, SOON_MS, note_end, f);
        begun += rv == 0;
        assert_true(begun - atomic_load(&f->ended) <= 65536);
    }
    assert_true(rv == 0 || rv == -MU_EAGAIN);
    await_ends(f, begun);
    assert_int_equal(atomic_load(&f->failed), 0);
}

/* One whose bits are known in 16, 32 and other 16 bits. */
TEST_ON(test_rows_in_a_form, struct fixture *f, set_up, tear_down)
{
    const mu_initializer one = {.kind = MU_INITIALIZER_CONSTANT, .a = 1};
    const mu_table_spec spec = {
        .name = "half", .dim = DIM, .initializer = &one, .dtype = MU_F16};
    const uint64_t ids[] = {7, 1};
    uint16_t narrow[3 * DIM] = {0};
    float wide[2 * DIM] = {0};
    mu_error error = {.message = ""};
    mu_table *table = NULL;

    check(mu_table_open(f->chief, &spec, SOON_MS, &error, &table), &error);
    check(mu_table_lookup_as(table, MU_F16, ids, 2, narrow, SOON_MS, &error), &error);
    check(mu_table_lookup_as(table, MU_F32, ids, 2, wide, SOON_MS, &error), &error);
    for (unsigned i = 0; i < 2 * DIM; i++) {
        assert_int_equal(narrow[i], 0x3c00);
        assert_int_equal((int)wide[i], 1);
    }
    assert_int_equal(narrow[2 * DIM], 0);
    assert_int_equal(mu_table_lookup_as(table, MU_BF16, ids, 2, narrow, SOON_MS, &error),
                     -MU_EINVALID);
    assert_non_null(strstr(error.message, "float16, which are not given as bfloat16"));
    assert_int_equal(mu_table_lookup_as_async(table, MU_BF16, ids, 2, narrow, SOON_MS,
                                              note_end, f),
                     -MU_EINVALID);
    assert_int_equal(mu_table_lookup_as_async(table, MU_F16, ids, 2, narrow + DIM,
                                              SOON_MS, note_end, f),
                     0);
    await_ends(f, 1);
    assert_int_equal(narrow[2 * DIM], 0x3c00);
    mu_table_close(table);
}

/* A table is opened as it was made, whatever that was. */
TEST_ON(test_one_that_is_there, struct fixture *f, set_up, tear_down)
{
    const mu_initializer normal = {MU_INITIALIZER_GLOROT_NORMAL, 77, 0, 0};
    const mu_optimizer adam = mu_optimizer_make(MU_OPTIMIZER_ADAM, 0.1);
    const mu_table_spec spec = {.name = "other",
                                .dim = 5,
                                .initializer = &normal,
                                .optimizer = &adam,
                                .dtype = MU_BF16,
                                .flags = MU_TABLE_UNKNOWN_ZEROS,
                                .admit_after = 3,
                                .candidates = 5000,
                                .ttl = 100,
                                .capacity = 100000,
                                .eviction = MU_TABLE_EVICT_LRU};
    mu_error error = {.message = ""};
    mu_table *table;

    check(mu_table_open(f->chief, &spec, SOON_MS, &error, &table), &error);
    mu_table_close(table);
    check(mu_table_open_existing(f->chief, "other", SOON_MS, &error, &table), &error);
    assert_int_equal(mu_table_dim(table), 5);
    mu_table_close(table);
    assert_int_equal(mu_table_open_existing(f->chief, "none", SOON_MS, &error, &table),
                     -MU_ENOTFOUND);
    assert_string_equal(error.message, "table none: there is none");
}

TEST_PROGRAM()
