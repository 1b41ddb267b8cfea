/* Nodes that find each other: nobody writes an address, ports are chosen by the system,
 * and all start in any order. Over a folder, and over a real etcd; workers that are
 * killed are processes: `<this> worker RESOLVER WHERE INDEX`. */
#include "tests/real/etcd.h"

#include "tests/real/cli.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <uv.h>

#define TASKS "chief=1,worker=2,ps=1"

enum { TASKS_MAX = 8, TTL_S = 3 };

struct fixture;

/* A task of this process: it opens on a thread of its own, since that waits for all. */
struct task {
    struct fixture *fixture;
    char type[16];
    int index;
    pthread_t thread;
    mu_resolver *resolver;
    mu_node *node;
    mu_error error;
    int rv;
    unsigned resolve_ms;
    bool is_opening;
    bool is_unnamed;            /* the options do not say who it is */
};

struct fixture {
    struct nodes nodes;         /* for its log */
    struct etcd etcd;
    const char *resolver;
    char where[128];            /* a folder, or etcd's urls */
    char folder[64];
    struct task tasks[TASKS_MAX];
    int tasks_count;
    const char *advertise;      /* NULL: nothing is said */
    pid_t worker;
    int ttl_s;                  /* of the tasks that begin; 0: the usual one */
};

static struct fixture fixture;

static int run_pid(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_int((int64_t)getpid()));
    return 0;
}

/* ---- Tasks ---- */

static void set(mu_resolver *resolver, const char *name, const char *value)
{
    mu_error error = {0};

    if (mu_resolver_set(resolver, name, value, &error) != 0)
        fail_msg("%s", error.message);
}

static mu_resolver *make_resolver(const char *name, const char *where)
{
    bool is_etcd = strcmp(name, "etcd") == 0;
    mu_resolver *resolver = NULL;
    mu_error error = {0};
    char ttl[16];

    if (mu_resolver_new(name, &error, &resolver) != 0)
        fail_msg("%s", error.message);
    set(resolver, is_etcd ? "endpoints" : "path", where);
    if (strcmp(name, "file") == 0)
        return resolver;
    (void)snprintf(ttl, sizeof ttl, "%d", fixture.ttl_s == 0 ? TTL_S : fixture.ttl_s);
    set(resolver, "tasks", TASKS);
    set(resolver, "ttl", ttl);
    return resolver;
}

static void task_options(const struct task *task, mu_node_options *options)
{
    nodes_options(&task->fixture->nodes, task->type, task->index, options);
    if (task->is_unnamed)
        options->task_type = NULL;
    options->cluster = NULL;
    options->resolver = task->resolver;
    options->resolve_ms = task->resolve_ms;
    options->bind_address = "tcp://127.0.0.1:0";
    options->advertise_address = task->fixture->advertise;
    options->heartbeat_ms = 100;
    options->silence_ms = 600;
}

static void *open_task(void *arg)
{
    struct task *task = arg;
    mu_node_options options;

    task_options(task, &options);
    task->rv = mu_node_open(&options, &task->error, &task->node);
    if (task->rv != 0)
        return NULL;
    (void)mu_node_register(task->node, "pid", run_pid, NULL, 0);
    (void)mu_node_serve(task->node);
    return NULL;
}

static struct task *begin_task_by(struct fixture *f, const char *type, int index,
                                  bool is_unnamed)
{
    struct task *task = &f->tasks[f->tasks_count++];

    assert_true(f->tasks_count <= TASKS_MAX);
    *task = (struct task){.fixture = f, .index = index, .resolve_ms = SOON_MS};
    (void)snprintf(task->type, sizeof task->type, "%s", type);
    task->resolver = make_resolver(f->resolver, f->where);
    task->is_opening = true;
    task->is_unnamed = is_unnamed;
    if (is_unnamed)
        set(task->resolver, "task_type", type);
    assert_int_equal(pthread_create(&task->thread, NULL, open_task, task), 0);
    return task;
}

static struct task *begin_task(struct fixture *f, const char *type, int index)
{
    return begin_task_by(f, type, index, false);
}

static mu_node *end_opening(struct task *task)
{
    assert_int_equal(pthread_join(task->thread, NULL), 0);
    task->is_opening = false;
    if (task->rv != 0)
        fail_msg("%s %d: %s; the log:\n%s", task->type, task->index, task->error.message,
                 task->fixture->nodes.log.text);
    return task->node;
}

