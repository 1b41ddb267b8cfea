#include "actors/ps/tables/copies/set_copies.h"

#include <stdlib.h>
#include <string.h>

static uint64_t copied_id_at(struct mu__view ids, uint32_t i)
{
    uint64_t id;

    memcpy(&id, (const uint8_t *)ids.data + (size_t)i * sizeof id, sizeof id);
    return id;
}

static bool copy_deleted(struct mu__set_copy *copy, const struct mu__table_mark *since)
{
    size_t bytes = since->deleted_count * sizeof *copy->deleted;

    if (bytes == 0)
        return true;
    copy->deleted = malloc(bytes);
    if (copy->deleted == NULL)
        return false;
    memcpy(copy->deleted, since->deleted, bytes);
    copy->deleted_count = since->deleted_count;
    return true;
}

static int add_set_copy(struct mu__set_copies *copies, const struct mu__table_set *set,
                        uint64_t id, const struct mu__set_copies_marks *marks,
                        const struct mu__table_copy_memory *memory, mu_error *ret_error)
{
    struct mu__named_table *table = mu__tables_find(set, id);
    struct mu__set_copy *added = &copies->tables[copies->count];
    const struct mu__table_mark *since;

    if (table == NULL)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "the server does not have its part of the table");
    if (mu__set_copies_find(copies, id) != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a table is in it twice");
    since = mu__marks_find(&table->part.marks, marks->since);
    added->id = id;
    if (since != NULL && !copy_deleted(added, since))
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    if (mu__table_copy_begin(&added->rows, &table->part, since, memory) != 0) {
        free(added->deleted);
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    }
    if (marks->mark != 0)
        mu__marks_set(&table->part.marks, marks->since, marks->mark, table->part.rows);
    copies->count++;
    return 0;
}

int mu__set_copies_begin(struct mu__set_copies *copies, const struct mu__table_set *set,
                         struct mu__view ids, const struct mu__set_copies_marks *marks,
                         const struct mu__table_copy_memory *memory, mu_error *ret_error)
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
        rv = add_set_copy(copies, set, copied_id_at(ids, i), marks, memory, ret_error);
    if (rv != 0)
        mu__set_copies_end(copies);
    return rv;
}

void mu__set_copies_end(struct mu__set_copies *copies)
{
    for (uint32_t i = 0; i < copies->count; i++) {
        mu__table_copy_end(&copies->tables[i].rows);
        free(copies->tables[i].deleted);
    }
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

static bool is_all_taken(const struct mu__set_copy *copy)
{
    return copy->rows.taken == copy->rows.rows &&
           (copy->deleted_count == 0 || copy->is_taken);
}

uint32_t mu__set_copies_unread(const struct mu__set_copies *copies)
{
    uint32_t unread = 0;

    for (uint32_t i = 0; i < copies->count; i++)
        unread += !is_all_taken(&copies->tables[i]);
    return unread;
}

static bool is_next_piece(const struct mu__set_copy *copy, uint64_t offset, uint32_t size)
{
    const struct mu__table_copy *rows = &copy->rows;
    uint32_t row_bytes = rows->table->row_bytes;
    uint32_t left = rows->rows - rows->taken;

    if (size == 0 || offset != (uint64_t)rows->taken * row_bytes)
        return false;
    if (left > 0)
        return size % row_bytes == 0 && size / row_bytes <= left;
    return !copy->is_taken && size == copy->deleted_count * sizeof *copy->deleted;
}

int mu__set_copy_read(const struct mu__set_copy *copy, uint64_t offset, uint32_t size,
                      mu_error *ret_error, uint8_t **ret_data)
{
    uint8_t *data;

    if (!is_next_piece(copy, offset, size))
        return mu_error_set(ret_error, -MU_EABORTED,
                            "these rows are not the next ones of the snapshot");
    data = malloc(size);
    if (data == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    if (copy->rows.taken < copy->rows.rows)
        mu__table_copy_read(&copy->rows, size / copy->rows.table->row_bytes, data);
    else
        memcpy(data, copy->deleted, size);
    *ret_data = data;
    return 0;
}

bool mu__set_copy_take(struct mu__set_copy *copy, uint32_t size)
{
    if (copy->rows.taken < copy->rows.rows)
        mu__table_copy_take(&copy->rows, size / copy->rows.table->row_bytes);
    else
        copy->is_taken = true;
    return is_all_taken(copy);
}

uint64_t mu__set_copies_refused(const struct mu__set_copies *copies)
{
    for (uint32_t i = 0; i < copies->count; i++)
        if (copies->tables[i].rows.refused != 0)
            return copies->tables[i].rows.refused;
    return 0;
}

static struct mu__set_copies_size size_since(const struct mu__named_table *table,
                                             uint64_t since)
{
    const struct mu__table *part = &table->part;
    const struct mu__table_mark *mark = mu__marks_find(&part->marks, since);

    return (struct mu__set_copies_size){
        .rows = mark == NULL ? part->rows : mu__table_count_changed(part, mark),
        .deleted = mark == NULL ? 0 : mark->deleted_count,
        .is_whole = mark == NULL,
        .bytes = part->bytes,
        .dropped = part->state.dropped,
        .refused = part->state.refused,
        .expired = part->state.expired,
        .evicted = part->state.evicted};
}

static uint8_t *put_size32(uint8_t *to, uint32_t size)
{
    memcpy(to, &size, sizeof size);
    return to + sizeof size;
}

static uint8_t *put_size64(uint8_t *to, uint64_t size)
{
    memcpy(to, &size, sizeof size);
    return to + sizeof size;
}

uint8_t *mu__set_copies_sizes(const struct mu__table_set *set, struct mu__view ids,
                              uint64_t since, uint32_t *ret_size)
{
    uint32_t count = ids.size / MU__SET_COPIES_ID_BYTES;
    uint8_t *sizes = malloc((size_t)count * MU__SET_COPIES_SIZE_BYTES + 1);
    uint8_t *at = sizes;

    for (uint32_t i = 0; sizes != NULL && i < count; i++) {
        const struct mu__named_table *table = mu__tables_find(set, copied_id_at(ids, i));
        struct mu__set_copies_size size = {.rows = 0};

        if (table != NULL)
            size = size_since(table, since);
        at = put_size32(put_size32(put_size32(at, size.rows), size.deleted),
                        size.is_whole);
        at = put_size64(put_size64(at, size.bytes), size.dropped);
        at = put_size64(put_size64(at, size.refused), size.expired);
        at = put_size64(at, size.evicted);
    }
    *ret_size = count * MU__SET_COPIES_SIZE_BYTES;
    return sizes;
}

struct mu__set_copies_size mu__set_copies_size_at(const uint8_t *sizes, size_t i)
{
    const uint8_t *at = sizes + i * MU__SET_COPIES_SIZE_BYTES;
    struct mu__set_copies_size size;

    memcpy(&size.rows, at, sizeof size.rows);
    memcpy(&size.deleted, at + 4, sizeof size.deleted);
    memcpy(&size.is_whole, at + 8, sizeof size.is_whole);
    memcpy(&size.bytes, at + 12, sizeof size.bytes);
    memcpy(&size.dropped, at + 20, sizeof size.dropped);
    memcpy(&size.refused, at + 28, sizeof size.refused);
    memcpy(&size.expired, at + 36, sizeof size.expired);
    memcpy(&size.evicted, at + 44, sizeof size.evicted);
    return size;
}
