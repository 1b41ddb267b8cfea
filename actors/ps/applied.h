/* Which effects a server has applied, so that each is applied once. Plain data.
 *
 * An effect has an origin, the supervisor that numbered it, and its number there. Only
 * the origin of the last FENCE counts: what was applied for others is forgotten, and
 * their further effects are refused. */
#ifndef MU_ACTORS_APPLIED_H
#define MU_ACTORS_APPLIED_H

#include "runtime/base/id_window.h"

/* Zeroed memory knows nothing, and no origin. */
struct mu__applied {
    bool fenced;
    uint64_t origin;
    uint64_t epoch; /* the chief epoch of the origin, from its FENCE */
    struct mu__id_window window;
};

void mu__applied_done(struct mu__applied *applied);

/* From now on `origin` counts. True when another one did before, or none; then nothing
 * is known to be applied. */
bool mu__applied_fence(struct mu__applied *applied, uint64_t origin, uint64_t epoch);

enum mu__applied_verdict {
    MU__APPLIED_NOT,      /* to be applied */
    MU__APPLIED_BEFORE,   /* it was applied, or it is settled */
    MU__APPLIED_UNFENCED, /* no origin is known yet */
    MU__APPLIED_FENCED    /* of an origin that does not count */
};

/* An effect, as its supervisor numbered it. */
struct mu__effect_id {
    uint64_t origin;
    uint64_t effect;       /* not 0 */
    uint64_t effects_done; /* all numbers below are settled; more than `effect` counts as
                              `effect` */
};

/* What to do with an effect. Numbers below `effects_done` are settled from then on. */
enum mu__applied_verdict mu__applied_check(struct mu__applied *applied,
                                           const struct mu__effect_id *id);

/* Note an effect as applied; to be called before it is, since it may fail. -MU_EEXISTS,
 * -MU_EEXHAUSTED (too far past the settled numbers), -MU_ENOMEM. */
int mu__applied_mark(struct mu__applied *applied, uint64_t effect);

#endif
