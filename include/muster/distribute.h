/* The distribute coordinator: runs one program on every task of a cluster, in one of four
 * modes (enum mu_mode).
 *
 * A program is a worker function and, optionally, an eval function. By mode, cluster,
 * task and strategy mu_distribute_run calls them once, calls them in one thread for each
 * task, or serves until the job is done; docs/distribute.md has the table. Each call has
 * a context, with its task and a barrier with the other calls.
 *
 * Not on a loop's thread. Timeouts in milliseconds; negative: no timeout.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_DISTRIBUTE_H
#define MUSTER_DISTRIBUTE_H

#include "cluster.h"
#include "compat/server.h"
#include "compat/session.h"
#include "node.h"
#include "resolver.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The context of one call ---- */

typedef struct mu_context mu_context;

/* The program's function. Returns 0, or a negative code after mu_context_fail. A positive
 * number counts as -MU_EUNKNOWN. */
typedef int (*mu_worker_fn)(mu_context *context, void *user);

/* The context of the call that runs on this thread; NULL outside of one. Everything
 * obtained from a context is valid during its call, and used on its thread unless stated
 * otherwise. */
MU_EXPORT mu_context *mu_context_current(void);

/* Task type, index and name ("/job:worker/task:1") of the call. NULL, -1 and "" in a
 * local run, and where one call stands for all tasks (in-graph). */
MU_EXPORT const char *mu_context_task_type(const mu_context *context);
MU_EXPORT int mu_context_task_index(const mu_context *context);
MU_EXPORT const char *mu_context_task(const mu_context *context);

/* The cluster without its evaluator, owned by the context; NULL in a local run. */
MU_EXPORT const mu_cluster *mu_context_cluster(const mu_context *context);

/* Number of tasks that train: the chief and the workers, on the evaluator too; 0 in a
 * local run. */
MU_EXPORT size_t mu_context_num_workers(const mu_context *context);

/* 1 for the chief, for worker 0 without a chief, for the evaluator, and without a task
 * type. */
MU_EXPORT int mu_context_is_chief(const mu_context *context);

/* 1 when the call is part of a run over several tasks; 0 on the evaluator and in a local
 * run. */
MU_EXPORT int mu_context_distributed_mode(const mu_context *context);

/* 1 in a call of the eval function, or of the worker function that stands in for it. */
MU_EXPORT int mu_context_is_evaluation(const mu_context *context);

/* By the strategy: 1 when this task initializes the parameters, writes checkpoints,
 * writes summaries. */
MU_EXPORT int mu_context_should_init(const mu_context *context);
MU_EXPORT int mu_context_should_checkpoint(const mu_context *context);
MU_EXPORT int mu_context_should_save_summary(const mu_context *context);

/* The target of sessions: "grpc://host:port" of this task, or without a task type of the
 * chief, else of worker 0; "host:port" when the RPC layer is "". Where one call stands
 * for all tasks, or each task is a process, session_master of TF_CONFIG replaces it,
 * unchanged. "" in a local run and on the evaluator. */
MU_EXPORT const char *mu_context_master_target(const mu_context *context);

/* The strategy's copy for this task (made by `configure`), and its session configuration.
 * The node of the task has the same threads and device filters. */
MU_EXPORT void *mu_context_strategy(const mu_context *context);
MU_EXPORT const mu_session_config *mu_context_session_config(const mu_context *context);

/* mu_context_has_barrier: 1 when the call has others to wait for.
 * mu_context_wait_for_others waits until the chief and all workers have called it: at a
 * barrier in memory when they are threads of one process, otherwise at a barrier of the
 * coordination service. It can be called repeatedly.
 *
 * Errors: -MU_EDEADLINE names the missing tasks. When a task fails, the wait ends at once
 * with its error, and so do later waits. When a task ended without error and will not
 * arrive: -MU_EABORTED among threads, -MU_EINTERNAL among processes. Among threads the
 * barrier stays failed after any of these. Without others: -MU_EINVALID, or 0 at once
 * with option barrier_optional. */
MU_EXPORT int mu_context_has_barrier(const mu_context *context);
MU_EXPORT int mu_context_wait_for_others(mu_context *context, int64_t timeout_ms,
                                         mu_error *ret_error);

/* End the present and later waits for others of all calls in this process with an error,
 * as if another task had failed with it: for programs that handle an interrupt. The
 * interrupted call should then return an error, which is reported to the other processes.
 * Any thread; returns the error's code (-MU_EUNKNOWN without one). */
MU_EXPORT int mu_context_abort_waits(mu_context *context, const mu_error *error);

