/* The resolvers gce and tpu as far as they work without libmuster-cloud: settings and
 * detection. */
#include "resolver/cloud/google/gce.h"
#include "resolver/cloud/google/tpu.h"
#include "resolver/engine/cloud.h"

#include <string.h>

#define PRODUCT_FILE "/sys/class/dmi/id/product_name"
#define PRODUCT "Google Compute Engine"

/* ---- Is this a machine of Google's? ---- */

const char *mu__google_metadata_host(struct mu__requests *requests)
{
    const char *host = mu__request_variable(requests, "GCE_METADATA_HOST");

    return host != NULL ? host : mu__request_variable(requests, "GCE_METADATA_IP");
}

/* "Google Compute Engine", or "Google" alone. */
static bool is_product(const char *text)
{
    return strncmp(text, PRODUCT, strlen(PRODUCT)) == 0 ||
           (strncmp(text, "Google", 6) == 0 &&
            text[6 + strspn(text + 6, " \r\n")] == '\0');
}

int mu__google_here(struct mu__requests *requests, mu_error *ret_why)
{
    const char *no_check = mu__request_variable(requests, "NO_GCE_CHECK");
    const struct mu__answer *answer;

    if (mu__google_metadata_host(requests) != NULL)
        return 1;
    if (no_check != NULL && strcmp(no_check, "true") == 0) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "NO_GCE_CHECK says that this is no machine of Google's");
        return 0;
    }
    answer = mu__request_file(requests, PRODUCT_FILE);
    if (answer->code == -MU_ENOMEM)
        return mu_error_set(ret_why, -MU_ENOMEM, "out of memory");
    if (answer->code == 0 && is_product(answer->data))
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                       "this is no machine of Google's: " PRODUCT_FILE
                       " does not say \"" PRODUCT "\", and GCE_METADATA_HOST and "
                       "GCE_METADATA_IP are not set");
    return 0;
}

/* ---- gce ---- */

static const struct mu__setting_spec gce_settings[] = {
    MU__SETTING(MU__GCE_SET_PROJECT, "project", "MUSTER_GCE_PROJECT", NULL,
                "the project; by itself GOOGLE_CLOUD_PROJECT or this machine's"),
    MU__SETTING(MU__GCE_SET_ZONE, "zone", "MUSTER_GCE_ZONE", NULL,
                "the group's zone; by itself this machine's"),
    MU__SETTING(MU__GCE_SET_REGION, "region", "MUSTER_GCE_REGION", NULL,
                "in place of a zone: the region of a regional group"),
    MU__SETTING(MU__GCE_SET_INSTANCE_GROUP, "instance_group", "MUSTER_GCE_INSTANCE_GROUP",
                NULL, "the group; by itself the one that made this machine"),
    MU__SETTING_WITHIN(MU__GCE_SET_PORT, "port", "MUSTER_GCE_PORT", "8470", 1, 65535,
                       "of every task"),
    MU__SETTING(MU__GCE_SET_TASK_TYPE, "task_type", "MUSTER_GCE_TASK_TYPE", "worker",
                "what all instances are"),
    MU__SETTING(MU__GCE_SET_TASK_INDEX, "task_index", "MUSTER_GCE_TASK_INDEX", "auto",
                "of this task: a number, \"none\", or \"auto\": this machine's place in "
                "the group, else 0"),
    MU__SETTING(MU__GCE_SET_RPC_LAYER, "rpc_layer", "MUSTER_GCE_RPC_LAYER", "grpc",
                "what a master begins with; may be empty"),
    MU__SETTING(MU__GCE_SET_ORDER, "order", "MUSTER_GCE_ORDER", "address",
                "\"address\": by the bytes of the addresses, as TensorFlow does; "
                "\"name\": by the instances' names"),
    MU__SETTING(MU__GCE_SET_API_ENDPOINT, "api_endpoint", "MUSTER_GCE_API_ENDPOINT",
                "https://compute.googleapis.com/compute/v1", "where the API is"),
    MU__GOOGLE_SETTINGS(MU__GCE_SET_GOOGLE, "GCE"),
    {.name = NULL},
};

/* Being a machine of Google's does not make it a task: the group has to be named. */
static int detect_gce(const struct mu__pass *pass, mu_error *ret_why)
{
    bool located = (mu__setting_given(pass, MU__GCE_SET_ZONE) ||
                    mu__setting_given(pass, MU__GCE_SET_REGION)) &&
                   (mu__setting_given(pass, MU__GCE_SET_PROJECT) ||
                    mu__request_variable(pass->requests, "GOOGLE_CLOUD_PROJECT") != NULL);

    if (!mu__setting_given(pass, MU__GCE_SET_INSTANCE_GROUP)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "MUSTER_GCE_INSTANCE_GROUP is not set");
        return 0;
    }
    return located ? 1 : mu__google_here(pass->requests, ret_why);
}

static int resolve_gce(const struct mu__pass *pass, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    return mu__cloud_resolve(MU__CLOUD_GCE, pass, ret_error, ret_resolution);
}

const struct mu__resolver_kind mu__resolver_gce = {
    .name = "gce",
    .summary = "the running instances of an instance group of Google Compute Engine",
    .settings = gce_settings,
    .detect = detect_gce,
    .resolve = resolve_gce,
    .watch_ms = 120000, /* all tasks share the project's quota of requests a minute */
    .type_is_setting = true,
};

