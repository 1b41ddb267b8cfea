/* What a run may write: checks, shards and bounds of mu_run_assign, mu_run_add, those of
 * rows, and mu_run_apply. No node runs: a run and variables that are made by hand are
 * enough. */
#include "actors/ps/rows/row_list.h"
#include "actors/ps/rows/rows.h"
#include "actors/worker/function_run.h"
#include "api/internal.h"
#include "tests/support/test.h"

struct fixture {
    char nodes[2]; /* only their addresses are looked at */
    struct mu_run run;
    mu_variable *variable; /* "w", whose home is server 2 of 3 */
};

static mu_node *node_of(struct fixture *f, size_t i)
{
    return (mu_node *)(void *)&f->nodes[i];
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_variable *v = calloc(1, sizeof *v);
    const struct mu__shape shape = {MU_F32, 2, {10, 2}, 4};
    const uint64_t ids[4] = {100, 101, 102, 103};

    if (f == NULL || v == NULL) {
        free(f);
        free(v);
        return -1;
    }
    v->node = node_of(f, 0);
    v->opened = mu__opened_variable_new("w", &shape, 3);
    assert_non_null(v->opened);
    mu__opened_variable_store(v->opened, ids);
    f->variable = v;
    f->run.node = node_of(f, 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu__effects_clear(&f->run.effects);
    free(f->run.text);
    mu__opened_variable_unref(f->variable->opened);
    free(f->variable);
    free(f);
    return 0;
}

static const float content[20] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/* The next write is that of this shard; returns the one behind it. */
static const struct mu__effect *assert_shard(const struct mu__effect *effect,
                                             uint32_t shard, uint32_t operation)
{
    static const struct {
        uint64_t offset;
        uint64_t bytes;
    } cuts[] = {{0, 24}, {24, 24}, {48, 16}, {64, 16}};

    assert_non_null(effect);
    assert_int_equal(effect->partition, mu__partition_of(mu__view_str("w"), shard));
    assert_int_equal(effect->variable, 100 + shard);
    assert_int_equal(effect->operation, operation);
    assert_int_equal(effect->size, cuts[shard].bytes);
    assert_memory_equal(effect->data, (const char *)content + cuts[shard].offset,
                        effect->size);
    return effect->next;
}

TEST_ON(test_shards, struct fixture *f, set_up, tear_down)
{
    const mu_optimizer plain = mu_optimizer_make(MU_OPTIMIZER_SGD, 0.5);
    const mu_optimizer heavy = mu_optimizer_make(MU_OPTIMIZER_MOMENTUM, 0.25);
    static const uint32_t operations[] = {MU__WRITE_ASSIGN, MU__WRITE_ADD,
                                          MU__WRITE_GRADIENT, MU__WRITE_GRADIENT};
    struct mu__rule rule;
    const struct mu__effect *effect;

    assert_int_equal(mu_run_assign(&f->run, f->variable, content, 80), 0);
    assert_int_equal(mu_run_add(&f->run, f->variable, content, 80), 0);
    assert_int_equal(mu_run_apply(&f->run, f->variable, content, 80, &plain), 0);
    assert_int_equal(mu_run_apply(&f->run, f->variable, content, 80, &heavy), 0);
    effect = f->run.effects.first;
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t shard = 0; shard < 4; shard++) {
            assert_int_equal(effect->rule.size > 0, i >= 2);
            effect = assert_shard(effect, shard, operations[i]);
        }
    }
    assert_null(effect);
    effect = f->run.effects.last;
    assert_true(mu__rule_unpack(effect->rule.data, effect->rule.size, &rule));
    assert_int_equal(rule.kind, MU__RULE_MOMENTUM);
    assert_true(rule.numbers[MU__RATE] >= 0.25 && rule.numbers[MU__RATE] <= 0.25);
    assert_true(rule.numbers[MU__MOMENTUM] >= 0.9);
    assert_null(f->run.text);
}

static void assert_refused(struct fixture *f, int rv, int code, const char *words)
{
    assert_int_equal(rv, code);
    assert_string_equal(f->run.text, words);
    assert_null(f->run.effects.first);
    assert_null(f->run.effects.last);
    assert_int_equal(f->run.effects.bytes, 0);
}

