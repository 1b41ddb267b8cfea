/* A checkpoint is written under a name of its own and renamed when all of it is on the
 * disk. Its writer holds a lock on it (flock), by which other writers tell a file that is
 * being written from one whose writer has died. */
#include "node/files/checkpoint_file.h"

#include "actors/packing.h"
#include "node/files/files.h"
#include "runtime/message/codec.h"

#include <assert.h>
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
    CHUNK_BYTES = 1 << 20,
    TRIES_MAX = 1000,       /* names that others use */
    NAME_BYTES_MAX = 63
};

static const char ending[] = ".ckpt";
static const char unfinished[] = ".part";

struct mu__ckpt_writer {
    int fd;                 /* -1: finished */
    char path[MU__CKPT_PATH_BYTES];
    char under[MU__CKPT_PATH_BYTES];    /* where it is written */
    struct mu__crc32c crc;
    uint64_t step;
    uint64_t offset;
    struct mu__ckpt_part *parts;
    uint32_t parts_count;
    uint32_t parts_max;
};

/* ---- writing ---- */

/* Locked, and still there: before the lock another writer may have removed it. */
static bool lock_existing_file(int fd)
{
    struct stat about;

    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &about) == 0 &&
           about.st_nlink > 0;
}

/* A free name beside the path, and a lock on the file there. -1: errno says why not. */
static int open_under(struct mu__ckpt_writer *writer)
{
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        int size = snprintf(writer->under, sizeof writer->under, "%s.%ld-%u%s",
                            writer->path, (long)getpid(), i, unfinished);
        int fd;

        if (size < 0 || (size_t)size >= sizeof writer->under) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(writer->under, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0 && lock_existing_file(fd))
            return fd;
        if (fd >= 0)
            (void)close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* Remove `path` unless somebody is writing it. */
static void remove_left(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlink(path);
    (void)close(fd);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);

    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* Remove what writers of this checkpoint left when they died, of all its steps: its name
 * is what is before the last "-". */
static void remove_all_left(const char *path)
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

int mu__ckpt_writer_open(const char *path, uint64_t step, uint32_t parts_max,
                         mu_error *ret_error, struct mu__ckpt_writer **ret_writer)
{
    static const uint8_t nothing[MU__CKPT_HEADER_BYTES];
    struct mu__ckpt_writer *writer;
    int number;

    if (strlen(path) >= sizeof writer->path)
        return mu__file_error(path, "written", ENAMETOOLONG, ret_error);
    writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to write a checkpoint");
    writer->fd = -1;
    writer->parts = calloc((size_t)parts_max + 1, sizeof *writer->parts);
    if (writer->parts == NULL) {
        free(writer);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to write a checkpoint");
    }
    writer->parts_max = parts_max;
    writer->step = step;
    writer->offset = MU__CKPT_HEADER_BYTES;
    (void)snprintf(writer->path, sizeof writer->path, "%s", path);
    mu__crc32c_init(&writer->crc);
    remove_all_left(path);
    writer->fd = open_under(writer);
    if (writer->fd < 0) {
        number = errno;
        mu__ckpt_writer_free(writer);
        return mu__file_error(path, "written", number, ret_error);
    }
    number = mu__file_write_all(writer->fd, nothing, sizeof nothing);
    if (number != 0) {
        mu__ckpt_writer_free(writer);
        return mu__file_error(path, "written", number, ret_error);
    }
    *ret_writer = writer;
    return 0;
}

int mu__ckpt_writer_add(struct mu__ckpt_writer *writer, const char *name,
                        const struct mu__shape *shape, const void *data, uint64_t bytes,
                        mu_error *ret_error)
{
    static const uint8_t zeros[MU__CKPT_ALIGN];
    struct mu__ckpt_part *part = &writer->parts[writer->parts_count];
    uint64_t filling = mu__ckpt_filled(bytes) - bytes;
    int number = mu__file_write_all(writer->fd, data, bytes);

    assert(writer->parts_count < writer->parts_max);
    if (number == 0)
        number = mu__file_write_all(writer->fd, zeros, filling);
    if (number != 0)
        return mu__file_error(writer->path, "written", number, ret_error);
    (void)snprintf(part->name, sizeof part->name, "%s", name);
    part->shape = *shape;
    part->offset = writer->offset;
    part->bytes = bytes;
    part->sum = mu__crc32c_add(&writer->crc, 0, data, (size_t)bytes);
    part->sum = mu__crc32c_add(&writer->crc, part->sum, zeros, (size_t)filling);
    writer->offset += bytes + filling;
    writer->parts_count++;
    return 0;
}

int mu__ckpt_writer_add_value(struct mu__ckpt_writer *writer, const mu_value *value,
                              mu_error *ret_error)
{
    struct mu__shape shape = {.rank = 2};
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(value, &packed);
    int rv;

    if (buf == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM,
                            "no memory to write a checkpoint's values");
    shape.dims[0] = packed.head_size;
    shape.dims[1] = packed.tail_size;
    rv = mu__ckpt_writer_add(writer, "", &shape, buf->data, buf->size, ret_error);
    mu__buf_unref(buf);
    return rv;
}

/* 0, or the system's number. */
static int write_ends(struct mu__ckpt_writer *writer, const uint8_t *index, uint64_t size)
{
    const struct mu__ckpt_header header = {
        .parts_count = writer->parts_count,
        .step = writer->step,
        .index_offset = writer->offset,
        .index_size = size,
        .file_size = writer->offset + size,
        .index_sum = mu__crc32c_add(&writer->crc, 0, index, (size_t)size),
    };
    uint8_t bytes[MU__CKPT_HEADER_BYTES];
    int number = mu__file_write_all(writer->fd, index, size);

    if (number != 0)
        return number;
    mu__ckpt_header_write(&writer->crc, &header, bytes);
    if (lseek(writer->fd, 0, SEEK_SET) != 0)
        return errno;
    number = mu__file_write_all(writer->fd, bytes, sizeof bytes);
    if (number == 0 && fsync(writer->fd) != 0)
        number = errno;
    return number;
}

/* Renamed before the close, which releases the lock: under the old name another writer
 * would remove it. */
static int rename_to_path(struct mu__ckpt_writer *writer)
{
    int number = rename(writer->under, writer->path) == 0 ? 0 : errno;

    if (number != 0)
        return number;
    number = close(writer->fd) == 0 ? 0 : errno;
    writer->fd = -1;
    mu__file_flush_folder(writer->path);
    return number;
}

int mu__ckpt_writer_finish(struct mu__ckpt_writer *writer, mu_error *ret_error)
{
    uint64_t size = mu__ckpt_index_size(writer->parts, writer->parts_count);
    uint8_t *index = malloc((size_t)size + 1);
    int number;

    if (index == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM,
                            "no memory to write a checkpoint's index");
    mu__ckpt_index_write(writer->parts, writer->parts_count, index);
    number = write_ends(writer, index, size);
    free(index);
    if (number == 0)
        number = rename_to_path(writer);
    return number == 0 ? 0
                       : mu__file_error(writer->path, "written", number, ret_error);
}

void mu__ckpt_writer_free(struct mu__ckpt_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->fd >= 0) {
        (void)unlink(writer->under);
        (void)close(writer->fd);
    }
    free(writer->parts);
    free(writer);
}

