/* Reading and verifying a journal.
 *
 * The file is read in parts; a part begins with the record that the former one had only
 * the first bytes of. What is no whole record is looked at with all that is behind it in
 * memory: it may be a torn end, which is short, or damage, with which the open fails.
 * Each record gets a buffer of its own: it is aligned there, and a kept message does not
 * keep the part. */
#include "actors/coordination/store/journal_file.h"

#include "actors/messages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PART_BYTES = 1 << 20 };

/* ---- The parts of a file ---- */

struct parts {
    struct mu__storage *storage;
    struct mu__buf *part; /* NULL: the storage is empty, or ends here */
    struct mu__journal_scan scan;
};

static int load_part(struct parts *parts, uint64_t offset, size_t needed, mu_error *error)
{
    struct mu__storage *storage = parts->storage;
    uint32_t bytes_max = needed <= PART_BYTES  ? PART_BYTES
                         : needed < UINT32_MAX ? (uint32_t)needed
                                               : UINT32_MAX;
    struct mu__buf *part;
    int rv = storage->ops->load(storage, offset, bytes_max, error, &part);

    if (rv != 0)
        return rv;
    mu__buf_unref(parts->part);
    parts->part = part;
    parts->scan.has_more = part != NULL && part->size == bytes_max;
    return 0;
}

/* *ret_is_empty: there is no file yet, or nothing in it. */
static int begin_parts(struct parts *parts, mu_error *error, bool *ret_is_empty)
{
    bool has_more;
    int rv = load_part(parts, 0, 0, error);

    *ret_is_empty = parts->part == NULL;
    if (rv != 0 || parts->part == NULL)
        return rv;
    has_more = parts->scan.has_more;
    rv = mu__journal_scan_begin(&parts->scan, parts->part->data, parts->part->size,
                                parts->storage->name, error);
    parts->scan.has_more = has_more;
    return rv;
}

/* As mu__journal_scan_next, over all parts. */
static int next_piece(struct parts *parts, struct mu__journal_piece *ret_piece,
                      mu_error *error)
{
    for (;;) {
        int rv;

        mu__journal_scan_next(&parts->scan, ret_piece);
        if (ret_piece->kind != MU__JOURNAL_MORE)
            return 0;
        rv = load_part(parts, ret_piece->offset, ret_piece->bytes, error);
        if (rv != 0)
            return rv;
        mu__journal_scan_move(&parts->scan,
                              parts->part == NULL ? NULL : parts->part->data,
                              parts->part == NULL ? 0 : parts->part->size,
                              parts->scan.has_more);
    }
}

static void end_parts(struct parts *parts)
{
    mu__buf_unref(parts->part);
    parts->part = NULL;
}

static int refuse_damage(struct parts *parts, const struct mu__journal_piece *piece,
                         mu_error *error)
{
    mu__journal_scan_refuse(&parts->scan, piece, parts->storage->name, error);
    return -MU_EDATALOSS;
}

/* ---- Reading ---- */

struct mu__journal_reading {
    struct mu__journal *journal;
    mu__journal_visit_fn visit;
    void *owner;
    mu_error *error; /* of the step that is being taken */
    struct parts parts;
    bool is_empty;
    uint64_t records;
    uint64_t cut;
};

static int refuse_record(const struct mu__journal_reading *r,
                         const struct mu__journal_piece *piece, int code, const char *why)
{
    return mu_error_set(r->error, code, "%s: the message at byte %zu: %s",
                        r->journal->storage->name, piece->offset, why);
}