TEST_ON(test_refused, struct fixture *f, set_up, tear_down)
{
    const mu_optimizer optimizer = mu_optimizer_make(MU_OPTIMIZER_SGD, 0.5);

    assert_refused(f, mu_run_assign(&f->run, f->variable, content, 79), -MU_EINVALID,
                   "variable w: a buffer of 79 bytes: expected 80");
    assert_refused(f, mu_run_add(&f->run, f->variable, NULL, 80), -MU_EINVALID,
                   "variable w: the buffer is NULL");
    f->variable->opened->shape.dtype = MU_I32;
    assert_refused(f, mu_run_apply(&f->run, f->variable, content, 80, &optimizer),
                   -MU_EINVALID, "variable w: int32 takes no gradients");
    f->variable->opened->shape.dtype = MU_BOOL;
    assert_refused(f, mu_run_add(&f->run, f->variable, content, 20), -MU_EINVALID,
                   "variable w is bool, which does not add");
    f->run.node = node_of(f, 1);
    assert_refused(f, mu_run_assign(&f->run, f->variable, content, 20), -MU_EINVALID,
                   "variable w was opened on another node than the run's");
}

/* A write that does not fit is taken back with all of its shards. */
TEST_ON(test_bound, struct fixture *f, set_up, tear_down)
{
    const size_t bytes = 60 << 20;
    char *buffer = calloc(1, bytes);
    struct mu__effect *last;

    assert_non_null(buffer);
    f->variable->opened->shape = (struct mu__shape){MU_U8, 1, {bytes}, 4};
    assert_int_equal(mu_run_add(&f->run, f->variable, buffer, bytes), 0);
    last = f->run.effects.last;
    f->variable->opened->shape = (struct mu__shape){MU_U8, 1, {8 << 20}, 4};
    assert_int_equal(mu_run_add(&f->run, f->variable, buffer, 8 << 20), -MU_EEXHAUSTED);
    assert_string_equal(f->run.text,
                        "variable w: 8388608 bytes more are too many for one run, which "
                        "may write 67108864");
    assert_ptr_equal(f->run.effects.last, last);
    assert_null(last->next);
    assert_int_equal(f->run.effects.bytes, bytes);
    f->variable->opened->shape = (struct mu__shape){MU_U8, 1, {4 << 20}, 4};
    assert_int_equal(mu_run_add(&f->run, f->variable, buffer, 4 << 20), 0);
    free(buffer);
}

/* ---- Rows: shards have 3, 3, 2 and 2 ---- */

TEST_ON(test_a_range_is_cut_by_shard, struct fixture *f, set_up, tear_down)
{
    static const struct {
        uint32_t shard;
        uint64_t offset;
        uint64_t bytes;
    } cuts[] = {{0, 16, 8}, {1, 0, 24}, {2, 0, 8}};
    const mu_rows rows = {.first = 2, .count = 5};
    const struct mu__effect *effect;
    size_t at = 0;

    assert_int_equal(mu_run_add_rows(&f->run, f->variable, &rows, content, 40), 0);
    effect = f->run.effects.first;
    for (size_t i = 0; i < 3; i++, effect = effect->next) {
        assert_int_equal(effect->operation, MU__WRITE_ROWS_ADD);
        assert_int_equal(effect->variable, 100 + cuts[i].shard);
        assert_int_equal(effect->partition,
                         mu__partition_of(mu__view_str("w"), cuts[i].shard));
        assert_int_equal(effect->offset, cuts[i].offset);
        assert_int_equal(effect->size, cuts[i].bytes);
        assert_memory_equal(effect->data, (const char *)content + at, effect->size);
        at += cuts[i].bytes;
    }
    assert_null(effect);
}

TEST_ON(test_a_list_is_cut_by_shard, struct fixture *f, set_up, tear_down)
{
    static const int64_t list[3] = {9, 0, 8};
    const mu_rows rows = {.count = 3, .list = list};
    const struct mu__effect *effect;

    assert_int_equal(mu_run_assign_rows(&f->run, f->variable, &rows, content, 24), 0);
    effect = f->run.effects.first;
    assert_int_equal(effect->operation, MU__WRITE_SCATTER_UPDATE);
    assert_int_equal(effect->variable, 100);
    assert_int_equal(effect->size, 16);
    assert_int_equal(mu__row_number(effect->data, 0), 0);
    assert_memory_equal(effect->data + 8, content + 2, 8);
    effect = effect->next;
    assert_int_equal(effect->variable, 103);
    assert_int_equal(effect->size, 32);
    assert_int_equal(mu__row_number(effect->data, 0), 1);
    assert_int_equal(mu__row_number(effect->data, 1), 0);
    assert_memory_equal(effect->data + 16, content, 8);
    assert_memory_equal(effect->data + 24, content + 4, 8);
    assert_null(effect->next);
}