/* ---- reading ---- */

static int refuse_checkpoint(const char *path, const char *why, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EDATALOSS,
                        "\"%.200s\" is no checkpoint that was saved: %s", path, why);
}

static int read_checkpoint_bytes(const struct mu__ckpt_reader *reader, void *data,
                                 uint64_t size, uint64_t offset, mu_error *ret_error)
{
    int number = mu__file_read_all(reader->fd, data, size, offset);

    if (number < 0)
        return refuse_checkpoint(reader->path, "the file is cut short", ret_error);
    return number == 0 ? 0 : mu__file_error(reader->path, "read", number, ret_error);
}

static int explain_read_error(const struct mu__ckpt_reader *reader, int rv,
                              const char *why, mu_error *ret_error)
{
    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "no memory to read \"%.200s\"", reader->path);
    return rv == 0 ? 0 : refuse_checkpoint(reader->path, why, ret_error);
}

static int read_checkpoint_header(struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    uint8_t bytes[MU__CKPT_HEADER_BYTES] = {0};
    char why[MU__CKPT_WHY_BYTES];
    struct stat about;
    uint64_t size;
    int rv;

    if (fstat(reader->fd, &about) != 0)
        return mu__file_error(reader->path, "read", errno, ret_error);
    if (!S_ISREG(about.st_mode))
        return refuse_checkpoint(reader->path, "it is no file", ret_error);
    size = (uint64_t)about.st_size;
    rv = read_checkpoint_bytes(reader, bytes, size < sizeof bytes ? size : sizeof bytes,
                               0, ret_error);
    if (rv != 0)
        return rv;
    rv = mu__ckpt_header_read(&reader->crc, bytes, size, why, &reader->header);
    return explain_read_error(reader, rv, why, ret_error);
}

