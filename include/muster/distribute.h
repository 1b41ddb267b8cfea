/* The distribute coordinator: runs one program in the right mode on every task.
 *
 * A program is a worker function and, maybe, an eval function. mu_distribute_run looks at
 * the mode, the cluster, the task and the strategy, and then calls them once, calls them
 * in a thread for each task, or serves until the job is done; docs/distribute.md has the
 * table. Each call has a context, which says who it is and lets it meet the others.
 *
 * Not on a loop's thread. Limits in milliseconds, negative: none.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_DISTRIBUTE_H
#define MUSTER_DISTRIBUTE_H

#include "cluster.h"
#include "node.h"
#include "resolver.h"
#include "compat/server.h"
#include "compat/session.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The context of one call ---- */

typedef struct mu_context mu_context;

/* What a program's function returns: 0, or a negative code with words set by
 * mu_context_fail. Another number above 0 counts as -MU_EUNKNOWN. */
typedef int (*mu_worker_fn)(mu_context *context, void *user);

/* The context of the call that runs on this thread; NULL outside of one. All that a
 * context hands out is valid during its call, on that thread unless it is said
 * otherwise. */
MU_EXPORT mu_context *mu_context_current(void);

/* "worker", or NULL in a local run and where one call stands for all tasks (in-graph);
 * its index, or -1; and both as "/job:worker/task:1", or "". */
MU_EXPORT const char *mu_context_task_type(const mu_context *context);
MU_EXPORT int mu_context_task_index(const mu_context *context);
MU_EXPORT const char *mu_context_task(const mu_context *context);

/* A copy of the cluster, without its evaluator; NULL in a local run. */
MU_EXPORT const mu_cluster *mu_context_cluster(const mu_context *context);

/* How many tasks train: the chief and the workers, for the evaluator too; 0 in a local
 * run. */
MU_EXPORT size_t mu_context_num_workers(const mu_context *context);

/* 1 for the chief, for worker 0 where there is no chief, for the evaluator, and where
 * there is no task type. */
MU_EXPORT int mu_context_is_chief(const mu_context *context);

/* 1 when other tasks have a part in this call: not for the evaluator, not locally. */
MU_EXPORT int mu_context_distributed_mode(const mu_context *context);

/* 1 in a call of the eval function, or of the worker function in its place. */
MU_EXPORT int mu_context_is_evaluation(const mu_context *context);

/* What the strategy says: whether this task initializes the parameters, writes
 * checkpoints, writes summaries. */
MU_EXPORT int mu_context_should_init(const mu_context *context);
MU_EXPORT int mu_context_should_checkpoint(const mu_context *context);
MU_EXPORT int mu_context_should_save_summary(const mu_context *context);

/* What a session connects to: "grpc://host:port" of this task, or where there is no task
 * type of the chief, else of worker 0; without a layer "host:port". What TF_CONFIG calls
 * session_master stands for it, as it is, where one call stands for all tasks or a task
 * has a process of its own. "" in a local run and for the evaluator. */
MU_EXPORT const char *mu_context_master_target(const mu_context *context);

/* The strategy's copy for this task (as `configure` made it), and what it wants of
 * sessions. The node of the task has the same threads and device filters. */
MU_EXPORT void *mu_context_strategy(const mu_context *context);
MU_EXPORT const mu_session_config *mu_context_session_config(const mu_context *context);

/* 1 when there are others to wait for; then wait until the chief and all workers are
 * here. In threads of one process they meet there, otherwise at a barrier of the
 * coordination service. Can be used again and again.
 *
 * -MU_EDEADLINE: who is missing. The error of a task that failed, with its name in
 * `task`, as soon as it has, and from then on at once. A task that has ended well and
 * will not come: -MU_EABORTED among threads, -MU_EINTERNAL among processes. Threads do
 * not meet again after any of these.
 * Without others: -MU_EINVALID, or 0 at once with option barrier_optional. */
MU_EXPORT int mu_context_has_barrier(const mu_context *context);
MU_EXPORT int mu_context_wait_for_others(mu_context *context, int64_t timeout_ms,
                                         mu_error *ret_error);

/* End the waits for others of this process's calls, now and later, with an error, as if
 * another task had failed with it: for who was interrupted. Its call is then to return an
 * error, by which the other processes hear of it. Any thread; returns the error's code
 * (-MU_EUNKNOWN without one). */
