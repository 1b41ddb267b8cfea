#include "node/files/checkpoint/ckpt_reader.h"

#include "node/files/checkpoint/internal.h"
#include "node/files/files.h"
#include "runtime/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often a checkpoint may be replaced while it is opened. */
enum { REPLACED_MAX = 100 };

static const char ending[] = ".safetensors";

/* ---- other programs' files ---- */

/* The tensors of file `number` as variables in one part. */
static int adopt_tensors(struct mu__ckpt_reader *reader, uint32_t number,
                         const char *file, const struct mu__ckpt_header *header,
                         mu_error *ret_error)
{
    struct mu__manifest *manifest = &reader->manifest;
    size_t count = manifest->variables_count + header->count + 1;
    struct mu__manifest_variable *variables =
        realloc(manifest->variables, count * sizeof *variables);
    struct mu__manifest_part *parts;

    if (variables == NULL)
        return mu__ckpt_no_memory(reader, ret_error);
    manifest->variables = variables;
    parts = realloc(manifest->parts, count * sizeof *parts);
    if (parts == NULL)
        return mu__ckpt_no_memory(reader, ret_error);
    manifest->parts = parts;
    for (size_t i = 0; i < header->count; i++) {
        const struct mu__safetensor *tensor = &header->tensors[i];
        size_t at = manifest->variables_count++;

        if (strlen(tensor->name) > MU__MANIFEST_NAME_MAX)
            return mu__ckpt_refuse_tensor(reader, file, tensor->name,
                                          "has too long a name", ret_error);
        variables[at] = (struct mu__manifest_variable){.dtype = tensor->dtype,
                                                       .rank = tensor->rank,
                                                       .shards = 1,
                                                       .parts_count = 1,
                                                       .parts_from = at};
        memcpy(variables[at].name, tensor->name, strlen(tensor->name));
        memcpy(variables[at].dims, tensor->dims, sizeof tensor->dims);
        parts[at] =
            (struct mu__manifest_part){.file = number,
                                       .end_row = tensor->rank == 0 ? 1 : tensor->dims[0],
                                       .offset = header->contents_at + tensor->offset};
        manifest->parts_count++;
    }
    return 0;
}

static int adopt_file(struct mu__ckpt_reader *reader, uint32_t number, const char *file,
                      uint64_t bytes, mu_error *ret_error)
{
    struct mu__ckpt_header header = {.count = 0};
    int rv = mu__ckpt_read_header(reader, reader->fds[number], file, bytes, ret_error,
                                  &header);

    if (rv == 0)
        rv = adopt_tensors(reader, number, file, &header, ret_error);
    free(header.tensors);
    return rv;
}

static int compare_saved_names(const void *a, const void *b)
{
    return strcmp(((const struct mu__manifest_variable *)a)->name,
                  ((const struct mu__manifest_variable *)b)->name);
}

/* By name, each once. */
static int sort_adopted(struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    struct mu__manifest_variable *variables = reader->manifest.variables;
    size_t count = reader->manifest.variables_count;

    if (count > 1)
        qsort(variables, count, sizeof *variables, compare_saved_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(variables[i - 1].name, variables[i].name) == 0)
            return mu__ckpt_refuse_tensor(reader, NULL, variables[i].name,
                                          "is in two of its files", ret_error);
    return mu__ckpt_check_variables(reader, ret_error);
}

/* Takes `fd`. */
static int open_lone_file(struct mu__ckpt_reader *reader, int fd, uint64_t bytes,
                          mu_error *ret_error)
{
    int rv = mu__ckpt_make_fds(reader, 1, ret_error);

    if (rv != 0) {
        (void)close(fd);
        return rv;
    }
    reader->fds[0] = fd;
    reader->manifest.files_count = 1;
    rv = adopt_file(reader, 0, NULL, bytes, ret_error);
    return rv == 0 ? sort_adopted(reader, ret_error) : rv;
}

static int is_safetensors(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length >= sizeof ending - 1 &&
           strcmp(entry->d_name + length - (sizeof ending - 1), ending) == 0;
}

