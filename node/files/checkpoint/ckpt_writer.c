#include "node/files/checkpoint/ckpt_writer.h"

#include "actors/messages.h"
#include "actors/packing.h"
#include "node/files/direct_file.h"
#include "node/files/files.h"
#include "runtime/base/array.h"
#include "runtime/document/manifest.h"
#include "runtime/document/value_json.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PARTS_FIRST = 16,
    VALUES_JSON_MAX = 1 << 20 /* larger ones are packed */
};

_Static_assert((int)MU__VARIABLE_NAME_MAX == (int)MU__MANIFEST_NAME_MAX,
               "a manifest has all names of variables");

/* What the manifest does not have of a part. */
struct written_part {
    uint32_t file;
    size_t variable;
    bool written;
};

struct mu__ckpt_writer {
    char path[MU__CKPT_PATH_BYTES];
    char under[MU__CKPT_PATH_BYTES]; /* where it is written */
    int folder;                      /* -1: finished */
    struct mu__crc32c crc;
    struct mu__manifest manifest;
    struct written_part *parts; /* beside those of the manifest */
    size_t parts_room;
    size_t manifest_parts_room;
    size_t variables_room;
    size_t tables_room;
    struct mu__direct_file *files; /* NULL before the first content */
    struct mu__build values;       /* JSON; size 0: none */
};

static int no_memory_to_write(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "no memory to write a checkpoint");
}

/* 0 for errno 0. */
static int explain_write_error(const struct mu__ckpt_writer *writer, int number,
                               mu_error *ret_error)
{
    if (number == ENOMEM)
        return no_memory_to_write(ret_error);
    return number == 0 ? 0 : mu__file_error(writer->path, "written", number, ret_error);
}

int mu__ckpt_writer_open(const char *path, uint64_t step, mu_error *ret_error,
                         struct mu__ckpt_writer **ret_writer)
{
    struct mu__ckpt_writer *writer;
    int rv;

    if (strlen(path) >= sizeof writer->path)
        return mu__file_error(path, "written", ENAMETOOLONG, ret_error);
    writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return no_memory_to_write(ret_error);
    (void)snprintf(writer->path, sizeof writer->path, "%s", path);
    writer->manifest.step = step;
    writer->folder = -1;
    mu__crc32c_init(&writer->crc);
    mu__ckpt_folder_clean(path);
    rv = explain_write_error(
        writer, mu__ckpt_folder_make(path, writer->under, &writer->folder), ret_error);
    if (rv == 0)
        *ret_writer = writer;
    else
        mu__ckpt_writer_free(writer);
    return rv;
}

/* ---- declaring ---- */

static bool add_variable(struct mu__ckpt_writer *writer, const struct mu__ckpt_part *part)
{
    struct mu__manifest *manifest = &writer->manifest;
    struct mu__manifest_variable *variable;

    if (!MU__ARRAY_RESERVE(&manifest->variables, &writer->variables_room,
                           manifest->variables_count, PARTS_FIRST))
        return false;
    variable = &manifest->variables[manifest->variables_count++];
    *variable = (struct mu__manifest_variable){
        .dtype = part->shape->dtype,
        .rank = part->shape->rank,
        .shards = part->shape->shards,
        .parts_from = manifest->parts_count,
    };
    (void)snprintf(variable->name, sizeof variable->name, "%s", part->name);
    memcpy(variable->dims, part->shape->dims, sizeof variable->dims);
    return true;
}

static struct mu__manifest_variable *last_variable(struct mu__ckpt_writer *writer)
{
    size_t count = writer->manifest.variables_count;

    return count == 0 ? NULL : &writer->manifest.variables[count - 1];
}

int mu__ckpt_writer_declare(struct mu__ckpt_writer *writer,
                            const struct mu__ckpt_part *part, mu_error *ret_error)
{
    struct mu__manifest *manifest = &writer->manifest;
    size_t count = manifest->parts_count;
    struct mu__manifest_variable *last = last_variable(writer);
    bool is_new = last == NULL || strcmp(last->name, part->name) != 0;

    assert(writer->files == NULL);
    assert(last == NULL || strcmp(last->name, part->name) <= 0);
    assert(part->first_row == (is_new ? 0 : manifest->parts[count - 1].end_row));
    if (count == MU__MANIFEST_PARTS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "a checkpoint has at most %d parts", MU__MANIFEST_PARTS_MAX);
    if ((is_new && !add_variable(writer, part)) ||
        !MU__ARRAY_RESERVE(&manifest->parts, &writer->manifest_parts_room, count,
                           PARTS_FIRST) ||
        !MU__ARRAY_RESERVE(&writer->parts, &writer->parts_room, count, PARTS_FIRST))
        return no_memory_to_write(ret_error);
    last_variable(writer)->parts_count++;
    manifest->parts[count] = (struct mu__manifest_part){.first_row = part->first_row,
                                                        .end_row = part->end_row};
    writer->parts[count] = (struct written_part){
        .file = part->file, .variable = manifest->variables_count - 1};
    manifest->parts_count++;
    return 0;
}

