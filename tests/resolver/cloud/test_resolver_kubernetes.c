/* The resolver kubernetes, by rows: files and answers of the API in, cluster and task
 * out. The answers have the shape of real ones; most of a pod is left out but in the
 * first. */
#include "tests/resolver/cloud/kubernetes_fixture.h"

#include <stdio.h>

#define LIST(items)                                                                  \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":" \
    "\"712\"},\"items\":[" items "]}"
#define PAGE(token, items)                                                           \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":" \
    "\"712\",\"continue\":\"" token "\",\"remainingItemCount\":1},\"items\":[" items \
    "]}"
#define POD_OF(metadata, spec, status)                                        \
    "{\"metadata\":{" metadata ",\"namespace\":\"training\"},\"spec\":{" spec \
    "\"nodeName\":\"n\"},\"status\":{" status "}}"
#define NAME(name) "\"name\":\"" name "\""
#define UP(ip) "\"phase\":\"Running\",\"hostIP\":\"10.1.0.1\",\"podIP\":\"" ip "\""
#define RUNNING(name, ip) POD_OF(NAME(name), "", UP(ip))
#define OWNED(uid)                                                       \
    ",\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"uid\":\"other\"}," \
    "{\"kind\":\"Job\",\"uid\":\"" uid "\",\"controller\":true}]"
#define INDEX(index) \
    ",\"labels\":{\"batch.kubernetes.io/job-completion-index\":\"" index "\"}"
#define INDEXED(name, uid, index, status) \
    POD_OF(NAME(name) OWNED(uid) INDEX(index), "", status)

/* As the API's reference has it, of an Indexed Job: pod 2 was evicted (Failed, with the
 * reason Evicted), and the Job has made another one for its index. */
#define JOB_POD(name, index, status)                                                    \
    "{\"metadata\":{\"name\":\"train-" index "-" name                                   \
    "\",\"labels\":{\"app\":\"train\","                                                 \
    "\"batch.kubernetes.io/job-completion-index\":\"" index "\"},\"ownerReferences\":"  \
    "[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"train\",\"uid\":\"u1\"," \
    "\"controller\":true}]},\"spec\":{\"hostname\":\"train-" index "\",\"containers\":" \
    "[{\"name\":\"main\"}]},\"status\":{" status "}}"

TEST(test_evicted_pod_of_a_job)
{
    /* clang-format off */
    static const char list[] =
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
        "\"540\"},\"items\":["
        JOB_POD("n2p6l", "1", "\"phase\":\"Running\",\"hostIP\":\"10.1.0.7\",\"podIP\":"
                              "\"10.9.9.9\",\"podIPs\":[{\"ip\":\"10.9.9.9\"}]") ","
        JOB_POD("8z4xq", "0", "\"phase\":\"Running\",\"podIP\":\"10.3.0.6\"") ","
        JOB_POD("b5wcd", "1", "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"podIP\":"
                              "\"10.3.0.7\"")
        "]}";
    /* clang-format on */

    script_expect(kind,
                  ROWS(POD, ANSWER(API "app%3Dtrain", list),
                       SCRIPT_VARIABLE("HOSTNAME", "train-1")),
                  NAMES("selectors=worker:app=train"),
                  "{\"worker\":[\"10.3.0.6:8470\",\"10.9.9.9:8470\"]}", "worker:1");
}

/* ---- Selectors, order, addresses ---- */

TEST(test_defaults_within)
{
    script_expect(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)), NULL,
                  "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    /* What kubeconfig says, were it read, would be an error. */
    script_expect(kind,
                  ROWS(POD, SCRIPT_VARIABLE("KUBECONFIG", "/bad"),
                       SCRIPT_FILE("/bad", "a: b: c"), ANSWER(DEFAULT, one_pod)),
                  NAMES("executable_location=within_cluster"),
                  "{\"worker\":[\"10.2.0.3:8470\"]}", "");
}

