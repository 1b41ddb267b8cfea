/* References to remote and per-worker values inside values. */
#ifndef MU_ACTORS_REFERENCES_H
#define MU_ACTORS_REFERENCES_H

#include "actors/client/future.h"
#include "runtime/base/map.h"

/* A value that refers to `held` and takes a reference to it. NULL: out of memory. */
mu_value *mu__reference_to(struct mu__held *held);

/* The handle that a reference value made in this process refers to; NULL for any other
 * value, and for an unpacked reference. */
struct mu__held *mu__reference_held(const mu_value *value);

/* This and the functions below recurse: the depth of the value is at most
 * MU_VALUE_DEPTH_MAX, which mu__value_measure checks. */
bool mu__has_references(const mu_value *value);

enum { MU__REFERENCES_FEW = 4 };

/* The handles that a value refers to, each once, in the order of the value. Borrowed. Up
 * to MU__REFERENCES_FEW need no allocation; the struct must not be moved then. */
struct mu__references {
    struct mu__held **held; /* `few`, or an allocation */
    size_t count;
    size_t capacity;
    struct mu__map indices; /* handle to index + 1; with an allocation only */
    struct mu__held *few[MU__REFERENCES_FEW];
};

/* An empty list; `few` stays uninitialised. */
static inline void mu__references_init(struct mu__references *references)
{
    references->held = NULL;
    references->count = 0;
    references->capacity = 0;
    references->indices = (struct mu__map){0};
}

/* Add the handles of a value. -MU_EINVALID: some reference was not made in this process;
 * -MU_ENOMEM. The list must be freed by _done in any case. */
int mu__references_collect(const mu_value *value, struct mu__references *references);
void mu__references_done(struct mu__references *references);

/* The index of a handle; references->count if it is not in the list. */
size_t mu__references_index(const struct mu__references *references,
                            const struct mu__held *held);

/* Exchange the handles at two indices. */
void mu__references_swap(struct mu__references *references, size_t a, size_t b);

/* Makes the value that replaces a reference; NULL: out of memory. */
typedef mu_value *(*mu__substitute_fn)(void *arg, const mu_value *reference);

/* A copy with all references replaced. Parts without references are shared with the
 * original. NULL: out of memory. */
mu_value *mu__references_replace(const mu_value *value, mu__substitute_fn substitute,
                                 void *arg);

#endif
