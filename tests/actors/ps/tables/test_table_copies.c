/* Rows as they were at one time, while they change, come and go; and rows by columns. */
#include "actors/ps/tables/copies/table_columns.h"
#include "actors/ps/tables/copies/table_copies.h"
#include "tests/support/test.h"

enum { DIM = 2, IDS = 200, ROUNDS = 40, STEPS = 100 };

struct fixture {
    struct mu__table table;
    uint64_t used;
    uint64_t copied;
    struct mu__table_copy_memory memory;
    uint32_t random;
};

static int set_up(void **state)
{
    const struct mu__table_form form = {.dim = DIM,
                                        .rule = mu__rule_defaults(MU__RULE_ADAM)};
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    if (f == NULL)
        return -1;
    mu__table_init(&f->table, &form, &(struct mu__table_memory){1 << 24, &f->used, NULL},
                   0x5eed);
    f->table.slab_rows = 4;
    f->memory = (struct mu__table_copy_memory){1 << 24, &f->copied};
    f->random = 1;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->copied, 0);
    mu__table_done(&f->table);
    free(f);
    return 0;
}

static uint32_t below(struct fixture *f, uint32_t end)
{
    f->random = f->random * 1664525 + 1013904223;
    return (f->random >> 8) % end;
}

static void push_id(struct fixture *f, uint64_t id)
{
    const float gradients[DIM] = {1, 2};

    mu__table_unreserve(&f->table);
    assert_int_equal(mu__table_reserve(&f->table, &id, 1, NULL), 0);
    (void)mu__table_push(&f->table, &id, gradients, 1, &f->table.form.rule);
}

/* A push, most of the time, or a delete, or of all rows. */
static void change(struct fixture *f)
{
    uint32_t what = below(f, 1000);

    if (what == 0)
        mu__table_clear(&f->table);
    else if (what < 300)
        (void)mu__table_delete(&f->table, below(f, IDS));
    else
        push_id(f, below(f, IDS));
}

static unsigned char *all_rows(const struct fixture *f)
{
    unsigned char *rows = malloc((size_t)f->table.rows * f->table.row_bytes + 1);

    assert_non_null(rows);
    for (uint32_t i = 0; i < f->table.rows; i++)
        memcpy(rows + (size_t)i * f->table.row_bytes, mu__table_row_at(&f->table, i),
               f->table.row_bytes);
    return rows;
}

static void read_some(struct fixture *f, struct mu__table_copy *copy,
                      const unsigned char *expected)
{
    uint32_t count = below(f, copy->rows - copy->taken + 1);
    unsigned char *rows = malloc((size_t)count * f->table.row_bytes + 1);

    assert_non_null(rows);
    mu__table_copy_read(copy, count, rows);
    assert_true(memcmp(rows, expected + (size_t)copy->taken * f->table.row_bytes,
                       (size_t)count * f->table.row_bytes) == 0);
    mu__table_copy_take(copy, count);
    free(rows);
}

TEST_ON(test_what_is_read_is_as_it_was, struct fixture *f, set_up, tear_down)
{
    int kept = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct mu__table_copy copy;
        unsigned char *expected;

        for (int step = 0; step < STEPS; step++)
            change(f);
        expected = all_rows(f);
        assert_int_equal(mu__table_copy_begin(&copy, &f->table, NULL, &f->memory), 0);
        for (int step = 0; step < STEPS; step++) {
            change(f);
            if (step % 20 == 0)
                read_some(f, &copy, expected);
        }
        kept += f->copied > 0;
        assert_true(f->copied <= (uint64_t)(copy.rows + 4) * f->table.row_bytes);
        mu__table_copy_end(&copy);
        assert_int_equal(f->copied, 0);
        free(expected);
    }
    assert_in_range(kept, 1, ROUNDS);
}

/* Two at a time, each with its own copies. */
TEST_ON(test_copies_do_not_share, struct fixture *f, set_up, tear_down)
{
    struct mu__table_copy copies[2];
    unsigned char row[2][64];

    push_id(f, 1);
    assert_int_equal(mu__table_copy_begin(&copies[0], &f->table, NULL, &f->memory), 0);
    push_id(f, 1);
    assert_int_equal(mu__table_copy_begin(&copies[1], &f->table, NULL, &f->memory), 0);
    push_id(f, 1);
    for (int i = 0; i < 2; i++)
        mu__table_copy_read(&copies[i], 1, row[i]);
    assert_int_equal(row[0][sizeof(uint64_t)], 1);
    assert_int_equal(row[1][sizeof(uint64_t)], 2);
    mu__table_copy_end(&copies[0]);
    mu__table_copy_end(&copies[1]);
}

