/* Kinds of rules, what their hyperparameters may be, and how one is applied. */
#include "actors/ps/rules/rules.h"

#include "actors/ps/rules/internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- Hyperparameters ---- */

static const struct number_range {
    const char *name;
    double low;
    double high;
    double start; /* its default */
} number_ranges[MU__RULE_NUMBERS] = {
    [MU__RATE] = {"rate", -1e30, 1e30, 0.001},
    [MU__WEIGHT_DECAY] = {"weight_decay", 0, 1e30, 0},
    [MU__MOMENTUM] = {"momentum", -1, 1, 0.9},
    [MU__BETA1] = {"beta1", 0, 0.9999999, 0.9},
    [MU__BETA2] = {"beta2", 0, 0.9999999, 0.999},
    [MU__RHO] = {"rho", 0, 0.9999999, 0.9},
    [MU__EPSILON] = {"epsilon", 1e-37, 1e30, 1e-7},
    [MU__INITIAL] = {"initial", 0, 1e30, 0.1},
    [MU__L1] = {"l1", 0, 1e30, 0},
    [MU__L2] = {"l2", 0, 1e30, 0},
    [MU__SHRINKAGE] = {"shrinkage", 0, 1e30, 0},
    [MU__POWER] = {"power", -1, 0, -0.5},
    [MU__BETA] = {"beta", 0, 1e30, 0},
};

/* ---- Kinds ---- */

#define HAS(number) (UINT32_C(1) << MU__##number)
#define COMMON (HAS(RATE) | HAS(WEIGHT_DECAY))
#define MOMENTS (COMMON | HAS(BETA1) | HAS(BETA2) | HAS(EPSILON))
#define AVERAGES (COMMON | HAS(RHO) | HAS(EPSILON))

static const struct mu__rule_kind kinds[MU__RULE_KINDS] = {
    [MU__RULE_SGD] = {.name = "sgd", .numbers = COMMON},
    [MU__RULE_MOMENTUM] = {.name = "momentum",
                           .numbers = COMMON | HAS(MOMENTUM),
                           .slots = 1,
                           .slot_names = {"velocity"}},
    [MU__RULE_MOMENTUM_KERAS] = {.name = "momentum_keras",
                                 .numbers = COMMON | HAS(MOMENTUM),
                                 .slots = 1,
                                 .slot_names = {"velocity"}},
    [MU__RULE_NESTEROV] = {.name = "nesterov",
                           .numbers = COMMON | HAS(MOMENTUM),
                           .slots = 1,
                           .slot_names = {"velocity"}},
    [MU__RULE_NESTEROV_KERAS] = {.name = "nesterov_keras",
                                 .numbers = COMMON | HAS(MOMENTUM),
                                 .slots = 1,
                                 .slot_names = {"velocity"}},
    [MU__RULE_ADAGRAD] = {.name = "adagrad",
                          .numbers = COMMON | HAS(EPSILON) | HAS(INITIAL),
                          .slots = 1,
                          .slot_names = {"accumulator"},
                          .initial_slots = 1},
    [MU__RULE_ROWWISE_ADAGRAD] = {.name = "rowwise_adagrad",
                                  .numbers = COMMON | HAS(EPSILON) | HAS(INITIAL),
                                  .row_slots = 1,
                                  .slot_names = {"accumulator"},
                                  .initial_slots = 1},
    [MU__RULE_RMSPROP] = {.name = "rmsprop",
                          .numbers = AVERAGES,
                          .slots = 1,
                          .slot_names = {"velocity"}},
    [MU__RULE_RMSPROP_MOMENTUM] = {.name = "rmsprop_momentum",
                                   .numbers = AVERAGES | HAS(MOMENTUM),
                                   .slots = 2,
                                   .slot_names = {"velocity", "momentum"}},
    [MU__RULE_RMSPROP_CENTERED] = {.name = "rmsprop_centered",
                                   .numbers = AVERAGES | HAS(MOMENTUM),
                                   .slots = 3,
                                   .slot_names = {"velocity", "momentum", "average"}},
    [MU__RULE_ADAM] = {.name = "adam",
                       .numbers = MOMENTS,
                       .slots = 2,
                       .slot_names = {"momentum", "velocity"},
                       .is_stepped = true},
    [MU__RULE_ADAMW] = {.name = "adamw",
                        .numbers = MOMENTS,
                        .slots = 2,
                        .slot_names = {"momentum", "velocity"},
                        .is_stepped = true},
    [MU__RULE_AMSGRAD] = {.name = "amsgrad",
                          .numbers = MOMENTS,
                          .slots = 3,
                          .slot_names = {"momentum", "velocity", "velocity_max"},
                          .is_stepped = true},
    [MU__RULE_FTRL] = {.name = "ftrl",
                       .numbers = COMMON | HAS(INITIAL) | HAS(L1) | HAS(L2) |
                                  HAS(SHRINKAGE) | HAS(POWER) | HAS(BETA),
                       .slots = 2,
                       .slot_names = {"accumulator", "linear"},
                       .initial_slots = 1},
    [MU__RULE_ADADELTA] = {.name = "adadelta",
                           .numbers = AVERAGES,
                           .slots = 2,
                           .slot_names = {"gradients", "updates"},
                           .dense_only = true},
    [MU__RULE_ADAMAX] = {.name = "adamax",
                         .numbers = MOMENTS,
                         .slots = 2,
                         .slot_names = {"momentum", "norm"},
                         .is_stepped = true,
                         .dense_only = true},
    [MU__RULE_NADAM] = {.name = "nadam",
                        .numbers = MOMENTS,
                        .slots = 2,
                        .slot_names = {"momentum", "velocity"},
                        .is_stepped = true,
                        .dense_only = true},
    [MU__RULE_LION] = {.name = "lion",
                       .numbers = COMMON | HAS(BETA1) | HAS(BETA2),
                       .slots = 1,
                       .slot_names = {"momentum"},
                       .dense_only = true},
    [MU__RULE_LAMB] = {.name = "lamb",
                       .numbers = MOMENTS,
                       .slots = 2,
                       .slot_names = {"momentum", "velocity"},
                       .is_stepped = true,
                       .is_whole = true,
                       .dense_only = true},
};

