/* Rows of bags of ids, and look-ups of several tables at once, on two servers that are
 * processes of their own: this very program. */
#include "tests/real/tasks.h"

#include <math.h>
#include <stdatomic.h>

enum { SERVERS = 2, DIM = 20, IDS = 6000, BAGS = 4000 };

static int play(char **argv)
{
    mu_node_options options;

    mu_node_options_init(&options);
    return tasks_play(argv, &options, NULL, 0);
}

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    pid_t servers[SERVERS];
    mu_table *table;
    mu_table *other;
    uint64_t ids[IDS];
    uint64_t offsets[BAGS];
    float weights[IDS];
    float rows[IDS * DIM];
    float sums[BAGS * DIM];
    mu_table_bags bags;
};

static mu_table *open_named(mu_node *node, const char *name, unsigned dim)
{
    const mu_optimizer plain = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    const mu_initializer initial = {MU_INITIALIZER_UNIFORM, 0, -1, 1};
    const mu_table_spec spec = {
        .name = name, .dim = dim, .initializer = &initial, .optimizer = &plain};
    mu_table *table = NULL;
    mu_error error = {0};

    check(mu_table_open(node, &spec, SOON_MS, &error, &table), &error);
    return table;
}

/* Bag 0 has many ids, bag 1 has none, the others have one or none. */
static void make_bags(struct fixture *f)
{
    for (uint64_t i = 0; i < IDS; i++) {
        f->ids[i] = i * 7919 % 1000;
        f->weights[i] = (float)(i % 5) - 1;
    }
    for (uint64_t i = 1; i < BAGS; i++)
        f->offsets[i] = IDS - BAGS + i;
    f->offsets[1] = f->offsets[2];
    f->bags =
        (mu_table_bags){.ids = f->ids, .count = IDS, .offsets = f->offsets, .bags = BAGS};
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    make_bags(f);
    nodes_init(&f->nodes, 0, SERVERS);
    for (int i = 0; i < SERVERS; i++)
        f->servers[i] = tasks_start("ps", i, f->nodes.json);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    f->table = open_named(f->chief, "emb", DIM);
    f->other = open_named(f->chief, "other", 3);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_table_close(f->table);
    mu_table_close(f->other);
    nodes_done(&f->nodes);
    for (int i = 0; i < SERVERS; i++)
        tasks_kill(&f->servers[i]);
    free(f);
    return 0;
}

static uint64_t end_of(const struct fixture *f, size_t bag)
{
    return bag + 1 < BAGS ? f->offsets[bag + 1] : IDS;
}

static double weight_of(const struct fixture *f, uint64_t i)
{
    return f->bags.weights == NULL ? 1 : (double)f->weights[i];
}

static double divisor_of(const struct fixture *f, size_t bag)
{
    double sum = 0;

    for (uint64_t i = f->offsets[bag]; i < end_of(f, bag); i++)
        sum += f->bags.combiner == MU_TABLE_MEAN ? weight_of(f, i)
                                                 : weight_of(f, i) * weight_of(f, i);
    if (f->bags.combiner == MU_TABLE_SUM)
        return 1;
    return f->bags.combiner == MU_TABLE_MEAN ? sum : sqrt(sum);
}

static double expected_of(const struct fixture *f, size_t bag, size_t column)
{
    double divisor = divisor_of(f, bag);
    double sum = 0;

    for (uint64_t i = f->offsets[bag]; i < end_of(f, bag); i++)
        sum += weight_of(f, i) * (double)f->rows[i * DIM + column];
    return divisor < 0 || divisor > 0 ? sum / divisor : 0;
}

static void assert_combined(struct fixture *f, int combiner, const float *weights)
{
    mu_error error = {0};

    f->bags.combiner = combiner;
    f->bags.weights = weights;
    check(mu_table_lookup(f->table, f->ids, IDS, f->rows, SOON_MS, &error), &error);
    check(mu_table_lookup_bags(f->table, &f->bags, f->sums, SOON_MS, &error), &error);
    for (size_t bag = 0; bag < BAGS; bag++)
        for (size_t i = 0; i < DIM; i++) {
            double expected = expected_of(f, bag, i);
            double off = (double)f->sums[bag * DIM + i] - expected;

            if (!(fabs(off) <= 1e-4 * (1 + fabs(expected))))
                fail_msg("combiner %d, bag %zu, column %zu: %g, expected %g", combiner,
                         bag, i, (double)f->sums[bag * DIM + i], expected);
        }
}

