/* Every message that crosses an actor boundary: number, name, fields in wire order.
 * Numbers are never reused; fields are only ever added at the end. The struct, the codec,
 * the trace and the fuzzer all come from this table. */
#ifndef MU_ACTORS_MESSAGES_H
#define MU_ACTORS_MESSAGES_H

#include "runtime/system_messages.h"

/* Actors that other nodes know by number. */
enum mu__actor_number {
    MU__SUPERVISOR = 1,     /* on the chief */
    MU__WORKER = 2,         /* on each worker */
    MU__PS = 3,             /* on each parameter server */
    MU__CLIENT = 4,         /* on every node: the program's side of the supervisor */
    MU__VARIABLES = 5,      /* on every node: the program's side of the servers */
    MU__JOB = 6,            /* on every node: learns that the job is done */
    MU__EFFECTS = 7         /* on every node: sends its runs' writes to the servers */
};

enum {
    MU__FUNCTION_NAME_MAX = 63,
    MU__VARIABLE_NAME_MAX = 255,
    MU__ERROR_TEXT_MAX = 511,
    MU__TASK_NAME_MAX = 63,
    MU__VALUE_BYTES_MAX = 1 << 30,
    MU__PIECE_BYTES_MAX = 1 << 20,  /* raw bytes of one variable piece */
    MU__CLOSURE_NAME_MAX = 127,
    MU__DETAIL_BYTES_MAX = 1023,    /* a stack, or the last lines of a log */
    MU__INPUTS_MAX = 1024           /* references among the arguments of one closure */
};

/* What a closure is asked for; SCHEDULE and RUN have them in `flags`. */
enum mu__closure_flag {
    MU__CLOSURE_ONCE = 1,       /* its writes are applied once, however often it runs */
    MU__CLOSURE_KEEP = 2,       /* the result stays on the worker until it is released */
    MU__CLOSURE_NO_BACKUP = 4,  /* never runs twice at a time */
    MU__CLOSURE_BUILD = 8       /* RUN: builds the per-worker value `closure`; what it
                                   returns stays on this worker under that number */
};

/* Priorities run from 0, the most urgent, to 7. A priority travels as p + 1; 0 stands for
 * the usual one. */
enum { MU__PRIORITIES = 8, MU__PRIORITY_USUAL = 4 };

/* Numbers of per-worker values have this bit; those of closures never have. The two
 * together are the numbers of what a worker keeps. */
#define MU__PER_WORKER_BIT (UINT64_C(1) << 63)

/* -- supervisor and worker -- */
#define MU__REGISTER_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, threads, 4096)                                      \
    F(S, OPTIONAL, value, functions, 1 << 20)

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
    F(S, OPTIONAL, str, detail, MU__DETAIL_BYTES_MAX)

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
    F(S, OPTIONAL, u64, run_limit_ms, 0)                                    \
    F(S, OPTIONAL, u32, attempts_max, 65534)                                \
    F(S, OPTIONAL, u32, worker, 0)                                          \
    F(S, OPTIONAL, u32, not_worker, 0)                                      \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)

/* From the program to its own client: a closure with arguments that are not there yet. */
#define MU__SCHEDULE_PENDING_FIELDS(F, S)                                   \
    F(S, REQUIRED, ptr, pending, 0)

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
    F(S, OPTIONAL, flag, kept, 0)

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

/* An error that is of no closure: a worker that did not come back, say. */
#define MU__FAULT_FIELDS(F, S)                                              \
    F(S, REQUIRED, u32, code, 255)                                          \
    F(S, REQUIRED, u32, error_kind, 255)                                    \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX)                            \
    F(S, REQUIRED, str, message, MU__ERROR_TEXT_MAX)

/* Let a worker finish what it has and then leave: `worker` is its task index + 1, 0 means
 * the one that asks. The answer comes when it has left. */
#define MU__DRAIN_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, worker, 0)

#define MU__DRAINED_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* The program has saved what its finished named closures did: forget them. */
#define MU__FORGET_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, token, 0)

#define MU__CANCEL_ALL_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

/* With `closure`, `name`, or `place`, which is the asker's own token of a closure that it
 * scheduled: why that closure has not run, instead of the status. */
#define MU__STATUS_GET_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u64, closure, 0)                                         \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, u64, place, 0)

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

/* -- variables -- */
#define MU__VAR_OPEN_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, name, MU__VARIABLE_NAME_MAX)                        \
    F(S, REQUIRED, u32, dtype, 255)                                         \
    F(S, REQUIRED, bytes, dims, 64)                                         \
    F(S, REQUIRED, u32, shard, 65535)                                       \
    F(S, REQUIRED, u32, shards, 65535)                                      \
    F(S, REQUIRED, u64, size, 0)                                            \
    F(S, OPTIONAL, flag, existing, 0)                                       \
    F(S, OPTIONAL, u64, replaces, 0)

