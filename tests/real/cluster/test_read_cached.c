/* Reads that may be some time old, of a variable that another handle writes, too. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

enum { LONG_MS = 3600 * 1000 };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_variable *mine;
    mu_variable *other;
};

static mu_variable *open_counts(struct fixture *f)
{
    static const uint64_t dims[1] = {4};
    const mu_variable_spec spec = {
        .name = "counts", .dtype = MU_I64, .rank = 1, .dims = dims};
    mu_variable *variable = NULL;
    mu_error error = {0};

    check(mu_variable_open(f->chief, &spec, SOON_MS, &error, &variable), &error);
    return variable;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    nodes_init(&f->nodes, 0, 1);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    (void)nodes_open(&f->nodes, "ps", 0);
    f->mine = open_counts(f);
    f->other = open_counts(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_variable_close(f->mine);
    mu_variable_close(f->other);
    nodes_done(&f->nodes);
    free(f);
    return 0;
}

static void add_one(mu_variable *variable)
{
    static const int64_t ones[4] = {1, 1, 1, 1};
    mu_error error = {0};

    check(mu_variable_add(variable, ones, sizeof ones, SOON_MS, &error), &error);
}

static int64_t read_cached(mu_variable *variable, uint64_t max_age_ms)
{
    int64_t data[4] = {-1, -1, -1, -1};
    mu_error error = {0};

    check(mu_variable_read_cached(variable, data, sizeof data, max_age_ms, SOON_MS,
                                  &error),
          &error);
    assert_int_equal(data[0], data[3]);
    return data[0];
}

TEST_ON(test_a_read_may_be_old, struct fixture *f, set_up, tear_down)
{
    assert_int_equal(read_cached(f->mine, LONG_MS), 0);
    add_one(f->other);
    assert_int_equal(read_cached(f->mine, LONG_MS), 0);
    assert_int_equal(read_cached(f->mine, 0), 1);
    assert_int_equal(read_cached(f->mine, LONG_MS), 1);
}

TEST_ON(test_what_is_too_old_is_read_again, struct fixture *f, set_up, tear_down)
{
    uint64_t began_ms = cli_now_ms();

    assert_int_equal(read_cached(f->mine, LONG_MS), 0);
    add_one(f->other);
    while (cli_now_ms() < began_ms + 20)
        nodes_pause();
    assert_int_equal(read_cached(f->mine, 10), 1);
}

TEST_ON(test_own_writes_are_read, struct fixture *f, set_up, tear_down)
{
    static const int64_t sevens[4] = {7, 7, 7, 7};
    mu_error error = {0};

    assert_int_equal(read_cached(f->mine, LONG_MS), 0);
    add_one(f->mine);
    assert_int_equal(read_cached(f->mine, LONG_MS), 1);
    check(mu_variable_assign(f->mine, sevens, sizeof sevens, SOON_MS, &error), &error);
    assert_int_equal(read_cached(f->mine, LONG_MS), 7);
}

TEST_ON(test_a_buffer_of_another_size_is_refused, struct fixture *f, set_up, tear_down)
{
    int64_t data[3];
    mu_error error = {0};

    assert_int_equal(read_cached(f->mine, LONG_MS), 0);
    assert_int_equal(mu_variable_read_cached(f->mine, data, sizeof data, LONG_MS, SOON_MS,
                                             &error),
                     -MU_EINVALID);
}

TEST_PROGRAM()
