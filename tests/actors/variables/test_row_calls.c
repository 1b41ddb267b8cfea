/* Calls about rows: which shards they touch, all of them at once, and that each write
 * counts once while its servers are lost. */
#include "tests/support/test.h"
#include "tests/support/var_net.h"

#include "actors/variables/row_actions.h"

/* Shards of 4, 3 and 3 rows. */
static const struct mu__shape ten = {MU_F32, 2, {10, 2}, 3};

static struct var_request open_ten(struct var_net *f)
{
    float content[20];

    for (int i = 0; i < 20; i++)
        content[i] = (float)i;
    return var_opened(f->alice, "v", ten, content);
}

static void assert_ten(struct var_net *f, struct var_request *r, const float *rows)
{
    float expected[20];

    for (int i = 0; i < 20; i++)
        expected[i] = rows[i / 2] + (float)(i % 2);
    r->call.rows = NULL;
    var_assert_reads(f->alice, r, expected);
}

/* ---- Ranges ---- */

static const struct range {
    uint64_t first;
    uint64_t count;
    unsigned requests;
} ranges[] = {{0, 1, 1}, {0, 4, 1}, {3, 1, 1}, {3, 2, 2}, {4, 3, 1},
              {3, 5, 3}, {9, 1, 1}, {6, 4, 2}, {0, 10, 3}};

TEST_ON(test_ranges_touch_their_shards, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = open_ten(f);

    var_aim(&r);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const struct mu__rows rows = {ranges[i].first, ranges[i].count, NULL};
        uint64_t reads = f->net.counts[MU__VAR_READ];
        float data[21];

        for (int j = 0; j < 21; j++)
            data[j] = -1;
        r.call.rows = &rows;
        r.call.target = data;
        var_ask_ok(f->alice, &r, MU__VARIABLE_ROWS_READ);
        assert_int_equal(f->net.counts[MU__VAR_READ] - reads, ranges[i].requests);
        for (uint64_t j = 0; j < 2 * rows.count; j++)
            assert_true(data[j] == (float)(2 * rows.first + j));
        assert_true(data[2 * rows.count] == -1.0F);
    }
}

TEST_ON(test_ranges_are_written, struct var_net *f, var_set_up, var_tear_down)
{
    static const float hundreds[10] = {100, 101, 200, 201, 300, 301, 400, 401, 500, 501};
    static const float tens[4] = {10, 10, 10, 10};
    const struct mu__rows five = {3, 5, NULL};
    const struct mu__rows two = {6, 2, NULL};
    struct var_request r = open_ten(f);
    uint64_t writes = f->net.counts[MU__VAR_WRITE];

    var_aim(&r);
    r.call.rows = &five;
    r.call.source = hundreds;
    var_ask_ok(f->alice, &r, MU__VARIABLE_ROWS_ASSIGN);
    assert_int_equal(f->net.counts[MU__VAR_WRITE] - writes, 3);
    assert_ten(f, &r, (const float[]){0, 2, 4, 100, 200, 300, 400, 500, 16, 18});
    r.call.rows = &two;
    r.call.source = tens;
    var_ask_ok(f->alice, &r, MU__VARIABLE_ROWS_ADD);
    assert_ten(f, &r, (const float[]){0, 2, 4, 100, 200, 300, 410, 510, 16, 18});
}

/* ---- Lists ---- */

/* The lists that calls need, of some rows. */
struct listed {
    struct mu__row_list list;
    struct mu__rows rows;
    uint8_t *packed;
};

static void list_rows(struct listed *l, const struct mu__shape *shape,
                      const int64_t *rows, uint64_t count, const void *contents)
{
    assert_int_equal(mu__row_list_init(&l->list, shape, rows, count, NULL), 0);
    l->rows = (struct mu__rows){.list = &l->list};
    l->packed = contents == NULL ? NULL : mu__row_list_pack(&l->list, shape, contents);
}

static void free_listed(struct listed *l)
{
    mu__row_list_done(&l->list);
    free(l->packed);
}

