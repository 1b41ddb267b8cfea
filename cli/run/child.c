#include "cli/run/processes.h"

#include "cli/verbs.h"

#include "muster/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
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
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGPIPE};

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

static void exec_child(const int out[2], int supervision, pid_t parent,
                       char *const *arguments, char *const *environment)
{
    int null = open("/dev/null", O_RDONLY);

    die_with_run(parent);
    (void)setpgid(0, 0);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out[0], STDOUT_FILENO) < 0 ||
        dup2(out[1], STDERR_FILENO) < 0 || dup2(supervision, CMD_SUPERVISION_FD) < 0 ||
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

/* `out` has a pipe for each output of its own. */
static int start_with(struct cmd_child *child, int (*out)[2], const int supervision[2],
                      char *const *arguments, char *const *environment)
{
    const int last = child->is_controlled;
    const int ends[] = {out[0][1], out[last][1]};
    pid_t parent = getpid();
    sigset_t mask;
    pid_t pid = fork_quietly(&mask);

    if (pid == 0)
        exec_child(ends, supervision[1], parent, arguments, environment);
    if (pid < 0)
        return -1;
    (void)close(supervision[1]);
    for (int i = 0; i <= last; i++) {
        (void)close(ends[i]);
        child->streams[i] = (struct cmd_stream){.fd = out[i][0]};
    }
    child->pid = pid;
    child->supervision_fd = supervision[0];
    child->loading[0] = '\0';
    child->reason[0] = '\0';
    child->job_failed = false;
    return 0;
}

int cmd_child_start(struct cmd_child *child, char *const *arguments,
                    char *const *environment)
{
    const int needed = 1 + child->is_controlled;
    int supervision[2];
    int out[2][2];
    int count = 0;

    while (count < needed && pipe(out[count]) == 0 && prepare_pipe(out[count]) == 0)
        count++;
    if (count == needed && socketpair(AF_UNIX, SOCK_STREAM, 0, supervision) == 0 &&
        prepare_pipe(supervision) == 0) {
        if (start_with(child, out, supervision, arguments, environment) == 0)
            return 0;
        close_both(supervision);
    }
    while (count > 0)
        close_both(out[--count]);
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

static void read_child_reports(struct cmd_child *child)
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

static void end_child_line(struct cmd_child *child, struct cmd_stream *stream,
                           bool progress)
{
    child->on_line(child->user, child, stream == &child->streams[1], stream->line,
                   stream->used, progress);
    if (!progress)
        stream->used = 0;
}

static bool grow_child_line(struct cmd_stream *stream)
{
    size_t room = stream->room == 0 ? 256 : 2 * stream->room;
    char *line = room > CMD_LINE_BYTES ? NULL : realloc(stream->line, room);

    if (line == NULL)
        return false;
    stream->line = line;
    stream->room = room;
    return true;
}

static void read_child_byte(struct cmd_child *child, struct cmd_stream *stream, char byte)
{
    bool is_return = byte == '\r' && !child->is_controlled;

    if (is_return && !stream->returned && stream->used > 0)
        end_child_line(child, stream, true);
    if (byte == '\n')
        end_child_line(child, stream, false);
    /* The text before the carriage return was a progress line, and has been shown. */
    if (stream->returned && !is_return)
        stream->used = 0;
    stream->returned = is_return;
    if (is_return || byte == '\n')
        return;
    if (stream->used == stream->room && !grow_child_line(stream))
        end_child_line(child, stream, false);
    if (stream->used < stream->room)
        stream->line[stream->used++] = byte;
}

static void close_child_stream(struct cmd_stream *stream)
{
    if (stream->fd >= 0)
        (void)close(stream->fd);
    stream->fd = -1;
}

static void read_child_stream(struct cmd_child *child, struct cmd_stream *stream)
{
    char bytes[4096];

    for (int i = 0; i < READS_MAX && stream->fd >= 0; i++) {
        ssize_t size = read(stream->fd, bytes, sizeof bytes);

        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (size <= 0)
            close_child_stream(stream);
        for (ssize_t at = 0; at < size; at++)
            read_child_byte(child, stream, bytes[at]);
    }
}

void cmd_child_read(struct cmd_child *child)
{
    for (int i = 0; i < 2; i++)
        read_child_stream(child, &child->streams[i]);
}

/* ---- its end ---- */

static void set_child_end(struct cmd_child *child, int status)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    child->code = number != 0 ? CMD_SIGNAL + number : WEXITSTATUS(status);
    if (number != 0)
        (void)snprintf(child->end, sizeof child->end, "was killed by signal %d (%s)",
                       number, strsignal(number));
    else
        (void)snprintf(child->end, sizeof child->end, "ended with exit code %d",
                       child->code);
}

/* A process that the task forked may hold the pipe open for ever: does not wait for its
 * end. */
void cmd_child_ended(struct cmd_child *child, int status)
{
    child->pid = 0;
    set_child_end(child, status);
    cmd_child_read(child);
    for (int i = 0; i < 2; i++) {
        struct cmd_stream *stream = &child->streams[i];

        close_child_stream(stream);
        if (stream->used > 0 && !stream->returned)
            end_child_line(child, stream, false);
        free(stream->line);
        *stream = (struct cmd_stream){.fd = -1};
    }
    read_child_reports(child);
}
