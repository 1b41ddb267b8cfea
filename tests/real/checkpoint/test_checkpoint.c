/* Checkpoints of real variables in real files: saved, kept, damaged, restored; writers
 * that are killed, and a disk that is full. */
#include "actors/packing.h"
#include "node/files/checkpoint/ckpt_reader.h"
#include "node/files/checkpoint/ckpt_writer.h"
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include <muster/checkpoint.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- A cluster and a folder ---- */

struct stage {
    struct nodes nodes;
    mu_node *chief;
    char folder[64];
    mu_checkpoint_options options;
};

static void folder_make(char folder[64])
{
    (void)snprintf(folder, 64, "/tmp/muster-ckpt-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void stage_init(struct stage *stage)
{
    nodes_init(&stage->nodes, 0, 2);
    stage->chief = nodes_open(&stage->nodes, "chief", 0);
    (void)nodes_open(&stage->nodes, "ps", 0);
    (void)nodes_open(&stage->nodes, "ps", 1);
    folder_make(stage->folder);
    mu_checkpoint_options_init(&stage->options);
    stage->options.directory = stage->folder;
}

/* The same folder, and servers that know nothing. */
static void stage_restart(struct stage *stage)
{
    nodes_done(&stage->nodes);
    nodes_init(&stage->nodes, 0, 2);
    stage->chief = nodes_open(&stage->nodes, "chief", 0);
    (void)nodes_open(&stage->nodes, "ps", 0);
    (void)nodes_open(&stage->nodes, "ps", 1);
}

static void stage_done(struct stage *stage)
{
    nodes_done(&stage->nodes);
    files_remove_folder(stage->folder);
}

static mu_variable *open_floats(struct stage *stage, const char *name, uint64_t rows,
                                unsigned shards, const float *initial)
{
    const mu_variable_spec spec = {.name = name,
                                   .dtype = MU_F32,
                                   .rank = 1,
                                   .dims = &rows,
                                   .shards = shards,
                                   .initial = initial};
    mu_variable *variable = NULL;
    mu_error error = {0};

    if (mu_variable_open(stage->chief, &spec, SOON_MS, &error, &variable) != 0)
        fail_msg("%s", error.message);
    return variable;
}

static void save(struct stage *stage, uint64_t step, mu_variable **variables,
                 size_t count, const mu_value *values)
{
    mu_error error = {0};

    if (mu_checkpoint_save(&stage->options, step, variables, count, values, &error,
                           NULL) != 0)
        fail_msg("%s", error.message);
}

/* The step of the newest one that is whole; 0 when there is none. */
static uint64_t latest(const char *folder)
{
    char *path = NULL;
    uint64_t step = 0;
    mu_error error = {0};

    if (mu_checkpoint_latest(folder, NULL, &error, &path, &step) != 0)
        return 0;
    free(path);
    return step;
}

/* ---- Tests ---- */

TEST(test_save_and_restore)
{
    static const float first[] = {1, 2, 3, 4, 5};
    static const float second[] = {-1, -2};
    float read[5] = {0};
    struct stage stage;
    mu_variable *variables[2];
    mu_value *values = mu_value_string("epoch 3");
    mu_value *content = NULL;
    const mu_value *list;
    mu_error error = {0};
    char *path = NULL;
    char expected[128];
    uint64_t step = 0;

    stage_init(&stage);
    variables[0] = open_floats(&stage, "b", 5, 2, first);
    variables[1] = open_floats(&stage, "a", 2, 1, second);
    assert_int_equal(
        mu_checkpoint_save(&stage.options, 7, variables, 2, values, &error, &path), 0);
    (void)snprintf(expected, sizeof expected, "%s/model-7", stage.folder);
    assert_string_equal(path, expected);
    mu_variable_close(variables[0]);
    mu_variable_close(variables[1]);

    assert_int_equal(mu_checkpoint_read(path, &error, &content), 0);
    assert_true(mu_value_equal(mu_value_find(content, "values"), values));
    list = mu_value_find(content, "variables");
    assert_int_equal(mu_value_count(list), 2);
    assert_non_null(mu_value_find(mu_value_at(list, 0), "shape"));
    mu_value_free(content);
    free(path);

    stage_restart(&stage);
    assert_int_equal(mu_checkpoint_latest(stage.folder, "model", &error, &path, &step),
                     0);
    assert_int_equal(step, 7);
    assert_int_equal(mu_checkpoint_restore(stage.chief, path, NULL, 0, SOON_MS, &error),
                     0);
    variables[0] = open_floats(&stage, "b", 5, 2, NULL);
    assert_int_equal(mu_variable_read(variables[0], read, sizeof first, SOON_MS, &error),
                     0);
    assert_memory_equal(read, first, sizeof first);
    mu_variable_close(variables[0]);
    free(path);
    mu_value_free(values);
    stage_done(&stage);
}

/* Names, and variables that are there already, with other content or other shards. */
TEST(test_restore_some)
{
    static const float first[] = {1, 2, 3, 4};
    static const float other[] = {9, 9, 9, 9};
    static const char *const wrong[] = {"a", "c"};
    static const char *const empty[] = {""};
    static const char *const names[] = {"a", "shards"};
    float read[4] = {0};
    struct stage stage;
    mu_variable *variables[3];
    mu_error error = {0};
    char path[128];

    stage_init(&stage);
    variables[0] = open_floats(&stage, "a", 4, 1, first);
    variables[1] = open_floats(&stage, "b", 4, 1, first);
    variables[2] = open_floats(&stage, "shards", 4, 2, first);
    save(&stage, 1, variables, 3, NULL);
    for (size_t i = 0; i < 3; i++)
        mu_variable_close(variables[i]);
    (void)snprintf(path, sizeof path, "%s/model-1", stage.folder);

    stage_restart(&stage);
    variables[0] = open_floats(&stage, "a", 4, 1, other);
    variables[1] = open_floats(&stage, "b", 4, 1, other);
    variables[2] = open_floats(&stage, "shards", 4, 0, other);
    assert_int_equal(mu_checkpoint_restore(stage.chief, path, wrong, 2, SOON_MS, &error),
                     -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "there is no variable \"c\" in "));
    assert_int_equal(mu_checkpoint_restore(stage.chief, path, empty, 1, SOON_MS, &error),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_variable_read(variables[0], read, sizeof read, SOON_MS, &error),
                     0);
    assert_memory_equal(read, other, sizeof read);
    if (mu_checkpoint_restore(stage.chief, path, names, 2, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            mu_variable_read(variables[i], read, sizeof read, SOON_MS, &error), 0);
        assert_memory_equal(read, i == 1 ? other : first, sizeof read);
        mu_variable_close(variables[i]);
    }

    /* One that has another shape is not overwritten. */
    stage_restart(&stage);
    variables[0] = open_floats(&stage, "a", 3, 1, NULL);
    assert_int_equal(mu_checkpoint_restore(stage.chief, path, NULL, 0, SOON_MS, &error),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "variable a"));
    mu_variable_close(variables[0]);
    stage_done(&stage);
}

