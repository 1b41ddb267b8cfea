/* `muster node`: one task, from its flags to its exit code.
 *
 * The main thread does the task's work; a second one waits for signals, which a handler
 * writes into a pipe. The first signal begins the node's end: every call that waits
 * returns, so that the work on the main thread comes to its end too, and it alone frees
 * the node. The second signal ends the process.
 *
 * With --preempt-on-sigterm a first SIGTERM is a notice before all that: the program ends
 * by itself, at the step that the tasks agree on, or the grace does, or the next signal
 * is the first one. */
#include "api/server.h"
#include "cli/output/log.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/resolve/resolver_flags.h"
#include "cli/run/python.h"
#include "cli/verbs.h"
#include "node/node.h"
#include "node/supervision_pipe.h"
#include "resolver/spec/cluster.h"
#include "runtime/uv/thread.h"

#include "muster/coordination.h"
#include "muster/node.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    KEEP_BYTES = 64 << 20,      /* blocks up to this size are kept for the next one */
    KEEP_BYTES_LESS = 32 << 20, /* where the allocator allows no more */
    ARENAS = 2,
    CLOSING_MS = 1500           /* what closing takes beyond the grace */
};

struct task {
    const struct cmd_options *options;
    struct cmd_log log;
    struct cmd_spec spec;
    struct mu__server_offered offered;  /* with --wait-cluster: where `spec` is from */
    int grace_ms;
    atomic_int closing_ms;      /* what is left of it for the node's closing */
    pthread_mutex_t lock;       /* guards `node` against the watcher */
    mu_node *node;              /* NULL before it is open, and once its owner closes it */
    char names[2][64];          /* "/job:worker/task:1"; of a server that waits, too */
    _Atomic(const char *) name; /* one of them */
    atomic_bool drains;         /* it is a worker */
    atomic_bool opens;          /* a node is opened: there is nothing to end yet */
    struct mu__find_stop find_stop; /* but its search for the cluster */
    atomic_int signal;          /* the first one, 0: none */
    pthread_t watcher;
    pthread_t notifier;         /* the watcher's, which gives a preemption notice */
    bool notifies;
    uint64_t opened_ms;
};

/* Handlers can reach nothing else. */
static int signal_pipe[2] = {-1, -1};
static pid_t signal_owner;

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

/* ---- signals ---- */

/* As a signal for the watcher; 0: there is no more to watch. */
static void notify_watcher(int number)
{
    unsigned char byte = (unsigned char)number;

    (void)!write(signal_pipe[1], &byte, 1);
}

/* A child that a function has forked shares the pipe: what ends the child is not meant
 * for this task. */