TEST(test_addresses)
{
    script_expect(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)), NAMES("address=host_ip"),
                  "{\"worker\":[\"10.1.0.7:8470\"]}", "");
    script_expect(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)), NAMES("port_name=muster"),
                  "{\"worker\":[\"10.2.0.3:5000\"]}", "");
    script_expect(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)),
                  NAMES("port_name=muster", "address=host_ip"),
                  "{\"worker\":[\"10.1.0.7:6000\"]}", "");
    script_expect_error(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)),
                        NAMES("port_name=web", "address=host_ip"), -MU_ENOTFOUND,
                        "pods of namespace training with job-name=tensorflow: pod "
                        "tensorflow-x7k2p: no container has a port named \"web\" with a "
                        "hostPort");
    script_expect(
        kind,
        ROWS(POD,
             ANSWER(DEFAULT, LIST(RUNNING("a", "fd00::1") "," RUNNING("b", "fd00::2")))),
        NAMES("port=80"), "{\"worker\":[\"[fd00::1]:80\",\"[fd00::2]:80\"]}", "");
}

/* Names are ordered by their bytes; several selectors of a job stand in their order. */
TEST(test_order)
{
    static const char workers[] = LIST(RUNNING("w-2", "10.2.0.2") "," RUNNING(
        "w-10", "10.2.0.10") "," RUNNING("w-1", "10.2.0.1"));

    script_expect(
        kind,
        ROWS(POD, ANSWER(API "app%3Da%2Crole%20in%20%28w%29", workers),
             ANSWER(API "app%3Da%2Crole%3Dp", LIST(RUNNING("p", "10.2.0.4"))),
             ANSWER(API "late", LIST(RUNNING("a", "10.2.0.5"))),
             SCRIPT_VARIABLE("HOSTNAME", "a")),
        NAMES("selectors=worker:app=a,role in (w);ps=app=a,role=p;worker:late"),
        "{\"ps\":[\"10.2.0.4:8470\"],\"worker\":[\"10.2.0.1:8470\",\"10.2.0.10:8470\","
        "\"10.2.0.2:8470\",\"10.2.0.5:8470\"]}",
        "worker:3");
}

#define UP_AT(n) UP("10.2.0." n)

TEST(test_order_by_index)
{
    /* clang-format off */
    script_expect(
        kind,
        ROWS(POD, ANSWER(DEFAULT, LIST(INDEXED("w-10-b", "u", "10", UP_AT("10")) ","
                                       INDEXED("w-8-a", "u", "8", UP_AT("8")) ","
                                       INDEXED("w-9-x", "u", "9", UP_AT("9"))))),
        NULL, "{\"worker\":[\"10.2.0.8:8470\",\"10.2.0.9:8470\",\"10.2.0.10:8470\"]}",
        "");
    /* The index of a StatefulSet; of Kubernetes before 1.28, an annotation. */
    script_expect(
        kind,
        ROWS(POD,
             ANSWER(DEFAULT,
                    LIST(POD_OF(NAME("w-10") ",\"labels\":{\"apps.kubernetes.io/"
                                             "pod-index\":\"10\"}",
                                "", UP_AT("10")) ","
                         POD_OF(NAME("w-9") ",\"annotations\":{\"batch.kubernetes.io/"
                                            "job-completion-index\":\"9\"}",
                                "", UP_AT("9"))))),
        NULL, "{\"worker\":[\"10.2.0.9:8470\",\"10.2.0.10:8470\"]}", "");
    /* Two of the same index: both are ordered by their names. */
    script_expect(
        kind,
        ROWS(POD, ANSWER(DEFAULT, LIST(INDEXED("b", "u", "0", UP_AT("1")) ","
                                       INDEXED("a", "v", "0", UP_AT("2"))))),
        NULL, "{\"worker\":[\"10.2.0.2:8470\",\"10.2.0.1:8470\"]}", "");
    script_expect_error(
        kind,
        ROWS(POD, ANSWER(DEFAULT, LIST(INDEXED("a", "u", "0", UP_AT("1")) ","
                                       INDEXED("c", "u", "2", UP_AT("2"))))),
        NULL, -MU_EUNAVAILABLE, "there is no pod with index 1, behind a");
    /* clang-format on */
}

