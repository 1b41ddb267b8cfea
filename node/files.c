#include "node/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int mu__file_error(const char *path, const char *what, int number, mu_error *ret_error)
{
    static const struct {
        int number;
        int code;
    } codes[] = {
        {ENOENT, -MU_ENOTFOUND},       {ENOTDIR, -MU_ENOTFOUND},
        {EACCES, -MU_EPERMISSION},     {EPERM, -MU_EPERMISSION},
        {EROFS, -MU_EPERMISSION},      {ENOSPC, -MU_EEXHAUSTED},
        {EDQUOT, -MU_EEXHAUSTED},      {EFBIG, -MU_EEXHAUSTED},
        {EMFILE, -MU_EEXHAUSTED},      {ENFILE, -MU_EEXHAUSTED},
        {ENAMETOOLONG, -MU_EINVALID},  {EISDIR, -MU_EINVALID},
    };
    int code = -MU_EUNKNOWN;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].number == number)
            code = codes[i].code;
    return mu_error_set(ret_error, code, "\"%.200s\" cannot be %s: %s", path, what,
                        strerror(number));
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
        rv = mu_error_set(ret_error, -MU_EDATALOSS, "\"%.200s\" cannot be read: it is no "
                          "regular file", path);
    if (rv == 0)
        *ret_fd = fd;
    else
        (void)close(fd);
    return rv;
}

static int64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until there is something to read, or the end. A pipe that was never opened by a writer
 * has neither. */
static int wait_readable(const char *path, int fd, int64_t end_ms, mu_error *error)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    for (;;) {
        int64_t left_ms = end_ms - clock_ms();
        int rv = left_ms <= 0 ? 0 : poll(&poll_fd, 1, (int)left_ms);

        if (rv > 0)
            return 0;
        if (rv < 0 && errno != EINTR)
            return mu__file_error(path, "read", errno, error);
        if (rv == 0)
            return mu_error_set(error, -MU_EDEADLINE, "\"%.200s\" cannot be read: its "
                                "writer has not ended in time", path);
    }
}

static int read_fd(const char *path, int fd, char *text, size_t most, int64_t end_ms,
                   mu_error *error, size_t *ret_size)
{
    size_t size = 0;

    while (size < most) {
        ssize_t got;
        int rv = wait_readable(path, fd, end_ms, error);

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
    int64_t end_ms = clock_ms() + timeout_ms;
    char *text = malloc(most + 1);
    size_t size = 0;
    int fd = -1;
    int rv = 0;

    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read \"%.200s\"", path);
    rv = open_path(path, ret_error, &fd);
    if (rv == 0)
        rv = read_fd(path, fd, text, most, end_ms, ret_error, &size);
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
