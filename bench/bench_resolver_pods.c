/* The answer of a Kubernetes API to "which pods have this label", in pages of 500 as the
 * resolver asks for them: from its bytes to a cluster spec. The limit is a bare
 * cJSON_ParseWithLength of the same bytes, which neither checks nor understands them. */
#include "bench/bench.h"

#include "resolver/cloud/kubernetes/pods.h"

#include <cjson/cJSON.h>
#include <stdarg.h>

enum { PAGE_PODS = 500, PAGES_MAX = 16, ROUNDS = 9 };

struct text {
    char *bytes;
    size_t size;
    size_t room;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_resolver_pods: %s\n", what);
    exit(1);
}

__attribute__((__format__(__printf__, 2, 3))) static void add(struct text *text,
                                                              const char *format, ...)
{
    va_list arguments;
    int size;

    if (text->room - text->size < 8192) {
        text->room = text->room * 2 + 16384;
        text->bytes = realloc(text->bytes, text->room);
        if (text->bytes == NULL)
            die("out of memory");
    }
    va_start(arguments, format);
    size =
        vsnprintf(text->bytes + text->size, text->room - text->size, format, arguments);
    va_end(arguments);
    text->size += (size_t)size;
}

/* ---- Pods as an Indexed Job with one container makes them ---- */

static void add_metadata(struct text *text, unsigned i)
{
    add(text,
        "{\"metadata\":{\"name\":\"train-%u-%05x\",\"generateName\":\"train-%u-\","
        "\"namespace\":\"training\",\"uid\":\"7d1f0a52-93c8-4c0e-8a57-%012x\","
        "\"resourceVersion\":\"%u\",\"creationTimestamp\":\"2024-05-14T09:12:33Z\","
        "\"labels\":{\"app.kubernetes.io/name\":\"train\",\"batch.kubernetes.io/"
        "controller-uid\":\"91aa8e3c-52d7-4d0b-9b55-0a4f9f1f2c11\",\"batch.kubernetes.io/"
        "job-completion-index\":\"%u\",\"batch.kubernetes.io/job-name\":\"train\","
        "\"controller-uid\":\"91aa8e3c-52d7-4d0b-9b55-0a4f9f1f2c11\",\"job-name\":"
        "\"train\"},\"annotations\":{\"batch.kubernetes.io/job-completion-inde"
        "x\":\"%u\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":"
        "\"train\",\"uid\":\"91aa8e3c-52d7-4d0b-9b55-0a4f9f1f2c11\",\"controller\":true,"
        "\"blockOwnerDeletion\":true}],\"finalizers\":[\"batch.kubernetes.io/"
        "job-tracking\"],",
        i, i * 7919 & 0xFFFFF, i, i, 1000000 + i, i, i);
}

static void add_managed_fields(struct text *text)
{
    add(text,
        "\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":"
        "\"Update\",\"apiVersion\":\"v1\",\"time\":\"2024-05-14T09:12:33Z\",\""
        "fieldsType\":"
        "\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:annotations\":{\".\":{},"
        "\"f:batch.kubernetes.io/job-completion-index\":{}},\"f:finalizers\":{\".\":{},"
        "\"v:\\\"batch.kubernetes.io/job-tracking\\\"\":{}},\"f:generateName\":{},"
        "\"f:labels\":{\".\":{},\"f:batch.kubernetes.io/controller-uid\":{},"
        "\"f:batch.kubernetes.io/job-name\":{}},\"f:ownerReferences\":{\".\":{},"
        "\"k:{\\\"uid\\\":\\\"91aa8e3c-52d7-4d0b-9b55-0a4f9f1f2c11\\\"}\":{}}}"
        ",\"f:spec\":"
        "{\"f:containers\":{\"k:{\\\"name\\\":\\\"main\\\"}\":{\".\":{},\"f:args\":{},"
        "\"f:command\":{},\"f:env\":{\".\":{},\"k:{\\\"name\\\":\\\"JOB_COMPLETION_INDEX"
        "\\\"}\":{\".\":{},\"f:name\":{},\"f:valueFrom\":{\".\":{},\"f:fieldRef\":{}}}},"
        "\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:ports\":{\".\":{},"
        "\"k:{\\\"containerPort\\\":8470,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},"
        "\"f:containerPort\":{},\"f:name\":{},\"f:protocol\":{}}},\"f:resources\":{\".\":"
        "{},\"f:limits\":{\".\":{},\"f:nvidia.com/gpu\":{}}}}},\"f:dnsPolicy\":{},"
        "\"f:hostname\":{},\"f:restartPolicy\":{},\"f:schedulerName\":{},"
        "\"f:securityContext\":{},\"f:subdomain\":{},"
        "\"f:terminationGracePeriodSeconds\":{}}}},{\"manager\":\"kubelet\",\""
        "operation\":"
        "\"Update\",\"apiVersion\":\"v1\",\"time\":\"2024-05-14T09:12:41Z\",\""
        "fieldsType\":"
        "\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":"
        "\\\"ContainersReady\\\"}\":{\".\":{},\"f:lastProbeTime\":{},"
        "\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type\":{}}},"
        "\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:phase\":{},\"f:podIP\":{},"
        "\"f:podIPs\":{},\"f:startTime\":{}}},\"subresource\":\"status\"}]},");
}

