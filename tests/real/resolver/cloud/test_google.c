/* The resolvers of Google's cloud against servers that answer as its APIs do, over real
 * TLS: tokens that are signed for, expire and are replaced, pages, and TPUs that become
 * ready. */
#include "tests/real/https.h"

#include <muster/compat/tpu.h>
#include <muster/resolver.h>

enum { TIMEOUT_MS = 20000 };

static char folder[] = "/tmp/muster-google-XXXXXX";

/* What is secret; nothing that is shown may have it. */
#define TOKEN_1 "SECRET-1"
#define TOKEN_2 "SECRET-2"

#define HTTPS "{'certificate': '%F/server.pem', 'key': '%F/server.key', 'routes': ["
#define HTTP "{'routes': ["
#define END "]}"
#define GROUP "/compute/v1/projects/p/zones/z/instanceGroups/g/listInstances"
#define INSTANCES "/compute/v1/projects/p/zones/z/instances"
#define NODE "/v2/projects/p/locations/z/nodes/n"
#define NEEDS_2 "'needs': {'Authorization': 'Bearer " TOKEN_2 "'}"
#define ROUTE(method, path, answers) \
    "{'method': '" method "', 'path': '" path "', 'answers': [" answers "]}"
#define TOKEN_BODY(word) "'body': {'access_token': '" word "', 'token_type': 'Bearer'}"
#define MEMBERS(more) "'body': {'items': [{'instance': 'x/zones/z/instances/" more
#define META(path, text)                                                              \
    ROUTE("GET", "/computeMetadata/v1/" path,                                         \
          "{'headers': {'Metadata-Flavor': 'Google', 'Content-Type': 'text/plain'}, " \
          "'body': '" text "'}")
#define READY(health) \
    "{'body': {'state': 'READY', 'health': '" health "', " ENDPOINTS "}}"
#define ENDPOINTS "'networkEndpoints': [{'ipAddress': '127.0.0.1', 'port': 8470}]"

/* ---- Parts ---- */

static void write_account(int port)
{
    char *key = https_read(folder, "jwt.key");
    char *text = calloc(1, 2 * strlen(key) + 512);
    size_t used;

    assert_non_null(text);
    (void)snprintf(text, 512,
                   "{\"type\": \"service_account\", \"client_email\": \"a@b.c\", "
                   "\"token_uri\": \"https://127.0.0.1:%d/token\", \"private_key\": \"",
                   port);
    used = strlen(text);
    for (const char *at = key; *at != '\0'; at++) {
        if (*at == '\n')
            text[used++] = '\\';
        text[used++] = *at == '\n' ? 'n' : *at;
    }
    memcpy(text + used, "\"}", 3);
    https_write(folder, "account.json", text);
    free(text);
    free(key);
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        fail_msg("%s", error->message);
}

/* An endpoint at a port, and the tests' own authority. */
static mu_resolver *new_resolver(const char *name, const char *scheme, int port,
                                 const char *path)
{
    mu_resolver *resolver = NULL;
    char value[256];
    mu_error error;

    check(mu_resolver_new(name, &error, &resolver), &error);
    (void)snprintf(value, sizeof value, "%s://127.0.0.1:%d%s", scheme, port, path);
    check(mu_resolver_set(resolver, "api_endpoint", value, &error), &error);
    (void)snprintf(value, sizeof value, "%s/ca.pem", folder);
    check(mu_resolver_set(resolver, "ca_file", value, &error), &error);
    return resolver;
}

static void set(mu_resolver *resolver, const char *const *pairs)
{
    mu_error error;

    for (; *pairs != NULL; pairs += 2)
        check(mu_resolver_set(resolver, pairs[0], pairs[1], &error), &error);
}

/* How many texts there are; none has what is secret. */
static unsigned check_texts(const mu_value *value)
{
    const char *text;
    unsigned count = 0;
    size_t size;

    if (mu_value_get_string(value, &text, &size) == 0) {
        assert_null(strstr(text, "SECRET"));
        return 1;
    }
    for (size_t i = 0; i < mu_value_count(value); i++)
        count += check_texts(mu_value_at(value, i));
    return count;
}

/* Nothing of the record of what was tried is secret. */
static void check_explained(const mu_resolver *resolver)
{
    mu_value *explained = mu_resolver_explain(resolver);

    assert_non_null(explained);
    assert_true(check_texts(explained) > 3);
    mu_value_free(explained);
}

