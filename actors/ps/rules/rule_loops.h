/* The loops of all rules, for one type of elements. Who includes this, once, has defined
 * REAL, ROOT (its square root), BITS (an integer of its size), EXPONENT (the bits of its
 * exponent), LOOPS (the name of the table). */
#include "actors/ps/rules/internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "each operation rounds to its type");

/* An element of a gradient: as it came from the network, at any address. */
typedef REAL given_real __attribute__((aligned(1), may_alias));
typedef BITS given_bits __attribute__((aligned(1), may_alias));

/* What each loop begins with. */
#define LOOP(name)                                                           \
    static void name(void *x_, void *const *slots, const void *g_, size_t n, \
                     const double *factors)
#define TARGET             \
    REAL *restrict x = x_; \
    GRADIENT
#define GRADIENT const given_real *restrict g = g_
#define SLOT(name, k) REAL *restrict name = slots[k]
#define NUMBER(name, k) const REAL name = (REAL)factors[k]

#include "actors/ps/rules/loops_moments.h"

static void decay_elements(void *x_, size_t n, double factor)
{
    REAL *x = x_;
    REAL decay = (REAL)factor;

    for (size_t i = 0; i < n; i++)
        x[i] -= decay * x[i];
}

static void fill_elements(void *to_, size_t n, double start)
{
    REAL *to = to_;

    for (size_t i = 0; i < n; i++)
        to[i] = (REAL)start;
}

/* Blocks are looked at as a whole first: nearly all are fine. One more in an exponent is
 * above all others only if that had all its bits. */
static size_t find_nonfinite(const void *gradient, size_t n)
{
    enum { BLOCK = 256 };

    for (size_t from = 0; from < n; from += BLOCK) {
        const given_bits *bits = (const given_bits *)gradient + from;
        size_t count = n - from < BLOCK ? n - from : BLOCK;
        BITS found = 0;

        for (size_t i = 0; i < count; i++)
            found |= (bits[i] & EXPONENT) + (EXPONENT & -EXPONENT);
        for (size_t i = 0; found > EXPONENT && i < count; i++)
            if ((bits[i] & EXPONENT) == EXPONENT)
                return from + i;
    }
    return n;
}

const struct mu__rule_loops LOOPS = {
    .element_bytes = sizeof(REAL),
    .run =
        {
            [MU__RULE_SGD] = run_sgd,
            [MU__RULE_MOMENTUM] = run_momentum,
            [MU__RULE_MOMENTUM_KERAS] = run_momentum_keras,
            [MU__RULE_NESTEROV] = run_nesterov,
            [MU__RULE_NESTEROV_KERAS] = run_nesterov_keras,
            [MU__RULE_ADAGRAD] = run_adagrad,
            [MU__RULE_ROWWISE_ADAGRAD] = run_rowwise_adagrad,
            [MU__RULE_RMSPROP] = run_rmsprop,
            [MU__RULE_RMSPROP_MOMENTUM] = run_rmsprop_momentum,
            [MU__RULE_RMSPROP_CENTERED] = run_rmsprop_centered,
            [MU__RULE_ADAM] = run_adam,
            [MU__RULE_ADAMW] = run_adam,
            [MU__RULE_AMSGRAD] = run_amsgrad,
            [MU__RULE_FTRL] = run_ftrl,
            [MU__RULE_ADADELTA] = run_adadelta,
            [MU__RULE_ADAMAX] = run_adamax,
            [MU__RULE_NADAM] = run_nadam,
            [MU__RULE_LION] = run_lion,
            [MU__RULE_LAMB] = run_lamb,
        },
    .finish = {[MU__RULE_LAMB] = finish_lamb},
    .decay = decay_elements,
    .fill = fill_elements,
    .find_nonfinite = find_nonfinite,
};
