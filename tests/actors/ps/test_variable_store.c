/* The variables of one server, alone: who creates, who waits, what is refused. */
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/variable_store.h"

#include <inttypes.h>
#include <math.h>

/* ---- Shapes ---- */

static const struct shape_row {
    struct mu__shape shape;
    int rv;
    const char *text;
} shape_rows[] = {
    {{MU_F32, 2, {1000, 10}, 2}, 0, "float32[1000,10] in 2 shards"},
    {{MU_I8, 0, {0}, 1}, 0, "int8[] in 1 shard"},
    {{MU_F64, 8, {1, 1, 1, 1, 1, 1, 1, 2}, 1}, 0, "float64[1,1,1,1,1,1,1,2] in 1 shard"},
    {{MU_U8, 1, {MU__VARIABLE_BYTES_MAX}, 1}, 0, "uint8[4398046511104] in 1 shard"},
    {{MU_F32, 1, {MU__VARIABLE_SHARDS_MAX}, MU__VARIABLE_SHARDS_MAX},
     0,
     "float32[4096] in 4096 shards"},
    {{0, 1, {1}, 1}, -MU_EINVALID, "?[1] in 1 shard"},
    {{255, 1, {1}, 1}, -MU_EINVALID, "?[1] in 1 shard"},
    {{MU_F32, 9, {1, 1, 1, 1, 1, 1, 1, 1}, 1},
     -MU_EINVALID,
     "float32[1,1,1,1,1,1,1,1] in 1 shard"},
    {{MU_F32, 2, {5, 0}, 1}, -MU_EINVALID, "float32[5,0] in 1 shard"},
    {{MU_F32, 1, {0}, 1}, -MU_EINVALID, "float32[0] in 1 shard"},
    {{MU_U8, 1, {MU__VARIABLE_BYTES_MAX + 1}, 1},
     -MU_ERANGE,
     "uint8[4398046511105] in 1 shard"},
    {{MU_F32, 3, {UINT64_MAX / 4 + 1, 4, 4}, 1},
     -MU_ERANGE,
     "float32[4611686018427387904,4,4] in 1 shard"},
    {{MU_F64, 2, {UINT64_C(1) << 32, UINT64_C(1) << 32}, 1},
     -MU_ERANGE,
     "float64[4294967296,4294967296] in 1 shard"},
    {{MU_F32, 1, {4}, 0}, -MU_ERANGE, "float32[4] in 0 shards"},
    {{MU_F32, 1, {4}, 5}, -MU_ERANGE, "float32[4] in 5 shards"},
    {{MU_F32, 0, {0}, 2}, -MU_ERANGE, "float32[] in 2 shards"},
    {{MU_F32, 1, {9999}, MU__VARIABLE_SHARDS_MAX + 1},
     -MU_ERANGE,
     "float32[9999] in 4097 shards"},
};

TEST(test_shapes)
{
    char text[MU__SHAPE_TEXT_MAX];
    mu_error error;

    for (size_t i = 0; i < sizeof shape_rows / sizeof shape_rows[0]; i++) {
        assert_int_equal(mu__shape_check(&shape_rows[i].shape, &error), shape_rows[i].rv);
        mu__shape_text(&shape_rows[i].shape, text, sizeof text);
        assert_string_equal(text, shape_rows[i].text);
    }
}

/* The first shards get one row more: "div". Rows have 8 bytes here. */
static const struct cut_row {
    uint64_t rows;
    uint32_t shards;
    uint64_t counts[5];
} cut_rows[] = {
    {10, 4, {3, 3, 2, 2}},
    {13, 5, {3, 3, 3, 2, 2}},
    {5, 5, {1, 1, 1, 1, 1}},
    {7, 1, {7}},
};

TEST(test_cutting)
{
    for (size_t i = 0; i < sizeof cut_rows / sizeof cut_rows[0]; i++) {
        const struct cut_row *row = &cut_rows[i];
        struct mu__shape shape = {MU_F32, 2, {row->rows, 2}, row->shards};
        uint64_t expected = 0;
        uint64_t offset;
        uint64_t bytes;

        for (uint32_t shard = 0; shard < row->shards; shard++) {
            mu__shape_shard(&shape, shard, &offset, &bytes);
            assert_int_equal(offset, expected);
            assert_int_equal(bytes, row->counts[shard] * 8);
            expected += bytes;
        }
        assert_int_equal(expected, mu__shape_bytes(&shape));
    }
}

