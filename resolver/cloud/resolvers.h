/* The functions of libmuster-cloud's resolvers: each is called by the `resolve` or
 * `detect` of a resolver in kinds/. */
#ifndef MU_RESOLVER_CLOUD_RESOLVERS_H
#define MU_RESOLVER_CLOUD_RESOLVERS_H

#include "resolver/engine/cloud.h"

mu__cloud_resolve_fn mu__sagemaker_resolve;
mu__cloud_resolve_fn mu__gce_resolve;
mu__cloud_resolve_fn mu__tpu_resolve;
mu__cloud_resolve_fn mu__pods_resolve;
mu__cloud_resolve_fn mu__kube_job_resolve;

/* 1: this machine is a host of a TPU, or variables name one; 0 with the reason. */
int mu__tpu_detect(const struct mu__pass *pass, mu_error *ret_why);

/* The library's table without the functions that need a loop, a socket or a key: for
 * tests. */
extern const struct mu__cloud mu__cloud_pure;

#endif