TEST(test_keep)
{
    struct stage stage;
    mu_variable *variable;
    char path[128];

    stage_init(&stage);
    variable = open_floats(&stage, "a", 2, 1, NULL);
    stage.options.max_to_keep = 3;
    for (uint64_t step = 8; step <= 12; step++)
        save(&stage, step, &variable, 1, NULL);
    assert_int_equal(files_count(stage.folder, ""), 3);
    assert_int_equal(latest(stage.folder), 12);

    /* A pipe under a newer name is no checkpoint, and is not waited for. */
    (void)snprintf(path, sizeof path, "%s/model-99", stage.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(latest(stage.folder), 12);
    assert_int_equal(unlink(path), 0);

    /* One that goes on from an older step keeps what it has just saved. */
    save(&stage, 2, &variable, 1, NULL);
    assert_int_equal(files_count(stage.folder, ""), 4);
    (void)snprintf(path, sizeof path, "%s/model-2", stage.folder);
    assert_int_equal(access(path, F_OK), 0);

    /* Others' files, and those of other names, are nobody's business. */
    stage.options.name = "model-2";
    save(&stage, 1, &variable, 1, NULL);
    stage.options.name = "model";
    stage.options.max_to_keep = 1;
    save(&stage, 13, &variable, 1, NULL);
    assert_int_equal(files_count(stage.folder, ""), 2);
    (void)snprintf(path, sizeof path, "%s/model-2-1", stage.folder);
    assert_int_equal(access(path, F_OK), 0);
    stage.options.max_to_keep = 0;
    for (uint64_t step = 20; step < 30; step++)
        save(&stage, step, &variable, 1, NULL);
    assert_int_equal(files_count(stage.folder, ""), 12);
    mu_variable_close(variable);
    stage_done(&stage);
}

TEST(test_arguments)
{
    struct stage stage;
    mu_variable *variables[2];
    mu_checkpoint_options wrong;
    mu_error error;
    mu_value *content = NULL;
    char *path = NULL;
    char deep[128];

    stage_init(&stage);
    variables[0] = open_floats(&stage, "a", 2, 1, NULL);
    variables[1] = open_floats(&stage, "a", 2, 1, NULL);
    assert_int_equal(mu_checkpoint_save(&stage.options, 1, variables, 2, NULL, &error,
                                        &path),
                     -MU_EINVALID);
    assert_string_equal(error.message, "variable a appears twice among those to save");
    wrong = stage.options;
    wrong.directory = NULL;
    assert_int_equal(mu_checkpoint_save(&wrong, 1, variables, 1, NULL, &error, &path),
                     -MU_EINVALID);
    wrong.directory = "";
    assert_int_equal(mu_checkpoint_save(&wrong, 1, variables, 1, NULL, &error, &path),
                     -MU_EINVALID);
    wrong = stage.options;
    wrong.name = "a/b";
    assert_int_equal(mu_checkpoint_save(&wrong, 1, variables, 1, NULL, &error, &path),
                     -MU_EINVALID);
    wrong.name = "..";
    assert_int_equal(mu_checkpoint_save(&wrong, 1, variables, 1, NULL, &error, &path),
                     -MU_EINVALID);
    assert_int_equal(mu_checkpoint_latest(NULL, NULL, &error, &path, NULL), -MU_EINVALID);
    assert_int_equal(mu_checkpoint_latest(stage.folder, "a b", &error, &path, NULL),
                     -MU_EINVALID);
    assert_int_equal(mu_checkpoint_latest(stage.folder, NULL, &error, &path, NULL),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_checkpoint_latest("/tmp/there-is-no/such", NULL, &error, &path,
                                          NULL),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_checkpoint_read(stage.folder, &error, &content), -MU_EDATALOSS);
    assert_null(content);
    assert_null(path);

    /* Directories are made; a file in their place is no directory. */
    (void)snprintf(deep, sizeof deep, "%s/x/y", stage.folder);
    wrong = stage.options;
    wrong.directory = deep;
    assert_int_equal(mu_checkpoint_save(&wrong, 1, variables, 1, NULL, &error, &path), 0);
    (void)snprintf(deep, sizeof deep, "%s/x/y/model-1/manifest.json", stage.folder);
    assert_int_equal(mu_checkpoint_save(&wrong, 1, variables, 1, NULL, &error, NULL),
                     -MU_ENOTFOUND);
    free(path);
    mu_variable_close(variables[0]);
    mu_variable_close(variables[1]);
    stage_done(&stage);
}

/* ---- Damage ---- */

static size_t read_all(const char *path, unsigned char *data, size_t size)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    size = fread(data, 1, size, file);
    (void)fclose(file);
    return size;
}

