/* The registry of the built-in resolvers. */
#include "resolver/kinds.h"

#include <string.h>

const struct mu__resolver_kind *const mu__resolver_kinds[] = {
    &mu__resolver_tf_config,
    &mu__resolver_file,
    &mu__resolver_directory,
    &mu__resolver_environment,
    &mu__resolver_etcd,
    &mu__resolver_dns,
    &mu__resolver_sagemaker,
    &mu__resolver_slurm,
    &mu__resolver_open_mpi,
    &mu__resolver_mpich,
    &mu__resolver_kubernetes_job,
    &mu__resolver_kubernetes,
    &mu__resolver_tpu,
    &mu__resolver_gce,
    NULL,
};

const struct mu__resolver_kind *mu__resolver_kind_find(const char *name)
{
    for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++)
        if (strcmp(mu__resolver_kinds[i]->name, name) == 0)
            return mu__resolver_kinds[i];
    return NULL;
}
