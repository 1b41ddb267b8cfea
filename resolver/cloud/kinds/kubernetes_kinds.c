/* The resolvers kubernetes and kubernetes_job as far as they work without
 * libmuster-cloud: settings and detection. */
#include "resolver/cloud/kubernetes/access.h"
#include "resolver/cloud/kubernetes/job_kind.h"
#include "resolver/engine/cloud.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <string.h>

#define VARIABLE(name) "MUSTER_KUBERNETES_JOB_" name

enum { WATCH_MS = 30000 }; /* addresses change with their pods */

/* ---- kubernetes ---- */

static const struct mu__setting_spec settings_of[] = {
    MU__SETTING(MU__KUBE_SET_SELECTORS, "selectors", "MUSTER_KUBERNETES_SELECTORS",
                "worker=job-name=tensorflow",
                "TYPE:LABELS;TYPE:LABELS, as in worker:app=a,role=w"),
    MU__SETTING(MU__KUBE_SET_NAMESPACE, "namespace", "MUSTER_KUBERNETES_NAMESPACE", NULL,
                "where the pods are; without it that of this pod, or of the kubeconfig's "
                "context"),
    MU__SETTING_WITHIN(MU__KUBE_SET_PORT, "port", "MUSTER_KUBERNETES_PORT", "8470", 1,
                       65535, "where every task listens"),
    MU__SETTING(MU__KUBE_SET_PORT_NAME, "port_name", "MUSTER_KUBERNETES_PORT_NAME", NULL,
                "a named port of the pods' containers, instead of port"),
    MU__SETTING(MU__KUBE_SET_ADDRESS, "address", "MUSTER_KUBERNETES_ADDRESS", "pod_ip",
                "pod_ip or host_ip"),
    MU__SETTING(MU__KUBE_SET_TASKS, "tasks", "MUSTER_KUBERNETES_TASKS", NULL,
                "how many there have to be: worker=4,ps=2; without it those that are "
                "there"),
    MU__SETTING(MU__KUBE_SET_RPC_LAYER, "rpc_layer", "MUSTER_KUBERNETES_RPC_LAYER",
                "grpc", "in front of a master's address"),
    MU__SETTING(MU__KUBE_SET_LOCATION, "executable_location",
                "MUSTER_KUBERNETES_EXECUTABLE_LOCATION", "auto",
                "auto, within_cluster or off_cluster"),
    MU__SETTING(MU__KUBE_SET_API_SERVER, "api_server", "MUSTER_KUBERNETES_API_SERVER",
                NULL, "https://host:port of the API"),
    MU__SETTING(MU__KUBE_SET_TOKEN, "token", "MUSTER_KUBERNETES_TOKEN", NULL,
                "a bearer token for the API"),
    MU__SETTING(MU__KUBE_SET_TOKEN_FILE, "token_file", "MUSTER_KUBERNETES_TOKEN_FILE",
                NULL, "a file with a token, read again when it is refused"),
    MU__SETTING(MU__KUBE_SET_TOKEN_COMMAND, "token_command",
                "MUSTER_KUBERNETES_TOKEN_COMMAND", NULL,
                "a command that prints a token, or an ExecCredential: aws eks get-token "
                "--cluster-name NAME"),
    MU__SETTING(MU__KUBE_SET_CA_FILE, "ca_file", "MUSTER_KUBERNETES_CA_FILE", NULL,
                "a PEM file with whom to trust as the API"),
    MU__SETTING(MU__KUBE_SET_KUBECONFIG, "kubeconfig", NULL, NULL,
                "kubeconfig files, ':' between them, instead of the variable KUBECONFIG "
                "and ~/.kube/config"),
    MU__SETTING(MU__KUBE_SET_CONTEXT, "context", "MUSTER_KUBERNETES_CONTEXT", NULL,
                "of kubeconfig, instead of its current one"),
    {.name = NULL},
};

int mu__kubernetes_is_within(const struct mu__pass *pass, mu_error *ret_error,
                             bool *ret_within)
{
    static const char *const words[] = {"off_cluster", "within_cluster", "auto", NULL};
    enum { AUTO = 2 };
    unsigned location = AUTO;
    int rv = mu__setting_word(pass, MU__KUBE_SET_LOCATION, words,
                              "\"auto\", \"within_cluster\" or \"off_cluster\"",
                              ret_error, &location);

    *ret_within =
        location == AUTO
            ? mu__request_variable(pass->requests, "KUBERNETES_SERVICE_HOST") != NULL
            : location == 1;
    return rv;
}

/* Every pod has KUBERNETES_SERVICE_HOST: only the selectors say that its cluster is made
 * of pods. */
static int detect_pods(const struct mu__pass *pass, mu_error *ret_why)
{
    bool within = false;
    int rv = mu__kubernetes_is_within(pass, ret_why, &within);

    if (rv != 0)
        return rv;
    if (!mu__setting_given(pass, MU__KUBE_SET_SELECTORS)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           within ? "this is a pod, but MUSTER_KUBERNETES_SELECTORS is "
                                    "not set"
                                  : "KUBERNETES_SERVICE_HOST is not set");
        return 0;
    }
    return 1;
}

