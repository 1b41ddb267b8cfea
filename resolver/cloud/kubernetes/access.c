#include "resolver/cloud/kubernetes/access.h"

#include "resolver/cloud/token_command.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum { ACCOUNT_BYTES_MAX = 1 << 20, KUBECONFIG_BYTES_MAX = 4 << 20 };

static int access_no_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "kubernetes: out of memory");
}

/* ---- Files ---- */

/* Copy the content of a small text file. `what` names it in messages. */
static int read_access_file(struct mu__requests *requests, const char *path,
                            const char *what, unsigned again, mu_error *ret_error,
                            char **ret_text)
{
    const struct mu__request request = {.kind = MU__REQUEST_FILE,
                                        .name = path,
                                        .again = again,
                                        .bytes_max = ACCOUNT_BYTES_MAX};
    const struct mu__answer *answer = mu__requests_get(requests, &request);
    int rv;

    rv = mu__answer_check(answer, what, ret_error);
    if (rv != 0)
        return rv;
    *ret_text = strdup(answer->data);
    return *ret_text == NULL ? access_no_memory(ret_error) : 0;
}

/* Load a content that is a path: its text becomes that of the file. */
static int load_access_file(struct mu__requests *requests,
                            struct mu__kube_content *content, const char *what,
                            mu_error *ret_error)
{
    if (content->path == NULL || content->text != NULL)
        return 0;
    return read_access_file(requests, content->path, what, 0, ret_error, &content->text);
}

/* Replace a content by a path or a text. */
static int set_content(struct mu__kube_content *content, const char *path,
                       const char *text, mu_error *ret_error)
{
    char *copy = strdup(path != NULL ? path : text);

    if (copy == NULL)
        return access_no_memory(ret_error);
    free(content->text);
    free(content->path);
    *content =
        (struct mu__kube_content){path != NULL ? NULL : copy, path != NULL ? copy : NULL};
    return 0;
}

/* ---- The token ---- */

/* Cut white space off the end. False: the rest is not fit for a header. */
static bool trim_token(char *token)
{
    size_t size = strlen(token);

    while (size > 0 && strchr(" \t\r\n", token[size - 1]) != NULL)
        token[--size] = '\0';
    for (size_t i = 0; i < size; i++)
        if (token[i] <= ' ' || token[i] >= 0x7F)
            return false;
    return size > 0;
}

static int set_authorization(struct mu__kubernetes_access *access, const char *origin,
                             mu_error *ret_error)
{
    char *token = access->tls.token.text;
    size_t size;

    if (!trim_token(token))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%.300s: expected a token: one line of printable characters",
                            origin);
    if (strncmp(access->server, "https://", 8) != 0 &&
        !mu__is_loopback_url(access->server)) /* http would send it in the clear */
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%.300s: expected a server with https for a token, got one "
                            "with http",
                            origin);
    size = sizeof "Authorization: Bearer " + strlen(token);
    access->authorization = malloc(size);
    if (access->authorization == NULL)
        return access_no_memory(ret_error);
    (void)snprintf(access->authorization, size, "Authorization: Bearer %s", token);
    return 0;
}

/* Run the setting token_command for a token, where none was set. */
static int load_printed(const struct mu__pass *pass, unsigned again, mu_error *ret_error,
                        struct mu__kubernetes_access *access)
{
    const char *command = mu__setting(pass, MU__KUBE_SET_TOKEN_COMMAND);
    struct mu__kube_content *token = &access->tls.token;
    char *printed;
    int rv;

    if (command == NULL || mu__setting(pass, MU__KUBE_SET_TOKEN) != NULL ||
        mu__setting(pass, MU__KUBE_SET_TOKEN_FILE) != NULL)
        return 0;
    access->token_is_new = true;
    rv = mu__token_command(pass->requests, command, again, ret_error, &printed);
    if (rv != 0)
        return rv;
    *token = (struct mu__kube_content){.text = printed};
    return set_authorization(access, "setting token_command", ret_error);
}

static int load_token(struct mu__requests *requests, unsigned again, mu_error *ret_error,
                      struct mu__kubernetes_access *access)
{
    struct mu__kube_content *token = &access->tls.token;
    char origin[320] = "the token";
    int rv = 0;

    if (token->path != NULL) {
        (void)snprintf(origin, sizeof origin, "token %.300s", token->path);
        access->token_is_new = true;
        rv = read_access_file(requests, token->path, "the token", again, ret_error,
                              &token->text);
    }
    if (rv != 0 || token->text == NULL)
        return rv;
    return set_authorization(access, origin, ret_error);
}

/* ---- From within ---- */

static int service_url(struct mu__requests *requests, mu_error *ret_error,
                       char **ret_server)
{
    const char *host = mu__request_variable(requests, "KUBERNETES_SERVICE_HOST");
    const char *port = mu__request_variable(requests, "KUBERNETES_SERVICE_PORT");
    bool is_v6 = host != NULL && strchr(host, ':') != NULL;
    char url[320];
    int size;

    if (host == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "KUBERNETES_SERVICE_HOST is not set; expected it in a pod "
                            "(executable_location=off_cluster uses kubeconfig)");
    size = snprintf(url, sizeof url, "https://%s%s%s:%s", is_v6 ? "[" : "", host,
                    is_v6 ? "]" : "", port == NULL ? "443" : port);
    if (size < 0 || (size_t)size >= sizeof url || strpbrk(url + 8, "/?#@ ") != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT: expected "
                            "an address and a port");
    *ret_server = strdup(url);
    return *ret_server == NULL ? access_no_memory(ret_error) : 0;
}