/* 1 when the call may stop early: another task has failed, or this is the evaluator and
 * all workers have ended. Any thread. */
MU_EXPORT int mu_context_cancelled(const mu_context *context);

/* The node of the call, for variables, closures, key-values: that of its task, or when
 * tasks are threads of a client, the client's, which the first call of this function
 * opens. -MU_EPRECONDITION in a local run without option `node`, and with environment
 * "google". Owned by the run. */
MU_EXPORT int mu_context_node(mu_context *context, mu_error *ret_error,
                              mu_node **ret_node);

/* The session of this call of the worker function, opened when first requested: a chief's
 * session when mu_context_should_init is 1, else a worker's, which waits for the chief's.
 * The options (NULL: the defaults) are those of mu_session_open_chief; `config` is
 * replaced by the strategy's. Closed when the worker function returns. */
MU_EXPORT int mu_context_session(mu_context *context, const mu_session_options *options,
                                 mu_error *ret_error, mu_session **ret_session);

/* Set the result of the call. Takes ownership of `value`; the last one counts; without
 * one it is nil. */
MU_EXPORT void mu_context_return(mu_context *context, mu_value *value);

/* Set the message of an error, or pass on the error of another call; both return the code
 * (negative) for the function to return. An error without a code becomes -MU_EUNKNOWN. */
MU_EXPORT int mu_context_fail(mu_context *context, int code, const char *format, ...)
    MU_PRINTF(3, 4);
MU_EXPORT int mu_context_fail_with(mu_context *context, const mu_error *error);

/* ---- Strategies ---- */

/* The task for which a copy of a strategy is made. */
typedef struct mu_strategy_task {
    const mu_cluster *cluster; /* without the evaluator; NULL in a local run and on the
                                  evaluator */
    const char *type;          /* NULL: in-graph, or a local run */
    int index;                 /* -1 when `type` is NULL */
    int is_chief;              /* as mu_context_is_chief */
} mu_strategy_task;

/* How a program is spread over a cluster: a table of functions, made by the program or
 * built in. It must stay valid during a run. Each function may be NULL. They are called
 * on any thread of the run, for one copy by one thread at a time. */
typedef struct mu_strategy {
    const char *name;  /* for error messages and the log */
    int between_graph; /* 1: the chief and each worker call the worker function; 0: one
                          call stands for all of them (in-graph) */
    void *user;

    /* Provide cluster and task, when neither the caller nor TF_CONFIG does. Returns 0,
     * and the run frees ret_config->cluster; or a negative code with ret_error set. */
    int (*spec)(void *user, mu_error *ret_error, mu_tf_config *ret_config);

    /* Make the copy for one task. NULL: all tasks use `user`, which is not dropped. */
    int (*configure)(void *user, const mu_strategy_task *task, mu_error *ret_error,
                     void **ret_copy);

    /* Adjust the configuration of the task's node and session, which begins as the run's
     * options have it. Texts stay valid until the copy is dropped. */
    void (*session_config)(void *copy, mu_session_config *config);

    /* NULL: the value of mu_context_is_chief. */
    int (*should_init)(void *copy);
    int (*should_checkpoint)(void *copy);
    int (*should_save_summary)(void *copy);

    void (*drop)(void *copy);
} mu_strategy;

/* One call of the worker function for the whole cluster (in-graph). */
MU_EXPORT const mu_strategy *mu_strategy_default(void);

/* A call on the chief and on each worker, which use the parameter servers and not each
 * other: device filters "/job:ps" and the task itself. The chief initializes, and writes
 * checkpoints and summaries. */
MU_EXPORT const mu_strategy *mu_strategy_parameter_server(void);

/* ---- Running ---- */

/* Without a cluster, every mode acts like MU_MODE_LOCAL. */
enum mu_mode {
    MU_MODE_STANDALONE,   /* this process is the client of running servers, and makes
                             the calls of all tasks; a process with a task of the
                             cluster is such a server */
    MU_MODE_INDEPENDENT,  /* each process is one task, and makes its own calls */
    MU_MODE_LOCAL,        /* one call in this process, even if there is a cluster;
                             TF_CONFIG is ignored */
    MU_MODE_CLIENT_WORKER /* the leading task (mu_cluster_collective_leader) is client
                             and server in one process; the others are servers */
};

