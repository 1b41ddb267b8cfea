/* A checkpoint is written in a directory with a name of its own, which is renamed when
 * all of it is on the disk; one that goes is renamed before its files are deleted. So
 * there is a whole one under a checkpoint's name, or none. Each such directory is locked
 * (flock) by whoever writes it. */
#define _GNU_SOURCE /* renameat2() */
#include "node/files/checkpoint/ckpt_folder.h"

#include "actors/packing.h"
#include "node/files/files.h"
#include "runtime/document/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TRIES_MAX = 1000, /* names that others use */
    NAME_BYTES_MAX = 63
};

static const char unfinished[] = ".part";

/* ---- names ---- */

int mu__ckpt_name_check(const char *name, mu_error *ret_error)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";
    size_t length = name == NULL ? 0 : strlen(name);

    if (length > 0 && length <= NAME_BYTES_MAX && strspn(name, letters) == length &&
        name[0] != '.')
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "a checkpoint's name is \"%.80s\", expected 1 to %d letters, "
                        "digits, \"_\", \"-\" or \".\", that first not",
                        name == NULL ? "" : name, NAME_BYTES_MAX);
}

int mu__ckpt_path(const char *directory, const char *name, uint64_t step,
                  mu_error *ret_error, char out[MU__CKPT_PATH_BYTES])
{
    size_t length = strlen(directory);
    const char *slash = length > 0 && directory[length - 1] == '/' ? "" : "/";
    int size = snprintf(out, MU__CKPT_PATH_BYTES, "%s%s%s-%" PRIu64, directory, slash,
                        name, step);

    if (size > 0 && size < MU__CKPT_PATH_BYTES)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the checkpoint's directory \"%.80s...\" is too long", directory);
}

/* "NAME-17" -> 17. Steps have no zeros before them: each has one directory. */
static bool parse_step(const char *file, const char *name, uint64_t *ret_step)
{
    size_t length = strlen(name);
    char text[32];
    uint64_t step;

    if (strncmp(file, name, length) != 0 || file[length] != '-')
        return false;
    errno = 0;
    step = strtoull(file + length + 1, NULL, 10);
    (void)snprintf(text, sizeof text, "%" PRIu64, step);
    if (errno != 0 || strcmp(file + length + 1, text) != 0)
        return false;
    *ret_step = step;
    return true;
}

/* ---- listing ---- */

static bool has_manifest(int folder, const char *name)
{
    char path[MU__CKPT_PATH_BYTES];
    struct stat about;
    int size = snprintf(path, sizeof path, "%s/" MU__MANIFEST_FILE, name);

    return size > 0 && (size_t)size < sizeof path &&
           fstatat(folder, path, &about, 0) == 0 && S_ISREG(about.st_mode);
}

static int compare_steps_descending(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a;
    uint64_t two = *(const uint64_t *)b;

    return one < two ? 1 : one > two ? -1 : 0;
}

static int collect_steps(DIR *directory, const char *name, uint64_t **ret_steps,
                         size_t *ret_count)
{
    uint64_t *steps = NULL;
    size_t count = 0;
    size_t size = 0;
    struct dirent *entry;
    uint64_t step;

    while ((entry = readdir(directory)) != NULL) {
        if (!parse_step(entry->d_name, name, &step) ||
            !has_manifest(dirfd(directory), entry->d_name))
            continue;
        if (count == size) {
            size = size == 0 ? 16 : size * 2;
            if (!mu__grow_array((void **)&steps, size, sizeof *steps)) {
                mu__free_array(steps);
                return -MU_ENOMEM;
            }
        }
        steps[count++] = step;
    }
    if (count > 1)
        qsort(steps, count, sizeof *steps, compare_steps_descending);
    *ret_steps = steps;
    *ret_count = count;
    return 0;
}

int mu__ckpt_steps(const char *directory, const char *name, mu_error *ret_error,
                   uint64_t **ret_steps, size_t *ret_count)
{
    DIR *opened = opendir(directory);
    int rv;

    if (opened == NULL)
        return mu__file_error(directory, "read", errno, ret_error);
    rv = collect_steps(opened, name, ret_steps, ret_count);
    (void)closedir(opened);
    return rv == 0
               ? 0
               : mu_error_set(ret_error, rv, "no memory to read \"%.200s\"", directory);
}

/* ---- making directories ---- */

static int make_checkpoint_folder(const char *path, mu_error *ret_error)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    return mu__file_error(path, "made", errno, ret_error);
}

