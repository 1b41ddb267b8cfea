/* Records of a table with every type and small bounds, and what may not travel. */
#include "tests/runtime/message/codec_fixture.h"

/* ---- A table of our own, with every type and small bounds ---- */

#define ALL_FIELDS(F, S)         \
    F(S, OPTIONAL, u64, u, 1000) \
    F(S, OPTIONAL, u32, w, 300)  \
    F(S, OPTIONAL, i64, i, 0)    \
    F(S, OPTIONAL, f64, d, 0)    \
    F(S, OPTIONAL, flag, b, 0)   \
    F(S, OPTIONAL, str, s, 4)    \
    F(S, OPTIONAL, bytes, y, 4)  \
    F(S, OPTIONAL, value, v, 20)

#define RAW_FIELDS(F, S) F(S, REQUIRED, raw, r, 20)

#define FREE_FIELDS(F, S)     \
    F(S, REQUIRED, u64, u, 0) \
    F(S, REQUIRED, u32, w, 0)

#define TABLE(M)               \
    M(1, ALL, all, ALL_FIELDS) \
    M(2, RAW, raw, RAW_FIELDS) \
    M(3, FREE, free, FREE_FIELDS)

#define BODY(number, NAME, name, FIELDS) MU__MESSAGE_STRUCT(test_##name, FIELDS)

TABLE(BODY)

#define FIELD(name, need, type, field, bound)                            \
    {#field, (uint32_t)offsetof(struct mu__test_##name, field), (bound), \
     MU__FIELD_##type, MU__NEED_##need},

#define FIELDS_OF(number, NAME, name, FIELDS) \
    static const struct mu__field name##_fields[] = {FIELDS(FIELD, name)};

TABLE(FIELDS_OF)

#define ROW(number, NAME, name, FIELDS)                         \
    [number] = {#name,                                          \
                name##_fields,                                  \
                sizeof name##_fields / sizeof name##_fields[0], \
                0 FIELDS(MU__COUNT_REQUIRED, name),             \
                sizeof(struct mu__test_##name),                 \
                0},

static const struct mu__row test_rows[] = {TABLE(ROW)};

static const struct mu__schema test_table = {.rows = test_rows, .rows_count = 4};

struct record_row {
    const char *what;
    const char *head; /* hexadecimal */
    const char *tail;
    const char *why; /* NULL: it is good */
};

static const struct record_row records[] = {
    {"bare", "93 01 02 03", "", NULL},
    {"all nil", "9b 01 02 03 c0 c0 c0 c0 c0 c0 c0 c0", "", NULL},
    {"everything",
     "9b 01 02 03 cd03e8 cd012c d0df cb3ff0000000000000 c3 a461626364"
     " c40401020304 c401c0",
     "", NULL},
    {"wide numbers", "95 d10001 d200000002 cf0000000000000003 cf00000000000003e8 d1012c",
     "", NULL},
    {"narrow float", "97 01 02 03 c0 c0 c0 ca3f800000", "", NULL},
    {"wide lengths", "dd0000000a cc01 cc02 cc03 c0 c0 c0 c0 c0 da000161 c6000000026162",
     "", NULL},
    {"a map", "de0000", "", "byte 8: expected a list"},
    {"unknown fields",
     "9d 01 02 03 c0 c0 c0 c0 c0 c0 c0 c0"
     " 82 a161 90 a162 93 c2 cbc0c0c0c0c0c0c0c0 c70103ff c40100",
     "", NULL},
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
    {"u64 beyond its bound", "94 01 02 03 cd03e9", "",
     "byte 12: all.u: expected an"
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
    {"value and tail too long",
     "9b 01 02 03 c0 c0 c0 c0 c0 c0 c0 c40a"
     "00000000000000000000",
     "0000000000000000000000", "all.v"},
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

TEST_WITH(test_records, set_up, tear_down)
{
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        for (size_t begin = 0; begin < 17; begin++)
            check_record(*state, &records[i], begin);
}

/* Each good record, cut anywhere, is refused. */
TEST_ON(test_cut_records, struct fixture *f, set_up, tear_down)
{
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
                                        sizeof f->why, &msg),
                             -MU_EDATALOSS);
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

TEST_ON(test_prefixes, struct fixture *f, set_up, tear_down)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        struct mu__msg *msg;
        size_t offset = 0;
        size_t size = 0;

        assert_true(hex_read(prefixes[i].bytes, f->frame->data, FRAME_BYTES, &size));
        f->frame->size = (uint32_t)size;
        assert_int_equal(mu__decode(&test_table, &f->pool, f->frame, &offset, f->why,
                                    sizeof f->why, &msg),
                         -MU_EDATALOSS);
        if (strstr(f->why, prefixes[i].why) == NULL)
            fail_msg("row %zu: refused with \"%s\"", i, f->why);
    }
}

/* Words are cut to the room that there is, and none is needed. */
TEST_ON(test_room_for_words, struct fixture *f, set_up, tear_down)
{
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
TEST_ON(test_local_kinds_stay_at_home, struct fixture *f, set_up, tear_down)
{
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
                                    sizeof f->why, &msg),
                         -MU_EDATALOSS);
        assert_non_null(strstr(f->why, "does not travel"));
        assert_non_null(strstr(f->why, row->name));
    }
    assert_true(local >= 17);
}

