/* One partition's part of a table, as plain data: what rows are, who makes them, and that
 * a simple list behaves alike. */
#include "actors/ps/tables/table_ahead.h"
#include "tests/support/test.h"

#include <math.h>

enum { DIM = 3 };

#define SGD_OF_RATE_1                                       \
    {                                                       \
        .kind = MU__RULE_SGD, .numbers = { [MU__RATE] = 1 } \
    }

struct part {
    struct mu__table table;
    uint64_t used;
};

static const struct mu__table_form zeros_form = {.dim = DIM, .rule = SGD_OF_RATE_1};

static void part_init(struct part *part, const struct mu__table_form *form,
                      uint64_t bytes_max)
{
    part->used = 0;
    mu__table_init(&part->table, form,
                   &(struct mu__table_memory){bytes_max, &part->used, NULL}, 0x5eed);
}

static int part_set_up(void **state)
{
    struct part *part = malloc(sizeof *part);

    *state = part;
    if (part != NULL)
        part_init(part, &zeros_form, 1 << 30);
    return part == NULL;
}

static int part_tear_down(void **state)
{
    struct part *part = *state;

    mu__table_done(&part->table);
    assert_int_equal(part->used, 0);
    free(part);
    return 0;
}

/* Push a gradient that is the same in each column. */
static int push_one(struct part *part, uint64_t id, float gradient)
{
    float gradients[DIM] = {gradient, gradient, gradient};
    int rv;

    mu__table_unreserve(&part->table);
    rv = mu__table_reserve(&part->table, &id, 1, NULL);
    if (rv == 0)
        (void)mu__table_push(&part->table, &id, gradients, 1, &part->table.form.rule);
    return rv;
}

static float look_up_one(const struct part *part, uint64_t id, uint32_t column)
{
    float row[DIM];

    mu__table_lookup(&part->table, &id, 1, row);
    return row[column];
}

TEST_ON(test_a_lookup_makes_no_row, struct part *part, part_set_up, part_tear_down)
{
    assert_true(look_up_one(part, 7, 0) == 0);
    assert_int_equal(part->table.rows, 0);
    assert_int_equal(push_one(part, 7, 2), 0);
    assert_true(look_up_one(part, 7, 0) == -2);
    assert_true(look_up_one(part, 8, 0) == 0);
    assert_int_equal(part->table.rows, 1);
}

TEST_ON(test_every_id_is_one, struct part *part, part_set_up, part_tear_down)
{
    static const uint64_t ids[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, 256, 512};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_int_equal(push_one(part, ids[i], (float)(i + 1)), 0);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_true(look_up_one(part, ids[i], DIM - 1) == -(float)(i + 1));
    assert_int_equal(part->table.rows, 6);
}

TEST_ON(test_pushes_are_counted, struct part *part, part_set_up, part_tear_down)
{
    uint32_t pushes;

    assert_int_equal(push_one(part, 9, 1), 0);
    assert_int_equal(push_one(part, 9, 1), 0);
    memcpy(&pushes, mu__table_row_at(&part->table, 0) + sizeof(uint64_t), sizeof pushes);
    assert_int_equal(pushes, 2);
}

/* Where rows are is guessed before some are deleted: what is behind the last row, or in
 * the place of another, is not taken for them. */
TEST_ON(test_a_guessed_row_is_deleted, struct part *part, part_set_up, part_tear_down)
{
    const uint64_t ids[] = {1, 2, 3};
    const float gradients[3 * DIM] = {1, 1, 1, 2, 2, 2, 3, 3, 3};
    struct mu__table_ahead ahead;

    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(push_one(part, id, (float)id), 0);
    mu__ahead_begin(&ahead, true);
    assert_non_null(mu__ahead_add(&ahead, &part->table, (const uint8_t *)ids, 3));
    mu__ahead_fetch(&ahead, MU__AHEAD_ROWS);
    assert_true(mu__table_delete(&part->table, 1));
    assert_true(mu__table_delete(&part->table, 3));
    mu__table_unreserve(&part->table);
    assert_int_equal(mu__table_reserve(&part->table, ids, 3, NULL), 0);
    (void)mu__table_push(&part->table, ids, gradients, 3, &part->table.form.rule);
    mu__ahead_end(&ahead);
    assert_int_equal(part->table.rows, 3);
    assert_true(look_up_one(part, 1, 0) == -1);
    assert_true(look_up_one(part, 2, 0) == -4);
    assert_true(look_up_one(part, 3, 0) == -3);
}

