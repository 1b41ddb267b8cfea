/* The built-in resolvers: a row here, and a file in source/ or cloud/. */
#ifndef MU_RESOLVER_KINDS_H
#define MU_RESOLVER_KINDS_H

#include "resolver/engine/kind.h"

/* In the order of auto-detection; NULL ends it. */
extern const struct mu__resolver_kind *const mu__resolver_kinds[];

extern const struct mu__resolver_kind mu__resolver_tf_config;
extern const struct mu__resolver_kind mu__resolver_file;
extern const struct mu__resolver_kind mu__resolver_directory;
extern const struct mu__resolver_kind mu__resolver_environment;
extern const struct mu__resolver_kind mu__resolver_etcd;
extern const struct mu__resolver_kind mu__resolver_dns;
extern const struct mu__resolver_kind mu__resolver_sagemaker;
extern const struct mu__resolver_kind mu__resolver_slurm;
extern const struct mu__resolver_kind mu__resolver_open_mpi;
extern const struct mu__resolver_kind mu__resolver_mpich;
extern const struct mu__resolver_kind mu__resolver_kubernetes;
extern const struct mu__resolver_kind mu__resolver_kubernetes_job;
extern const struct mu__resolver_kind mu__resolver_tpu;
extern const struct mu__resolver_kind mu__resolver_gce;

/* By name; NULL when there is none. */
const struct mu__resolver_kind *mu__resolver_kind_find(const char *name);

#endif
