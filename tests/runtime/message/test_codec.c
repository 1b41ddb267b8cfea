/* The generic codec, over the real message table: golden bytes, bounds, bad bytes. */
#include "tests/runtime/message/codec_fixture.h"

/* ---- Filling and comparing any message by its row ---- */

static const uint8_t tail_bytes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
                                     11, 12, 13, 14, 15, 16, 17, 18, 19};

/* [1, a tensor of five u8], packed. */
static const uint8_t value_head[] = {0x92, 0x01, 0xc7, 0x14, 0x01, 0x07, 0x01, 0x00, 0x00,
                                     0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static const uint8_t nil_head[] = {0xc0};

static const uint64_t some_u64 = UINT64_C(0x0123456789abcdef);

static uint64_t some_number(const struct mu__field *field, uint64_t number)
{
    return field->bound != 0 && number > field->bound ? field->bound : number;
}

static void fill_field(const struct mu__field *field, void *at, bool full)
{
    size_t most = field->bound < sizeof tail_bytes ? field->bound : sizeof tail_bytes;

    switch ((enum mu__field_type)field->type) {
    case MU__FIELD_u64:
        *(uint64_t *)at = some_number(field, some_u64 + field->offset);
        return;
    case MU__FIELD_u32:
        *(uint32_t *)at = (uint32_t)some_number(field, 70000 + field->offset);
        return;
    case MU__FIELD_i64:
        *(int64_t *)at = -300;
        return;
    case MU__FIELD_f64:
        *(double *)at = -0.1;
        return;
    case MU__FIELD_flag:
        *(bool *)at = true;
        return;
    case MU__FIELD_str:
        *(struct mu__view *)at = mu__view_str(field->name);
        return;
    case MU__FIELD_bytes:
    case MU__FIELD_raw:
        *(struct mu__view *)at = (struct mu__view){tail_bytes, (uint32_t)most};
        return;
    case MU__FIELD_value:
        if (full)
            *(struct mu__packed *)at =
                (struct mu__packed){value_head, tail_bytes, sizeof value_head, 5};
        else
            *(struct mu__packed *)at = (struct mu__packed){nil_head, NULL, 1, 0};
        return;
    }
    fail_msg("field %s cannot travel", field->name);
}

/* A message with all fields, or with the required ones. */
static struct mu__msg *make(struct fixture *f, uint16_t kind, bool full)
{
    const struct mu__row *row = &mu__messages.rows[kind];
    struct mu__msg *msg = mu__pool_get(&f->pool, kind, row->body_size);

    assert_non_null(msg);
    msg->to.actor = 2;
    msg->from.actor = 70000;
    for (size_t i = 0; i < row->fields_count; i++)
        if (full || row->fields[i].required)
            fill_field(&row->fields[i], msg->body + row->fields[i].offset, full);
    return msg;
}

static void assert_bytes(const void *a, uint32_t a_size, const void *b, uint32_t b_size)
{
    assert_int_equal(a_size, b_size);
    assert_int_equal(a == NULL, b == NULL);
    if (a_size > 0)
        assert_memory_equal(a, b, a_size);
}

static void assert_field(const struct mu__field *field, const void *a, const void *b)
{
    const struct mu__view *view = a;
    const struct mu__view *other = b;
    const struct mu__packed *packed = a;
    const struct mu__packed *twin = b;

    switch ((enum mu__field_type)field->type) {
    case MU__FIELD_u64:
    case MU__FIELD_i64:
    case MU__FIELD_f64:
        assert_memory_equal(a, b, 8);
        return;
    case MU__FIELD_u32:
        assert_memory_equal(a, b, 4);
        return;
    case MU__FIELD_flag:
        assert_int_equal(*(const bool *)a, *(const bool *)b);
        return;
    case MU__FIELD_str:
    case MU__FIELD_bytes:
    case MU__FIELD_raw:
        assert_bytes(view->data, view->size, other->data, other->size);
        return;
    case MU__FIELD_value:
        assert_bytes(packed->head, packed->head_size, twin->head, twin->head_size);
        assert_bytes(packed->tail, packed->tail_size, twin->tail, twin->tail_size);
        assert_int_equal((uintptr_t)twin->tail % MU__TAIL_ALIGN, 0);
        return;
    }
}

static void assert_same(const struct mu__msg *a, const struct mu__msg *b)
{
    const struct mu__row *row = &mu__messages.rows[a->kind];

    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->to.actor, b->to.actor);
    assert_int_equal(a->from.actor, b->from.actor);
    for (size_t i = 0; i < row->fields_count; i++)
        assert_field(&row->fields[i], a->body + row->fields[i].offset,
                     b->body + row->fields[i].offset);
}

