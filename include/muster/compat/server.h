/* Servers: a node that serves one task until the job is done, or it is stopped.
 *
 * A server is started with its cluster, or waits until a client assigns one
 * (mu_server_assign_cluster). Any thread; calls that wait not on a loop's thread.
 * Timeouts in milliseconds; negative: no timeout.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_COMPAT_SERVER_H
#define MUSTER_COMPAT_SERVER_H

#include "../node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_server mu_server;

/* Configuration that a strategy gives to the nodes its program runs on. */
typedef struct mu_session_config {
    size_t size;               /* set by mu_session_config_init */
    unsigned inter_op_threads; /* functions that run at a time: the node's executor
                                  threads; 0: those of the node's options */
    unsigned intra_op_threads; /* threads that one function may use: the node's setting
                                  "intra_op_threads"; 0: not set */
    const char *const *device_filters; /* tasks whose devices are used: "/job:ps",
                                          "/job:worker/task:1"; the node's setting
                                          "device_filters", separated by commas */
    size_t device_filters_count;       /* 0: all tasks */
} mu_session_config;

/* Fill in the defaults: all 0. */
MU_EXPORT void mu_session_config_init_sized(mu_session_config *config, size_t size);
#define mu_session_config_init(config) \
    mu_session_config_init_sized(config, sizeof(mu_session_config))

typedef struct mu_server_options {
    size_t size;                 /* set by mu_server_options_init */
    const mu_node_options *node; /* cluster, task_type, task_index (-1: not known), and
                                    the other options. Without a cluster its resolver
                                    finds one, and may provide RPC layer and environment;
                                    without a resolver, and with a bind_address, the
                                    server waits for an assigned cluster. Default NULL:
                                    those of a node, without a task */
    const char *rpc_layer;       /* scheme of targets; default "grpc", "": none */
    const char *environment;     /* "" (default), or "google": servers are managed
                                    elsewhere, and this one has no node */
    const mu_session_config *config; /* default NULL: none */
    int64_t timeout_ms;              /* of waiting for a cluster; default -1 */
} mu_server_options;

/* Fill in the defaults. */
MU_EXPORT void mu_server_options_init_sized(mu_server_options *options, size_t size);
#define mu_server_options_init(options) \
    mu_server_options_init_sized(options, sizeof(mu_server_options))

/* Start a server; the options are copied. Without a cluster and a resolver it listens at
 * the bind address and waits until a client assigns one, or returns -MU_EDEADLINE.
 *
 * Errors: those of mu_node_open; -MU_EINVALID, naming what is missing: cluster, task
 * type, task index; those of mu_cluster_validate. On success the caller frees the
 * server. */
MU_EXPORT int mu_server_start(const mu_server_options *options, mu_error *ret_error,
                              mu_server **ret_server);

/* The same with cluster, task, rpc_layer and environment of TF_CONFIG, or, when that has
 * no cluster, of the resolver in `options`; and with the node options of
 * mu_node_options_from_environment. `options` NULL: the defaults. */
MU_EXPORT int mu_server_start_from_environment(
    const mu_server_options *options, mu_error *ret_error, mu_server **ret_server);

/* 1 when the server has the same cluster, task, RPC layer, environment and config as
 * these options. */
MU_EXPORT int mu_server_matches(const mu_server *server,
                                const mu_server_options *options);

/* The node, valid until the server is stopped; NULL with environment "google". */
MU_EXPORT mu_node *mu_server_node(mu_server *server);

/* The target of sessions: "grpc://host:port"; "host:port" with rpc_layer ""; "" with
 * environment "google". Valid until the server is freed, as are the results of the next
 * three functions. */
MU_EXPORT const char *mu_server_target(const mu_server *server);

/* The cluster, task and config that it serves, also when a client assigned them. */
MU_EXPORT const mu_cluster *mu_server_cluster(const mu_server *server);
MU_EXPORT const char *mu_server_task(const mu_server *server);
MU_EXPORT const mu_session_config *mu_server_config(const mu_server *server);

/* Serve until the job is done, or the server was stopped, by this process or another
 * task. Returns 0, with the job's error in ret_error when it ended with one. A worker
 * gets closures from the first join on. -MU_EDEADLINE names the task that has not ended
 * the job. */
MU_EXPORT int mu_server_join(mu_server *server, int64_t timeout_ms, mu_error *ret_error);

/* Stop: a worker finishes its closures, until the timeout; then the node is closed
 * (mu_node_close), and joins return 0. May be called more than once. */
MU_EXPORT int mu_server_stop(mu_server *server, int64_t drain_timeout_ms,
                             mu_error *ret_error);

/* Free the server, stopping it at once when it was not stopped. No other thread may be
 * inside a call on it. NULL is fine. */
MU_EXPORT void mu_server_free(mu_server *server);

/* Stop the server of another task ("/job:ps/task:0" or "ps:0"): its mu_server_join and
 * mu_node_wait_job return 0, with the reason in its log, and `muster node` ends with exit
 * code 0. Returns once it has stopped; a worker first finishes its closures.
 * Allowed on the chief and on clients (others: -MU_EPERMISSION). The chief itself cannot
 * be stopped (-MU_EPRECONDITION): it ends the job. -MU_EDEADLINE says what was waited
 * for. */
MU_EXPORT int mu_server_stop_remote(mu_node *node, const char *task, const char *reason,
                                    int64_t timeout_ms, mu_error *ret_error);

/* ---- Assign a cluster to a waiting server ---- */

/* Assign cluster and task to a waiting server. `options` are those that the server gets:
 * of the node's options cluster, task_type and task_index, and the config. The server
 * must wait at the address that the task has in the cluster. The node's other options are
 * those of this call: cluster_name, which must be the server's own, how nodes
 * authenticate each other, and the log. Waits until the server has accepted; one that
 * already has the same cluster and task accepts, too. -MU_EPRECONDITION: it serves
 * another task, or another cluster; -MU_EINVALID: the cluster is not valid, or the server
 * is at another address; -MU_EDEADLINE says which address was not reached, and why. */
MU_EXPORT int mu_server_assign_cluster(const mu_server_options *options,
                                       int64_t timeout_ms, mu_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
