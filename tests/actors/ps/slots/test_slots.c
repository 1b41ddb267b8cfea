/* What optimizers keep beside shards, and gradients that are refused. */
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/variable_store.h"

static struct mu__view rule_of(uint32_t kind, uint32_t flags, uint64_t step)
{
    struct mu__rule rule = mu__rule_defaults(kind);

    rule.flags = flags;
    rule.step = step;
    return packed(&rule);
}

/* Half of the 16 floats, from `offset`. */
static struct mu__store_write gradient_at(uint64_t id, uint64_t offset,
                                          struct mu__view rule)
{
    struct mu__store_write write = piece_of(id, BOB, 0, offset);

    write.operation = MU__WRITE_GRADIENT;
    write.rule = rule;
    return write;
}

static void apply_whole(struct mu__variable_store *store, uint64_t id,
                        struct mu__view rule)
{
    write_ok(store, gradient_at(id, 0, rule));
    write_ok(store, gradient_at(id, 32, rule));
}

static struct mu__store_shard shard_of(struct mu__variable_store *store)
{
    struct mu__store_shard shard;

    mu__store_visit(store);
    assert_true(mu__store_visit_next(store, &shard));
    return shard;
}

static struct mu__store_info info_of(const struct mu__variable_store *store)
{
    struct mu__store_info info;

    mu__store_each(store, remember, &info);
    return info;
}

/* ---- Slots ---- */

/* Bytes beside 16 floats. */
static const struct slots_row {
    uint32_t kind;
    uint64_t bytes;
} slots_rows[] = {
    {MU__RULE_SGD, 0},
    {MU__RULE_MOMENTUM, 64},
    {MU__RULE_ADAM, 128},
    {MU__RULE_AMSGRAD, 192},
    {MU__RULE_RMSPROP_CENTERED, 192},
    {MU__RULE_ROWWISE_ADAGRAD, 64}, /* of rank 1: a row is an element */
};

TEST(test_slots_are_counted)
{
    for (size_t i = 0; i < sizeof slots_rows / sizeof slots_rows[0]; i++) {
        struct mu__variable_store *store = mu__store_new(&small, 1);
        uint64_t id = make(store, "w");

        apply_whole(store, id, rule_of(slots_rows[i].kind, 0, 0));
        assert_int_equal(totals_of(store).bytes, 64 + slots_rows[i].bytes);
        assert_int_equal(shard_of(store).slots_bytes, slots_rows[i].bytes);
        mu__store_free(store);
    }
}

/* The piece at the end of a shard ends an update; a step that is given counts, too. */
TEST_ON(test_updates_are_counted, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");

    write_ok(store, gradient_at(id, 0, rule_of(MU__RULE_ADAM, 0, 0)));
    assert_int_equal(info_of(store).step, 0);
    assert_string_equal(info_of(store).rule, "adam");
    write_ok(store, gradient_at(id, 32, rule_of(MU__RULE_ADAM, 0, 0)));
    assert_int_equal(info_of(store).step, 1);
    apply_whole(store, id, rule_of(MU__RULE_ADAM, 0, 10));
    assert_int_equal(info_of(store).step, 10);
    apply_whole(store, id, rule_of(MU__RULE_ADAM, 0, 4));
    assert_int_equal(info_of(store).step, 10);
    apply_whole(store, id, rule_of(MU__RULE_SGD, 0, 0));
    assert_int_equal(info_of(store).step, 10);
    apply_whole(store, id, rule_of(MU__RULE_ADAM, 0, 0));
    assert_int_equal(info_of(store).step, 11);
}

/* Adam's first step has the size of the rate, if it is taken for the first one. */
TEST_ON(test_the_count_is_what_a_rule_sees, struct mu__variable_store *store, set_up,
        tear_down)
{
    uint64_t id = make(store, "w");

    apply_whole(store, id, rule_of(MU__RULE_ADAM, 0, 0));
    assert_true(fabs((double)read_first(store, id) + 0.001) < 1e-8);
    apply_whole(store, id, rule_of(MU__RULE_ADAM, 0, 0));
    assert_true(fabs((double)read_first(store, id) + 0.002) < 1e-8);
}

