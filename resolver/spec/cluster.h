/* What the resolvers and the composition root share about cluster specs, beyond the
 * public <muster/cluster.h>. */
#ifndef MU_RESOLVER_CLUSTER_H
#define MU_RESOLVER_CLUSTER_H

#include <muster/cluster.h>

#include <cjson/cJSON.h>

#include <stdbool.h>

enum { MU__TASK_TYPE_BYTES = 16 }; /* room for the name of a task type */

/* Whether a name is that of a task type: chief, client, evaluator, ps and worker have a
 * role of their own, others are a program's. One that is near to one of the five is taken
 * for a misspelling, and is none. */
bool mu__task_type_is_valid(const char *type);

/* Whether a cluster has one task of a type at most: the chief, the evaluator. */
bool mu__task_type_is_single(const char *type);

/* The type that was probably meant by a name that is none: "worker" for "Workers",
 * "ps" for "ps_hosts", "chief" for "master"; NULL when nothing is near. The string is
 * static. */
const char *mu__task_type_suggest(const char *name);

/* 0, or -MU_EINVALID with what was expected and maybe a suggestion. */
int mu__task_type_check(const char *name, mu_error *ret_error);

/* Copy the first `size` bytes of a text, the name of a type, to `ret_type`, which has
 * MU__TASK_TYPE_BYTES. The error begins with `where`. */
int mu__task_type_read(const char *text, size_t size, mu_error *ret_error, char *ret_type,
                       const char *where, ...) MU_PRINTF(5, 6);

/* Write "/job:worker/task:1", cut to `size`. The names that a cluster spec can hold fit
 * the 64 bytes of mu_error's task. */
void mu__task_name(char *out, size_t size, const char *type, int index);

/* Add one task of a valid type, as mu_cluster_add() does; messages do not name the
 * task. */
int mu__cluster_insert(mu_cluster *cluster, const char *type, int index,
                       const char *address, mu_error *ret_error);

/* The two halves of mu_cluster_validate(): the cluster alone, and one task of it. NULL
 * stands for an empty cluster. */
int mu__cluster_check(const mu_cluster *cluster, mu_error *ret_error);
int mu__cluster_check_task(const mu_cluster *cluster, const char *type, int index,
                           mu_error *ret_error);

/* Whether a worker that the cluster does not list may join it: one with a valid index, in
 * a cluster with a chief that it can dial. */
bool mu__cluster_may_join(const mu_cluster *cluster, const char *type, int index);

/* The index of the i-th task of a job, ascending; -1 past the end. */
int mu__cluster_job_index(const mu_cluster *cluster, const char *type, size_t i);

/* Make a spec of a JSON object job -> addresses. Messages begin with `source` and name
 * places below `path`, as in "TF_CONFIG: cluster.worker[2]: ...".
 * `path` is "" when the object is the whole text. On success the caller owns
 * *ret_cluster. */
int mu__cluster_from_json(const cJSON *object, const char *source, const char *path,
                          mu_error *ret_error, mu_cluster **ret_cluster);

/* The same, without an end at the first error: each error goes to `report`, and each
 * valid task to `cluster`. -MU_ENOMEM. */
typedef void mu__cluster_report_fn(void *user, const mu_error *error);
int mu__cluster_read_all(mu_cluster *cluster, const cJSON *object, const char *source,
                         const char *path, mu__cluster_report_fn *report, void *user);

#endif
