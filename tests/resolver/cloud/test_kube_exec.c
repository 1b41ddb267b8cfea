/* Programs that make credentials, by rows: what a kubeconfig says of them, what they are
 * told, and what they print. */
#include "resolver/cloud/kubernetes/exec.h"

#include "resolver/cloud/kubernetes/kubeconfig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GROUP "client.authentication.k8s.io/"
#define V1 "apiVersion: " GROUP "v1"
#define BETA "apiVersion: " GROUP "v1beta1"

/* `exec` in YAML, in a file of the folder /k. */
static int find(const char *exec, const char *cluster, mu_error *ret_error,
                struct mu__kube_access *ret_access)
{
    struct mu__kubeconfig_file file = {.path = "/k/config"};
    char text[2048];
    cJSON *root;
    int rv;

    (void)snprintf(text, sizeof text,
                   "current-context: c\n"
                   "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                   "clusters: [{name: k, cluster: {server: 'https://k'%s}}]\n"
                   "users: [{name: u, user: {exec: %s}}]\n",
                   cluster, exec);
    assert_int_equal(
        mu__kubeconfig_parse(text, strlen(text), file.path, ret_error, &root), 0);
    file.root = root;
    rv = mu__kubeconfig_find(&file, 1, NULL, true, ret_error, ret_access);
    cJSON_Delete(root);
    return rv;
}

static struct mu__kube_access find_good(const char *exec, const char *cluster)
{
    struct mu__kube_access access;
    mu_error error;

    if (find(exec, cluster, &error, &access) != 0)
        fail_msg("%s", error.message);
    assert_non_null(access.exec);
    return access;
}

/* The words, each with a line end in place of its zero byte. */
static void expect_words(const char *exec, const char *cluster,
                         const struct mu__kube_exec_cluster *told, const char *expected)
{
    struct mu__kube_access access = find_good(exec, cluster);
    struct mu__build words;

    mu__kube_exec_words(access.exec, told, &words);
    assert_true(mu__build_whole(&words));
    for (size_t i = 0; i < words.size; i++)
        words.text[i] = (char)(words.text[i] == '\0' ? '\n' : words.text[i]);
    assert_string_equal(words.text, expected);
    mu__build_done(&words);
    mu__kube_access_done(&access);
}

