/* mu_journal_check and mu_journal_repair: list the records of a journal file and its
 * damages; replace it by a file of the undamaged records. */
#include "actors/coordination/store/journal_scan.h"
#include "actors/messages.h"
#include "node/files/files.h"
#include "runtime/message/arguments.h"
#include "runtime/uv/file_storage.h"

#include "muster/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, COPIES_MAX = 100 };

/* A file and the result of scanning it. */
struct journal_report {
    const char *path;
    struct mu__buf *content;      /* NULL: the file is empty */
    struct mu__journal_scan scan; /* at its end after count_records() */
    bool is_headless;             /* the header is damaged */
    uint64_t records;
    uint64_t kinds[MU__KINDS_END]; /* records by kind; 0: unknown kinds */
    struct mu__journal_piece *damages;
    size_t damages_count;
    size_t damages_size;
    size_t torn_bytes;
    char copy[PATH_BYTES]; /* path of the copy of the damaged file; "": none */
};

/* ---- Reading ---- */

static int begin_scan(struct journal_report *r, mu_error *error)
{
    const void *data = NULL;
    size_t size = 0;
    int rv;

    if (r->content != NULL) {
        data = r->content->data;
        size = r->content->size;
    }
    rv = mu__journal_scan_begin(&r->scan, data, size, r->path, error);

    if (rv == 0)
        return 0;
    r->is_headless = mu__journal_scan_headless(&r->scan, data, size);
    return r->is_headless ? 0 : rv;
}

static unsigned get_message_kind(const struct mu__journal_piece *piece)
{
    unsigned kind = mu__journal_piece_message(piece);

    return kind < MU__KINDS_END && mu__messages.rows[kind].name != NULL ? kind : 0;
}

static int note_damage(struct journal_report *r, const struct mu__journal_piece *piece)
{
    if (r->damages_count == r->damages_size) {
        size_t size = r->damages_size == 0 ? 16 : 2 * r->damages_size;
        void *grown = realloc(r->damages, size * sizeof *r->damages);

        if (grown == NULL)
            return -MU_ENOMEM;
        r->damages = grown;
        r->damages_size = size;
    }
    r->damages[r->damages_count++] = *piece;
    return 0;
}

static int count_records(struct journal_report *r, mu_error *error)
{
    struct mu__journal_piece piece;
    int rv = 0;

    do {
        mu__journal_scan_next(&r->scan, &piece);
        if (piece.kind == MU__JOURNAL_RECORD && piece.message_bytes >= 8) {
            r->records++;
            r->kinds[get_message_kind(&piece)]++;
        } else if (piece.kind == MU__JOURNAL_DAMAGED) {
            rv = note_damage(r, &piece);
        } else if (piece.kind == MU__JOURNAL_TORN) {
            r->torn_bytes = piece.bytes;
        }
    } while (piece.kind != MU__JOURNAL_END && rv == 0);
    return rv == 0 ? 0 : mu_error_set(error, rv, "%s: no memory", r->path);
}

/* Read the file without locking it: a node may have it open. */
static int read_unlocked_journal(struct journal_report *r, mu_error *error)
{
    int file = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    size_t at = 0;
    ssize_t got = 1;

    if (file < 0)
        return mu__file_error(r->path, "opened", errno, error);
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        (void)close(file);
        return mu_error_set(error, -MU_EINVALID, "%s: expected a plain file", r->path);
    }
    if (status.st_size > 0)
        r->content =
            status.st_size > UINT32_MAX ? NULL : mu__buf_new((size_t)status.st_size);
    while (r->content != NULL && at < r->content->capacity && got > 0) {
        got = read(file, r->content->data + at, r->content->capacity - at);
        if (got > 0)
            at += (size_t)got;
    }
    (void)close(file);
    if (r->content != NULL)
        r->content->size = (uint32_t)at;
    if (status.st_size > 0 && (r->content == NULL || got < 0))
        return mu_error_set(error, -MU_EUNAVAILABLE, "%s: %lld bytes cannot be read",
                            r->path, (long long)status.st_size);
    return 0;
}

