/* The resolver sagemaker as far as it works without libmuster-cloud: settings
 * and detection. */
#include "resolver/cloud/aws/aws.h"
#include "resolver/engine/cloud.h"
#include "resolver/engine/expected.h"

static const struct mu__setting_spec sagemaker_settings[] = {
    MU__SETTING(MU__SAGEMAKER_SET_PORT, "port", "MUSTER_SAGEMAKER_PORT", "2223",
                "port of each task"),
    MU__SETTING(MU__SAGEMAKER_SET_JOBS, "jobs", "MUSTER_SAGEMAKER_JOBS", NULL,
                "what the hosts are, in the order of their names: \"chief=1,worker=*\"; "
                "without it all are workers"),
    MU__SETTING(MU__SAGEMAKER_SET_GROUPS, "groups", "MUSTER_SAGEMAKER_GROUPS", NULL,
                "of a heterogeneous cluster: what each instance group is, or so many "
                "hosts of it: \"chief=gpu:1,worker=gpu,ps=cpu\""),
    MU__SETTING(MU__SAGEMAKER_SET_RPC_LAYER, "rpc_layer", "MUSTER_SAGEMAKER_RPC_LAYER",
                NULL, "in front of the master"),
    {.name = NULL},
};

static int detect_sagemaker(const struct mu__pass *pass, mu_error *ret_why)
{
    const struct mu__answer *answer;

    if (mu__request_variable(pass->requests, "SM_HOSTS") != NULL ||
        mu__request_variable(pass->requests, "SM_RESOURCE_CONFIG") != NULL)
        return 1;
    answer = mu__request_file(pass->requests, MU__SAGEMAKER_CONFIG);
    if (answer->code == 0)
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                       "SM_HOSTS and SM_RESOURCE_CONFIG are not set, and there is no %s",
                       MU__SAGEMAKER_CONFIG);
    return 0;
}

static int resolve_sagemaker(const struct mu__pass *pass, mu_error *ret_error,
                             mu_resolution *ret_resolution)
{
    return mu__cloud_resolve(MU__CLOUD_SAGEMAKER, pass, ret_error, ret_resolution);
}

const struct mu__resolver_kind mu__resolver_sagemaker = {
    .name = "sagemaker",
    .summary = "the hosts of a SageMaker training job",
    .settings = sagemaker_settings,
    .detect = detect_sagemaker,
    .resolve = resolve_sagemaker,
};
