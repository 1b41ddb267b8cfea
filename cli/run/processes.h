/* The processes of `muster run`: their cluster spec, their arguments and environment,
 * starting each, and the table of them. Plain POSIX without libuv: this process forks, so
 * it has no other threads and no connections. */
#ifndef MU_CLI_PROCESSES_H
#define MU_CLI_PROCESSES_H

#include "cli/options/flags.h"

#include "muster/cluster.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- child.c: one process, and the lines that it prints ---- */

enum { CMD_LINE_BYTES = 1 << 20, CMD_NAME_BYTES = 32 };

/* The child's descriptor of the pipe of supervision_pipe.h. */
enum { CMD_SUPERVISION_FD = 3, CMD_REPORT_BYTES = 600 };

/* What becomes of a task that ends. */
enum cmd_restart {
    CMD_RESTART_NEVER,
    CMD_RESTART_ON_FAILURE,
    CMD_RESTART_ALWAYS,
    CMD_RESTART_FAIL_JOB /* its failure is the job's */
};

struct cmd_child;

/* Called for each line, without its end; `progress` when a carriage return ended it. */
typedef void (*cmd_child_line_fn)(void *user, struct cmd_child *child, bool is_error,
                                  const char *text, size_t size, bool progress);

/* One output of a process. */
struct cmd_stream {
    int fd;     /* read end; -1: closed */
    char *line; /* `used` bytes of a line that has not ended */
    size_t used;
    size_t room;
    bool returned; /* `line` ends with a carriage return, and was shown
                      as progress */
};

struct cmd_child {
    char name[CMD_NAME_BYTES]; /* "worker/1" */
    const char *type;
    int index;
    const char *address; /* owned by the cluster spec */
    unsigned colour;
    enum cmd_restart policy;
    pid_t pid;                    /* 0: it does not run */
    bool is_controlled;           /* --control: standard error is apart, and carriage
                                     returns are part of lines */
    struct cmd_stream streams[2]; /* output, which has the errors unless these are
                                     apart; errors */
    cmd_child_line_fn on_line;
    void *user;
    int supervision_fd;             /* our end of its supervision pipe; -1: closed */
    char loading[CMD_REPORT_BYTES]; /* the plugin it was loading when it ended; "":
                                       none */
    bool job_failed;                /* it reported that it ended because the job failed */
    char reason[CMD_REPORT_BYTES];  /* why it ended, as it reported; "": no report */
    uint64_t started_ms;
    uint64_t restart_ms; /* when it will be restarted; 0: not scheduled */
    unsigned restarts;   /* in a row */
    unsigned restarts_total;
    bool ended;   /* for good */
    char end[96]; /* how its last process has ended: the predicate of a
                     message */
    int code;     /* its last exit code, 128 + n after a signal */
};

/* Start the process with these arguments and this environment. It gets a process group of
 * its own, so that a terminal's Ctrl-C reaches the parent only, and the kernel kills it
 * when this process ends. Returns 0, or -1 with errno. */
int cmd_child_start(struct cmd_child *child, char *const *arguments,
                    char *const *environment);

/* Tell a child that the process of another one has ended and is not started again. A
 * child that does not read is not waited for. */
void cmd_child_report_ended(const struct cmd_child *child, const struct cmd_child *other);

/* Read the available output, line by line; closes a descriptor at the end of file. */
void cmd_child_read(struct cmd_child *child);

/* After its end, with this status of waitpid: set how it has ended, and read the
 * remaining output and reports; the last line may lack its line end. */
void cmd_child_ended(struct cmd_child *child, int status);

/* ---- children.c: the table of processes, and the status file ---- */

/* Whether a task that ended is started again; not after a usage error, which would only
 * repeat. */
bool cmd_child_needs_restart(const struct cmd_child *child);

/* Make a row for each task of the cluster, not started yet, with its restart policy;
 * with --control none for the chief. The caller frees the array, also after a failure. */
int cmd_children_new(const struct cmd_options *options, const mu_cluster *cluster,
                     mu_error *ret_error, struct cmd_child **ret_children,
                     size_t *ret_count);

/* The reason for exit code `code`: the chief's or the client's, or that of the first task
 * that ended with it. */
const char *cmd_children_reason(const struct cmd_child *children, size_t count, int code);

/* What the status file has of a task; the caller frees it. */
cJSON *cmd_child_json(const struct cmd_child *child);

/* Write --status-file. Returns 0 or an errno. */
int cmd_children_write(const struct cmd_child *children, size_t count, const char *path);

/* ---- launch.c: arguments and environment of the processes ----
 *
 * This command's own, without the variables that identify a task; with --control the
 * environment is otherwise as the parent has made it. */

enum { CLI_ARGUMENTS_MAX = 256, CLI_RUN_NAME_BYTES = 40 };

/* Borrows from the options and from this process's environment. */
struct cmd_launch {
    char *arguments[CLI_ARGUMENTS_MAX];
    char **task; /* the two elements of `arguments` for --task NAME */
    char **environment;
    char **tf_config; /* the last element of `environment`, for the task's
                         TF_CONFIG */
};

/* Fill in arguments and environment; free them. */
int cmd_launch_init(struct cmd_launch *launch, const struct cmd_options *options,
                    mu_error *ret_error);
void cmd_launch_done(struct cmd_launch *launch);

/* Start a task's process. Returns 0, or -1 with errno. */
int cmd_launch_start(struct cmd_launch *launch, const mu_cluster *cluster,
                     struct cmd_child *child);

/* Whether only warnings are logged, since no log flag was given: lines about starting and
 * ending tasks would hide the programs' output. */
bool cmd_is_quiet(const struct cmd_options *options);

/* ---- local_cluster.c: a cluster spec for this machine ---- */

enum { CMD_FOLDER_BYTES = 88 };

/* Sockets that keep ports of the tasks, so that nobody else gets one by chance, while a
 * task starts or is started anew. Zeroed memory: none. */
struct cmd_ports {
    int *fds;
    int count;
};

/* Make the cluster spec of --workers, --ps, --counts and so on, with free ports of
 * 127.0.0.1, or with --transport ipc with sockets in a new directory, whose path is
 * written to `ret_folder` ("" otherwise). Raises the limit of open files as needed.
 * -MU_EINVALID names the flag with an invalid value. The caller frees the cluster, and
 * ends the rest with cmd_local_cluster_done. */
int cmd_local_cluster_new(const struct cmd_options *options, mu_error *ret_error,
                          char *ret_folder, struct cmd_ports *ret_ports,
                          mu_cluster **ret_cluster);

/* Let go of the ports, and remove the directory and the sockets in it; "" is fine. */
void cmd_local_cluster_done(const char *folder, const mu_cluster *cluster,
                            struct cmd_ports *ports);

/* ---- control.c: --control, JSON lines to and from the parent, which is the chief ----
 *
 * docs/manual/muster.md lists them. */

enum { CMD_COMMAND_BYTES = 512 };

/* Write an event to standard output: of a task or of none (NULL), with one member or two,
 * which are freed. */
void cmd_event_send(const char *kind, const char *task, const char *name, cJSON *item,
                    const char *second_name, cJSON *second);

struct cmd_commands {
    int fd; /* standard input; -1: it has ended */
    void (*on_stop)(void *user, unsigned leave_ms, unsigned kill_ms);
    void *user;
    size_t used;                  /* bytes in `line` */
    char line[CMD_COMMAND_BYTES]; /* the beginning of a longer one */
};

/* Do what is there, and refuse other lines. False: there are no more. */
bool cmd_commands_read(struct cmd_commands *commands);

#endif
