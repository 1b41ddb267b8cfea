/* The resolver kubernetes over real TLS. */
#include "tests/real/resolver/cloud/https_rows.h"

static const struct row kubernetes_rows[] = {
    {"it is told who asks",
     ROUTE("{'needs': {'Authorization': 'Bearer secret-1'}, 'body': " LIST(
         POD("a", "10.2.0.1")) "}"),
     .cluster = ONE_POD, .requests = 1},
    {"pages",
     ROUTE(
         "{'body': {'kind': 'PodList', 'metadata': {'continue': 'next'}, 'items': [" POD(
             "b", "10.2.0.2") "]}}, " FINE),
     .cluster = "{\"worker\":[\"10.2.0.1:8470\",\"10.2.0.2:8470\"]}", .requests = 2},
    {"500, then fine", ROUTE(STATUS("500") ", " FINE), .cluster = ONE_POD,
     .timeout_ms = TIMEOUT_MS, .requests = 2},
    {"429 with Retry-After, then fine",
     ROUTE("{'status': 429, 'headers': {'Retry-After': '1'}, 'body': ''}, " FINE),
     .cluster = ONE_POD, .timeout_ms = TIMEOUT_MS, .requests = 2},
    {"cut in the middle, then fine",
     ROUTE("{'body': " LIST(POD("a", "10.2.0.1")) ", 'cut_after': 40}, " FINE),
     .cluster = ONE_POD, .timeout_ms = TIMEOUT_MS, .requests = 2},
    {"cut in the middle",
     ROUTE("{'body': " LIST(POD("a", "10.2.0.1")) ", 'cut_after': 40}"),
     .code = -MU_EUNAVAILABLE, .words = "https://127.0.0.1:"},
    {"401 with the only token", ROUTE(STATUS("401")), .code = -MU_EUNAUTHENTICATED,
     .words = "status 401"},
    {"403", ROUTE(STATUS("403")), .code = -MU_EPERMISSION, .words = "status 403",
     .requests = 1},
    {"404", ROUTE(STATUS("404")), .code = -MU_ENOTFOUND, .words = "status 404"},
    {"500", ROUTE(STATUS("500")), .code = -MU_EUNAVAILABLE, .words = "status 500",
     .requests = 1},
    {"429", ROUTE(STATUS("429")), .code = -MU_EUNAVAILABLE, .words = "status 429",
     .requests = 1},
    {"a page of a proxy",
     ROUTE("{'headers': {'Content-Type': 'text/html'}, 'body': '<html>'}"),
     .code = -MU_EINVALID, .words = "text/html"},
    {"JSON that ends early", ROUTE("{'body': '{'}"), .code = -MU_EINVALID,
     .words = "line 1, column 2"},
    {"a body without end", ROUTE("{'endless': true}"), .code = -MU_EEXHAUSTED,
     .words = "the answer has more than"},
    {"a redirect", ROUTE("{'status': 302, 'headers': {'Location': '/elsewhere'}}"),
     .code = -MU_EINVALID, .words = "a redirect, which is not followed", .requests = 1},
    {"slow, and no time", ROUTE("{'delay_ms': 60000}"), .code = -MU_EDEADLINE,
     .words = "127.0.0.1", .timeout_ms = 1500},
    {"another authority",
     ROUTE(FINE),
     {"ca_file=%F/other_ca.pem"},
     .code = -MU_EUNAUTHENTICATED,
     .words = "certificate"},
    {"an expired token file",
     ROUTE(STATUS("401")),
     {"token_file=%F/old_token"},
     .code = -MU_EUNAUTHENTICATED,
     .words = "status 401"},
};

TEST(test_kubernetes)
{
    https_write(folder, "token", "secret-1\n");
    https_write(folder, "old_token", "secret-0\n");
    check_rows("kubernetes", in_cluster, kubernetes_rows, COUNT(kubernetes_rows));
}

