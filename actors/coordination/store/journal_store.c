/* The store that is a file: batches of records over journal.h.
 *
 *   BEGIN COMMIT   record record COMMIT   record COMMIT   BEGIN COMMIT   record ...
 *
 * Each holder begins with BEGIN, which has the number of the content and its epoch. The
 * records between a COMMIT and the next one count together; records before a BEGIN
 * without their COMMIT were left by a holder that died, and never count. A file without
 * any COMMIT is new, or has lost its content to damage: the content gets a new number, by
 * which agents notice.
 *
 * Some room is kept free on the disk for records that must be written also when changes
 * are refused because the disk is full: deletions, results, outcomes of barriers. While
 * it is full and the file has void records, a rewrite is tried.
 *
 * The file is on this machine, and only the one task that hosts the service opens it: no
 * election is needed. After a failure the file is flushed and read anew, so that memory
 * and file agree. */
#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/store.h"
#include "actors/messages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MUSTER_TINY
enum { REWRITE_BYTES_MIN = 1 << 12, SPARE_BYTES = 1 << 12 };
#else
enum { REWRITE_BYTES_MIN = 1 << 20, SPARE_BYTES = 1 << 18 };
#endif
enum {
    RETRY_MS = 1000,
    REASON_BYTES = 512,
    CHANGE_BYTES = 512 /* of a change and its result, beside the key and the value */
};
#define REWRITE_BYTES_MAX (UINT64_C(3) << 30) /* of the 4 GiB that a journal may have */

struct file {
    struct mu__store base;
    struct mu__storage *storage;
    const struct mu__schema *schema;
    struct mu__pool *pool;
    struct mu__store_upcalls up;

    struct mu__journal *journal; /* while it is held, or being opened */
    uint64_t number;             /* of the content */
    uint64_t epoch;
    uint64_t records;       /* in the file */
    uint64_t rewrite_above; /* bytes of the file: twice those after a rewrite */
    bool rewriting;
    bool is_full;             /* the last change had no room */
    uint64_t full_rewrite_ms; /* a full file is not rewritten again before this */
    uint64_t now_ms;          /* of the last tick */

    bool started;
    bool failed;               /* `lost` is to be called */
    uint64_t try_ms;           /* when the next open is tried */
    char reason[REASON_BYTES]; /* of the last failure that was logged */

    /* While it is read. */
    struct mu__msg *waiting; /* records whose COMMIT has not come */
    struct mu__msg **waiting_end;
    uint64_t read_number;
};

static struct file *journal_file_of(struct mu__store *base)
{
    return (struct file *)base; /* the base is its first member */
}

/* ---- Reading ---- */

static void drop_waiting(struct file *file)
{
    while (file->waiting != NULL) {
        struct mu__msg *msg = file->waiting;

        file->waiting = msg->next;
        mu__pool_put(file->pool, msg);
    }
    file->waiting_end = &file->waiting;
}

static int keep_waiting(struct file *file, struct mu__msg *record)
{
    size_t size = file->schema->rows[record->kind].body_size;
    struct mu__msg *copy = mu__pool_get(file->pool, record->kind, size);

    if (copy == NULL)
        return -MU_ENOMEM;
    memcpy(copy->body, record->body, size);
    copy->backing = mu__buf_ref(record->backing);
    *file->waiting_end = copy;
    file->waiting_end = &copy->next;
    return 0;
}

static int visit_begin(struct file *file, struct mu__msg *msg)
{
    const struct mu__store_begin *body = mu__body(msg);

    drop_waiting(file);
    file->read_number = body->store;
    if (body->epoch > file->epoch)
        file->epoch = body->epoch;
    return 0;
}

static int visit_commit(struct file *file)
{
    int rv = 0;

    file->number = file->read_number;
    for (struct mu__msg *msg = file->waiting; msg != NULL && rv == 0; msg = msg->next)
        rv = file->up.visit(file->up.owner, msg);
    drop_waiting(file);
    return rv;
}

/* Any other kind is of another journal. */
static int visit_journal_record(void *owner, struct mu__msg *msg)
{
    struct file *file = owner;

    file->records++;
    if (msg->kind == MU__STORE_BEGIN)
        return visit_begin(file, msg);
    if (msg->kind == MU__STORE_COMMIT)
        return visit_commit(file);
    if (msg->kind == MU__STORE_CHANGE || msg->kind == MU__STORE_RESULT)
        return keep_waiting(file, msg);
    return -MU_EDATALOSS;
}

static int read_journal_file(struct mu__ctx *ctx, struct file *file, mu_error *error)
{
    uint64_t cut = 0;
    int rv;

    file->records = 0;
    file->read_number = 0;
    file->number = 0;
    file->waiting_end = &file->waiting;
    file->up.reading(file->up.owner);
    rv = mu__journal_open(file->storage, file->schema, file->pool, visit_journal_record,
                          file, error, &cut, &file->journal);
    drop_waiting(file);
    if (rv == 0 && cut > 0)
        mu__log(ctx, MU__LOG_WARN,
                "%s: %" PRIu64 " torn or damaged bytes at its end were cut off",
                file->storage->name, cut);
    return rv;
}

