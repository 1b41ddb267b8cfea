/* The variables of one server, alone: who creates, who waits, what is refused. */
#include "actors/ps/variable_store.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ALICE = 7, BOB = 8, CAROL = 9 };     /* nodes */

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
     0, "float32[4096] in 4096 shards"},
    {{0, 1, {1}, 1}, -MU_EINVALID, "?[1] in 1 shard"},
    {{255, 1, {1}, 1}, -MU_EINVALID, "?[1] in 1 shard"},
    {{MU_F32, 9, {1, 1, 1, 1, 1, 1, 1, 1}, 1},
     -MU_EINVALID, "float32[1,1,1,1,1,1,1,1] in 1 shard"},
    {{MU_F32, 2, {5, 0}, 1}, -MU_EINVALID, "float32[5,0] in 1 shard"},
    {{MU_F32, 1, {0}, 1}, -MU_EINVALID, "float32[0] in 1 shard"},
    {{MU_U8, 1, {MU__VARIABLE_BYTES_MAX + 1}, 1},
     -MU_ERANGE, "uint8[4398046511105] in 1 shard"},
    {{MU_F32, 3, {UINT64_MAX / 4 + 1, 4, 4}, 1},
     -MU_ERANGE, "float32[4611686018427387904,4,4] in 1 shard"},
    {{MU_F64, 2, {UINT64_C(1) << 32, UINT64_C(1) << 32}, 1},
     -MU_ERANGE, "float64[4294967296,4294967296] in 1 shard"},
    {{MU_F32, 1, {4}, 0}, -MU_ERANGE, "float32[4] in 0 shards"},
    {{MU_F32, 1, {4}, 5}, -MU_ERANGE, "float32[4] in 5 shards"},
    {{MU_F32, 0, {0}, 2}, -MU_ERANGE, "float32[] in 2 shards"},
    {{MU_F32, 1, {9999}, MU__VARIABLE_SHARDS_MAX + 1},
     -MU_ERANGE, "float32[9999] in 4097 shards"},
};

static void test_shapes(void **state)
{
    char text[MU__SHAPE_TEXT_MAX];
    mu_error error;

    (void)state;
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

static void test_cutting(void **state)
{
    (void)state;
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

static void test_dims_travel(void **state)
{
    const struct mu__shape shape = {MU_F32, 3, {1, UINT64_C(0x0102030405060708), 3}, 1};
    struct mu__shape back = {MU_F32, 0, {0}, 1};
    uint8_t packed[MU__DIMS_BYTES_MAX + 8] = {0};
    uint32_t size = mu__shape_pack_dims(&shape, packed);

    (void)state;
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
static void test_name_hash(void **state)
{
    (void)state;
    assert_true(mu__name_hash(mu__view_str("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(mu__name_hash(mu__view_str("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(mu__name_hash(mu__view_str("foobar")) == UINT64_C(0x85944171f73967e8));
}

/* ---- A store, and requests to it ---- */

static const struct mu__store_limits small = {
    .bytes_max = 4096, .variables_max = 4, .waiting_max = 3, .transfers_node_max = 2};

static int set_up(void **state)
{
    *state = mu__store_new(&small, 1234);
    return *state == NULL;
}

static int tear_down(void **state)
{
    mu__store_free(*state);
    return 0;
}

static mu__pid pid(uint32_t node)
{
    return (mu__pid){node, 5};
}

/* Sixteen floats in one shard, opened by a node under a token. */
static struct mu__store_open open_of(const char *name, uint32_t node, uint64_t token)
{
    return (struct mu__store_open){
        .name = mu__view_str(name),
        .shape = {MU_F32, 1, {16}, 1},
        .bytes = 64,
        .requester = {pid(node), token},
    };
}

/* Opens without an answer yet. */
static void opens_and_waits(struct mu__variable_store *store,
                            const struct mu__store_open *request)
{
    struct mu__store_opened opened;
    mu_error error;

    assert_int_equal(mu__store_open(store, request, &error), 0);
    assert_false(mu__store_next_opened(store, &opened));
}

/* The next answer goes to this node and token. */
static struct mu__store_opened answered(struct mu__variable_store *store, uint32_t node,
                                        uint64_t token)
{
    struct mu__store_opened opened = {.code = 1};

    assert_true(mu__store_next_opened(store, &opened));
    assert_int_equal(opened.requester.pid.node, node);
    assert_int_equal(opened.requester.token, token);
    return opened;
}

static struct mu__store_opened opens(struct mu__variable_store *store,
                                     const struct mu__store_open *request)
{
    mu_error error;

    assert_int_equal(mu__store_open(store, request, &error), 0);
    return answered(store, request->requester.pid.node, request->requester.token);
}

static int write_it(struct mu__variable_store *store, struct mu__store_write write,
                    mu_error *error)
{
    uint64_t version = 0;

    return mu__store_write(store, &write, error, &version);
}

static void write_ok(struct mu__variable_store *store, struct mu__store_write write)
{
    mu_error error = {.message = ""};

    if (write_it(store, write, &error) != 0)
        fail_msg("%s", error.message);
}

static void zero_it(struct mu__variable_store *store, uint64_t id, uint32_t node,
                    uint64_t token)
{
    write_ok(store, (struct mu__store_write){.id = id, .operation = MU__WRITE_ZERO,
                                             .transfer = token, .writer = pid(node)});
}

/* A variable with content, zeros, made by Alice. */
static uint64_t make(struct mu__variable_store *store, const char *name)
{
    struct mu__store_open request = open_of(name, ALICE, 1);
    struct mu__store_opened opened = opens(store, &request);

    assert_true(opened.created);
    zero_it(store, opened.id, ALICE, 1);
    return opened.id;
}

static float read_first(struct mu__variable_store *store, uint64_t id)
{
    struct mu__view data;
    uint64_t version;
    mu_error error;
    float first;

    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 64}, &error,
                                    &data, &version), 0);
    assert_int_equal(data.size, 64);
    memcpy(&first, data.data, sizeof first);
    return first;
}

/* Of a shard of 32 bytes. */
static float read_half(struct mu__variable_store *store, uint64_t id)
{
    struct mu__view data;
    uint64_t version;
    mu_error error;
    float first;

    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 32}, &error,
                                    &data, &version), 0);
    memcpy(&first, data.data, sizeof first);
    return first;
}

