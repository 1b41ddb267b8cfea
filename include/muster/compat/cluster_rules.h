/* TensorFlow's rules by which tasks agree on a leader or a number without messages. On
 * failure ret_error has the reason: the cluster or the task is not valid
 * (mu_cluster_validate), or the rule is not defined for the task's type (-MU_EINVALID).
 *
 * NULL for a required argument gives -MU_EINVALID (error.h). */
#ifndef MUSTER_COMPAT_CLUSTER_RULES_H
#define MUSTER_COMPAT_CLUSTER_RULES_H

#include "../cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The host of the coordination service by TensorFlow's rule: ps 0, else chief 0, else
 * worker 0; "" for an empty spec. ret_task has MU_CLUSTER_TASK_BYTES. */
MU_EXPORT int mu_cluster_coordination_leader(const mu_cluster *cluster,
                                             mu_error *ret_error, char *ret_task);

/* Number of tasks that train together with a task of this type: chief and workers; for
 * the evaluator the number of evaluators (1 when it is outside of the cluster).
 * -MU_ENOTFOUND for a chief or a worker of a cluster that has none, -MU_EINVALID for
 * other types. */
MU_EXPORT int mu_cluster_worker_count(const mu_cluster *cluster, const char *type,
                                      mu_error *ret_error, size_t *ret_count);

/* The number of a task among those that mu_cluster_worker_count counts: the chief has 0,
 * a worker its index plus the number of chiefs, the evaluator its index. -MU_EINVALID for
 * other types. */
MU_EXPORT int mu_cluster_id_in_cluster(const mu_cluster *cluster, const char *type,
                                       int index, mu_error *ret_error, int *ret_id);

/* mu_cluster_task_count of one type: 0 for an unknown type, -MU_EINVALID only when `type`
 * is NULL or "". */
MU_EXPORT int mu_cluster_job_count(const mu_cluster *cluster, const char *type,
                                   mu_error *ret_error, size_t *ret_count);

/* mu_cluster_is_chief of a task that must be valid (mu_cluster_validate). */
MU_EXPORT int mu_cluster_check_chief(const mu_cluster *cluster, const char *type,
                                     int index, mu_error *ret_error, int *ret_chief);

#ifdef __cplusplus
}
#endif

#endif