static int adopt_files(struct mu__ckpt_reader *reader, int folder, struct dirent **names,
                       uint32_t count, mu_error *ret_error)
{
    int rv = mu__ckpt_make_fds(reader, count, ret_error);

    if (rv == 0)
        reader->manifest.files_count = count;
    for (uint32_t i = 0; rv == 0 && i < count; i++) {
        uint64_t bytes;

        rv = mu__ckpt_open_in(reader, folder, names[i]->d_name, ret_error,
                              &reader->fds[i], &bytes);
        if (rv == 0)
            rv = adopt_file(reader, i, names[i]->d_name, bytes, ret_error);
    }
    return rv == 0 ? sort_adopted(reader, ret_error) : rv;
}

static int open_without_manifest(struct mu__ckpt_reader *reader, int folder,
                                 mu_error *ret_error)
{
    struct dirent **names = NULL;
    int count = scandir(reader->path, &names, is_safetensors, alphasort);
    int rv;

    if (count < 0)
        return mu__file_error(reader->path, "read", errno, ret_error);
    rv = count == 0
             ? mu__ckpt_refuse(reader, NULL,
                               "it has neither " MU__MANIFEST_FILE " nor *.safetensors",
                               ret_error)
             : adopt_files(reader, folder, names, (uint32_t)count, ret_error);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return rv;
}

/* ---- opening ---- */

static int open_directory(struct mu__ckpt_reader *reader, int folder, mu_error *ret_error)
{
    uint64_t bytes;
    int fd;
    int rv;

    if (faccessat(folder, MU__MANIFEST_FILE, F_OK, 0) != 0 && errno == ENOENT)
        return open_without_manifest(reader, folder, ret_error);
    rv = mu__ckpt_open_in(reader, folder, MU__MANIFEST_FILE, ret_error, &fd, &bytes);
    if (rv != 0)
        return rv;
    rv = mu__ckpt_open_checkpoint(reader, folder, fd, bytes, ret_error);
    (void)close(fd);
    return rv;
}

static void close_files(struct mu__ckpt_reader *reader)
{
    for (uint32_t i = 0; reader->fds != NULL && i < reader->manifest.files_count; i++)
        if (reader->fds[i] >= 0)
            (void)close(reader->fds[i]);
    free(reader->fds);
    reader->fds = NULL;
    free(reader->windows);
    reader->windows = NULL;
    mu__manifest_done(&reader->manifest);
}

/* Whether another directory has the path by now. */
static bool was_replaced(const struct mu__ckpt_reader *reader, int folder)
{
    struct stat opened;
    struct stat named;

    return fstat(folder, &opened) == 0 &&
           (stat(reader->path, &named) != 0 || named.st_ino != opened.st_ino ||
            named.st_dev != opened.st_dev);
}

/* Sets *ret_again when it may have failed as the checkpoint was replaced or removed. */
static int open_saved_path(struct mu__ckpt_reader *reader, mu_error *ret_error,
                           bool *ret_again)
{
    int fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat about = {.st_mode = 0};
    int rv;

    *ret_again = false;
    if (fd < 0)
        return mu__file_error(reader->path, "read", errno, ret_error);
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
        return open_lone_file(reader, fd, (uint64_t)about.st_size, ret_error);
    rv = S_ISDIR(about.st_mode)
             ? open_directory(reader, fd, ret_error)
             : mu__ckpt_refuse(reader, NULL, "it is neither a directory nor a file",
                               ret_error);
    *ret_again = rv != 0 && was_replaced(reader, fd);
    (void)close(fd);
    return rv;
}

static int open_reader(const char *path, bool only_manifest, mu_error *ret_error,
                       struct mu__ckpt_reader **ret_reader)
{
    struct mu__ckpt_reader *reader = calloc(1, sizeof *reader);
    bool again = true;
    int rv = 0;

