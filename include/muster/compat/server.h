/* Servers: a node that serves one task until the job is done, or it is stopped.
 *
 * A server knows its cluster when it starts, or waits for a client to tell it
 * (mu_server_assign_cluster). Any thread, but none of the calls that wait on a loop's
 * thread. Limits in milliseconds, negative: none.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_COMPAT_SERVER_H
#define MUSTER_COMPAT_SERVER_H

#include "../node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_server mu_server;

/* What a strategy wants of the nodes that its program runs on. */
typedef struct mu_session_config {
    unsigned inter_op_threads;  /* functions that run at a time: the node's executor
                                   threads; 0: as the node's options say */
    unsigned intra_op_threads;  /* that one function may use: the node's setting
                                   "intra_op_threads"; 0: not said */
    const char *const *device_filters;  /* tasks whose devices are used: "/job:ps",
                                           "/job:worker/task:1"; the node's setting
                                           "device_filters", with commas between */
    size_t device_filters_count;        /* 0: all tasks */
} mu_session_config;

typedef struct mu_server_options {
    mu_node_options node;       /* cluster, task_type, task_index, and all else. Without a
                                   cluster: its resolver finds one, and says the layer
                                   and the environment if it knows them; without that
                                   either, and with a bind_address: waits for one. The
                                   task_index of init is -1: not said */
    const char *rpc_layer;      /* what targets begin with; default "grpc", "": nothing */
    const char *environment;    /* "" (default), or "google": the servers are somebody
                                   else's, and this one is without a node */
    mu_session_config config;
    int64_t timeout_ms;           /* to wait for a cluster; default -1 */
} mu_server_options;

MU_EXPORT void mu_server_options_init(mu_server_options *options);

/* Start a server; the options are copied. Without a cluster and a resolver it
 * listens at the bind address and waits until a client offers one; with -MU_EDEADLINE
 * when none did.
 *
 * Errors: those of mu_node_open; -MU_EINVALID, naming what is missing: cluster, task
 * type, task index; the rest as mu_cluster_validate. On success the caller frees the
 * server. */
MU_EXPORT int mu_server_start(const mu_server_options *options, mu_error *ret_error,
                              mu_server **ret_server);

/* The same, with what TF_CONFIG says (cluster, task, rpc_layer, environment), or, where
 * it has no cluster, what the resolver of the options says, and
 * mu_node_options_from_environment. `options` may be NULL: its other fields are the
 * defaults. */
MU_EXPORT int mu_server_start_from_environment(const mu_server_options *options,
                                          mu_error *ret_error, mu_server **ret_server);

/* 1 when a server with these options would be this one: the same cluster, task, layer,
 * environment and config. */
MU_EXPORT int mu_server_matches(const mu_server *server,
                                const mu_server_options *options);

/* The node, valid until the server is stopped; NULL with environment "google". */
MU_EXPORT mu_node *mu_server_node(mu_server *server);

/* "grpc://host:port": where sessions reach it; with rpc_layer "" "host:port". "" with
 * environment "google". Valid until it is freed, as the next three. */
MU_EXPORT const char *mu_server_target(const mu_server *server);

/* The cluster and task that it serves, also when they were offered to it. */
MU_EXPORT const mu_cluster *mu_server_cluster(const mu_server *server);
MU_EXPORT const char *mu_server_task(const mu_server *server);
MU_EXPORT const mu_session_config *mu_server_config(const mu_server *server);

/* Serve until the job is done, or the server was stopped, here or by another task: 0,
 * with the job's own error in ret_error if it ended with one. A worker gets closures from
 * the first join on. -MU_EDEADLINE says who has not ended the job. */
MU_EXPORT int mu_server_join(mu_server *server, int64_t timeout_ms, mu_error *ret_error);

/* Stop: a worker finishes what it has, within the limit; then the node is closed
 * (mu_node_close), and joins return 0. More than once is fine. */
MU_EXPORT int mu_server_stop(mu_server *server, int64_t drain_timeout_ms,
                             mu_error *ret_error);

/* Stop at once what was not stopped, and free. Nobody may be in a call. NULL is fine. */
MU_EXPORT void mu_server_free(mu_server *server);

/* Stop the server of another task ("/job:ps/task:0" or "ps:0"): its mu_server_join and
 * mu_node_wait_job return 0, with the reason in its log, and `muster node` ends with exit
 * code 0. Returns once it has; a worker finishes what it has before. Chief and clients
 * may do this: others get -MU_EPERMISSION. The chief itself is not stopped
 * (-MU_EPRECONDITION): it ends the job. -MU_EDEADLINE says what was waited for. */
MU_EXPORT int mu_server_stop_remote(mu_node *node, const char *task, const char *reason,
                                    int64_t timeout_ms, mu_error *ret_error);

/* ---- Servers that are told their cluster ---- */

typedef struct mu_server_assignment {
    const mu_cluster *cluster;
    const char *cluster_name;   /* the server's own has to be the same; default
                                   "muster" */
    const char *task_type;      /* who the server is in the cluster: it waits at the */
    int task_index;             /* address that this task has there */
    mu_session_config config;
    const char *bind_address;   /* of the client, where the server answers to; default: a
                                   free port on loopback */
    mu_tls_options tls;         /* as of mu_node_options */
    mu_log_fn log;              /* the same */
    void *log_user;
    int log_level;              /* default MU_LOG_WARN */
} mu_server_assignment;

MU_EXPORT void mu_server_assignment_init(mu_server_assignment *assignment);

/* Tell a server that waits which cluster it is in, and as what. Waits until it has taken
 * it; so does a server that has the same cluster and task already. -MU_EPRECONDITION: it
 * serves another task, or another cluster; -MU_EINVALID: the spec is none, or the server
 * is at another address; -MU_EDEADLINE: who was not reached, and why. */
MU_EXPORT int mu_server_assign_cluster(const mu_server_assignment *assignment,
                                       int64_t timeout_ms, mu_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
