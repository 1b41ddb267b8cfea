/* Whether a history of operations on keys is linearizable: whether each operation can be
 * given one moment between its begin and its end so that, done in the order of these
 * moments, all of them have the answers that they had.
 *
 * One whose fate is unknown may take effect at any moment after its begin, or never. Keys
 * are independent of each other, so each is checked alone; those that a transaction has
 * in common are checked together. It is a search, deepest first, that never looks at the
 * same state twice. Values are numbers here. */
#ifndef MU_TESTS_LINEAR_H
#define MU_TESTS_LINEAR_H

#include "muster/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum linear_kind {
    LINEAR_GET,       /* code 0: number, revision; or -MU_ENOTFOUND */
    LINEAR_PUT,       /* of `value`; overwrites */
    LINEAR_INSERT,    /* once: or -MU_EEXISTS */
    LINEAR_COMPARE,   /* put if the revision is `expected`, 0: if it is not there; or
                         -MU_EPRECONDITION */
    LINEAR_INCREMENT, /* by `value`; number is the sum */
    LINEAR_DELETE,    /* number is 1 or 0 */
    LINEAR_TRANSACT   /* all parts at one moment: number is the first sum, revision that
                         of the last change; or -MU_EPRECONDITION, and number that of
                         the first comparison that did not hold, from 1 */
};

enum linear_part_kind {
    LINEAR_IF_REVISION, /* comparisons: is `expected`, 0: it is not there */
    LINEAR_IF_ABSENT,
    LINEAR_IF_PRESENT,
    LINEAR_IF_VALUE,       /* is there with `value` */
    LINEAR_PART_PUT,       /* changes: to `value` */
    LINEAR_PART_INCREMENT, /* by `value` */
    LINEAR_PART_DELETE
};

enum {
    LINEAR_PARTS_MAX = 8,
    LINEAR_KEYS_MAX = 64,   /* of a history, */
    LINEAR_TOGETHER_MAX = 8 /* of those that are checked together */
};

/* A part of a transaction: comparisons come first. No key is changed twice. */
struct linear_part {
    enum linear_part_kind kind;
    unsigned key;
    int64_t value;
    uint64_t expected;
};

#define LINEAR_UNKNOWN UINT64_MAX /* as the end of an operation */

struct linear_op {
    enum linear_kind kind;
    unsigned key; /* all but transactions */
    int64_t value;
    uint64_t expected;
    struct linear_part parts[LINEAR_PARTS_MAX];
    unsigned parts_count;
    uint64_t begin; /* moments: what ends before another begins is before it */
    uint64_t end;
    int code; /* the answer, as what follows */
    int64_t number;
    uint64_t revision; /* 0: was not told, or is not to be looked at */
};

/* Zeroed memory is an empty history. */
struct linear {
    struct linear_op *ops;
    size_t count;
    size_t capacity;
    uint64_t moment; /* the last */
};

void linear_done(struct linear *linear);

/* An operation begins now: kind, key, value, expected. Its number, for linear_end. */
size_t linear_begin(struct linear *linear, const struct linear_op *op);

/* It ends now with an answer. One that is never ended has an unknown fate. */
void linear_end(struct linear *linear, size_t number, int code, int64_t answer,
                uint64_t revision);

/* It certainly had no effect, and had no answer that says anything. */
void linear_drop(struct linear *linear, size_t number);

/* Operations of a history that may have any order in the array. When it is not
 * linearizable, `why` has the key's operations, and how far one could get. */
bool linear_check(const struct linear_op *ops, size_t count, char *why, size_t why_size);

/* The same; with too much that is unknown it may not be decided within so many states. */
enum linear_verdict { LINEAR_GOOD, LINEAR_BAD, LINEAR_UNDECIDED };

enum linear_verdict linear_judge(const struct linear_op *ops, size_t count,
                                 size_t states_max, char *why, size_t why_size);

#endif
