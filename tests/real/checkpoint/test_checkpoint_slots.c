/* What optimizers keep is in a checkpoint: restored, they go on bit by bit. */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include <muster/checkpoint.h>

enum { ROWS = 3000, COLUMNS = 4, COUNT = ROWS * COLUMNS };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_variable *variable;
    char folder[64];
    char *path;
};

static mu_variable *open_rows(mu_node *node, unsigned shards)
{
    static const uint64_t dims[] = {ROWS, COLUMNS};
    const mu_variable_spec spec = {
        .name = "w", .dtype = MU_F32, .rank = 2, .dims = dims, .shards = shards};
    mu_variable *variable = NULL;
    mu_error error = {.message = ""};

    if (mu_variable_open(node, &spec, SOON_MS, &error, &variable) != 0)
        fail_msg("%s", error.message);
    return variable;
}

/* Servers that know nothing. */
static void start(struct fixture *f, int servers, unsigned shards)
{
    nodes_init(&f->nodes, 0, servers);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    for (int i = 0; i < servers; i++)
        (void)nodes_open(&f->nodes, "ps", i);
    f->variable = open_rows(f->chief, shards);
}

static void stop(struct fixture *f)
{
    mu_variable_close(f->variable);
    nodes_done(&f->nodes);
}

static void save(struct fixture *f)
{
    mu_checkpoint_options options;
    mu_error error = {.message = ""};

    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-slots-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    mu_checkpoint_options_init(&options);
    options.directory = f->folder;
    if (mu_checkpoint_save(&options, 1, &f->variable, 1, NULL, &error, &f->path) != 0)
        fail_msg("%s", error.message);
}

static void restore(struct fixture *f)
{
    mu_error error = {.message = ""};

    if (mu_checkpoint_restore(f->chief, f->path, NULL, 0, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

static int apply(struct fixture *f, int kind, int number, mu_error *error)
{
    static float gradient[COUNT];
    const mu_optimizer optimizer = mu_optimizer_make(kind, 0.01);

    for (int i = 0; i < COUNT; i++)
        gradient[i] = (float)((i * 7 + number * 13) % 101 - 50) / 16;
    return mu_variable_apply(f->variable, gradient, sizeof gradient, &optimizer, SOON_MS,
                             error);
}

static void train(struct fixture *f, int kind, int from, int end)
{
    mu_error error = {.message = ""};

    for (int number = from; number < end; number++)
        if (apply(f, kind, number, &error) != 0)
            fail_msg("%s", error.message);
}

static void read_rows(struct fixture *f, float *ret_content)
{
    assert_int_equal(mu_variable_read(f->variable, ret_content, COUNT * sizeof(float),
                                      SOON_MS, NULL),
                     0);
}

/* Three steps, a checkpoint, three more; and these again from the checkpoint, on the same
 * servers and on another number of them. */
static void check_kind(int kind)
{
    static float expected[COUNT];
    static float content[COUNT];
    struct fixture f;

    start(&f, 2, 2);
    train(&f, kind, 0, 3);
    save(&f);
    train(&f, kind, 3, 6);
    read_rows(&f, expected);
    restore(&f);
    train(&f, kind, 3, 6);
    read_rows(&f, content);
    assert_memory_equal(content, expected, sizeof content);
    stop(&f);
    start(&f, 1, 3);
    restore(&f);
    train(&f, kind, 3, 6);
    read_rows(&f, content);
    assert_memory_equal(content, expected, sizeof content);
    stop(&f);
    free(f.path);
    files_remove_folder(f.folder);
}

TEST(test_restored_optimizers_go_on)
{
    static const int kinds[] = {MU_OPTIMIZER_ADAM, MU_OPTIMIZER_ROWWISE_ADAGRAD,
                                MU_OPTIMIZER_RMSPROP_CENTERED};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        check_kind(kinds[i]);
}

static void find_names(const char *path, const char *const *names, size_t count)
{
    char file[512];
    char text[4096];
    FILE *manifest;

    (void)snprintf(file, sizeof file, "%s/manifest.json", path);
    manifest = fopen(file, "re");
    assert_non_null(manifest);
    text[fread(text, 1, sizeof text - 1, manifest)] = '\0';
    (void)fclose(manifest);
    for (size_t i = 0; i < count; i++)
        if (strstr(text, names[i]) == NULL)
            fail_msg("%s: %s", names[i], text);
}

/* The slots are tensors with names, and no variables of the checkpoint. */
TEST(test_names_of_slots)
{
    static const char *const names[] = {"\"w\"", "\"w#adam.momentum\"",
                                        "\"w#adam.velocity\"", "\"w#adam.step\""};
    mu_value *content = NULL;
    struct fixture f;

    start(&f, 2, 2);
    train(&f, MU_OPTIMIZER_ADAM, 0, 1);
    save(&f);
    find_names(f.path, names, 4);
    assert_int_equal(mu_checkpoint_read(f.path, NULL, &content), 0);
    assert_int_equal(mu_value_count(mu_value_find(content, "variables")), 1);
    mu_value_free(content);
    stop(&f);
    free(f.path);
    files_remove_folder(f.folder);
}

/* A checkpoint from before the first gradient: what came later is dropped. */
TEST(test_a_checkpoint_without_slots)
{
    mu_error error = {.message = ""};
    struct fixture f;

    start(&f, 2, 2);
    save(&f);
    train(&f, MU_OPTIMIZER_ADAM, 0, 1);
    assert_int_equal(apply(&f, MU_OPTIMIZER_ADAGRAD, 1, &error), -MU_EPRECONDITION);
    restore(&f);
    assert_int_equal(apply(&f, MU_OPTIMIZER_ADAGRAD, 1, &error), 0);
    stop(&f);
    free(f.path);
    files_remove_folder(f.folder);
}

TEST_PROGRAM()
