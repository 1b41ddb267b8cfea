/* `muster node`: runs one task.
 *
 * The main thread runs the task, and it alone frees the node; a second thread waits for
 * signals (cli/run/task_signals.c), and the first signal makes every call return. */
#include "api/compat/compat.h"
#include "api/task_program.h"
#include "cli/chief_client.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/resolve/resolver_flags.h"
#include "cli/run/python.h"
#include "cli/host/task_signals.h"
#include "cli/verbs.h"
#include "node/node.h"
#include "node/supervision_pipe.h"
#include "resolver/spec/cluster.h"

#include "muster/node.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
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

/* Messages of many megabytes come and go: keep their memory instead of giving it back to
 * the system and faulting it in again. Few arenas keep an idle node small. */
static void tune_memory(void)
{
    if (mallopt(M_MMAP_THRESHOLD, KEEP_BYTES) == 0)
        (void)mallopt(M_MMAP_THRESHOLD, KEEP_BYTES_LESS);
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
    (void)mallopt(M_ARENA_MAX, ARENAS);
}

/* -1 when no flag has an index and a resolver may choose one. Chief and evaluator always
 * have index 0. */
static int index_of(const struct cmd_task *task)
{
    const struct cmd_options *o = task->options;
    bool said = o->values[CMD_FLAG_TASK].text != NULL ||
                o->values[CMD_FLAG_INDEX].source != CMD_FROM_DEFAULT;

    return said || task->spec.resolver == NULL || task->spec.cluster != NULL ||
                   strcmp(task->spec.type, "chief") == 0 ||
                   strcmp(task->spec.type, "evaluator") == 0
               ? task->spec.index
               : -1;
}

static mu_node_options options_of(struct cmd_task *task)
{
    const struct cmd_options *o = task->options;
    mu_node_options options;

    mu_node_options_init(&options);
    cmd_node_options(o, &options);
    if (cmd_number(o, CMD_FLAG_PROCESSES) > 0)
        options.threads = cmd_number(o, CMD_FLAG_PROCESSES);
    options.cluster = task->spec.cluster;
    options.resolver = task->spec.resolver;
    options.task_type = task->spec.type[0] == '\0' ? NULL : task->spec.type;
    options.task_index = index_of(task);
    options.bind_address = cmd_text(o, CMD_FLAG_BIND);
    if (options.bind_address == NULL && task->spec.found.bind_address[0] != '\0')
        options.bind_address = task->spec.found.bind_address;
    options.advertise_address = cmd_text(o, CMD_FLAG_ADVERTISE);
    options.log = cmd_log_line;
    options.log_user = &task->log;
    options.log_level = task->log.level;
    if (task->offered.cluster != NULL)
        mu__server_apply(&task->offered, &options);
    return options;
}

/* Set the node for the thread that watches signals. */
static void show_node(struct cmd_task *task, mu_node *node)
{
    pthread_mutex_lock(&task->lock);
    task->node = node;
    pthread_mutex_unlock(&task->lock);
}

static int open_code(int rv)
{
    return rv == -MU_EEXISTS || rv == -MU_EUNAVAILABLE || rv == -MU_EPERMISSION
               ? CMD_ADDRESS
               : CMD_USAGE;
}

static void name_task(struct cmd_task *task, int which)
{
    if (task->spec.index >= 0)
        mu__task_name(task->names[which], sizeof task->names[which], task->spec.type,
                      task->spec.index);
    else
        (void)snprintf(task->names[which], sizeof task->names[which], "/job:%s",
                       task->spec.type);
    atomic_store(&task->name, task->names[which]);
    atomic_store(&task->drains, cmd_runs_closures(task->options, task->spec.type));
}

/* Take cluster and task that the node's resolver has found, before any plugin is
 * loaded. */
