/* Ids by partition, and pushes as writes of batches. */
#include "actors/variables/table_calls.h"

#include "actors/messages.h"
#include "actors/ps/tables/table_writes.h"

#include <stdlib.h>
#include <string.h>

/* ---- Ids by partition ---- */

void mu__sorted_ids_done(struct mu__sorted_ids *sorted)
{
    free(sorted->ids);
    free(sorted->positions);
}

/* Count, then put in order: those of a partition stay in theirs. */
static void count_and_sort(const uint64_t *ids, struct mu__sorted_ids *sorted)
{
    uint32_t next[MU__PARTITIONS];

    memset(sorted->ends, 0, sizeof sorted->ends);
    for (uint32_t i = 0; i < sorted->count; i++)
        sorted->ends[mu__partition_of_id(ids[i]) + 1]++;
    for (uint32_t p = 0; p < MU__PARTITIONS; p++) {
        sorted->ends[p + 1] += sorted->ends[p];
        next[p] = sorted->ends[p];
    }
    for (uint32_t i = 0; i < sorted->count; i++) {
        uint32_t at = next[mu__partition_of_id(ids[i])]++;

        sorted->ids[at] = ids[i];
        sorted->positions[at] = i;
    }
}

int mu__ids_sort(const uint64_t *ids, uint32_t count, struct mu__sorted_ids *ret_sorted)
{
    *ret_sorted = (struct mu__sorted_ids){
        .count = count,
        .ids = malloc((size_t)count * sizeof *ids + 1),
        .positions = malloc((size_t)count * sizeof(uint32_t) + 1),
    };
    if (ret_sorted->ids == NULL || ret_sorted->positions == NULL) {
        mu__sorted_ids_done(ret_sorted);
        return -MU_ENOMEM;
    }
    count_and_sort(ids, ret_sorted);
    return 0;
}

/* ---- Pushes ---- */

/* What is gathered for the write of one partition. */
struct table_gather {
    const struct mu__table_batch *batch;
    struct mu__effects *effects;
    uint64_t *ids;
    uint8_t *gradients;
    uint8_t *summed_ids;
    uint8_t *summed;
    uint8_t *packed;
};

/* Append some ids, which one message holds. */
static int add_push_piece(const struct table_gather *g, uint32_t partition,
                          uint32_t first, uint32_t count)
{
    size_t row_bytes = g->batch->dim * sizeof(float);
    struct mu__effect write = {.partition = partition,
                               .operation = g->batch->dim == 0 ? MU__WRITE_TABLE_DELETE
                                                               : MU__WRITE_TABLE_PUSH,
                               .variable = g->batch->table};
    uint8_t *at = g->packed + mu__table_push_pack_head_at(g->batch->rule, g->batch->time,
                                                          count, g->packed);

    memcpy(at, g->summed_ids + first * sizeof(uint64_t), count * sizeof(uint64_t));
    at += count * sizeof(uint64_t);
    memcpy(at, g->summed + first * row_bytes, count * row_bytes);
    write.size = (uint64_t)(at - g->packed) + count * row_bytes;
    return mu__effects_add(g->effects, &write, g->packed);
}

static int add_partition(const struct table_gather *g, uint32_t partition, uint32_t count)
{
    size_t each = sizeof(uint64_t) + g->batch->dim * sizeof(float);
    uint32_t most =
        (uint32_t)((MU__PIECE_BYTES_MAX - MU__TABLE_PUSH_HEAD_MAX - 4) / each);
    uint32_t summed;
    int rv = mu__table_sum_duplicates(g->ids, g->gradients, count, g->batch->dim,
                                      g->summed_ids, g->summed, &summed);

    for (uint32_t first = 0; rv == 0 && first < summed; first += most)
        rv = add_push_piece(g, partition, first,
                            summed - first < most ? summed - first : most);
    return rv;
}

/* The ids of a partition, and their gradients, one behind the other. */
static void gather_partition(const struct table_gather *g,
                             const struct mu__sorted_ids *sorted, uint32_t partition)
{
    size_t row_bytes = g->batch->dim * sizeof(float);
    uint32_t first = sorted->ends[partition];

    for (uint32_t i = first; i < sorted->ends[partition + 1]; i++) {
        g->ids[i - first] = sorted->ids[i];
        if (row_bytes > 0)
            memcpy(g->gradients + (i - first) * row_bytes,
                   (const uint8_t *)g->batch->gradients +
                       sorted->positions[i] * row_bytes,
                   row_bytes);
    }
}

static uint32_t largest_partition(const struct mu__sorted_ids *sorted)
{
    uint32_t most = 0;

    for (uint32_t p = 0; p < MU__PARTITIONS; p++)
        if (sorted->ends[p + 1] - sorted->ends[p] > most)
            most = sorted->ends[p + 1] - sorted->ends[p];
    return most;
}

static int add_sorted(struct table_gather *g, const struct mu__sorted_ids *sorted)
{
    size_t most = largest_partition(sorted);
    size_t row_bytes = g->batch->dim * sizeof(float);
    size_t bytes = most * (sizeof(uint64_t) + row_bytes);
    uint8_t *memory = malloc(3 * bytes + MU__TABLE_PUSH_HEAD_MAX + 4);
    int rv = memory == NULL ? -MU_ENOMEM : 0;

    g->ids = (uint64_t *)(void *)memory;
    g->summed_ids = memory + most * sizeof(uint64_t);
    g->gradients = g->summed_ids + most * sizeof(uint64_t);
    g->summed = g->gradients + most * row_bytes;
    g->packed = g->summed + most * row_bytes;
    for (uint32_t p = 0; p < MU__PARTITIONS && rv == 0; p++) {
        if (sorted->ends[p] == sorted->ends[p + 1])
            continue;
        gather_partition(g, sorted, p);
        rv = add_partition(g, p, sorted->ends[p + 1] - sorted->ends[p]);
    }
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