#define OF_JOB(name, job, index, n)                                                     \
    POD_OF(NAME(name) ",\"labels\":{\"jobset.sigs.k8s.io/job-index\":\"" job            \
                      "\",\"batch.kubernetes.io/job-completion-index\":\"" index "\"}", \
           "", UP_AT(n))

TEST(test_jobs_of_a_jobset)
{
    /* clang-format off */
    script_expect(
        kind,
        ROWS(POD, ANSWER(DEFAULT,
                         LIST(OF_JOB("a", "1", "1", "4") ","
                              OF_JOB("b", "1", "0", "3") ","
                              OF_JOB("c", "0", "1", "2") ","
                              OF_JOB("d", "0", "0", "1")))),
        NULL,
        "{\"worker\":[\"10.2.0.1:8470\",\"10.2.0.2:8470\",\"10.2.0.3:8470\","
        "\"10.2.0.4:8470\"]}",
        "");
    /* clang-format on */
}

/* ---- Who we are ---- */

/* With the network of their host, two pods of a node have one address and no name of
 * their own: only POD_NAME tells them apart. */
TEST(test_own_task_of_a_host)
{
#define AT_HOST(name, port)                                                        \
    POD_OF(NAME(name),                                                             \
           "\"hostNetwork\":true,\"containers\":[{\"ports\":[{\"name\":"           \
           "\"m\",\"containerPort\":" port "}]}],",                                \
           "\"phase\":\"Running\",\"hostIP\":\"10.1.0.1\",\"podIP\":\"10.1.0.1\"," \
           "\"podIPs\":[{\"ip\":\"10.1.0.1\"},{\"ip\":\"fd00::1\"}]")
    static const char pods[] = LIST(AT_HOST("a", "1001") "," AT_HOST("b", "1002"));
    static const char cluster[] = "{\"worker\":[\"10.1.0.1:1001\",\"10.1.0.1:1002\"]}";

    script_expect(kind,
                  ROWS(POD, ANSWER(DEFAULT, pods), SCRIPT_VARIABLE("HOSTNAME", "node"),
                       SCRIPT_VARIABLE("POD_IP", "10.1.0.1")),
                  NAMES("port_name=m"), cluster, "");
    script_expect(kind,
                  ROWS(POD, ANSWER(DEFAULT, pods), SCRIPT_VARIABLE("HOSTNAME", "node"),
                       SCRIPT_VARIABLE("POD_IP", "10.1.0.1"),
                       SCRIPT_VARIABLE("POD_NAME", "b")),
                  NAMES("port_name=m"), cluster, "worker:1");
}

