/* mu_task_main: one task as a process.
 *
 * The main thread runs the task, and it alone frees the node; a second thread waits for
 * signals (signals.c), and the first signal makes every call return. */
#include "api/task/task.h"

#include "actors/worker_types.h"
#include "api/task_program.h"
#include "node/node.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/arguments.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    KEEP_BYTES = 64 << 20,      /* blocks up to this size stay in the heap when freed */
    KEEP_BYTES_LESS = 32 << 20, /* if the allocator refuses the above */
    ARENAS = 2
};

/* ---- opening ---- */

void mu__task_say(const struct task_main *task, int level, const char *format, ...)
{
    const mu_node_options *options = task->options->node;
    char line[1024];
    va_list args;

    if (level > options->log_level)
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (options->log == NULL ? mu__log_text : options->log)(options->log_user, level,
                                                         task->name, "node", line);
}

/* Messages of many megabytes come and go: keep their memory instead of giving it back to
 * the system and faulting it in again. Few arenas keep an idle node small. */
static void tune_memory(void)
{
    if (mallopt(M_MMAP_THRESHOLD, KEEP_BYTES) == 0)
        (void)mallopt(M_MMAP_THRESHOLD, KEEP_BYTES_LESS);
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
    (void)mallopt(M_ARENA_MAX, ARENAS);
}

/* Set the node for the thread that watches signals. */
static void show_node(struct task_main *task, mu_node *node)
{
    pthread_mutex_lock(&task->lock);
    task->node = node;
    pthread_mutex_unlock(&task->lock);
}

static int open_code(int rv)
{
    return rv == -MU_EEXISTS || rv == -MU_EUNAVAILABLE || rv == -MU_EPERMISSION
               ? MU_EXIT_ADDRESS
               : MU_EXIT_USAGE;
}

static void name_node_task(struct task_main *task, int which)
{
    struct mu__worker_types types = {0};

    if (task->index >= 0)
        mu__task_name(task->names[which], sizeof task->names[which], task->type,
                      task->index);
    else
        (void)snprintf(task->names[which], sizeof task->names[which], "/job:%s",
                       task->type);
    atomic_store(&task->name, task->names[which]);
    atomic_store(&task->drains, mu__worker_types_parse(task->options->node->worker_types,
                                                       NULL, &types) == 0 &&
                                    mu__worker_types_has(&types, task->type));
}

/* Take cluster and task that the node's resolver has found, before any plugin is
 * loaded. */
static int become_found(struct task_main *task, mu_node *node, mu_error *error)
{
    if (task->cluster != NULL)
        return 0;
    task->cluster = mu__node_cluster(node);
    if (task->cluster == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    memcpy(task->type, node->member.type, sizeof task->type);
    task->index = node->offer.own.index;
    name_node_task(task, 1);
    if (node->visible_devices[0] == '\0')
        return 0;
    mu__task_say(task, MU_LOG_INFO, "CUDA_VISIBLE_DEVICES is %s", node->visible_devices);
    return setenv("CUDA_VISIBLE_DEVICES", node->visible_devices, 1) == 0
               ? 0
               : mu_error_set(error, -MU_ENOMEM, "out of memory");
}

/* Those of the caller, with what was assigned. */
static mu_node_options options_of(const struct task_main *task)
{
    mu_node_options options = *task->options->node;

    if (task->offered.cluster != NULL)
        mu__server_apply(&task->offered, &options);
    return options;
}

static int open_task_node(struct task_main *task, mu_error *error)
{
    const mu_node_options options = options_of(task);
    mu_node *node;
    int rv;

    atomic_store(&task->opens, true);
    if (atomic_load(&task->signal) != 0)
        return MU_EXIT_SIGNAL + atomic_load(&task->signal);
    rv = mu__node_open(&options, NULL, &task->find_stop, error, &node);
    atomic_store(&task->opens, false);
    if (rv == -MU_ENOTFOUND && options.resolver != NULL &&
        task->options->no_cluster != NULL)
        rv = mu_error_set(error, -MU_EINVALID, "%s", task->options->no_cluster);
    if (rv != 0)
        return open_code(rv);
    rv = become_found(task, node, error);
    if (rv != 0) {
        (void)mu_node_close(node, 0, NULL);
        return MU_EXIT_FAILED;
    }
    task->opened_ms = uv_hrtime() / 1000000;
    show_node(task, node);
    mu__task_hear_parent(task);
    return MU_EXIT_FINE;
}

static int prepare_task(struct task_main *task, mu_error *error)
{
    const mu_task_options *options = task->options;

    if (mu__server_settings(task->node, &task->offered.config) != 0)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    return options->prepare == NULL ? 0
                                    : options->prepare(task->node, options->user, error);
}

/* ---- running the task ---- */

static bool is_task_entry(const mu_value *map, const char *type, int index)
{
    const char *text = "";
    int64_t number = -1;
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, "type"), &text, &size);
    (void)mu_value_get_int(mu_value_find(map, "index"), &number);
    return strcmp(text, type) == 0 && number == index;
}

