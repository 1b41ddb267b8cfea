#include "resolver/cloud/resolvers.h"

#include "resolver/cloud/google/tpu.h"

const struct mu__cloud mu__cloud_pure = {
    .resolve = {[MU__CLOUD_GCE] = mu__gce_resolve,
                [MU__CLOUD_KUBERNETES] = mu__pods_resolve,
                [MU__CLOUD_KUBERNETES_JOB] = mu__kube_job_resolve,
                [MU__CLOUD_SAGEMAKER] = mu__sagemaker_resolve,
                [MU__CLOUD_TPU] = mu__tpu_resolve},
    .tpu_detect = mu__tpu_detect,
    .tpu_describe = mu__tpu_describe,
    .tpu_check_health = mu__tpu_check_health,
    .tpu_request_version = mu__tpu_request_version,
};