static void on_signal(int number)
{
    int saved = errno;

    if (getpid() == signal_owner) {
        notify_watcher(number);
    } else {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    errno = saved;
}

/* The next signal, 0 when none will come, -1 when there is none within the limit. */
static int next_signal(int timeout_ms)
{
    struct pollfd readable = {.fd = signal_pipe[0], .events = POLLIN};
    unsigned char byte = 0;
    int rv;

    do
        rv = poll(&readable, 1, timeout_ms);
    while (rv < 0 && errno == EINTR);
    if (rv <= 0)
        return -1;
    return read(signal_pipe[0], &byte, 1) == 1 ? byte : 0;
}

/* What mu_node_close begins, without its waiting and freeing: calls are answered with
 * -MU_ECLOSED from then on, and the node stays until its owner closes it. */
static void begin_end(mu_node *node, int grace_ms)
{
    atomic_store(&node->lifecycle.timeout_ms, grace_ms);
    (void)uv_async_send(&node->lifecycle.stop);
}

/* The node as it is now, held so that it may be used while its owner closes it. */
static mu_node *hold_node(struct task *task)
{
    mu_node *node;

    pthread_mutex_lock(&task->lock);
    node = task->node;
    if (node != NULL)
        mu__node_ref(node);
    pthread_mutex_unlock(&task->lock);
    return node;
}

/* Half of the grace for what a worker has to be finished, the rest for its functions to
 * end once they are told to. */
static void drain(struct task *task)
{
    mu_node *node = hold_node(task);
    mu_error error;

    if (node == NULL)
        return;
    if (mu_node_drain(node, task->grace_ms / 2, &error) == 0)
        cmd_log_say(&task->log, MU_LOG_INFO, task->name, "has finished what it had");
    else if (error.code != -MU_ECLOSED)
        cmd_log_say(&task->log, MU_LOG_INFO, task->name, "leaves as it is: %s",
                    error.message);
    mu__node_unref(node);
}

static void leave_run(struct task *task)
{
    mu_node *node = hold_node(task);

    if (node == NULL)
        return;
    mu__node_leave_run(node);
    mu__node_unref(node);
}

static void *end_task(void *arg)
{
    struct task *task = arg;
    uint64_t began_ms = now_ms();
    int left_ms = task->grace_ms;

    if (atomic_load(&task->drains)) {
        drain(task);
        left_ms -= (int)(now_ms() - began_ms);
    }
    leave_run(task);
    atomic_store(&task->closing_ms, left_ms < 0 ? 0 : left_ms);
    pthread_mutex_lock(&task->lock);
    if (task->node != NULL)
        begin_end(task->node, atomic_load(&task->closing_ms));
    pthread_mutex_unlock(&task->lock);
    return NULL;
}

/* Another signal ends the process at once, and so does the end of all patience. */
static void watch_end(struct task *task)
{
    int number = next_signal(task->grace_ms + CLOSING_MS);

    if (number > 0) {
        cmd_log_say(&task->log, MU_LOG_WARN, task->name,
                    "signal %d (%s) again: ends at once", number, strsignal(number));
        _exit(CMD_SIGNAL + number);
    }
    if (number < 0) {
        cmd_log_say(&task->log, MU_LOG_ERROR, task->name,
                    "the program of %s did not end within %d ms", task->name,
                    task->grace_ms);
        _exit(CMD_UNENDED);
    }
}

static void *give_notice(void *arg)
{
    struct task *task = arg;
    mu_node *node = hold_node(task);
    mu_error error;

    if (node == NULL) {
        notify_watcher(SIGTERM);
        return NULL;
    }
    if (mu_preemption_notify(node, "SIGTERM", task->grace_ms, task->grace_ms, &error) !=
            0 &&
        error.code != -MU_ECLOSED) {
        cmd_log_say(&task->log, MU_LOG_WARN, task->name,
                    "the preemption notice was not given: %s", error.message);
        notify_watcher(SIGTERM);
    }
    mu__node_unref(node);
    return NULL;
}

/* Give the program its grace to end at the step that the tasks agree on. Returns the
 * signal that the task's end begins with, at once if nobody can be told; 0: the task has
 * ended by itself. */
static int preempt(struct task *task)
{
    int number;

    cmd_log_say(&task->log, MU_LOG_INFO, task->name,
                "SIGTERM: all tasks agree on a step to stop at, within %d ms",
                task->grace_ms);
    task->notifies = mu__thread_start(give_notice, task, &task->notifier) == 0;
    if (!task->notifies)
        return SIGTERM;
    number = next_signal(task->grace_ms);
    return number < 0 ? SIGTERM : number;
}

/* The main thread takes back what it has told of this task, and ends. Another signal ends
 * the process at once, and so does the end of all patience. */
static void end_opening(struct task *task, int number)
{
    if (mu__find_stop(&task->find_stop)) {
        if (next_signal(task->grace_ms + CLOSING_MS) == 0)
            return;
        cmd_log_say(&task->log, MU_LOG_WARN, task->name,
                    "ends at once: others may look for it for a while");
    }
    _exit(CMD_SIGNAL + number);
}

static void *watch(void *arg)
{
    struct task *task = arg;
    int number = next_signal(-1);
    pthread_t job_owner;

    if (number == SIGTERM && !atomic_load(&task->opens) &&
        cmd_number(task->options, CMD_FLAG_PREEMPT_ON_SIGTERM) == 1)
        number = preempt(task);
    if (number <= 0)
        return NULL;
    atomic_store(&task->signal, number);
    cmd_log_say(&task->log, MU_LOG_INFO, task->name,
                "signal %d (%s): ends within %d ms", number, strsignal(number),
                task->grace_ms);
    if (atomic_load(&task->opens)) {
        end_opening(task, number);
        return NULL;
    }
    if (mu__thread_start(end_task, task, &job_owner) != 0) {
        (void)end_task(task);
        watch_end(task);
        return NULL;
    }
    watch_end(task);
    (void)pthread_join(job_owner, NULL);
    return NULL;
}

static int watch_signals(struct task *task, mu_error *error)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    int rv;

    (void)sigemptyset(&action.sa_mask);
    signal_owner = getpid();
    if (pipe(signal_pipe) != 0 || fcntl(signal_pipe[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(signal_pipe[1], F_SETFD, FD_CLOEXEC) != 0)
        return mu_error_set(error, -MU_EEXHAUSTED, "signals cannot be watched: %s",
                            strerror(errno));
    rv = mu__thread_start(watch, task, &task->watcher);
    if (rv != 0)
        return mu_error_set(error, -MU_EEXHAUSTED, "signals cannot be watched: %s",
                            strerror(rv));
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    return 0;
}

static void unwatch_signals(struct task *task)
{
    notify_watcher(0);
    (void)pthread_join(task->watcher, NULL);
    if (task->notifies)
        (void)pthread_join(task->notifier, NULL);
}

/* ---- birth ---- */

/* Messages of many megabytes come and go: keep their memory instead of giving it back to
 * the system and faulting it in again. Few arenas keep an idle node small. */
static void tune_memory(void)
{
    if (mallopt(M_MMAP_THRESHOLD, KEEP_BYTES) == 0)
        (void)mallopt(M_MMAP_THRESHOLD, KEEP_BYTES_LESS);
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
    (void)mallopt(M_ARENA_MAX, ARENAS);
}

/* Where a resolver is asked, and nobody says an index: the one that it knows or takes. Of
 * a chief and an evaluator there is one. */
static int index_of(const struct task *task)
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

static mu_node_options options_of(struct task *task)
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

/* The watcher sees it from now on. */
static void show_node(struct task *task, mu_node *node)
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

static void name_task(struct task *task, int which)
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

/* What its resolver has found out is this task's from now on, before any plugin. */
static int become_found(struct task *task, const mu_node *node, mu_error *error)
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

static int open_node(struct task *task, mu_error *error)
{
    const mu_node_options options = options_of(task);
    mu_node *node;
    int rv;

    atomic_store(&task->opens, true);
    if (atomic_load(&task->signal) != 0)
        return CMD_SIGNAL + atomic_load(&task->signal);
    rv = mu__node_open_until(&options, &task->find_stop, error, &node);
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
    task->opened_ms = now_ms();
    show_node(task, node);
    return CMD_FINE;
}

static int apply_setting(struct task *task, const char *text, mu_error *error)
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

static int prepare(struct task *task, mu_error *error)
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

/* ---- life and end ---- */

static bool is_up(const mu_value *tasks, const char *type, int index)
{
    for (size_t i = 0; i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);
        const char *text = "";
        int64_t number = -1;
        size_t size;

        (void)mu_value_get_string(mu_value_find(task, "type"), &text, &size);
        (void)mu_value_get_int(mu_value_find(task, "index"), &number);
        if (strcmp(text, type) == 0 && number == index)
            return true;
    }
    return false;
}

static bool all_are_up(const struct task *task, const mu_value *tasks)
{
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0;
         mu_cluster_task_at(task->spec.cluster, i, &type, &index, &address) == 0; i++)
        if (strcmp(type, "chief") != 0 && strcmp(type, "client") != 0 &&
            !is_up(tasks, type, index))
            return false;
    return true;
}

