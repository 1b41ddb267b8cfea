/* TPU and GCE over real TLS, what their tokens are made of, and redirects. */
#include "tests/real/resolver/cloud/https_rows.h"

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

TEST(test_tpu)
{
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

TEST(test_service_account)
{
    static struct outcome outcome;
    struct https https;

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
TEST(test_wrong_key)
{
    static struct outcome outcome;
    struct https https;
    char command[256];

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
TEST(test_refresh_token)
{
    static struct outcome outcome;
    struct https https;

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

TEST(test_revoked_refresh_token)
{
    static struct outcome outcome;
    struct https https;

    request_with_user("{'status': 400, 'body': {'error': 'invalid_grant'}}", "revoked",
                      &outcome, &https);
    assert_int_not_equal(outcome.rv, 0);
    assert_non_null(strstr(outcome.error.message, "status 400"));
    assert_non_null(strstr(outcome.error.message, "user.json"));
    assert_int_equal(https_asked(&https, "nodes/n", NULL), 0);
}

/* The metadata server says who we are, over plain HTTP and with the header that it
 * insists on. */
TEST(test_metadata_server)
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

TEST(test_gce)
{
    check_rows("gce", gce, gce_rows, COUNT(gce_rows));
}

/* ---- Redirects ---- */

/* To a server that would be trusted: it hears nothing at all, and so no token. */
TEST(test_redirects)
{
    static const struct {
        const char *resolver;
        const char *const *settings;
        const char *more[2];
        const char *route; /* up to its answers */
    } rows[] = {
        {"kubernetes", in_cluster, {NULL}, "{" PODS ", 'answers': ["},
        {"gce", gce, {NULL}, GROUP},
        {"tpu",
         tpu,
         {"access_token=secret-2"},
         "{'path': '/v2/projects/p/locations/z/nodes/n', 'answers': ["},
    };
    static const int statuses[] = {301, 302, 303, 307, 308};
    static struct outcome outcome;
    struct https second;

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
TEST(test_redirected_refresh_token)
{
    static struct outcome outcome;
    struct https second;
    struct https first;
    char answer[160];

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

NEEDS_PROGRAM(https_missing(), make_folder, remove_folder)
