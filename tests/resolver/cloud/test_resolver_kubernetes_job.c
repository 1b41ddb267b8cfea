/* The resolver kubernetes_job, by rows: variables and names in, cluster and task out. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static const struct mu__resolver_kind *const kind = &mu__resolver_kubernetes_job;

/* clang-format off */
#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}
#define ROWS(...) (const struct script_row[]){__VA_ARGS__, SCRIPT_END}
/* clang-format on */
#define KNOWN(host, lines) SCRIPT(ADDRESSES, .name = (host), .text = (lines))

#define OF_JOB(index)                                \
    SCRIPT_VARIABLE("JOB_COMPLETION_INDEX", index),  \
        SCRIPT_VARIABLE("HOSTNAME", "train-" index), \
        KNOWN("train-0.svc", "10.0.0.9\nfd00::9\n")

TEST(test_indexed_job)
{
    script_expect(kind, ROWS(OF_JOB("2")), NAMES("service=svc", "tasks=3"),
                  "{\"worker\":[\"train-0.svc:55527\",\"train-1.svc:55527\","
                  "\"train-2.svc:55527\"]}",
                  "worker:2");
    script_expect(kind, ROWS(OF_JOB("2")),
                  NAMES("service=svc", "tasks=3", "port=80", "jobs=chief=1,ps=1,worker=*",
                        "namespace=a", "domain=cluster.local", "wait_for=none"),
                  "{\"chief\":[\"train-0.svc.a.svc.cluster.local:80\"],"
                  "\"ps\":[\"train-1.svc.a.svc.cluster.local:80\"],"
                  "\"worker\":[\"train-2.svc.a.svc.cluster.local:80\"]}",
                  "worker:0");
}

TEST(test_job_of_another_name)
{
    script_expect(kind,
                  ROWS(SCRIPT_VARIABLE("JOB_COMPLETION_INDEX", "1"),
                       SCRIPT_VARIABLE("HOSTNAME", "node-17")),
                  NAMES("service=svc", "tasks=2", "job_name=train", "wait_for=none"),
                  "{\"worker\":[\"train-0.svc:55527\",\"train-1.svc:55527\"]}",
                  "worker:1");
    script_expect_error(kind,
                        ROWS(SCRIPT_VARIABLE("JOB_COMPLETION_INDEX", "1"),
                             SCRIPT_VARIABLE("HOSTNAME", "node-17")),
                        NAMES("service=svc", "tasks=2"), -MU_EINVALID,
                        "setting job_name of resolver kubernetes_job: expected the name "
                        "of the Job or StatefulSet (HOSTNAME is not NAME-INDEX here)");
}

TEST(test_addresses)
{
    script_expect(kind, ROWS(OF_JOB("0"), KNOWN("train-1.svc", "fd00::8\n")),
                  NAMES("service=svc", "tasks=2", "address=ip"),
                  "{\"worker\":[\"10.0.0.9:55527\",\"[fd00::8]:55527\"]}", "worker:0");
    script_expect(kind, ROWS(OF_JOB("0"), KNOWN("train-1.svc", "fd00::8\n")),
                  NAMES("service=svc", "tasks=2", "wait_for=all"),
                  "{\"worker\":[\"train-0.svc:55527\",\"train-1.svc:55527\"]}",
                  "worker:0");
    script_expect_error(kind, ROWS(OF_JOB("0")),
                        NAMES("service=svc", "tasks=2", "wait_for=all"), -MU_EUNAVAILABLE,
                        "train-1.svc has no address (\"train-1.svc\" is not there). Does "
                        "the pod run, is there a headless service (clusterIP: None) with "
                        "this name that selects it, with publishNotReadyAddresses: true, "
                        "and is it the pod's subdomain?");
    script_expect_error(kind,
                        ROWS(OF_JOB("0"), SCRIPT(ADDRESSES, .name = "train-1.svc",
                                                 .code = -MU_EDEADLINE)),
                        NAMES("service=svc", "tasks=2", "wait_for=all"), -MU_EDEADLINE,
                        "train-1.svc: scripted");
}

#define OF_SET(name, job, index)                                                        \
    SCRIPT_VARIABLE("JOBSET_NAME", "js"), SCRIPT_VARIABLE("REPLICATED_JOB_NAME", name), \
        SCRIPT_VARIABLE("JOB_INDEX", job),                                              \
        SCRIPT_VARIABLE("JOB_COMPLETION_INDEX", index),                                 \
        SCRIPT_VARIABLE("HOSTNAME", "js-" name "-" job "-" index)

