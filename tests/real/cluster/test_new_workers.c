/* Workers that are killed, stopped, not listed or sent away, as real processes beside a
 * chief in this one. This program is its own worker: `<this> worker INDEX SPEC`. */
#include "tests/real/tasks.h"

enum { WORKERS_MAX = 10, HEARTBEAT_MS = 100, SILENCE_MS = 600 };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator;
    pid_t workers[WORKERS_MAX]; /* by task index; 0: none */
};

static struct fixture fixture;

/* ---- What workers run ---- */

static int run_pid(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_int((int64_t)getpid()));
    return 0;
}

/* [a, b] -> {"sum": a + b, "pid": ...} */
static int run_add(mu_run *run, void *user)
{
    const mu_value *args = mu_run_args(run);
    mu_value *result = mu_value_map();
    int64_t a;
    int64_t b;

    (void)user;
    if (mu_value_get_int(mu_value_at(args, 0), &a) != 0 ||
        mu_value_get_int(mu_value_at(args, 1), &b) != 0) {
        mu_value_free(result);
        return mu_run_fail(run, -MU_EINVALID, "add expects two whole numbers");
    }
    (void)mu_value_set(result, "sum", mu_value_int(a + b));
    (void)mu_value_set(result, "pid", mu_value_int((int64_t)getpid()));
    mu_run_return(run, result);
    return 0;
}

/* Says who runs it, and then takes its time: long the first time, short on a retry. */
static int run_slow(mu_run *run, void *user)
{
    const struct timespec time = {mu_run_attempt(run) == 1 ? 60 : 0, 1000000};

    (void)user;
    mu_run_return(run, mu_value_int((int64_t)getpid()));
    (void)printf("slow is run\n");
    (void)fflush(stdout);
    (void)nanosleep(&time, NULL);
    return 0;
}

static int next_number(void *state, mu_value **ret_element)
{
    int64_t *number = state;

    *ret_element = mu_value_int(++*number);
    return *ret_element == NULL ? -MU_ENOMEM : 0;
}

/* A dataset: 1, 2, 3 and so on. */
static int run_open_numbers(mu_run *run, void *user)
{
    int64_t *number = calloc(1, sizeof *number);

    (void)user;
    return number == NULL ? -MU_ENOMEM
                          : mu_run_return_iterator(run, next_number, free, number);
}

static int run_take_number(mu_run *run, void *user)
{
    mu_value *element = NULL;
    int rv = mu_run_iterator_next(run, mu_run_args(run), &element);

    (void)user;
    if (rv != 0)
        return mu_run_fail(run, rv, "take expects an iterator");
    mu_run_return(run, element);
    return 0;
}

static int be_worker(char **argv)
{
    static const struct tasks_function functions[] = {
        {"pid", run_pid, 0},
        {"add", run_add, 0},
        {"slow", run_slow, 0},
        {"open_numbers", run_open_numbers, 0},
        {"take_number", run_take_number, 0},
    };
    mu_node_options options;

    mu_node_options_init(&options);
    options.heartbeat_ms = HEARTBEAT_MS;
    options.silence_ms = SILENCE_MS;
    return tasks_play(argv, &options, functions, sizeof functions / sizeof functions[0]);
}

/* ---- Processes ---- */

/* Writes to `out` what the worker prints; -1: nowhere else than where this one does. */
static void start_worker(struct fixture *f, int index, int out)
{
    char number[16];
    char *arguments[] = {"test", "worker", number, f->nodes.json, NULL};

    (void)snprintf(number, sizeof number, "%d", index);
    assert_int_equal(f->workers[index], 0);
    f->workers[index] = tasks_start_program(arguments, out);
}

static void signal_worker(struct fixture *f, int index, int number)
{
    assert_true(f->workers[index] > 0);
    assert_int_equal(kill(f->workers[index], number), 0);
}

/* Killed, and noticed by the chief. */
static void kill_worker(struct fixture *f, int index)
{
    char words[64];

    (void)snprintf(words, sizeof words, "/job:worker/task:%d is lost", index);
    signal_worker(f, index, SIGKILL);
    assert_int_equal(tasks_end(&f->workers[index]), 128 + SIGKILL);
    nodes_wait_log(&f->nodes, words);
}

/* ---- The chief ---- */

static void open_cluster(struct fixture *f, int workers, int servers)
{
    mu_node_options options;

    nodes_init(&f->nodes, workers, servers);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.heartbeat_ms = HEARTBEAT_MS;
    options.silence_ms = SILENCE_MS;
    f->chief = nodes_open_with(&f->nodes, &options);
    f->coordinator = nodes_coordinator(f->chief);
}

