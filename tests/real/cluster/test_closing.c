/* Closing nodes while functions run, while runs are queued and while threads wait in
 * calls: every call comes back, nothing runs that had not begun, nothing is used after it
 * was freed (which the sanitizers see). */
#include "tests/real/nodes.h"

#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <uv.h>

enum { CLOSE_MS = 100, BLOCKED = 3, HOLD_PAUSES = 20, ROUNDS = 10, HAMMERS = 4 };

/* ---- a function that blocks until it is let go ---- */

struct gate {
    sem_t open;
    atomic_int started;
    atomic_int ended;
    atomic_int arrived;  /* runs of the function that does not pass */
    atomic_int reported; /* what the node said to the function after the gate */
};

static void gate_init(struct gate *gate)
{
    memset(gate, 0, sizeof *gate);
    assert_int_equal(sem_init(&gate->open, 0, 0), 0);
}

static void gate_open(struct gate *gate)
{
    for (int i = 0; i < BLOCKED; i++)
        (void)sem_post(&gate->open);
}

static int pass(mu_run *run, void *user)
{
    struct gate *gate = user;

    atomic_fetch_add(&gate->started, 1);
    while (sem_wait(&gate->open) != 0)
        continue;
    atomic_store(&gate->reported,
                 mu_node_report_metric(mu_run_node(run), "passed", 1.0, 1));
    atomic_fetch_add(&gate->ended, 1);
    return 0;
}

/* Runs on the loop as soon as it is there, as those are that were scheduled before. */
static int arrive(mu_run *run, void *user)
{
    struct gate *gate = user;

    (void)run;
    atomic_fetch_add(&gate->arrived, 1);
    return 0;
}

static bool wait_count(atomic_int *count, int wanted)
{
    for (int i = 0; i < SOON_MS && atomic_load(count) < wanted; i++)
        nodes_pause();
    return atomic_load(count) >= wanted;
}

/* A worker with one thread, inside the gate, and runs that wait behind it. */
static mu_coordinator *fill_worker(struct nodes *nodes, struct gate *gate,
                                   mu_node **ret_worker)
{
    mu_coordinator *coordinator;
    mu_error error = {0};

    gate_init(gate);
    nodes_init(nodes, 1, 0);
    nodes->window = BLOCKED + 1;
    *ret_worker = nodes_open(nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(*ret_worker, "pass", pass, gate, 0), 0);
    assert_int_equal(mu_node_register_function(*ret_worker, "arrive", arrive, gate,
                                               MU_FUNCTION_INLINE),
                     0);
    assert_int_equal(mu_node_serve(*ret_worker), 0);
    coordinator = nodes_coordinator(nodes_open(nodes, "chief", 0));
    for (int i = 0; i <= BLOCKED; i++)
        assert_int_equal(mu_coordinator_schedule(coordinator,
                                                 i < BLOCKED ? "pass" : "arrive", NULL,
                                                 SOON_MS, &error, NULL),
                         0);
    assert_true(wait_count(&gate->arrived, 1));
    assert_true(wait_count(&gate->started, 1));
    return coordinator;
}

/* ---- a close on a thread of its own ---- */

struct closing {
    struct nodes *nodes;
    mu_node *node;
    pthread_t thread;
};

static void *close_node(void *arg)
{
    struct closing *closing = arg;

    nodes_close(closing->nodes, closing->node);
    return NULL;
}

/* What was queued behind a function is run elsewhere: here it never starts. */
TEST(test_queued_runs_never_start)
{
    struct nodes nodes;
    struct gate gate;
    struct closing closing = {.nodes = &nodes};
    mu_coordinator *coordinator = fill_worker(&nodes, &gate, &closing.node);

    assert_int_equal(pthread_create(&closing.thread, NULL, close_node, &closing), 0);
    nodes_wait_log(&nodes, "/job:worker/task:0 has left with 3 closures in flight: they "
                           "run again elsewhere");
    gate_open(&gate);
    assert_int_equal(pthread_join(closing.thread, NULL), 0);
    assert_int_equal(atomic_load(&gate.started), 1);
    assert_int_equal(atomic_load(&gate.ended), 1);
    assert_int_equal(atomic_load(&gate.reported), -MU_ECLOSED);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
    (void)sem_destroy(&gate.open);
}