int mu__ckpt_make_directory(const char *directory, mu_error *ret_error)
{
    char path[MU__CKPT_PATH_BYTES];
    size_t length = strlen(directory);

    if (length == 0 || length >= sizeof path)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the checkpoint's directory \"%.80s\" is %s", directory,
                            length == 0 ? "none" : "too long");
    for (size_t i = 1; i <= length; i++) {
        int rv;

        if (directory[i] != '/' && directory[i] != '\0')
            continue;
        (void)snprintf(path, sizeof path, "%.*s", (int)i, directory);
        rv = make_checkpoint_folder(path, ret_error);
        if (rv != 0)
            return rv;
    }
    return 0;
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Locked, and still there: before the lock another writer may have removed it. */
static bool lock_folder(int fd, const char *path)
{
    struct stat locked;
    struct stat named;

    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &locked) == 0 &&
           stat(path, &named) == 0 && locked.st_ino == named.st_ino &&
           locked.st_dev == named.st_dev;
}

int mu__ckpt_folder_make(const char *path, char ret_under[MU__CKPT_PATH_BYTES],
                         int *ret_fd)
{
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        int size = snprintf(ret_under, MU__CKPT_PATH_BYTES, "%s.%ld-%u%s", path,
                            (long)getpid(), i, unfinished);
        int fd;

        if (size < 0 || size >= MU__CKPT_PATH_BYTES)
            return ENAMETOOLONG;
        if (mkdir(ret_under, 0777) != 0) {
            if (errno != EEXIST)
                return errno;
            continue;
        }
        fd = open_folder(ret_under);
        if (fd >= 0 && lock_folder(fd, ret_under)) {
            *ret_fd = fd;
            return 0;
        }
        if (fd >= 0)
            (void)close(fd);
    }
    return EEXIST;
}

/* ---- removing ---- */

/* The files of the directory first. */
void mu__ckpt_folder_discard(const char *under, int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (directory == NULL) {
        if (copy >= 0)
            (void)close(copy);
        return;
    }
    while ((entry = readdir(directory)) != NULL)
        (void)unlinkat(fd, entry->d_name, 0);
    (void)closedir(directory);
    (void)rmdir(under);
}

static void delete_path(const char *path)
{
    int fd = open_folder(path);

    if (fd < 0)
        return;
    mu__ckpt_folder_discard(path, fd);
    (void)close(fd);
}

/* Give what is at `path` a name of its own: that of an empty directory, which a rename
 * replaces. */
static int move_away(const char *path, char ret_aside[MU__CKPT_PATH_BYTES])
{
    int fd = -1;
    int number = mu__ckpt_folder_make(path, ret_aside, &fd);

    if (number != 0)
        return number;
    if (rename(path, ret_aside) != 0) {
        number = errno;
        (void)rmdir(ret_aside);
    }
    (void)close(fd);
    return number;
}

void mu__ckpt_folder_remove(const char *path)
{
    char aside[MU__CKPT_PATH_BYTES];

    if (move_away(path, aside) == 0)
        delete_path(aside);
}

/* Remove `path` unless somebody is writing it. */
static void remove_left(const char *path)
{
    int fd = open_folder(path);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        mu__ckpt_folder_discard(path, fd);
    (void)close(fd);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);

    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* A checkpoint's name is what is before the last "-". */
void mu__ckpt_folder_clean(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *dash = strrchr(name, '-');
    size_t named = dash == NULL ? strlen(name) : (size_t)(dash - name) + 1;
    int length = slash == NULL ? 0 : (int)(slash - path) + 1;
    char found[MU__CKPT_PATH_BYTES];
    struct dirent *entry;
    DIR *directory;

    (void)snprintf(found, sizeof found, "%.*s", length, path);
    directory = opendir(length == 0 ? "." : found);
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL) {
        int size = snprintf(found, sizeof found, "%.*s%s", length, path, entry->d_name);

        if (strncmp(entry->d_name, name, named) == 0 &&
            ends_with(entry->d_name, unfinished) && size > 0 &&
            (size_t)size < sizeof found)
            remove_left(found);
    }
    (void)closedir(directory);
}

/* ---- publishing ---- */

/* Where the file system cannot exchange two names there is a moment without any. */
static int replace_in_two_steps(const char *under, const char *path)
{
    char aside[MU__CKPT_PATH_BYTES];
    int number = move_away(path, aside);

    if (number != 0)
        return number;
    if (rename(under, path) == 0) {
        mu__file_flush_folder(path);
        delete_path(aside);
        return 0;
    }
    number = errno;
    (void)rename(aside, path);
    return number;
}

static int replace_checkpoint(const char *under, const char *path)
{
    if (renameat2(AT_FDCWD, under, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        mu__file_flush_folder(path);
        delete_path(under);
        return 0;
    }
    return errno == EINVAL || errno == ENOSYS ? replace_in_two_steps(under, path) : errno;
}

int mu__ckpt_folder_publish(const char *under, int fd, const char *path)
{
    int number = fsync(fd) == 0 ? 0 : errno;

    if (number != 0)
        return number;
    if (rename(under, path) != 0)
        number = errno;
    if ((number == ENOTEMPTY || number == EEXIST) && has_manifest(AT_FDCWD, path))
        number = replace_checkpoint(under, path);
    if (number == 0)
        mu__file_flush_folder(path);
    return number;
}
