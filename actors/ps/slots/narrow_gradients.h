/* Gradients of variables of 16-bit floats: the rules calculate with 32 bits, in which the
 * slots are; the gradient is widened, and the result rounded to the nearest number. */
#ifndef MU_ACTORS_PS_SLOTS_NARROW_GRADIENTS_H
#define MU_ACTORS_PS_SLOTS_NARROW_GRADIENTS_H

#include "actors/ps/rules/rules.h"

enum { MU__NARROW_ROW_MAX = 4096 }; /* elements of a row, of rules with slots for rows */

/* Whether a rule can be applied to such variables with rows of `row` elements:
 * -MU_EINVALID. */
int mu__narrow_check(const struct mu__rule_kind *kind, uint64_t row, mu_error *ret_error);

/* Apply a rule, which was prepared for MU_F32, to `count` elements of `dtype`; of a kind
 * with slots for a row, these are one row. */
void mu__narrow_run(const struct mu__rule_at *at, int dtype, uint16_t *x,
                    void *const *slots, const uint8_t *gradient, size_t count);

#endif
