/* Tables at the servers: opens, pushes and look-ups, copies, and what is refused. */
#include "actors/ps/tables/lookup_spans.h"
#include "actors/ps/tables/table_writes.h"
#include "tests/support/replicas.h"

enum { DIM = 2 };

static const struct mu__table_form emb = {
    .dim = DIM,
    .initial = {.kind = MU__INITIAL_CONSTANT, .a = 10},
    .rule = {.kind = MU__RULE_SGD, .numbers = {[MU__RATE] = 1}},
};

static uint64_t emb_id(void)
{
    return mu__table_id(mu__view_str("emb"));
}

/* Messages are sent, and nothing is let happen between them. */
static bool is_hasty;

/* An effect of the client's own; returns the token. */
static uint64_t post_table_write(struct fixture *f, struct net_process *server,
                                 uint32_t operation, struct mu__view data,
                                 uint64_t effect)
{
    uint64_t token = say_table_write(f, server, operation, data, effect);

    if (!is_hasty)
        net_settle(&f->net);
    return token;
}

static uint32_t open_table(struct fixture *f, struct net_process *server,
                           enum mu__table_open_mode mode,
                           const struct mu__table_form *form)
{
    const struct mu__table_open open = {
        .mode = mode, .form = *form, .name = mu__view_str("emb")};
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
    uint32_t size = mu__table_open_pack(&open, bytes);

    return need_answer(f, post_table_write(f, server, MU__WRITE_TABLE_OPEN,
                                           (struct mu__view){bytes, size}, ++f->effect))
        ->code;
}

/* A gradient of `gradient` in each column of two ids. */
static uint64_t post_push(struct fixture *f, struct net_process *server, uint64_t id,
                          float gradient, uint64_t effect)
{
    const uint64_t ids[2] = {id, id + 1};
    const float gradients[2 * DIM] = {gradient, gradient, gradient, gradient};
    uint8_t bytes[256];
    uint32_t size = mu__table_push_pack_head(&emb.rule, 2, bytes);

    memcpy(bytes + size, ids, sizeof ids);
    memcpy(bytes + size + sizeof ids, gradients, sizeof gradients);
    size += (uint32_t)(sizeof ids + sizeof gradients);
    return post_table_write(f, server, MU__WRITE_TABLE_PUSH,
                            (struct mu__view){bytes, size}, effect);
}

static uint64_t push(struct fixture *f, struct net_process *server, uint64_t id,
                     float gradient)
{
    return post_push(f, server, id, gradient, ++f->effect);
}

static uint64_t post_lookup(struct fixture *f, struct net_process *server, uint64_t id)
{
    uint8_t spans[MU__LOOKUP_SPAN_BYTES];
    const struct mu__table_lookup body = {.token = ++f->token,
                                          .table = emb_id(),
                                          .dim = DIM,
                                          .ids = {(const uint8_t *)&id, sizeof id},
                                          .spans = {spans, sizeof spans}};

    (void)mu__lookup_spans_put(spans,
                               &(struct mu__lookup_span){PARTITION, 1, f->generation});
    say(f->client, MU__VARIABLES, server, MU__TABLE_LOOKUP, &body);
    net_settle(&f->net);
    return body.token;
}

static void assert_row(struct fixture *f, struct net_process *server, uint64_t id,
                       float expected)
{
    const struct answer *answer = need_answer(f, post_lookup(f, server, id));
    float row[DIM];

    assert_int_equal(answer->code, 0);
    assert_int_equal(answer->size, sizeof row);
    memcpy(row, answer->data, sizeof row);
    for (int i = 0; i < DIM; i++)
        if (row[i] < expected || row[i] > expected)
            fail_msg("row of %d: %g, expected %g", (int)id, (double)row[i],
                     (double)expected);
}

/* A table in a partition with a backup. */
static void begin_table(struct fixture *f)
{
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_CREATE, &emb), 0);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_SEAL, &emb), 0);
}

/* ---- Opens ---- */

TEST_ON(test_a_table_is_found_once_it_is_sealed, struct fixture *f, set_up, tear_down)
{
    struct mu__table_form other = emb;

    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_FIND, &emb), MU_EAGAIN);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_SEAL, &emb), MU_EAGAIN);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_EXISTING, &emb),
                     MU_EDATALOSS);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_CREATE, &emb), 0);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_CREATE, &emb), 0);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_FIND, &emb), MU_EAGAIN);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_SEAL, &emb), 0);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_FIND, &emb), 0);
    other.dim = 3;
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_FIND, &other),
                     MU_EPRECONDITION);
}