static void expect_cluster(mu_resolver *resolver, const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;
    char *got;

    check(mu_resolver_cluster(resolver, TIMEOUT_MS, &error, &cluster), &error);
    got = mu_cluster_to_json(cluster);
    assert_string_equal(got, json);
    free(got);
    mu_cluster_free(cluster);
    check_explained(resolver);
}

static void expect_error(mu_resolver *resolver, int64_t timeout_ms, int code,
                         const char *words)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    assert_int_equal(mu_resolver_cluster(resolver, timeout_ms, &error, &cluster), code);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
    assert_null(strstr(error.message, "SECRET"));
    check_explained(resolver);
}

static const char *const place[] = {"project", "p", "zone", "z", NULL};
static const char *const group[] = {"project",        "p", "zone", "z",
                                    "instance_group", "g", NULL};

/* ---- Instance groups ---- */

/* A token that is signed for is not accepted, so another is, for all that follows; the
 * group has two pages, and one of the servers is busy at first. */
TEST(test_service_account)
{
    /* clang-format off */
    static const char script[] =
        HTTPS ROUTE("POST", "/token",
                    "{'jwt_key': '%F/jwt.pem', " TOKEN_BODY(TOKEN_1) "},"
                    "{'jwt_key': '%F/jwt.pem', " TOKEN_BODY(TOKEN_2) "}") ","
        ROUTE("POST", GROUP "?maxResults=500&orderBy=name&pageToken=b",
              "{" NEEDS_2 ", " MEMBERS("b'}]}}")) ","
        ROUTE("POST", GROUP,
              "{" NEEDS_2 ", " MEMBERS("a'}], 'nextPageToken': 'b'}}")) ","
        ROUTE("GET", INSTANCES,
              "{'status': 429}, {'status': 503},"
              "{" NEEDS_2 ", 'body': {'items': ["
              "{'name': 'a', 'networkInterfaces': [{'networkIP': '10.0.0.1'}]},"
              "{'name': 'b', 'networkInterfaces': [{'networkIP': '10.0.0.2'}]}]}}") END;
    /* clang-format on */
    mu_resolver *resolver;
    struct https https;
    char path[64];
    mu_error error;

    https_start(&https, folder, "account", script);
    write_account(https.port);
    resolver = new_resolver("gce", "https", https.port, "/compute/v1");
    set(resolver, group);
    (void)snprintf(path, sizeof path, "%s/account.json", folder);
    check(mu_resolver_set(resolver, "credentials", path, &error), &error);
    expect_cluster(resolver, "{\"worker\":[\"10.0.0.1:8470\",\"10.0.0.2:8470\"]}");
    assert_int_equal(https_asked(&https, "\"unexpected\"", NULL), 0);
    assert_int_equal(https_asked(&https, "/token", "\"iss\": \"a@b.c\"", "\"exp\"",
                                 "auth/cloud-platform", NULL),
                     2);
    assert_int_equal(https_asked(&https, "listInstances", "RUNNING", NULL), 3);
    mu_resolver_free(resolver);
    https_stop(&https);
}

/* A command prints the token; when it is not accepted, the command is run once more. With
 * it a group of a region is asked for, whose zones have a list each. */
TEST(test_token_command)
{
    /* clang-format off */
    static const char script[] = HTTPS ROUTE(
        "POST", "/compute/v1/projects/p/regions/r/instanceGroups/g/listInstances",
        "{" NEEDS_2 ", 'body': {'items': ["
        "{'instance': 'https://x/projects/p/zones/r-b/instances/b'},"
        "{'instance': 'https://x/projects/p/zones/r-a/instances/a'}]}}") ","
        ROUTE("GET", "/compute/v1/projects/p/zones/r-a/instances",
              "{" NEEDS_2 ", 'body': {'items': ["
              "{'name': 'a', 'networkInterfaces': [{'networkIP': '10.0.0.2'}]}]}}") ","
        ROUTE("GET", "/compute/v1/projects/p/zones/r-b/instances",
              "{" NEEDS_2 ", 'body': {'items': ["
              "{'name': 'b', 'networkInterfaces': [{'networkIP': '10.0.0.1'}]}]}}") END;
    /* clang-format on */
    static const char *const settings[] = {"project",        "p", "region", "r",
                                           "instance_group", "g", NULL};
    mu_resolver *resolver;
    struct https https;
    char command[256];
    mu_error error;

    https_start(&https, folder, "command", script);
    resolver = new_resolver("gce", "https", https.port, "/compute/v1");
    set(resolver, settings);
    (void)snprintf(command, sizeof command,
                   "if test -e %s/second; then echo " TOKEN_2 "; else touch %s/second && "
                   "echo " TOKEN_1 "; fi",
                   folder, folder);
    check(mu_resolver_set(resolver, "token_command", command, &error), &error);
    expect_cluster(resolver, "{\"worker\":[\"10.0.0.1:8470\",\"10.0.0.2:8470\"]}");
    assert_int_equal(https_asked(&https, "\"unexpected\"", NULL), 0);
    assert_int_equal(https_asked(&https, "/compute/", TOKEN_1, NULL), 1);
    assert_int_equal(https_asked(&https, "/compute/", TOKEN_2, NULL), 3);
    check(mu_resolver_set(resolver, "token_command", "echo no account >&2; exit 1",
                          &error),
          &error);
    expect_error(
        resolver, TIMEOUT_MS, -MU_EPRECONDITION,
        "token_command: program /bin/sh: it has ended with status 1: no account");
    mu_resolver_free(resolver);
    https_stop(&https);
}