TEST(test_jobset)
{
    script_expect(kind,
                  ROWS(OF_SET("work", "1", "0"), KNOWN("js-work-0-0.js", "10.0.0.1\n"),
                       SCRIPT_VARIABLE("REPLICATED_JOB_REPLICAS", "2"),
                       SCRIPT_VARIABLE("MUSTER_KUBERNETES_JOB_TASKS", "2")),
                  NULL,
                  "{\"worker\":[\"js-work-0-0.js:55527\",\"js-work-0-1.js:55527\","
                  "\"js-work-1-0.js:55527\",\"js-work-1-1.js:55527\"]}",
                  "worker:2");
    script_expect(kind,
                  ROWS(OF_SET("work", "1", "1"), KNOWN("js-main-0-0.net", "10.0.0.1\n")),
                  NAMES("groups=chief=main:1,ps=ps:1,worker=work:2x2", "service=net"),
                  "{\"chief\":[\"js-main-0-0.net:55527\"],"
                  "\"ps\":[\"js-ps-0-0.net:55527\"],"
                  "\"worker\":[\"js-work-0-0.net:55527\",\"js-work-0-1.net:55527\","
                  "\"js-work-1-0.net:55527\",\"js-work-1-1.net:55527\"]}",
                  "worker:3");
    script_expect(kind, ROWS(OF_SET("other", "0", "0")),
                  NAMES("groups=chief=main:1", "wait_for=none"),
                  "{\"chief\":[\"js-main-0-0.js:55527\"]}", "");
}

TEST(test_statefulset)
{
    script_expect(kind,
                  ROWS(SCRIPT_VARIABLE("HOSTNAME", "my-ps-1"),
                       KNOWN("my-ps-0.svc", "10.0.0.1\n"),
                       SCRIPT_VARIABLE("MUSTER_KUBERNETES_JOB_SERVICE", "svc")),
                  NAMES("tasks=2", "jobs=ps=*"),
                  "{\"ps\":[\"my-ps-0.svc:55527\",\"my-ps-1.svc:55527\"]}", "ps:1");
    script_expect(kind, ROWS(SCRIPT_VARIABLE("HOSTNAME", "work-1")),
                  NAMES("service=svc", "groups=ps=ps:1,worker=work:2", "wait_for=none",
                        "mode=statefulset"),
                  "{\"ps\":[\"ps-0.svc:55527\"],"
                  "\"worker\":[\"work-0.svc:55527\",\"work-1.svc:55527\"]}",
                  "worker:1");
    script_expect_error(kind, ROWS(SCRIPT_VARIABLE("HOSTNAME", "work-5")),
                        NAMES("service=svc", "tasks=2"), -MU_ERANGE,
                        "this is pod 5 of Job 0, but work has 1 with 2 pods each; are "
                        "tasks and replicas right?");
    script_expect_error(kind, ROWS(SCRIPT_VARIABLE("HOSTNAME", "work")),
                        NAMES("service=svc", "tasks=2", "mode=statefulset",
                              "job_name=work"),
                        -MU_ENOTFOUND, "HOSTNAME: expected NAME-INDEX");
}

TEST(test_service_alone)
{
    script_expect(kind,
                  ROWS(SCRIPT_VARIABLE("POD_IP", "10.0.0.2"),
                       KNOWN("svc.a.svc", "10.0.0.1\n10.0.0.2\nfd00::1\n")),
                  NAMES("service=svc", "namespace=a", "mode=service", "tasks=3",
                        "jobs=chief=1,worker=*"),
                  "{\"chief\":[\"10.0.0.1:55527\"],"
                  "\"worker\":[\"10.0.0.2:55527\",\"[fd00::1]:55527\"]}",
                  "worker:0");
    script_expect(kind,
                  ROWS(SCRIPT_VARIABLE("HOSTNAME", "me"), KNOWN("me", "10.0.0.2\n"),
                       KNOWN("svc", "10.0.0.1\n10.0.0.2")),
                  NAMES("service=svc", "tasks=2"),
                  "{\"worker\":[\"10.0.0.1:55527\",\"10.0.0.2:55527\"]}", "worker:1");
    script_expect(kind,
                  ROWS(SCRIPT_VARIABLE("HOSTNAME", "me"), KNOWN("svc", "10.0.0.1\n")),
                  NAMES("service=svc", "tasks=1"), "{\"worker\":[\"10.0.0.1:55527\"]}",
                  "");
    script_expect_error(kind, ROWS(KNOWN("svc", "10.0.0.1\n")),
                        NAMES("service=svc", "tasks=2", "mode=service"), -MU_EUNAVAILABLE,
                        "svc: expected 2 addresses (tasks), but there are 1");
    script_expect_error(kind, ROWS(KNOWN("svc", "10.0.0.1\n10.0.0.2\n")),
                        NAMES("service=svc", "tasks=1", "mode=service"),
                        -MU_EPRECONDITION,
                        "svc: expected 1 addresses (tasks), but there are 2");
    script_expect_error(kind, ROWS(KNOWN("svc", "")),
                        NAMES("service=svc", "tasks=1", "mode=service"), -MU_EUNAVAILABLE,
                        "svc has no address (the answer is empty)");
}

