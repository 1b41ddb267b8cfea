/* A file is written under another name in the same folder, which then replaces the file
 * by rename, or, with `new_only`, becomes the file by a hard link, which fails when
 * there is one. */
#include "resolver/engine/uv/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

int mu__errno_code(int number)
{
    static const struct {
        int number;
        int code;
    } codes[] = {
        {ENOENT, -MU_ENOTFOUND},      {ENOTDIR, -MU_ENOTFOUND},
        {EEXIST, -MU_EEXISTS},        {EACCES, -MU_EPERMISSION},
        {EPERM, -MU_EPERMISSION},     {EROFS, -MU_EPERMISSION},
        {ENOSPC, -MU_EEXHAUSTED},     {EDQUOT, -MU_EEXHAUSTED},
        {ENAMETOOLONG, -MU_EINVALID}, {EISDIR, -MU_EINVALID},
        {ELOOP, -MU_EINVALID},        {ENOEXEC, -MU_EINVALID},
        {E2BIG, -MU_EINVALID},        {ECANCELED, -MU_ECANCELLED},
        {ENOMEM, -MU_ENOMEM},
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].number == number)
            return codes[i].code;
    return -MU_EUNAVAILABLE;
}

static int fail_file_write(const char *path, const char *what, mu_error *ret_error)
{
    int number = errno;

    return mu_error_set(ret_error, mu__errno_code(number), "\"%.200s\" cannot be %s: %s",
                        path, what, strerror(number));
}

static bool write_file_bytes(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, bytes, size);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

/* Write the content, and sync it to the disk. */
static bool fill_file(int fd, const void *bytes, size_t size)
{
    bool whole =
        fchmod(fd, 0644) == 0 && write_file_bytes(fd, bytes, size) && fsync(fd) == 0;
    int number = errno;

    if (close(fd) != 0 && whole)
        return false;
    errno = number;
    return whole;
}

/* "/folder/.name.0123456789abcdef": readers pass over names that begin with a point.
 * NULL: out of memory. */
static char *other_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash + 1 - path);
    size_t size = strlen(path) + sizeof "..0123456789abcdef";
    char *name = malloc(size);
    uint64_t number = uv_hrtime();

    (void)uv_random(NULL, NULL, &number, sizeof number, 0, NULL);
    if (name != NULL)
        (void)snprintf(name, size, "%.*s.%s.%016" PRIx64, (int)folder, path,
                       path + folder, number);
    return name;
}

static bool replace_file(const char *other, const char *path, bool new_only)
{
    if (!new_only)
        return rename(other, path) == 0;
    if (link(other, path) != 0)
        return false;
    (void)unlink(other);
    return true;
}

int mu__file_write(const char *path, const void *bytes, size_t size, bool new_only,
                   mu_error *ret_error)
{
    char *other = other_name(path);
    int rv = 0;
    int fd;

    if (other == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to write \"%.200s\"", path);
    fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        rv = fail_file_write(path, "written", ret_error);
    } else if (!fill_file(fd, bytes, size) || !replace_file(other, path, new_only)) {
        rv = fail_file_write(path, "written", ret_error);
        (void)unlink(other);
    }
    free(other);
    return rv;
}

int mu__file_remove(const char *path, mu_error *ret_error)
{
    return unlink(path) == 0 ? 0 : fail_file_write(path, "removed", ret_error);
}
