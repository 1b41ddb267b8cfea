/* What is known of the resolvers kubernetes and kubernetes_job without libmuster-cloud:
 * their settings, and where they are for. */
#include "resolver/cloud/kubernetes/access.h"
#include "resolver/cloud/kubernetes/job_kind.h"
#include "resolver/engine/cloud.h"
#include "runtime/base/text.h"

#include <string.h>

#define VARIABLE(name) "MUSTER_KUBERNETES_JOB_" name

enum { WATCH_MS = 30000 };      /* addresses change with their pods */

/* ---- kubernetes ---- */

static const struct mu__setting_spec settings_of[] = {
    [MU__KUBE_SET_SELECTORS] = {.name = "selectors",
                                .variable = "MUSTER_KUBERNETES_SELECTORS",
                                .initial = "worker=job-name=tensorflow",
                                .help =
                                    "TYPE:LABELS;TYPE:LABELS, as in worker:app=a,role=w"},
    [MU__KUBE_SET_NAMESPACE] =
        {.name = "namespace",
         .variable = "MUSTER_KUBERNETES_NAMESPACE",
         .help = "where the pods are; without it that of this pod, or of the "
                 "kubeconfig's context"},
    [MU__KUBE_SET_PORT] = {.name = "port",
                           .form = MU__SETTING_NUMBER,
                           .low = 1,
                           .high = 65535,
                           .variable = "MUSTER_KUBERNETES_PORT",
                           .initial = "8470",
                           .help = "where every task listens"},
    [MU__KUBE_SET_PORT_NAME] =
        {.name = "port_name",
         .variable = "MUSTER_KUBERNETES_PORT_NAME",
         .help = "a named port of the pods' containers, instead of port"},
    [MU__KUBE_SET_ADDRESS] = {.name = "address",
                              .variable = "MUSTER_KUBERNETES_ADDRESS",
                              .initial = "pod_ip",
                              .help = "pod_ip or host_ip"},
    [MU__KUBE_SET_TASKS] =
        {.name = "tasks",
         .variable = "MUSTER_KUBERNETES_TASKS",
         .help = "how many there have to be: worker=4,ps=2; without it those that "
                 "are there"},
    [MU__KUBE_SET_RPC_LAYER] = {.name = "rpc_layer",
                                .variable = "MUSTER_KUBERNETES_RPC_LAYER",
                                .initial = "grpc",
                                .help = "in front of a master's address"},
    [MU__KUBE_SET_LOCATION] = {.name = "executable_location",
                               .variable = "MUSTER_KUBERNETES_EXECUTABLE_LOCATION",
                               .initial = "auto",
                               .help = "auto, within_cluster or off_cluster"},
    [MU__KUBE_SET_API_SERVER] = {.name = "api_server",
                                 .variable = "MUSTER_KUBERNETES_API_SERVER",
                                 .help = "https://host:port of the API"},
    [MU__KUBE_SET_TOKEN] = {.name = "token",
                            .variable = "MUSTER_KUBERNETES_TOKEN",
                            .help = "a bearer token for the API"},
    [MU__KUBE_SET_TOKEN_FILE] =
        {.name = "token_file",
         .variable = "MUSTER_KUBERNETES_TOKEN_FILE",
         .help = "a file with a token, read again when it is refused"},
    [MU__KUBE_SET_TOKEN_COMMAND] =
        {.name = "token_command",
         .variable = "MUSTER_KUBERNETES_TOKEN_COMMAND",
         .help = "a command that prints a token, or an ExecCredential: "
                 "aws eks get-token --cluster-name NAME"},
    [MU__KUBE_SET_CA_FILE] = {.name = "ca_file",
                              .variable = "MUSTER_KUBERNETES_CA_FILE",
                              .help = "a PEM file with whom to trust as the API"},
    [MU__KUBE_SET_KUBECONFIG] =
        {.name = "kubeconfig",
         .help = "kubeconfig files, ':' between them, instead of the variable "
                 "KUBECONFIG and ~/.kube/config"},
    [MU__KUBE_SET_CONTEXT] = {.name = "context",
                              .variable = "MUSTER_KUBERNETES_CONTEXT",
                              .help = "of kubeconfig, instead of its current one"},
    {.name = NULL},
};

