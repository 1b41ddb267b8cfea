/* Records of messages over a storage.
 *
 * A record is packed behind a gap of 16 bytes, so that the codec's alignment holds; its
 * size and sum are put into the end of the gap, and then all of it is one append. When it
 * is read, each record gets a buffer of its own: it is aligned there, and who keeps a
 * message does not keep the file. */
#include "actors/journal.h"

#include "runtime/crc32c.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC_BYTES = 8,
    HEADER_BYTES = MAGIC_BYTES + 4,
    FORMAT = 1,
    PREFIX_BYTES = 8,           /* size and sum */
    GAP_BYTES = MU__TAIL_ALIGN,
    MESSAGE_BYTES_MIN = 8,      /* what the codec writes before a head */
    RECORD_KEPT_MAX = 1 << 16,  /* a larger buffer is not kept for the next record */
    NEW_BYTES_FIRST = 1 << 12   /* of a rewrite; doubles */
};

static const char magic[MAGIC_BYTES] = {'m', 'u', 's', 't', 'r', 'j', 'n', 'l'};

struct mu__journal {
    struct mu__storage *storage;
    const struct mu__schema *schema;
    struct mu__pool *pool;
    struct mu__buf *record;     /* where one is packed */
    struct mu__buf *content;    /* of the rewrite under way */
    int rewrite_rv;             /* why it cannot be committed */
    bool rewriting;
    bool unflushed;
    uint64_t bytes;
    uint64_t skipped;
    struct mu__crc32c crc;
};