/* ---- tpu ---- */

const struct mu__setting_spec mu__tpu_settings[] = {
    MU__SETTING(MU__TPU_SET_TPU, "tpu", NULL, NULL,
                "names, full names or grpc:// addresses, with commas between; \"local\"; "
                "by itself from variables"),
    MU__SETTING(MU__TPU_SET_ZONE, "zone", "MUSTER_TPU_ZONE", NULL,
                "the TPU's zone; by itself this machine's"),
    MU__SETTING(MU__TPU_SET_PROJECT, "project", "MUSTER_TPU_PROJECT", NULL,
                "its project; by itself GOOGLE_CLOUD_PROJECT or this machine's"),
    MU__SETTING(MU__TPU_SET_JOB_NAME, "job_name", "MUSTER_TPU_JOB_NAME", "worker",
                "what the TPU's hosts are"),
    MU__SETTING(MU__TPU_SET_COORDINATOR_NAME, "coordinator_name",
                "MUSTER_TPU_COORDINATOR_NAME", NULL,
                "the job of this process, when it is none of the TPU's hosts"),
    MU__SETTING(MU__TPU_SET_COORDINATOR_ADDRESS, "coordinator_address",
                "MUSTER_TPU_COORDINATOR_ADDRESS", NULL,
                "where it is; by itself this machine's address"),
    MU__SETTING_WITHIN(MU__TPU_SET_COORDINATOR_PORT, "coordinator_port",
                       "MUSTER_TPU_COORDINATOR_PORT", "0", 0, 65535,
                       "its port there; 0: any that is free"),
    MU__SETTING_WITHIN(MU__TPU_SET_PORT, "port", "MUSTER_TPU_PORT", NULL, 1, 65535,
                       "of hosts without one, and in place of what the API says: by "
                       "itself 8470, of tasks on a TPU's own hosts 8482"),
    MU__SETTING(MU__TPU_SET_API_ENDPOINT, "api_endpoint", "MUSTER_TPU_API_ENDPOINT",
                "https://tpu.googleapis.com", "where the API is"),
    MU__SETTING(MU__TPU_SET_API_VERSION, "api_version", "MUSTER_TPU_API_VERSION", "v2",
                "of the API; \"v1\" has TPU nodes alone"),
    MU__SETTING(MU__TPU_SET_DISCOVERY_URL, "discovery_url", NULL, NULL,
                "a document that says where the API is, with {api} and {apiVersion}; the "
                "variable TPU_API_DISCOVERY_URL counts more"),
    MU__SETTING_WITHIN(MU__TPU_SET_VERSION_PORT, "version_port",
                       "MUSTER_TPU_VERSION_PORT", "8475", 1, 65535,
                       "where hosts are asked for another version"),
    MU__GOOGLE_SETTINGS(MU__TPU_SET_GOOGLE, "TPU"),
    {.name = NULL},
};

bool mu__tpu_skips_metadata(struct mu__requests *requests)
{
    const char *skip = mu__request_variable(requests, "TPU_SKIP_MDS_QUERY");

    return skip != NULL && (strcmp(skip, "1") == 0 || strcmp(skip, "true") == 0);
}

/* Without variables, only the metadata server knows whether this machine is a host of a
 * TPU, and libmuster-cloud asks it. */
static int detect_tpu(const struct mu__pass *pass, mu_error *ret_why)
{
    static const char *const variables[] = {"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS",
                                            "TPU_WORKER_HOSTNAMES", "TPU_NAME",
                                            "TPU_CONFIG"};
    const struct mu__cloud *cloud;
    mu_error why;
    int rv;

    if (mu__setting_given(pass, MU__TPU_SET_TPU))
        return 1;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (mu__request_variable(pass->requests, variables[i]) != NULL)
            return 1;
    rv = mu__google_here(pass->requests, &why);
    if (rv == 1 && mu__tpu_skips_metadata(pass->requests)) {
        rv = 0;
        (void)mu_error_set(&why, -MU_ENOTFOUND,
                           "TPU_SKIP_MDS_QUERY forbids to ask the metadata server");
    }
    if (rv == 1) {
        rv = mu__cloud_need(pass->requests, &why, &cloud);
        if (rv == 0)
            return cloud->tpu_detect(pass, ret_why);
        rv = rv == -MU_ENOMEM ? rv : 0;
    }
    if (rv == 0)
        (void)mu_error_set(ret_why, -MU_ENOTFOUND, MU__TPU_UNTOLD ", and %s",
                           why.message);
    else
        *ret_why = why;
    return rv;
}

static int resolve_tpu(const struct mu__pass *pass, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    return mu__cloud_resolve(MU__CLOUD_TPU, pass, ret_error, ret_resolution);
}

const struct mu__resolver_kind mu__resolver_tpu = {
    .name = "tpu",
    .summary = "Cloud TPUs, by name or address, or as variables and metadata tell",
    .settings = mu__tpu_settings,
    .detect = detect_tpu,
    .resolve = resolve_tpu,
    .master_is_first_task = true,
    .watch_ms = 300000, /* a TPU may be recreated under the same name */
};