TEST_ON(test_a_deleted_row_begins_anew, struct part *part, part_set_up, part_tear_down)
{
    assert_false(mu__table_delete(&part->table, 1));
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(push_one(part, id, (float)id), 0);
    assert_true(mu__table_delete(&part->table, 1));
    assert_false(mu__table_delete(&part->table, 1));
    assert_true(look_up_one(part, 1, 0) == 0);
    assert_true(look_up_one(part, 3, 0) == -3);
    assert_int_equal(*(const uint64_t *)(const void *)mu__table_row_at(&part->table, 0),
                     3);
    assert_int_equal(push_one(part, 1, 5), 0);
    assert_true(look_up_one(part, 1, 0) == -5);
}

/* ---- Rules ---- */

/* A row that comes late has its own first step: Adam's is as large as the rate, whatever
 * the gradient. */
TEST(test_a_row_has_its_own_step)
{
    const struct mu__table_form form = {.dim = DIM,
                                        .rule = mu__rule_defaults(MU__RULE_ADAM)};
    struct part part;

    part_init(&part, &form, 1 << 20);
    for (int i = 0; i < 100; i++)
        assert_int_equal(push_one(&part, 1, 3), 0);
    assert_int_equal(push_one(&part, 2, 5), 0);
    assert_true(fabs((double)look_up_one(&part, 2, 0) + 0.001) < 1e-8);
    assert_true(fabs((double)look_up_one(&part, 1, 0) + 0.1) < 1e-6);
    mu__table_done(&part.table);
}

TEST(test_slots_begin_as_the_rule_says)
{
    const struct mu__table_form form = {.dim = DIM,
                                        .rule = mu__rule_defaults(MU__RULE_ADAGRAD)};
    float slots[DIM];
    struct part part;

    part_init(&part, &form, 1 << 20);
    assert_int_equal(push_one(&part, 1, 2), 0);
    memcpy(slots, mu__table_row_at(&part.table, 0) + MU__TABLE_ROW_HEAD + sizeof slots,
           sizeof slots);
    for (int i = 0; i < DIM; i++)
        assert_true(fabs((double)slots[i] - 4.1) < 1e-6);
    mu__table_done(&part.table);
}

TEST(test_forms_that_are_refused)
{
    static const struct {
        uint32_t dim;
        uint32_t rule;
        struct mu__initial initial;
        const char *words;
    } rows[] = {
        {0, MU__RULE_SGD, {0}, "rows of 0 numbers"},
        {MU__TABLE_DIM_MAX + 1, MU__RULE_SGD, {0}, "expected 1 to 4096"},
        {1, MU__RULE_LAMB, {0}, "lamb is not for rows of tables"},
        {1, MU__RULE_SGD, {MU__INITIAL_KINDS, 0, 0, 0}, "are unknown"},
        {1, MU__RULE_SGD, {MU__INITIAL_UNIFORM, 0, 1, 0}, "the lower one first"},
        {1, MU__RULE_SGD, {MU__INITIAL_NORMAL, 0, 0, -1}, "a deviation from 0 on"},
    };
    mu_error error;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__table_form form = {.dim = rows[i].dim,
                                            .initial = rows[i].initial,
                                            .rule = mu__rule_defaults(rows[i].rule)};

        assert_int_equal(mu__table_form_check(&form, &error), -MU_EINVALID);
        assert_non_null(strstr(error.message, rows[i].words));
    }
}

/* ---- Duplicates ---- */

