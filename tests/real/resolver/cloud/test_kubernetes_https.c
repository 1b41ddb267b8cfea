/* The resolver kubernetes over real TLS and real libcurl, against a server that answers
 * as the API of Kubernetes does; tests/resolver/cloud/test_resolver_kubernetes.c has
 * all the rest. */
#include "tests/real/https.h"

#include <muster/cluster.h>
#include <muster/resolver.h>

#include <sys/stat.h>

#define PODS "/api/v1/namespaces/training/pods"
#define FIRST PODS "?limit=500&labelSelector=app%3Dtrain"
#define POD(name, ip)                                                                 \
    "{'metadata': {'name': '" name "'}, 'status': {'phase': 'Running', 'podIP': '" ip \
    "', 'hostIP': '10.1.0.1'}}"
#define LIST(token, items)                                                     \
    "{'kind': 'PodList', 'apiVersion': 'v1', 'metadata': {'continue': '" token \
    "'}, 'items': [" items "]}"
#define STATUS(code, words)                                                 \
    "{'status': " code ", 'body': {'kind': 'Status', 'status': 'Failure', " \
    "'message': '" words "', 'code': " code "}}"
#define ROUTE(path, answers) "{'path': '" path "', 'answers': [" answers "]}"
#define ANSWER(body) "{'body': " body "}"
#define BOTH ANSWER(LIST("", POD("b", "10.0.0.2") "," POD("a", "10.0.0.1")))
#define SCRIPT(certificate, routes)                                     \
    "{'certificate': '%F/" certificate ".pem', 'key': '%F/" certificate \
    ".key', 'routes': [" routes "]}"

struct fixture {
    char folder[64];
    struct https https;
    mu_resolver *resolver;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-kube-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    https_certificates(f->folder);
    https_write(f->folder, "token", "secret-1\n");
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[96];

