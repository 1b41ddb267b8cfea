/* A checkpoint that has a manifest: its files are as this says, byte by byte. */
#include "node/files/checkpoint/internal.h"

#include "runtime/message/codec.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 };

/* ---- sums ---- */

/* The sum of bytes of a file, read in pieces. */
static int add_up_bytes(const struct mu__ckpt_reader *reader, int fd, const char *file,
                        uint64_t size, uint64_t offset, mu_error *ret_error,
                        uint32_t *ret_sum)
{
    uint8_t *chunk = malloc(size < CHUNK_BYTES ? (size_t)size + 1 : CHUNK_BYTES);
    uint32_t sum = 0;
    int rv = chunk == NULL ? mu__ckpt_no_memory(reader, ret_error) : 0;

    while (rv == 0 && size > 0) {
        uint64_t piece = size < CHUNK_BYTES ? size : CHUNK_BYTES;

        rv = mu__ckpt_read_bytes(reader, fd, file, chunk, piece, offset, ret_error);
        sum = rv == 0 ? mu__crc32c_add(&reader->crc, sum, chunk, (size_t)piece) : 0;
        offset += piece;
        size -= piece;
    }
    free(chunk);
    if (rv == 0)
        *ret_sum = sum;
    return rv;
}

static int check_file_size(const struct mu__ckpt_reader *reader, const char *file,
                           uint64_t bytes, uint64_t expected, mu_error *ret_error)
{
    if (bytes == expected)
        return 0;
    return mu__ckpt_refuse(reader, file,
                           bytes < expected ? "the file is cut short"
                                            : "there are bytes behind its end",
                           ret_error);
}

/* It is for other programs; here it is only checked. */
static int check_index_file(const struct mu__ckpt_reader *reader, int folder,
                            mu_error *ret_error)
{
    static const char file[] = MU__MANIFEST_INDEX_FILE;
    const struct mu__manifest_sum *expected = &reader->manifest.index;
    uint64_t bytes;
    uint32_t sum = 0;
    int fd;
    int rv = mu__ckpt_open_in(reader, folder, file, ret_error, &fd, &bytes);

    if (rv != 0)
        return rv;
    rv = check_file_size(reader, file, bytes, expected->bytes, ret_error);
    if (rv == 0)
        rv = add_up_bytes(reader, fd, file, bytes, 0, ret_error, &sum);
    if (rv == 0 && sum != expected->crc)
        rv = mu__ckpt_refuse(reader, file, "it is damaged", ret_error);
    (void)close(fd);
    return rv;
}

/* ---- data files ---- */

static int compare_tensors_by_name(const void *a, const void *b)
{
    return strcmp(((const struct mu__safetensor *)a)->name,
                  ((const struct mu__safetensor *)b)->name);
}

/* Find the tensor of a part. */
static int locate_part(const struct mu__ckpt_reader *reader,
                       const struct mu__manifest_variable *variable,
                       struct mu__manifest_part *part, const char *file,
                       const struct mu__ckpt_header *header, mu_error *ret_error)
{
    struct mu__safetensor expected;
    const struct mu__safetensor *found;

    mu__manifest_tensor(variable, part, &expected);
    found = header->count == 0
                ? NULL
                : bsearch(&expected, header->tensors, header->count,
                          sizeof *header->tensors, compare_tensors_by_name);
    if (found == NULL)
        return mu__ckpt_refuse_tensor(reader, file, expected.name, "is missing",
                                      ret_error);
    if (found->dtype != expected.dtype || found->rank != expected.rank ||
        memcmp(found->dims, expected.dims, expected.rank * sizeof expected.dims[0]) != 0)
        return mu__ckpt_refuse_tensor(reader, file, expected.name,
                                      "has another dtype or shape than the manifest says",
                                      ret_error);
    part->offset = header->contents_at + found->offset;
    return 0;
}

/* A part, for a list of all by their files. */
struct filed_part {
    uint32_t file;
    size_t variable;
    size_t part;
};

static int compare_files(const void *a, const void *b)
{
    const struct filed_part *one = a;
    const struct filed_part *two = b;

    return one->file < two->file ? -1 : one->file > two->file;
}

