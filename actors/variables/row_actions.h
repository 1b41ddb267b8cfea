/* Calls about rows of a variable: their parts, one for each shard that they touch, and
 * what goes into their messages (row_calls.c). */
#ifndef MU_ACTORS_VARIABLES_ROW_ACTIONS_H
#define MU_ACTORS_VARIABLES_ROW_ACTIONS_H

#include "actors/messages.h"
#include "actors/ps/rows/row_list.h"

struct op_part;

/* The rows of a call. */
struct mu__rows {
    uint64_t first;                  /* a range: from here, */
    uint64_t count;                  /* so many, at least 1 */
    const struct mu__row_list *list; /* not NULL: these instead; SCATTER_...: `source` is
                                        as mu__row_list_pack makes it */
};

/* What a part moves of its shard. */
struct row_part {
    uint64_t from;                     /* the first byte of it */
    uint32_t piece_bytes;              /* most bytes of a piece */
    const struct mu__row_group *group; /* not NULL: these rows of a list instead */
};

/* How many shards a call touches, and which one is the i-th. */
uint32_t mu__vars_row_parts(const struct mu__shape *shape, const struct mu__rows *rows);
uint32_t mu__vars_row_shard(const struct mu__shape *shape, const struct mu__rows *rows,
                            uint32_t i);

/* What a part moves, of a call that has rows. */
void mu__vars_plan_rows(struct op_part *part, uint32_t i);

/* The rows of a read of a list: bytes of their contents from `offset` on. */
struct mu__view mu__vars_row_numbers(const struct op_part *part, uint64_t offset,
                                     uint32_t size);

/* Put what was read where the call wants it. */
void mu__vars_take_data(const struct op_part *part, uint64_t offset,
                        const struct mu__view *data);

#endif