/* Tasks start in any order, and a short program may end before the last one is there to
 * be told: until the grace has passed since our own start, those missing are waited
 * for. */
static void await_tasks(const struct task *task)
{
    const struct timespec moment = {0, 20000000};
    uint64_t timeout_ms = task->opened_ms + (uint64_t)task->grace_ms;
    bool complete = false;

    while (!complete && now_ms() < timeout_ms) {
        mu_value *status;

        if (mu_node_status(task->node, task->grace_ms, NULL, &status) != 0)
            return;
        complete = all_are_up(task, mu_value_find(status, "tasks"));
        mu_value_free(status);
        if (!complete)
            (void)nanosleep(&moment, NULL);
    }
}

/* The chief's program has ended, so the job has. One that was distributed has waited for
 * the others itself, and knows who of them has ended before. */
static void end_job(struct task *task, int rv, const mu_error *why)
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

/* A chief whose program needs a server that is away, and whom somebody would start again,
 * leaves the others as they are. */
static bool needs_restart(const struct task *task, int rv)
{
    return rv == -MU_EUNAVAILABLE && strcmp(task->spec.type, "chief") == 0 &&
           task->options->values[CMD_FLAG_RESTART_EXIT_CODE].source != CMD_FROM_DEFAULT;
}

/* Said by the task whose error it is; the others have it from that one. */
static void say_failure(struct task *task, const char *why)
{
    if (task->node->program.reasons.by_job) {
        cmd_log_say(&task->log, MU_LOG_INFO, task->name, "the job has failed: %s", why);
        mu__supervision_report(MU__SUPERVISION_JOB_FAILED, "");
        return;
    }
    cmd_log_say(&task->log, MU_LOG_ERROR, task->name, "%s", why);
    mu__supervision_report(MU__SUPERVISION_REASON, why);
}

