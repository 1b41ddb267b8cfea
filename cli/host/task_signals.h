/* The state of `muster node`, and its handling of signals. */
#ifndef MU_CLI_TASK_SIGNALS_H
#define MU_CLI_TASK_SIGNALS_H

#include "api/compat/compat.h"
#include "cli/output/log.h"
#include "cli/resolve/cluster_flags.h"
#include "node/discovery/discover.h"
#include "node/supervision_pipe.h"

#include <pthread.h>
#include <stdatomic.h>

/* `muster run`, if it has started this process; for the thread that watches. */
struct cmd_parent {
    atomic_bool is_heard;       /* the node is open, and gets what it says */
    int fd;                     /* -1: none, or closed */
    char line[MU_SUPERVISION_LINE_BYTES];
    size_t used;
};

struct cmd_task {
    const struct cmd_options *options;
    struct cmd_log log;
    struct cmd_spec spec;
    struct mu__server_offered offered;  /* the assignment of --wait-cluster, from which
                                           `spec` is made */
    int grace_ms;
    atomic_int closing_ms;      /* rest of the grace period, for closing the node */
    pthread_mutex_t lock;       /* guards `node` against the watcher */
    mu_node *node;              /* NULL before it is open, and once the main thread closes
                                   it */
    char names[2][64];          /* "/job:worker/task:1", before and after the cluster is
                                   known */
    _Atomic(const char *) name; /* one of `names` */
    atomic_bool drains;         /* it runs closures */
    atomic_bool opens;          /* the node is being opened: only its discovery of */
    struct mu__discover_stop find_stop; /* the cluster can be stopped */
    atomic_int signal;          /* the first signal, 0: none */
    atomic_bool in_order;       /* after it: what the task had is finished */
    pthread_t watcher;
    pthread_t notifier;         /* started by the watcher to give a preemption notice */
    bool notifies;              /* `notifier` is running */
    uint64_t opened_ms;
    struct cmd_parent parent;
};

/* The exit code after the first signal of a task whose program, or serving, returned
 * `rv`: 0 if that was SIGTERM and the task has ended in order. One that serves has when
 * it has finished what it had, or the job has ended well meanwhile; one with a program
 * when that returned 0, but for the chief's, whose job has not ended then. `muster run`
 * gets the signal's code in any case: it decides from that whether to start the task
 * again. */
int cmd_task_signal_code(const struct cmd_task *task, int rv);

/* The node is open: from now on it is told what `muster run` says. */
void cmd_task_hear_parent(struct cmd_task *task);

/* Watch the signals that programs get from outside on a thread; end that thread. */
int cmd_task_watch_signals(struct cmd_task *task, mu_error *ret_error);
void cmd_task_unwatch_signals(struct cmd_task *task);

#endif
