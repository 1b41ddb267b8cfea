/* Fields of the messages between the offices of actors (actors/user/): what users' actors
 * of different nodes send to each other. `actor` is a number on the receiver's node,
 * `call` and `monitor` are numbers of the sender of a request, never used twice by one
 * process. */
#ifndef MU_ACTORS_MESSAGES_ACTOR_FIELDS_H
#define MU_ACTORS_MESSAGES_ACTOR_FIELDS_H

#include "actors/messages/limits.h"

enum {
    MU__ACTOR_NAME_MAX = 63,     /* of types, methods and actors */
    MU__ACTOR_CHAIN_MAX = 4096,  /* see actors/user/chain.h */
    MU__NAME_ARGS_MAX = 1 << 19, /* arguments of an actor with a name, packed */
    MU__NAME_TYPE_MAX = 15,      /* of a task */
    MU__NAME_OFFERS_MAX = 1 << 14
};

/* Whether a name has an actor. */
enum mu__name_phase {
    MU__NAME_UNKNOWN, /* nobody has made it */
    MU__NAME_WAITS,   /* no task has it: it is to be started, or started again */
    MU__NAME_RUNS,
    MU__NAME_FAILED, /* it is not started any more */
    MU__NAME_STATES
};

/* How the actor of a name has ended. */
enum mu__name_end {
    MU__NAME_NO_END,
    MU__NAME_STOPPED, /* it has stopped itself */
    MU__NAME_BROKEN,  /* by an error of its own */
    MU__NAME_LOST,    /* with its process, or its lease */
    MU__NAME_MOVED,   /* its task is drained */
    MU__NAME_ENDS
};

/* `call` absent: a send. `timeout_ms`: what is left of it. `owner`: the sender has this
 * name, by `epoch`. */
#define MU__ACTOR_MESSAGE_FIELDS(F, S)               \
    F(S, REQUIRED, u32, actor, 0)                    \
    F(S, REQUIRED, str, method, MU__ACTOR_NAME_MAX)  \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, u64, call, 0)                     \
    F(S, OPTIONAL, u64, timeout_ms, 0)               \
    F(S, OPTIONAL, str, chain, MU__ACTOR_CHAIN_MAX)  \
    F(S, OPTIONAL, str, owner, MU__ACTOR_NAME_MAX)   \
    F(S, OPTIONAL, u64, epoch, 0)

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

/* ---- Names: between offices and the coordination service ---- */

/* Make an actor with a name, if there is none. The answer is NAME_NEWS with the token;
 * from then on the node gets NAME_NEWS at each change, as after NAME_FIND. `policy`: enum
 * mu_actor_restart; `task_type` absent: any. */
#define MU__NAME_MAKE_FIELDS(F, S)                 \
    F(S, REQUIRED, u64, token, 0)                  \
    F(S, REQUIRED, str, name, MU__ACTOR_NAME_MAX)  \
    F(S, REQUIRED, str, type, MU__ACTOR_NAME_MAX)  \
    F(S, OPTIONAL, value, args, MU__NAME_ARGS_MAX) \
    F(S, OPTIONAL, u32, flags, 0)                  \
    F(S, OPTIONAL, u32, mailbox_max, 0)            \
    F(S, OPTIONAL, u64, mailbox_bytes_max, 0)      \
    F(S, OPTIONAL, u32, policy, 3)                 \
    F(S, OPTIONAL, u32, restarts, 0)               \
    F(S, OPTIONAL, u32, within_ms, 0)              \
    F(S, OPTIONAL, str, task_type, MU__NAME_TYPE_MAX)

#define MU__NAME_FIND_FIELDS(F, S) F(S, REQUIRED, str, name, MU__ACTOR_NAME_MAX)

/* What is known of a name. `token` absent: it is news, not an answer. `state`: enum
 * mu__name_state. `epoch` of the owner; `code` and `message`: why there is none. */
