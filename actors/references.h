/* References to remote and per-worker values inside of values. */
#ifndef MU_ACTORS_REFERENCES_H
#define MU_ACTORS_REFERENCES_H

#include "actors/future.h"
#include "runtime/map.h"

/* A reference that holds `held`, which is counted once more. NULL: out of memory. */
mu_value *mu__reference_to(struct mu__held *held);

/* What a reference of this process holds; NULL for any other value, and for a reference
 * that was unpacked. */
struct mu__held *mu__reference_held(const mu_value *value);

/* The functions below take values of at most MU_VALUE_DEPTH_MAX, as mu__value_measure
 * finds out. */
bool mu__has_references(const mu_value *value);

/* What the references in a value hold, each once, in the order of the value. Borrowed. */
struct mu__references {
    struct mu__held **held;
    size_t count;
    size_t capacity;
    struct mu__map places;      /* held to its place + 1 */
};

/* -MU_EINVALID when a reference holds nothing here, -MU_ENOMEM. Zeroed memory is an empty
 * list; to be done with in any case. */
int mu__references_collect(const mu_value *value, struct mu__references *references);
void mu__references_done(struct mu__references *references);

/* What stands in the place of a reference: a hold of the caller's; NULL: no memory. */
typedef mu_value *(*mu__substitute_fn)(void *arg, const mu_value *reference);

/* A copy with other things in the places of references; what has none is shared. NULL:
 * out of memory. */
mu_value *mu__references_replace(const mu_value *value, mu__substitute_fn substitute,
                                 void *arg);

#endif
