/* Tables in checkpoints: restored, they go on bit by bit, on other servers, too. */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include <muster/checkpoint.h>

#include "actors/partitions.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { DIM = 5, IDS = 3000 };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_table *table;
    int kind;
    char folder[64];
    char *path;
    uint64_t ids[IDS];
    float gradients[IDS * DIM];
};

static struct fixture f;

static mu_table *open_emb(void)
{
    const mu_optimizer optimizer = mu_optimizer_make(f.kind, 0.1);
    const mu_initializer initial = {MU_INITIALIZER_UNIFORM, 7, -1, 1};
    const mu_table_spec spec = {
        .name = "emb", .dim = DIM, .initializer = &initial, .optimizer = &optimizer};
    mu_table *table = NULL;
    mu_error error = {.message = ""};

    if (mu_table_open(f.chief, &spec, SOON_MS, &error, &table) != 0)
        fail_msg("%s", error.message);
    return table;
}

/* Servers that know nothing. */
static void start(int servers)
{
    nodes_init(&f.nodes, 0, servers);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    for (int i = 0; i < servers; i++)
        (void)nodes_open(&f.nodes, "ps", i);
    f.table = open_emb();
}

static void stop(void)
{
    mu_table_close(f.table);
    nodes_done(&f.nodes);
}