int mu__kubernetes_is_within(struct mu__requests *requests, const char *location,
                             mu_error *ret_error, bool *ret_within)
{
    bool has_service = mu__request_variable(requests, "KUBERNETES_SERVICE_HOST") != NULL;
    char shown[MU__QUOTE_BYTES];

    if (strcmp(location, "auto") == 0) {
        *ret_within = has_service;
        return 0;
    }
    if (strcmp(location, "off_cluster") == 0) {
        *ret_within = false;
        return 0;
    }
    if (strcmp(location, "within_cluster") == 0) {
        *ret_within = true;
        return 0;
    }
    mu__quote(shown, sizeof shown, location, strlen(location));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "executable_location: expected \"auto\", \"within_cluster\" or "
                        "\"off_cluster\", got %s",
                        shown);
}

/* Every pod has KUBERNETES_SERVICE_HOST, whatever it is: only with selectors is it known
 * that pods are to be found. */
static int detect_pods(struct mu__requests *requests, const struct mu__settings *settings,
                       mu_error *ret_why)
{
    bool within = false;
    int rv = mu__kubernetes_is_within(
        requests, mu__setting(requests, settings, MU__KUBE_SET_LOCATION), ret_why,
        &within);

    if (rv != 0)
        return rv;
    if (!mu__setting_given(requests, settings, MU__KUBE_SET_SELECTORS)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           within ? "this is a pod, but MUSTER_KUBERNETES_SELECTORS is "
                                    "not set"
                                  : "KUBERNETES_SERVICE_HOST is not set");
        return 0;
    }
    return 1;
}

static int resolve_pods(struct mu__requests *requests,
                        const struct mu__settings *settings, mu_error *ret_error,
                        mu_resolution *ret_resolution)
{
    return mu__cloud_resolve(MU__CLOUD_KUBERNETES, requests, settings, ret_error,
                             ret_resolution);
}

const struct mu__resolver_kind mu__resolver_kubernetes = {
    .name = "kubernetes",
    .summary = "pods by label, from the API of Kubernetes",
    .settings = settings_of,
    .detect = detect_pods,
    .resolve = resolve_pods,
    .watch_ms = WATCH_MS,
};

/* ---- kubernetes_job ---- */