static int set_up(void **state)
{
    memset(&fixture, 0, sizeof fixture);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < WORKERS_MAX; i++)
        if (f->workers[i] > 0) {
            signal_worker(f, i, SIGKILL);
            (void)tasks_end(&f->workers[i]);
        }
    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    return 0;
}

/* `worker` -1: on any. Takes `args`. */
static mu_remote_value *schedule(struct fixture *f, const char *function, mu_value *args,
                                 unsigned flags, int worker)
{
    mu_remote_value *value = NULL;
    mu_closure_options options;
    mu_error error = {0};

    mu_closure_options_init(&options);
    options.flags = flags;
    options.worker = worker;
    if (mu_coordinator_schedule_with(f->coordinator, function, args, &options, SOON_MS,
                                     &error, &value) != 0)
        fail_msg("%s", error.message);
    mu_value_free(args);
    return value;
}

/* Takes `value`; the caller frees the result. */
static mu_value *fetch(mu_remote_value *value)
{
    mu_value *result = NULL;
    mu_error error = {0};

    if (mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s: %s: %s", error.task, mu_err_name(error.code), error.message);
    mu_remote_value_free(value);
    return result;
}

static int64_t fetch_int(mu_remote_value *value)
{
    mu_value *result = fetch(value);
    int64_t number = -1;

    assert_int_equal(mu_value_get_int(result, &number), 0);
    mu_value_free(result);
    return number;
}

static int64_t int_at(const mu_value *map, const char *key)
{
    int64_t number = -1;

    assert_int_equal(mu_value_get_int(mu_value_find(map, key), &number), 0);
    return number;
}

static mu_value *pair(mu_value *first, mu_value *second)
{
    mu_value *list = mu_value_list();

    assert_int_equal(mu_value_append(list, first), 0);
    assert_int_equal(mu_value_append(list, second), 0);
    return list;
}

/* ---- Stories ---- */

/* Its closure runs elsewhere, long before the worker would have been done. */
TEST_ON(test_stopped_worker, struct fixture *f, set_up, tear_down)
{
    mu_remote_value *value;
    char line[16];
    int64_t other;
    int ends[2];

    open_cluster(f, 2, 0);
    assert_int_equal(pipe(ends), 0);
    start_worker(f, 0, ends[1]);
    value = schedule(f, "slow", NULL, 0, -1);
    assert_true(read(ends[0], line, sizeof line) > 0);
    start_worker(f, 1, ends[1]);
    other = f->workers[1];
    signal_worker(f, 0, SIGSTOP);
    assert_int_equal(fetch_int(value), other);
    assert_true(nodes_has_logged(&f->nodes, "supervisor: /job:worker/task:0 is lost"));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A worker that no spec lists finds the chief by itself, gets work, and leaves when it is
 * asked to; so does the next one, which may have the same index. */
TEST_ON(test_stranger_comes_and_leaves, struct fixture *f, set_up, tear_down)
{
    mu_error error = {0};

    open_cluster(f, 0, 1);
    for (int i = 0; i < 3; i++) {
        int index = i < 2 ? 7 : 8;

        start_worker(f, index, -1);
        for (int j = 0; j < 20; j++)
            assert_int_equal(fetch_int(schedule(f, "pid", NULL, 0, -1)),
                             f->workers[index]);
        if (mu_coordinator_drain(f->coordinator, index, SOON_MS, &error) != 0)
            fail_msg("%s", error.message);
        assert_int_equal(tasks_end(&f->workers[index]), 0);
    }
    assert_int_equal(mu_coordinator_drain(f->coordinator, 7, SOON_MS, &error),
                     -MU_ENOTFOUND);
}

/* The same with the program `muster`: it ends with 0. Who does not say where it listens
 * has a wrong index. */
TEST_ON(test_stranger_of_the_program, struct fixture *f, set_up, tear_down)
{
    static struct cli cli;
    mu_error error = {0};
    char plugin[256];

    open_cluster(f, 2, 0);
    (void)snprintf(plugin, sizeof plugin, "%.200s/counter.so",
                   cli_variable("MUSTER_EXAMPLES"));
    cli_start(&cli, NULL, "node", "--cluster", f->nodes.json, "--task", "worker:5",
              "--plugin", plugin, NULL);
    cli_expect_code(&cli, 2);
    (void)cli_expect(&cli, NULL, "index 5 is not in the job \"worker\" with its 2 tasks");

    cli_start(&cli, NULL, "node", "--cluster", f->nodes.json, "--task", "worker:5",
              "--plugin", plugin, "--bind", "tcp://127.0.0.1:0", NULL);
    nodes_wait_log(&f->nodes, "/job:worker/task:5 takes closures");
    if (mu_coordinator_drain(f->coordinator, 5, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    cli_expect_code(&cli, 0);
}

/* A worker is sent away while it has work: it finishes that first. */
TEST_ON(test_drain_waits_for_work, struct fixture *f, set_up, tear_down)
{
    mu_remote_value *values[50];
    mu_error error = {0};
    int64_t first;

    open_cluster(f, 2, 0);
    start_worker(f, 0, -1);
    first = f->workers[0];
    assert_int_equal(fetch_int(schedule(f, "pid", NULL, 0, -1)), first);
    for (int i = 0; i < 50; i++)
        values[i] = schedule(f, "pid", NULL, 0, -1);
    assert_int_equal(mu_coordinator_drain(f->coordinator, 0, SOON_MS, &error), 0);
    assert_int_equal(tasks_end(&f->workers[0]), 0);
    start_worker(f, 1, -1);
    for (int i = 0; i < 50; i++) {
        int64_t pid = fetch_int(values[i]);

        assert_true(pid == first || pid == f->workers[1]);
    }
}

static int64_t take(struct fixture *f, const mu_value *numbers)
{
    return fetch_int(schedule(f, "take_number", mu_value_ref(numbers), 0, 0));
}

/* The dataset is there again, from its beginning, before the new process gets closures
 * that take from it. */
TEST_ON(test_iterator_is_rebuilt, struct fixture *f, set_up, tear_down)
{
    mu_per_worker *per_worker = NULL;
    mu_error error = {0};
    mu_value *numbers;

    open_cluster(f, 1, 0);
    start_worker(f, 0, -1);
    assert_int_equal(mu_per_worker_open(f->coordinator, "open_numbers", NULL, SOON_MS,
                                        &error, &per_worker),
                     0);
    numbers = mu_value_per_worker(per_worker);
    for (int64_t i = 1; i <= 3; i++)
        assert_int_equal(take(f, numbers), i);
    kill_worker(f, 0);
    start_worker(f, 0, -1);
    for (int64_t i = 1; i <= 3; i++)
        assert_int_equal(take(f, numbers), i);
    mu_value_free(numbers);
    mu_per_worker_close(per_worker);
}

static void wait_ready(const mu_remote_value *value)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (mu_remote_value_state(value) == MU_REMOTE_NOT_READY) {
        assert_true(cli_now_ms() < deadline_ms);
        cli_pause();
    }
    assert_int_equal(mu_remote_value_state(value), MU_REMOTE_READY);
}

/* A kept result is there while its worker is; when that was killed, whoever asks for it
 * gets one that was computed again. */
TEST_ON(test_kept_result_is_computed_again, struct fixture *f, set_up, tear_down)
{
    mu_remote_value *kept;
    int64_t first;

    open_cluster(f, 1, 0);
    start_worker(f, 0, -1);
    first = f->workers[0];
    assert_int_equal(fetch_int(schedule(f, "pid", NULL, MU_CLOSURE_PIN_RESULT, -1)),
                     first);
    kept = schedule(f, "pid", NULL, MU_CLOSURE_PIN_RESULT, -1);
    wait_ready(kept);
    kill_worker(f, 0);
    start_worker(f, 0, -1);
    assert_int_not_equal(f->workers[0], first);
    assert_int_equal(fetch_int(kept), f->workers[0]);
}

/* Of a remote value among the arguments its content is seen; also of one that is not
 * ready yet, and of a kept one whose worker was killed. */
TEST_ON(test_remote_values_as_arguments, struct fixture *f, set_up, tear_down)
{
    mu_remote_value *pid;
    mu_remote_value *kept;
    mu_value *result;
    int64_t first;

    open_cluster(f, 1, 0);
    pid = schedule(f, "pid", NULL, 0, -1);
    kept = schedule(f, "pid", NULL, MU_CLOSURE_PIN_RESULT, -1);
    start_worker(f, 0, -1);
    first = f->workers[0];
    result =
        fetch(schedule(f, "add", pair(mu_value_remote(pid), mu_value_int(1000)), 0, -1));
    assert_int_equal(int_at(result, "sum"), first + 1000);
    mu_value_free(result);

    wait_ready(kept);
    kill_worker(f, 0);
    start_worker(f, 0, -1);
    result = fetch(schedule(f, "add", pair(mu_value_remote(kept), mu_value_remote(pid)),
                            0, -1));
    assert_int_equal(int_at(result, "pid"), f->workers[0]);
    assert_int_equal(int_at(result, "sum"), f->workers[0] + first);
    mu_value_free(result);
    mu_remote_value_free(kept);
    mu_remote_value_free(pid);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "worker") == 0)
        return be_worker(argv);
    return tests_run(NULL, NULL);
}
