/* Shared by the parts of the resolver slurm. */
#ifndef MU_RESOLVER_SLURM_H
#define MU_RESOLVER_SLURM_H

#include "resolver/source/ranks.h"

enum mu__slurm_setting {
    MU__SLURM_JOBS,
    MU__SLURM_PORT_BASE,
    MU__SLURM_GPUS_PER_NODE,
    MU__SLURM_GPUS_PER_TASK,
    MU__SLURM_TASKS_PER_NODE,
    MU__SLURM_AUTO_SET_GPU,
    MU__SLURM_RPC_LAYER,
    MU__SLURM_HOST_SUFFIX
};

/* The GPUs that this task has of those of its node, which has `node_tasks` tasks;
 * `local` is its number among them, `tasks_max` the tasks of the fullest node. */
int mu__slurm_gpus(const struct mu__pass *pass, unsigned local, unsigned node_tasks,
                   unsigned tasks_max, mu_error *ret_error, mu_resolution *resolution);

/* How many tasks each host has, by the setting tasks_per_node: a number, or "host=count"
 * with commas between. The caller frees *ret_counts. */
int mu__slurm_set_counts(const char *text, const char *source,
                         const struct mu__host_list *hosts, mu_error *ret_error,
                         unsigned **ret_counts);

#endif