/* In two pieces, if there are several ids. */
static void sum_duplicates(const uint64_t *ids, const float *gradients, uint32_t count,
                           uint32_t dim, uint64_t *ret_ids, float *ret_sums)
{
    enum { MOST = 5 };
    struct mu__pushed_id pushed[MOST];
    struct mu__pushed_ids left = {pushed, count};
    uint8_t bytes[MOST * (sizeof(uint64_t) + 2 * sizeof(float))];
    uint32_t different;

    for (uint32_t i = 0; i < count; i++)
        pushed[i] = (struct mu__pushed_id){ids[i], i};
    different = mu__pushed_sort(pushed, count);
    for (uint32_t some; different > 0; different -= some) {
        uint32_t put;

        some = different > 1 ? different - 1 : 1;
        put = mu__pushed_sum(&left, some, gradients, dim, bytes);
        memcpy(ret_ids, bytes, some * sizeof *ret_ids);
        memcpy(ret_sums, bytes + some * sizeof *ret_ids, some * dim * sizeof *ret_sums);
        ret_ids += some;
        ret_sums += some * dim;
        left.items += put;
        left.count -= put;
    }
    assert_int_equal(left.count, 0);
}

TEST(test_many_ids_are_sorted)
{
    enum { COUNT = 100 };
    struct mu__pushed_id pushed[COUNT];

    for (uint32_t i = 0; i < COUNT; i++)
        pushed[i] = (struct mu__pushed_id){i * 37 % 50, i};
    assert_int_equal(mu__pushed_sort(pushed, COUNT), 50);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(pushed[i].id, i / 2);
        assert_int_equal(pushed[i].position * 37 % 50, i / 2);
        assert_int_equal(pushed[i].position >= COUNT / 2, i % 2);
    }
}

TEST(test_duplicates_are_summed)
{
    static const uint64_t ids[] = {5, 2, 5, 2, 9};
    static const float gradients[] = {1, 2, 10, 20, 100, 200, 1000, 2000, 7, 8};
    uint64_t sums_ids[5];
    float sums[10];

    assert_false(mu__table_is_sorted(ids, 5));
    sum_duplicates(ids, gradients, 5, 2, sums_ids, sums);
    assert_memory_equal(sums_ids, ((uint64_t[]){2, 5, 9}), 3 * sizeof ids[0]);
    assert_memory_equal(sums, ((float[]){1010, 2020, 101, 202, 7, 8}),
                        6 * sizeof sums[0]);
    assert_true(mu__table_is_sorted(sums_ids, 3));
}

TEST(test_sums_of_duplicates_are_rounded_in_their_order)
{
    static const uint64_t ids[] = {5, 5, 5};
    static const float gradients[] = {1, 1e8F, -1e8F};
    uint64_t sums_ids[3];
    float sums[3];

    sum_duplicates(ids, gradients, 3, 1, sums_ids, sums);
    assert_int_equal(sums_ids[0], 5);
    assert_true(sums[0] == 0);
}

/* ---- Bounds ---- */

TEST(test_a_push_beyond_a_bound_changes_nothing)
{
    static const struct {
        uint32_t rows_max;
        uint64_t bytes_max;
        const char *words;
    } rows[] = {
        {2, 1 << 20, "3 rows in a partition: at most 2"},
        {0, 100, "bytes more: the server holds 0 of at most 100"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__table_form form = {
            .dim = DIM, .rows_max = rows[i].rows_max, .rule = SGD_OF_RATE_1};
        const uint64_t ids[] = {1, 2, 3};
        struct part part;
        mu_error error;

        part_init(&part, &form, rows[i].bytes_max);
        assert_int_equal(mu__table_reserve(&part.table, ids, 3, &error), -MU_EEXHAUSTED);
        assert_non_null(strstr(error.message, rows[i].words));
        assert_int_equal(part.table.rows, 0);
        assert_true(part.used <= rows[i].bytes_max);
        mu__table_done(&part.table);
    }
}

/* The bound of memory: 1.15 times a row, its slots and 28 bytes. Two sizes of the index:
 * as it was just doubled, and just before. */
TEST(test_memory_has_its_bound)
{
    static const struct {
        uint32_t dim;
        uint32_t rule;
        uint32_t slots;
    } shapes[] = {{1, MU__RULE_SGD, 0},
                  {8, MU__RULE_SGD, 0},
                  {16, MU__RULE_ADAGRAD, 1},
                  {64, MU__RULE_ADAM, 2}};

    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const struct mu__table_form form = {.dim = shapes[s].dim,
                                            .rule = mu__rule_defaults(shapes[s].rule)};
        double limit = 28 + 4.0 * shapes[s].dim * (1 + shapes[s].slots);
        struct part part;

        part_init(&part, &form, 1 << 30);
        for (uint64_t id = 1; id <= 60000; id++) {
            mu__table_unreserve(&part.table);
            assert_int_equal(mu__table_reserve(&part.table, &id, 1, NULL), 0);
            (void)mu__table_push(&part.table, &id, (float[64]){0}, 1, &form.rule);
            if (id > 20000)
                assert_true((double)part.table.bytes < 1.15 * limit * (double)id);
        }
        mu__table_done(&part.table);
    }
}

