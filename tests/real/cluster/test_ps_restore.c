/* A parameter server is killed and started again, and the chief restores what was on it
 * from a checkpoint: handles from before go on, those of the chief, those that a worker's
 * functions keep, and that of a per-worker object. Server and worker are processes of
 * their own: this very program, started with a task as arguments. */
#include "tests/real/files.h"
#include "tests/real/tasks.h"

enum { COUNT = 40000 }; /* of 8 bytes: in two shards */

/* ---- The worker's functions ---- */

static int open_w(mu_node *node, unsigned flags, mu_error *ret_error,
                  mu_variable **ret_variable)
{
    static const uint64_t dims[1] = {COUNT};
    const mu_variable_spec spec = {
        .name = "w", .dtype = MU_I64, .rank = 1, .dims = dims, .flags = flags};

    return mu_variable_open(node, &spec, SOON_MS, ret_error, ret_variable);
}

static void close_handle(void *handle)
{
    mu_variable_close(handle);
}

/* A per-worker object: the handle. */
static int make_handle(mu_run *run, void *user)
{
    mu_variable *variable = NULL;
    mu_error error;
    int rv = open_w(mu_run_node(run), MU_VARIABLE_EXISTING, &error, &variable);

    (void)user;
    if (rv != 0)
        return mu_run_fail_with(run, &error);
    mu_run_return_object(run, variable, close_handle);
    return 0;
}

/* Adds one to all, as an effect, with the handle that it is given. */
static int add_one(mu_run *run, void *user)
{
    static int64_t ones[COUNT];

    (void)user;
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    return mu_run_add(run, mu_run_object(run, mu_run_args(run)), ones, sizeof ones);
}

/* The first number, by a call. */
static int look(mu_run *run, void *user)
{
    static int64_t data[COUNT];
    mu_error error;
    int rv = mu_variable_read(mu_run_object(run, mu_run_args(run)), data, sizeof data,
                              SOON_MS, &error);

    (void)user;
    if (rv != 0)
        return mu_run_fail_with(run, &error);
    mu_run_return(run, mu_value_int(data[0]));
    return 0;
}

/* ---- Processes ---- */

static int play(char **argv)
{
    static const struct tasks_function functions[] = {
        {"make_handle", make_handle, 0},
        {"add_one", add_one, 0},
        {"look", look, 0},
    };
    mu_node_options options;

    mu_node_options_init(&options);
    return tasks_play(argv, &options, functions, sizeof functions / sizeof functions[0]);
}

/* ---- One worker, two servers ---- */

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator;
    mu_per_worker *handle;
    mu_variable *w;
    pid_t worker;
    pid_t servers[2];
    char folder[64];
    char *checkpoint;
    int64_t data[COUNT];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;
    mu_error error;

    assert_non_null(f);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-restore-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    nodes_init(&f->nodes, 1, 2);
    f->worker = tasks_start("worker", 0, f->nodes.json);
    for (int i = 0; i < 2; i++)
        f->servers[i] = tasks_start("ps", i, f->nodes.json);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.backups = 0;
    f->chief = nodes_open_with(&f->nodes, &options);
    f->coordinator = nodes_coordinator(f->chief);
    if (open_w(f->chief, 0, &error, &f->w) != 0 ||
        mu_per_worker_open(f->coordinator, "make_handle", NULL, SOON_MS, &error,
                           &f->handle) != 0)
        fail_msg("%s", error.message);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_variable_close(f->w);
    mu_per_worker_close(f->handle);
    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    tasks_kill(&f->worker);
    for (int i = 0; i < 2; i++)
        tasks_kill(&f->servers[i]);
    free(f->checkpoint);
    files_remove_folder(f->folder);
    free(f);
    return 0;
}

/* A closure with the per-worker handle; its code. */
static int call(struct fixture *f, const char *function, mu_error *ret_error,
                mu_value **ret_result)
{
    mu_closure_options options;
    mu_value *args = mu_value_per_worker(f->handle);
    mu_remote_value *value = NULL;
    int rv;

    mu_closure_options_init(&options);
    options.flags = MU_CLOSURE_EFFECT_ONCE;
    rv = mu_coordinator_schedule_with(f->coordinator, function, args, &options, SOON_MS,
                                      ret_error, &value);
    mu_value_free(args);
    if (rv == 0)
        rv = mu_remote_value_fetch(value, SOON_MS, ret_error, ret_result);
    mu_remote_value_free(value);
    (void)mu_coordinator_join(f->coordinator, SOON_MS, NULL);
    return rv;
}

static void assert_adds(struct fixture *f)
{
    mu_value *result = NULL;
    mu_error error;

    if (call(f, "add_one", &error, &result) != 0)
        fail_msg("%s", error.message);
    mu_value_free(result);
}

/* All elements, as the chief's handle and the worker's have them. */
static void assert_content(struct fixture *f, int64_t expected)
{
    mu_value *result = NULL;
    int64_t first = -1;
    mu_error error;

    if (mu_variable_read(f->w, f->data, sizeof f->data, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(f->data[i], expected);
    if (call(f, "look", &error, &result) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_value_get_int(result, &first), 0);
    assert_int_equal(first, expected);
    mu_value_free(result);
}

static void save(struct fixture *f)
{
    mu_checkpoint_options options;
    mu_error error;

    mu_checkpoint_options_init(&options);
    options.directory = f->folder;
    if (mu_checkpoint_save(&options, 1, &f->w, 1, NULL, &error, &f->checkpoint) != 0)
        fail_msg("%s", error.message);
}

static void restart(struct fixture *f, int server)
{
    tasks_kill(&f->servers[server]);
    f->servers[server] = tasks_start("ps", server, f->nodes.json);
}

static void restore(struct fixture *f)
{
    mu_error error;

    if (mu_checkpoint_restore(f->chief, f->checkpoint, NULL, 0, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

TEST_ON(test_handles_go_on_after_a_restore, struct fixture *f, set_up, tear_down)
{
    mu_value *result = NULL;
    mu_error error;

    assert_adds(f);
    assert_adds(f);
    save(f);
    assert_adds(f);
    assert_content(f, 3);
    for (int server = 0; server < 2; server++) {
        restart(f, server);
        restore(f);
        assert_adds(f);
        assert_content(f, 3);
        assert_adds(f);
        assert_content(f, 4);
    }

    /* Without a restore they say what is missing, where. */
    restart(f, 0);
    assert_int_equal(mu_variable_read(f->w, f->data, sizeof f->data, SOON_MS, &error),
                     -MU_ENOTFOUND);
    assert_string_equal(error.task, "/job:ps/task:0");
    assert_int_equal(call(f, "add_one", &error, &result), -MU_ENOTFOUND);
    assert_int_equal(error.kind, MU_ERROR_SERVER);
    assert_string_equal(error.task, "/job:ps/task:0");
    assert_int_equal(call(f, "look", &error, &result), -MU_ENOTFOUND);
    assert_string_equal(error.task, "/job:ps/task:0");
    restore(f);
    assert_content(f, 2);
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return play(argv);
    return tests_run(NULL, NULL);
}
