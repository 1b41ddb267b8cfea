/* Look-ups of rows, and what they ask of memory ahead. */
#include "actors/ps/tables/row_index.h"
#include "actors/ps/tables/row_values.h"

void mu__table_prefetch_index(const struct mu__table *table, const void *ids,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(
            &table->index[slot_of(table, hash_in(table, row_id_at(ids, i)))]);
}

void mu__table_prefetch_slabs(const struct mu__table *table, const void *ids,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = guess_row(table, hash_in(table, row_id_at(ids, i)));

        if (row != NONE)
            __builtin_prefetch(&table->slabs[row / table->slab_rows]);
    }
}

void mu__table_prefetch_rows(const struct mu__table *table, const void *ids,
                             uint32_t count, bool with_slots)
{
    uint32_t bytes = with_slots
                         ? table->row_bytes
                         : MU__TABLE_ROW_HEAD + mu__table_values_bytes(&table->form);

    for (uint32_t i = 0; i < count; i++)
        prefetch_row(table, hash_in(table, row_id_at(ids, i)), bytes);
}

static void look_up_batch(const struct mu__table *table, const void *ids, uint32_t count,
                          unsigned char *rows)
{
    size_t bytes = table->form.dim * sizeof(float);
    uint64_t hashes[BATCH];

    hash_batch(table, ids, count, hashes);
    for (uint32_t i = 0; i < count; i++)
        prefetch_row(table, hashes[i],
                     MU__TABLE_ROW_HEAD + mu__table_values_bytes(&table->form));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = find_id_row(table, row_id_at(ids, i), hashes[i]);

        if (row == NONE)
            mu__values_unknown(&table->form, row_id_at(ids, i), rows + i * bytes);
        else
            mu__values_widen(&table->form, row_at(table, row), rows + i * bytes);
    }
}

void mu__table_lookup(const struct mu__table *table, const void *ids, uint32_t count,
                      void *rows)
{
    size_t bytes = table->form.dim * sizeof(float);

    for (uint32_t i = 0; i < count; i += BATCH) {
        uint32_t some = count - i < BATCH ? count - i : BATCH;
        const unsigned char *at = (const unsigned char *)ids + i * sizeof(uint64_t);
        unsigned char *to = (unsigned char *)rows + i * bytes;

        if (table->index != NULL)
            look_up_batch(table, at, some, to);
        for (uint32_t k = 0; table->index == NULL && k < some; k++)
            mu__values_unknown(&table->form, row_id_at(at, k), to + k * bytes);
    }
}