/* Rows that are there although the table was not made: others are lost. */
TEST_ON(test_a_creation_that_finds_rows_tells_of_a_loss, struct fixture *f, set_up,
        tear_down)
{
    begin_table(f);
    assert_int_equal(need_answer(f, push(f, f->servers[0], 1, 1))->code, 0);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_CREATE, &emb), MU_EDATALOSS);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_RECREATE, &emb), 0);
    assert_row(f, f->servers[0], 1, 9);
}

/* ---- Copies ---- */

TEST_ON(test_a_push_survives_the_primary_and_counts_once, struct fixture *f, set_up,
        tear_down)
{
    begin_table(f);
    assert_int_equal(need_answer(f, push(f, f->servers[0], 1, 1))->code, 0);
    f->client->deaf = true;
    (void)push(f, f->servers[0], 1, 2);
    f->client->deaf = false;
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_int_equal(need_answer(f, post_push(f, f->servers[1], 1, 2, f->effect))->code,
                     0);
    assert_row(f, f->servers[1], 1, 7);
    assert_row(f, f->servers[1], 2, 7);
    assert_row(f, f->servers[1], 3, 10);
    assert_int_equal(open_table(f, f->servers[1], MU__TABLE_FIND, &emb), 0);
}

/* What is not acknowledged is not read. */
TEST_ON(test_a_lookup_waits_for_the_backup, struct fixture *f, set_up, tear_down)
{
    uint64_t lookup;

    begin_table(f);
    f->servers[1]->deaf = true;
    (void)push(f, f->servers[0], 1, 1);
    lookup = post_lookup(f, f->servers[0], 1);
    assert_null(answer_to(f, lookup));
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, lookup)->code, 0);
    assert_row(f, f->servers[0], 1, 9);
}

/* Rows in many pieces, while pushes and deletes go on: the copy has the same, row by
 * row. */
TEST_ON(test_a_learner_gets_the_rows, struct fixture *f, set_up, tear_down)
{
    const uint64_t gone = 7;
    uint8_t bytes[256];
    uint32_t size;

    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_CREATE, &emb), 0);
    for (uint64_t id = 1; id < 4000; id += 2) {
        assert_int_equal(need_answer(f, push(f, f->servers[0], id, 1))->code, 0);
        f->answers_count = 0;
    }
    set_view(f, f->servers[0], next_view(f, f->servers[0], NULL, f->servers[1]));
    set_view(f, f->servers[1],
             (struct mu__partition_view){.number = f->number,
                                         .primary = replica_of(f->servers[0]),
                                         .learner = replica_of(f->servers[1])});
    f->generation = mu__generation_of(f->number);
    is_hasty = true;
    for (uint64_t id = 1; id < 60; id += 2)
        (void)push(f, f->servers[0], id, 1);
    size = mu__table_push_pack_head(&emb.rule, 1, bytes);
    memcpy(bytes + size, &gone, sizeof gone);
    (void)post_table_write(f, f->servers[0], MU__WRITE_TABLE_DELETE,
                           (struct mu__view){bytes, size + 8}, ++f->effect);
    is_hasty = false;
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_int_equal(need_answer(f, push(f, f->servers[0], 100, 1))->code, 0);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    f->answers_count = 0;
    assert_row(f, f->servers[1], 1, 8);
    assert_row(f, f->servers[1], 7, 10);
    assert_row(f, f->servers[1], 8, 8);
    assert_row(f, f->servers[1], 100, 8);
    assert_row(f, f->servers[1], 4000, 9);
    assert_row(f, f->servers[1], 4001, 10);
}

/* ---- What is refused ---- */

