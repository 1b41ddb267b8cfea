#include "resolver/kubeconfig.h"

#include "resolver/json.h"
#include "resolver/text.h"
#include "resolver/yaml.h"
#include "runtime/base64.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A named part of a file: "clusters" "gke_x" -> the mapping under "cluster". */
struct part {
    const struct mu__kubeconfig_file *file;
    const cJSON *body;          /* NULL: none was asked for */
    char where[200];            /* "FILE: user "name"" */
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

static int no_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "kubeconfig: out of memory");
}

/* A text by its key; absent, null and "" are NULL. What it is instead is not said: it
 * might be a token without quotes. */
static int get_text(const cJSON *body, const char *where, const char *key,
                    mu_error *ret_error, const char **ret_text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(body, key);

    if (item != NULL && !cJSON_IsNull(item) && !cJSON_IsString(item))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: %s: expected a text", where,
                            key);
    *ret_text = cJSON_IsString(item) && item->valuestring[0] != '\0' ? item->valuestring
                                                                     : NULL;
    return 0;
}

static int copy_text(const struct part *part, const char *key, mu_error *ret_error,
                     char **ret_copy)
{
    const char *text;
    int rv = get_text(part->body, part->where, key, ret_error, &text);

    if (rv != 0 || text == NULL)
        return rv;
    *ret_copy = strdup(text);
    return *ret_copy == NULL ? no_memory(ret_error) : 0;
}

/* Relative paths begin at the file's folder. */
static int copy_path(const struct part *part, const char *key, mu_error *ret_error,
                     char **ret_copy)
{
    const char *slash = strrchr(part->file->path, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - part->file->path) + 1;
    const char *text;
    size_t size;
    int rv = get_text(part->body, part->where, key, ret_error, &text);

    if (rv != 0 || text == NULL)
        return rv;
    if (text[0] == '/')
        folder = 0;
    size = folder + strlen(text) + 1;
    *ret_copy = malloc(size);
    if (*ret_copy == NULL)
        return no_memory(ret_error);
    (void)snprintf(*ret_copy, size, "%.*s%s", (int)folder, part->file->path, text);
    return 0;
}

/* base64, perhaps broken into lines, of a text. */
static bool decode(char *text)
{
    size_t kept = 0;
    size_t size;

    for (size_t i = 0; text[i] != '\0'; i++)
        if (strchr(" \t\r\n", text[i]) == NULL)
            text[kept++] = text[i];
    if (mu__base64_decode(text, kept, (uint8_t *)text, &size) != 0)
        return false;
    text[size] = '\0';
    return memchr(text, '\0', size) == NULL;
}

/* Of "certificate-authority": its "-data", else the file of that name. */
static int get_content(const struct part *part, const char *key, mu_error *ret_error,
                       struct mu__kube_content *ret_content)
{
    char data[64];
    int rv;

    (void)snprintf(data, sizeof data, "%s-data", key);
    rv = copy_text(part, data, ret_error, &ret_content->text);
    if (rv != 0)
        return rv;
    if (ret_content->text == NULL)
        return copy_path(part, key, ret_error, &ret_content->path);
    if (decode(ret_content->text))
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "%s: %s: expected base64 of a PEM text",
                        part->where, data);
}

/* ---- Parts by name ---- */

/* {"contexts": [{"name": NAME, "context": {...}}]} */
static const cJSON *find_in(const cJSON *root, const char *list, const char *kind,
                            const char *name)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(root, list);
    const cJSON *item;

    if (!cJSON_IsArray(items))
        return NULL;
    cJSON_ArrayForEach(item, items) {
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(item, "name");
        const cJSON *body = cJSON_GetObjectItemCaseSensitive(item, kind);

        if (cJSON_IsString(of) && strcmp(of->valuestring, name) == 0 &&
            cJSON_IsObject(body))
            return body;
    }
    return NULL;
}