TEST_ON(test_rows_are_combined, struct fixture *f, set_up, tear_down)
{
    for (int combiner = MU_TABLE_SUM; combiner <= MU_TABLE_SQRTN; combiner++) {
        assert_combined(f, combiner, NULL);
        assert_combined(f, combiner, f->weights);
    }
}

TEST_ON(test_the_same_bags_have_the_same_bits, struct fixture *f, set_up, tear_down)
{
    float *again = malloc(sizeof f->sums);
    mu_error error = {0};

    assert_non_null(again);
    check(mu_table_lookup_bags(f->table, &f->bags, f->sums, SOON_MS, &error), &error);
    for (int i = 0; i < 5; i++) {
        check(mu_table_lookup_bags(f->table, &f->bags, again, SOON_MS, &error), &error);
        assert_memory_equal(again, f->sums, sizeof f->sums);
    }
    free(again);
}

/* Each id moves by what its row has in the rows of its bags. */
TEST_ON(test_gradients_of_bags, struct fixture *f, set_up, tear_down)
{
    const uint64_t ids[5] = {1, 2, 1, 3, 4};
    const uint64_t offsets[3] = {0, 3, 3};
    const float weights[5] = {1, 2, 1, 1, -1};
    const mu_table_bags bags = {.ids = ids,
                                .weights = weights,
                                .count = 5,
                                .offsets = offsets,
                                .bags = 3,
                                .combiner = MU_TABLE_MEAN};
    const float moved[5] = {2, 2, 2, 0, 0}; /* the weights of the last sum to 0 */
    float gradients[3 * DIM];
    float before[5 * DIM];
    float after[5 * DIM];
    mu_error error = {0};

    for (size_t i = 0; i < 3 * DIM; i++)
        gradients[i] = 4;
    check(mu_table_lookup(f->table, ids, 5, before, SOON_MS, &error), &error);
    check(mu_table_apply_bags(f->table, &bags, gradients, NULL, SOON_MS, &error), &error);
    check(mu_table_lookup(f->table, ids, 5, after, SOON_MS, &error), &error);
    for (size_t i = 0; i < 5 * DIM; i++)
        if (!(fabsf(before[i] - after[i] - moved[i / DIM]) < 1e-5f))
            fail_msg("id %d moved by %g", (int)ids[i / DIM],
                     (double)(before[i] - after[i]));
}

TEST_ON(test_several_tables_at_once, struct fixture *f, set_up, tear_down)
{
    float alone[100 * DIM];
    float others[100 * 3];
    float others_alone[100 * 3];
    const mu_table_ids lookups[3] = {{f->table, f->ids, 100, f->rows},
                                     {f->other, f->ids, 0, others},
                                     {f->other, f->ids, 100, others}};
    mu_error error = {0};

    check(mu_tables_lookup(lookups, 3, SOON_MS, &error), &error);
    check(mu_table_lookup(f->table, f->ids, 100, alone, SOON_MS, &error), &error);
    check(mu_table_lookup(f->other, f->ids, 100, others_alone, SOON_MS, &error), &error);
    assert_memory_equal(f->rows, alone, sizeof alone);
    assert_memory_equal(others, others_alone, sizeof others_alone);
    check(mu_tables_lookup(lookups, 0, SOON_MS, &error), &error);
}

/* One of them fails: the call has its error. */
TEST_ON(test_one_of_several_tables_fails, struct fixture *f, set_up, tear_down)
{
    float others[3];
    const mu_table_ids lookups[2] = {{f->table, f->ids, 100, f->rows},
                                     {f->other, f->ids, 1, others}};
    mu_table_ids wrong[2] = {lookups[0], {NULL, f->ids, 1, others}};
    mu_error error = {0};

    assert_int_equal(mu_tables_lookup(wrong, 2, SOON_MS, &error), -MU_EINVALID);
    for (int i = 0; i < SERVERS; i++)
        tasks_kill(&f->servers[i]);
    assert_int_not_equal(mu_tables_lookup(lookups, 2, 300, &error), 0);
    assert_non_null(strstr(error.message, "lookup"));
}