static int become_found(struct cmd_task *task, const mu_node *node, mu_error *error)
{
    struct cmd_spec *spec = &task->spec;

    if (spec->resolver == NULL)
        return 0;
    spec->cluster = mu_cluster_copy(node->cluster.now);
    if (spec->cluster == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    memcpy(spec->type, node->member.type, sizeof spec->type);
    spec->index = node->offer.own.index;
    name_task(task, 1);
    if (node->visible_devices[0] == '\0')
        return 0;
    cmd_log_say(&task->log, MU_LOG_INFO, task->name, "CUDA_VISIBLE_DEVICES is %s",
                node->visible_devices);
    return setenv("CUDA_VISIBLE_DEVICES", node->visible_devices, 1) == 0
               ? 0
               : mu_error_set(error, -MU_ENOMEM, "out of memory");
}

static int open_node(struct cmd_task *task, mu_error *error)
{
    const mu_node_options options = options_of(task);
    mu_node *node;
    int rv;

    atomic_store(&task->opens, true);
    if (atomic_load(&task->signal) != 0)
        return CMD_SIGNAL + atomic_load(&task->signal);
    rv = mu__node_open(&options, NULL, &task->find_stop, error, &node);
    atomic_store(&task->opens, false);
    if (rv == -MU_ENOTFOUND && task->spec.resolver != NULL &&
        !cmd_resolver_is_given(task->options))
        rv = cmd_spec_none(error);
    if (rv != 0)
        return open_code(rv);
    rv = become_found(task, node, error);
    if (rv != 0) {
        (void)mu_node_close(node, 0, NULL);
        return CMD_FAILED;
    }
    task->opened_ms = uv_hrtime() / 1000000;
    show_node(task, node);
    cmd_task_hear_parent(task);
    return CMD_FINE;
}

static int apply_setting(struct cmd_task *task, const char *text, mu_error *error)
{
    const char *value;
    char *key;
    int rv = cmd_setting_split(task->options, text, error, &key, &value);

    if (rv != 0)
        return rv;
    rv = mu_node_set_setting(task->node, key, value);
    free(key);
    return rv == 0 ? 0 : mu_error_set(error, rv, "out of memory");
}

static int prepare(struct cmd_task *task, mu_error *error)
{
    const struct cmd_value *settings = &task->options->values[CMD_FLAG_SET];
    const struct cmd_value *plugins = &task->options->values[CMD_FLAG_PLUGIN];
    int rv = 0;

    if (mu__server_settings(task->node, &task->offered.config) != 0)
        rv = mu_error_set(error, -MU_ENOMEM, "out of memory");
    for (size_t i = 0; rv == 0 && i < settings->items_count; i++)
        rv = apply_setting(task, settings->items[i], error);
    for (size_t i = 0; rv == 0 && i < plugins->items_count; i++)
        rv = mu_node_load_plugin(task->node, plugins->items[i], error);
    return rv == 0 ? cmd_python_load(task->options, task->node, error) : rv;
}

/* ---- running the task ---- */

static bool all_are_up(const struct cmd_task *task, const mu_value *tasks)
{
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0;
         mu_cluster_task_at(task->spec.cluster, i, &type, &index, &address) == 0; i++)
        if (strcmp(type, "chief") != 0 && strcmp(type, "client") != 0 &&
            !cmd_tasks_have(tasks, type, index))
            return false;
    return true;
}

/* Tasks start in any order, and a short program may end before the last task is connected
 * and can be notified that the job is done: wait for missing tasks until the grace period
 * has passed since this task's start. */
static void await_tasks(const struct cmd_task *task)
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
static void end_job(struct cmd_task *task, int rv, const mu_error *why)
{
    mu_error error;
    int code = rv < -255 ? -MU_EUNKNOWN : rv;

    if (task->node->program.distribute == NULL)
        await_tasks(task);
    rv = mu_node_finish_job(task->node, code, code == 0 ? "" : why->message,
                          task->grace_ms, &error);
    if (rv != 0 && atomic_load(&task->signal) == 0)
        cmd_log_say(&task->log, MU_LOG_WARN, task->name, "%s", error.message);
}