TEST_ON(test_pushes_that_are_refused, struct fixture *f, set_up, tear_down)
{
    uint8_t good[256];
    const uint64_t ids[2] = {4, 5};
    float gradients[4] = {1, 1, 1, 1};
    uint32_t head = mu__table_push_pack_head(&emb.rule, 2, good);
    uint32_t size = head + (uint32_t)(sizeof ids + sizeof gradients);
    uint8_t bad[256];

    memcpy(good + head, ids, sizeof ids);
    memcpy(good + head + sizeof ids, gradients, sizeof gradients);
    begin_table(f);
    for (uint32_t cut = 1; cut < size; cut++) {
        assert_int_equal(
            need_answer(f, post_table_write(f, f->servers[0], MU__WRITE_TABLE_PUSH,
                                            (struct mu__view){good, cut}, ++f->effect))
                ->code,
            MU_EINVALID);
        f->answers_count = 0;
    }
    memcpy(bad, good, size);
    memcpy(bad + head, &ids[1], sizeof ids[1]); /* the same id twice */
    assert_int_equal(
        need_answer(f, post_table_write(f, f->servers[0], MU__WRITE_TABLE_PUSH,
                                        (struct mu__view){bad, size}, ++f->effect))
            ->code,
        MU_EINVALID);
    gradients[3] = (float)1e38 * 100;
    memcpy(bad, good, size);
    memcpy(bad + head + sizeof ids, gradients, sizeof gradients);
    assert_int_equal(
        need_answer(f, post_table_write(f, f->servers[0], MU__WRITE_TABLE_PUSH,
                                        (struct mu__view){bad, size}, ++f->effect))
            ->code,
        MU_EINVALID);
    bad[1] = MU__RULE_ADAM; /* the kind of the rule */
    assert_int_not_equal(
        need_answer(f, post_table_write(f, f->servers[0], MU__WRITE_TABLE_PUSH,
                                        (struct mu__view){bad, size}, ++f->effect))
            ->code,
        0);
    assert_row(f, f->servers[0], 4, 10);
    assert_int_equal(
        need_answer(f, post_table_write(f, f->servers[0], MU__WRITE_TABLE_PUSH,
                                        (struct mu__view){good, size}, ++f->effect))
            ->code,
        0);
    assert_row(f, f->servers[0], 4, 9);
}

TEST_ON(test_lookups_that_are_refused, struct fixture *f, set_up, tear_down)
{
    const uint64_t ids[3] = {1, 2, 3};
    static const struct {
        uint32_t dim;
        uint32_t partition;
        uint32_t count;
        uint32_t ids;
        uint32_t dtype;
        uint32_t code;
    } rows[] = {
        {DIM, PARTITION, 2, 2, 0, 0},
        {0, PARTITION, 2, 2, 0, MU_EINVALID},
        {DIM, PARTITION, 0, 0, 0, MU_EINVALID},
        {DIM, PARTITION, 3, 2, 0, MU_EINVALID},
        {DIM, PARTITION, 1, 2, 0, MU_EINVALID},
        {DIM, MU__PARTITIONS, 2, 2, 0, MU_EINVALID},
        {DIM + 1, PARTITION, 2, 2, 0, MU_EPRECONDITION},
        {DIM, PARTITION, 2, 2, MU_F16, MU_EPRECONDITION},
        {DIM, PARTITION, 2, 2, 255, MU_EPRECONDITION},
    };

    begin_table(f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t spans[MU__LOOKUP_SPAN_BYTES];
        const struct mu__table_lookup body = {
            .token = ++f->token,
            .table = emb_id(),
            .dim = rows[i].dim,
            .dtype = rows[i].dtype,
            .ids = {(const uint8_t *)ids, rows[i].ids * 8},
            .spans = {spans, sizeof spans}};

        (void)mu__lookup_spans_put(spans, &(struct mu__lookup_span){rows[i].partition,
                                                                    rows[i].count,
                                                                    f->generation});
        say(f->client, MU__VARIABLES, f->servers[0], MU__TABLE_LOOKUP, &body);
        net_settle(&f->net);
        assert_int_equal(need_answer(f, body.token)->code, rows[i].code);
    }
}

/* Rows of 16 bits are answered as they are held. */
static void check_narrow_rows(struct fixture *f, uint32_t dtype, uint16_t ten)
{
    const uint64_t id = 7;
    const uint16_t expected[DIM] = {ten, ten};
    uint8_t spans[MU__LOOKUP_SPAN_BYTES];
    struct mu__table_form narrow = emb;
    struct mu__table_lookup body = {.token = ++f->token,
                                    .table = emb_id(),
                                    .dim = DIM,
                                    .ids = {(const uint8_t *)&id, sizeof id},
                                    .spans = {spans, sizeof spans},
                                    .dtype = dtype};

    narrow.dtype = dtype;
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_int_equal(open_table(f, f->servers[0], MU__TABLE_CREATE, &narrow), 0);
    (void)mu__lookup_spans_put(spans,
                               &(struct mu__lookup_span){PARTITION, 1, f->generation});
    say(f->client, MU__VARIABLES, f->servers[0], MU__TABLE_LOOKUP, &body);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, body.token)->code, 0);
    assert_int_equal(need_answer(f, body.token)->size, sizeof expected);
    assert_memory_equal(need_answer(f, body.token)->data, expected, sizeof expected);
}

TEST_ON(test_rows_of_halves, struct fixture *f, set_up, tear_down)
{
    check_narrow_rows(f, MU_F16, 0x4900);
}