static int find_part(const struct mu__kubeconfig_file *files, size_t count,
                     const char *list, const char *kind, const char *name,
                     mu_error *ret_error, struct part *ret_part)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, name, strlen(name));
    for (size_t i = 0; i < count; i++) {
        const cJSON *body = find_in(files[i].root, list, kind, name);

        if (body == NULL)
            continue;
        *ret_part = (struct part){.file = &files[i], .body = body};
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
        rv = get_text(files[i].root, files[i].path, "current-context", ret_error,
                      &context);
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

/* What is there and not known here would change who we are or where we go. */
static int refuse(const struct part *part, const char *const (*rows)[2],
                  mu_error *ret_error)
{
    for (; (*rows)[0] != NULL; rows++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(part->body, (*rows)[0]);

        if (item != NULL && !cJSON_IsNull(item))
            return mu_error_set(ret_error, -MU_EUNIMPLEMENTED, "%s: %s: %s", part->where,
                                (*rows)[0], (*rows)[1]);
    }
    return 0;
}

static int check_server(const struct part *part, mu_error *ret_error, char *server)
{
    size_t size = server == NULL ? 0 : strlen(server);
    char shown[MU__QUOTE_BYTES];

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
    mu__quote(shown, sizeof shown, server, strchr(server, '@') == NULL ? size : 0);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: server: expected a url, \"https://host:port\" without user "
                        "and query, got %s",
                        part->where, shown);
}

static int read_cluster(const struct part *part, mu_error *ret_error,
                        struct mu__kube_access *access)
{
    static const char *const unknown[][2] = {
        {"proxy-url", "muster takes no proxy from here; give api_server an address that "
                      "is reached without one"},
        {NULL, NULL},
    };
    const cJSON *insecure =
        cJSON_GetObjectItemCaseSensitive(part->body, "insecure-skip-tls-verify");
    int rv = refuse(part, unknown, ret_error);

    if (rv == 0)
        rv = copy_text(part, "server", ret_error, &access->server);
    if (rv == 0)
        rv = check_server(part, ret_error, access->server);
    if (rv == 0)
        rv = copy_text(part, "tls-server-name", ret_error, &access->server_name);
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

static int read_user(const struct part *part, mu_error *ret_error,
                     struct mu__kube_access *access)
{
    static const char *const unknown[][2] = {
        {"exec", "muster runs no program for a token; give one with the setting token "
                 "or token_file (kubectl create token NAME makes one)"},
        {"auth-provider", "auth providers are not known here; give a token with the "
                          "setting token or token_file (kubectl create token NAME makes "
                          "one)"},
        {"username", "servers take passwords no more; give a token"},
        {"as", "to be somebody else is not known here; give a token of its own"},
        {NULL, NULL},
    };
    int rv = refuse(part, unknown, ret_error);

    if (rv == 0)
        rv = copy_path(part, "tokenFile", ret_error, &access->token.path);
    if (rv == 0 && access->token.path == NULL)
        rv = copy_text(part, "token", ret_error, &access->token.text);
    if (rv == 0)
        rv = get_content(part, "client-certificate", ret_error, &access->certificate);
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

static int read_all(const struct mu__kubeconfig_file *files, size_t count,
                    const char *context, mu_error *ret_error,
                    struct mu__kube_access *access)
{
    const char *cluster = NULL;
    const char *user = NULL;
    struct part part;
    int rv = context != NULL ? 0 : find_current(files, count, ret_error, &context);

    if (rv == 0)
        rv = find_part(files, count, "contexts", "context", context, ret_error, &part);
    if (rv == 0)
        rv = get_text(part.body, part.where, "cluster", ret_error, &cluster);
    if (rv == 0)
        rv = get_text(part.body, part.where, "user", ret_error, &user);
    if (rv == 0)
        rv = copy_text(&part, "namespace", ret_error, &access->name_space);
    if (rv == 0 && cluster == NULL)
        rv = mu_error_set(ret_error, -MU_EINVALID, "%s: cluster: expected a name",
                          part.where);
    if (rv == 0)
        rv = find_part(files, count, "clusters", "cluster", cluster, ret_error, &part);
    if (rv == 0)
        rv = read_cluster(&part, ret_error, access);
    if (rv != 0 || user == NULL)
        return rv;
    rv = find_part(files, count, "users", "user", user, ret_error, &part);
    return rv == 0 ? read_user(&part, ret_error, access) : rv;
}

int mu__kubeconfig_find(const struct mu__kubeconfig_file *files, size_t count,
                        const char *context, mu_error *ret_error,
                        struct mu__kube_access *ret_access)
{
    struct mu__kube_access access = {0};
    int rv = read_all(files, count, context, ret_error, &access);

    if (rv != 0)
        mu__kube_access_done(&access);
    else
        *ret_access = access;
    return rv;
}

static void wipe(char *text)
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
        wipe(contents[i]->text);
        free(contents[i]->path);
    }
    free(access->server);
    free(access->name_space);
    free(access->server_name);
    *access = (struct mu__kube_access){0};
}