/* Whether this is a chief whose program failed because a server is unavailable, and which
 * --restart-exit-code has restarted: then the job is not ended. */
static bool needs_restart(const struct cmd_task *task, int rv)
{
    return rv == -MU_EUNAVAILABLE && strcmp(task->spec.type, "chief") == 0 &&
           task->options->values[CMD_FLAG_RESTART_EXIT_CODE].source != CMD_FROM_DEFAULT;
}

/* Log a failure: as an error on the task where it happened, as information on the
 * others. */
static void say_failure(struct cmd_task *task, const char *why)
{
    if (task->node->program.reasons.by_job) {
        cmd_log_say(&task->log, MU_LOG_INFO, task->name, "the job has failed: %s", why);
        mu__supervision_report(MU_SUPERVISION_JOB_FAILED, "");
        return;
    }
    cmd_log_say(&task->log, MU_LOG_ERROR, task->name, "%s", why);
    mu__supervision_report(MU_SUPERVISION_REASON, why);
}

static int work(struct cmd_task *task)
{
    mu_error error = {0};
    int rv = prepare(task, &error);
    int number;

    if (rv != 0 && atomic_load(&task->signal) == 0) {
        say_failure(task, error.message);
        return CMD_USAGE;
    }
    /* After a signal that came before the node was open, nothing else ends the node. */
    if (rv == 0 && atomic_load(&task->signal) == 0) {
        cmd_log_say(&task->log, MU_LOG_INFO, task->name, "is up at %s",
                    mu_node_address(task->node));
        mu__node_set_mode(task->node, cmd_mode(task->options),
                          cmd_text(task->options, CMD_FLAG_CLUSTER) != NULL);
        rv = mu_node_main(task->node, &error);
    }
    number = atomic_load(&task->signal);
    if (number != 0)
        return cmd_task_signal_code(task, rv);
    if (rv != 0)
        say_failure(task, error.message[0] == '\0' ? mu_strerror(rv) : error.message);
    atomic_store(&task->node->lifecycle.fails, rv != 0);
    if (task->node->lifecycle.superseded_by[0] != '\0') {
        atomic_store(&task->node->lifecycle.keeps_run, true);
        return CMD_ADDRESS;
    }
    if (needs_restart(task, rv)) {
        atomic_store(&task->node->lifecycle.keeps_run, true);
        return (int)cmd_number(task->options, CMD_FLAG_RESTART_EXIT_CODE);
    }
    if (strcmp(task->spec.type, "chief") == 0)
        end_job(task, rv, &error);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}

static int close_node(struct cmd_task *task)
{
    mu_node *node = task->node;
    mu_error error;
    int rv;

    show_node(task, NULL);
    rv = mu_node_close(node, atomic_load(&task->closing_ms), &error);
    if (rv != 0)
        cmd_log_say(&task->log, MU_LOG_ERROR, task->name, "%s", error.message);
    return rv;
}

/* ---- --wait-cluster ---- */

/* The assigned cluster replaces these flags. */
static int check_waiting(const struct cmd_options *options, mu_error *error)
{
    static const enum cmd_flag others[] = {CMD_FLAG_CLUSTER, CMD_FLAG_TASK,
                                           CMD_FLAG_TYPE};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (options->values[others[i]].source == CMD_FROM_LINE)
            return mu_error_set(error, -MU_EINVALID,
                                "--wait-cluster: expected no --%s beside it",
                                cmd_flag_name(others[i]));
    if (cmd_text(options, CMD_FLAG_BIND) == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "--wait-cluster: expected --bind beside it, where the server "
                            "waits");
    return 0;
}

