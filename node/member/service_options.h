/* Who may host the coordination service, whom it coordinates, and which types run
 * closures: texts made of options and the cluster. Pure. */
#ifndef MU_NODE_MEMBER_SERVICE_H
#define MU_NODE_MEMBER_SERVICE_H

#include "actors/worker_types.h"

#include "muster/cluster.h"

#include <stdbool.h>

/* The hosts of option service_hosts as a canonical set of tasks (task_set.h), "" for no
 * service. `text` NULL: the default, chief 0, or else ps 0, or else worker 0 of the
 * cluster, or else nobody. -MU_EINVALID and -MU_ERANGE name what is wrong, or the host
 * that the cluster does not have. The caller frees *ret_hosts. */
int mu__service_hosts(const mu_cluster *cluster, const char *text, mu_error *ret_error,
                      char **ret_hosts);

/* Read option worker_types, and refuse what is near to a type that muster knows, too. */
int mu__read_worker_types(const char *text, mu_error *ret_error,
                          struct mu__worker_types *ret_types);

/* All tasks of the cluster whose types option coordinated_jobs has, as a canonical set. A
 * type without tasks counts none. -MU_EINVALID names what is no task type. The caller
 * frees *ret_tasks. */
int mu__service_tasks(const mu_cluster *cluster, const char *jobs, mu_error *ret_error,
                      char **ret_tasks);

enum { MU__SERVICE_TYPES_BYTES = MU_CLUSTER_TYPES_MAX * 16 };

/* Option recoverable, checked: "all", "none", or the types in the order of the alphabet,
 * each once, with a comma between. Writes MU__SERVICE_TYPES_BYTES. */
int mu__service_recoverable(const char *text, mu_error *ret_error, char *out);

/* Whether a task is in the set `hosts`, as mu__service_hosts gives it; how many are. */
bool mu__service_is_host(const char *hosts, const char *type, int index);
size_t mu__service_hosts_count(const char *hosts);

#endif
