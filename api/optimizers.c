/* Optimizers of programs, and the rules that servers know. */
#include "muster/optimizer.h"

#include "api/internal.h"
#include "runtime/message/arguments.h"

#include <string.h>

#define SAME(name) \
    _Static_assert((int)MU_OPTIMIZER_##name == (int)MU__RULE_##name, "one number")
SAME(SGD);
SAME(MOMENTUM);
SAME(MOMENTUM_KERAS);
SAME(NESTEROV);
SAME(NESTEROV_KERAS);
SAME(ADAGRAD);
SAME(ROWWISE_ADAGRAD);
SAME(RMSPROP);
SAME(RMSPROP_MOMENTUM);
SAME(RMSPROP_CENTERED);
SAME(ADAM);
SAME(ADAMW);
SAME(AMSGRAD);
SAME(FTRL);
SAME(ADADELTA);
SAME(ADAMAX);
SAME(NADAM);
SAME(LION);
SAME(LAMB);
_Static_assert((int)MU_OPTIMIZER_ANY_NUMBER == (int)MU__RULE_ANY_NUMBER &&
                   (int)MU_OPTIMIZER_REPLACE == (int)MU__RULE_REPLACES,
               "one number");

/* Where each hyperparameter stands. */
static const size_t members[MU__RULE_NUMBERS] = {
    [MU__RATE] = offsetof(mu_optimizer, rate),
    [MU__WEIGHT_DECAY] = offsetof(mu_optimizer, weight_decay),
    [MU__MOMENTUM] = offsetof(mu_optimizer, momentum),
    [MU__BETA1] = offsetof(mu_optimizer, beta1),
    [MU__BETA2] = offsetof(mu_optimizer, beta2),
    [MU__RHO] = offsetof(mu_optimizer, rho),
    [MU__EPSILON] = offsetof(mu_optimizer, epsilon),
    [MU__INITIAL] = offsetof(mu_optimizer, initial),
    [MU__L1] = offsetof(mu_optimizer, l1),
    [MU__L2] = offsetof(mu_optimizer, l2),
    [MU__SHRINKAGE] = offsetof(mu_optimizer, shrinkage),
    [MU__POWER] = offsetof(mu_optimizer, power),
    [MU__BETA] = offsetof(mu_optimizer, beta),
};

mu_optimizer mu_optimizer_make(int kind, double rate)
{
    const struct mu__rule rule = mu__rule_defaults((uint32_t)kind);
    mu_optimizer optimizer = {.size = sizeof optimizer, .kind = kind};

    for (unsigned i = 0; i < MU__RULE_NUMBERS; i++)
        memcpy((char *)&optimizer + members[i], &rule.numbers[i], sizeof(double));
    optimizer.rate = rate;
    return optimizer;
}

int mu_optimizer_find(const char *name)
{
    MU__REQUIRE(NULL, name);

    uint32_t kind = mu__rule_kind_by_name(name);

    return kind == 0 ? -MU_ENOTFOUND : (int)kind;
}

const char *mu_optimizer_name(int kind)
{
    const struct mu__rule_kind *row = mu__rule_kind((uint32_t)kind);

    return row == NULL ? NULL : row->name;
}

int mu__optimizer_pack(const mu_optimizer *optimizer, int dtype, uint8_t *bytes,
                       mu_error *ret_error, struct mu__view *ret_rule)
{
    struct mu__rule rule = {.kind = (uint32_t)optimizer->kind,
                            .flags = optimizer->flags,
                            .step = optimizer->step};
    int rv;

    if (optimizer->size < sizeof *optimizer)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "an optimizer that mu_optimizer_make did not make");
    for (unsigned i = 0; i < MU__RULE_NUMBERS; i++)
        memcpy(&rule.numbers[i], (const char *)optimizer + members[i], sizeof(double));
    rv = mu__rule_check(&rule, dtype, ret_error);
    if (rv == 0)
        *ret_rule = (struct mu__view){bytes, (uint32_t)mu__rule_pack(&rule, bytes)};
    return rv;
}
