/* The library as a program uses it: real nodes, sockets and threads in one process. */
#include "tests/real/nodes.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* ---- functions ---- */

static int square(mu_run *run, void *user)
{
    int64_t number = 0;

    (void)user;
    if (mu_value_get_int(mu_run_args(run), &number) != 0)
        return mu_run_fail(run, -MU_EINVALID, "square wants an int");
    mu_run_return(run, mu_value_int(number * number));
    return 0;
}

static int echo(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return 0;
}

/* Runs until it is told that nobody wants it, or `user` says stop. */
static int hang(mu_run *run, void *user)
{
    atomic_bool *stop = user;

    while (!mu_run_cancelled(run) && !atomic_load(stop))
        nodes_pause();
    return mu_run_cancelled(run) ? mu_run_fail(run, -MU_ECANCELLED, "told to stop") : 0;
}

static int odd_code(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 7;
}

static atomic_bool stop_hanging;

static void register_all(mu_node *node)
{
    assert_int_equal(mu_node_register_function(node, "square", square, NULL, 0), 0);
    assert_int_equal(
        mu_node_register_function(node, "quick", square, NULL, MU_FUNCTION_INLINE), 0);
    assert_int_equal(mu_node_register_function(node, "echo", echo, NULL, 0), 0);
    assert_int_equal(mu_node_register_function(node, "hang", hang, &stop_hanging, 0), 0);
    assert_int_equal(mu_node_register_function(node, "odd", odd_code, NULL, 0), 0);
    assert_int_equal(mu_node_serve(node), 0);
}

/* ---- a chief, two workers, two servers ---- */

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_node *workers[2];
    mu_coordinator *coordinator;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    atomic_store(&stop_hanging, false);
    nodes_init(&f->nodes, 2, 2);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    for (int i = 0; i < 2; i++) {
        f->workers[i] = nodes_open(&f->nodes, "worker", i);
        register_all(f->workers[i]);
        (void)nodes_open(&f->nodes, "ps", i);
    }
    f->coordinator = nodes_coordinator(f->chief);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    atomic_store(&stop_hanging, true);
    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    free(f);
    return 0;
}

static mu_remote_value *schedule(struct fixture *f, const char *function, mu_value *args)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    if (mu_coordinator_schedule(f->coordinator, function, args, SOON_MS, &error, &value))
        fail_msg("%s", error.message);
    mu_value_free(args);
    return value;
}

static void check_int(mu_remote_value *value, int64_t expected)
{
    mu_value *result = NULL;
    int64_t number = 0;
    mu_error error = {0};

    if (mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_value_get_int(result, &number), 0);
    assert_int_equal(number, expected);
    mu_value_free(result);
    mu_remote_value_free(value);
}

/* ---- stories ---- */

TEST_ON(test_results_come_back, struct fixture *f, setup, teardown)
{
    mu_remote_value *values[200];
    mu_coordinator_stats counts;
    mu_error error = {0};
    int done = 0;

    for (int i = 0; i < 200; i++)
        values[i] = schedule(f, i % 2 == 0 ? "square" : "quick", mu_value_int(i));
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    assert_int_equal(mu_coordinator_done(f->coordinator, &error, &done), 0);
    assert_int_equal(done, 1);
    for (int i = 0; i < 200; i++)
        check_int(values[i], (int64_t)i * i);
    mu_coordinator_get_stats(f->coordinator, &counts);
    assert_int_equal(counts.scheduled, 200);
    assert_int_equal(counts.finished, 200);
    assert_int_equal(counts.outstanding, 0);
}

/* Every type of value there and back, with a tensor larger than a frame. */
TEST_ON(test_values_travel_unchanged, struct fixture *f, setup, teardown)
{
    uint64_t dims[2] = {1500, 1000};
    mu_value *list = mu_value_list();
    mu_value *map = mu_value_map();
    mu_value *tensor = mu_value_tensor(MU_F32, 2, dims, NULL);
    mu_remote_value *value;
    mu_value *result = NULL;
    mu_error error = {0};

    for (int i = 0; i < 1500000; i++)
        ((float *)mu_value_tensor_data(tensor))[i] = (float)i;
    (void)mu_value_append(list, mu_value_nil());
    (void)mu_value_append(list, mu_value_bool(1));
    (void)mu_value_append(list, mu_value_int(INT64_MIN));
    (void)mu_value_append(list, mu_value_float(0.1));
    (void)mu_value_append(list, mu_value_string("h\xc3\xa9llo"));
    (void)mu_value_append(list, mu_value_bytes("\0\1\2", 3));
    (void)mu_value_append(list, tensor);
    (void)mu_value_set(map, "list", list);
    value = schedule(f, "echo", mu_value_ref(map));
    if (mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    assert_true(mu_value_equal(map, result));
    mu_value_free(result);
    mu_value_free(map);
    mu_remote_value_free(value);
}

TEST_ON(test_error_is_raised_once, struct fixture *f, setup, teardown)
{
    mu_remote_value *value = schedule(f, "square", mu_value_string("seven"));
    mu_error error = {0};

    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), -MU_EINVALID);
    assert_string_equal(error.message, "square wants an int");
    assert_string_equal(error.function, "square");
    assert_int_equal(strncmp(error.task, "/job:worker/task:", 17), 0);
    assert_int_equal(error.attempt, 1);
    assert_true(error.closure != 0);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    assert_int_equal(mu_remote_value_fetch(value, 0, &error, NULL), -MU_EINVALID);
    assert_int_equal(mu_remote_value_state(value), MU_REMOTE_READY);
    mu_remote_value_free(value);
    check_int(schedule(f, "square", mu_value_int(3)), 9);
}