static void write_all(const char *path, const unsigned char *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    (void)fclose(file);
}

/* Each byte of a file is damaged, each length cut: the checkpoint before counts. */
static void damage_file(struct stage *stage, const char *newest, const char *file)
{
    static unsigned char data[4096];
    mu_error error;
    char path[256];
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%s", newest, file);
    size = read_all(path, data, sizeof data);
    assert_true(size > 0 && size < sizeof data);
    assert_int_equal(latest(stage->folder), 2);
    for (size_t at = 0; at < size; at++) {
        data[at] ^= 0x40;
        write_all(path, data, size);
        assert_int_equal(latest(stage->folder), 1);
        assert_int_equal(mu_checkpoint_restore(stage->chief, newest, NULL, 0, SOON_MS,
                                               &error),
                         -MU_EDATALOSS);
        assert_non_null(strstr(error.message, newest));
        assert_non_null(strstr(error.message, file));
        data[at] ^= 0x40;
    }
    for (size_t cut = 0; cut < size; cut++) {
        write_all(path, data, cut);
        assert_int_equal(latest(stage->folder), 1);
    }
    write_all(path, data, size);
    assert_int_equal(latest(stage->folder), 2);
}

TEST(test_damage)
{
    static const char *const files[] = {"00001-of-00001.safetensors", "manifest.json",
                                        "model.safetensors.index.json",
                                        "values.safetensors", "windows.safetensors"};
    static unsigned char data[4096];
    struct stage stage;
    mu_variable *variable;
    mu_value *values = mu_value_int(INT64_MIN); /* packed: JSON cannot hold it */
    mu_error error;
    char *path = NULL;
    char newest[128];
    size_t size;

    stage_init(&stage);
    variable = open_floats(&stage, "a", 2, 1, NULL);
    save(&stage, 1, &variable, 1, values);
    save(&stage, 2, &variable, 1, values);
    (void)snprintf(newest, sizeof newest, "%s/model-2", stage.folder);
    assert_int_equal(files_count(newest, ""), 5);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        damage_file(&stage, newest, files[i]);

    /* All of them: what is wrong with the newest is told. */
    (void)snprintf(newest, sizeof newest, "%s/model-2/%s", stage.folder, files[0]);
    size = read_all(newest, data, sizeof data);
    write_all(newest, data, size - 1);
    (void)snprintf(newest, sizeof newest, "%s/model-1/%s", stage.folder, files[0]);
    assert_int_equal(unlink(newest), 0);
    assert_int_equal(mu_checkpoint_latest(stage.folder, NULL, &error, &path, NULL),
                     -MU_EDATALOSS);
    assert_non_null(strstr(error.message,
                           "model-2\" is no checkpoint that was saved: "
                           "00001-of-00001.safetensors: the file is cut short"));
    (void)snprintf(newest, sizeof newest, "%s/model-2", stage.folder);
    files_remove_folder(newest);
    assert_int_equal(mu_checkpoint_latest(stage.folder, NULL, &error, &path, NULL),
                     -MU_EDATALOSS);
    assert_non_null(strstr(error.message, "safetensors: the file is missing"));
    mu_variable_close(variable);
    mu_value_free(values);
    stage_done(&stage);
}