TEST_ON(test_slots_of_another_rule, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    mu_error error;

    apply_whole(store, id, rule_of(MU__RULE_ADAM, 0, 0));
    assert_int_equal(write_it(store, gradient_at(id, 0, rule_of(MU__RULE_ADAGRAD, 0, 0)),
                              &error),
                     -MU_EPRECONDITION);
    assert_string_equal(error.message,
                        "variable w has slots of adam, and the gradient is for adagrad: "
                        "it does not say that it replaces them");
    assert_int_equal(totals_of(store).bytes, 3 * 64);
    apply_whole(store, id, rule_of(MU__RULE_ADAGRAD, MU__RULE_REPLACES, 0));
    assert_string_equal(info_of(store).rule, "adagrad");
    assert_int_equal(info_of(store).step, 1);
    assert_int_equal(totals_of(store).bytes, 2 * 64);
}

/* They begin as the rule says: 0.1 for Adagrad; a is 1.1 then. */
TEST_ON(test_what_slots_begin_as, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    float first;

    apply_whole(store, id, rule_of(MU__RULE_ADAGRAD, 0, 0));
    memcpy(&first, shard_of(store).slots, sizeof first);
    assert_true(fabs((double)first - 1.1) < 1e-6);
}

/* ---- Batches ---- */

static void link_two(struct mu__store_write *writes)
{
    writes[0].next = &writes[1];
    writes[1].next = NULL;
}

/* A batch that is refused leaves no slots, and replaces none. */
TEST_ON(test_a_refused_batch, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    struct mu__store_write writes[2] = {
        gradient_at(id, 0, rule_of(MU__RULE_ADAM, 0, 0)),
        gradient_at(id, 64, rule_of(MU__RULE_ADAM, 0, 0))};
    mu_error error;

    link_two(writes);
    assert_int_equal(mu__store_check_batch(store, writes, &error), -MU_ERANGE);
    assert_int_equal(shard_of(store).rule, 0);
    apply_whole(store, id, rule_of(MU__RULE_ADAGRAD, 0, 0));
    writes[0].rule = rule_of(MU__RULE_ADAM, MU__RULE_REPLACES, 0);
    assert_int_equal(mu__store_check_batch(store, writes, &error), -MU_ERANGE);
    assert_int_equal(shard_of(store).rule, MU__RULE_ADAGRAD);
}

TEST_ON(test_two_rules_in_a_batch, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");
    struct mu__store_write writes[2] = {
        gradient_at(id, 0, rule_of(MU__RULE_ADAM, 0, 0)),
        gradient_at(id, 32, rule_of(MU__RULE_ADAGRAD, 0, 0))};
    mu_error error;

    link_two(writes);
    assert_int_equal(mu__store_check_batch(store, writes, &error), -MU_EPRECONDITION);
    assert_true(read_first(store, id) == 0);
}

/* ---- Refusals ---- */

TEST_ON(test_nan_is_refused, struct mu__variable_store *store, set_up, tear_down)
{
    float bad[8] = {1, 1, 1, NAN, 1, 1, 1, INFINITY};
    uint64_t id = make(store, "w");
    struct mu__store_write write = gradient_at(id, 32, rule_of(MU__RULE_SGD, 0, 0));
    mu_error error;

    write.data.data = bad;
    assert_int_equal(write_it(store, write, &error), -MU_EINVALID);
    assert_string_equal(error.message, "the gradient of variable w is NaN or infinite at "
                                       "element 11 of shard 0");
    assert_int_equal(mu__store_check_batch(store, &write, &error), -MU_EINVALID);
    assert_int_equal(info_of(store).nonfinite, 2);
    assert_int_equal(info_of(store).version, 1);
    write.rule = rule_of(MU__RULE_SGD, MU__RULE_ANY_NUMBER, 0);
    write_ok(store, write);
    assert_int_equal(info_of(store).nonfinite, 2);
}

/* Three rows of four floats. */
static uint64_t make_rows(struct mu__variable_store *store, uint32_t shards)
{
    struct mu__store_open request = open_of("rows", ALICE, 1);
    uint64_t id;

    request.shape = (struct mu__shape){MU_F32, 2, {3, 4}, shards};
    request.bytes = shards == 1 ? 48 : 16;
    id = opens(store, &request).id;
    zero_it(store, id, ALICE, 1);
    return id;
}