MU_EXPORT int mu_context_abort_waits(mu_context *context, const mu_error *error);

/* 1 when nobody needs this call any more: another task has failed, or all workers have
 * ended and this is the evaluator. Any thread. */
MU_EXPORT int mu_context_cancelled(const mu_context *context);

/* The node that the call runs on, for variables, closures, key-values: that of its task,
 * or where tasks are threads of a client, the client's own, which is opened by the first
 * who asks. -MU_EPRECONDITION in a local run that was not given one, and with environment
 * "google". Borrowed. */
MU_EXPORT int mu_context_node(mu_context *context, mu_error *ret_error,
                              mu_node **ret_node);

/* The session of this call, opened by the first call of this: the chief's where
 * mu_context_should_init says 1, a worker's elsewhere, which waits for the chief's. The
 * options (NULL: the defaults) are those of mu_session_open_chief; their config is the
 * strategy's. Closed when the call ends. */
MU_EXPORT int mu_context_session(mu_context *context, const mu_session_options *options,
                                 mu_error *ret_error, mu_session **ret_session);

/* The result of this call. Takes `value`; the last one counts; without one it is nil. */
MU_EXPORT void mu_context_return(mu_context *context, mu_value *value);

/* Set the words of an error, or pass on the error of another call; both return the code
 * (negative) for the function to return. An error without a code is -MU_EUNKNOWN. */
MU_EXPORT int mu_context_fail(mu_context *context, int code, const char *format, ...)
    MU_PRINTF(3, 4);
MU_EXPORT int mu_context_fail_with(mu_context *context, const mu_error *error);

/* ---- Strategies ---- */

/* Whom a copy of a strategy is made for. */
typedef struct mu_strategy_task {
    const mu_cluster *cluster;  /* without the evaluator; NULL locally and for it */
    const char *type;           /* NULL: in-graph, and locally */
    int index;                  /* -1: the same */
    int is_chief;               /* as mu_context_is_chief */
} mu_strategy_task;

/* How a program is spread over a cluster: a table of functions, made by the program or
 * built in. It has to stay valid during a run. All functions may be NULL. They are called
 * by any thread of the run, each copy by one thread at a time. */
typedef struct mu_strategy {
    const char *name;   /* for messages */
    int between_graph;  /* 1: each chief and worker calls the worker function; 0: one call
                           works for all of them */
    void *user;

    /* The cluster and the task, when neither the caller nor TF_CONFIG says them: 0, and
     * the run frees ret_config->cluster. */
    int (*spec)(void *user, mu_error *ret_error, mu_tf_config *ret_config);

    /* Make the copy for one task. NULL: `user` is everybody's copy, and is not
     * dropped. */
    int (*configure)(void *user, const mu_strategy_task *task, mu_error *ret_error,
                     void **ret_copy);

    /* Change what is wanted of the task's node and session, from what the options of the
     * run say. Texts stay valid until the copy is dropped. */
    void (*session_config)(void *copy, mu_session_config *config);

    /* NULL: as mu_context_is_chief. */
    int (*should_init)(void *copy);
    int (*should_checkpoint)(void *copy);
    int (*should_save_summary)(void *copy);

    void (*drop)(void *copy);
} mu_strategy;

/* One call for the whole cluster. */
MU_EXPORT const mu_strategy *mu_strategy_default(void);

/* A call on each chief and worker, which talk to the parameter servers and not with each
 * other: device filters "/job:ps" and the task itself. The chief initializes, and writes
 * checkpoints and summaries. */
MU_EXPORT const mu_strategy *mu_strategy_parameter_server(void);

/* ---- Running ---- */

/* Without a cluster, every mode is the local one. */
enum mu_mode {
    MU_MODE_STANDALONE,     /* this process is the client of servers that run already, and
                               makes the calls of all tasks; a process that is told a task
                               of the cluster is such a server */
    MU_MODE_INDEPENDENT,    /* this process is one task, which makes its own calls */
    MU_MODE_LOCAL,          /* no cluster: one call in this process, even if there is
                               one; TF_CONFIG is not looked at */
    MU_MODE_CLIENT_WORKER   /* the leading task (mu_cluster_collective_leader) is client
                               and server in one process; the others are servers */
};

