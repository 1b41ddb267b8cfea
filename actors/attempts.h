/* Lists of attempts as messages carry them: RECALL, RECALLED, BEGUN. Plain data.
 *
 * An entry is two or three numbers of 64 bits: a closure, its attempt, and for how many
 * milliseconds that has run. */
#ifndef MU_ACTORS_ATTEMPTS_H
#define MU_ACTORS_ATTEMPTS_H

#include "runtime/message/message.h"

enum { MU__ATTEMPT_BYTES = 16, MU__ATTEMPT_TIMED_BYTES = 24 };

struct mu__attempt {
    uint64_t closure;
    uint32_t attempt;
    uint64_t for_ms;        /* 0 in lists without times */
};

/* How many whole entries of `bytes` a view has. */
static inline uint32_t mu__attempts_count(struct mu__view view, uint32_t bytes)
{
    return view.size / bytes;
}

/* Entry `i` of a list whose entries have `bytes`. An attempt that no closure can have is
 * read as 0, which none has. */
struct mu__attempt mu__attempts_at(struct mu__view view, uint32_t bytes, uint32_t i);

/* Write an entry at `at`; returns where the next one goes. */
uint8_t *mu__attempts_put(uint8_t *at, uint32_t bytes, const struct mu__attempt *attempt);

#endif
