/* Fields of the messages about tables: look-ups, and how a learner gets rows. Tables are
 * opened and written to (actors/ps/tables/table_writes.h) by EFFECT_WRITE of runs, and
 * by OWN_WRITE of programs, which is the same and has `own`. */
#ifndef MU_ACTORS_MESSAGES_TABLE_FIELDS_H
#define MU_ACTORS_MESSAGES_TABLE_FIELDS_H

#include "actors/messages/partition_fields.h"

/* The rows of ids, 8 bytes each in host byte order: those of a partition follow each
 * other, as `spans` says (actors/ps/tables/lookup_spans.h). Several TABLE_ROWS answer,
 * each for some ids: of spans whose partition is not served here in their generation,
 * none. Rows are as the table holds them: `dtype` is that of its form, of 16 bits or 0.
 * `bags`, not 0: in the place of rows each answer has so many sums of rows, in the
 * order of their ids; `bag_of` says for each id which one its row is added to (4 bytes),
 * and `weights` by what it is multiplied before (a 32-bit float; none: by 1), all in host
 * byte order. */
#define MU__TABLE_LOOKUP_FIELDS(F, S)                                   \
    F(S, REQUIRED, u64, token, 0)                                       \
    F(S, REQUIRED, u64, table, 0)                                       \
    F(S, REQUIRED, u32, dim, MU__TABLE_DIM_LIMIT)                       \
    F(S, REQUIRED, raw, ids, MU__PIECE_BYTES_MAX)                       \
    F(S, REQUIRED, bytes, spans, MU__PARTITIONS *MU__LOOKUP_SPAN_BYTES) \
    F(S, OPTIONAL, u32, bags, MU__PIECE_BYTES_MAX / 4)                  \
    F(S, OPTIONAL, bytes, bag_of, MU__PIECE_BYTES_MAX / 2)              \
    F(S, OPTIONAL, bytes, weights, MU__PIECE_BYTES_MAX / 2)             \
    F(S, OPTIONAL, u32, dtype, 255)

/* Of `count` ids from number `first` on: the rows, or an error. MU_EAGAIN: they may be
 * requested again. */
#define MU__TABLE_ROWS_FIELDS(F, S)                \
    F(S, REQUIRED, u64, token, 0)                  \
    F(S, REQUIRED, u32, first, 0)                  \
    F(S, REQUIRED, u32, count, 0)                  \
    F(S, OPTIONAL, u32, code, 255)                 \
    F(S, OPTIONAL, raw, rows, MU__PIECE_BYTES_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Several EFFECT_WRITE, or OWN_WRITE, to tables: their heads
 * (actors/ps/tables/write_frame.h), and their data one behind the other. They are taken
 * one by one. `is_record`: they are records of a primary, and `writer` is whose they
 * are. */
#define MU__EFFECT_WRITES_FIELDS(F, S)                                       \
    F(S, REQUIRED, bytes, heads, MU__FRAME_WRITES_MAX *MU__FRAME_HEAD_BYTES) \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)                           \
    F(S, OPTIONAL, flag, own, 0)                                             \
    F(S, OPTIONAL, u64, origin, 0)                                           \
    F(S, OPTIONAL, flag, is_record, 0)                                       \
    F(S, OPTIONAL, u32, writer, 0)

/* Several EFFECT_WRITTEN that have a token alone, 8 bytes each, the lowest first. */
#define MU__EFFECTS_WRITTEN_FIELDS(F, S) \
    F(S, REQUIRED, bytes, tokens, MU__FRAME_WRITES_MAX * 8)

/* After FILL_BEGIN, a FILL_TABLE for each table: an open of it, packed, and its state
 * (actors/ps/tables/table_part.h). After the last FILL_DATA, FILL_ROWS, which the learner
 * answers alike: rows as they are, with their slots, or what `piece` says
 * (actors/ps/tables/table_set.h). */
#define MU__FILL_TABLE_FIELDS(F, S)                   \
    MU__FILL_FIELDS(F, S)                             \
    F(S, REQUIRED, bytes, open, MU__TABLE_OPEN_LIMIT) \
    F(S, OPTIONAL, raw, state, MU__TABLE_STATE_BYTES)
#define MU__FILL_ROWS_FIELDS(F, S)                 \
    MU__FILL_FIELDS(F, S)                          \
    F(S, REQUIRED, u64, table, 0)                  \
    F(S, REQUIRED, raw, rows, MU__PIECE_BYTES_MAX) \
    F(S, OPTIONAL, u32, piece, 2)

/* A record without a request: rows of a table are removed, as its primary has decided
 * (actors/ps/tables/policies/table_sweeps.h). */
#define MU__TABLE_SWEEP_FIELDS(F, S) \
    F(S, REQUIRED, u64, table, 0)    \
    F(S, REQUIRED, u32, reason, 2)   \
    F(S, OPTIONAL, u32, score, 0)    \
    F(S, OPTIONAL, u64, id, 0)       \
    MU__RECORD_FIELDS(F, S)

#endif