static int read_checkpoint_index(struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    uint8_t *bytes = malloc((size_t)reader->header.index_size + 1);
    char why[MU__CKPT_WHY_BYTES];
    int rv;

    if (bytes == NULL)
        return explain_read_error(reader, -MU_ENOMEM, "", ret_error);
    rv = read_checkpoint_bytes(reader, bytes, reader->header.index_size,
                               reader->header.index_offset, ret_error);
    if (rv == 0) {
        rv = mu__ckpt_index_read(&reader->crc, &reader->header, bytes, why,
                                 &reader->parts);
        rv = explain_read_error(reader, rv, why, ret_error);
    }
    free(bytes);
    return rv;
}

static int damaged_part(const struct mu__ckpt_reader *reader,
                        const struct mu__ckpt_part *part, mu_error *ret_error)
{
    char why[MU__VARIABLE_NAME_MAX + 32];

    (void)snprintf(why, sizeof why, "%s%.200s is damaged",
                   part->name[0] == '\0' ? "what is beside the variables" : "variable ",
                   part->name);
    return refuse_checkpoint(reader->path, why, ret_error);
}

static int check_content(const struct mu__ckpt_reader *reader,
                         const struct mu__ckpt_part *part, uint8_t *chunk,
                         mu_error *ret_error)
{
    uint64_t left = mu__ckpt_filled(part->bytes);
    uint64_t offset = part->offset;
    uint32_t sum = 0;

    while (left > 0) {
        uint64_t size = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        int rv = read_checkpoint_bytes(reader, chunk, size, offset, ret_error);

        if (rv != 0)
            return rv;
        sum = mu__crc32c_add(&reader->crc, sum, chunk, (size_t)size);
        offset += size;
        left -= size;
    }
    return sum == part->sum ? 0 : damaged_part(reader, part, ret_error);
}

static int check_contents(const struct mu__ckpt_reader *reader, mu_error *ret_error)
{
    uint8_t *chunk = malloc(CHUNK_BYTES);
    int rv = 0;

    if (chunk == NULL)
        return explain_read_error(reader, -MU_ENOMEM, "", ret_error);
    for (uint32_t i = 0; rv == 0 && i < reader->header.parts_count; i++)
        rv = check_content(reader, &reader->parts[i], chunk, ret_error);
    free(chunk);
    return rv;
}

int mu__ckpt_reader_open(const char *path, mu_error *ret_error,
                         struct mu__ckpt_reader **ret_reader)
{
    struct mu__ckpt_reader *reader = calloc(1, sizeof *reader);
    int rv = 0;

