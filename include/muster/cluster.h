/* Cluster spec: the tasks of a cluster and their addresses; and TF_CONFIG, which also has
 * the task of this process.
 *
 * A cluster spec is plain data. It is built by adding tasks or by parsing JSON. Not
 * thread-safe: used by one thread at a time, and not changed while a node uses it.
 *
 * Functions that only read take NULL as an empty spec, which mu_tf_config_parse() may
 * return.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_CLUSTER_H
#define MUSTER_CLUSTER_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_cluster mu_cluster;

/* Task types: "chief", "worker", "ps", "evaluator" and "client" (a program that schedules
 * from outside) have a role of their own. A program may use other names: at most 15
 * lower-case letters, digits and "_", beginning with a letter. A name close to one of the
 * five is refused as a misspelling. */

/* Bounds; an error names the one that was exceeded. */
enum {
    MU_CLUSTER_TASKS_MAX = 65536,       /* tasks of one cluster, all types together */
    MU_CLUSTER_TYPES_MAX = 32,          /* task types of one cluster */
    MU_CLUSTER_INDEX_MAX = 999999,      /* largest index of a task */
    MU_CLUSTER_ADDRESS_BYTES_MAX = 280, /* of one address, without the zero byte */
    MU_CLUSTER_JSON_BYTES_MAX = 8 << 20 /* of JSON to parse */
};

/* Make an empty cluster spec. Returns NULL when out of memory. */
MU_EXPORT mu_cluster *mu_cluster_new(void);

/* Free a cluster spec; NULL is fine. */
MU_EXPORT void mu_cluster_free(mu_cluster *cluster);

/* A copy, owned by the caller; NULL when out of memory. */
MU_EXPORT mu_cluster *mu_cluster_copy(const mu_cluster *cluster);

/* Add one task. Jobs may be sparse: indices may have gaps.
 *
 * `address` is "host:port", "tcp://host:port" or "ipc:///path", or one that only nng's
 * sockets have: "ws://host:port", "wss://host:port", "tls+tcp://host:port",
 * "inproc://name". An IPv6 host is in brackets. Port 0 means that the task chooses
 * one when it starts; only then may two tasks have the same address. Copies its
 * arguments. Returns -MU_EINVALID (unknown type, bad address), -MU_ERANGE (index),
 * -MU_EEXISTS (same task or same address twice), -MU_EEXHAUSTED
 * (MU_CLUSTER_TASKS_MAX), -MU_ENOMEM; in all these cases the spec is unchanged. */
MU_EXPORT int mu_cluster_add(mu_cluster *cluster, const char *type, int index,
                             const char *address, mu_error *ret_error);

/* Parse {"worker": ["host:port", ...], "ps": {"3": "host:port"}}: job -> list of
 * addresses (dense) or job -> object of index -> address (sparse). `source` names the
 * origin of the text, for error messages. A job without tasks is accepted.
 *
 * Returns -MU_EINVALID (syntax, wrong type, unknown job, bad address), -MU_ERANGE
 * (index), -MU_EEXISTS (a key, task or address twice), -MU_EEXHAUSTED (a bound above),
 * -MU_ENOMEM. On success the caller owns *ret_cluster. */
MU_EXPORT int mu_cluster_parse(const char *json, size_t size, const char *source,
                               mu_error *ret_error, mu_cluster **ret_cluster);

/* The content of TF_CONFIG: the cluster, and the task of this process. */
typedef struct mu_tf_config {
    mu_cluster *cluster;      /* NULL when absent or {}; the caller frees it */
    char task_type[16];       /* "" when the text has no task */
    int task_index;           /* -1 when the text has no task */
    char rpc_layer[16];       /* "" when absent */
    char environment[16];     /* "" when absent */
    char session_master[288]; /* target of sessions, unchanged; "" when absent */
} mu_tf_config;

/* Parse the text of TF_CONFIG (all keys: cluster, task.type, task.index, rpc_layer,
 * environment, session_master; unknown keys are ignored). The index, and the keys of a
 * sparse job, may be numbers or text. The task must be in the cluster, if there is one: a
 * known type, an index that exists. The evaluator and the client need not be in the
 * cluster, and may then have any index. The index may be absent when only one is
 * possible: the job has one task, or the task is an evaluator outside of the cluster
 * (index 0).
 *
 * Errors name the key, the value and what was expected; codes are those of
 * mu_cluster_parse() and mu_cluster_validate(). *ret_config is written on success
 * only. */
