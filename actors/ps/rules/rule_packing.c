/* Rules as bytes, for messages and files. */
#include "actors/ps/rules/rules.h"

#include "runtime/base/byte_order.h"

#include <string.h>

static uint8_t *put_u64(uint8_t *to, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(number >> (8 * i));
    return to + 8;
}

static const uint8_t *take_u64(const uint8_t *from, uint64_t *ret_number)
{
    *ret_number = mu__load_little64(from);
    return from + 8;
}

size_t mu__rule_pack(const struct mu__rule *rule, uint8_t *to)
{
    const struct mu__rule_kind *kind = mu__rule_kind(rule->kind);
    uint8_t *at = to;

    *at++ = (uint8_t)rule->kind;
    *at++ = (uint8_t)rule->flags;
    at = put_u64(at, rule->step);
    for (unsigned i = 0; i < MU__RULE_NUMBERS; i++) {
        uint64_t bits;

        if (kind == NULL || (kind->numbers & UINT32_C(1) << i) == 0)
            continue;
        memcpy(&bits, &rule->numbers[i], sizeof bits);
        at = put_u64(at, bits);
    }
    return (size_t)(at - to);
}

bool mu__rule_unpack(const uint8_t *bytes, size_t size, struct mu__rule *ret_rule)
{
    struct mu__rule rule = {0};
    const struct mu__rule_kind *kind;
    const uint8_t *end;

    if (size < 10)
        return false;
    end = bytes + size;
    rule.kind = *bytes++;
    rule.flags = *bytes++;
    bytes = take_u64(bytes, &rule.step);
    kind = mu__rule_kind(rule.kind);
    for (unsigned i = 0; kind != NULL && i < MU__RULE_NUMBERS; i++) {
        uint64_t bits;

        if ((kind->numbers & UINT32_C(1) << i) == 0)
            continue;
        if (end - bytes < 8)
            return false;
        bytes = take_u64(bytes, &bits);
        memcpy(&rule.numbers[i], &bits, sizeof bits);
    }
    if (kind == NULL || bytes != end)
        return false;
    *ret_rule = rule;
    return true;
}
