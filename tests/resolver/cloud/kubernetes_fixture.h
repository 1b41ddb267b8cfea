/* Files and answers of the API of Kubernetes, as rows. */
#ifndef MU_TESTS_KUBERNETES_FIXTURE_H
#define MU_TESTS_KUBERNETES_FIXTURE_H

#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static const struct mu__resolver_kind *const kind = &mu__resolver_kubernetes;

/* clang-format off */
#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}
#define ROWS(...) (const struct script_row[]){__VA_ARGS__, SCRIPT_END}
/* clang-format on */

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define BEARER "Authorization: Bearer secret-1"
#define API                                             \
    "https://10.96.0.1:443/api/v1/namespaces/training/" \
    "pods?limit=500&labelSelector="

#define DEFAULT API "job-name%3Dtensorflow"

/* What every pod has. */
#define POD                                                  \
    SCRIPT_VARIABLE("KUBERNETES_SERVICE_HOST", "10.96.0.1"), \
        SCRIPT_VARIABLE("KUBERNETES_SERVICE_PORT", "443"),   \
        SCRIPT_FILE(ACCOUNT "namespace", "training"),        \
        SCRIPT_FILE(ACCOUNT "ca.crt", "PEM"), SCRIPT_FILE(ACCOUNT "token", "secret-1\n")
#define ANSWER(url, ...) \
    SCRIPT(HTTP, .name = (url), .has_header = BEARER, .text = __VA_ARGS__)

static const char one_pod[] =
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
    "\"7192\"},\"items\":[{\"metadata\":{\"name\":\"tensorflow-x7k2p\",\"generateName\":"
    "\"tensorflow-\",\"namespace\":\"training\",\"uid\":\"3f1e\",\"creationTimestamp\":"
    "\"2024-05-14T09:12:33Z\",\"labels\":{\"batch.kubernetes.io/job-name\":\"t"
    "ensorflow\","
    "\"job-name\":\"tensorflow\"},\"ownerReferences\":[{\"apiVersion\":\"batch/v1\","
    "\"kind\":\"Job\",\"name\":\"tensorflow\",\"uid\":\"91aa\",\"controller\":true,"
    "\"blockOwnerDeletion\":true}],\"managedFields\":[{\"manager\":\"kubelet\","
    "\"operation\":\"Update\",\"fieldsV1\":{\"f:status\":{\"f:phase\":{}}}}]},\"spec\":"
    "{\"containers\":[{\"name\":\"main\",\"image\":\"tf:1\",\"ports\":[{\"name\":"
    "\"muster\",\"containerPort\":5000,\"hostPort\":6000,\"protocol\":\"TCP\"}],"
    "\"resources\":{}}],\"nodeName\":\"node-a\",\"hostNetwork\":false},\"status\":"
    "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
    "\"hostIP\":\"10.1.0.7\",\"hostIPs\":[{\"ip\":\"10.1.0.7\"}],\"podIP\":\"10.2.0.3\","
    "\"podIPs\":[{\"ip\":\"10.2.0.3\"}],\"containerStatuses\":[{\"name\":\"main\","
    "\"state\":{\"running\":{\"startedAt\":\"2024-05-14T09:12:40Z\"}},\"ready"
    "\":true}]}}]}";

#define REFUSED(words) \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" words "\"}"

#endif