/* ---- A simple list does the same ---- */

enum { MODEL_IDS = 400 };

struct model {
    bool there[MODEL_IDS];
    float value[MODEL_IDS];
};

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static void check_model(const struct part *part, const struct model *model)
{
    uint64_t ids[MODEL_IDS];
    float rows[MODEL_IDS * DIM];
    uint32_t count = 0;

    for (uint64_t i = 0; i < MODEL_IDS; i++)
        ids[i] = i * 256;
    mu__table_lookup(&part->table, ids, MODEL_IDS, rows);
    for (int i = 0; i < MODEL_IDS; i++) {
        assert_true(rows[i * DIM + 1] == (model->there[i] ? model->value[i] : 0));
        count += model->there[i];
    }
    assert_int_equal(part->table.rows, count);
}

static void step_model(struct part *part, struct model *model, uint64_t *seed)
{
    uint64_t i = random_next(seed) % MODEL_IDS;
    float gradient = (float)(random_next(seed) % 16);

    if (random_next(seed) % 3 == 0) {
        assert_int_equal(mu__table_delete(&part->table, i * 256), model->there[i]);
        model->there[i] = false;
        return;
    }
    assert_int_equal(push_one(part, i * 256, gradient), 0);
    model->value[i] = (model->there[i] ? model->value[i] : 0) - gradient;
    model->there[i] = true;
}

TEST_ON(test_a_simple_list_does_the_same, struct part *part, part_set_up, part_tear_down)
{
    struct model model = {.there = {false}};
    uint64_t seed = 11;

    for (int i = 0; i < 20000; i++) {
        step_model(part, &model, &seed);
        if (i % 500 == 0)
            check_model(part, &model);
    }
    check_model(part, &model);
}

/* The secret of the index changes nothing but the index. */
TEST(test_the_order_of_rows_is_that_of_the_operations)
{
    struct part parts[2];
    struct model model = {.there = {false}};
    uint64_t seeds[2] = {3, 3};

    for (int p = 0; p < 2; p++) {
        part_init(&parts[p], &zeros_form, 1 << 30);
        parts[p].table.secret += (uint64_t)p;
        for (int i = 0; i < 3000; i++)
            step_model(&parts[p], &model, &seeds[p]);
        memset(&model, 0, sizeof model);
    }
    assert_int_equal(parts[0].table.rows, parts[1].table.rows);
    for (uint32_t i = 0; i < parts[0].table.rows; i++)
        assert_memory_equal(mu__table_row_at(&parts[0].table, i),
                            mu__table_row_at(&parts[1].table, i),
                            parts[0].table.row_bytes);
    mu__table_done(&parts[0].table);
    mu__table_done(&parts[1].table);
}

/* A copy row by row, from the last one down, is the same. */
TEST_ON(test_a_copy_of_rows, struct part *part, part_set_up, part_tear_down)
{
    struct part copy;

    part_init(&copy, &zeros_form, 1 << 30);
    for (uint64_t id = 0; id < 1000; id++)
        assert_int_equal(push_one(part, id, (float)id), 0);
    for (uint32_t i = part->table.rows; i > 0; i--)
        assert_int_equal(mu__table_put_row(&copy.table,
                                           mu__table_row_at(&part->table, i - 1), NULL),
                         0);
    for (uint64_t id = 0; id < 1000; id++)
        assert_true(look_up_one(&copy, id, 2) == -(float)id);
    assert_int_equal(copy.table.rows, 1000);
    mu__table_done(&copy.table);
}

TEST_PROGRAM()