TEST_ON(test_what_else_functions_do_wrong, struct fixture *f, setup, teardown)
{
    static const struct {
        const char *function;
        int code;
        const char *words;
    } rows[] = {
        {"absent", -MU_ENOTFOUND, "no function \"absent\" on /job:worker/task:"},
        {"odd", -MU_EUNKNOWN, "the function returned 7"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};

        mu_remote_value_free(schedule(f, rows[i].function, mu_value_nil()));
        assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error),
                         rows[i].code);
        assert_non_null(strstr(error.message, rows[i].words));
    }
}

/* The rest is cancelled, queued and running, before the error is raised: by join, or by
 * the schedule that comes after the failure. */
TEST_ON(test_error_cancels_the_rest, struct fixture *f, setup, teardown)
{
    mu_remote_value *values[40] = {NULL};
    mu_coordinator_stats counts;
    mu_error error = {0};
    int count = 0;
    int rv = 0;

    while (rv == 0 && count < 40) {
        rv = mu_coordinator_schedule(f->coordinator, count == 1 ? "absent" : "hang", NULL,
                                     SOON_MS, &error, &values[count]);
        count += rv == 0;
    }
    if (rv == 0)
        rv = mu_coordinator_join(f->coordinator, SOON_MS, &error);
    assert_int_equal(rv, -MU_ENOTFOUND);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        assert_int_equal(mu_remote_value_state(values[i]),
                         i == 1 ? MU_REMOTE_READY : MU_REMOTE_ABORTED);
        mu_remote_value_free(values[i]);
    }
    mu_coordinator_get_stats(f->coordinator, &counts);
    assert_int_equal(counts.outstanding, 0);
    assert_int_equal(counts.scheduled,
                     counts.finished + counts.failed + counts.cancelled);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
}

TEST_ON(test_limits_tell_what_is_missing, struct fixture *f, setup, teardown)
{
    mu_remote_value *value = schedule(f, "hang", mu_value_nil());
    mu_error error = {0};

    assert_int_equal(mu_remote_value_fetch(value, 50, &error, NULL), -MU_EDEADLINE);
    assert_int_equal(mu_coordinator_join(f->coordinator, 50, &error), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "\"hang\" runs on /job:worker/task:"));
    atomic_store(&stop_hanging, true);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    mu_remote_value_free(value);
}

TEST_ON(test_worker_that_comes_back_gets_work, struct fixture *f, setup, teardown)
{
    for (int i = 0; i < 2; i++) {
        nodes_close(&f->nodes, f->workers[i]);
        f->workers[i] = nodes_open(&f->nodes, "worker", i);
        register_all(f->workers[i]);
    }
    for (int i = 0; i < 20; i++)
        check_int(schedule(f, "square", mu_value_int(i)), (int64_t)i * i);
}

/* The status once so many tasks are up, and so many servers have said what they have. */
static mu_value *status_of_tasks(mu_node *node, size_t count, size_t servers)
{
    for (int i = 0; i < SOON_MS; i++) {
        mu_value *status = NULL;
        mu_error error = {0};

        if (mu_node_status(node, SOON_MS, &error, &status) != 0)
            fail_msg("%s", error.message);
        if (mu_value_count(mu_value_find(status, "tasks")) == count &&
            mu_value_count(mu_value_find(status, "variables")) == servers)
            return status;
        mu_value_free(status);
        nodes_pause();
    }
    fail_msg("the chief never saw %zu tasks and %zu servers", count, servers);
    return NULL;
}

