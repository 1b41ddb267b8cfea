/* The state of mu_task_main, and its handling of signals. */
#ifndef MU_API_TASK_H
#define MU_API_TASK_H

#include "api/compat/compat.h"
#include "node/discovery/discover.h"
#include "node/supervision_pipe.h"

#include "muster/main.h"

#include <pthread.h>
#include <stdatomic.h>

/* The supervisor, if one has started this process; for the thread that watches. */
struct task_parent {
    atomic_bool is_heard; /* the node is open, and gets what it says */
    int fd;               /* -1: none, or closed */
    char line[MU_SUPERVISION_LINE_BYTES];
    size_t used;
};

struct task_main {
    const mu_task_options *options;
    mu_cluster *cluster; /* a copy; NULL: the node's resolver finds it */
    char type[16];       /* "": the node's resolver finds it */
    int index;
    struct mu__server_offered offered; /* the assignment that was waited for */
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
    atomic_int signal;                  /* the first signal, 0: none */
    atomic_bool in_order;               /* after it: what the task had is finished */
    pthread_t watcher;
    pthread_t notifier; /* started by the watcher to give a preemption notice */
    bool notifies;      /* `notifier` is running */
    uint64_t opened_ms;
    struct task_parent parent;
};

/* Write a line to the log. */
void mu__task_say(const struct task_main *task, int level, const char *format, ...)
    MU_PRINTF(3, 4);

/* Write the frames of each other thread of this process: of each the binary and the
 * address in it, and its name where it is exported. A thread that does not answer within
 * some time, since it blocks all signals or waits in the kernel, is named only. */
void mu__write_stacks(int fd);

/* The exit code after the first signal of a task whose program, or serving, returned
 * `rv`: 0 if that was SIGTERM and the task has ended in order. One that serves has when
 * it has finished what it had, or the job has ended well meanwhile; one with a program
 * when that returned 0, but for the chief's, whose job has not ended then. A supervisor
 * gets the signal's code in any case: it decides from that whether to start the task
 * again. */
int mu__task_signal_code(const struct task_main *task, int rv);

/* The node is open: from now on it is told what the supervisor says. */
void mu__task_hear_parent(struct task_main *task);

/* Watch the signals that programs get from outside on a thread; end that thread. */
int mu__task_watch_signals(struct task_main *task, mu_error *ret_error);
void mu__task_unwatch_signals(struct task_main *task);

#endif