static struct mu__store_totals totals_of(const struct mu__variable_store *store)
{
    struct mu__store_totals totals;

    mu__store_totals(store, &totals);
    return totals;
}

/* ---- Creation ---- */

static void test_first_creates_others_wait(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_open carol = open_of("w", CAROL, 3);
    struct mu__store_opened created = opens(store, &alice);
    struct mu__store_opened opened;

    assert_true(created.created);
    opens_and_waits(store, &bob);
    opens_and_waits(store, &carol);
    zero_it(store, created.id, ALICE, 1);
    opened = answered(store, BOB, 2);
    assert_false(opened.created);
    assert_true(opened.id == created.id);
    (void)answered(store, CAROL, 3);
    bob.requester.token = 4;
    opened = opens(store, &bob);
    assert_false(opened.created);
    assert_int_equal(totals_of(store).waiting, 0);
}

/* The creator's content counts piece by piece, in order, and only the creator's. */
static void test_initial_content(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open request = open_of("w", ALICE, 1);
    uint64_t id = opens(store, &request).id;
    float content[16] = {42};
    struct mu__store_write piece = {.id = id, .operation = MU__WRITE_ASSIGN,
                                    .transfer = 1, .data = {content, 32},
                                    .writer = pid(ALICE)};
    struct mu__view data;
    uint64_t version;
    mu_error error;

    piece.writer = pid(BOB);
    assert_int_equal(write_it(store, piece, &error), -MU_EPRECONDITION);
    piece.writer = pid(ALICE);
    piece.transfer = 2;
    assert_int_equal(write_it(store, piece, &error), -MU_EPRECONDITION);
    piece.transfer = 1;
    piece.operation = MU__WRITE_ADD;
    assert_int_equal(write_it(store, piece, &error), -MU_EPRECONDITION);
    piece.operation = MU__WRITE_ASSIGN;
    write_ok(store, piece);
    assert_int_equal(write_it(store, piece, &error), -MU_EABORTED);
    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 4}, &error,
                                    &data, &version), -MU_EPRECONDITION);
    piece.offset = 32;
    piece.data = (struct mu__view){content + 8, 32};
    write_ok(store, piece);
    assert_true(read_first(store, id) == 42);
}