static void make_folder(void)
{
    (void)snprintf(f.folder, sizeof f.folder, "/tmp/muster-tables-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
}

static int save_step(uint64_t step, mu_error *error)
{
    mu_checkpoint_options options;

    free(f.path);
    f.path = NULL;
    mu_checkpoint_options_init(&options);
    options.directory = f.folder;
    options.tables = &f.table;
    options.tables_count = 1;
    return mu_checkpoint_save(&options, step, NULL, 0, NULL, error, &f.path);
}

static void save(void)
{
    mu_error error = {.message = ""};

    make_folder();
    if (save_step(1, &error) != 0)
        fail_msg("%s", error.message);
}

static void forget(void)
{
    free(f.path);
    f.path = NULL;
    files_remove_folder(f.folder);
}

static void restore(void)
{
    mu_error error = {.message = ""};

    if (mu_checkpoint_restore(f.chief, f.path, NULL, 0, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

/* Of the first `count` ids, those that `number` does not leave out. */
static void push(int number, uint32_t count)
{
    uint64_t ids[IDS];
    uint32_t pushed = 0;
    mu_error error = {.message = ""};

    for (uint32_t i = 0; i < count; i++)
        if ((i + (uint32_t)number) % 3 != 0)
            ids[pushed++] = UINT64_C(0x8000000000000000) + i * UINT64_C(1000003);
    for (uint32_t i = 0; i < pushed * DIM; i++)
        f.gradients[i] = (float)((int)(i * 7 + (uint32_t)number * 13) % 101 - 50) / 16;
    if (mu_table_apply(f.table, ids, f.gradients, pushed, NULL, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

static void train(int from, int end)
{
    for (int number = from; number < end; number++)
        push(number, IDS);
}

static void read_rows(float *ret_rows)
{
    for (uint32_t i = 0; i < IDS; i++)
        f.ids[i] = UINT64_C(0x8000000000000000) + i * UINT64_C(1000003);
    assert_int_equal(mu_table_lookup(f.table, f.ids, IDS, ret_rows, SOON_MS, NULL), 0);
}

/* Two steps, a checkpoint, two more; and these again from the checkpoint, on the same
 * servers and on another number of them. Some rows were made and some deleted since. */
static void check_kind(int kind)
{
    static float expected[IDS * DIM];
    static float content[IDS * DIM];

    f.kind = kind;
    start(2);
    push(0, IDS / 2);
    push(0, IDS / 2);
    save();
    train(2, 4);
    read_rows(expected);
    assert_int_equal(mu_table_delete(f.table, f.ids, 100, SOON_MS, NULL), 0);
    restore();
    train(2, 4);
    read_rows(content);
    assert_memory_equal(content, expected, sizeof content);
    stop();
    start(1);
    push(1, IDS);
    restore();
    train(2, 4);
    read_rows(content);
    assert_memory_equal(content, expected, sizeof content);
    stop();
    forget();
}

TEST(test_restored_tables_go_on)
{
    static const int kinds[] = {MU_OPTIMIZER_SGD, MU_OPTIMIZER_ADAGRAD,
                                MU_OPTIMIZER_ROWWISE_ADAGRAD, MU_OPTIMIZER_ADAM};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        check_kind(kinds[i]);
}

static void assert_in_file(const char *file, const char *const *names, size_t count)
{
    char path[512];
    static char text[1 << 16];
    FILE *stream;

    (void)snprintf(path, sizeof path, "%s/%s", f.path, file);
    stream = fopen(path, "re");
    assert_non_null(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    (void)fclose(stream);
    for (size_t i = 0; i < count; i++)
        if (strstr(text, names[i]) == NULL)
            fail_msg("%s: %s", names[i], text);
}

static void assert_text(const mu_value *map, const char *key, const char *expected)
{
    const char *text = NULL;
    size_t size;

    assert_int_equal(mu_value_get_string(mu_value_find(map, key), &text, &size), 0);
    assert_string_equal(text, expected);
}

/* What other programs find, and what mu_checkpoint_read says. */
TEST(test_names_of_columns)
{
    static const char *const names[] = {
        "\"name\": \"emb\", \"dtype\": \"F32\", \"shape\": [2000, 5]",
        "\"emb#ids\", \"dtype\": \"I64\", \"shape\": [2000]",
        "\"emb#pushes\", \"dtype\": \"I64\", \"shape\": [2000]",
        "\"emb#adam.momentum\", \"dtype\": \"F32\", \"shape\": [2000, 5]",
        "\"emb#adam.velocity\"",
        "\"tables\": [\n {\"name\": \"emb\", \"rows\": \"2000\""};
    const mu_value *table;
    mu_value *content = NULL;
    int64_t rows;

    f.kind = MU_OPTIMIZER_ADAM;
    start(2);
    push(0, IDS);
    save();
    assert_in_file("manifest.json", names, sizeof names / sizeof names[0]);
    assert_int_equal(mu_checkpoint_read(f.path, NULL, &content), 0);
    assert_int_equal(mu_value_count(mu_value_find(content, "variables")), 0);
    assert_int_equal(mu_value_count(mu_value_find(content, "tables")), 1);
    table = mu_value_at(mu_value_find(content, "tables"), 0);
    assert_text(table, "initializer", "uniform");
    assert_text(table, "optimizer", "adam");
    assert_int_equal(mu_value_get_int(mu_value_find(table, "rows"), &rows), 0);
    assert_int_equal(rows, 2000);
    mu_value_free(content);
    stop();
    forget();
}

/* Tables without a row; one of another form on the servers; a name that is not there. */
TEST(test_restores_that_are_refused)
{
    static const char *const emb[] = {"emb"};
    static const char *const other[] = {"other"};
    const mu_table_spec spec = {.name = "emb", .dim = DIM + 1};
    mu_table *table = NULL;
    mu_error error = {.message = ""};

    f.kind = MU_OPTIMIZER_SGD;
    start(2);
    save();
    push(0, IDS);
    assert_int_equal(mu_checkpoint_restore(f.chief, f.path, emb, 1, SOON_MS, &error), 0);
    assert_int_equal(save_step(2, &error), 0);
    assert_int_equal(mu_checkpoint_restore(f.chief, f.path, other, 1, SOON_MS, &error),
                     -MU_ENOTFOUND);
    stop();
    nodes_init(&f.nodes, 0, 1);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    (void)nodes_open(&f.nodes, "ps", 0);
    assert_int_equal(mu_table_open(f.chief, &spec, SOON_MS, &error, &table), 0);
    assert_int_equal(mu_checkpoint_restore(f.chief, f.path, NULL, 0, SOON_MS, &error),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "emb"));
    assert_non_null(strstr(error.message, "rows of 6 numbers"));
    mu_table_close(table);
    nodes_done(&f.nodes);
    forget();
}

/* ---- Damage ---- */

static size_t read_file(const char *path, unsigned char *data, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    assert_true(fd >= 0);
    got = read(fd, data, size);
    assert_true(got > 0 && (size_t)got < size);
    (void)close(fd);
    return (size_t)got;
}

static void write_byte(const char *path, size_t at, unsigned char byte)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    (void)close(fd);
}

static void flip_each_byte(const char *file)
{
    static unsigned char data[1 << 16];
    char path[512];
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%s", f.path, file);
    size = read_file(path, data, sizeof data);
    for (size_t at = 0; at < size; at++) {
        mu_error error = {.message = ""};

        write_byte(path, at, data[at] ^ (unsigned char)(1U << at % 8));
        assert_int_equal(mu_checkpoint_restore(f.chief, f.path, NULL, 0, SOON_MS, &error),
                         -MU_EDATALOSS);
        assert_non_null(strstr(error.message, f.path));
        assert_non_null(strstr(error.message, file));
        write_byte(path, at, data[at]);
    }
}

/* Each byte of each file in turn: refused, by the file's name; the rows are as before. */
TEST(test_each_byte_counts)
{
    static const char *const files[] = {"00001-of-00001.safetensors", "manifest.json",
                                        "model.safetensors.index.json",
                                        "windows.safetensors"};
    static float expected[IDS * DIM];
    static float content[IDS * DIM];

    f.kind = MU_OPTIMIZER_ADAGRAD;
    start(1);
    push(0, 9);
    read_rows(expected);
    save();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        flip_each_byte(files[i]);
    read_rows(content);
    assert_memory_equal(content, expected, sizeof content);
    restore();
    read_rows(content);
    assert_memory_equal(content, expected, sizeof content);
    stop();
    forget();
}

/* Files may not grow beyond so many bytes: as a disk that is full. The former checkpoint
 * is as it was. */
TEST(test_a_full_disk_leaves_the_former_checkpoint)
{
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    static float expected[IDS * DIM];
    static float content[IDS * DIM];
    mu_error error;

    f.kind = MU_OPTIMIZER_ADAGRAD;
    start(2);
    push(0, IDS);
    read_rows(expected);
    save();
    push(1, IDS);
    (void)signal(SIGXFSZ, SIG_IGN);
    for (rlim_t bytes = 0; bytes < 100000; bytes = bytes * 2 + 500) {
        const struct rlimit limit = {bytes, RLIM_INFINITY};
        int rv;

        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        rv = save_step(1, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
        assert_int_equal(rv, -MU_EEXHAUSTED);
        assert_int_equal(files_count(f.folder, ".part"), 0);
    }
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(mu_checkpoint_latest(f.folder, NULL, &error, &f.path, NULL), 0);
    restore();
    read_rows(content);
    assert_memory_equal(content, expected, sizeof content);
    stop();
    forget();
}

/* ---- Saved while work goes on ---- */

struct pushing {
    pthread_t thread;
    atomic_bool is_done;
    atomic_uint rounds;
};

static void *push_for_ever(void *arg)
{
    struct pushing *pushing = arg;

    while (!atomic_load(&pushing->is_done) &&
           mu_table_apply(f.table, f.ids, f.gradients, IDS, NULL, SOON_MS, NULL) == 0)
        (void)atomic_fetch_add(&pushing->rounds, 1);
    return NULL;
}

/* How often a row was pushed to, by its distance from where it began. */
static int rounds_of(const float *row, const float *initial)
{
    return (int)lrintf((initial[0] - row[0]) / 0.1F);
}

static void check_rounds(const float *rows, const float *initial)
{
    int rounds[MU__PARTITIONS] = {0};

    for (uint64_t id = 0; id < IDS; id++) {
        int *expected = &rounds[mu__partition_of_id(id)];
        int found = rounds_of(rows + id * DIM, initial + id * DIM);

        if (*expected == 0)
            *expected = found;
        assert_int_equal(found, *expected);
    }
}

/* A snapshot of a partition is a prefix of its records: its rows, which are always pushed
 * to together, were pushed to equally often. */
TEST(test_partitions_are_of_one_record)
{
    static float initial[IDS * DIM];
    static float rows[IDS * DIM];
    struct pushing pushing = {.rounds = 0};
    mu_error error = {.message = ""};

    f.kind = MU_OPTIMIZER_SGD;
    start(2);
    for (uint32_t i = 0; i < IDS; i++)
        f.ids[i] = i;
    for (uint32_t i = 0; i < IDS * DIM; i++)
        f.gradients[i] = 1;
    assert_int_equal(mu_table_lookup(f.table, f.ids, IDS, initial, SOON_MS, NULL), 0);
    make_folder();
    assert_int_equal(pthread_create(&pushing.thread, NULL, push_for_ever, &pushing), 0);
    while (atomic_load(&pushing.rounds) == 0)
        nodes_pause();
    for (uint64_t step = 1; step <= 3; step++)
        if (save_step(step, &error) != 0)
            fail_msg("%s", error.message);
    atomic_store(&pushing.is_done, true);
    assert_int_equal(pthread_join(pushing.thread, NULL), 0);
    restore();
    assert_int_equal(mu_table_lookup(f.table, f.ids, IDS, rows, SOON_MS, NULL), 0);
    check_rounds(rows, initial);
    stop();
    forget();
}

/* ---- A server that is lost ---- */

enum { MANY = 40000 };

static void *close_soon(void *server)
{
    for (int i = 0; i < 3; i++)
        nodes_pause();
    nodes_close(&f.nodes, server);
    return NULL;
}

static void insert_many(uint64_t *ids, float *rows)
{
    for (uint64_t i = 0; i < MANY; i++) {
        ids[i] = i;
        for (unsigned k = 0; k < DIM; k++)
            rows[i * DIM + k] = (float)(i * DIM + k);
    }
    assert_int_equal(mu_table_insert(f.table, ids, rows, MANY, SOON_MS, NULL), 0);
}

/* Its partitions are read from the backups, from their first row on. */
TEST(test_a_server_is_lost_while_it_is_read)
{
    uint64_t *ids = malloc(MANY * sizeof *ids);
    float *rows = malloc(MANY * DIM * sizeof *rows);
    float *found = malloc(MANY * DIM * sizeof *found);
    mu_error error = {.message = ""};
    pthread_t closer;
    mu_node *server;

    assert_true(ids != NULL && rows != NULL && found != NULL);
    f.kind = MU_OPTIMIZER_ADAM;
    nodes_init(&f.nodes, 0, 2);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    (void)nodes_open(&f.nodes, "ps", 0);
    server = nodes_open(&f.nodes, "ps", 1);
    f.table = open_emb();
    insert_many(ids, rows);
    make_folder();
    assert_int_equal(pthread_create(&closer, NULL, close_soon, server), 0);
    for (uint64_t step = 1; step <= 4; step++)
        if (save_step(step, &error) != 0)
            fail_msg("%s", error.message);
    assert_int_equal(pthread_join(closer, NULL), 0);
    assert_int_equal(mu_table_delete(f.table, ids, MANY, SOON_MS, NULL), 0);
    restore();
    assert_int_equal(mu_table_lookup(f.table, ids, MANY, found, SOON_MS, NULL), 0);
    assert_memory_equal(found, rows, MANY * DIM * sizeof *found);
    free(ids);
    free(rows);
    free(found);
    stop();
    forget();
}

/* ---- A saver that is killed ---- */

/* Rows begin with zeros, and each step takes 1 from each number. */
static void start_counted(int servers)
{
    const mu_optimizer optimizer = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    const mu_table_spec spec = {.name = "emb", .dim = DIM, .optimizer = &optimizer};

    nodes_init(&f.nodes, 0, servers);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    for (int i = 0; i < servers; i++)
        (void)nodes_open(&f.nodes, "ps", i);
    check(mu_table_open(f.chief, &spec, SOON_MS, NULL, &f.table),
          &(mu_error){.message = "opened"});
}

static void push_and_save_for_ever(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    start_counted(2);
    for (uint32_t i = 0; i < IDS; i++)
        f.ids[i] = i;
    for (uint32_t i = 0; i < IDS * DIM; i++)
        f.gradients[i] = 1;
    for (uint64_t step = 1;; step++)
        if (mu_table_apply(f.table, f.ids, f.gradients, IDS, NULL, SOON_MS, NULL) != 0 ||
            save_step(step, &(mu_error){.code = 0}) != 0)
            _exit(1);
}

/* Waits for the first one. */
static uint64_t await_latest(void)
{
    uint64_t step = 0;
    mu_error error;

    free(f.path);
    f.path = NULL;
    for (int i = 0; i < SOON_MS && f.path == NULL; i++) {
        int rv = mu_checkpoint_latest(f.folder, NULL, &error, &f.path, &step);

        if (rv != -MU_ENOTFOUND)
            check(rv, &error);
        nodes_pause();
    }
    assert_non_null(f.path);
    return step;
}

/* At any moment: what is left has all rows of one step, and is restored. */
TEST(test_a_saver_is_killed)
{
    static float rows[IDS * DIM];

    for (int round = 0; round < 6; round++) {
        uint64_t step;
        pid_t pid;

        make_folder();
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            push_and_save_for_ever();
        (void)await_latest();
        for (int i = 0; i < round * 7; i++)
            nodes_pause();
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        step = await_latest();
        start_counted(1);
        restore();
        for (uint32_t i = 0; i < IDS; i++)
            f.ids[i] = i;
        assert_int_equal(mu_table_lookup(f.table, f.ids, IDS, rows, SOON_MS, NULL), 0);
        for (uint32_t i = 0; i < IDS * DIM; i++)
            assert_int_equal((int64_t)rows[i], -(int64_t)step);
        stop();
        forget();
    }
}

TEST_PROGRAM()