/* Everything is found out by the metadata server's words. */
TEST(test_metadata)
{
    /* clang-format off */
    static const char script[] = HTTP META("project/project-id", "p") ","
        META("instance/zone", "projects/1/zones/z") ","
        META("instance/attributes/created-by",
             "projects/1/zones/z/instanceGroupManagers/g") ","
        META("instance/name", "b") ","
        ROUTE("GET", "/computeMetadata/v1/instance/service-accounts/default/token",
              "{'headers': {'Metadata-Flavor': 'Google'}, " TOKEN_BODY(TOKEN_2) "}") ","
        ROUTE("POST", GROUP, "{" NEEDS_2 ", " MEMBERS("a'}, {'instance': 'b'}]}}")) ","
        ROUTE("GET", INSTANCES,
              "{'body': {'items': ["
              "{'name': 'a', 'networkInterfaces': [{'networkIP': '10.0.0.1'}]},"
              "{'name': 'b', 'networkInterfaces': [{'networkIP': '10.0.0.2'}]}]}}") END;
    /* clang-format on */
    mu_resolution resolution;
    mu_resolver *resolver;
    struct https http;
    char host[64];
    mu_error error;

    https_start(&http, folder, "metadata", script);
    (void)snprintf(host, sizeof host, "127.0.0.1:%d", http.port);
    assert_int_equal(setenv("GCE_METADATA_HOST", host, 1), 0);
    resolver = new_resolver("gce", "http", http.port, "/compute/v1");
    check(mu_resolver_resolve(resolver, TIMEOUT_MS, &error, &resolution), &error);
    assert_string_equal(resolution.task_type, "worker");
    assert_int_equal(resolution.task_index, 1);
    assert_int_equal(https_asked(&http, "computeMetadata",
                                 "\"metadata-flavor\": \"Google\"", NULL),
                     4);
    check_explained(resolver);
    mu_cluster_free(resolution.cluster);
    mu_resolver_free(resolver);
    assert_int_equal(unsetenv("GCE_METADATA_HOST"), 0);
    https_stop(&http);
}

