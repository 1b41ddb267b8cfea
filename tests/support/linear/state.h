/* What keys are between two operations of a history, and what an operation makes of it:
 * for the search of linear.c. */
#ifndef MU_TESTS_LINEAR_STATE_H
#define MU_TESTS_LINEAR_STATE_H

#include "tests/support/linear/linear.h"

/* When the last change was one of unknown fate, the revision is not known but that it is
 * higher. */
struct linear_key {
    unsigned key;
    bool there;
    bool exact;
    int64_t value;
    uint64_t revision;
};

/* Of the keys that are checked together. */
struct linear_state {
    struct linear_key keys[LINEAR_TOGETHER_MAX];
    unsigned count;
};

static inline bool linear_is_known(const struct linear_op *op)
{
    return op->end != LINEAR_UNKNOWN;
}

/* A key that is not there, and never was. */
void linear_add_key(struct linear_state *state, unsigned key);

/* Of a key that is one of them. */
struct linear_key *linear_key_of(struct linear_state *state, unsigned key);
bool linear_has_key(const struct linear_state *state, unsigned key);

bool linear_is_same(const struct linear_state *one, const struct linear_state *other);

/* By its answer: a put or an increment was made; or nothing was changed. */
bool linear_is_change(const struct linear_op *op);
bool linear_is_look(const struct linear_op *op);

/* All keys of an operation belong together. */
unsigned linear_first_key(const struct linear_op *op);

/* Whether the operation can have had its answer now; the state is what it is then. */
bool linear_do(struct linear_state *state, const struct linear_op *op);

#endif
