/* Writing records of messages to a storage; journal_open.c reads them.
 *
 * A record is packed behind a gap of the codec's alignment; its head is put into the end
 * of the gap, so that one append writes all of it. */
#include "actors/coordination/store/journal_file.h"

#include "actors/messages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = MU__JOURNAL_HEADER_BYTES,
    HEAD_BYTES = MU__JOURNAL_HEAD_BYTES,
    FOOT_BYTES = MU__JOURNAL_FOOT_BYTES,
    GAP_BYTES = 2 * MU__TAIL_ALIGN,
    RECORD_RETAINED_MAX = 1 << 16, /* a larger buffer is not kept for the next record */
    NEW_BYTES_FIRST = 1 << 12      /* of a rewrite; doubles */
};

/* ---- The new content ---- */

/* Make room for `size` more bytes of the new content. */
static int content_room(struct mu__journal *journal, size_t size)
{
    struct mu__buf *old = journal->content;
    uint64_t used = old == NULL ? 0 : old->size;
    uint64_t capacity = old == NULL ? NEW_BYTES_FIRST : old->capacity;
    struct mu__buf *grown;

    if (used + size > UINT32_MAX)
        return -MU_EEXHAUSTED;
    while (capacity < used + size)
        capacity *= 2;
    if (old != NULL && capacity == old->capacity)
        return 0;
    grown = mu__buf_new(capacity < UINT32_MAX ? capacity : UINT32_MAX);
    if (grown == NULL)
        return -MU_ENOMEM;
    if (used > 0)
        memcpy(grown->data, old->data, used);
    grown->size = (uint32_t)used;
    mu__buf_unref(old);
    journal->content = grown;
    return 0;
}

static int add_to_content(struct mu__journal *journal, const void *data, size_t size)
{
    struct mu__buf *content;
    int rv = content_room(journal, size);

    if (rv != 0)
        return rv;
    content = journal->content;
    memcpy(content->data + content->size, data, size);
    content->size += (uint32_t)size;
    return 0;
}

void mu__journal_rewrite_record(struct mu__journal *journal, const void *message,
                                size_t message_bytes)
{
    size_t size = HEAD_BYTES + message_bytes + FOOT_BYTES;
    struct mu__buf *content;

    if (journal->rewrite_rv == 0)
        journal->rewrite_rv = content_room(journal, size);
    if (journal->rewrite_rv != 0)
        return;
    content = journal->content;
    memcpy(content->data + content->size + HEAD_BYTES, message, message_bytes);
    mu__journal_put_frame(&journal->crc, content->data + content->size,
                          journal->content_number++, (uint32_t)message_bytes);
    content->size += (uint32_t)size;
}

static void clear_rewrite(struct mu__journal *journal)
{
    mu__buf_unref(journal->content);
    journal->content = NULL;
    journal->rewriting = false;
    journal->rewrite_rv = 0;
}

static void end_renewal(struct mu__journal *journal)
{
    if (journal->renewing)
        journal->storage->ops->renew_drop(journal->storage);
    journal->renewing = false;
    journal->renew_error = (mu_error){.code = 0};
}

/* ---- start and end ---- */

void mu__journal_close(struct mu__journal *journal)
{
    if (journal == NULL)
        return;
    clear_rewrite(journal);
    end_renewal(journal);
    mu__buf_unref(journal->record);
    free(journal);
}

uint64_t mu__journal_bytes(const struct mu__journal *journal)
{
    return journal->bytes;
}

uint64_t mu__journal_skipped(const struct mu__journal *journal)
{
    return journal->skipped;
}

/* ---- Writing ---- */

static const char *get_record_kind_name(const struct mu__journal *journal, uint16_t kind)
{
    const struct mu__schema *schema = journal->schema;

    if (kind >= schema->rows_count || schema->rows[kind].name == NULL)
        return "unknown kind";
    return schema->rows[kind].name;
}

static int refuse_message(const struct mu__journal *journal, const struct mu__msg *msg,
                          int code, mu_error *error)
{
    return mu_error_set(error, code, "%s: cannot keep a message %s: %s",
                        journal->storage->name, get_record_kind_name(journal, msg->kind),
                        mu_strerror(code));
}