/* The pod's namespace. A pod may have no service account, and then has no such file. */
static int own_name_space(struct mu__requests *requests, mu_error *ret_error,
                          char **ret_name)
{
    mu_error inner;
    int rv = read_access_file(requests, ACCOUNT "/namespace", "the namespace", 0, &inner,
                              ret_name);

    if (rv == -MU_ENOTFOUND)
        return 0;
    if (rv != 0)
        return mu_error_set(ret_error, rv, "%s", inner.message);
    (*ret_name)[strcspn(*ret_name, " \t\r\n")] = '\0';
    return 0;
}

static int from_within(struct mu__requests *requests, mu_error *ret_error,
                       struct mu__kubernetes_access *access)
{
    int rv = service_url(requests, ret_error, &access->server);

    if (rv == 0)
        rv = set_content(&access->tls.ca, ACCOUNT "/ca.crt", NULL, ret_error);
    if (rv == 0)
        rv = set_content(&access->tls.token, ACCOUNT "/token", NULL, ret_error);
    return rv == 0 ? own_name_space(requests, ret_error, &access->name_space) : rv;
}

/* ---- From outside ---- */

static void tree_free(void *tree)
{
    cJSON_Delete(tree);
}

/* One kubeconfig file, parsed once. *ret_root NULL: there is no such
 * file. */
static int read_kubeconfig(struct mu__requests *requests, const char *path,
                           mu_error *ret_error, const cJSON **ret_root)
{
    const struct mu__request request = {
        .kind = MU__REQUEST_FILE, .name = path, .bytes_max = KUBECONFIG_BYTES_MAX};
    const struct mu__answer *answer = mu__requests_get(requests, &request);
    cJSON *root;
    int rv;

    *ret_root = NULL;
    if (answer->code == -MU_ENOTFOUND)
        return 0;
    rv = mu__answer_check(answer, "kubeconfig", ret_error);
    if (rv == 0 && answer->parsed == NULL) {
        rv = mu__kubeconfig_parse(answer->data, answer->size, path, ret_error, &root);
        if (rv == 0)
            mu__answer_set_parsed(answer, root, tree_free);
    }
    if (rv != 0)
        return rv;
    *ret_root = answer->parsed;
    return 0;
}

static int no_files(const char *paths, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "kubeconfig: %.300s is not there; expected a kubeconfig file "
                        "(KUBECONFIG or the setting kubeconfig names one), or this "
                        "process in a pod",
                        paths);
}

/* `paths` is cut at its colons. */
static int find_in_files(const struct mu__pass *pass, char *paths, mu_error *ret_error,
                         struct mu__kube_access *ret_access)
{
    struct mu__kubeconfig_file files[MU__KUBECONFIG_FILES_MAX];
    char *rest = paths;
    size_t count = 0;

    for (char *path = paths; rest != NULL; path = rest) {
        const cJSON *root = NULL;
        int rv;

        rest = strchr(path, ':');
        if (rest != NULL)
            *rest++ = '\0';
        if (path[0] == '\0')
            continue;
        if (count == MU__KUBECONFIG_FILES_MAX)
            return mu_error_set(ret_error, -MU_EEXHAUSTED,
                                "KUBECONFIG: expected at most %d files",
                                (int)MU__KUBECONFIG_FILES_MAX);
        rv = read_kubeconfig(pass->requests, path, ret_error, &root);
        if (rv != 0)
            return rv;
        if (root != NULL)
            files[count++] = (struct mu__kubeconfig_file){path, root};
    }
    if (count == 0)
        return no_files(paths, ret_error);
    return mu__kubeconfig_find(files, count, mu__setting(pass, MU__KUBE_SET_CONTEXT),
                               mu__setting(pass, MU__KUBE_SET_TOKEN) == NULL &&
                                   mu__setting(pass, MU__KUBE_SET_TOKEN_FILE) == NULL &&
                                   mu__setting(pass, MU__KUBE_SET_TOKEN_COMMAND) == NULL,
                               ret_error, ret_access);
}

/* The setting, KUBECONFIG, or the file in the home folder. The caller frees. */
static int kubeconfig_paths(const struct mu__pass *pass, mu_error *ret_error,
                            char **ret_paths)
{
    const char *paths = mu__setting(pass, MU__KUBE_SET_KUBECONFIG);
    const char *home = mu__request_variable(pass->requests, "HOME");
    char own[512];

    if (paths == NULL)
        paths = mu__request_variable(pass->requests, "KUBECONFIG");
    if (paths == NULL && home == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "neither KUBECONFIG nor HOME is set; expected a kubeconfig "
                            "file, or this process in a pod");
    if (paths == NULL) {
        (void)snprintf(own, sizeof own, "%.480s/.kube/config", home);
        paths = own;
    }
    *ret_paths = strdup(paths);
    return *ret_paths == NULL ? access_no_memory(ret_error) : 0;
}