static int resolve_pods(const struct mu__pass *pass, mu_error *ret_error,
                        mu_resolution *ret_resolution)
{
    return mu__cloud_resolve(MU__CLOUD_KUBERNETES, pass, ret_error, ret_resolution);
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
    MU__SETTING(MU__KUBE_JOB_MODE, "mode", VARIABLE("MODE"), "auto",
                "job, jobset, statefulset, service (all addresses behind it) or auto"),
    MU__SETTING_WITHIN(MU__KUBE_JOB_TASKS, "tasks", VARIABLE("TASKS"), NULL, 1,
                       MU_CLUSTER_TASKS_MAX,
                       "the Job's completions, the StatefulSet's replicas"),
    MU__SETTING_WITHIN(MU__KUBE_JOB_REPLICAS, "replicas", "REPLICATED_JOB_REPLICAS", "1",
                       1, MU_CLUSTER_TASKS_MAX,
                       "of a JobSet: how many Jobs the replicated job has, each of "
                       "`tasks`"),
    MU__SETTING(MU__KUBE_JOB_JOBS, "jobs", VARIABLE("JOBS"), NULL,
                "what the tasks are, by index: chief=1,ps=2,worker=*"),
    MU__SETTING(MU__KUBE_JOB_GROUPS, "groups", VARIABLE("GROUPS"), NULL,
                "several Jobs behind one service: ps=NAME:2,worker=NAME:4, of a JobSet "
                "also NAME:2x4"),
    MU__SETTING(MU__KUBE_JOB_SERVICE, "service", VARIABLE("SERVICE"), NULL,
                "the headless service; of a JobSet without it the JobSet's name"),
    MU__SETTING(MU__KUBE_JOB_NAME, "job_name", VARIABLE("NAME"), NULL,
                "the Job or StatefulSet; without it HOSTNAME without -INDEX"),
    MU__SETTING(MU__KUBE_JOB_JOBSET, "jobset", "JOBSET_NAME", NULL, "the JobSet"),
    MU__SETTING(MU__KUBE_JOB_REPLICATED_JOB, "replicated_job", "REPLICATED_JOB_NAME",
                NULL, "which replicated job of the JobSet this is"),
    MU__SETTING_WITHIN(MU__KUBE_JOB_JOB_INDEX, "job_index", "JOB_INDEX", "0", 0,
                       MU_CLUSTER_INDEX_MAX, "which Job of the replicated job this is"),
    MU__SETTING_WITHIN(MU__KUBE_JOB_INDEX, "index", "JOB_COMPLETION_INDEX", NULL, 0,
                       MU_CLUSTER_INDEX_MAX,
                       "which pod this is; of a StatefulSet without it the end of "
                       "HOSTNAME"),
    MU__SETTING(MU__KUBE_JOB_NAMESPACE, "namespace", VARIABLE("NAMESPACE"), NULL,
                "of the service, when it is another one"),
    MU__SETTING(MU__KUBE_JOB_DOMAIN, "domain", VARIABLE("DOMAIN"), NULL,
                "of the cluster's DNS, to have whole names: cluster.local"),
    MU__SETTING_WITHIN(MU__KUBE_JOB_PORT, "port", VARIABLE("PORT"), "55527", 1, 65535,
                       "where every task listens"),
    MU__SETTING(MU__KUBE_JOB_ADDRESS, "address", VARIABLE("ADDRESS"), "name",
                "name or ip"),
    MU__SETTING(MU__KUBE_JOB_WAIT_FOR, "wait_for", VARIABLE("WAIT_FOR"), "first",
                "whose names have to be known: none, first or all"),
    MU__SETTING(MU__KUBE_JOB_RPC_LAYER, "rpc_layer", VARIABLE("RPC_LAYER"), "grpc",
                "in front of a master's address"),
    {.name = NULL},
};

/* The tasks of most Indexed Jobs do not know of each other: only their number, or the
 * groups, says that they are a cluster. */
static int detect_job(const struct mu__pass *pass, mu_error *ret_why)
{
    bool indexed = mu__setting(pass, MU__KUBE_JOB_INDEX) != NULL;

    if (!indexed && !mu__setting_given(pass, MU__KUBE_JOB_SERVICE)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "neither JOB_COMPLETION_INDEX nor "
                           "MUSTER_KUBERNETES_JOB_SERVICE is set");
        return 0;
    }
    if (mu__setting_given(pass, MU__KUBE_JOB_TASKS) ||
        mu__setting_given(pass, MU__KUBE_JOB_GROUPS))
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                       "neither MUSTER_KUBERNETES_JOB_TASKS nor "
                       "MUSTER_KUBERNETES_JOB_GROUPS is set");
    return 0;
}

static int resolve_job(const struct mu__pass *pass, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    return mu__cloud_resolve(MU__CLOUD_KUBERNETES_JOB, pass, ret_error, ret_resolution);
}

const struct mu__resolver_kind mu__resolver_kubernetes_job = {
    .name = "kubernetes_job",
    .summary = "an Indexed Job, JobSet or StatefulSet, by variables and DNS",
    .settings = mu__kube_job_settings,
    .detect = detect_job,
    .resolve = resolve_job,
    .watch_ms = WATCH_MS,
};