#define MU__NAME_NEWS_FIELDS(F, S)                    \
    F(S, REQUIRED, str, name, MU__ACTOR_NAME_MAX)     \
    F(S, OPTIONAL, u64, token, 0)                     \
    F(S, OPTIONAL, u32, state, MU__NAME_STATES - 1)   \
    F(S, OPTIONAL, u64, epoch, 0)                     \
    F(S, OPTIONAL, str, task_type, MU__NAME_TYPE_MAX) \
    F(S, OPTIONAL, u32, index, 0)                     \
    F(S, OPTIONAL, u64, incarnation, 0)               \
    F(S, OPTIONAL, u32, actor, 0)                     \
    F(S, OPTIONAL, u32, code, 255)                    \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* To the host of the coordination service, whose office calls the actor of this name for
 * a node that cannot reach it, and answers with ACTOR_ANSWER. `call` absent: a send.
 * ACTOR_CANCEL and ACTOR_ROOM of actor 12, the office itself, are about these. */
#define MU__ACTOR_RELAY_FIELDS(F, S)                 \
    F(S, REQUIRED, str, name, MU__ACTOR_NAME_MAX)    \
    F(S, REQUIRED, str, method, MU__ACTOR_NAME_MAX)  \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, u64, call, 0)                     \
    F(S, OPTIONAL, u64, timeout_ms, 0)               \
    F(S, OPTIONAL, str, chain, MU__ACTOR_CHAIN_MAX)

/* The types of a node's actors, separated by line feeds. `begins`: it is the first of a
 * session, and NAME_STATE of all names that the node has went before it. `drains`: no
 * more names are placed there. */
#define MU__NAME_OFFER_FIELDS(F, S)                   \
    F(S, OPTIONAL, bytes, types, MU__NAME_OFFERS_MAX) \
    F(S, OPTIONAL, flag, drains, 0)                   \
    F(S, OPTIONAL, flag, begins, 0)

/* Be the owner of a name. `made`: lower epochs are of other actors, which had the name
 * before. */
#define MU__NAME_START_FIELDS(F, S)                \
    F(S, REQUIRED, str, name, MU__ACTOR_NAME_MAX)  \
    F(S, REQUIRED, u64, epoch, 0)                  \
    F(S, REQUIRED, str, type, MU__ACTOR_NAME_MAX)  \
    F(S, OPTIONAL, value, args, MU__NAME_ARGS_MAX) \
    F(S, OPTIONAL, u32, flags, 0)                  \
    F(S, OPTIONAL, u32, mailbox_max, 0)            \
    F(S, OPTIONAL, u64, mailbox_bytes_max, 0)      \
    F(S, OPTIONAL, u64, made, 0)

/* Of an owner. `end` absent: the actor has started; else enum mu__name_end, and why. */
#define MU__NAME_STATE_FIELDS(F, S)               \
    F(S, REQUIRED, str, name, MU__ACTOR_NAME_MAX) \
    F(S, REQUIRED, u64, epoch, 0)                 \
    F(S, OPTIONAL, u32, actor, 0)                 \
    F(S, OPTIONAL, u32, end, MU__NAME_ENDS - 1)   \
    F(S, OPTIONAL, u32, code, 255)                \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Renews the lease of all names of a node, and is sent back with the lease, which counts
 * from `sent_ms` of the node's own clock. */
#define MU__NAME_HOLD_FIELDS(F, S)  \
    F(S, REQUIRED, u64, sent_ms, 0) \
    F(S, OPTIONAL, u32, lease_ms, 0)

/* Forget a name. The answer is NAME_NEWS with the token. To the owner, without a token:
 * the actor of this epoch is stopped. */
#define MU__NAME_STOP_FIELDS(F, S)                \
    F(S, REQUIRED, str, name, MU__ACTOR_NAME_MAX) \
    F(S, OPTIONAL, u64, token, 0)                 \
    F(S, OPTIONAL, u64, epoch, 0)                 \
    F(S, OPTIONAL, u32, how, 1)

#endif