static int decode_whole(const struct mu__journal_reading *r,
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

static int visit_frame(const struct mu__journal_reading *r,
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

static int visit_record(const struct mu__journal_reading *r,
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

/* Write the same records in the present format; there is no damage. */
static int write_anew(struct mu__journal_reading *r)
{
    struct parts *parts = &r->parts;
    struct mu__journal_piece piece = {.kind = MU__JOURNAL_END};
    int rv = r->is_empty ? 0 : begin_parts(parts, r->error, &r->is_empty);

    if (rv != 0)
        return rv;
    mu__journal_rewrite_begin(r->journal);
    if (!r->is_empty)
        do {
            rv = next_piece(parts, &piece, r->error);
            if (rv == 0 && piece.kind == MU__JOURNAL_RECORD)
                mu__journal_rewrite_record(r->journal, piece.message,
                                           piece.message_bytes);
        } while (rv == 0 && piece.kind == MU__JOURNAL_RECORD);
    return rv != 0 ? rv : mu__journal_rewrite_commit(r->journal, r->error);
}

static int end_reading(struct mu__journal_reading *r)
{
    struct mu__journal *journal = r->journal;
    struct mu__storage *storage = journal->storage;
    const struct mu__journal_scan *scan = &r->parts.scan;

    if (r->is_empty || scan->format != MU__JOURNAL_FORMAT)
        return write_anew(r);
    journal->bytes = scan->base + scan->at - r->cut;
    journal->number = scan->number;
    return r->cut == 0 ? 0 : storage->ops->cut(storage, journal->bytes, r->error);
}

/* Up to the end, or to where it is torn. */
static int read_journal_records(struct mu__journal_reading *r, size_t records_max,
                                size_t bytes_max)
{
    struct mu__journal_piece piece = {.kind = MU__JOURNAL_END};
    size_t bytes = 0;
    int rv = 0;

    for (size_t i = 0; rv == 0; i++) {
        if (i >= records_max || bytes >= bytes_max)
            return MU__STORAGE_NOT_YET;
        rv = next_piece(&r->parts, &piece, r->error);
        if (rv != 0 || piece.kind != MU__JOURNAL_RECORD)
            break;
        bytes += piece.bytes;
        r->records++;
        rv = visit_record(r, &piece);
    }
    if (rv != 0)
        return rv;
    if (piece.kind == MU__JOURNAL_DAMAGED)
        return refuse_damage(&r->parts, &piece, r->error);
    r->cut = piece.kind == MU__JOURNAL_TORN ? piece.bytes : 0;
    return end_reading(r);
}

int mu__journal_read_begin(struct mu__storage *storage, const struct mu__schema *schema,
                           struct mu__pool *pool, mu_error *ret_error,
                           struct mu__journal_reading **ret_reading)
{
    struct mu__journal *journal = calloc(1, sizeof *journal);
    struct mu__journal_reading *r = calloc(1, sizeof *r);
    int rv;

    if (journal == NULL || r == NULL) {
        free(journal);
        free(r);
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: no memory for a journal",
                            storage->name);
    }
    journal->storage = r->parts.storage = storage;
    journal->bytes_max = UINT32_MAX;
    journal->schema = schema;
    journal->pool = pool;
    mu__crc32c_init(&journal->crc);
    r->journal = journal;
    rv = begin_parts(&r->parts, ret_error, &r->is_empty);
    if (rv == 0)
        *ret_reading = r;
    else
        mu__journal_read_drop(r);
    return rv;
}

int mu__journal_read_step(struct mu__journal_reading *reading,
                          const struct mu__journal_step *step, mu_error *ret_error,
                          uint64_t *ret_cut, struct mu__journal **ret_journal)
{
    int rv;

    reading->visit = step->visit;
    reading->owner = step->owner;
    reading->error = ret_error;
    rv = reading->is_empty
             ? end_reading(reading)
             : read_journal_records(reading, step->records_max, step->bytes_max);
    if (rv == MU__STORAGE_NOT_YET)
        return rv;
    if (rv == 0) {
        *ret_cut = reading->cut;
        *ret_journal = reading->journal;
        reading->journal = NULL;
    }
    mu__journal_read_drop(reading);
    return rv;
}

void mu__journal_read_drop(struct mu__journal_reading *reading)
{
    if (reading == NULL)
        return;
    end_parts(&reading->parts);
    mu__journal_close(reading->journal);
    free(reading);
}

struct mu__journal_progress mu__journal_read_progress(
    const struct mu__journal_reading *reading)
{
    struct mu__storage *storage = reading->parts.storage;

    return (struct mu__journal_progress){
        .records = reading->records,
        .bytes = reading->parts.scan.base + reading->parts.scan.at,
        .bytes_all = storage->ops->size(storage),
    };
}

int mu__journal_open(struct mu__storage *storage, const struct mu__schema *schema,
                     struct mu__pool *pool, mu__journal_visit_fn visit, void *owner,
                     mu_error *ret_error, uint64_t *ret_cut,
                     struct mu__journal **ret_journal)
{
    const struct mu__journal_step all = {visit, owner, SIZE_MAX, SIZE_MAX};
    struct mu__journal_reading *reading = NULL;
    uint64_t cut = 0;
    int rv = mu__journal_read_begin(storage, schema, pool, ret_error, &reading);

    if (rv == 0)
        rv = mu__journal_read_step(reading, &all, ret_error, &cut, ret_journal);
    if (rv == 0 && ret_cut != NULL)
        *ret_cut = cut;
    return rv;
}

/* ---- Verifying ---- */

struct use {
    uint16_t first; /* kinds of messages */
    uint16_t last;
    uint16_t beside; /* one more; 0: none */
    const char *what;
};

static const struct use uses[MU__JOURNAL_USES] = {
    [MU__JOURNAL_OF_CHIEF] = {MU__JOURNAL_BEGIN, MU__JOURNAL_REMOVED, MU__JOURNAL_BODY,
                              "the journal of a chief's closures (--journal)"},
    [MU__JOURNAL_OF_STORE] = {MU__STORE_BEGIN, MU__STORE_COMMIT, 0,
                              "the store of a coordination service (--store)"},
    [MU__JOURNAL_OF_SERVER] = {MU__PS_BEGIN, MU__PS_VIEW, 0,
                               "the journal of a parameter server (--ps-journal)"},
    [MU__JOURNAL_OF_KEEPER] = {MU__KEEP_FENCE, MU__KEEP_ITEM, 0,
                               "the file of a keeper of actors"},
};

static bool is_kind_of_use(const struct use *use, unsigned kind)
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
        if (i != use && is_kind_of_use(&uses[i], kind))
            return mu_error_set(error, -MU_EINVALID,
                                "%s: expected %s, and this is %s: "
                                "each of them has a file of its own",
                                name, uses[use].what, uses[i].what);
    return 0;
}

static int verify_parts(struct parts *parts, enum mu__journal_use use, uint64_t bytes_max,
                        mu_error *error)
{
    struct mu__journal_piece piece;
    int rv;

    do {
        rv = next_piece(parts, &piece, error);
        if (rv == 0 && piece.kind == MU__JOURNAL_RECORD)
            rv = check_use(&piece, use, parts->storage->name, error);
    } while (rv == 0 && piece.kind == MU__JOURNAL_RECORD && piece.offset < bytes_max);
    return rv == 0 && piece.kind == MU__JOURNAL_DAMAGED
               ? refuse_damage(parts, &piece, error)
               : rv;
}

int mu__journal_verify(struct mu__storage *storage, enum mu__journal_use use,
                       uint64_t bytes_max, mu_error *ret_error)
{
    struct parts parts = {.storage = storage};
    bool is_empty;
    int rv = begin_parts(&parts, ret_error, &is_empty);

    if (rv == 0 && !is_empty)
        rv = verify_parts(&parts, use, bytes_max, ret_error);
    end_parts(&parts);
    return rv;
}