/* Make the buffer fit records of up to `bytes`. */
static int record_room(struct mu__journal *journal, size_t bytes)
{
    if (journal->record != NULL && journal->record->capacity >= bytes)
        return 0;
    mu__buf_unref(journal->record);
    journal->record = mu__buf_new(bytes);
    return journal->record == NULL ? -MU_ENOMEM : 0;
}

static int pack_record(struct mu__journal *journal, const struct mu__msg *msg,
                       uint64_t number, uint8_t **ret_record, size_t *ret_size)
{
    size_t bound = mu__encode_bound(journal->schema, msg);
    struct mu__buf *buf;
    uint8_t *record;
    size_t size;
    int rv = record_room(journal, GAP_BYTES + bound + FOOT_BYTES);

    if (rv != 0)
        return rv;
    buf = journal->record;
    buf->size = GAP_BYTES;
    rv = mu__encode(journal->schema, msg, buf);
    if (rv != 0)
        return rv;
    if (buf->capacity - buf->size < FOOT_BYTES)
        return -MU_EEXHAUSTED;
    record = buf->data + GAP_BYTES - HEAD_BYTES;
    size = buf->size - GAP_BYTES;
    mu__journal_put_frame(&journal->crc, record, number, (uint32_t)size);
    *ret_record = record;
    *ret_size = HEAD_BYTES + size + FOOT_BYTES;
    return 0;
}

static int refuse_full(const struct mu__journal *journal, mu_error *error)
{
    return mu_error_set(error, -MU_EEXHAUSTED,
                        "%s: the journal is full: %" PRIu64 " bytes of %" PRIu64,
                        journal->storage->name, journal->bytes, journal->bytes_max);
}

void mu__journal_set_bound(struct mu__journal *journal, uint64_t bytes_max)
{
    journal->bytes_max = bytes_max;
}

int mu__journal_reserve(struct mu__journal *journal, uint64_t bytes, mu_error *ret_error)
{
    struct mu__storage *storage = journal->storage;

    if (journal->bytes + bytes > journal->bytes_max)
        return refuse_full(journal, ret_error);
    return storage->ops->reserve == NULL
               ? 0
               : storage->ops->reserve(storage, bytes, ret_error);
}

static int add_to_storage(struct mu__journal *journal, const void *data, size_t size,
                          mu_error *error)
{
    struct mu__storage *storage = journal->storage;
    int rv;

    if (journal->bytes + size > journal->bytes_max)
        return refuse_full(journal, error);
    rv = storage->ops->append(storage, data, size, error);
    if (rv != 0)
        return rv;
    journal->bytes += size;
    journal->number++;
    journal->unflushed = true;
    return 0;
}

/* A packed record, under the number that it has in the renewal. */
static int add_to_renewal(struct mu__journal *journal, uint8_t *record, size_t size)
{
    struct mu__storage *storage = journal->storage;
    int rv;

    if (journal->renew_error.code != 0)
        return journal->renew_error.code;
    if (journal->renew_bytes + size > journal->bytes_max)
        return mu_error_set(&journal->renew_error, -MU_EEXHAUSTED,
                            "%s: there is more "
                            "than %" PRIu64 " bytes to keep",
                            storage->name, journal->bytes_max);
    mu__journal_put_frame(&journal->crc, record, journal->content_number,
                          (uint32_t)(size - HEAD_BYTES - FOOT_BYTES));
    rv = storage->ops->renew_append(storage, record, size, &journal->renew_error);
    if (rv != 0)
        return rv;
    journal->content_number++;
    journal->renew_bytes += size;
    return 0;
}

static int append_message(struct mu__journal *journal, const struct mu__msg *msg,
                          bool renews, mu_error *error)
{
    uint8_t *record = NULL;
    size_t size = 0;
    uint64_t number = journal->rewriting ? journal->content_number : journal->number;
    int rv = pack_record(journal, msg, number, &record, &size);

    if (rv != 0)
        return refuse_message(journal, msg, rv, error);
    if (!journal->rewriting) {
        rv = add_to_storage(journal, record, size, error);
        if (renews)
            (void)add_to_renewal(journal, record, size); /* its commit fails */
        return rv;
    }
    rv = add_to_content(journal, record, size);
    if (rv == 0)
        journal->content_number++;
    return rv == 0 ? 0 : refuse_message(journal, msg, rv, error);
}

