/* How rows of a table's part are found, for its files. */
#ifndef MU_ACTORS_PS_TABLES_ROW_INDEX_H
#define MU_ACTORS_PS_TABLES_ROW_INDEX_H

#include "actors/partitions.h"
#include "actors/ps/tables/table_part.h"

#include <string.h>

#define NONE UINT32_MAX

enum { BATCH = 32 }; /* ids that are looked up together */

static inline uint64_t row_id_at(const void *ids, uint32_t i)
{
    uint64_t id;

    memcpy(&id, (const unsigned char *)ids + (size_t)i * sizeof id, sizeof id);
    return id;
}

static inline unsigned char *row_at(const struct mu__table *table, uint32_t row)
{
    return table->slabs[row >> __builtin_ctz(table->slab_rows)] +
           (size_t)(row & (table->slab_rows - 1)) * table->row_bytes;
}

static inline uint64_t hash_in(const struct mu__table *table, uint64_t id)
{
    return (mu__mix64(id) ^ table->secret) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint32_t mask_of(const struct mu__table *table)
{
    return (UINT32_C(1) << table->index_bits) - 1;
}

static inline uint32_t slot_of(const struct mu__table *table, uint64_t hash)
{
    return (uint32_t)(hash >> (64 - table->index_bits));
}

static inline uint64_t entry_of(uint64_t hash, uint32_t row)
{
    return hash << 32 | (row + 1);
}

static inline bool is_tagged(uint64_t entry, uint64_t hash)
{
    return entry >> 32 == (hash & UINT32_MAX);
}

/* The slot of an id, or the empty one where it would be. The index is not full. */
static inline uint32_t find_entry(const struct mu__table *table, uint64_t id,
                                  uint64_t hash)
{
    uint32_t slot = slot_of(table, hash);

    while (table->index[slot] != 0) {
        uint64_t entry = table->index[slot];

        if (is_tagged(entry, hash) &&
            row_id_at(row_at(table, (uint32_t)entry - 1), 0) == id)
            break;
        slot = (slot + 1) & mask_of(table);
    }
    return slot;
}

static inline uint32_t find_id_row(const struct mu__table *table, uint64_t id,
                                   uint64_t hash)
{
    if (table->index == NULL)
        return NONE;
    return (uint32_t)table->index[find_entry(table, id, hash)] - 1;
}

/* ---- Ahead ---- */

/* What is needed of each id is asked of memory before the first is looked at. */
static inline void hash_batch(const struct mu__table *table, const void *ids,
                              uint32_t count, uint64_t *ret_hashes)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_hashes[i] = hash_in(table, row_id_at(ids, i));
        __builtin_prefetch(&table->index[slot_of(table, ret_hashes[i])]);
    }
}

/* The row that an id has most likely. */
static inline uint32_t guess_row(const struct mu__table *table, uint64_t hash)
{
    uint32_t slot = slot_of(table, hash);

    while (table->index[slot] != 0 && !is_tagged(table->index[slot], hash))
        slot = (slot + 1) & mask_of(table);
    return (uint32_t)table->index[slot] - 1;
}

/* Where that is, and its first bytes are asked for; NULL: there is none. */
static inline const unsigned char *prefetch_row(const struct mu__table *table,
                                                uint64_t hash, uint32_t bytes)
{
    uint32_t number = guess_row(table, hash);
    const unsigned char *row;

    if (number == NONE)
        return NULL;
    row = row_at(table, number);
    for (uint32_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(row + at);
    __builtin_prefetch(row + bytes - 1);
    return row;
}

/* The row of an id, where it was guessed to be or elsewhere; NULL: there is none. */
static inline const unsigned char *row_of_guess(const struct mu__table *table,
                                                uint64_t id, const unsigned char *guessed)
{
    uint32_t row;

    if (guessed == NULL || row_id_at(guessed, 0) == id)
        return guessed;
    row = find_id_row(table, id, hash_in(table, id));
    return row == NONE ? NULL : row_at(table, row);
}

#endif