static struct mu__msg *decode_one(struct fixture *f, size_t *offset)
{
    struct mu__msg *msg = NULL;
    int rv = mu__decode(&mu__messages, &f->pool, f->frame, offset, f->why, sizeof f->why,
                        &msg);

    if (rv != 0)
        fail_msg("decode: %s", f->why);
    assert_non_null(msg);
    return msg;
}

static void encode_one(struct fixture *f, const struct mu__msg *msg)
{
    assert_int_equal(mu__encode(&mu__messages, msg, f->frame), 0);
}

/* ---- Golden bytes ---- */

static void check_golden(struct fixture *f, struct golden *golden, uint16_t kind,
                         bool full)
{
    struct mu__msg *msg = make(f, kind, full);
    struct mu__msg *back;
    size_t offset = 0;
    char name[64];
    size_t size;

    snprintf(name, sizeof name, "%s.%s", mu__messages.rows[kind].name,
             full ? "full" : "required");
    f->frame->size = 0;
    encode_one(f, msg);
    if (!golden_is(golden, name, f->frame->data, f->frame->size))
        fail_msg("%s: the bytes are not the golden ones", name);

    assert_true(golden_find(golden, name, f->frame->data, f->frame->capacity, &size));
    f->frame->size = (uint32_t)size;
    back = decode_one(f, &offset);
    assert_int_equal(offset, size);
    assert_same(msg, back);
    assert_int_equal(back->to.node, 0);
    assert_int_equal(back->from.node, 0);
    mu__pool_put(&f->pool, back);
    mu__pool_put(&f->pool, msg);
}

/* Every message that travels has two golden lines, and there are no others. */
TEST_WITH(test_golden, set_up, tear_down)
{
    static struct golden golden;
    size_t travelling = 0;

    assert_int_equal(golden_open(&golden, "tests/golden/messages.txt"), 0);
    for (uint16_t kind = 0; kind < mu__messages.rows_count; kind++) {
        const struct mu__row *row = &mu__messages.rows[kind];

        if (row->name == NULL)
            continue;
        travelling++;
        check_golden(*state, &golden, kind, true);
        check_golden(*state, &golden, kind, false);
    }
    assert_true(travelling >= 17);
    assert_int_equal(golden_lines(&golden), 2 * travelling);
    assert_int_equal(golden_close(&golden), 0);
}

/* ---- Frames ---- */

/* All messages one after the other, as links send them: tails stay aligned, each record
 * fits its bound, and each begins where the last one ended. */
TEST_ON(test_many_records_in_a_frame, struct fixture *f, set_up, tear_down)
{
    size_t offset = 0;
    size_t count = 0;

    for (uint16_t kind = 0; kind < mu__messages.rows_count; kind++) {
        const struct mu__row *row = &mu__messages.rows[kind];

        for (int full = 0; row->name != NULL && full < 2; full++) {
            struct mu__msg *msg = make(f, kind, full);
            uint32_t before = f->frame->size;

            encode_one(f, msg);
            assert_true(f->frame->size - before <= mu__encode_bound(&mu__messages, msg));
            mu__pool_put(&f->pool, msg);
            count++;
        }
    }
    for (; offset < f->frame->size; count--) {
        struct mu__msg *msg = decode_one(f, &offset);
        struct mu__msg *like = make(f, msg->kind, false);

        assert_int_equal(msg->to.actor, like->to.actor);
        mu__pool_put(&f->pool, like);
        mu__pool_put(&f->pool, msg);
    }
    assert_int_equal(count, 0);
}

/* Too small a frame is refused at every capacity, and its size stays. */
TEST_ON(test_full_frame, struct fixture *f, set_up, tear_down)
{
    struct mu__msg *msg = make(f, MU__RUN, true);
    uint32_t begin = 5;
    uint32_t end;

    f->frame->size = begin;
    encode_one(f, msg);
    end = f->frame->size;
    for (uint32_t capacity = begin; capacity < end; capacity++) {
        f->frame->size = begin;
        f->frame->capacity = capacity;
        assert_int_equal(mu__encode(&mu__messages, msg, f->frame), -MU_EEXHAUSTED);
        assert_int_equal(f->frame->size, begin);
    }
    f->frame->capacity = end;
    encode_one(f, msg);
    f->frame->capacity = FRAME_BYTES;
    mu__pool_put(&f->pool, msg);
}