static int become_offered(struct cmd_task *task, mu_error *error)
{
    task->spec.cluster = mu_cluster_copy(task->offered.cluster);
    if (task->spec.cluster == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    memcpy(task->spec.type, task->offered.type, sizeof task->spec.type);
    task->spec.index = task->offered.index;
    name_task(task, 1);
    return 0;
}

/* Wait for a client to assign a cluster. Returns CMD_FINE or the exit code. */
static int wait_for_cluster(struct cmd_task *task, mu_error *error)
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
    cmd_log_say(&task->log, MU_LOG_INFO, task->name,
                "waits at %s to be told its cluster", mu_node_address(node));
    rv = atomic_load(&task->signal) != 0
             ? -MU_ECLOSED
             : mu__server_take(node, -1, error, &task->offered);
    (void)close_node(task);
    if (atomic_load(&task->signal) != 0)
        return CMD_SIGNAL + atomic_load(&task->signal);
    if (rv == 0)
        rv = become_offered(task, error);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}

static bool waits(const struct cmd_task *task)
{
    return cmd_number(task->options, CMD_FLAG_WAIT_CLUSTER) != 0;
}

/* ---- the verb ---- */

static int open_and_work(struct cmd_task *task)
{
    mu_error error = {.message = "a signal came"};
    int code = waits(task) ? wait_for_cluster(task, &error) : CMD_FINE;

    if (code > CMD_SIGNAL)
        return code;
    if (code == CMD_FINE)
        code = open_node(task, &error);
    if (code != CMD_FINE && atomic_load(&task->signal) != 0)
        return CMD_SIGNAL + atomic_load(&task->signal);
    if (code != CMD_FINE) {
        cmd_log_say(&task->log, MU_LOG_ERROR, task->name, "%s", error.message);
        mu__supervision_report(MU_SUPERVISION_REASON, error.message);
        return code;
    }
    code = work(task);
    return close_node(task) == 0 ? code : CMD_UNENDED;
}

/* Watch signals before the node is opened: they may also end the opening. */
static int run_node(struct cmd_task *task)
{
    mu_error error;
    int code;

    if (task->spec.type[0] != '\0')
        name_task(task, 0);
    if (cmd_task_watch_signals(task, &error) != 0) {
        cmd_log_say(&task->log, MU_LOG_ERROR, task->name, "%s", error.message);
        return CMD_FAILED;
    }
    code = open_and_work(task);
    cmd_task_unwatch_signals(task);
    return code;
}

/* Set CUDA_VISIBLE_DEVICES to this task's share of the machine's accelerators, before any
 * library looks for devices. */
static int set_devices(const struct cmd_spec *spec, mu_error *error)
{
    const char *devices = spec->found.visible_devices;

    if (devices[0] == '\0' || setenv("CUDA_VISIBLE_DEVICES", devices, 1) == 0)
        return 0;
    return mu_error_set(error, -MU_ENOMEM, "CUDA_VISIBLE_DEVICES: out of memory");
}

int cmd_node(struct cmd_options *options)
{
    struct cmd_task task = {
        .options = options,
        .grace_ms = (int)cmd_number(options, CMD_FLAG_GRACE_MS),
        .closing_ms = (int)cmd_number(options, CMD_FLAG_GRACE_MS),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .find_stop.lock = PTHREAD_MUTEX_INITIALIZER,
        .name = "muster",
    };
    mu_error error;
    int code = CMD_USAGE;
    int rv;

    cmd_python_become(options);
    tune_memory();
    /* Line buffering, also for a pipe, so that lines of plugins appear at once. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (cmd_log_open(options, &error, &task.log) != 0) {
        (void)fprintf(stderr, "muster node: %s\n", error.message);
        return CMD_USAGE;
    }
    (void)snprintf(task.spec.type, sizeof task.spec.type, "%s", MU__LINK_UNKNOWN);
    rv = waits(&task) ? check_waiting(options, &error)
                      : cmd_spec_read(options, &error, &task.spec);
    if (rv == 0)
        rv = set_devices(&task.spec, &error);
    if (rv != 0)
        cmd_log_say(&task.log, MU_LOG_ERROR, task.name, "%s", error.message);
    else
        code = run_node(&task);
    cmd_spec_done(&task.spec);
    mu__server_offered_done(&task.offered);
    cmd_log_close(&task.log);
    return code;
}
