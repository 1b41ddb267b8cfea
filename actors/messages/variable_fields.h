/* Fields of the messages about variables, and of the records in the supervisor's
 * journal. */
#ifndef MU_ACTORS_MESSAGES_VARIABLE_FIELDS_H
#define MU_ACTORS_MESSAGES_VARIABLE_FIELDS_H

#include "actors/messages/limits.h"
#include "actors/partitions.h"
#include "actors/ps/rules/rules.h"

/* -- variables --
 *
 * Of a request: the partition, and the generation of which its server has said SERVES;
 * one of another generation is dropped, since its client knows better. Of a record
 * (`record` is not 0), which a primary sends to the other replicas: the number of the
 * view, the record's own number, and who wrote, as the primary numbers nodes. */
#define MU__PARTITION_FIELDS(F, S)                     \
    F(S, OPTIONAL, u32, partition, MU__PARTITIONS - 1) \
    F(S, OPTIONAL, u64, generation, 0)
#define MU__RECORD_FIELDS(F, S)    \
    MU__PARTITION_FIELDS(F, S)     \
    F(S, OPTIONAL, u64, record, 0) \
    F(S, OPTIONAL, u32, writer, 0)

#define MU__VAR_OPEN_FIELDS(F, S)                    \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, REQUIRED, str, name, MU__VARIABLE_NAME_MAX) \
    F(S, REQUIRED, u32, dtype, 255)                  \
    F(S, REQUIRED, bytes, dims, 64)                  \
    F(S, REQUIRED, u32, shard, 65535)                \
    F(S, REQUIRED, u32, shards, 65535)               \
    F(S, REQUIRED, u64, size, 0)                     \
    F(S, OPTIONAL, flag, existing, 0)                \
    F(S, OPTIONAL, u64, replaces, 0)                 \
    F(S, OPTIONAL, u64, creation, 0)                 \
    MU__RECORD_FIELDS(F, S)

/* `shards` with MU_EPRECONDITION: the variable has that number of shards, and nothing
 * else differs from VAR_OPEN. */
#define MU__VAR_OPENED_FIELDS(F, S)                  \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, OPTIONAL, u32, code, 255)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, u64, variable, 0)                 \
    F(S, OPTIONAL, flag, created, 0)                 \
    F(S, OPTIONAL, u32, shards, 65535)               \
    F(S, OPTIONAL, u64, creation, 0)

/* `rows`: rows of the shard by number, 8 bytes each, little-endian; `size` is that of
 * their contents, which the answer has in the same order. */
#define MU__VAR_READ_FIELDS(F, S)                  \
    F(S, REQUIRED, u64, token, 0)                  \
    F(S, REQUIRED, u64, variable, 0)               \
    F(S, REQUIRED, u64, offset, 0)                 \
    F(S, REQUIRED, u32, size, MU__PIECE_BYTES_MAX) \
    MU__PARTITION_FIELDS(F, S)                     \
    F(S, OPTIONAL, raw, rows, MU__PIECE_BYTES_MAX)

#define MU__VAR_DATA_FIELDS(F, S)                  \
    F(S, REQUIRED, u64, token, 0)                  \
    F(S, OPTIONAL, u32, code, 255)                 \
    F(S, OPTIONAL, u64, version, 0)                \
    F(S, OPTIONAL, raw, data, MU__PIECE_BYTES_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* `rule` is a gradient's (rules.h). A write with an `effect` that is not 0 is applied
 * once: `origin` is the writer's, a random number of its process, which numbers its
 * writes to each partition from 1; those below `effects_done` are never sent again. */
#define MU__VAR_WRITE_FIELDS(F, S)                  \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, REQUIRED, u64, variable, 0)                \
    F(S, REQUIRED, u32, operation, 255)             \
    F(S, REQUIRED, u64, transfer, 0)                \
    F(S, REQUIRED, u64, offset, 0)                  \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)  \
    F(S, OPTIONAL, bytes, rule, MU__RULE_BYTES_MAX) \
    F(S, OPTIONAL, u64, origin, 0)                  \
    F(S, OPTIONAL, u64, effect, 0)                  \
    F(S, OPTIONAL, u64, effects_done, 0)            \
    MU__RECORD_FIELDS(F, S)

#define MU__VAR_WRITTEN_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)    \
    F(S, OPTIONAL, u32, code, 255)   \
    F(S, OPTIONAL, u64, version, 0)  \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- writes of runs, applied once -- */

/* Fence: only runs of the supervisor with that `origin` may write from now on; writes of
 * earlier supervisors' runs are refused. */
#define MU__FENCE_FIELDS(F, S)     \
    F(S, REQUIRED, u64, origin, 0) \
    F(S, REQUIRED, u64, epoch, 0)

/* One piece of a run's batch of writes to one partition, after `before` others. Pieces of
 * `batch` are staged until the one with `last` has arrived; then all are applied, or none
 * if `effect` was applied before. Effects below `effects_done` are never sent again.
 * `own`: origin and number are the sender's, as in VAR_WRITE, and not those of a run.
 * Operation MU__WRITE_ABANDON drops the batch; it has no answer. */
