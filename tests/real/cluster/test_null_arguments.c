/* Each public function is called with NULL for each of its pointers, and for all of them:
 * it has to say -MU_EINVALID and which one, or nothing, as its header says, and must not
 * crash or hang. The calls are written by tests/null_calls.py.
 *
 * They are made in a child, which begins with the next one after each that ended it. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/real/files.h"
#include "tests/real/null_fields.h"

#include "tests/real/nodes.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { CALLS_MAX = 2000, WORDS_MAX = 1 << 16, HANGS_S = 20 };

/* Between the child and its parent. */
struct shared {
    const struct null_row *now; /* that is called */
    bool is_done[CALLS_MAX];    /* of null_rows, and behind them of the fields */
    bool is_over;
    char words[WORDS_MAX]; /* what is wrong, a line for each */
};

static struct shared *shared;
static struct null_env env;

void null_on_error(void *user, const mu_error *error)
{
    (void)user;
    (void)error;
}

void null_on_done(void *user, int code, const mu_error *error)
{
    (void)user;
    (void)code;
    (void)error;
}

void null_on_cluster(mu_node *node, const mu_cluster_change *change, void *user)
{
    (void)node;
    (void)change;
    (void)user;
}

void null_on_answer(void *user, const mu_kv_response *answer)
{
    (void)user;
    (void)answer;
}

int null_on_rows(void *user, const uint64_t *ids, const float *rows, size_t count)
{
    (void)user;
    (void)ids;
    (void)rows;
    (void)count;
    return 0;
}

void null_on_line(void *user, const char *line)
{
    (void)user;
    (void)line;
}

void null_on_ready(mu_remote_value *value, void *user)
{
    (void)value;
    (void)user;
}

void null_drop(void *state)
{
    (void)state;
}

int null_next(void *state, mu_value **ret_element)
{
    (void)state;
    (void)ret_element;
    return -MU_ERANGE;
}

int null_work(void *arg)
{
    return arg == NULL;
}

int null_function(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 0;
}

int null_program(mu_node *node, void *user)
{
    (void)node;
    (void)user;
    return 0;
}

/* ---- One call ---- */

static void complain(const struct null_row *row, const char *format, ...) MU_PRINTF(2, 3);
static void complain(const struct null_row *row, const char *format, ...)
{
    size_t size = strlen(shared->words);
    size_t room = sizeof shared->words - size;
    va_list args;
    int written = snprintf(shared->words + size, room, "%s with %s NULL: ", row->function,
                           row->parameter);

    if (written < 0 || (size_t)written >= room)
        return;
    size += (size_t)written;
    va_start(args, format);
    written = vsnprintf(shared->words + size, room - (size_t)written, format, args);
    va_end(args);
    (void)written;
    size = strlen(shared->words);
    if (size + 1 < sizeof shared->words)
        memcpy(shared->words + size, "\n", 2);
}

static void check_refused(const struct null_row *row)
{
    mu_error error = {0};
    intmax_t rv = row->call(&env, &error);

    if (rv != -MU_EINVALID)
        complain(row, "%s, expected EINVALID", rv == 0 ? "0" : mu_err_name((int)rv));
    else if (row->says_why && (error.code != rv || error.message[0] == '\0'))
        complain(row, "EINVALID without words");
    if (rv == -MU_EINVALID && row->says_why && row->call(&env, NULL) != -MU_EINVALID)
        complain(row, "something else than EINVALID without a mu_error");
}

static void try_row(const struct null_row *row)
{
    mu_error error = {0};
    intmax_t rv;

    switch (row->expects) {
    case NULL_REFUSED:
        check_refused(row);
        break;
    case NULL_ANSWERED:
        rv = row->call(&env, &error);
        if (rv != row->answer)
            complain(row, "%jd, expected %jd", rv, row->answer);
        break;
    case NULL_FINE:
        (void)row->call(&env, &error);
        break;
    }
}

/* ---- All of them ---- */

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void try_once(const struct null_row *row, bool *is_done)
{
    if (*is_done)
        return;
    *is_done = true;
    shared->now = row;
    (void)alarm(HANGS_S);
    try_row(row);
    (void)alarm(0);
}

/* Rows of the functions for a run, a context, or neither. */
static void try_rows(const char *prefix, bool fine)
{
    for (size_t i = 0; i < null_rows_count; i++) {
        const struct null_row *row = &null_rows[i];
        const char *own = begins_with(row->function, "mu_run_")       ? "mu_run_"
                          : begins_with(row->function, "mu_context_") ? "mu_context_"
                                                                      : "";

        if (strcmp(own, prefix) == 0 && (row->expects == NULL_FINE) == fine)
            try_once(row, &shared->is_done[i]);
    }
}

static int try_runs(mu_run *run, void *user)
{
    (void)user;
    env.run = run;
    try_rows("mu_run_", false);
    try_rows("mu_run_", true);
    mu_run_return(run, mu_value_nil());
    return 0;
}