TEST(test_bad_servers)
{
    static const char *const token[] = {"access_token", TOKEN_1, NULL};
    static const struct {
        const char *script;
        int code;
        const char *words;
    } rows[] = {
        {HTTPS ROUTE("POST", GROUP,
                     "{'status': 403, 'body': {'error': {'message': "
                     "'no right'}}}") END,
         -MU_EPERMISSION, "it says \"no right\""},
        {HTTPS ROUTE("POST", GROUP, "{" NEEDS_2 "}") END, -MU_EUNAUTHENTICATED,
         "setting access_token is not accepted"},
        {HTTPS ROUTE("POST", GROUP,
                     "{'status': 302, 'headers': {'Location': "
                     "'https://127.0.0.1:1/'}}") END,
         -MU_EINVALID, "a redirect, which is not followed"},
        {HTTPS ROUTE("POST", GROUP, "{'endless': true}") END, -MU_EEXHAUSTED,
         "instance group"},
        {HTTPS ROUTE("POST", GROUP,
                     "{'headers': {'Content-Type': 'text/html'}, "
                     "'body': 'SECRET'}") END,
         -MU_EINVALID, "expected an answer of type application/json, got text/html"},
        {HTTPS ROUTE("POST", GROUP, "{'body': 'SECRET'}") END, -MU_EINVALID,
         "JSON: line 1, column 1"},
        {HTTPS ROUTE("POST", GROUP, "{'body': {'nextPageToken': 'SECRET'}}") END,
         -MU_EINVALID, "the same token came twice"},
        {"{'certificate': '%F/other.pem', 'key': '%F/other.key', 'routes': []}",
         -MU_EUNAUTHENTICATED, "instance group \"g\" (project p, zone z)"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_resolver *resolver;
        struct https https;
        char name[16];

        (void)snprintf(name, sizeof name, "bad%zu", i);
        https_start(&https, folder, name, rows[i].script);
        resolver = new_resolver("gce", "https", https.port, "/compute/v1");
        set(resolver, group);
        set(resolver, token);
        expect_error(resolver, TIMEOUT_MS, rows[i].code, rows[i].words);
        mu_resolver_free(resolver);
        https_stop(&https);
    }
}

/* ---- TPUs ---- */

TEST(test_tpu_becomes_ready)
{
    static const char *const settings[] = {"tpu", "n", "access_token", TOKEN_2, NULL};
    static const char script[] =
        HTTPS ROUTE("GET", NODE,
                    "{" NEEDS_2 ", 'body': {'state': 'CREATING'}}, {'cut_after': 3, "
                    "'body': {'state': 'READY'}}," READY("HEALTHY")) END;
    mu_resolver *resolver;
    struct https https;

    https_start(&https, folder, "tpu", script);
    resolver = new_resolver("tpu", "https", https.port, "");
    set(resolver, place);
    set(resolver, settings);
    expect_cluster(resolver, "{\"worker\":[\"127.0.0.1:8470\"]}");
    assert_int_equal(https_asked(&https, NODE, NULL), 3);
    mu_resolver_free(resolver);
    https_stop(&https);
}

TEST(test_tpu_that_never_is)
{
    static const char *const settings[] = {"tpu", "n", "access_token", TOKEN_2, NULL};
    static const char script[] =
        HTTPS ROUTE("GET", NODE, "{'body': {'state': 'REPAIRING'}}") END;
    mu_resolver *resolver;
    struct https https;

    https_start(&https, folder, "never", script);
    resolver = new_resolver("tpu", "https", https.port, "");
    set(resolver, place);
    set(resolver, settings);
    expect_error(resolver, 700, -MU_EDEADLINE, "TPU \"n\" (project p, zone z)");
    expect_error(resolver, 0, -MU_EUNAVAILABLE, "is not ready: state \"REPAIRING\"");
    mu_resolver_free(resolver);
    https_stop(&https);
}

static mu_tpu *new_tpu(int port)
{
    static const char *const pairs[] = {"tpu",     "n", "credentials", "none",
                                        "project", "p", "zone",        "z"};
    mu_tpu *tpu = NULL;
    char value[64];
    mu_error error;

    check(mu_tpu_new(&error, &tpu), &error);
    for (size_t i = 0; i < 8; i += 2)
        check(mu_tpu_set(tpu, pairs[i], pairs[i + 1], &error), &error);
    (void)snprintf(value, sizeof value, "http://127.0.0.1:%d", port);
    check(mu_tpu_set(tpu, "api_endpoint", value, &error), &error);
    (void)snprintf(value, sizeof value, "%d", port);
    check(mu_tpu_set(tpu, "version_port", value, &error), &error);
    return tpu;
}

static void count_lines(void *user, const char *line)
{
    assert_non_null(strstr(line, "is not healthy: state \"READY\", health \"TIMEOUT\""));
    ++*(int *)user;
}

TEST(test_waiting_until_healthy)
{
    static const char script[] = HTTP ROUTE(
        "GET", NODE, READY("TIMEOUT") "," READY("TIMEOUT") "," READY("HEALTHY")) END;
    mu_tpu_state states[2];
    struct https http;
    mu_error error;
    size_t count;
    mu_tpu *tpu;
    int lines = 0;

    https_start(&http, folder, "healthy", script);
    tpu = new_tpu(http.port);
    mu_tpu_on_progress(tpu, count_lines, &lines);
    check(mu_tpu_wait_healthy(tpu, TIMEOUT_MS, 20, &error), &error);
    assert_int_equal(lines, 2);
    check(mu_tpu_describe(tpu, TIMEOUT_MS, &error, states, 2, &count), &error);
    assert_int_equal(count, 1);
    assert_string_equal(states[0].state, "READY");
    assert_string_equal(states[0].health, "HEALTHY");
    assert_int_equal(states[0].endpoints, 1);
    assert_int_equal(mu_tpu_describe(tpu, TIMEOUT_MS, &error, states, 0, &count),
                     -MU_EEXHAUSTED);
    mu_tpu_free(tpu);
    https_stop(&http);
}

TEST(test_never_healthy)
{
    static const char unwell[] = HTTP ROUTE("GET", NODE, READY("TIMEOUT")) END;
    static const char gone[] =
        HTTP ROUTE("GET", NODE, "{'body': {'state': 'PREEMPTED', " ENDPOINTS "}}") END;
    int recoverable = -1;
    struct https http;
    char why[512];
    mu_error error;
    mu_tpu *tpu;

    https_start(&http, folder, "unwell", unwell);
    tpu = new_tpu(http.port);
    assert_int_equal(mu_tpu_wait_healthy(tpu, 3000, 1000, &error), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "state \"READY\", health \"TIMEOUT\""));
    check(mu_tpu_recoverable(tpu, TIMEOUT_MS, &error, &recoverable, NULL), &error);
    assert_int_equal(recoverable, 1);
    mu_tpu_free(tpu);
    https_stop(&http);

    https_start(&http, folder, "gone", gone);
    tpu = new_tpu(http.port);
    assert_int_equal(mu_tpu_wait_healthy(tpu, TIMEOUT_MS, 20, &error), -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "state \"PREEMPTED\""));
    check(mu_tpu_recoverable(tpu, TIMEOUT_MS, &error, &recoverable, why), &error);
    assert_int_equal(recoverable, 0);
    assert_string_equal(why, "TPU \"n\": its state is PREEMPTED");
    mu_tpu_free(tpu);
    https_stop(&http);
}