TEST(test_dims_travel)
{
    const struct mu__shape shape = {MU_F32, 3, {1, UINT64_C(0x0102030405060708), 3}, 1};
    struct mu__shape back = {MU_F32, 0, {0}, 1};
    uint8_t packed[MU__DIMS_BYTES_MAX + 8] = {0};
    uint32_t size = mu__shape_pack_dims(&shape, packed);

    assert_int_equal(size, 24);
    assert_int_equal(packed[8], 0x08);
    assert_int_equal(packed[15], 0x01);
    assert_int_equal(mu__shape_unpack_dims((struct mu__view){packed, size}, &back), 0);
    assert_true(mu__shape_equal(&shape, &back));
    assert_int_equal(mu__shape_unpack_dims((struct mu__view){packed, 7}, &back),
                     -MU_EINVALID);
    assert_int_equal(mu__shape_unpack_dims((struct mu__view){packed, 72}, &back),
                     -MU_EINVALID);
}

/* The published test values of FNV-1a. */
TEST(test_name_hash)
{
    assert_true(mu__name_hash(mu__view_str("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(mu__name_hash(mu__view_str("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(mu__name_hash(mu__view_str("foobar")) == UINT64_C(0x85944171f73967e8));
}

/* ---- Requests that are refused ---- */

static const struct open_row {
    const char *what;
    const char *name;
    struct mu__shape shape;
    uint32_t shard;
    uint64_t bytes;
    int rv;
} open_rows[] = {
    {"fine", "w", {MU_F32, 1, {16}, 1}, 0, 64, 0},
    {"no name", "", {MU_F32, 1, {16}, 1}, 0, 64, -MU_EINVALID},
    {"a name with a line end", "a\nb", {MU_F32, 1, {16}, 1}, 0, 64, -MU_EINVALID},
    {"a name of wrong UTF-8", "a\xFF", {MU_F32, 1, {16}, 1}, 0, 64, -MU_EINVALID},
    {"no dtype", "w", {0, 1, {16}, 1}, 0, 64, -MU_EINVALID},
    {"rank 9", "w", {MU_F32, 9, {1}, 1}, 0, 4, -MU_EINVALID},
    {"dims that overflow", "w", {MU_F32, 2, {UINT64_MAX, 2}, 1}, 0, 64, -MU_ERANGE},
    {"too many shards", "w", {MU_F32, 1, {16}, 17}, 0, 4, -MU_ERANGE},
    {"no shards", "w", {MU_F32, 1, {16}, 0}, 0, 64, -MU_ERANGE},
    {"a shard past the last", "w", {MU_F32, 1, {16}, 2}, 2, 32, -MU_EINVALID},
    {"too few bytes", "w", {MU_F32, 1, {16}, 1}, 0, 60, -MU_EINVALID},
    {"too many bytes", "w", {MU_F32, 1, {16}, 1}, 0, 68, -MU_EINVALID},
    {"beyond the store", "w", {MU_F32, 1, {1025}, 1}, 0, 4100, -MU_EEXHAUSTED},
};

TEST(test_opens_refused)
{
    for (size_t i = 0; i < sizeof open_rows / sizeof open_rows[0]; i++) {
        const struct open_row *row = &open_rows[i];
        struct mu__variable_store *store = mu__store_new(&small, i);
        struct mu__store_open request = {
            mu__view_str(row->name), row->shape, row->shard, row->bytes,
            {pid(ALICE), 1},         false,      0,          0};
        mu_error error = {.message = ""};
        int rv = mu__store_open(store, &request, &error);

        if (rv != row->rv)
            fail_msg("%s: %d: %s", row->what, rv, error.message);
        assert_true((error.message[0] == '\0') == (rv == 0));
        assert_int_equal(totals_of(store).variables, rv == 0);
        mu__store_free(store);
    }
}

TEST_ON(test_name_length, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open request = open_of("", ALICE, 1);
    char name[257];
    mu_error error;

    memset(name, 'n', sizeof name);
    request.name = (struct mu__view){name, 256};
    assert_int_equal(mu__store_open(store, &request, &error), -MU_EINVALID);
    request.name.size = 255;
    assert_int_equal(mu__store_open(store, &request, &error), 0);
}

static const struct range_row {
    const char *what;
    uint64_t offset;
    uint32_t size;
    int read_rv;
    int write_rv;
} range_rows[] = {
    {"all", 0, 64, 0, 0},
    {"the last element", 60, 4, 0, 0},
    {"nothing", 64, 0, 0, -MU_EINVALID},
    {"one too many", 4, 64, -MU_ERANGE, -MU_ERANGE},
    {"from the end", 64, 4, -MU_ERANGE, -MU_ERANGE},
    {"far away", UINT64_MAX - 3, 4, -MU_ERANGE, -MU_ERANGE},
    {"half an element", 0, 6, 0, -MU_EINVALID},
    {"off an element", 2, 4, 0, -MU_EINVALID},
};

TEST_ON(test_ranges, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    float zeros[17] = {0};

    for (size_t i = 0; i < sizeof range_rows / sizeof range_rows[0]; i++) {
        const struct range_row *row = &range_rows[i];
        struct mu__store_read read = {id, row->offset, row->size};
        struct mu__store_write write = {.id = id,
                                        .operation = MU__WRITE_ADD,
                                        .offset = row->offset,
                                        .data = {zeros, row->size},
                                        .writer = pid(BOB)};
        struct mu__view data;
        uint64_t version;
        mu_error error;
        int read_rv = mu__store_read(store, &read, &error, &data, &version);
        int write_rv = write_it(store, write, &error);

        if (read_rv != row->read_rv || write_rv != row->write_rv)
            fail_msg("%s: %d %d", row->what, read_rv, write_rv);
    }
}

static const struct operation_row {
    uint32_t dtype;
    uint32_t operation;
    int rv;
} operation_rows[] = {
    {MU_F32, MU__WRITE_GRADIENT, 0},
    {MU_F64, MU__WRITE_GRADIENT, 0},
    {MU_I32, MU__WRITE_ADD, 0},
    {MU_I32, MU__WRITE_GRADIENT, -MU_EINVALID},
    {MU_BOOL, MU__WRITE_ADD, -MU_EINVALID},
    {MU_BOOL, MU__WRITE_ASSIGN, 0},
    {MU_F32, MU__WRITE_ZERO, -MU_EINVALID}, /* with data */
    {MU_F32, 0, -MU_EINVALID},
    {MU_F32, MU__WRITE_COMMIT, -MU_EINVALID}, /* with data */
    {MU_F32, 8, -MU_EINVALID},
    {MU_F32, UINT32_MAX, -MU_EINVALID},
};

TEST(test_operations)
{
    const double data[1] = {1};

    for (size_t i = 0; i < sizeof operation_rows / sizeof operation_rows[0]; i++) {
        const struct operation_row *row = &operation_rows[i];
        struct mu__variable_store *store = mu__store_new(&small, i);
        uint32_t bytes = (uint32_t)mu_dtype_bytes((int)row->dtype);
        struct mu__store_open request = open_of("w", ALICE, 1);
        mu_error error;
        uint64_t id;
        int rv;

        request.shape = (struct mu__shape){row->dtype, 0, {0}, 1};
        request.bytes = bytes;
        id = opens(store, &request).id;
        zero_it(store, id, ALICE, 1);
        rv = write_it(store,
                      (struct mu__store_write){.id = id,
                                               .operation = row->operation,
                                               .data = {data, bytes},
                                               .rule = packed_momentum(1, 0.5),
                                               .writer = pid(BOB)},
                      &error);
        assert_int_equal(rv, row->rv);
        mu__store_free(store);
    }
}

TEST_ON(test_unknown_ids, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    const uint64_t ids[] = {0, 1, id + 1, UINT64_MAX};
    struct mu__view data;
    uint64_t version;
    mu_error error;

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        assert_int_equal(mu__store_read(store, &(struct mu__store_read){ids[i], 0, 4},
                                        &error, &data, &version),
                         -MU_ENOTFOUND);
        assert_int_equal(
            write_it(store,
                     (struct mu__store_write){.id = ids[i], .operation = MU__WRITE_ZERO},
                     &error),
            -MU_ENOTFOUND);
        write_ok(store,
                 (struct mu__store_write){.id = ids[i], .operation = MU__WRITE_ABANDON});
    }
    assert_true(read_first(store, id) == 0);
}

/* ---- Bounds ---- */

TEST_ON(test_bounds_of_variables, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open request = open_of("e", BOB, 9);
    mu_error error;

    (void)make(store, "a");
    (void)make(store, "b");
    (void)make(store, "c");
    (void)make(store, "d");
    assert_int_equal(mu__store_open(store, &request, &error), -MU_EEXHAUSTED);
    assert_string_equal(error.message, "the server has 4 variables, at most 4");
    request.name = mu__view_str("a");
    assert_false(opens(store, &request).created);
}

TEST_ON(test_bounds_of_waiting, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open request = open_of("w", ALICE, 1);
    mu_error error;

    (void)opens(store, &request);
    for (request.requester.token = 2; request.requester.token < 5;
         request.requester.token++)
        opens_and_waits(store, &request);
    assert_int_equal(mu__store_open(store, &request, &error), -MU_EEXHAUSTED);
    assert_int_equal(totals_of(store).waiting, 3);
}

/* Slots count too: 3 kB of content leave no room for as much again. */
TEST_ON(test_bounds_of_bytes, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open request = open_of("w", ALICE, 1);
    struct mu__store_write write = {.operation = MU__WRITE_GRADIENT,
                                    .rule = packed_momentum(1, 0.5),
                                    .writer = pid(BOB)};
    const float gradient[1] = {1};
    mu_error error;

    request.shape.dims[0] = 750;
    request.bytes = 3000;
    write.id = opens(store, &request).id;
    zero_it(store, write.id, ALICE, 1);
    write.data = (struct mu__view){gradient, sizeof gradient};
    assert_int_equal(write_it(store, write, &error), -MU_EEXHAUSTED);
    assert_string_equal(error.message,
                        "3000 bytes more: the server holds 3000 of at most 4096");
    write.rule = packed_momentum(1, 0);
    write_ok(store, write);
    assert_int_equal(totals_of(store).bytes, 3000);
}

/* ---- Staged assigns ---- */

TEST_ON(test_staged_assign_is_atomic, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    uint64_t version;
    mu_error error;
    struct mu__store_write last = piece_of(id, BOB, 5, 32);

    write_ok(store, piece_of(id, BOB, 5, 0));
    assert_true(read_first(store, id) == 0);
    assert_int_equal(totals_of(store).bytes, 128);
    assert_int_equal(mu__store_write(store, &last, &error, &version), 0);
    assert_int_equal(version, 2);
    assert_true(read_first(store, id) == 1);
    assert_int_equal(totals_of(store).bytes, 64);
    assert_int_equal(totals_of(store).transfers, 0);
}

/* Memory of replaced content is used again, for content of any size. */
TEST_ON(test_staging_again, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    struct mu__store_open request = open_of("x", ALICE, 1);
    struct mu__store_write other = piece_of(0, BOB, 1, 0);

    request.shape.dims[0] = 32;
    request.bytes = 128;
    other.id = opens(store, &request).id;
    zero_it(store, other.id, ALICE, 1);
    for (uint64_t round = 1; round < 4; round++) {
        write_ok(store, piece_of(id, BOB, round, 0));
        write_ok(store, piece_of(id, BOB, round, 32));
        other.transfer = round;
        for (other.offset = 0; other.offset < 128; other.offset += 32)
            write_ok(store, other);
        assert_true(read_first(store, id) == 1);
        assert_true(read_first(store, other.id) == 1);
        assert_int_equal(totals_of(store).bytes, 64 + 128);
    }
}

/* Two writers at once do not mix, not even under the same number. */
TEST_ON(test_transfers_are_apart, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");

    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, CAROL, 5, 0));
    assert_int_equal(totals_of(store).transfers, 2);
    write_ok(store, piece_of(id, BOB, 5, 32));
    assert_true(read_first(store, id) == 1);
    assert_int_equal(totals_of(store).transfers, 1);
}