const struct mu__rule_kind *mu__rule_kind(uint32_t kind)
{
    return kind < MU__RULE_KINDS && kinds[kind].name != NULL ? &kinds[kind] : NULL;
}

uint32_t mu__rule_kind_by_name(const char *name)
{
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++)
        if (strcmp(kinds[kind].name, name) == 0)
            return kind;
    return 0;
}

const char *mu__rule_number_name(unsigned number)
{
    return number_ranges[number].name;
}

/* Where a kind's default is not that of its hyperparameter. */
static const struct own_default {
    uint32_t kind;
    unsigned number;
    double value;
} own_defaults[] = {
    {MU__RULE_SGD, MU__RATE, 0.01},
    {MU__RULE_MOMENTUM, MU__RATE, 0.01},
    {MU__RULE_MOMENTUM_KERAS, MU__RATE, 0.01},
    {MU__RULE_NESTEROV, MU__RATE, 0.01},
    {MU__RULE_NESTEROV_KERAS, MU__RATE, 0.01},
    {MU__RULE_ROWWISE_ADAGRAD, MU__INITIAL, 0},
    {MU__RULE_ROWWISE_ADAGRAD, MU__EPSILON, 1e-8},
    {MU__RULE_ADAMW, MU__WEIGHT_DECAY, 0.004},
    {MU__RULE_ADADELTA, MU__RHO, 0.95},
    {MU__RULE_LION, MU__BETA2, 0.99},
};

struct mu__rule mu__rule_defaults(uint32_t kind)
{
    const struct mu__rule_kind *row = mu__rule_kind(kind);
    struct mu__rule rule = {.kind = kind};

    for (unsigned i = 0; row != NULL && i < MU__RULE_NUMBERS; i++)
        if ((row->numbers & UINT32_C(1) << i) != 0)
            rule.numbers[i] = number_ranges[i].start;
    for (size_t i = 0; i < sizeof own_defaults / sizeof own_defaults[0]; i++)
        if (own_defaults[i].kind == kind)
            rule.numbers[own_defaults[i].number] = own_defaults[i].value;
    return rule;
}

static int check_rule_number(const struct mu__rule_kind *kind, unsigned i, double number,
                             mu_error *ret_error)
{
    const struct number_range *range = &number_ranges[i];

    if (number >= range->low && number <= range->high)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "%s: %s %g: expected %g to %g",
                        kind->name, range->name, number, range->low, range->high);
}

int mu__rule_dtype(int dtype)
{
    switch (dtype) {
    case MU_F16:
    case MU_BF16:
        return MU_F32;
    case MU_F32:
    case MU_F64:
        return dtype;
    default:
        return MU_DTYPE_NONE;
    }
}

int mu__rule_check(const struct mu__rule *rule, int dtype, mu_error *ret_error)
{
    const struct mu__rule_kind *kind = mu__rule_kind(rule->kind);
    int rv = 0;

    if (kind == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "no update rule %u",
                            (unsigned)rule->kind);
    if (mu__rule_dtype(dtype) == MU_DTYPE_NONE)
        return mu_error_set(ret_error, -MU_EINVALID, "%s takes no gradients",
                            mu_dtype_name(dtype) == NULL ? "its dtype"
                                                         : mu_dtype_name(dtype));
    if ((rule->flags & ~(uint32_t)MU__RULE_FLAGS_ALL) != 0)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: flags 0x%X", kind->name,
                            (unsigned)rule->flags);
    for (unsigned i = 0; rv == 0 && i < MU__RULE_NUMBERS; i++)
        if ((kind->numbers & UINT32_C(1) << i) != 0)
            rv = check_rule_number(kind, i, rule->numbers[i], ret_error);
    if (rv == 0 && rule->kind == MU__RULE_FTRL && !(rule->numbers[MU__RATE] >= 1e-30))
        return mu_error_set(ret_error, -MU_EINVALID, "ftrl: rate %g: expected above 0",
                            rule->numbers[MU__RATE]);
    return rv;
}

