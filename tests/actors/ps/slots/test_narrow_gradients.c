/* Gradients of variables of 16-bit floats: each rule against itself on the same numbers
 * in 32 bits, rounded after each update; and what is refused. */
#include "actors/ps/slots/narrow_gradients.h"

#include "actors/ps/slots/slots.h"
#include "runtime/base/narrow_floats.h"
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/variable_store.h"

#include <math.h>

enum { ROWS = 30, ROW = 200, COUNT = ROWS * ROW, UPDATES = 4, HALF = COUNT / 2 };

static const int dtypes[] = {MU_F16, MU_BF16};

static uint16_t narrow(int dtype, float number)
{
    return dtype == MU_F16 ? mu__f16_of_f32(number) : mu__bf16_of_f32(number);
}

static float wide(int dtype, uint16_t number)
{
    return dtype == MU_F16 ? mu__f32_of_f16(number) : mu__f32_of_bf16(number);
}

/* What the variable has to be. */
struct model {
    int dtype;
    float x[COUNT];
    float slots[MU__RULE_SLOTS_MAX][COUNT];
};

static void model_start(struct model *model, const struct mu__rule *rule)
{
    for (unsigned k = 0; k < MU__RULE_SLOTS_MAX; k++)
        mu__rule_slot_fill(rule, MU_F32, k, model->slots[k], COUNT);
}

static void model_apply(struct model *model, const struct mu__rule *rule,
                        const uint16_t *gradient, uint64_t step)
{
    const bool by_row = mu__rule_kind(rule->kind)->row_slots > 0;
    const size_t part = by_row ? ROW : COUNT;
    float g[COUNT];

    for (size_t i = 0; i < COUNT; i++)
        g[i] = wide(model->dtype, gradient[i]);
    for (size_t from = 0; from < COUNT; from += part) {
        const size_t slot = by_row ? from / ROW : 0;
        void *const slots[] = {model->slots[0] + slot, model->slots[1], model->slots[2]};

        mu__rule_apply(rule, MU_F32, model->x + from, slots, g + from, part, step);
    }
    for (size_t i = 0; i < COUNT; i++)
        model->x[i] = wide(model->dtype, narrow(model->dtype, model->x[i]));
}

static uint64_t make_narrow(struct mu__variable_store *store, int dtype, uint64_t row)
{
    struct mu__store_open request = open_of("w", ALICE, 1);
    uint64_t id;

    request.shape = (struct mu__shape){(uint32_t)dtype, 2, {COUNT / row, row}, 1};
    request.bytes = COUNT * sizeof(uint16_t);
    id = opens(store, &request).id;
    zero_it(store, id, ALICE, 1);
    return id;
}

static struct mu__store_write gradient_of(uint64_t id, const struct mu__rule *rule,
                                          const uint16_t *gradient, uint64_t from,
                                          uint64_t count)
{
    return (struct mu__store_write){
        .id = id,
        .operation = MU__WRITE_GRADIENT,
        .rule = packed(rule),
        .offset = from * sizeof *gradient,
        .data = {gradient + from, (uint32_t)(count * sizeof *gradient)},
        .writer = pid(BOB)};
}

static void assert_content(struct mu__variable_store *store, uint64_t id,
                           const struct model *model)
{
    struct mu__view data;
    uint64_t version;

    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 2 * COUNT},
                                    NULL, &data, &version),
                     0);
    for (size_t i = 0; i < COUNT; i++) {
        uint16_t number;

        memcpy(&number, (const uint8_t *)data.data + 2 * i, sizeof number);
        assert_int_equal(number, narrow(model->dtype, model->x[i]));
    }
}

/* In two pieces each, and nothing is lost of the slots in between. */
static void compare_rule(struct mu__variable_store *store, uint32_t kind, int dtype)
{
    static struct model model;
    static uint16_t gradient[COUNT];
    struct mu__rule rule = mu__rule_defaults(kind);
    uint64_t id = make_narrow(store, dtype, ROW);

    model = (struct model){.dtype = dtype};
    rule.numbers[MU__RATE] = 0.05;
    model_start(&model, &rule);
    for (uint64_t step = 1; step <= UPDATES; step++) {
        for (size_t i = 0; i < COUNT; i++)
            gradient[i] = narrow(dtype, (float)((int)(i * 7 + step * 13) % 31 - 15));
        write_ok(store, gradient_of(id, &rule, gradient, 0, HALF));
        write_ok(store, gradient_of(id, &rule, gradient, HALF, HALF));
        model_apply(&model, &rule, gradient, step);
    }
    assert_content(store, id, &model);
    assert_true(model.x[1] < 0 || model.x[1] > 0);
}

TEST(test_rules_calculate_with_32_bits)
{
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++)
        for (int i = 0; i < 2 && !mu__rule_kind(kind)->is_whole; i++) {
            struct mu__variable_store *store =
                mu__store_new(&mu__store_limits_default, 1);

            assert_non_null(store);
            compare_rule(store, kind, dtypes[i]);
            mu__store_free(store);
        }
}

TEST(test_narrow_gradients_that_are_refused)
{
    static uint16_t gradient[COUNT];
    const struct mu__rule sgd = mu__rule_defaults(MU__RULE_SGD);
    const struct mu__rule lamb = mu__rule_defaults(MU__RULE_LAMB);
    const struct mu__rule rowwise = mu__rule_defaults(MU__RULE_ROWWISE_ADAGRAD);

    for (int i = 0; i < 2; i++) {
        struct mu__variable_store *store = mu__store_new(&mu__store_limits_default, 1);
        uint64_t id = make_narrow(store, dtypes[i], COUNT);
        mu_error error;

        gradient[7] = narrow(dtypes[i], i == 0 ? INFINITY : NAN);
        assert_int_equal(write_it(store, gradient_of(id, &sgd, gradient, 0, COUNT),
                                  &error),
                         -MU_EINVALID);
        assert_non_null(strstr(error.message, "NaN or infinite at element 7 of shard 0"));
        gradient[7] = 0;
        assert_int_equal(write_it(store, gradient_of(id, &lamb, gradient, 0, COUNT),
                                  &error),
                         -MU_EINVALID);
        assert_non_null(strstr(error.message, "not for floats of 16 bits"));
        assert_int_equal(write_it(store, gradient_of(id, &rowwise, gradient, 0, COUNT),
                                  &error),
                         -MU_EINVALID);
        assert_non_null(strstr(error.message, "6000 elements: expected at most 4096"));
        mu__store_free(store);
    }
}

TEST_PROGRAM()
