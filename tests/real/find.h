/* Nodes that find each other, for tests: nobody writes an address, ports are chosen by
 * the system, and all start in any order. Tasks are nodes of this process; a worker that
 * is killed is a process of its own, `<this> worker RESOLVER WHERE INDEX`. */
#ifndef MUSTER_TESTS_REAL_FIND_H
#define MUSTER_TESTS_REAL_FIND_H

#include "tests/real/tasks.h"

#define FINDERS_TASKS "chief=1,worker=2,ps=1"

/* The shortest that there are. */
enum { FINDERS_MAX = 8, FINDERS_FOLDER_TTL_S = 3, FINDERS_ETCD_TTL_S = 2 };

struct find;

/* A task of this process: it opens on a thread of its own, since that waits for all. */
struct find_task {
    struct find *f;
    char type[16];
    int index;
    pthread_t thread;
    mu_resolver *resolver;
    mu_node *node;
    mu_error error;
    int rv;
    unsigned resolve_ms;
    bool is_opening;
    bool is_unnamed; /* the options do not say who it is */
};

struct find {
    struct nodes nodes; /* for its log */
    const char *resolver;
    char where[128]; /* a folder, or etcd's urls */
    char folder[64];
    struct find_task tasks[FINDERS_MAX];
    int tasks_count;
    const char *advertise; /* NULL: nothing is said */
    pid_t worker;
    int ttl_s;        /* of the tasks that begin; 0: the usual one */
    char cluster[32]; /* its name; "": the usual one */
};

static inline int find_run_pid(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_int((int64_t)getpid()));
    return 0;
}

/* ---- Tasks ---- */

static inline void find_set(mu_resolver *resolver, const char *name, const char *value)
{
    mu_error error = {0};

    if (mu_resolver_set(resolver, name, value, &error) != 0)
        fail_msg("%s", error.message);
}

static inline mu_resolver *find_resolver(const char *name, const char *where, int ttl_s)
{
    bool is_etcd = strcmp(name, "etcd") == 0;
    mu_resolver *resolver = NULL;
    mu_error error = {0};
    char ttl[16];

    if (mu_resolver_new(name, &error, &resolver) != 0)
        fail_msg("%s", error.message);
    find_set(resolver, is_etcd ? "endpoints" : "path", where);
    if (strcmp(name, "file") == 0)
        return resolver;
    if (ttl_s == 0)
        ttl_s = is_etcd ? FINDERS_ETCD_TTL_S : FINDERS_FOLDER_TTL_S;
    (void)snprintf(ttl, sizeof ttl, "%d", ttl_s);
    find_set(resolver, "tasks", FINDERS_TASKS);
    find_set(resolver, "ttl", ttl);
    return resolver;
}

static inline void find_options(const struct find_task *task, mu_node_options *options)
{
    nodes_options(&task->f->nodes, task->type, task->index, options);
    if (task->is_unnamed)
        options->task_type = NULL;
    options->cluster = NULL;
    options->resolver = task->resolver;
    options->resolve_ms = task->resolve_ms;
    options->bind_address = "tcp://127.0.0.1:0";
    options->advertise_address = task->f->advertise;
    if (task->f->cluster[0] != '\0')
        options->cluster_name = task->f->cluster;
    options->heartbeat_ms = 100;
    options->silence_ms = 600;
}

static inline void *find_open_task(void *arg)
{
    struct find_task *task = arg;
    mu_node_options options;

    find_options(task, &options);
    task->rv = mu_node_open(&options, &task->error, &task->node);
    if (task->rv != 0)
        return NULL;
    (void)mu_node_register_function(task->node, "pid", find_run_pid, NULL, 0);
    (void)mu_node_serve(task->node);
    return NULL;
}

static inline struct find_task *find_begin_by(struct find *f, const char *type, int index,
                                              bool is_unnamed)
{
    struct find_task *task = &f->tasks[f->tasks_count++];

    assert_true(f->tasks_count <= FINDERS_MAX);
    *task = (struct find_task){.f = f, .index = index, .resolve_ms = SOON_MS};
    (void)snprintf(task->type, sizeof task->type, "%s", type);
    task->resolver = find_resolver(f->resolver, f->where, f->ttl_s);
    task->is_opening = true;
    task->is_unnamed = is_unnamed;
    if (is_unnamed)
        find_set(task->resolver, "task_type", type);
    assert_int_equal(pthread_create(&task->thread, NULL, find_open_task, task), 0);
    return task;
}

static inline struct find_task *find_begin(struct find *f, const char *type, int index)
{
    return find_begin_by(f, type, index, false);
}