TEST_ON(test_a_list_is_read_in_its_order, struct var_net *f, var_set_up, var_tear_down)
{
    static const int64_t numbers[] = {9, 3, 3, 0, 8};
    struct var_request r = open_ten(f);
    uint64_t reads = f->net.counts[MU__VAR_READ];
    struct listed l;
    float data[10];

    var_aim(&r);
    list_rows(&l, &ten, numbers, 5, NULL);
    r.call.rows = &l.rows;
    r.call.target = data;
    var_ask_ok(f->alice, &r, MU__VARIABLE_GATHER);
    for (int i = 0; i < 10; i++)
        assert_true(data[i] == (float)(2 * numbers[i / 2] + i % 2));
    assert_int_equal(f->net.counts[MU__VAR_READ] - reads, 2);
    free_listed(&l);
}

/* Of equal rows the last one stays, or all are added. */
TEST_ON(test_a_list_is_written_in_its_order, struct var_net *f, var_set_up, var_tear_down)
{
    static const int64_t numbers[] = {3, 9, 3, 0};
    static const float contents[] = {100, 101, 200, 201, 300, 301, 400, 401};
    static const float tens[] = {10, 10, 20, 20, 30, 30, 40, 40};
    struct var_request r = open_ten(f);
    struct listed l;

    var_aim(&r);
    list_rows(&l, &ten, numbers, 4, contents);
    r.call.rows = &l.rows;
    r.call.source = l.packed;
    var_ask_ok(f->alice, &r, MU__VARIABLE_SCATTER_UPDATE);
    assert_ten(f, &r, (const float[]){400, 2, 4, 300, 8, 10, 12, 14, 16, 200});
    free_listed(&l);
    list_rows(&l, &ten, numbers, 4, tens);
    r.call.rows = &l.rows;
    r.call.source = l.packed;
    var_ask_ok(f->alice, &r, MU__VARIABLE_SCATTER_ADD);
    assert_ten(f, &r, (const float[]){440, 2, 4, 340, 8, 10, 12, 14, 16, 220});
    free_listed(&l);
}

/* ---- All shards at once ---- */

/* Six shards of one piece each. */
static const struct mu__shape six = {MU_F32, 2, {6, 1024}, 6};

static const struct whole {
    int operation;
    uint16_t kind;
} wholes[] = {
    {MU__VARIABLE_READ, MU__VAR_READ},        {MU__VARIABLE_ASSIGN, MU__VAR_WRITE},
    {MU__VARIABLE_ADD, MU__VAR_WRITE},        {MU__VARIABLE_VERSION, MU__VAR_READ},
    {MU__VARIABLE_GATHER, MU__VAR_READ},      {MU__VARIABLE_SCATTER_ADD, MU__VAR_WRITE},
    {MU__VARIABLE_ROWS_READ, MU__VAR_READ},   {MU__VARIABLE_ROWS_ADD, MU__VAR_WRITE},
    {MU__VARIABLE_ROWS_ASSIGN, MU__VAR_WRITE}};

/* Nothing has been answered, and each shard has been asked. */
TEST_ON(test_all_shards_are_asked_at_once, struct var_net *f, var_set_up, var_tear_down)
{
    static const int64_t numbers[] = {5, 4, 3, 2, 1, 0};
    const struct mu__rows range = {0, 6, NULL};
    float *content = var_numbers(6 * 1024, 1);
    float *target = var_numbers(6 * 1024, 1);
    struct var_request r = var_opened(f->alice, "v", six, content);
    struct listed l;

    var_aim(&r);
    list_rows(&l, &six, numbers, 6, content);
    r.call.target = target;
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        const int operation = wholes[i].operation;
        bool is_list = operation >= MU__VARIABLE_GATHER;
        uint64_t before = f->net.counts[wholes[i].kind];

        r.call.rows = operation < MU__VARIABLE_ROWS_READ ? NULL
                      : is_list                          ? &l.rows
                                                         : &range;
        r.call.source = is_list ? l.packed : (const void *)content;
        for (size_t j = 0; j < 3; j++)
            f->servers[j]->deaf = true;
        var_post(f->alice, &r, operation, VAR_NEVER);
        net_settle(&f->net);
        assert_false(r.done);
        assert_int_equal(f->net.counts[wholes[i].kind] - before, 6);
        for (size_t j = 0; j < 3; j++)
            f->servers[j]->deaf = false;
        for (size_t j = 0; j < 3; j++) {
            net_link_down(f->alice, f->servers[j]);
            net_link_up(f->alice, f->servers[j]);
        }
        net_settle(&f->net);
        assert_true(r.done);
        assert_int_equal(r.call.call.code, 0);
    }
    free_listed(&l);
    free(content);
    free(target);
}

TEST_PROGRAM()
