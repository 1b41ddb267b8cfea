/* Records of messages over a storage.
 *
 * A record is packed behind a gap of the codec's alignment; its head is put into the end
 * of the gap, so that one append writes all of it. Each record that is read gets a buffer
 * of its own: it is aligned there, and a kept message does not keep the file. */
#include "actors/coordination/store/journal.h"

#include "actors/coordination/store/journal_scan.h"
#include "actors/messages.h"
#include "runtime/base/crc32c.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = MU__JOURNAL_HEADER_BYTES,
    HEAD_BYTES = MU__JOURNAL_HEAD_BYTES,
    FOOT_BYTES = MU__JOURNAL_FOOT_BYTES,
    GAP_BYTES = 2 * MU__TAIL_ALIGN,
    RECORD_RETAINED_MAX = 1 << 16,  /* a larger buffer is not kept for the next record */
    NEW_BYTES_FIRST = 1 << 12   /* of a rewrite; doubles */
};

struct mu__journal {
    struct mu__storage *storage;
    const struct mu__schema *schema;
    struct mu__pool *pool;
    struct mu__buf *record;     /* the buffer for packing one */
    struct mu__buf *content;    /* of the rewrite under way */
    int rewrite_rv;             /* why it cannot be committed */
    bool rewriting;
    bool renewing;
    mu_error renew_error;       /* code 0: none */
    uint64_t renew_bytes;       /* of the renewal */
    bool unflushed;
    uint64_t bytes;
    uint64_t number;            /* of the next record */
    uint64_t content_number;    /* the same of the rewrite, or of the renewal */
    uint64_t skipped;
    struct mu__crc32c crc;
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

/* Add a message that was read, with a head of the present format. */
static int add_message_to_content(struct mu__journal *journal,
                                  const struct mu__journal_piece *piece)
{
    size_t size = HEAD_BYTES + piece->message_bytes + FOOT_BYTES;
    int rv = content_room(journal, size);
    struct mu__buf *content = journal->content;

    if (rv != 0)
        return rv;
    memcpy(content->data + content->size + HEAD_BYTES, piece->message,
           piece->message_bytes);
    mu__journal_put_frame(&journal->crc, content->data + content->size,
                          journal->content_number++, (uint32_t)piece->message_bytes);
    content->size += (uint32_t)size;
    return 0;
}

static void end_rewrite(struct mu__journal *journal)
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

/* ---- Reading ---- */

/* The state of an open. */
struct journal_reading {
    struct mu__journal *journal;
    mu__journal_visit_fn visit;
    void *owner;
    mu_error *error;
    const struct mu__buf *content;  /* NULL: the storage is empty */
    struct mu__journal_scan scan;
    uint64_t cut;
};

static int refuse_record(const struct journal_reading *r,
                         const struct mu__journal_piece *piece, int code, const char *why)
{
    return mu_error_set(r->error, code, "%s: the message at byte %zu: %s",
                        r->journal->storage->name, piece->offset, why);
}

static int decode_whole(const struct journal_reading *r,
                        const struct mu__journal_piece *piece, struct mu__buf *frame,
                        struct mu__msg **ret_msg)
{
    struct mu__journal *journal = r->journal;
    char why[256] = "";
    size_t offset = 0;
    int rv = mu__decode(journal->schema, journal->pool, frame, &offset, why, sizeof why,
                        ret_msg);

