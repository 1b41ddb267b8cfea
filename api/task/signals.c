/* Signals of a task, and what its supervisor says to it.
 *
 * The handler writes signals into a pipe, and a thread reads them. The first signal
 * begins to stop the node: every call that waits returns, so that the main thread's work
 * ends, too. The second signal ends the process.
 *
 * With preempt_on_sigterm the first SIGTERM is a preemption notice instead: the program
 * should end at the step that the tasks agree on. If the grace period ends before it has,
 * or another signal comes, that acts as the first signal.
 *
 * SIGHUP opens the log file again and reads key and certificate files again, and is no
 * such signal. SIGQUIT writes the stacks of
 * all threads before it is one. */
#include "api/task/task.h"

#include "api/task_program.h"
#include "node/node.h"
#include "runtime/uv/thread.h"

#include "muster/coordination.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLOSING_MS = 1500, /* for closing the node after the grace period */
    LOOK_AGAIN = 255   /* in the signal pipe: what is polled has changed */
};

/* Static: the handler has no other argument than the signal. */
static int signal_pipe[2] = {-1, -1};
static pid_t signal_owner;

static uint64_t get_now_ms(void)
{
    return uv_hrtime() / 1000000;
}

/* Pass a signal to the watcher; 0: end its thread. */
static void notify_watcher(int number)
{
    unsigned char byte = (unsigned char)number;

    (void)!write(signal_pipe[1], &byte, 1);
}

/* A process that a function has forked shares the pipe: its signals take their default
 * action there. */
static void on_task_signal(int number)
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

/* The node with a reference, so that it stays valid while the main thread closes it; NULL
 * without a node. */
static mu_node *hold_node(struct task_main *task)
{
    mu_node *node;

    pthread_mutex_lock(&task->lock);
    node = task->node;
    if (node != NULL)
        mu__node_ref(node);
    pthread_mutex_unlock(&task->lock);
    return node;
}

/* ---- tasks whose processes have ended for good ---- */

/* "worker:1 was killed by signal 9 (Killed), and is not started again" */
static void handle_parent_line(struct task_main *task, const char *line)
{
    mu_node *node = hold_node(task);
    char type[16];
    unsigned index;
    int at = 0;

    if (node == NULL)
        return;
    if (sscanf(line, "%15[a-z0-9_-]:%u %n", type, &index, &at) == 2 && at > 0)
        mu__node_task_ended(node, type, index, line + at);
    mu__node_unref(node);
}

/* Once its end was closed, nothing more comes; nor if it is no socket, but the pipe of
 * another version. */