static bool is_task_connected_now(const mu_value *tasks, const char *type, int index)
{
    for (size_t i = 0; i < mu_value_count(tasks); i++)
        if (is_task_entry(mu_value_at(tasks, i), type, index))
            return true;
    return false;
}

static bool all_are_up(const struct task_main *task, const mu_value *tasks)
{
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0; mu_cluster_task_at(task->cluster, i, &type, &index, &address) == 0;
         i++)
        if (strcmp(type, "chief") != 0 && strcmp(type, "client") != 0 &&
            !is_task_connected_now(tasks, type, index))
            return false;
    return true;
}

/* Tasks start in any order, and a short program may end before the last task is connected
 * and can be notified that the job is done: wait for missing tasks until the grace period
 * has passed since this task's start. */
static void await_tasks(const struct task_main *task)
{
    const struct timespec moment = {0, 20000000};
    uint64_t timeout_ms = task->opened_ms + (uint64_t)task->grace_ms;
    bool complete = false;

    while (!complete && uv_hrtime() / 1000000 < timeout_ms) {
        mu_value *status;

        if (mu_node_status(task->node, task->grace_ms, NULL, &status) != 0)
            return;
        complete = all_are_up(task, mu_value_find(status, "tasks"));
        mu_value_free(status);
        if (!complete)
            (void)nanosleep(&moment, NULL);
    }
}

/* The chief's program has ended: end the job. A distributed program
 * (mu_node_set_distribute) has waited for the other tasks itself. */
static void end_chief_job(struct task_main *task, int rv, const mu_error *why)
{
    mu_error error;
    int code = rv < -255 ? -MU_EUNKNOWN : rv;

    if (task->node->program.distribute == NULL)
        await_tasks(task);
    rv = mu_node_finish_job(task->node, code, code == 0 ? "" : why->message,
                            task->grace_ms, &error);
    if (rv != 0 && atomic_load(&task->signal) == 0)
        mu__task_say(task, MU_LOG_WARN, "%s", error.message);
}

/* Whether this is a chief whose program failed because a server is unavailable, and which
 * restart_exit_code has restarted: then the job is not ended. */
static bool needs_chief_restart(const struct task_main *task, int rv)
{
    return rv == -MU_EUNAVAILABLE && strcmp(task->type, "chief") == 0 &&
           task->options->restart_exit_code >= 0;
}

/* Log a failure: as an error on the task where it happened, as information on the
 * others. */
static void log_task_failure(struct task_main *task, const char *why)
{
    if (task->node->program.reasons.by_job) {
        mu__task_say(task, MU_LOG_INFO, "the job has failed: %s", why);
        mu__supervision_report(MU_SUPERVISION_JOB_FAILED, "");
        return;
    }
    mu__task_say(task, MU_LOG_ERROR, "%s", why);
    mu__supervision_report(MU_SUPERVISION_REASON, why);
}

static int run_open_task(struct task_main *task)
{
    mu_error error = {0};
    int rv = prepare_task(task, &error);
    int number;

    if (rv != 0 && atomic_load(&task->signal) == 0) {
        log_task_failure(task, error.message);
        return MU_EXIT_USAGE;
    }
    /* After a signal that came before the node was open, nothing else ends the node. */
    if (rv == 0 && atomic_load(&task->signal) == 0) {
        mu__task_say(task, MU_LOG_INFO, "is up at %s", mu_node_address(task->node));
        mu__node_set_mode(task->node, task->options->mode,
                          task->options->ignore_environment != 0);
        rv = mu_node_main(task->node, &error);
    }
    number = atomic_load(&task->signal);
    if (number != 0)
        return mu__task_signal_code(task, rv);
    if (rv != 0)
        log_task_failure(task,
                         error.message[0] == '\0' ? mu_strerror(rv) : error.message);
    atomic_store(&task->node->lifecycle.fails, rv != 0);
    if (task->node->lifecycle.superseded_by[0] != '\0') {
        atomic_store(&task->node->lifecycle.keeps_run, true);
        return MU_EXIT_ADDRESS;
    }
    if (needs_chief_restart(task, rv)) {
        atomic_store(&task->node->lifecycle.keeps_run, true);
        return task->options->restart_exit_code;
    }
    if (strcmp(task->type, "chief") == 0)
        end_chief_job(task, rv, &error);
    return rv == 0 ? MU_EXIT_FINE : MU_EXIT_FAILED;
}

static int close_task_node(struct task_main *task)
{
    mu_node *node = task->node;
    mu_error error;
    int rv;

    show_node(task, NULL);
    rv = mu_node_close(node, atomic_load(&task->closing_ms), &error);
    if (rv != 0)
        mu__task_say(task, MU_LOG_ERROR, "%s", error.message);
    return rv;
}

/* ---- waiting for a cluster ---- */

