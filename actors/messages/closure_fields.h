/* Fields of the messages between clients, the supervisor and workers. */
#ifndef MU_ACTORS_MESSAGES_CLOSURE_FIELDS_H
#define MU_ACTORS_MESSAGES_CLOSURE_FIELDS_H

#include "actors/messages/limits.h"

/* -- supervisor and worker -- */
#define MU__REGISTER_FIELDS(F, S)      \
    F(S, REQUIRED, u32, threads, 4096) \
    F(S, OPTIONAL, value, functions, 1 << 20)

/* From the supervisor to a worker whose task type is none of `worker_types`. */
#define MU__REGISTER_REFUSED_FIELDS(F, S) \
    F(S, OPTIONAL, str, worker_types, MU__ERROR_TEXT_MAX)

#define MU__RUN_FIELDS(F, S)                             \
    F(S, REQUIRED, u64, closure, 0)                      \
    F(S, REQUIRED, u32, attempt, 0)                      \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX) \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)     \
    F(S, OPTIONAL, u32, flags, 0)                        \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)    \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)      \
    F(S, OPTIONAL, u64, origin, 0)                       \
    F(S, OPTIONAL, u64, effect, 0)                       \
    F(S, OPTIONAL, u64, effects_done, 0)

#define MU__RESULT_FIELDS(F, S)                        \
    F(S, REQUIRED, u64, closure, 0)                    \
    F(S, REQUIRED, u32, attempt, 0)                    \
    F(S, OPTIONAL, u32, code, 255)                     \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)   \
    F(S, OPTIONAL, u32, error_kind, 255)               \
    F(S, OPTIONAL, str, origin, MU__TASK_NAME_MAX)     \
    F(S, OPTIONAL, str, detail, MU__DETAIL_BYTES_MAX)  \
    F(S, OPTIONAL, u32, ran_us, 0)                     \
    F(S, OPTIONAL, bytes, error_data, MU__ERROR_DATA_MAX)

/* Recalls the attempts that have not begun. `attempts`: pairs of u64, closure and
 * attempt, in the order in which they were sent. */
#define MU__RECALL_FIELDS(F, S) F(S, REQUIRED, bytes, attempts, 16 * MU__RECALL_MAX)

/* The answer. `returned`: the attempts that will not run here; `begun`: those that have
 * begun, as in BEGUN. For all others the RESULT was sent before. */
#define MU__RECALLED_FIELDS(F, S)                        \
    F(S, OPTIONAL, bytes, returned, 16 * MU__RECALL_MAX) \
    F(S, OPTIONAL, bytes, begun, 24 * MU__RECALL_MAX)

/* Attempts that have run for some time: triples of u64, closure, attempt and how many
 * milliseconds it has run. Each attempt is reported once. */
#define MU__BEGUN_FIELDS(F, S) F(S, REQUIRED, bytes, begun, 24 * MU__RECALL_MAX)

#define MU__CANCEL_FIELDS(F, S)     \
    F(S, REQUIRED, u64, closure, 0) \
    F(S, REQUIRED, u32, attempt, 0)

/* -- inputs on workers: pinned results, per-worker values, and copies of these -- */

/* The content of an input, or a code: the input does not exist, and runs on this worker
 * that use it fail with that. */
#define MU__INPUT_FIELDS(F, S)                          \
    F(S, REQUIRED, u64, input, 0)                       \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, u32, code, 255)                      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#define MU__DROP_FIELDS(F, S) F(S, REQUIRED, u64, input, 0)

#define MU__PULL_FIELDS(F, S) F(S, REQUIRED, u64, input, 0)

#define MU__PULLED_FIELDS(F, S)                         \
    F(S, REQUIRED, u64, input, 0)                       \
    F(S, OPTIONAL, u32, code, 255)                      \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- client and supervisor -- */
#define MU__SCHEDULE_FIELDS(F, S)                        \
    F(S, REQUIRED, u64, token, 0)                        \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX) \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)     \
    F(S, OPTIONAL, flag, drop_result, 0)                 \
    F(S, OPTIONAL, u32, flags, 0)                        \
    F(S, OPTIONAL, u32, priority, 8)                     \
    F(S, OPTIONAL, u64, deadline_ms, 0)                  \
    F(S, OPTIONAL, u64, run_timeout_ms, 0)               \
    F(S, OPTIONAL, u32, attempts_max, 65534)             \
    F(S, OPTIONAL, u32, worker, 0)                       \
    F(S, OPTIONAL, u32, not_worker, 0)                   \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)      \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)    \
    F(S, OPTIONAL, str, worker_type, 15)

#define MU__RESOLVED_FIELDS(F, S)                        \
    F(S, REQUIRED, u64, token, 0)                        \
    F(S, REQUIRED, u64, closure, 0)                      \
    F(S, REQUIRED, u32, attempt, 0)                      \
    F(S, OPTIONAL, u32, code, 255)                       \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)     \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)         \
    F(S, OPTIONAL, str, function, MU__FUNCTION_NAME_MAX) \
    F(S, OPTIONAL, u32, error_kind, 255)                 \
    F(S, OPTIONAL, str, detail, MU__DETAIL_BYTES_MAX)    \
    F(S, OPTIONAL, flag, pinned, 0)                      \
    F(S, OPTIONAL, bytes, error_data, MU__ERROR_DATA_MAX)

/* Cancel one closure, by the token of its SCHEDULE. */
#define MU__CANCEL_CLOSURE_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)       \
    F(S, REQUIRED, u64, closure, 0)