/* No write fails for a copy: the copy does. */
TEST_ON(test_without_memory_a_copy_fails, struct fixture *f, set_up, tear_down)
{
    struct mu__table_copy copy;

    for (uint64_t id = 0; id < 12; id++)
        push_id(f, id);
    f->memory.bytes_max = 2ULL * 4 * f->table.row_bytes;
    assert_int_equal(mu__table_copy_begin(&copy, &f->table, NULL, &f->memory), 0);
    push_id(f, 0);
    push_id(f, 4);
    assert_int_equal(copy.refused, 0);
    push_id(f, 8);
    assert_int_equal(copy.refused, 4ULL * f->table.row_bytes);
    assert_int_equal(f->copied, 0);
    push_id(f, 0);
    assert_int_equal(f->copied, 0);
    mu__table_copy_end(&copy);
}

/* Rows that were taken may change, and those that came later. */
TEST_ON(test_what_is_taken_is_not_copied, struct fixture *f, set_up, tear_down)
{
    struct mu__table_copy copy;

    for (uint64_t id = 0; id < 8; id++)
        push_id(f, id);
    assert_int_equal(mu__table_copy_begin(&copy, &f->table, NULL, &f->memory), 0);
    mu__table_copy_take(&copy, 4);
    push_id(f, 0);
    push_id(f, 8);
    assert_int_equal(f->copied, 0);
    push_id(f, 7);
    assert_int_equal(f->copied, 4ULL * f->table.row_bytes);
    mu__table_copy_end(&copy);
}

/* Of rows that have changed since a mark, wherever they are, each is read once. */
TEST_ON(test_changed_rows_only, struct fixture *f, set_up, tear_down)
{
    static const uint64_t changed[] = {0, 3, 62, 63, 64, 127, 191, 192, IDS - 1};
    enum { CHANGED = sizeof changed / sizeof changed[0] };
    struct mu__table_copy copy;
    unsigned char row[64];

    for (uint64_t id = 0; id < IDS; id++)
        push_id(f, id);
    mu__marks_set(&f->table.marks, 0, 7, f->table.rows);
    for (size_t i = CHANGED; i > 0; i--)
        push_id(f, changed[i - 1]);
    assert_int_equal(mu__table_copy_begin(&copy, &f->table,
                                          mu__marks_find(&f->table.marks, 7), &f->memory),
                     0);
    assert_int_equal(copy.rows, CHANGED);
    for (size_t i = 0; i < CHANGED; i++) {
        mu__table_copy_read(&copy, 1, row);
        assert_memory_equal(row, mu__table_row_at(&f->table, (uint32_t)changed[i]),
                            f->table.row_bytes);
        mu__table_copy_take(&copy, 1);
    }
    mu__table_copy_end(&copy);
}

/* ---- Columns ---- */

static void assert_columns(uint32_t rule, const char *const *names, unsigned count)
{
    const struct mu__table_form form = {.dim = DIM, .rule = mu__rule_defaults(rule)};
    struct mu__table_column columns[MU__TABLE_COLUMNS_MAX];
    uint32_t bytes = 0;

    assert_int_equal(mu__table_columns(&form, columns), count);
    for (unsigned i = 0; i < count; i++) {
        assert_string_equal(columns[i].name, names[i]);
        assert_int_equal(columns[i].offset, bytes);
        bytes += columns[i].bytes;
    }
    assert_int_equal(bytes, mu__table_row_bytes(&form));
}

TEST(test_columns_are_all_of_a_row)
{
    static const char *const adam[] = {"ids", "pushes", "", "adam.momentum",
                                       "adam.velocity"};
    static const char *const rowwise[] = {"ids", "pushes", "",
                                          "rowwise_adagrad.accumulator"};

    assert_columns(MU__RULE_SGD, adam, 3);
    assert_columns(MU__RULE_ADAM, adam, 5);
    assert_columns(MU__RULE_ROWWISE_ADAGRAD, rowwise, 4);
}

TEST_ON(test_columns_there_and_back, struct fixture *f, set_up, tear_down)
{
    struct mu__table_column columns[MU__TABLE_COLUMNS_MAX];
    unsigned count = mu__table_columns(&f->table.form, columns);
    unsigned char numbers[IDS * 8 * DIM];
    unsigned char *rows;
    unsigned char *back;
    size_t bytes;

    for (int step = 0; step < STEPS; step++)
        push_id(f, below(f, IDS));
    rows = all_rows(f);
    bytes = (size_t)f->table.rows * f->table.row_bytes;
    back = calloc(1, bytes);
    assert_non_null(back);
    for (unsigned i = 0; i < count; i++) {
        mu__table_column_take(&columns[i], rows, f->table.row_bytes, f->table.rows,
                              numbers);
        assert_true(mu__table_column_put(&columns[i], numbers, f->table.rows, back,
                                         f->table.row_bytes));
    }
    assert_memory_equal(back, rows, bytes);
    memset(numbers, 0x7f, sizeof numbers);
    assert_false(mu__table_column_put(&columns[1], numbers, 1, back, f->table.row_bytes));
    free(rows);
    free(back);
}

TEST_PROGRAM()