    if (rv != 0)
        return refuse_record(r, piece, rv, rv == -MU_ENOMEM ? "no memory" : why);
    if (offset == frame->size)
        return 0;
    mu__pool_put(journal->pool, *ret_msg);
    return refuse_record(r, piece, -MU_EDATALOSS, "there are bytes behind its end");
}

static int visit_frame(const struct journal_reading *r,
                       const struct mu__journal_piece *piece, struct mu__buf *frame)
{
    struct mu__msg *msg = NULL;
    int rv = decode_whole(r, piece, frame, &msg);

    if (rv != 0)
        return rv;
    if (msg == NULL) {
        r->journal->skipped++;
        return 0;
    }
    if (msg->backing == NULL)
        msg->backing = mu__buf_ref(frame);
    rv = r->visit(r->owner, msg);
    mu__pool_put(r->journal->pool, msg);
    return rv != 0 ? refuse_record(r, piece, rv, mu_strerror(rv)) : 0;
}

static int visit_record(const struct journal_reading *r,
                        const struct mu__journal_piece *piece)
{
    struct mu__buf *frame = mu__buf_new(piece->message_bytes);
    int rv;

    if (frame == NULL)
        return refuse_record(r, piece, -MU_ENOMEM, "no memory");
    memcpy(frame->data, piece->message, piece->message_bytes);
    frame->size = (uint32_t)piece->message_bytes;
    rv = visit_frame(r, piece, frame);
    mu__buf_unref(frame);
    return rv;
}

/* Up to the end, or to where it is torn. */
static int read_records(struct journal_reading *r)
{
    const char *name = r->journal->storage->name;
    struct mu__journal_piece piece;
    int rv = 0;

    while (rv == 0) {
        mu__journal_scan_next(&r->scan, &piece);
        if (piece.kind == MU__JOURNAL_END)
            return 0;
        if (piece.kind == MU__JOURNAL_RECORD) {
            rv = visit_record(r, &piece);
        } else if (piece.kind == MU__JOURNAL_TORN) {
            r->cut = piece.bytes;
            return 0;
        } else {
            mu__journal_scan_refuse(&r->scan, &piece, name, r->error);
            return -MU_EDATALOSS;
        }
    }
    return rv;
}

/* Write the same records in the present format; there is no damage. */
static int write_anew(struct journal_reading *r)
{
    struct mu__journal *journal = r->journal;
    struct mu__journal_scan scan;
    struct mu__journal_piece piece;
    int rv = 0;

    if (r->content != NULL)
        rv = mu__journal_scan_begin(&scan, r->content->data, r->content->size,
                                    journal->storage->name, r->error);
    if (rv != 0)
        return rv;
    mu__journal_rewrite_begin(journal);
    if (r->content != NULL)
        do {
            mu__journal_scan_next(&scan, &piece);
            if (piece.kind == MU__JOURNAL_RECORD && journal->rewrite_rv == 0)
                journal->rewrite_rv = add_message_to_content(journal, &piece);
        } while (piece.kind == MU__JOURNAL_RECORD);
    return mu__journal_rewrite_commit(journal, r->error);
}

static int read_content(struct journal_reading *r)
{
    struct mu__journal *journal = r->journal;
    struct mu__storage *storage = journal->storage;
    const struct mu__buf *content = r->content;
    int rv = mu__journal_scan_begin(&r->scan, content->data, content->size,
                                    storage->name, r->error);

    if (rv == 0)
        rv = read_records(r);
    if (rv != 0)
        return rv;
    if (r->scan.format != MU__JOURNAL_FORMAT)
        return write_anew(r);
    journal->bytes = content->size - r->cut;
    journal->number = r->scan.number;
    return r->cut == 0 ? 0 : storage->ops->replace(storage, content->data,
                                                   journal->bytes, r->error);
}

static int read_storage(struct journal_reading *r)
{
    struct mu__storage *storage = r->journal->storage;
    struct mu__buf *content;
    int rv = storage->ops->load(storage, r->error, &content);

    if (rv != 0)
        return rv;
    if (content == NULL)
        return write_anew(r);
    r->content = content;
    rv = read_content(r);
    mu__buf_unref(content);
    return rv;
}

/* ---- Verifying ---- */

struct use {
    uint16_t first;     /* kinds of messages */
    uint16_t last;
    uint16_t beside;    /* one more; 0: none */
    const char *what;
};

static const struct use uses[MU__JOURNAL_USES] = {
    [MU__JOURNAL_OF_CHIEF] = {MU__JOURNAL_BEGIN, MU__JOURNAL_REMOVED, MU__JOURNAL_BODY,
                              "the journal of a chief's closures (--journal)"},
    [MU__JOURNAL_OF_STORE] = {MU__STORE_BEGIN, MU__STORE_COMMIT, 0,
                              "the store of a coordination service (--store)"},
};

static bool is_of(const struct use *use, unsigned kind)
{
    return (kind >= use->first && kind <= use->last) ||
           (kind != 0 && kind == use->beside);
}

/* Kinds of a newer muster are of any use. */
static int check_use(const struct mu__journal_piece *piece, enum mu__journal_use use,
                     const char *name, mu_error *error)
{
    unsigned kind = mu__journal_piece_message(piece);

    for (unsigned i = 0; i < MU__JOURNAL_USES; i++)
        if (i != use && is_of(&uses[i], kind))
            return mu_error_set(error, -MU_EINVALID, "%s: expected %s, and this is %s: "
                                "each of them has a file of its own", name,
                                uses[use].what, uses[i].what);
    return 0;
}

static int verify_content(const struct mu__buf *content, enum mu__journal_use use,
                          const char *name, mu_error *error)
{
    struct mu__journal_scan scan;
    struct mu__journal_piece piece;
    int rv = mu__journal_scan_begin(&scan, content->data, content->size, name, error);

    if (rv != 0)
        return rv;
    do {
        mu__journal_scan_next(&scan, &piece);
        if (piece.kind == MU__JOURNAL_RECORD)
            rv = check_use(&piece, use, name, error);
    } while (piece.kind == MU__JOURNAL_RECORD && rv == 0);
    if (rv != 0 || piece.kind != MU__JOURNAL_DAMAGED)
        return rv;
    mu__journal_scan_refuse(&scan, &piece, name, error);
    return -MU_EDATALOSS;
}

int mu__journal_verify(struct mu__storage *storage, enum mu__journal_use use,
                       mu_error *ret_error)
{
    struct mu__buf *content;
    int rv = storage->ops->load(storage, ret_error, &content);

    if (rv != 0 || content == NULL)
        return rv;
    rv = verify_content(content, use, storage->name, ret_error);
    mu__buf_unref(content);
    return rv;
}

/* ---- start and end ---- */

int mu__journal_open(struct mu__storage *storage, const struct mu__schema *schema,
                     struct mu__pool *pool, mu__journal_visit_fn visit, void *owner,
                     mu_error *ret_error, uint64_t *ret_cut,
                     struct mu__journal **ret_journal)
{
    struct mu__journal *journal = calloc(1, sizeof *journal);
    struct journal_reading reading = {
        .journal = journal, .visit = visit, .owner = owner, .error = ret_error};
    int rv;