int mu__ckpt_writer_add_table(struct mu__ckpt_writer *writer,
                              const struct mu__manifest_table *table, mu_error *ret_error)
{
    struct mu__manifest *manifest = &writer->manifest;

    if (manifest->tables_count == MU__MANIFEST_TABLES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "a checkpoint has at most %d tables",
                            MU__MANIFEST_TABLES_MAX);
    if (!MU__ARRAY_RESERVE(&manifest->tables, &writer->tables_room,
                           manifest->tables_count, PARTS_FIRST))
        return no_memory_to_write(ret_error);
    manifest->tables[manifest->tables_count++] = *table;
    return 0;
}

void mu__ckpt_writer_set_marks(struct mu__ckpt_writer *writer, uint64_t mark,
                               const char *base_name, uint64_t base_mark)
{
    struct mu__manifest *manifest = &writer->manifest;

    manifest->mark = mark;
    manifest->base_mark = base_mark;
    (void)snprintf(manifest->base_name, sizeof manifest->base_name, "%s", base_name);
}

/* ---- the files' headers ---- */

/* A part on its way into the header of its file. */
struct placed_part {
    size_t part;
    uint32_t file;
};

static int compare_placed_parts(const void *a, const void *b)
{
    const struct placed_part *one = a;
    const struct placed_part *two = b;

    if (one->file != two->file)
        return one->file < two->file ? -1 : 1;
    return one->part < two->part ? -1 : 1;
}

static int compare_tensors(const void *a, const void *b)
{
    return strcmp(((const struct mu__safetensor *)a)->name,
                  ((const struct mu__safetensor *)b)->name);
}

static uint32_t count_files(const struct placed_part *placed, size_t count)
{
    uint32_t files = count == 0 ? 0 : 1;

    for (size_t i = 1; i < count; i++)
        files += placed[i - 1].file != placed[i].file;
    return files;
}

