/* A table on parameter servers with backups that are killed, one after the other, while
 * the program pushes and looks up, and closures push: each push counts once, none fails.
 * Servers are processes of their own: this very program. */
#include "tests/real/tasks.h"

#include <inttypes.h>
#include <math.h>

enum { SERVERS = 3, DIM = 4, IDS = 500, ROUNDS = 6, CLOSURES = 20 };

static void set_options(mu_node_options *options)
{
    options->backups = 1;
    options->heartbeat_ms = 100;
    options->silence_ms = 1000;
}

static int play(char **argv)
{
    mu_node_options options;

    mu_node_options_init(&options);
    set_options(&options);
    return tasks_play(argv, &options, NULL, 0);
}

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_node *worker;
    mu_coordinator *coordinator;
    pid_t servers[SERVERS];
    mu_table *table;  /* of the chief, */
    mu_table *pushed; /* and of the worker */
    uint64_t ids[IDS];
    float ones[IDS * DIM];
};

static mu_table *open_emb(mu_node *node, unsigned flags)
{
    const mu_table_spec spec = {.name = "emb", .dim = DIM, .flags = flags};
    mu_table *table = NULL;
    mu_error error = {0};

    check(mu_table_open(node, &spec, SOON_MS, &error, &table), &error);
    return table;
}

static int push_ones(mu_run *run, void *user)
{
    struct fixture *f = user;
    const mu_optimizer plain = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);

    return mu_run_table_apply(run, f->pushed, f->ids, f->ones, IDS, &plain);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;

    assert_non_null(f);
    for (uint64_t i = 0; i < IDS; i++)
        f->ids[i] = i * i * 256;
    for (size_t i = 0; i < sizeof f->ones / sizeof f->ones[0]; i++)
        f->ones[i] = 1;
    nodes_init(&f->nodes, 1, SERVERS);
    for (int i = 0; i < SERVERS; i++)
        f->servers[i] = tasks_start("ps", i, f->nodes.json);
    nodes_options(&f->nodes, "chief", 0, &options);
    set_options(&options);
    f->chief = nodes_open_with(&f->nodes, &options);
    f->table = open_emb(f->chief, 0);
    nodes_options(&f->nodes, "worker", 0, &options);
    set_options(&options);
    f->worker = nodes_open_with(&f->nodes, &options);
    f->pushed = open_emb(f->worker, MU_TABLE_EXISTING);
    assert_int_equal(mu_node_register_function(f->worker, "push_ones", push_ones, f, 0),
                     0);
    assert_int_equal(mu_node_serve(f->worker), 0);
    f->coordinator = nodes_coordinator(f->chief);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_coordinator_close(f->coordinator);
    mu_table_close(f->table);
    mu_table_close(f->pushed);
    nodes_done(&f->nodes);
    for (int i = 0; i < SERVERS; i++)
        tasks_kill(&f->servers[i]);
    free(f);
    return 0;
}

/* Every row has been pushed to so often. */
static void assert_pushes(struct fixture *f, int pushes)
{
    float *rows = malloc(sizeof f->ones);
    mu_error error = {0};

    assert_non_null(rows);
    check(mu_table_lookup(f->table, f->ids, IDS, rows, SOON_MS, &error), &error);
    for (size_t i = 0; i < IDS * DIM; i++)
        assert_int_equal((int)-rows[i], pushes);
    free(rows);
}

static void push_now(struct fixture *f)
{
    const mu_optimizer plain = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    mu_error error = {0};

    check(mu_table_apply(f->table, f->ids, f->ones, IDS, &plain, SOON_MS, &error),
          &error);
}

static void schedule_pushes(struct fixture *f)
{
    mu_closure_options options;
    mu_error error = {0};

    mu_closure_options_init(&options);
    options.flags = MU_CLOSURE_EFFECT_ONCE;
    for (int i = 0; i < CLOSURES; i++)
        check(mu_coordinator_schedule_with(f->coordinator, "push_ones", NULL, &options,
                                           SOON_MS, &error, NULL),
              &error);
}

