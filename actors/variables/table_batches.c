/* Ids by partition, and pushes as writes of batches. */
#include "actors/variables/table_calls.h"

#include "actors/messages.h"
#include "actors/ps/tables/table_writes.h"
#include "runtime/base/byte_order.h"

#include <stdlib.h>
#include <string.h>

/* ---- Ids by partition ---- */

void mu__sorted_ids_done(struct mu__sorted_ids *sorted)
{
    if (sorted->ids != sorted->one)
        free(sorted->ids);
}

/* Without counting or memory: most that are pipelined are alone. */
static void sort_one(uint64_t id, struct mu__sorted_ids *sorted)
{
    uint32_t partition = mu__partition_of_id(id);

    sorted->one[0] = id;
    sorted->one[1] = 0;
    sorted->ids = sorted->one;
    sorted->positions = (uint32_t *)(void *)&sorted->one[1];
    sorted->first = sorted->last = partition;
    sorted->ends[partition] = 0;
    sorted->ends[partition + 1] = 1;
}

/* Count, then put in order: those of a partition stay in theirs. */
static void count_and_sort(const uint64_t *ids, uint8_t *partitions,
                           struct mu__sorted_ids *sorted)
{
    uint32_t next[MU__PARTITIONS];

    _Static_assert(MU__PARTITIONS <= UINT8_MAX + 1, "a partition in a byte");
    memset(sorted->ends, 0, sizeof sorted->ends);
    for (uint32_t i = 0; i < sorted->count; i++)
        partitions[i] = (uint8_t)mu__partition_of_id(ids[i]);
    for (uint32_t i = 0; i < sorted->count; i++)
        sorted->ends[partitions[i] + 1]++;
    for (uint32_t p = 0; p < MU__PARTITIONS; p++) {
        sorted->ends[p + 1] += sorted->ends[p];
        next[p] = sorted->ends[p];
    }
    for (uint32_t i = 0; i < sorted->count; i++) {
        uint32_t at = next[partitions[i]]++;

        sorted->ids[at] = ids[i];
        sorted->positions[at] = i;
    }
    sorted->first = sorted->count == 0 ? 0 : mu__partition_of_id(sorted->ids[0]);
    sorted->last = MU__PARTITIONS - 1;
}

int mu__ids_sort(const uint64_t *ids, uint32_t count, struct mu__sorted_ids *ret_sorted)
{
    ret_sorted->count = count;
    if (count == 1) {
        sort_one(ids[0], ret_sorted);
        return 0;
    }
    ret_sorted->ids = malloc((size_t)count * (sizeof *ids + sizeof(uint32_t) + 1) + 1);
    if (ret_sorted->ids == NULL)
        return -MU_ENOMEM;
    ret_sorted->positions = (uint32_t *)(void *)(ret_sorted->ids + count);
    count_and_sort(ids, (uint8_t *)(ret_sorted->positions + count), ret_sorted);
    return 0;
}

/* ---- Pushes ---- */

/* What writes are made of. */
struct table_gather {
    const struct mu__table_batch *batch;
    struct mu__effects *effects;
    uint8_t head[MU__TABLE_PUSH_HEAD_MAX + 4]; /* ends with the count, */
    uint32_t head_bytes;                       /* which each write has for itself */
};

/* Append a write of the first `count` different ids, which one message holds, and go on
 * behind them. */
static int add_push_piece(struct table_gather *g, uint32_t partition,
                          struct mu__pushed_ids *left, uint32_t count)
{
    const struct mu__table_batch *batch = g->batch;
    uint32_t head = g->head_bytes;
    const struct mu__effect write = {
        .partition = partition,
        .operation = batch->dim == 0 ? MU__WRITE_TABLE_DELETE : MU__WRITE_TABLE_PUSH,
        .variable = batch->table,
        .size = head + count * (sizeof(uint64_t) + batch->dim * sizeof(float))};
    unsigned char *data;
    uint32_t put;
    int rv = mu__effects_append(g->effects, &write, &data);

    if (rv != 0)
        return rv;
    memcpy(data, g->head, head);
    mu__store_little32(data + head - sizeof count, count);
    put = mu__pushed_sum(left, count, batch->gradients, batch->dim, data + head);
    left->items += put;
    left->count -= put;
    return 0;
}

static int add_partition(struct table_gather *g, const struct mu__sorted_ids *sorted,
                         uint32_t partition, struct mu__pushed_id *memory)
{
    size_t each = sizeof(uint64_t) + g->batch->dim * sizeof(float);
    uint32_t most =
        (uint32_t)((MU__PIECE_BYTES_MAX - MU__TABLE_PUSH_HEAD_MAX - 4) / each);
    uint32_t first = sorted->ends[partition];
    struct mu__pushed_ids left = {memory, sorted->ends[partition + 1] - first};
    int rv = 0;

    for (uint32_t i = 0; i < left.count; i++)
        memory[i] =
            (struct mu__pushed_id){sorted->ids[first + i], sorted->positions[first + i]};
    for (uint32_t different = mu__pushed_sort(memory, left.count);
         rv == 0 && different > 0;) {
        uint32_t some = different < most ? different : most;

        rv = add_push_piece(g, partition, &left, some);
        different -= some;
    }
    return rv;
}

static uint32_t largest_partition(const struct mu__sorted_ids *sorted)
{
    uint32_t most = 0;

    for (uint32_t p = sorted->first; p <= sorted->last; p++)
        if (sorted->ends[p + 1] - sorted->ends[p] > most)
            most = sorted->ends[p + 1] - sorted->ends[p];
    return most;
}

static int add_sorted(struct table_gather *g, const struct mu__sorted_ids *sorted)
{
    struct mu__pushed_id *memory =
        malloc(((size_t)largest_partition(sorted) + 1) * sizeof *memory);
    int rv = memory == NULL ? -MU_ENOMEM : 0;

    for (uint32_t p = sorted->first; p <= sorted->last && rv == 0; p++)
        rv = add_partition(g, sorted, p, memory);
    free(memory);
    return rv;
}

int mu__effects_add_table(struct mu__effects *effects,
                          const struct mu__table_batch *batch)
{
    struct table_gather g = {.batch = batch, .effects = effects};
    struct mu__sorted_ids sorted;
    int rv = mu__ids_sort(batch->ids, batch->count, &sorted);

    if (rv != 0)
        return rv;
    g.head_bytes = mu__table_push_pack_head_at(batch->rule, batch->time, 0, g.head);
    rv = add_sorted(&g, &sorted);
    mu__sorted_ids_done(&sorted);
    return rv;
}

/* ---- Opens ---- */

int mu__effects_add_table_open(struct mu__effects *effects,
                               const struct mu__table_open *open, uint32_t first,
                               uint32_t end)
{
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
    struct mu__effect write = {.operation = MU__WRITE_TABLE_OPEN,
                               .variable = mu__table_id(open->name)};
    int rv = 0;

    write.size = mu__table_open_pack(open, bytes);
    for (write.partition = first; write.partition < end && rv == 0; write.partition++)
        rv = mu__effects_add(effects, &write, bytes);
    return rv;
}