/* What is staged goes with the writer's node, and when it is given up. */
TEST_ON(test_staged_is_freed, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    mu_error error;

    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, CAROL, 6, 0));
    mu__store_node_down(store, BOB);
    assert_int_equal(totals_of(store).transfers, 1);
    write_ok(store, (struct mu__store_write){.id = id,
                                             .operation = MU__WRITE_ABANDON,
                                             .transfer = 6,
                                             .writer = pid(CAROL)});
    assert_int_equal(totals_of(store).bytes, 64);
    assert_int_equal(write_it(store, piece_of(id, CAROL, 6, 32), &error), -MU_EABORTED);
    assert_true(read_first(store, id) == 0);
}

TEST_ON(test_pieces_in_order, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    struct mu__store_write piece = piece_of(id, BOB, 5, 0);
    mu_error error;

    assert_int_equal(write_it(store, piece_of(id, BOB, 5, 32), &error), -MU_EABORTED);
    piece.data.size = 16;
    write_ok(store, piece);
    assert_int_equal(write_it(store, piece_of(id, BOB, 5, 32), &error), -MU_EABORTED);
    assert_int_equal(totals_of(store).transfers, 0);
    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, BOB, 5, 32));
    assert_true(read_first(store, id) == 1);
}

TEST_ON(test_bounds_of_transfers, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    mu_error error;

    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, BOB, 6, 0));
    assert_int_equal(write_it(store, piece_of(id, BOB, 7, 0), &error), -MU_EEXHAUSTED);
    write_ok(store, piece_of(id, CAROL, 7, 0));
}

