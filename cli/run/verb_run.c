/* `muster run`: a whole cluster of processes on this machine.
 *
 * This process has one thread with a poll() loop, and no connections, since it forks. The
 * kernel kills the tasks when this process ends (run/child.c); this file ends them in
 * order: by the chief's end or SIGTERM first, SIGKILL last. With --control the parent is
 * the chief. */
#include "cli/options/flags.h"
#include "cli/output/print_json.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/run/processes.h"
#include "cli/run/task_output.h"
#include "cli/verbs.h"

#include "muster/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILL_AFTER_MS = 4000, /* in addition to the grace period of the tasks */
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 10000,
    JOB_END_MS = 1000,  /* least delay of a restart: the job may just have ended */
    STEADY_MS = 60000,  /* a task that ran this long has its restart count
                           reset */
    SIGNALS_AT_ONCE = 3 /* this many signals end this process at once */
};

/* Phases of ending the cluster. Each has a timeout, after which the next one begins. */
enum phase {
    RUNNING,
    LEAVING,  /* the chief's job has ended: the others are expected to end by
                 themselves */
    STOPPING, /* SIGTERM was sent */
    KILLING   /* SIGKILL was sent */
};

struct run {
    const struct cmd_options *options;
    struct cmd_output output;
    bool is_controlled; /* --control */
    struct cmd_commands commands;
    mu_cluster *cluster;
    char folder[CMD_FOLDER_BYTES];
    struct cmd_ports ports;
    struct cmd_child *children;
    size_t count;
    struct cmd_launch launch;
    enum phase phase;
    uint64_t phase_ends_ms;
    int result;      /* exit code; -1: not known yet */
    bool stops_well; /* the standalone client ended with exit code 0 */
    bool unended;    /* a task had to be killed, or a function did not end */
    unsigned grace_ms;
    unsigned stop_ms; /* between SIGTERM and SIGKILL */
    unsigned level;   /* log level of this process and of the tasks */
    uint64_t began_ms;
    int status_errno; /* why the status file could not be written; 0: no
                         error */
};

/* Static: the handler has no other argument than the signal. */
static int signal_pipe[2] = {-1, -1};
static volatile sig_atomic_t signals_seen;

MU_PRINTF(3, 4) static void say(struct run *run, int level, const char *format, ...)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    char text[1024];
    va_list args;

    if (level > (int)run->level)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (run->is_controlled)
        cmd_event_send("log", NULL, "level", cJSON_CreateString(levels[level]), "message",
                       cmd_json_text(text, strlen(text)));
    else
        cmd_output_line(&run->output, "muster", 0, text, strlen(text));
}

/* ---- signals ---- */

static void on_run_signal(int number)
{
    unsigned char byte = (unsigned char)number;
    int saved = errno;

    if (number != SIGCHLD && ++signals_seen >= SIGNALS_AT_ONCE)
        _exit(CMD_SIGNAL + number);
    (void)!write(signal_pipe[1], &byte, 1);
    errno = saved;
}

static int watch_run_signals(void)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_run_signal, .sa_flags = SA_RESTART};

    if (pipe(signal_pipe) != 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (fcntl(signal_pipe[i], F_SETFL, O_NONBLOCK) != 0 ||
            fcntl(signal_pipe[i], F_SETFD, FD_CLOEXEC) != 0)
            return -1;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], &action, NULL) != 0)
            return -1;
    return 0;
}

/* ---- the status file ---- */

/* Write --status-file. An error is logged when it differs from the last one. */
static void write_status(struct run *run)
{
    const char *path = cmd_text(run->options, CMD_FLAG_STATUS_FILE);
    int rv = path == NULL ? 0 : cmd_children_write(run->children, run->count, path);

    if (rv != 0 && rv != run->status_errno)
        say(run, MU_LOG_ERROR, "the status file \"%s\" cannot be written: %s", path,
            strerror(rv));
    run->status_errno = rv;
}

/* A task has started or ended. */
static void note_task_change(struct run *run, const struct cmd_child *child)
{
    if (run->is_controlled)
        cmd_event_send("task", child->name, "status", cmd_child_json(child), NULL, NULL);
    write_status(run);
}

