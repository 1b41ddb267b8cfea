/* Writes of rows while a server is lost, at each of their events: each counts once. */
#include "tests/support/test.h"
#include "tests/support/var_net.h"

#include "actors/variables/row_actions.h"

/* Rows of 4 KiB in three shards; a list of all of them, some twice, is two pieces for
 * each shard. */
enum { ROWS = 900, COLUMNS = 1024, LISTED = 1200, COUNT = ROWS * COLUMNS };

static const struct mu__shape shape = {MU_F32, 2, {ROWS, COLUMNS}, 3};

struct story {
    float *content;
    float *written;
    float *expected;
    struct mu__row_list list;
    uint8_t *packed;
    struct mu__rows rows;
};

static float result_of(int operation, float x, float written)
{
    switch (operation) {
    case MU__VARIABLE_SCATTER_ADD:
        return x + written;
    case MU__VARIABLE_SCATTER_MUL:
        return x * written;
    default:
        return written;
    }
}

static void begin_story(struct story *s, int operation)
{
    static int64_t numbers[LISTED];

    s->content = var_numbers(COUNT, 1);
    s->expected = var_numbers(COUNT, 1);
    s->written = var_numbers((size_t)LISTED * COLUMNS, 3);
    for (int i = 0; i < LISTED; i++)
        numbers[i] = i * 7 % ROWS;
    assert_int_equal(mu__row_list_init(&s->list, &shape, numbers, LISTED, NULL), 0);
    s->packed = mu__row_list_pack(&s->list, &shape, s->written);
    assert_non_null(s->packed);
    if (operation == MU__VARIABLE_ROWS_ADD) {
        s->rows = (struct mu__rows){100, 700, NULL};
        for (int i = 0; i < 700 * COLUMNS; i++)
            s->expected[100 * COLUMNS + i] += s->written[i];
        return;
    }
    s->rows = (struct mu__rows){.list = &s->list};
    for (int i = 0; i < LISTED * COLUMNS; i++) {
        float *to = &s->expected[numbers[i / COLUMNS] * COLUMNS + i % COLUMNS];

        *to = result_of(operation, *to, s->written[i]);
    }
}

static void end_story(struct story *s)
{
    mu__row_list_done(&s->list);
    free(s->packed);
    free(s->content);
    free(s->written);
    free(s->expected);
}

/* False when the call is over before the server is lost. */
static bool check_loss(const struct story *s, int operation, int events)
{
    struct var_request r;
    struct var_net *f;
    void *state = NULL;
    bool in_time;

    assert_int_equal(var_set_up_copies(&state), 0);
    f = state;
    r = var_opened(f->alice, "v", shape, s->content);
    var_aim(&r);
    r.call.rows = &s->rows;
    r.call.source =
        operation == MU__VARIABLE_ROWS_ADD ? s->written : (const void *)s->packed;
    var_post(f->alice, &r, operation, VAR_NEVER);
    for (int i = 0; i < events && !r.done; i++)
        (void)net_step(&f->net);
    in_time = !r.done;
    net_crash(f->servers[0]);
    for (int i = 0; i < 10000 && !r.done; i++)
        net_run_for(&f->net, 1);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    r.call.rows = NULL;
    var_assert_reads(f->alice, &r, s->expected);
    assert_int_equal(var_tear_down(&state), 0);
    return in_time;
}

static const int operations[] = {MU__VARIABLE_SCATTER_ADD, MU__VARIABLE_SCATTER_UPDATE,
                                 MU__VARIABLE_ROWS_ADD, MU__VARIABLE_SCATTER_MUL};

TEST(test_rows_are_written_once)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        struct story s;
        int moments = 0;

        begin_story(&s, operations[i]);
        for (int events = 0; check_loss(&s, operations[i], events);
             events += 1 + events / 8)
            moments++;
        assert_true(moments >= 8);
        end_story(&s);
    }
}

TEST_PROGRAM()
