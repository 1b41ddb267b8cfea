/* Packed rules, for writes and calls that are made by hand. */
#ifndef MUSTER_TESTS_SUPPORT_PACKED_RULE_H
#define MUSTER_TESTS_SUPPORT_PACKED_RULE_H

#include "actors/ps/rules/rules.h"
#include "runtime/base/view.h"

/* It lasts until 16 others were packed by this file. */
static inline struct mu__view packed(const struct mu__rule *rule)
{
    enum { KEPT = 16 };
    static uint8_t bytes[KEPT][MU__RULE_BYTES_MAX];
    static unsigned used;
    uint8_t *to = bytes[used++ % KEPT];

    return (struct mu__view){to, (uint32_t)mu__rule_pack(rule, to)};
}

/* SGD, or momentum in torch's form. */
static inline struct mu__view packed_momentum(double rate, double momentum)
{
    bool has_momentum = momentum > 0 || momentum < 0;
    struct mu__rule rule =
        mu__rule_defaults(has_momentum ? MU__RULE_MOMENTUM : MU__RULE_SGD);

    rule.numbers[MU__RATE] = rate;
    rule.numbers[MU__MOMENTUM] = momentum;
    return packed(&rule);
}

#endif
