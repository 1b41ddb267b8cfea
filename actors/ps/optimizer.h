/* What a write does to the elements of a variable: plain loops over ranges of bytes.
 *
 * Targets are aligned to their elements; what comes from the network need not be. `bytes`
 * is a multiple of the element's size. Ranges do not overlap. Integers wrap; NaN and
 * infinity follow the rules of IEEE 754. */
#ifndef MU_ACTORS_OPTIMIZER_H
#define MU_ACTORS_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

/* What a dtype can do: all but BOOL add, floats take gradients. */
bool mu__optimizer_adds(int dtype);
bool mu__optimizer_learns(int dtype);

/* x = x + delta. The dtype adds. */
void mu__optimizer_add(int dtype, void *x, const void *delta, size_t bytes);

/* x = x - rate * gradient. The dtype learns. */
void mu__optimizer_sgd(int dtype, void *x, const void *gradient, size_t bytes,
                       double rate);

struct mu__momentum {
    double rate;
    double momentum;
};

/* v = momentum * v + gradient; x = x - rate * v. The dtype learns. */
void mu__optimizer_momentum(int dtype, void *x, void *v, const void *gradient,
                            size_t bytes, const struct mu__momentum *how);

#endif
