/* Fields of the messages about partitions: views, records, and how a learner is filled.
 */
#ifndef MU_ACTORS_MESSAGES_PARTITION_FIELDS_H
#define MU_ACTORS_MESSAGES_PARTITION_FIELDS_H

#include "actors/messages/variable_fields.h"

/* -- partitions and their views (actors/partitions.h) -- */

/* From the chief to a server: the newest views of partitions in which it has, or had, a
 * part. */
#define MU__VIEWS_SET_FIELDS(F, S) \
    F(S, REQUIRED, bytes, views, MU__PARTITIONS *MU__VIEW_BYTES)

/* From a primary to a replica: the view of both, which that may not have heard; or from a
 * server that has heard a newer view to one that sends it records. */
#define MU__REPLICA_VIEW_FIELDS(F, S) F(S, REQUIRED, bytes, view, MU__VIEW_BYTES)

/* From the chief to a server: report what you hold, once more. */
#define MU__VIEWS_GET_FIELDS(F, S) F(S, OPTIONAL, u64, token, 0)

/* From a server to a chief whose link came up, or that asks: the newest views that it has
 * heard, also those in which it has no part. `known`: there are some. `restored`:
 * partitions that it has from a journal, with their store_id; `former`: incarnations (8
 * bytes each, little-endian) of the processes of its task that wrote that. */
#define MU__VIEWS_HELD_FIELDS(F, S)                                     \
    F(S, REQUIRED, bytes, views, MU__PARTITIONS *MU__VIEW_BYTES)        \
    F(S, OPTIONAL, flag, known, 0)                                      \
    F(S, OPTIONAL, bytes, restored, MU__PARTITIONS *MU__NUMBERED_BYTES) \
    F(S, OPTIONAL, bytes, former, 8 * MU__FORMER_MAX)

/* From a primary to the chief, what has become of the other replica in a view. */
#define MU__REPLICA_NEWS_FIELDS(F, S) \
    F(S, REQUIRED, u32, news, 255)    \
    F(S, REQUIRED, bytes, partitions, MU__PARTITIONS *MU__NUMBERED_BYTES)

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

/* A learner is filled: FILL_BEGIN, a FILL_WRITER for each writer, a FILL_SHARD for each
 * shard; then FILL_DATA, which the learner answers with FILL_TAKEN; then FILL_END.
 * Records travel between all of these. `record`: the last one that the primary had
 * applied. `base`, `end`, `applied`: a window of numbers, and its bits. */
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
    F(S, REQUIRED, flag, ready, 0)
#define MU__FILL_DATA_FIELDS(F, S)    \
    MU__FILL_FIELDS(F, S)             \
    F(S, REQUIRED, u64, variable, 0)  \
    F(S, REQUIRED, flag, velocity, 0) \
    F(S, REQUIRED, u64, offset, 0)    \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)
#define MU__FILL_END_FIELDS(F, S)  \
    MU__FILL_FIELDS(F, S)          \
    F(S, REQUIRED, u64, record, 0) \
    F(S, REQUIRED, u64, sum, 0)
#define MU__FILL_TAKEN_FIELDS(F, S) \
    MU__FILL_FIELDS(F, S)           \
    F(S, REQUIRED, u64, bytes, 0)

/* -- the journal of a server (actors/ps/ps_journal.h), beside records and FILL_... -- */

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
