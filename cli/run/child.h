/* One process of `muster run`: starting it, and the lines that it prints. Plain POSIX: a
 * process that forks must not have threads or sockets of ours. */
#ifndef MU_NODE_CMD_CHILD_H
#define MU_NODE_CMD_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
