/* Rows of a variable, by number: where they are, and how a list of them travels.
 *
 * A list goes to each shard that it touches as one or more pieces of at most
 * MU__PIECE_BYTES_MAX. A piece of n rows of a write is n numbers, 8 bytes each,
 * little-endian, which count in the shard from 0, then n contents. A read has the numbers
 * alone, and its answer the contents. */
#ifndef MU_ACTORS_PS_ROWS_ROW_LIST_H
#define MU_ACTORS_PS_ROWS_ROW_LIST_H

#include "actors/ps/shape.h"
#include "runtime/base/byte_order.h"

enum { MU__ROW_NUMBER_BYTES = 8 };

/* The shard of a row that is there; *ret_row: its number within the shard. */
uint32_t mu__row_shard(const struct mu__shape *shape, uint64_t row, uint64_t *ret_row);

/* The most rows of one piece; 0: a row is too large for one. */
uint64_t mu__row_read_max(const struct mu__shape *shape);
uint64_t mu__row_write_max(const struct mu__shape *shape);

/* Number `i` of a piece. */
static inline uint64_t mu__row_number(const uint8_t *numbers, uint64_t i)
{
    return mu__load_little64(numbers + MU__ROW_NUMBER_BYTES * i);
}

/* The rows of one shard, in the order in which the list has them. */
struct mu__row_group {
    uint32_t shard;
    uint64_t first; /* of `numbers` and `positions` */
    uint64_t count; /* at least 1 */
};

struct mu__row_list {
    uint64_t count;
    uint32_t groups_count;
    struct mu__row_group *groups; /* by shard */
    uint8_t *numbers;
    uint64_t *positions; /* where each was in the list */
};

/* Cut a list of rows of a checked shape of rank 1 or more by shard. Nothing is kept of
 * `rows`. -MU_ERANGE (a row that is not there), -MU_ENOMEM: there is nothing to free. */
int mu__row_list_init(struct mu__row_list *list, const struct mu__shape *shape,
                      const int64_t *rows, uint64_t count, mu_error *ret_error);
void mu__row_list_done(struct mu__row_list *list);

/* Bytes of a list as it is written. */
uint64_t mu__row_list_bytes(const struct mu__row_list *list,
                            const struct mu__shape *shape);

/* The pieces of a write, those of the first group first; all of a group but its last have
 * mu__row_write_max() rows. `contents` are in the order of the list. NULL: out of memory.
 * The caller frees it. */
uint8_t *mu__row_list_pack(const struct mu__row_list *list, const struct mu__shape *shape,
                           const void *contents);

#endif