TEST_ON(test_each_push_counts_once, struct fixture *f, set_up, tear_down)
{
    int pushes = 0;
    mu_error error = {0};

    for (int round = 0; round < ROUNDS; round++) {
        schedule_pushes(f);
        push_now(f);
        tasks_kill(&f->servers[round % SERVERS]);
        for (int i = 0; i < 5; i++)
            push_now(f);
        check(mu_coordinator_join(f->coordinator, SOON_MS, &error), &error);
        pushes += 6 + CLOSURES;
        assert_pushes(f, pushes);
        f->servers[round % SERVERS] = tasks_start("ps", round % SERVERS, f->nodes.json);
        for (int i = 0; i < 1500; i++)
            nodes_pause();
    }
}

/* Each kind, and what all of its rows are within; no id has a row. */
TEST_ON(test_initial_values_by_name, struct fixture *f, set_up, tear_down)
{
    static const struct {
        const char *name;
        mu_initializer initializer;
        float low;
        float high;
    } rows[] = {
        {"zeros", {MU_INITIALIZER_ZEROS, 1, 5, 5}, 0, 0},
        {"constant", {MU_INITIALIZER_CONSTANT, 1, 0.5, 5}, 0.5F, 0.5F},
        {"uniform", {MU_INITIALIZER_UNIFORM, 1, 2, 3}, 2, 3},
        {"truncated", {MU_INITIALIZER_TRUNCATED_NORMAL, 1, 2, 3}, -4, 8},
        {"glorot", {MU_INITIALIZER_GLOROT_UNIFORM, 1, 0, 0}, -0.866026F, 0.866026F},
        {"he", {MU_INITIALIZER_HE_UNIFORM, 1, 0, 0}, -1.224745F, 1.224745F},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const mu_table_spec spec = {
            .name = rows[i].name, .dim = DIM, .initializer = &rows[i].initializer};
        float values[IDS * DIM];
        float low = rows[i].high;
        float high = rows[i].low;
        mu_table *table = NULL;
        mu_error error = {0};

        check(mu_table_open(f->chief, &spec, SOON_MS, &error, &table), &error);
        check(mu_table_lookup(table, f->ids, IDS, values, SOON_MS, &error), &error);
        for (int k = 0; k < IDS * DIM; k++) {
            assert_true(values[k] >= rows[i].low && values[k] <= rows[i].high);
            low = values[k] < low ? values[k] : low;
            high = values[k] > high ? values[k] : high;
        }
        assert_true(high - low >= 0.9F * (rows[i].high - rows[i].low));
        mu_table_close(table);
    }
}

static void push_first(struct fixture *f, mu_table *table, uint64_t time, size_t count)
{
    const mu_optimizer plain = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    mu_error error = {0};

    check(mu_table_apply_at(table, time, f->ids, f->ones, count, &plain, SOON_MS, &error),
          &error);
}

/* The first `count` ids have been pushed to so often since their rows were made. */
static void assert_rows_of(struct fixture *f, mu_table *table, size_t count, int pushes)
{
    float row[DIM];
    mu_error error = {0};

    for (size_t i = 0; i < IDS; i += 7) {
        check(mu_table_lookup(table, &f->ids[i], 1, row, SOON_MS, &error), &error);
        assert_int_equal((int)-row[0], i < count ? pushes : 0);
    }
}

/* What was counted before a server was lost counts on, and times of rows do. */
TEST_ON(test_policies_survive_servers, struct fixture *f, set_up, tear_down)
{
    const mu_table_spec spec = {.name = "few",
                                .dim = DIM,
                                .admit_after = 3,
                                .eviction = MU_TABLE_EVICT_LRU,
                                .dtype = MU_BF16};
    mu_table_stats stats;
    mu_error error = {0};
    mu_table *table = NULL;

    check(mu_table_open(f->chief, &spec, SOON_MS, &error, &table), &error);
    push_first(f, table, 1, IDS);
    push_first(f, table, 2, IDS);
    assert_rows_of(f, table, IDS, 0);
    tasks_kill(&f->servers[0]);
    push_first(f, table, 3, IDS);
    assert_rows_of(f, table, IDS, 1);
    f->servers[0] = tasks_start("ps", 0, f->nodes.json);
    for (int i = 0; i < 1500; i++)
        nodes_pause();
    push_first(f, table, 10, IDS / 2);
    tasks_kill(&f->servers[1]);
    check(mu_table_expire(table, 10, SOON_MS, &error), &error);
    assert_rows_of(f, table, IDS / 2, 2);
    check(mu_table_get_stats(table, SOON_MS, &error, &stats), &error);
    assert_int_equal(stats.rows, IDS / 2);
    assert_int_equal(stats.dropped, 2 * IDS);
    assert_int_equal(stats.expired, IDS - IDS / 2);
    assert_int_equal(stats.evicted + stats.refused, 0);
    mu_table_close(table);
}