TEST(test_refused)
{
    static const struct {
        const char *settings[4];
        int code;
        const char *words;
    } rows[] = {
        {{"service=svc"},
         -MU_EINVALID,
         "setting tasks of resolver kubernetes_job: expected how many pods there are"},
        {{"tasks=2"},
         -MU_EINVALID,
         "setting service of resolver kubernetes_job: expected the name of the headless "
         "service (the pods' subdomain), got nothing"},
        {{"tasks=2", "service=A b"}, -MU_EINVALID, "got \"A b\""},
        {{"tasks=2", "service=svc", "mode=x"},
         -MU_EINVALID,
         "setting mode of resolver kubernetes_job: expected job, jobset, statefulset, "
         "service or auto, got \"x\""},
        {{"tasks=2", "service=svc", "address=x"}, -MU_EINVALID, "expected name or ip"},
        {{"tasks=2", "service=svc", "wait_for=x"},
         -MU_EINVALID,
         "expected none, first or all"},
        {{"tasks=2", "service=svc", "domain=x"},
         -MU_EINVALID,
         "expected a namespace beside the domain"},
        {{"tasks=2", "service=svc", "namespace=x.y"},
         -MU_EINVALID,
         "expected the name of a namespace"},
        {{"tasks=2", "service=svc", "jobs=ps=5"},
         -MU_EINVALID,
         "the jobs have 5 tasks, but there are 2"},
        {{"tasks=2", "service=svc", "mode=jobset"},
         -MU_EINVALID,
         "setting jobset of resolver kubernetes_job: expected the name of the JobSet"},
        {{"groups=ps=a", "service=svc"}, -MU_EINVALID, "expected up to 8 of TYPE=NAME"},
        {{"groups=ps=a:2x2", "service=svc"}, -MU_EINVALID, "got \"ps=a:2x2\""},
        {{"groups=ps=a:0", "service=svc"}, -MU_EINVALID, "expected up to 8"},
        {{"groups=px=a:1", "service=svc"}, -MU_EINVALID, "groups: "},
        {{"groups=ps=a:1", "service=svc", "jobs=ps=1"},
         -MU_EINVALID,
         "expected nothing beside groups"},
        {{"groups=ps=a:1", "service=svc", "mode=service"},
         -MU_EINVALID,
         "expected no groups in mode service"},
        {{"groups=ps=a:60000,worker=b:60000", "service=svc"},
         -MU_EEXHAUSTED,
         "expected at most 65536 tasks, got 120000"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        script_expect_error(kind, ROWS(OF_JOB("0")), rows[i].settings, rows[i].code,
                            rows[i].words);
    script_expect_error(kind, ROWS(SCRIPT_VARIABLE("HOSTNAME", "a-1")),
                        NAMES("service=svc", "tasks=2", "mode=job"), -MU_ENOTFOUND,
                        "JOB_COMPLETION_INDEX is not set; expected a Job with "
                        "completionMode: Indexed");
    script_expect_error(kind, ROWS(OF_JOB("x")),
                        NAMES("service=svc", "tasks=2", "job_name=train"), -MU_EINVALID,
                        "JOB_COMPLETION_INDEX: expected a whole number of 0 to 999999, "
                        "got \"x\"");
}

static void expect_detect(const struct script_row *rows, int fits, const char *words)
{
    mu_error why = {0};

    assert_int_equal(script_detect(kind, rows, NULL, &why), fits);
    assert_string_equal(why.message, words);
}

TEST(test_detect)
{
    expect_detect(NULL, 0,
                  "neither JOB_COMPLETION_INDEX nor MUSTER_KUBERNETES_JOB_SERVICE is "
                  "set");
    expect_detect(ROWS(SCRIPT_VARIABLE("JOB_COMPLETION_INDEX", "0")), 0,
                  "neither MUSTER_KUBERNETES_JOB_TASKS nor MUSTER_KUBERNETES_JOB_GROUPS "
                  "is set");
    expect_detect(ROWS(SCRIPT_VARIABLE("JOB_COMPLETION_INDEX", "0"),
                       SCRIPT_VARIABLE("MUSTER_KUBERNETES_JOB_TASKS", "2")),
                  1, "");
}

TEST_PROGRAM()
