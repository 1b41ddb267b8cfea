/* The processes of `muster run`: the cluster that they are, how each is started, and the
 * table of them. Plain POSIX: a process that forks must not have threads or sockets of
 * ours. */
#ifndef MU_CLI_PROCESSES_H
#define MU_CLI_PROCESSES_H

#include "cli/options/flags.h"

#include "muster/cluster.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- child.c: one process, and the lines that it prints ---- */

enum { CMD_LINE_BYTES = 16384, CMD_NAME_BYTES = 32 };

/* The process finds a pipe here, through which it reports what supervision_pipe.h
 * lists. */
enum { CMD_SUPERVISION_FD = 3, CMD_REPORT_BYTES = 600 };

enum cmd_restart { CMD_RESTART_NEVER, CMD_RESTART_ON_FAILURE, CMD_RESTART_ALWAYS };

struct cmd_child {
    char name[CMD_NAME_BYTES];      /* "worker/1" */
    const char *type;
    int index;
    const char *address;            /* owned by the cluster spec */
    unsigned colour;
    enum cmd_restart policy;
    pid_t pid;                      /* 0: it does not run */
    int fd;                         /* reads what it prints; -1: closed */
    int supervision_fd;             /* reads its supervision pipe; -1: closed */
    char loading[CMD_REPORT_BYTES];   /* once it has ended: the plugin that it was loading
                                       then; "": none */
    bool job_failed;                /* it has ended because the job has failed */
    char reason[CMD_REPORT_BYTES];    /* and why it has ended; "": it has not said */
    uint64_t started_ms;
    uint64_t restart_ms;            /* when it is to be started again; 0: not */
    unsigned restarts;              /* in a row */
    unsigned restarts_total;
    bool ended;                     /* for good */
    int code;                       /* its last exit code, 128 + n after a signal */
    size_t used;                    /* bytes of a line that has not ended */
    bool returned;                  /* they end with a carriage return, shown already */
    char line[CMD_LINE_BYTES];
};

/* Called for each line, without its end; `progress` when a carriage return ended it. */
typedef void (*cmd_child_line_fn)(void *user, struct cmd_child *child, const char *text,
                                  size_t size, bool progress);

/* Start it with these arguments and this environment. It gets a process group of its own,
 * so that a terminal's Ctrl-C reaches the parent alone, and dies when this process does,
 * however that may be. Returns 0, or -1 with errno. */
int cmd_child_start(struct cmd_child *child, char *const *arguments,
                    char *const *environment);

/* It has ended: read what it has reported through its supervision pipe. */
void cmd_child_read_reports(struct cmd_child *child);

/* Read what there is, line by line; closes the descriptor at its end. */
void cmd_child_read(struct cmd_child *child, cmd_child_line_fn on_line, void *user);

/* It has ended: read what is left, and give the last line even without its end. */
void cmd_child_drain(struct cmd_child *child, cmd_child_line_fn on_line, void *user);

/* ---- children.c: which there are, and the file that shows them ---- */

/* One row for each task of the cluster, not started, with its policy of --restart. The
 * caller frees the array, also after a failure. */
int cmd_children_new(const struct cmd_options *options, const mu_cluster *cluster,
                     mu_error *ret_error, struct cmd_child **ret_children,
                     size_t *ret_count);

/* Write --status-file. Returns 0 or an errno. */
int cmd_children_write(const struct cmd_child *children, size_t count, const char *path);

/* ---- launch.c: their arguments and environment ----
 *
 * This command's own, without the variables that would make a child another task. */

enum { CLI_ARGUMENTS_MAX = 256, CLI_RUN_NAME_BYTES = 40 };

/* Borrows from the options and from our own environment. */
struct cmd_launch {
    char *arguments[CLI_ARGUMENTS_MAX];
    char **task;                /* two places among them: --task NAME */
    char **environment;
    char **tf_config;           /* the last place of the environment: the task's, too */
};

int cmd_launch_init(struct cmd_launch *launch, const struct cmd_options *options,
                    mu_error *ret_error);
void cmd_launch_done(struct cmd_launch *launch);

/* Log warnings only, unless a log flag was given: lines about tasks that start and end
 * would hide the program's output. */
bool cmd_is_quiet(const struct cmd_options *options);

/* ---- local_cluster.c: tasks by the flags, at free addresses of this machine ---- */

enum { CMD_FOLDER_BYTES = 64 };

/* The tasks that --workers, --ps, --counts and so on say, at free ports of 127.0.0.1, or
 * with --transport ipc at sockets in a fresh folder, whose path is written to
 * `ret_folder` ("" otherwise). Raises the limit of open files to what they need.
 * -MU_EINVALID names the flag that makes no sense. The caller frees the cluster, and
 * removes the folder with cmd_local_cluster_done. */
int cmd_local_cluster_new(const struct cmd_options *options, mu_error *ret_error,
                          char *ret_folder, mu_cluster **ret_cluster);

/* Remove the folder and the sockets in it; "" is fine. */
void cmd_local_cluster_done(const char *folder, const mu_cluster *cluster);

#endif
