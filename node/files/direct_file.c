#define _GNU_SOURCE /* O_DIRECT, fallocate */
#include "node/files/direct_file.h"

#include "node/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* A write past the cache waits for the disk: one that is smaller costs more time than the
 * copy of its bytes. */
enum { DIRECT_BYTES_MIN = 256 << 10 };

int mu__direct_file_create(int folder, const char *name, struct mu__direct_file *file)
{
    int cached = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (cached < 0)
        return errno;
    *file = (struct mu__direct_file){
        cached, openat(folder, name, O_WRONLY | O_DIRECT | O_CLOEXEC)};
    return 0;
}

int mu__direct_file_resize(struct mu__direct_file *file, uint64_t size)
{
    if (size == 0 || fallocate(file->cached, 0, 0, (off_t)size) == 0)
        return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR ? 0 : errno;
}

/* How many bytes were written past the cache: perhaps not all. */
static uint64_t write_direct(struct mu__direct_file *file, const uint8_t *data,
                             uint64_t size, uint64_t offset)
{
    uint64_t done = 0;

    while (done < size) {
        ssize_t written = pwrite(file->direct, data + done, (size_t)(size - done),
                                 (off_t)(offset + done));

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0 || written % MU__DIRECT_ALIGN != 0)
            return done;
        done += (uint64_t)written;
    }
    return done;
}

int mu__direct_file_write_at(struct mu__direct_file *file, const void *data,
                             uint64_t size, uint64_t offset)
{
    const uint8_t *at = data;
    uint64_t head = (MU__DIRECT_ALIGN - offset % MU__DIRECT_ALIGN) % MU__DIRECT_ALIGN;
    uint64_t middle = size < head ? 0 : (size - head) & ~(uint64_t)(MU__DIRECT_ALIGN - 1);
    int rv;

    if (file->direct < 0 || middle < DIRECT_BYTES_MIN ||
        (uintptr_t)(at + head) % MU__DIRECT_ALIGN != 0)
        return mu__file_write_at(file->cached, at, size, offset);
    middle = write_direct(file, at + head, middle, offset + head);
    rv = mu__file_write_at(file->cached, at, head, offset);
    return rv != 0 ? rv
                   : mu__file_write_at(file->cached, at + head + middle,
                                       size - head - middle, offset + head + middle);
}

int mu__direct_file_flush(const struct mu__direct_file *file)
{
    return fsync(file->cached) == 0 ? 0 : errno;
}

void mu__direct_file_close(struct mu__direct_file *file)
{
    if (file->direct >= 0)
        (void)close(file->direct);
    if (file->cached >= 0)
        (void)close(file->cached);
    *file = (struct mu__direct_file){-1, -1};
}