TEST_ON(test_bags_that_are_refused, struct fixture *f, set_up, tear_down)
{
    const uint64_t late[2] = {1, 1};
    const uint64_t back[2] = {0, 5};
    mu_table_bags bags = {.ids = f->ids, .count = 2, .offsets = late, .bags = 2};
    mu_error error = {0};

    assert_int_equal(mu_table_lookup_bags(f->table, &bags, f->rows, SOON_MS, &error),
                     -MU_EINVALID);
    bags.offsets = back;
    assert_int_equal(mu_table_lookup_bags(f->table, &bags, f->rows, SOON_MS, &error),
                     -MU_EINVALID);
    bags.offsets = f->offsets;
    bags.count = IDS;
    bags.combiner = 3;
    assert_int_equal(mu_table_apply_bags(f->table, &bags, f->rows, NULL, SOON_MS, &error),
                     -MU_EINVALID);
    bags = (mu_table_bags){.ids = f->ids, .count = 1};
    assert_int_equal(mu_table_lookup_bags(f->table, &bags, f->rows, SOON_MS, &error),
                     -MU_EINVALID);
    bags.count = 0;
    check(mu_table_lookup_bags(f->table, &bags, f->rows, SOON_MS, &error), &error);
}

/* ---- Without waiting ---- */

enum { MANY = 100, FEW_IDS = 40, FEW_BAGS = 10 };

struct bags_asked {
    atomic_uint ends;
    int code;
    mu_error error;
    float rows[FEW_BAGS * DIM];
};

static void note_end(void *user, int code, const mu_error *error)
{
    struct bags_asked *asked = user;

    asked->code = code;
    if (error != NULL)
        asked->error = *error;
    atomic_fetch_add(&asked->ends, 1);
}

static void await_end(struct bags_asked *asked)
{
    while (atomic_load(&asked->ends) == 0)
        nodes_pause();
    assert_int_equal(atomic_load(&asked->ends), 1);
}

/* What was given is the caller's again at once; the sums have more than one piece. */
TEST_ON(test_the_same_without_waiting, struct fixture *f, set_up, tear_down)
{
    float *rows = malloc(sizeof f->sums);
    mu_error error = {0};

    assert_non_null(rows);
    for (int combiner = MU_TABLE_SUM; combiner <= MU_TABLE_SQRTN; combiner++) {
        struct bags_asked asked = {.code = 1};

        f->bags.combiner = combiner;
        f->bags.weights = combiner == MU_TABLE_SUM ? NULL : f->weights;
        check(mu_table_lookup_bags(f->table, &f->bags, f->sums, SOON_MS, &error), &error);
        memset(rows, 1, sizeof f->sums);
        assert_int_equal(mu_table_lookup_bags_async(f->table, &f->bags, rows, SOON_MS,
                                                    note_end, &asked),
                         0);
        memset(f->ids, 0, sizeof f->ids);
        memset(f->weights, 0, sizeof f->weights);
        memset(f->offsets, 0, sizeof f->offsets);
        await_end(&asked);
        check(asked.code, &asked.error);
        assert_memory_equal(rows, f->sums, sizeof f->sums);
        make_bags(f);
    }
    free(rows);
}

TEST_ON(test_gradients_without_waiting, struct fixture *f, set_up, tear_down)
{
    const uint64_t ids[3] = {1, 2, 1};
    const uint64_t offsets[2] = {0, 2};
    const mu_table_bags bags = {
        .ids = ids, .count = 3, .offsets = offsets, .bags = 2, .combiner = MU_TABLE_MEAN};
    struct bags_asked asked = {.code = 1};
    float gradients[2 * DIM];
    float before[2 * DIM];
    float after[2 * DIM];
    mu_error error = {0};

    for (size_t i = 0; i < 2 * DIM; i++)
        gradients[i] = 4;
    check(mu_table_lookup(f->table, ids, 2, before, SOON_MS, &error), &error);
    assert_int_equal(mu_table_apply_bags_async(f->table, &bags, gradients, NULL, SOON_MS,
                                               note_end, &asked),
                     0);
    await_end(&asked);
    check(asked.code, &asked.error);
    check(mu_table_lookup(f->table, ids, 2, after, SOON_MS, &error), &error);
    for (size_t i = 0; i < 2 * DIM; i++)
        assert_true(fabsf(before[i] - after[i] - (i < DIM ? 6.F : 2.F)) < 1e-5F);
}

