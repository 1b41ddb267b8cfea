/* References to remote and per-worker values inside of values. */
#ifndef MU_ACTORS_REFERENCES_H
#define MU_ACTORS_REFERENCES_H

#include "actors/client/future.h"
#include "runtime/base/map.h"

/* A reference that holds `held`, which is counted once more. NULL: out of memory. */
mu_value *mu__reference_to(struct mu__held *held);

/* What a reference of this process holds; NULL for any other value, and for a reference
 * that was unpacked. */
struct mu__held *mu__reference_held(const mu_value *value);

/* The functions below take values of at most MU_VALUE_DEPTH_MAX, as mu__value_measure
 * finds out. */
bool mu__has_references(const mu_value *value);

enum { MU__REFERENCES_FEW = 4 };

/* What the references in a value hold, each once, in the order of the value. Borrowed.
 * Most values have one or two: those take no memory but this struct, which does not move
 * then. */
struct mu__references {
    struct mu__held **held;     /* `few`, or an allocation */
    size_t count;
    size_t capacity;
    struct mu__map indices;      /* held to its place + 1, when there are more than few */
    struct mu__held *few[MU__REFERENCES_FEW];
};

/* An empty list; what `few` has is not looked at. */
static inline void mu__references_init(struct mu__references *references)
{
    references->held = NULL;
    references->count = 0;
    references->capacity = 0;
    references->indices = (struct mu__map){0};
}

/* -MU_EINVALID when a reference holds nothing here, -MU_ENOMEM. The list is to be done
 * with in any case. */
int mu__references_collect(const mu_value *value, struct mu__references *references);
void mu__references_done(struct mu__references *references);

/* The place of one of them, from 0; the number of them when it is none. */
size_t mu__references_index(const struct mu__references *references,
                            const struct mu__held *held);

/* Let two change their places. */
void mu__references_swap(struct mu__references *references, size_t a, size_t b);

/* What stands in the place of a reference: a hold of the caller's; NULL: no memory. */
typedef mu_value *(*mu__substitute_fn)(void *arg, const mu_value *reference);

/* A copy with other things in the places of references; what has none is shared. NULL:
 * out of memory. */
mu_value *mu__references_replace(const mu_value *value, mu__substitute_fn substitute,
                                 void *arg);

#endif