double mu__rule_slot_start(const struct mu__rule *rule, unsigned slot)
{
    const struct mu__rule_kind *kind = mu__rule_kind(rule->kind);

    return (kind->initial_slots & UINT32_C(1) << slot) != 0 ? rule->numbers[MU__INITIAL]
                                                            : 0;
}

static const struct mu__rule_loops *loops_f32(void)
{
#ifdef MUSTER_WIDE_RULES
    if (__builtin_cpu_supports("avx2"))
        return &mu__rule_loops_f32_wide;
#endif
    return &mu__rule_loops_f32;
}

const struct mu__rule_loops *mu__rule_loops_of(int dtype)
{
    return dtype == MU_F32 ? loops_f32() : dtype == MU_F64 ? &mu__rule_loops_f64 : NULL;
}

void mu__rule_slot_fill(const struct mu__rule *rule, int dtype, unsigned slot, void *to,
                        size_t count)
{
    mu__rule_loops_of(dtype)->fill(to, count, mu__rule_slot_start(rule, slot));
}

/* ---- Applying ---- */

/* base^t by squaring: always in the same order. */
static double power_of(double base, uint64_t t)
{
    double power = 1;

    for (; t > 0; t >>= 1) {
        if ((t & 1) != 0)
            power *= base;
        base *= base;
    }
    return power;
}

/* Momentum k of Nadam. */
static double nadam_momentum(double beta1, uint64_t k)
{
    return beta1 * (1 - 0.5 * power_of(0.96, k));
}

/* c(1) to c(t), multiplied: behind NADAM_WARM steps c is beta1, to the last bit. */
static double nadam_product(double beta1, uint64_t t)
{
    enum { NADAM_WARM = 1000 };
    uint64_t warm = t < NADAM_WARM ? t : NADAM_WARM;
    double product = 1;
    double decay = 1;

    for (uint64_t k = 1; k <= warm; k++) {
        decay *= 0.96;
        product *= beta1 * (1 - 0.5 * decay);
    }
    return product * power_of(beta1, t - warm);
}

static void prepare_averages(const double *of, double *factors)
{
    factors[1] = of[MU__RHO];
    factors[2] = 1 - of[MU__RHO];
    factors[3] = of[MU__EPSILON];
    factors[4] = of[MU__MOMENTUM];
}

static void prepare_momentum(const double *of, uint64_t t, double *factors)
{
    (void)t;
    factors[1] = of[MU__MOMENTUM];
}

static void prepare_adagrad(const double *of, uint64_t t, double *factors)
{
    (void)t;
    factors[1] = of[MU__EPSILON];
}

static void prepare_rmsprop(const double *of, uint64_t t, double *factors)
{
    (void)t;
    prepare_averages(of, factors);
}

static void prepare_adam(const double *of, uint64_t t, double *factors)
{
    factors[0] *= sqrt(1 - power_of(of[MU__BETA2], t)) / (1 - power_of(of[MU__BETA1], t));
    factors[1] = 1 - of[MU__BETA1];
    factors[2] = 1 - of[MU__BETA2];
    factors[3] = of[MU__EPSILON];
}

static void prepare_ftrl(const double *of, uint64_t t, double *factors)
{
    (void)t;
    factors[1] = of[MU__L1];
    factors[2] = 2 * of[MU__L2] + of[MU__BETA] / of[MU__RATE];
    factors[3] = 2 * of[MU__SHRINKAGE];
    factors[4] = -of[MU__POWER];
}

static void prepare_adamax(const double *of, uint64_t t, double *factors)
{
    factors[0] /= 1 - power_of(of[MU__BETA1], t);
    factors[1] = 1 - of[MU__BETA1];
    factors[2] = of[MU__BETA2];
    factors[3] = of[MU__EPSILON];
}

static void prepare_nadam(const double *of, uint64_t t, double *factors)
{
    double product = nadam_product(of[MU__BETA1], t);
    double next = nadam_momentum(of[MU__BETA1], t + 1);

    factors[1] = 1 - of[MU__BETA1];
    factors[2] = 1 - of[MU__BETA2];
    factors[3] = of[MU__EPSILON];
    factors[4] = next / (1 - product * next);
    factors[5] = (1 - nadam_momentum(of[MU__BETA1], t)) / (1 - product);
    factors[6] = 1 / (1 - power_of(of[MU__BETA2], t));
}

