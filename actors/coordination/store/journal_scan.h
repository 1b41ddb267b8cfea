/* The records of a journal file: their framing and checksums, where the file is damaged,
 * and where the next record behind the damage is. Plain data; knows nothing of messages.
 * Used by journal.c and by the command `muster journal`.
 *
 * The file: "mustrjnl", then u32 the format, and then records. In format 2, which is what
 * is written:
 *
 *   u32 mark        MU__JOURNAL_MARK; little-endian, as all numbers here
 *   u32 size        of the bytes
 *   u64 number      1, 2, 3 ... in this file: shows missing and doubled records
 *   u32 head sum    CRC-32C of the 16 bytes before
 *   u32 sum         CRC-32C of the bytes, begun with the head sum
 *   bytes           the message, as runtime/message/codec.h packs it, at the begin of a
 *                   frame
 *   u32 end         MU__JOURNAL_END_MARK: a whole record never ends in zeros
 *
 * Format 1, which is still read: u32 size, u32 CRC-32C of size and bytes, bytes.
 *
 * A crash in the middle of an append leaves a torn end: the first part of a record, or
 * zeros from some byte on to the end of the file. All else that is not a whole record is
 * damage. */
#ifndef MU_ACTORS_JOURNAL_SCAN_H
#define MU_ACTORS_JOURNAL_SCAN_H

#include "muster/error.h"
#include "runtime/base/crc32c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MU__JOURNAL_MAGIC_BYTES = 8,
    MU__JOURNAL_HEADER_BYTES = MU__JOURNAL_MAGIC_BYTES + 4,
    MU__JOURNAL_FORMAT = 2,
    MU__JOURNAL_FORMAT_MIN = 1,
    MU__JOURNAL_HEAD_BYTES = 24,
    MU__JOURNAL_FOOT_BYTES = 4,
    MU__JOURNAL_WHAT_BYTES = 160
};

#define MU__JOURNAL_MARK UINT32_C(0xD7B1A96A)
#define MU__JOURNAL_END_MARK UINT32_C(0xE2C58B93)

enum mu__journal_piece_kind {
    MU__JOURNAL_RECORD,
    MU__JOURNAL_TORN,    /* up to the end of the file; never flushed */
    MU__JOURNAL_DAMAGED, /* the next piece is behind the damage */
    MU__JOURNAL_MORE,    /* of a part: `bytes` are needed from `offset` on, or all */
    MU__JOURNAL_END
};

/* A part of the file. */
struct mu__journal_piece {
    enum mu__journal_piece_kind kind;
    size_t offset;
    size_t bytes;           /* in the file; 0 where records are missing between two */
    uint64_t number;        /* of the record, or of the first that is damaged */
    uint64_t records;       /* damaged: how many are lost; 0: unknown */
    const uint8_t *message; /* record: within the file's bytes */
    size_t message_bytes;
    char what[MU__JOURNAL_WHAT_BYTES]; /* damaged: what was expected and found */
};

struct mu__journal_scan {
    const uint8_t *data; /* borrowed: the file, or a part of it */
    size_t size;
    size_t base;       /* where the part begins in the file */
    bool has_more;     /* the file goes on behind it */
    size_t zeros_from; /* the file is zero from here on */
    size_t at;         /* where the next piece begins; 0: the header is torn */
    uint64_t number;   /* of the next record */
    uint32_t format;   /* 0: the header is torn */
    struct mu__crc32c crc;
};

/* Read the header. An empty file, and the first part of a header, are an empty journal.
 * -MU_EDATALOSS when it is no journal, or one of a newer format; `name` is for the
 * message. */
int mu__journal_scan_begin(struct mu__journal_scan *scan, const void *data, size_t size,
                           const char *name, mu_error *ret_error);

/* The same for a file whose header may be damaged: true when there are whole records
 * behind it. The first piece is then the damaged header. */
bool mu__journal_scan_headless(struct mu__journal_scan *scan, const void *data,
                               size_t size);

/* For a file that is read in parts: begin with the first one, and set has_more when that
 * is not all of it. After MU__JOURNAL_MORE, go on with the part that begins at that
 * piece's offset. */
void mu__journal_scan_move(struct mu__journal_scan *scan, const void *data, size_t size,
                           bool has_more);

/* The next piece; from the end on, MU__JOURNAL_END. */
void mu__journal_scan_next(struct mu__journal_scan *scan,
                           struct mu__journal_piece *ret_piece);

/* The kind of a record's message; 0: it cannot be seen without a schema. */
unsigned mu__journal_piece_message(const struct mu__journal_piece *piece);

/* The error -MU_EDATALOSS of a damaged piece, with the number of whole records behind it.
 * The scan goes to the end of the file. */
void mu__journal_scan_refuse(struct mu__journal_scan *scan,
                             const struct mu__journal_piece *damage, const char *name,
                             mu_error *ret_error);

/* ---- Writing ---- */

void mu__journal_put_header(uint8_t out[MU__JOURNAL_HEADER_BYTES]);

/* Head and foot around `size` bytes at `record` + MU__JOURNAL_HEAD_BYTES. */
void mu__journal_put_frame(const struct mu__crc32c *crc, uint8_t *record, uint64_t number,
                           uint32_t size);

#endif
