/* Tables as programs use them: over several servers, through losses, each push once. */
#include "actors/variables/table_calls.h"

#include "actors/ps/tables/table_writes.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"

enum { DIM = 2, IDS = 1000, SERVERS = 3 };

static const struct mu__table_form emb = {
    .dim = DIM,
    .initial = {.kind = MU__INITIAL_CONSTANT, .a = 10},
    .rule = {.kind = MU__RULE_SGD, .numbers = {[MU__RATE] = 1}},
};

struct fixture {
    struct net net;
    struct net_process *servers[SERVERS];
    struct net_process *program;
    struct net_process *chief;
    struct mu__table_form form;
};

static int tables_set_up(void **state, bool backups)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->form = emb;
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < SERVERS; i++)
        f->servers[i] = net_add(&f->net, "ps", i, var_spawn_server);
    f->program = net_add(&f->net, "worker", 0, var_spawn_program);
    f->chief = var_start(&f->net, backups);
    *state = f;
    return 0;
}

static int set_up_alone(void **state)
{
    return tables_set_up(state, false);
}

static int set_up_copies(void **state)
{
    return tables_set_up(state, true);
}

static int tables_tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

/* ---- Calls ---- */

struct table_request {
    struct mu__table_call call; /* first */
    bool done;
};

static void set_table_done(struct mu__call *call)
{
    ((struct table_request *)(void *)call)->done = true;
}

static void begin_request(struct fixture *f, struct table_request *r, int operation,
                          int64_t timeout_ms)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

    assert_non_null(msg);
    r->done = false;
    r->call.name = "emb";
    r->call.servers_count = SERVERS;
    r->call.call.complete = set_table_done;
    r->call.call.operation = operation;
    r->call.call.timeout_ms = timeout_ms;
    ((struct mu__call_msg *)mu__body(msg))->call = r;
    msg->to.actor = MU__VARIABLES;
    net_deliver(f->program, msg);
}

static void await_request(struct fixture *f, struct table_request *r)
{
    for (int i = 0; !r->done && i < 1000000; i++)
        if (!net_step(&f->net))
            net_run_until(&f->net, f->net.now_ms + 1);
    assert_true(r->done);
}

static int end_write(struct fixture *f, struct table_request *r)
{
    await_request(f, r);
    mu__effects_clear(&r->call.run.effects);
    return r->call.call.code;
}

static int open_parts(struct fixture *f, enum mu__table_open_mode mode, uint32_t first,
                      uint32_t end)
{
    const struct mu__table_open open = {
        .mode = mode, .form = f->form, .name = mu__view_str("emb")};
    struct table_request r = {.done = false};

    assert_int_equal(mu__effects_add_table_open(&r.call.run.effects, &open, first, end),
                     0);
    begin_request(f, &r, MU__TABLE_WRITE_CALL, VAR_NEVER);
    return end_write(f, &r);
}

static uint64_t id_of(uint32_t i)
{
    return (uint64_t)i * 256;
}

/* The same gradient for the first ids, of each of which there are two halves. */
static void begin_push(struct fixture *f, struct table_request *r, uint32_t count,
                       float gradient, int64_t timeout_ms)
{
    uint64_t *ids = calloc(2 * count, sizeof *ids);
    float *gradients = calloc((size_t)2 * count * DIM, sizeof *gradients);
    const struct mu__table_batch batch = {.table = mu__table_id(mu__view_str("emb")),
                                          .dim = DIM,
                                          .rule = &emb.rule,
                                          .ids = ids,
                                          .gradients = gradients,
                                          .count = 2 * count};

    assert_non_null(ids);
    assert_non_null(gradients);
    for (uint32_t i = 0; i < 2 * count; i++)
        ids[i] = id_of(i % count);
    for (uint32_t i = 0; i < 2 * count * DIM; i++)
        gradients[i] = gradient / 2;
    *r = (struct table_request){.done = false};
    assert_int_equal(mu__effects_add_table(&r->call.run.effects, &batch), 0);
    free(ids);
    free(gradients);
    begin_request(f, r, MU__TABLE_WRITE_CALL, timeout_ms);
}

static int push(struct fixture *f, uint32_t count, float gradient)
{
    struct table_request r;

    begin_push(f, &r, count, gradient, VAR_NEVER);
    return end_write(f, &r);
}

struct rows {
    struct table_request request;
    struct mu__sorted_ids sorted;
    float rows[IDS * DIM];
};

static void begin_lookup(struct fixture *f, struct rows *rows, int64_t timeout_ms)
{
    uint64_t ids[IDS];

    for (uint32_t i = 0; i < IDS; i++)
        ids[i] = id_of(i);
    assert_int_equal(mu__ids_sort(ids, IDS, &rows->sorted), 0);
    rows->request =
        (struct table_request){.call = {.table = mu__table_id(mu__view_str("emb")),
                                        .dim = DIM,
                                        .dtype = f->form.dtype,
                                        .ids = &rows->sorted,
                                        .rows = rows->rows}};
    begin_request(f, &rows->request, MU__TABLE_LOOKUP_CALL, timeout_ms);
}