/* ---- Writing ---- */

static int append_journal_record(struct file *file, const struct mu__msg *record,
                                 mu_error *error)
{
    int rv = mu__journal_append(file->journal, record, error);

    if (rv == 0)
        file->records++;
    return rv;
}

/* Append a message with a copy of `body`, the struct of its kind. */
static int append_body(struct file *file, uint16_t kind, const void *body, size_t size,
                       mu_error *error)
{
    struct mu__msg *msg = mu__pool_get(file->pool, kind, size);
    int rv;

    if (msg == NULL)
        return mu_error_set(error, -MU_ENOMEM, "%s: no memory", file->storage->name);
    memcpy(msg->body, body, size);
    rv = append_journal_record(file, msg, error);
    mu__pool_put(file->pool, msg);
    return rv;
}

static int append_begin(struct file *file, mu_error *error)
{
    const struct mu__store_begin body = {.store = file->number, .epoch = file->epoch};

    return append_body(file, MU__STORE_BEGIN, &body, sizeof body, error);
}

static int append_commit(struct file *file, uint64_t revision, mu_error *error)
{
    const struct mu__store_commit body = {.revision = revision};

    return append_body(file, MU__STORE_COMMIT, &body, sizeof body, error);
}

static void fail_journal_file(struct file *file, struct mu__ctx *ctx,
                              const mu_error *error)
{
    if (file->failed)
        return;
    file->failed = true;
    file->rewriting = false;
    (void)snprintf(file->reason, sizeof file->reason, "%s", error->message);
    mu__log(ctx, MU__LOG_ERROR, "%s", file->reason);
}

static int file_reserve_room(struct mu__store *base, struct mu__ctx *ctx, uint64_t bytes,
                             mu_error *ret_error)
{
    struct file *file = journal_file_of(base);
    bool was_full = file->is_full;
    mu_error error;
    int rv = 0;

    if (!file->failed && file->journal != NULL)
        rv = mu__journal_reserve(file->journal, bytes + CHANGE_BYTES + SPARE_BYTES,
                                 &error);
    file->is_full = rv == -MU_EEXHAUSTED;
    if (!file->is_full) {
        if (was_full)
            mu__log(ctx, MU__LOG_INFO, "%s: there is room again", file->storage->name);
        return 0;
    }
    if (!was_full)
        mu__log(ctx, MU__LOG_ERROR,
                "%s; changes are refused until there is room, reads and deletions go on",
                error.message);
    return mu_error_set(ret_error, rv, "the store is full: %.400s", error.message);
}

static int file_write(struct mu__store *base, struct mu__ctx *ctx,
                      const struct mu__msg *record)
{
    struct file *file = journal_file_of(base);
    mu_error error;
    int rv;

    if (file->failed)
        return -MU_EUNAVAILABLE;
    assert(file->journal != NULL);
    rv = append_journal_record(file, record, &error);
    if (rv == 0 || file->rewriting)
        return 0; /* the commit of a rewrite fails instead */
    fail_journal_file(file, ctx, &error);
    return rv;
}

/* `counting`: how many bytes of the file are not void, as far as is known. */
static void set_rewrite_above(struct file *file, uint64_t counting)
{
    file->rewrite_above = 2 * counting;
    if (file->rewrite_above < REWRITE_BYTES_MIN)
        file->rewrite_above = REWRITE_BYTES_MIN;
}

/* False: the rewrite has failed, and the old content stays. */
static bool end_journal_rewrite(struct file *file, struct mu__ctx *ctx, uint64_t revision)
{
    mu_error error;
    int rv = append_commit(file, revision, &error);

    file->rewriting = false;
    if (rv == 0)
        rv = mu__journal_rewrite_commit(file->journal, &error);
    else
        (void)mu__journal_rewrite_commit(file->journal, NULL);
    set_rewrite_above(file, mu__journal_bytes(file->journal));
    if (rv != 0)
        mu__log(ctx, MU__LOG_WARN, "%s; the file stays as it is", error.message);
    return rv == 0;
}

static void file_commit(struct mu__store *base, struct mu__ctx *ctx, uint64_t revision,
                        uint64_t sequence)
{
    struct file *file = journal_file_of(base);
    mu_error error;

    if (file->failed)
        return;
    assert(file->journal != NULL);
    if (file->rewriting && end_journal_rewrite(file, ctx, revision)) {
        file->up.committed(file->up.owner, ctx, sequence);
        return;
    }
    if (append_commit(file, revision, &error) != 0 ||
        mu__journal_flush(file->journal, &error) != 0) {
        fail_journal_file(file, ctx, &error);
        return;
    }
    file->up.committed(file->up.owner, ctx, sequence);
}

/* ---- Rewriting ---- */

