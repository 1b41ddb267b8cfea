#include "resolver/cloud/kubernetes/kubeconfig.h"

#include "resolver/cloud/kubernetes/yaml.h"
#include "resolver/spec/address.h"
#include "runtime/base/base64.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A named part of a file: of the item "gke_x" of "clusters" the mapping under
 * "cluster". */
struct named_part {
    const struct mu__kubeconfig_file *file;
    const cJSON *body; /* NULL: the context names none */
    char where[200];   /* "FILE: user "name"" */
};

int mu__kubeconfig_parse(const char *text, size_t size, const char *path,
                         mu_error *ret_error, cJSON **ret_root)
{
    cJSON *root;
    int rv = mu__yaml_parse(text, size, path, ret_error, &root);

    if (rv != 0)
        return rv;
    if (cJSON_IsNull(root)) {
        cJSON_Delete(root);
        root = cJSON_CreateObject();
        if (root == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", path);
    }
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected a kubeconfig, a mapping with clusters, users "
                            "and contexts",
                            path);
    }
    *ret_root = root;
    return 0;
}

/* ---- Reading values ---- */

static int kubeconfig_no_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "kubeconfig: out of memory");
}

/* A text by its key; absent, null and "" are NULL. The error does not quote a value of
 * another type: it may be a token without quotes. */
static int get_kubeconfig_text(const cJSON *body, const char *where, const char *key,
                               mu_error *ret_error, const char **ret_text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(body, key);

    if (item != NULL && !cJSON_IsNull(item) && !cJSON_IsString(item))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: %s: expected a text", where,
                            key);
    *ret_text =
        cJSON_IsString(item) && item->valuestring[0] != '\0' ? item->valuestring : NULL;
    return 0;
}

static int copy_part_text(const struct named_part *part, const char *key,
                          mu_error *ret_error, char **ret_copy)
{
    const char *text;
    int rv = get_kubeconfig_text(part->body, part->where, key, ret_error, &text);

    if (rv != 0 || text == NULL)
        return rv;
    *ret_copy = strdup(text);
    return *ret_copy == NULL ? kubeconfig_no_memory(ret_error) : 0;
}

/* A path that stands in the file `path`: a relative one begins at that file's folder.
 * NULL: out of memory. */
static char *path_from(const char *path, const char *text)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash == NULL || text[0] == '/' ? 0 : (size_t)(slash - path) + 1;
    size_t size = folder + strlen(text) + 1;
    char *whole = malloc(size);

    if (whole != NULL)
        (void)snprintf(whole, size, "%.*s%s", (int)folder, path, text);
    return whole;
}

static int copy_path(const struct named_part *part, const char *key, mu_error *ret_error,
                     char **ret_copy)
{
    const char *text;
    int rv = get_kubeconfig_text(part->body, part->where, key, ret_error, &text);

    if (rv != 0 || text == NULL)
        return rv;
    *ret_copy = path_from(part->file->path, text);
    return *ret_copy == NULL ? kubeconfig_no_memory(ret_error) : 0;
}

/* Decode base64 in place, line breaks in it allowed. False: it is none, or no text. */
static bool decode_pem(char *text)
{
    size_t length = 0;
    size_t size;

    for (size_t i = 0; text[i] != '\0'; i++)
        if (strchr(" \t\r\n", text[i]) == NULL)
            text[length++] = text[i];
    if (mu__base64_decode(text, length, (uint8_t *)text, &size) != 0)
        return false;
    text[size] = '\0';
    return memchr(text, '\0', size) == NULL;
}

/* The content of "certificate-authority": its "-data", else the file of that name. */
static int get_content(const struct named_part *part, const char *key,
                       mu_error *ret_error, struct mu__kube_content *ret_content)
{
    char data[64];
    int rv;

    (void)snprintf(data, sizeof data, "%s-data", key);
    rv = copy_part_text(part, data, ret_error, &ret_content->text);
    if (rv != 0)
        return rv;
    if (ret_content->text == NULL)
        return copy_path(part, key, ret_error, &ret_content->path);
    if (decode_pem(ret_content->text))
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "%s: %s: expected base64 of a PEM text",
                        part->where, data);
}

/* ---- Parts by name ---- */

/* {"contexts": [{"name": NAME, "context": {...}}]}. *ret_body is unchanged when
 * there is none; -MU_EEXISTS: there are two. */
static int find_in(const cJSON *root, const char *list, const char *kind,
                   const char *name, const cJSON **ret_body)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(root, list);
    const cJSON *found = NULL;
    const cJSON *item;

    if (!cJSON_IsArray(items))
        return 0;
    cJSON_ArrayForEach(item, items)
    {
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(item, "name");
        const cJSON *body = cJSON_GetObjectItemCaseSensitive(item, kind);

        if (!cJSON_IsString(of) || strcmp(of->valuestring, name) != 0 ||
            !cJSON_IsObject(body))
            continue;
        if (found != NULL)
            return -MU_EEXISTS;
        found = body;
    }
    if (found != NULL)
        *ret_body = found;
    return 0;
}