    if (reader != NULL)
        reader->path = strdup(path);
    if (reader == NULL || reader->path == NULL) {
        free(reader);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a checkpoint");
    }
    reader->only_manifest = only_manifest;
    mu__crc32c_init(&reader->crc);
    for (int i = 0; again && i < REPLACED_MAX; i++) {
        close_files(reader);
        rv = open_saved_path(reader, ret_error, &again);
    }
    if (rv == 0)
        *ret_reader = reader;
    else
        mu__ckpt_reader_close(reader);
    return rv;
}

int mu__ckpt_reader_open(const char *path, mu_error *ret_error,
                         struct mu__ckpt_reader **ret_reader)
{
    return open_reader(path, false, ret_error, ret_reader);
}

int mu__ckpt_reader_open_manifest(const char *path, mu_error *ret_error,
                                  struct mu__ckpt_reader **ret_reader)
{
    return open_reader(path, true, ret_error, ret_reader);
}

void mu__ckpt_reader_close(struct mu__ckpt_reader *reader)
{
    if (reader == NULL)
        return;
    close_files(reader);
    free(reader->path);
    free(reader);
}

/* ---- what is in it ---- */

const struct mu__manifest_variable *mu__ckpt_reader_find(
    const struct mu__ckpt_reader *reader, const char *name)
{
    struct mu__manifest_variable expected;

    if (strlen(name) > MU__MANIFEST_NAME_MAX || reader->manifest.variables_count == 0)
        return NULL;
    MU__COPY_TEXT(expected.name, name);
    return bsearch(&expected, reader->manifest.variables,
                   reader->manifest.variables_count, sizeof expected,
                   compare_saved_names);
}

static int read_part_content(const struct mu__ckpt_reader *reader,
                             const struct mu__manifest_variable *variable,
                             const struct mu__manifest_part *part, uint8_t *out,
                             mu_error *ret_error, uint64_t *ret_bytes)
{
    struct mu__safetensor tensor;
    int rv;

    mu__manifest_tensor(variable, part, &tensor);
    rv = mu__ckpt_read_bytes(reader, reader->fds[part->file], NULL, out, tensor.bytes,
                             part->offset, ret_error);
    if (rv == 0 && reader->has_sums &&
        mu__crc32c_add(&reader->crc, 0, out, (size_t)tensor.bytes) != part->crc)
        rv = mu__ckpt_refuse_tensor(reader, NULL, tensor.name, "is damaged", ret_error);
    *ret_bytes = tensor.bytes;
    return rv;
}

int mu__ckpt_reader_content(const struct mu__ckpt_reader *reader,
                            const struct mu__manifest_variable *variable,
                            mu_error *ret_error, uint8_t **ret_content)
{
    struct mu__shape shape = mu__ckpt_shape(variable);
    uint8_t *content = malloc((size_t)mu__shape_bytes(&shape));
    uint64_t at = 0;
    int rv = content == NULL ? mu__ckpt_no_memory(reader, ret_error) : 0;

    for (size_t k = 0; rv == 0 && k < variable->parts_count; k++) {
        uint64_t bytes;

        rv = read_part_content(reader, variable,
                               &reader->manifest.parts[variable->parts_from + k],
                               content + at, ret_error, &bytes);
        at += bytes;
    }
    if (rv == 0)
        *ret_content = content;
    else
        free(content);
    return rv;
}

void mu__ckpt_reader_windows(const struct mu__ckpt_reader *reader, size_t i,
                             const uint8_t **ret_windows, uint64_t *ret_bytes)
{
    const struct mu__manifest_partition *partition = &reader->manifest.partitions[i];

    *ret_bytes = partition->windows_bytes;
    *ret_windows = partition->windows_bytes == 0
                       ? NULL
                       : reader->windows + partition->windows_offset;
}

int mu__ckpt_reader_value(const struct mu__ckpt_reader *reader, mu_error *ret_error,
                          mu_value **ret_value)
{
    mu_value *value = reader->manifest.values == NULL
                          ? mu_value_nil()
                          : mu_value_ref(reader->manifest.values);

    if (value == NULL)
        return mu__ckpt_no_memory(reader, ret_error);
    *ret_value = value;
    return 0;
}
