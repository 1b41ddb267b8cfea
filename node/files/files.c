#include "node/files/files.h"

#include "node/deadline.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 };

int mu__file_error(const char *path, const char *what, int number, mu_error *ret_error)
{
    static const struct {
        int number;
        int code;
    } codes[] = {
        {ENOENT, -MU_ENOTFOUND},  {ENOTDIR, -MU_ENOTFOUND},     {EACCES, -MU_EPERMISSION},
        {EPERM, -MU_EPERMISSION}, {EROFS, -MU_EPERMISSION},     {ENOSPC, -MU_EEXHAUSTED},
        {EDQUOT, -MU_EEXHAUSTED}, {EFBIG, -MU_EEXHAUSTED},      {EMFILE, -MU_EEXHAUSTED},
        {ENFILE, -MU_EEXHAUSTED}, {ENAMETOOLONG, -MU_EINVALID}, {EISDIR, -MU_EINVALID},
        {ENOTEMPTY, -MU_EEXISTS}, {EEXIST, -MU_EEXISTS},
    };
    int code = -MU_EUNKNOWN;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].number == number)
            code = codes[i].code;
    return mu_error_set(ret_error, code, "\"%.200s\" cannot be %s: %s", path, what,
                        strerror(number));
}

int mu__file_write_all(int fd, const void *data, uint64_t size)
{
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t written = write(fd, at, size > CHUNK_BYTES ? CHUNK_BYTES : (size_t)size);

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            at += written;
            size -= (uint64_t)written;
        }
    }
    return 0;
}

int mu__file_write_at(int fd, const void *data, uint64_t size, uint64_t offset)
{
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t written = pwrite(fd, at, size > CHUNK_BYTES ? CHUNK_BYTES : (size_t)size,
                                 (off_t)offset);

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            at += written;
            size -= (uint64_t)written;
            offset += (uint64_t)written;
        }
    }
    return 0;
}

int mu__file_read_all(int fd, void *data, uint64_t size, uint64_t offset)
{
    uint8_t *at = data;

    while (size > 0) {
        ssize_t got =
            pread(fd, at, size > CHUNK_BYTES ? CHUNK_BYTES : (size_t)size, (off_t)offset);

        if (got < 0 && errno != EINTR)
            return errno;
        if (got == 0)
            return -1;
        if (got > 0) {
            at += got;
            offset += (uint64_t)got;
            size -= (uint64_t)got;
        }
    }
    return 0;
}

void mu__file_flush_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int fd;

    (void)snprintf(folder, sizeof folder, "%.*s",
                   slash == NULL ? 1 : (int)(slash - path) + 1,
                   slash == NULL ? "." : path);
    fd = open(folder, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    (void)close(fd);
}

static int open_path(const char *path, mu_error *error, int *ret_fd)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return mu__file_error(path, "read", errno, error);
    *ret_fd = fd;
    return 0;
}

int mu__file_open(const char *path, mu_error *ret_error, int *ret_fd)
{
    struct stat status;
    int fd = -1;
    int rv = open_path(path, ret_error, &fd);

    if (rv != 0)
        return rv;
    if (fstat(fd, &status) != 0)
        rv = mu__file_error(path, "read", errno, ret_error);
    else if (!S_ISREG(status.st_mode))
        rv = mu_error_set(ret_error, -MU_EDATALOSS,
                          "\"%.200s\" cannot be read: it is no regular file", path);
    if (rv == 0)
        *ret_fd = fd;
    else
        (void)close(fd);
    return rv;
}

/* Until there is something to read, or the end. A pipe that was never opened by a writer
 * has neither. */
static int wait_readable(const char *path, int fd, uint64_t deadline_ns, mu_error *error)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    for (;;) {
        int64_t left_ms = mu__deadline_left_ms(deadline_ns);
        int rv = left_ms == 0 ? 0 : poll(&poll_fd, 1, (int)left_ms);

        if (rv > 0)
            return 0;
        if (rv < 0 && errno != EINTR)
            return mu__file_error(path, "read", errno, error);
        if (rv == 0)
            return mu_error_set(error, -MU_EDEADLINE,
                                "\"%.200s\" cannot be read: its "
                                "writer has not ended in time",
                                path);
    }
}

static int read_fd(const char *path, int fd, char *text, size_t most,
                   uint64_t deadline_ns, mu_error *error, size_t *ret_size)
{
    size_t size = 0;

    while (size < most) {
        ssize_t got;
        int rv = wait_readable(path, fd, deadline_ns, error);

        if (rv != 0)
            return rv;
        got = read(fd, text + size, most - size);
        if (got == 0)
            break;
        if (got > 0)
            size += (size_t)got;
        else if (errno != EAGAIN && errno != EINTR)
            return mu__file_error(path, "read", errno, error);
    }
    *ret_size = size;
    return 0;
}

int mu__file_read(const char *path, size_t most, unsigned timeout_ms, mu_error *ret_error,
                  char **ret_text, size_t *ret_size)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    char *text = malloc(most + 1);
    size_t size = 0;
    int fd = -1;
    int rv = 0;

    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read \"%.200s\"", path);
    rv = open_path(path, ret_error, &fd);
    if (rv == 0)
        rv = read_fd(path, fd, text, most, deadline_ns, ret_error, &size);
    if (fd >= 0)
        (void)close(fd);
    if (rv != 0) {
        free(text);
        return rv;
    }
    text[size] = '\0';
    *ret_text = text;
    *ret_size = size;
    return 0;
}