/* Numbers of before, which a former peer may say, and numbers of a newer one. */
TEST_ON(test_numbers_without_a_message_are_skipped, struct fixture *f, set_up, tear_down)
{
    static const uint8_t kinds[] = {1, 7, 15, 48, 95, 121, 255};

    for (size_t i = 0; i < sizeof kinds; i++) {
        uint8_t head[] = {0x94, 0xcc, kinds[i], 1, 1, 1};
        struct mu__msg *msg = (struct mu__msg *)f;
        size_t offset = 0;

        memset(f->frame->data, 0, 8);
        f->frame->data[0] = sizeof head;
        memcpy(f->frame->data + 8, head, sizeof head);
        f->frame->size = 8 + sizeof head;
        assert_int_equal(mu__decode(&mu__messages, &f->pool, f->frame, &offset, f->why,
                                    sizeof f->why, &msg),
                         0);
        assert_null(msg);
        assert_int_equal(offset, f->frame->size);
    }
}

TEST_ON(test_unknown_kind_is_not_encoded, struct fixture *f, set_up, tear_down)
{
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

TEST_WITH(test_bounds, set_up, tear_down)
{
    static const char bytes[32];
    const struct mu__test_all good[] = {{.u = 1000},
                                        {.w = 300},
                                        {.s = {bytes, 4}},
                                        {.y = {bytes, 4}},
                                        {.v = {bytes, bytes, 10, 10}}};
    const struct mu__test_all bad[] = {{.u = 1001},
                                       {.w = 301},
                                       {.s = {bytes, 5}},
                                       {.y = {bytes, 5}},
                                       {.v = {bytes, NULL, 21, 0}},
                                       {.v = {bytes, bytes, 10, 11}},
                                       {.v = {bytes, bytes, UINT32_MAX, UINT32_MAX}}};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(encode_all(*state, &good[i]), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(encode_all(*state, &bad[i]), -MU_ERANGE);
}

TEST_ON(test_raw_bound, struct fixture *f, set_up, tear_down)
{
    static const char bytes[32];
    struct mu__msg *msg = mu__pool_get(&f->pool, 2, sizeof(struct mu__test_raw));
    struct mu__test_raw *raw = (void *)msg->body;

    raw->r = (struct mu__view){bytes, 21};
    assert_int_equal(mu__encode(&test_table, msg, f->frame), -MU_ERANGE);
    raw->r.size = 20;
    assert_int_equal(mu__encode(&test_table, msg, f->frame), 0);
    mu__pool_put(&f->pool, msg);
}

/* Every unsigned and signed width, and both of its ends. */
TEST_ON(test_number_widths, struct fixture *f, set_up, tear_down)
{
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
                                        sizeof f->why, &back),
                             0);
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
                                        sizeof f->why, &back),
                             0);
            assert_true(((struct mu__test_all *)(void *)back->body)->i ==
                        (int64_t)number);
            mu__pool_put(&f->pool, back);
        }
    }
}

/* The codec counts on that. */
TEST_WITH(test_required_fields_come_first, set_up, tear_down)
{
    const struct mu__schema *const schemas[] = {&mu__messages, &mu__frame_messages};

    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++)
        for (size_t kind = 0; kind < schemas[i]->rows_count; kind++) {
            const struct mu__row *row = &schemas[i]->rows[kind];

            for (size_t j = 0; j < row->fields_count; j++)
                assert_int_equal(row->fields[j].required != 0, j < row->required_count);
        }
}

TEST_PROGRAM()
