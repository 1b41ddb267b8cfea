/* A parameter server that is killed in the middle of reads and adds, and comes back
 * empty on the same address. Servers and the worker are processes of their own: this very
 * program, started with a task as arguments. Whatever is asked ends within its limit. */
#include "tests/real/tasks.h"

#include <stdatomic.h>

enum {
    ROWS = 1 << 10, /* of ROW floats: 4 MiB, that a kill meets calls under way */
    ROW = 1 << 10,
    COUNT = ROWS * ROW,
    CALL_MS = 2000,  /* the limit of one call, */
    LATE_MS = 6000,  /* and how much later it may end on a busy machine */
    ABSENT_MS = 300, /* how long to wait for what nobody creates */
    CALLS_BEFORE = 5 /* of each kind, before the kill */
};

static int open_w(mu_node *node, const float *initial, unsigned flags, int64_t timeout_ms,
                  mu_error *ret_error, mu_variable **ret_variable)
{
    static const uint64_t dims[2] = {ROWS, ROW};
    const mu_variable_spec spec = {.name = "w",
                                   .dtype = MU_F32,
                                   .rank = 2,
                                   .dims = dims,
                                   .initial = initial,
                                   .flags = flags};

    return mu_variable_open(node, &spec, timeout_ms, ret_error, ret_variable);
}

/* How many adds the worker has done. */
static int open_count(mu_node *node, mu_error *ret_error, mu_variable **ret_variable)
{
    const mu_variable_spec spec = {.name = "count", .dtype = MU_I64};

    return mu_variable_open(node, &spec, SOON_MS, ret_error, ret_variable);
}

static float *numbers(float number)
{
    float *data = malloc(COUNT * sizeof *data);

    assert_non_null(data);
    for (size_t i = 0; i < COUNT; i++)
        data[i] = number;
    return data;
}

/* ---- The worker's functions ---- */

/* Adds, and counts that, until one of both fails; returns what failed. An add that
 * outstays its limit ends it too. */
static int add_on(mu_variable *variable, mu_variable *count, mu_error *ret_error)
{
    static const int64_t one = 1;
    float *ones = numbers(1);
    uint64_t began_ms;
    int rv;

    do {
        began_ms = cli_now_ms();
        rv = mu_variable_add(variable, ones, COUNT * sizeof *ones, CALL_MS, ret_error);
        if (rv == 0)
            rv = mu_variable_add(count, &one, sizeof one, CALL_MS, ret_error);
    } while (rv == 0 && cli_now_ms() - began_ms < 2 * (CALL_MS + LATE_MS));
    free(ones);
    if (cli_now_ms() - began_ms >= 2 * (CALL_MS + LATE_MS))
        return mu_error_set(ret_error, -MU_EINTERNAL, "the calls outstay their limits");
    return rv;
}

/* The result is the code of the failure that ended the adds. */
static int add_until_lost(mu_run *run, void *user)
{
    mu_variable *variable = NULL;
    mu_variable *count = NULL;
    mu_error error = {0};
    int rv =
        open_w(mu_run_node(run), NULL, MU_VARIABLE_EXISTING, SOON_MS, &error, &variable);

    (void)user;
    if (rv == 0)
        rv = open_count(mu_run_node(run), &error, &count);
    if (rv != 0)
        return mu_run_fail(run, rv, "%s", error.message);
    mu_run_return(run, mu_value_int(add_on(variable, count, &error)));
    mu_variable_close(variable);
    mu_variable_close(count);
    return 0;
}

/* Waits until somebody has created the variable. The result is its number, when it is
 * the same all over. */
static int read_existing(mu_run *run, void *user)
{
    float *data = numbers(0);
    mu_variable *variable = NULL;
    mu_error error = {0};
    size_t same = 0;
    int rv =
        open_w(mu_run_node(run), NULL, MU_VARIABLE_EXISTING, SOON_MS, &error, &variable);

    (void)user;
    if (rv == 0)
        rv = mu_variable_read(variable, data, COUNT * sizeof *data, SOON_MS, &error);
    while (same < COUNT && !(data[same] < data[0]) && !(data[same] > data[0]))
        same++;
    if (rv == 0 && same == COUNT)
        mu_run_return(run, mu_value_float((double)data[0]));
    mu_variable_close(variable);
    free(data);
    return rv == 0 ? 0 : mu_run_fail(run, rv, "%s", error.message);
}