static uint32_t load_little32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static void store_little32(uint8_t *out, uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

static uint32_t sum_of(const struct mu__journal *journal, const uint8_t *record,
                       size_t size)
{
    uint32_t sum = mu__crc32c_add(&journal->crc, 0, record, 4);

    return mu__crc32c_add(&journal->crc, sum, record + PREFIX_BYTES, size);
}

static void make_header(uint8_t header[HEADER_BYTES])
{
    memcpy(header, magic, MAGIC_BYTES);
    store_little32(header + MAGIC_BYTES, FORMAT);
}

/* ---- Reading ---- */

/* What an open works with. */
struct reading {
    struct mu__journal *journal;
    mu__journal_visit_fn visit;
    void *owner;
    mu_error *error;
    const struct mu__buf *content;
    size_t good;                /* bytes of the content that stay */
};

static int refuse_record(const struct reading *r, int code, const char *why)
{
    return mu_error_set(r->error, code, "%s: the message at byte %zu: %s",
                        r->journal->storage->name, r->good, why);
}

/* A first part of a header is the torn begin of a journal, of which nothing is left. */
static int check_header(struct reading *r)
{
    const struct mu__buf *content = r->content;
    const char *name = r->journal->storage->name;
    uint8_t header[HEADER_BYTES];
    uint32_t format;

    make_header(header);
    if (content->size < HEADER_BYTES && memcmp(content->data, header, content->size) == 0)
        return 0;
    if (content->size < HEADER_BYTES || memcmp(content->data, magic, MAGIC_BYTES) != 0)
        return mu_error_set(r->error, -MU_EDATALOSS, "%s: expected a journal of muster, "
                            "found something else, which is left as it is", name);
    format = load_little32(content->data + MAGIC_BYTES);
    if (format != FORMAT)
        return mu_error_set(r->error, -MU_EDATALOSS, "%s: a journal of format %" PRIu32
                            ", expected %d; it is left as it is", name, format, FORMAT);
    r->good = HEADER_BYTES;
    return 0;
}

/* Bytes of the message of the record at `good`; 0 when it is not whole or damaged. */
static size_t whole_message_bytes(const struct reading *r)
{
    size_t left = r->content->size - r->good;
    const uint8_t *record = r->content->data + r->good;
    size_t size;

    if (left < PREFIX_BYTES)
        return 0;
    size = load_little32(record);
    if (size < MESSAGE_BYTES_MIN || size > left - PREFIX_BYTES ||
        load_little32(record + 4) != sum_of(r->journal, record, size))
        return 0;
    return size;
}

static int decode_whole(const struct reading *r, struct mu__buf *frame,
                        struct mu__msg **ret_msg)
{
    struct mu__journal *journal = r->journal;
    char why[256] = "";
    size_t offset = 0;
    int rv = mu__decode(journal->schema, journal->pool, frame, &offset, why, sizeof why,
                        ret_msg);

    if (rv != 0)
        return refuse_record(r, rv, rv == -MU_ENOMEM ? "no memory" : why);
    if (offset == frame->size)
        return 0;
    mu__pool_put(journal->pool, *ret_msg);
    return refuse_record(r, -MU_EDATALOSS, "there are bytes behind its end");
}

static int visit_message(const struct reading *r, struct mu__buf *frame)
{
    struct mu__msg *msg = NULL;
    int rv = decode_whole(r, frame, &msg);

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
    return rv != 0 ? refuse_record(r, rv, mu_strerror(rv)) : 0;
}

static int read_messages(struct reading *r)
{
    size_t size;

    while ((size = whole_message_bytes(r)) > 0) {
        struct mu__buf *frame = mu__buf_new(size);
        int rv;

        if (frame == NULL)
            return refuse_record(r, -MU_ENOMEM, "no memory");
        memcpy(frame->data, r->content->data + r->good + PREFIX_BYTES, size);
        frame->size = (uint32_t)size;
        rv = visit_message(r, frame);
        mu__buf_unref(frame);
        if (rv != 0)
            return rv;
        r->good += PREFIX_BYTES + size;
    }
    return 0;
}

/* A new journal is only its header, and so is one that was torn before its end. */
static int write_header(struct reading *r)
{
    struct mu__storage *storage = r->journal->storage;
    uint8_t header[HEADER_BYTES];

    make_header(header);
    r->good = HEADER_BYTES;
    return storage->ops->replace(storage, header, sizeof header, r->error);
}

static int read_content(struct reading *r)
{
    struct mu__storage *storage = r->journal->storage;
    int rv = check_header(r);

    if (rv == 0 && r->good > 0)
        rv = read_messages(r);
    if (rv != 0 || r->good == r->content->size)
        return rv;
    if (r->good == 0)
        return write_header(r);
    return storage->ops->replace(storage, r->content->data, r->good, r->error);
}

static int read_storage(struct reading *r, uint64_t *ret_cut)
{
    struct mu__storage *storage = r->journal->storage;
    struct mu__buf *content;
    int rv = storage->ops->load(storage, r->error, &content);

    if (rv != 0)
        return rv;
    *ret_cut = 0;
    if (content == NULL)
        return write_header(r);
    r->content = content;
    rv = read_content(r);
    if (content->size > r->good)
        *ret_cut = content->size - r->good;
    else if (content->size < r->good)
        *ret_cut = content->size;       /* a torn header, which was made whole */
    mu__buf_unref(content);
    return rv;
}

/* ---- Its life ---- */

int mu__journal_open(struct mu__storage *storage, const struct mu__schema *schema,
                     struct mu__pool *pool, mu__journal_visit_fn visit, void *owner,
                     mu_error *ret_error, uint64_t *ret_cut,
                     struct mu__journal **ret_journal)
{
    struct mu__journal *journal = calloc(1, sizeof *journal);
    struct reading reading = {journal, visit, owner, ret_error, NULL, 0};
    uint64_t cut;
    int rv;

    if (journal == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: no memory for a journal",
                            storage->name);
    journal->storage = storage;
    journal->schema = schema;
    journal->pool = pool;
    mu__crc32c_init(&journal->crc);
    rv = read_storage(&reading, &cut);
    if (rv != 0) {
        mu__journal_close(journal);
        return rv;
    }
    journal->bytes = reading.good;
    if (ret_cut != NULL)
        *ret_cut = cut;
    *ret_journal = journal;
    return 0;
}

static void end_rewrite(struct mu__journal *journal)
{
    mu__buf_unref(journal->content);
    journal->content = NULL;
    journal->rewriting = false;
    journal->rewrite_rv = 0;
}

void mu__journal_close(struct mu__journal *journal)
{
    if (journal == NULL)
        return;
    end_rewrite(journal);
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

/* A buffer for records of up to `bytes`, the last one's if that will do. */
static int record_room(struct mu__journal *journal, size_t bytes)
{
    if (journal->record != NULL && journal->record->capacity >= bytes)
        return 0;
    mu__buf_unref(journal->record);
    journal->record = mu__buf_new(bytes);
    return journal->record == NULL ? -MU_ENOMEM : 0;
}

/* The whole record stands in journal->record behind the gap but for its prefix. */
static int pack(struct mu__journal *journal, const struct mu__msg *msg,
                const uint8_t **ret_record, size_t *ret_size)
{
    size_t bound = mu__encode_bound(journal->schema, msg);
    struct mu__buf *buf;
    uint8_t *record;
    size_t size;
    int rv = record_room(journal, GAP_BYTES + bound);

    if (rv != 0)
        return rv;
    buf = journal->record;
    buf->size = GAP_BYTES;
    rv = mu__encode(journal->schema, msg, buf);
    if (rv != 0)
        return rv;
    record = buf->data + GAP_BYTES - PREFIX_BYTES;
    size = buf->size - GAP_BYTES;
    store_little32(record, (uint32_t)size);
    store_little32(record + 4, sum_of(journal, record, size));
    *ret_record = record;
    *ret_size = PREFIX_BYTES + size;
    return 0;
}

/* Room for `size` more bytes of the new content. */
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

static int add_to_storage(struct mu__journal *journal, const void *data, size_t size,
                          mu_error *error)
{
    struct mu__storage *storage = journal->storage;
    int rv;

    if (journal->bytes + size > UINT32_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED, "%s: the journal is full: %" PRIu64
                            " bytes of %" PRIu32, storage->name, journal->bytes,
                            UINT32_MAX);
    rv = storage->ops->append(storage, data, size, error);
    if (rv != 0)
        return rv;
    journal->bytes += size;
    journal->unflushed = true;
    return 0;
}

static int append(struct mu__journal *journal, const struct mu__msg *msg,
                  mu_error *error)
{
    const uint8_t *record = NULL;
    size_t size = 0;
    int rv = pack(journal, msg, &record, &size);

    if (rv == 0 && !journal->rewriting)
        return add_to_storage(journal, record, size, error);
    if (rv == 0)
        rv = add_to_content(journal, record, size);
    return rv == 0 ? 0 : refuse_message(journal, msg, rv, error);
}

int mu__journal_append(struct mu__journal *journal, const struct mu__msg *msg,
                       mu_error *ret_error)
{
    int rv = append(journal, msg, ret_error);

    if (rv != 0 && journal->rewriting && journal->rewrite_rv == 0)
        journal->rewrite_rv = rv;
    if (journal->record != NULL && journal->record->capacity > RECORD_KEPT_MAX) {
        mu__buf_unref(journal->record);
        journal->record = NULL;
    }
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
    journal->rewriting = true;
    make_header(header);
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
        journal->unflushed = false;
    }
    end_rewrite(journal);
    return rv;
}
