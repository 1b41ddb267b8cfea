/* Fields of the messages about key-values, and of the records in their journal. */
#ifndef MU_ACTORS_MESSAGES_KEY_FIELDS_H
#define MU_ACTORS_MESSAGES_KEY_FIELDS_H

#include "actors/messages/limits.h"

/* -- key-values --
 *
 * Keys are normalized by mu__key_normalize. KEY_DONE answers all requests but lists and
 * watches. A change is applied once for each token, however often it is sent. `done`: the
 * task has the answers to all its changes with lower tokens. */

/* `flags`: bits of enum mu__put_flag. With MU__PUT_COMPARE the key must have
 * `revision`; 0: it must not exist. */
#define MU__KEY_PUT_FIELDS(F, S)                    \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, REQUIRED, u64, done, 0)                    \
    F(S, REQUIRED, str, key, MU__KEY_MAX)           \
    F(S, REQUIRED, bytes, value, MU__KEY_VALUE_MAX) \
    F(S, OPTIONAL, u32, flags, 255)                 \
    F(S, OPTIONAL, u64, revision, 0)

/* With `wait` the answer is sent once the key exists, unless KEY_CANCEL comes first. */
#define MU__KEY_GET_FIELDS(F, S)          \
    F(S, REQUIRED, u64, token, 0)         \
    F(S, REQUIRED, str, key, MU__KEY_MAX) \
    F(S, OPTIONAL, flag, wait, 0)

#define MU__KEY_INCREMENT_FIELDS(F, S)    \
    F(S, REQUIRED, u64, token, 0)         \
    F(S, REQUIRED, u64, done, 0)          \
    F(S, REQUIRED, str, key, MU__KEY_MAX) \
    F(S, REQUIRED, i64, by, 0)

/* Delete the key and all keys below it; `number` of the answer is their count. */
#define MU__KEY_DELETE_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)   \
    F(S, REQUIRED, u64, done, 0)    \
    F(S, REQUIRED, str, key, MU__KEY_MAX)

#define MU__KEY_DONE_FIELDS(F, S)                   \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, OPTIONAL, u32, code, 255)                  \
    F(S, OPTIONAL, u64, revision, 0)                \
    F(S, OPTIONAL, i64, number, 0)                  \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Cancel the get or the list with that token. There is no answer. */
#define MU__KEY_CANCEL_FIELDS(F, S) F(S, REQUIRED, u64, token, 0)

/* List the keys below `key` ("": all keys) in order, beginning behind `after`. KEY_LISTED
 * has one page; `more`: for the next page send this again, with the last key as
 * `after`. */
#define MU__KEY_LIST_FIELDS(F, S)           \
    F(S, REQUIRED, u64, token, 0)           \
    F(S, REQUIRED, str, key, MU__KEY_MAX)   \
    F(S, OPTIONAL, str, after, MU__KEY_MAX) \
    F(S, OPTIONAL, flag, names_only, 0)

/* `items` is a list of maps: key, value (bytes), revision. */
#define MU__KEY_LISTED_FIELDS(F, S)       \
    F(S, REQUIRED, u64, token, 0)         \
    F(S, OPTIONAL, u32, code, 255)        \
    F(S, OPTIONAL, value, items, 1 << 26) \
    F(S, OPTIONAL, flag, more, 0)         \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Watch `key`, or with `below` the keys below it, until KEY_UNWATCH of the token. First
 * the existing keys are sent as events, then a KEY_EVENT with `complete`. */
#define MU__KEY_WATCH_FIELDS(F, S)        \
    F(S, REQUIRED, u64, token, 0)         \
    F(S, REQUIRED, str, key, MU__KEY_MAX) \
    F(S, OPTIONAL, flag, below, 0)

#define MU__KEY_UNWATCH_FIELDS(F, S) F(S, REQUIRED, u64, token, 0)

/* A put, or with `deleted` a deletion. With a code the watch is over. */
#define MU__KEY_EVENT_FIELDS(F, S)                  \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, OPTIONAL, str, key, MU__KEY_MAX)           \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX) \
    F(S, OPTIONAL, u64, revision, 0)                \
    F(S, OPTIONAL, flag, deleted, 0)                \
    F(S, OPTIONAL, flag, complete, 0)               \
    F(S, OPTIONAL, u32, code, 255)                  \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Changes of several keys, applied together if all comparisons hold. `content`: see
 * coordination/transaction.h. `number` of the answer is the sum of the first increment;
 * with FAILED_PRECONDITION the number of the comparison that does not hold, from 1, or
 * 0. */
#define MU__KEY_TXN_FIELDS(F, S)  \
    F(S, REQUIRED, u64, token, 0) \
    F(S, REQUIRED, u64, done, 0)  \
    F(S, REQUIRED, value, content, MU__TXN_BYTES_MAX)

/* -- records in the journal of the key-values (store.h): packed like messages, but never
 * sent -- */
#define MU__STORE_BEGIN_FIELDS(F, S) \
    F(S, REQUIRED, u64, store, 0)    \
    F(S, REQUIRED, u64, epoch, 0)

#define MU__STORE_CHANGE_FIELDS(F, S)               \
    F(S, REQUIRED, u64, revision, 0)                \
    F(S, REQUIRED, str, key, MU__KEY_MAX)           \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX) \
    F(S, OPTIONAL, flag, deleted, 0)                \
    F(S, OPTIONAL, u64, owner, 0)

#define MU__STORE_RESULT_FIELDS(F, S) \
    F(S, REQUIRED, u64, agent, 0)     \
    F(S, REQUIRED, u64, token, 0)     \
    F(S, REQUIRED, u64, done, 0)      \
    F(S, OPTIONAL, u32, code, 255)    \
    F(S, OPTIONAL, u64, revision, 0)  \
    F(S, OPTIONAL, i64, number, 0)

/* Commits the records since the last of these: without it, they are ignored. */
#define MU__STORE_COMMIT_FIELDS(F, S) F(S, REQUIRED, u64, revision, 0)

#endif
