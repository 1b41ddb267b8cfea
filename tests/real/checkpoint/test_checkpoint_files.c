/* Directories of checkpoints without a cluster: parts, partitions,
 * replaced and removed while they are read, files that do not fit their manifest, files
 * of other programs. */
#define _GNU_SOURCE /* renameat2() */
#include "node/files/checkpoint/ckpt_reader.h"
#include "node/files/checkpoint/ckpt_writer.h"
#include "runtime/base/byte_order.h"
#include "tests/real/files.h"

#include <muster/checkpoint.h>

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- A file system that cannot exchange two names ---- */

static bool has_no_exchange;
static int exchanges_refused;

int renameat2(int from_folder, const char *from, int to_folder, const char *to,
              unsigned flags)
{
    if (has_no_exchange) {
        exchanges_refused++;
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

/* ---- A folder with checkpoints ---- */

struct fixture {
    char folder[64];
    char path[128]; /* of a checkpoint in it */
};

static int set_up(void **state)
{
    static struct fixture f;

    has_no_exchange = false;
    (void)snprintf(f.folder, sizeof f.folder, "/tmp/muster-ckpt-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    (void)snprintf(f.path, sizeof f.path, "%s/model-1", f.folder);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    files_remove_folder(f->folder);
    return 0;
}

enum { ROWS = 6, BYTES = ROWS * 3 };

static const struct mu__shape shape = {MU_U8, 2, {ROWS, 3}, 3};

static struct mu__ckpt_writer *begin(const char *path)
{
    struct mu__ckpt_writer *writer = NULL;
    mu_error error;

    if (mu__ckpt_writer_open(path, 1, &error, &writer) != 0)
        fail_msg("%s", error.message);
    return writer;
}

static void declare(struct mu__ckpt_writer *writer, uint32_t file, const char *name,
                    uint64_t first, uint64_t end)
{
    const struct mu__ckpt_part part = {file, name, &shape, first, end};

    assert_int_equal(mu__ckpt_writer_declare(writer, &part, NULL), 0);
}

static void end(struct mu__ckpt_writer *writer)
{
    mu_error error;

    if (mu__ckpt_writer_finish(writer, &error) != 0)
        fail_msg("%s", error.message);
    mu__ckpt_writer_free(writer);
}

/* Variable "w" in one piece, all bytes alike. */
static void save(const char *path, int byte)
{
    struct mu__ckpt_writer *writer = begin(path);
    uint8_t content[BYTES];

    memset(content, byte, sizeof content);
    declare(writer, 0, "w", 0, ROWS);
    assert_int_equal(mu__ckpt_writer_write(writer, 0, content, NULL), 0);
    end(writer);
}

static struct mu__ckpt_reader *opened(const char *path)
{
    struct mu__ckpt_reader *reader = NULL;
    mu_error error;

    if (mu__ckpt_reader_open(path, &error, &reader) != 0)
        fail_msg("%s", error.message);
    return reader;
}

/* The content of a variable; to be freed. */
static uint8_t *content_of(const struct mu__ckpt_reader *reader, const char *name)
{
    const struct mu__manifest_variable *variable = mu__ckpt_reader_find(reader, name);
    uint8_t *content = NULL;
    mu_error error;

    assert_non_null(variable);
    if (mu__ckpt_reader_content(reader, variable, &error, &content) != 0)
        fail_msg("%s", error.message);
    return content;
}

/* The first byte of "w" in the checkpoint at a path. */
static int saved_byte(const char *path)
{
    struct mu__ckpt_reader *reader = opened(path);
    uint8_t *content = content_of(reader, "w");
    int byte = content[0];

    for (int i = 0; i < BYTES; i++)
        assert_int_equal(content[i], byte);
    free(content);
    mu__ckpt_reader_close(reader);
    return byte;
}

static void expect_refused(const char *path, int code, const char *words)
{
    struct mu__ckpt_reader *reader;
    mu_error error;

    assert_int_equal(mu__ckpt_reader_open(path, &error, &reader), code);
    if (strstr(error.message, words) == NULL || strstr(error.message, path) == NULL)
        fail_msg("got \"%s\", expected %s", error.message, words);
}

/* ---- Parts ---- */

/* Rows of one variable in two files, one of them with holes between;
 * contents come in any order. */
TEST_ON(test_parts_of_variables, struct fixture *f, set_up, tear_down)
{
    struct mu__ckpt_writer *writer = begin(f->path);
    struct mu__ckpt_reader *reader;
    uint8_t content[BYTES];
    uint8_t *read;

    for (int i = 0; i < BYTES; i++)
        content[i] = (uint8_t)i;
    declare(writer, 7, "v", 0, ROWS);
    declare(writer, 3, "w", 0, 2);
    declare(writer, 7, "w", 2, 3);
    declare(writer, 3, "w", 3, ROWS);
    assert_int_equal(mu__ckpt_writer_write(writer, 3, content + 9, NULL), 0);
    assert_int_equal(mu__ckpt_writer_write(writer, 1, content, NULL), 0);
    assert_int_equal(mu__ckpt_writer_write(writer, 0, content, NULL), 0);
    assert_int_equal(mu__ckpt_writer_write(writer, 2, content + 6, NULL), 0);
    end(writer);
    assert_int_equal(files_count(f->path, ".safetensors"), 2);

    reader = opened(f->path);
    assert_int_equal(reader->manifest.files_count, 2);
    assert_int_equal(reader->manifest.variables[1].shards, 3);
    for (const char *name = "w"; name != NULL; name = name[0] == 'w' ? "v" : NULL) {
        read = content_of(reader, name);
        assert_memory_equal(read, content, BYTES);
        free(read);
    }
    mu__ckpt_reader_close(reader);
}

/* What is written in pieces, a piece of it twice, has the sum of the last ones. */
TEST_ON(test_pieces, struct fixture *f, set_up, tear_down)
{
    struct mu__ckpt_writer *writer = begin(f->path);
    const struct mu__crc32c *crc = mu__ckpt_writer_crc(writer);
    struct mu__ckpt_reader *reader;
    uint8_t *read;

    declare(writer, 0, "w", 0, ROWS);
    assert_int_equal(mu__ckpt_writer_write_at(writer, 0, 10, "klmnopqr", 8, NULL), 0);
    assert_int_equal(mu__ckpt_writer_write_at(writer, 0, 0, "0123456789", 10, NULL), 0);
    assert_int_equal(mu__ckpt_writer_write_at(writer, 0, 0, "abcdefghij", 10, NULL), 0);
    mu__ckpt_writer_end_part(
        writer, 0,
        mu__crc32c_add(crc, 0, "klmnopqr", 8) ^
            mu__crc32c_shift(mu__crc32c_add(crc, 0, "abcdefghij", 10), 8));
    end(writer);
    reader = opened(f->path);
    read = content_of(reader, "w");
    assert_memory_equal(read, "abcdefghijklmnopqr", BYTES);
    free(read);
    mu__ckpt_reader_close(reader);
}

/* ---- Partitions ---- */

static void save_windows(const char *path)
{
    const struct mu__ckpt_partition partitions[] = {
        {3, 17, UINT64_MAX, "three", 5}, {200, 1, 2, NULL, 0}, {255, 9, 8, "last", 4}};
    struct mu__ckpt_writer *writer = begin(path);

    assert_int_equal(mu__ckpt_writer_write_partitions(writer, partitions, 3, NULL), 0);
    end(writer);
}

TEST_ON(test_windows_of_partitions, struct fixture *f, set_up, tear_down)
{
    struct mu__ckpt_reader *reader;
    const uint8_t *windows;
    uint64_t bytes;

    save_windows(f->path);
    reader = opened(f->path);
    assert_int_equal(reader->manifest.partitions_count, 3);
    assert_int_equal(reader->manifest.partitions[0].position, 17);
    assert_true(reader->manifest.partitions[0].sum == UINT64_MAX);
    mu__ckpt_reader_windows(reader, 0, &windows, &bytes);
    assert_int_equal(bytes, 5);
    assert_memory_equal(windows, "three", 5);
    mu__ckpt_reader_windows(reader, 1, &windows, &bytes);
    assert_int_equal(bytes, 0);
    mu__ckpt_reader_windows(reader, 2, &windows, &bytes);
    assert_int_equal(bytes, 4);
    assert_memory_equal(windows, "last", 4);
    mu__ckpt_reader_close(reader);
}

TEST_ON(test_windows_that_do_not_fit_are_refused, struct fixture *f, set_up, tear_down)
{
    char file[256];
    FILE *opened_file;

    save_windows(f->path);
    (void)snprintf(file, sizeof file, "%s/windows.safetensors", f->path);
    opened_file = fopen(file, "r+");
    assert_non_null(opened_file);
    assert_int_equal(fseek(opened_file, -1, SEEK_END), 0);
    assert_int_equal(fputc('x', opened_file), 'x');
    assert_int_equal(fclose(opened_file), 0);
    expect_refused(f->path, -MU_EDATALOSS, "windows.safetensors: it is damaged");
    assert_int_equal(truncate(file, 20), 0);
    expect_refused(f->path, -MU_EDATALOSS, "windows.safetensors: the file is cut short");
    assert_int_equal(unlink(file), 0);
    expect_refused(f->path, -MU_EDATALOSS, "windows.safetensors: the file is missing");
}

/* Variable "w[0:2]", and rows of "w". */
TEST_ON(test_name_of_rows, struct fixture *f, set_up, tear_down)
{
    struct mu__ckpt_writer *writer = begin(f->path);
    mu_error error;

    declare(writer, 1, "w", 0, 2);
    declare(writer, 1, "w", 2, ROWS);
    declare(writer, 2, "w[0:2]", 0, ROWS);
    assert_int_equal(mu__ckpt_writer_write(writer, 0, "123456", &error), -MU_EINVALID);
    assert_non_null(strstr(error.message, "model-1\" cannot be written: variable "
                                          "\"w[0:2]\" has the name of rows of another "
                                          "one"));
    mu__ckpt_writer_free(writer);
    assert_int_equal(files_count(f->folder, ""), 0);
}

/* ---- Replaced and removed ---- */

/* There is no moment without one, and none in which it is not whole. */
TEST_ON(test_replaced_while_read, struct fixture *f, set_up, tear_down)
{
    pid_t pid;
    int last = 0;

    save(f->path, 1);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 2;; i = i % 200 + 1)
            save(f->path, i);
    }
    for (int changes = 0; changes < 50;) {
        int byte = saved_byte(f->path);

        changes += byte != last;
        last = byte;
    }
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    save(f->path, 201);
    assert_int_equal(saved_byte(f->path), 201);
    assert_int_equal(files_count(f->folder, ""), 1);
}

TEST_ON(test_without_exchange, struct fixture *f, set_up, tear_down)
{
    has_no_exchange = true;
    for (int i = 1; i < 5; i++) {
        save(f->path, i);
        assert_int_equal(saved_byte(f->path), i);
        assert_int_equal(files_count(f->folder, ""), 1);
        assert_int_equal(exchanges_refused, i - 1);
    }
}

TEST_ON(test_removed_while_open, struct fixture *f, set_up, tear_down)
{
    struct mu__ckpt_reader *reader;
    uint8_t *content;

    save(f->path, 9);
    reader = opened(f->path);
    mu__ckpt_folder_remove(f->path);
    assert_int_equal(files_count(f->folder, ""), 0);
    content = content_of(reader, "w");
    assert_int_equal(content[0], 9);
    free(content);
    mu__ckpt_reader_close(reader);
    expect_refused(f->path, -MU_ENOTFOUND, "cannot be read: ");
}

/* What has a checkpoint's name and no manifest is somebody else's. */
TEST_ON(test_others_directory, struct fixture *f, set_up, tear_down)
{
    const mu_checkpoint_options options = {.size = sizeof options,
                                           .directory = f->folder,
                                           .name = "model",
                                           .max_to_keep = 1,
                                           .timeout_ms = -1};
    char file[160];
    char *path = NULL;
    mu_error error;

    assert_int_equal(mkdir(f->path, 0777), 0);
    (void)snprintf(file, sizeof file, "%s/notes", f->path);
    files_replace(file, "mine");
    assert_int_equal(mu_checkpoint_latest(f->folder, NULL, &error, &path, NULL),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_checkpoint_save(&options, 1, NULL, 0, NULL, &error, NULL),
                     -MU_EEXISTS);
    assert_non_null(strstr(error.message, "model-1\" cannot be written: "));
    assert_int_equal(mu_checkpoint_save(&options, 2, NULL, 0, NULL, &error, NULL), 0);
    assert_int_equal(mu_checkpoint_save(&options, 3, NULL, 0, NULL, &error, NULL), 0);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(files_count(f->folder, ""), 2);
    expect_refused(f->path, -MU_EDATALOSS,
                   "it has neither manifest.json nor *.safetensors");
}

/* ---- Files by hand ---- */

static struct mu__crc32c crc;

static void write_bytes(const char *folder, const char *name, const void *data,
                        size_t size)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file with that JSON and `content_bytes` of contents. */
static struct mu__manifest_file write_model(const char *folder, const char *name,
                                            const char *json, size_t content_bytes)
{
    uint8_t bytes[512] = {0};
    size_t size = 8 + strlen(json);

    mu__store_little(bytes, strlen(json), 8);
    memcpy(bytes + 8, json, strlen(json));
    memset(bytes + size, 'x', content_bytes);
    write_bytes(folder, name, bytes, size + content_bytes);
    return (struct mu__manifest_file){.bytes = size + content_bytes,
                                      .header_crc = mu__crc32c_add(&crc, 0, bytes, size)};
}

#define U8_4(name, from, end) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" from "," end "]}"

/* A manifest with variable "w", U8[4], and files whose headers say something else; all
 * sums are right. */
static void write_checkpoint(const char *path, const char *json, size_t content_bytes,
                             const struct mu__manifest_variable *variable)
{
    struct mu__manifest_file file;
    struct mu__manifest_variable copy = *variable;
    struct mu__manifest_part part = {.end_row = 4,
                                     .crc = mu__crc32c_add(&crc, 0, "xxxx", 4)};
    const struct mu__manifest manifest = {.files = &file,
                                          .files_count = 1,
                                          .variables = &copy,
                                          .variables_count = 1,
                                          .parts = &part,
                                          .parts_count = 1,
                                          .index = {2, mu__crc32c_add(&crc, 0, "{}", 2)}};
    struct mu__build text = {0};

    assert_int_equal(mkdir(path, 0777), 0);
    file = write_model(path, "00001-of-00001.safetensors", json, content_bytes);
    mu__manifest_write(&crc, &manifest, NULL, &text);
    assert_true(mu__build_whole(&text));
    write_bytes(path, "manifest.json", text.text, text.size);
    write_bytes(path, "model.safetensors.index.json", "{}", 2);
    mu__build_done(&text);
}

TEST_ON(test_files_that_do_not_fit, struct fixture *f, set_up, tear_down)
{
    static const struct {
        const char *json;
        size_t content_bytes;
        const char *name;
        uint32_t shards;
        const char *words; /* NULL: it fits */
    } rows[] = {
        {"{" U8_4("w", "0", "4") "}", 4, "w", 1, NULL},
        {"{" U8_4("v", "0", "4") "}", 4, "w", 1, "tensor \"w\" is missing"},
        {"{}", 0, "w", 1, "tensor \"w\" is missing"},
        {"{\"w\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "w", 1,
         "tensor \"w\" has another dtype or shape than the manifest says"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}", 5, "w", 1,
         "tensor \"w\" has another dtype or shape than the manifest says"},
        {"{" U8_4("w", "0", "4") "," U8_4("v", "4", "8") "}", 8, "w", 1,
         "00001-of-00001.safetensors: it has tensors that the manifest does not have"},
        {"{" U8_4("w", "0", "4") "}", 5, "w", 1,
         "there are bytes behind its last tensor"},
        {"{" U8_4("w", "0", "4") "}", 4, "w", 5,
         "manifest.json: variable \"w\": 5 shards of 4 rows"},
        {"{" U8_4("w", "0", "4") "}", 4, "w\x01", 1,
         "manifest.json: variable \"w\\x01\": "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__manifest_variable variable = {.dtype = MU_U8,
                                                 .rank = 1,
                                                 .dims = {4},
                                                 .shards = rows[i].shards,
                                                 .parts_count = 1};

        (void)snprintf(variable.name, sizeof variable.name, "%s", rows[i].name);
        write_checkpoint(f->path, rows[i].json, rows[i].content_bytes, &variable);
        if (rows[i].words == NULL)
            mu__ckpt_reader_close(opened(f->path));
        else
            expect_refused(f->path, -MU_EDATALOSS, rows[i].words);
        files_remove_folder(f->path);
    }
}

/* ---- Files of other programs ---- */

TEST_ON(test_other_programs, struct fixture *f, set_up, tear_down)
{
    struct mu__ckpt_reader *reader;
    char path[160];
    mu_value *value = NULL;
    uint8_t *content;

    (void)write_model(f->folder, "a.safetensors",
                      "{\"__metadata__\":{\"by\":\"me\"}," U8_4("x", "0", "4") "}", 4);
    (void)snprintf(path, sizeof path, "%s/a.safetensors", f->folder);
    reader = opened(path);
    assert_false(reader->has_sums);
    assert_int_equal(reader->manifest.variables_count, 1);
    content = content_of(reader, "x");
    assert_memory_equal(content, "xxxx", 4);
    free(content);
    assert_int_equal(mu__ckpt_reader_value(reader, NULL, &value), 0);
    assert_int_equal(mu_value_type(value), MU_VALUE_NIL);
    mu_value_free(value);
    assert_null(mu__ckpt_reader_find(reader, "y"));
    mu__ckpt_reader_close(reader);

    /* All in a directory. */
    (void)write_model(f->folder, "b.safetensors", "{" U8_4("w", "0", "4") "}", 4);
    reader = opened(f->folder);
    assert_int_equal(reader->manifest.variables_count, 2);
    assert_string_equal(reader->manifest.variables[0].name, "w");
    content = content_of(reader, "x");
    assert_memory_equal(content, "xxxx", 4);
    free(content);
    mu__ckpt_reader_close(reader);
    (void)write_model(f->folder, "c.safetensors", "{" U8_4("w", "0", "4") "}", 4);
    expect_refused(f->folder, -MU_EDATALOSS, "tensor \"w\" is in two of its files");
}

TEST_ON(test_no_variables, struct fixture *f, set_up, tear_down)
{
    static const struct {
        const char *json;
        int code;
        const char *words;
    } rows[] = {
        {"{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}",
         -MU_EUNIMPLEMENTED,
         "cannot be restored: tensor \"w\": variables cannot have its dtype, "
         "\"F8_E4M3\""},
        {"{" U8_4("w", "0", "4") ",\"v\":{\"dtype\":\"U8\",\"shape\":[0],"
                                 "\"data_offsets\":[4,4]}}",
         -MU_EUNIMPLEMENTED, "variable \"v\": dimension 0 is 0"},
        {"{" U8_4("w\\t", "0", "4") "}", -MU_EUNIMPLEMENTED, "variable \"w\\x09\": "},
        {"{" U8_4("w", "0", "3") "}", -MU_EDATALOSS, "do not fit its dtype and shape"},
        {"{", -MU_EDATALOSS, "its header: line 1"},
    };
    char path[160];

    (void)snprintf(path, sizeof path, "%s/m.safetensors", f->folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)write_model(f->folder, "m.safetensors", rows[i].json, 4);
        expect_refused(path, rows[i].code, rows[i].words);
    }
    write_bytes(f->folder, "m.safetensors", "1234567", 7);
    expect_refused(path, -MU_EDATALOSS, "the file is cut short, in its header");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, -MU_EDATALOSS, "it is neither a directory nor a file");
    expect_refused(f->folder, -MU_EDATALOSS, "m.safetensors: it is no regular file");
}

int main(void)
{
    mu__crc32c_init(&crc);
    return tests_run(NULL, NULL);
}