/* When the creator is lost, the next in line creates, from zeros; then the next. */
static void test_creator_is_replaced(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_open carol = open_of("w", CAROL, 3);
    uint64_t id = opens(store, &alice).id;
    float part[8] = {42};

    opens_and_waits(store, &bob);
    opens_and_waits(store, &carol);
    write_ok(store, (struct mu__store_write){.id = id, .operation = MU__WRITE_ASSIGN,
                                             .transfer = 1, .data = {part, sizeof part},
                                             .writer = pid(ALICE)});
    mu__store_node_down(store, ALICE);
    assert_true(answered(store, BOB, 2).created);
    write_ok(store, (struct mu__store_write){.id = id, .operation = MU__WRITE_ABANDON,
                                             .transfer = 2, .writer = pid(BOB)});
    assert_true(answered(store, CAROL, 3).created);
    zero_it(store, id, CAROL, 3);
    assert_true(read_first(store, id) == 0);
}

/* A shard whose creator is lost while nobody waits is as if it had never been. */
static void test_creation_is_forgotten(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    uint64_t id = opens(store, &alice).id;
    struct mu__store_opened opened;

    mu__store_node_down(store, BOB);
    assert_int_equal(totals_of(store).variables, 1);
    mu__store_node_down(store, ALICE);
    assert_int_equal(totals_of(store).variables, 0);
    assert_int_equal(totals_of(store).bytes, 0);
    bob.shape.dims[0] = 8;
    bob.bytes = 32;
    opened = opens(store, &bob);
    assert_true(opened.created);
    assert_true(opened.id != id);
}

static void test_who_waits_may_leave(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_open carol = open_of("w", CAROL, 3);
    uint64_t id = opens(store, &alice).id;
    struct mu__store_opened opened;

    opens_and_waits(store, &bob);
    opens_and_waits(store, &carol);
    write_ok(store, (struct mu__store_write){.operation = MU__WRITE_ABANDON,
                                             .transfer = 3, .writer = pid(BOB)});
    assert_false(mu__store_next_opened(store, &opened));
    write_ok(store, (struct mu__store_write){.operation = MU__WRITE_ABANDON,
                                             .transfer = 2, .writer = pid(BOB)});
    assert_int_equal(answered(store, BOB, 2).code, -MU_ECANCELLED);
    mu__store_node_down(store, CAROL);
    assert_int_equal(totals_of(store).waiting, 0);
    zero_it(store, id, ALICE, 1);
    assert_false(mu__store_next_opened(store, &opened));
}

static void test_mismatch_says_both(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open request = open_of("w", BOB, 2);
    mu_error error;

    (void)make(store, "w");
    request.shape.dtype = MU_F64;
    request.bytes = 128;
    assert_int_equal(mu__store_open(store, &request, &error), -MU_EPRECONDITION);
    assert_string_equal(error.message, "it is float32[16] in 1 shard; opened as "
                                       "float64[16] in 1 shard");
}

/* Shards of one variable on one server are kept apart, and so are lives. */
static void test_ids(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__variable_store *next_life = mu__store_new(&small, 1235);
    struct mu__store_open request = open_of("w", ALICE, 1);
    uint64_t first;
    uint64_t second;
    struct mu__view data;
    uint64_t version;
    mu_error error;

    request.shape.shards = 2;
    request.bytes = 32;
    first = opens(store, &request).id;
    request.shard = 1;
    second = opens(store, &request).id;
    assert_true(first != second);
    assert_non_null(next_life);
    assert_true(make(next_life, "w") != first);
    assert_int_equal(mu__store_read(next_life, &(struct mu__store_read){first, 0, 4},
                                    &error, &data, &version), -MU_ENOTFOUND);
    mu__store_free(next_life);
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

static void test_opens_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof open_rows / sizeof open_rows[0]; i++) {
        const struct open_row *row = &open_rows[i];
        struct mu__variable_store *store = mu__store_new(&small, i);
        struct mu__store_open request = {
            mu__view_str(row->name), row->shape, row->shard, row->bytes, {pid(ALICE), 1},
            false, 0};
        mu_error error = {.message = ""};
        int rv = mu__store_open(store, &request, &error);

        if (rv != row->rv)
            fail_msg("%s: %d: %s", row->what, rv, error.message);
        assert_true((error.message[0] == '\0') == (rv == 0));
        assert_int_equal(totals_of(store).variables, rv == 0);
        mu__store_free(store);
    }
}