static int from_kubeconfig(const struct mu__pass *pass, mu_error *ret_error,
                           struct mu__kubernetes_access *access)
{
    char *paths = NULL;
    int rv = kubeconfig_paths(pass, ret_error, &paths);

    if (rv == 0)
        rv = find_in_files(pass, paths, ret_error, &access->tls);
    free(paths);
    if (rv != 0)
        return rv;
    access->server = access->tls.server;
    access->name_space = access->tls.name_space;
    access->tls.server = NULL;
    access->tls.name_space = NULL;
    return 0;
}

/* ---- All of it ---- */

static int set_server(const char *server, mu_error *ret_error,
                      struct mu__kubernetes_access *access)
{
    size_t size = strlen(server);
    char *copy;

    if ((strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0) ||
        strpbrk(server, "?# @") != NULL)
        return mu__refuse(
            ret_error, server, strchr(server, '@') == NULL ? size : 0,
            "api_server: expected a url, \"https://host:port\" without user and query");
    copy = strdup(server);
    if (copy == NULL)
        return access_no_memory(ret_error);
    while (size > 0 && copy[size - 1] == '/')
        copy[--size] = '\0';
    free(access->server);
    access->server = copy;
    return 0;
}

/* Settings replace what was found. */
static int apply_access_settings(const struct mu__pass *pass, mu_error *ret_error,
                                 struct mu__kubernetes_access *access)
{
    const char *server = mu__setting(pass, MU__KUBE_SET_API_SERVER);
    const char *ca_file = mu__setting(pass, MU__KUBE_SET_CA_FILE);
    const char *token_file = mu__setting(pass, MU__KUBE_SET_TOKEN_FILE);
    const char *set_token = mu__setting(pass, MU__KUBE_SET_TOKEN);
    struct mu__kube_content *token = &access->tls.token;
    int rv = 0;

    if (mu__setting(pass, MU__KUBE_SET_TOKEN_COMMAND) != NULL) {
        free(token->text);
        free(token->path);
        *token = (struct mu__kube_content){0};
    }
    if (server != NULL)
        rv = set_server(server, ret_error, access);
    if (rv == 0 && ca_file != NULL)
        rv = set_content(&access->tls.ca, ca_file, NULL, ret_error);
    if (rv == 0 && token_file != NULL)
        rv = set_content(token, token_file, NULL, ret_error);
    if (rv == 0 && set_token != NULL)
        rv = set_content(token, NULL, set_token, ret_error);
    return rv;
}

static int load_all(struct mu__requests *requests, unsigned again, mu_error *ret_error,
                    struct mu__kubernetes_access *access)
{
    int rvs[] = {
        load_access_file(requests, &access->tls.ca, "the API's certificate authority",
                         ret_error),
        load_access_file(requests, &access->tls.certificate, "the client's certificate",
                         ret_error),
        load_access_file(requests, &access->tls.key, "the client's key", ret_error),
        load_token(requests, again, ret_error, access),
    };

    for (size_t i = sizeof rvs / sizeof rvs[0]; i > 0; i--)
        if (rvs[i - 1] != 0) /* the last one's words are in *ret_error */
            return rvs[i - 1];
    return 0;
}

int mu__kubernetes_access(const struct mu__pass *pass, unsigned again,
                          mu_error *ret_error, struct mu__kubernetes_access *ret_access)
{
    struct mu__kubernetes_access access = {0};
    int rv = mu__kubernetes_is_within(pass, ret_error, &access.within);

    if (strcmp(mu__setting(pass, MU__KUBE_SET_LOCATION), "auto") == 0 &&
        (mu__setting(pass, MU__KUBE_SET_KUBECONFIG) != NULL ||
         mu__setting(pass, MU__KUBE_SET_CONTEXT) != NULL))
        access.within = false; /* a kubeconfig that is set counts in a pod, too */
    if (rv == 0 && access.within)
        rv = from_within(pass->requests, ret_error, &access);
    else if (rv == 0 && mu__setting(pass, MU__KUBE_SET_API_SERVER) == NULL)
        rv = from_kubeconfig(pass, ret_error, &access);
    if (rv == 0)
        rv = apply_access_settings(pass, ret_error, &access);
    if (rv == 0)
        rv = load_all(pass->requests, again, ret_error, &access);
    if (rv == 0)
        rv = load_printed(pass, again, ret_error, &access);
    if (rv != 0)
        mu__kubernetes_access_done(&access);
    else
        *ret_access = access;
    return rv;
}

void mu__kubernetes_access_done(struct mu__kubernetes_access *access)
{
    volatile char *at = access->authorization;

    while (at != NULL && *at != '\0')
        *at++ = '\0';
    free(access->authorization);
    free(access->server);
    free(access->name_space);
    mu__kube_access_done(&access->tls);
    *access = (struct mu__kubernetes_access){0};
}