#define MU__VAR_OPENED_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u64, variable, 0)                                        \
    F(S, OPTIONAL, flag, created, 0)

#define MU__VAR_READ_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, variable, 0)                                        \
    F(S, REQUIRED, u64, offset, 0)                                          \
    F(S, REQUIRED, u32, size, MU__PIECE_BYTES_MAX)

#define MU__VAR_DATA_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, version, 0)                                         \
    F(S, OPTIONAL, raw, data, MU__PIECE_BYTES_MAX)                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#define MU__VAR_WRITE_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, variable, 0)                                        \
    F(S, REQUIRED, u32, operation, 255)                                     \
    F(S, REQUIRED, u64, transfer, 0)                                        \
    F(S, REQUIRED, u64, offset, 0)                                          \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)                          \
    F(S, OPTIONAL, f64, rate, 0)                                            \
    F(S, OPTIONAL, f64, momentum, 0)

#define MU__VAR_WRITTEN_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, version, 0)                                         \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- writes of runs, applied once -- */

/* Only supervisor `origin` may have effects from now on: what runs of a former one still
 * write is refused. */
#define MU__FENCE_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, origin, 0)                                          \
    F(S, REQUIRED, u64, epoch, 0)

/* One piece of what a run writes to one server, after `before` others. Pieces of `batch`
 * are staged until the one with `last` has come; then all are applied, or none of them:
 * because `effect`, if it is not 0, was applied before. All numbers below `effects_done`
 * are finished with. Operation MU__WRITE_ABANDON forgets the batch, without answer. */
#define MU__EFFECT_WRITE_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, batch, 0)                                           \
    F(S, REQUIRED, u64, variable, 0)                                        \
    F(S, REQUIRED, u32, operation, 255)                                     \
    F(S, REQUIRED, u64, offset, 0)                                          \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)                          \
    F(S, REQUIRED, flag, last, 0)                                           \
    F(S, OPTIONAL, u64, origin, 0)                                          \
    F(S, OPTIONAL, u64, effect, 0)                                          \
    F(S, OPTIONAL, u64, effects_done, 0)                                    \
    F(S, OPTIONAL, f64, rate, 0)                                            \
    F(S, OPTIONAL, f64, momentum, 0)                                        \
    F(S, OPTIONAL, u32, before, 0)

/* Answers the last piece, or one that ended its batch: with an error, or because it was
 * applied before. With `again` nothing was applied, and the batch may be sent again.
 * With `staged` the batch goes on: so much of it is there, by weight (effects.h). */
#define MU__EFFECT_WRITTEN_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, flag, again, 0)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u64, staged, 0)

/* From a worker to the effects actor of its node, and back: `run` has writes to send. */
#define MU__EFFECTS_SEND_FIELDS(F, S)                                       \
    F(S, REQUIRED, ptr, run, 0)

#define MU__EFFECTS_SENT_FIELDS(F, S)                                       \
    F(S, REQUIRED, ptr, run, 0)

/* From a thread that runs `function`, a struct mu__registered, to the worker: a line for
 * the log. */
#define MU__RUN_LOG_FIELDS(F, S)                                            \
    F(S, REQUIRED, ptr, function, 0)                                        \
    F(S, REQUIRED, str, line, 0)

/* -- in the supervisor's journal; packed like messages, though no actor hears them --
 *
 * A closure's `number` is its own in this journal. */
#define MU__JOURNAL_BEGIN_FIELDS(F, S)                                      \
    F(S, REQUIRED, u64, origin, 0)                                          \
    F(S, REQUIRED, u64, epoch, 0)                                           \
    F(S, REQUIRED, u64, effect_next, 0)

#define MU__JOURNAL_SCHEDULED_FIELDS(F, S)                                  \
    F(S, REQUIRED, u64, number, 0)                                          \
    F(S, REQUIRED, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, u64, effect, 0)                                          \
    F(S, OPTIONAL, u32, flags, 0)                                           \
    F(S, OPTIONAL, u32, priority, 8)                                        \
    F(S, OPTIONAL, u64, run_limit_ms, 0)                                    \
    F(S, OPTIONAL, u32, attempts_max, 65534)                                \
    F(S, OPTIONAL, u32, worker, 0)                                          \
    F(S, OPTIONAL, u32, not_worker, 0)

#define MU__JOURNAL_FINISHED_FIELDS(F, S)                                   \
    F(S, REQUIRED, u64, number, 0)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)

/* The closure is not wanted any more, or has failed: its name may be scheduled anew. */
#define MU__JOURNAL_GONE_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, number, 0)

/* -- from the program's threads to their actors on the same node -- */
#define MU__CALL_FIELDS(F, S)                                               \
    F(S, REQUIRED, ptr, call, 0)