TEST(test_own_task)
{
    /* clang-format off */
    static const char pods[] =
        LIST(POD_OF(NAME("w-0-abc"), "\"hostname\":\"w-0\",", UP_AT("1")) ","
             POD_OF(NAME("w-1-xyz"), "\"hostname\":\"w-1\",", UP_AT("2")));
    /* clang-format on */
    static const char cluster[] = "{\"worker\":[\"10.2.0.1:8470\",\"10.2.0.2:8470\"]}";

    script_expect(kind,
                  ROWS(POD, ANSWER(DEFAULT, pods), SCRIPT_VARIABLE("HOSTNAME", "w-1")),
                  NULL, cluster, "worker:1");
    script_expect(kind,
                  ROWS(POD, ANSWER(DEFAULT, pods), SCRIPT_VARIABLE("HOSTNAME", "node"),
                       SCRIPT_VARIABLE("POD_NAME", "w-0-abc")),
                  NULL, cluster, "worker:0");
    script_expect(kind,
                  ROWS(POD, ANSWER(DEFAULT, pods), SCRIPT_VARIABLE("HOSTNAME", "node"),
                       SCRIPT_VARIABLE("POD_IP", "10.2.0.2")),
                  NULL, cluster, "worker:1");
    script_expect(kind,
                  ROWS(POD, ANSWER(DEFAULT, pods), SCRIPT_VARIABLE("HOSTNAME", "node")),
                  NULL, cluster, "");
    /* A pod of that name in another namespace is another pod. */
    script_expect(kind,
                  ROWS(POD, SCRIPT_VARIABLE("HOSTNAME", "w-1"),
                       ANSWER("https://10.96.0.1:443/api/v1/namespaces/b/"
                              "pods?limit=500&labelSelector=job-name%3Dtensorflow",
                              pods)),
                  NAMES("namespace=b"), cluster, "");
}

/* ---- Pods that do not run ---- */

static void expect_pod_error(const char *list, int code, const char *words)
{
    script_expect_error(kind, ROWS(POD, ANSWER(DEFAULT, list)), NULL, code, words);
}

TEST(test_not_running)
{
    static const struct {
        const char *status;
        const char *words;
    } rows[] = {
        {"\"phase\":\"Pending\"",
         "pods of namespace training with job-name=tensorflow: pod w is Pending (it has "
         "no node yet); expected it to be Running"},
        {"\"phase\":\"Pending\",\"hostIP\":\"10.1.0.1\",\"containerStatuses\":"
         "[{\"state\":"
         "{\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"x\"}}}]",
         "pod w is Pending (ImagePullBackOff)"},
        {"\"phase\":\"Pending\",\"hostIP\":\"10.1.0.1\",\"containerStatuses\":"
         "[{\"state\":"
         "{\"waiting\":{\"reason\":\"PodInitializing\"}}}],\"initContainerStatuses\":"
         "[{\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]",
         "pod w is Pending (CrashLoopBackOff)"},
        {"\"phase\":\"Failed\",\"reason\":\"Evicted\"", "pod w is Failed (Evicted)"},
        {"\"phase\":\"Succeeded\",\"hostIP\":\"10.1.0.1\"",
         "pod w is Succeeded; expected"},
        {"\"phase\":\"Unknown\",\"hostIP\":\"10.1.0.1\"", "pod w is Unknown"},
        {"\"hostIP\":\"10.1.0.1\"", "pod w is without a phase"},
        {"\"phase\":\"Running\",\"hostIP\":\"10.1.0.1\"", "pod w has no podIP yet"},
    };
    char list[1024];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(list, sizeof list,
                       LIST(RUNNING("a", "10.2.0.1") "," POD_OF(NAME("w"), "", "%s")),
                       rows[i].status);
        expect_pod_error(list, -MU_EUNAVAILABLE, rows[i].words);
    }
    expect_pod_error(LIST(""), -MU_EUNAVAILABLE,
                     "pods of namespace training with job-name=tensorflow: there is none "
                     "yet");
}

#define FAILED "\"phase\":\"Failed\",\"reason\":\"Evicted\""
#define ENDED "\"phase\":\"Succeeded\",\"hostIP\":\"10.1.0.1\""
#define GOING ",\"deletionTimestamp\":\"2024-05-14T09:12:33Z\""

static void expect_left(const char *list, const char *cluster)
{
    script_expect(kind, ROWS(POD, ANSWER(DEFAULT, list)), NULL, cluster, "");
}

