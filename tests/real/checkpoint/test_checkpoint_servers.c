/* Checkpoints that are restored on another number of parameter servers than they were
 * saved from: what the library has cut into shards by itself is opened as it was
 * restored. */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include <muster/checkpoint.h>

enum { ROWS = 40000 }; /* of 4 bytes: more than one shard has by itself */

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    char folder[64];
    char *checkpoint;
    float data[ROWS];
};

static void start(struct fixture *f, int servers)
{
    nodes_init(&f->nodes, 0, servers);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    for (int i = 0; i < servers; i++)
        (void)nodes_open(&f->nodes, "ps", i);
}

static int open_w(struct fixture *f, unsigned shards, const float *initial,
                  mu_error *ret_error, mu_variable **ret_variable)
{
    static const uint64_t dims[1] = {ROWS};
    const mu_variable_spec spec = {.name = "w",
                                   .dtype = MU_F32,
                                   .rank = 1,
                                   .dims = dims,
                                   .shards = shards,
                                   .initial = initial};

    return mu_variable_open(f->chief, &spec, SOON_MS, ret_error, ret_variable);
}

static mu_variable *opened(struct fixture *f, unsigned shards, const float *initial)
{
    mu_variable *variable = NULL;
    mu_error error;

    if (open_w(f, shards, initial, &error, &variable) != 0)
        fail_msg("%s", error.message);
    return variable;
}

/* Takes `variable`; each number is its row's. */
static void assert_restored(struct fixture *f, mu_variable *variable)
{
    mu_error error;

    memset(f->data, 0, sizeof f->data);
    if (mu_variable_read(variable, f->data, sizeof f->data, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < ROWS; i++)
        assert_true(f->data[i] > (float)i - 0.5F && f->data[i] < (float)i + 0.5F);
    mu_variable_close(variable);
}

static void restore(struct fixture *f)
{
    mu_error error;

    if (mu_checkpoint_restore(f->chief, f->checkpoint, NULL, 0, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

/* A checkpoint of two servers, which are gone then. */
static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_checkpoint_options options;
    mu_variable *variable;
    mu_error error;

    assert_non_null(f);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-ckpt-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    start(f, 2);
    for (int i = 0; i < ROWS; i++)
        f->data[i] = (float)i;
    variable = opened(f, 0, f->data);
    mu_checkpoint_options_init(&options);
    options.directory = f->folder;
    if (mu_checkpoint_save(&options, 1, &variable, 1, NULL, &error, &f->checkpoint) != 0)
        fail_msg("%s", error.message);
    mu_variable_close(variable);
    nodes_done(&f->nodes);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    nodes_done(&f->nodes);
    files_remove_folder(f->folder);
    free(f->checkpoint);
    free(f);
    return 0;
}

TEST_ON(test_opened_after_the_restore, struct fixture *f, set_up, tear_down)
{
    mu_variable *variable = NULL;
    mu_error error;

    start(f, 3);
    restore(f);
    assert_restored(f, opened(f, 0, NULL));
    assert_restored(f, opened(f, 2, NULL));
    assert_int_equal(open_w(f, 3, NULL, &error, &variable), -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "it is float32[40000] in 2 shards; opened as "
                                          "float32[40000] in 3 shards"));
}

TEST_ON(test_opened_before_the_restore, struct fixture *f, set_up, tear_down)
{
    mu_variable *before;

    start(f, 3);
    before = opened(f, 0, NULL);
    restore(f);
    assert_restored(f, before);
    assert_restored(f, opened(f, 0, NULL));
}

TEST_ON(test_fewer_servers, struct fixture *f, set_up, tear_down)
{
    start(f, 1);
    restore(f);
    assert_restored(f, opened(f, 0, NULL));
}

TEST_PROGRAM()