static void test_name_length(void **state)
{
    struct mu__variable_store *store = *state;
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

static void test_ranges(void **state)
{
    struct mu__variable_store *store = *state;
    uint64_t id = make(store, "w");
    float zeros[17] = {0};

    for (size_t i = 0; i < sizeof range_rows / sizeof range_rows[0]; i++) {
        const struct range_row *row = &range_rows[i];
        struct mu__store_read read = {id, row->offset, row->size};
        struct mu__store_write write = {.id = id, .operation = MU__WRITE_ADD,
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
    {MU_F32, MU__WRITE_SGD, 0},
    {MU_F32, MU__WRITE_MOMENTUM, 0},
    {MU_F64, MU__WRITE_SGD, 0},
    {MU_I32, MU__WRITE_ADD, 0},
    {MU_I32, MU__WRITE_SGD, -MU_EINVALID},
    {MU_I32, MU__WRITE_MOMENTUM, -MU_EINVALID},
    {MU_BOOL, MU__WRITE_ADD, -MU_EINVALID},
    {MU_BOOL, MU__WRITE_ASSIGN, 0},
    {MU_F32, MU__WRITE_ZERO, -MU_EINVALID},     /* with data */
    {MU_F32, 0, -MU_EINVALID},
    {MU_F32, MU__WRITE_COMMIT, -MU_EINVALID},   /* with data */
    {MU_F32, 8, -MU_EINVALID},
    {MU_F32, UINT32_MAX, -MU_EINVALID},
};

static void test_operations(void **state)
{
    const double data[1] = {(double)NAN};

    (void)state;
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
                      (struct mu__store_write){.id = id, .operation = row->operation,
                                               .data = {data, bytes},
                                               .rate = (double)NAN,
                                               .momentum = (double)NAN,
                                               .writer = pid(BOB)},
                      &error);
        assert_int_equal(rv, row->rv);
        mu__store_free(store);
    }
}

static void test_unknown_ids(void **state)
{
    struct mu__variable_store *store = *state;
    uint64_t id = make(store, "w");
    const uint64_t ids[] = {0, 1, id + 1, UINT64_MAX};
    struct mu__view data;
    uint64_t version;
    mu_error error;

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        assert_int_equal(mu__store_read(store, &(struct mu__store_read){ids[i], 0, 4},
                                        &error, &data, &version), -MU_ENOTFOUND);
        assert_int_equal(write_it(store,
                                  (struct mu__store_write){.id = ids[i],
                                                           .operation = MU__WRITE_ZERO},
                                  &error), -MU_ENOTFOUND);
        write_ok(store, (struct mu__store_write){.id = ids[i],
                                                 .operation = MU__WRITE_ABANDON});
    }
    assert_true(read_first(store, id) == 0);
}

/* ---- Bounds ---- */

static void test_bounds_of_variables(void **state)
{
    struct mu__variable_store *store = *state;
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

static void test_bounds_of_waiting(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open request = open_of("w", ALICE, 1);
    mu_error error;

    (void)opens(store, &request);
    for (request.requester.token = 2; request.requester.token < 5;
         request.requester.token++)
        opens_and_waits(store, &request);
    assert_int_equal(mu__store_open(store, &request, &error), -MU_EEXHAUSTED);
    assert_int_equal(totals_of(store).waiting, 3);
}

/* Velocities count too: 3 kB of content leave no room for as much again. */
static void test_bounds_of_bytes(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open request = open_of("w", ALICE, 1);
    struct mu__store_write write = {.operation = MU__WRITE_MOMENTUM, .writer = pid(BOB)};
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
    write.operation = MU__WRITE_SGD;
    write_ok(store, write);
    assert_int_equal(totals_of(store).bytes, 3000);
}

/* ---- Staged assigns ---- */

static struct mu__store_write piece_of(uint64_t id, uint32_t node, uint64_t transfer,
                                       uint64_t offset)
{
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};

    return (struct mu__store_write){.id = id, .operation = MU__WRITE_ASSIGN,
                                    .transfer = transfer, .offset = offset,
                                    .data = {ones, sizeof ones}, .writer = pid(node)};
}

