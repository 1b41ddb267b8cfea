/* Writes of several partitions in one message: each is taken as if it had come alone. */
#include "actors/ps/tables/table_writes.h"
#include "actors/ps/tables/write_frame.h"
#include "tests/support/replicas.h"

enum { DIM = 1, FRAME_MAX = 100, WRITE_BYTES_MAX = 512 };

static const struct mu__table_form emb = {
    .dim = DIM,
    .rule = {.kind = MU__RULE_SGD, .numbers = {[MU__RATE] = 1}},
};

static uint64_t emb_id(void)
{
    return mu__table_id(mu__view_str("emb"));
}

/* A frame that a test puts together. */
struct frame {
    uint32_t count;
    uint32_t bytes;
    uint8_t heads[FRAME_MAX * MU__FRAME_HEAD_BYTES];
    uint8_t data[FRAME_MAX * WRITE_BYTES_MAX];
};

/* What a write has beside its data. */
static struct mu__effect_write head_of(struct fixture *f, uint32_t operation)
{
    return (struct mu__effect_write){.token = ++f->token,
                                     .variable = emb_id(),
                                     .operation = operation,
                                     .last = true,
                                     .effect = ++f->effect,
                                     .partition = PARTITION,
                                     .generation = f->generation};
}

/* Returns the token. */
static uint64_t put_in_frame(struct frame *frame, struct mu__effect_write head,
                             const void *data, uint32_t size)
{
    assert_true(frame->count < FRAME_MAX && size <= WRITE_BYTES_MAX);
    head.data.size = size;
    (void)mu__frame_head_put(frame->heads + frame->count++ * MU__FRAME_HEAD_BYTES, &head);
    memcpy(frame->data + frame->bytes, data, size);
    frame->bytes += size;
    return head.token;
}

static uint64_t put_open(struct fixture *f, struct frame *frame)
{
    const struct mu__table_open open = {
        .mode = MU__TABLE_CREATE, .form = emb, .name = mu__view_str("emb")};
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];

    return put_in_frame(frame, head_of(f, MU__WRITE_TABLE_OPEN), bytes,
                        mu__table_open_pack(&open, bytes));
}

static uint64_t put_push(struct frame *frame, struct mu__effect_write head, uint64_t id)
{
    const float gradient = 1;
    uint8_t bytes[256];
    uint32_t size = mu__table_push_pack_head(&emb.rule, 1, bytes);

    memcpy(bytes + size, &id, sizeof id);
    memcpy(bytes + size + sizeof id, &gradient, sizeof gradient);
    return put_in_frame(frame, head, bytes,
                        size + (uint32_t)(sizeof id + sizeof gradient));
}

static uint64_t put_usual_push(struct fixture *f, struct frame *frame, uint64_t id)
{
    return put_push(frame, head_of(f, MU__WRITE_TABLE_PUSH), id);
}

static struct mu__own_writes body_of(const struct frame *frame)
{
    return (struct mu__own_writes){
        .heads = {frame->heads, frame->count * MU__FRAME_HEAD_BYTES},
        .data = {frame->data, frame->bytes},
        .own = true,
        .origin = 5};
}

static void post_body(struct fixture *f, const struct mu__own_writes *body)
{
    say(f->client, MU__VARIABLES, f->servers[0], MU__OWN_WRITES, body);
}

static void post_frame(struct fixture *f, const struct frame *frame)
{
    const struct mu__own_writes body = body_of(frame);

    post_body(f, &body);
    net_settle(&f->net);
}

static void begin_frames(struct fixture *f)
{
    struct frame frame = {.count = 0};
    uint64_t opened;

    change_view(f, f->servers[0], f->servers[1], NULL);
    opened = put_open(f, &frame);
    post_frame(f, &frame);
    assert_int_equal(need_answer(f, opened)->code, 0);
}

static float row_of(struct fixture *f, struct net_process *server, uint64_t id)
{
    uint8_t spans[MU__LOOKUP_SPAN_BYTES] = {PARTITION, [4] = 1};
    struct mu__table_lookup body = {.token = ++f->token,
                                    .table = emb_id(),
                                    .dim = DIM,
                                    .ids = {(const uint8_t *)&id, sizeof id},
                                    .spans = {spans, sizeof spans}};
    float row;

    mu__store_little(spans + 8, f->generation, 8);
    say(f->client, MU__VARIABLES, server, MU__TABLE_LOOKUP, &body);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, body.token)->size, sizeof row);
    memcpy(&row, need_answer(f, body.token)->data, sizeof row);
    return row;
}