/* The caller frees *ret_filed; the file of the last one is none. */
static int sort_parts(const struct mu__ckpt_reader *reader, mu_error *ret_error,
                      struct filed_part **ret_filed)
{
    const struct mu__manifest *manifest = &reader->manifest;
    struct filed_part *filed = malloc((manifest->parts_count + 1) * sizeof *filed);

    if (filed == NULL)
        return mu__ckpt_no_memory(reader, ret_error);
    for (size_t i = 0; i < manifest->variables_count; i++)
        for (size_t k = 0; k < manifest->variables[i].parts_count; k++) {
            size_t at = manifest->variables[i].parts_from + k;

            filed[at] = (struct filed_part){manifest->parts[at].file, i, at};
        }
    if (manifest->parts_count > 1)
        qsort(filed, manifest->parts_count, sizeof *filed, compare_files);
    filed[manifest->parts_count] = (struct filed_part){.file = UINT32_MAX};
    *ret_filed = filed;
    return 0;
}

/* Locate the parts of a file, which begin at *filed, and move behind them. A tensor of no
 * part would have no sum. */
static int locate_parts(struct mu__ckpt_reader *reader, const struct filed_part **filed,
                        const char *file, const struct mu__ckpt_header *header,
                        mu_error *ret_error)
{
    uint32_t number = (*filed)->file;
    size_t located = 0;

    for (; (*filed)->file == number; (*filed)++) {
        int rv =
            locate_part(reader, &reader->manifest.variables[(*filed)->variable],
                        &reader->manifest.parts[(*filed)->part], file, header, ret_error);

        if (rv != 0)
            return rv;
        located++;
    }
    return located == header->count
               ? 0
               : mu__ckpt_refuse(reader, file,
                                 "it has tensors that the manifest does not have",
                                 ret_error);
}

static int check_file(struct mu__ckpt_reader *reader, int folder, uint32_t number,
                      const struct filed_part **filed, mu_error *ret_error)
{
    const struct mu__manifest_file *expected = &reader->manifest.files[number];
    char file[MU__MANIFEST_FILE_BYTES];
    struct mu__ckpt_header header = {.expected_crc = &expected->header_crc};
    uint64_t bytes;
    int rv;

    mu__manifest_file_name(number, reader->manifest.files_count, file);
    rv = mu__ckpt_open_in(reader, folder, file, ret_error, &reader->fds[number], &bytes);
    if (rv == 0)
        rv = check_file_size(reader, file, bytes, expected->bytes, ret_error);
    if (rv == 0)
        rv = mu__ckpt_read_header(reader, reader->fds[number], file, bytes, ret_error,
                                  &header);
    if (rv == 0 && (*filed)->file != number)
        rv = mu__ckpt_refuse(reader, file, "the manifest has no part in it", ret_error);
    if (rv == 0)
        rv = locate_parts(reader, filed, file, &header, ret_error);
    free(header.tensors);
    return rv;
}

static int check_content(const struct mu__ckpt_reader *reader,
                         const struct mu__manifest_variable *variable,
                         const struct mu__manifest_part *part, mu_error *ret_error)
{
    char file[MU__MANIFEST_FILE_BYTES];
    struct mu__safetensor tensor;
    uint32_t sum = 0;
    int rv;

    mu__manifest_tensor(variable, part, &tensor);
    mu__manifest_file_name(part->file, reader->manifest.files_count, file);
    rv = add_up_bytes(reader, reader->fds[part->file], file, tensor.bytes, part->offset,
                      ret_error, &sum);
    if (rv == 0 && sum != part->crc)
        rv = mu__ckpt_refuse_tensor(reader, file, tensor.name, "is damaged", ret_error);
    return rv;
}

static int check_contents(const struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < reader->manifest.variables_count; i++) {
        const struct mu__manifest_variable *variable = &reader->manifest.variables[i];

        for (size_t k = 0; rv == 0 && k < variable->parts_count; k++)
            rv = check_content(reader, variable,
                               &reader->manifest.parts[variable->parts_from + k],
                               ret_error);
    }
    return rv;
}

