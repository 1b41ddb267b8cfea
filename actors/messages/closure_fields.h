/* Fields of the messages between clients, the supervisor and workers. */
#ifndef MU_ACTORS_MESSAGES_CLOSURE_FIELDS_H
#define MU_ACTORS_MESSAGES_CLOSURE_FIELDS_H

#include "actors/messages/limits.h"

/* -- supervisor and worker -- */
#define MU__REGISTER_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, threads, 4096)                                      \
    F(S, OPTIONAL, value, functions, 1 << 20)

/* From the supervisor: a task of that type runs no closures here. */
#define MU__REGISTER_REFUSED_FIELDS(F, S)                                   \
    F(S, OPTIONAL, str, worker_types, MU__ERROR_TEXT_MAX)

#define MU__RUN_FIELDS(F, S)                                                \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, u32, flags, 0)                                           \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)                       \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, u64, origin, 0)                                          \
    F(S, OPTIONAL, u64, effect, 0)                                          \
    F(S, OPTIONAL, u64, effects_done, 0)

#define MU__RESULT_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)                      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, str, origin, MU__TASK_NAME_MAX)                          \
    F(S, OPTIONAL, str, detail, MU__DETAIL_BYTES_MAX)                       \
    F(S, OPTIONAL, u32, ran_us, 0)

/* `attempts`: pairs of u64, a closure and its attempt, in the order in which they were
 * sent. Each of them that has not begun is to be given back. */
#define MU__RECALL_FIELDS(F, S)                                             \
    F(S, REQUIRED, bytes, attempts, 16 * MU__RECALL_MAX)

/* The answer: those that will not run here, as they were named; and those of them that
 * have begun, as BEGUN has them. Of any other the RESULT was sent before. */
#define MU__RECALLED_FIELDS(F, S)                                           \
    F(S, OPTIONAL, bytes, returned, 16 * MU__RECALL_MAX)                    \
    F(S, OPTIONAL, bytes, begun, 24 * MU__RECALL_MAX)

/* Of attempts that have run for some time already: triples of u64, a closure, its
 * attempt, and for how many milliseconds. Each attempt is told once. */
#define MU__BEGUN_FIELDS(F, S)                                              \
    F(S, REQUIRED, bytes, begun, 24 * MU__RECALL_MAX)

#define MU__CANCEL_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)

/* -- what workers keep: results of MU__CLOSURE_KEEP, and inputs that are not there -- */

/* With a code: there is no such input on this worker, and runs that use it fail with
 * that. */
#define MU__INPUT_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, input, 0)                                           \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX)                     \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#define MU__DROP_FIELDS(F, S)                                               \
    F(S, REQUIRED, u64, input, 0)

#define MU__PULL_FIELDS(F, S)                                               \
    F(S, REQUIRED, u64, input, 0)

#define MU__PULLED_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, input, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX)                     \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- client and supervisor -- */
#define MU__SCHEDULE_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, flag, drop_result, 0)                                    \
    F(S, OPTIONAL, u32, flags, 0)                                           \
    F(S, OPTIONAL, u32, priority, 8)                                        \
    F(S, OPTIONAL, u64, deadline_ms, 0)                                     \
    F(S, OPTIONAL, u64, run_timeout_ms, 0)                                    \
    F(S, OPTIONAL, u32, attempts_max, 65534)                                \
    F(S, OPTIONAL, u32, worker, 0)                                          \
    F(S, OPTIONAL, u32, not_worker, 0)                                      \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)                       \
    F(S, OPTIONAL, str, worker_type, 15)

#define MU__RESOLVED_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)                      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, str, detail, MU__DETAIL_BYTES_MAX)                       \
    F(S, OPTIONAL, flag, pinned, 0)

/* Cancel one closure: `token` is the client's. */
#define MU__CANCEL_CLOSURE_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, closure, 0)

/* A result that was kept: bring it, under `token`; and let go of it. */
#define MU__FETCH_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, input, 0)

#define MU__FETCHED_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, input, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX)                     \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)

#define MU__RELEASE_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, input, 0)

/* A per-worker value: `function` runs once on each worker, and again on one that comes
 * back, or `values` is a list with one item for each worker's index. PER_WORKER_MADE
 * answers with its number. */
#define MU__PER_WORKER_MAKE_FIELDS(F, S)                                    \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)

#define MU__PER_WORKER_MADE_FIELDS(F, S)                                    \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, input, 0)                                           \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* An error that is of no closure: a worker that did not come back, say. One of the chief
 * itself (MU_ERROR_CHIEF) cancels nothing: it goes on. */
#define MU__FAULT_FIELDS(F, S)                                              \
    F(S, REQUIRED, u32, code, 255)                                          \
    F(S, REQUIRED, u32, error_kind, 255)                                    \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX)                            \
    F(S, REQUIRED, str, message, MU__ERROR_TEXT_MAX)

/* Let a worker finish what it has and then leave: `worker` is its task index + 1, 0 means
 * the one that asks. `worker_type` "" means "worker". The answer comes when it has
 * left. */
#define MU__DRAIN_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, worker, 0)                                          \
    F(S, OPTIONAL, str, worker_type, 15)

#define MU__DRAINED_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* The program has saved what its finished named closures did: forget them. */
#define MU__FORGET_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, token, 0)

#define MU__CANCEL_ALL_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

/* What a client may have at the chief: that many closures, with so many bytes of
 * arguments, sent and not resolved. Answered by ROOM_REQUEST with its `number`: then the
 * client holds to it. `closures_max`, `bytes_max`: the chief's own bounds, which that
 * many `clients` share. A closure with more bytes than `bytes_max` counts as one of that
 * size. `session`: the one of ROOM_REQUEST; what was said to a former one counts no
 * more. */
#define MU__ROOM_ALLOW_FIELDS(F, S)                                         \
    F(S, REQUIRED, u32, number, 0)                                          \
    F(S, REQUIRED, u64, closures, 0)                                        \
    F(S, REQUIRED, u64, bytes, 0)                                           \
    F(S, OPTIONAL, u64, closures_max, 0)                                    \
    F(S, OPTIONAL, u64, bytes_max, 0)                                       \
    F(S, OPTIONAL, u32, clients, 0)                                         \
    F(S, OPTIONAL, u32, session, 0)

/* From a client that schedules: the last ROOM_ALLOW that it heard (0: none yet), what it
 * lacks (enum mu__room_lack), and how many bytes its next closure needs when they are
 * more than it is allowed. `leaves`: it schedules no more. `session` is another one each
 * time that it begins to. */
#define MU__ROOM_REQUEST_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, number, 0)                                          \
    F(S, OPTIONAL, u32, lacks, 255)                                         \
    F(S, OPTIONAL, u64, need_bytes, 0)                                      \
    F(S, OPTIONAL, flag, leaves, 0)                                         \
    F(S, OPTIONAL, u32, session, 0)

/* With `closure`, `name`, or `slot`, which is the requester's own token of a closure
 * that it scheduled: why that closure has not run, instead of the status. */
#define MU__STATUS_GET_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u64, closure, 0)                                         \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, u64, slot, 0)

#define MU__STATUS_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, value, status, 1 << 24)

#define MU__REPORT_FIELDS(F, S)                                             \
    F(S, REQUIRED, str, name, 63)                                           \
    F(S, REQUIRED, f64, number, 0)                                          \
    F(S, REQUIRED, u64, step, 0)

#define MU__JOB_DONE_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#endif