static inline mu_node *find_opened(struct find_task *task)
{
    assert_int_equal(pthread_join(task->thread, NULL), 0);
    task->is_opening = false;
    if (task->rv != 0)
        fail_msg("%s %d: %s; the log:\n%s", task->type, task->index, task->error.message,
                 task->f->nodes.log.text);
    return task->node;
}

/* Until it has opened, or has not. */
static inline void find_join(struct find_task *task)
{
    if (task->is_opening)
        (void)pthread_join(task->thread, NULL);
    task->is_opening = false;
}

static inline void find_close(struct find_task *task)
{
    mu_error error = {0};

    find_join(task);
    if (mu_node_close(task->node, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    task->node = NULL;
    mu_resolver_free(task->resolver);
    task->resolver = NULL;
}

/* ---- A worker that is a process ---- */

static inline int find_be_worker(const char *resolver, const char *where,
                                 const char *index)
{
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error = {0};
    int rv;

    mu_node_options_init(&options);
    options.resolver = find_resolver(resolver, where, 0);
    options.task_type = "worker";
    options.task_index = atoi(index);
    if (getenv("MUSTER_CLUSTER_NAME") != NULL)
        options.cluster_name = getenv("MUSTER_CLUSTER_NAME");
    options.bind_address = "tcp://127.0.0.1:0";
    options.heartbeat_ms = 100;
    options.silence_ms = 600;
    options.log_level = MU_LOG_WARN;
    rv = mu_node_open(&options, &error, &node);
    if (rv == 0)
        rv = mu_node_register_function(node, "pid", find_run_pid, NULL, 0);
    if (rv == 0)
        rv = mu_node_main(node, &error);
    if (rv != 0)
        (void)fprintf(stderr, "worker %s: %s\n", index, error.message);
    (void)mu_node_close(node, SOON_MS, NULL);
    mu_resolver_free(options.resolver);
    return rv == 0 ? 0 : 1;
}

static inline void find_start_worker(struct find *f, int index)
{
    char number[16];
    char resolver[32];
    char *arguments[] = {"test", "worker", resolver, f->where, number, NULL};

    (void)snprintf(number, sizeof number, "%d", index);
    (void)snprintf(resolver, sizeof resolver, "%s", f->resolver);
    assert_int_equal(f->worker, 0);
    f->worker = tasks_start_program(arguments, -1);
}

static inline void find_kill_worker(struct find *f)
{
    assert_int_equal(kill(f->worker, SIGKILL), 0);
    (void)tasks_end(&f->worker);
}

/* ---- Fixtures ---- */

static inline void find_set_up(struct find *f)
{
    memset(f, 0, sizeof *f);
    (void)pthread_mutex_init(&f->nodes.log.lock, NULL);
}

static inline int find_set_up_folder(void **state)
{
    static struct find find;

    find_set_up(&find);
    find.resolver = "directory";
    (void)snprintf(find.folder, sizeof find.folder, "/tmp/muster-folder-XXXXXX");
    assert_non_null(mkdtemp(find.folder));
    (void)snprintf(find.where, sizeof find.where, "%s", find.folder);
    *state = &find;
    return 0;
}

static inline int find_tear_down(void **state)
{
    struct find *f = *state;
    char command[128];

    if (f->worker > 0)
        find_kill_worker(f);
    /* None is closed while another one still looks for it. */
    for (int i = 0; i < f->tasks_count; i++)
        find_join(&f->tasks[i]);
    while (f->tasks_count > 0)
        find_close(&f->tasks[--f->tasks_count]);
    if (f->folder[0] != '\0') {
        (void)snprintf(command, sizeof command, "rm -r %s", f->folder);
        assert_int_equal(system(command), 0);
    }
    (void)pthread_mutex_destroy(&f->nodes.log.lock);
    return 0;
}

/* ---- Stories, over a folder and over etcd ---- */

/* The pid of the worker that ran it. */
static inline int64_t find_run_on(struct find *f, mu_coordinator *coordinator, int worker)
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
        fail_msg("%s; the log:\n%s", error.message, f->nodes.log.text);
    assert_int_equal(mu_value_get_int(result, &pid), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return pid;
}

/* The last one to come is the chief; worker 1 is a process. */
static inline mu_node *find_open_all(struct find *f)
{
    struct find_task *ps = find_begin(f, "ps", 0);
    struct find_task *worker = find_begin(f, "worker", 0);
    struct find_task *chief;

    nodes_wait_log(&f->nodes, "are not there yet");
    find_start_worker(f, 1);
    chief = find_begin(f, "chief", 0);
    (void)find_opened(ps);
    (void)find_opened(worker);
    return find_opened(chief);
}

static inline void find_play(struct find *f)
{
    mu_node *chief = find_open_all(f);
    mu_coordinator *coordinator = nodes_coordinator(chief);

    assert_int_equal(mu_node_task_count(chief, "worker"), 2);
    assert_null(strstr(mu_node_address(chief), ":0"));
    assert_int_equal(find_run_on(f, coordinator, 0), getpid());
    assert_int_equal(find_run_on(f, coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
}

/* Its place is free when it counts as gone; then another takes it, on another port. */
static inline void find_play_killed_worker(struct find *f)
{
    mu_coordinator *coordinator = nodes_coordinator(find_open_all(f));
    pid_t first = f->worker;

    assert_int_equal(find_run_on(f, coordinator, 1), first);
    find_kill_worker(f);
    find_start_worker(f, 1);
    assert_int_equal(find_run_on(f, coordinator, 1), f->worker);
    assert_int_not_equal(f->worker, first);
    assert_int_equal(find_run_on(f, coordinator, 0), getpid());
    mu_coordinator_close(coordinator);
}

static inline void find_play_taken_name(struct find *f)
{
    struct find_task second;
    mu_node_options options;

    (void)find_open_all(f);
    second = (struct find_task){.f = f, .index = 0, .resolve_ms = SOON_MS};
    (void)snprintf(second.type, sizeof second.type, "ps");
    second.resolver = find_resolver(f->resolver, f->where, f->ttl_s);
    find_options(&second, &options);
    assert_int_equal(mu_node_open(&options, &second.error, &second.node), -MU_EEXISTS);
    assert_non_null(strstr(second.error.message, "another process's, at 127.0.0.1:"));
    assert_non_null(strstr(second.error.message, "lives"));
    mu_resolver_free(second.resolver);
}

static inline void find_play_missing(struct find *f)
{
    struct find_task task = {.f = f, .index = 0, .resolve_ms = 1500};
    mu_node_options options;

    (void)snprintf(task.type, sizeof task.type, "chief");
    task.resolver = find_resolver(f->resolver, f->where, f->ttl_s);
    find_options(&task, &options);
    assert_int_equal(mu_node_open(&options, &task.error, &task.node), -MU_EDEADLINE);
    if (strstr(task.error.message, "3 of 4 tasks are not there yet: /job:worker/task:0, "
                                   "/job:worker/task:1, /job:ps/task:0") == NULL)
        fail_msg("%s", task.error.message);
    mu_resolver_free(task.resolver);
}

static inline void find_play_any_index(struct find *f)
{
    struct find_task *tasks[4] = {find_begin(f, "worker", -1), find_begin(f, "ps", 0),
                                  find_begin_by(f, "chief", 0, true),
                                  find_begin_by(f, "worker", -1, true)};
    const char *names[2];

    for (int i = 0; i < 4; i++)
        (void)find_opened(tasks[i]);
    names[0] = mu_node_task(tasks[0]->node);
    names[1] = mu_node_task(tasks[3]->node);
    assert_string_not_equal(names[0], names[1]);
    for (int i = 0; i < 2; i++)
        assert_true(strcmp(names[i], "/job:worker/task:0") == 0 ||
                    strcmp(names[i], "/job:worker/task:1") == 0);
}

static inline void find_set_variable(const char *name, const char *value)
{
    if (value == NULL)
        assert_int_equal(unsetenv(name), 0);
    else
        assert_int_equal(setenv(name, value, 1), 0);
}

/* Nothing is said to the node: variables name the source, the tasks, and which one it is;
 * it announces itself all the same, and takes it back. */
static inline void find_play_auto(struct find *f, const char *variable)
{
    mu_node_options options;
    mu_error error = {0};
    mu_resolver *resolver = NULL;
    mu_node *node = NULL;

    find_set_variable(variable, f->where);
    find_set_variable("MUSTER_TASKS", "chief=1");
    find_set_variable("MUSTER_TYPE", "chief");
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
    find_set_variable(variable, NULL);
    find_set_variable("MUSTER_TASKS", NULL);
    find_set_variable("MUSTER_TYPE", NULL);
    assert_int_equal(mu_node_close(node, SOON_MS, &error), 0);
    mu_resolver_free(resolver);
}

/* ---- Files ---- */

/* False: there is no such file. */
static inline bool find_read_entry(const struct find *f, const char *name, char *out,
                                   int size)
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

#endif