static int read_manifest_file(struct mu__ckpt_reader *reader, int fd, uint64_t bytes,
                              mu_error *ret_error)
{
    char *text = NULL;
    mu_error error = {0};
    int rv;

    if (bytes > MU__MANIFEST_BYTES_MAX)
        return mu__ckpt_refuse(reader, MU__MANIFEST_FILE, "it is too large", ret_error);
    text = malloc((size_t)bytes + 1);
    if (text == NULL)
        return mu__ckpt_no_memory(reader, ret_error);
    rv = mu__ckpt_read_bytes(reader, fd, MU__MANIFEST_FILE, text, bytes, 0, ret_error);
    if (rv == 0) {
        rv = mu__manifest_read(&reader->crc, text, (size_t)bytes, &error,
                               &reader->manifest);
        rv = mu__ckpt_explain(reader, MU__MANIFEST_FILE, rv, &error, ret_error);
    }
    free(text);
    return rv;
}

static int unpack_saved_value(struct mu__ckpt_reader *reader, const uint8_t *content,
                              uint64_t bytes, mu_error *ret_error)
{
    struct mu__packed packed = {.head_size = reader->manifest.head_bytes,
                                .tail_size = reader->manifest.tail_bytes};
    mu_error error = {0};
    int rv;

    packed.head = content + (bytes - packed.head_size);
    packed.tail = packed.tail_size == 0 ? NULL : content;
    rv = mu__value_unpack(&packed, error.message, sizeof error.message,
                          &reader->manifest.values);
    return mu__ckpt_explain(reader, MU__MANIFEST_VALUES_FILE, rv, &error, ret_error);
}

/* The content is at the end of the file. */
static int read_packed_value(struct mu__ckpt_reader *reader, int fd, mu_error *ret_error)
{
    static const char file[] = MU__MANIFEST_VALUES_FILE;
    const struct mu__manifest *manifest = &reader->manifest;
    uint64_t bytes =
        mu__manifest_packed_bytes(manifest->head_bytes, manifest->tail_bytes);
    uint64_t content_at = manifest->packed.bytes - bytes;
    uint8_t *content = malloc((size_t)bytes + 1);
    uint32_t sum = 0;
    int rv = content == NULL ? mu__ckpt_no_memory(reader, ret_error) : 0;

    if (rv == 0)
        rv = add_up_bytes(reader, fd, file, content_at, 0, ret_error, &sum);
    if (rv == 0)
        rv = mu__ckpt_read_bytes(reader, fd, file, content, bytes, content_at, ret_error);
    if (rv == 0 &&
        mu__crc32c_add(&reader->crc, sum, content, (size_t)bytes) != manifest->packed.crc)
        rv = mu__ckpt_refuse(reader, file, "it is damaged", ret_error);
    if (rv == 0)
        rv = unpack_saved_value(reader, content, bytes, ret_error);
    free(content);
    return rv;
}

static int read_values_file(struct mu__ckpt_reader *reader, int folder,
                            mu_error *ret_error)
{
    uint64_t bytes;
    int fd;
    int rv = mu__ckpt_open_in(reader, folder, MU__MANIFEST_VALUES_FILE, ret_error, &fd,
                              &bytes);

    if (rv != 0)
        return rv;
    rv = check_file_size(reader, MU__MANIFEST_VALUES_FILE, bytes,
                         reader->manifest.packed.bytes, ret_error);
    if (rv == 0)
        rv = read_packed_value(reader, fd, ret_error);
    (void)close(fd);
    return rv;
}

/* ---- windows ---- */