static void test_commands(void **state)
{
    static const struct {
        const char *exec;
        const char *command;
    } rows[] = {
        {"{" V1 ", command: aws}", "aws"},
        {"{" BETA ", command: /usr/bin/aws, interactiveMode: IfAvailable}",
         "/usr/bin/aws"},
        {"{" V1 ", command: ./plugin, interactiveMode: Never}", "/k/./plugin"},
        {"{" V1 ", command: bin/plugin, args: null, env: null}", "/k/bin/plugin"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__kube_access access = find_good(rows[i].exec, "");

        assert_string_equal(access.exec->command, rows[i].command);
        mu__kube_access_done(&access);
    }
}

#define INFO(version, rest)                                                         \
    "vKUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"" GROUP version \
    "\",\"spec\":{" rest "\"interactive\":false}}\n"

/* As kubectl 1.33 has told the same program of the same cluster. */
static void test_words(void **state)
{
    const struct mu__kube_exec_cluster told = {
        .server = "https://k", .server_name = "a\"b", .ca = "PEM"};
    const struct mu__kube_exec_cluster insecure = {.server = "https://k",
                                                   .insecure = true};

    (void)state;
    expect_words("{" V1 ", command: p}", "", &told, INFO("v1", ""));
    expect_words("{" BETA ", command: p, args: [get-token, '', 'a b'], env: [{name: A, "
                 "value: ''}, {name: B, value: 'c=d'}]}",
                 "", &told,
                 "aget-token\na\naa b\nvA=\nvB=c=d\n" INFO("v1beta1", ""));
    expect_words("{" V1 ", command: p, provideClusterInfo: true}",
                 ", extensions: [{name: other, extension: 1}, {name: " GROUP
                 "exec, extension: {audience: x, n: [1, 2]}}]",
                 &told,
                 INFO("v1", "\"cluster\":{\"server\":\"https://k\",\"tls-server-name\":"
                            "\"a\\\"b\",\"certificate-authority-data\":\"UEVN\","
                            "\"config\":{\"audience\":\"x\",\"n\":[1,2]}},"));
    expect_words("{" V1 ", command: p, provideClusterInfo: true}", "", &insecure,
                 INFO("v1", "\"cluster\":{\"server\":\"https://k\","
                            "\"insecure-skip-tls-verify\":true},"));
}

static void test_hint_is_one_line(void **state)
{
    struct mu__kube_access access = find_good(
        "{" V1 ", command: p, installHint: \"\\n Get it\\n\\n  \\e here\\n\"}", "");

    (void)state;
    assert_string_equal(access.exec->hint, "Get it ? here ");
    assert_string_equal(access.exec->where, "/k/config: user \"u\": exec");
    mu__kube_access_done(&access);
}

static void test_refused(void **state)
{
    static const struct {
        const char *exec;
        int code;
        const char *words;
    } rows[] = {
        {"7", -MU_EINVALID, "/k/config: user \"u\": exec: expected a mapping"},
        {"{command: p}", -MU_EINVALID,
         "apiVersion: expected \"" GROUP "v1\" or \"" GROUP "v1beta1\", got \"\""},
        {"{apiVersion: v1, command: p}", -MU_EINVALID, "got \"v1\""},
        {"{apiVersion: " GROUP "v1alpha1, command: p}", -MU_EUNIMPLEMENTED,
         "apiVersion: v1alpha1 is no more since Kubernetes 1.24; let a newer tool"},
        {"{" V1 "}", -MU_EINVALID, "command: expected the name or path of a program"},
        {"{" V1 ", command: [p]}", -MU_EINVALID, "command: expected a text"},
        {"{" V1 ", command: p, interactiveMode: Always}", -MU_EUNIMPLEMENTED,
         "interactiveMode: the program wants to ask a person, and there is none"},
        {"{" V1 ", command: p, interactiveMode: never}", -MU_EINVALID,
         "interactiveMode: expected Never, IfAvailable or Always"},
        {"{" V1 ", command: p, args: secret}", -MU_EINVALID,
         "args: expected a list of texts"},
        {"{" V1 ", command: p, args: [a, 7]}", -MU_EINVALID,
         "args: expected a list of texts"},
        {"{" V1 ", command: p, env: {A: secret}}", -MU_EINVALID,
         "env: expected a list of names and values"},
        {"{" V1 ", command: p, env: [{name: A}]}", -MU_EINVALID,
         "env: expected a list of names and values"},
        {"{" V1 ", command: p, env: [{name: 'A=B', value: secret}]}", -MU_EINVALID,
         "env: expected a list of names and values"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__kube_access access;
        mu_error error;

        assert_int_equal(find(rows[i].exec, "", &error, &access), rows[i].code);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", rows[i].words, error.message);
        assert_null(strstr(error.message, "secret"));
    }
}

/* ---- What it prints ---- */

static int parse(const char *text, mu_error *ret_error,
                 struct mu__kube_credential **ret_credential)
{
    struct mu__kube_access access = find_good("{" V1 ", command: p}", "");
    int rv = mu__kube_credential_parse(access.exec, text, strlen(text), ret_error,
                                       ret_credential);

    mu__kube_access_done(&access);
    return rv;
}

#define CREDENTIAL(status)                                                            \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" GROUP "v1\",\"status\":{" status \
    "}}\n"

static void expect_same(const char *text, const char *expected)
{
    if (text == NULL || expected == NULL)
        assert_ptr_equal(text, expected);
    else
        assert_string_equal(text, expected);
}

static void test_credentials(void **state)
{
    static const struct {
        const char *text;
        const char *token;
        const char *certificate;
        int64_t until_s;
    } rows[] = {
        {CREDENTIAL("\"token\":\"secret\""), "secret", NULL, 0},
        {CREDENTIAL("\"token\":\"secret\",\"expirationTimestamp\":"
                    "\"2023-11-14T22:13:20Z\""),
         "secret", NULL, 1700000000},
        {CREDENTIAL("\"token\":\"secret\",\"expirationTimestamp\":null"), "secret", NULL,
         0},
        {CREDENTIAL("\"clientCertificateData\":\"C\\nD\",\"clientKeyData\":\"K\""), NULL,
         "C\nD", 0},
        {CREDENTIAL("\"token\":\"t\",\"clientCertificateData\":\"C\",\"clientKeyData\":"
                    "\"K\""),
         "t", "C", 0},
        /* kubectl reads YAML, too. */
        {"kind: ExecCredential\n" V1 "\nstatus: {token: secret}\n", "secret", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__kube_credential *credential;
        mu_error error;

        if (parse(rows[i].text, &error, &credential) != 0)
            fail_msg("%s", error.message);
        expect_same(credential->token, rows[i].token);
        expect_same(credential->certificate, rows[i].certificate);
        expect_same(credential->key, rows[i].certificate == NULL ? NULL : "K");
        assert_int_equal(credential->until_s, rows[i].until_s);
        mu__kube_credential_free(credential);
    }
}

static void test_bad_credentials(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"", -MU_EINVALID, "p printed something else; expected kind: ExecCredential"},
        {"secret", -MU_EINVALID, "p printed something else"},
        {"{\"token\": \"secret", -MU_EINVALID, "what p printed: line 1, column "},
        {"secret: 1\nsecret: 2\n", -MU_EEXISTS, "what p printed: a key stands there "},
        {"{\"status\": {\"secret\": 1, \"secret\": 2}}", -MU_EEXISTS,
         "what p printed: a key stands there twice"},
        {"{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"secret\"}}", -MU_EINVALID,
         "p printed another apiVersion; expected \"" GROUP "v1\""},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" GROUP
         "v1beta1\",\"status\":{\"token\":\"secret\"}}",
         -MU_EINVALID, "p printed another apiVersion"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" GROUP "v1\"}", -MU_EINVALID,
         "p printed no status"},
        {CREDENTIAL(""), -MU_EINVALID, "p printed neither a token nor a certificate"},
        {CREDENTIAL("\"token\":\"\""), -MU_EINVALID, "neither a token"},
        {CREDENTIAL("\"token\":7"), -MU_EINVALID, "token: expected a text"},
        {CREDENTIAL("\"token\":\"t\",\"clientKeyData\":\"secret\""), -MU_EINVALID,
         "p printed one of clientCertificateData and clientKeyData"},
        {CREDENTIAL("\"token\":\"secret\",\"expirationTimestamp\":\"soon\""),
         -MU_EINVALID, "an expirationTimestamp that is none"},
        {CREDENTIAL("\"token\":\"secret\",\"expirationTimestamp\":7"), -MU_EINVALID,
         "an expirationTimestamp that is none"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__kube_credential *credential = NULL;
        mu_error error;

        assert_int_equal(parse(rows[i].text, &error, &credential), rows[i].code);
        assert_null(credential);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", rows[i].words, error.message);
        assert_null(strstr(error.message, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_hint_is_one_line),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_credentials),
        cmocka_unit_test(test_bad_credentials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
