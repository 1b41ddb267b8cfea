/* kubeconfig files, by rows: what they come to, and what is said of what is wrong. */
#include "resolver/cloud/kubernetes/kubeconfig.h"
#include "tests/support/test.h"

#define CONTEXT(cluster, user)                                                      \
    "current-context: here\ncontexts:\n- name: here\n  context: {cluster: " cluster \
    ", user: " user ", namespace: training}\n"

static const char whole[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "clusters:\n"
    "- name: big\n"
    "  cluster:\n"
    "    server: https://10.0.0.1:6443/\n"
    "    certificate-authority-data: UEVN\n"
    "    tls-server-name: kubernetes\n"
    "- name: small\n"
    "  cluster: {server: 'https://small:443', certificate-authority: pki/ca.crt}\n"
    "users:\n"
    "- name: me\n"
    "  user: {token: secret}\n"
    "- name: other\n"
    "  user:\n"
    "    client-certificate-data: |\n"
    "      Q0\n"
    "      VS\n"
    "      VA==\n"
    "    client-key: /keys/other.key\n" CONTEXT(
        "big", "me") "- name: there\n"
                     "  context: {cluster: small, user: other}\n"
                     "- name: nobody\n"
                     "  context: {cluster: small}\n"
                     "preferences: {}\n";

struct text {
    const char *path;
    const char *text;
};

static int find(const struct text *texts, size_t count, const char *context,
                mu_error *ret_error, struct mu__kube_access *ret_access)
{
    struct mu__kubeconfig_file files[4] = {{0}};
    cJSON *roots[4] = {NULL};
    int rv = 0;

    for (size_t i = 0; i < count && rv == 0; i++) {
        rv = mu__kubeconfig_parse(texts[i].text, strlen(texts[i].text), texts[i].path,
                                  ret_error, &roots[i]);
        files[i] = (struct mu__kubeconfig_file){texts[i].path, roots[i]};
    }
    if (rv == 0)
        rv = mu__kubeconfig_find(files, count, context, true, ret_error, ret_access);
    for (size_t i = 0; i < count; i++)
        cJSON_Delete(roots[i]);
    return rv;
}

static struct mu__kube_access find_one(const char *text, const char *context)
{
    const struct text file = {"/users/me/.kube/config", text};
    struct mu__kube_access access;
    mu_error error;

    if (find(&file, 1, context, &error, &access) != 0)
        fail_msg("%s", error.message);
    return access;
}

static void expect_error(const char *text, const char *context, int code,
                         const char *words)
{
    const struct text file = {"/k/config", text};
    struct mu__kube_access access = {.insecure = true};
    mu_error error;

    assert_int_equal(find(&file, 1, context, &error, &access), code);
    assert_true(access.insecure && access.server == NULL);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
    assert_null(strstr(error.message, "secret"));
}

TEST(test_current_context)
{
    struct mu__kube_access access = find_one(whole, NULL);

    assert_string_equal(access.server, "https://10.0.0.1:6443");
    assert_string_equal(access.name_space, "training");
    assert_string_equal(access.server_name, "kubernetes");
    assert_string_equal(access.ca.text, "PEM");
    assert_string_equal(access.token.text, "secret");
    assert_null(access.certificate.text);
    assert_false(access.insecure);
    mu__kube_access_done(&access);
}

TEST(test_named_context_and_relative_paths)
{
    struct mu__kube_access access = find_one(whole, "there");

    assert_string_equal(access.server, "https://small:443");
    assert_string_equal(access.ca.path, "/users/me/.kube/pki/ca.crt");
    assert_string_equal(access.certificate.text, "CERT");
    assert_string_equal(access.key.path, "/keys/other.key");
    assert_null(access.name_space);
    mu__kube_access_done(&access);
    access = find_one(whole, "nobody");
    assert_null(access.token.text);
    mu__kube_access_done(&access);
}

TEST(test_json_is_yaml)
{
    struct mu__kube_access access = find_one(
        "{\n\t\"current-context\": \"c\",\n\t\"contexts\": [{\"name\": \"c\", "
        "\"context\": {\"cluster\": \"k\", \"user\": \"u\"}}],\n\t\"clusters\": "
        "[{\"name\": \"k\", \"cluster\": {\"server\": \"https://k\", "
        "\"insecure-skip-tls-verify\": true}}],\n\t\"users\": [{\"name\": \"u\", "
        "\"user\": {\"tokenFile\": \"t\", \"token\": \"secret\"}}]}",
        NULL);

    assert_true(access.insecure);
    assert_string_equal(access.token.path, "/users/me/.kube/t");
    assert_null(access.token.text);
    mu__kube_access_done(&access);
}

/* The first file that has something by a name counts, with all of it. */
TEST(test_merged)
{
    static const struct text files[] = {
        {"/a/config", "clusters:\n- name: k\n  cluster: {server: 'https://a', "
                      "certificate-authority: ca}\n"},
        {"/b/config", ""},
        {"/c/config",
         "clusters:\n- name: k\n  cluster: {server: 'https://c', "
         "tls-server-name: c}\nusers:\n- name: u\n  user: {tokenFile: t}\n" CONTEXT("k",
                                                                                    "u")},
        {"/d/config", "current-context: other\n"},
    };
    struct mu__kube_access access;
    mu_error error;

    assert_int_equal(find(files, 4, NULL, &error, &access), 0);
    assert_string_equal(access.server, "https://a");
    assert_string_equal(access.ca.path, "/a/ca");
    assert_null(access.server_name);
    assert_string_equal(access.token.path, "/c/t");
    mu__kube_access_done(&access);
}

#define USER(content)                                         \
    CONTEXT("k", "u")                                         \
    "clusters: [{name: k, cluster: {server: 'https://k'}}]\n" \
    "users: [{name: u, user: {" content "}}]\n"
#define CLUSTER(content) \
    CONTEXT("k", "u") "users: []\nclusters: [{name: k, cluster: {" content "}}]\n"

/* What is there and says nothing. */
TEST(test_empty_values)
{
    struct mu__kube_access access = find_one(
        USER("token: '', tokenFile: null, username: '', password: '', as-groups: [], "
             "as-user-extra: {}, auth-provider: null, exec: null"),
        NULL);

    assert_null(access.token.text);
    assert_null(access.token.path);
    mu__kube_access_done(&access);
}

/* A token counts more than a program, which is refused; neither is looked at by who has
 * another token. */
TEST(test_sign_in)
{
    static const char both[] =
        USER("token: secret, exec: {apiVersion: nonsense}, auth-provider: {name: gcp}");
    static const char refused[] = USER("exec: {apiVersion: nonsense}, username: me, "
                                       "client-certificate: c, client-key: k");
    const struct text file = {"/k/config", refused};
    struct mu__kube_access access = find_one(both, NULL);
    struct mu__kubeconfig_file parsed = {.path = "/k/config"};
    cJSON *root;
    mu_error error;

    assert_string_equal(access.token.text, "secret");
    mu__kube_access_done(&access);
    assert_int_equal(
        mu__kubeconfig_parse(file.text, strlen(file.text), file.path, &error, &root), 0);
    parsed.root = root;
    assert_int_equal(mu__kubeconfig_find(&parsed, 1, NULL, false, &error, &access), 0);
    assert_string_equal(access.certificate.path, "/k/c");
    mu__kube_access_done(&access);
    cJSON_Delete(root);
}

TEST(test_refused)
{
    static const struct {
        const char *text;
        const char *context;
        int code;
        const char *words;
    } rows[] = {
        {"- a\n", NULL, -MU_EINVALID, "/k/config: expected a kubeconfig"},
        {"", NULL, -MU_ENOTFOUND, "/k/config: current-context is not set"},
        {"current-context: true\n", NULL, -MU_EINVALID,
         "/k/config: current-context: expected a text"},
        {whole, "gone", -MU_ENOTFOUND, "/k/config: there is no context \"gone\""},
        {CONTEXT("k", "u"), NULL, -MU_ENOTFOUND, "there is no cluster \"k\""},
        {"contexts: [{name: c, context: {user: u}}]\n", "c", -MU_EINVALID,
         "/k/config: context \"c\": cluster: expected a name"},
        {CLUSTER("server: 'https://k'"), NULL, -MU_ENOTFOUND, "there is no user \"u\""},
        {CLUSTER(""), NULL, -MU_EINVALID, "cluster \"k\": server: expected a url"},
        {CLUSTER("server: k"), NULL, -MU_EINVALID, "got \"k\""},
        {CLUSTER("server: 'https://me:secret@k'"), NULL, -MU_EINVALID, "got \"\""},
        {CLUSTER("server: 'https://k', proxy-url: x"), NULL, -MU_EUNIMPLEMENTED,
         "cluster \"k\": proxy-url: muster takes no proxy from here; take it out, and "
         "set the variable https_proxy"},
        {CLUSTER("server: 'https://k', tls-server-name: 'https://me:secret@k'"), NULL,
         -MU_EINVALID, "cluster \"k\": tls-server-name: expected the name of a host"},
        {CLUSTER("server: 'https://k', insecure-skip-tls-verify: 1"), NULL, -MU_EINVALID,
         "insecure-skip-tls-verify: expected true or false"},
        {CLUSTER("server: 'https://k', insecure-skip-tls-verify: true, "
                 "certificate-authority: x"),
         NULL, -MU_EINVALID, "beside certificate-authority: expected one of them"},
        {CLUSTER("server: 'https://k', certificate-authority-data: secret"), NULL,
         -MU_EINVALID, "certificate-authority-data: expected base64 of a PEM text"},
        {USER("auth-provider: {name: gcp}"), NULL, -MU_EUNIMPLEMENTED,
         "user \"u\": auth-provider \"gcp\": these are not known here (nor \"gcp\" and "
         "\"azure\" to kubectl since 1.26); give a token with the setting token"},
        {USER("exec: {command: x}"), NULL, -MU_EUNIMPLEMENTED,
         "/k/config: user \"u\": exec: muster does not run a kubeconfig's programs; set "
         "token_command"},
        {USER("username: a, password: secret"), NULL, -MU_EUNIMPLEMENTED, "passwords"},
        {USER("as: admin, token: secret"), NULL, -MU_EUNIMPLEMENTED, "somebody else"},
        {USER("as-groups: [a], token: secret"), NULL, -MU_EUNIMPLEMENTED,
         "as-groups: to be somebody else"},
        {USER("as-user-extra: {a: [b]}"), NULL, -MU_EUNIMPLEMENTED,
         "as-user-extra: to be somebody else"},
        {CONTEXT("k", "u") "users: [{name: u, user: {}}]\nclusters: [{name: k, cluster: "
                           "{server: 'https://k'}}, {name: k, cluster: {}}]\n",
         NULL, -MU_EEXISTS, "/k/config: cluster \"k\" appears twice"},
        {USER("token: true"), NULL, -MU_EINVALID, "token: expected a text"},
        {USER("client-key: a"), NULL, -MU_EINVALID,
         "user \"u\": expected client-certificate and client-key together"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].text, rows[i].context, rows[i].code, rows[i].words);
}

TEST_PROGRAM()
