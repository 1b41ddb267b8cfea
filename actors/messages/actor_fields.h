/* Fields of the messages between the offices of actors (actors/user/): what users' actors
 * of different nodes send to each other. `actor` is a number on the receiver's node,
 * `call` and `monitor` are numbers of the sender of a request, never used twice by one
 * process. */
#ifndef MU_ACTORS_MESSAGES_ACTOR_FIELDS_H
#define MU_ACTORS_MESSAGES_ACTOR_FIELDS_H

#include "actors/messages/limits.h"

enum {
    MU__ACTOR_NAME_MAX = 63,   /* of types and methods */
    MU__ACTOR_CHAIN_MAX = 4096 /* see actors/user/chain.h */
};

/* `call` absent: a send. `timeout_ms`: what is left of it. */
#define MU__ACTOR_MESSAGE_FIELDS(F, S)               \
    F(S, REQUIRED, u32, actor, 0)                    \
    F(S, REQUIRED, str, method, MU__ACTOR_NAME_MAX)  \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, u64, call, 0)                     \
    F(S, OPTIONAL, u64, timeout_ms, 0)               \
    F(S, OPTIONAL, str, chain, MU__ACTOR_CHAIN_MAX)

/* `code` absent: `result` is the answer. */
#define MU__ACTOR_ANSWER_FIELDS(F, S)                  \
    F(S, REQUIRED, u64, call, 0)                       \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, u32, code, 255)                     \
    F(S, OPTIONAL, u32, error_kind, 255)               \
    F(S, OPTIONAL, u32, ran, 3)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)       \
    F(S, OPTIONAL, str, function, MU__ACTOR_NAME_MAX)  \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* The caller waits no more: the method is not begun if it has not. */
#define MU__ACTOR_CANCEL_FIELDS(F, S) \
    F(S, REQUIRED, u32, actor, 0)     \
    F(S, REQUIRED, u64, call, 0)

/* So many messages, and bytes of their arguments, have been taken out of the mailbox
 * since the last ROOM. `ended`: there is no such actor any more. */
#define MU__ACTOR_ROOM_FIELDS(F, S)  \
    F(S, REQUIRED, u32, actor, 0)    \
    F(S, OPTIONAL, u32, messages, 0) \
    F(S, OPTIONAL, u64, bytes, 0)    \
    F(S, OPTIONAL, flag, ended, 0)

/* The answer is the address. */
#define MU__ACTOR_START_FIELDS(F, S)                 \
    F(S, REQUIRED, u64, call, 0)                     \
    F(S, REQUIRED, str, type, MU__ACTOR_NAME_MAX)    \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, u64, timeout_ms, 0)               \
    F(S, OPTIONAL, u32, flags, 0)                    \
    F(S, OPTIONAL, u32, mailbox_max, 0)              \
    F(S, OPTIONAL, u64, mailbox_bytes_max, 0)

/* `how`: enum mu_actor_stop_how. */
#define MU__ACTOR_STOP_FIELDS(F, S) \
    F(S, REQUIRED, u32, actor, 0)   \
    F(S, OPTIONAL, u32, how, 1)

/* One DOWN follows, unless UNWATCH comes first. */
#define MU__ACTOR_WATCH_FIELDS(F, S) \
    F(S, REQUIRED, u32, actor, 0)    \
    F(S, REQUIRED, u64, monitor, 0)

#define MU__ACTOR_UNWATCH_FIELDS(F, S) \
    F(S, REQUIRED, u32, actor, 0)      \
    F(S, REQUIRED, u64, monitor, 0)

/* `code` absent: it was stopped. */
#define MU__ACTOR_DOWN_FIELDS(F, S)                   \
    F(S, REQUIRED, u64, monitor, 0)                   \
    F(S, OPTIONAL, u32, code, 255)                    \
    F(S, OPTIONAL, u32, error_kind, 255)              \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)      \
    F(S, OPTIONAL, str, function, MU__ACTOR_NAME_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#endif
