/* Kubernetes, TPU and GCE over real TLS, real curl and a server that answers as it is
 * told to, well and badly. Nothing that is secret is in what a resolver says, and no
 * token goes where it must not. */
#include "tests/real/https.h"

#include <muster/resolver.h>
#include <muster/value.h>

enum { TIMEOUT_MS = 20000, SAID_BYTES = 1 << 16 };

static char folder[64];

/* ---- Asking a resolver ---- */

struct outcome {
    int rv;
    mu_error error;
    char cluster[4096];
    char said[SAID_BYTES]; /* progress and explanation */
};

static void note(struct outcome *outcome, const char *text)
{
    size_t at = strlen(outcome->said);

    (void)snprintf(outcome->said + at, sizeof outcome->said - at, "%s\n", text);
}

static void on_progress(void *user, const char *line)
{
    note(user, line);
}

/* All texts of a value. */
static void record_value(struct outcome *outcome, const mu_value *value)
{
    const char *text;
    size_t size;

    if (value == NULL)
        return;
    if (mu_value_get_string(value, &text, &size) == 0)
        note(outcome, text);
    if (mu_value_type(value) != MU_VALUE_LIST && mu_value_type(value) != MU_VALUE_MAP)
        return;
    for (size_t i = 0; i < mu_value_count(value); i++)
        record_value(outcome, mu_value_at(value, i));
}

static const char *const secrets[] = {"secret-", "PRIVATE KEY", "eyJ", "Bearer", NULL};

static void check_secrets(const struct outcome *outcome)
{
    for (size_t i = 0; secrets[i] != NULL; i++) {
        if (strstr(outcome->said, secrets[i]) != NULL)
            fail_msg("\"%s\" was said: %s", secrets[i], outcome->said);
        if (strstr(outcome->error.message, secrets[i]) != NULL)
            fail_msg("\"%s\" is in \"%s\"", secrets[i], outcome->error.message);
    }
}

/* In a setting "%F" is the folder and "%P" the server's port. */
static void set_one(mu_resolver *resolver, const struct https *https, const char *setting)
{
    const char *equals = strchr(setting, '=');
    char value[512] = "";
    char name[64];
    mu_error error;

    assert_non_null(equals);
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - setting), setting);
    for (const char *at = equals + 1; *at != '\0'; at++) {
        size_t used = strlen(value);

        if (at[0] == '%' && (at[1] == 'F' || at[1] == 'P')) {
            at++;
            if (*at == 'F')
                (void)snprintf(value + used, sizeof value - used, "%s", folder);
            else
                (void)snprintf(value + used, sizeof value - used, "%d", https->port);
        } else {
            (void)snprintf(value + used, sizeof value - used, "%c", *at);
        }
    }
    if (mu_resolver_set(resolver, name, value, &error) != 0)
        fail_msg("%s", error.message);
}

static void request(const char *name, const struct https *https,
                    const char *const *settings, const char *const *more,
                    int64_t timeout_ms, struct outcome *ret_outcome)
{
    mu_resolution resolution;
    mu_resolver *resolver;
    mu_value *explained;
    char *json;

    memset(ret_outcome, 0, sizeof *ret_outcome);
    mu_resolution_init(&resolution);
    assert_int_equal(mu_resolver_new(name, &ret_outcome->error, &resolver), 0);
    for (; *settings != NULL; settings++)
        set_one(resolver, https, *settings);
    for (; more != NULL && *more != NULL; more++)
        set_one(resolver, https, *more);
    mu_resolver_on_progress(resolver, on_progress, ret_outcome);
    ret_outcome->rv =
        mu_resolver_resolve(resolver, timeout_ms, &ret_outcome->error, &resolution);
    if (ret_outcome->rv == 0 && resolution.cluster != NULL) {
        json = mu_cluster_to_json(resolution.cluster);
        assert_non_null(json);
        (void)snprintf(ret_outcome->cluster, sizeof ret_outcome->cluster, "%s", json);
        free(json);
        mu_cluster_free(resolution.cluster);
    }
    explained = mu_resolver_explain(resolver);
    record_value(ret_outcome, explained);
    mu_value_free(explained);
    mu_resolver_free(resolver);
    assert_true(ret_outcome->said[0] != '\0');
    check_secrets(ret_outcome);
}

