/* One task of `muster node`, and its signals. */
#ifndef MU_CLI_TASK_SIGNALS_H
#define MU_CLI_TASK_SIGNALS_H

#include "api/compat/compat.h"
#include "cli/output/log.h"
#include "cli/resolve/cluster_flags.h"
#include "node/discovery/discover.h"

#include <pthread.h>
#include <stdatomic.h>

struct cmd_task {
    const struct cmd_options *options;
    struct cmd_log log;
    struct cmd_spec spec;
    struct mu__server_offered offered;  /* with --wait-cluster: the source of `spec` */
    int grace_ms;
    atomic_int closing_ms;      /* the rest of the grace, for the node's closing */
    pthread_mutex_t lock;       /* guards `node` against the watcher */
    mu_node *node;              /* NULL before it is open, and once its owner closes it */
    char names[2][64];          /* "/job:worker/task:1"; of a server that waits, too */
    _Atomic(const char *) name; /* one of them */
    atomic_bool drains;         /* it is a worker */
    atomic_bool opens;          /* the node is being opened: only its search for the */
    struct mu__discover_stop find_stop; /* cluster can be ended */
    atomic_int signal;          /* the first one, 0: none */
    pthread_t watcher;
    pthread_t notifier;         /* the watcher's, which gives a preemption notice */
    bool notifies;
    uint64_t opened_ms;
};

/* Watch SIGTERM and SIGINT on a thread of their own. */
int cmd_task_watch_signals(struct cmd_task *task, mu_error *ret_error);
void cmd_task_unwatch_signals(struct cmd_task *task);

#endif