static void close_task(struct task *task)
{
    mu_error error = {0};

    if (task->is_opening)
        (void)pthread_join(task->thread, NULL);
    task->is_opening = false;
    if (mu_node_close(task->node, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    task->node = NULL;
    mu_resolver_free(task->resolver);
    task->resolver = NULL;
}

/* ---- A worker that is a process ---- */

static int be_worker(const char *resolver, const char *where, const char *index)
{
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error = {0};
    int rv;

    mu_node_options_init(&options);
    options.resolver = make_resolver(resolver, where);
    options.task_type = "worker";
    options.task_index = atoi(index);
    options.bind_address = "tcp://127.0.0.1:0";
    options.heartbeat_ms = 100;
    options.silence_ms = 600;
    options.log_level = MU_LOG_WARN;
    rv = mu_node_open(&options, &error, &node);
    if (rv == 0)
        rv = mu_node_register(node, "pid", run_pid, NULL, 0);
    if (rv == 0)
        rv = mu_node_main(node, &error);
    if (rv != 0)
        (void)fprintf(stderr, "worker %s: %s\n", index, error.message);
    (void)mu_node_close(node, SOON_MS, NULL);
    mu_resolver_free(options.resolver);
    return rv == 0 ? 0 : 1;
}

static void start_worker(struct fixture *f, int index)
{
    char number[16];
    char resolver[32];
    char *arguments[] = {"test", "worker", resolver, f->where, number, NULL};
    pid_t parent = getpid();

    (void)snprintf(number, sizeof number, "%d", index);
    (void)snprintf(resolver, sizeof resolver, "%s", f->resolver);
    assert_int_equal(f->worker, 0);
    f->worker = fork();
    assert_true(f->worker >= 0);
    if (f->worker > 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        (void)execv("/proc/self/exe", arguments);
    _exit(126);
}

static void kill_worker(struct fixture *f)
{
    assert_int_equal(kill(f->worker, SIGKILL), 0);
    assert_int_equal(waitpid(f->worker, NULL, 0), f->worker);
    f->worker = 0;
}

/* ---- Fixtures ---- */

static void set_up_nodes(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    (void)pthread_mutex_init(&f->nodes.log.lock, NULL);
}

static int set_up_folder(void **state)
{
    set_up_nodes(&fixture);
    fixture.resolver = "directory";
    (void)snprintf(fixture.folder, sizeof fixture.folder, "/tmp/muster-folder-XXXXXX");
    assert_non_null(mkdtemp(fixture.folder));
    (void)snprintf(fixture.where, sizeof fixture.where, "%s", fixture.folder);
    *state = &fixture;
    return 0;
}

static int set_up_etcd(void **state)
{
    set_up_nodes(&fixture);
    *state = &fixture;
    if (!etcd_is_here())
        return 0;
    fixture.resolver = "etcd";
    etcd_open(&fixture.etcd);
    /* Nobody listens at the first one. */
    (void)snprintf(fixture.where, sizeof fixture.where,
                   "http://127.0.0.1:1,http://127.0.0.1:%d", fixture.etcd.port);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];

    if (f->worker > 0)
        kill_worker(f);
    while (f->tasks_count > 0)
        close_task(&f->tasks[--f->tasks_count]);
    if (f->etcd.pid > 0)
        etcd_close(&f->etcd);
    if (f->folder[0] != '\0') {
        (void)snprintf(command, sizeof command, "rm -r %s", f->folder);
        assert_int_equal(system(command), 0);
    }
    (void)pthread_mutex_destroy(&f->nodes.log.lock);
    return 0;
}

/* ---- Stories ---- */

/* The pid of the worker that ran it. */
static int64_t run_on(mu_coordinator *coordinator, int worker)
{
    mu_closure_options options;
    mu_remote_value *value = NULL;
    mu_value *result = NULL;
    mu_error error = {0};
    int64_t pid = 0;

    mu_closure_options_init(&options);
    options.worker = worker;
    options.attempts_max = 100;
    if (mu_coordinator_schedule_with(coordinator, "pid", NULL, &options, SOON_MS, &error,
                                     &value) != 0 ||
        mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s; the log:\n%s", error.message, fixture.nodes.log.text);
    assert_int_equal(mu_value_get_int(result, &pid), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return pid;
}

/* The last one to come is the chief; worker 1 is a process. */
static mu_node *open_all(struct fixture *f)
{
    struct task *ps = begin_task(f, "ps", 0);
    struct task *worker = begin_task(f, "worker", 0);
    struct task *chief;

    nodes_wait_log(&f->nodes, "are not there yet");
    start_worker(f, 1);
    chief = begin_task(f, "chief", 0);
    (void)end_opening(ps);
    (void)end_opening(worker);
    return end_opening(chief);
}

static void play_find_and_run(struct fixture *f)
{
    mu_node *chief = open_all(f);
    mu_coordinator *coordinator = nodes_coordinator(chief);

    assert_int_equal(mu_node_task_count(chief, "worker"), 2);
    assert_null(strstr(mu_node_address(chief), ":0"));
    assert_int_equal(run_on(coordinator, 0), getpid());
    assert_int_equal(run_on(coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
}

/* Its place is free when it counts as gone; then another takes it, on another port. */
static void play_killed_worker(struct fixture *f)
{
    mu_coordinator *coordinator = nodes_coordinator(open_all(f));
    pid_t first = f->worker;

    assert_int_equal(run_on(coordinator, 1), first);
    kill_worker(f);
    start_worker(f, 1);
    assert_int_equal(run_on(coordinator, 1), f->worker);
    assert_int_not_equal(f->worker, first);
    assert_int_equal(run_on(coordinator, 0), getpid());
    mu_coordinator_close(coordinator);
}

static void play_taken_name(struct fixture *f)
{
    struct task second;
    mu_node_options options;

    (void)open_all(f);
    second = (struct task){.fixture = f, .index = 0, .resolve_ms = SOON_MS};
    (void)snprintf(second.type, sizeof second.type, "ps");
    second.resolver = make_resolver(f->resolver, f->where);
    task_options(&second, &options);
    assert_int_equal(mu_node_open(&options, &second.error, &second.node), -MU_EEXISTS);
    assert_non_null(strstr(second.error.message, "another process's, at 127.0.0.1:"));
    assert_non_null(strstr(second.error.message, "lives"));
    mu_resolver_free(second.resolver);
}

static void play_missing(struct fixture *f)
{
    struct task task = {.fixture = f, .index = 0, .resolve_ms = 3000};
    mu_node_options options;

    (void)snprintf(task.type, sizeof task.type, "chief");
    task.resolver = make_resolver(f->resolver, f->where);
    task_options(&task, &options);
    assert_int_equal(mu_node_open(&options, &task.error, &task.node), -MU_EDEADLINE);
    if (strstr(task.error.message,
               "3 of 4 tasks are not there yet: /job:worker/task:0, "
               "/job:worker/task:1, /job:ps/task:0") == NULL)
        fail_msg("%s", task.error.message);
    mu_resolver_free(task.resolver);
}

static void play_any_index(struct fixture *f)
{
    struct task *tasks[4] = {
        begin_task(f, "worker", -1), begin_task(f, "ps", 0),
        begin_task_by(f, "chief", 0, true), begin_task_by(f, "worker", -1, true)};
    const char *names[2];

    for (int i = 0; i < 4; i++)
        (void)end_opening(tasks[i]);
    names[0] = mu_node_task(tasks[0]->node);
    names[1] = mu_node_task(tasks[3]->node);
    assert_string_not_equal(names[0], names[1]);
    for (int i = 0; i < 2; i++)
        assert_true(strcmp(names[i], "/job:worker/task:0") == 0 ||
                    strcmp(names[i], "/job:worker/task:1") == 0);
}

static void test_folder_find_and_run(void **state)
{
    play_find_and_run(*state);
    assert_non_null(*state);
}

static void test_folder_killed_worker(void **state)
{
    play_killed_worker(*state);
    assert_non_null(*state);
}

static void test_folder_taken_name(void **state)
{
    play_taken_name(*state);
    assert_non_null(*state);
}

static void test_folder_missing(void **state)
{
    play_missing(*state);
    assert_non_null(*state);
}

static void test_folder_any_index(void **state)
{
    play_any_index(*state);
    assert_non_null(*state);
}

/* What a task told is gone: it stood still for too long, say. It tells it anew, and does
 * not take itself for one that was taken out. */
static void test_folder_forgotten(void **state)
{
    static const char gone[] = "this task is not there any more, and is told anew";
    struct fixture *f = *state;
    mu_node *chief = open_all(f);
    mu_coordinator *coordinator = nodes_coordinator(chief);
    char path[128];

    f->ttl_s = 60;
    (void)end_opening(begin_task(f, "worker", 2));
    assert_int_equal(run_on(coordinator, 2), getpid());
    (void)snprintf(path, sizeof path, "%s/worker-2", f->folder);
    for (int i = 0; i < SOON_MS && !nodes_has_logged(&f->nodes, gone); i++) {
        (void)unlink(path);     /* again and again: it may just be told once more */
        nodes_pause();
    }
    nodes_wait_log(&f->nodes, gone);
    for (int i = 0; i < SOON_MS && access(path, F_OK) != 0; i++)
        nodes_pause();
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(run_on(coordinator, 2), getpid());
    nodes_wait_log(&f->nodes, "the cluster can be looked at again");
    assert_false(nodes_has_logged(&f->nodes, "which the cluster has no more"));
    mu_coordinator_close(coordinator);
}

/* A process that comes while the folder is away waits for it. */
static void test_folder_away(void **state)
{
    struct fixture *f = *state;
    char away[128];
    struct task *ps;

    (void)snprintf(away, sizeof away, "%s.away", f->folder);
    assert_int_equal(rename(f->folder, away), 0);
    ps = begin_task(f, "ps", 0);
    nodes_wait_log(&f->nodes, "ps-0\" cannot be written: No such file or directory");
    assert_int_equal(rename(away, f->folder), 0);
    (void)begin_task(f, "worker", 0);
    (void)begin_task(f, "worker", 1);
    (void)end_opening(begin_task(f, "chief", 0));
    assert_non_null(end_opening(ps));
}

/* A task that leaves takes its file with it. */
static void test_folder_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    char path[128];
    struct task *ps;

    (void)open_all(f);
    ps = &f->tasks[0];
    (void)snprintf(path, sizeof path, "%s/ps-0", f->folder);
    assert_int_equal(access(path, F_OK), 0);
    close_task(ps);
    assert_int_equal(access(path, F_OK), -1);
}

/* A port that somebody else has: nothing is told. */
static void test_folder_port_in_use(void **state)
{
    struct fixture *f = *state;
    struct task task = {.fixture = f, .index = 0, .type = "chief", .resolve_ms = SOON_MS};
    mu_node_options options;
    char url[64];
    char path[128];
    int fd;
    int port = nodes_free_port(&fd);

    assert_int_equal(listen(fd, 1), 0);
    (void)snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    task.resolver = make_resolver(f->resolver, f->where);
    task_options(&task, &options);
    options.bind_address = url;
    assert_int_equal(mu_node_open(&options, &task.error, &task.node), -MU_EEXISTS);
    if (strstr(task.error.message, "listens there") == NULL)
        fail_msg("%s", task.error.message);
    (void)snprintf(path, sizeof path, "%s/chief-0", f->folder);
    assert_int_equal(access(path, F_OK), -1);
    (void)close(fd);
    mu_resolver_free(task.resolver);
}

/* Where it listens is not what it tells: a name, with the port that was chosen. */
static void test_folder_advertised(void **state)
{
    struct fixture *f = *state;
    char path[128];
    char text[128] = "";
    unsigned port = 0;
    mu_coordinator *coordinator;
    FILE *file;

    f->advertise = "localhost:0";
    coordinator = nodes_coordinator(open_all(f));
    assert_int_equal(run_on(coordinator, 0), getpid());
    assert_int_equal(run_on(coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
    (void)snprintf(path, sizeof path, "%s/worker-0", f->folder);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    assert_int_equal(sscanf(text, "localhost:%u", &port), 1);
    assert_int_not_equal(port, 0);
}

static bool needs_etcd(const struct fixture *f)
{
    if (f->etcd.pid > 0)
        return true;
    print_message("etcd is not installed\n");
    skip();
    return false;
}

static void test_etcd_find_and_run(void **state)
{
    if (needs_etcd(*state))
        play_find_and_run(*state);
    assert_non_null(*state);
}

static void test_etcd_killed_worker(void **state)
{
    if (needs_etcd(*state))
        play_killed_worker(*state);
    assert_non_null(*state);
}

static void test_etcd_taken_name(void **state)
{
    if (needs_etcd(*state))
        play_taken_name(*state);
    assert_non_null(*state);
}

static void test_etcd_missing(void **state)
{
    if (needs_etcd(*state))
        play_missing(*state);
    assert_non_null(*state);
}

static void test_etcd_any_index(void **state)
{
    if (needs_etcd(*state))
        play_any_index(*state);
    assert_non_null(*state);
}

/* Without etcd the last cluster stands, and when it is back all tell it again. */
static void test_etcd_down_for_a_while(void **state)
{
    struct fixture *f = *state;
    mu_coordinator *coordinator;

    if (!needs_etcd(f))
        return;
    coordinator = nodes_coordinator(open_all(f));
    etcd_kill(&f->etcd);
    nodes_wait_log(&f->nodes, "the last one known stands");
    nodes_wait_log(&f->nodes, "cannot be told where this task is");
    assert_int_equal(run_on(coordinator, 0), getpid());
    etcd_start(&f->etcd);
    nodes_wait_log(&f->nodes, "the others can be told again");
    nodes_wait_log(&f->nodes, "the cluster can be looked at again");
    assert_int_equal(run_on(coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
}

/* False: there is no such file. */
static bool read_entry(const struct fixture *f, const char *name, char *out, int size)
{
    char path[128];
    size_t length;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", f->folder, name);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    length = fread(out, 1, (size_t)size - 1, file);
    out[length] = '\0';
    (void)fclose(file);
    return true;
}

/* ---- What is found in the environment ---- */

static void set_variable(const char *name, const char *value)
{
    if (value == NULL)
        assert_int_equal(unsetenv(name), 0);
    else
        assert_int_equal(setenv(name, value, 1), 0);
}

/* Nothing is said to the node: variables name the source, the tasks, and which one it is;
 * it announces itself all the same, and takes it back. */
static void play_auto(struct fixture *f, const char *variable)
{
    mu_node_options options;
    mu_error error = {0};
    mu_resolver *resolver = NULL;
    mu_node *node = NULL;

    set_variable(variable, f->where);
    set_variable("MUSTER_TASKS", "chief=1");
    set_variable("MUSTER_TYPE", "chief");
    assert_int_equal(mu_resolver_new(NULL, &error, &resolver), 0);
    nodes_options(&f->nodes, NULL, -1, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    options.resolve_ms = SOON_MS;
    options.bind_address = "tcp://127.0.0.1:0";
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);
    assert_string_equal(mu_node_task(node), "/job:chief/task:0");
    assert_int_equal(mu_node_task_count(node, "chief"), 1);
    set_variable(variable, NULL);
    set_variable("MUSTER_TASKS", NULL);
    set_variable("MUSTER_TYPE", NULL);
    assert_int_equal(mu_node_close(node, SOON_MS, &error), 0);
    mu_resolver_free(resolver);
}

static void test_folder_auto(void **state)
{
    play_auto(*state, "MUSTER_CLUSTER_DIRECTORY");
    assert_non_null(*state);
}

static void test_etcd_auto(void **state)
{
    struct fixture *f = *state;

    assert_non_null(f);
    if (needs_etcd(f))
        play_auto(f, "MUSTER_ETCD");
}

/* ---- Several sources ---- */

static mu_resolver *unite(mu_resolver *one, mu_resolver *other)
{
    mu_resolver *members[] = {one, other};
    mu_resolver *whole = NULL;
    mu_error error = {0};

    if (mu_resolver_new_union(members, 2, &error, &whole) != 0)
        fail_msg("%s", error.message);
    return whole;
}

static int open_united(struct fixture *f, mu_resolver *whole, mu_error *ret_error,
                       mu_node **ret_node)
{
    mu_node_options options;

    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = whole;
    options.resolve_ms = 3000;
    options.bind_address = "tcp://127.0.0.1:0";
    return mu_node_open(&options, ret_error, ret_node);
}

/* Parameter servers stand in a file, the others tell each other where they are. */
static void test_folder_union_with_fixed(void **state)
{
    static const char ps[] = "{\"ps\":[\"127.0.0.1:9\"]}";
    struct fixture *f = *state;
    mu_resolver *folder = make_resolver("directory", f->where);
    mu_resolver *fixed = NULL;
    mu_resolver *whole;
    mu_cluster *cluster = NULL;
    mu_error error = {0};
    mu_node *node = NULL;
    char text[128];

    set(folder, "tasks", "chief=1");
    assert_int_equal(mu_cluster_parse(ps, strlen(ps), "ps", &error, &cluster), 0);
    assert_int_equal(
        mu_resolver_new_static(cluster, NULL, NULL, -1, &error, &fixed), 0);
    mu_cluster_free(cluster);
    whole = unite(folder, fixed);
    if (open_united(f, whole, &error, &node) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_node_task_count(node, "chief"), 1);
    assert_int_equal(mu_node_task_count(node, "ps"), 1);
    assert_true(read_entry(f, "chief-0", text, sizeof text));
    assert_int_equal(mu_node_close(node, SOON_MS, &error), 0);
    assert_false(read_entry(f, "chief-0", text, sizeof text));
    mu_resolver_free(whole);
}

/* A task that tells two sources where it is would be in the cluster twice: that is said,
 * and what was told is taken back from both. */
static void test_folder_union_of_two(void **state)
{
    struct fixture *f = *state;
    char other[128];
    mu_resolver *first = make_resolver("directory", f->where);
    mu_resolver *second;
    mu_resolver *whole;
    mu_error error = {0};
    mu_node *node = NULL;
    char text[128];

    (void)snprintf(other, sizeof other, "%s-2", f->folder);
    assert_int_equal(mkdir(other, 0700), 0);
    second = make_resolver("directory", other);
    set(first, "tasks", "chief=1");
    set(second, "tasks", "chief=1");
    whole = unite(first, second);
    assert_int_equal(open_united(f, whole, &error, &node), -MU_EEXISTS);
    if (strstr(error.message, "union: ") == NULL)
        fail_msg("%s", error.message);
    assert_false(read_entry(f, "chief-0", text, sizeof text));
    assert_int_equal(rmdir(other), 0);
    mu_resolver_free(whole);
}

/* ---- A loop of the program's own ---- */

struct embedded {
    struct fixture *f;
    uv_loop_t *loop;
    uv_timer_t timer;
    mu_resolver *resolver;
    mu_node *node;
    unsigned ticks;
    char first[128];            /* what the node has told at first */
    bool has_told_again;
    bool is_closed;
};

static int open_embedded(struct embedded *e, const char *tasks, unsigned resolve_ms,
                         mu_error *ret_error)
{
    mu_node_options options;

    set(e->resolver, "tasks", tasks);
    nodes_options(&e->f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = e->resolver;
    options.resolve_ms = resolve_ms;
    options.bind_address = "tcp://127.0.0.1:0";
    options.loop = e->loop;
    return mu_node_open(&options, ret_error, &e->node);
}

static void on_embedded_closed(void *user)
{
    ((struct embedded *)user)->is_closed = true;
}

/* Opening waits on the loop's thread, and runs nothing else of it. What was told is taken
 * back when the time is over. */
static void open_within_the_loop(struct embedded *e)
{
    char text[128];
    mu_error error = {0};

    assert_int_equal(open_embedded(e, "chief=1,worker=1", 500, &error), -MU_EDEADLINE);
    assert_int_equal(e->ticks, 1);
    assert_false(read_entry(e->f, "chief-0", text, sizeof text));
    if (open_embedded(e, "chief=1", SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    assert_true(read_entry(e->f, "chief-0", e->first, sizeof e->first));
}

/* Until the node, which runs on this loop, has told again where it is. */
static void on_embedded_tick(uv_timer_t *timer)
{
    struct embedded *e = timer->data;
    char text[128];

    if (++e->ticks == 1)
        open_within_the_loop(e);
    assert_true(read_entry(e->f, "chief-0", text, sizeof text));
    e->has_told_again = strcmp(text, e->first) != 0;
    if (!e->has_told_again && e->ticks < SOON_MS / 10)
        return;
    uv_close((uv_handle_t *)timer, NULL);
    mu_node_close_async(e->node, on_embedded_closed, e);
}

static void test_folder_programs_loop(void **state)
{
    struct fixture *f = *state;
    struct embedded e = {.f = f};
    char text[128];
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    e.loop = &loop;
    e.resolver = make_resolver("directory", f->where);
    (void)uv_timer_init(&loop, &e.timer);
    e.timer.data = &e;
    (void)uv_timer_start(&e.timer, on_embedded_tick, 0, 10);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(e.is_closed);
    assert_true(e.has_told_again);
    assert_false(read_entry(f, "chief-0", text, sizeof text));
    assert_int_equal(uv_loop_close(&loop), 0);
    mu_resolver_free(e.resolver);
}

/* ---- A slow source ---- */

/* Of the tasks that a second look at etcd, by the address that answers, finds. */
static size_t count_there(struct fixture *f)
{
    char url[64];
    mu_resolver *resolver = make_resolver("etcd", f->where);
    mu_cluster *cluster = NULL;
    mu_error error = {0};
    size_t count = 0;

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", f->etcd.port);
    set(resolver, "endpoints", url);
    set(resolver, "tasks", NULL);
    if (mu_resolver_cluster(resolver, SOON_MS, &error, &cluster) != 0)
        fail_msg("%s", error.message);
    count = mu_cluster_task_count(cluster, "worker") +
            mu_cluster_task_count(cluster, "ps") +
            mu_cluster_task_count(cluster, "chief");
    mu_cluster_free(cluster);
    mu_resolver_free(resolver);
    return count;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The first endpoint takes connections and says nothing, so that each look takes as long
 * as a lease: telling goes on beside it, and nobody's lease ends. */
static void test_etcd_hanging_endpoint(void **state)
{
    struct fixture *f = *state;
    uint64_t end_ms;
    int fd;
    int port;

    if (!needs_etcd(f))
        return;
    port = nodes_free_port(&fd);
    assert_int_equal(listen(fd, 64), 0);
    (void)snprintf(f->where, sizeof f->where,
                   "http://127.0.0.1:%d,http://127.0.0.1:%d", port, f->etcd.port);
    (void)open_all(f);
    end_ms = now_ms() + 4 * TTL_S * 1000;
    while (now_ms() < end_ms) {
        if (count_there(f) != 4)
            fail_msg("a lease has ended; the log:\n%s", f->nodes.log.text);
        for (int i = 0; i < 100; i++)
            nodes_pause();
    }
    assert_int_equal(nodes_has_logged(&f->nodes, "cannot be told"), 0);
    (void)close(fd);
}

/* All of etcd stands still for as long as a lease lasts: when it goes on, so does
 * everything else. */
static void test_etcd_stopped(void **state)
{
    struct fixture *f = *state;
    mu_coordinator *coordinator;

    if (!needs_etcd(f))
        return;
    coordinator = nodes_coordinator(open_all(f));
    assert_int_equal(kill(f->etcd.pid, SIGSTOP), 0);
    nodes_wait_log(&f->nodes, "cannot be told where this task is");
    nodes_wait_log(&f->nodes, "the last one known stands");
    assert_int_equal(run_on(coordinator, 0), getpid());
    assert_int_equal(kill(f->etcd.pid, SIGCONT), 0);
    nodes_wait_log(&f->nodes, "the others can be told again");
    for (int i = 0; i < SOON_MS / 100 && count_there(f) != 4; i++)
        for (int k = 0; k < 100; k++)
            nodes_pause();
    assert_int_equal(count_there(f), 4);
    assert_int_equal(run_on(coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
}

/* ---- A file that changes ---- */

static void write_file(const char *path, const char *text)
{
    char other[160];
    FILE *file;

    (void)snprintf(other, sizeof other, "%s.new", path);
    file = fopen(other, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(other, path), 0);
}

static void wait_workers(mu_node *node, size_t count)
{
    for (int i = 0; i < SOON_MS && mu_node_task_count(node, "worker") != count; i++)
        nodes_pause();
    assert_int_equal(mu_node_task_count(node, "worker"), count);
}

static void test_file_changes(void **state)
{
    struct fixture *f = *state;
    char path[128];
    char text[512];
    int sockets[3];
    int ports[3];
    struct task *chief;

    for (int i = 0; i < 3; i++)
        ports[i] = nodes_free_port(&sockets[i]);
    for (int i = 0; i < 3; i++)
        (void)close(sockets[i]);
    (void)snprintf(path, sizeof path, "%s/cluster.json", f->folder);
    (void)snprintf(f->where, sizeof f->where, "%s", path);
    f->resolver = "file";
    chief = begin_task(f, "chief", 0);
    nodes_wait_log(&f->nodes, "cluster.json");
    (void)snprintf(text, sizeof text,
                   "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:%d\"]}",
                   ports[0], ports[1]);
    write_file(path, text);
    (void)end_opening(chief);
    assert_int_equal(mu_node_task_count(chief->node, "worker"), 1);

    (void)snprintf(text, sizeof text,
                   "{\"chief\":[\"127.0.0.1:%d\"],"
                   "\"worker\":[\"127.0.0.1:%d\",\"127.0.0.1:%d\"]}",
                   ports[0], ports[1], ports[2]);
    write_file(path, text);
    wait_workers(chief->node, 2);

    write_file(path, "{\"chief\": oops");
    nodes_wait_log(&f->nodes, "the last one known stands");
    assert_int_equal(mu_node_task_count(chief->node, "worker"), 2);
}

/* While it is looked for who is there, the file is written anew, by another member of the
 * union: then nobody knows whether what was read is the old or the new one. */
struct rewriter {
    char path[128];
    char text[512];
    atomic_bool is_armed;
    atomic_uint looks;
};

static int rewrite(void *user, int64_t limit_ms, mu_error *ret_error,
                   mu_resolution *ret_resolution)
{
    struct rewriter *rewriter = user;

    (void)limit_ms;
    (void)ret_error;
    (void)ret_resolution;
    if (atomic_exchange(&rewriter->is_armed, false)) {
        const struct timespec pause = {.tv_nsec = 100000000};

        (void)nanosleep(&pause, NULL);
        write_file(rewriter->path, rewriter->text);
    }
    (void)atomic_fetch_add(&rewriter->looks, 1);
    return 0;
}

static mu_resolver *make_rewriting(struct rewriter *rewriter)
{
    const mu_resolver_kind kind = {.name = "rewriter", .resolve = rewrite,
                                   .user = rewriter};
    mu_resolver *members[2] = {make_resolver("file", rewriter->path), NULL};
    mu_resolver *whole = NULL;

    assert_int_equal(mu_resolver_register(&kind, NULL), 0);
    assert_int_equal(mu_resolver_new("rewriter", NULL, &members[1]), 0);
    assert_int_equal(mu_resolver_new_union(members, 2, NULL, &whole), 0);
    return whole;
}

static void test_file_changes_during_look(void **state)
{
    static struct rewriter rewriter;
    struct fixture *f = *state;
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;
    mu_resolver *resolver;
    uint64_t begin_ms;
    int sockets[2];
    int ports[2];
    char text[128];

    for (int i = 0; i < 2; i++)
        ports[i] = nodes_free_port(&sockets[i]);
    for (int i = 0; i < 2; i++)
        (void)close(sockets[i]);
    (void)snprintf(rewriter.path, sizeof rewriter.path, "%s/cluster.json", f->folder);
    (void)snprintf(text, sizeof text, "{\"chief\":[\"127.0.0.1:%d\"]}", ports[0]);
    (void)snprintf(rewriter.text, sizeof rewriter.text,
                   "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:%d\"]}",
                   ports[0], ports[1]);
    write_file(rewriter.path, text);
    resolver = make_rewriting(&rewriter);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);

    for (int i = 0; i < SOON_MS && atomic_load(&rewriter.looks) < 2; i++)
        nodes_pause();
    for (int i = 0; i < 100; i++)   /* then it begins to watch */
        nodes_pause();
    atomic_store(&rewriter.is_armed, true);
    write_file(rewriter.path, text);
    begin_ms = cli_now_ms();
    wait_workers(node, 1);
    assert_in_range(cli_now_ms() - begin_ms, 0, 4000);

    assert_int_equal(mu_node_close(node, SOON_MS, NULL), 0);
    mu_resolver_free(resolver);
    assert_int_equal(mu_resolver_unregister("rewriter", NULL), 0);
}

/* A look-up that hangs, as with name servers that are away: this takes the place of the
 * system's. */
MU_EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                          const struct addrinfo *restrict hints,
                          struct addrinfo **restrict res)
{
    int (*system)(const char *, const char *, const struct addrinfo *,
                  struct addrinfo **);
    const struct timespec pause = {.tv_sec = 2};
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&system, &symbol, sizeof system);
    if (node != NULL && strcmp(node, "hangs.test") == 0) {
        (void)nanosleep(&pause, NULL);
        return EAI_AGAIN;
    }
    return system(node, service, hints, res);
}

/* Opening takes no longer than it may, whoever does not answer. */
static void test_look_up_that_hangs(void **state)
{
    struct fixture *f = *state;
    uint64_t begin_ms = cli_now_ms();
    mu_resolver *resolver = NULL;
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;

    assert_int_equal(mu_resolver_new("dns", &error, &resolver), 0);
    set(resolver, "names", "chief=hangs.test:1");
    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    options.resolve_ms = 300;
    assert_int_not_equal(mu_node_open(&options, &error, &node), 0);
    if (strstr(error.message, "hangs.test: no answer in time") == NULL)
        fail_msg("%s", error.message);
    assert_int_equal(error.code, -MU_EDEADLINE);
    assert_in_range(cli_now_ms() - begin_ms, 200, 1500);
    mu_resolver_free(resolver);
    while (cli_now_ms() - begin_ms < 2500)
        nodes_pause();          /* until the thread behind it has ended, too */
}

/* What was asked for in vain is told, also when no resolver was found. */
static void test_nobody_recognises(void **state)
{
    struct fixture *f = *state;
    mu_node_options options;
    mu_error error = {0};
    mu_resolver *resolver = NULL;
    mu_node *node = NULL;
    mu_value *explained;

    assert_int_equal(mu_resolver_new("auto", &error, &resolver), 0);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    assert_int_equal(mu_node_open(&options, &error, &node), -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "no resolver recognises"));
    explained = mu_resolver_explain(resolver);
    assert_non_null(explained);
    assert_true(mu_value_count(explained) > 10);
    mu_value_free(explained);
    mu_resolver_free(resolver);
}

/* Where this task itself is does not change while it runs: a source that says so is taken
 * for the others, and that is logged. */
static void test_file_moves_own_task(void **state)
{
    struct fixture *f = *state;
    char path[128];
    char text[512];
    struct task *chief;
    int sockets[2];
    int ports[2];

    for (int i = 0; i < 2; i++)
        ports[i] = nodes_free_port(&sockets[i]);
    for (int i = 0; i < 2; i++)
        (void)close(sockets[i]);
    (void)snprintf(path, sizeof path, "%s/cluster.json", f->folder);
    (void)snprintf(f->where, sizeof f->where, "%s", path);
    f->resolver = "file";
    (void)snprintf(text, sizeof text, "{\"chief\":[\"127.0.0.1:%d\"]}", ports[0]);
    write_file(path, text);
    chief = begin_task(f, "chief", 0);
    (void)end_opening(chief);
    (void)snprintf(text, sizeof text,
                   "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:9\"]}",
                   ports[1]);
    write_file(path, text);
    nodes_wait_log(&f->nodes, "is what the cluster calls this task, which is at tcp://");
    wait_workers(chief->node, 1);
    assert_int_equal(mu_node_task_count(chief->node, "chief"), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define FOLDER(name) cmocka_unit_test_setup_teardown(name, set_up_folder, tear_down)
#define ETCD(name) cmocka_unit_test_setup_teardown(name, set_up_etcd, tear_down)
        FOLDER(test_folder_forgotten),
        FOLDER(test_folder_find_and_run),
        FOLDER(test_folder_killed_worker),
        FOLDER(test_folder_taken_name),
        FOLDER(test_folder_missing),
        FOLDER(test_folder_any_index),
        FOLDER(test_folder_away),
        FOLDER(test_folder_leaves_nothing),
        FOLDER(test_folder_advertised),
        FOLDER(test_folder_port_in_use),
        FOLDER(test_folder_programs_loop),
        FOLDER(test_folder_auto),
        FOLDER(test_folder_union_with_fixed),
        FOLDER(test_folder_union_of_two),
        ETCD(test_etcd_auto),
        FOLDER(test_file_moves_own_task),
        ETCD(test_etcd_find_and_run),
        ETCD(test_etcd_killed_worker),
        ETCD(test_etcd_taken_name),
        ETCD(test_etcd_missing),
        ETCD(test_etcd_any_index),
        ETCD(test_etcd_down_for_a_while),
        ETCD(test_etcd_hanging_endpoint),
        ETCD(test_etcd_stopped),
        FOLDER(test_file_changes),
        FOLDER(test_file_changes_during_look),
        FOLDER(test_nobody_recognises),
        FOLDER(test_look_up_that_hangs),
    };

    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return be_worker(argv[2], argv[3], argv[4]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