static void add_spec(struct text *text, unsigned i)
{
    add(text,
        "\"spec\":{\"volumes\":[{\"name\":\"kube-api-access-x2v9k\",\"projected\":"
        "{\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":"
        "\"token\"}},{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":"
        "\"ca.crt\",\"path\":\"ca.crt\"}]}},{\"downwardAPI\":{\"items\":[{\"path\":"
        "\"namespace\",\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":"
        "\"metadata.namespace\"}}]}}],\"defaultMode\":420}}],\"containers\":[{\"name\":"
        "\"main\",\"image\":\"registry.example/team/train:2024-05-14\",\"command\":"
        "[\"muster\",\"run\"],\"args\":[\"--\",\"python3\",\"train.py\"],\"ports\":"
        "[{\"name\":\"muster\",\"containerPort\":8470,\"protocol\":\"TCP\"}],\"env\":"
        "[{\"name\":\"JOB_COMPLETION_INDEX\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":"
        "\"v1\",\"fieldPath\":\"metadata.labels['batch.kubernetes.io/job-compl"
        "etion-index']"
        "\"}}}],\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"8\"},\"requests\":"
        "{\"nvidia.com/gpu\":\"8\"}},\"volumeMounts\":[{\"name\":\"kube-api-ac"
        "cess-x2v9k\","
        "\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount"
        "\"}],\"terminationMessagePath\":\"/dev/termination-log\","
        "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],"
        "\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
        "\"ClusterFirst\",\"serviceAccountName\":\"train\",\"nodeName\":\"node-%u\","
        "\"securityContext\":{},\"hostname\":\"train-%u\",\"subdomain\":\"train\","
        "\"schedulerName\":\"default-scheduler\",\"tolerations\":[{\"key\":"
        "\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
        "\"NoExecute\","
        "\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true,"
        "\"preemptionPolicy\":\"PreemptLowerPriority\"},",
        i, i);
}

static void add_status(struct text *text, unsigned i)
{
    static const char *const conditions[] = {"Initialized", "Ready", "ContainersReady",
                                             "PodScheduled"};

    add(text, "\"status\":{\"phase\":\"Running\",\"conditions\":[");
    for (size_t k = 0; k < sizeof conditions / sizeof conditions[0]; k++)
        add(text,
            "%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,"
            "\"lastTransitionTime\":\"2024-05-14T09:12:41Z\"}",
            k == 0 ? "" : ",", conditions[k]);
    add(text,
        "],\"hostIP\":\"10.1.%u.%u\",\"hostIPs\":[{\"ip\":\"10.1.%u.%u\"}],\"podIP\":"
        "\"10.2.%u.%u\",\"podIPs\":[{\"ip\":\"10.2.%u.%u\"}],\"startTime\":"
        "\"2024-05-14T09:12:33Z\",\"containerStatuses\":[{\"name\":\"main\",\"state\":"
        "{\"running\":{\"startedAt\":\"2024-05-14T09:12:40Z\"}},\"lastState\":{},"
        "\"ready\":true,\"restartCount\":0,\"image\":\"registry.example/team/train:"
        "2024-05-14\",\"imageID\":\"registry.example/team/train@sha256:"
        "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945\","
        "\"containerID\":\"containerd://%064x\",\"started\":true}],\"qosClass\":"
        "\"BestEffort\"}}",
        i / 250, i % 250, i / 250, i % 250, i / 250, i % 250, i / 250, i % 250, i);
}