/* A message holds the frame while it points into it, and only then. */
TEST_ON(test_backing, struct fixture *f, set_up, tear_down)
{
    struct mu__msg *plain = make(f, MU__CANCEL, true);
    struct mu__msg *views = make(f, MU__RUN, true);
    struct mu__msg *bare = make(f, MU__RESULT, false);
    size_t offset = 0;

    encode_one(f, plain);
    encode_one(f, views);
    encode_one(f, bare);
    mu__pool_put(&f->pool, plain);
    mu__pool_put(&f->pool, views);
    mu__pool_put(&f->pool, bare);

    plain = decode_one(f, &offset);
    assert_null(plain->backing);
    views = decode_one(f, &offset);
    assert_ptr_equal(views->backing, f->frame);
    bare = decode_one(f, &offset);
    assert_null(bare->backing);
    assert_int_equal(f->frame->refs, 2);
    mu__pool_put(&f->pool, plain);
    mu__pool_put(&f->pool, views);
    mu__pool_put(&f->pool, bare);
    assert_int_equal(f->frame->refs, 1);
}

/* ---- What is absent, empty or zero ---- */

TEST_ON(test_absent_and_empty, struct fixture *f, set_up, tear_down)
{
    struct mu__msg *msg = make(f, MU__RESULT, false);
    struct mu__result *result = (void *)msg->body;
    size_t offset = 0;
    uint32_t bare_size;

    encode_one(f, msg);
    bare_size = f->frame->size;

    /* Nil in the middle for the absent ones; empty, but there, at the end. */
    f->frame->size = 0;
    result->message = mu__view_str("");
    encode_one(f, msg);
    assert_int_equal(f->frame->size, bare_size + 3);
    mu__pool_put(&f->pool, msg);

    msg = decode_one(f, &offset);
    result = (void *)msg->body;
    assert_int_equal(result->code, 0);
    assert_null(result->result.head);
    assert_non_null(result->message.data);
    assert_int_equal(result->message.size, 0);
    mu__pool_put(&f->pool, msg);
}

/* A value without bytes is nil: required, it travels as empty bytes, whether or not it
 * has a head; optional, it travels when it has one. */
TEST_ON(test_empty_value_is_nil, struct fixture *f, set_up, tear_down)
{
    struct mu__msg *msg = make(f, MU__STATUS, false);
    struct mu__status *status = (void *)msg->body;
    mu_value *value = NULL;
    size_t offset = 0;

    status->status = (struct mu__packed){NULL, NULL, 0, 0};
    encode_one(f, msg);
    mu__pool_put(&f->pool, msg);
    msg = decode_one(f, &offset);
    status = (void *)msg->body;
    assert_non_null(status->status.head);
    assert_int_equal(status->status.head_size, 0);
    assert_null(status->status.tail);
    assert_int_equal(mu__value_unpack(&status->status, NULL, 0, &value), 0);
    assert_int_equal(mu_value_type(value), MU_VALUE_NIL);
    mu_value_free(value);
    mu__pool_put(&f->pool, msg);
}

/* -0.0 and NaN are there, and keep their bits. */
TEST_ON(test_floats_keep_their_bits, struct fixture *f, set_up, tear_down)
{
    static const uint64_t patterns[] = {
        UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000),
        UINT64_C(0xfff0000000000000), UINT64_C(0x7ff8000000000001),
        UINT64_C(0x7ff0000000000001), UINT64_C(0x0000000000000001)};

    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        struct mu__msg *msg = make(f, MU__REPORT, false);
        struct mu__msg *back;
        size_t offset = 0;

        memcpy(&((struct mu__report *)(void *)msg->body)->number, &patterns[i], 8);
        f->frame->size = 0;
        encode_one(f, msg);
        back = decode_one(f, &offset);
        assert_same(msg, back);
        mu__pool_put(&f->pool, back);
        mu__pool_put(&f->pool, msg);
    }
}

/* An empty piece is something else than no piece. */
TEST_ON(test_empty_raw, struct fixture *f, set_up, tear_down)
{
    struct mu__msg *msg = make(f, MU__VAR_DATA, false);
    struct mu__var_data *data = (void *)msg->body;
    size_t offset = 0;

    data->data = (struct mu__view){tail_bytes, 0};
    encode_one(f, msg);
    mu__pool_put(&f->pool, msg);
    msg = decode_one(f, &offset);
    data = (void *)msg->body;
    assert_non_null(data->data.data);
    assert_int_equal(data->data.size, 0);
    mu__pool_put(&f->pool, msg);
}

TEST_PROGRAM()