    if (reader == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a checkpoint");
    mu__crc32c_init(&reader->crc);
    reader->path = strdup(path);
    reader->fd = -1;
    if (reader->path == NULL)
        rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a checkpoint");
    else
        rv = mu__file_open(path, ret_error, &reader->fd);
    if (rv == 0)
        rv = read_checkpoint_header(reader, ret_error);
    if (rv == 0)
        rv = read_checkpoint_index(reader, ret_error);
    if (rv == 0)
        rv = check_contents(reader, ret_error);
    if (rv == 0)
        *ret_reader = reader;
    else
        mu__ckpt_reader_close(reader);
    return rv;
}

const struct mu__ckpt_part *mu__ckpt_reader_find(const struct mu__ckpt_reader *reader,
                                                 const char *name)
{
    uint32_t first = 0;
    uint32_t behind = reader->header.parts_count;

    while (first < behind) {
        uint32_t middle = first + (behind - first) / 2;
        int order = strcmp(reader->parts[middle].name, name);

        if (order == 0)
            return &reader->parts[middle];
        if (order < 0)
            first = middle + 1;
        else
            behind = middle;
    }
    return NULL;
}

int mu__ckpt_reader_content(const struct mu__ckpt_reader *reader,
                            const struct mu__ckpt_part *part, mu_error *ret_error,
                            uint8_t **ret_content)
{
    uint64_t size = mu__ckpt_filled(part->bytes);
    uint8_t *content = malloc((size_t)size + 1);
    int rv;

    if (content == NULL)
        return explain_read_error(reader, -MU_ENOMEM, "", ret_error);
    rv = read_checkpoint_bytes(reader, content, size, part->offset, ret_error);
    if (rv == 0 && mu__crc32c_add(&reader->crc, 0, content, (size_t)size) != part->sum)
        rv = damaged_part(reader, part, ret_error);
    if (rv == 0)
        *ret_content = content;
    else
        free(content);
    return rv;
}

int mu__ckpt_reader_value(const struct mu__ckpt_reader *reader, mu_error *ret_error,
                          mu_value **ret_value)
{
    const struct mu__ckpt_part *part = mu__ckpt_reader_find(reader, "");
    struct mu__packed packed = {.head = NULL};
    uint8_t *content = NULL;
    char why[128];
    int rv = 0;

    if (part != NULL) {
        rv = mu__ckpt_reader_content(reader, part, ret_error, &content);
        if (rv != 0)
            return rv;
        packed = mu__ckpt_packed(part, content);
    }
    rv = mu__value_unpack(&packed, why, sizeof why, ret_value);
    free(content);
    return explain_read_error(reader, rv, why, ret_error);
}

void mu__ckpt_reader_close(struct mu__ckpt_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->fd >= 0)
        (void)close(reader->fd);
    free(reader->parts);
    free(reader->path);
    free(reader);
}

/* ---- directories ---- */

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
    int size = snprintf(out, MU__CKPT_PATH_BYTES, "%s%s%s-%" PRIu64 "%s", directory,
                        slash, name, step, ending);

    if (size > 0 && size < MU__CKPT_PATH_BYTES)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the checkpoint's directory \"%.80s...\" is too long", directory);
}

/* "NAME-17.ckpt" -> 17. Steps have no zeros before them: each has one file. */
static bool parse_step(const char *file, const char *name, uint64_t *ret_step)
{
    size_t length = strlen(name);
    char text[32];
    char *end;
    uint64_t step;

    if (strncmp(file, name, length) != 0 || file[length] != '-')
        return false;
    file += length + 1;
    errno = 0;
    step = strtoull(file, &end, 10);
    (void)snprintf(text, sizeof text, "%" PRIu64, step);
    if (errno != 0 || strcmp(end, ending) != 0 || strlen(text) != (size_t)(end - file) ||
        strncmp(file, text, strlen(text)) != 0)
        return false;
    *ret_step = step;
    return true;
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
        if (!parse_step(entry->d_name, name, &step))
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
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "no memory to read \"%.200s\"",
                                      directory);
}

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
