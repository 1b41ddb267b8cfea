#include "actors/ps/tables/set_copies.h"

#include <stdlib.h>
#include <string.h>

static uint64_t copied_id_at(struct mu__view ids, uint32_t i)
{
    uint64_t id;

    memcpy(&id, (const uint8_t *)ids.data + (size_t)i * sizeof id, sizeof id);
    return id;
}

static int add_set_copy(struct mu__set_copies *copies, const struct mu__table_set *set,
                        uint64_t id, const struct mu__table_copy_memory *memory,
                        mu_error *ret_error)
{
    struct mu__named_table *table = mu__tables_find(set, id);
    struct mu__set_copy *added = &copies->tables[copies->count];

    if (table == NULL)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "the server does not have its part of the table");
    if (mu__set_copies_find(copies, id) != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a table is in it twice");
    added->id = id;
    if (mu__table_copy_begin(&added->rows, &table->part, memory) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    copies->count++;
    return 0;
}

int mu__set_copies_begin(struct mu__set_copies *copies, const struct mu__table_set *set,
                         struct mu__view ids, const struct mu__table_copy_memory *memory,
                         mu_error *ret_error)
{
    uint32_t count = ids.size / MU__SET_COPIES_ID_BYTES;
    int rv = 0;

    *copies = (struct mu__set_copies){.count = 0};
    if (count == 0)
        return 0;
    if (count > MU__TABLES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "more than %d tables",
                            MU__TABLES_MAX);
    copies->tables = calloc(count, sizeof *copies->tables);
    if (copies->tables == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    for (uint32_t i = 0; rv == 0 && i < count; i++)
        rv = add_set_copy(copies, set, copied_id_at(ids, i), memory, ret_error);
    if (rv != 0)
        mu__set_copies_end(copies);
    return rv;
}

void mu__set_copies_end(struct mu__set_copies *copies)
{
    for (uint32_t i = 0; i < copies->count; i++)
        mu__table_copy_end(&copies->tables[i].rows);
    free(copies->tables);
    *copies = (struct mu__set_copies){.count = 0};
}

struct mu__set_copy *mu__set_copies_find(const struct mu__set_copies *copies, uint64_t id)
{
    for (uint32_t i = 0; i < copies->count; i++)
        if (copies->tables[i].id == id)
            return &copies->tables[i];
    return NULL;
}

uint32_t mu__set_copies_unread(const struct mu__set_copies *copies)
{
    uint32_t unread = 0;

    for (uint32_t i = 0; i < copies->count; i++)
        unread += copies->tables[i].rows.taken < copies->tables[i].rows.rows;
    return unread;
}

uint64_t mu__set_copies_refused(const struct mu__set_copies *copies)
{
    for (uint32_t i = 0; i < copies->count; i++)
        if (copies->tables[i].rows.refused != 0)
            return copies->tables[i].rows.refused;
    return 0;
}

uint8_t *mu__set_copies_sizes(const struct mu__table_set *set, struct mu__view ids,
                              uint32_t *ret_size)
{
    uint32_t count = ids.size / MU__SET_COPIES_ID_BYTES;
    uint8_t *sizes = malloc((size_t)count * MU__SET_COPIES_SIZE_BYTES + 1);

    for (uint32_t i = 0; sizes != NULL && i < count; i++) {
        const struct mu__named_table *table = mu__tables_find(set, copied_id_at(ids, i));
        uint32_t rows = table == NULL ? 0 : table->part.rows;
        uint64_t bytes = table == NULL ? 0 : table->part.bytes;
        uint8_t *at = sizes + (size_t)i * MU__SET_COPIES_SIZE_BYTES;

        memcpy(at, &rows, sizeof rows);
        memcpy(at + sizeof rows, &bytes, sizeof bytes);
    }
    *ret_size = count * MU__SET_COPIES_SIZE_BYTES;
    return sizes;
}

struct mu__set_copies_size mu__set_copies_size_at(const uint8_t *sizes, size_t i)
{
    const uint8_t *at = sizes + i * MU__SET_COPIES_SIZE_BYTES;
    struct mu__set_copies_size size;

    memcpy(&size.rows, at, sizeof size.rows);
    memcpy(&size.bytes, at + sizeof size.rows, sizeof size.bytes);
    return size;
}
