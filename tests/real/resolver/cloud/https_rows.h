/* Resolvers over real TLS, real curl and a server that answers as it is told to, well and
 * badly: rows of answers, settings, and what becomes of them. Nothing that is secret is
 * in what a resolver says, and no token goes where it must not. */
#ifndef MU_TESTS_HTTPS_ROWS_H
#define MU_TESTS_HTTPS_ROWS_H

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

static inline void note(struct outcome *outcome, const char *text)
{
    size_t at = strlen(outcome->said);

    (void)snprintf(outcome->said + at, sizeof outcome->said - at, "%s\n", text);
}

static inline void on_progress(void *user, const char *line)
{
    note(user, line);
}

/* All texts of a value. */
static inline void record_value(struct outcome *outcome, const mu_value *value)
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

static inline void check_secrets(const struct outcome *outcome)
{
    for (size_t i = 0; secrets[i] != NULL; i++) {
        if (strstr(outcome->said, secrets[i]) != NULL)
            fail_msg("\"%s\" was said: %s", secrets[i], outcome->said);
        if (strstr(outcome->error.message, secrets[i]) != NULL)
            fail_msg("\"%s\" is in \"%s\"", secrets[i], outcome->error.message);
    }
}

/* In a setting "%F" is the folder and "%P" the server's port. */
static inline void set_one(mu_resolver *resolver, const struct https *https,
                           const char *setting)
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

static inline void request(const char *name, const struct https *https,
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
    int64_t timeout_ms; /* 0: one try */
    unsigned requests;  /* that the server has heard; 0: any number */
};

static inline void check_row(const char *resolver, const char *const *usual,
                             const char *tls, const struct row *row)
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

static inline void check_rows(const char *resolver, const char *const *usual,
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

/* ---- The folder of all tests ---- */

static inline int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/muster-https-XXXXXX");
    assert_non_null(mkdtemp(folder));
    https_certificates(folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

#endif
