/* Fields of the messages of streams (actors/user/streams.h). `call` is the number that
 * the consumer's process gave to its call, `stream` the one that the producer's process
 * gave to the stream. */
#ifndef MU_ACTORS_MESSAGES_STREAM_FIELDS_H
#define MU_ACTORS_MESSAGES_STREAM_FIELDS_H

#include "actors/messages/limits.h"

/* The call is answered by a stream; so many items may be under way. */
#define MU__STREAM_BEGIN_FIELDS(F, S) \
    F(S, REQUIRED, u64, call, 0)      \
    F(S, REQUIRED, u64, stream, 0)    \
    F(S, REQUIRED, u32, ahead, 0)

/* `number`: from 1. `item` absent: nil. */
#define MU__STREAM_ITEM_FIELDS(F, S) \
    F(S, REQUIRED, u64, call, 0)     \
    F(S, REQUIRED, u64, number, 0)   \
    F(S, OPTIONAL, value, item, MU__VALUE_BYTES_MAX)

/* After `items` items. `code` absent: there are no more. */
#define MU__STREAM_END_FIELDS(F, S)                   \
    F(S, REQUIRED, u64, call, 0)                      \
    F(S, OPTIONAL, u64, items, 0)                     \
    F(S, OPTIONAL, u32, code, 255)                    \
    F(S, OPTIONAL, u32, error_kind, 255)              \
    F(S, OPTIONAL, u32, ran, 3)                       \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)      \
    F(S, OPTIONAL, str, function, MU__ACTOR_NAME_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* So many items, and bytes of them, were handled since the last one. */
#define MU__STREAM_TAKEN_FIELDS(F, S) \
    F(S, REQUIRED, u64, stream, 0)    \
    F(S, OPTIONAL, u32, items, 0)     \
    F(S, OPTIONAL, u64, bytes, 0)

/* Nobody wants more of it. */
#define MU__STREAM_CLOSE_FIELDS(F, S) F(S, REQUIRED, u64, stream, 0)

#endif