/* It answers nothing any more, when this has returned. */
static void stop_server(pid_t server)
{
    int status;

    assert_int_equal(kill(server, SIGSTOP), 0);
    assert_int_equal(waitpid(server, &status, WUNTRACED), server);
    assert_true(WIFSTOPPED(status));
}

static struct bags_asked *ask_many(struct fixture *f, int64_t timeout_ms)
{
    struct bags_asked *asked = calloc(MANY, sizeof *asked);
    uint64_t offsets[FEW_BAGS];
    const mu_table_bags bags = {
        .ids = f->ids, .count = FEW_IDS, .offsets = offsets, .bags = FEW_BAGS};

    assert_non_null(asked);
    for (size_t i = 0; i < FEW_BAGS; i++)
        offsets[i] = i * FEW_IDS / FEW_BAGS;
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(mu_table_lookup_bags_async(f->table, &bags, asked[i].rows,
                                                    timeout_ms, note_end, &asked[i]),
                         0);
    return asked;
}

/* Each ends once: with an answer, or an error that names a server. */
TEST_ON(test_servers_are_killed_meanwhile, struct fixture *f, set_up, tear_down)
{
    struct bags_asked *asked;

    stop_server(f->servers[0]);
    asked = ask_many(f, 1000);
    for (int i = 0; i < SERVERS; i++)
        tasks_kill(&f->servers[i]);
    for (unsigned i = 0; i < MANY; i++) {
        await_end(&asked[i]);
        assert_true(asked[i].code == 0 || asked[i].code == -MU_EUNAVAILABLE ||
                    asked[i].code == -MU_EDEADLINE);
        if (asked[i].code != 0)
            assert_non_null(strstr(asked[i].error.message, "/job:ps/task:"));
    }
    assert_int_not_equal(asked[MANY - 1].code, 0);
    free(asked);
}

TEST_ON(test_the_node_is_closed_meanwhile, struct fixture *f, set_up, tear_down)
{
    struct bags_asked *asked;

    for (int i = 0; i < SERVERS; i++)
        stop_server(f->servers[i]);
    asked = ask_many(f, -1);
    nodes_close(&f->nodes, f->chief);
    for (unsigned i = 0; i < MANY; i++) {
        await_end(&asked[i]);
        assert_int_equal(asked[i].code, -MU_ECLOSED);
    }
    free(asked);
}

TEST_ON(test_what_is_not_begun, struct fixture *f, set_up, tear_down)
{
    const uint64_t late[2] = {1, 1};
    mu_table_bags bags = {.ids = f->ids, .count = 2, .offsets = late, .bags = 2};
    struct bags_asked asked = {.code = 1};

    assert_int_equal(mu_table_lookup_bags_async(f->table, &bags, f->rows, SOON_MS,
                                                note_end, &asked),
                     -MU_EINVALID);
    assert_int_equal(mu_table_apply_bags_async(f->table, &bags, f->rows, NULL, SOON_MS,
                                               note_end, &asked),
                     -MU_EINVALID);
    bags = (mu_table_bags){.ids = f->ids, .offsets = f->offsets};
    assert_int_equal(mu_table_lookup_bags_async(f->table, &bags, f->rows, SOON_MS,
                                                note_end, &asked),
                     -MU_EINVALID);
    bags.bags = 1;
    assert_int_equal(mu_table_apply_bags_async(f->table, &bags, f->rows, NULL, SOON_MS,
                                               note_end, &asked),
                     -MU_EINVALID);
    assert_int_equal(atomic_load(&asked.ends), 0);
    f->rows[0] = 7;
    assert_int_equal(mu_table_lookup_bags_async(f->table, &bags, f->rows, SOON_MS,
                                                note_end, &asked),
                     0);
    await_end(&asked);
    assert_int_equal((int)f->rows[0], 0);
}

int main(int argc, char **argv)
{
    return argc == 4 ? play(argv) : tests_run(NULL, NULL);
}
