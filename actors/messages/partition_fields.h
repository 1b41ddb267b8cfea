/* Fields of the messages about partitions: views, records, and how a learner is filled.
 */
#ifndef MU_ACTORS_MESSAGES_PARTITION_FIELDS_H
#define MU_ACTORS_MESSAGES_PARTITION_FIELDS_H

#include "actors/messages/variable_fields.h"

/* -- partitions and their views (actors/partitions.h) -- */

/* From the chief to a server: the newest views of partitions in which it has, or had, a
 * part. `strict`: those without a backup take no writes. */
#define MU__VIEWS_SET_FIELDS(F, S)                               \
    F(S, REQUIRED, bytes, views, MU__PARTITIONS *MU__VIEW_BYTES) \
    F(S, OPTIONAL, flag, strict, 0)

/* From a primary to a replica: the view of both, which that may not have heard; or from a
 * server that has heard a newer view to one that sends it records. */
#define MU__REPLICA_VIEW_FIELDS(F, S) F(S, REQUIRED, bytes, view, MU__VIEW_BYTES)

/* From the chief to a server: report what you hold, once more. `draining`: from now on,
 * as a restarted chief does not know it otherwise. */
#define MU__VIEWS_GET_FIELDS(F, S) F(S, OPTIONAL, flag, draining, 0)

/* From a server to a chief whose link came up, or that asks: the newest views that it has
 * heard, also those in which it has no part. `known`: there are some. `restored`:
 * partitions that it has from a journal, with their store_id; `former`: incarnations (8
 * bytes each, little-endian) of the processes of its task that wrote that. `draining`: a
 * chief has said so. */
#define MU__VIEWS_HELD_FIELDS(F, S)                                     \
    F(S, REQUIRED, bytes, views, MU__PARTITIONS *MU__VIEW_BYTES)        \
    F(S, OPTIONAL, flag, known, 0)                                      \
    F(S, OPTIONAL, bytes, restored, MU__PARTITIONS *MU__NUMBERED_BYTES) \
    F(S, OPTIONAL, bytes, former, 8 * MU__FORMER_MAX)                   \
    F(S, OPTIONAL, flag, draining, 0)

/* From a primary to the chief, what has become of another replica in a view: of the
 * `learner`, or the backup. */
#define MU__REPLICA_NEWS_FIELDS(F, S)                                     \
    F(S, REQUIRED, u32, news, 255)                                        \
    F(S, REQUIRED, bytes, partitions, MU__PARTITIONS *MU__NUMBERED_BYTES) \
    F(S, OPTIONAL, flag, learner, 0)

/* From a primary to everybody: it serves these partitions, with their generations. A
 * partition gets another generation when what was under way is to be sent again. */
#define MU__SERVES_FIELDS(F, S) \
    F(S, REQUIRED, bytes, partitions, MU__PARTITIONS *MU__NUMBERED_BYTES)

/* A record alone: the partition knows a fence. */
#define MU__FENCED_FIELDS(F, S) \
    MU__FENCE_FIELDS(F, S)      \
    MU__RECORD_FIELDS(F, S)

/* A record alone: a node is gone, as the primary numbers nodes (`writer`); or what all
 * have begun is forgotten (MU__CLIENTS_ALL); or nothing (MU__CLIENTS_NONE). */
#define MU__CLIENT_LOST_FIELDS(F, S) MU__RECORD_FIELDS(F, S)

/* From a replica to the primary: how far it has applied records (struct
 * mu__record_mark, packed). */
#define MU__RECORDS_DONE_FIELDS(F, S) \
    F(S, REQUIRED, bytes, marks, MU__PARTITIONS *MU__RECORD_MARK_BYTES)

/* -- snapshots: what a partition holds at one record --
 *
 * SNAPSHOT_OPEN begins one of the shards with these ids, 8 bytes each, the lowest first;
 * its number is the token. It has also the windows of what was applied, of `windows`
 * bytes (actors/ps/windows.h). VAR_DATA answers SNAPSHOT_READ; `variable` 0: the windows.
 * `with_slots`: behind its content a shard has its slots; SNAPSHOT_OPENED says for each
 * id what these are (store_snapshots.h). `tables`: ids of tables, 8 bytes each; in
 * `sizes` SNAPSHOT_OPENED says what each has (tables/set_copies.h). They are read as
 * copies of rows (tables/table_columns.h), in their order. `only_sizes`: nothing is
 * begun. `since`, `mark`: which rows, and what is to be known from now on
 * (tables/table_marks.h). Each byte is read once; with the last one the snapshot ends, as
 * with SNAPSHOT_CLOSE, the end of the client's link or of the generation. */
#define MU__SNAPSHOT_OPEN_FIELDS(F, S)                  \
    F(S, REQUIRED, u64, token, 0)                       \
    F(S, REQUIRED, bytes, ids, MU__WINDOW_BYTES_MAX)    \
    F(S, OPTIONAL, flag, with_slots, 0)                 \
    F(S, OPTIONAL, bytes, tables, MU__WINDOW_BYTES_MAX) \
    F(S, OPTIONAL, flag, only_sizes, 0)                 \
    F(S, OPTIONAL, u64, since, 0)                       \
    F(S, OPTIONAL, u64, mark, 0)                        \
    MU__PARTITION_FIELDS(F, S)
#define MU__SNAPSHOT_OPENED_FIELDS(F, S)                   \
    F(S, REQUIRED, u64, token, 0)                          \
    F(S, OPTIONAL, u32, code, 255)                         \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)       \
    F(S, OPTIONAL, u64, record, 0)                         \
    F(S, OPTIONAL, u64, sum, 0)                            \
    F(S, OPTIONAL, u64, windows, 0)                        \
    F(S, OPTIONAL, bytes, slots, 2 * MU__WINDOW_BYTES_MAX) \
    F(S, OPTIONAL, bytes, sizes, 2 * MU__WINDOW_BYTES_MAX)