typedef struct mu_distribute_options {
    int mode;                   /* default MU_MODE_STANDALONE */
    mu_worker_fn worker;        /* required */
    void *worker_user;
    mu_worker_fn eval;          /* default NULL: `worker` stands for it */
    void *eval_user;
    const mu_strategy *strategy;        /* default NULL: mu_strategy_default() */
    const mu_strategy *eval_strategy;   /* default NULL: mu_strategy_default() */
    const mu_cluster *cluster;  /* NULL, the default: what TF_CONFIG says, or else the
                                   resolver, or else the strategy; so for the next two */
    const char *task_type;      /* NULL or "client": this process is no server */
    int task_index;
    const char *rpc_layer;      /* default NULL: what TF_CONFIG says, else "grpc"; "":
                                   none */
    const char *environment;    /* default NULL: what TF_CONFIG says, else ""; "google":
                                   no server is started, and who would be one sleeps until
                                   `join_timeout_ms` */
    int ignore_environment;     /* 1: TF_CONFIG is not looked at */
    mu_resolver *resolver;      /* who is asked for cluster, task, layer and environment
                                   where TF_CONFIG has no cluster; not in MU_MODE_LOCAL.
                                   What it does not find is an error, and no local run.
                                   A server goes on using it until it has stopped: the
                                   caller frees it after the run, or after
                                   mu_distribute_end. Default NULL */
    mu_session_config config;   /* what strategies start from */
    mu_node *node;              /* the node of this process, which is then used and not
                                   closed; its owner ends the job. Default NULL: one is
                                   started where the mode wants it, */
    mu_node_options node_options;       /* with these; cluster, task and resolver apart.
                                           resolve_ms is the resolver's limit, too */
    int client_index;           /* of a client's node; default: 0 */
    int (*opened)(mu_node *node, void *user, mu_error *ret_error);
                                /* called with each node that the run opens, before that
                                   serves: registers functions, say, or begins to serve
                                   beside a call. A negative code, with words in
                                   ret_error, ends the run, or the call that wanted the
                                   client's node. On any thread; default NULL */
    void *opened_user;
    int barrier_optional;       /* 1: to wait where there are no others is fine */
    int keep_server;            /* 1: the server is for the next run on this thread, too,
                                   until mu_distribute_end; default 0 */
    int64_t join_timeout_ms;    /* of a server that waits for the job's end; default -1 */
    int64_t end_timeout_ms;       /* for the other calls to end after the first error, for
                                   the evaluator after the last worker, and for results of
                                   tasks that are away; and for each word about its end
                                   that a task has for the others, 10 s of it at most;
                                   default 30000 */
} mu_distribute_options;

MU_EXPORT void mu_distribute_options_init(mu_distribute_options *options);

/* Run. Returns when what this process has to do is done: its calls have returned, or the
 * job that it served is done. The first error of any call is returned, and ends the
 * waiting of all others; a call that does not come to its end within end_timeout_ms after
 * it is left behind (-MU_EDEADLINE among the results), with its memory.
 *
 * *ret_results, where it is not NULL, is set always: NULL when no call was made, else a
 * map of task -> map with code (0 or negative), value, and where there is an error the
 * texts error, message and task (where it came from). Tasks are "/job:worker/task:1", or
 * "worker_fn" and "eval_fn" where there is no task type. Threads of this process are all
 * in it. Of independent tasks the leading one has all, by the coordination service (at
 * most 1 MiB for each), the others their own. The caller frees it.
 *
 * -MU_EINVALID: no worker function, an unknown mode, what the cluster and the task are
 * not fit for, a context on this thread ("already in a context"); -MU_EPRECONDITION: this
 * thread has a server with another configuration; errors of mu_tf_config_parse and
 * mu_server_start. */
MU_EXPORT int mu_distribute_run(const mu_distribute_options *options, mu_error *ret_error,
                                mu_value **ret_results);

/* End what keep_server has kept on this thread: the leading task ends the job, then the
 * server stops. 0 when there is none. */
MU_EXPORT int mu_distribute_end(int64_t timeout_ms, mu_error *ret_error);

/* ---- Plugins ---- */

/* What `muster node` and `muster run` call, in the mode that --mode says: set by a plugin
 * in its mu_plugin_open, instead of mu_node_register_program. One plugin, every mode.
 * Of options the functions, strategies, config and limits count; the rest comes from
 * the command line. Copied; -MU_EINVALID without a worker function, -MU_EEXISTS the
 * second time. */
MU_EXPORT int mu_node_set_distribute(mu_node *node, const mu_distribute_options *options);

#ifdef __cplusplus
}
#endif

#endif