TEST_ON(test_one_accumulator_for_a_row, struct mu__variable_store *store, set_up,
        tear_down)
{
    uint64_t id = make_rows(store, 1);
    struct mu__store_write write =
        gradient_at(id, 16, rule_of(MU__RULE_ROWWISE_ADAGRAD, 0, 0));
    float accumulators[3];
    mu_error error;

    write_ok(store, write);
    assert_int_equal(shard_of(store).slots_bytes, sizeof accumulators);
    memcpy(accumulators, shard_of(store).slots, sizeof accumulators);
    assert_true(accumulators[0] == 0 && accumulators[1] == 1 && accumulators[2] == 1);
    write.offset = 8;
    assert_int_equal(write_it(store, write, &error), -MU_EINVALID);
    assert_string_equal(error.message, "a part of a row of variable rows: "
                                       "rowwise_adagrad needs whole rows");
}

TEST_ON(test_a_norm_of_all_shards, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__store_write write =
        gradient_at(make_rows(store, 3), 0, rule_of(MU__RULE_LAMB, 0, 0));
    mu_error error;

    write.data.size = 16;
    assert_int_equal(write_it(store, write, &error), -MU_EINVALID);
    assert_string_equal(error.message, "variable rows has 3 shards, and lamb needs the "
                                       "norm of all: expected 1");
}

/* Its pieces change nothing until the last one has come. */
TEST_ON(test_lamb_in_pieces, struct mu__variable_store *store, set_up, tear_down)
{
    uint64_t id = make(store, "w");

    apply_whole(store, id, rule_of(MU__RULE_SGD, 0, 0));
    write_ok(store, gradient_at(id, 0, rule_of(MU__RULE_LAMB, 0, 0)));
    assert_true(fabs((double)read_first(store, id) + 0.01) < 1e-8);
    write_ok(store, gradient_at(id, 32, rule_of(MU__RULE_LAMB, 0, 0)));
    assert_true(fabs((double)read_first(store, id) + 0.01001) < 1e-7);
}

/* ---- Copies ---- */

/* What a learner gets goes on bit by bit, and a rule without slots is refused. */
TEST_ON(test_a_copy_goes_on, struct mu__variable_store *store, set_up, tear_down)
{
    struct mu__variable_store *copy = mu__store_new(&small, 9);
    uint64_t id = make(store, "w");
    struct mu__store_bytes bytes = {.id = id};
    struct mu__store_shard shard;
    mu_error error;

    apply_whole(store, id, rule_of(MU__RULE_AMSGRAD, 0, 0));
    shard = shard_of(store);
    shard.rule = MU__RULE_SGD;
    assert_int_equal(mu__store_put_shard(copy, &shard, &error), -MU_EINVALID);
    shard.rule = 200;
    assert_int_equal(mu__store_put_shard(copy, &shard, &error), -MU_EINVALID);
    shard.rule = MU__RULE_AMSGRAD;
    assert_int_equal(mu__store_put_shard(copy, &shard, &error), 0);
    bytes.data = (struct mu__view){shard.data, 64};
    assert_int_equal(mu__store_put_bytes(copy, &bytes, &error), 0);
    bytes.slots = true;
    bytes.data = (struct mu__view){shard.slots, 192};
    assert_int_equal(mu__store_put_bytes(copy, &bytes, &error), 0);
    bytes.offset = 1;
    assert_int_equal(mu__store_put_bytes(copy, &bytes, &error), -MU_ERANGE);
    for (int i = 0; i < 3; i++) {
        apply_whole(store, id, rule_of(MU__RULE_AMSGRAD, 0, 0));
        apply_whole(copy, id, rule_of(MU__RULE_AMSGRAD, 0, 0));
        assert_memory_equal(shard_of(store).data, shard_of(copy).data, 64);
        assert_memory_equal(shard_of(store).slots, shard_of(copy).slots, 192);
        assert_int_equal(mu__store_sample(store, id, 0, 64),
                         mu__store_sample(copy, id, 0, 64));
    }
    mu__store_free(copy);
}

TEST_PROGRAM()