TEST(test_left_over)
{
    static const char one[] = "{\"worker\":[\"10.2.0.1:8470\"]}";

    /* The Job has made another pod for one that failed. */
    /* clang-format off */
    expect_left(LIST(POD_OF(NAME("a") OWNED("u"), "", FAILED) ","
                     POD_OF(NAME("b") OWNED("u"), "", UP_AT("1"))), one);
    expect_left(LIST(INDEXED("a", "u", "0", FAILED) ","
                     INDEXED("b", "u", "0", UP_AT("1"))), one);
    /* An earlier Job with the same labels. */
    expect_left(LIST(INDEXED("a", "old", "0", ENDED) ","
                     INDEXED("b", "old", "1", FAILED) ","
                     INDEXED("c", "u", "0", UP_AT("1"))), one);
    /* On its way out. */
    expect_left(LIST(POD_OF(NAME("a") GOING, "", UP_AT("2")) ","
                     RUNNING("b", "10.2.0.1")), one);
    /* One that is being deleted while it runs, and who has its index already; it may have
     * its host's network, and so the same address. */
    expect_left(LIST(POD_OF(NAME("a") OWNED("u") INDEX("0") GOING, "", UP_AT("1")) ","
                     INDEXED("b", "u", "0", UP_AT("1"))), one);
    /* One of an index that nobody has taken over yet. */
    expect_pod_error(LIST(INDEXED("a", "u", "1", FAILED) ","
                          INDEXED("b", "u", "0", UP_AT("1"))), -MU_EUNAVAILABLE,
                     "pod a is Failed (Evicted); expected it to be Running, or another "
                     "in its place");
    expect_pod_error(LIST(POD_OF(NAME("a") OWNED("u") INDEX("1") GOING, "",
                                 UP_AT("2")) ","
                          INDEXED("b", "u", "0", UP_AT("1"))), -MU_EUNAVAILABLE,
                     "pod a is being deleted; expected");
    /* Nobody makes another one. */
    expect_pod_error(LIST(POD_OF(NAME("a"), "", FAILED) ","
                          RUNNING("b", "10.2.0.1")), -MU_EUNAVAILABLE,
                     "pod a is Failed (Evicted); expected it to be Running");
    /* A task of this Job is over. */
    expect_pod_error(LIST(INDEXED("a", "u", "0", ENDED) ","
                          INDEXED("b", "u", "1", UP_AT("1"))), -MU_EUNAVAILABLE,
                     "pod a is Succeeded");
    /* clang-format on */
}

TEST(test_same_address)
{
    script_expect_error(
        kind,
        ROWS(POD, ANSWER(DEFAULT,
                         LIST(RUNNING("a", "10.2.0.1") "," RUNNING("b", "10.2.0.2")))),
        NAMES("address=host_ip"), -MU_EEXISTS,
        "pods a and b have the same address 10.1.0.1 port 8470; expected one for each "
        "(address=pod_ip, or ports of their own)");
}

TEST(test_counts)
{
    script_expect(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)), NAMES("tasks=worker=1,ps=0"),
                  "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    script_expect_error(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)),
                        NAMES("tasks=worker=2"), -MU_EUNAVAILABLE,
                        "setting tasks of resolver kubernetes: expected 2 pods of "
                        "worker, but there are 1");
    script_expect_error(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)),
                        NAMES("tasks=worker=0"), -MU_EPRECONDITION,
                        "expected 0 pods of worker, but there are 1");
    script_expect_error(kind, ROWS(POD, ANSWER(DEFAULT, one_pod)),
                        NAMES("tasks=worker=1,ps"), -MU_EINVALID,
                        "at 10: expected TYPE=COUNT");
}

/* ---- The API ---- */

TEST(test_pages)
{
    script_expect(
        kind,
        ROWS(POD, ANSWER(DEFAULT, PAGE("t+1=", RUNNING("b", "10.2.0.2"))),
             ANSWER(DEFAULT "&continue=t%2B1%3D", PAGE("t2", RUNNING("c", "10.2.0.3"))),
             ANSWER(DEFAULT "&continue=t2", LIST(RUNNING("a", "10.2.0.1")))),
        NULL, "{\"worker\":[\"10.2.0.1:8470\",\"10.2.0.2:8470\",\"10.2.0.3:8470\"]}", "");
}