static void test_staged_assign_is_atomic(void **state)
{
    struct mu__variable_store *store = *state;
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
static void test_staging_again(void **state)
{
    struct mu__variable_store *store = *state;
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
static void test_transfers_are_apart(void **state)
{
    struct mu__variable_store *store = *state;
    uint64_t id = make(store, "w");

    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, CAROL, 5, 0));
    assert_int_equal(totals_of(store).transfers, 2);
    write_ok(store, piece_of(id, BOB, 5, 32));
    assert_true(read_first(store, id) == 1);
    assert_int_equal(totals_of(store).transfers, 1);
}

/* What is staged goes with the writer's node, and when it is given up. */
static void test_staged_is_freed(void **state)
{
    struct mu__variable_store *store = *state;
    uint64_t id = make(store, "w");
    mu_error error;

    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, CAROL, 6, 0));
    mu__store_node_down(store, BOB);
    assert_int_equal(totals_of(store).transfers, 1);
    write_ok(store, (struct mu__store_write){.id = id, .operation = MU__WRITE_ABANDON,
                                             .transfer = 6, .writer = pid(CAROL)});
    assert_int_equal(totals_of(store).bytes, 64);
    assert_int_equal(write_it(store, piece_of(id, CAROL, 6, 32), &error), -MU_EABORTED);
    assert_true(read_first(store, id) == 0);
}