/* A client schedules through the chief; the evaluator outside of the cluster reports. */
TEST_ON(test_clients_and_evaluators, struct fixture *f, setup, teardown)
{
    struct fixture other = {0};
    mu_node *client = nodes_open(&f->nodes, "client", 0);
    mu_node *evaluator = nodes_open(&f->nodes, "evaluator", 0);
    mu_coordinator *mine = nodes_coordinator(evaluator);
    mu_value *status = NULL;
    double number = 0;
    uint64_t step = 0;

    other.coordinator = nodes_coordinator(client);
    for (int i = 0; i < 20; i++)
        check_int(schedule(&other, "square", mu_value_int(i)), (int64_t)i * i);
    mu_coordinator_close(other.coordinator);
    assert_int_equal(mu_node_report_metric(evaluator, "accuracy", 0.5, 17), 0);
    for (int i = 0;
         i < SOON_MS && mu_node_get_metric(f->chief, "accuracy", &number, &step); i++)
        nodes_pause();
    assert_true(number == 0.5);
    assert_int_equal(step, 17);
    assert_int_equal(mu_node_get_metric(f->chief, "nothing", &number, &step),
                     -MU_ENOTFOUND);
    status = status_of_tasks(client, 6, 2);
    assert_non_null(status);
    mu_value_free(status);
    mu_coordinator_close(mine);
}

TEST_ON(test_variables_over_two_servers, struct fixture *f, setup, teardown)
{
    const uint64_t dims[2] = {5, 2};
    const float ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const mu_variable_spec spec = {"w", MU_F32, 2, dims, 2, ones, 0, NULL};
    const mu_optimizer optimizer = mu_optimizer_make(MU_OPTIMIZER_SGD, 0.5);
    mu_variable *variable = NULL;
    mu_error error = {0};
    float got[10] = {0};

    for (int i = 0; i < 2; i++) {
        if (mu_variable_open(f->workers[i], &spec, SOON_MS, &error, &variable) != 0)
            fail_msg("%s", error.message);
        assert_int_equal(mu_variable_add(variable, ones, sizeof ones, SOON_MS, &error),
                         0);
        assert_int_equal(mu_variable_apply(variable, ones, sizeof ones, &optimizer,
                                           SOON_MS, &error),
                         0);
        assert_int_equal(mu_variable_read(variable, got, sizeof got, SOON_MS, &error), 0);
        for (int j = 0; j < 10; j++)
            assert_true(got[j] == 1.0f + 0.5f * (float)(i + 1));
        mu_variable_close(variable);
    }
}

TEST_ON(test_job_done_reaches_everybody, struct fixture *f, setup, teardown)
{
    mu_error error = {0};

    nodes_wait_log(&f->nodes, "/job:chief/task:0 links: /job:ps/task:0 is up");
    nodes_wait_log(&f->nodes, "/job:chief/task:0 links: /job:ps/task:1 is up");
    nodes_wait_log(&f->nodes, "/job:worker/task:1 takes closures");
    nodes_wait_log(&f->nodes, "/job:worker/task:0 takes closures");
    assert_int_equal(mu_node_wait_job(f->workers[0], 10, &error), -MU_EDEADLINE);
    assert_int_equal(mu_node_finish_job(f->workers[1], 0, "", -1, &error),
                     -MU_EPRECONDITION);
    assert_string_equal(error.message, "/job:worker/task:1 cannot end the job: the chief "
                                       "does, or worker 0 where there is none");
    assert_int_equal(mu_node_finish_job(f->chief, -MU_EDATALOSS, "it went wrong", 50,
                                        &error),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "4 tasks have not hung up"));
    assert_int_equal(mu_node_wait_job(f->workers[0], SOON_MS, &error), 0);
    assert_int_equal(error.code, -MU_EDATALOSS);
    assert_string_equal(error.message, "it went wrong");
}

/* ---- queue ---- */

TEST(test_full_queue)
{
    struct nodes nodes;
    mu_node_options options;
    mu_coordinator *coordinator;
    mu_error error = {0};

    nodes_init(&nodes, 1, 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.queue_max = 3;
    coordinator = nodes_coordinator(nodes_open_with(&nodes, &options));
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            mu_coordinator_schedule(coordinator, "square", NULL, 0, &error, NULL), 0);
    assert_int_equal(mu_coordinator_schedule(coordinator, "square", NULL, 0, &error,
                                             NULL),
                     -MU_EAGAIN);
    assert_int_equal(mu_coordinator_schedule(coordinator, "square", NULL, 50, &error,
                                             NULL),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "no worker is up"));
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

/* ---- many threads ---- */

static void *schedule_many(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < 500; i++)
        check_int(schedule(f, i % 2 == 0 ? "quick" : "square", mu_value_int(i)),
                  (int64_t)i * i);
    return NULL;
}

TEST_ON(test_many_threads_schedule, struct fixture *f, setup, teardown)
{
    mu_coordinator_stats counts;
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, schedule_many, f), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    mu_coordinator_get_stats(f->coordinator, &counts);
    assert_int_equal(counts.finished, 2000);
}

/* ---- on the program's own loop ---- */

struct embedded {
    mu_node *node;
    mu_coordinator *coordinator;
    int scheduled;
    int answers;
    int raised;
    int closed;
    uv_timer_t timer;
};