/* ---- Processes ---- */

static int play(char **argv)
{
    static const struct tasks_function functions[] = {
        {"add_until_lost", add_until_lost, 0},
        {"read_existing", read_existing, 0},
    };
    mu_node_options options;

    mu_node_options_init(&options);
    return tasks_play(argv, &options, functions, sizeof functions / sizeof functions[0]);
}

/* ---- Threads that call without end ---- */

struct caller {
    pthread_t thread;
    mu_variable *variable;
    bool adds;
    atomic_bool stop;
    atomic_uint succeeded;
    atomic_int last;   /* code of the last call */
    int first_failure; /* these: to be read once it has stopped */
    char first_words[512];
    mu_error last_error;
    uint64_t slowest_ms;
};

static int call_once(struct caller *caller, float *data, mu_error *error)
{
    size_t bytes = COUNT * sizeof *data;

    if (caller->adds)
        return mu_variable_add(caller->variable, data, bytes, CALL_MS, error);
    return mu_variable_read(caller->variable, data, bytes, CALL_MS, error);
}

static void *call_on(void *arg)
{
    struct caller *caller = arg;
    float *data = numbers(1);

    while (!atomic_load(&caller->stop)) {
        uint64_t began_ms = cli_now_ms();
        mu_error error = {0};
        int rv = call_once(caller, data, &error);

        if (cli_now_ms() - began_ms > caller->slowest_ms)
            caller->slowest_ms = cli_now_ms() - began_ms;
        if (rv == 0)
            atomic_fetch_add(&caller->succeeded, 1);
        else
            caller->last_error = error;
        if (rv != 0 && caller->first_failure == 0) {
            caller->first_failure = rv;
            (void)snprintf(caller->first_words, sizeof caller->first_words, "%s",
                           error.message);
        }
        atomic_store(&caller->last, rv);
        nodes_pause();
    }
    free(data);
    return NULL;
}

static void begin_calls(struct caller *caller, mu_variable *variable, bool adds)
{
    *caller = (struct caller){.variable = variable, .adds = adds};
    assert_int_equal(pthread_create(&caller->thread, NULL, call_on, caller), 0);
}

static void end_calls(struct caller *caller)
{
    atomic_store(&caller->stop, true);
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    assert_true(caller->slowest_ms < CALL_MS + LATE_MS);
}

static void wait_succeeded(struct caller *caller, unsigned calls)
{
    for (int i = 0; i < SOON_MS && atomic_load(&caller->succeeded) < calls; i++)
        nodes_pause();
    assert_true(atomic_load(&caller->succeeded) >= calls);
}

static void wait_worker_adds(mu_node *node)
{
    mu_variable *count = NULL;
    mu_error error = {0};
    int64_t adds = 0;

    if (open_count(node, &error, &count) != 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < SOON_MS && adds < CALLS_BEFORE; i++) {
        if (mu_variable_read(count, &adds, sizeof adds, SOON_MS, &error) != 0)
            fail_msg("%s", error.message);
        nodes_pause();
    }
    assert_true(adds >= CALLS_BEFORE);
    mu_variable_close(count);
}

static void wait_last(struct caller *caller, int code)
{
    for (int i = 0; i < SOON_MS && atomic_load(&caller->last) != code; i++)
        nodes_pause();
    assert_int_equal(atomic_load(&caller->last), code);
}

/* ---- One worker, and servers ---- */

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator;
    pid_t worker;
    pid_t servers[2];
    int servers_count;
    float *initial;
    float *data;
};

static struct fixture *set_up_with(int servers)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;

    assert_non_null(f);
    f->servers_count = servers;
    f->initial = numbers(7);
    f->data = numbers(0);
    nodes_init(&f->nodes, 1, servers);
    f->worker = tasks_start("worker", 0, f->nodes.json);
    for (int i = 0; i < servers; i++)
        f->servers[i] = tasks_start("ps", i, f->nodes.json);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.backups = 0;
    f->chief = nodes_open_with(&f->nodes, &options);
    f->coordinator = nodes_coordinator(f->chief);
    nodes_wait_log(&f->nodes, "/job:worker/task:0 takes closures");
    return f;
}