static int work(struct task *task)
{
    mu_error error = {0};
    int rv = prepare(task, &error);
    int number;

    if (rv != 0 && atomic_load(&task->signal) == 0) {
        say_failure(task, error.message);
        return CMD_USAGE;
    }
    /* A signal from before the node was open has not begun its end. */
    if (rv == 0 && atomic_load(&task->signal) == 0) {
        cmd_log_say(&task->log, MU_LOG_INFO, task->name, "is up at %s",
                    mu_node_address(task->node));
        mu__node_set_mode(task->node, cmd_mode(task->options),
                          cmd_text(task->options, CMD_FLAG_CLUSTER) != NULL);
        rv = mu_node_main(task->node, &error);
    }
    number = atomic_load(&task->signal);
    if (number != 0)
        return CMD_SIGNAL + number;
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

static int close_node(struct task *task)
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

/* ---- a server that waits for its cluster ---- */

/* What it is told takes the place of flags. */
static int check_waiting(const struct cmd_options *options, mu_error *error)
{
    static const enum cmd_flag others[] = {CMD_FLAG_CLUSTER, CMD_FLAG_TASK,
                                           CMD_FLAG_TYPE};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (options->values[others[i]].source == CMD_FROM_LINE)
            return mu_error_set(error, -MU_EINVALID,
                                "--wait-cluster: expected no --%s beside it",
                                cmd_flags[others[i]].name);
    if (cmd_text(options, CMD_FLAG_BIND) == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "--wait-cluster: expected --bind beside it, where the server "
                            "waits");
    return 0;
}

static int become_offered(struct task *task, mu_error *error)
{
    task->spec.cluster = mu_cluster_copy(task->offered.cluster);
    if (task->spec.cluster == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    memcpy(task->spec.type, task->offered.type, sizeof task->spec.type);
    task->spec.index = task->offered.index;
    name_task(task, 1);
    return 0;
}

/* The exit code when nothing comes of it. */
static int wait_for_cluster(struct task *task, mu_error *error)
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

static bool waits(const struct task *task)
{
    return cmd_number(task->options, CMD_FLAG_WAIT_CLUSTER) != 0;
}

/* ---- all of it ---- */

static int open_and_work(struct task *task)
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
        mu__supervision_report(MU__SUPERVISION_REASON, error.message);
        return code;
    }
    code = work(task);
    return close_node(task) == 0 ? code : CMD_UNENDED;
}

/* Signals first: as soon as the node is open, others see it, and may want it to end. */
static int run_node(struct task *task)
{
    mu_error error;
    int code;

    if (task->spec.type[0] != '\0')
        name_task(task, 0);
    if (watch_signals(task, &error) != 0) {
        cmd_log_say(&task->log, MU_LOG_ERROR, task->name, "%s", error.message);
        return CMD_FAILED;
    }
    code = open_and_work(task);
    unwatch_signals(task);
    return code;
}

/* The accelerators that a launcher's node has are split among its tasks: before anything
 * looks for them. */
static int set_devices(const struct cmd_spec *spec, mu_error *error)
{
    const char *devices = spec->found.visible_devices;

    if (devices[0] == '\0' || setenv("CUDA_VISIBLE_DEVICES", devices, 1) == 0)
        return 0;
    return mu_error_set(error, -MU_ENOMEM, "CUDA_VISIBLE_DEVICES: out of memory");
}

int cmd_node(struct cmd_options *options)
{
    struct task task = {
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
    /* Plugins print to a pipe as often as to a terminal: their lines shall not wait. */
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