static void test_pieces_in_order(void **state)
{
    struct mu__variable_store *store = *state;
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

static void test_bounds_of_transfers(void **state)
{
    struct mu__variable_store *store = *state;
    uint64_t id = make(store, "w");
    mu_error error;

    write_ok(store, piece_of(id, BOB, 5, 0));
    write_ok(store, piece_of(id, BOB, 6, 0));
    assert_int_equal(write_it(store, piece_of(id, BOB, 7, 0), &error), -MU_EEXHAUSTED);
    write_ok(store, piece_of(id, CAROL, 7, 0));
}

/* ---- Versions and counters ---- */

static void remember(void *user, const struct mu__store_info *info)
{
    *(struct mu__store_info *)user = *info;
}

static void test_counters(void **state)
{
    struct mu__variable_store *store = *state;
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
static void test_momentum(void **state)
{
    struct mu__variable_store *store = *state;
    uint64_t id = make(store, "w");
    struct mu__store_write write = piece_of(id, BOB, 0, 0);

    write.operation = MU__WRITE_MOMENTUM;
    write.rate = 2;
    write.momentum = 0.5;
    write_ok(store, write);
    assert_true(read_first(store, id) == -2);
    write_ok(store, write);
    assert_true(read_first(store, id) == -5);
}

/* ---- Openers that never create ---- */

/* Shard 1 of two; `existing`, or to be made. */
static struct mu__store_open second_of(uint32_t node, uint64_t token, bool existing)
{
    struct mu__store_open request = open_of("w", node, token);

    request.shape.shards = 2;
    request.shard = 1;
    request.bytes = 32;
    request.existing = existing;
    return request;
}

static void opens_absent(struct mu__variable_store *store,
                         const struct mu__store_open *request)
{
    struct mu__store_opened note = opens(store, request);

    assert_int_equal(note.code, -MU_EAGAIN);
    assert_string_equal(note.reason, "it does not exist, and nobody creates it");
    assert_false(mu__store_next_opened(store, &note));
}

static int commit_it(struct mu__variable_store *store, uint64_t id, uint32_t node,
                     uint64_t token)
{
    mu_error error;

    return write_it(store, (struct mu__store_write){.id = id,
                                                    .operation = MU__WRITE_COMMIT,
                                                    .transfer = token,
                                                    .writer = pid(node)}, &error);
}

static void abandon_it(struct mu__variable_store *store, uint64_t id, uint32_t node,
                       uint64_t token)
{
    write_ok(store, (struct mu__store_write){.id = id, .operation = MU__WRITE_ABANDON,
                                             .transfer = token, .writer = pid(node)});
}

/* What is only waited for is no variable, and is bounded as all waiting is. */
static void test_existing_waits(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open request = open_of("w", BOB, 1);
    struct mu__store_open other = open_of("v", BOB, 9);
    struct mu__store_info info = {.name = NULL};
    mu_error error;
    uint64_t id;

    other.existing = true;
    request.existing = true;
    for (; request.requester.token <= 3; request.requester.token++)
        opens_absent(store, &request);
    assert_int_equal(mu__store_open(store, &request, &error), -MU_EEXHAUSTED);
    assert_int_equal(mu__store_open(store, &other, &error), -MU_EEXHAUSTED);
    assert_int_equal(totals_of(store).waiting, 3);
    assert_int_equal(totals_of(store).variables, 0);
    assert_int_equal(totals_of(store).bytes, 0);
    mu__store_each(store, remember, &info);
    assert_null(info.name);
    abandon_it(store, 0, BOB, 2);
    assert_int_equal(answered(store, BOB, 2).code, -MU_ECANCELLED);
    id = make(store, "w");
    assert_true(answered(store, BOB, 1).id == id);
    assert_false(answered(store, BOB, 3).created);
    assert_int_equal(totals_of(store).waiting, 0);
    assert_false(opens(store, &request).created);
}

/* Nothing is left of those who waited for nothing. */
static void test_existing_leaves(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open bob = open_of("w", BOB, 1);
    struct mu__store_open carol = open_of("w", CAROL, 2);
    struct mu__store_opened opened;

    bob.existing = true;
    carol.existing = true;
    opens_absent(store, &bob);
    opens_absent(store, &carol);
    mu__store_node_down(store, BOB);
    assert_int_equal(totals_of(store).waiting, 1);
    mu__store_node_down(store, CAROL);
    assert_int_equal(totals_of(store).waiting, 0);
    (void)make(store, "w");
    assert_false(mu__store_next_opened(store, &opened));
}

/* When a creator is lost, one who may create comes first; when there is none, those who
 * may not are told and go on waiting. */
static void test_existing_is_no_heir(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_open carol = open_of("w", CAROL, 3);
    uint64_t id = opens(store, &alice).id;

    bob.existing = true;
    opens_and_waits(store, &bob);
    opens_and_waits(store, &carol);
    mu__store_node_down(store, ALICE);
    assert_true(answered(store, CAROL, 3).created);
    abandon_it(store, id, CAROL, 3);
    assert_int_equal(answered(store, BOB, 2).code, -MU_EAGAIN);
    assert_int_equal(totals_of(store).variables, 0);
    assert_int_equal(totals_of(store).bytes, 0);
    assert_int_equal(totals_of(store).waiting, 1);
    alice.requester.token = 4;
    id = opens(store, &alice).id;
    zero_it(store, id, ALICE, 4);
    assert_true(answered(store, BOB, 2).id == id);
}

static void test_existing_of_another_shape(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_opened opened;

    bob.existing = true;
    opens_absent(store, &bob);
    alice.shape.dims[0] = 8;
    alice.bytes = 32;
    assert_int_equal(mu__store_open(store, &alice, &(mu_error){.code = 0}), 0);
    opened = answered(store, BOB, 2);
    assert_int_equal(opened.code, -MU_EPRECONDITION);
    assert_string_equal(opened.reason, "it was created with another dtype, shape or "
                                      "number of shards");
    assert_true(answered(store, ALICE, 1).created);
    assert_int_equal(totals_of(store).waiting, 0);
}

/* ---- Shards that wait for shard 0 ---- */

/* Filled is not enough: nobody may use it, nor count it as the creator's, before the
 * creator has said so. */
static void test_commit(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = second_of(ALICE, 1, false);
    struct mu__store_open bob = second_of(BOB, 2, true);
    uint64_t id = opens(store, &alice).id;
    struct mu__view data;
    uint64_t version;
    mu_error error;

    assert_int_equal(commit_it(store, id, ALICE, 1), -MU_EPRECONDITION);
    zero_it(store, id, ALICE, 1);
    opens_and_waits(store, &bob);
    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 4}, &error,
                                    &data, &version), -MU_EPRECONDITION);
    assert_int_equal(commit_it(store, id, BOB, 2), -MU_EPRECONDITION);
    assert_int_equal(commit_it(store, id + 1, ALICE, 1), -MU_ENOTFOUND);
    assert_int_equal(commit_it(store, id, ALICE, 1), 0);
    assert_false(answered(store, BOB, 2).created);
    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 4}, &error,
                                    &data, &version), 0);
    assert_int_equal(version, 1);
    assert_int_equal(commit_it(store, id, ALICE, 1), 0);
}