TEST_ON(test_rows_of_bfloats, struct fixture *f, set_up, tear_down)
{
    check_narrow_rows(f, MU_BF16, 0x4120);
}

/* Two ids, whose rows are added. */
static struct mu__table_lookup sums_of(struct fixture *f, uint8_t *spans)
{
    static const uint64_t ids[2] = {1, 2};
    static const uint32_t bags[2] = {1, 1};
    static const float weights[2] = {2, -1};

    (void)mu__lookup_spans_put(spans,
                               &(struct mu__lookup_span){PARTITION, 2, f->generation});
    return (struct mu__table_lookup){
        .token = ++f->token,
        .table = emb_id(),
        .dim = DIM,
        .ids = {(const uint8_t *)ids, sizeof ids},
        .spans = {spans, MU__LOOKUP_SPAN_BYTES},
        .bags = 2,
        .bag_of = {(const uint8_t *)bags, sizeof bags},
        .weights = {(const uint8_t *)weights, sizeof weights}};
}

static const struct answer *ask_for_sums(struct fixture *f,
                                         const struct mu__table_lookup *body)
{
    say(f->client, MU__VARIABLES, f->servers[0], MU__TABLE_LOOKUP, body);
    net_settle(&f->net);
    return need_answer(f, body->token);
}

TEST_ON(test_sums_of_rows, struct fixture *f, set_up, tear_down)
{
    const float expected[4] = {0, 0, 2 * 9 - 7, 2 * 9 - 7};
    uint8_t spans[MU__LOOKUP_SPAN_BYTES];
    struct mu__table_lookup body;

    begin_table(f);
    (void)push(f, f->servers[0], 1, 1);
    (void)push(f, f->servers[0], 2, 2);
    body = sums_of(f, spans);
    assert_int_equal(ask_for_sums(f, &body)->size, sizeof expected);
    assert_memory_equal(need_answer(f, body.token)->data, expected, sizeof expected);
}

TEST_ON(test_sums_that_are_refused, struct fixture *f, set_up, tear_down)
{
    uint8_t spans[MU__LOOKUP_SPAN_BYTES];
    struct mu__table_lookup body;

    begin_table(f);
    body = sums_of(f, spans);
    body.bags = 1; /* of bag 1 there is an id */
    assert_int_equal(ask_for_sums(f, &body)->code, MU_EINVALID);
    body = sums_of(f, spans);
    body.bags = MU__PIECE_BYTES_MAX / 4;
    assert_int_equal(ask_for_sums(f, &body)->code, MU_EINVALID);
    body = sums_of(f, spans);
    body.bag_of.size -= 4;
    assert_int_equal(ask_for_sums(f, &body)->code, MU_EINVALID);
    body = sums_of(f, spans);
    body.weights.size -= 4;
    assert_int_equal(ask_for_sums(f, &body)->code, MU_EINVALID);
    body = sums_of(f, spans);
    assert_int_equal(ask_for_sums(f, &body)->code, 0);
}

/* Numbers of runs are not for programs. */
TEST_ON(test_an_own_write_has_its_own_number, struct fixture *f, set_up, tear_down)
{
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
    const struct mu__table_open open = {
        .mode = MU__TABLE_CREATE, .form = emb, .name = mu__view_str("emb")};
    struct mu__own_write write = {.variable = emb_id(),
                                  .operation = MU__WRITE_TABLE_OPEN,
                                  .data = {bytes, mu__table_open_pack(&open, bytes)},
                                  .last = true,
                                  .origin = 5,
                                  .effect = 1,
                                  .partition = PARTITION};

    change_view(f, f->servers[0], f->servers[1], NULL);
    write.generation = f->generation;
    for (int own = 0; own < 2; own++) {
        write.own = own;
        write.token = write.batch = ++f->token;
        say(f->client, MU__VARIABLES, f->servers[0], MU__OWN_WRITE, &write);
        net_settle(&f->net);
        assert_int_equal(need_answer(f, write.token)->code, own ? 0 : MU_EINVALID);
    }
}

TEST_ON(test_a_table_that_is_not_there, struct fixture *f, set_up, tear_down)
{
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, post_lookup(f, f->servers[0], 1))->code,
                     MU_ENOTFOUND);
    assert_int_equal(need_answer(f, push(f, f->servers[0], 1, 1))->code, MU_ENOTFOUND);
    f->generation++;
    assert_null(answer_to(f, post_lookup(f, f->servers[0], 1)));
}

TEST_PROGRAM()