/* Check that the status file can be written, before any task is started. */
static int check_status_file(const struct run *run, mu_error *error)
{
    const char *path = cmd_text(run->options, CMD_FLAG_STATUS_FILE);
    char origin[CMD_ORIGIN_BYTES];
    int rv = path == NULL ? 0 : cmd_children_write(run->children, run->count, path);

    if (rv == 0)
        return 0;
    return mu_error_set(error, -MU_EINVALID, "%s: \"%s\" cannot be written: %s",
                        cmd_origin(run->options, CMD_FLAG_STATUS_FILE, origin,
                                   sizeof origin),
                        path, strerror(rv));
}

/* ---- starting tasks ---- */

static int start_child(struct run *run, struct cmd_child *child)
{
    if (cmd_launch_start(&run->launch, run->cluster, child) != 0) {
        say(run, MU_LOG_ERROR, "%s cannot be started: %s", child->name, strerror(errno));
        return -1;
    }
    child->started_ms = cmd_now_ms();
    child->restart_ms = 0;
    say(run, MU_LOG_INFO, "%s pid %ld started at %s", child->name, (long)child->pid,
        child->address);
    return 0;
}

/* ---- phases ---- */

/* Begin a later phase: cancels pending restarts, and sends its signal to all tasks. */
static void begin_phase(struct run *run, enum phase phase, unsigned timeout_ms)
{
    if (phase <= run->phase)
        return;
    run->phase = phase;
    run->phase_ends_ms = cmd_now_ms() + timeout_ms;
    for (size_t i = 0; i < run->count; i++) {
        struct cmd_child *child = &run->children[i];

        child->restart_ms = 0;
        if (child->pid == 0 && !child->ended) {
            child->ended = true;
            note_task_change(run, child);
        }
        if (child->pid > 0 && phase == STOPPING)
            (void)kill(child->pid, SIGTERM);
        if (child->pid > 0 && phase == KILLING) {
            (void)kill(-child->pid, SIGKILL);
            (void)kill(child->pid, SIGKILL);
        }
    }
}

static void stop_run(struct run *run)
{
    begin_phase(run, STOPPING, run->stop_ms);
}

/* The command "stop". Another one may only be more urgent. How tasks end then is no
 * news. */
static void stop_by_command(void *user, unsigned leave_ms, unsigned kill_ms)
{
    struct run *run = user;
    enum phase phase = leave_ms > 0 ? LEAVING : STOPPING;
    unsigned wait_ms = leave_ms > 0 ? leave_ms : kill_ms;

    run->result = CMD_FINE;
    run->level = MU_LOG_ERROR;
    run->stop_ms = kill_ms;
    begin_phase(run, phase, wait_ms);
    if (run->phase == phase && run->phase_ends_ms > cmd_now_ms() + wait_ms)
        run->phase_ends_ms = cmd_now_ms() + wait_ms;
}

static void next_phase(struct run *run)
{
    if (run->phase == RUNNING || cmd_now_ms() < run->phase_ends_ms)
        return;
    if (run->phase == LEAVING) {
        stop_run(run);
        return;
    }
    if (run->phase == KILLING)
        return;
    for (size_t i = 0; i < run->count; i++)
        if (run->children[i].pid > 0)
            say(run, MU_LOG_WARN, "%s did not end within %u ms and is killed",
                run->children[i].name, run->stop_ms);
    run->unended = true;
    begin_phase(run, KILLING, 0);
}

static void handle_interrupt(struct run *run, int number)
{
    if (run->phase == STOPPING || run->phase == KILLING) {
        say(run, MU_LOG_WARN, "signal %d (%s) again: the tasks are killed", number,
            strsignal(number));
        begin_phase(run, KILLING, 0);
        return;
    }
    say(run, MU_LOG_WARN, "signal %d (%s): the tasks are stopped", number,
        strsignal(number));
    run->result = CMD_SIGNAL + number;
    stop_run(run);
}

/* ---- ends of tasks ---- */