/* The creator was lost after it filled the shard: who has found shard 0 uses it, who is
 * to create shard 0 makes it anew, in any shape. */
static void test_orphan(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = second_of(ALICE, 1, false);
    struct mu__store_open bob = second_of(BOB, 2, true);
    struct mu__store_open carol = second_of(CAROL, 3, false);
    uint64_t id = opens(store, &alice).id;
    struct mu__store_opened opened;

    zero_it(store, id, ALICE, 1);
    mu__store_node_down(store, ALICE);
    carol.shape.dims[0] = 8;
    carol.bytes = 16;
    opened = opens(store, &carol);
    assert_true(opened.created);
    assert_true(opened.id != id);
    assert_int_equal(totals_of(store).bytes, 16);
    abandon_it(store, opened.id, CAROL, 3);
    assert_int_equal(totals_of(store).variables, 0);

    id = opens(store, &alice).id;
    zero_it(store, id, ALICE, 1);
    abandon_it(store, id, ALICE, 1);
    assert_int_equal(commit_it(store, id, ALICE, 1), -MU_EPRECONDITION);
    opened = opens(store, &bob);
    assert_int_equal(opened.code, 0);
    assert_false(opened.created);
    assert_true(opened.id == id);
    assert_true(read_half(store, id) == 0);
}

/* The same when they waited already; one who creates comes first, and fills it again. */
static void test_orphan_is_waited_for(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open alice = second_of(ALICE, 1, false);
    struct mu__store_open bob = second_of(BOB, 2, true);
    struct mu__store_open carol = second_of(CAROL, 3, false);
    uint64_t id = opens(store, &alice).id;
    const float content[8] = {7};

    zero_it(store, id, ALICE, 1);
    opens_and_waits(store, &bob);
    opens_and_waits(store, &carol);
    mu__store_node_down(store, ALICE);
    assert_true(answered(store, CAROL, 3).created);
    write_ok(store, (struct mu__store_write){.id = id, .operation = MU__WRITE_ASSIGN,
                                             .transfer = 3,
                                             .data = {content, sizeof content},
                                             .writer = pid(CAROL)});
    mu__store_node_down(store, CAROL);
    assert_int_equal(answered(store, BOB, 2).code, 0);
    assert_true(read_half(store, id) == 7);
}

/* ---- Shards that are made anew ---- */

/* Only the one that was meant goes, with its velocity and what was staged for it. */
static void test_replaced(void **state)
{
    struct mu__variable_store *store = *state;
    uint64_t id = make(store, "w");
    struct mu__store_open request = open_of("w", BOB, 2);
    struct mu__store_write gradient = piece_of(id, BOB, 0, 0);
    struct mu__store_opened opened;
    mu_error error;

    gradient.operation = MU__WRITE_MOMENTUM;
    gradient.momentum = 0.5;
    write_ok(store, gradient);
    write_ok(store, piece_of(id, CAROL, 5, 0));
    assert_int_equal(totals_of(store).bytes, 3 * 64);
    request.replaces = id + 1;
    assert_false(opens(store, &request).created);
    request.replaces = id;
    opened = opens(store, &request);
    assert_true(opened.created);
    assert_true(opened.id != id);
    assert_int_equal(totals_of(store).bytes, 64);
    assert_int_equal(totals_of(store).transfers, 0);
    assert_int_equal(totals_of(store).variables, 1);
    assert_int_equal(write_it(store, piece_of(id, CAROL, 5, 32), &error), -MU_ENOTFOUND);
    request.requester.token = 3;
    request.replaces = opened.id;
    opens_and_waits(store, &request);
    zero_it(store, opened.id, BOB, 2);
    assert_false(answered(store, BOB, 3).created);
    assert_true(read_first(store, opened.id) == 0);
}

/* ---- Batches ---- */

