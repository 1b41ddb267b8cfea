/* Adding to the elements of a variable; gradients are applied by rules (rules/rules.h).
 *
 * Targets are aligned to their elements; what comes from the network need not be. `bytes`
 * is a multiple of the element's size. Ranges do not overlap. Integers wrap; NaN and
 * infinity follow the rules of IEEE 754. */
#ifndef MU_ACTORS_OPTIMIZER_H
#define MU_ACTORS_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

/* All but BOOL. */
bool mu__optimizer_adds(int dtype);

/* x = x + delta. The dtype adds. */
void mu__optimizer_add(int dtype, void *x, const void *delta, size_t bytes);

#endif
