/* Accelerators of tasks, counted in what the tasks have reported about their machines. */
#ifndef MU_API_RESOLVER_DEVICES_H
#define MU_API_RESOLVER_DEVICES_H

#include <muster/resolver.h>

/* What is counted, by kind. */
enum mu__accelerator { MU__GPU, MU__TPU, MU__ACCELERATORS };

/* Of one task (`type` and `index`), of each task of a type (index -1), or of all tasks
 * (type NULL) of `cluster`, which may be NULL: then of those that are in the list.
 * `devices` is what mu_tasks_devices gives. -MU_EUNAVAILABLE: a task is not in it yet;
 * -MU_EPRECONDITION: two tasks have unequal numbers of a kind. Both name tasks. */
int mu__devices_count(const mu_value *devices, const mu_cluster *cluster,
                      const char *type, int index, mu_error *ret_error,
                      size_t ret_counts[MU__ACCELERATORS]);

#endif
