/* Rows of a shard, in the store: what is written and read, and what is refused. */
#include "actors/ps/rows/rows.h"

#include "actors/ps/rows/row_list.h"
#include "tests/support/variable_store.h"

enum { ROW = 4 * sizeof(float), ROWS = 4 };

/* Four rows of four floats. */
static uint64_t make_rows(struct mu__variable_store *store)
{
    struct mu__store_open request = open_of("v", ALICE, 1);
    struct mu__store_opened opened;

    request.shape = (struct mu__shape){MU_F32, 2, {ROWS, 4}, 1};
    opened = opens(store, &request);
    zero_it(store, opened.id, ALICE, 1);
    return opened.id;
}

/* A list of two rows: the first one gets ones, the second one twos. */
struct two_rows {
    uint8_t bytes[2 * (8 + ROW)];
};

static struct two_rows two_rows_of(uint64_t first, uint64_t second)
{
    const float contents[8] = {1, 1, 1, 1, 2, 2, 2, 2};
    struct two_rows list;

    mu__store_little(list.bytes, first, 8);
    mu__store_little(list.bytes + 8, second, 8);
    memcpy(list.bytes + 16, contents, sizeof contents);
    return list;
}

static struct mu__store_write list_write(uint64_t id, uint32_t operation,
                                         const struct two_rows *list)
{
    return (struct mu__store_write){.id = id,
                                    .operation = operation,
                                    .data = {list->bytes, sizeof list->bytes},
                                    .writer = pid(BOB)};
}

static void assert_rows(struct mu__variable_store *store, uint64_t id, const float *each)
{
    struct mu__view data;
    uint64_t version;
    float content[ROWS * 4];

    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, ROWS * ROW},
                                    NULL, &data, &version),
                     0);
    memcpy(content, data.data, sizeof content);
    for (size_t i = 0; i < ROWS * 4; i++)
        assert_true(content[i] == each[i / 4]);
}

TEST_ON(test_rows_are_updated_and_added, struct mu__variable_store *store, set_up,
        tear_down)
{
    uint64_t id = make_rows(store);
    struct two_rows list = two_rows_of(3, 1);
    uint64_t version = mu__store_version(store, id);

    write_ok(store, list_write(id, MU__WRITE_SCATTER_UPDATE, &list));
    assert_rows(store, id, (const float[]){0, 2, 0, 1});
    write_ok(store, list_write(id, MU__WRITE_SCATTER_ADD, &list));
    assert_rows(store, id, (const float[]){0, 4, 0, 2});
    list = two_rows_of(0, 0);
    write_ok(store, list_write(id, MU__WRITE_SCATTER_UPDATE, &list));
    assert_rows(store, id, (const float[]){2, 4, 0, 2});
    write_ok(store, list_write(id, MU__WRITE_SCATTER_ADD, &list));
    assert_rows(store, id, (const float[]){5, 4, 0, 2});
    assert_int_equal(mu__store_version(store, id), version);
}

TEST_ON(test_ranges_are_assigned_and_added, struct mu__variable_store *store, set_up,
        tear_down)
{
    static const float ones[4] = {1, 1, 1, 1};
    uint64_t id = make_rows(store);
    uint64_t version = mu__store_version(store, id);
    struct mu__store_write write = {.id = id,
                                    .operation = MU__WRITE_ROWS_ASSIGN,
                                    .offset = 3 * ROW, /* the last one, too */
                                    .data = {ones, sizeof ones},
                                    .writer = pid(BOB)};

    write_ok(store, write);
    write.offset = 2 * ROW;
    write_ok(store, write);
    write.operation = MU__WRITE_ROWS_ADD;
    write_ok(store, write);
    assert_rows(store, id, (const float[]){0, 0, 2, 1});
    assert_int_equal(mu__store_version(store, id), version);
}

TEST_ON(test_rows_are_read_in_any_order, struct mu__variable_store *store, set_up,
        tear_down)
{
    uint64_t id = make_rows(store);
    const struct two_rows list = two_rows_of(3, 1);
    const struct two_rows numbers = two_rows_of(1, 3);
    struct mu__store_read_rows request = {id, {numbers.bytes, 16}, 2 * ROW};
    float out[8];
    uint64_t version = 0;

    write_ok(store, list_write(id, MU__WRITE_SCATTER_UPDATE, &list));
    assert_int_equal(mu__store_read_rows(store, &request, NULL, out, &version), 0);
    for (size_t i = 0; i < 8; i++)
        assert_true(out[i] == (i < 4 ? 2.0F : 1.0F));
    assert_int_equal(version, mu__store_version(store, id));
}

/* ---- What is refused: nothing of it is applied ---- */