/* The tensors of a file of windows are those of the partitions that have some. */
static int locate_windows(struct mu__ckpt_reader *reader,
                          const struct mu__ckpt_header *header, mu_error *ret_error)
{
    static const char file[] = MU__MANIFEST_WINDOWS_FILE;
    size_t located = 0;

    for (size_t i = 0; i < reader->manifest.partitions_count; i++) {
        struct mu__manifest_partition *partition = &reader->manifest.partitions[i];
        struct mu__safetensor expected;
        const struct mu__safetensor *found;

        if (partition->windows_bytes == 0)
            continue;
        mu__manifest_windows_tensor(partition, &expected);
        found = header->count == 0
                    ? NULL
                    : bsearch(&expected, header->tensors, header->count,
                              sizeof *header->tensors, compare_tensors_by_name);
        if (found == NULL || found->bytes != expected.bytes)
            return mu__ckpt_refuse_tensor(reader, file, expected.name,
                                          "is not as the manifest says", ret_error);
        partition->windows_offset = header->contents_at + found->offset;
        located++;
    }
    return located == header->count
               ? 0
               : mu__ckpt_refuse(reader, file,
                                 "it has tensors that the manifest does not have",
                                 ret_error);
}

static int read_windows(struct mu__ckpt_reader *reader, int fd, uint64_t bytes,
                        mu_error *ret_error)
{
    static const char file[] = MU__MANIFEST_WINDOWS_FILE;
    struct mu__ckpt_header header = {.expected_crc = NULL};
    int rv;

    reader->windows = malloc((size_t)bytes + 1);
    if (reader->windows == NULL)
        return mu__ckpt_no_memory(reader, ret_error);
    rv = mu__ckpt_read_bytes(reader, fd, file, reader->windows, bytes, 0, ret_error);
    if (rv == 0 && mu__crc32c_add(&reader->crc, 0, reader->windows, (size_t)bytes) !=
                       reader->manifest.windows.crc)
        rv = mu__ckpt_refuse(reader, file, "it is damaged", ret_error);
    if (rv == 0)
        rv = mu__ckpt_read_header(reader, fd, file, bytes, ret_error, &header);
    if (rv == 0)
        rv = locate_windows(reader, &header, ret_error);
    free(header.tensors);
    return rv;
}

static int read_windows_file(struct mu__ckpt_reader *reader, int folder,
                             mu_error *ret_error)
{
    uint64_t bytes;
    int fd;
    int rv = mu__ckpt_open_in(reader, folder, MU__MANIFEST_WINDOWS_FILE, ret_error, &fd,
                              &bytes);

    if (rv != 0)
        return rv;
    rv = check_file_size(reader, MU__MANIFEST_WINDOWS_FILE, bytes,
                         reader->manifest.windows.bytes, ret_error);
    if (rv == 0)
        rv = read_windows(reader, fd, bytes, ret_error);
    (void)close(fd);
    return rv;
}

static int check_data_files(struct mu__ckpt_reader *reader, int folder,
                            mu_error *ret_error)
{
    struct filed_part *filed = NULL;
    const struct filed_part *at;
    int rv = mu__ckpt_make_fds(reader, reader->manifest.files_count, ret_error);

    if (rv == 0)
        rv = sort_parts(reader, ret_error, &filed);
    at = filed;
    for (uint32_t i = 0; rv == 0 && i < reader->manifest.files_count; i++)
        rv = check_file(reader, folder, i, &at, ret_error);
    free(filed);
    return rv == 0 ? check_contents(reader, ret_error) : rv;
}

static int check_files(struct mu__ckpt_reader *reader, int folder, mu_error *ret_error)
{
    int rv = check_index_file(reader, folder, ret_error);

    if (rv == 0 && reader->manifest.packed.bytes != 0)
        rv = read_values_file(reader, folder, ret_error);
    if (rv == 0 && reader->manifest.windows.bytes != 0)
        rv = read_windows_file(reader, folder, ret_error);
    return rv == 0 ? check_data_files(reader, folder, ret_error) : rv;
}

int mu__ckpt_open_checkpoint(struct mu__ckpt_reader *reader, int folder, int manifest_fd,
                             uint64_t bytes, mu_error *ret_error)
{
    int rv = read_manifest_file(reader, manifest_fd, bytes, ret_error);

    reader->has_sums = true;
    if (rv == 0)
        rv = mu__ckpt_check_variables(reader, ret_error);
    if (rv != 0 || reader->only_manifest)
        return rv;
    return check_files(reader, folder, ret_error);
}
