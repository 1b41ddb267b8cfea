/* Fields of the messages about key-values, and of the records of their journal. */
#ifndef MU_ACTORS_MESSAGES_KEY_FIELDS_H
#define MU_ACTORS_MESSAGES_KEY_FIELDS_H

#include "actors/messages/limits.h"

/* -- key-values --
 *
 * Keys are as mu__key_normalize makes them. Everything here is answered by KEY_DONE, but
 * for lists and watches. What changes something is applied once for each token, however
 * often it is asked; all changes that this task asked under tokens below `done` were
 * answered. */

/* `flags`: enum mu__put_flag. With MU__PUT_COMPARE only if the key's revision is
 * `revision`, where 0 means that it is not there. */
#define MU__KEY_PUT_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, REQUIRED, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, u32, flags, 255)                                         \
    F(S, OPTIONAL, u64, revision, 0)

/* With `wait` it is answered when the key is there; until KEY_CANCEL, that is. */
#define MU__KEY_GET_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, flag, wait, 0)

#define MU__KEY_INCREMENT_FIELDS(F, S)                                      \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, REQUIRED, i64, by, 0)

/* The key and everything below it; `number` of the answer says how many there were. */
#define MU__KEY_DELETE_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, str, key, MU__KEY_MAX)

#define MU__KEY_DONE_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, revision, 0)                                        \
    F(S, OPTIONAL, i64, number, 0)                                          \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* What is asked under `token` is not wanted any more: a get, or a list. No answer. */
#define MU__KEY_CANCEL_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

/* What is below `key`, in order, from behind `after` on; "" lists everything. KEY_LISTED
 * has one page; `more`: ask again, with `after` its last key. */
#define MU__KEY_LIST_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, str, after, MU__KEY_MAX)                                 \
    F(S, OPTIONAL, flag, names_only, 0)

/* `items` is a list of maps: key, value (bytes), revision. */
#define MU__KEY_LISTED_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, items, 1 << 26)                                   \
    F(S, OPTIONAL, flag, more, 0)                                           \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Tell what happens to `key`, or with `below` to what is below it. What is there now
 * comes first, then KEY_EVENT with `complete`. Until KEY_UNWATCH of the token. */
#define MU__KEY_WATCH_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, flag, below, 0)

#define MU__KEY_UNWATCH_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, token, 0)

/* With a code the watch is over. */
#define MU__KEY_EVENT_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, u64, revision, 0)                                        \
    F(S, OPTIONAL, flag, deleted, 0)                                        \
    F(S, OPTIONAL, flag, complete, 0)                                       \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Changes of several keys at one moment, if all comparisons hold: `content` is what
 * coordination/transaction.h says. `number` of the answer is the sum of the first
 * increment; with FAILED_PRECONDITION the comparison that does not hold, from 1, or 0. */
#define MU__KEY_TXN_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, value, content, MU__TXN_BYTES_MAX)

/* -- in the journal of the key-values: see store.h; packed like messages, no actor hears
 * them -- */
#define MU__STORE_BEGIN_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, store, 0)                                           \
    F(S, REQUIRED, u64, epoch, 0)

#define MU__STORE_CHANGE_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, revision, 0)                                        \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, flag, deleted, 0)                                        \
    F(S, OPTIONAL, u64, owner, 0)

#define MU__STORE_RESULT_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, agent, 0)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, revision, 0)                                        \
    F(S, OPTIONAL, i64, number, 0)

/* What was written since the last of these counts together, or not at all. */
#define MU__STORE_COMMIT_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, revision, 0)

#endif