static struct mu__store_write in_batch(uint64_t id, uint32_t operation,
                                       const float content[4])
{
    return (struct mu__store_write){.id = id, .operation = operation, .rate = 0.5,
                                    .momentum = 0.5, .data = {content, 16},
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
static void test_batch_is_applied(void **state)
{
    struct mu__variable_store *store = *state;
    const float content[4] = {8, 1, 2, 3};
    uint64_t v = make(store, "v");
    uint64_t w = make(store, "w");
    struct mu__store_write writes[5] = {
        in_batch(v, MU__WRITE_ASSIGN, content), in_batch(v, MU__WRITE_ADD, content),
        in_batch(w, MU__WRITE_SGD, content), in_batch(v, MU__WRITE_SGD, content),
        in_batch(w, MU__WRITE_MOMENTUM, content)};

    for (int i = 0; i < 4; i++)
        writes[i].next = &writes[i + 1];
    writes[4].offset = 48;
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
    {-MU_ERANGE, MU__WRITE_SGD, UINT64_MAX - 3, 16},
};

static void test_batch_is_refused(void **state)
{
    struct mu__variable_store *store = *state;
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

/* No content yet, no memory for a velocity, a dtype that neither adds nor learns. */
static void test_batch_needs(void **state)
{
    struct mu__variable_store *store = *state;
    struct mu__store_open made = open_of("v", ALICE, 1);
    struct mu__store_open flags = open_of("b", ALICE, 2);
    struct mu__store_open large = open_of("l", ALICE, 3);
    const float content[4] = {1};
    struct mu__store_write write = in_batch(opens(store, &made).id, MU__WRITE_ASSIGN,
                                            content);

    assert_int_equal(check_batch(store, &write), -MU_EPRECONDITION);
    flags.shape = (struct mu__shape){MU_BOOL, 1, {64}, 1};
    write.id = opens(store, &flags).id;
    zero_it(store, write.id, ALICE, 2);
    assert_int_equal(check_batch(store, &write), 0);
    write.operation = MU__WRITE_ADD;
    assert_int_equal(check_batch(store, &write), -MU_EINVALID);
    write.operation = MU__WRITE_SGD;
    assert_int_equal(check_batch(store, &write), -MU_EINVALID);
    large.shape = (struct mu__shape){MU_F32, 1, {512}, 1};
    large.bytes = 2048;
    write.id = opens(store, &large).id;
    zero_it(store, write.id, ALICE, 3);
    assert_int_equal(check_batch(store, &write), 0);
    write.operation = MU__WRITE_MOMENTUM;
    assert_int_equal(check_batch(store, &write), -MU_EEXHAUSTED);
}

/* Thousands of names: found again, and each its own. */
static void test_many(void **state)
{
    struct mu__variable_store *store = mu__store_new(&mu__store_limits_default, 1);
    uint64_t ids[3000];
    char name[16];

    (void)state;
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

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_cutting),
        cmocka_unit_test(test_dims_travel),
        cmocka_unit_test(test_name_hash),
        WITH_STORE(test_first_creates_others_wait),
        WITH_STORE(test_initial_content),
        WITH_STORE(test_creator_is_replaced),
        WITH_STORE(test_creation_is_forgotten),
        WITH_STORE(test_who_waits_may_leave),
        WITH_STORE(test_mismatch_says_both),
        WITH_STORE(test_ids),
        cmocka_unit_test(test_opens_refused),
        WITH_STORE(test_name_length),
        WITH_STORE(test_ranges),
        cmocka_unit_test(test_operations),
        WITH_STORE(test_unknown_ids),
        WITH_STORE(test_bounds_of_variables),
        WITH_STORE(test_bounds_of_waiting),
        WITH_STORE(test_bounds_of_bytes),
        WITH_STORE(test_staged_assign_is_atomic),
        WITH_STORE(test_staging_again),
        WITH_STORE(test_transfers_are_apart),
        WITH_STORE(test_staged_is_freed),
        WITH_STORE(test_pieces_in_order),
        WITH_STORE(test_bounds_of_transfers),
        WITH_STORE(test_counters),
        WITH_STORE(test_momentum),
        WITH_STORE(test_existing_waits),
        WITH_STORE(test_existing_leaves),
        WITH_STORE(test_existing_is_no_heir),
        WITH_STORE(test_existing_of_another_shape),
        WITH_STORE(test_commit),
        WITH_STORE(test_orphan),
        WITH_STORE(test_orphan_is_waited_for),
        WITH_STORE(test_replaced),
        WITH_STORE(test_batch_is_applied),
        WITH_STORE(test_batch_is_refused),
        WITH_STORE(test_batch_needs),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
