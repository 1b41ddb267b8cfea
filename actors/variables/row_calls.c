/* Calls about rows: which shards they touch, and which bytes of those. */
#include "actors/variables/row_actions.h"

#include "actors/variables/internal.h"

#include "actors/ps/rows/rows.h"

#include <string.h>

uint32_t mu__vars_row_parts(const struct mu__shape *shape, const struct mu__rows *rows)
{
    uint64_t row;

    if (rows->list != NULL)
        return rows->list->groups_count;
    return mu__row_shard(shape, rows->first + rows->count - 1, &row) -
           mu__row_shard(shape, rows->first, &row) + 1;
}

uint32_t mu__vars_row_shard(const struct mu__shape *shape, const struct mu__rows *rows,
                            uint32_t i)
{
    uint64_t row;

    if (rows->list != NULL)
        return rows->list->groups[i].shard;
    return mu__row_shard(shape, rows->first, &row) + i;
}

/* part->offset is where the rows are in the program's buffer. */
static void plan_range(struct op_part *part, const struct mu__rows *rows,
                       uint64_t row_bytes)
{
    uint64_t begin = rows->first * row_bytes;
    uint64_t end = begin + rows->count * row_bytes;
    uint64_t shard_end = part->offset + part->shard_bytes;
    uint64_t first = begin > part->offset ? begin : part->offset;

    part->rows.from = first - part->offset;
    part->bytes = (end < shard_end ? end : shard_end) - first;
    part->offset = first - begin;
}

static void plan_list(struct op_part *part, const struct mu__row_group *group,
                      const struct mu__shape *shape)
{
    uint64_t each = mu__shape_row_bytes(shape);
    uint64_t most = mu__row_read_max(shape);

    if (mu__rows_are_listed(part->write)) {
        each += MU__ROW_NUMBER_BYTES;
        most = mu__row_write_max(shape);
    }
    part->rows.group = group;
    part->rows.piece_bytes = (uint32_t)(most * each);
    part->offset = group->first * each;
    part->bytes = group->count * each;
}

void mu__vars_plan_rows(struct op_part *part, uint32_t i)
{
    const struct mu__variable_call *call = part->op->call;

    if (call->rows->list != NULL)
        plan_list(part, &call->rows->list->groups[i], call->shape);
    else
        plan_range(part, call->rows, mu__shape_row_bytes(call->shape));
}

/* The index in its list of the row at `offset` of a part. */
static uint64_t list_index_of(const struct op_part *part, uint64_t offset)
{
    return part->rows.group->first + offset / mu__shape_row_bytes(part->op->call->shape);
}

struct mu__view mu__vars_row_numbers(const struct op_part *part, uint64_t offset,
                                     uint32_t size)
{
    const struct mu__variable_call *call = part->op->call;

    if (part->rows.group == NULL)
        return (struct mu__view){NULL, 0};
    return (struct mu__view){
        call->rows->list->numbers + list_index_of(part, offset) * MU__ROW_NUMBER_BYTES,
        (uint32_t)(size / mu__shape_row_bytes(call->shape) * MU__ROW_NUMBER_BYTES)};
}

void mu__vars_take_data(const struct op_part *part, uint64_t offset,
                        const struct mu__view *data)
{
    const struct mu__variable_call *call = part->op->call;
    size_t row_bytes = (size_t)mu__shape_row_bytes(call->shape);
    const uint8_t *from = data->data;
    uint8_t *target = call->target;
    const uint64_t *position;

    if (part->rows.group == NULL) {
        memcpy(target + part->offset + offset, from, data->size);
        return;
    }
    position = call->rows->list->positions + list_index_of(part, offset);
    for (size_t at = 0; at < data->size; at += row_bytes, position++)
        memcpy(target + *position * row_bytes, from + at, row_bytes);
}