#define GONE                                                                           \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"The provided continue " \
    "parameter is too old\",\"reason\":\"Expired\",\"code\":410}"

/* The token of a page behind the first has expired: the list is begun anew. */
TEST(test_expired_list)
{
    static const char first[] = PAGE("t", RUNNING("a", "10.2.0.1"));
    static const char second[] = LIST(RUNNING("b", "10.2.0.2"));

    script_expect(kind,
                  ROWS(POD, ANSWER(DEFAULT, first),
                       ANSWER(DEFAULT "&continue=t", GONE, .status = 410),
                       ANSWER(DEFAULT, first, .again = 1),
                       ANSWER(DEFAULT "&continue=t", second, .again = 1)),
                  NULL, "{\"worker\":[\"10.2.0.1:8470\",\"10.2.0.2:8470\"]}", "");
    script_expect_error(kind,
                        ROWS(POD, ANSWER(DEFAULT, GONE, .status = 410),
                             ANSWER(DEFAULT, GONE, .status = 410, .again = 1),
                             ANSWER(DEFAULT, GONE, .status = 410, .again = 2)),
                        NULL, -MU_EUNAVAILABLE,
                        "the list has expired 3 times before its end was read");
}

TEST(test_bad_answers)
{
    static const struct {
        struct script_row row;
        int code;
        const char *words;
    } rows[] = {
        {ANSWER(DEFAULT, REFUSED("pods is forbidden"), .status = 403), -MU_EPERMISSION,
         "it says \"pods is forbidden\"; a Role with get and list of pods in this "
         "namespace is needed, bound to the pod's service account"},
        {ANSWER(DEFAULT, "404 page not found", .status = 404), -MU_ENOTFOUND,
         "is api_server the API of a Kubernetes cluster?"},
        {ANSWER(DEFAULT, "", .status = 429), -MU_EUNAVAILABLE, "too many requests"},
        {ANSWER(DEFAULT, "", .status = 500), -MU_EUNAVAILABLE, "the server has failed"},
        {ANSWER(DEFAULT, "", .status = 302), -MU_EINVALID, "a redirect"},
        {ANSWER(DEFAULT, "refused", .code = -MU_EUNAVAILABLE), -MU_EUNAVAILABLE,
         "Kubernetes API: refused"},
        {ANSWER(DEFAULT, "<html>", .content_type = "text/html"), -MU_EINVALID,
         "Kubernetes API: expected application/json, got \"text/html\"; is there another "
         "server in between?"},
        {ANSWER(DEFAULT, "{\"kind\":\"PodList\",\"items\":["), -MU_EINVALID,
         "job-name=tensorflow: line 1, column 28: expected JSON, got the end of the "
         "text"},
        {ANSWER(DEFAULT, "{\"kind\":\"Status\"}"), -MU_EINVALID,
         "kind: expected \"PodList\", got text \"Status\""},
        {ANSWER(DEFAULT, "{}"), -MU_EINVALID, "kind: expected \"PodList\", got nothing"},
        {ANSWER(DEFAULT, "{\"kind\":\"PodList\",\"items\":7}"), -MU_EINVALID,
         "items: expected a list"},
        {ANSWER(DEFAULT, "{\"kind\":\"PodList\",\"items\":[{},7]}"), -MU_EINVALID,
         "items[0].metadata.name: expected a pod's name"},
        {ANSWER(DEFAULT, "{\"kind\":\"PodList\",\"items\":null}"), -MU_EUNAVAILABLE,
         "there is none yet"},
        {ANSWER(DEFAULT, LIST(RUNNING("a", "not an ip"))), -MU_EINVALID, "not an ip"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        script_expect_error(kind, ROWS(POD, rows[i].row), NULL, rows[i].code,
                            rows[i].words);
}

TEST_PROGRAM()
