/* Options of programs that were compiled with another version of the headers: shorter
 * structs get the defaults of the fields that they lack, longer ones may set nothing that
 * this library does not have. */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include <muster.h>

#include <stddef.h>

enum { LONGER = 32, GARBAGE = 0xA5, BYTES_MAX = 1024 };

/* A new field may not take the place of padding, where older programs have anything. */
#define ENDS_WITH(type, field)                                                         \
    _Static_assert(offsetof(type, field) + sizeof(((type *)0)->field) == sizeof(type), \
                   #type " has padding at its end, or another last field")

ENDS_WITH(mu_barrier_options, timeout_ms);
ENDS_WITH(mu_checkpoint_options, base);
ENDS_WITH(mu_closure_options, user);
ENDS_WITH(mu_dataset_options, seed);
ENDS_WITH(mu_distribute_options, end_timeout_ms);
ENDS_WITH(mu_main_options, user);
ENDS_WITH(mu_task_options, user);
ENDS_WITH(mu_node_options, log_user);
ENDS_WITH(mu_server_options, timeout_ms);
ENDS_WITH(mu_session_config, device_filters_count);
ENDS_WITH(mu_session_options, timeout_ms);

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator;
    mu_node_options client; /* of servers */
    char folder[32];
};

static int setup(void **state)
{
    static struct fixture f;

    nodes_init(&f.nodes, 0, 0);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    f.coordinator = nodes_coordinator(f.chief);
    nodes_options(&f.nodes, "client", 0, &f.client);
    (void)snprintf(f.folder, sizeof f.folder, "/tmp/muster-size-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    files_remove_folder(f->folder);
    return 0;
}

/* ---- one call for each struct ---- */

static int wait_at_barrier(struct fixture *f, const void *options, mu_error *error)
{
    return mu_barrier_wait(f->chief, "b", options, error);
}

static void fill_barrier(struct fixture *f, void *options)
{
    (void)f;
    ((mu_barrier_options *)options)->tasks = "chief:0";
}

static int save_checkpoint(struct fixture *f, const void *options, mu_error *error)
{
    (void)f;
    return mu_checkpoint_save(options, 1, NULL, 0, NULL, error, NULL);
}

static void fill_checkpoint(struct fixture *f, void *options)
{
    ((mu_checkpoint_options *)options)->directory = f->folder;
}

static int schedule(struct fixture *f, const void *options, mu_error *error)
{
    return mu_coordinator_schedule_with(f->coordinator, "f", NULL, options, 0, error,
                                        NULL);
}

static int open_dataset(struct fixture *f, const void *options, mu_error *error)
{
    mu_dataset *dataset = NULL;
    int rv = mu_dataset_open(f->coordinator, options, error, &dataset);

    mu_dataset_close(dataset);
    return rv;
}

static void fill_dataset(struct fixture *f, void *options)
{
    (void)f;
    ((mu_dataset_options *)options)->shards = 2;
}

static int nothing(mu_context *context, void *user)
{
    (void)context;
    (void)user;
    return 0;
}

static int run_local(struct fixture *f, const void *options, mu_error *error)
{
    (void)f;
    return mu_distribute_run(options, error, NULL);
}

static void fill_distribute(struct fixture *f, void *options)
{
    mu_distribute_options *o = options;

    (void)f;
    o->mode = MU_MODE_LOCAL;
    o->worker = nothing;
}

static int open_node(struct fixture *f, const void *options, mu_error *error)
{
    mu_node *node = NULL;
    int rv = mu_node_open(options, error, &node);

    (void)f;
    return rv == 0 ? mu_node_close(node, SOON_MS, error) : rv;
}

static void fill_node(struct fixture *f, void *options)
{
    mu_node_options *o = options;

    o->cluster = f->nodes.cluster;
    o->task_type = "client";
}

static int start_server(const mu_server_options *options, mu_error *error)
{
    mu_server *server = NULL;
    int rv = mu_server_start(options, error, &server);

    mu_server_free(server);
    return rv;
}

static int start(struct fixture *f, const void *options, mu_error *error)
{
    (void)f;
    return start_server(options, error);
}

static void fill_server(struct fixture *f, void *options)
{
    mu_server_options *o = options;

    o->node = &f->client;
    o->environment = "google";
}

static int start_with_config(struct fixture *f, const void *config, mu_error *error)
{
    mu_server_options options;

    mu_server_options_init(&options);
    fill_server(f, &options);
    options.config = config;
    return start_server(&options, error);
}

static int open_session(struct fixture *f, const void *options, mu_error *error)
{
    mu_session *session = NULL;
    int rv = mu_session_open(f->chief, options, error, &session);

    mu_session_close(session);
    return rv;
}

static void fill_nothing(struct fixture *f, void *options)
{
    (void)f;
    (void)options;
}

#define INIT(type)                                      \
    static void init_##type(void *options, size_t size) \
    {                                                   \
        type##_init_sized(options, size);               \
    }

INIT(mu_barrier_options)
INIT(mu_checkpoint_options)
INIT(mu_closure_options)
INIT(mu_dataset_options)
INIT(mu_distribute_options)
INIT(mu_node_options)
INIT(mu_server_options)
INIT(mu_session_config)
INIT(mu_session_options)

#define ROW(type, first_missing, fill, call)                                        \
    {                                                                               \
#type, sizeof(type), offsetof(type, first_missing), init_##type, fill, call \
    }

static const struct row {
    const char *type;
    size_t size;
    size_t older_size;
    void (*init)(void *options, size_t size);
    void (*fill)(struct fixture *f, void *options);
    int (*call)(struct fixture *f, const void *options, mu_error *error);
} rows[] = {
    ROW(mu_barrier_options, threads, fill_barrier, wait_at_barrier),
    ROW(mu_checkpoint_options, name, fill_checkpoint, save_checkpoint),
    ROW(mu_closure_options, name, fill_nothing, schedule),
    ROW(mu_dataset_options, epochs, fill_dataset, open_dataset),
    ROW(mu_distribute_options, worker_user, fill_distribute, run_local),
    ROW(mu_node_options, task_index, fill_node, open_node),
    ROW(mu_server_options, config, fill_server, start),
    ROW(mu_session_config, inter_op_threads, fill_nothing, start_with_config),
    ROW(mu_session_options, init, fill_nothing, open_session),
};

/* ---- stories ---- */

/* Initialize `size` bytes, of which the program's header knows; others are garbage. */
static void make(struct fixture *f, const struct row *row, size_t size, char *options)
{
    memset(options, GARBAGE, BYTES_MAX);
    row->init(options, size);
    for (size_t i = size; i < BYTES_MAX; i++)
        if ((unsigned char)options[i] != GARBAGE)
            fail_msg("%s: byte %zu of %zu was written", row->type, i, size);
    row->fill(f, options);
}

static void expect(struct fixture *f, const struct row *row, const char *options,
                   int code, const char *words)
{
    mu_error error = {0};
    int rv = row->call(f, options, &error);

    if (rv != code || strstr(error.message, words) == NULL)
        fail_msg("%s: %d %s", row->type, rv, error.message);
}

TEST(test_sizes)
{
    struct fixture *f = *state;
    _Alignas(max_align_t) char options[BYTES_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];

        assert_true(row->size + LONGER <= BYTES_MAX);
        make(f, row, row->older_size, options);
        expect(f, row, options, 0, "");
        make(f, row, row->size, options);
        expect(f, row, options, 0, "");
        make(f, row, row->size + LONGER, options);
        expect(f, row, options, 0, "");
        options[row->size + LONGER - 1] = 1;
        expect(f, row, options, -MU_EINVALID, row->type);
        expect(f, row, options, -MU_EINVALID, "the program was compiled with a newer");
    }
}