/* Open a new file of the checkpoint; -1: errno says why not. */
static int open_new_file(const struct mu__ckpt_writer *writer, const char *name)
{
    return openat(writer->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int write_file_header(struct mu__ckpt_writer *writer, uint32_t number,
                             const struct mu__build *header)
{
    struct mu__manifest_file *file = &writer->manifest.files[number];
    char name[MU__MANIFEST_FILE_BYTES];

    int rv;

    mu__manifest_file_name(number, writer->manifest.files_count, name);
    rv = mu__direct_file_create(writer->folder, name, &writer->files[number]);
    if (rv == 0)
        rv = mu__direct_file_resize(&writer->files[number], file->bytes);
    if (rv != 0)
        return rv;
    file->header_crc = mu__crc32c_add(&writer->crc, 0, header->text, header->size);
    return mu__direct_file_write_at(&writer->files[number], header->text, header->size,
                                    0);
}

/* The tensors of a file by name, and the same parts: their offsets. */
static void fill_in_offsets(struct mu__ckpt_writer *writer,
                            const struct placed_part *placed, size_t count,
                            struct mu__safetensor *tensors, uint64_t contents_at,
                            uint32_t number)
{
    qsort(tensors, count, sizeof *tensors, compare_tensors);
    for (size_t i = 0; i < count; i++) {
        struct mu__manifest_part *part = &writer->manifest.parts[placed[i].part];
        struct mu__safetensor expected;
        const struct mu__safetensor *found;

        mu__manifest_tensor(
            &writer->manifest.variables[writer->parts[placed[i].part].variable], part,
            &expected);
        found = bsearch(&expected, tensors, count, sizeof *tensors, compare_tensors);
        part->file = number;
        part->offset = contents_at + found->offset;
    }
}

static int begin_file(struct mu__ckpt_writer *writer, const struct placed_part *placed,
                      size_t count, uint32_t number, mu_error *ret_error)
{
    struct mu__safetensor *tensors = malloc(count * sizeof *tensors);
    struct mu__manifest_file *file = &writer->manifest.files[number];
    struct mu__build header = {0};
    int rv;

    if (tensors == NULL)
        return no_memory_to_write(ret_error);
    for (size_t i = 0; i < count; i++)
        mu__manifest_tensor(
            &writer->manifest.variables[writer->parts[placed[i].part].variable],
            &writer->manifest.parts[placed[i].part], &tensors[i]);
    file->bytes = mu__safetensors_arrange(tensors, count);
    mu__safetensors_write(&header, tensors, count);
    file->bytes += header.size;
    rv = mu__build_whole(&header) ? 0 : no_memory_to_write(ret_error);
    if (rv == 0 && header.size > MU__SAFETENSORS_HEADER_MAX)
        rv = mu_error_set(ret_error, -MU_EEXHAUSTED,
                          "\"%.200s\" cannot be written: too many variables for one file",
                          writer->path);
    if (rv == 0)
        rv = explain_write_error(writer, write_file_header(writer, number, &header),
                                 ret_error);
    fill_in_offsets(writer, placed, count, tensors, header.size, number);
    mu__build_done(&header);
    free(tensors);
    return rv;
}

static int begin_placed(struct mu__ckpt_writer *writer, const struct placed_part *placed,
                        size_t count, mu_error *ret_error)
{
    uint32_t files = count_files(placed, count);
    uint32_t number = 0;
    int rv = 0;

    if (files > MU__MANIFEST_FILES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "a checkpoint has at most %d files", MU__MANIFEST_FILES_MAX);
    writer->manifest.files = calloc((size_t)files + 1, sizeof *writer->manifest.files);
    writer->files = malloc(((size_t)files + 1) * sizeof *writer->files);
    if (writer->manifest.files == NULL || writer->files == NULL)
        return no_memory_to_write(ret_error);
    writer->manifest.files_count = files;
    for (uint32_t i = 0; i < files; i++)
        writer->files[i] = (struct mu__direct_file){-1, -1};
    for (size_t from = 0; rv == 0 && from < count; number++) {
        size_t end = from + 1;

        while (end < count && placed[end].file == placed[from].file)
            end++;
        rv = begin_file(writer, placed + from, end - from, number, ret_error);
        from = end;
    }
    return rv;
}

static int compare_variables_by_name(const void *a, const void *b)
{
    return strcmp(((const struct mu__manifest_variable *)a)->name,
                  ((const struct mu__manifest_variable *)b)->name);
}

/* Tensors are whole variables, or rows of one with a name for these: no other variable
 * may have that name. */
static int check_tensor_names(const struct mu__ckpt_writer *writer, mu_error *ret_error)
{
    const struct mu__manifest *manifest = &writer->manifest;

    for (size_t i = 0; i < manifest->parts_count; i++) {
        const struct mu__manifest_variable *variable =
            &manifest->variables[writer->parts[i].variable];
        struct mu__manifest_variable expected;
        struct mu__safetensor tensor;

        mu__manifest_tensor(variable, &manifest->parts[i], &tensor);
        if (variable->parts_count == 1 || strlen(tensor.name) >= sizeof expected.name)
            continue;
        (void)snprintf(expected.name, sizeof expected.name, "%.255s", tensor.name);
        if (bsearch(&expected, manifest->variables, manifest->variables_count,
                    sizeof expected, compare_variables_by_name) != NULL)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "\"%.200s\" cannot be written: variable \"%.100s\" has "
                                "the name of rows of another one",
                                writer->path, expected.name);
    }
    return 0;
}

/* All parts are declared: write the headers of the files. */
static int begin_files(struct mu__ckpt_writer *writer, mu_error *ret_error)
{
    size_t count = writer->manifest.parts_count;
    struct placed_part *placed;
    int rv = check_tensor_names(writer, ret_error);

    if (rv != 0)
        return rv;
    placed = malloc((count + 1) * sizeof *placed);
    if (placed == NULL)
        return no_memory_to_write(ret_error);
    for (size_t i = 0; i < count; i++)
        placed[i] = (struct placed_part){i, writer->parts[i].file};
    if (count > 1)
        qsort(placed, count, sizeof *placed, compare_placed_parts);
    rv = begin_placed(writer, placed, count, ret_error);
    free(placed);
    return rv;
}

/* ---- contents ---- */

int mu__ckpt_writer_begin(struct mu__ckpt_writer *writer, mu_error *ret_error)
{
    return writer->files == NULL ? begin_files(writer, ret_error) : 0;
}

int mu__ckpt_writer_write_at(struct mu__ckpt_writer *writer, size_t i, uint64_t offset,
                             const void *content, size_t size, mu_error *ret_error)
{
    const struct mu__manifest_part *part = &writer->manifest.parts[i];
    int rv = mu__ckpt_writer_begin(writer, ret_error);

    assert(i < writer->manifest.parts_count && !writer->parts[i].written);
    if (rv != 0)
        return rv;
    return explain_write_error(writer,
                               mu__direct_file_write_at(&writer->files[part->file],
                                                        content, size,
                                                        part->offset + offset),
                               ret_error);
}

uint64_t mu__ckpt_writer_offset(const struct mu__ckpt_writer *writer, size_t i)
{
    assert(writer->files != NULL && i < writer->manifest.parts_count);
    return writer->manifest.parts[i].offset;
}

void mu__ckpt_writer_end_part(struct mu__ckpt_writer *writer, size_t i, uint32_t sum)
{
    writer->manifest.parts[i].crc = sum;
    writer->parts[i].written = true;
}

int mu__ckpt_writer_write(struct mu__ckpt_writer *writer, size_t i, const void *content,
                          mu_error *ret_error)
{
    struct mu__safetensor tensor;
    int rv;

    mu__manifest_tensor(&writer->manifest.variables[writer->parts[i].variable],
                        &writer->manifest.parts[i], &tensor);
    rv = mu__ckpt_writer_write_at(writer, i, 0, content, (size_t)tensor.bytes, ret_error);
    if (rv == 0)
        mu__ckpt_writer_end_part(
            writer, i, mu__crc32c_add(&writer->crc, 0, content, (size_t)tensor.bytes));
    return rv;
}

const struct mu__crc32c *mu__ckpt_writer_crc(const struct mu__ckpt_writer *writer)
{
    return &writer->crc;
}

/* Write a file of its own; an errno. */
static int write_whole_file(const struct mu__ckpt_writer *writer, const char *name,
                            const struct mu__build *text, const struct mu__buf *more,
                            struct mu__manifest_sum *ret_sum)
{
    int fd = open_new_file(writer, name);
    int number = fd < 0 ? errno : mu__file_write_all(fd, text->text, text->size);

    *ret_sum = (struct mu__manifest_sum){
        text->size, mu__crc32c_add(&writer->crc, 0, text->text, text->size)};
    if (number == 0 && more != NULL) {
        number = mu__file_write_all(fd, more->data, more->size);
        ret_sum->bytes += more->size;
        ret_sum->crc = mu__crc32c_add(&writer->crc, ret_sum->crc, more->data, more->size);
    }
    if (number == 0 && fsync(fd) != 0)
        number = errno;
    if (fd >= 0)
        (void)close(fd);
    return number;
}

static int write_packed(struct mu__ckpt_writer *writer, const mu_value *value,
                        mu_error *ret_error)
{
    struct mu__safetensor tensor = {.name = "values", .dtype = MU_U8, .rank = 1};
    struct mu__build header = {0};
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(value, &packed);
    int rv = buf == NULL ? no_memory_to_write(ret_error) : 0;

    if (rv != 0)
        return rv;
    tensor.dims[0] = tensor.bytes = buf->size;
    mu__safetensors_write(&header, &tensor, 1);
    rv = mu__build_whole(&header)
             ? explain_write_error(writer,
                                   write_whole_file(writer, MU__MANIFEST_VALUES_FILE,
                                                    &header, buf,
                                                    &writer->manifest.packed),
                                   ret_error)
             : no_memory_to_write(ret_error);
    writer->manifest.head_bytes = packed.head_size;
    writer->manifest.tail_bytes = packed.tail_size;
    mu__build_done(&header);
    mu__buf_unref(buf);
    return rv;
}

int mu__ckpt_writer_write_value(struct mu__ckpt_writer *writer, const mu_value *value,
                                mu_error *ret_error)
{
    if (mu__value_to_json(value, &writer->values) && mu__build_whole(&writer->values) &&
        writer->values.size <= VALUES_JSON_MAX)
        return 0;
    mu__build_done(&writer->values);
    return write_packed(writer, value, ret_error);
}

/* ---- partitions ---- */

static void note_partitions(struct mu__manifest *manifest,
                            const struct mu__ckpt_partition *partitions, size_t count)
{
    manifest->partitions_count = count;
    for (size_t i = 0; i < count; i++)
        manifest->partitions[i] = (struct mu__manifest_partition){
            .partition = partitions[i].partition,
            .position = partitions[i].position,
            .sum = partitions[i].sum,
            .windows_bytes = partitions[i].windows_bytes,
        };
}

/* The tensors of those that have windows, in the order of the partitions. */
static size_t list_windows(const struct mu__manifest *manifest,
                           struct mu__safetensor *tensors)
{
    uint64_t offset = 0;
    size_t count = 0;

    for (size_t i = 0; i < manifest->partitions_count; i++) {
        if (manifest->partitions[i].windows_bytes == 0)
            continue;
        mu__manifest_windows_tensor(&manifest->partitions[i], &tensors[count]);
        tensors[count].offset = offset;
        offset += tensors[count++].bytes;
    }
    return count;
}

static int write_windows(struct mu__ckpt_writer *writer,
                         const struct mu__ckpt_partition *partitions,
                         struct mu__safetensor *tensors)
{
    const struct mu__manifest *manifest = &writer->manifest;
    size_t count = list_windows(manifest, tensors);
    struct mu__build text = {0};
    int number;

    if (count == 0)
        return 0;
    mu__safetensors_write(&text, tensors, count);
    for (size_t i = 0; i < manifest->partitions_count; i++)
        if (partitions[i].windows_bytes > 0)
            mu__build_bytes(&text, partitions[i].windows,
                            (size_t)partitions[i].windows_bytes);
    number = mu__build_whole(&text)
                 ? write_whole_file(writer, MU__MANIFEST_WINDOWS_FILE, &text, NULL,
                                    &writer->manifest.windows)
                 : ENOMEM;
    mu__build_done(&text);
    return number;
}

int mu__ckpt_writer_write_partitions(struct mu__ckpt_writer *writer,
                                     const struct mu__ckpt_partition *partitions,
                                     size_t count, mu_error *ret_error)
{
    struct mu__safetensor *tensors = malloc((count + 1) * sizeof *tensors);
    int rv;

    assert(writer->manifest.partitions == NULL);
    writer->manifest.partitions =
        malloc((count + 1) * sizeof *writer->manifest.partitions);
    if (tensors == NULL || writer->manifest.partitions == NULL) {
        free(tensors);
        return no_memory_to_write(ret_error);
    }
    note_partitions(&writer->manifest, partitions, count);
    rv = explain_write_error(writer, write_windows(writer, partitions, tensors),
                             ret_error);
    free(tensors);
    return rv;
}

/* ---- finishing ---- */

static int flush_files(const struct mu__ckpt_writer *writer)
{
    int rv = 0;

    for (uint32_t i = 0; rv == 0 && i < writer->manifest.files_count; i++)
        rv = mu__direct_file_flush(&writer->files[i]);
    return rv;
}

static int write_index(struct mu__ckpt_writer *writer)
{
    struct mu__build text = {0};
    int number;

    mu__manifest_write_index(&writer->manifest, &text);
    number = !mu__build_whole(&text)
                 ? ENOMEM
                 : write_whole_file(writer, MU__MANIFEST_INDEX_FILE, &text, NULL,
                                    &writer->manifest.index);
    mu__build_done(&text);
    return number;
}

static int write_manifest(struct mu__ckpt_writer *writer)
{
    struct mu__build text = {0};
    struct mu__manifest_sum sum;
    int number;

    mu__manifest_write(&writer->crc, &writer->manifest,
                       writer->values.size == 0 ? NULL : writer->values.text, &text);
    if (!mu__build_whole(&text))
        number = ENOMEM;
    else if (text.size > MU__MANIFEST_BYTES_MAX)
        number = EFBIG;
    else
        number = write_whole_file(writer, MU__MANIFEST_FILE, &text, NULL, &sum);
    mu__build_done(&text);
    return number;
}

/* Renamed before the close, which releases the lock: under the old name another writer
 * would remove it. */
static int publish(struct mu__ckpt_writer *writer)
{
    int number = mu__ckpt_folder_publish(writer->under, writer->folder, writer->path);

    if (number != 0)
        return number;
    (void)close(writer->folder);
    writer->folder = -1;
    return 0;
}

int mu__ckpt_writer_finish(struct mu__ckpt_writer *writer, mu_error *ret_error)
{
    int rv = mu__ckpt_writer_begin(writer, ret_error);
    int number;

    if (rv != 0)
        return rv;
    for (size_t i = 0; i < writer->manifest.parts_count; i++)
        assert(writer->parts[i].written);
    number = flush_files(writer);
    if (number == 0)
        number = write_index(writer);
    if (number == 0)
        number = write_manifest(writer);
    if (number == 0)
        number = publish(writer);
    return explain_write_error(writer, number, ret_error);
}

void mu__ckpt_writer_free(struct mu__ckpt_writer *writer)
{
    if (writer == NULL)
        return;
    for (uint32_t i = 0; writer->files != NULL && i < writer->manifest.files_count; i++)
        mu__direct_file_close(&writer->files[i]);
    if (writer->folder >= 0) {
        mu__ckpt_folder_discard(writer->under, writer->folder);
        (void)close(writer->folder);
    }
    mu__manifest_done(&writer->manifest);
    mu__build_done(&writer->values);
    free(writer->parts);
    free(writer->files);
    free(writer);
}
