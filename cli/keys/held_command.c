#include "cli/keys/held_command.h"

#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { LOOK_MS = 20, END_MS = 5000 };

/* ---- the command's process ---- */

static void die_with_client(pid_t parent)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(CMD_NOT_STARTED);
}

/* Unblock the signals that this process waits for on a thread. */
static void reset_signal_mask(void)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child. Writes the errno of a failure to the pipe `out`, which execvp() closes
 * otherwise. */
static void exec_held_command(const struct cmd_command *command, pid_t parent, int out)
{
    int code;

    die_with_client(parent);
    reset_signal_mask();
    (void)execvp(command->arguments[0], command->arguments);
    code = errno;
    (void)!write(out, &code, sizeof code);
    _exit(CMD_NOT_STARTED);
}

static int refuse_start(const struct cmd_command *command, int number, mu_error *error)
{
    return mu_error_set(error, number == ENOENT ? CMD_NOT_FOUND : CMD_NOT_STARTED,
                        "%.200s cannot be started: %s", command->arguments[0],
                        strerror(number));
}

/* Fork and exec the command. Returns 0, or the exit code for a failure. */
static int start_held_command(const struct cmd_command *command, mu_error *error,
                              pid_t *ret_pid)
{
    pid_t parent = getpid();
    int number = 0;
    int ends[2];

    for (const char *const *at = command->variables; *at != NULL; at += 2)
        (void)setenv(at[0], at[1], 1);
    if (pipe(ends) != 0)
        return refuse_start(command, errno, error);
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    *ret_pid = fork();
    if (*ret_pid == 0)
        exec_held_command(command, parent, ends[1]);
    if (*ret_pid < 0)
        number = errno;
    (void)close(ends[1]);
    if (number == 0 && read(ends[0], &number, sizeof number) > 0)
        (void)waitpid(*ret_pid, NULL, 0);
    (void)close(ends[0]);
    return number == 0 ? 0 : refuse_start(command, number, error);
}

/* ---- while it runs ---- */

static void sleep_shortly(void)
{
    (void)nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
}

/* Leaves the zombie, so that the pid is not reused before it is reaped. */
static bool has_process_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == pid;
}

static int reap_command(struct cmd_client *client, pid_t pid)
{
    int status = 0;
    pid_t reaped;

    cmd_hold_signals(client);
    reaped = waitpid(pid, &status, 0);
    cmd_forward_signals(client, 0);
    if (reaped != pid)
        return CMD_FAILED;
    return WIFSIGNALED(status) ? CMD_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static void end_process(pid_t pid)
{
    uint64_t until_ms = cmd_now_ms() + END_MS;

    (void)kill(pid, SIGTERM);
    while (!has_process_ended(pid) && cmd_now_ms() < until_ms)
        sleep_shortly();
    if (!has_process_ended(pid))
        (void)kill(pid, SIGKILL);
}

int cmd_command_run(struct cmd_client *client, const struct cmd_command *command,
                    mu_error *error)
{
    bool lost = false;
    pid_t pid = 0;
    int code;

    cmd_hold_signals(client);
    code = start_held_command(command, error, &pid);
    cmd_forward_signals(client, code == 0 ? pid : 0);
    if (code != 0)
        return code;
    while (!has_process_ended(pid) && !lost)
        lost = command->lost(command->held, LOOK_MS, error) != -MU_EDEADLINE;
    if (lost)
        end_process(pid);
    code = reap_command(client, pid);
    if (!lost)
        error->message[0] = '\0';
    return lost ? CMD_FAILED : code;
}

int cmd_command_none(const struct cmd_command *command, mu_error *error)
{
    (void)command->lost(command->held, -1, error);
    return CMD_FAILED;
}