/* ---- a function that ends after its node was left behind ---- */

static int count_executor_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int count = 0;

    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[300];
        char name[16] = "";
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(name, sizeof name, file) != NULL && strncmp(name, "mu-exec", 7) == 0)
            count++;
        (void)fclose(file);
    }
    if (tasks != NULL)
        (void)closedir(tasks);
    return count;
}

/* In a process of its own, since what was left behind stays until the process ends. The
 * number it ends with says where it stopped. */
static void play_left_behind(void)
{
    static struct nodes nodes;
    static struct gate gate;
    mu_error error = {0};
    mu_node *worker;
    int threads = 2; /* the worker's and the chief's, which name themselves */

    (void)fill_worker(&nodes, &gate, &worker);
    for (int i = 0; i < SOON_MS && count_executor_threads() != threads; i++)
        nodes_pause();
    if (mu_node_close(worker, CLOSE_MS, &error) != -MU_EDEADLINE ||
        strstr(error.message, "function \"pass\" on /job:worker/task:0 did not end") ==
            NULL)
        _exit(2);
    gate_open(&gate);
    if (!wait_count(&gate.ended, 1))
        _exit(3);
    for (int i = 0; i < SOON_MS && count_executor_threads() == threads; i++)
        nodes_pause();
    if (count_executor_threads() != threads - 1)
        _exit(4);
    if (atomic_load(&gate.started) != 1 || atomic_load(&gate.reported) != -MU_ECLOSED)
        _exit(5);
    _exit(0);
}

TEST(test_function_ends_after_its_node)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execl("/proc/self/exe", "test", "left-behind", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- calls that wait, on threads of the program ---- */

/* What the calls are made with. */
struct handles {
    mu_node *node;
    mu_coordinator *coordinator;
    mu_variable *variable;
    mu_remote_value *value;
};

static int wait_job(struct handles *h, mu_error *ret_error)
{
    return mu_node_wait_job(h->node, -1, ret_error);
}

static int wait_status(struct handles *h, mu_error *ret_error)
{
    mu_value *status = NULL;
    int rv = mu_node_status(h->node, -1, ret_error, &status);

    mu_value_free(status);
    return rv;
}

static int wait_chief(struct handles *h, mu_error *ret_error)
{
    mu_coordinator *coordinator = NULL;

    return mu_coordinator_open(h->node, -1, ret_error, &coordinator);
}

static int wait_open(struct handles *h, mu_error *ret_error)
{
    const mu_variable_spec spec = {.name = "v", .dtype = MU_F32};
    mu_variable *variable = NULL;

    return mu_variable_open(h->node, &spec, -1, ret_error, &variable);
}

static int wait_read(struct handles *h, mu_error *ret_error)
{
    float number;

    return mu_variable_read(h->variable, &number, sizeof number, -1, ret_error);
}

static int wait_join(struct handles *h, mu_error *ret_error)
{
    return mu_coordinator_join(h->coordinator, -1, ret_error);
}

static int wait_room(struct handles *h, mu_error *ret_error)
{
    return mu_coordinator_schedule(h->coordinator, "absent", NULL, -1, ret_error, NULL);
}

static int wait_value(struct handles *h, mu_error *ret_error)
{
    return mu_remote_value_fetch(h->value, -1, ret_error, NULL);
}

typedef int (*wait_fn)(struct handles *handles, mu_error *ret_error);

struct waiter {
    wait_fn wait;
    int code; /* what it comes to */
    struct handles *handles;
    pthread_t thread;
    atomic_int started;
    int got;
    mu_error error;
};

static void *wait_on_thread(void *arg)
{
    struct waiter *waiter = arg;

    atomic_store(&waiter->started, 1);
    waiter->got = waiter->wait(waiter->handles, &waiter->error);
    return NULL;
}

/* Returns when the calls are with their actors, most likely: a call that came later would
 * end the same way. */
static void start_waiters(struct waiter *waiters, size_t count, struct handles *handles)
{
    for (size_t i = 0; i < count; i++) {
        waiters[i].handles = handles;
        assert_int_equal(
            pthread_create(&waiters[i].thread, NULL, wait_on_thread, &waiters[i]), 0);
        assert_true(wait_count(&waiters[i].started, 1));
    }
    for (int i = 0; i < HOLD_PAUSES; i++)
        nodes_pause();
}

static void check_waiters(struct waiter *waiters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
        if (waiters[i].got != waiters[i].code || waiters[i].error.code != waiters[i].code)
            fail_msg("call %zu came to %s, expected %s: \"%s\"", i,
                     mu_err_name(waiters[i].got), mu_err_name(waiters[i].code),
                     waiters[i].error.message);
    }
}

