/* Rows of a variable on two servers, as a program reads and writes them. */
#include "tests/real/nodes.h"

struct fixture {
    struct nodes nodes;
    mu_variable *variable; /* ten rows of two numbers, 0 to 19, in five shards */
};

static int set_up(void **state)
{
    static const uint64_t dims[2] = {10, 2};
    struct fixture *f = calloc(1, sizeof *f);
    int64_t content[20];
    const mu_variable_spec spec = {.name = "table",
                                   .dtype = MU_I64,
                                   .rank = 2,
                                   .dims = dims,
                                   .shards = 5,
                                   .initial = content};
    mu_error error = {0};
    mu_node *chief;

    assert_non_null(f);
    for (int i = 0; i < 20; i++)
        content[i] = i;
    nodes_init(&f->nodes, 0, 2);
    chief = nodes_open(&f->nodes, "chief", 0);
    (void)nodes_open(&f->nodes, "ps", 0);
    (void)nodes_open(&f->nodes, "ps", 1);
    check(mu_variable_open(chief, &spec, SOON_MS, &error, &f->variable), &error);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_variable_close(f->variable);
    nodes_done(&f->nodes);
    free(f);
    return 0;
}

static void assert_rows(struct fixture *f, const mu_rows *rows, const int64_t *firsts)
{
    int64_t data[20];
    mu_error error = {0};

    check(mu_variable_read_rows(f->variable, rows, data, 16 * rows->count, SOON_MS,
                                &error),
          &error);
    for (uint64_t i = 0; i < rows->count; i++) {
        assert_int_equal(data[2 * i], firsts[i]);
        assert_int_equal(data[2 * i + 1], firsts[i] + 1);
    }
}

TEST_ON(test_rows_are_read, struct fixture *f, set_up, tear_down)
{
    static const int64_t list[4] = {9, 0, 9, 5};

    assert_rows(f, &(mu_rows){.first = 3, .count = 4}, (const int64_t[]){6, 8, 10, 12});
    assert_rows(f, &(mu_rows){.count = 4, .list = list},
                (const int64_t[]){18, 0, 18, 10});
    assert_rows(f, &(mu_rows){.first = 10}, NULL);
}

TEST_ON(test_rows_are_written, struct fixture *f, set_up, tear_down)
{
    static const int64_t list[3] = {9, 0, 9};
    static const int64_t hundreds[6] = {100, 101, 200, 201, 300, 301};
    static const int64_t tens[6] = {10, 10, 20, 20, 30, 30};
    const mu_rows three = {.count = 3, .list = list};
    const mu_rows four = {.first = 7, .count = 3};
    uint64_t version = 0;
    mu_error error = {0};

    check(mu_variable_assign_rows(f->variable, &three, hundreds, 48, SOON_MS, &error),
          &error);
    assert_rows(f, &three, (const int64_t[]){300, 200, 300});
    check(mu_variable_add_rows(f->variable, &three, tens, 48, SOON_MS, &error), &error);
    assert_rows(f, &three, (const int64_t[]){340, 220, 340});
    check(mu_variable_add_rows(f->variable, &four, tens, 48, SOON_MS, &error), &error);
    assert_rows(f, &four, (const int64_t[]){24, 36, 370});
    check(mu_variable_version(f->variable, SOON_MS, &error, &version), &error);
    assert_int_equal(version, 1);
}

static void assert_firsts(struct fixture *f, const mu_rows *rows, const int64_t *firsts)
{
    int64_t data[20];
    mu_error error = {0};

    check(mu_variable_read_rows(f->variable, rows, data, 16 * rows->count, SOON_MS,
                                &error),
          &error);
    for (uint64_t i = 0; i < rows->count; i++)
        assert_int_equal(data[2 * i], firsts[i]);
}

/* Of a list, in which a row is twice, and of a range. */
TEST_ON(test_rows_are_updated, struct fixture *f, set_up, tear_down)
{
    static const int64_t list[3] = {9, 0, 9};
    static const int64_t given[6] = {20, 20, -4, -4, 3, 3};
    const mu_rows three = {.count = 3, .list = list};
    const mu_rows range = {.first = 3, .count = 3};
    mu_error error = {0};

    check(mu_variable_update_rows(f->variable, MU_ROWS_MAX, &three, given, 48, SOON_MS,
                                  &error),
          &error);
    assert_firsts(f, &three, (const int64_t[]){20, 0, 20});
    check(mu_variable_update_rows(f->variable, MU_ROWS_MUL, &three, given, 48, SOON_MS,
                                  &error),
          &error);
    assert_firsts(f, &three, (const int64_t[]){1200, 0, 1200});
    check(mu_variable_update_rows(f->variable, MU_ROWS_DIV, &three, given, 48, SOON_MS,
                                  &error),
          &error);
    assert_firsts(f, &three, (const int64_t[]){20, 0, 20});
    check(mu_variable_update_rows(f->variable, MU_ROWS_MIN, &range, given, 48, SOON_MS,
                                  &error),
          &error);
    assert_firsts(f, &range, (const int64_t[]){6, -4, 3});
    assert_int_equal(mu_variable_update_rows(f->variable, MU_ROWS_DIV, &range,
                                             (const int64_t[6]){0}, 48, SOON_MS, &error),
                     -MU_EINVALID);
    for (int update = 0; update < 10; update += 5)
        assert_int_equal(mu_variable_update_rows(f->variable, update, &range, given, 48,
                                                 SOON_MS, &error),
                         -MU_EINVALID);
}

/* What was read before an own write is not given after it. */
TEST_ON(test_own_rows_are_read_again, struct fixture *f, set_up, tear_down)
{
    static const int64_t tens[2] = {10, 10};
    int64_t data[20];
    mu_error error = {0};

    check(mu_variable_read_cached(f->variable, data, sizeof data, 3600 * 1000, SOON_MS,
                                  &error),
          &error);
    check(mu_variable_add_rows(f->variable, &(mu_rows){.first = 9, .count = 1}, tens,
                               sizeof tens, SOON_MS, &error),
          &error);
    check(mu_variable_read_cached(f->variable, data, sizeof data, 3600 * 1000, SOON_MS,
                                  &error),
          &error);
    assert_int_equal(data[19], 29);
}

TEST_PROGRAM()