static int try_contexts(mu_context *context, void *user)
{
    (void)user;
    env.context = context;
    try_rows("mu_context_", false);
    try_rows("mu_context_", true);
    return 0;
}

/* ---- What they are called with ---- */

static void must(int rv, const mu_error *error)
{
    if (rv == 0)
        return;
    (void)fprintf(stderr, "%s\n", error->message);
    _exit(3);
}

static void fill_options(struct nodes *nodes)
{
    static const uint64_t dims[1] = {NULL_VARIABLE_BYTES / sizeof(float)};
    static const mu_kv_change change = {.operation = MU_KV_DELETE, .key = "a"};

    mu_barrier_options_init(&env.barrier_options);
    env.barrier_options.timeout_ms = NULL_TIMEOUT_MS;
    mu_checkpoint_options_init(&env.checkpoint_options);
    env.checkpoint_options.directory = "/proc/none";
    mu_closure_options_init(&env.closure_options);
    mu_dataset_options_init(&env.dataset_options);
    env.dataset_options.shards = 2;
    mu_distribute_options_init(&env.distribute_options);
    env.distribute_options.mode = MU_MODE_LOCAL;
    env.distribute_options.worker = try_contexts;
    env.distribute_options.node = env.node;
    env.kv_request =
        (mu_kv_request){.operation = MU_KV_TRY_GET, .key = "a", .timeout_ms = 50};
    env.kv_transaction = (mu_kv_transaction){.changes = &change, .changes_count = 1};
    nodes_options(nodes, "client", 0, &env.node_options);
    env.gradient = (mu_gradient){.dtype = MU_F32};
    env.initializer = (mu_initializer){.kind = MU_INITIALIZER_CONSTANT};
    env.optimizer = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    env.resolver_kind = (mu_resolver_kind){.name = "none"};
    env.rows = (mu_rows){.count = dims[0]};
    mu_main_options_init(&env.main_options);
    mu_task_options_init(&env.task_options);
    mu_resolution_init(&env.resolution);
    mu_session_config_init(&env.session_config);
    mu_server_options_init(&env.server_options);
    env.server_options.environment = "google";
    env.server_options.node = &env.node_options;
    mu_session_options_init(&env.session_options);
    env.session_options.timeout_ms = NULL_TIMEOUT_MS;
    env.variable_spec =
        (mu_variable_spec){.name = "v", .dtype = MU_F32, .rank = 1, .dims = dims};
    env.variable_request = (mu_variable_request){.operation = MU_VARIABLE_READ,
                                                 .target = env.room,
                                                 .bytes = NULL_VARIABLE_BYTES,
                                                 .timeout_ms = NULL_TIMEOUT_MS};
    env.table_spec = (mu_table_spec){.name = "t", .dim = 1};
    env.table_bags =
        (mu_table_bags){.ids = env.zeros, .count = 1, .offsets = env.zeros, .bags = 1};
    env.names[0] = "v";
}

static void make_values(void)
{
    static const uint64_t dims[1] = {1};

    env.list = mu_value_list();
    env.map = mu_value_map();
    env.truth = mu_value_bool(1);
    env.number = mu_value_int(1);
    env.text = mu_value_string("text");
    env.bytes = mu_value_bytes("b", 1);
    env.tensor = mu_value_tensor(MU_I8, 1, dims, NULL);
}

static void open_cluster(struct nodes *nodes)
{
    mu_node_options options;
    mu_node *worker;

    nodes_init(nodes, 1, 1);
    env.cluster = nodes->cluster;
    nodes_options(nodes, "chief", 0, &options);
    options.coordinated_jobs = "chief";
    env.node = nodes_open_with(nodes, &options);
    nodes_options(nodes, "ps", 0, &options);
    options.coordinated_jobs = "chief";
    (void)nodes_open_with(nodes, &options);
    nodes_options(nodes, "worker", 0, &options);
    options.coordinated_jobs = "chief";
    worker = nodes_open_with(nodes, &options);
    assert_int_equal(mu_node_register_function(worker, "try", try_runs, NULL, 0), 0);
    assert_int_equal(mu_node_serve(worker), 0);
}

static void open_saved_table(void)
{
    mu_checkpoint_options options;
    char folder[] = "/tmp/muster-null-XXXXXX";
    mu_error error = {0};
    char *path = NULL;

    assert_non_null(mkdtemp(folder));
    mu_checkpoint_options_init(&options);
    options.directory = folder;
    options.tables = &env.table;
    options.tables_count = 1;
    must(mu_checkpoint_save(&options, 77, NULL, 0, NULL, &error, &path), &error);
    must(mu_table_reader_open((const char *const *)&path, 1, env.table_spec.name, &error,
                              &env.table_reader),
         &error);
    free(path);
    files_remove_folder(folder);
}

