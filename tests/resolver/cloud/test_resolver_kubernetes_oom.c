/* Memory that is missing anywhere on the way from an answer of the API, a kubeconfig file
 * or a YAML text to its result: an error that says so, and nothing leaks or breaks. */
#include "resolver/cloud/kubernetes/kubeconfig.h"
#include "resolver/cloud/kubernetes/pods.h"
#include "resolver/cloud/kubernetes/yaml.h"
#include "resolver/kinds.h"
#include "tests/support/fault.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

enum { STEPS_MAX = 20000 };

/* Run `work` with every allocation failing once; it returns a code, and is done when
 * there was nothing left to fail. */
static void check_walk(int (*work)(void), bool any_error)
{
    for (long n = 0;; n++) {
        int rv;

        assert_true(n < STEPS_MAX);
        fault_arm(n);
        rv = work();
        if (!fault_disarm()) {
            assert_int_equal(rv, 0);
            return;
        }
        assert_true(rv == 0 || rv == -MU_ENOMEM || (any_error && rv < 0));
    }
}

static int parse_yaml(void)
{
    static const char text[] =
        "a: [1, 0x1F, text, true, ~, 'quoted']\nb: {c: d, e: [f]}\ng: |\n  x\n  y\n";
    cJSON *root;
    mu_error error;
    int rv = mu__yaml_parse(text, strlen(text), "x", &error, &root);

    if (rv == 0)
        cJSON_Delete(root);
    return rv;
}

static int find_in_kubeconfig(void)
{
    static const char text[] =
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, "
        "namespace: n}}]\nclusters: [{name: k, cluster: {server: 'https://k', "
        "certificate-authority-data: UEVN, tls-server-name: t}}]\nusers: [{name: u, "
        "user: {token: t, client-certificate: c, client-key: k}}]\n";
    struct mu__kubeconfig_file file = {"/x", NULL};
    struct mu__kube_access access;
    cJSON *root;
    mu_error error;
    int rv = mu__kubeconfig_parse(text, strlen(text), "/x", &error, &root);

    if (rv != 0)
        return rv;
    file.root = root;
    rv = mu__kubeconfig_find(&file, 1, NULL, true, &error, &access);
    if (rv == 0)
        mu__kube_access_done(&access);
    cJSON_Delete(root);
    return rv;
}

#define POD(name, ip)                                                             \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"containers\":[{\"ports\":" \
    "[{\"name\":\"a\",\"containerPort\":1},{\"name\":\"b\"}]}]},"                 \
    "\"status\":{\"phase\":\"Running\",\"podIP\":\"" ip "\",\"hostIP\":\"10.1.0.1\"}}"

static const char page[] = "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[" POD(
    "a", "10.0.0.1") "," POD("b", "10.0.0.2") "]}";

static int add_pods(void)
{
    const struct mu__pods_rule rule = {.source = "x", .type = "worker", .port = 1};
    const struct mu__pod *list[2];
    struct mu__pods *pods;
    mu_resolution resolution;
    mu_error error;
    size_t count = 2;
    size_t first;
    int rv = mu__pods_parse(page, strlen(page), "x", &error, &pods);

    if (rv != 0)
        return rv;
    mu_resolution_init(&resolution);
    list[0] = &pods->items[0];
    list[1] = &pods->items[1];
    rv = mu__pods_add(list, &count, &rule, &error, &resolution, &first);
    mu_cluster_free(resolution.cluster);
    mu__pods_free(pods);
    return rv;
}

/* The resolver as a whole. A variable for which there is no memory counts as absent, so
 * the error may be another one, but is one. */
static int resolve_once(const struct script_row *rows)
{
    const struct mu__resolver_kind *kind = &mu__resolver_kubernetes;
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    mu_resolution resolution;
    mu_error error = {0};
    int rv;

    script_init(&script, rows);
    rv = mu__requests_new(&script.sources.base, NULL, &requests);
    if (rv != 0)
        return rv;
    rv = mu__settings_init(&settings, kind->name, kind->settings);
    if (rv == 0) {
        mu_resolution_init(&resolution);
        rv = kind->resolve(&(struct mu__pass){requests, &settings}, &error, &resolution);
        assert_true(rv == error.code);
        mu_cluster_free(resolution.cluster);
        mu__settings_done(&settings);
    }
    mu__requests_free(requests);
    return rv;
}

static int resolve(void)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/c", "current-context: c\ncontexts: [{name: c, context: {cluster: "
                          "k, user: u}}]\nclusters: [{name: k, cluster: {server: "
                          "'https://k'}}]\nusers: [{name: u, user: {token: t}}]\n"),
        SCRIPT_VARIABLE("KUBECONFIG", "/c"),
        SCRIPT(HTTP,
               .name = "https://k/api/v1/namespaces/default/"
                       "pods?limit=500&labelSelector=job-name%3Dtensorflow",
               .text = page),
        SCRIPT_END,
    };

    return resolve_once(rows);
}

static int resolve_by_command(void)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("MUSTER_KUBERNETES_API_SERVER", "https://k"),
        SCRIPT_VARIABLE("MUSTER_KUBERNETES_TOKEN_COMMAND", "c"),
        SCRIPT(PROGRAM, .name = "/bin/sh", .text = "{\"status\": {\"token\": \"t\"}}"),
        SCRIPT(HTTP,
               .name = "https://k/api/v1/namespaces/default/"
                       "pods?limit=500&labelSelector=job-name%3Dtensorflow",
               .text = page),
        SCRIPT_END,
    };

    return resolve_once(rows);
}

TEST(test_yaml)
{
    check_walk(parse_yaml, false);
}

TEST(test_kubeconfig)
{
    check_walk(find_in_kubeconfig, false);
}

TEST(test_pods)
{
    check_walk(add_pods, false);
}

TEST(test_whole)
{
    check_walk(resolve, true);
}

TEST(test_token_command)
{
    check_walk(resolve_by_command, true);
}

TEST_PROGRAM()