    if (journal == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: no memory for a journal",
                            storage->name);
    journal->storage = storage;
    journal->schema = schema;
    journal->pool = pool;
    mu__crc32c_init(&journal->crc);
    rv = read_storage(&reading);
    if (rv != 0) {
        mu__journal_close(journal);
        return rv;
    }
    if (ret_cut != NULL)
        *ret_cut = reading.cut;
    *ret_journal = journal;
    return 0;
}

void mu__journal_close(struct mu__journal *journal)
{
    if (journal == NULL)
        return;
    end_rewrite(journal);
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

static const char *kind_name(const struct mu__journal *journal, uint16_t kind)
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
                        journal->storage->name, kind_name(journal, msg->kind),
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

static int pack(struct mu__journal *journal, const struct mu__msg *msg, uint64_t number,
                uint8_t **ret_record, size_t *ret_size)
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
    return mu_error_set(error, -MU_EEXHAUSTED, "%s: the journal is full: %" PRIu64
                        " bytes of %" PRIu32, journal->storage->name, journal->bytes,
                        UINT32_MAX);
}

int mu__journal_reserve(struct mu__journal *journal, uint64_t bytes, mu_error *ret_error)
{
    struct mu__storage *storage = journal->storage;

    if (journal->bytes + bytes > UINT32_MAX)
        return refuse_full(journal, ret_error);
    return storage->ops->reserve == NULL ? 0 : storage->ops->reserve(storage, bytes,
                                                                     ret_error);
}

static int add_to_storage(struct mu__journal *journal, const void *data, size_t size,
                          mu_error *error)
{
    struct mu__storage *storage = journal->storage;
    int rv;

    if (journal->bytes + size > UINT32_MAX)
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
    if (journal->renew_bytes + size > UINT32_MAX)
        return mu_error_set(&journal->renew_error, -MU_EEXHAUSTED, "%s: there is more "
                            "than %" PRIu32 " bytes to keep", storage->name, UINT32_MAX);
    mu__journal_put_frame(&journal->crc, record, journal->content_number,
                          (uint32_t)(size - HEAD_BYTES - FOOT_BYTES));
    rv = storage->ops->renew_append(storage, record, size, &journal->renew_error);
    if (rv != 0)
        return rv;
    journal->content_number++;
    journal->renew_bytes += size;
    return 0;
}

static int append(struct mu__journal *journal, const struct mu__msg *msg,
                  mu_error *error)
{
    uint8_t *record = NULL;
    size_t size = 0;
    uint64_t number = journal->rewriting ? journal->content_number : journal->number;
    int rv = pack(journal, msg, number, &record, &size);

    if (rv != 0)
        return refuse_message(journal, msg, rv, error);
    if (!journal->rewriting) {
        rv = add_to_storage(journal, record, size, error);
        if (journal->renewing)
            (void)add_to_renewal(journal, record, size);    /* its commit fails */
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
    int rv = append(journal, msg, ret_error);

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

    end_rewrite(journal);
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
        (void)mu_error_set(ret_error, rv, "%s: a message could not be written anew: %s; "
                           "the old journal stays", storage->name, mu_strerror(rv));
    else
        rv = storage->ops->replace(storage, content->data, content->size, ret_error);
    if (rv == 0) {
        journal->bytes = content->size;
        journal->number = journal->content_number;
        journal->unflushed = false;
    }
    end_rewrite(journal);
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
    int rv = pack(journal, msg, journal->content_number, &record, &size);

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