static bool file_needs_rewrite(struct mu__store *base, uint64_t records)
{
    const struct file *file = journal_file_of(base);
    uint64_t bytes;

    if (file->journal == NULL || file->failed || file->rewriting)
        return false;
    bytes = mu__journal_bytes(file->journal);
    if (file->is_full && file->now_ms >= file->full_rewrite_ms &&
        file->records > records + records / 8 + 2)
        return true;
    return bytes > file->rewrite_above ||
           (bytes > REWRITE_BYTES_MAX && file->records > 2 * records);
}

static void file_rewrite(struct mu__store *base, struct mu__ctx *ctx)
{
    struct file *file = journal_file_of(base);

    (void)ctx;
    if (file->failed)
        return;
    assert(file->journal != NULL && !file->rewriting);
    file->full_rewrite_ms = file->now_ms + RETRY_MS;
    file->rewriting = true;
    file->records = 0;
    mu__journal_rewrite_begin(file->journal);
    (void)append_begin(file, NULL); /* a failure comes again at the end */
}

/* ---- start and end ---- */

static void file_start(struct mu__store *base, struct mu__ctx *ctx)
{
    struct file *file = journal_file_of(base);

    file->started = true;
    file->try_ms = mu__now_ms(ctx);
}

static int write_journal_begin(struct file *file, struct mu__ctx *ctx, mu_error *error)
{
    int rv;

    if (file->number == 0)
        file->number = mu__random(ctx);
    if (file->number == 0)
        file->number = 1;
    file->epoch++;
    rv = append_begin(file, error);
    if (rv == 0)
        rv = append_commit(file, 0, error);
    return rv == 0 ? mu__journal_flush(file->journal, error) : rv;
}

static int open_journal_file(struct file *file, struct mu__ctx *ctx, mu_error *error)
{
    int rv = file->storage->ops->flush(file->storage, error);

    if (rv == 0)
        rv = read_journal_file(ctx, file, error);
    if (rv != 0)
        return rv;
    /* How much of it is void is not known before the first rewrite: perhaps half. */
    set_rewrite_above(file, mu__journal_bytes(file->journal) / 2);
    file->is_full = false;
    rv = write_journal_begin(file, ctx, error);
    if (rv == 0)
        (void)mu__journal_reserve(file->journal, SPARE_BYTES, NULL);
    return rv;
}

static void try_to_hold(struct file *file, struct mu__ctx *ctx)
{
    mu_error error;

    if (open_journal_file(file, ctx, &error) == 0) {
        file->reason[0] = '\0';
        file->up.held(file->up.owner, ctx, file->epoch, file->number);
        return;
    }
    mu__journal_close(file->journal);
    file->journal = NULL;
    file->try_ms = mu__now_ms(ctx) + RETRY_MS;
    if (strcmp(file->reason, error.message) == 0)
        return;
    (void)snprintf(file->reason, sizeof file->reason, "%s", error.message);
    mu__log(ctx, MU__LOG_ERROR, "%s", file->reason);
    if (file->up.trouble != NULL)
        file->up.trouble(file->up.owner, ctx, file->reason);
}

static void close_failed_journal(struct file *file, struct mu__ctx *ctx)
{
    char reason[REASON_BYTES];

    memcpy(reason, file->reason, sizeof reason);
    mu__journal_close(file->journal);
    file->journal = NULL;
    file->failed = false;
    file->try_ms = mu__now_ms(ctx) + RETRY_MS;
    file->up.lost(file->up.owner, ctx, reason);
}

static void file_tick(struct mu__store *base, struct mu__ctx *ctx)
{
    struct file *file = journal_file_of(base);

    file->now_ms = mu__now_ms(ctx);
    if (file->failed)
        close_failed_journal(file, ctx);
    else if (file->started && file->journal == NULL && mu__now_ms(ctx) >= file->try_ms)
        try_to_hold(file, ctx);
}

static bool file_may_read(struct mu__store *base, struct mu__ctx *ctx)
{
    const struct file *file = journal_file_of(base);

    (void)ctx;
    return file->journal != NULL && !file->failed;
}

static void file_close(struct mu__store *base, struct mu__ctx *ctx)
{
    struct file *file = journal_file_of(base);

    (void)ctx;
    mu__journal_close(file->journal);
    free(file);
}

static const struct mu__store_ops file_ops = {
    .start = file_start,
    .write = file_write,
    .reserve = file_reserve_room,
    .commit = file_commit,
    .may_read = file_may_read,
    .tick = file_tick,
    .needs_rewrite = file_needs_rewrite,
    .rewrite = file_rewrite,
    .close = file_close,
};

static int file_open(const struct mu__store_config *config, mu_error *ret_error,
                     struct mu__store **ret_store)
{
    struct file *file;

    if (config->storage == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "store \"journal:%s\" has no file",
                            config->location);
    file = calloc(1, sizeof *file);
    if (file == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a store");
    file->base.ops = &file_ops;
    file->storage = config->storage;
    file->schema = config->schema;
    file->pool = config->pool;
    file->up = config->up;
    *ret_store = &file->base;
    return 0;
}

const struct mu__store_kind mu__store_journal = {
    .name = "journal",
    .has_location = true,
    .lasting = true,
    .open = file_open,
};