/* ---- Versions and counters ---- */

TEST_ON(test_counters, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    struct mu__store_write half = piece_of(id, BOB, 5, 0);
    struct mu__store_info info = {.name = NULL};

    half.operation = MU__WRITE_ADD;
    write_ok(store, half);
    half.offset = 32;
    write_ok(store, half);
    (void)read_first(store, id);
    mu__store_each(store, remember, &info);
    assert_string_equal(info.name, "w");
    assert_true(info.ready);
    assert_int_equal(info.version, 2);
    assert_int_equal(info.writes, 3);
    assert_int_equal(info.bytes_written, 64);
    assert_int_equal(info.reads, 1);
    assert_int_equal(info.bytes_read, 64);
}

/* Velocity is kept between gradients: 1, then 1.5 of it. */
TEST_ON(test_momentum, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    struct mu__store_write write = piece_of(id, BOB, 0, 0);

    write.operation = MU__WRITE_GRADIENT;
    write.rule = packed_momentum(2, 0.5);
    write_ok(store, write);
    assert_true(read_first(store, id) == -2);
    write_ok(store, write);
    assert_true(read_first(store, id) == -5);
}

/* ---- Batches ---- */

static struct mu__store_write in_batch(uint64_t id, uint32_t operation,
                                       const float content[4])
{
    return (struct mu__store_write){.id = id,
                                    .operation = operation,
                                    .rule = packed_momentum(0.5, 0),
                                    .data = {content, 16},
                                    .writer = pid(BOB)};
}

