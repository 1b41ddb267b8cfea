/* Look-ups of rows, and what they ask of memory ahead. */
#include "actors/ps/tables/pooling.h"
#include "actors/ps/tables/row_index.h"
#include "actors/ps/tables/row_values.h"

void mu__table_prefetch_index(const struct mu__table *table, const void *ids,
                              uint32_t count, uint64_t *ret_hashes)
{
    hash_batch(table, ids, count, ret_hashes);
}

void mu__table_prefetch_rows(const struct mu__table *table, const uint64_t *hashes,
                             uint32_t count, bool with_slots,
                             const unsigned char **ret_guessed)
{
    uint32_t bytes = with_slots
                         ? table->row_bytes
                         : MU__TABLE_ROW_HEAD + mu__table_values_bytes(&table->form);

    for (uint32_t i = 0; i < count; i++)
        ret_guessed[i] = prefetch_row(table, hashes[i], bytes);
}

void mu__table_lookup_guessed(const struct mu__table *table, const void *ids,
                              uint32_t count, const unsigned char *const *guessed,
                              void *rows)
{
    size_t bytes = mu__table_numbers_bytes(&table->form);
    unsigned char *to = rows;

    for (uint32_t i = 0; i < count; i++, to += bytes) {
        uint64_t id = row_id_at(ids, i);
        const unsigned char *row = row_of_guess(table, id, guessed[i]);

        if (row == NULL)
            mu__values_unheld(&table->form, id, to);
        else
            memcpy(to, row + MU__TABLE_ROW_HEAD, bytes);
    }
}

void mu__table_lookup(const struct mu__table *table, const void *ids, uint32_t count,
                      void *rows)
{
    size_t bytes = mu__table_numbers_bytes(&table->form);
    const unsigned char *guessed[BATCH] = {NULL};
    uint64_t hashes[BATCH];

    for (uint32_t i = 0; i < count; i += BATCH) {
        uint32_t some = count - i < BATCH ? count - i : BATCH;
        const unsigned char *at = (const unsigned char *)ids + i * sizeof(uint64_t);

        if (table->index != NULL) {
            mu__table_prefetch_index(table, at, some, hashes);
            mu__table_prefetch_rows(table, hashes, some, false, guessed);
        }
        mu__table_lookup_guessed(table, at, some, guessed,
                                 (unsigned char *)rows + i * bytes);
    }
}

/* ---- Sums ---- */

enum {
    POOLED_TOGETHER = 128, /* ids whose rows are found together, */
    ROWS_AHEAD = 8         /* and whose rows are asked of memory before they are added */
};

/* Rows that ids have most likely; NULL: none. */
static void guess_rows(const struct mu__table *table, const void *ids, uint32_t count,
                       const unsigned char **ret_rows)
{
    uint64_t hashes[POOLED_TOGETHER];

    hash_batch(table, ids, count, hashes);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = guess_row(table, hashes[i]);

        ret_rows[i] = row == NONE ? NULL : row_at(table, row);
    }
}

/* The numbers of an id's row, where they are, or else in `room`. */
static const void *find_numbers(const struct mu__table *table, uint64_t id,
                                const unsigned char *guessed, void *room)
{
    const unsigned char *row = row_of_guess(table, id, guessed);

    if (row == NULL)
        mu__values_unknown(&table->form, id, room);
    else if (table->form.dtype == 0)
        return row + MU__TABLE_ROW_HEAD;
    else
        mu__values_widen(&table->form, row, room);
    return room;
}

static void fetch_guessed(const unsigned char *row, uint32_t bytes)
{
    if (row == NULL)
        return;
    for (uint32_t at = 0; at < bytes; at += 64)
        __builtin_prefetch(row + at);
    __builtin_prefetch(row + bytes - 1);
}

static void pool_some(const struct mu__table *table, const struct mu__pooled *pooled,
                      unsigned char *sums)
{
    uint32_t row_bytes = MU__TABLE_ROW_HEAD + mu__table_values_bytes(&table->form);
    const unsigned char *rows[POOLED_TOGETHER + ROWS_AHEAD] = {NULL};
    float room[MU__TABLE_DIM_MAX];
    float weight = 1;
    uint32_t bag;

    if (table->index != NULL)
        guess_rows(table, pooled->ids, pooled->count, rows);
    for (uint32_t i = 0; i < ROWS_AHEAD; i++)
        fetch_guessed(rows[i], row_bytes);
    for (uint32_t i = 0; i < pooled->count; i++) {
        fetch_guessed(rows[i + ROWS_AHEAD], row_bytes);
        memcpy(&bag, pooled->bags + i * sizeof bag, sizeof bag);
        if (pooled->weights != NULL)
            memcpy(&weight, pooled->weights + i * sizeof weight, sizeof weight);
        mu__pool_add(sums + (size_t)bag * table->form.dim * sizeof(float),
                     find_numbers(table, row_id_at(pooled->ids, i), rows[i], room),
                     weight, table->form.dim);
    }
}

void mu__table_pool(const struct mu__table *table, const struct mu__pooled *pooled,
                    void *sums)
{
    struct mu__pooled some = *pooled;

    for (uint32_t left = pooled->count; left > 0; left -= some.count) {
        some.count = left < POOLED_TOGETHER ? left : POOLED_TOGETHER;
        pool_some(table, &some, sums);
        some.ids += some.count * sizeof(uint64_t);
        some.bags += some.count * sizeof(uint32_t);
        if (some.weights != NULL)
            some.weights += some.count * sizeof(float);
    }
}