static const struct refused_rows {
    uint64_t first;
    uint64_t count;
    int64_t listed; /* 0: a range */
    size_t bytes;
    int code;
    const char *words;
} refused_rows[] = {
    {6, 5, 0, 40, -MU_ERANGE, "variable w: 5 rows from 6 on: it has 10"},
    {11, 0, 0, 0, -MU_ERANGE, "variable w: 0 rows from 11 on: it has 10"},
    {2, UINT64_MAX, 0, 40, -MU_ERANGE,
     "variable w: 18446744073709551615 rows from 2 on: it has 10"},
    {0, 5, 0, 39, -MU_EINVALID, "variable w: a buffer of 39 bytes for 5 rows of 8"},
    {0, 5, 0, 48, -MU_EINVALID, "variable w: a buffer of 48 bytes for 5 rows of 8"},
    {0, 1, 10, 8, -MU_ERANGE, "variable w: row 10 at 0 of the list: expected 0 to 9"},
    {0, 1, -1, 8, -MU_ERANGE, "variable w: row -1 at 0 of the list: expected 0 to 9"},
};

TEST_ON(test_refused_rows, struct fixture *f, set_up, tear_down)
{
    const mu_rows one = {.count = 1};

    for (size_t i = 0; i < sizeof refused_rows / sizeof refused_rows[0]; i++) {
        const struct refused_rows *row = &refused_rows[i];
        const mu_rows rows = {.first = row->first,
                              .count = row->count,
                              .list = row->listed == 0 ? NULL : &row->listed};

        assert_refused(
            f, mu_run_assign_rows(&f->run, f->variable, &rows, content, row->bytes),
            row->code, row->words);
    }
    assert_refused(f, mu_run_add_rows(&f->run, f->variable, NULL, content, 8),
                   -MU_EINVALID, "a write to no rows");
    assert_refused(
        f, mu_run_update_rows(&f->run, f->variable, 5, &one, content, sizeof content[0]),
        -MU_EINVALID, "variable w: no update 5 of rows");
    assert_refused(f, mu_run_update_rows(&f->run, NULL, MU_ROWS_MIN, &one, content, 8),
                   -MU_EINVALID, "a write to no rows");
    f->variable->opened->shape.dtype = MU_BOOL;
    assert_refused(
        f, mu_run_update_rows(&f->run, f->variable, MU_ROWS_MIN, &one, content, 2),
        -MU_EINVALID, "variable w is bool, which does not calculate");
    assert_refused(f, mu_run_add_rows(&f->run, f->variable, &one, content, 2),
                   -MU_EINVALID, "variable w is bool, which does not add");
    f->variable->opened->shape.rank = 0;
    assert_refused(f, mu_run_assign_rows(&f->run, f->variable, &one, content, 1),
                   -MU_EINVALID, "variable w is a number, and has no rows");
    f->variable->opened->shape = (struct mu__shape){MU_U8, 2, {4, 1 << 20}, 1};
    assert_refused(
        f,
        mu_run_assign_rows(&f->run, f->variable,
                           &(mu_rows){.count = 1, .list = &(int64_t){0}}, content,
                           1 << 20),
        -MU_ERANGE,
        "variable w: its rows have 1048576 bytes: those of a list have at most "
        "1048568");
}

TEST_ON(test_rows_beyond_the_bound, struct fixture *f, set_up, tear_down)
{
    const size_t row_bytes = 1 << 19;
    static int64_t list[120];
    char *buffer = calloc(120, row_bytes);
    mu_rows rows = {.count = 120, .list = list};
    struct mu__effect *last;

    assert_non_null(buffer);
    f->variable->opened->shape = (struct mu__shape){MU_U8, 2, {10, row_bytes}, 4};
    assert_int_equal(
        mu_run_add_rows(&f->run, f->variable, &rows, buffer, 120 * row_bytes), 0);
    last = f->run.effects.last;
    rows.count = 10;
    assert_int_equal(mu_run_add_rows(&f->run, f->variable, &rows, buffer, 10 * row_bytes),
                     -MU_EEXHAUSTED);
    assert_string_equal(f->run.text, "variable w: 10 rows more are too many for one run, "
                                     "which may write 67108864 bytes");
    assert_ptr_equal(f->run.effects.last, last);
    free(buffer);
}

TEST_PROGRAM()
