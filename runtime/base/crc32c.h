/* CRC-32C (Castagnoli): a checksum that detects damaged or missing bytes. */
#ifndef MU_RUNTIME_CRC32C_H
#define MU_RUNTIME_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* tables[k][b]: what byte b does to the sum when k zero bytes follow it. */
struct mu__crc32c {
    bool has_instruction; /* of the processor, which does the same much faster */
    uint32_t part_shift;  /* by the length of what is summed at once (crc32c.c) */
    uint32_t tables[8][256];
};

void mu__crc32c_init(struct mu__crc32c *crc);

/* The checksum of bytes whose checksum is `before` followed by `data`; that of no bytes
 * is 0. */
uint32_t mu__crc32c_add(const struct mu__crc32c *crc, uint32_t before, const void *data,
                        size_t size);

/* The sum of bytes A and then B is that of B, xor the shifted sum of A, by the number of
 * bytes of B. So sums of parts can be put together in any order. */
uint32_t mu__crc32c_shift(uint32_t sum, uint64_t bytes);

#endif
