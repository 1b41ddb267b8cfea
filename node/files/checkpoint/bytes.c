#include "node/files/checkpoint/internal.h"

#include "node/files/files.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- errors ---- */

int mu__ckpt_refuse(const struct mu__ckpt_reader *reader, const char *file,
                    const char *why, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EDATALOSS,
                        "\"%.200s\" is no checkpoint that was saved: %s%s%s",
                        reader->path, file == NULL ? "" : file, file == NULL ? "" : ": ",
                        why);
}

int mu__ckpt_explain(const struct mu__ckpt_reader *reader, const char *file, int rv,
                     const mu_error *error, mu_error *ret_error)
{
    if (rv == 0)
        return 0;
    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "no memory to read \"%.200s\"", reader->path);
    if (rv == -MU_EDATALOSS)
        return mu__ckpt_refuse(reader, file, error->message, ret_error);
    return mu_error_set(ret_error, rv, "\"%.200s\" cannot be restored: %.200s",
                        reader->path, error->message);
}

int mu__ckpt_no_memory(const struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    return mu__ckpt_explain(reader, NULL, -MU_ENOMEM, NULL, ret_error);
}

int mu__ckpt_refuse_tensor(const struct mu__ckpt_reader *reader, const char *file,
                           const char *name, const char *reason, mu_error *ret_error)
{
    char why[2 * MU__QUOTE_BYTES];
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, name, strlen(name));
    (void)snprintf(why, sizeof why, "tensor %s %s", shown, reason);
    return mu__ckpt_refuse(reader, file, why, ret_error);
}

/* ---- bytes ---- */

int mu__ckpt_read_bytes(const struct mu__ckpt_reader *reader, int fd, const char *file,
                        void *data, uint64_t size, uint64_t offset, mu_error *ret_error)
{
    int number = mu__file_read_all(fd, data, size, offset);

    if (number < 0)
        return mu__ckpt_refuse(reader, file, "the file is cut short", ret_error);
    return number == 0 ? 0 : mu__file_error(reader->path, "read", number, ret_error);
}

int mu__ckpt_open_in(const struct mu__ckpt_reader *reader, int folder, const char *file,
                     mu_error *ret_error, int *ret_fd, uint64_t *ret_bytes)
{
    int fd = openat(folder, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat about;

    if (fd < 0 && errno == ENOENT)
        return mu__ckpt_refuse(reader, file, "the file is missing", ret_error);
    if (fd < 0)
        return mu__file_error(reader->path, "read", errno, ret_error);
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        (void)close(fd);
        return mu__ckpt_refuse(reader, file, "it is no regular file", ret_error);
    }
    *ret_fd = fd;
    *ret_bytes = (uint64_t)about.st_size;
    return 0;
}

/* ---- headers ---- */

/* `size` bytes with those that say how many of JSON there are. */
static int read_whole_header(const struct mu__ckpt_reader *reader, int fd,
                             const char *file, uint64_t bytes, size_t size,
                             mu_error *ret_error, struct mu__ckpt_header *header)
{
    char *text = malloc(size);
    mu_error error = {0};
    int rv = text == NULL ? mu__ckpt_no_memory(reader, ret_error) : 0;

    if (rv == 0)
        rv = mu__ckpt_read_bytes(reader, fd, file, text, size, 0, ret_error);
    if (rv == 0 && header->expected_crc != NULL &&
        mu__crc32c_add(&reader->crc, 0, text, size) != *header->expected_crc)
        rv = mu__ckpt_refuse(reader, file, "its header is damaged", ret_error);
    if (rv == 0) {
        header->contents_at = size;
        rv = mu__safetensors_read(text + MU__SAFETENSORS_SIZE_BYTES,
                                  size - MU__SAFETENSORS_SIZE_BYTES, bytes - size, &error,
                                  &header->tensors, &header->count);
        rv = mu__ckpt_explain(reader, file, rv, &error, ret_error);
    }
    free(text);
    return rv;
}

int mu__ckpt_read_header(const struct mu__ckpt_reader *reader, int fd, const char *file,
                         uint64_t bytes, mu_error *ret_error,
                         struct mu__ckpt_header *header)
{
    uint8_t prefix[MU__SAFETENSORS_SIZE_BYTES] = {0};
    mu_error error = {0};
    size_t size;
    int rv =
        mu__ckpt_read_bytes(reader, fd, file, prefix,
                            bytes < sizeof prefix ? bytes : sizeof prefix, 0, ret_error);

    if (rv != 0)
        return rv;
    rv = mu__safetensors_read_size(prefix, bytes, &error, &size);
    if (rv != 0)
        return mu__ckpt_explain(reader, file, rv, &error, ret_error);
    return read_whole_header(reader, fd, file, bytes, sizeof prefix + size, ret_error,
                             header);
}

/* ---- variables ---- */

struct mu__shape mu__ckpt_shape(const struct mu__manifest_variable *variable)
{
    struct mu__shape shape = {
        .dtype = variable->dtype, .rank = variable->rank, .shards = variable->shards};

    memcpy(shape.dims, variable->dims, sizeof shape.dims);
    return shape;
}

static int check_variable(const struct mu__manifest_variable *variable,
                          mu_error *ret_error)
{
    struct mu__shape shape = mu__ckpt_shape(variable);
    char name[MU__QUOTE_BYTES];
    mu_error error;

    if (mu__variable_name_check(mu__view_str(variable->name), &error) == 0 &&
        mu__shape_check(&shape, &error) == 0)
        return 0;
    mu__quote(name, sizeof name, variable->name, strlen(variable->name));
    return mu_error_set(ret_error, -MU_EDATALOSS, "variable %s: %.200s", name,
                        error.message);
}

int mu__ckpt_check_variables(const struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    const struct mu__manifest *manifest = &reader->manifest;
    mu_error error = {0};
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < manifest->variables_count; i++)
        rv = check_variable(&manifest->variables[i], &error);
    if (rv != 0 && !reader->has_sums)
        rv = -MU_EUNIMPLEMENTED;
    return mu__ckpt_explain(reader, MU__MANIFEST_FILE, rv, &error, ret_error);
}

int mu__ckpt_make_fds(struct mu__ckpt_reader *reader, uint32_t count, mu_error *ret_error)
{
    reader->fds = malloc(((size_t)count + 1) * sizeof *reader->fds);
    if (reader->fds == NULL)
        return mu__ckpt_no_memory(reader, ret_error);
    for (uint32_t i = 0; i < count; i++)
        reader->fds[i] = -1;
    return 0;
}