static int check_batch(struct mu__variable_store *store,
                       const struct mu__store_write *first)
{
    mu_error error = {.code = 0};
    int rv = mu__store_check_batch(store, first, &error);

    assert_int_equal(error.code, rv);
    return rv;
}

/* In their order, each on what the one before has left. */
TEST_ON(test_batch_is_applied, struct mu__variable_store *store, set_up, tear_down)
{
    const float content[4] = {8, 1, 2, 3};
    uint64_t v = make(store, "v");
    uint64_t w = make(store, "w");
    struct mu__store_write writes[5] = {in_batch(v, MU__WRITE_ASSIGN, content),
                                        in_batch(v, MU__WRITE_ADD, content),
                                        in_batch(w, MU__WRITE_GRADIENT, content),
                                        in_batch(v, MU__WRITE_GRADIENT, content),
                                        in_batch(w, MU__WRITE_GRADIENT, content)};

    for (int i = 0; i < 4; i++)
        writes[i].next = &writes[i + 1];
    writes[4].offset = 48;
    writes[4].rule = packed_momentum(0.5, 0.5);
    assert_int_equal(check_batch(store, writes), 0);
    assert_true(read_first(store, v) == 0);
    mu__store_apply_batch(store, writes);
    assert_true(read_first(store, v) == 12);
    assert_true(read_first(store, w) == -4);
    assert_int_equal(totals_of(store).transfers, 0);
    assert_int_equal(totals_of(store).bytes, 3 * 64);
}