TEST(test_versions)
{
    /* clang-format off */
    static const char script[] =
        HTTP ROUTE("GET", NODE, READY("HEALTHY")) ","
        ROUTE("POST", "/requestversion/2.9?restartType=always", "{}") ","
        ROUTE("POST", "/requestversion/2.9?restartType=ifNeeded", "{}") END;
    /* clang-format on */
    struct https http;
    mu_error error;
    char leader[64];
    mu_tpu *tpu;

    https_start(&http, folder, "versions", script);
    tpu = new_tpu(http.port);
    check(mu_tpu_request_version(tpu, "2.9", NULL, TIMEOUT_MS, &error), &error);
    check(mu_tpu_request_version(tpu, "2.9", "ifNeeded", TIMEOUT_MS, &error), &error);
    assert_int_equal(mu_tpu_request_version(tpu, "3.0", NULL, TIMEOUT_MS, &error),
                     -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "TPU host 127.0.0.1: there is no version"));
    assert_int_equal(mu_tpu_request_version(tpu, NULL, NULL, TIMEOUT_MS, &error),
                     -MU_EINVALID);
    check(mu_tpu_leader(tpu, &error, leader), &error);
    assert_string_equal(leader, "/job:worker/task:0");
    assert_int_equal(mu_tpu_set(tpu, "zones", "z", &error), -MU_EINVALID);
    mu_tpu_free(tpu);
    https_stop(&http);
}

/* What stands in the environment of who runs the tests is not meant for them. */
static int begin(void **state)
{
    static const char *const variables[] = {"GOOGLE_APPLICATION_CREDENTIALS",
                                            "CLOUDSDK_CONFIG",
                                            "CLOUDSDK_AUTH_ACCESS_TOKEN",
                                            "GOOGLE_CLOUD_PROJECT",
                                            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
                                            "TPU_API_DISCOVERY_URL",
                                            "GCE_METADATA_HOST",
                                            "GCE_METADATA_IP",
                                            "GOOGLE_CLOUD_QUOTA_PROJECT",
                                            "NO_GCE_CHECK"};

    (void)state;
    if (mkdtemp(folder) == NULL || setenv("HOME", folder, 1) != 0 ||
        setenv("no_proxy", "127.0.0.1", 1) != 0)
        return -1;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        (void)unsetenv(variables[i]);
    https_certificates(folder);
    return 0;
}

static int end(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

NEEDS_PROGRAM(https_missing(), begin, end)
