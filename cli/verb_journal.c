/* `muster journal check` and `muster journal repair`: list the records of a journal file
 * and its damages; replace it by a file of the undamaged records. */
#include "actors/coordination/store/journal_scan.h"
#include "actors/messages.h"
#include "cli/options/flags.h"
#include "cli/output/log.h"
#include "cli/output/print_json.h"
#include "cli/verbs.h"
#include "node/files/files.h"
#include "runtime/uv/file_storage.h"

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
    struct mu__buf *content;        /* NULL: the file is empty */
    struct mu__journal_scan scan;   /* at its end after count_records() */
    bool is_headless;               /* the header is damaged */
    uint64_t records;
    uint64_t kinds[MU__KINDS_END];  /* records by kind; 0: unknown kinds */
    struct mu__journal_piece *damages;
    size_t damages_count;
    size_t damages_size;
    size_t torn_bytes;
    char copy[PATH_BYTES];          /* path of the copy of the damaged file; "": none */
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

static unsigned kind_of(const struct mu__journal_piece *piece)
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
            r->kinds[kind_of(&piece)]++;
        } else if (piece.kind == MU__JOURNAL_DAMAGED) {
            rv = note_damage(r, &piece);
        } else if (piece.kind == MU__JOURNAL_TORN) {
            r->torn_bytes = piece.bytes;
        }
    } while (piece.kind != MU__JOURNAL_END && rv == 0);
    return rv == 0 ? 0 : mu_error_set(error, rv, "%s: no memory", r->path);
}

/* Read the file without locking it: a node may have it open. */
static int read_file(struct journal_report *r, mu_error *error)
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
        r->content = status.st_size > UINT32_MAX ? NULL
                                                 : mu__buf_new((size_t)status.st_size);
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

static void end_report(struct journal_report *r)
{
    mu__buf_unref(r->content);
    free(r->damages);
}

/* ---- Printing ---- */

static const char *kind_name(unsigned kind)
{
    return kind == 0 ? "unknown" : mu__messages.rows[kind].name;
}

static void print_damage(const struct mu__journal_piece *piece)
{
    (void)printf("  damaged: record %" PRIu64 ", bytes %zu to %zu: %s", piece->number,
                 piece->offset, piece->offset + piece->bytes, piece->what);
    if (piece->records > 0)
        (void)printf("; %" PRIu64 " lost", piece->records);
    (void)printf("\n");
}

static void print_text(const struct journal_report *r)
{
    size_t bytes = r->content == NULL ? 0 : r->content->size;

    (void)printf("%s: a journal of format %" PRIu32 ", %zu bytes, %" PRIu64
                 " whole records\n", r->path, r->scan.format, bytes, r->records);
    for (unsigned kind = 0; kind < MU__KINDS_END; kind++)
        if (r->kinds[kind] > 0)
            (void)printf("  %s: %" PRIu64 "\n", kind_name(kind), r->kinds[kind]);
    if (r->is_headless)
        (void)printf("  its header is damaged\n");
    for (size_t i = 0; i < r->damages_count; i++)
        print_damage(&r->damages[i]);
    if (r->torn_bytes > 0)
        (void)printf("  torn end: %zu bytes that were never flushed; a start cuts them "
                     "off\n", r->torn_bytes);
    if (r->copy[0] != '\0')
        (void)printf("repaired: the damaged file is %s; what was lost is listed above\n",
                     r->copy);
    else if (r->damages_count > 0)
        (void)printf("\"muster journal repair\" keeps a copy and goes on without what is "
                     "damaged\n");
    else
        (void)printf("nothing is damaged\n");
}

static cJSON *damage_json(const struct mu__journal_piece *piece)
{
    cJSON *item = cJSON_CreateObject();

    cmd_json_add_int(item, "record", (int64_t)piece->number);
    cmd_json_add_int(item, "offset", (int64_t)piece->offset);
    cmd_json_add_int(item, "bytes", (int64_t)piece->bytes);
    cmd_json_add_int(item, "records_lost", (int64_t)piece->records);
    (void)cJSON_AddStringToObject(item, "what", piece->what);
    return item;
}