static int set_up_one(void **state)
{
    *state = set_up_with(1);
    return 0;
}

static int set_up_two(void **state)
{
    *state = set_up_with(2);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    tasks_kill(&f->worker);
    for (int i = 0; i < f->servers_count; i++)
        tasks_kill(&f->servers[i]);
    free(f->initial);
    free(f->data);
    free(f);
    return 0;
}

static mu_variable *opened(struct fixture *f, unsigned flags)
{
    mu_variable *variable = NULL;
    mu_error error = {0};

    if (open_w(f->chief, f->initial, flags, SOON_MS, &error, &variable) != 0)
        fail_msg("%s", error.message);
    return variable;
}

static mu_remote_value *schedule(struct fixture *f, const char *function)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    if (mu_coordinator_schedule(f->coordinator, function, NULL, SOON_MS, &error,
                                &value) != 0)
        fail_msg("%s", error.message);
    return value;
}

/* Takes `value`. */
static double fetched(mu_remote_value *value)
{
    mu_value *result = NULL;
    mu_error error = {0};
    double number = 0;

    if (mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_value_get_float(result, &number), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return number;
}

static void assert_reads_initial(struct fixture *f, mu_variable *variable)
{
    mu_error error = {0};

    if (mu_variable_read(variable, f->data, COUNT * sizeof *f->data, SOON_MS, &error) !=
        0)
        fail_msg("%s", error.message);
    assert_memory_equal(f->data, f->initial, COUNT * sizeof *f->data);
}

/* A handle from before, once the server is back. */
static void assert_not_found(struct fixture *f, mu_variable *variable, const char *task)
{
    mu_error error = {0};

    assert_int_equal(mu_variable_read(variable, f->data, COUNT * sizeof *f->data, SOON_MS,
                                      &error),
                     -MU_ENOTFOUND);
    assert_string_equal(error.task, task);
}

static void restart(struct fixture *f, int server)
{
    tasks_kill(&f->servers[server]);
    f->servers[server] = tasks_start("ps", server, f->nodes.json);
}

/* Nobody creates it: an open that does not, either, ends at its limit and says so. */
static void assert_absent(struct fixture *f, const char *words, const char *task)
{
    uint64_t began_ms = cli_now_ms();
    mu_variable *variable = NULL;
    mu_error error = {0};

    assert_int_equal(open_w(f->chief, NULL, MU_VARIABLE_EXISTING, ABSENT_MS, &error,
                            &variable),
                     -MU_EDEADLINE);
    assert_true(cli_now_ms() - began_ms > ABSENT_MS / 2);
    assert_true(cli_now_ms() - began_ms < ABSENT_MS + LATE_MS);
    assert_string_equal(error.message, words);
    assert_string_equal(error.task, task);
    assert_null(variable);
}

/* An add that was sent has an unknown outcome, one that was not waits for its limit. */
static void assert_lost_add(int code, const char *words)
{
    const char *expected = "was lost before it answered: the outcome is unknown";

    assert_int_equal(code, -MU_EUNAVAILABLE);
    assert_non_null(strstr(words, "variable w: add: /job:ps/task:0 "));
    assert_true(strstr(words, expected) != NULL || strstr(words, "not reached for "));
}

TEST_ON(test_calls_end, struct fixture *f, set_up_one, tear_down)
{
    mu_variable *variable = opened(f, 0);
    mu_remote_value *worker = schedule(f, "add_until_lost");
    struct caller reader;
    struct caller adder;
    int code;

    wait_worker_adds(f->chief);
    begin_calls(&reader, variable, false);
    begin_calls(&adder, variable, true);
    wait_succeeded(&reader, CALLS_BEFORE);
    wait_succeeded(&adder, CALLS_BEFORE);
    tasks_kill(&f->servers[0]);
    wait_last(&reader, -MU_EUNAVAILABLE);
    wait_last(&adder, -MU_EUNAVAILABLE);
    code = (int)fetched(worker);
    assert_int_equal(code, -MU_EUNAVAILABLE);
    restart(f, 0);
    wait_last(&reader, -MU_ENOTFOUND);
    wait_last(&adder, -MU_ENOTFOUND);
    end_calls(&reader);
    end_calls(&adder);

    assert_int_equal(reader.first_failure, -MU_EUNAVAILABLE);
    assert_non_null(strstr(reader.first_words, "variable w: read: /job:ps/task:0 "));
    assert_non_null(strstr(reader.first_words, "not reached for "));
    assert_lost_add(adder.first_failure, adder.first_words);
    assert_int_equal(reader.last_error.code, -MU_ENOTFOUND);
    assert_string_equal(reader.last_error.task, "/job:ps/task:0");
    assert_string_equal(adder.last_error.task, "/job:ps/task:0");
    assert_non_null(strstr(adder.last_error.message,
                           "variable w: add: on /job:ps/task:0: the server was "
                           "restarted, or the variable created anew: it does not have "
                           "it"));
    mu_variable_close(variable);
}

/* The only server comes back empty: all is lost, and created again as at first, by the
 * one who may. */
TEST_ON(test_created_again, struct fixture *f, set_up_one, tear_down)
{
    mu_variable *variable = opened(f, 0);
    mu_remote_value *worker;

    restart(f, 0);
    assert_not_found(f, variable, "/job:ps/task:0");
    worker = schedule(f, "read_existing");
    assert_absent(f,
                  "variable \"w\" does not exist on /job:ps/task:0 (it waits for its "
                  "creator)",
                  "/job:ps/task:0");
    assert_int_equal(mu_remote_value_state(worker), MU_REMOTE_NOT_READY);
    mu_variable_close(variable);
    variable = opened(f, 0);
    assert_reads_initial(f, variable);
    assert_true(fetched(worker) >= 7);
    mu_variable_close(variable);
}

/* One of two comes back empty: what the other has is not mixed with new content, unless
 * all of it is written anew; then old handles find that on both. */
TEST_ON(test_not_mixed, struct fixture *f, set_up_two, tear_down)
{
    mu_variable *before = opened(f, 0);
    mu_variable *variable = NULL;
    mu_remote_value *worker;
    mu_error error = {0};

    assert_int_equal(mu_variable_add(before, f->initial, COUNT * sizeof *f->initial,
                                     SOON_MS, &error),
                     0);
    restart(f, 1);
    assert_not_found(f, before, "/job:ps/task:1");
    assert_int_equal(open_w(f->chief, f->initial, 0, SOON_MS, &error, &variable),
                     -MU_EDATALOSS);
    assert_string_equal(error.message,
                        "variable \"w\" lost its shards on /job:ps/task:1 in a restart; "
                        "others have theirs (MU_VARIABLE_RECREATE writes all of it "
                        "anew)");
    assert_string_equal(error.task, "/job:ps/task:1");
    worker = schedule(f, "read_existing");
    assert_absent(f,
                  "variable \"w\" does not exist on /job:ps/task:1 (it waits for its "
                  "creator)",
                  "/job:ps/task:1");
    variable = opened(f, MU_VARIABLE_RECREATE);
    assert_reads_initial(f, variable);
    assert_true(fetched(worker) >= 7);
    assert_reads_initial(f, before);
    assert_reads_initial(f, variable);
    mu_variable_close(before);
    mu_variable_close(variable);
}

static const struct flags_row {
    unsigned flags;
    const char *words;
} flags_rows[] = {
    {3, "variable w: flags 3: expected 0, MU_VARIABLE_EXISTING (1) or "
        "MU_VARIABLE_RECREATE (2), and MU_VARIABLE_SAME (4)"},
    {8, "variable w: flags 8: expected 0, MU_VARIABLE_EXISTING (1) or "
        "MU_VARIABLE_RECREATE (2), and MU_VARIABLE_SAME (4)"},
};

TEST_ON(test_bad_flags, struct fixture *f, set_up_one, tear_down)
{
    mu_variable *variable = NULL;
    mu_error error = {0};

    for (size_t i = 0; i < sizeof flags_rows / sizeof flags_rows[0]; i++) {
        assert_int_equal(open_w(f->chief, NULL, flags_rows[i].flags, SOON_MS, &error,
                                &variable),
                         -MU_EINVALID);
        assert_string_equal(error.message, flags_rows[i].words);
    }
    assert_null(variable);
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return play(argv);
    return tests_run(NULL, NULL);
}