typedef struct mu_distribute_options {
    size_t size;         /* set by mu_distribute_options_init */
    int mode;            /* default MU_MODE_STANDALONE */
    mu_worker_fn worker; /* required */
    void *worker_user;
    mu_worker_fn eval; /* default NULL: `worker` is called instead */
    void *eval_user;
    const mu_strategy *strategy;      /* default NULL: mu_strategy_default() */
    const mu_strategy *eval_strategy; /* default NULL: mu_strategy_default() */
    const mu_cluster *cluster; /* NULL, the default: cluster, task type and index come
                                  from TF_CONFIG, else from the resolver, else from the
                                  strategy */
    const char *task_type;     /* NULL or "client": this process is not a server */
    int task_index;
    const char *rpc_layer;   /* default NULL: that of TF_CONFIG, else "grpc"; "":
                                none */
    const char *environment; /* default NULL: that of TF_CONFIG, else ""; "google": no
                                server is started, and a process that would serve
                                sleeps for `join_timeout_ms` */
    int ignore_environment;  /* 1: TF_CONFIG is ignored */
    mu_resolver *resolver;   /* provides cluster, task, RPC layer and environment when
                                TF_CONFIG has no cluster; not in MU_MODE_LOCAL. If it
                                finds no cluster, that is an error, not a local run. A
                                server uses it until it has stopped: the caller frees
                                it after the run, or after mu_distribute_end. Default
                                NULL */
    const mu_session_config *config; /* initial configuration, which the strategy may
                                        adjust; default NULL: none */
    mu_node *node; /* an open node to use, which is not closed, and whose
                      owner ends the job. Default NULL: the run opens one
                      with `node_options` when the mode needs it */
    const mu_node_options *node_options; /* used without cluster, task and resolver.
                                            resolve_ms is the timeout of `resolver`,
                                            too. Default NULL: the defaults */
    int client_index;                    /* task index of a client's node; default 0 */
    int (*opened)(mu_node *node, void *user, mu_error *ret_error);
    /* called with each node that the run opens, before it
       serves: to register functions, say. A negative code,
       with ret_error set, ends the run, or fails the call
       that requested the client's node. On any thread;
       default NULL */
    void *opened_user;
    int barrier_optional;    /* 1: mu_context_wait_for_others without others returns
                                0 */
    int keep_server;         /* 1: the server stays for later runs on this thread,
                                until mu_distribute_end; default 0 */
    int64_t join_timeout_ms; /* how long a server waits for the job to end; default
                                -1 */
    int64_t end_timeout_ms;  /* how long to wait for the other calls after the first
                                error, for the evaluator after the last worker, and
                                for results of absent tasks; also, up to 10 s, for
                                each report of a task's own end to the others; default
                                30000 */
} mu_distribute_options;

/* Fill in the defaults. */
MU_EXPORT void mu_distribute_options_init_sized(mu_distribute_options *options,
                                                size_t size);
#define mu_distribute_options_init(options) \
    mu_distribute_options_init_sized(options, sizeof(mu_distribute_options))

/* Run the program. Returns when the calls of this process have returned, or the job that
 * it served is done. Returns the first error of any call, which also ends the waits of
 * all others; a call that has not returned end_timeout_ms later is abandoned with its
 * memory (-MU_EDEADLINE in the results).
 *
 * *ret_results (ret_results may be NULL) is always set: NULL when no call was made, else
 * a map of task -> map with code (0 or negative), value, and for a failed call the texts
 * error, message and task (where the error arose). Tasks are "/job:worker/task:1", or
 * "worker_fn" and "eval_fn" without a task type. It has the results of all threads of
 * this process. When each task is a process, the leading task has the results of all,
 * through the coordination service (at most 1 MiB each), the others their own. The caller
 * frees it.
 *
 * Errors: -MU_EINVALID (no worker function, an unknown mode, a mode that does not fit
 * cluster and task, a context on this thread: "already in a context"); -MU_EPRECONDITION
 * (this thread keeps a server with another configuration); those of mu_tf_config_parse
 * and mu_server_start. */
MU_EXPORT int mu_distribute_run(const mu_distribute_options *options, mu_error *ret_error,
                                mu_value **ret_results);

/* Stop the server that keep_server kept on this thread; on the leading task end the job
 * first. 0 without such a server. */
MU_EXPORT int mu_distribute_end(int64_t timeout_ms, mu_error *ret_error);

/* ---- Plugins ---- */

/* Set what `muster node` and `muster run` execute in the mode of --mode: called by a
 * plugin in its mu_plugin_open, instead of mu_node_register_program, so that one plugin
 * serves every mode. Only the functions, strategies, config and timeouts of the options
 * are used; the rest comes from the command line. Copied; -MU_EINVALID without a worker
 * function, -MU_EEXISTS the second time. */
MU_EXPORT int mu_node_set_distribute(mu_node *node, const mu_distribute_options *options);

#ifdef __cplusplus
}
#endif

#endif