const struct mu__setting_spec mu__kube_job_settings[] = {
    [MU__KUBE_JOB_MODE] =
        {.name = "mode",
         .variable = VARIABLE("MODE"),
         .initial = "auto",
         .help = "job, jobset, statefulset, service (all addresses behind it) or "
                 "auto"},
    [MU__KUBE_JOB_TASKS] = {.name = "tasks",
                            .form = MU__SETTING_NUMBER,
                            .low = 1,
                            .high = MU_CLUSTER_TASKS_MAX,
                            .variable = VARIABLE("TASKS"),
                            .help = "the Job's completions, the StatefulSet's replicas"},
    [MU__KUBE_JOB_REPLICAS] =
        {.name = "replicas",
         .form = MU__SETTING_NUMBER,
         .low = 1,
         .high = MU_CLUSTER_TASKS_MAX,
         .variable = "REPLICATED_JOB_REPLICAS",
         .initial = "1",
         .help = "of a JobSet: how many Jobs the replicated job has, each of "
                 "`tasks`"},
    [MU__KUBE_JOB_JOBS] = {.name = "jobs",
                           .variable = VARIABLE("JOBS"),
                           .help = "what the tasks are, by index: chief=1,ps=2,worker=*"},
    [MU__KUBE_JOB_GROUPS] =
        {.name = "groups",
         .variable = VARIABLE("GROUPS"),
         .help = "several Jobs behind one service: ps=NAME:2,worker=NAME:4, of a "
                 "JobSet also NAME:2x4"},
    [MU__KUBE_JOB_SERVICE] =
        {.name = "service",
         .variable = VARIABLE("SERVICE"),
         .help = "the headless service; of a JobSet without it the JobSet's "
                 "name"},
    [MU__KUBE_JOB_NAME] =
        {.name = "job_name",
         .variable = VARIABLE("NAME"),
         .help = "the Job or StatefulSet; without it HOSTNAME without -INDEX"},
    [MU__KUBE_JOB_JOBSET] = {.name = "jobset",
                             .variable = "JOBSET_NAME",
                             .help = "the JobSet"},
    [MU__KUBE_JOB_REPLICATED_JOB] = {.name = "replicated_job",
                                     .variable = "REPLICATED_JOB_NAME",
                                     .help =
                                         "which replicated job of the JobSet this is"},
    [MU__KUBE_JOB_JOB_INDEX] = {.name = "job_index",
                                .form = MU__SETTING_NUMBER,
                                .low = 0,
                                .high = MU_CLUSTER_INDEX_MAX,
                                .variable = "JOB_INDEX",
                                .initial = "0",
                                .help = "which Job of the replicated job this is"},
    [MU__KUBE_JOB_INDEX] =
        {.name = "index",
         .form = MU__SETTING_NUMBER,
         .low = 0,
         .high = MU_CLUSTER_INDEX_MAX,
         .variable = "JOB_COMPLETION_INDEX",
         .help = "which pod this is; of a StatefulSet without it the end of "
                 "HOSTNAME"},
    [MU__KUBE_JOB_NAMESPACE] = {.name = "namespace",
                                .variable = VARIABLE("NAMESPACE"),
                                .help = "of the service, when it is another one"},
    [MU__KUBE_JOB_DOMAIN] =
        {.name = "domain",
         .variable = VARIABLE("DOMAIN"),
         .help = "of the cluster's DNS, to have whole names: cluster.local"},
    [MU__KUBE_JOB_PORT] = {.name = "port",
                           .form = MU__SETTING_NUMBER,
                           .low = 1,
                           .high = 65535,
                           .variable = VARIABLE("PORT"),
                           .initial = "55527",
                           .help = "where every task listens"},
    [MU__KUBE_JOB_ADDRESS] = {.name = "address",
                              .variable = VARIABLE("ADDRESS"),
                              .initial = "name",
                              .help = "name or ip"},
    [MU__KUBE_JOB_WAIT_FOR] = {.name = "wait_for",
                               .variable = VARIABLE("WAIT_FOR"),
                               .initial = "first",
                               .help =
                                   "whose names have to be known: none, first or all"},
    [MU__KUBE_JOB_RPC_LAYER] = {.name = "rpc_layer",
                                .variable = VARIABLE("RPC_LAYER"),
                                .initial = "grpc",
                                .help = "in front of a master's address"},
    {.name = NULL},
};

static int detect_job(struct mu__requests *requests, const struct mu__settings *settings,
                      mu_error *ret_why)
{
    bool indexed = mu__setting(requests, settings, MU__KUBE_JOB_INDEX) != NULL;

    if (!indexed && !mu__setting_given(requests, settings, MU__KUBE_JOB_SERVICE)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "neither JOB_COMPLETION_INDEX nor "
                           "MUSTER_KUBERNETES_JOB_SERVICE is set");
        return 0;
    }
    if (mu__setting_given(requests, settings, MU__KUBE_JOB_TASKS) ||
        mu__setting_given(requests, settings, MU__KUBE_JOB_GROUPS))
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                       "neither MUSTER_KUBERNETES_JOB_TASKS nor "
                       "MUSTER_KUBERNETES_JOB_GROUPS is set");
    return 0;
}

static int resolve_job(struct mu__requests *requests, const struct mu__settings *settings,
                       mu_error *ret_error, mu_resolution *ret_resolution)
{
    return mu__cloud_resolve(MU__CLOUD_KUBERNETES_JOB, requests, settings, ret_error,
                             ret_resolution);
}

const struct mu__resolver_kind mu__resolver_kubernetes_job = {
    .name = "kubernetes_job",
    .summary = "an Indexed Job, JobSet or StatefulSet, by variables and DNS",
    .settings = mu__kube_job_settings,
    .detect = detect_job,
    .resolve = resolve_job,
    .watch_ms = WATCH_MS,
};