/* Fetch a pinned result; RELEASE: it has no holder any more. */
#define MU__FETCH_FIELDS(F, S)    \
    F(S, REQUIRED, u64, token, 0) \
    F(S, REQUIRED, u64, input, 0)

#define MU__FETCHED_FIELDS(F, S)                        \
    F(S, REQUIRED, u64, token, 0)                       \
    F(S, REQUIRED, u64, input, 0)                       \
    F(S, OPTIONAL, u32, code, 255)                      \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)    \
    F(S, OPTIONAL, u32, error_kind, 255)                \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)

#define MU__RELEASE_FIELDS(F, S) F(S, REQUIRED, u64, input, 0)

/* Make a per-worker value: `function` runs with `args` once on each worker, and again on
 * a restarted one. Without `function`, `args` is a list with one item for each worker's
 * index, or a map of such lists by task type. PER_WORKER_MADE answers with its number.
 * `by_content`: the value is shared by all that have the same function and args, and the
 * journal keeps these. */
#define MU__PER_WORKER_MAKE_FIELDS(F, S)                 \
    F(S, REQUIRED, u64, token, 0)                        \
    F(S, OPTIONAL, str, function, MU__FUNCTION_NAME_MAX) \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX)     \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)      \
    F(S, OPTIONAL, flag, by_content, 0)

#define MU__PER_WORKER_MADE_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)        \
    F(S, OPTIONAL, u32, code, 255)       \
    F(S, OPTIONAL, u64, input, 0)        \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* An error that belongs to no closure, as of a worker that did not come back. An error of
 * the chief itself (MU_ERROR_CHIEF) cancels nothing: the chief goes on. */
#define MU__FAULT_FIELDS(F, S)                   \
    F(S, REQUIRED, u32, code, 255)               \
    F(S, REQUIRED, u32, error_kind, 255)         \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX) \
    F(S, REQUIRED, str, message, MU__ERROR_TEXT_MAX)

/* Drain a worker: it finishes its closures and leaves. `worker` is its task index + 1, 0
 * means the sender. `worker_type` "" means "worker". Answered when it has left. A
 * parameter server, of type "ps", gives away all that it has: answered then. */
#define MU__DRAIN_FIELDS(F, S)     \
    F(S, REQUIRED, u64, token, 0)  \
    F(S, OPTIONAL, u32, worker, 0) \
    F(S, OPTIONAL, str, worker_type, 15)

#define MU__DRAINED_FIELDS(F, S)   \
    F(S, REQUIRED, u64, token, 0)  \
    F(S, OPTIONAL, u32, code, 255) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Forget finished named closures, as the program has saved their effects. */
#define MU__FORGET_FIELDS(F, S) F(S, REQUIRED, u64, token, 0)

#define MU__CANCEL_ALL_FIELDS(F, S) F(S, REQUIRED, u64, token, 0)

/* The room of a client at the chief: how many closures, with how many bytes of arguments,
 * it may have sent that are not resolved. The client answers with a ROOM_REQUEST that has
 * the same `number`, and keeps the bounds from then on. `closures_max`, `bytes_max`: the
 * chief's own bounds, which `clients` share. A closure with more bytes than `bytes_max`
 * counts as one of that size. `session`: that of ROOM_REQUEST; a message for an earlier
 * session is ignored. */
#define MU__ROOM_ALLOW_FIELDS(F, S)      \
    F(S, REQUIRED, u32, number, 0)       \
    F(S, REQUIRED, u64, closures, 0)     \
    F(S, REQUIRED, u64, bytes, 0)        \
    F(S, OPTIONAL, u64, closures_max, 0) \
    F(S, OPTIONAL, u64, bytes_max, 0)    \
    F(S, OPTIONAL, u32, clients, 0)      \
    F(S, OPTIONAL, u32, session, 0)

/* From a client with an open session. `number`: of the last ROOM_ALLOW it has; 0: none
 * yet. `lacks`: bits of enum mu__room_lack. `need_bytes`: the size of its next closure,
 * if that is more than it is allowed. `leaves`: the session is closed. `session` grows
 * with each session. */
#define MU__ROOM_REQUEST_FIELDS(F, S)  \
    F(S, REQUIRED, u32, number, 0)     \
    F(S, OPTIONAL, u32, lacks, 255)    \
    F(S, OPTIONAL, u64, need_bytes, 0) \
    F(S, OPTIONAL, flag, leaves, 0)    \
    F(S, OPTIONAL, u32, session, 0)

/* The supervisor's status; or, with `closure`, `name` or `slot` (the token of a SCHEDULE
 * of the requester), why that closure has not run. */
#define MU__STATUS_GET_FIELDS(F, S)                 \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, OPTIONAL, u64, closure, 0)                 \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX) \
    F(S, OPTIONAL, u64, slot, 0)

/* With a code there is none: RESOURCE_EXHAUSTED, it was asked for too often. */
#define MU__STATUS_FIELDS(F, S)            \
    F(S, REQUIRED, u64, token, 0)          \
    F(S, REQUIRED, value, status, 1 << 24) \
    F(S, OPTIONAL, u32, code, 255)         \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#define MU__REPORT_FIELDS(F, S)    \
    F(S, REQUIRED, str, name, 63)  \
    F(S, REQUIRED, f64, number, 0) \
    F(S, REQUIRED, u64, step, 0)

#define MU__JOB_DONE_FIELDS(F, S)  \
    F(S, REQUIRED, u32, code, 255) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#endif
