/* The rules of names: where an actor with a name is started, and whether and when it is
 * started again. Pure functions. */
#ifndef MU_ACTORS_NAMES_RULES_H
#define MU_ACTORS_NAMES_RULES_H

#include "actors/messages/actor_fields.h"
#include "runtime/base/view.h"

#include "muster/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MU__NAME_STARTS_MAX = 50,      /* on one task at a time */
    MU__NAME_RESTARTS_MAX = 64,    /* that are remembered of a name */
    MU__NAME_BACKOFF_MS = 10,      /* before the first restart; it doubles, */
    MU__NAME_BACKOFF_MAX_MS = 5000 /* up to this */
};

/* A name: 1 to MU__ACTOR_NAME_MAX bytes of UTF-8, no '#', '/' or control characters. */
int mu__name_check(struct mu__view name, mu_error *ret_error);

/* ---- where ---- */

/* A process, as it is offered for one name. */
struct mu__name_candidate {
    const char *type; /* of the task */
    uint32_t index;
    bool offers; /* it has the actor's type, and the task type that is wanted */
    bool drains;
    uint32_t actors;   /* with names, that it has or is starting */
    uint32_t starting; /* of these */
};

/* Whether `offer` is better than `best` (NULL: than none) for one more actor: it has the
 * fewest; of equals the one that comes first by type and index. */
bool mu__name_is_better(const struct mu__name_candidate *offer,
                        const struct mu__name_candidate *best);

/* Whether a type is in a list of types that are separated by line feeds. */
bool mu__name_types_have(struct mu__view types, struct mu__view type);

/* ---- again ---- */

struct mu__name_limits {
    uint32_t policy; /* enum mu_actor_restart */
    uint32_t restarts;
    uint32_t within_ms;
};

/* When a name was started again, the last times. */
struct mu__name_history {
    uint32_t count; /* of all */
    uint64_t times_ms[MU__NAME_RESTARTS_MAX];
};

enum mu__name_verdict {
    MU__NAME_FORGET, /* it has ended as it was to */
    MU__NAME_AGAIN,  /* after *ret_delay_ms */
    MU__NAME_GIVE_UP
};

/* What follows when an actor has ended. MU__NAME_AGAIN is noted in the history, unless it
 * was moved. `chance`: any number. */
enum mu__name_verdict mu__name_judge(const struct mu__name_limits *limits,
                                     enum mu__name_end end, uint64_t now_ms,
                                     uint64_t chance, struct mu__name_history *history,
                                     uint64_t *ret_delay_ms);

/* How much of a lease its owner counts: less than who gave it, as clocks differ. */
static inline uint64_t mu__name_own_lease(uint64_t lease_ms)
{
    return lease_ms - lease_ms / 10;
}

/* Of the flags of NAME_START: something is kept of the actor. */
#define MU__NAME_BORN (UINT32_C(1) << 16)

#endif