TEST_ON(test_what_is_refused, struct fixture *f, set_up, tear_down)
{
    static const mu_initializer ones = {.kind = MU_INITIALIZER_CONSTANT, .a = 1};
    static const mu_initializer unknown = {.kind = 99};
    static const mu_initializer orthogonal = {.kind = MU_INITIALIZER_ORTHOGONAL, .a = 1};
    static const mu_initializer infinite = {.kind = MU_INITIALIZER_CONSTANT,
                                            .a = (double)INFINITY};
    static const mu_initializer large = {.kind = MU_INITIALIZER_CONSTANT, .a = 1e39};
    static const struct {
        mu_table_spec spec;
        int code;
        const char *words;
    } rows[] = {
        {{.name = "", .dim = 1}, -MU_EINVALID, "name"},
        {{.name = "emb", .dim = 0}, -MU_EINVALID, "rows of 0 numbers"},
        {{.name = "emb", .dim = DIM + 1}, -MU_EPRECONDITION, "rows of 4 numbers"},
        {{.name = "emb", .dim = DIM, .initializer = &ones},
         -MU_EPRECONDITION,
         "expected the same"},
        {{.name = "i", .dim = DIM, .initializer = &unknown},
         -MU_EINVALID,
         "initializer 99 is unknown"},
        {{.name = "i", .dim = DIM, .initializer = &orthogonal},
         -MU_EINVALID,
         "not for rows of tables"},
        {{.name = "i", .dim = DIM, .initializer = &infinite},
         -MU_EINVALID,
         "expected finite ones"},
        {{.name = "i", .dim = DIM, .initializer = &large},
         -MU_ERANGE,
         "range of float32"},
        {{.name = "emb", .dim = DIM, .flags = 8}, -MU_EINVALID, "flags 8"},
        {{.name = "emb", .dim = DIM, .ttl = 1}, -MU_EPRECONDITION, "its policies"},
        {{.name = "a", .dim = DIM, .ttl = UINT64_C(1) << 32}, -MU_EINVALID, "2^32"},
        {{.name = "a", .dim = DIM, .admit_probability = 2}, -MU_EINVALID, "0 to 1"},
        {{.name = "a", .dim = DIM, .admit_after = 2, .admit_probability = 0.5},
         -MU_EINVALID,
         "not by both"},
        {{.name = "a", .dim = DIM, .admit_after = 2, .candidates = UINT64_C(1) << 40},
         -MU_EINVALID,
         "ids that are counted"},
        {{.name = "a", .dim = DIM, .capacity = UINT64_MAX}, -MU_EINVALID, "2^39"},
        {{.name = "a", .dim = DIM, .eviction = 7}, -MU_EINVALID, "no eviction 7"},
        {{.name = "a", .dim = DIM, .dtype = MU_F64}, -MU_EINVALID, "bfloat16"},
        {{.name = "none", .dim = DIM, .flags = MU_TABLE_EXISTING},
         -MU_ENOTFOUND,
         "there is none"},
    };
    const mu_optimizer heavy = mu_optimizer_make(MU_OPTIMIZER_MOMENTUM, 1);
    mu_error error = {0};
    mu_table *table = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(mu_table_open(f->chief, &rows[i].spec, SOON_MS, &error, &table),
                         rows[i].code);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s", error.message);
    }
    assert_int_equal(mu_table_apply(f->table, f->ids, f->ones, IDS, &heavy, SOON_MS,
                                    &error),
                     -MU_EPRECONDITION);
    assert_int_equal(mu_table_apply_at(f->table, UINT64_C(1) << 32, f->ids, f->ones, IDS,
                                       NULL, SOON_MS, &error),
                     -MU_EINVALID);
    assert_int_equal(mu_table_expire(f->table, 1, SOON_MS, &error), -MU_EPRECONDITION);
    assert_pushes(f, 0);
    push_now(f);
    check(mu_table_delete(f->table, f->ids, IDS, SOON_MS, &error), &error);
    assert_pushes(f, 0);
    assert_int_equal(mu_table_dim(f->table), DIM);
}

int main(int argc, char **argv)
{
    return argc == 4 ? play(argv) : tests_run(NULL, NULL);
}