static int find_named_part(const struct mu__kubeconfig_file *files, size_t count,
                           const char *list, const char *kind, const char *name,
                           mu_error *ret_error, struct named_part *ret_part)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, name, strlen(name));
    for (size_t i = 0; i < count; i++) {
        const cJSON *body = NULL;

        if (find_in(files[i].root, list, kind, name, &body) != 0)
            return mu_error_set(ret_error, -MU_EEXISTS, "%.200s: %s %s appears twice",
                                files[i].path, kind, shown);
        if (body == NULL)
            continue;
        *ret_part = (struct named_part){.file = &files[i], .body = body};
        (void)snprintf(ret_part->where, sizeof ret_part->where, "%.80s: %s %s",
                       files[i].path, kind, shown);
        return 0;
    }
    return mu_error_set(ret_error, -MU_ENOTFOUND, "%.200s%s: there is no %s %s",
                        count > 0 ? files[0].path : "kubeconfig",
                        count > 1 ? " and others" : "", kind, shown);
}

static int find_current(const struct mu__kubeconfig_file *files, size_t count,
                        mu_error *ret_error, const char **ret_context)
{
    const char *context = NULL;
    int rv = 0;

    for (size_t i = 0; i < count && context == NULL && rv == 0; i++)
        rv = get_kubeconfig_text(files[i].root, files[i].path, "current-context",
                                 ret_error, &context);
    if (rv != 0)
        return rv;
    if (context == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%.200s: current-context is not set; set it (kubectl config "
                            "use-context NAME), or the setting context",
                            count > 0 ? files[0].path : "kubeconfig");
    *ret_context = context;
    return 0;
}

/* ---- Cluster and user ---- */

/* "", [] and {} count as absent, as for kubectl. */
static bool is_kubeconfig_value(const cJSON *item)
{
    if (item == NULL || cJSON_IsNull(item))
        return false;
    if (cJSON_IsString(item))
        return item->valuestring[0] != '\0';
    return item->child != NULL || (!cJSON_IsArray(item) && !cJSON_IsObject(item));
}

/* Refuse keys that are not supported: without them the request would have another user or
 * another server. */
static int refuse_unknown_keys(const struct named_part *part,
                               const char *const (*rows)[2], mu_error *ret_error)
{
    for (; (*rows)[0] != NULL; rows++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(part->body, (*rows)[0]);

        if (is_kubeconfig_value(item))
            return mu_error_set(ret_error, -MU_EUNIMPLEMENTED, "%s: %s: %s", part->where,
                                (*rows)[0], (*rows)[1]);
    }
    return 0;
}

static int check_server(const struct named_part *part, mu_error *ret_error, char *server)
{
    size_t size = server == NULL ? 0 : strlen(server);

    if (size == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: server: expected a url, \"https://host:port\"",
                            part->where);
    if ((strncmp(server, "https://", 8) == 0 || strncmp(server, "http://", 7) == 0) &&
        strpbrk(server, "?# @") == NULL) {
        while (size > 0 && server[size - 1] == '/')
            server[--size] = '\0';
        return 0;
    }
    return mu__refuse(
        ret_error, server, strchr(server, '@') == NULL ? size : 0,
        "%s: server: expected a url, \"https://host:port\" without user and query",
        part->where);
}

static int read_kubeconfig_cluster(const struct named_part *part, mu_error *ret_error,
                                   struct mu__kube_access *access)
{
    static const char *const unknown[][2] = {
        {"proxy-url",
         "muster takes no proxy from here; take it out, and set the variable "
         "https_proxy (or no_proxy, where none is needed)"},
        {NULL, NULL},
    };
    const cJSON *insecure =
        cJSON_GetObjectItemCaseSensitive(part->body, "insecure-skip-tls-verify");
    int rv = refuse_unknown_keys(part, unknown, ret_error);

    if (rv == 0)
        rv = copy_part_text(part, "server", ret_error, &access->server);
    if (rv == 0)
        rv = check_server(part, ret_error, access->server);
    if (rv == 0)
        rv = copy_part_text(part, "tls-server-name", ret_error, &access->server_name);
    if (rv == 0 && access->server_name != NULL &&
        !mu__address_is_host(access->server_name))
        rv =
            mu_error_set(ret_error, -MU_EINVALID,
                         "%s: tls-server-name: expected the name of a host", part->where);
    if (rv == 0)
        rv = get_content(part, "certificate-authority", ret_error, &access->ca);
    if (rv != 0)
        return rv;
    if (insecure != NULL && !cJSON_IsNull(insecure) && !cJSON_IsBool(insecure))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: insecure-skip-tls-verify: expected true or false",
                            part->where);
    access->insecure = cJSON_IsTrue(insecure);
    if (access->insecure && (access->ca.text != NULL || access->ca.path != NULL))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: insecure-skip-tls-verify beside certificate-authority: "
                            "expected one of them",
                            part->where);
    return 0;
}