/* The token of a pod is replaced while it runs: one that has expired is read anew. */
TEST(test_new_token)
{
    static struct outcome outcome;
    struct https https;
    char command[512];
    pid_t pid;

    https_write(folder, "token", "secret-1\n");
    https_write(folder, "next_token", "secret-7\n");
    https_start(&https, folder, "renewed",
                "{" TLS " 'routes': [" ROUTE(
                    "{'status': 401, 'delay_ms': 1000, 'body': ''},"
                    "{'needs': {'Authorization': 'Bearer secret-7'}, 'body': " LIST(
                        POD("a", "10.2.0.1")) "}") "]}");
    (void)snprintf(command, sizeof command,
                   "while ! test -s %s; do sleep 0.02; done; mv %s/next_token %s/token",
                   https.log, folder, folder);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execlp("sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    request("kubernetes", &https, in_cluster, NULL, 0, &outcome);
    https_stop(&https);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    if (outcome.rv != 0)
        fail_msg("%s", outcome.error.message);
    assert_string_equal(outcome.cluster, ONE_POD);
    assert_int_equal(https_asked(&https, "Bearer secret-1", NULL), 1);
    assert_int_equal(https_asked(&https, "Bearer secret-7", NULL), 1);
}

/* As every pod finds it: the server in two variables. */
TEST(test_in_cluster)
{
    static const char *const settings[] = {"namespace=training", "token_file=%F/token",
                                           "ca_file=%F/ca.pem", NULL};
    static struct outcome outcome;
    struct https https;
    char port[16];

    https_write(folder, "token", "secret-1\n");
    https_start(&https, folder, "pod", "{" TLS " 'routes': [" ROUTE(FINE) "]}");
    (void)snprintf(port, sizeof port, "%d", https.port);
    (void)setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
    (void)setenv("KUBERNETES_SERVICE_PORT", port, 1);
    request("kubernetes", &https, settings, NULL, 0, &outcome);
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    (void)unsetenv("KUBERNETES_SERVICE_PORT");
    https_stop(&https);
    if (outcome.rv != 0)
        fail_msg("%s", outcome.error.message);
    assert_string_equal(outcome.cluster, ONE_POD);
    assert_int_equal(https_asked(&https, "Bearer secret-1", NULL), 1);
}

/* What is wrong with a certificate is said. */
TEST(test_certificates)
{
    static const struct {
        const char *tls;
        struct row row;
    } rows[] = {
        {"'certificate': '%F/expired.pem', 'key': '%F/expired.key',",
         {"an expired certificate", ROUTE(FINE), .code = -MU_EUNAUTHENTICATED,
          .words = "expired"}},
        {"'certificate': '%F/elsewhere.pem', 'key': '%F/elsewhere.key',",
         {"a certificate for another name", ROUTE(FINE), .code = -MU_EUNAUTHENTICATED,
          .words = "subject name matches target"}},
        {"'certificate': '%F/other.pem', 'key': '%F/other.key',",
         {"a certificate of another authority", ROUTE(FINE), .code = -MU_EUNAUTHENTICATED,
          .words = "certificate"}},
        {"",
         {"no TLS at all", ROUTE(FINE), .code = -MU_EUNAVAILABLE, .words = "https://"}},
    };

    https_write(folder, "token", "secret-1\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_row("kubernetes", in_cluster, rows[i].tls, &rows[i].row);
}

static const char kubeconfig[] =
    "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
    "contexts:\n- name: here\n  context: {cluster: c, user: u, namespace: training}\n"
    "clusters:\n- name: c\n  cluster:\n    server: https://127.0.0.1:%d\n"
    "    certificate-authority: ca.pem\n"
    "users:\n- name: u\n  user:\n    client-certificate: %s.pem\n"
    "    client-key: %s.key\n";

/* A server that does not want us may have hung up before its reason is read: so there is
 * time for another try. */
static void request_with_certificate(const char *name, struct outcome *outcome)
{
    static const char *const settings[] = {"kubeconfig=%F/kubeconfig",
                                           "executable_location=off_cluster", NULL};
    struct https https;
    char text[1024];

    https_start(&https, folder, name,
                "{" TLS " 'client_ca': '%F/ca.pem', 'routes': [" ROUTE(FINE) "]}");
    (void)snprintf(text, sizeof text, kubeconfig, https.port, name, name);
    https_write(folder, "kubeconfig", text);
    request("kubernetes", &https, settings, NULL, 20000, outcome);
    https_stop(&https);
}

TEST(test_client_certificate)
{
    static struct outcome outcome;

    request_with_certificate("client", &outcome);
    if (outcome.rv != 0)
        fail_msg("%s", outcome.error.message);
    assert_string_equal(outcome.cluster, ONE_POD);

    /* The server's alert comes behind the handshake: where it hangs up before the alert
     * is read, that is all that is seen. */
    request_with_certificate("other", &outcome);
    if (outcome.rv != -MU_EUNAVAILABLE && outcome.rv != -MU_EDEADLINE)
        assert_int_equal(outcome.rv, -MU_EUNAUTHENTICATED);
}

NEEDS_PROGRAM(https_missing(), make_folder, remove_folder)