static struct text make_page(unsigned from, unsigned to)
{
    struct text text = {0};

    add(&text, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":"
               "{\"resourceVersion\":\"7192031\"},\"items\":[");
    for (unsigned i = from; i < to; i++) {
        add(&text, "%s", i == from ? "" : ",");
        add_metadata(&text, i);
        add_managed_fields(&text);
        add_spec(&text, i);
        add_status(&text, i);
    }
    add(&text, "]}");
    return text;
}

/* ---- Measuring ---- */

/* As the resolver does it: pages, a list of all their pods, a cluster. */
static uint64_t ours(const struct text *pages, size_t count, unsigned pods_count)
{
    const struct mu__pods_rule rule = {.source = "pods", .type = "worker", .port = 8470};
    const struct mu__pod **list = calloc(pods_count, sizeof *list);
    struct mu__pods *parsed[PAGES_MAX];
    uint64_t start = bench_now_ns();
    mu_resolution resolution;
    size_t used = 0;
    size_t first;
    mu_error error;

    if (list == NULL)
        die("out of memory");
    mu_resolution_init(&resolution);
    for (size_t i = 0; i < count; i++) {
        if (mu__pods_parse(pages[i].bytes, pages[i].size, "pods", &error, &parsed[i]) !=
            0)
            die(error.message);
        for (size_t k = 0; k < parsed[i]->count; k++)
            list[used++] = &parsed[i]->items[k];
    }
    if (mu__pods_add(list, &used, &rule, &error, &resolution, &first) != 0)
        die(error.message);
    start = bench_now_ns() - start;
    if (mu_cluster_task_count(resolution.cluster, "worker") != pods_count)
        die("pods are missing");
    mu_cluster_free(resolution.cluster);
    for (size_t i = 0; i < count; i++)
        mu__pods_free(parsed[i]);
    free(list);
    return start;
}

static uint64_t bare(const struct text *pages, size_t count)
{
    cJSON *roots[PAGES_MAX];
    uint64_t start = bench_now_ns();

    for (size_t i = 0; i < count; i++) {
        roots[i] = cJSON_ParseWithLength(pages[i].bytes, pages[i].size);
        if (roots[i] == NULL)
            die("cJSON does not take its page");
    }
    start = bench_now_ns() - start;
    for (size_t i = 0; i < count; i++)
        cJSON_Delete(roots[i]);
    return start;
}

int main(void)
{
    unsigned pods_count = (unsigned)bench_size(60, 5000);
    size_t rounds = (size_t)bench_size(1, ROUNDS);
    struct bench_line line = {.bench = "resolver_pods",
                              .metric = "pods_to_cluster",
                              .unit = "ms",
                              .target = 50.0,
                              .less_is_more = true};
    struct text pages[PAGES_MAX];
    uint64_t own[ROUNDS];
    uint64_t limit[ROUNDS];
    size_t count = 0;
    size_t bytes = 0;
    char extra[128];

    for (unsigned from = 0; from < pods_count; from += PAGE_PODS) {
        unsigned to = from + PAGE_PODS < pods_count ? from + PAGE_PODS : pods_count;

        pages[count] = make_page(from, to);
        bytes += pages[count++].size;
    }
    /* One after the other: what one has freed, malloc sorts in the other's time. */
    for (size_t i = 0; i < rounds; i++)
        own[i] = ours(pages, count, pods_count);
    for (size_t i = 0; i < rounds; i++)
        limit[i] = bare(pages, count);
    (void)snprintf(extra, sizeof extra,
                   "\"pods\":%u,\"bytes\":%zu,\"bytes_of_"
                   "a_pod\":%zu",
                   pods_count, bytes, bytes / pods_count);
    line.value = (double)bench_median(own, rounds) / 1e6;
    line.limit = (double)bench_median(limit, rounds) / 1e6;
    line.extra = extra;
    bench_report(&line);
    for (size_t i = 0; i < count; i++)
        free(pages[i].bytes);
    return 0;
}