static int become_offered(struct task_main *task, mu_error *error)
{
    task->cluster = mu_cluster_copy(task->offered.cluster);
    if (task->cluster == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    memcpy(task->type, task->offered.type, sizeof task->type);
    task->index = task->offered.index;
    name_node_task(task, 1);
    return 0;
}

/* Wait for a client to assign a cluster. Returns MU_EXIT_FINE or the exit code. */
static int wait_for_cluster(struct task_main *task, mu_error *error)
{
    const mu_node_options options = options_of(task);
    mu_node *node;
    int rv;

    atomic_store(&task->opens, true);
    rv = mu__server_wait_open(&options, error, &node);
    atomic_store(&task->opens, false);
    if (rv != 0)
        return open_code(rv);
    show_node(task, node);
    mu__task_say(task, MU_LOG_INFO, "waits at %s for its cluster spec",
                 mu_node_address(node));
    rv = atomic_load(&task->signal) != 0
             ? -MU_ECLOSED
             : mu__server_take(node, -1, error, &task->offered);
    (void)close_task_node(task);
    if (atomic_load(&task->signal) != 0)
        return MU_EXIT_SIGNAL + atomic_load(&task->signal);
    if (rv == 0)
        rv = become_offered(task, error);
    return rv == 0 ? MU_EXIT_FINE : MU_EXIT_FAILED;
}

/* ---- the call ---- */

static int open_and_work(struct task_main *task)
{
    mu_error error = {.message = "a signal came"};
    int code =
        task->options->wait_cluster != 0 ? wait_for_cluster(task, &error) : MU_EXIT_FINE;

    if (code > MU_EXIT_SIGNAL)
        return code;
    if (code == MU_EXIT_FINE)
        code = open_task_node(task, &error);
    if (code != MU_EXIT_FINE && atomic_load(&task->signal) != 0)
        return MU_EXIT_SIGNAL + atomic_load(&task->signal);
    if (code != MU_EXIT_FINE) {
        mu__task_say(task, MU_LOG_ERROR, "%s", error.message);
        mu__supervision_report(MU_SUPERVISION_REASON, error.message);
        return code;
    }
    code = run_open_task(task);
    return close_task_node(task) == 0 ? code : MU_EXIT_UNENDED;
}

/* Watch signals before the node is opened: they may also end the opening. */
static int run_task_node(struct task_main *task)
{
    mu_error error;
    int code;

    if (task->type[0] != '\0')
        name_node_task(task, 0);
    if (mu__task_watch_signals(task, &error) != 0) {
        mu__task_say(task, MU_LOG_ERROR, "%s", error.message);
        return MU_EXIT_FAILED;
    }
    code = open_and_work(task);
    mu__task_unwatch_signals(task);
    return code;
}

/* Take cluster and task from the options; what they leave open the node finds. */
static int begin_task_main(struct task_main *task)
{
    const mu_node_options *options = task->options->node;

    task->index = options->task_index;
    if (task->options->wait_cluster != 0) {
        task->index = 0;
        (void)snprintf(task->type, sizeof task->type, "%s", MU__LINK_UNKNOWN);
        return 0;
    }
    if (options->task_type != NULL)
        (void)snprintf(task->type, sizeof task->type, "%s", options->task_type);
    if (options->cluster == NULL)
        return 0;
    task->cluster = mu_cluster_copy(options->cluster);
    return task->cluster == NULL ? -MU_ENOMEM : 0;
}

void mu_task_options_init_sized(mu_task_options *options, size_t size)
{
    const mu_task_options defaults = {
        .restart_exit_code = -1,
        .stacks_fd = STDERR_FILENO,
    };

    mu__options_init(options, size, &defaults, sizeof defaults);
}

/* The caller's options, and those of its node, as this library knows them. */
static int read_task_options(const mu_task_options *options, mu_error *ret_error,
                             mu_task_options *ret_own, mu_node_options *ret_node)
{
    int rv = MU__OPTIONS_READ(mu_task_options, options, ret_error, ret_own);

    if (rv == 0)
        rv = MU__OPTIONS_READ(mu_node_options, ret_own->node, ret_error, ret_node);
    ret_own->node = ret_node;
    return rv;
}

int mu_task_main(const mu_task_options *options)
{
    mu_node_options node;
    mu_task_options own;
    struct task_main task = {
        .options = &own,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .find_stop.lock = PTHREAD_MUTEX_INITIALIZER,
        .name = "muster",
    };
    mu_error error;
    int code = MU_EXIT_FAILED;

    if (options == NULL || options->node == NULL)
        return MU_EXIT_USAGE;
    if (read_task_options(options, &error, &own, &node) != 0) {
        (void)fprintf(stderr, "muster: %s\n", error.message);
        return MU_EXIT_USAGE;
    }
    task.grace_ms = (int)own.grace_ms;
    atomic_store(&task.closing_ms, task.grace_ms);
    tune_memory();
    if (begin_task_main(&task) == 0)
        code = run_task_node(&task);
    mu_cluster_free(task.cluster);
    mu__server_offered_done(&task.offered);
    return code;
}
