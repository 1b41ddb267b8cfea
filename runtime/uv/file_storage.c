/* A file that is written at its end and replaced as a whole.
 *
 * The lock is on the file itself (flock, which ends with the last descriptor, and so with
 * the process), so that no lock file can be left behind. replace() puts another file
 * under the name: it is locked before it is renamed, and a process that has locked a
 * file checks that the file still has the name. So the file of that name is locked by
 * its owner at any time.
 *
 * `length` counts only bytes that were written completely, and synced if requested. Bytes
 * are written at that offset and stay in the buffer until then: after a failure the file
 * is cut back to `length`, and the next flush writes all of them again. That also holds
 * for a failed sync, after which pages count as clean though they are not on the disk.
 *
 * A file that was removed, or replaced by another one, would take what is written with it
 * when this process ends: so a flush checks that the file still has its name, and fails
 * until it has it again.
 *
 * Reserved space stays allocated behind `length`, also when the process has ended, and is
 * not part of the file's size. */
#define _GNU_SOURCE /* fallocate */
#include "runtime/uv/file_storage.h"

#include "runtime/uv/renewal.h"

#include <uv.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
#ifdef MUSTER_TINY
    PENDING_BYTES_MAX = 1 << 12,
#else
    PENDING_BYTES_MAX = 1 << 20,
#endif
    RESERVE_BYTES = 1 << 18, /* reserved beyond the request, where there is room */
    OPEN_TRIES_MAX = 16      /* a try fails when another process replaces the file then */
};

struct storage {
    struct mu__storage base;
    char *path;     /* absolute and without links, however the name was given */
    char *path_new; /* where the next content is written */
    int file;
    bool sync;
    bool torn;            /* there may be bytes behind `length` */
    bool folder_unsynced; /* after a power cut the old file could be back */
    uint64_t length;
    uint64_t reserved;           /* the disk has room for the file up to here */
    struct mu__renewal *renewal; /* the last one, which may have ended; or NULL */
    struct mu__renewal *ended;   /* the one before, which may still close its file */
    int renewed;                 /* the file that it writes; -1: none is under way */
    size_t pending_size;
    uint8_t pending[PENDING_BYTES_MAX];
};

static struct storage *storage_of(struct mu__storage *base)
{
    return (struct storage *)base; /* the base is its first member */
}

/* ---- Errors ---- */

static int get_storage_code(int number)
{
    switch (number) {
    case ENOENT:
        return -MU_ENOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return -MU_EPERMISSION;
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return -MU_EINVALID;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
        return -MU_EEXHAUSTED;
    case ENOMEM:
        return -MU_ENOMEM;
    default:
        return -MU_EUNAVAILABLE;
    }
}

/* `number` is an errno; `doing` says what failed, `after` is added to the message. */
static int refuse_storage(mu_error *error, const char *path, int number,
                          const char *doing, const char *after)
{
    int uv = uv_translate_sys_error(number);

    return mu_error_set(error, get_storage_code(number), "%s: cannot %s: %s (%s)%s", path,
                        doing, uv_strerror(uv), uv_err_name(uv), after);
}

/* ---- Bytes: each returns 0 or an errno ---- */

