/* What a server knows about effects, which are applied once: whose they are, and which
 * of them it has applied. Plain data.
 *
 * An effect has an origin, the supervisor that numbered it, and its number there. Only
 * the origin that was fenced last counts: what was applied for others is forgotten, and
 * what they still ask for is refused. */
#ifndef MU_ACTORS_APPLIED_H
#define MU_ACTORS_APPLIED_H

#include "runtime/base/id_window.h"

/* Zeroed memory knows nothing, and no origin. */
struct mu__applied {
    bool fenced;
    uint64_t origin;
    uint64_t epoch;                 /* the life of the origin, as it said */
    struct mu__id_window window;
};

void mu__applied_done(struct mu__applied *applied);

/* From now on `origin` counts. True when another one did before, or none; then nothing
 * is known to be applied. */
bool mu__applied_fence(struct mu__applied *applied, uint64_t origin, uint64_t epoch);

enum mu__applied_verdict {
    MU__APPLIED_NOT,        /* to be applied, and noted */
    MU__APPLIED_BEFORE,     /* it was, or it is finished with */
    MU__APPLIED_UNFENCED,   /* no origin is known yet */
    MU__APPLIED_FENCED      /* of an origin that does not count */
};

/* An effect, as its supervisor numbered it. */
struct mu__effect_id {
    uint64_t origin;
    uint64_t effect;        /* not 0 */
    uint64_t effects_done;  /* all numbers below are finished with; at most `effect`: what
                               is more counts as that */
};

/* Learns what is finished with, and tells what to do with the effect. */
enum mu__applied_verdict mu__applied_check(struct mu__applied *applied,
                                           const struct mu__effect_id *id);

/* It is being applied: to be called before, since it may fail. -MU_EEXISTS,
 * -MU_EEXHAUSTED (too far past what is finished with), -MU_ENOMEM. */
int mu__applied_mark(struct mu__applied *applied, uint64_t effect);

#endif
