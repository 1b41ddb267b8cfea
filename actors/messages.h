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
    MU__JOB = 6             /* on every node: learns that the job is done */
};

enum {
    MU__FUNCTION_NAME_MAX = 63,
    MU__VARIABLE_NAME_MAX = 255,
    MU__ERROR_TEXT_MAX = 511,
    MU__TASK_NAME_MAX = 63,
    MU__VALUE_BYTES_MAX = 1 << 30,
    MU__PIECE_BYTES_MAX = 1 << 20   /* raw bytes of one variable piece */
};

/* -- supervisor and worker -- */
#define MU__REGISTER_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, threads, 4096)                                      \
    F(S, OPTIONAL, value, functions, 1 << 20)

#define MU__RUN_FIELDS(F, S)                                                \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)

#define MU__RESULT_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)                      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#define MU__CANCEL_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)

/* -- client and supervisor -- */
#define MU__SCHEDULE_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, flag, drop_result, 0)

#define MU__RESOLVED_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)                      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, str, function, MU__FUNCTION_NAME_MAX)

#define MU__CANCEL_ALL_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

#define MU__STATUS_GET_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

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
    M(32, VAR_OPEN, var_open, MU__VAR_OPEN_FIELDS, true)                    \
    M(33, VAR_OPENED, var_opened, MU__VAR_OPENED_FIELDS, true)              \
    M(34, VAR_READ, var_read, MU__VAR_READ_FIELDS, true)                    \
    M(35, VAR_DATA, var_data, MU__VAR_DATA_FIELDS, true)                    \
    M(36, VAR_WRITE, var_write, MU__VAR_WRITE_FIELDS, true)                 \
    M(37, VAR_WRITTEN, var_written, MU__VAR_WRITTEN_FIELDS, true)           \
    M(48, CALL, call_msg, MU__CALL_FIELDS, false)

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