static int write_at(int file, const void *data, size_t size, uint64_t offset)
{
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t written = pwrite(file, at, size, (off_t)offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        at += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

/* A file that is shorter than expected is an error, too. */
static int read_at(int file, void *data, size_t size, uint64_t offset)
{
    uint8_t *at = data;

    while (size > 0) {
        ssize_t got = pread(file, at, size, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        at += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}

static int cut_at(int file, uint64_t length)
{
    int rv;

    do
        rv = ftruncate(file, (off_t)length);
    while (rv != 0 && errno == EINTR);
    return rv != 0 ? errno : 0;
}

/* Sync the folder of `path`, so that a new name in it is on the disk. Some file systems
 * cannot sync folders (EINVAL). */
static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int number = 0;
    int file;

    if (folder == NULL)
        return ENOMEM;
    file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (file < 0)
        return errno;
    if (fsync(file) != 0 && errno != EINVAL)
        number = errno;
    (void)close(file);
    return number;
}

/* ---- Opening and locking the file ---- */

static int refuse_open(const char *path, int number, mu_error *error)
{
    if (number == ENOENT || number == ENOTDIR)
        return refuse_storage(error, path, number, "open it", "; its folder must exist");
    return refuse_storage(error, path, number, "open it", "");
}

/* Open and lock a plain file. It may have lost its name meanwhile. */
static int open_locked(const char *path, mu_error *error, int *ret_file,
                       struct stat *ret_status)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, S_IRUSR | S_IWUSR);
    int rv = 0;

    if (file < 0)
        return refuse_open(path, errno, error);
    if (fstat(file, ret_status) != 0)
        rv = refuse_open(path, errno, error);
    else if (!S_ISREG(ret_status->st_mode))
        rv = mu_error_set(error, -MU_EINVALID, "%s: expected a plain file", path);
    else if (flock(file, LOCK_EX | LOCK_NB) != 0)
        rv = errno == EWOULDBLOCK
                 ? mu_error_set(error, -MU_EEXISTS,
                                "%s: in use by another process, or opened "
                                "twice by this one",
                                path)
                 : refuse_storage(error, path, errno, "lock it", "");
    if (rv != 0) {
        (void)close(file);
        return rv;
    }
    *ret_file = file;
    return 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Open and lock the file that has the name: nobody else can lock it from here on. */
static int open_ours(const char *path, mu_error *error, int *ret_file)
{
    for (int i = 0; i < OPEN_TRIES_MAX; i++) {
        struct stat opened;
        struct stat named;
        int rv = open_locked(path, error, ret_file, &opened);

        if (rv != 0)
            return rv;
        if (stat(path, &named) == 0 && is_same_file(&named, &opened))
            return 0;
        (void)close(*ret_file);
    }
    return mu_error_set(error, -MU_EEXISTS,
                        "%s: in use by another process: it was "
                        "replaced %d times while it was opened",
                        path, (int)OPEN_TRIES_MAX);
}

/* The file exists. Returns 0 or an errno. */
static int set_paths(struct storage *s, const char *path)
{
    uv_fs_t request;
    size_t size;
    int uv = uv_fs_realpath(NULL, &request, path, NULL);

    if (uv == 0)
        s->path = strdup(request.ptr);
    uv_fs_req_cleanup(&request);
    if (uv != 0)
        return -uv;
    size = s->path == NULL ? 0 : strlen(s->path) + sizeof ".new";
    s->path_new = malloc(size);
    if (s->path == NULL || s->path_new == NULL)
        return ENOMEM;
    (void)snprintf(s->path_new, size, "%s.new", s->path);
    s->base.name = s->path;
    return 0;
}

/* ---- Operations ---- */

static int file_load(struct mu__storage *base, uint64_t offset, uint32_t bytes_max,
                     mu_error *ret_error, struct mu__buf **ret_content)
{
    struct storage *s = storage_of(base);
    uint64_t left = offset < s->length ? s->length - offset : 0;
    size_t size = left < bytes_max ? (size_t)left : bytes_max;
    struct mu__buf *content;
    int number;

    *ret_content = NULL;
    if (s->length > UINT32_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: %" PRIu64 " bytes, expected "
                            "%" PRIu32 " at most",
                            s->path, s->length, UINT32_MAX);
    if (size == 0)
        return 0;
    content = mu__buf_new(size);
    if (content == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: no memory for %zu bytes of it",
                            s->path, size);
    number = read_at(s->file, content->data, size, offset);
    if (number != 0) {
        mu__buf_unref(content);
        return refuse_storage(ret_error, s->path, number, "read it", "");
    }
    content->size = (uint32_t)size;
    *ret_content = content;
    return 0;
}

static uint64_t file_size(const struct mu__storage *base)
{
    return ((const struct storage *)base)->length;
}

static int check_storage_name(const struct storage *s, mu_error *error)
{
    struct stat opened;
    struct stat named;
    bool has_name = stat(s->path, &named) == 0;

    if ((!has_name && errno != ENOENT && errno != ENOTDIR) ||
        fstat(s->file, &opened) != 0)
        return refuse_storage(error, s->path, errno, "look at it", "");
    if (has_name && is_same_file(&named, &opened))
        return 0;
    return mu_error_set(error, -MU_EUNAVAILABLE,
                        "%s: the file was %s while it is in use, and nothing is kept any "
                        "more; expected it back under its name, or this process started "
                        "again with what is there",
                        s->path, has_name ? "replaced by another one" : "removed");
}

/* Append all bytes to the file, or none. */
static int write_behind(struct storage *s, const void *data, size_t size, mu_error *error)
{
    char doing[64];
    int number = s->torn ? cut_at(s->file, s->length) : 0;

    if (number == 0)
        number = write_at(s->file, data, size, s->length);
    if (number == 0 && s->sync && fdatasync(s->file) != 0)
        number = errno;
    if (number == 0) {
        s->length += size;
        s->torn = false;
        return 0;
    }
    s->torn = cut_at(s->file, s->length) != 0;
    s->reserved = 0; /* freed by the cut */
    (void)snprintf(doing, sizeof doing, "write %zu bytes at byte %" PRIu64, size,
                   s->length);
    return refuse_storage(error, s->path, number, doing,
                          s->torn ? "; it could not be cut back, and its end is torn"
                                  : "; it was cut back to what was there before");
}

static int flush_pending(struct storage *s, mu_error *error)
{
    int rv =
        s->pending_size == 0 ? 0 : write_behind(s, s->pending, s->pending_size, error);

    if (rv == 0)
        s->pending_size = 0;
    return rv;
}

static int file_flush(struct mu__storage *base, mu_error *ret_error)
{
    struct storage *s = storage_of(base);
    int rv = check_storage_name(s, ret_error);

    if (rv != 0)
        return rv;
    if (s->folder_unsynced) {
        int number = sync_folder(s->path);

        if (number != 0)
            return refuse_storage(ret_error, s->path, number, "sync its folder", "");
        s->folder_unsynced = false;
    }
    return flush_pending(s, ret_error);
}

/* Data that does not fit beside what is in the buffer flushes it first; data that is
 * larger than the buffer is written directly. */
static int file_append(struct mu__storage *base, const void *data, size_t size,
                       mu_error *ret_error)
{
    struct storage *s = storage_of(base);

    if (size > PENDING_BYTES_MAX - s->pending_size) {
        int rv = flush_pending(s, ret_error);

        if (rv != 0)
            return rv;
    }
    if (size > PENDING_BYTES_MAX)
        return write_behind(s, data, size, ret_error);
    if (size > 0)
        memcpy(s->pending + s->pending_size, data, size);
    s->pending_size += size;
    return 0;
}

static int file_cut(struct mu__storage *base, uint64_t size, mu_error *ret_error)
{
    struct storage *s = storage_of(base);
    int number = cut_at(s->file, size);

    if (number == 0)
        s->length = size;
    if (number == 0 && s->sync && fdatasync(s->file) != 0)
        number = errno;
    return number == 0
               ? 0
               : refuse_storage(ret_error, s->path, number, "cut off its end", "");
}

/* A new file, locked and with the permissions of the old one. Returns 0 or an errno. */
static int prepare_new_storage_file(struct storage *s, int file)
{
    struct stat old;

    return flock(file, LOCK_EX | LOCK_NB) != 0 || fstat(s->file, &old) != 0 ||
                   fchmod(file, old.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO)) != 0
               ? errno
               : 0;
}

/* Write and sync the new content to `file` and rename it. Returns 0 or an errno. */
static int put_in_place(struct storage *s, int file, const void *data, size_t size)
{
    int number = prepare_new_storage_file(s, file);

    if (number == 0)
        number = write_at(file, data, size, 0);
    if (number == 0 && (fsync(file) != 0 || rename(s->path_new, s->path) != 0))
        number = errno;
    return number;
}

/* The same; on a full disk, the space reserved for the old file is freed first. */
static int put_in_room(struct storage *s, int file, const void *data, size_t size)
{
    int number = put_in_place(s, file, data, size);

    if (number != ENOSPC || s->reserved <= s->length)
        return number;
    s->reserved = 0;
    if (cut_at(file, 0) != 0 || cut_at(s->file, s->length) != 0)
        return number;
    return put_in_place(s, file, data, size);
}

static int open_new(struct storage *s, mu_error *error, int *ret_file)
{
    int rv = check_storage_name(s, error);

    if (rv != 0)
        return rv;
    *ret_file = open(s->path_new, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                     S_IRUSR | S_IWUSR);
    return *ret_file >= 0 ? 0
                          : refuse_storage(error, s->path_new, errno, "open it",
                                           "; the old content stays");
}

/* From the rename on the new content counts: if the folder cannot be synced, the next
 * flush tries again and reports it. */
static void take_new(struct storage *s, int file, uint64_t size)
{
    s->file = file;
    s->length = size;
    s->reserved = 0;
    s->torn = false;
    s->pending_size = 0;
    s->folder_unsynced = sync_folder(s->path) != 0 && s->sync;
}

static int refuse_new(struct storage *s, int file, int number, mu_error *error)
{
    (void)unlink(s->path_new);
    (void)close(file);
    return refuse_storage(error, s->path_new, number, "put it in place",
                          "; the old content stays");
}

static void file_renew_drop(struct mu__storage *base)
{
    struct storage *s = storage_of(base);

    if (s->renewed < 0)
        return;
    mu__renewal_free(s->renewal);
    s->renewal = NULL;
    (void)unlink(s->path_new);
    (void)close(s->renewed);
    s->renewed = -1;
}

static int file_replace(struct mu__storage *base, const void *data, size_t size,
                        mu_error *ret_error)
{
    struct storage *s = storage_of(base);
    int number;
    int file;
    int rv;

    file_renew_drop(base);
    rv = open_new(s, ret_error, &file);
    if (rv != 0)
        return rv;
    number = put_in_room(s, file, data, size);
    if (number != 0)
        return refuse_new(s, file, number, ret_error);
    (void)close(s->file);
    take_new(s, file, size);
    return 0;
}

/* ---- Renewals ---- */

static int file_renew(struct mu__storage *base, mu_error *ret_error)
{
    struct storage *s = storage_of(base);
    int number;
    int file;
    int rv;

    file_renew_drop(base);
    rv = open_new(s, ret_error, &file);
    if (rv != 0)
        return rv;
    mu__renewal_free(s->ended);
    s->ended = s->renewal;
    s->renewal = NULL;
    number = prepare_new_storage_file(s, file);
    if (number == 0)
        number = mu__renewal_start(file, &s->renewal);
    if (number != 0)
        return refuse_new(s, file, number, ret_error);
    s->renewed = file;
    return 0;
}

static int file_renew_append(struct mu__storage *base, const void *data, size_t size,
                             mu_error *ret_error)
{
    struct storage *s = storage_of(base);
    int number = mu__renewal_append(s->renewal, data, size);

    return number == 0 ? 0
                       : refuse_storage(ret_error, s->path_new, number, "write it",
                                        "; the old content stays");
}

static bool file_renew_is_busy(struct mu__storage *base)
{
    return mu__renewal_is_busy(storage_of(base)->renewal);
}

/* The old file is closed on the renewal's thread: the last descriptor of a large one
 * takes long. */
static int file_renew_commit(struct mu__storage *base, mu_error *ret_error)
{
    struct storage *s = storage_of(base);
    uint64_t length = 0;
    int number = mu__renewal_finish(s->renewal, s->sync, &length);
    int rv;

    if (number == EAGAIN)
        return MU__STORAGE_NOT_YET;
    rv = check_storage_name(s, ret_error);
    if (rv != 0) {
        file_renew_drop(base);
        return rv;
    }
    if (number == 0 && rename(s->path_new, s->path) != 0)
        number = errno;
    if (number != 0) {
        file_renew_drop(base);
        return refuse_storage(ret_error, s->path_new, number, "put it in place",
                              "; the old content stays");
    }
    mu__renewal_stop(s->renewal, s->file);
    take_new(s, s->renewed, length);
    s->renewed = -1;
    return 0;
}

/* Returns 0 or an errno; 0 as well on file systems that cannot reserve. */
static int reserve_up_to(struct storage *s, uint64_t end)
{
    int number;

    do
        number = fallocate(s->file, FALLOC_FL_KEEP_SIZE, (off_t)s->length,
                           (off_t)(end - s->length)) == 0
                     ? 0
                     : errno;
    while (number == EINTR);
    if (number == EOPNOTSUPP || number == ENOSYS)
        number = 0;
    if (number == 0)
        s->reserved = end;
    return number;
}

/* The process's limit (RLIMIT_FSIZE) applies to writes and not to reserving, so it is
 * checked here. */
static int reserve_storage_file(struct mu__storage *base, uint64_t bytes,
                                mu_error *ret_error)
{
    struct storage *s = storage_of(base);
    uint64_t end = s->length + s->pending_size + bytes;
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    int number = 0;
    char doing[64];

    (void)getrlimit(RLIMIT_FSIZE, &limit);
    if (limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur)
        number = EFBIG;
    else if (end > s->reserved && reserve_up_to(s, end + RESERVE_BYTES) != 0)
        number = reserve_up_to(s, end);
    if (number == 0)
        return 0;
    (void)snprintf(doing, sizeof doing, "keep %" PRIu64 " bytes free for it", bytes);
    return refuse_storage(ret_error, s->path, number, doing, "");
}

static const struct mu__storage_ops file_ops = {
    .load = file_load,
    .size = file_size,
    .cut = file_cut,
    .append = file_append,
    .flush = file_flush,
    .replace = file_replace,
    .reserve = reserve_storage_file,
    .renew = file_renew,
    .renew_append = file_renew_append,
    .renew_is_busy = file_renew_is_busy,
    .renew_commit = file_renew_commit,
    .renew_drop = file_renew_drop,
};

/* ---- Open and close ---- */

int mu__storage_uv_open(const char *path, bool sync, mu_error *ret_error,
                        struct mu__storage **ret_storage)
{
    struct storage *s = calloc(1, sizeof *s);
    struct stat status;
    int number;
    int rv;

    if (s == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: no memory for it", path);
    s->base.ops = &file_ops;
    s->sync = sync;
    s->file = s->renewed = -1;
    rv = open_ours(path, ret_error, &s->file);
    if (rv != 0) {
        free(s);
        return rv;
    }
    number = set_paths(s, path);
    if (number == 0 && fstat(s->file, &status) != 0)
        number = errno;
    if (number != 0) {
        mu__storage_uv_close(&s->base);
        return refuse_open(path, number, ret_error);
    }
    s->length = (uint64_t)status.st_size;
    s->folder_unsynced = sync;
    *ret_storage = &s->base;
    return 0;
}

void mu__storage_uv_close(struct mu__storage *storage)
{
    struct storage *s;

    if (storage == NULL)
        return;
    s = storage_of(storage);
    file_renew_drop(storage);
    mu__renewal_free(s->renewal);
    mu__renewal_free(s->ended);
    (void)close(s->file);
    free(s->path_new);
    free(s->path);
    free(s);
}