static const struct bad_write {
    uint64_t first;
    uint64_t second;
    uint32_t size; /* of the data */
    uint64_t offset;
    int rv;
    const char *message;
} bad_writes[] = {
    {0, 4, 48, 0, -MU_ERANGE, "row 4 of a shard of 4 of variable v"},
    {0, UINT64_MAX, 48, 0, -MU_ERANGE,
     "row 18446744073709551615 of a shard of 4 of variable v"},
    {0, 1, 47, 0, -MU_EINVALID, "47 bytes at 0 are not a list of rows of variable v"},
    {0, 1, 0, 0, -MU_EINVALID, "0 bytes at 0 are not a list of rows of variable v"},
    {0, 1, 48, 16, -MU_EINVALID, "48 bytes at 16 are not a list of rows of variable v"},
};

TEST_ON(test_bad_lists_change_nothing, struct mu__variable_store *store, set_up,
        tear_down)
{
    static const uint32_t operations[] = {MU__WRITE_SCATTER_UPDATE,
                                          MU__WRITE_SCATTER_ADD};
    uint64_t id = make_rows(store);

    for (size_t i = 0; i < 2 * sizeof bad_writes / sizeof bad_writes[0]; i++) {
        const struct bad_write *bad = &bad_writes[i / 2];
        const struct two_rows list = two_rows_of(bad->first, bad->second);
        struct mu__store_write write = list_write(id, operations[i % 2], &list);
        mu_error error;

        write.data.size = bad->size;
        write.offset = bad->offset;
        assert_int_equal(mu__store_check_batch(store, &write, &error), bad->rv);
        assert_string_equal(error.message, bad->message);
        assert_int_equal(write_it(store, write, &error), bad->rv);
        assert_rows(store, id, (const float[]){0, 0, 0, 0});
    }
}

static const struct bad_read {
    uint64_t second;
    uint32_t numbers;
    uint32_t size;
    int rv;
} bad_reads[] = {
    {4, 16, 2 * ROW, -MU_ERANGE},       {1, 15, 2 * ROW, -MU_EINVALID},
    {1, 16, ROW, -MU_EINVALID},         {1, 8, 2 * ROW, -MU_EINVALID},
    {1, 16, 2 * ROW - 1, -MU_EINVALID},
};

TEST_ON(test_bad_reads_are_refused, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make_rows(store);
    float out[8];
    uint64_t version;

    for (size_t i = 0; i < sizeof bad_reads / sizeof bad_reads[0]; i++) {
        const struct two_rows list = two_rows_of(0, bad_reads[i].second);
        const struct mu__store_read_rows request = {
            id, {list.bytes, bad_reads[i].numbers}, bad_reads[i].size};

        assert_int_equal(mu__store_read_rows(store, &request, NULL, out, &version),
                         bad_reads[i].rv);
    }
    assert_int_equal(
        mu__store_read_rows(store, &(struct mu__store_read_rows){id + 1, {out, 8}, ROW},
                            NULL, out, &version),
        -MU_ENOTFOUND);
}

/* Nobody writes or reads rows of what has no content. */
TEST_ON(test_rows_without_content, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open request = open_of("v", ALICE, 1);
    const struct two_rows list = two_rows_of(0, 1);
    struct mu__store_opened opened;
    float out[8];
    uint64_t version;

    request.shape = (struct mu__shape){MU_F32, 2, {ROWS, 4}, 1};
    opened = opens(store, &request);
    for (uint32_t i = MU__WRITE_ROWS_ASSIGN; i <= MU__WRITE_SCATTER_ADD; i++) {
        struct mu__store_write write = list_write(opened.id, i, &list);

        write.transfer = 1;
        write.writer = pid(ALICE);
        assert_int_equal(write_it(store, write, NULL), -MU_EPRECONDITION);
    }
    assert_int_equal(mu__store_read_rows(store,
                                         &(struct mu__store_read_rows){
                                             opened.id, {list.bytes, 16}, 2 * ROW},
                                         NULL, out, &version),
                     -MU_EPRECONDITION);
}

TEST_ON(test_truth_values_do_not_add, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open request = open_of("v", ALICE, 1);
    uint8_t data[9] = {0};
    struct mu__store_write write = {.data = {data, sizeof data}, .writer = pid(BOB)};

    request.shape = (struct mu__shape){MU_BOOL, 1, {4}, 1};
    request.bytes = 4;
    write.id = opens(store, &request).id;
    zero_it(store, write.id, ALICE, 1);
    write.operation = MU__WRITE_SCATTER_UPDATE;
    write_ok(store, write);
    write.operation = MU__WRITE_SCATTER_ADD;
    assert_int_equal(write_it(store, write, NULL), -MU_EINVALID);
    assert_int_equal(mu__store_check_batch(store, &write, NULL), -MU_EINVALID);
}

/* Whether replicas are equal is seen by the rows that were written. */
TEST_ON(test_samples_are_of_the_rows, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make_rows(store);
    const struct two_rows list = two_rows_of(2, 3);
    const struct mu__store_write write = list_write(id, MU__WRITE_SCATTER_ADD, &list);
    uint64_t before = mu__store_sample_write(store, &write);

    write_ok(store, write);
    assert_int_not_equal(mu__store_sample_write(store, &write), before);
    assert_int_not_equal(before, 0);
}

TEST_PROGRAM()