static int end_lookup(struct fixture *f, struct rows *rows)
{
    await_request(f, &rows->request);
    mu__sorted_ids_done(&rows->sorted);
    return rows->request.call.call.code;
}

/* The first `count` rows are `expected`, and the others as they begin. */
static void assert_rows(const struct rows *rows, uint32_t count, float expected)
{
    for (uint32_t i = 0; i < IDS * DIM; i++) {
        float number = i / DIM < count ? expected : 10;

        if (rows->rows[i] < number || rows->rows[i] > number)
            fail_msg("row %u: %g, expected %g", i / DIM, (double)rows->rows[i],
                     (double)number);
    }
}

static void look_up(struct fixture *f, uint32_t count, float expected)
{
    struct rows rows;

    begin_lookup(f, &rows, VAR_NEVER);
    assert_int_equal(end_lookup(f, &rows), 0);
    assert_rows(&rows, count, expected);
}

static void open_all(struct fixture *f)
{
    assert_int_equal(open_parts(f, MU__TABLE_FIND, 5, 6), -MU_EAGAIN);
    assert_int_equal(open_parts(f, MU__TABLE_CREATE, 0, MU__PARTITIONS), 0);
    assert_int_equal(open_parts(f, MU__TABLE_SEAL, 5, 6), 0);
    assert_int_equal(open_parts(f, MU__TABLE_FIND, 5, 6), 0);
}

/* ---- Tests ---- */

TEST_ON(test_rows_of_all_servers, struct fixture *f, set_up_alone, tables_tear_down)
{
    open_all(f);
    look_up(f, 0, 0);
    assert_int_equal(push(f, 600, 2), 0);
    look_up(f, 600, 8);
    assert_int_equal(push(f, 600, 1), 0);
    look_up(f, 600, 7);
    assert_int_equal(f->net.counts[MU__TABLE_LOOKUP], 3 * SERVERS);
    assert_int_equal(f->net.counts[MU__OWN_WRITES], SERVERS + 3 + 2 * SERVERS);
    assert_int_equal(f->net.counts[MU__EFFECTS_WRITTEN], SERVERS + 2 * SERVERS);
    assert_int_equal(f->net.counts[MU__OWN_WRITE], 0);
}

/* They come as they are held, and are widened here. */
TEST_ON(test_rows_of_16_bits, struct fixture *f, set_up_copies, tables_tear_down)
{
    struct rows rows;

    f->form.dtype = MU_BF16;
    open_all(f);
    assert_int_equal(push(f, 600, 2), 0);
    look_up(f, 600, 8);
    f->form.dtype = MU_F16;
    begin_lookup(f, &rows, VAR_NEVER);
    assert_int_equal(end_lookup(f, &rows), -MU_EPRECONDITION);
    assert_non_null(strstr(rows.request.call.call.error.message, "another dtype"));
}

TEST_ON(test_a_table_that_was_not_made, struct fixture *f, set_up_alone, tables_tear_down)
{
    struct rows rows;

    begin_lookup(f, &rows, VAR_NEVER);
    assert_int_equal(end_lookup(f, &rows), -MU_ENOTFOUND);
    assert_non_null(strstr(rows.request.call.call.error.message,
                           "table emb: lookup: the server does not have the table"));
    assert_int_equal(push(f, 10, 1), -MU_ENOTFOUND);
}

enum { BAGS = 2 };

static const uint32_t *bags_of_ids(void)
{
    static uint32_t bags[IDS];

    for (uint32_t i = 0; i < IDS; i++)
        bags[i] = i % BAGS;
    return bags;
}

static void begin_sums(struct fixture *f, struct rows *rows)
{
    uint64_t ids[IDS];

    for (uint32_t i = 0; i < IDS; i++)
        ids[i] = id_of(i);
    assert_int_equal(mu__ids_sort(ids, IDS, &rows->sorted), 0);
    rows->request = (struct table_request){
        .call = {.table = mu__table_id(mu__view_str("emb")),
                 .dim = DIM,
                 .ids = &rows->sorted,
                 .bags = {.count = BAGS, .bag_of = bags_of_ids()}}};
    begin_request(f, &rows->request, MU__TABLE_LOOKUP_CALL, VAR_NEVER);
}