static void assert_row_is(struct fixture *f, struct net_process *server, uint64_t id,
                          float expected)
{
    float row = row_of(f, server, id);

    if (row < expected || row > expected)
        fail_msg("row %d: %g, expected %g", (int)id, (double)row, (double)expected);
}

/* ---- Tests ---- */

TEST_ON(test_writes_of_one_message_are_answered_together, struct fixture *f, set_up,
        tear_down)
{
    struct frame frame = {.count = 0};
    uint64_t first;
    uint64_t second;

    begin_frames(f);
    first = put_usual_push(f, &frame, 1);
    second = put_usual_push(f, &frame, 2);
    (void)put_usual_push(f, &frame, 1);
    post_frame(f, &frame);
    assert_int_equal(need_answer(f, first)->kind, MU__EFFECTS_WRITTEN);
    assert_int_equal(need_answer(f, second)->kind, MU__EFFECTS_WRITTEN);
    assert_row_is(f, f->servers[0], 1, -2);
    assert_row_is(f, f->servers[0], 2, -1);
}

TEST_ON(test_the_backup_has_what_one_message_brought, struct fixture *f, set_up,
        tear_down)
{
    struct frame frame = {.count = 0};

    begin_frames(f);
    (void)put_usual_push(f, &frame, 1);
    (void)put_usual_push(f, &frame, 1);
    post_frame(f, &frame);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_row_is(f, f->servers[1], 1, -2);
}

/* A partition that is elsewhere, or in another generation, says nothing. */
TEST_ON(test_writes_of_other_partitions_are_left_out, struct fixture *f, set_up,
        tear_down)
{
    struct frame frame = {.count = 0};
    struct mu__effect_write elsewhere;
    struct mu__effect_write former;

    begin_frames(f);
    elsewhere = head_of(f, MU__WRITE_TABLE_PUSH);
    elsewhere.partition++;
    former = head_of(f, MU__WRITE_TABLE_PUSH);
    former.generation--;
    (void)put_push(&frame, elsewhere, 1);
    (void)put_push(&frame, former, 1);
    (void)put_usual_push(f, &frame, 1);
    post_frame(f, &frame);
    assert_null(answer_to(f, elsewhere.token));
    assert_null(answer_to(f, former.token));
    assert_row_is(f, f->servers[0], 1, -1);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_row_is(f, f->servers[1], 1, -1);
}

TEST_ON(test_a_write_that_is_there_twice_counts_once, struct fixture *f, set_up,
        tear_down)
{
    struct frame frame = {.count = 0};
    struct mu__effect_write head;

    begin_frames(f);
    head = head_of(f, MU__WRITE_TABLE_PUSH);
    (void)put_push(&frame, head, 1);
    head.token = ++f->token;
    (void)put_push(&frame, head, 1);
    post_frame(f, &frame);
    post_frame(f, &frame);
    assert_int_equal(need_answer(f, head.token)->code, 0);
    assert_row_is(f, f->servers[0], 1, -1);
}

/* A batch of several writes is in one message, and applied as a whole. */
TEST_ON(test_a_batch_of_several_writes, struct fixture *f, set_up, tear_down)
{
    struct frame frame = {.count = 0};
    struct mu__effect_write head;

    begin_frames(f);
    head = head_of(f, MU__WRITE_TABLE_PUSH);
    head.last = false;
    (void)put_push(&frame, head, 1);
    assert_int_equal(frame.count, 1);
    head.before = 1;
    head.last = true;
    (void)put_push(&frame, head, 1);
    post_frame(f, &frame);
    assert_int_equal(need_answer(f, head.token)->code, 0);
    assert_row_is(f, f->servers[0], 1, -2);
}

/* Errors are told of the write that has them; others are applied. */
TEST_ON(test_a_write_that_is_refused, struct fixture *f, set_up, tear_down)
{
    struct frame frame = {.count = 0};
    struct mu__effect_write head;
    uint64_t pushed;

    begin_frames(f);
    head = head_of(f, MU__WRITE_TABLE_PUSH);
    (void)put_in_frame(&frame, head, "no push", 7);
    pushed = put_usual_push(f, &frame, 1);
    post_frame(f, &frame);
    assert_int_equal(need_answer(f, head.token)->code, MU_EINVALID);
    assert_int_equal(need_answer(f, pushed)->code, 0);
    assert_row_is(f, f->servers[0], 1, -1);
}

TEST_ON(test_a_program_writes_what_is_its_own, struct fixture *f, set_up, tear_down)
{
    struct frame frame = {.count = 0};
    struct mu__own_writes body;
    uint64_t pushed;

    begin_frames(f);
    pushed = put_usual_push(f, &frame, 1);
    body = body_of(&frame);
    body.own = false;
    post_body(f, &body);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, pushed)->code, MU_EINVALID);
    assert_row_is(f, f->servers[0], 1, 0);
}

