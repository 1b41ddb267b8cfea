/* The tasks that a cluster is to have, where tasks make themselves known one by one:
 * "chief=1,worker=3,ps=2". */
#ifndef MU_RESOLVER_EXPECTED_H
#define MU_RESOLVER_EXPECTED_H

#include "resolver/engine/kind.h"

/* Parse a setting; without a value, or of "any", it is a shape without rows. No job may
 * have "*". */
int mu__expected_parse(const struct mu__pass *pass, unsigned setting, mu_error *ret_error,
                       struct mu__jobs *ret_shape);

/* How many tasks of a type there are to be; 0 when the shape does not say. */
unsigned mu__expected_count(const struct mu__jobs *shape, const char *type);

/* Whether all expected tasks are in the cluster: 0, or -MU_EUNAVAILABLE with the names
 * of the missing ones ("directory /x: 2 of 4 tasks are not there yet: ..."). Without a
 * shape one task is enough. More than the shape says is fine: tasks may join. NULL
 * stands for an empty cluster. */
int mu__expected_check(const struct mu__jobs *shape, const char *source,
                       const mu_cluster *cluster, mu_error *ret_error);

/* Settings that say which task this process is, for sources that only know addresses.
 * Rows of a settings table; the index follows the type. */
#define MU__TASK_SETTINGS(type_number, index_number)                            \
    MU__SETTING(type_number, "task_type", "MUSTER_TYPE", NULL,                  \
                "which task this process is: its type"),                        \
        MU__SETTING_WITHIN(index_number, "task_index", "MUSTER_INDEX", NULL, 0, \
                           MU_CLUSTER_INDEX_MAX, "and its index")

/* Fill in the task's type and index where these settings say them. -MU_EINVALID: no
 * such type. */
int mu__task_setting(const struct mu__pass *pass, unsigned type_number,
                     mu_error *ret_error, mu_resolution *ret_resolution);

/* The task that announces itself: as the announcement says; where it says nothing (type
 * "", index -1), as these settings say. -MU_EINVALID: neither has the type. */
int mu__task_announced(const struct mu__pass *pass, unsigned type_number,
                       const mu_announcement *announcement, mu_error *ret_error,
                       mu_resolution *ret_task);

#endif
