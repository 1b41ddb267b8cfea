/* Lists of rows: sorted by shard, and packed. */
#include "actors/ps/rows/row_list.h"

#include "actors/messages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Where rows are ---- */

uint32_t mu__row_shard(const struct mu__shape *shape, uint64_t row, uint64_t *ret_row)
{
    uint64_t each = shape->dims[0] / shape->shards;
    uint64_t longer = shape->dims[0] % shape->shards; /* shards with a row more */
    uint64_t in_longer = longer * (each + 1);
    uint64_t shard;

    assert(row < shape->dims[0]);
    if (row < in_longer) {
        shard = row / (each + 1);
        *ret_row = row % (each + 1);
    } else {
        shard = longer + (row - in_longer) / each;
        *ret_row = (row - in_longer) % each;
    }
    return (uint32_t)shard;
}

uint64_t mu__row_read_max(const struct mu__shape *shape)
{
    uint64_t bytes = mu__shape_row_bytes(shape);

    return MU__PIECE_BYTES_MAX /
           (bytes < MU__ROW_NUMBER_BYTES ? MU__ROW_NUMBER_BYTES : bytes);
}

uint64_t mu__row_write_max(const struct mu__shape *shape)
{
    return MU__PIECE_BYTES_MAX / (MU__ROW_NUMBER_BYTES + mu__shape_row_bytes(shape));
}

/* ---- Sorting ---- */

static int check_rows(const struct mu__shape *shape, const int64_t *rows, uint64_t count,
                      mu_error *ret_error)
{
    for (uint64_t i = 0; i < count; i++)
        if (rows[i] < 0 || (uint64_t)rows[i] >= shape->dims[0])
            return mu_error_set(ret_error, -MU_ERANGE,
                                "row %" PRId64 " at %" PRIu64
                                " of the list: expected 0 to %" PRIu64,
                                rows[i], i, shape->dims[0] - 1);
    return 0;
}

/* The groups, with their sizes. */
static void begin_groups(struct mu__row_list *list, const uint64_t *counts,
                         uint32_t shards)
{
    uint64_t first = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        if (counts[shard] == 0)
            continue;
        list->groups[list->groups_count++] =
            (struct mu__row_group){shard, first, counts[shard]};
        first += counts[shard];
    }
}

/* counts[shard] becomes the place of its next row. */
static void sort_rows(struct mu__row_list *list, const struct mu__shape *shape,
                      const int64_t *rows, uint64_t *counts)
{
    uint64_t row;

    for (uint64_t i = 0; i < list->count; i++)
        counts[mu__row_shard(shape, (uint64_t)rows[i], &row)]++;
    begin_groups(list, counts, shape->shards);
    for (uint32_t i = 0; i < list->groups_count; i++)
        counts[list->groups[i].shard] = list->groups[i].first;
    for (uint64_t i = 0; i < list->count; i++) {
        uint64_t at = counts[mu__row_shard(shape, (uint64_t)rows[i], &row)]++;

        list->positions[at] = i;
        mu__store_little(list->numbers + MU__ROW_NUMBER_BYTES * at, row,
                         MU__ROW_NUMBER_BYTES);
    }
}

static bool get_lists(struct mu__row_list *list, uint32_t shards)
{
    uint64_t room = list->count < shards ? list->count : shards;

    if (list->count > SIZE_MAX / MU__ROW_NUMBER_BYTES)
        return false;
    list->groups = calloc((size_t)room + 1, sizeof *list->groups);
    list->numbers = malloc((size_t)(list->count + 1) * MU__ROW_NUMBER_BYTES);
    list->positions = calloc((size_t)list->count + 1, sizeof *list->positions);
    return list->groups != NULL && list->numbers != NULL && list->positions != NULL;
}

int mu__row_list_init(struct mu__row_list *list, const struct mu__shape *shape,
                      const int64_t *rows, uint64_t count, mu_error *ret_error)
{
    uint64_t *counts;
    int rv = check_rows(shape, rows, count, ret_error);

    if (rv != 0)
        return rv;
    *list = (struct mu__row_list){.count = count};
    counts = calloc(shape->shards, sizeof *counts);
    if (counts == NULL || !get_lists(list, shape->shards)) {
        free(counts);
        mu__row_list_done(list);
        return mu_error_set(ret_error, -MU_ENOMEM,
                            "no memory for a list of %" PRIu64 " rows", count);
    }
    sort_rows(list, shape, rows, counts);
    free(counts);
    return 0;
}

void mu__row_list_done(struct mu__row_list *list)
{
    free(list->groups);
    free(list->numbers);
    free(list->positions);
}

/* ---- Packing ---- */

uint64_t mu__row_list_bytes(const struct mu__row_list *list,
                            const struct mu__shape *shape)
{
    return list->count * (MU__ROW_NUMBER_BYTES + mu__shape_row_bytes(shape));
}

/* Rows `first` and on; returns the end of the piece. */
static uint8_t *pack_row_piece(const struct mu__row_list *list, uint64_t first,
                               uint64_t count, uint64_t row_bytes,
                               const uint8_t *contents, uint8_t *out)
{
    size_t size = (size_t)(count * MU__ROW_NUMBER_BYTES);

    memcpy(out, list->numbers + MU__ROW_NUMBER_BYTES * first, size);
    out += size;
    for (uint64_t i = first; i < first + count; i++, out += row_bytes)
        memcpy(out, contents + list->positions[i] * row_bytes, (size_t)row_bytes);
    return out;
}

uint8_t *mu__row_list_pack(const struct mu__row_list *list, const struct mu__shape *shape,
                           const void *contents)
{
    uint64_t row_bytes = mu__shape_row_bytes(shape);
    uint64_t most = mu__row_write_max(shape);
    uint8_t *packed = malloc((size_t)mu__row_list_bytes(list, shape) + 1);
    uint8_t *out = packed;

    for (uint32_t i = 0; i < list->groups_count && packed != NULL; i++) {
        const struct mu__row_group *group = &list->groups[i];
        uint64_t done = 0;

        while (done < group->count) {
            uint64_t left = group->count - done;
            uint64_t count = left < most ? left : most;

            out = pack_row_piece(list, group->first + done, count, row_bytes, contents,
                                 out);
            done += count;
        }
    }
    return packed;
}