static void on_line(void *user, struct cmd_child *child, bool is_error, const char *text,
                    size_t size, bool progress)
{
    struct run *run = user;

    if (run->is_controlled)
        cmd_event_send("line", child->name, "stream",
                       cJSON_CreateString(is_error ? "err" : "out"), "text",
                       cmd_json_text(text, size));
    else if (progress)
        cmd_output_progress(&run->output, child->name, child->colour, text, size,
                            cmd_now_ms());
    else
        cmd_output_line(&run->output, child->name, child->colour, text, size);
}

static void arrange_restart(struct run *run, struct cmd_child *child)
{
    unsigned most = cmd_number(run->options, CMD_FLAG_RESTART_MAX);
    uint64_t now = cmd_now_ms();
    unsigned wait_ms = BACKOFF_MAX_MS;

    if (now - child->started_ms >= STEADY_MS)
        child->restarts = 0;
    if (child->restarts >= most) {
        child->ended = true;
        say(run, MU_LOG_ERROR,
            "%s %s and is not started again: given up after %u restarts in a row",
            child->name, child->end, most);
        return;
    }
    if (child->restarts < 7)
        wait_ms = (unsigned)BACKOFF_FIRST_MS << child->restarts;
    if (child->code <= CMD_FAILED && wait_ms < JOB_END_MS)
        wait_ms = JOB_END_MS;
    child->restarts++;
    child->restarts_total++;
    child->restart_ms = now + wait_ms;
    say(run, MU_LOG_WARN, "%s %s; restart %u of %u in %u ms", child->name, child->end,
        child->restarts, most, wait_ms);
}

/* The cluster ends with the chief. If the chief's program returned, the other tasks were
 * notified that the job is done and end by themselves; otherwise they are stopped. */
static void chief_ended(struct run *run, const struct cmd_child *chief)
{
    if (run->phase != RUNNING)
        return;
    run->result = chief->code;
    if (chief->code == CMD_FINE || chief->code == CMD_FAILED)
        begin_phase(run, LEAVING, run->grace_ms);
    else
        stop_run(run);
}

/* A standalone client makes the calls of all tasks. The others are its servers, which are
 * not notified of its end. */
static void client_ended(struct run *run, const struct cmd_child *client)
{
    if (run->phase != RUNNING)
        return;
    run->result = client->code;
    run->stops_well = client->code == CMD_FINE;
    stop_run(run);
}

/* Whether this is a server of a standalone client, which regularly ends by SIGTERM once
 * the client is done. */
static bool is_stopped_well(const struct run *run, const struct cmd_child *child)
{
    return run->stops_well && run->phase == STOPPING &&
           child->code == CMD_SIGNAL + SIGTERM;
}

/* Whether the end of a task is no warning: also when the job has failed, which ends all
 * tasks, or when the task was stopped by a signal of this process. */
static bool is_expected_end(const struct run *run, const struct cmd_child *child)
{
    int code = child->code;

    return code == CMD_FINE || child->job_failed ||
           (run->phase != RUNNING &&
            (code == CMD_FAILED || code == CMD_SIGNAL + SIGTERM ||
             code == CMD_SIGNAL + SIGINT));
}

/* Without a chief the run of independent tasks ends with its leading task, which gathers
 * the results and usually hosts the coordination service. */
static void leader_ended(struct run *run, struct cmd_child *child)
{
    int mode = cmd_mode(run->options);
    char leader[MU_CLUSTER_TASK_BYTES];
    char name[MU_CLUSTER_TASK_BYTES];

    (void)snprintf(name, sizeof name, "/job:%s/task:%d", child->type, child->index);
    if ((mode != MU_MODE_INDEPENDENT && mode != MU_MODE_CLIENT_WORKER) ||
        child->code <= CMD_FAILED || run->phase != RUNNING ||
        mu_cluster_collective_leader(run->cluster, NULL, NULL, leader) != 0 ||
        strcmp(leader, name) != 0)
        return;
    if (child->reason[0] == '\0')
        (void)snprintf(child->reason, sizeof child->reason,
                       "%s %s, and is not started again", name, child->end);
    run->result = child->code;
    stop_run(run);
}

static void fail_job(struct run *run, const struct cmd_child *child)
{
    if (run->phase != RUNNING)
        return;
    say(run, MU_LOG_ERROR, "the job fails with %s (--restart %s=fail-job)", child->name,
        child->type);
    run->result = child->code;
    stop_run(run);
}

