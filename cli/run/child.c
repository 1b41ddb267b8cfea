#include "cli/run/processes.h"

#include "cli/verbs.h"

#include "muster/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { READS_MAX = 16, EXIT_NOT_STARTED = 127 };

/* The executable of the embedding program, or this one. */
static const char *get_own_program(void)
{
    const char *const *host = cmd_host()->command;

    return host == NULL || host[0] == NULL ? "/proc/self/exe" : host[0];
}

/* ---- starting ---- */

/* If the parent has exited before prctl, no signal will come: exit at once. */
static void die_with_run(pid_t parent)
{
#ifdef __linux__
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        _exit(EXIT_NOT_STARTED);
#endif
    if (getppid() != parent)
        _exit(EXIT_NOT_STARTED);
}

/* In the child: the parent's handlers would write the child's signals into the parent's
 * pipe. */
static void forget_handlers(const sigset_t *mask)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        (void)signal(numbers[i], SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Fork with all signals blocked, so that the child resets its handlers first. *ret_mask
 * is the signal mask before. */
static pid_t fork_quietly(sigset_t *ret_mask)
{
    sigset_t all;
    pid_t pid;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, ret_mask);
    pid = fork();
    if (pid == 0)
        forget_handlers(ret_mask);
    else
        (void)sigprocmask(SIG_SETMASK, ret_mask, NULL);
    return pid;
}

static void exec_child(int out, int supervision, pid_t parent, char *const *arguments,
                       char *const *environment)
{
    int null = open("/dev/null", O_RDONLY);

    die_with_run(parent);
    (void)setpgid(0, 0);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(out, STDERR_FILENO) < 0 || dup2(supervision, CMD_SUPERVISION_FD) < 0 ||
        fcntl(CMD_SUPERVISION_FD, F_SETFD, 0) != 0)
        _exit(EXIT_NOT_STARTED);
    (void)execve(get_own_program(), arguments, environment);
    _exit(EXIT_NOT_STARTED);
}

static int own_flags(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
                   fcntl(fd, F_SETFD, FD_CLOEXEC) != 0
               ? -1
               : 0;
}

static void close_both(const int ends[2])
{
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* The parent's end is the first, and does not block. */
static int prepare_pipe(int ends[2])
{
    if (own_flags(ends[0]) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0)
        return 0;
    close_both(ends);
    return -1;
}

static int start_with(struct cmd_child *child, const int out[2], const int supervision[2],
                      char *const *arguments, char *const *environment)
{
    pid_t parent = getpid();
    sigset_t mask;
    pid_t pid = fork_quietly(&mask);

    if (pid == 0)
        exec_child(out[1], supervision[1], parent, arguments, environment);
    if (pid < 0)
        return -1;
    (void)close(out[1]);
    (void)close(supervision[1]);
    child->pid = pid;
    child->fd = out[0];
    child->supervision_fd = supervision[0];
    child->used = 0;
    child->returned = false;
    child->loading[0] = '\0';
    child->reason[0] = '\0';
    child->job_failed = false;
    return 0;
}

int cmd_child_start(struct cmd_child *child, char *const *arguments,
                    char *const *environment)
{
    int supervision[2];
    int out[2];

    if (pipe(out) != 0 || prepare_pipe(out) != 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, supervision) != 0 ||
        prepare_pipe(supervision) != 0) {
        close_both(out);
        return -1;
    }
    if (start_with(child, out, supervision, arguments, environment) == 0)
        return 0;
    close_both(out);
    close_both(supervision);
    return -1;
}

/* ---- the supervision pipe ---- */

static void store_child_report(struct cmd_child *child, const char *line)
{
    char *to = line[0] == MU_SUPERVISION_LOADING  ? child->loading
               : line[0] == MU_SUPERVISION_REASON ? child->reason
                                            : NULL;

    if (line[0] == MU_SUPERVISION_JOB_FAILED)
        child->job_failed = true;
    if (to != NULL)
        (void)snprintf(to, CMD_REPORT_BYTES, "%s", line + 1);
}

void cmd_child_report_ended(const struct cmd_child *child, const struct cmd_child *other)
{
    char line[MU_SUPERVISION_LINE_BYTES];
    int size = snprintf(line, sizeof line, "%s:%d %s, and is not started again\n",
                        other->type, other->index, other->end);

    if (child->pid > 0 && child->supervision_fd >= 0 && size < (int)sizeof line)
        (void)!send(child->supervision_fd, line, (size_t)size,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
}

void cmd_child_read_reports(struct cmd_child *child)
{
    char line[CMD_REPORT_BYTES];
    size_t used = 0;
    char byte;

    while (child->supervision_fd >= 0 && read(child->supervision_fd, &byte, 1) == 1) {
        if (byte != '\n' && used + 1 < sizeof line)
            line[used++] = byte;
        if (byte != '\n')
            continue;
        line[used] = '\0';
        store_child_report(child, line);
        used = 0;
    }
    if (child->supervision_fd >= 0)
        (void)close(child->supervision_fd);
    child->supervision_fd = -1;
}

/* ---- lines ---- */

static void read_child_byte(struct cmd_child *child, char byte, cmd_child_line_fn on_line,
                            void *user)
{
    if (byte == '\n') {
        on_line(user, child, child->line, child->used, false);
        child->used = 0;
        child->returned = false;
        return;
    }
    if (byte == '\r') {
        if (!child->returned && child->used > 0)
            on_line(user, child, child->line, child->used, true);
        child->returned = true;
        return;
    }
    /* The text before the carriage return was a progress line, and has been shown. */
    if (child->returned)
        child->used = 0;
    child->returned = false;
    if (child->used == sizeof child->line) {
        on_line(user, child, child->line, child->used, false);
        child->used = 0;
    }
    child->line[child->used++] = byte;
}

void cmd_child_read(struct cmd_child *child, cmd_child_line_fn on_line, void *user)
{
    char bytes[4096];

    for (int i = 0; i < READS_MAX && child->fd >= 0; i++) {
        ssize_t size = read(child->fd, bytes, sizeof bytes);

        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (size <= 0) {
            (void)close(child->fd);
            child->fd = -1;
        }
        for (ssize_t at = 0; at < size; at++)
            read_child_byte(child, bytes[at], on_line, user);
    }
}

/* A process that the task forked may hold the pipe open for ever: does not wait for its
 * end. */
void cmd_child_drain(struct cmd_child *child, cmd_child_line_fn on_line, void *user)
{
    cmd_child_read(child, on_line, user);
    if (child->fd >= 0)
        (void)close(child->fd);
    child->fd = -1;
    if (child->used > 0 && !child->returned)
        on_line(user, child, child->line, child->used, false);
    child->used = 0;
}