static void drop_large_record(struct mu__journal *journal)
{
    if (journal->record == NULL || journal->record->capacity <= RECORD_RETAINED_MAX)
        return;
    mu__buf_unref(journal->record);
    journal->record = NULL;
}

int mu__journal_append(struct mu__journal *journal, const struct mu__msg *msg,
                       mu_error *ret_error)
{
    int rv = append_message(journal, msg, journal->renewing, ret_error);

    if (rv != 0 && journal->rewriting && journal->rewrite_rv == 0)
        journal->rewrite_rv = rv;
    drop_large_record(journal);
    return rv;
}

int mu__journal_flush(struct mu__journal *journal, mu_error *ret_error)
{
    struct mu__storage *storage = journal->storage;
    int rv;

    if (!journal->unflushed)
        return 0;
    rv = storage->ops->flush(storage, ret_error);
    if (rv == 0)
        journal->unflushed = false;
    return rv;
}

void mu__journal_rewrite_begin(struct mu__journal *journal)
{
    uint8_t header[HEADER_BYTES];

    clear_rewrite(journal);
    end_renewal(journal);
    journal->rewriting = true;
    journal->content_number = 1;
    mu__journal_put_header(header);
    journal->rewrite_rv = add_to_content(journal, header, sizeof header);
}

int mu__journal_rewrite_commit(struct mu__journal *journal, mu_error *ret_error)
{
    struct mu__storage *storage = journal->storage;
    const struct mu__buf *content = journal->content;
    int rv = journal->rewrite_rv;

    assert(journal->rewriting);
    if (rv != 0)
        (void)mu_error_set(ret_error, rv,
                           "%s: a message could not be written anew: %s; "
                           "the old journal stays",
                           storage->name, mu_strerror(rv));
    else
        rv = storage->ops->replace(storage, content->data, content->size, ret_error);
    if (rv == 0) {
        journal->bytes = content->size;
        journal->number = journal->content_number;
        journal->unflushed = false;
    }
    clear_rewrite(journal);
    return rv;
}

/* ---- Renewing ---- */

int mu__journal_renew_begin(struct mu__journal *journal, mu_error *ret_error)
{
    struct mu__storage *storage = journal->storage;
    uint8_t header[HEADER_BYTES];
    int rv;

    end_renewal(journal);
    rv = storage->ops->renew(storage, ret_error);
    if (rv != 0)
        return rv;
    journal->renewing = true;
    journal->content_number = 1;
    journal->renew_bytes = sizeof header;
    mu__journal_put_header(header);
    rv = storage->ops->renew_append(storage, header, sizeof header, ret_error);
    if (rv != 0)
        end_renewal(journal);
    return rv;
}

int mu__journal_renew_append(struct mu__journal *journal, const struct mu__msg *msg,
                             mu_error *ret_error)
{
    uint8_t *record = NULL;
    size_t size = 0;
    int rv = pack_record(journal, msg, journal->content_number, &record, &size);

    assert(journal->renewing);
    if (rv == 0)
        rv = add_to_renewal(journal, record, size);
    else if (journal->renew_error.code == 0)
        (void)refuse_message(journal, msg, rv, &journal->renew_error);
    if (rv != 0)
        *ret_error = journal->renew_error;
    drop_large_record(journal);
    return rv;
}

int mu__journal_append_old(struct mu__journal *journal, const struct mu__msg *msg,
                           mu_error *ret_error)
{
    int rv = append_message(journal, msg, false, ret_error);

    assert(!journal->rewriting);
    drop_large_record(journal);
    return rv;
}

bool mu__journal_renew_is_busy(const struct mu__journal *journal)
{
    return journal->storage->ops->renew_is_busy(journal->storage);
}

int mu__journal_renew_commit(struct mu__journal *journal, mu_error *ret_error)
{
    struct mu__storage *storage = journal->storage;
    int rv = journal->renew_error.code;

    assert(journal->renewing);
    if (rv != 0)
        *ret_error = journal->renew_error;
    else
        rv = storage->ops->renew_commit(storage, ret_error);
    if (rv == MU__STORAGE_NOT_YET)
        return rv;
    journal->renewing = journal->renew_error.code != 0;
    if (rv == 0) {
        journal->bytes = journal->renew_bytes;
        journal->number = journal->content_number;
        journal->unflushed = false;
    }
    end_renewal(journal);
    return rv;
}