static void read_parent(struct task_main *task)
{
    struct task_parent *parent = &task->parent;
    char bytes[MU_SUPERVISION_LINE_BYTES];
    ssize_t size = recv(parent->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        parent->fd = -1;
    for (ssize_t i = 0; i < size; i++) {
        bool is_end = bytes[i] == '\n';

        parent->line[parent->used] = is_end ? '\0' : bytes[i];
        if (is_end)
            handle_parent_line(task, parent->line);
        parent->used = is_end ? 0 : parent->used + (parent->used + 1 < sizeof bytes);
    }
}

void mu__task_hear_parent(struct task_main *task)
{
    atomic_store(&task->parent.is_heard, true);
    notify_watcher(LOOK_AGAIN);
}

/* ---- signals ---- */

static void reopen_task_log(struct task_main *task)
{
    const mu_task_options *options = task->options;
    int number = options->reopen_log == NULL ? 0 : options->reopen_log(options->user);

    if (options->reopen_log == NULL)
        return;
    if (number == 0)
        mu__task_say(task, MU_LOG_INFO, "SIGHUP: the log is opened again");
    else
        mu__task_say(task, MU_LOG_ERROR,
                     "SIGHUP: the log file cannot be opened again: %s", strerror(number));
}

static void reread_proof(struct task_main *task)
{
    pthread_mutex_lock(&task->lock);
    if (task->node != NULL)
        mu__node_reread_proof(task->node);
    pthread_mutex_unlock(&task->lock);
}

/* Wait for a signal; 0: end the watcher's thread; -1: nothing has come for
 * `timeout_ms`. */
static int read_signal(struct task_main *task, int timeout_ms)
{
    for (;;) {
        bool hears = atomic_load(&task->parent.is_heard);
        struct pollfd readable[2] = {
            {.fd = signal_pipe[0], .events = POLLIN},
            {.fd = hears ? task->parent.fd : -1, .events = POLLIN},
        };
        unsigned char byte = 0;
        int rv = poll(readable, 2, timeout_ms);

        if (rv == 0 || (rv < 0 && errno != EINTR))
            return -1;
        if (rv > 0 && readable[1].revents != 0)
            read_parent(task);
        if (rv < 0 || readable[0].revents == 0)
            continue;
        if (read(signal_pipe[0], &byte, 1) != 1)
            return 0;
        if (byte != LOOK_AGAIN)
            return byte;
    }
}

/* The same for the signals that end the task. */
static int next_task_signal(struct task_main *task, int timeout_ms)
{
    uint64_t end_ms = get_now_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
    int number = read_signal(task, timeout_ms);

    while (number == SIGHUP) {
        uint64_t time_ms = get_now_ms();

        reopen_task_log(task);
        reread_proof(task);
        if (timeout_ms >= 0)
            timeout_ms = time_ms < end_ms ? (int)(end_ms - time_ms) : 0;
        number = read_signal(task, timeout_ms);
    }
    if (number == SIGQUIT)
        mu__write_stacks(task->options->stacks_fd);
    return number;
}

/* Begin to stop the node as mu_node_close does, without waiting and freeing: calls return
 * -MU_ECLOSED from then on, and the main thread closes the node. */
static void begin_end(mu_node *node, int grace_ms)
{
    atomic_store(&node->lifecycle.timeout_ms, grace_ms);
    (void)uv_async_send(&node->lifecycle.stop);
}

/* Let a worker finish its closures for half of the grace period; the rest is for its
 * functions to end once they are cancelled. False: some were not finished. */
static bool drain_task(struct task_main *task)
{
    mu_node *node = hold_node(task);
    mu_error error;
    int rv;

    if (node == NULL)
        return true;
    rv = mu_node_drain(node, task->grace_ms / 2, &error);
    if (rv == 0)
        mu__task_say(task, MU_LOG_INFO, "has finished its closures");
    else if (error.code != -MU_ECLOSED)
        mu__task_say(task, MU_LOG_INFO, "leaves with unfinished closures: %s",
                     error.message);
    mu__node_unref(node);
    return rv != -MU_EDEADLINE;
}

static void leave_job_run(struct task_main *task)
{
    mu_node *node = hold_node(task);

    if (node == NULL)
        return;
    mu__node_leave_run(node);
    mu__node_unref(node);
}

static void *end_task(void *arg)
{
    struct task_main *task = arg;
    uint64_t began_ms = get_now_ms();
    int left_ms = task->grace_ms;
    bool in_order = true;

    if (atomic_load(&task->drains)) {
        in_order = drain_task(task);
        left_ms -= (int)(get_now_ms() - began_ms);
    }
    atomic_store(&task->in_order, in_order);
    leave_job_run(task);
    atomic_store(&task->closing_ms, left_ms < 0 ? 0 : left_ms);
    pthread_mutex_lock(&task->lock);
    if (task->node != NULL)
        begin_end(task->node, atomic_load(&task->closing_ms));
    pthread_mutex_unlock(&task->lock);
    return NULL;
}

int mu__task_signal_code(const struct task_main *task, int rv)
{
    int number = atomic_load(&task->signal);
    bool in_order = mu__node_has_program(task->node)
                        ? rv == 0 && strcmp(task->type, "chief") != 0
                        : rv == 0 || (rv == -MU_ECLOSED && atomic_load(&task->in_order));

    return in_order && number == SIGTERM && mu__supervision_fd() < 0
               ? MU_EXIT_FINE
               : MU_EXIT_SIGNAL + number;
}

/* Wait until the task has ended. Another signal ends the process at once, and so does the
 * end of the grace period. */
static void watch_end(struct task_main *task)
{
    int number = next_task_signal(task, task->grace_ms + CLOSING_MS);

    if (number > 0) {
        mu__task_say(task, MU_LOG_WARN, "signal %d (%s) again: ends at once", number,
                     strsignal(number));
        _exit(MU_EXIT_SIGNAL + number);
    }
    if (number < 0) {
        mu__task_say(task, MU_LOG_ERROR, "the program of %s did not end within %d ms",
                     task->name, task->grace_ms);
        _exit(MU_EXIT_UNENDED);
    }
}

static void *notify_preemption(void *arg)
{
    struct task_main *task = arg;
    mu_node *node = hold_node(task);
    mu_error error;

    if (node == NULL) {
        notify_watcher(SIGTERM);
        return NULL;
    }
    if (mu_preemption_notify(node, "SIGTERM", task->grace_ms, task->grace_ms, &error) !=
            0 &&
        error.code != -MU_ECLOSED) {
        mu__task_say(task, MU_LOG_WARN, "the preemption notice was not given: %s",
                     error.message);
        notify_watcher(SIGTERM);
    }
    mu__node_unref(node);
    return NULL;
}

/* Give the preemption notice, and wait for the program to end within the grace period.
 * Returns 0 when the task has ended by itself, else the signal with which to stop it (at
 * once when the notice cannot be given). */
static int preempt_task(struct task_main *task)
{
    int number;

    mu__task_say(task, MU_LOG_INFO,
                 "SIGTERM: all tasks agree on a step to stop at, within %d ms",
                 task->grace_ms);
    task->notifies = mu__thread_start(notify_preemption, task, &task->notifier) == 0;
    if (!task->notifies)
        return SIGTERM;
    number = next_task_signal(task, task->grace_ms);
    return number < 0 ? SIGTERM : number;
}

/* Stop discovery: the main thread withdraws the task's announcement, and ends. Another
 * signal ends the process at once, and so does the end of the grace period. */
static void end_opening(struct task_main *task, int number)
{
    if (mu__discover_stop(&task->find_stop)) {
        if (next_task_signal(task, task->grace_ms + CLOSING_MS) == 0)
            return;
        mu__task_say(task, MU_LOG_WARN,
                     "ends at once: others may look for it for a while");
    }
    _exit(MU_EXIT_SIGNAL + number);
}

static void *watch_task_signals(void *arg)
{
    struct task_main *task = arg;
    int number = next_task_signal(task, -1);
    pthread_t job_owner;

    if (number == SIGTERM && !atomic_load(&task->opens) &&
        task->options->preempt_on_sigterm != 0)
        number = preempt_task(task);
    if (number <= 0)
        return NULL;
    atomic_store(&task->signal, number);
    mu__task_say(task, MU_LOG_INFO, "signal %d (%s): ends within %d ms", number,
                 strsignal(number), task->grace_ms);
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

int mu__task_watch_signals(struct task_main *task, mu_error *ret_error)
{
    static const int numbers[] = {SIGTERM, SIGINT,  SIGHUP, SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGALRM};
    struct sigaction action = {.sa_handler = on_task_signal, .sa_flags = SA_RESTART};
    int rv;

    (void)sigemptyset(&action.sa_mask);
    signal_owner = getpid();
    task->parent.fd = mu__supervision_fd();
    if (pipe(signal_pipe) != 0 || fcntl(signal_pipe[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(signal_pipe[1], F_SETFD, FD_CLOEXEC) != 0)
        return mu_error_set(ret_error, -MU_EEXHAUSTED, "signals cannot be watched: %s",
                            strerror(errno));
    rv = mu__thread_start(watch_task_signals, task, &task->watcher);
    if (rv != 0)
        return mu_error_set(ret_error, -MU_EEXHAUSTED, "signals cannot be watched: %s",
                            strerror(rv));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        (void)sigaction(numbers[i], &action, NULL);
    return 0;
}

void mu__task_unwatch_signals(struct task_main *task)
{
    notify_watcher(0);
    (void)pthread_join(task->watcher, NULL);
    if (task->notifies)
        (void)pthread_join(task->notifier, NULL);
}