MU_EXPORT int mu_tf_config_parse(const char *json, size_t size, mu_error *ret_error,
                                 mu_tf_config *ret_config);

/* Check that the spec is consistent: at most one chief (index 0) and one evaluator, and
 * task `type`, `index` exists. An evaluator and a client, of any index, are accepted when
 * the cluster has no job of that type. `type` NULL checks the cluster alone.
 *
 * Returns -MU_EINVALID (unknown type, two chiefs or evaluators), -MU_ENOTFOUND (no task
 * of this type), -MU_ERANGE (an index that its job does not have). */
MU_EXPORT int mu_cluster_validate(const mu_cluster *cluster, const char *type, int index,
                                  mu_error *ret_error);

/* Number of tasks of a type; `type` NULL: of all types. */
MU_EXPORT size_t mu_cluster_task_count(const mu_cluster *cluster, const char *type);

/* Address of a task as it was added, owned by the spec; NULL without such a task. */
MU_EXPORT const char *mu_cluster_address(const mu_cluster *cluster, const char *type,
                                         int index);

/* The same as a url, which is how nodes dial it: "tcp://host:port", "ipc:///path". */
MU_EXPORT const char *mu_cluster_url(const mu_cluster *cluster, const char *type,
                                     int index);

/* The i-th task of the spec, ordered by type (alphabetically), then index. Returns
 * -MU_ERANGE past the end. The strings are owned by the spec. */
MU_EXPORT int mu_cluster_task_at(const mu_cluster *cluster, size_t i,
                                 const char **ret_type, int *ret_index,
                                 const char **ret_address);

/* 1 for the chief and the evaluator, and for worker 0 in a cluster without a chief. */
MU_EXPORT int mu_cluster_is_chief(const mu_cluster *cluster, const char *type, int index);

/* ---- Leaders ----
 *
 * Rules by which tasks agree on a leader without messages; TensorFlow's other rules are
 * in compat/cluster_rules.h. On failure ret_error has the reason: the cluster is not
 * valid (mu_cluster_validate), or the rule is not defined for the type (-MU_EINVALID). */

enum { MU_CLUSTER_TASK_BYTES = 64 }; /* room for a task's name, "/job:worker/task:1" */

/* The leader of collective operations of the chief and the workers: the chief, or without
 * one worker 0 (of a sparse job the lowest index). `type` is the caller's, or NULL. ""
 * for an empty spec, and when `type` is "evaluator", which works alone. -MU_EINVALID when
 * a cluster has neither chief nor worker. ret_task has MU_CLUSTER_TASK_BYTES. */
MU_EXPORT int mu_cluster_collective_leader(const mu_cluster *cluster, const char *type,
                                           mu_error *ret_error, char *ret_task);

/* The host of the coordination service, when the option service_hosts is not set: the
 * chief, which runs the supervisor anyway, else ps 0, else worker 0; "" for an empty
 * spec. ret_task has MU_CLUSTER_TASK_BYTES. */
MU_EXPORT int mu_cluster_service_host(const mu_cluster *cluster, mu_error *ret_error,
                                      char *ret_task);

/* ---- Compare, list, split, print ---- */

/* 1 when it has no tasks. */
MU_EXPORT int mu_cluster_is_empty(const mu_cluster *cluster);

/* 1 when both have the same tasks at the same addresses. A job without tasks counts as
 * absent, and different spellings of one address as equal. */
MU_EXPORT int mu_cluster_equal(const mu_cluster *a, const mu_cluster *b);

/* The i-th type that has tasks, in alphabetical order; NULL past the end. */
MU_EXPORT const char *mu_cluster_job_at(const mu_cluster *cluster, size_t i);

/* The largest index of a type, plus one; 0 without tasks. mu_cluster_address() returns
 * NULL for the gaps of a sparse job below it. */
MU_EXPORT int mu_cluster_job_end(const mu_cluster *cluster, const char *type);

/* The part of the cluster that works together with a task of this type: for the evaluator
 * the evaluators alone, for all others (and NULL) every task but the evaluators. The
 * caller owns the copy; NULL when out of memory. */
MU_EXPORT mu_cluster *mu_cluster_split(const mu_cluster *cluster, const char *type);

/* The spec as JSON (dense jobs as lists, sparse ones as objects). The caller frees the
 * text with free(); NULL when out of memory. */
MU_EXPORT char *mu_cluster_to_json(const mu_cluster *cluster);

#ifdef __cplusplus
}
#endif

#endif