static int print_json(const struct journal_report *r)
{
    size_t bytes = r->content == NULL ? 0 : r->content->size;
    cJSON *map = cJSON_CreateObject();
    cJSON *kinds = cJSON_CreateObject();
    cJSON *damages = cJSON_CreateArray();

    cmd_json_add_text(map, "file", r->path);
    (void)cJSON_AddNumberToObject(map, "format", r->scan.format);
    cmd_json_add_int(map, "bytes", (int64_t)bytes);
    cmd_json_add_int(map, "records", (int64_t)r->records);
    for (unsigned kind = 0; kind < MU__KINDS_END; kind++)
        if (r->kinds[kind] > 0)
            cmd_json_add_int(kinds, kind_name(kind), (int64_t)r->kinds[kind]);
    (void)cJSON_AddItemToObject(map, "kinds", kinds);
    for (size_t i = 0; i < r->damages_count; i++)
        (void)cJSON_AddItemToArray(damages, damage_json(&r->damages[i]));
    (void)cJSON_AddItemToObject(map, "damaged", damages);
    cmd_json_add_int(map, "torn_bytes", (int64_t)r->torn_bytes);
    if (r->copy[0] != '\0')
        cmd_json_add_text(map, "copy", r->copy);
    return cmd_json_print(map);
}

static int print(const struct cmd_options *options, const struct journal_report *r)
{
    if (cmd_number(options, CMD_FLAG_OUTPUT) != 0)
        return print_json(r);
    print_text(r);
    return 0;
}

static int complain(const mu_error *error)
{
    (void)fprintf(stderr, "muster: %s\n", error->message);
    return error->code == -MU_EEXISTS ? CMD_ADDRESS : CMD_FAILED;
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
        size = snprintf(r->copy, sizeof r->copy, "%s.damaged-%s%s", r->path, stamp,
                        suffix);
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
    number = cmd_write_all(file, r->content->data, r->content->size);
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
static int write_whole(struct journal_report *r, struct mu__storage *storage,
                       mu_error *error)
{
    size_t heads = MU__JOURNAL_HEAD_BYTES + MU__JOURNAL_FOOT_BYTES;
    uint8_t *content = malloc(MU__JOURNAL_HEADER_BYTES + r->content->size +
                              (size_t)r->records * heads);
    int rv;

    if (content == NULL)
        return mu_error_set(error, -MU_ENOMEM, "%s: no memory", r->path);
    rv = storage->ops->replace(storage, content, copy_records(r, content), error);
    free(content);
    return rv;
}

static int repair(struct journal_report *r, struct mu__storage *storage, mu_error *error)
{
    int rv = storage->ops->load(storage, 0, UINT32_MAX, error, &r->content);

    if (rv == 0)
        rv = begin_scan(r, error);
    if (rv == 0)
        rv = count_records(r, error);
    if (rv != 0 || r->damages_count == 0)
        return rv;
    rv = keep_copy(r, error);
    return rv == 0 ? write_whole(r, storage, error) : rv;
}

/* ---- The verbs ---- */

int cmd_journal_check(struct cmd_options *options)
{
    struct journal_report r = {.path = options->operands[0]};
    mu_error error;
    int rv = read_file(&r, &error);

    if (rv == 0)
        rv = begin_scan(&r, &error);
    if (rv == 0)
        rv = count_records(&r, &error);
    rv = rv == 0 ? print(options, &r) : complain(&error);
    if (rv == 0 && r.damages_count > 0)
        rv = CMD_FAILED;
    end_report(&r);
    return rv < 0 ? CMD_FAILED : rv;
}

/* The file must exist: opening a storage would create it. */
int cmd_journal_repair(struct cmd_options *options)
{
    struct journal_report r = {.path = options->operands[0]};
    struct mu__storage *storage = NULL;
    mu_error error;
    int rv = access(r.path, F_OK) != 0 ? mu__file_error(r.path, "opened", errno, &error)
                                       : 0;

    if (rv == 0)
        rv = mu__storage_uv_open(r.path, true, &error, &storage);
    if (rv == 0)
        rv = repair(&r, storage, &error);
    rv = rv == 0 ? print(options, &r) : complain(&error);
    mu__storage_uv_close(storage);
    end_report(&r);
    return rv < 0 ? CMD_FAILED : rv;
}
