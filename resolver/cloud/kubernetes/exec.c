#include "resolver/cloud/kubernetes/exec.h"

#include "resolver/cloud/kubernetes/internal.h"
#include "runtime/base/base64.h"
#include "runtime/base/date.h"
#include "runtime/base/text.h"
#include "runtime/base/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "client.authentication.k8s.io/"

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static int no_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "kubeconfig: out of memory");
}

static int copy_text(const cJSON *body, const char *where, const char *key,
                     mu_error *ret_error, char **ret_copy)
{
    const char *text;
    int rv = mu__kubeconfig_text(body, where, key, ret_error, &text);

    if (rv != 0 || text == NULL)
        return rv;
    *ret_copy = strdup(text);
    return *ret_copy == NULL ? no_memory(ret_error) : 0;
}

/* ---- What is to be run ---- */

static int check_version(const struct mu__kube_exec *exec, mu_error *ret_error)
{
    const char *version = exec->version == NULL ? "" : exec->version;
    char shown[MU__QUOTE_BYTES];

    if (strcmp(version, GROUP "v1") == 0 || strcmp(version, GROUP "v1beta1") == 0)
        return 0;
    if (strcmp(version, GROUP "v1alpha1") == 0)
        return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                            "%s: apiVersion: v1alpha1 is no more since Kubernetes 1.24; "
                            "let a newer tool of the cloud write the file (aws eks "
                            "update-kubeconfig, say)",
                            exec->where);
    mu__quote(shown, sizeof shown, version, strlen(version));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: apiVersion: expected \"" GROUP "v1\" or \"" GROUP
                        "v1beta1\", got %s",
                        exec->where, shown);
}

/* Nobody sits in front of a task. */
static int check_mode(const cJSON *body, const char *where, mu_error *ret_error)
{
    const char *mode;
    int rv = mu__kubeconfig_text(body, where, "interactiveMode", ret_error, &mode);

    if (rv != 0 || mode == NULL || strcmp(mode, "Never") == 0 ||
        strcmp(mode, "IfAvailable") == 0)
        return rv;
    if (strcmp(mode, "Always") == 0)
        return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                            "%s: interactiveMode: the program wants to ask a person, and "
                            "there is none; give a token with the setting token or "
                            "token_file (kubectl create token NAME makes one)",
                            where);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: interactiveMode: expected Never, IfAvailable or Always",
                        where);
}

/* A name is looked for in PATH, a path may be relative to the file's folder. */
static int read_command(const cJSON *body, const char *path, mu_error *ret_error,
                        struct mu__kube_exec *exec)
{
    const char *text;
    int rv = mu__kubeconfig_text(body, exec->where, "command", ret_error, &text);

    if (rv != 0)
        return rv;
    if (text == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: command: expected the name or path of a program",
                            exec->where);
    exec->command = strchr(text, '/') == NULL ? strdup(text)
                                              : mu__kubeconfig_path(path, text);
    return exec->command == NULL ? no_memory(ret_error) : 0;
}

static int bad_list(const struct mu__kube_exec *exec, const char *key, const char *what,
                    mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "%s: %s: expected a list of %s",
                        exec->where, key, what);
}

static void add_word(struct mu__build *words, const char *prefix, const char *text)
{
    mu__build_add(words, prefix);
    mu__build_add(words, text);
    mu__build_bytes(words, "", 1);
}

static int read_arguments(const cJSON *body, mu_error *ret_error,
                          struct mu__kube_exec *exec)
{
    const cJSON *list = get(body, "args");
    const cJSON *item;

    if (list == NULL || cJSON_IsNull(list))
        return 0;
    if (!cJSON_IsArray(list))
        return bad_list(exec, "args", "texts", ret_error);
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item))
            return bad_list(exec, "args", "texts", ret_error);
        add_word(&exec->words, "a", item->valuestring);
    }
    return 0;
}

static int read_variables(const cJSON *body, mu_error *ret_error,
                          struct mu__kube_exec *exec)
{
    const cJSON *list = get(body, "env");
    const cJSON *item;

    if (list == NULL || cJSON_IsNull(list))
        return 0;
    if (!cJSON_IsArray(list))
        return bad_list(exec, "env", "names and values", ret_error);
    cJSON_ArrayForEach(item, list) {
        const cJSON *name = get(item, "name");
        const cJSON *value = get(item, "value");

        if (!cJSON_IsString(name) || !cJSON_IsString(value) ||
            name->valuestring[0] == '\0' || strchr(name->valuestring, '=') != NULL)
            return bad_list(exec, "env", "names and values", ret_error);
        mu__build_add(&exec->words, "v");
        mu__build_add(&exec->words, name->valuestring);
        add_word(&exec->words, "=", value->valuestring);
    }
    return 0;
}