/* Files may not grow beyond so many bytes: as a disk that is full. Nothing of the attempt
 * stays, and what was there is as it was. */
TEST(test_disk_full)
{
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    float *content = calloc(100000, sizeof *content);
    struct stage stage;
    mu_variable *variables[2];
    mu_error error;

    assert_non_null(content);
    stage_init(&stage);
    (void)signal(SIGXFSZ, SIG_IGN);
    variables[0] = open_floats(&stage, "a", 2, 1, NULL);
    variables[1] = open_floats(&stage, "b", 100000, 1, content);
    save(&stage, 1, variables, 2, NULL);
    for (rlim_t bytes = 0; bytes < 500000; bytes = bytes * 2 + 30) {
        const struct rlimit limit = {bytes, RLIM_INFINITY};
        int rv;

        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        rv = mu_checkpoint_save(&stage.options, 2, variables, 2, NULL, &error, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
        if (bytes > 401000) {
            assert_int_equal(rv, 0);
            break;
        }
        assert_int_equal(rv, -MU_EEXHAUSTED);
        assert_non_null(strstr(error.message, "model-2\" cannot be written: "));
        assert_int_equal(files_count(stage.folder, ".part"), 0);
        assert_int_equal(latest(stage.folder), 1);
    }
    (void)signal(SIGXFSZ, SIG_DFL);
    mu_variable_close(variables[0]);
    mu_variable_close(variables[1]);
    free(content);
    stage_done(&stage);
}

/* ---- Writers that die ---- */

/* A directory with a file. */
static void make_left(const char *folder, const char *name, char *ret_path, size_t size)
{
    char file[256];

    (void)snprintf(ret_path, size, "%s/%s", folder, name);
    assert_int_equal(mkdir(ret_path, 0777), 0);
    (void)snprintf(file, sizeof file, "%s/x", ret_path);
    write_all(file, (const unsigned char *)"x", 1);
}

TEST(test_left_behind)
{
    struct stage stage;
    mu_variable *variable;
    char paths[3][128];
    int fd;

    stage_init(&stage);
    variable = open_floats(&stage, "a", 2, 1, NULL);
    make_left(stage.folder, "model-3.77-0.part", paths[0], sizeof paths[0]);
    make_left(stage.folder, "model-4.78-0.part", paths[1], sizeof paths[1]);
    make_left(stage.folder, "mine.part", paths[2], sizeof paths[2]);
    fd = open(paths[1], O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    save(&stage, 9, &variable, 1, NULL);
    assert_int_not_equal(access(paths[0], F_OK), 0);
    assert_int_equal(access(paths[1], F_OK), 0);
    assert_int_equal(access(paths[2], F_OK), 0);
    (void)close(fd);
    mu_variable_close(variable);
    stage_done(&stage);
}

/* Saves one step after the other, each twice, until it is killed. */
static void write_for_ever(const char *folder)
{
    static uint8_t content[1 << 16];
    const struct mu__shape shape = {MU_U8, 1, {sizeof content}, 1};
    static const char *const names[] = {"a", "b", "c", "d"};

    for (uint64_t round = 2;; round++) {
        struct mu__ckpt_writer *writer;
        char path[MU__CKPT_PATH_BYTES];

        memset(content, (int)round, sizeof content);
        if (mu__ckpt_path(folder, "model", round / 2, NULL, path) != 0 ||
            mu__ckpt_writer_open(path, round / 2, NULL, &writer) != 0)
            _exit(1);
        for (uint32_t i = 0; i < 4; i++) {
            const struct mu__ckpt_part part = {i / 2, names[i], &shape, 0,
                                               sizeof content};

            if (mu__ckpt_writer_declare(writer, &part, NULL) != 0)
                _exit(1);
        }
        for (size_t i = 0; i < 4; i++)
            if (mu__ckpt_writer_write(writer, i, content, NULL) != 0)
                _exit(1);
        if (mu__ckpt_writer_finish(writer, NULL) != 0)
            _exit(1);
        mu__ckpt_writer_free(writer);
    }
}

/* After a kill at any moment every directory of a checkpoint's name is whole. */
static void expect_all_whole(const char *folder)
{
    uint64_t *steps = NULL;
    size_t count = 0;

    assert_int_equal(mu__ckpt_steps(folder, "model", NULL, &steps, &count), 0);
    for (size_t i = 0; i < count; i++) {
        struct mu__ckpt_reader *reader;
        char path[MU__CKPT_PATH_BYTES];
        mu_error error;

        assert_int_equal(mu__ckpt_path(folder, "model", steps[i], NULL, path), 0);
        if (mu__ckpt_reader_open(path, &error, &reader) != 0)
            fail_msg("%s", error.message);
        assert_int_equal(reader->manifest.step, steps[i]);
        mu__ckpt_reader_close(reader);
    }
    mu__free_array(steps);
}

TEST(test_killed_writers)
{
    char folder[64];

    folder_make(folder);
    for (int round = 0; round < 20; round++) {
        const struct timespec wait = {0, (round * 7 + 1) * 300000L};
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            write_for_ever(folder);
        }
        (void)nanosleep(&wait, NULL);
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        expect_all_whole(folder);
        assert_true(files_count(folder, ".part") <= 1);
    }
    files_remove_folder(folder);
}

TEST_PROGRAM()