/* ---- Rows: a server's script, settings, and what becomes of it ---- */

struct row {
    const char *what;
    const char *script;  /* without the part about TLS */
    const char *more[4]; /* settings besides the usual ones */
    const char *cluster; /* or NULL: */
    int code;
    const char *words;
    int64_t timeout_ms;  /* 0: one try */
    unsigned requests; /* that the server has heard; 0: any number */
};

static void check_row(const char *resolver, const char *const *usual, const char *tls,
                      const struct row *row)
{
    static unsigned number;
    static struct outcome outcome;
    struct https https;
    char name[32];
    char *script = NULL;
    size_t size = strlen(tls) + strlen(row->script) + 64;

    print_message("%s\n", row->what);
    script = malloc(size);
    assert_non_null(script);
    (void)snprintf(script, size, "{%s 'routes': [%s]}", tls, row->script);
    (void)snprintf(name, sizeof name, "row%u", number++);
    https_start(&https, folder, name, script);
    free(script);
    request(resolver, &https, usual, row->more, row->timeout_ms, &outcome);
    https_stop(&https);
    if (outcome.rv != row->code)
        fail_msg("%d \"%s\" instead of %d; said:\n%s", outcome.rv, outcome.error.message,
                 row->code, outcome.said);
    if (row->cluster != NULL)
        assert_string_equal(outcome.cluster, row->cluster);
    else if (strstr(outcome.error.message, row->words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", row->words, outcome.error.message);
    if (row->requests != 0)
        assert_int_equal(https_asked(&https, "method", NULL), row->requests);
}

#define TLS "'certificate': '%F/server.pem', 'key': '%F/server.key',"

static void check_rows(const char *resolver, const char *const *usual,
                       const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(resolver, usual, TLS, &rows[i]);
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* ---- Kubernetes ---- */

#define PODS "'path': '/api/v1/namespaces/training/pods'"
#define POD(name, ip)                                                               \
    "{'metadata': {'name': '" name "'}, 'spec': {}, 'status': {'phase': 'Running'," \
    " 'hostIP': '10.1.0.1', 'podIP': '" ip "'}}"
#define LIST(items) \
    "{'kind': 'PodList', 'apiVersion': 'v1', 'metadata': {}, 'items': [" items "]}"
#define FINE "{'body': " LIST(POD("a", "10.2.0.1")) "}"
#define STATUS(code) "{'status': " code ", 'body': {'kind': 'Status', 'message': 'no'}}"
#define ONE_POD "{\"worker\":[\"10.2.0.1:8470\"]}"
#define ROUTE(...) "{" PODS ", 'answers': [" __VA_ARGS__ "]}"

static const char *const in_cluster[] = {"api_server=https://127.0.0.1:%P",
                                         "namespace=training", "token_file=%F/token",
                                         "ca_file=%F/ca.pem", NULL};

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

static void test_kubernetes(void **state)
{
    (void)state;
    https_write(folder, "token", "secret-1\n");
    https_write(folder, "old_token", "secret-0\n");
    check_rows("kubernetes", in_cluster, kubernetes_rows, COUNT(kubernetes_rows));
}

/* The token of a pod is replaced while it runs: one that has expired is read anew. */
static void test_new_token(void **state)
{
    static struct outcome outcome;
    struct https https;
    char command[512];
    pid_t pid;

    (void)state;
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
static void test_in_cluster(void **state)
{
    static const char *const settings[] = {"namespace=training", "token_file=%F/token",
                                           "ca_file=%F/ca.pem", NULL};
    static struct outcome outcome;
    struct https https;
    char port[16];

    (void)state;
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
static void test_certificates(void **state)
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

    (void)state;
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

static void test_client_certificate(void **state)
{
    static struct outcome outcome;

    (void)state;
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

/* ---- TPU and GCE ---- */

#define TOKEN(word) \
    "{'access_token': '" word "', 'expires_in': 3599, 'token_type': 'Bearer'}"
#define NODE                                                                           \
    "{'name': 'projects/p/locations/z/nodes/n', 'state': 'READY', 'networkEndpoints':" \
    " [{'ipAddress': '10.0.0.2', 'port': 8470}, {'ipAddress': '10.0.0.3'}]}"
#define TPU_ROUTE(...) \
    "{'path': '/v2/projects/p/locations/z/nodes/n', 'answers': [" __VA_ARGS__ "]}"
#define JWT_ROUTE(...) \
    "{'method': 'POST', 'path': '/token', 'answers': [" __VA_ARGS__ "]}"
#define TWO_TPUS "{\"worker\":[\"10.0.0.2:8470\",\"10.0.0.3:8470\"]}"

static const char *const tpu[] = {"tpu=n",
                                  "project=p",
                                  "zone=z",
                                  "api_endpoint=https://127.0.0.1:%P",
                                  "ca_file=%F/ca.pem",
                                  NULL};

static const struct row tpu_rows[] = {
    {"a given token",
     TPU_ROUTE("{'needs': {'Authorization': 'Bearer secret-2'}, 'body': " NODE "}"),
     {"access_token=secret-2"},
     .cluster = TWO_TPUS,
     .requests = 1},
    {"a token of a file that has expired",
     TPU_ROUTE(STATUS("401")),
     {"access_token_file=%F/old_token"},
     .code = -MU_EUNAUTHENTICATED,
     .words = "status 401"},
    {"403",
     TPU_ROUTE(STATUS("403")),
     {"access_token=secret-2"},
     .code = -MU_EPERMISSION,
     .words = "status 403"},
    {"404",
     TPU_ROUTE(STATUS("404")),
     {"access_token=secret-2"},
     .code = -MU_ENOTFOUND,
     .words = "the API knows no such TPU there"},
    {"503, then fine",
     TPU_ROUTE(STATUS("503") ", {'body': " NODE "}"),
     {"access_token=secret-2"},
     .cluster = TWO_TPUS,
     .timeout_ms = TIMEOUT_MS,
     .requests = 2},
    {"a redirect",
     TPU_ROUTE("{'status': 307, 'headers': {'Location': '/elsewhere'}, 'body': ''}"),
     {"access_token=secret-2"},
     .code = -MU_EINVALID,
     .words = "a redirect",
     .requests = 1},
    {"a body without end",
     TPU_ROUTE("{'endless': true}"),
     {"access_token=secret-2"},
     .code = -MU_EEXHAUSTED,
     .words = "the answer has more than"},
};

static void test_tpu(void **state)
{
    (void)state;
    https_write(folder, "old_token", "secret-0\n");
    check_rows("tpu", tpu, tpu_rows, COUNT(tpu_rows));
}

/* A private key as the text of a JSON string. */
static void write_account(int port, const char *key_name)
{
    char *key = https_read(folder, key_name);
    char text[8192];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "{\"type\": \"service_account\", \"client_email\": \"me@p.example\","
        " \"private_key_id\": \"k1\", \"token_uri\": \"https://127.0.0.1:%d/token\","
        " \"private_key\": \"",
        port);

    for (const char *from = key; *from != '\0'; from++)
        at += (size_t)snprintf(text + at, sizeof text - at, *from == '\n' ? "\\n" : "%c",
                               *from);
    (void)snprintf(text + at, sizeof text - at, "\"}");
    https_write(folder, "account.json", text);
    free(key);
}

/* The server takes the token only for an assertion that was signed with the key, and a
 * second token for one that has expired. */
static void request_with_account(const char *key_name, const char *name,
                                 struct outcome *outcome, struct https *https)
{
    static const char *const more[] = {"credentials=%F/account.json", NULL};

    https_start(
        https, folder, name,
        "{" TLS " 'routes': [" JWT_ROUTE("{'jwt_key': '%F/jwt.pem', 'body': " TOKEN(
            "secret-3") "},"
                        "{'jwt_key': '%F/jwt.pem', 'body': " TOKEN(
                            "secret-4") "}") ", " TPU_ROUTE("{'needs': {'Authorization': "
                                                            "'Bearer secret-4'}, "
                                                            "'body': " NODE "}") "]}");
    write_account(https->port, key_name);
    request("tpu", https, tpu, more, 0, outcome);
    https_stop(https);
}

static void test_service_account(void **state)
{
    static struct outcome outcome;
    struct https https;

    (void)state;
    request_with_account("jwt.key", "account", &outcome, &https);
    if (outcome.rv != 0)
        fail_msg("%s", outcome.error.message);
    assert_string_equal(outcome.cluster, TWO_TPUS);
    assert_int_equal(https_asked(&https, "\"iss\": \"me@p.example\"", "RS256",
                                 "jwt-bearer", "/token\"", NULL),
                     2);
    assert_int_equal(https_asked(&https, "nodes/n", "Bearer secret-3", NULL), 1);
    assert_int_equal(https_asked(&https, "nodes/n", "Bearer secret-4", NULL), 1);
    assert_int_equal(https_asked(&https, "unexpected", NULL), 0);
}

/* A key that is not the account's. */
static void test_wrong_key(void **state)
{
    static struct outcome outcome;
    struct https https;
    char command[256];

    (void)state;
    (void)snprintf(command, sizeof command,
                   "cd %s && openssl genpkey -algorithm RSA -pkeyopt "
                   "rsa_keygen_bits:2048 -out wrong.key 2> /dev/null",
                   folder);
    assert_int_equal(system(command), 0);
    request_with_account("wrong.key", "wrong_account", &outcome, &https);
    assert_int_not_equal(outcome.rv, 0);
    assert_non_null(strstr(outcome.error.message, "status 400"));
    assert_int_equal(https_asked(&https, "nodes/n", NULL), 0);
}

/* A person's credentials, as gcloud writes them. */
static void request_with_user(const char *answers, const char *name,
                              struct outcome *outcome, struct https *https)
{
    static const char *const more[] = {"credentials=%F/user.json", NULL};
    char script[2048];
    char text[512];

    (void)snprintf(script, sizeof script,
                   "{%s 'routes': [" JWT_ROUTE("%s") ", " TPU_ROUTE(
                       "{'needs': {'Authorization': 'Bearer secret-4'}, 'body': " NODE
                       "}") "]}",
                   TLS, answers);
    https_start(https, folder, name, script);
    (void)snprintf(text, sizeof text,
                   "{\"type\": \"authorized_user\", \"client_id\": \"me.apps\","
                   " \"client_secret\": \"secret-8\", \"refresh_token\": \"secret-/9\","
                   " \"token_uri\": \"https://127.0.0.1:%d/token\"}",
                   https->port);
    https_write(folder, "user.json", text);
    request("tpu", https, tpu, more, 0, outcome);
    https_stop(https);
}

/* The token that it is given has expired already: it asks for another one, once. */
static void test_refresh_token(void **state)
{
    static struct outcome outcome;
    struct https https;

    (void)state;
    request_with_user("{'body': " TOKEN("secret-3") "}, {'body': " TOKEN("secret-4") "}",
                      "user", &outcome, &https);
    if (outcome.rv != 0)
        fail_msg("%s", outcome.error.message);
    assert_string_equal(outcome.cluster, TWO_TPUS);
    assert_int_equal(https_asked(&https,
                                 "grant_type=refresh_token&client_id=me.apps&"
                                 "client_secret=secret-8&refresh_token=secret-%2F9",
                                 "application/x-www-form-urlencoded", "/token\"", NULL),
                     2);
    assert_int_equal(https_asked(&https, "nodes/n", "Bearer secret-3", NULL), 1);
    assert_int_equal(https_asked(&https, "nodes/n", "Bearer secret-4", NULL), 1);
    assert_int_equal(https_asked(&https, "unexpected", NULL), 0);
}

static void test_revoked_refresh_token(void **state)
{
    static struct outcome outcome;
    struct https https;

    (void)state;
    request_with_user("{'status': 400, 'body': {'error': 'invalid_grant'}}", "revoked",
                      &outcome, &https);
    assert_int_not_equal(outcome.rv, 0);
    assert_non_null(strstr(outcome.error.message, "status 400"));
    assert_non_null(strstr(outcome.error.message, "user.json"));
    assert_int_equal(https_asked(&https, "nodes/n", NULL), 0);
}

/* The metadata server says who we are, over plain HTTP and with the header that it
 * insists on. */
static void test_metadata_server(void **state)
{
    static const char *const settings[] = {"tpu=n", "api_endpoint=https://127.0.0.1:%P",
                                           "ca_file=%F/ca.pem", NULL};
    static const char flavor[] =
        "'headers': {'Metadata-Flavor': 'Google', 'Content-Type': 'application/text'},"
        "'needs': {'Metadata-Flavor': 'Google'}";
    static struct outcome outcome;
    struct https metadata;
    struct https api;
    char script[2048];
    char host[32];

    (void)state;
    (void)snprintf(
        script, sizeof script,
        "{'routes': ["
        "{'path': '/computeMetadata/v1/project/project-id', 'answers': [{%s, 'body': "
        "'p'}]},"
        "{'path': '/computeMetadata/v1/instance/zone', 'answers':"
        " [{%s, 'body': 'projects/1/zones/z'}]},"
        "{'path': '/computeMetadata/v1/instance/service-accounts/default/token',"
        " 'answers': [{'headers': {'Metadata-Flavor': 'Google'}, 'body': %s}]}]}",
        flavor, flavor, TOKEN("secret-5"));
    https_start(&metadata, folder, "metadata", script);
    https_start(&api, folder, "api",
                "{" TLS " 'routes': [" TPU_ROUTE(
                    "{'needs': {'Authorization': 'Bearer secret-5'}, 'body': " NODE
                    "}") "]}");
    (void)snprintf(host, sizeof host, "127.0.0.1:%d", metadata.port);
    (void)setenv("GCE_METADATA_HOST", host, 1);
    (void)setenv("HOME", folder, 1); /* without what gcloud has left there */
    request("tpu", &api, settings, NULL, 0, &outcome);
    (void)unsetenv("GCE_METADATA_HOST");
    https_stop(&metadata);
    https_stop(&api);
    if (outcome.rv != 0)
        fail_msg("%s\n%s", outcome.error.message, outcome.said);
    assert_string_equal(outcome.cluster, TWO_TPUS);
    assert_true(https_asked(&metadata, "\"metadata-flavor\": \"Google\"", NULL) >= 3);
    assert_int_equal(https_asked(&metadata, "refused", NULL), 0);
}

/* ---- GCE ---- */

#define GROUP                    \
    "{'method': 'POST', 'path':" \
    " '/compute/v1/projects/p/zones/z/instanceGroups/g/listInstances', 'answers': ["
#define MEMBER "{'instance': 'https://x/zones/z/instances/a', 'status': 'RUNNING'}"
#define INSTANCES                                                               \
    "{'path': '/compute/v1/projects/p/zones/z/instances', 'answers': [{'body':" \
    " {'items': [{'name': 'a', 'networkInterfaces': [{'networkIP': '10.0.0.9'}]}]}}]}"

static const char *const gce[] = {"project=p",
                                  "zone=z",
                                  "instance_group=g",
                                  "task_index=0",
                                  "access_token=secret-6",
                                  "api_endpoint=https://127.0.0.1:%P/compute/v1",
                                  "ca_file=%F/ca.pem",
                                  NULL};

static const struct row gce_rows[] = {
    {"a group",
     GROUP "{'needs': {'Authorization': 'Bearer secret-6'}, 'body': {'items': [" MEMBER
           "]}}]}, " INSTANCES,
     .cluster = "{\"worker\":[\"10.0.0.9:8470\"]}", .requests = 2},
    {"429, then fine",
     GROUP STATUS("429") ", {'body': {'items': [" MEMBER "]}}]}, " INSTANCES,
     .cluster = "{\"worker\":[\"10.0.0.9:8470\"]}", .timeout_ms = TIMEOUT_MS,
     .requests = 3},
    {"403", GROUP STATUS("403") "]}", .code = -MU_EPERMISSION, .words = "status 403"},
    {"a redirect to elsewhere",
     GROUP "{'status': 301, 'headers': {'Location': '/x'}, 'body': ''}]}",
     .code = -MU_EINVALID, .words = "a redirect", .requests = 1},
};

static void test_gce(void **state)
{
    (void)state;
    check_rows("gce", gce, gce_rows, COUNT(gce_rows));
}

/* ---- Redirects ---- */

/* To a server that would be trusted: it hears nothing at all, and so no token. */
static void test_redirects(void **state)
{
    static const struct {
        const char *resolver;
        const char *const *settings;
        const char *more[2];
        const char *route; /* up to its answers */
    } rows[] = {
        {"kubernetes", in_cluster, {NULL}, "{" PODS ", 'answers': ["},
        {"gce", gce, {NULL}, GROUP},
        {"tpu", tpu, {"access_token=secret-2"},
         "{'path': '/v2/projects/p/locations/z/nodes/n', 'answers': ["},
    };
    static const int statuses[] = {301, 302, 303, 307, 308};
    static struct outcome outcome;
    struct https second;

    (void)state;
    https_write(folder, "token", "secret-1\n");
    https_start(&second, folder, "second",
                "{" TLS " 'routes': [{'path': '/taken', 'answers': [{'body': {}}]}]}");
    for (size_t i = 0; i < COUNT(rows) * COUNT(statuses); i++) {
        size_t which = i / COUNT(statuses);
        struct https first;
        char script[1024];
        int status = statuses[i % COUNT(statuses)];
        char name[32];

        (void)snprintf(name, sizeof name, "first%zu", i);
        (void)snprintf(script, sizeof script,
                       "{%s 'routes': [%s{'status': %d, 'headers': {'Location': "
                       "'https://127.0.0.1:%d/taken'}, 'body': ''}]}]}",
                       TLS, rows[which].route, status, second.port);
        https_start(&first, folder, name, script);
        request(rows[which].resolver, &first, rows[which].settings, rows[which].more, 0,
                &outcome);
        https_stop(&first);
        assert_int_equal(outcome.rv, -MU_EINVALID);
        if (strstr(outcome.error.message, "a redirect, which is not followed") == NULL)
            fail_msg("%s: %s", name, outcome.error.message);
        assert_int_equal(https_asked(&first, "Bearer", NULL), 1);
    }
    https_stop(&second);
    assert_int_equal(https_asked(&second, "method", NULL), 0);
}

/* What a refresh token is sent with is not sent anywhere else, either. */
static void test_redirected_refresh_token(void **state)
{
    static struct outcome outcome;
    struct https second;
    struct https first;
    char answer[160];

    (void)state;
    https_start(&second, folder, "third",
                "{" TLS " 'routes': [{'method': 'POST', 'path': '/taken', 'answers': "
                "[{'body': " TOKEN("secret-4") "}]}]}");
    (void)snprintf(answer, sizeof answer,
                   "{'status': 307, 'headers': {'Location': "
                   "'https://127.0.0.1:%d/taken'}}",
                   second.port);
    request_with_user(answer, "redirected", &outcome, &first);
    https_stop(&second);
    assert_int_equal(outcome.rv, -MU_EINVALID);
    assert_non_null(strstr(outcome.error.message, "a redirect, which is not followed"));
    assert_int_equal(https_asked(&first, "secret-%2F9", NULL), 1);
    assert_int_equal(https_asked(&second, "method", NULL), 0);
}

/* ---- The folder of all tests ---- */

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/muster-https-XXXXXX");
    assert_non_null(mkdtemp(folder));
    https_certificates(folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kubernetes),         cmocka_unit_test(test_new_token),
        cmocka_unit_test(test_in_cluster),         cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_client_certificate), cmocka_unit_test(test_tpu),
        cmocka_unit_test(test_service_account),    cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_metadata_server),    cmocka_unit_test(test_gce),
        cmocka_unit_test(test_refresh_token),      cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_revoked_refresh_token),
        cmocka_unit_test(test_redirected_refresh_token),
    };

    if (https_missing() != NULL)
        return needs_skip(https_missing());
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