    mu_resolver_free(f->resolver);
    https_stop(&f->https);
    (void)snprintf(command, sizeof command, "rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void set(struct fixture *f, const char *name, const char *value)
{
    mu_error error;

    if (mu_resolver_set(f->resolver, name, value, &error) != 0)
        fail_msg("%s", error.message);
}

/* A resolver that finds the server by a kubeconfig. `ca` is whom it trusts, `user` what
 * its user has. */
static void begin(struct fixture *f, const char *script, const char *ca, const char *user)
{
    char config[1024];
    char path[96];
    mu_error error;

    https_start(&f->https, f->folder, "api", script);
    (void)snprintf(config, sizeof config,
                   "current-context: c\n"
                   "contexts:\n- name: c\n  context: {cluster: k, user: u, "
                   "namespace: training}\n"
                   "clusters:\n- name: k\n  cluster:\n    server: https://127.0.0.1:%d\n"
                   "    certificate-authority: %s.pem\n"
                   "users:\n- name: u\n  user: {%s}\n",
                   f->https.port, ca, user);
    https_write(f->folder, "config", config);
    (void)snprintf(path, sizeof path, "%s/config", f->folder);
    if (mu_resolver_new("kubernetes", &error, &f->resolver) != 0)
        fail_msg("%s", error.message);
    set(f, "kubeconfig", path);
    set(f, "selectors", "worker:app=train");
}

static void expect_cluster(struct fixture *f, const char *expected)
{
    mu_cluster *cluster = NULL;
    mu_error error;
    char *json;

    if (mu_resolver_cluster(f->resolver, 20000, &error, &cluster) != 0)
        fail_msg("%s", error.message);
    json = mu_cluster_to_json(cluster);
    assert_string_equal(json, expected);
    free(json);
    mu_cluster_free(cluster);
}

static void expect_error(struct fixture *f, int64_t timeout_ms, int code,
                         const char *words)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    assert_int_equal(mu_resolver_cluster(f->resolver, timeout_ms, &error, &cluster),
                     code);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
    assert_null(strstr(error.message, "secret"));
}

static const char two[] = "{\"worker\":[\"10.0.0.1:8470\",\"10.0.0.2:8470\"]}";

/* What goes wrong for a while goes well in the end: too many requests, a server that
 * fails, an answer that is cut off. */
TEST_ON(test_pages_and_passing_failures, struct fixture *f, set_up, tear_down)
{
    begin(f,
          SCRIPT("server",
                 ROUTE(FIRST,
                       "{'status': 429, 'headers': {'Retry-After': '1'}},"
                       "{'status': 500},"
                       "{'body': '0123456789', 'cut_after': 5}," ANSWER(LIST(
                           "t",
                           POD("b", "10.0.0.2")))) "," ROUTE(FIRST "&continue=t",
                                                             ANSWER(LIST(
                                                                 "",
                                                                 POD("a", "10.0.0.1"))))),
          "ca", "tokenFile: token");
    expect_cluster(f, two);
    assert_int_equal(https_asked(&f->https, "Bearer secret-1", NULL), 5);
    assert_int_equal(https_asked(&f->https, "unexpected", NULL), 0);
}

/* The list has expired behind its first page. */
TEST_ON(test_expired_list, struct fixture *f, set_up, tear_down)
{
    begin(f,
          SCRIPT("server",
                 ROUTE(FIRST, ANSWER(LIST("t", POD("b", "10.0.0.2")))) "," ROUTE(
                     FIRST "&continue=t", STATUS("410", "too old") "," ANSWER(
                                              LIST("", POD("a", "10.0.0.1"))))),
          "ca", "token: secret-1");
    expect_cluster(f, two);
    assert_int_equal(https_asked(&f->https, PODS, NULL), 4);
}

/* The token is not accepted any more, and its file has still the same: said so, and the
 * file is read again with each query. */
TEST_ON(test_expired_token, struct fixture *f, set_up, tear_down)
{
    begin(f,
          SCRIPT("server",
                 ROUTE(FIRST,
                       "{'needs': {'Authorization': 'Bearer secret-2'}, 'body': " LIST(
                           "", POD("b", "10.0.0.2") "," POD("a", "10.0.0.1")) "}")),
          "ca", "tokenFile: token");
    expect_error(f, 10000, -MU_EUNAUTHENTICATED,
                 "status 401: the server does not accept the credentials");
    assert_int_equal(https_asked(&f->https, PODS, NULL), 2);
    https_write(f->folder, "token", "secret-2\n");
    expect_cluster(f, two);
}

/* A command prints the tokens, as ExecCredential. The first one is refused, so it is run
 * again. */
TEST_ON(test_token_command, struct fixture *f, set_up, tear_down)
{
    char command[512];

    begin(f,
          SCRIPT("server",
                 ROUTE(FIRST,
                       "{'needs': {'Authorization': 'Bearer secret-2'}, 'body': " LIST(
                           "", POD("b", "10.0.0.2") "," POD("a", "10.0.0.1")) "}")),
          "ca", "exec: {command: x}");
    expect_error(f, 10000, -MU_EUNIMPLEMENTED,
                 "exec: muster does not run a kubeconfig's");
    (void)snprintf(command, sizeof command,
                   "cd %s; echo >> runs; n=$(wc -l < runs); [ $n -lt 3 ] || n=2; "
                   "printf '{\"kind\": \"ExecCredential\", \"status\": {\"token\": "
                   "\"secret-%%d\"}}' $n",
                   f->folder);
    set(f, "token_command", command);
    expect_cluster(f, two);
    expect_cluster(f, two);
    assert_int_equal(https_asked(&f->https, "Bearer secret-1", NULL), 1);
    assert_int_equal(https_asked(&f->https, "Bearer secret-2", NULL), 2);
    set(f, "token_command", "echo secret; echo nobody is signed in >&2; exit 1");
    expect_error(f, 10000, -MU_EPRECONDITION,
                 "it has ended with status 1: nobody is signed in");
}

TEST_ON(test_client_certificate, struct fixture *f, set_up, tear_down)
{
    begin(f,
          "{'certificate': '%F/server.pem', 'key': '%F/server.key', 'client_ca': "
          "'%F/ca.pem', 'routes': [" ROUTE(FIRST, BOTH) "]}",
          "ca", "client-certificate: client.pem, client-key: client.key");
    expect_cluster(f, two);
    assert_int_equal(https_asked(&f->https, "authorization", NULL), 0);
}

TEST_ON(test_refusals, struct fixture *f, set_up, tear_down)
{
    /* clang-format off */
    begin(f,
          SCRIPT("server",
                 ROUTE(FIRST, STATUS("403", "pods is forbidden") ","
                              "{'headers': {'Content-Type': 'text/html'}, 'body': "
                              "'<html>'},"
                              "{'status': 302, 'headers': {'Location': '/elsewhere'}},"
                              "{'body': {'kind': 'Status'}}")),
          "ca", "token: secret-1");
    /* clang-format on */
    expect_error(f, 10000, -MU_EPERMISSION,
                 "a Role with get and list of pods in this namespace is needed");
    expect_error(f, 10000, -MU_EINVALID, "expected application/json, got \"text/html\"");
    expect_error(f, 10000, -MU_EINVALID, "a redirect, which is not followed");
    expect_error(f, 10000, -MU_EINVALID, "kind: expected \"PodList\"");
    assert_int_equal(https_asked(&f->https, "elsewhere", NULL), 0);
}

/* An answer that does not end is read up to its limit. */
TEST_ON(test_endless, struct fixture *f, set_up, tear_down)
{
    begin(f, SCRIPT("server", ROUTE(FIRST, "{'endless': true}")), "ca",
          "token: secret-1");
    expect_error(f, 20000, -MU_EEXHAUSTED, "33554432");
}

/* A server that cannot show who it is hears no token. */
TEST_ON(test_untrusted_server, struct fixture *f, set_up, tear_down)
{
    mu_error error;
    mu_cluster *cluster = NULL;

    begin(f, SCRIPT("server", ROUTE(FIRST, BOTH)), "other_ca", "token: secret-1");
    assert_int_not_equal(mu_resolver_cluster(f->resolver, 3000, &error, &cluster), 0);
    assert_non_null(strstr(error.message, "certificate"));
    assert_int_equal(https_asked(&f->https, PODS, NULL), 0);
}

NEEDS_PROGRAM(https_missing(), NULL, NULL)