/* Several lines become one. */
static int read_hint(const cJSON *body, mu_error *ret_error, struct mu__kube_exec *exec)
{
    int rv = copy_text(body, exec->where, "installHint", ret_error, &exec->hint);
    size_t kept = 0;

    if (rv != 0 || exec->hint == NULL)
        return rv;
    for (const char *at = exec->hint; *at != '\0'; at++) {
        bool space = strchr(" \t\r\n", *at) != NULL;

        if (!space)
            exec->hint[kept++] = *at;
        else if (kept > 0 && exec->hint[kept - 1] != ' ')
            exec->hint[kept++] = ' ';
    }
    exec->hint[kept] = '\0';
    mu__hide_control(exec->hint);
    return 0;
}

/* {"extensions": [{"name": "client.authentication.k8s.io/exec", "extension": ...}]} */
static int read_config(const cJSON *cluster, mu_error *ret_error,
                       struct mu__kube_exec *exec)
{
    const cJSON *item;
    char *text;

    cJSON_ArrayForEach(item, get(cluster, "extensions")) {
        const cJSON *name = get(item, "name");
        const cJSON *extension = get(item, "extension");

        if (!cJSON_IsString(name) || strcmp(name->valuestring, GROUP "exec") != 0 ||
            extension == NULL)
            continue;
        text = cJSON_PrintUnformatted(extension);
        if (text == NULL)
            return no_memory(ret_error);
        exec->config = strdup(text);
        cJSON_free(text);
        return exec->config == NULL ? no_memory(ret_error) : 0;
    }
    return 0;
}

static int read_all(const cJSON *body, const cJSON *cluster, const char *path,
                    mu_error *ret_error, struct mu__kube_exec *exec)
{
    int rv = copy_text(body, exec->where, "apiVersion", ret_error, &exec->version);

    if (rv == 0)
        rv = check_version(exec, ret_error);
    if (rv == 0)
        rv = check_mode(body, exec->where, ret_error);
    if (rv == 0)
        rv = read_command(body, path, ret_error, exec);
    if (rv == 0)
        rv = read_arguments(body, ret_error, exec);
    if (rv == 0)
        rv = read_variables(body, ret_error, exec);
    if (rv == 0)
        rv = read_hint(body, ret_error, exec);
    exec->tells_cluster = cJSON_IsTrue(get(body, "provideClusterInfo"));
    if (rv == 0 && exec->tells_cluster)
        rv = read_config(cluster, ret_error, exec);
    return rv == 0 && exec->words.failed ? no_memory(ret_error) : rv;
}

int mu__kube_exec_read(const cJSON *exec, const cJSON *cluster, const char *path,
                       const char *where, mu_error *ret_error,
                       struct mu__kube_exec **ret_exec)
{
    struct mu__kube_exec *own = calloc(1, sizeof *own);
    struct mu__build name = {0};
    int rv;

    if (own == NULL)
        return no_memory(ret_error);
    mu__build_format(&name, "%s: exec", where);
    own->where = name.text;
    if (!mu__build_whole(&name))
        rv = no_memory(ret_error);
    else if (!cJSON_IsObject(exec))
        rv = mu_error_set(ret_error, -MU_EINVALID, "%s: expected a mapping", own->where);
    else
        rv = read_all(exec, cluster, path, ret_error, own);
    if (rv != 0)
        mu__kube_exec_free(own);
    else
        *ret_exec = own;
    return rv;
}

void mu__kube_exec_free(struct mu__kube_exec *exec)
{
    if (exec == NULL)
        return;
    free(exec->where);
    free(exec->version);
    free(exec->command);
    free(exec->hint);
    free(exec->config);
    mu__build_done(&exec->words);
    free(exec);
}

/* ---- What it is told ---- */

static void add_base64(struct mu__build *out, const char *text)
{
    size_t size = strlen(text);
    char *code = malloc(mu__base64_size(size) + 1);

    if (code == NULL) {
        out->failed = true;
        return;
    }
    mu__base64_encode(text, size, code);
    mu__build_bytes(out, code, mu__base64_size(size));
    free(code);
}

static void add_cluster(struct mu__build *out, const struct mu__kube_exec *exec,
                        const struct mu__kube_exec_cluster *cluster)
{
    mu__build_add(out, "\"cluster\":{\"server\":");
    mu__build_json(out, cluster->server);
    if (cluster->server_name != NULL) {
        mu__build_add(out, ",\"tls-server-name\":");
        mu__build_json(out, cluster->server_name);
    }
    if (cluster->insecure)
        mu__build_add(out, ",\"insecure-skip-tls-verify\":true");
    if (cluster->ca != NULL) {
        mu__build_add(out, ",\"certificate-authority-data\":\"");
        add_base64(out, cluster->ca);
        mu__build_add(out, "\"");
    }
    if (exec->config != NULL) {
        mu__build_add(out, ",\"config\":");
        mu__build_add(out, exec->config);
    }
    mu__build_add(out, "},");
}