/* What makes the second write, and with it the batch, impossible. */
static const struct batch_row {
    int rv;
    uint32_t operation;
    uint64_t offset;
    uint32_t size;
} batch_rows[] = {
    {0, MU__WRITE_ADD, 0, 16},
    {0, MU__WRITE_ASSIGN, 48, 16},
    {-MU_EINVALID, 0, 0, 16},
    {-MU_EINVALID, MU__WRITE_ZERO, 0, 0},
    {-MU_EINVALID, MU__WRITE_ZERO, 0, 16},
    {-MU_EINVALID, MU__WRITE_COMMIT, 0, 0},
    {-MU_EINVALID, MU__WRITE_ABANDON, 0, 0},
    {-MU_EINVALID, 8, 0, 16},
    {-MU_EINVALID, UINT32_MAX, 0, 16},
    {-MU_EINVALID, MU__WRITE_ADD, 0, 0},
    {-MU_EINVALID, MU__WRITE_ADD, 0, 15},
    {-MU_EINVALID, MU__WRITE_ADD, 2, 16},
    {-MU_ERANGE, MU__WRITE_ADD, 52, 16},
    {-MU_ERANGE, MU__WRITE_ASSIGN, 68, 16},
    {-MU_ERANGE, MU__WRITE_GRADIENT, UINT64_MAX - 3, 16},
};

TEST_ON(test_batch_is_refused, struct mu__variable_store *store, set_up, tear_down)
{
    const float content[4] = {8, 1, 2, 3};
    uint64_t id = make(store, "v");
    struct mu__store_write second = in_batch(id, MU__WRITE_ADD, content);
    struct mu__store_write first = in_batch(id, MU__WRITE_ADD, content);

    first.next = &second;
    for (size_t i = 0; i < sizeof batch_rows / sizeof batch_rows[0]; i++) {
        second.operation = batch_rows[i].operation;
        second.offset = batch_rows[i].offset;
        second.data.size = batch_rows[i].size;
        if (check_batch(store, &first) != batch_rows[i].rv)
            fail_msg("row %zu", i);
        assert_true(read_first(store, id) == 0);
    }
    second = in_batch(id + 1, MU__WRITE_ADD, content);
    assert_int_equal(check_batch(store, &first), -MU_ENOTFOUND);
}

/* No content yet, no memory for slots, a dtype that neither adds nor learns. */
TEST_ON(test_batch_needs, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open made = open_of("v", ALICE, 1);
    struct mu__store_open flags = open_of("b", ALICE, 2);
    struct mu__store_open large = open_of("l", ALICE, 3);
    const float content[4] = {1};
    struct mu__store_write write =
        in_batch(opens(store, &made).id, MU__WRITE_ASSIGN, content);

    assert_int_equal(check_batch(store, &write), -MU_EPRECONDITION);
    flags.shape = (struct mu__shape){MU_BOOL, 1, {64}, 1};
    write.id = opens(store, &flags).id;
    zero_it(store, write.id, ALICE, 2);
    assert_int_equal(check_batch(store, &write), 0);
    write.operation = MU__WRITE_ADD;
    assert_int_equal(check_batch(store, &write), -MU_EINVALID);
    write.operation = MU__WRITE_GRADIENT;
    assert_int_equal(check_batch(store, &write), -MU_EINVALID);
    large.shape = (struct mu__shape){MU_F32, 1, {512}, 1};
    large.bytes = 2048;
    write.id = opens(store, &large).id;
    zero_it(store, write.id, ALICE, 3);
    assert_int_equal(check_batch(store, &write), 0);
    write.rule = packed_momentum(0.5, 0.5);
    assert_int_equal(check_batch(store, &write), -MU_EEXHAUSTED);
}

/* Thousands of names: found again, and each its own. */
TEST(test_many)
{
    struct mu__variable_store *store = mu__store_new(&mu__store_limits_default, 1);
    uint64_t ids[3000];
    char name[16];

    for (uint64_t i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "v%" PRIu64, i);
        ids[i] = make(store, name);
    }
    for (uint64_t i = 0; i < 3000; i += 7) {
        struct mu__store_open request = open_of(name, BOB, i);

        (void)snprintf(name, sizeof name, "v%" PRIu64, i);
        request.name = mu__view_str(name);
        assert_true(opens(store, &request).id == ids[i]);
    }
    mu__store_free(store);
}

TEST_PROGRAM()