/* Each row is counted once, however often a server is lost in the middle. */
TEST_ON(test_sums_count_each_row_once, struct fixture *f, set_up_copies, tables_tear_down)
{
    float sums[BAGS * DIM];
    struct rows rows;

    open_all(f);
    assert_int_equal(push(f, IDS, 9), 0);
    for (int events = 0; events < 60; events += 3) {
        begin_sums(f, &rows);
        for (int i = 0; i < events; i++)
            (void)net_step(&f->net);
        net_crash(f->servers[events % SERVERS]);
        assert_int_equal(end_lookup(f, &rows), 0);
        mu__bag_sums_take(&rows.request.call.bags, DIM, sums);
        for (int i = 0; i < BAGS * DIM; i++)
            assert_int_equal((int)sums[i], IDS / BAGS);
        net_start(f->servers[events % SERVERS]);
        net_run_for(&f->net, 3000);
    }
}

/* The primaries crash with requests under way: these go to the backups, and count
 * once. */
TEST_ON(test_a_server_is_lost_in_the_middle, struct fixture *f, set_up_copies,
        tables_tear_down)
{
    struct table_request pushed;
    struct rows rows;

    open_all(f);
    assert_int_equal(push(f, 600, 1), 0);
    for (int events = 1; events < 400; events += 40) {
        begin_push(f, &pushed, 600, 1, VAR_NEVER);
        begin_lookup(f, &rows, VAR_NEVER);
        for (int i = 0; i < events; i++)
            (void)net_step(&f->net);
        net_crash(f->servers[events / 40 % SERVERS]);
        assert_int_equal(end_write(f, &pushed), 0);
        assert_int_equal(end_lookup(f, &rows), 0);
        look_up(f, 600, 8 - (float)(events / 40));
        net_start(f->servers[events / 40 % SERVERS]);
        net_run_for(&f->net, 3000);
        look_up(f, 600, 8 - (float)(events / 40));
    }
}

TEST_ON(test_calls_about_servers_that_are_away, struct fixture *f, set_up_alone,
        tables_tear_down)
{
    struct table_request pushed;
    struct rows rows;

    open_all(f);
    net_crash(f->servers[1]);
    begin_push(f, &pushed, 100, 1, 500);
    begin_lookup(f, &rows, 500);
    assert_int_equal(end_write(f, &pushed), -MU_EUNAVAILABLE);
    assert_string_equal(pushed.call.call.error.task, "/job:ps/task:1");
    assert_int_equal(end_lookup(f, &rows), -MU_EUNAVAILABLE);
    assert_string_equal(rows.request.call.call.error.task, "/job:ps/task:1");
}

/* It comes back empty, and says so: no zeros. */
TEST_ON(test_a_server_that_has_lost_its_rows, struct fixture *f, set_up_alone,
        tables_tear_down)
{
    struct rows rows;

    open_all(f);
    assert_int_equal(push(f, 600, 1), 0);
    net_restart(f->servers[1]);
    net_run_for(&f->net, 30000);
    begin_lookup(f, &rows, 1000);
    assert_int_not_equal(end_lookup(f, &rows), 0);
    assert_int_equal(open_parts(f, MU__TABLE_CREATE, 0, MU__PARTITIONS), -MU_EDATALOSS);
    assert_int_equal(open_parts(f, MU__TABLE_RECREATE, 0, MU__PARTITIONS), 0);
    begin_lookup(f, &rows, 1000);
    assert_int_equal(end_lookup(f, &rows), 0);
}

/* Its server is told of what has come of a push that is given up, as of a program's. */
TEST_ON(test_a_large_push_is_given_up, struct fixture *f, set_up_alone, tables_tear_down)
{
    enum { PIECES = MU__WINDOW_BYTES / MU__PIECE_BYTES_MAX + 2 };
    const struct mu__effect write = {.operation = MU__WRITE_TABLE_PUSH,
                                     .variable = mu__table_id(mu__view_str("emb")),
                                     .size = MU__PIECE_BYTES_MAX};
    uint8_t *data = calloc(1, MU__PIECE_BYTES_MAX);
    struct table_request r = {.done = false};
    uint64_t sent;

    open_all(f);
    sent = f->net.counts[MU__OWN_WRITE];
    assert_non_null(data);
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(mu__effects_add(&r.call.run.effects, &write, data), 0);
    begin_request(f, &r, MU__TABLE_WRITE_CALL, 0);
    assert_int_equal(end_write(f, &r), -MU_EDEADLINE);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 0);
    assert_in_range(f->net.counts[MU__OWN_WRITE], sent + 2, sent + PIECES);
    free(data);
}

TEST_ON(test_calls_end_with_their_node, struct fixture *f, set_up_alone, tables_tear_down)
{
    struct table_request pushed;
    struct rows rows;

    open_all(f);
    begin_push(f, &pushed, 100, 1, VAR_NEVER);
    begin_lookup(f, &rows, VAR_NEVER);
    net_crash(f->program);
    assert_int_equal(end_write(f, &pushed), -MU_ECLOSED);
    assert_int_equal(end_lookup(f, &rows), -MU_ECLOSED);
}

TEST_PROGRAM()