#define MU__MESSAGES(M)                                                     \
    M(16, REGISTER, register, MU__REGISTER_FIELDS, true)                    \
    M(17, RUN, run, MU__RUN_FIELDS, true)                                   \
    M(18, RESULT, result, MU__RESULT_FIELDS, true)                          \
    M(19, CANCEL, cancel, MU__CANCEL_FIELDS, true)                          \
    M(20, SCHEDULE, schedule, MU__SCHEDULE_FIELDS, true)                    \
    M(21, RESOLVED, resolved, MU__RESOLVED_FIELDS, true)                    \
    M(22, CANCEL_ALL, cancel_all, MU__CANCEL_ALL_FIELDS, true)              \
    M(23, STATUS_GET, status_get, MU__STATUS_GET_FIELDS, true)              \
    M(24, STATUS, status, MU__STATUS_FIELDS, true)                          \
    M(25, REPORT, report, MU__REPORT_FIELDS, true)                          \
    M(26, JOB_DONE, job_done, MU__JOB_DONE_FIELDS, true)                    \
    M(27, CANCEL_CLOSURE, cancel_closure, MU__CANCEL_CLOSURE_FIELDS, true)  \
    M(28, FETCH, fetch, MU__FETCH_FIELDS, true)                             \
    M(29, FETCHED, fetched, MU__FETCHED_FIELDS, true)                       \
    M(30, RELEASE, release, MU__RELEASE_FIELDS, true)                       \
    M(31, FAULT, fault, MU__FAULT_FIELDS, true)                             \
    M(32, VAR_OPEN, var_open, MU__VAR_OPEN_FIELDS, true)                    \
    M(33, VAR_OPENED, var_opened, MU__VAR_OPENED_FIELDS, true)              \
    M(34, VAR_READ, var_read, MU__VAR_READ_FIELDS, true)                    \
    M(35, VAR_DATA, var_data, MU__VAR_DATA_FIELDS, true)                    \
    M(36, VAR_WRITE, var_write, MU__VAR_WRITE_FIELDS, true)                 \
    M(37, VAR_WRITTEN, var_written, MU__VAR_WRITTEN_FIELDS, true)           \
    M(38, EFFECT_WRITE, effect_write, MU__EFFECT_WRITE_FIELDS, true)        \
    M(39, EFFECT_WRITTEN, effect_written, MU__EFFECT_WRITTEN_FIELDS, true)  \
    M(40, FENCE, fence, MU__FENCE_FIELDS, true)                             \
    M(41, EFFECTS_SEND, effects_send, MU__EFFECTS_SEND_FIELDS, false)       \
    M(42, EFFECTS_SENT, effects_sent, MU__EFFECTS_SENT_FIELDS, false)       \
    M(43, PER_WORKER_MAKE, per_worker_make, MU__PER_WORKER_MAKE_FIELDS, true) \
    M(44, PER_WORKER_MADE, per_worker_made, MU__PER_WORKER_MADE_FIELDS, true) \
    M(45, INPUT, input, MU__INPUT_FIELDS, true)                             \
    M(46, DROP, drop, MU__DROP_FIELDS, true)                                \
    M(47, PULL, pull, MU__PULL_FIELDS, true)                                \
    M(48, CALL, call_msg, MU__CALL_FIELDS, false)                          \
    M(49, PULLED, pulled, MU__PULLED_FIELDS, true)                          \
    M(50, DRAIN, drain, MU__DRAIN_FIELDS, true)                             \
    M(51, DRAINED, drained, MU__DRAINED_FIELDS, true)                       \
    M(52, FORGET, forget, MU__FORGET_FIELDS, true)                          \
    M(53, SCHEDULE_PENDING, schedule_pending, MU__SCHEDULE_PENDING_FIELDS, false) \
    M(54, JOURNAL_BEGIN, journal_begin, MU__JOURNAL_BEGIN_FIELDS, true)     \
    M(55, JOURNAL_SCHEDULED, journal_scheduled, MU__JOURNAL_SCHEDULED_FIELDS, true) \
    M(56, JOURNAL_FINISHED, journal_finished, MU__JOURNAL_FINISHED_FIELDS, true) \
    M(57, JOURNAL_GONE, journal_gone, MU__JOURNAL_GONE_FIELDS, true)        \
    M(58, RUN_LOG, run_log, MU__RUN_LOG_FIELDS, false)

enum mu__kind {
#define MU__KIND(number, NAME, name, FIELDS, travels) MU__##NAME = number,
    MU__MESSAGES(MU__KIND)
#undef MU__KIND
    MU__KINDS_END = 64
};

#define MU__BODY(number, NAME, name, FIELDS, travels) MU__MESSAGE_STRUCT(name, FIELDS)
MU__MESSAGES(MU__BODY)
#undef MU__BODY

/* The whole table, the kernel's rows included. */
extern const struct mu__schema mu__messages;

#endif