TEST(test_not_initialized)
{
    struct fixture *f = *state;
    _Alignas(max_align_t) char options[BYTES_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(options, 0, sizeof options);
        expect(f, &rows[i], options, -MU_EINVALID, rows[i].type);
        expect(f, &rows[i], options, -MU_EINVALID, "_init");
        memset(options, GARBAGE, sizeof options);
        expect(f, &rows[i], options, -MU_EINVALID, "_init");
    }
}

/* A program that has fewer fields gets what it has from the environment, and the size
 * that it gave. */
TEST(test_environment)
{
    struct fixture *f = *state;
    _Alignas(max_align_t) char bytes[BYTES_MAX];
    mu_node_options *options = (mu_node_options *)(void *)bytes;
    const size_t size = offsetof(mu_node_options, window);
    mu_error error;

    make(f, &rows[5], size, bytes);
    (void)setenv("MUSTER_THREADS", "3", 1);
    (void)setenv("MUSTER_WINDOW", "4", 1);
    assert_int_equal(mu_node_options_from_environment(options, &error), 0);
    (void)unsetenv("MUSTER_THREADS");
    (void)unsetenv("MUSTER_WINDOW");
    assert_int_equal(options->size, size);
    assert_int_equal(options->threads, 3);
    for (size_t i = size; i < BYTES_MAX; i++)
        assert_int_equal((unsigned char)bytes[i], GARBAGE);
}

TEST_PROGRAM_WITH(setup, teardown)
