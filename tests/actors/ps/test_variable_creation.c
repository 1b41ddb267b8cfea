/* How shards are created: by whom, for whom others wait, and what is lost. */
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/variable_store.h"

#include <math.h>

/* Of a shard of 32 bytes. */
static float read_half(struct mu__variable_store *store, uint64_t id)
{
    struct mu__view data;
    uint64_t version;
    mu_error error;
    float first;

    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 32}, &error,
                                    &data, &version),
                     0);
    memcpy(&first, data.data, sizeof first);
    return first;
}

/* ---- Creation ---- */

TEST_ON(test_first_creates_others_wait, struct mu__variable_store *store, set_up,
        tear_down)
{
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
TEST_ON(test_initial_content, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open request = open_of("w", ALICE, 1);
    uint64_t id = opens(store, &request).id;
    float content[16] = {42};
    struct mu__store_write piece = {.id = id,
                                    .operation = MU__WRITE_ASSIGN,
                                    .transfer = 1,
                                    .data = {content, 32},
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
                                    &data, &version),
                     -MU_EPRECONDITION);
    piece.offset = 32;
    piece.data = (struct mu__view){content + 8, 32};
    write_ok(store, piece);
    assert_true(read_first(store, id) == 42);
}

/* When the creator is lost, the next in line creates, from zeros; then the next. */
TEST_ON(test_creator_is_replaced, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_open carol = open_of("w", CAROL, 3);
    uint64_t id = opens(store, &alice).id;
    float part[8] = {42};

    opens_and_waits(store, &bob);
    opens_and_waits(store, &carol);
    write_ok(store, (struct mu__store_write){.id = id,
                                             .operation = MU__WRITE_ASSIGN,
                                             .transfer = 1,
                                             .data = {part, sizeof part},
                                             .writer = pid(ALICE)});
    mu__store_node_down(store, ALICE);
    assert_true(answered(store, BOB, 2).created);
    write_ok(store, (struct mu__store_write){.id = id,
                                             .operation = MU__WRITE_ABANDON,
                                             .transfer = 2,
                                             .writer = pid(BOB)});
    assert_true(answered(store, CAROL, 3).created);
    zero_it(store, id, CAROL, 3);
    assert_true(read_first(store, id) == 0);
}

/* A shard whose creator is lost while nobody waits is as if it had never been. */
TEST_ON(test_creation_is_forgotten, struct mu__variable_store *store, set_up, tear_down)
{
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

TEST_ON(test_who_waits_may_leave, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_open carol = open_of("w", CAROL, 3);
    uint64_t id = opens(store, &alice).id;
    struct mu__store_opened opened;

    opens_and_waits(store, &bob);
    opens_and_waits(store, &carol);
    write_ok(store, (struct mu__store_write){.operation = MU__WRITE_ABANDON,
                                             .transfer = 3,
                                             .writer = pid(BOB)});
    assert_false(mu__store_next_opened(store, &opened));
    write_ok(store, (struct mu__store_write){.operation = MU__WRITE_ABANDON,
                                             .transfer = 2,
                                             .writer = pid(BOB)});
    assert_int_equal(answered(store, BOB, 2).code, -MU_ECANCELLED);
    mu__store_node_down(store, CAROL);
    assert_int_equal(totals_of(store).waiting, 0);
    zero_it(store, id, ALICE, 1);
    assert_false(mu__store_next_opened(store, &opened));
}

TEST_ON(test_mismatch_says_both, struct mu__variable_store *store, set_up, tear_down)
{
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
TEST_ON(test_ids, struct mu__variable_store *store, set_up, tear_down)
{
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
                                    &error, &data, &version),
                     -MU_ENOTFOUND);
    mu__store_free(next_life);
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

    return write_it(store,
                    (struct mu__store_write){.id = id,
                                             .operation = MU__WRITE_COMMIT,
                                             .transfer = token,
                                             .writer = pid(node)},
                    &error);
}

static void abandon_it(struct mu__variable_store *store, uint64_t id, uint32_t node,
                       uint64_t token)
{
    write_ok(store, (struct mu__store_write){.id = id,
                                             .operation = MU__WRITE_ABANDON,
                                             .transfer = token,
                                             .writer = pid(node)});
}

