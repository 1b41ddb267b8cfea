/* Fields of the messages of kept actors (actors/keeper/): between the office that owns
 * one and its keeper, and between the offices of callers and owners. */
#ifndef MU_ACTORS_MESSAGES_KEPT_FIELDS_H
#define MU_ACTORS_MESSAGES_KEPT_FIELDS_H

#include "actors/messages/actor_fields.h"

enum { MU__KEPT_NAME_MAX = 255 };

/* What is kept of an actor. */
enum mu__kept_kind {
    MU__KEPT_END,      /* no more, of what is loaded */
    MU__KEPT_RECORD,   /* to be replayed */
    MU__KEPT_SNAPSHOT, /* the whole state, in the place of what is older */
    MU__KEPT_ANSWER,   /* a call has taken effect */
    MU__KEPT_FORGET,   /* a sender is gone, and its window */
    MU__KEPT_KINDS
};

/* A life of an actor begins, in a process: older ones record nothing more. What is kept
 * follows. `is_born`: some life of it has recorded something. `number`: what lives of
 * lower epochs have recorded is of another actor, which had the name before; in the file:
 * of the last item of this life. `owner` 0, in the file: the actor was stopped, and
 * nothing is kept of it. */
#define MU__KEEP_FENCE_FIELDS(F, S)              \
    F(S, REQUIRED, str, name, MU__KEPT_NAME_MAX) \
    F(S, REQUIRED, u64, epoch, 0)                \
    F(S, REQUIRED, u64, owner, 0)                \
    F(S, OPTIONAL, flag, is_born, 0)             \
    F(S, OPTIONAL, u64, number, 0)

/* One thing to keep. Numbers of a life count from 1 without a gap. `more`: it counts only
 * together with the next one. `code` absent: the value is the answer. `timeout_ms`: the
 * sender may ask for its answers for so long. */
#define MU__KEEP_ITEM_FIELDS(F, S)                    \
    F(S, REQUIRED, str, name, MU__KEPT_NAME_MAX)      \
    F(S, REQUIRED, u64, epoch, 0)                     \
    F(S, REQUIRED, u64, number, 0)                    \
    F(S, REQUIRED, u32, kind, MU__KEPT_KINDS - 1)     \
    F(S, OPTIONAL, flag, more, 0)                     \
    F(S, OPTIONAL, u32, version, 0)                   \
    F(S, OPTIONAL, u64, sender, 0)                    \
    F(S, OPTIONAL, u64, call, 0)                      \
    F(S, OPTIONAL, u64, base, 0)                      \
    F(S, OPTIONAL, u32, code, 255)                    \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)  \
    F(S, OPTIONAL, value, value, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, u64, timeout_ms, 0)

/* All items up to `number` survive the keeper; or the error of what comes next.
 * `is_full`: it has what it may have of all actors, and this one is to record no more. */
#define MU__KEPT_FIELDS(F, S)                        \
    F(S, REQUIRED, str, name, MU__KEPT_NAME_MAX)     \
    F(S, REQUIRED, u64, epoch, 0)                    \
    F(S, REQUIRED, u64, number, 0)                   \
    F(S, OPTIONAL, u32, code, 255)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, flag, is_full, 0)

/* A call to a kept actor, the `number`th of this process to it. All calls below `base`
 * have ended; `before` is the last one before this that has not, 0: there is none. The
 * answer is ACTOR_ANSWER. */
#define MU__KEPT_CALL_FIELDS(F, S)                   \
    F(S, REQUIRED, str, name, MU__KEPT_NAME_MAX)     \
    F(S, REQUIRED, u64, number, 0)                   \
    F(S, REQUIRED, u64, base, 0)                     \
    F(S, REQUIRED, u64, call, 0)                     \
    F(S, REQUIRED, str, method, MU__ACTOR_NAME_MAX)  \
    F(S, OPTIONAL, u64, before, 0)                   \
    F(S, OPTIONAL, u64, timeout_ms, 0)               \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, str, chain, MU__ACTOR_CHAIN_MAX)

/* The actor is not here, or a call before this one did not come: send again. */
#define MU__KEPT_AWAY_FIELDS(F, S) F(S, REQUIRED, u64, call, 0)

#endif