/* Ended for good, and not by the failed job: who waits for it would wait without end. */
static void report_ended(struct run *run, struct cmd_child *other)
{
    if (other->ended)
        leader_ended(run, other);
    for (size_t i = 0; other->ended && run->phase == RUNNING && i < run->count; i++)
        cmd_child_report_ended(&run->children[i], other);
}

/* A task was started again: of those that failed before it has not heard. */
static void report_former_ends(const struct run *run, const struct cmd_child *child)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->children[i].ended && run->children[i].code != CMD_FINE)
            cmd_child_report_ended(child, &run->children[i]);
}

/* A chief without a program, and servers, run on when all workers have ended, which looks
 * like a hang: log that. Not when the job has failed, which ends the others, too. */
static void note_workers_done(struct run *run)
{
    size_t workers = 0;
    size_t others = 0;

    for (size_t i = 0; i < run->count; i++) {
        bool is_worker = strcmp(run->children[i].type, "worker") == 0;

        if (run->children[i].job_failed || (is_worker && !run->children[i].ended))
            return;
        workers += is_worker;
        others += !run->children[i].ended;
    }
    if (run->phase == RUNNING && !run->is_controlled && workers > 0 && others > 0)
        say(run, MU_LOG_WARN,
            "all workers have ended; other tasks running: %zu (stop: Ctrl-C)", others);
}

/* The task ended inside a plugin's mu_plugin_open: log that, and use it as the reason
 * unless the task reported one. */
static void note_loading(struct run *run, struct cmd_child *child)
{
    char words[CMD_REPORT_BYTES + 128];

    (void)snprintf(words, sizeof words, "%s ended while it was loading plugin \"%s\"",
                   child->name, child->loading);
    say(run, MU_LOG_WARN, "%s", words);
    if (child->reason[0] == '\0')
        (void)snprintf(child->reason, sizeof child->reason, "%.*s",
                       (int)sizeof child->reason - 1, words);
}

static void child_ended(struct run *run, struct cmd_child *child, int status)
{
    cmd_child_ended(child, status);
    if (child->loading[0] != '\0')
        note_loading(run, child);
    if (child->loading[0] != '\0' && child->code == CMD_FINE)
        child->code = CMD_USAGE;
    if (is_stopped_well(run, child)) {
        child->code = CMD_FINE;
        (void)snprintf(child->end, sizeof child->end, "has stopped: the job is done");
    }
    if (child->code == CMD_UNENDED)
        run->unended = true;
    if (run->phase == RUNNING && cmd_child_needs_restart(child)) {
        arrange_restart(run, child);
    } else {
        bool is_given_up = run->phase == RUNNING && child->code == CMD_USAGE &&
                           child->policy != CMD_RESTART_NEVER;

        child->ended = true;
        say(run, is_expected_end(run, child) ? MU_LOG_INFO : MU_LOG_WARN, "%s %s%s",
            child->name, child->end, is_given_up ? " and is not started again" : "");
        if (child->policy == CMD_RESTART_FAIL_JOB && child->code != CMD_FINE)
            fail_job(run, child);
    }
    if (strcmp(child->type, "chief") == 0)
        chief_ended(run, child);
    if (strcmp(child->type, "client") == 0)
        client_ended(run, child);
    if (!child->job_failed)
        report_ended(run, child);
    if (strcmp(child->type, "worker") == 0)
        note_workers_done(run);
    note_task_change(run, child);
}

/* What a task has forked ends with it: it may have inherited the task's socket. The group
 * is killed before the process is reaped, while its number is surely its own. */
static void reap_children(struct run *run)
{
    siginfo_t info = {.si_pid = 0};
    int status;

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
        pid_t pid = info.si_pid;

        (void)kill(-pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
        for (size_t i = 0; i < run->count; i++)
            if (run->children[i].pid == pid)
                child_ended(run, &run->children[i], status);
        info.si_pid = 0;
    }
}

/* ---- the loop ---- */

