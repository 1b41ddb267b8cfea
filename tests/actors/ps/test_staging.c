/* Batches that have not come to their end. */
#include "actors/ps/staging.h"

#include "actors/variables/effects.h"
#include "tests/support/test.h"

enum { ALICE = 7, BOB = 8 };

static const struct mu__staging_limits small = {
    .bytes_max = 1000, .node_bytes_max = 600, .node_batches_max = 2};

static const uint8_t content[400] = {1, 2, 3};

static int set_up(void **state)
{
    static struct mu__staging staging;

    mu__staging_init(&staging, &small);
    *state = &staging;
    return 0;
}

static int tear_down(void **state)
{
    struct mu__staging *staging = *state;

    mu__staging_done(staging);
    return staging->bytes != 0 || staging->batches != 0 || staging->nodes.first != NULL;
}

static struct mu__staging_piece piece_of(uint32_t node, uint64_t batch, uint32_t before,
                                         uint32_t size)
{
    return (struct mu__staging_piece){
        .batch = batch,
        .before = before,
        .write = {.id = 100 + before, .data = {content, size}, .writer = {node, 7}},
    };
}

static int add(struct mu__staging *staging, uint32_t node, uint64_t batch,
               uint32_t before, uint32_t size)
{
    const struct mu__staging_piece piece = piece_of(node, batch, before, size);
    struct mu__staged staged;
    mu_error error;

    return mu__staging_add(staging, &piece, &error, &staged);
}

TEST_ON(test_order_is_kept, struct mu__staging *staging, set_up, tear_down)
{
    const struct mu__staging_piece third = piece_of(ALICE, 1, 2, 0);
    const struct mu__store_write *write;
    struct mu__staged staged;
    mu_error error;

    assert_int_equal(add(staging, ALICE, 1, 0, 3), 0);
    assert_int_equal(add(staging, BOB, 1, 0, 8), 0);
    assert_int_equal(add(staging, ALICE, 1, 1, 2), 0);
    assert_int_equal(mu__staging_add(staging, &third, &error, &staged), 0);
    assert_int_equal(staged.bytes, 3 * 128 + 5);
    assert_int_equal(staged.fresh, staged.bytes);
    write = staged.first;
    for (uint64_t id = 100; id < 103; id++) {
        assert_non_null(write);
        assert_int_equal(write->id, id);
        assert_ptr_not_equal(write->data.data, content);
        assert_memory_equal(write->data.data, content, write->data.size);
        write = write->next;
    }
    assert_null(write);
    mu__staging_reported(staging, ALICE, 1);
    mu__staging_drop(staging, ALICE, 1);
    assert_int_equal(staging->bytes, 128 + 8);
    mu__staging_drop(staging, ALICE, 1);
    mu__staging_reported(staging, ALICE, 1);
    assert_int_equal(staging->batches, 1);
}

TEST_ON(test_told, struct mu__staging *staging, set_up, tear_down)
{
    const struct mu__staging_piece second = piece_of(ALICE, 1, 1, 10);
    struct mu__staged staged;
    mu_error error;

    assert_int_equal(add(staging, ALICE, 1, 0, 20), 0);
    mu__staging_reported(staging, ALICE, 1);
    assert_int_equal(mu__staging_add(staging, &second, &error, &staged), 0);
    assert_int_equal(staged.fresh, 138);
    assert_int_equal(staged.bytes, 148 + 138);
}

/* A batch with a gap, or without its beginning, is none. */
TEST_ON(test_gaps, struct mu__staging *staging, set_up, tear_down)
{
    assert_int_equal(add(staging, ALICE, 1, 1, 4), -MU_EABORTED);
    assert_int_equal(add(staging, ALICE, 1, 0, 4), 0);
    assert_int_equal(add(staging, BOB, 1, 1, 4), -MU_EABORTED);
    assert_int_equal(add(staging, ALICE, 1, 2, 4), -MU_EABORTED);
    assert_int_equal(staging->batches, 0);
    assert_int_equal(add(staging, ALICE, 1, 1, 4), -MU_EABORTED);
    assert_int_equal(add(staging, ALICE, 1, 0, 4), 0);
    assert_int_equal(add(staging, ALICE, 1, 1, 4), 0);
    assert_int_equal(add(staging, ALICE, 1, 1, 4), -MU_EABORTED);
    assert_int_equal(add(staging, ALICE, 1, UINT32_MAX, 4), -MU_EABORTED);
}

/* Begun anew: what was there is dropped. */
TEST_ON(test_again, struct mu__staging *staging, set_up, tear_down)
{
    assert_int_equal(add(staging, ALICE, 1, 0, 4), 0);
    assert_int_equal(add(staging, ALICE, 1, 1, 4), 0);
    assert_int_equal(add(staging, ALICE, 1, 0, 4), 0);
    assert_int_equal(staging->batches, 1);
    assert_int_equal(staging->bytes, 132);
}

TEST_ON(test_bounds, struct mu__staging *staging, set_up, tear_down)
{
    assert_int_equal(add(staging, ALICE, 1, 0, 400), 0);
    assert_int_equal(add(staging, ALICE, 1, 1, 0), -MU_EEXHAUSTED);
    assert_int_equal(staging->bytes, 0);
    assert_int_equal(add(staging, ALICE, 1, 0, 400), 0);
    assert_int_equal(add(staging, BOB, 1, 0, 344), 0);
    assert_int_equal(staging->bytes, 1000);
    assert_int_equal(add(staging, BOB, 2, 0, 0), -MU_EEXHAUSTED);
    assert_int_equal(add(staging, 9, 1, 0, 0), -MU_EEXHAUSTED);
    assert_int_equal(staging->batches, 2);
    mu__staging_drop_node(staging, ALICE);
    assert_int_equal(staging->bytes, 472);
    assert_int_equal(add(staging, BOB, 2, 0, 0), 0);
    assert_int_equal(add(staging, BOB, 3, 0, 0), -MU_EEXHAUSTED);
    assert_int_equal(staging->batches, 2);
}

static void add_effect(struct mu__staging *staging, uint64_t batch, uint64_t origin,
                       uint64_t effect)
{
    struct mu__staging_piece piece = piece_of(batch % 2 == 0 ? ALICE : BOB, batch, 0, 4);
    struct mu__staged staged;
    mu_error error;

    piece.origin = origin;
    piece.effect = effect;
    assert_int_equal(mu__staging_add(staging, &piece, &error, &staged), 0);
}

/* Plain batches are of no origin. */
TEST_ON(test_other_origins, struct mu__staging *staging, set_up, tear_down)
{
    add_effect(staging, 1, 5, 1);
    add_effect(staging, 2, 6, 1);
    add_effect(staging, 3, 5, 0);
    add_effect(staging, 4, 5, 1);
    mu__staging_drop_others(staging, 6);
    assert_int_equal(staging->batches, 2);
    assert_int_equal(add(staging, ALICE, 2, 1, 4), 0);
    assert_int_equal(add(staging, BOB, 3, 1, 4), 0);
    mu__staging_drop_others(staging, 7);
    assert_int_equal(staging->batches, 1);
}

TEST_PROGRAM()
