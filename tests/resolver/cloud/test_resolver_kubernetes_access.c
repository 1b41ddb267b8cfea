/* The resolver kubernetes, by rows: where the API is, and what it is asked with. */
#include "tests/resolver/cloud/kubernetes_fixture.h"

#include <stdio.h>
#include <string.h>

/* ---- The API ---- */

/* The token's file has a new one meanwhile. */
TEST(test_token_is_read_again)
{
    script_expect(
        kind,
        ROWS(POD, ANSWER(DEFAULT, REFUSED("Unauthorized"), .status = 401),
             SCRIPT(FILE, .name = ACCOUNT "token", .text = "secret-2", .again = 1),
             SCRIPT(HTTP, .name = DEFAULT, .text = one_pod, .again = 3,
                    .has_header = "Authorization: Bearer secret-2")),
        NULL, "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    script_expect_error(
        kind,
        ROWS(POD, ANSWER(DEFAULT, REFUSED("Unauthorized"), .status = 401),
             SCRIPT(FILE, .name = ACCOUNT "token", .text = "secret-1", .again = 1),
             ANSWER(DEFAULT, REFUSED("Unauthorized"), .status = 401, .again = 3)),
        NULL, -MU_EUNAUTHENTICATED, "is the token of this cluster, and still valid?");
    script_expect_error(
        kind,
        ROWS(POD, SCRIPT(HTTP, .name = DEFAULT, .text = REFUSED("Unauthorized"),
                         .status = 401, .has_header = "Authorization: Bearer given")),
        NAMES("token=given"), -MU_EUNAUTHENTICATED, "it says \"Unauthorized\"");
}

/* ---- Where the API is ---- */

/* clang-format off */
#define CONFIG(server, namespace_part, user)                                           \
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u"           \
    namespace_part "}}]\nclusters: [{name: k, cluster: {server: '" server               \
    "', certificate-authority: ca.crt}}]\nusers: [{name: u, user: {" user "}}]\n"
/* clang-format on */
#define OUTSIDE "https://k:6443/api/v1/namespaces/training/pods?limit=500&labelSelector="
#define OUTSIDE_DEFAULT OUTSIDE "job-name%3Dtensorflow"

