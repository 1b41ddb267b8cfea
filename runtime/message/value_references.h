/* References inside values: finding them, and replacing them by other values. */
#ifndef MU_RUNTIME_VALUE_REFERENCES_H
#define MU_RUNTIME_VALUE_REFERENCES_H

#include "runtime/message/value_layout.h"

/* Returns in *ret_value the value that replaces reference `number`, as a holder that the
 * caller owns. 0 or a negative code. */
typedef int (*mu__replace_fn)(void *arg, uint64_t number, mu_value **ret_value);

/* Replace each reference in *value, at any depth, but not inside the replacements. *value
 * and its parts must have no other holder, as after unpacking. At the first error the
 * rest is not replaced; *value stays valid. */
int mu__value_replace_references(mu_value **value, mu__replace_fn replace, void *arg);

/* Whether `value` is or contains a reference with a holder that `drop` frees. Levels
 * deeper than MU_VALUE_DEPTH_MAX are not searched. */
bool mu__value_has_holder(const mu_value *value, void (*drop)(void *holder));

/* The holder of such a reference; NULL when `value` is not one. */
void *mu__value_holder(const mu_value *value, void (*drop)(void *holder));

#endif