static void handle_signals(struct run *run)
{
    unsigned char bytes[64];
    ssize_t size = read(signal_pipe[0], bytes, sizeof bytes);

    for (ssize_t i = 0; i < size; i++)
        if (bytes[i] != SIGCHLD)
            handle_interrupt(run, bytes[i]);
    reap_children(run);
}

static int min_wait_ms(int a_ms, uint64_t due_ms)
{
    uint64_t now = cmd_now_ms();
    int b_ms = due_ms <= now ? 0 : (int)(due_ms - now);

    return a_ms < 0 || b_ms < a_ms ? b_ms : a_ms;
}

static int get_poll_timeout(struct run *run)
{
    int wait_ms = cmd_output_tick(&run->output, cmd_now_ms());

    if (run->phase == LEAVING || run->phase == STOPPING)
        wait_ms = min_wait_ms(wait_ms, run->phase_ends_ms);
    for (size_t i = 0; i < run->count; i++)
        if (run->children[i].restart_ms != 0)
            wait_ms = min_wait_ms(wait_ms, run->children[i].restart_ms);
    return wait_ms;
}

static void restart_due(struct run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        struct cmd_child *child = &run->children[i];

        if (child->restart_ms == 0 || cmd_now_ms() < child->restart_ms)
            continue;
        child->restart_ms = 0;
        child->ended = start_child(run, child) != 0;
        if (child->ended)
            (void)snprintf(child->end, sizeof child->end, "could not be started");
        report_ended(run, child);
        report_former_ends(run, child);
        note_task_change(run, child);
    }
}

static bool is_run_over(const struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->children[i].pid > 0 || !run->children[i].ended)
            return false;
    return !run->is_controlled || run->phase != RUNNING;
}

static void run_turn(struct run *run, struct pollfd *polled)
{
    size_t streams = 2 * run->count;
    int rv;

    polled[0] = (struct pollfd){.fd = signal_pipe[0], .events = POLLIN};
    polled[1] = (struct pollfd){.fd = run->is_controlled ? run->commands.fd : -1,
                                .events = POLLIN};
    for (size_t i = 0; i < streams; i++)
        polled[i + 2] = (struct pollfd){.fd = run->children[i / 2].streams[i % 2].fd,
                                        .events = POLLIN};
    rv = poll(polled, streams + 2, get_poll_timeout(run));
    for (size_t i = 0; rv > 0 && i < streams; i++)
        if (polled[i + 2].revents != 0)
            cmd_child_read(&run->children[i / 2]);
    if (rv > 0 && polled[0].revents != 0)
        handle_signals(run);
    if (rv > 0 && polled[1].revents != 0 && !cmd_commands_read(&run->commands))
        begin_phase(run, KILLING, 0);
    restart_due(run);
    next_phase(run);
}

/* The exit code: the chief's, or without a chief the first one that is not CMD_FINE. */
static int get_run_result(const struct run *run)
{
    int result = run->result;

    for (size_t i = 0; result < 0 && i < run->count; i++)
        if (run->children[i].code != CMD_FINE)
            result = run->children[i].code;
    if (result < 0)
        result = CMD_FINE;
    if (run->unended && (result == CMD_FINE || result > CMD_SIGNAL))
        result = CMD_UNENDED;
    return result;
}

/* When the log is quiet, print one line at the start, and one at the end. */
static void print_start_line(const struct run *run)
{
    char *cluster = run->is_controlled && run->phase == RUNNING
                        ? mu_cluster_to_json(run->cluster)
                        : NULL;

    if (cluster != NULL)
        cmd_event_send("ready", NULL, "cluster", cJSON_CreateRaw(cluster), NULL, NULL);
    free(cluster);
    if (run->level < MU_LOG_WARN || run->is_controlled)
        return;
    (void)fflush(stdout);
    (void)fprintf(stderr, "muster: %zu task%s%s started%s\n", run->count,
                  run->count == 1 ? "" : "s", run->count == 1 ? " is" : " are",
                  run->level < MU_LOG_INFO ? "; --log-level info says more" : "");
}