TEST(test_kubeconfig)
{
    static const char config[] =
        CONFIG("https://k:6443", ", namespace: training", "token: secret-1");

    script_expect(kind,
                  ROWS(SCRIPT_VARIABLE("HOME", "/users/me"),
                       SCRIPT_FILE("/users/me/.kube/config", config),
                       SCRIPT_FILE("/users/me/.kube/ca.crt", "PEM"),
                       SCRIPT_VARIABLE("HOSTNAME", "tensorflow-x7k2p"),
                       ANSWER(OUTSIDE_DEFAULT, one_pod)),
                  NULL, "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    /* Several files; in a pod, but from outside all the same. */
    script_expect(
        kind,
        ROWS(POD, SCRIPT_VARIABLE("KUBECONFIG", "/gone::/a/one:/b/two"),
             SCRIPT_FILE("/a/one", "current-context: c\n"), SCRIPT_FILE("/b/two", config),
             SCRIPT_FILE("/b/ca.crt", "PEM"), ANSWER(OUTSIDE_DEFAULT, one_pod)),
        NAMES("executable_location=off_cluster"), "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    /* In a pod, but by a kubeconfig that was named. */
    script_expect(kind,
                  ROWS(POD, SCRIPT_FILE("/c", config), SCRIPT_FILE("/ca.crt", "PEM"),
                       ANSWER(OUTSIDE_DEFAULT, one_pod)),
                  NAMES("kubeconfig=/c"), "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    /* Without a namespace it is the default one; tokens of files are read. */
    script_expect(kind,
                  ROWS(SCRIPT_FILE("/x", CONFIG("https://k:6443", "", "tokenFile: t")),
                       SCRIPT_FILE("/t", "secret-1"), SCRIPT_FILE("/ca.crt", "PEM"),
                       ANSWER("https://k:6443/api/v1/namespaces/default/"
                              "pods?limit=500&labelSelector=job-name%3Dtensorflow",
                              one_pod)),
                  NAMES("kubeconfig=/x", "context=c"), "{\"worker\":[\"10.2.0.3:8470\"]}",
                  "");
}

/* ---- A command that prints a token ---- */

#define COMMAND "token_command=sign in --as me"
#define PRINTS(...)                                                       \
    SCRIPT(PROGRAM, .name = "/bin/sh", .body = "a-c\nasign in --as me\n", \
           .text = __VA_ARGS__)
#define CREDENTIAL(token)                                                              \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\"," \
    "\"spec\":{},\"status\":{\"expirationTimestamp\":\"2030-01-01T00:00:00Z\","        \
    "\"token\":\"" token "\"}}\n"
#define OFF(...)                                                                    \
    ROWS(SCRIPT_VARIABLE("KUBECONFIG", "/u/config"),                                \
         SCRIPT_FILE("/u/config", CONFIG("https://k:6443", ", namespace: training", \
                                         "exec: {command: x}")),                    \
         SCRIPT_FILE("/u/ca.crt", "PEM"), __VA_ARGS__)

TEST(test_token_command)
{
    static const char cluster[] = "{\"worker\":[\"10.2.0.3:8470\"]}";

    script_expect(kind, OFF(PRINTS(" secret-1\n"), ANSWER(OUTSIDE_DEFAULT, one_pod)),
                  NAMES(COMMAND), cluster, "");
    script_expect(kind,
                  OFF(PRINTS(CREDENTIAL("secret-1")), ANSWER(OUTSIDE_DEFAULT, one_pod)),
                  NAMES(COMMAND), cluster, "");
    /* A token that was set counts more; a command counts more than the pod's own. */
    script_expect(kind, OFF(ANSWER(OUTSIDE_DEFAULT, one_pod)),
                  NAMES(COMMAND, "token=secret-1"), cluster, "");
    script_expect(kind,
                  ROWS(SCRIPT_VARIABLE("KUBERNETES_SERVICE_HOST", "k"),
                       SCRIPT_VARIABLE("KUBERNETES_SERVICE_PORT", "6443"),
                       SCRIPT_FILE(ACCOUNT "ca.crt", "PEM"),
                       SCRIPT_FILE(ACCOUNT "token", "of-the-pod"), PRINTS("secret-1"),
                       ANSWER(OUTSIDE_DEFAULT, one_pod)),
                  NAMES(COMMAND, "namespace=training"), cluster, "");
}

TEST(test_refused_token_of_a_command)
{
    script_expect(kind,
                  OFF(PRINTS("secret-1"),
                      ANSWER(OUTSIDE_DEFAULT, REFUSED("Unauthorized"), .status = 401),
                      PRINTS("secret-2", .again = 1),
                      SCRIPT(HTTP, .name = OUTSIDE_DEFAULT, .text = one_pod, .again = 3,
                             .has_header = "Authorization: Bearer secret-2")),
                  NAMES(COMMAND), "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    script_expect_error(
        kind,
        OFF(PRINTS("secret-1"),
            ANSWER(OUTSIDE_DEFAULT, REFUSED("Unauthorized"), .status = 401),
            PRINTS("secret-1", .again = 1),
            ANSWER(OUTSIDE_DEFAULT, REFUSED("Unauthorized"), .status = 401, .again = 3)),
        NAMES(COMMAND), -MU_EUNAUTHENTICATED,
        "is the token of this cluster, and still valid?");
}

TEST(test_bad_token_commands)
{
    static const struct {
        struct script_row row;
        int code;
        const char *words;
    } rows[] = {
        {PRINTS("it has ended with status 1: not signed in", .code = -MU_EPRECONDITION),
         -MU_EPRECONDITION,
         "setting token_command: it has ended with status 1: not signed in"},
        {PRINTS("\n"), -MU_EINVALID, "setting token_command: it printed nothing"},
        {PRINTS("se cret"), -MU_EINVALID,
         "setting token_command: expected a token: one line of printable"},
        {PRINTS("{secret}"), -MU_EINVALID,
         "it printed JSON without a text status.token; expected a token"},
        {PRINTS("{\"status\": {\"token\": 7}}"), -MU_EINVALID,
         "it printed JSON without a text status.token"},
    };
    mu_error error;
    mu_resolution resolution;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        script_expect_error(kind, OFF(rows[i].row), NAMES(COMMAND), rows[i].code,
                            rows[i].words);
        assert_int_equal(script_resolve(kind, OFF(rows[i].row), NAMES(COMMAND), &error,
                                        &resolution),
                         rows[i].code);
        assert_null(strstr(error.message, "cret"));
    }
}

TEST(test_given_api_server)
{
    script_expect(kind,
                  ROWS(SCRIPT(HTTP, .text = one_pod,
                              .name =
                                  "http://127.0.0.1:8001/api/v1/namespaces/default/"
                                  "pods?limit=500&labelSelector=job-name%3Dtensorflow")),
                  NAMES("api_server=http://127.0.0.1:8001/"),
                  "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    script_expect(kind,
                  ROWS(SCRIPT_FILE("/ca", "PEM"), SCRIPT_FILE("/t", "secret-1"),
                       ANSWER(OUTSIDE_DEFAULT, one_pod)),
                  NAMES("api_server=https://k:6443", "ca_file=/ca", "token_file=/t",
                        "namespace=training"),
                  "{\"worker\":[\"10.2.0.3:8470\"]}", "");
    script_expect(
        kind,
        ROWS(SCRIPT_VARIABLE("KUBERNETES_SERVICE_HOST", "fd00::1"),
             SCRIPT_FILE(ACCOUNT "ca.crt", "PEM"), SCRIPT_FILE(ACCOUNT "token", "t"),
             SCRIPT(HTTP, .text = one_pod,
                    .name = "https://[fd00::1]:443/api/v1/namespaces/a/"
                            "pods?limit=500&labelSelector=job-name%3Dtensorflow")),
        NAMES("namespace=a"), "{\"worker\":[\"10.2.0.3:8470\"]}", "");
}

TEST(test_no_access)
{
    static const struct {
        const char *settings[4];
        int code;
        const char *words;
    } rows[] = {
        {{"executable_location=moon"},
         -MU_EINVALID,
         "executable_location of resolver kubernetes: expected \"auto\", "
         "\"within_cluster\" or \"off_cluster\", got \"moon\""},
        {{"executable_location=within_cluster"},
         -MU_ENOTFOUND,
         "KUBERNETES_SERVICE_HOST is not set"},
        {{"namespace=a"}, -MU_ENOTFOUND, "neither KUBECONFIG nor HOME is set"},
        {{"kubeconfig=/gone"}, -MU_ENOTFOUND, "kubeconfig: /gone is not there"},
        {{"kubeconfig=/a:/bad"}, -MU_EINVALID, "/bad: line 1, column 5: expected YAML"},
        {{"kubeconfig=/exec"},
         -MU_EUNIMPLEMENTED,
         "/exec: user \"u\": exec: muster does not run a kubeconfig's programs; set "
         "token_command (MUSTER_KUBERNETES_TOKEN_COMMAND)"},
        {{"kubeconfig=/exec", "token=a b"}, -MU_EINVALID, "the token: expected a token"},
        {{"api_server=k:6443"}, -MU_EINVALID, "api_server: expected a url"},
        {{"api_server=http://k", "token=secret"},
         -MU_EINVALID,
         "the token: expected a server with https for a token, got one with http"},
        {{"api_server=http://127.example.org", "token=secret"},
         -MU_EINVALID,
         "expected a server with https for a token, got one with http"},
        {{"api_server=http://localhost.example.org", "token=secret"},
         -MU_EINVALID,
         "expected a server with https for a token, got one with http"},
        {{"api_server=https://k", "token=a b"},
         -MU_EINVALID,
         "the token: expected a token: one line of printable characters"},
        {{"api_server=https://k", "token_file=/gone"},
         -MU_ENOTFOUND,
         "the token: \"/gone\" is not there"},
        {{"api_server=https://k", "ca_file=/gone"},
         -MU_ENOTFOUND,
         "the API's certificate authority: \"/gone\" is not there"},
        {{"api_server=https://k", "namespace=a/b"},
         -MU_EINVALID,
         "namespace: expected a namespace's name"},
        {{"api_server=https://k", "address=node"},
         -MU_EINVALID,
         "setting address of resolver kubernetes: expected \"pod_ip\" or \"host_ip\", "
         "got \"node\""},
        {{"selectors=worker"},
         -MU_EINVALID,
         "setting selectors of resolver kubernetes: at 1: expected TYPE:LABELS"},
        {{"selectors=worker:a;;ps:b"}, -MU_EINVALID, "at 10: expected TYPE:LABELS"},
        {{"selectors="}, -MU_EINVALID, "at 1: expected TYPE:LABELS"},
        {{"selectors=worker:a;wroker:b"}, -MU_EINVALID, "at 10: "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        script_expect_error(
            kind,
            ROWS(SCRIPT_FILE("/a", ""), SCRIPT_FILE("/bad", "a: b: c"),
                 SCRIPT_FILE("/ca.crt", "PEM"),
                 SCRIPT_FILE("/exec", CONFIG("https://k", "", "exec: {command: x}"))),
            rows[i].settings, rows[i].code, rows[i].words);
    script_expect_error(
        kind,
        ROWS(SCRIPT_VARIABLE("KUBERNETES_SERVICE_HOST", "10.96.0.1"),
             SCRIPT_FILE(ACCOUNT "ca.crt", "PEM"), SCRIPT_FILE(ACCOUNT "token", "t")),
        NULL, -MU_ENOTFOUND, "namespace: the pod has no service account that tells it");
}

TEST(test_detect)
{
    static const struct script_row pod[] = {POD, SCRIPT_END};
    mu_error why;

    assert_int_equal(script_detect(kind, pod, NULL, &why), 0);
    assert_string_equal(why.message,
                        "this is a pod, but MUSTER_KUBERNETES_SELECTORS is not set");
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "KUBERNETES_SERVICE_HOST is not set");
    assert_int_equal(
        script_detect(kind,
                      ROWS(SCRIPT_VARIABLE("MUSTER_KUBERNETES_SELECTORS", "worker:a")),
                      NULL, &why),
        1);
}

TEST_PROGRAM()