void mu__kube_exec_words(const struct mu__kube_exec *exec,
                         const struct mu__kube_exec_cluster *cluster,
                         struct mu__build *words)
{
    *words = (struct mu__build){0};
    mu__build_bytes(words, exec->words.text, exec->words.size);
    mu__build_add(words, "vKUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\","
                         "\"apiVersion\":");
    mu__build_json(words, exec->version);
    mu__build_add(words, ",\"spec\":{");
    if (exec->tells_cluster)
        add_cluster(words, exec, cluster);
    mu__build_add(words, "\"interactive\":false}}");
    mu__build_bytes(words, "", 1);
}

/* ---- What it prints ---- */

static int bad(const struct mu__kube_exec *exec, const char *words, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "%s: %.80s printed %s", exec->where,
                        exec->command, words);
}

static int check_kind(const struct mu__kube_exec *exec, const cJSON *root,
                      mu_error *ret_error)
{
    const cJSON *kind = get(root, "kind");
    const cJSON *version = get(root, "apiVersion");

    if (!cJSON_IsString(kind) || strcmp(kind->valuestring, "ExecCredential") != 0)
        return bad(exec, "something else; expected kind: ExecCredential", ret_error);
    if (!cJSON_IsString(version) || strcmp(version->valuestring, exec->version) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: %.80s printed another apiVersion; expected \"%s\", as "
                            "the kubeconfig has it",
                            exec->where, exec->command, exec->version);
    if (!cJSON_IsObject(get(root, "status")))
        return bad(exec, "no status; expected one with a token or a certificate",
                   ret_error);
    return 0;
}

static int read_until(const struct mu__kube_exec *exec, const cJSON *status,
                      mu_error *ret_error, struct mu__kube_credential *credential)
{
    const cJSON *until = get(status, "expirationTimestamp");

    if (until == NULL || cJSON_IsNull(until))
        return 0;
    if (cJSON_IsString(until) &&
        mu__date_parse(until->valuestring, &credential->until_s) == 0)
        return 0;
    return bad(exec, "an expirationTimestamp that is none; expected a time as in "
                     "\"2024-05-06T07:08:09Z\"",
               ret_error);
}

static int read_status(const struct mu__kube_exec *exec, const cJSON *status,
                       mu_error *ret_error, struct mu__kube_credential *credential)
{
    int rv = copy_text(status, exec->where, "token", ret_error, &credential->token);

    if (rv == 0)
        rv = copy_text(status, exec->where, "clientCertificateData", ret_error,
                       &credential->certificate);
    if (rv == 0)
        rv = copy_text(status, exec->where, "clientKeyData", ret_error,
                       &credential->key);
    if (rv == 0)
        rv = read_until(exec, status, ret_error, credential);
    if (rv != 0)
        return rv;
    if ((credential->certificate == NULL) != (credential->key == NULL))
        return bad(exec, "one of clientCertificateData and clientKeyData; expected both",
                   ret_error);
    if (credential->token == NULL && credential->certificate == NULL)
        return bad(exec, "neither a token nor a certificate", ret_error);
    return 0;
}

int mu__kube_credential_parse(const struct mu__kube_exec *exec, const char *text,
                              size_t size, mu_error *ret_error,
                              struct mu__kube_credential **ret_credential)
{
    struct mu__kube_credential *credential = calloc(1, sizeof *credential);
    char source[256];
    cJSON *root = NULL;
    int rv;

    if (credential == NULL)
        return no_memory(ret_error);
    (void)snprintf(source, sizeof source, "%.150s: what %.60s printed", exec->where,
                   exec->command);
    rv = mu__yaml_parse(text, size, source, ret_error, &root);
    if (rv == -MU_EEXISTS) /* the parser shows the key, which may be anything */
        rv = mu_error_set(ret_error, rv, "%s: a key stands there twice; expected it once",
                          source);
    if (rv == 0)
        rv = check_kind(exec, root, ret_error);
    if (rv == 0)
        rv = read_status(exec, get(root, "status"), ret_error, credential);
    cJSON_Delete(root);
    if (rv != 0)
        mu__kube_credential_free(credential);
    else
        *ret_credential = credential;
    return rv;
}

static void wipe(char *text)
{
    volatile char *at = text;

    while (at != NULL && *at != '\0')
        *at++ = '\0';
    free(text);
}

void mu__kube_credential_free(void *credential)
{
    struct mu__kube_credential *own = credential;

    if (own == NULL)
        return;
    wipe(own->token);
    wipe(own->certificate);
    wipe(own->key);
    free(own);
}