static int read_provider(const struct named_part *part, mu_error *ret_error)
{
    const cJSON *provider = cJSON_GetObjectItemCaseSensitive(part->body, "auth-provider");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(provider, "name");
    char shown[MU__QUOTE_BYTES] = "without a name";

    if (!is_kubeconfig_value(provider))
        return 0;
    if (cJSON_IsString(name))
        mu__quote(shown, sizeof shown, name->valuestring, strlen(name->valuestring));
    return mu_error_set(
        ret_error, -MU_EUNIMPLEMENTED,
        "%s: auth-provider %s: these are not known here (nor \"gcp\" and \"azure\" to "
        "kubectl since 1.26); give a token with the setting token, token_file or "
        "token_command",
        part->where, shown);
}

static int read_sign_in(const struct named_part *part, mu_error *ret_error,
                        struct mu__kube_access *access)
{
    static const char *const unknown[][2] = {
        {"username", "servers take passwords no more; give a token"},
        {"as", "to be somebody else is not known here; give a token of its own"},
        {"as-uid", "to be somebody else is not known here; give a token of its own"},
        {"as-groups", "to be somebody else is not known here; give a token of its own"},
        {"as-user-extra", "to be somebody else is not known here; give a token of its "
                          "own"},
        {NULL, NULL},
    };
    static const char *const makes_tokens[][2] = {
        {"exec", "muster does not run a kubeconfig's programs; set token_command "
                 "(MUSTER_KUBERNETES_TOKEN_COMMAND) to a command that prints a token, as "
                 "in \"aws eks get-token --cluster-name NAME\" or \"gcloud auth "
                 "print-access-token\""},
        {NULL, NULL},
    };
    int rv = refuse_unknown_keys(part, unknown, ret_error);

    if (rv == 0)
        rv = copy_path(part, "tokenFile", ret_error, &access->token.path);
    if (rv == 0 && access->token.path == NULL)
        rv = copy_part_text(part, "token", ret_error, &access->token.text);
    if (rv != 0 || access->token.path != NULL || access->token.text != NULL)
        return rv;
    rv = refuse_unknown_keys(part, makes_tokens, ret_error);
    return rv == 0 ? read_provider(part, ret_error) : rv;
}

static int read_client_certificate(const struct named_part *part, mu_error *ret_error,
                                   struct mu__kube_access *access)
{
    int rv = get_content(part, "client-certificate", ret_error, &access->certificate);

    if (rv == 0)
        rv = get_content(part, "client-key", ret_error, &access->key);
    if (rv != 0)
        return rv;
    if ((access->certificate.text == NULL && access->certificate.path == NULL) !=
        (access->key.text == NULL && access->key.path == NULL))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected client-certificate and client-key together",
                            part->where);
    return 0;
}

static int read_kubeconfig_parts(const struct mu__kubeconfig_file *files, size_t count,
                                 const char *context, bool signs_in, mu_error *ret_error,
                                 struct mu__kube_access *access)
{
    const char *cluster = NULL;
    const char *user = NULL;
    struct named_part part;
    int rv = context != NULL ? 0 : find_current(files, count, ret_error, &context);

    if (rv == 0)
        rv = find_named_part(files, count, "contexts", "context", context, ret_error,
                             &part);
    if (rv == 0)
        rv = get_kubeconfig_text(part.body, part.where, "cluster", ret_error, &cluster);
    if (rv == 0)
        rv = get_kubeconfig_text(part.body, part.where, "user", ret_error, &user);
    if (rv == 0)
        rv = copy_part_text(&part, "namespace", ret_error, &access->name_space);
    if (rv == 0 && cluster == NULL)
        rv = mu_error_set(ret_error, -MU_EINVALID, "%s: cluster: expected a name",
                          part.where);
    if (rv == 0)
        rv = find_named_part(files, count, "clusters", "cluster", cluster, ret_error,
                             &part);
    if (rv == 0)
        rv = read_kubeconfig_cluster(&part, ret_error, access);
    if (rv != 0 || user == NULL)
        return rv;
    rv = find_named_part(files, count, "users", "user", user, ret_error, &part);
    if (rv == 0)
        rv = read_client_certificate(&part, ret_error, access);
    return rv == 0 && signs_in ? read_sign_in(&part, ret_error, access) : rv;
}

int mu__kubeconfig_find(const struct mu__kubeconfig_file *files, size_t count,
                        const char *context, bool signs_in, mu_error *ret_error,
                        struct mu__kube_access *ret_access)
{
    struct mu__kube_access access = {0};
    int rv = read_kubeconfig_parts(files, count, context, signs_in, ret_error, &access);

    if (rv != 0)
        mu__kube_access_done(&access);
    else
        *ret_access = access;
    return rv;
}

static void wipe_secret(char *text)
{
    volatile char *at = text;

    while (at != NULL && *at != '\0')
        *at++ = '\0';
    free(text);
}

void mu__kube_access_done(struct mu__kube_access *access)
{
    struct mu__kube_content *contents[] = {&access->ca, &access->token,
                                           &access->certificate, &access->key};

    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        wipe_secret(contents[i]->text);
        free(contents[i]->path);
    }
    free(access->server);
    free(access->name_space);
    free(access->server_name);
    *access = (struct mu__kube_access){0};
}
