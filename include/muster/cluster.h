/* Cluster spec: task type -> addresses, and who this process is.
 *
 * A cluster spec is plain data. It is made by adding tasks or by parsing JSON, and is
 * not changed while a node uses it. Not thread-safe: one thread at a time.
 *
 * Functions that only read take NULL for an empty spec, as mu_tf_config_parse() gives
 * it.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_CLUSTER_H
#define MUSTER_CLUSTER_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_cluster mu_cluster;

/* The task types that a cluster spec may hold: "chief", "worker", "ps", "evaluator" and
 * "client" (a program that schedules from outside) have a role of their own. Others are a
 * program's: at most 15 small letters, digits and "_", a letter first. A name that is
 * near to one of the five is taken for a misspelling of it, and is refused. */

/* Bounds; what is beyond one is refused with an error that names it. */
enum {
    MU_CLUSTER_TASKS_MAX = 65536,       /* tasks of one cluster, all types together */
    MU_CLUSTER_TYPES_MAX = 32,          /* task types of one cluster */
    MU_CLUSTER_INDEX_MAX = 999999,      /* largest index of a task */
    MU_CLUSTER_ADDRESS_BYTES_MAX = 280, /* of one address, without the zero byte */
    MU_CLUSTER_JSON_BYTES_MAX = 8 << 20 /* of a text to parse */
};

/* Make an empty cluster spec. Returns NULL when out of memory. */
MU_EXPORT mu_cluster *mu_cluster_new(void);

/* Free a cluster spec; NULL is fine. */
MU_EXPORT void mu_cluster_free(mu_cluster *cluster);

/* A copy, owned by the caller; NULL when out of memory. */
MU_EXPORT mu_cluster *mu_cluster_copy(const mu_cluster *cluster);

/* Add one task. Jobs may be sparse: indices need not follow each other.
 *
 * `address` is "host:port", "tcp://host:port" or "ipc:///path"; an IPv6 host stands in
 * brackets. Port 0 means "chosen at start", and only then may two tasks have the same
 * address. Copies its arguments.
 * Returns -MU_EINVALID (unknown type, bad address), -MU_ERANGE (index),
 * -MU_EEXISTS (same task or same address twice), -MU_EEXHAUSTED (MU_CLUSTER_TASKS_MAX),
 * -MU_ENOMEM; then nothing changed. */
MU_EXPORT int mu_cluster_add(mu_cluster *cluster, const char *type, int index,
                             const char *address, mu_error *ret_error);

/* Parse {"worker": ["host:port", ...], "ps": {"3": "host:port"}}: job -> list of
 * addresses (dense) or job -> object of index -> address (sparse). `source` names where
 * the text came from, for messages. A job without tasks is accepted, and counts none.
 *
 * Returns -MU_EINVALID (syntax, wrong type, unknown job, bad address), -MU_ERANGE
 * (index), -MU_EEXISTS (a key, task or address twice), -MU_EEXHAUSTED (a bound above),
 * -MU_ENOMEM. On success the caller owns *ret_cluster. */
MU_EXPORT int mu_cluster_parse(const char *json, size_t size, const char *source,
                               mu_error *ret_error, mu_cluster **ret_cluster);

/* What TF_CONFIG says: the cluster, and which task of it this process is. */
typedef struct mu_tf_config {
    mu_cluster *cluster;    /* NULL when absent or {}; the caller frees it */
    char task_type[16];     /* "" when the text has no task */
    int task_index;         /* -1 when the text has no task */
    char rpc_layer[16];     /* "" when absent */
    char environment[16];   /* "" when absent */
    char session_master[288];   /* what to connect to, as it stands; "" when absent */
} mu_tf_config;

/* Parse the text of TF_CONFIG (all keys: cluster, task.type, task.index, rpc_layer,
 * environment, session_master; unknown keys are ignored). Index and sparse keys may be
 * numbers or text. The task must fit the cluster: a known type, an index that exists (any
 * where there is no cluster). The evaluator and the client need not be in the cluster,
 * and may then have any index. A type without index is accepted where only one index is
 * likely: its job has one task, or it is an evaluator outside of the cluster (index 0).
 *
 * Errors name the key, the value and what was expected; codes as of mu_cluster_parse()
 * and mu_cluster_validate(). *ret_config is written on success only. */
MU_EXPORT int mu_tf_config_parse(const char *json, size_t size, mu_error *ret_error,
                                 mu_tf_config *ret_config);

/* Check the whole: at most one chief (index 0) and one evaluator, no job without tasks
 * when `type` belongs to it, `type` and `index` exist. An evaluator and a client, of any
 * index, are fine when the cluster has no job of that type. `type` NULL checks the
 * cluster alone.
 *
 * Returns -MU_EINVALID (unknown type, two chiefs or evaluators), -MU_ENOTFOUND (no task
 * of this type), -MU_ERANGE (an index that its job does not have). */
MU_EXPORT int mu_cluster_validate(const mu_cluster *cluster, const char *type, int index,
                                  mu_error *ret_error);