/* Alone, without a chief and without servers, everything waits. */
TEST(test_threads_that_wait_on_a_lone_node)
{
    struct waiter waiters[] = {
        {.wait = wait_job, .code = -MU_ECLOSED},
        {.wait = wait_status, .code = -MU_ECLOSED},
        {.wait = wait_chief, .code = -MU_ECLOSED},
        {.wait = wait_open, .code = -MU_ECLOSED},
    };
    size_t count = sizeof waiters / sizeof waiters[0];
    struct handles handles = {0};
    struct nodes nodes;

    nodes_init(&nodes, 1, 1);
    handles.node = nodes_open(&nodes, "client", 0);
    start_waiters(waiters, count, &handles);
    nodes_close(&nodes, handles.node);
    check_waiters(waiters, count);
    nodes_done(&nodes);
}

/* Handles outlive their node, and say so. */
static void check_handles_are_closed(struct handles *h)
{
    const wait_fn waits[] = {wait_read, wait_join, wait_room};
    mu_error error = {0};
    int done = 0;

    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        assert_int_equal(waits[i](h, &error), -MU_ECLOSED);
        assert_int_equal(error.code, -MU_ECLOSED);
    }
    assert_int_equal(mu_coordinator_done(h->coordinator, &error, &done), -MU_ECLOSED);
    assert_int_equal(mu_remote_value_fetch(h->value, -1, &error, NULL), -MU_ECANCELLED);
}