static void prepare_lion(const double *of, uint64_t t, double *factors)
{
    (void)t;
    factors[1] = of[MU__BETA1];
    factors[2] = 1 - of[MU__BETA1];
    factors[3] = of[MU__BETA2];
    factors[4] = 1 - of[MU__BETA2];
}

static void prepare_lamb(const double *of, uint64_t t, double *factors)
{
    factors[1] = 1 - of[MU__BETA1];
    factors[2] = 1 - of[MU__BETA2];
    factors[3] = of[MU__EPSILON];
    factors[4] = 1 / (1 - power_of(of[MU__BETA1], t));
    factors[5] = 1 / (1 - power_of(of[MU__BETA2], t));
}

/* What the loops of a kind take; factor 0 is the rate. */
typedef void (*prepare_fn)(const double *numbers, uint64_t t, double *factors);

static const prepare_fn prepare[MU__RULE_KINDS] = {
    [MU__RULE_MOMENTUM] = prepare_momentum,
    [MU__RULE_MOMENTUM_KERAS] = prepare_momentum,
    [MU__RULE_NESTEROV] = prepare_momentum,
    [MU__RULE_NESTEROV_KERAS] = prepare_momentum,
    [MU__RULE_ADAGRAD] = prepare_adagrad,
    [MU__RULE_ROWWISE_ADAGRAD] = prepare_adagrad,
    [MU__RULE_RMSPROP] = prepare_rmsprop,
    [MU__RULE_RMSPROP_MOMENTUM] = prepare_rmsprop,
    [MU__RULE_RMSPROP_CENTERED] = prepare_rmsprop,
    [MU__RULE_ADAM] = prepare_adam,
    [MU__RULE_ADAMW] = prepare_adam,
    [MU__RULE_AMSGRAD] = prepare_adam,
    [MU__RULE_FTRL] = prepare_ftrl,
    [MU__RULE_ADADELTA] = prepare_rmsprop,
    [MU__RULE_ADAMAX] = prepare_adamax,
    [MU__RULE_NADAM] = prepare_nadam,
    [MU__RULE_LION] = prepare_lion,
    [MU__RULE_LAMB] = prepare_lamb,
};

struct mu__rule_at mu__rule_prepare(const struct mu__rule *rule, int dtype, uint64_t step)
{
    const double *numbers = rule->numbers;
    struct mu__rule_at at = {
        .kind = rule->kind,
        .dtype = dtype,
        .decay = numbers[MU__RATE] * numbers[MU__WEIGHT_DECAY],
        .factors = {numbers[MU__RATE]},
    };

    assert(step > 0 && mu__rule_kind(rule->kind) != NULL &&
           mu__rule_loops_of(dtype) != NULL);
    if (prepare[rule->kind] != NULL)
        prepare[rule->kind](numbers, step, at.factors);
    return at;
}

void mu__rule_run(const struct mu__rule_at *at, void *x, void *const *slots,
                  const void *gradient, size_t count)
{
    const struct mu__rule_loops *loops = mu__rule_loops_of(at->dtype);

    if (at->decay > 0 || at->decay < 0)
        loops->decay(x, count, at->decay);
    loops->run[at->kind](x, slots, gradient, count, at->factors);
}

void mu__rule_finish(const struct mu__rule_at *at, void *x, void *const *slots,
                     size_t count)
{
    const struct mu__rule_loops *loops = mu__rule_loops_of(at->dtype);

    if (loops->finish[at->kind] != NULL)
        loops->finish[at->kind](x, slots, count, at->factors);
}

void mu__rule_apply(const struct mu__rule *rule, int dtype, void *x, void *const *slots,
                    const void *gradient, size_t count, uint64_t step)
{
    const struct mu__rule_at at = mu__rule_prepare(rule, dtype, step);

    mu__rule_run(&at, x, slots, gradient, count);
    mu__rule_finish(&at, x, slots, count);
}

static size_t find_narrow_nonfinite(int dtype, const uint8_t *gradient, size_t count)
{
    const uint16_t exponent = dtype == MU_F16 ? 0x7C00 : 0x7F80;

    for (size_t i = 0; i < count; i++) {
        uint16_t bits;

        memcpy(&bits, gradient + i * sizeof bits, sizeof bits);
        if ((bits & exponent) == exponent)
            return i;
    }
    return count;
}

size_t mu__rule_find_nonfinite(int dtype, const void *gradient, size_t count)
{
    const struct mu__rule_loops *loops = mu__rule_loops_of(dtype);

    if (dtype == MU_F16 || dtype == MU_BF16)
        return find_narrow_nonfinite(dtype, gradient, count);
    return loops == NULL ? count : loops->find_nonfinite(gradient, count);
}