#define MU__EFFECT_WRITE_FIELDS(F, S)               \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, REQUIRED, u64, batch, 0)                   \
    F(S, REQUIRED, u64, variable, 0)                \
    F(S, REQUIRED, u32, operation, 255)             \
    F(S, REQUIRED, u64, offset, 0)                  \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)  \
    F(S, REQUIRED, flag, last, 0)                   \
    F(S, OPTIONAL, flag, own, 0)                    \
    F(S, OPTIONAL, u64, origin, 0)                  \
    F(S, OPTIONAL, u64, effect, 0)                  \
    F(S, OPTIONAL, u64, effects_done, 0)            \
    F(S, OPTIONAL, bytes, rule, MU__RULE_BYTES_MAX) \
    F(S, OPTIONAL, u32, before, 0)                  \
    MU__RECORD_FIELDS(F, S)

/* Answers the last piece, or one that ends its batch early: with an error, or as it was
 * applied before. `again`: nothing was applied, and the batch may be sent again.
 * `staged`: the batch goes on, and that much of it has arrived, by weight (effects.h). */
#define MU__EFFECT_WRITTEN_FIELDS(F, S)              \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, OPTIONAL, u32, code, 255)                   \
    F(S, OPTIONAL, flag, again, 0)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, u64, staged, 0)

/* -- clocks (actors/ps/clocks.h) --
 *
 * CLOCK_SET: `member`, a random number, is at `step`; it joins if it is no member, or
 * `leaves` (enum mu__clock_leave). CLOCK_PASSED answers when the minimum is at most
 * `staleness` below. The same request again changes nothing. */
#define MU__CLOCK_SET_FIELDS(F, S)                   \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, REQUIRED, u64, member, 0)                   \
    F(S, OPTIONAL, str, name, MU__VARIABLE_NAME_MAX) \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)     \
    F(S, OPTIONAL, u64, incarnation, 0)              \
    F(S, OPTIONAL, u64, staleness, 0)                \
    F(S, OPTIONAL, u64, step, 0)                     \
    F(S, OPTIONAL, u32, leaves, 2)                   \
    MU__RECORD_FIELDS(F, S)
#define MU__CLOCK_PASSED_FIELDS(F, S)                \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, OPTIONAL, u32, code, 255)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, u64, step, 0)                     \
    F(S, OPTIONAL, u64, minimum, 0)

/* The minimum, and who is there, in words. */
#define MU__CLOCK_GET_FIELDS(F, S)                   \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, REQUIRED, str, name, MU__VARIABLE_NAME_MAX) \
    MU__PARTITION_FIELDS(F, S)
#define MU__CLOCK_STATE_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)    \
    F(S, OPTIONAL, u64, minimum, 0)  \
    F(S, OPTIONAL, str, slowest, MU__ERROR_TEXT_MAX)

/* -- records in the supervisor's journal: packed like messages, but never sent --
 *
 * `number` identifies a closure within the journal. `forgets`: those that have finished
 * before this record are forgotten. */
#define MU__JOURNAL_BEGIN_FIELDS(F, S)  \
    F(S, REQUIRED, u64, origin, 0)      \
    F(S, REQUIRED, u64, epoch, 0)       \
    F(S, REQUIRED, u64, effect_next, 0) \
    F(S, OPTIONAL, flag, forgets, 0)

#define MU__JOURNAL_SCHEDULED_FIELDS(F, S)               \
    F(S, REQUIRED, u64, number, 0)                       \
    F(S, REQUIRED, str, name, MU__CLOSURE_NAME_MAX)      \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX) \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)     \
    F(S, OPTIONAL, u64, effect, 0)                       \
    F(S, OPTIONAL, u32, flags, 0)                        \
    F(S, OPTIONAL, u32, priority, 8)                     \
    F(S, OPTIONAL, u64, run_timeout_ms, 0)               \
    F(S, OPTIONAL, u32, attempts_max, 65534)             \
    F(S, OPTIONAL, u32, worker, 0)                       \
    F(S, OPTIONAL, u32, not_worker, 0)                   \
    F(S, OPTIONAL, str, worker_type, 15)                 \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)

/* A shared per-worker value (by_content of PER_WORKER_MAKE), before the first closure
 * that has its number among its inputs. */
#define MU__JOURNAL_BODY_FIELDS(F, S)                    \
    F(S, REQUIRED, u64, number, 0)                       \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX) \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX)

#define MU__JOURNAL_FINISHED_FIELDS(F, S) \
    F(S, REQUIRED, u64, number, 0)        \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)

/* The closure was cancelled or forgotten, or has failed: its name may be scheduled
 * again. */
#define MU__JOURNAL_REMOVED_FIELDS(F, S) F(S, REQUIRED, u64, number, 0)

#endif
