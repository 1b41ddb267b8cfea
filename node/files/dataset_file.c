/* A packed value behind a header of 32 bytes:
 *
 *     0   "mu data\n"
 *     8   format, 1                        (32 bits, as all numbers little end first)
 *     12  bytes of the value's head
 *     16  bytes of the value's tail
 *     20  0
 *     24  checksum of what follows         (64 bits)
 *
 * Then the tail, filled up to a multiple of 16, and the head. */
#include "node/files/dataset_file.h"

#include "actors/packing.h"
#include "node/files/files.h"
#include "runtime/base/byte_order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 32,
    FORMAT = 1,
    AT_FORMAT = 8,
    AT_HEAD = 12,
    AT_TAIL = 16,
    AT_CHECKSUM = 24,
    TAIL_STEP = 16,
    CONTENT_BYTES_MAX = 1 << 30,
    PATH_BYTES = 4096
};

static const char magic[] = "mu data\n";

/* ---- parts ---- */

/* FNV-1a: against damage, not against malice. */
static uint64_t compute_checksum(const uint8_t *data, size_t size)
{
    uint64_t sum = UINT64_C(0xCBF29CE484222325);

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * UINT64_C(0x100000001B3);
    return sum;
}

/* ---- writing ---- */

static int write_dataset_file(const char *path, const uint8_t *header,
                              const struct mu__buf *buf)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int number;

    if (fd < 0)
        return errno;
    number = mu__file_write_all(fd, header, HEADER_BYTES);
    if (number == 0)
        number = mu__file_write_all(fd, buf->data, buf->size);
    if (number == 0 && fsync(fd) != 0)
        number = errno;
    if (close(fd) != 0 && number == 0)
        number = errno;
    return number;
}

static void make_header(uint8_t *header, const struct mu__buf *buf,
                        const struct mu__packed *packed)
{
    memset(header, 0, HEADER_BYTES);
    memcpy(header, magic, sizeof magic - 1);
    mu__store_little(header + AT_FORMAT, FORMAT, 4);
    mu__store_little(header + AT_HEAD, packed->head_size, 4);
    mu__store_little(header + AT_TAIL, packed->tail_size, 4);
    mu__store_little(header + AT_CHECKSUM, compute_checksum(buf->data, buf->size), 8);
}

int mu__dataset_file_write(const char *path, const mu_value *value, mu_error *ret_error)
{
    uint8_t header[HEADER_BYTES];
    char beside[PATH_BYTES];
    struct mu__packed packed;
    struct mu__buf *buf;
    int number;

    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return mu_error_set(ret_error, -MU_EINVALID, "\"%.200s...\" is too long", path);
    buf = mu__pack_value(value, &packed);
    if (buf == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to save \"%.200s\"", path);
    make_header(header, buf, &packed);
    number = write_dataset_file(beside, header, buf);
    mu__buf_unref(buf);
    if (number != 0)
        return mu__file_error(beside, "written", number, ret_error);
    if (rename(beside, path) != 0)
        return mu__file_error(path, "replaced", errno, ret_error);
    mu__file_flush_folder(path);
    return 0;
}

/* ---- reading ---- */

static int refuse_dataset(const char *path, const char *why, mu_error *error)
{
    return mu_error_set(error, -MU_EDATALOSS,
                        "\"%.200s\" is no dataset that was saved: %s", path, why);
}

static int unpack_dataset(const char *path, const uint8_t *header, struct mu__buf *buf,
                          mu_error *error, mu_value **ret_value)
{
    struct mu__packed packed = {
        .head_size = mu__load_little32(header + AT_HEAD),
        .tail_size = mu__load_little32(header + AT_TAIL),
    };
    char why[128];
    int rv;

    if (compute_checksum(buf->data, buf->size) != mu__load_little64(header + AT_CHECKSUM))
        return refuse_dataset(path, "the checksum is another one", error);
    packed.head = buf->data + buf->size - packed.head_size;
    packed.tail = packed.tail_size == 0 ? NULL : buf->data;
    rv = mu__value_unpack(&packed, why, sizeof why, ret_value);
    if (rv == -MU_ENOMEM)
        return mu_error_set(error, rv, "no memory to read \"%.200s\"", path);
    return rv == 0 ? 0 : refuse_dataset(path, why, error);
}

static int read_content(const char *path, int fd, const uint8_t *header, mu_error *error,
                        mu_value **ret_value)
{
    uint64_t tail = mu__load_little32(header + AT_TAIL);
    uint64_t filled = (tail + TAIL_STEP - 1) / TAIL_STEP * TAIL_STEP;
    uint64_t size = filled + mu__load_little32(header + AT_HEAD);
    struct mu__buf *buf;
    struct stat about;
    int number;
    int rv;

    if (fstat(fd, &about) != 0)
        return mu__file_error(path, "read", errno, error);
    if (size > CONTENT_BYTES_MAX || (uint64_t)about.st_size != HEADER_BYTES + size)
        return refuse_dataset(path, "it has another size than its header says", error);
    buf = mu__buf_new(size);
    if (buf == NULL)
        return mu_error_set(error, -MU_ENOMEM, "no memory to read \"%.200s\"", path);
    buf->size = (uint32_t)size;
    number = mu__file_read_all(fd, buf->data, buf->size, HEADER_BYTES);
    if (number > 0)
        rv = mu__file_error(path, "read", number, error);
    else if (number < 0)
        rv = refuse_dataset(path, "it is cut short", error);
    else
        rv = unpack_dataset(path, header, buf, error, ret_value);
    mu__buf_unref(buf);
    return rv;
}

static int read_open(const char *path, int fd, mu_error *error, mu_value **ret_value)
{
    uint8_t header[HEADER_BYTES];
    int number = mu__file_read_all(fd, header, sizeof header, 0);

    if (number > 0)
        return mu__file_error(path, "read", number, error);
    if (number < 0 || memcmp(header, magic, sizeof magic - 1) != 0)
        return refuse_dataset(path, "it does not begin like one", error);
    if (mu__load_little32(header + AT_FORMAT) != FORMAT)
        return refuse_dataset(path, "it has another format than 1", error);
    return read_content(path, fd, header, error, ret_value);
}

int mu__dataset_file_read(const char *path, mu_error *ret_error, mu_value **ret_value)
{
    int fd = -1;
    int rv = mu__file_open(path, ret_error, &fd);

    if (rv != 0)
        return rv;
    rv = read_open(path, fd, ret_error, ret_value);
    (void)close(fd);
    return rv;
}