static void print_end_line(const struct run *run, int code)
{
    const char *reason = cmd_children_reason(run->children, run->count, code);
    uint64_t took_ms = cmd_now_ms() - run->began_ms;

    if (run->is_controlled || (run->level < MU_LOG_WARN && reason[0] == '\0'))
        return;
    (void)fprintf(stderr, "muster: ended with exit code %d after %llu.%llu s%s%s\n", code,
                  (unsigned long long)(took_ms / 1000),
                  (unsigned long long)(took_ms % 1000 / 100),
                  reason[0] == '\0' ? "" : ": ", reason);
}

static int run_all_children(struct run *run)
{
    struct pollfd *polled = calloc(2 * run->count + 2, sizeof *polled);

    if (polled == NULL)
        return CMD_FAILED;
    for (size_t i = 0; i < run->count; i++) {
        run->children[i].on_line = on_line;
        run->children[i].user = run;
        if (run->phase == RUNNING && start_child(run, &run->children[i]) != 0) {
            run->result = CMD_FAILED;
            stop_run(run);
        }
        note_task_change(run, &run->children[i]);
    }
    print_start_line(run);
    while (!is_run_over(run))
        run_turn(run, polled);
    free(polled);
    cmd_output_end(&run->output);
    return get_run_result(run);
}

/* ---- the verb ---- */

static void init_output(struct run *run)
{
    bool terminal = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL;
    unsigned when = cmd_number(run->options, CMD_FLAG_COLOR);
    int width = (int)strlen("muster");

    for (size_t i = 0; i < run->count; i++)
        if ((int)strlen(run->children[i].name) > width)
            width = (int)strlen(run->children[i].name);
    cmd_output_init(&run->output, STDOUT_FILENO, width,
                    when == 1 || (when == 0 && terminal));
    run->output.json = cmd_number(run->options, CMD_FLAG_LOG_FORMAT) == 1;
}

static int prepare_run(struct run *run, mu_error *error)
{
    int rv = cmd_settings_check(run->options, error);

    if (rv == 0)
        rv = cmd_local_cluster_new(run->options, error, run->folder, &run->ports,
                                   &run->cluster);
    if (rv == 0)
        rv = cmd_children_new(run->options, run->cluster, error, &run->children,
                              &run->count);
    if (rv == 0)
        rv = cmd_launch_init(&run->launch, run->options, error);
    if (rv == 0 && watch_run_signals() != 0)
        rv = mu_error_set(error, -MU_EEXHAUSTED, "signals cannot be watched: %s",
                          strerror(errno));
    return rv == 0 ? check_status_file(run, error) : rv;
}

int cmd_run(struct cmd_options *options)
{
    struct run run = {
        .options = options,
        .result = -1,
        .grace_ms = cmd_number(options, CMD_FLAG_GRACE_MS),
        .level =
            cmd_is_quiet(options) ? MU_LOG_WARN : cmd_number(options, CMD_FLAG_LOG_LEVEL),
        .began_ms = cmd_now_ms(),
        .is_controlled = cmd_number(options, CMD_FLAG_CONTROL) == 1,
        .commands = {STDIN_FILENO, stop_by_command, &run, .used = 0},
    };
    mu_error error;
    bool preempts = cmd_number(options, CMD_FLAG_PREEMPT_ON_SIGTERM) == 1;
    int rv = prepare_run(&run, &error);
    int code = rv == -MU_EINVALID ? CMD_USAGE : CMD_FAILED;

    run.stop_ms = run.grace_ms * (preempts ? 2 : 1) + KILL_AFTER_MS;
    if (run.is_controlled)
        (void)signal(SIGPIPE, SIG_IGN); /* of a parent that has ended */
    if (rv == 0) {
        init_output(&run);
        code = run_all_children(&run);
        print_end_line(&run, code);
        (void)snprintf(error.message, sizeof error.message, "%s",
                       cmd_children_reason(run.children, run.count, code));
    } else if (!run.is_controlled) {
        (void)fprintf(stderr, "muster run: %s\n", error.message);
    }
    if (run.is_controlled)
        cmd_event_send("finished", NULL, "exit_code", cmd_json_int(code), "message",
                       cmd_json_text(error.message, strlen(error.message)));
    cmd_local_cluster_done(run.folder, run.cluster, &run.ports);
    mu_cluster_free(run.cluster);
    cmd_launch_done(&run.launch);
    free(run.children);
    return code;
}
