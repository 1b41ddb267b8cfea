/* A table that is read from a checkpoint and increments: it shows what the servers had.
 */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include <muster/checkpoint.h>
#include <muster/table_reader.h>

#include <fcntl.h>

enum { DIM = 3, IDS = 4000, FILES = 4 };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_node *servers[2];
    mu_table *table;
    char folder[64];
    char *paths[FILES];
    uint64_t ids[IDS];
    float numbers[IDS * DIM];
};

static int set_up(void **state)
{
    static struct fixture f;
    const mu_initializer initial = {MU_INITIALIZER_NORMAL, 3, 0, 1};
    const mu_table_spec spec = {.name = "emb", .dim = DIM, .initializer = &initial};
    mu_error error = {.message = ""};

    memset(&f, 0, sizeof f);
    nodes_init(&f.nodes, 0, 2);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    for (int i = 0; i < 2; i++)
        f.servers[i] = nodes_open(&f.nodes, "ps", i);
    check(mu_table_open(f.chief, &spec, SOON_MS, &error, &f.table), &error);
    (void)snprintf(f.folder, sizeof f.folder, "/tmp/muster-reader-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    for (uint32_t i = 0; i < IDS; i++)
        f.ids[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_table_close(f->table);
    nodes_done(&f->nodes);
    for (int i = 0; i < FILES; i++)
        free(f->paths[i]);
    files_remove_folder(f->folder);
    return 0;
}

static void push(struct fixture *f, uint32_t first, uint32_t count)
{
    mu_error error = {.message = ""};

    for (uint32_t i = 0; i < count * DIM; i++)
        f->numbers[i] = (float)(i % 17);
    check(mu_table_apply(f->table, f->ids + first, f->numbers, count, NULL, SOON_MS,
                         &error),
          &error);
}

static void delete_rows(struct fixture *f, uint32_t first, uint32_t count)
{
    assert_int_equal(mu_table_delete(f->table, f->ids + first, count, SOON_MS, NULL), 0);
}

/* Step i, of which the one before is the base. */
static int try_save(struct fixture *f, unsigned i, const char *base, mu_error *error)
{
    mu_checkpoint_options options;

    mu_checkpoint_options_init(&options);
    options.directory = f->folder;
    options.tables = &f->table;
    options.tables_count = 1;
    options.base = base;
    free(f->paths[i]);
    f->paths[i] = NULL;
    return mu_checkpoint_save(&options, i, NULL, 0, NULL, error, &f->paths[i]);
}

static void save(struct fixture *f, unsigned i)
{
    mu_error error = {.message = ""};

    check(try_save(f, i, i == 0 ? NULL : f->paths[i - 1], &error), &error);
}

static mu_table_reader *open_reader(struct fixture *f, unsigned count)
{
    mu_table_reader *reader = NULL;
    mu_error error = {.message = ""};

    check(mu_table_reader_open((const char *const *)f->paths, count, "emb", &error,
                               &reader),
          &error);
    return reader;
}

/* All ids, those without rows, too; of how many files. */
static void assert_reads_alike(struct fixture *f, unsigned count)
{
    static float rows[IDS * DIM];
    mu_table_reader *reader = open_reader(f, count);
    mu_table_stats stats;

    assert_int_equal(mu_table_lookup(f->table, f->ids, IDS, f->numbers, SOON_MS, NULL),
                     0);
    assert_int_equal(mu_table_reader_lookup(reader, f->ids, IDS, rows, NULL), 0);
    assert_memory_equal(rows, f->numbers, sizeof rows);
    assert_int_equal(mu_table_get_stats(f->table, SOON_MS, NULL, &stats), 0);
    assert_int_equal(mu_table_reader_rows(reader), stats.rows);
    assert_int_equal(mu_table_reader_dim(reader), DIM);
    assert_int_equal(mu_table_reader_step(reader), count - 1);
    mu_table_reader_close(reader);
}

/* Rows in a checkpoint. */
static int64_t rows_in(struct fixture *f, unsigned i)
{
    mu_value *content = NULL;
    mu_error error = {.message = ""};
    int64_t rows = -1;

    check(mu_checkpoint_read(f->paths[i], &error, &content), &error);
    assert_int_equal(
        mu_value_get_int(mu_value_find(mu_value_at(mu_value_find(content, "tables"), 0),
                                       "rows"),
                         &rows),
        0);
    mu_value_free(content);
    return rows;
}

TEST_ON(test_increments_have_what_has_changed, struct fixture *f, set_up, tear_down)
{
    push(f, 0, 3000);
    save(f, 0);
    push(f, 100, 30);
    push(f, 3000, 10);
    delete_rows(f, 50, 20);
    delete_rows(f, 125, 10);
    push(f, 60, 2);
    save(f, 1);
    assert_int_equal(rows_in(f, 1), 25 + 10 + 2);
    assert_reads_alike(f, 2);
    save(f, 2);
    assert_int_equal(rows_in(f, 2), 0);
    push(f, 0, 5);
    save(f, 3);
    assert_int_equal(rows_in(f, 3), 5);
    assert_reads_alike(f, 4);
}

/* What a save that failed would have had is in the next one. */
/* Of 16 bits, and with zeros for ids without a row. */
TEST_ON(test_narrow_rows, struct fixture *f, set_up, tear_down)
{
    const mu_initializer initial = {MU_INITIALIZER_NORMAL, 3, 0, 1};
    mu_table_spec spec = {.name = "narrow", .dim = DIM, .initializer = &initial};
    static float rows[IDS * DIM];
    mu_error error = {.message = ""};

    for (int zeros = 0; zeros < 2; zeros++) {
        mu_table_reader *reader = NULL;

        mu_table_close(f->table);
        spec.name = zeros ? "zeros" : "narrow";
        spec.dtype = zeros ? MU_F16 : MU_BF16;
        spec.flags = zeros ? MU_TABLE_UNKNOWN_ZEROS : 0;
        check(mu_table_open(f->chief, &spec, SOON_MS, &error, &f->table), &error);
        push(f, 0, 1000);
        save(f, 0);
        push(f, 500, 20);
        save(f, 1);
        check(mu_table_reader_open((const char *const *)f->paths, 2, spec.name, &error,
                                   &reader),
              &error);
        check(mu_table_lookup(f->table, f->ids, IDS, f->numbers, SOON_MS, &error),
              &error);
        check(mu_table_reader_lookup(reader, f->ids, IDS, rows, &error), &error);
        assert_memory_equal(rows, f->numbers, sizeof rows);
        mu_table_reader_close(reader);
    }
}

TEST_ON(test_a_failed_increment_loses_nothing, struct fixture *f, set_up, tear_down)
{
    mu_error error = {.message = ""};
    mu_checkpoint_options options;

    push(f, 0, 1000);
    save(f, 0);
    push(f, 0, 10);
    mu_checkpoint_options_init(&options);
    options.directory = f->folder;
    options.tables = &f->table;
    options.tables_count = 1;
    options.base = f->paths[0];
    options.timeout_ms = 0;
    assert_int_not_equal(mu_checkpoint_save(&options, 1, NULL, 0, NULL, &error, NULL), 0);
    push(f, 20, 10);
    save(f, 1);
    assert_int_equal(rows_in(f, 1), 20);
    assert_reads_alike(f, 2);
}

/* Many deletions, or another mark: the servers do not know, and give all. */
TEST_ON(test_what_is_not_known_is_given_as_a_whole, struct fixture *f, set_up, tear_down)
{
    mu_error error = {.message = ""};

    push(f, 0, 2000);
    save(f, 0);
    push(f, 0, 5);
    save(f, 2);
    check(try_save(f, 3, NULL, &error), &error);
    delete_rows(f, 1000, 500);
    check(try_save(f, 1, f->paths[0], &error), &error);
    assert_int_equal(rows_in(f, 1), 1500);
    assert_reads_alike(f, 2);
}

/* A server is lost: its backup does not know what had changed. */
TEST_ON(test_after_a_loss_it_is_right, struct fixture *f, set_up, tear_down)
{
    push(f, 0, 2000);
    save(f, 0);
    push(f, 0, 5);
    delete_rows(f, 10, 100);
    nodes_close(&f->nodes, f->servers[1]);
    push(f, 200, 7);
    save(f, 1);
    assert_true(rows_in(f, 1) > 12 && rows_in(f, 1) < 2000);
    assert_reads_alike(f, 2);
}

/* ---- Refused ---- */

static void refuse(const char *const *paths, size_t count, const char *table, int code,
                   const char *words)
{
    mu_table_reader *reader = NULL;
    mu_error error = {.message = ""};

    assert_int_equal(mu_table_reader_open(paths, count, table, &error, &reader), code);
    assert_non_null(strstr(error.message, words));
}

TEST_ON(test_out_of_order_is_refused, struct fixture *f, set_up, tear_down)
{
    const char *const *paths = (const char *const *)f->paths;
    mu_error error = {.message = ""};

    push(f, 0, 100);
    for (unsigned i = 0; i < 3; i++)
        save(f, i);
    refuse(paths + 1, 1, "emb", -MU_EPRECONDITION, "is an increment of model-0");
    refuse((const char *[]){paths[0], paths[2]}, 2, "emb", -MU_EPRECONDITION,
           "is an increment of model-1");
    refuse((const char *[]){paths[0], paths[0]}, 2, "emb", -MU_EPRECONDITION,
           "is no increment");
    refuse(paths, 3, "other", -MU_ENOTFOUND, "there is no table \"other\"");
    refuse(paths, 0, "emb", -MU_EINVALID, "0 checkpoints");
    assert_int_equal(mu_checkpoint_restore(f->chief, paths[1], NULL, 0, SOON_MS, &error),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "is an increment of model-0"));
}

/* The newest one that can be restored is no increment. */
TEST_ON(test_the_newest_is_no_increment, struct fixture *f, set_up, tear_down)
{
    char *path = NULL;
    uint64_t step = 9;

    push(f, 0, 100);
    save(f, 0);
    save(f, 1);
    assert_int_equal(mu_checkpoint_latest(f->folder, NULL, NULL, &path, &step), 0);
    assert_int_equal(step, 0);
    free(path);
}

static void flip_byte(const char *path, off_t at)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte;

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

/* Each byte of an increment counts. */
TEST_ON(test_damage_is_refused, struct fixture *f, set_up, tear_down)
{
    static const char *const files[] = {"00001-of-00001.safetensors", "manifest.json"};

    push(f, 0, 20);
    save(f, 0);
    push(f, 5, 3);
    delete_rows(f, 1, 2);
    save(f, 1);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        off_t size;
        int fd;

        (void)snprintf(path, sizeof path, "%s/%s", f->paths[1], files[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        size = lseek(fd, 0, SEEK_END);
        (void)close(fd);
        for (off_t at = 0; at < size; at += i == 0 ? 1 : 101) {
            flip_byte(path, at);
            refuse((const char *const *)f->paths, 2, "emb", -MU_EDATALOSS, files[i]);
            flip_byte(path, at);
        }
    }
    assert_reads_alike(f, 2);
}

TEST_PROGRAM()
