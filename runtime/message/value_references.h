/* References inside values: looking for them, and putting what they stand for in their
 * place. */
#ifndef MU_RUNTIME_VALUE_REFERENCES_H
#define MU_RUNTIME_VALUE_REFERENCES_H

#include "runtime/message/value_layout.h"

/* Gives what is to stand in the place of reference `number`: the replacer's holder of it
 * is taken. 0 or a negative code. */
typedef int (*mu__replace_fn)(void *arg, uint64_t number, mu_value **ret_value);

/* Replace each reference in *value, at any depth, but not inside what was put in.
 * Nobody else may hold *value or a part of it: a value fresh from unpacking is like that.
 * At the first error the rest stays as it is; *value may be freed then as ever. */
int mu__value_replace_references(mu_value **value, mu__replace_fn replace, void *arg);

/* Whether `value` is or has in it a reference that holds something which is dropped by
 * `drop`. What is deeper than MU_VALUE_DEPTH_MAX is not looked at. */
bool mu__value_has_holder(const mu_value *value, void (*drop)(void *holder));

/* What such a reference holds; NULL when `value` is none. */
void *mu__value_holder(const mu_value *value, void (*drop)(void *holder));

#endif