/* What is only waited for is no variable, and is bounded as all waiting is. */
TEST_ON(test_existing_waits, struct mu__variable_store *store, set_up, tear_down)
{
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
TEST_ON(test_existing_leaves, struct mu__variable_store *store, set_up, tear_down)
{
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
TEST_ON(test_existing_is_no_heir, struct mu__variable_store *store, set_up, tear_down)
{
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

TEST_ON(test_existing_of_another_shape, struct mu__variable_store *store, set_up,
        tear_down)
{
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
TEST_ON(test_commit, struct mu__variable_store *store, set_up, tear_down)
{
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
                                    &data, &version),
                     -MU_EPRECONDITION);
    assert_int_equal(commit_it(store, id, BOB, 2), -MU_EPRECONDITION);
    assert_int_equal(commit_it(store, id + 1, ALICE, 1), -MU_ENOTFOUND);
    assert_int_equal(commit_it(store, id, ALICE, 1), 0);
    assert_false(answered(store, BOB, 2).created);
    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 4}, &error,
                                    &data, &version),
                     0);
    assert_int_equal(version, 1);
    assert_int_equal(commit_it(store, id, ALICE, 1), 0);
}

/* The creator was lost after it filled the shard: who has found shard 0 uses it, who is
 * to create shard 0 makes it anew, in any shape. */
TEST_ON(test_orphan, struct mu__variable_store *store, set_up, tear_down)
{
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
TEST_ON(test_orphan_is_waited_for, struct mu__variable_store *store, set_up, tear_down)
{
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
    write_ok(store, (struct mu__store_write){.id = id,
                                             .operation = MU__WRITE_ASSIGN,
                                             .transfer = 3,
                                             .data = {content, sizeof content},
                                             .writer = pid(CAROL)});
    mu__store_node_down(store, CAROL);
    assert_int_equal(answered(store, BOB, 2).code, 0);
    assert_true(read_half(store, id) == 7);
}

/* ---- Shards that are made anew ---- */

/* Only the one that was meant goes, with its slots and what was staged for it. */
TEST_ON(test_replaced, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    struct mu__store_open request = open_of("w", BOB, 2);
    struct mu__store_write gradient = piece_of(id, BOB, 0, 0);
    struct mu__store_opened opened;
    mu_error error;

    gradient.operation = MU__WRITE_GRADIENT;
    gradient.rule = packed_momentum(1, 0.5);
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

/* Numbers of creations grow when shard 0 goes to another one, who may not have heard yet
 * that it does. */
TEST_ON(test_numbers_of_creations, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open alice = open_of("w", ALICE, 1);
    struct mu__store_open bob = open_of("w", BOB, 2);
    struct mu__store_opened first = opens(store, &alice);
    struct mu__store_opened second;

    opens_and_waits(store, &bob);
    mu__store_node_down(store, ALICE);
    second = answered(store, BOB, 2);
    assert_true(second.created);
    assert_true(second.creation > first.creation);
    assert_true(second.creation >> 32 == first.creation >> 32);
    zero_it(store, second.id, BOB, 2);
    assert_true(opens(store, &alice).creation == 0);
}

/* One of a former creation does not get what a later one has written and left: shard 0
 * may have its content. */
TEST_ON(test_former_creation, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_open alice = second_of(ALICE, 1, false);
    struct mu__store_open bob = second_of(BOB, 2, false);
    struct mu__store_open carol = second_of(CAROL, 3, true);
    struct mu__store_opened made;
    float content[8] = {42};

    alice.creation = 7;
    bob.creation = 6;
    made = opens(store, &alice);
    assert_true(made.created);
    write_ok(store,
             (struct mu__store_write){.id = made.id,
                                      .operation = MU__WRITE_ASSIGN,
                                      .transfer = 1,
                                      .data = {(const uint8_t *)content, sizeof content},
                                      .writer = pid(ALICE)});
    opens_and_waits(store, &bob);
    mu__store_node_down(store, ALICE);
    bob.requester.token = 4;
    opens_and_waits(store, &bob);
    assert_int_equal(mu__store_open(store, &carol, &(mu_error){.code = 0}), 0);
    assert_false(answered(store, BOB, 2).created);
    assert_false(answered(store, BOB, 4).created);
    assert_false(answered(store, CAROL, 3).created);
    assert_true(read_half(store, made.id) == 42);
}

/* One of a later creation does, and one whose number another life of the server gave. */
TEST_ON(test_later_creation, struct mu__variable_store *store, set_up, tear_down)
{
    static const uint64_t later[] = {8, (uint64_t)1 << 32 | 1};
    uint64_t token = 2;

    for (size_t i = 0; i < 2; i++) {
        struct mu__store_open alice = second_of(ALICE, token++, false);
        struct mu__store_open bob = second_of(BOB, token++, false);
        uint64_t id;

        alice.creation = 7;
        bob.creation = later[i];
        id = opens(store, &alice).id;
        zero_it(store, id, ALICE, alice.requester.token);
        mu__store_node_down(store, ALICE);
        assert_true(opens(store, &bob).created);
        mu__store_node_down(store, BOB);
        assert_int_equal(totals_of(store).variables, 0);
    }
}

TEST_PROGRAM()