/* ---- Repairing ---- */

/* Create the file "FILE.damaged-TIME", or if that exists "FILE.damaged-TIME-2" and so on.
 * Returns its descriptor, or -1 with errno. */
static int make_copy(struct journal_report *r, const char *stamp)
{
    for (unsigned number = 1; number <= COPIES_MAX; number++) {
        char suffix[16] = "";
        int size;
        int file;

        if (number > 1)
            (void)snprintf(suffix, sizeof suffix, "-%u", number);
        size =
            snprintf(r->copy, sizeof r->copy, "%s.damaged-%s%s", r->path, stamp, suffix);
        if (size >= (int)sizeof r->copy) {
            errno = ENAMETOOLONG;
            return -1;
        }
        file = open(r->copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/* Copy the damaged file, readable by its owner only. */
static int keep_copy(struct journal_report *r, mu_error *error)
{
    time_t now = time(NULL);
    char stamp[32] = "";
    struct tm parts;
    int number;
    int file;

    if (gmtime_r(&now, &parts) != NULL)
        (void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &parts);
    file = make_copy(r, stamp);
    if (file < 0)
        return mu__file_error(r->copy, "made", errno, error);
    number = mu__file_write_all(file, r->content->data, r->content->size);
    if (number == 0 && fsync(file) != 0)
        number = errno;
    if (close(file) != 0 && number == 0)
        number = errno;
    if (number == 0)
        return 0;
    (void)unlink(r->copy);
    return mu__file_error(r->copy, "written", number, error);
}

static size_t copy_records(struct journal_report *r, uint8_t *out)
{
    const struct mu__journal_scan *done = &r->scan;
    struct mu__journal_piece piece;
    struct mu__journal_scan scan;
    uint64_t number = 1;
    size_t size = MU__JOURNAL_HEADER_BYTES;

    if (!r->is_headless)
        (void)mu__journal_scan_begin(&scan, done->data, done->size, r->path, NULL);
    else
        (void)mu__journal_scan_headless(&scan, done->data, done->size);
    mu__journal_put_header(out);
    for (mu__journal_scan_next(&scan, &piece); piece.kind != MU__JOURNAL_END;
         mu__journal_scan_next(&scan, &piece)) {
        if (piece.kind != MU__JOURNAL_RECORD)
            continue;
        memcpy(out + size + MU__JOURNAL_HEAD_BYTES, piece.message, piece.message_bytes);
        mu__journal_put_frame(&scan.crc, out + size, number++,
                              (uint32_t)piece.message_bytes);
        size += MU__JOURNAL_HEAD_BYTES + piece.message_bytes + MU__JOURNAL_FOOT_BYTES;
    }
    return size;
}

/* Replace the file by its undamaged records. They may grow: format 1 had smaller
 * heads. */
static int write_undamaged(struct journal_report *r, struct mu__storage *storage,
                           mu_error *error)
{
    size_t heads = MU__JOURNAL_HEAD_BYTES + MU__JOURNAL_FOOT_BYTES;
    uint8_t *content =
        malloc(MU__JOURNAL_HEADER_BYTES + r->content->size + (size_t)r->records * heads);
    int rv;

    if (content == NULL)
        return mu_error_set(error, -MU_ENOMEM, "%s: no memory", r->path);
    rv = storage->ops->replace(storage, content, copy_records(r, content), error);
    free(content);
    return rv;
}

static int repair_journal(struct journal_report *r, struct mu__storage *storage,
                          mu_error *error)
{
    int rv = storage->ops->load(storage, 0, UINT32_MAX, error, &r->content);

    if (rv == 0)
        rv = begin_scan(r, error);
    if (rv == 0)
        rv = count_records(r, error);
    if (rv != 0 || r->damages_count == 0)
        return rv;
    rv = keep_copy(r, error);
    return rv == 0 ? write_undamaged(r, storage, error) : rv;
}

/* ---- Reporting ---- */

static mu_value *damage_value(const struct mu__journal_piece *piece)
{
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "record", mu_value_int((int64_t)piece->number));
    (void)mu_value_set(map, "offset", mu_value_int((int64_t)piece->offset));
    (void)mu_value_set(map, "bytes", mu_value_int((int64_t)piece->bytes));
    (void)mu_value_set(map, "records_lost", mu_value_int((int64_t)piece->records));
    (void)mu_value_set(map, "what", mu_value_string(piece->what));
    return map;
}

static mu_value *kinds_value(const struct journal_report *r)
{
    mu_value *map = mu_value_map();

    for (unsigned kind = 0; kind < MU__KINDS_END; kind++)
        if (r->kinds[kind] > 0)
            (void)mu_value_set(map, kind == 0 ? "unknown" : mu__messages.rows[kind].name,
                               mu_value_int((int64_t)r->kinds[kind]));
    return map;
}

static mu_value *make_journal_report(const struct journal_report *r)
{
    size_t bytes = r->content == NULL ? 0 : r->content->size;
    mu_value *damages = mu_value_list();
    mu_value *map = mu_value_map();

    for (size_t i = 0; i < r->damages_count; i++)
        (void)mu_value_append(damages, damage_value(&r->damages[i]));
    (void)mu_value_set(map, "file", mu_value_string(r->path));
    (void)mu_value_set(map, "format", mu_value_int((int64_t)r->scan.format));
    (void)mu_value_set(map, "bytes", mu_value_int((int64_t)bytes));
    (void)mu_value_set(map, "records", mu_value_int((int64_t)r->records));
    (void)mu_value_set(map, "kinds", kinds_value(r));
    (void)mu_value_set(map, "damaged", damages);
    (void)mu_value_set(map, "headless", mu_value_bool(r->is_headless));
    (void)mu_value_set(map, "torn_bytes", mu_value_int((int64_t)r->torn_bytes));
    if (r->copy[0] != '\0')
        (void)mu_value_set(map, "copy", mu_value_string(r->copy));
    return map;
}

/* The report if `rv` is 0; frees `r`. */
static int finish_journal_report(struct journal_report *r, int rv, mu_error *ret_error,
                                 mu_value **ret_report)
{
    mu_value *report = rv == 0 ? make_journal_report(r) : NULL;

    mu__buf_unref(r->content);
    free(r->damages);
    if (rv == 0 && report == NULL)
        rv = mu_error_set(ret_error, -MU_ENOMEM, "%s: no memory", r->path);
    if (rv == 0)
        *ret_report = report;
    return rv;
}

/* ---- Calls ---- */

int mu_journal_check(const char *path, mu_error *ret_error, mu_value **ret_report)
{
    MU__REQUIRE(ret_error, path, ret_report);

    struct journal_report r = {.path = path};
    int rv = read_unlocked_journal(&r, ret_error);

    if (rv == 0)
        rv = begin_scan(&r, ret_error);
    if (rv == 0)
        rv = count_records(&r, ret_error);
    return finish_journal_report(&r, rv, ret_error, ret_report);
}

/* The file must exist: opening a storage would create it. */
int mu_journal_repair(const char *path, mu_error *ret_error, mu_value **ret_report)
{
    MU__REQUIRE(ret_error, path, ret_report);

    struct journal_report r = {.path = path};
    struct mu__storage *storage = NULL;
    int rv =
        access(path, F_OK) != 0 ? mu__file_error(path, "opened", errno, ret_error) : 0;

    if (rv == 0)
        rv = mu__storage_uv_open(path, true, ret_error, &storage);
    if (rv == 0)
        rv = repair_journal(&r, storage, ret_error);
    mu__storage_uv_close(storage);
    return finish_journal_report(&r, rv, ret_error, ret_report);
}