enum { EMBEDDED_CLOSURES = 50 };

static void on_closed(void *user)
{
    ((struct embedded *)user)->closed = 1;
}

static void on_value(mu_remote_value *value, void *user)
{
    struct embedded *e = user;
    mu_error error = {0};

    assert_int_equal(mu_remote_value_fetch(value, 0, &error, NULL), 0);
    mu_remote_value_free(value);
    e->answers++;
}

/* Half of them say who is to be told when they are scheduled, the others afterwards. */
static void schedule_embedded(struct embedded *e)
{
    mu_value *nine = mu_value_int(9);
    mu_remote_value *value = NULL;
    mu_closure_options options;
    mu_error error = {0};

    mu_closure_options_init(&options);
    options.on_ready = on_value;
    options.user = e;
    while (e->scheduled < EMBEDDED_CLOSURES) {
        bool tells = e->scheduled % 2 == 0;

        assert_int_equal(mu_coordinator_schedule_with(e->coordinator, "square", nine,
                                                      tells ? &options : NULL, 0, &error,
                                                      &value),
                         0);
        if (!tells)
            assert_int_equal(mu_remote_value_on_ready(value, on_value, e), 0);
        e->scheduled++;
    }
    mu_value_free(nine);
}

/* After the answers one closure fails, and its error is raised by done, once. */
static bool is_finished(struct embedded *e)
{
    mu_error error = {0};
    int done = 0;
    int rv;

    if (e->answers < EMBEDDED_CLOSURES)
        return false;
    if (e->scheduled == EMBEDDED_CLOSURES) {
        assert_int_equal(
            mu_coordinator_schedule(e->coordinator, "absent", NULL, 0, &error, NULL), 0);
        e->scheduled++;
        return false;
    }
    rv = mu_coordinator_done(e->coordinator, &error, &done);
    if (rv == -MU_ENOTFOUND)
        e->raised++;
    else
        assert_true(rv == 0 || rv == -MU_EAGAIN);
    return e->raised > 0 && done == 1;
}

static void on_tick(uv_timer_t *timer)
{
    struct embedded *e = timer->data;
    mu_error error = {0};

    assert_int_equal(mu_coordinator_join(e->coordinator, 0, &error), -MU_EPRECONDITION);
    schedule_embedded(e);
    if (!is_finished(e))
        return;
    uv_close((uv_handle_t *)timer, NULL);
    mu_coordinator_close(e->coordinator);
    mu_node_close_async(e->node, on_closed, e);
}

TEST(test_node_on_the_programs_loop)
{
    struct nodes nodes;
    struct embedded e = {0};
    mu_node_options options;
    mu_error error = {0};
    mu_node *worker;
    uv_loop_t loop;

    nodes_init(&nodes, 1, 0);
    worker = nodes_open(&nodes, "worker", 0);
    register_all(worker);
    assert_int_equal(uv_loop_init(&loop), 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.loop = &loop;
    if (mu_node_open(&options, &error, &e.node) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_coordinator_open(e.node, 0, &error, &e.coordinator), 0);
    (void)uv_timer_init(&loop, &e.timer);
    e.timer.data = &e;
    (void)uv_timer_start(&e.timer, on_tick, 0, 5);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(e.closed, 1);
    assert_int_equal(e.raised, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    nodes_done(&nodes);
}

/* ---- signals ---- */

static bool takes_sigterm(const char *thread)
{
    unsigned long long blocked = 0;
    char path[300];
    char line[128];
    bool seen = false;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    file = fopen(path, "r");
    while (file != NULL && !seen && fgets(line, sizeof line, file) != NULL)
        seen = sscanf(line, "SigBlk: %llx", &blocked) == 1;
    if (file != NULL)
        (void)fclose(file);
    return seen && (blocked >> (SIGTERM - 1) & 1) == 0;
}

static int count_who_take_sigterm(int *ret_threads)
{
    DIR *threads = opendir("/proc/self/task");
    struct dirent *thread;
    int count = 0;

    *ret_threads = 0;
    assert_non_null(threads);
    while ((thread = readdir(threads)) != NULL)
        if (thread->d_name[0] != '.') {
            *ret_threads += 1;
            count += takes_sigterm(thread->d_name);
        }
    (void)closedir(threads);
    return count;
}

/* A program handles its signals on a thread that it knows. */
TEST(test_signals_are_for_the_program)
{
    int threads_before;
    int threads;
    int before = count_who_take_sigterm(&threads_before);
    struct fixture *f;

    assert_int_equal(setup(state), 0);
    f = *state;
    check_int(schedule(f, "square", mu_value_int(3)), 9);
    assert_int_equal(count_who_take_sigterm(&threads), before);
    assert_true(threads >= threads_before + f->nodes.open_count);
    assert_int_equal(teardown(state), 0);
}

TEST_PROGRAM()