#define MU__SNAPSHOT_READ_FIELDS(F, S)             \
    F(S, REQUIRED, u64, token, 0)                  \
    F(S, REQUIRED, u64, snapshot, 0)               \
    F(S, REQUIRED, u64, variable, 0)               \
    F(S, REQUIRED, u64, offset, 0)                 \
    F(S, REQUIRED, u32, size, MU__PIECE_BYTES_MAX) \
    MU__PARTITION_FIELDS(F, S)
#define MU__SNAPSHOT_CLOSE_FIELDS(F, S) \
    F(S, REQUIRED, u64, snapshot, 0)    \
    MU__PARTITION_FIELDS(F, S)

/* Numbers that were applied once, of a snapshot; VAR_WRITTEN answers. */
#define MU__WINDOWS_PUT_FIELDS(F, S)                         \
    F(S, REQUIRED, u64, token, 0)                            \
    F(S, REQUIRED, bytes, windows, 2 * MU__WINDOW_BYTES_MAX) \
    MU__RECORD_FIELDS(F, S)

/* A learner is filled: FILL_BEGIN, a FILL_WRITER for each writer, a FILL_CLOCK for each
 * member of a clock, a FILL_SHARD for each shard; then FILL_DATA, which the learner
 * answers with FILL_TAKEN; then FILL_END. Records travel between all of these. `record`:
 * the last one that the primary had applied. `base`, `end`, `applied`: a window of
 * numbers, and its bits. */
#define MU__FILL_FIELDS(F, S)                          \
    F(S, REQUIRED, u32, partition, MU__PARTITIONS - 1) \
    F(S, REQUIRED, u64, view, 0)
#define MU__WINDOW_FIELDS(F, S)    \
    F(S, REQUIRED, u64, origin, 0) \
    F(S, REQUIRED, u64, base, 0)   \
    F(S, REQUIRED, u64, end, 0)    \
    F(S, REQUIRED, bytes, applied, MU__WINDOW_BYTES_MAX)
#define MU__FILL_BEGIN_FIELDS(F, S)   \
    MU__FILL_FIELDS(F, S)             \
    F(S, REQUIRED, u64, record, 0)    \
    F(S, REQUIRED, u64, serial, 0)    \
    F(S, REQUIRED, u32, creations, 0) \
    F(S, REQUIRED, flag, fenced, 0)   \
    F(S, REQUIRED, u64, epoch, 0)     \
    MU__WINDOW_FIELDS(F, S)
#define MU__FILL_WRITER_FIELDS(F, S) \
    MU__FILL_FIELDS(F, S)            \
    MU__WINDOW_FIELDS(F, S)

/* A member of a clock; 0: the clock has none. */
#define MU__FILL_CLOCK_FIELDS(F, S)                  \
    MU__FILL_FIELDS(F, S)                            \
    F(S, REQUIRED, str, name, MU__VARIABLE_NAME_MAX) \
    F(S, REQUIRED, u64, staleness, 0)                \
    F(S, REQUIRED, u64, minimum, 0)                  \
    F(S, REQUIRED, u64, member, 0)                   \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)     \
    F(S, OPTIONAL, u64, incarnation, 0)              \
    F(S, OPTIONAL, u64, step, 0)
#define MU__FILL_SHARD_FIELDS(F, S)                  \
    MU__FILL_FIELDS(F, S)                            \
    F(S, REQUIRED, str, name, MU__VARIABLE_NAME_MAX) \
    F(S, REQUIRED, u32, dtype, 255)                  \
    F(S, REQUIRED, bytes, dims, 64)                  \
    F(S, REQUIRED, u32, shard, 65535)                \
    F(S, REQUIRED, u32, shards, 65535)               \
    F(S, REQUIRED, u64, variable, 0)                 \
    F(S, REQUIRED, u64, creation, 0)                 \
    F(S, REQUIRED, u64, version, 0)                  \
    F(S, REQUIRED, flag, ready, 0)                   \
    F(S, OPTIONAL, u32, rule, 255)                   \
    F(S, OPTIONAL, u64, step, 0)
#define MU__FILL_DATA_FIELDS(F, S)   \
    MU__FILL_FIELDS(F, S)            \
    F(S, REQUIRED, u64, variable, 0) \
    F(S, REQUIRED, flag, slots, 0)   \
    F(S, REQUIRED, u64, offset, 0)   \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)
#define MU__FILL_END_FIELDS(F, S)  \
    MU__FILL_FIELDS(F, S)          \
    F(S, REQUIRED, u64, record, 0) \
    F(S, REQUIRED, u64, sum, 0)
#define MU__FILL_TAKEN_FIELDS(F, S) \
    MU__FILL_FIELDS(F, S)           \
    F(S, REQUIRED, u64, bytes, 0)

/* -- the journal of a server (actors/ps/journal/ps_journal.h), beside records and
 * FILL_... -- */

/* Who writes, and who has written it before: `former` as in VIEWS_HELD. */
#define MU__PS_BEGIN_FIELDS(F, S)    \
    F(S, REQUIRED, u32, task, 0)     \
    F(S, REQUIRED, str, cluster, 63) \
    F(S, REQUIRED, str, run, 63)     \
    F(S, REQUIRED, bytes, former, 8 * MU__FORMER_MAX)

/* A view, and what the file has of its partition from here on: enum mu__ps_held. */
#define MU__PS_VIEW_FIELDS(F, S)                \
    F(S, REQUIRED, bytes, view, MU__VIEW_BYTES) \
    F(S, REQUIRED, u32, held, 255)

#endif
