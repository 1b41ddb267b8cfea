/* A checkpoint as bytes. Pure: node/files/checkpoint_file.c reads and writes the files.
 *
 *   header      64 bytes
 *   contents    one after the other, each filled up with zeros to a multiple of 64
 *   index       up to the end of the file
 *
 * Header: "mu ckpt\n"; u32 format, 1; u32 count of parts; u64 step; u64 where the index
 * begins; u64 bytes of the index; u64 bytes of the file; u32 sum of the index; zeros; and
 * in the last four bytes the sum of what is before them.
 *
 * Index: for each part u16 bytes of its name; u8 dtype; u8 rank; u32 shards; u64 where
 * its content begins; u64 bytes; u32 sum of the content, filled up; then the dims, u64
 * each, and the name. Names ascend, byte by byte. The part without a name (dtype 0, rank
 * 2) is the packed value that was saved with the variables: its dims are the bytes of its
 * head and tail; its content is the tail, filled up to 16, and the head.
 *
 * All numbers are little-endian, all sums CRC-32C: each byte of a file is under one. */
#ifndef MU_ACTORS_CHECKPOINT_FORMAT_H
#define MU_ACTORS_CHECKPOINT_FORMAT_H

#include "actors/messages.h"
#include "actors/ps/shape.h"
#include "runtime/base/crc32c.h"

enum {
    MU__CKPT_HEADER_BYTES = 64,
    MU__CKPT_ALIGN = 64,
    MU__CKPT_PARTS_MAX = 1 << 20,
    MU__CKPT_WHY_BYTES = 128
};
#define MU__CKPT_INDEX_BYTES_MAX (UINT64_C(1) << 28)
#define MU__CKPT_FILE_BYTES_MAX (UINT64_C(1) << 48)

struct mu__ckpt_header {
    uint32_t parts_count;
    uint64_t step;
    uint64_t index_offset;
    uint64_t index_size;
    uint64_t file_size;
    uint32_t index_sum;
};

struct mu__ckpt_part {
    char name[MU__VARIABLE_NAME_MAX + 1];   /* "": the value, with a shape of its own */
    struct mu__shape shape;
    uint64_t offset;
    uint64_t bytes;
    uint32_t sum;
};

/* The bytes of a content in the file, with its filling. */
static inline uint64_t mu__ckpt_filled(uint64_t bytes)
{
    return (bytes + MU__CKPT_ALIGN - 1) / MU__CKPT_ALIGN * MU__CKPT_ALIGN;
}

/* ---- Writing ---- */

void mu__ckpt_header_write(const struct mu__crc32c *crc,
                           const struct mu__ckpt_header *header,
                           uint8_t out[MU__CKPT_HEADER_BYTES]);

/* The names of the parts ascend. */
uint64_t mu__ckpt_index_size(const struct mu__ckpt_part *parts, uint32_t count);
void mu__ckpt_index_write(const struct mu__ckpt_part *parts, uint32_t count,
                          uint8_t *out);

/* ---- Reading: of any bytes. -MU_EDATALOSS with `why`, -MU_ENOMEM. ---- */

/* `size` is that of the file. */
int mu__ckpt_header_read(const struct mu__crc32c *crc,
                         const uint8_t bytes[MU__CKPT_HEADER_BYTES], uint64_t size,
                         char why[MU__CKPT_WHY_BYTES],
                         struct mu__ckpt_header *ret_header);

/* `bytes` is the header's index_size. The caller frees *ret_parts with free(). */
int mu__ckpt_index_read(const struct mu__crc32c *crc,
                        const struct mu__ckpt_header *header, const uint8_t *bytes,
                        char why[MU__CKPT_WHY_BYTES], struct mu__ckpt_part **ret_parts);

/* The packed value in the content of the part without a name; its parts view `content`,
 * which is aligned to 16 bytes. */
struct mu__packed mu__ckpt_packed(const struct mu__ckpt_part *part,
                                  const uint8_t *content);

#endif