static int keep_reply(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    env.actor = self;
    env.reply = mu_actor_reply_later(self);
    return 0;
}

static int keep_stream(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    env.stream = mu_actor_stream(self, 0, 1);
    return 0;
}

static const mu_actor_method actor_methods[] = {
    {"keep", keep_reply}, {"stream", keep_stream}, {NULL, NULL}};

static void make_actor(void)
{
    mu_error error = {0};
    mu_remote_value *value;

    env.actor_type = (mu_actor_type){.name = "keeper", .methods = actor_methods};
    mu_actor_options_init(&env.actor_options);
    assert_int_equal(mu_node_register_actor(env.node, &env.actor_type), 0);
    must(mu_node_spawn(env.node, "keeper", NULL, NULL, SOON_MS, &error, &env.address),
         &error);
    must(mu_actor_request(env.node, &env.address, "keep", NULL, SOON_MS, &error, &value),
         &error);
    mu_remote_value_free(value);
    must(mu_actor_open_stream(env.node, &env.address, "stream", NULL, SOON_MS, &error,
                              &env.stream_reader),
         &error);
    while (env.reply == NULL || env.stream == NULL)
        nodes_pause();
}

static void make_handles(void)
{
    mu_error error = {0};

    make_actor();
    env.coordinator = nodes_coordinator(env.node);
    must(mu_agent_register(env.node, 0, SOON_MS, &error), &error);
    must(mu_variable_open(env.node, &env.variable_spec, SOON_MS, &error, &env.variable),
         &error);
    must(mu_table_open(env.node, &env.table_spec, SOON_MS, &error, &env.table), &error);
    open_saved_table();
    must(mu_clock_open(env.node, "held", 0, SOON_MS, &error, &env.clock), &error);
    must(mu_dataset_open(env.coordinator, &env.dataset_options, &error, &env.dataset),
         &error);
    must(mu_kv_watch_open(env.node, "watched", 0, SOON_MS, &error, &env.watch), &error);
    must(mu_lock_acquire(env.node, "held", SOON_MS, &error, &env.lock), &error);
    must(mu_per_worker_open_values(env.coordinator, env.list, SOON_MS, &error,
                                   &env.per_worker),
         &error);
    must(mu_resolver_new_static(env.cluster, NULL, "chief", 0, &error, &env.resolver),
         &error);
    must(mu_resolver_watch_open(env.resolver, &error, &env.resolver_watch), &error);
    must(mu_server_start(&env.server_options, &error, &env.server), &error);
    must(mu_session_open(env.node, &env.session_options, &error, &env.session), &error);
    must(mu_tpu_new(&error, &env.tpu), &error);
    must(mu_tpu_set(env.tpu, "tpu", "grpc://127.0.0.1:1", &error), &error);
}

/* Everything is left to the end of the process. */
static void walk(void)
{
    static struct nodes nodes;
    mu_error error = {0};

    make_values();
    open_cluster(&nodes);
    fill_options(&nodes);
    make_handles();
    must(mu_coordinator_schedule(env.coordinator, "try", NULL, SOON_MS, &error,
                                 &env.remote),
         &error);
    (void)mu_remote_value_fetch(env.remote, -1, &error, NULL);
    must(mu_distribute_run(&env.distribute_options, &error, NULL), &error);
    env.distribute_options.node = NULL;
    try_rows("", false);
    for (size_t i = 0; i < FIELDS; i++)
        try_once(&fields[i], &shared->is_done[null_rows_count + i]);
    try_rows("", true);
    shared->is_over = true;
}

/* A signal is to end this process, and nothing else. */
static void be_plain(void)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    const struct rlimit none = {0, 0};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        (void)signal(signals[i], SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)alarm(3 * HANGS_S);
}

static void note_end(int status)
{
    const struct null_row *row = shared->now;

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        complain(row, "it does not come back");
    else if (WIFSIGNALED(status))
        complain(row, "it ends the process with signal %d", WTERMSIG(status));
    else
        complain(row, "it ends the process with exit code %d", WEXITSTATUS(status));
}

TEST(test_null_is_refused_or_fine)
{
    int status;
    pid_t pid;

    assert_true(null_rows_count + FIELDS <= CALLS_MAX);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (size_t i = 0; i <= null_rows_count + FIELDS && !shared->is_over; i++) {
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            be_plain();
            walk();
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (shared->now == NULL)
            fail_msg("nothing was called");
        if (!shared->is_over)
            note_end(status);
    }
    for (size_t i = 0; i < null_rows_count; i++)
        if (!shared->is_done[i])
            complain(&null_rows[i], "it was not tried");
    (void)fputs(shared->words, stderr);
    assert_int_equal(shared->words[0], '\0');
    (void)munmap(shared, sizeof *shared);
}

TEST_PROGRAM()