/* How many tasks, of one type or (type NULL) in all. */
MU_EXPORT size_t mu_cluster_task_count(const mu_cluster *cluster, const char *type);

/* Address of a task as it was given, NULL when there is none. Owned by the spec. */
MU_EXPORT const char *mu_cluster_address(const mu_cluster *cluster, const char *type,
                                         int index);

/* The i-th task of the spec, ordered by type (alphabetically), then index. Returns
 * -MU_ERANGE past the end. The strings are owned by the spec. */
MU_EXPORT int mu_cluster_task_at(const mu_cluster *cluster, size_t i,
                                 const char **ret_type, int *ret_index,
                                 const char **ret_address);

/* 1 for the chief and the evaluator, and for worker 0 where there is no chief. */
MU_EXPORT int mu_cluster_is_chief(const mu_cluster *cluster, const char *type, int index);

/* ---- Who leads, and who counts ----
 *
 * Rules that programs of several tasks agree on without talking. Those that can fail say
 * why in ret_error: the cluster or the task does not fit (as mu_cluster_validate), or the
 * task's type has no part in what is asked (-MU_EINVALID). */

enum { MU_CLUSTER_TASK_BYTES = 64 }; /* room for a task's name, "/job:worker/task:1" */

/* Who leads the chief and the workers: the chief, or where there is none worker 0 (of a
 * sparse job the lowest). "" for an empty spec, and when `type` is "evaluator", which
 * works alone; `type` NULL asks for nobody in particular. -MU_EINVALID when a cluster has
 * neither chief nor worker. ret_task has MU_CLUSTER_TASK_BYTES. */
MU_EXPORT int mu_cluster_collective_leader(const mu_cluster *cluster, const char *type,
                                           mu_error *ret_error, char *ret_task);

/* Who hosts a coordination service by TensorFlow's rule: ps 0, else chief 0, else
 * worker 0; "" for an empty spec. */
MU_EXPORT int mu_cluster_coordination_leader(const mu_cluster *cluster,
                                             mu_error *ret_error, char *ret_task);

/* And by ours, when the option service_hosts says nothing: the chief, which has the
 * supervisor anyway, else ps 0, else worker 0. */
MU_EXPORT int mu_cluster_service_host(const mu_cluster *cluster, mu_error *ret_error,
                                      char *ret_task);

/* How many work together with a task of this type: chief and workers; for the evaluator
 * the evaluators (1 when it is outside of the cluster). -MU_ENOTFOUND for a chief or a
 * worker of a cluster that has none, -MU_EINVALID for other types. */
MU_EXPORT int mu_cluster_worker_count(const mu_cluster *cluster, const char *type,
                                      mu_error *ret_error, size_t *ret_count);

/* The number of a task among those: the chief has 0, a worker its index plus the number
 * of chiefs, the evaluator its index. -MU_EINVALID for other types. */
MU_EXPORT int mu_cluster_id_in_cluster(const mu_cluster *cluster, const char *type,
                                       int index, mu_error *ret_error, int *ret_id);

/* mu_cluster_task_count of one type: 0 for a type that is not known, -MU_EINVALID only
 * when none is given (NULL or ""). */
MU_EXPORT int mu_cluster_job_count(const mu_cluster *cluster, const char *type,
                                   mu_error *ret_error, size_t *ret_count);

/* mu_cluster_is_chief of a task that must fit the cluster. */
MU_EXPORT int mu_cluster_check_chief(const mu_cluster *cluster, const char *type,
                                     int index, mu_error *ret_error, int *ret_chief);

/* ---- The spec as a whole ---- */

/* 1 when no task is in it. */
MU_EXPORT int mu_cluster_is_empty(const mu_cluster *cluster);

/* 1 when both have the same tasks at the same addresses. A job without tasks is as good
 * as none, and an address is the same in each of its spellings. */
MU_EXPORT int mu_cluster_equal(const mu_cluster *a, const mu_cluster *b);

/* The i-th type that has tasks, in the order of the alphabet; NULL past the end. */
MU_EXPORT const char *mu_cluster_job_at(const mu_cluster *cluster, size_t i);

/* The largest index of a type plus one: mu_cluster_address() of the indices below it is
 * the job as a list, with NULL for the gaps of a sparse one. 0 without tasks. */
MU_EXPORT int mu_cluster_job_end(const mu_cluster *cluster, const char *type);

/* The cluster that a task of this type is part of when it trains: for the evaluator the
 * evaluators alone, for all others (and NULL) everything but those. The caller owns it;
 * NULL when out of memory. */
MU_EXPORT mu_cluster *mu_cluster_split(const mu_cluster *cluster, const char *type);

/* The spec as JSON (dense jobs as lists, sparse ones as objects). The caller frees the
 * text with free(); NULL when out of memory. */
MU_EXPORT char *mu_cluster_to_json(const mu_cluster *cluster);

#ifdef __cplusplus
}
#endif

#endif
