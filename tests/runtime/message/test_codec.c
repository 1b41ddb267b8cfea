/* The generic codec, over the real message table: golden bytes, bounds, bad bytes. */
#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "tests/support/golden.h"
#include "transport/link/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FRAME_BYTES = 8192 };

struct fixture {
    struct mu__pool pool;
    struct mu__buf *frame;
    char why[256];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    mu__pool_init(&f->pool);
    f->frame = mu__buf_new(FRAME_BYTES);
    assert_non_null(f->frame);
    *state = f;
    return 0;
}

/* A test that loses a message or a reference fails here. */
static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->pool.live, 0);
    assert_int_equal(f->frame->refs, 1);
    mu__buf_unref(f->frame);
    mu__pool_done(&f->pool);
    free(f);
    return 0;
}

/* ---- Filling and comparing any message by its row ---- */

static const uint8_t tail_bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                     16, 17, 18, 19};

/* [1, a tensor of five u8], packed. */
static const uint8_t value_head[] = {
    0x92, 0x01, 0xc7, 0x14, 0x01, 0x07, 0x01, 0x00, 0x00, 0x05, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
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
            *(struct mu__packed *)at = (struct mu__packed){value_head, tail_bytes,
                                                           sizeof value_head, 5};
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
static void test_golden(void **state)
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
static void test_many_records_in_a_frame(void **state)
{
    struct fixture *f = *state;
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
static void test_full_frame(void **state)
{
    struct fixture *f = *state;
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
static void test_backing(void **state)
{
    struct fixture *f = *state;
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

static void test_absent_and_empty(void **state)
{
    struct fixture *f = *state;
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
static void test_empty_value_is_nil(void **state)
{
    struct fixture *f = *state;
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
static void test_floats_keep_their_bits(void **state)
{
    static const uint64_t patterns[] = {
        UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000),
        UINT64_C(0xfff0000000000000), UINT64_C(0x7ff8000000000001),
        UINT64_C(0x7ff0000000000001), UINT64_C(0x0000000000000001)};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        struct mu__msg *msg = make(f, MU__VAR_WRITE, false);
        struct mu__msg *back;
        size_t offset = 0;

        memcpy(&((struct mu__var_write *)(void *)msg->body)->momentum, &patterns[i], 8);
        f->frame->size = 0;
        encode_one(f, msg);
        back = decode_one(f, &offset);
        assert_same(msg, back);
        mu__pool_put(&f->pool, back);
        mu__pool_put(&f->pool, msg);
    }
}

/* An empty piece is something else than no piece. */
static void test_empty_raw(void **state)
{
    struct fixture *f = *state;
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

/* ---- A table of our own, with every type and small bounds ---- */

#define ALL_FIELDS(F, S)                                                    \
    F(S, OPTIONAL, u64, u, 1000)                                            \
    F(S, OPTIONAL, u32, w, 300)                                             \
    F(S, OPTIONAL, i64, i, 0)                                               \
    F(S, OPTIONAL, f64, d, 0)                                               \
    F(S, OPTIONAL, flag, b, 0)                                              \
    F(S, OPTIONAL, str, s, 4)                                               \
    F(S, OPTIONAL, bytes, y, 4)                                             \
    F(S, OPTIONAL, value, v, 20)

#define RAW_FIELDS(F, S) F(S, REQUIRED, raw, r, 20)

#define FREE_FIELDS(F, S)                                                   \
    F(S, REQUIRED, u64, u, 0)                                               \
    F(S, REQUIRED, u32, w, 0)

#define TABLE(M)                                                            \
    M(1, ALL, all, ALL_FIELDS)                                              \
    M(2, RAW, raw, RAW_FIELDS)                                              \
    M(3, FREE, free, FREE_FIELDS)

#define BODY(number, NAME, name, FIELDS) MU__MESSAGE_STRUCT(test_##name, FIELDS)
TABLE(BODY)

#define FIELD(name, need, type, field, bound)                               \
    {#field, (uint32_t)offsetof(struct mu__test_##name, field), (bound),    \
     MU__FIELD_##type, MU__NEED_##need},
#define FIELDS_OF(number, NAME, name, FIELDS)                               \
    static const struct mu__field name##_fields[] = {FIELDS(FIELD, name)};
TABLE(FIELDS_OF)

#define ROW(number, NAME, name, FIELDS)                                     \
    [number] = {#name, name##_fields,                                       \
                sizeof name##_fields / sizeof name##_fields[0],             \
                0 FIELDS(MU__COUNT_REQUIRED, name),                         \
                sizeof(struct mu__test_##name)},
static const struct mu__row test_rows[] = {TABLE(ROW)};

static const struct mu__schema test_table = {.rows = test_rows, .rows_count = 4};

struct record_row {
    const char *what;
    const char *head;       /* hexadecimal */
    const char *tail;
    const char *why;        /* NULL: it is good */
};

static const struct record_row records[] = {
    {"bare", "93 01 02 03", "", NULL},
    {"all nil", "9b 01 02 03 c0 c0 c0 c0 c0 c0 c0 c0", "", NULL},
    {"everything", "9b 01 02 03 cd03e8 cd012c d0df cb3ff0000000000000 c3 a461626364"
     " c40401020304 c401c0", "", NULL},
    {"wide numbers", "95 d10001 d200000002 cf0000000000000003 cf00000000000003e8 d1012c",
     "", NULL},
    {"narrow float", "97 01 02 03 c0 c0 c0 ca3f800000", "", NULL},
    {"wide lengths", "dd0000000a cc01 cc02 cc03 c0 c0 c0 c0 c0 da000161 c6000000026162",
     "", NULL},
    {"a map", "de0000", "", "byte 8: expected a list"},
    {"unknown fields", "9d 01 02 03 c0 c0 c0 c0 c0 c0 c0 c0"
     " 82 a161 90 a162 93 c2 cbc0c0c0c0c0c0c0c0 c70103ff c40100", "", NULL},
    {"a tail in a message without such", "95 03 02 03 05 06", "01",
     "byte 14: free: a tail of 1 bytes that no field takes"},
    {"unknown field takes the tail", "96 03 02 03 05 06 01", "01", NULL},
    {"unknown kind", "9102", "", "expected a list of 3 items"},
    {"kind of tomorrow", "93 20 c0 c0", "", NULL},
    {"large kind", "93 cfffffffffffffffff c0 c0", "", NULL},
    {"kind not in the table", "93 00 c0 c0", "", NULL},

    {"empty head", "", "", "byte 8: expected a list of 3 items or more, found the end"},
    {"no list", "01", "", "byte 8: expected a list of 3 items or more, found an unsigne"},
    {"cut in the list's head", "dc00", "", "byte 8: expected a list"},
    {"kind of no kind", "93 a0 02 03", "", "byte 9: expected a message's kind, found a"},
    {"kind below zero", "93 ff 02 03", "", "byte 9: expected a message's kind, found a"},
    {"actor too large", "93 01 cf0000000100000000 03", "", "all: expected an actor's nu"},
    {"no sender", "93 01 02", "", "byte 11: all: expected an actor's number, found the"},
    {"sender is nil", "93 01 02 c0", "", "expected an actor's number, found nil"},
    {"lacks a field", "94 03 02 03 05", "", "byte 13: free lacks w, which is required"},
    {"required is nil", "95 03 02 03 05 c0", "",
     "free.w: expected an unsigned number of 32 bits, found nil"},
    {"more than 32 bits", "95 03 02 03 05 cf0000000100000000", "", "byte 13: free.w"},
    {"u64 beyond its bound", "94 01 02 03 cd03e9", "", "byte 12: all.u: expected an"
     " unsigned number (at most 1000), found an unsigned number that is not so"},
    {"u32 beyond its bound", "95 01 02 03 c0 cd012d", "", "all.w"},
    {"u64 below zero", "94 01 02 03 ff", "", "all.u"},
    {"u64 below zero, wide", "94 01 02 03 d3ffffffffffffffff", "", "all.u"},
    {"u64 is a string", "94 01 02 03 a131", "",
     "all.u: expected an unsigned number (at most 1000), found a string"},
    {"i64 too large", "96 01 02 03 c0 c0 cf8000000000000000", "", "all.i: expected a si"},
    {"float is an int", "97 01 02 03 c0 c0 c0 01", "", "all.d: expected a float, found"},
    {"flag is an int", "98 01 02 03 c0 c0 c0 c0 01", "", "all.b: expected a truth value"},
    {"str too long", "99 01 02 03 c0 c0 c0 c0 c0 a56162636465", "", "all.s"},
    {"str is bytes", "99 01 02 03 c0 c0 c0 c0 c0 c40161", "", "all.s"},
    {"str cut short", "99 01 02 03 c0 c0 c0 c0 c0 a46162", "", "byte 17: all.s"},
    {"str of four billion", "99 01 02 03 c0 c0 c0 c0 c0 dbffffffff61", "", "all.s"},
    {"bytes too long", "9a 01 02 03 c0 c0 c0 c0 c0 c0 c4050102030405", "", "all.y"},
    {"bytes are a string", "9a 01 02 03 c0 c0 c0 c0 c0 c0 a161", "", "all.y"},
    {"value is no bytes", "9b 01 02 03 c0 c0 c0 c0 c0 c0 c0 01", "", "all.v"},
    {"value and tail too long", "9b 01 02 03 c0 c0 c0 c0 c0 c0 c0 c40a"
     "00000000000000000000", "0000000000000000000000", "all.v"},
    {"a tail for nil", "9b 01 02 03 c0 c0 c0 c0 c0 c0 c0 c400", "01", "no field takes"},
    {"a tail for nothing", "93 01 02 03", "01", "all: a tail of 1 bytes that no field"},
    {"raw", "94 02 02 03 03", "010203", NULL},
    {"empty raw", "94 02 02 03 00", "", NULL},
    {"raw of another size", "94 02 02 03 02", "010203", "raw.r: expected the size of th"},
    {"raw without tail", "94 02 02 03 02", "", "raw.r"},
    {"raw too long", "94 02 02 03 15", "000000000000000000000000000000000000000000",
     "raw.r: expected the size of the tail (at most 20)"},
    {"raw is bytes", "94 02 02 03 c40101", "", "raw.r"},
    {"bytes behind", "93 01 02 03 c0", "", "byte 12: all: the head has 1 bytes behind"},
    {"four billion fields", "ddffffffff 01 02 03 c0 c0 c0 c0 c0 c0 c0 c0 c0", "",
     "all: field 9, unknown here, is no msgpack: found the end"},
    {"unknown list of four billion", "96 03 02 03 05 06 ddffffffff", "", "free: field 2"},
    {"unknown map of four billion", "96 03 02 03 05 06 dfffffffff", "", "free: field 2"},
    {"unknown not msgpack", "96 03 02 03 05 06 c1", "", "found a byte that is not msgpa"},
};

/* A record in a buffer of just its size, so that a sanitizer sees a read behind it. */
static struct mu__buf *make_record(const struct record_row *row, size_t begin)
{
    uint8_t head[64];
    uint8_t tail[64];
    size_t head_size = 0;
    size_t tail_size = 0;
    size_t head_end;
    size_t tail_begin;
    struct mu__buf *buf;

    assert_true(hex_read(row->head, head, sizeof head, &head_size));
    assert_true(hex_read(row->tail, tail, sizeof tail, &tail_size));
    head_end = begin + 8 + head_size;
    tail_begin = tail_size == 0 ? head_end : (head_end + 15) / 16 * 16;
    buf = mu__buf_new(tail_begin + tail_size);
    assert_non_null(buf);
    memset(buf->data, 0, buf->capacity);
    buf->data[begin] = (uint8_t)head_size;
    buf->data[begin + 4] = (uint8_t)tail_size;
    memcpy(buf->data + begin + 8, head, head_size);
    memcpy(buf->data + tail_begin, tail, tail_size);
    buf->size = buf->capacity;
    return buf;
}

static void check_record(struct fixture *f, const struct record_row *row, size_t begin)
{
    struct mu__buf *buf = make_record(row, begin);
    struct mu__msg *msg = (struct mu__msg *)(void *)f;
    size_t offset = begin;
    int rv = mu__decode(&test_table, &f->pool, buf, &offset, f->why, sizeof f->why, &msg);

    if (row->why == NULL) {
        if (rv != 0)
            fail_msg("%s: refused: %s", row->what, f->why);
        assert_int_equal(offset, buf->size);
        mu__pool_put(&f->pool, msg);
    } else {
        if (rv != -MU_EDATALOSS)
            fail_msg("%s: not refused", row->what);
        if (begin == 0 && strstr(f->why, row->why) == NULL)
            fail_msg("%s: refused with \"%s\"", row->what, f->why);
        assert_int_equal(offset, begin);
        assert_ptr_equal(msg, f);
    }
    assert_int_equal(f->pool.live, 0);
    assert_int_equal(buf->refs, 1);
    mu__buf_unref(buf);
}

static void test_records(void **state)
{
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        for (size_t begin = 0; begin < 17; begin++)
            check_record(*state, &records[i], begin);
}

/* Each good record, cut anywhere, is refused. */
static void test_cut_records(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct mu__buf *whole;

        if (records[i].why != NULL)
            continue;
        whole = make_record(&records[i], 0);
        for (uint32_t size = 0; size < whole->size; size++) {
            struct mu__buf *part = mu__buf_new(size);
            struct mu__msg *msg;
            size_t offset = 0;

            assert_non_null(part);
            memcpy(part->data, whole->data, size);
            part->size = size;
            assert_int_equal(mu__decode(&test_table, &f->pool, part, &offset, f->why,
                                        sizeof f->why, &msg), -MU_EDATALOSS);
            mu__buf_unref(part);
        }
        mu__buf_unref(whole);
    }
}

struct prefix_row {
    const char *bytes;
    const char *why;
};

static const struct prefix_row prefixes[] = {
    {"", "byte 0: expected the 8 bytes before a record, found 0"},
    {"04000000 000000", "byte 0: expected the 8 bytes before a record, found 7"},
    {"05000000 00000000 93010203", "a head of 5 bytes in a frame that has 4 left"},
    {"ffffffff 00000000 93010203", "a head of 4294967295 bytes"},
    {"04000000 01000000 93010203", "a tail of 1 bytes in a frame that has 0 left"},
    {"04000000 ffffffff 93010203 00000000 00", "a tail of 4294967295 bytes"},
    {"04000000 02000000 94020203 00000000 00", "a tail of 2 bytes in a frame that has 5"},
    {"05000000 01000000 9402020301 000001 07", "the bytes before the tail are not zero"},
};

static void test_prefixes(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        struct mu__msg *msg;
        size_t offset = 0;
        size_t size = 0;

        assert_true(hex_read(prefixes[i].bytes, f->frame->data, FRAME_BYTES, &size));
        f->frame->size = (uint32_t)size;
        assert_int_equal(mu__decode(&test_table, &f->pool, f->frame, &offset, f->why,
                                    sizeof f->why, &msg), -MU_EDATALOSS);
        if (strstr(f->why, prefixes[i].why) == NULL)
            fail_msg("row %zu: refused with \"%s\"", i, f->why);
    }
}

/* Words are cut to the room that there is, and none is needed. */
static void test_room_for_words(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg;
    size_t offset = 0;

    for (size_t room = 0; room < 30; room++) {
        memset(f->why, '#', sizeof f->why);
        assert_int_equal(mu__decode(&test_table, &f->pool, f->frame, &offset,
                                    room == 0 ? NULL : f->why, room, &msg),
                         -MU_EDATALOSS);
        assert_int_equal(f->why[room], '#');
        if (room > 0)
            assert_true(strlen(f->why) < room);
    }
}

/* ---- Messages that may not travel ---- */

/* A peer cannot forge what only this node may say, pointers least of all. */
static void test_local_kinds_stay_at_home(void **state)
{
    struct fixture *f = *state;
    size_t local = 0;

    for (uint16_t i = 0; i < mu__messages.local_count; i++) {
        const struct mu__local_row *row = &mu__messages.local[i];
        uint16_t kind = MU__LOCAL_KINDS_BEGIN + i;
        uint8_t head[] = {0x94, 0xcd, (uint8_t)(kind >> 8), (uint8_t)kind, 1, 1, 1};
        struct mu__msg *msg;
        size_t offset = 0;

        if (row->name == NULL)
            continue;
        local++;
        msg = mu__pool_get(&f->pool, kind, row->body_size);
        f->frame->size = 0;
        assert_int_equal(mu__encode(&mu__messages, msg, f->frame), -MU_EINVALID);
        mu__pool_put(&f->pool, msg);

        memset(f->frame->data, 0, 8);
        f->frame->data[0] = sizeof head;
        memcpy(f->frame->data + 8, head, sizeof head);
        f->frame->size = 8 + sizeof head;
        assert_int_equal(mu__decode(&mu__messages, &f->pool, f->frame, &offset, f->why,
                                    sizeof f->why, &msg), -MU_EDATALOSS);
        assert_non_null(strstr(f->why, "does not travel"));
        assert_non_null(strstr(f->why, row->name));
    }
    assert_true(local >= 17);
}

/* Numbers of before, which a former peer may say, and numbers of a newer one. */
static void test_numbers_without_a_message_are_skipped(void **state)
{
    static const uint8_t kinds[] = {1, 7, 15, 48, 95, 121, 255};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof kinds; i++) {
        uint8_t head[] = {0x94, 0xcc, kinds[i], 1, 1, 1};
        struct mu__msg *msg = (struct mu__msg *)f;
        size_t offset = 0;

        memset(f->frame->data, 0, 8);
        f->frame->data[0] = sizeof head;
        memcpy(f->frame->data + 8, head, sizeof head);
        f->frame->size = 8 + sizeof head;
        assert_int_equal(mu__decode(&mu__messages, &f->pool, f->frame, &offset, f->why,
                                    sizeof f->why, &msg), 0);
        assert_null(msg);
        assert_int_equal(offset, f->frame->size);
    }
}

static void test_unknown_kind_is_not_encoded(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg = mu__pool_get(&f->pool, MU__KINDS_END - 1, 8);

    assert_int_equal(mu__encode(&mu__messages, msg, f->frame), -MU_EINVALID);
    assert_true(mu__encode_bound(&mu__messages, msg) > 0);
    msg->kind = MU__KINDS_END;
    assert_int_equal(mu__encode(&mu__messages, msg, f->frame), -MU_EINVALID);
    msg->kind = UINT16_MAX;
    assert_int_equal(mu__encode(&mu__messages, msg, f->frame), -MU_EINVALID);
    assert_int_equal(f->frame->size, 0);
    mu__pool_put(&f->pool, msg);
}

/* ---- Bounds when encoding ---- */

static int encode_all(struct fixture *f, const struct mu__test_all *body)
{
    struct mu__msg *msg = mu__pool_get(&f->pool, 1, sizeof *body);
    uint32_t before;
    int rv;

    assert_non_null(msg);
    memcpy(msg->body, body, sizeof *body);
    before = f->frame->size;
    rv = mu__encode(&test_table, msg, f->frame);
    if (rv != 0)
        assert_int_equal(f->frame->size, before);
    mu__pool_put(&f->pool, msg);
    return rv;
}

static void test_bounds(void **state)
{
    static const char bytes[32];
    const struct mu__test_all good[] = {
        {.u = 1000}, {.w = 300}, {.s = {bytes, 4}}, {.y = {bytes, 4}},
        {.v = {bytes, bytes, 10, 10}}};
    const struct mu__test_all bad[] = {
        {.u = 1001}, {.w = 301}, {.s = {bytes, 5}}, {.y = {bytes, 5}},
        {.v = {bytes, NULL, 21, 0}}, {.v = {bytes, bytes, 10, 11}},
        {.v = {bytes, bytes, UINT32_MAX, UINT32_MAX}}};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(encode_all(*state, &good[i]), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(encode_all(*state, &bad[i]), -MU_ERANGE);
}

static void test_raw_bound(void **state)
{
    static const char bytes[32];
    struct fixture *f = *state;
    struct mu__msg *msg = mu__pool_get(&f->pool, 2, sizeof(struct mu__test_raw));
    struct mu__test_raw *raw = (void *)msg->body;

    raw->r = (struct mu__view){bytes, 21};
    assert_int_equal(mu__encode(&test_table, msg, f->frame), -MU_ERANGE);
    raw->r.size = 20;
    assert_int_equal(mu__encode(&test_table, msg, f->frame), 0);
    mu__pool_put(&f->pool, msg);
}

/* Every unsigned and signed width, and both of its ends. */
static void test_number_widths(void **state)
{
    struct fixture *f = *state;

    for (unsigned bit = 0; bit < 64; bit++) {
        for (int step = -1; step <= 1; step++) {
            struct mu__msg *msg = mu__pool_get(&f->pool, 3, sizeof(struct mu__test_free));
            struct mu__test_free *body = (void *)msg->body;
            uint64_t number = (UINT64_C(1) << bit) + (uint64_t)step;
            struct mu__msg *back = NULL;
            size_t offset = 0;

            body->u = number;
            body->w = (uint32_t)number;
            f->frame->size = 0;
            assert_int_equal(mu__encode(&test_table, msg, f->frame), 0);
            assert_int_equal(mu__decode(&test_table, &f->pool, f->frame, &offset, f->why,
                                        sizeof f->why, &back), 0);
            body = (void *)back->body;
            assert_true(body->u == number && body->w == (uint32_t)number);
            mu__pool_put(&f->pool, back);
            mu__pool_put(&f->pool, msg);

            number = 0 - number;
            f->frame->size = 0;
            assert_int_equal(encode_all(f, &(struct mu__test_all){.i = (int64_t)number}),
                             0);
            offset = 0;
            assert_int_equal(mu__decode(&test_table, &f->pool, f->frame, &offset, f->why,
                                        sizeof f->why, &back), 0);
            assert_true(((struct mu__test_all *)(void *)back->body)->i ==
                        (int64_t)number);
            mu__pool_put(&f->pool, back);
        }
    }
}

/* The codec counts on that. */
static void test_required_fields_come_first(void **state)
{
    const struct mu__schema *const schemas[] = {&mu__messages, &mu__frame_messages};

    (void)state;
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++)
        for (size_t kind = 0; kind < schemas[i]->rows_count; kind++) {
            const struct mu__row *row = &schemas[i]->rows[kind];

            for (size_t j = 0; j < row->fields_count; j++)
                assert_int_equal(row->fields[j].required != 0, j < row->required_count);
        }
}

#define CODEC_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CODEC_TEST(test_required_fields_come_first),
        CODEC_TEST(test_golden),
        CODEC_TEST(test_many_records_in_a_frame),
        CODEC_TEST(test_full_frame),
        CODEC_TEST(test_backing),
        CODEC_TEST(test_absent_and_empty),
        CODEC_TEST(test_empty_value_is_nil),
        CODEC_TEST(test_floats_keep_their_bits),
        CODEC_TEST(test_empty_raw),
        CODEC_TEST(test_records),
        CODEC_TEST(test_cut_records),
        CODEC_TEST(test_prefixes),
        CODEC_TEST(test_room_for_words),
        CODEC_TEST(test_local_kinds_stay_at_home),
        CODEC_TEST(test_numbers_without_a_message_are_skipped),
        CODEC_TEST(test_unknown_kind_is_not_encoded),
        CODEC_TEST(test_bounds),
        CODEC_TEST(test_raw_bound),
        CODEC_TEST(test_number_widths),
    };

    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
