/* What the files of this folder share: loops over elements of one type. */
#ifndef MU_ACTORS_RULES_INTERNAL_H
#define MU_ACTORS_RULES_INTERNAL_H

#include "actors/ps/rules/rules.h"

/* `gradient` may be at any address. `factors` are the kind's, as mu__rule_prepare made
 * them. */
typedef void (*mu__rule_loop_fn)(void *x, void *const *slots, const void *gradient,
                                 size_t count, const double *factors);
typedef void (*mu__rule_finish_fn)(void *x, void *const *slots, size_t count,
                                   const double *factors);

struct mu__rule_loops {
    size_t element_bytes;
    mu__rule_loop_fn run[MU__RULE_KINDS];
    mu__rule_finish_fn finish[MU__RULE_KINDS];
    void (*decay)(void *x, size_t count, double factor);
    void (*fill)(void *to, size_t count, double start);
    size_t (*find_nonfinite)(const void *gradient, size_t count);
};

extern const struct mu__rule_loops mu__rule_loops_f32;
extern const struct mu__rule_loops mu__rule_loops_f64;
extern const struct mu__rule_loops mu__rule_loops_f32_wide; /* if it was compiled */

/* Those of this processor. NULL: no numbers of a rule are of the dtype. */
const struct mu__rule_loops *mu__rule_loops_of(int dtype);

/* base^power for base >= 0: of basic operations alone, so that it is the same everywhere.
 * Its relative error is below 1e-14. */
double mu__rule_power(double base, double power);

#endif