/* What does not say what it has is dropped as a whole. */
TEST_ON(test_heads_that_are_not_those_of_the_data, struct fixture *f, set_up, tear_down)
{
    struct frame frame = {.count = 0};
    struct mu__effect_write beyond;
    struct mu__own_writes body;

    begin_frames(f);
    (void)put_usual_push(f, &frame, 1);
    body = body_of(&frame);
    body.heads.size--;
    post_body(f, &body);
    body = body_of(&frame);
    body.data.size--;
    post_body(f, &body);
    beyond = head_of(f, MU__WRITE_TABLE_PUSH);
    beyond.partition = MU__PARTITIONS;
    (void)put_push(&frame, beyond, 1);
    post_frame(f, &frame);
    assert_row_is(f, f->servers[0], 1, 0);
}

/* While a backup is not linked writes wait, and nothing of them is lost. */
TEST_ON(test_writes_wait_for_a_backup, struct fixture *f, set_up, tear_down)
{
    struct frame frame = {.count = 0};
    uint64_t first;
    uint64_t second;

    begin_frames(f);
    net_crash(f->servers[1]);
    net_settle(&f->net);
    first = put_usual_push(f, &frame, 1);
    second = put_usual_push(f, &frame, 1);
    post_frame(f, &frame);
    assert_null(answer_to(f, first));
    change_view(f, f->servers[0], NULL, NULL);
    net_run_for(&f->net, 100);
    assert_int_equal(need_answer(f, first)->code, 0);
    assert_int_equal(need_answer(f, second)->code, 0);
    assert_row_is(f, f->servers[0], 1, -2);
}

/* While a copy is filled it gets all of them, too. */
TEST_ON(test_writes_while_a_copy_is_filled, struct fixture *f, set_up, tear_down)
{
    struct frame frame = {.count = 0};
    const struct mu__partition_view view = {.number = 2,
                                            .primary = replica_of(f->servers[0]),
                                            .backup = replica_of(f->servers[1]),
                                            .learner = replica_of(f->servers[2])};

    begin_frames(f);
    f->number = 2;
    set_view(f, f->servers[2], view);
    set_view(f, f->servers[0], view);
    set_view(f, f->servers[1], view);
    net_settle(&f->net);
    for (int i = 0; i < 3; i++)
        (void)put_usual_push(f, &frame, 1);
    post_frame(f, &frame);
    net_settle(&f->net);
    net_crash(f->servers[0]);
    net_crash(f->servers[1]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_row_is(f, f->servers[2], 1, -3);
}

/* What came of pushes is compared as soon as there is another copy, and not before. */
TEST_ON(test_a_primary_alone_gets_a_copy, struct fixture *f, set_up, tear_down)
{
    struct frame frame = {.count = 0};
    struct mu__partition_view view = {.primary = replica_of(f->servers[0]),
                                      .learner = replica_of(f->servers[2])};

    begin_frames(f);
    change_view(f, f->servers[0], NULL, NULL);
    (void)put_usual_push(f, &frame, 1);
    post_frame(f, &frame);
    view.number = ++f->number;
    set_view(f, f->servers[2], view);
    set_view(f, f->servers[0], view);
    net_settle(&f->net);
    for (int i = 0; i < 3; i++) {
        frame = (struct frame){.count = 0};
        (void)put_usual_push(f, &frame, 1);
        post_frame(f, &frame);
    }
    assert_int_not_equal(f->news, MU__REPLICA_DIVERGED);
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_row_is(f, f->servers[2], 1, -4);
}

/* What a program gives up does not stay until its link ends. */
TEST_ON(test_pieces_that_are_given_up, struct fixture *f, set_up, tear_down)
{
    struct mu__own_write piece;

    begin_frames(f);
    for (int i = 0; i < 200; i++) {
        piece = (struct mu__own_write){.token = ++f->token,
                                       .batch = f->token,
                                       .variable = emb_id(),
                                       .operation = MU__WRITE_TABLE_PUSH,
                                       .data = {"piece", 5},
                                       .own = true,
                                       .origin = 5,
                                       .effect = ++f->effect,
                                       .partition = PARTITION,
                                       .generation = f->generation};
        say(f->client, MU__VARIABLES, f->servers[0], MU__OWN_WRITE, &piece);
        piece.operation = MU__WRITE_ABANDON;
        piece.data.size = 0;
        say(f->client, MU__VARIABLES, f->servers[0], MU__OWN_WRITE, &piece);
        net_settle(&f->net);
        assert_null(answer_to(f, piece.token));
    }
}

TEST_PROGRAM()