/* A chief without workers, whose queue is full and whose server has gone. */
TEST(test_threads_that_wait_on_a_chief)
{
    struct waiter waiters[] = {
        {.wait = wait_join, .code = -MU_ECLOSED},
        {.wait = wait_room, .code = -MU_ECLOSED},
        {.wait = wait_read, .code = -MU_ECLOSED},
        {.wait = wait_job, .code = -MU_ECLOSED},
        {.wait = wait_value, .code = -MU_ECANCELLED}, /* its closure was */
    };
    const mu_variable_spec spec = {.name = "v", .dtype = MU_F32};
    size_t count = sizeof waiters / sizeof waiters[0];
    struct handles h = {0};
    mu_node_options options;
    struct nodes nodes;
    mu_error error = {0};
    mu_node *server;

    nodes_init(&nodes, 1, 1);
    server = nodes_open(&nodes, "ps", 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.queue_max = 1;
    h.node = nodes_open_with(&nodes, &options);
    h.coordinator = nodes_coordinator(h.node);
    if (mu_variable_open(h.node, &spec, SOON_MS, &error, &h.variable) != 0)
        fail_msg("%s", error.message);
    nodes_close(&nodes, server);
    assert_int_equal(
        mu_coordinator_schedule(h.coordinator, "absent", NULL, 0, &error, &h.value), 0);
    start_waiters(waiters, count, &h);
    nodes_close(&nodes, h.node);
    check_waiters(waiters, count);
    check_handles_are_closed(&h);
    mu_coordinator_close(h.coordinator);
    mu_variable_close(h.variable);
    mu_remote_value_free(h.value);
    nodes_done(&nodes);
}

/* ---- calls that wait, in functions ---- */

struct inside {
    wait_fn wait;
    atomic_int started;
    int first; /* what the call came to */
    int again; /* and the same call after it */
};

static int wait_inside(mu_run *run, void *user)
{
    struct inside *inside = user;
    struct handles handles = {.node = mu_run_node(run)};
    mu_error error;

    atomic_store(&inside->started, 1);
    inside->first = inside->wait(&handles, &error);
    inside->again = inside->wait(&handles, &error);
    return 0;
}

/* A function that waits for its own node ends when the node begins to close. */
static void check_function_that_waits(wait_fn wait)
{
    struct inside inside = {.wait = wait};
    mu_coordinator *coordinator;
    struct nodes nodes;
    mu_error error = {0};
    mu_node *worker;

    nodes_init(&nodes, 1, 1);
    worker = nodes_open(&nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(worker, "wait", wait_inside, &inside, 0),
                     0);
    assert_int_equal(mu_node_serve(worker), 0);
    coordinator = nodes_coordinator(nodes_open(&nodes, "chief", 0));
    assert_int_equal(mu_coordinator_schedule(coordinator, "wait", NULL, 0, &error, NULL),
                     0);
    assert_true(wait_count(&inside.started, 1));
    for (int i = 0; i < HOLD_PAUSES; i++)
        nodes_pause();
    assert_int_equal(inside.first, 0);
    nodes_close(&nodes, worker);
    assert_int_equal(inside.first, -MU_ECLOSED);
    assert_int_equal(inside.again, -MU_ECLOSED);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

TEST(test_functions_that_wait)
{
    check_function_that_waits(wait_job);
    check_function_that_waits(wait_open);
}

/* ---- calls that begin while the node closes ---- */

/* Until one call of each kind is refused. */
static void *hammer(void *arg)
{
    struct handles *h = arg;
    mu_error error;
    int read = 0;
    int schedule = 0;

    while (read != -MU_ECLOSED || schedule != -MU_ECLOSED) {
        read = wait_read(h, &error);
        assert_true(read == 0 || read == -MU_ECLOSED);
        schedule =
            mu_coordinator_schedule(h->coordinator, "arrive", NULL, -1, &error, NULL);
        assert_true(schedule == 0 || schedule == -MU_ECLOSED);
    }
    return NULL;
}

static void close_under_hammers(struct nodes *nodes, int round)
{
    const mu_variable_spec spec = {.name = "v", .dtype = MU_F32};
    pthread_t threads[HAMMERS];
    struct handles h = {.node = nodes_open(nodes, "client", round)};
    mu_error error = {0};

    h.coordinator = nodes_coordinator(h.node);
    if (mu_variable_open(h.node, &spec, SOON_MS, &error, &h.variable) != 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < HAMMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &h), 0);
    for (int i = 0; i < round; i++)
        nodes_pause();
    nodes_close(nodes, h.node);
    for (int i = 0; i < HAMMERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    mu_coordinator_close(h.coordinator);
    mu_variable_close(h.variable);
}

TEST(test_close_against_calls)
{
    struct gate gate;
    struct nodes nodes;
    mu_node *worker;

    gate_init(&gate);
    nodes_init(&nodes, 1, 1);
    (void)nodes_open(&nodes, "ps", 0);
    (void)nodes_open(&nodes, "chief", 0);
    worker = nodes_open(&nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(worker, "arrive", arrive, &gate,
                                               MU_FUNCTION_INLINE),
                     0);
    assert_int_equal(mu_node_serve(worker), 0);
    for (int round = 0; round < ROUNDS; round++)
        close_under_hammers(&nodes, round);
    nodes_done(&nodes);
    (void)sem_destroy(&gate.open);
}

/* ---- on the program's own loop ---- */

/* When the coordinator of a node on a loop is closed. */
enum order { BEFORE_NODE, AFTER_NODE, WHEN_GONE };

struct embedded {
    enum order order;
    struct gate *gate;
    mu_node *node;
    mu_coordinator *coordinator;
    bool asked; /* the error was asked for, and was not told yet */
    bool closed;
    uv_timer_t timer;
};

static void on_closed(void *user)
{
    struct embedded *e = user;

    if (e->order == WHEN_GONE)
        mu_coordinator_close(e->coordinator);
    e->closed = true;
}

static void schedule_on_loop(struct embedded *e)
{
    mu_error error = {0};

    assert_int_equal(
        mu_coordinator_schedule(e->coordinator, "pass", NULL, 0, &error, NULL), 0);
    assert_int_equal(
        mu_coordinator_schedule(e->coordinator, "absent", NULL, 0, &error, NULL), 0);
}

/* One closure runs, the other failed, its error was asked for: all of that is under way
 * when everything is closed. */
static void on_tick(uv_timer_t *timer)
{
    struct embedded *e = timer->data;
    mu_coordinator_stats counts;
    mu_error error = {0};

    mu_coordinator_get_stats(e->coordinator, &counts);
    if (counts.scheduled == 0)
        schedule_on_loop(e);
    if (atomic_load(&e->gate->started) == 0 || counts.failed == 0)
        return;
    assert_int_equal(mu_coordinator_schedule(e->coordinator, "pass", NULL, 0, &error,
                                             NULL),
                     -MU_EAGAIN);
    if (!e->asked) {
        e->asked = true;
        return;
    }
    uv_close((uv_handle_t *)timer, NULL);
    if (e->order == BEFORE_NODE)
        mu_coordinator_close(e->coordinator);
    mu_node_close_async(e->node, on_closed, e);
    if (e->order == AFTER_NODE)
        mu_coordinator_close(e->coordinator);
}

static void check_close_on_loop(enum order order)
{
    struct gate gate;
    struct embedded e = {.order = order, .gate = &gate};
    mu_node_options options;
    struct nodes nodes;
    mu_error error = {0};
    mu_node *worker;
    uv_loop_t loop;

    gate_init(&gate);
    nodes_init(&nodes, 1, 0);
    nodes.window = 2;
    worker = nodes_open(&nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(worker, "pass", pass, &gate, 0), 0);
    assert_int_equal(mu_node_serve(worker), 0);
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
    assert_true(e.closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    gate_open(&gate);
    nodes_done(&nodes);
    (void)sem_destroy(&gate.open);
}

TEST(test_close_on_the_programs_loop)
{
    check_close_on_loop(BEFORE_NODE);
    check_close_on_loop(AFTER_NODE);
    check_close_on_loop(WHEN_GONE);
}

/* ---- the default log ---- */

/* Standard error becomes a socket that keeps writes apart. */
static int replace_stderr(int *ret_before)
{
    const struct timeval soon = {SOON_MS / 1000, 0};
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    *ret_before = dup(STDERR_FILENO);
    assert_true(*ret_before >= 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
    return ends[0];
}

/* One write, which must be a line like "21:03:59.123 INFO  /job:chief/task:0 links: ...".
 * False when there is none. */
static bool check_line(int log, int flags)
{
    char line[4096];
    ssize_t size = recv(log, line, sizeof line - 1, flags);
    char level[6] = "";
    char task[64] = "";
    unsigned hours, minutes, seconds, ms;

    if (size <= 0)
        return false;
    line[size] = '\0';
    if (strchr(line, '\n') != line + size - 1 ||
        sscanf(line, "%2u:%2u:%2u.%3u %5s %63s", &hours, &minutes, &seconds, &ms, level,
               task) != 6 ||
        strncmp(task, "/job:", 5) != 0) {
        print_message("not a line of the log: %s", line); /* stderr is the log's */
        fail();
    }
    return true;
}

/* So that lines of several nodes, and of several programs, do not mix. */
TEST(test_log_line_is_one_write)
{
    static const char *const types[] = {"worker", "chief"};
    struct nodes nodes;
    mu_node_options options;
    int before;
    int log;

    nodes_init(&nodes, 1, 0);
    log = replace_stderr(&before);
    for (int i = 0; i < 2; i++) {
        nodes_options(&nodes, types[i], 0, &options);
        options.log = NULL;
        options.log_level = MU_LOG_DEBUG;
        (void)nodes_open_with(&nodes, &options);
    }
    assert_true(check_line(log, 0));
    assert_true(check_line(log, 0));
    nodes_done(&nodes);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    (void)close(before);
    while (check_line(log, MSG_DONTWAIT))
        continue;
    (void)close(log);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "left-behind") == 0)
        play_left_behind();
    return tests_run(NULL, NULL);
}
