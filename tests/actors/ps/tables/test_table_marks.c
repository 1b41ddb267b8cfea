/* Which rows have changed since a mark: a list of ids says the same. */
#include "actors/ps/tables/copies/table_copies.h"
#include "tests/support/test.h"

enum { IDS = 300, ROUNDS = 30, STEPS = 150 };

struct fixture {
    struct mu__table table;
    uint64_t used;
    uint32_t random;
    bool is_changed[IDS]; /* since the mark */
    bool is_deleted[IDS];
};

static int set_up(void **state)
{
    const struct mu__table_form form = {.dim = 1,
                                        .rule = mu__rule_defaults(MU__RULE_SGD)};
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    if (f == NULL)
        return -1;
    mu__table_init(&f->table, &form, &(struct mu__table_memory){1 << 24, &f->used, NULL},
                   1);
    f->random = 1;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

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
    const float one = 1;

    mu__table_unreserve(&f->table);
    assert_int_equal(mu__table_reserve(&f->table, &id, 1, NULL), 0);
    (void)mu__table_push(&f->table, &id, &one, 1, &f->table.form.rule);
    f->is_changed[id] = true;
}

static void delete_id(struct fixture *f, uint64_t id)
{
    if (!mu__table_delete(&f->table, id))
        return;
    f->is_changed[id] = false;
    f->is_deleted[id] = true;
}

static void set_mark(struct fixture *f, uint64_t since, uint64_t number)
{
    mu__marks_set(&f->table.marks, since, number, f->table.rows);
}

static void forget_changes(struct fixture *f)
{
    memset(f->is_changed, 0, sizeof f->is_changed);
    memset(f->is_deleted, 0, sizeof f->is_deleted);
}

static void assert_marked(const struct fixture *f, uint64_t number)
{
    const struct mu__table_mark *mark = mu__marks_find(&f->table.marks, number);
    bool is_deleted[IDS] = {false};
    uint32_t changed = 0;

    assert_non_null(mark);
    for (uint32_t row = 0; row < f->table.rows; row++) {
        uint64_t id;

        memcpy(&id, mu__table_row_at(&f->table, row), sizeof id);
        assert_int_equal(mu__mark_has(mark, row), f->is_changed[id]);
        changed += f->is_changed[id];
    }
    assert_int_equal(mu__table_count_changed(&f->table, mark), changed);
    for (uint32_t i = 0; i < mark->deleted_count; i++)
        is_deleted[mark->deleted[i]] = true;
    assert_memory_equal(is_deleted, f->is_deleted, sizeof is_deleted);
}

TEST_ON(test_a_list_of_ids_says_the_same, struct fixture *f, set_up, tear_down)
{
    set_mark(f, 0, 1);
    for (uint64_t round = 1; round < ROUNDS; round++) {
        for (int step = 0; step < STEPS; step++)
            if (below(f, 3) == 0)
                delete_id(f, below(f, IDS));
            else
                push_id(f, below(f, IDS));
        assert_marked(f, round);
        set_mark(f, round, round + 1);
        forget_changes(f);
    }
}

/* The one that was asked for stays until the next is asked for. */
TEST_ON(test_two_marks_are_known, struct fixture *f, set_up, tear_down)
{
    push_id(f, 1);
    set_mark(f, 0, 10);
    forget_changes(f);
    push_id(f, 2);
    set_mark(f, 10, 11);
    push_id(f, 3);
    assert_marked(f, 10);
    set_mark(f, 10, 12);
    assert_marked(f, 10);
    assert_null(mu__marks_find(&f->table.marks, 11));
    push_id(f, 4);
    assert_marked(f, 10);
    set_mark(f, 12, 13);
    assert_null(mu__marks_find(&f->table.marks, 10));
    assert_non_null(mu__marks_find(&f->table.marks, 12));
    set_mark(f, 99, 14);
    assert_null(mu__marks_find(&f->table.marks, 12));
    assert_non_null(mu__marks_find(&f->table.marks, 14));
    assert_null(mu__marks_find(&f->table.marks, 0));
}

/* Deletions are bounded: then the mark is not known. */
TEST_ON(test_too_many_deletions_end_a_mark, struct fixture *f, set_up, tear_down)
{
    set_mark(f, 0, 1);
    for (uint32_t i = 0; i < MU__MARK_DELETED_MAX; i++) {
        push_id(f, i % IDS);
        delete_id(f, i % IDS);
    }
    assert_non_null(mu__marks_find(&f->table.marks, 1));
    push_id(f, 0);
    delete_id(f, 0);
    assert_null(mu__marks_find(&f->table.marks, 1));
}

TEST_ON(test_a_clear_ends_all_marks, struct fixture *f, set_up, tear_down)
{
    set_mark(f, 0, 1);
    push_id(f, 1);
    mu__table_clear(&f->table);
    assert_null(mu__marks_find(&f->table.marks, 1));
}

TEST_PROGRAM()
