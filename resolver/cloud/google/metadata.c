#include "resolver/cloud/google/metadata.h"

#include "runtime/base/build.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METADATA_HOST "metadata.google.internal"
#define FLAVOR "Metadata-Flavor"
#define NAME_CHARACTERS \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:"

enum {
    METADATA_TRIES = 6,
    METADATA_TIMEOUT_MS = 3000,
    PROBE_TIMEOUT_MS = 1000,
    METADATA_BYTES_MAX = 256 << 10,
    CA_BYTES_MAX = 1 << 20
};

void mu__google_init(const struct mu__pass *pass, unsigned first,
                     struct mu__google *ret_google)
{
    *ret_google = (struct mu__google){
        .pass = pass,
        .credentials = mu__setting(pass, first),
        .access_token = mu__setting(pass, first + 1),
        .access_token_file = mu__setting(pass, first + 2),
        .token_command = mu__setting(pass, first + 3),
        .ca_file = mu__setting(pass, first + 4),
    };
}

/* ---- Metadata ---- */

static int check_metadata_host(const char *host, mu_error *ret_error)
{
    if (strlen(host) < 256 && host[strspn(host, NAME_CHARACTERS "[]")] == '\0')
        return 0;
    return mu__refuse(ret_error, host, strlen(host),
                      "GCE_METADATA_HOST or GCE_METADATA_IP: expected HOST or HOST:PORT");
}

static int check_metadata(const struct mu__answer *answer, const char *host,
                          const char *path, mu_error *ret_error)
{
    char what[512];

    (void)snprintf(what, sizeof what, "metadata server %.255s: %.100s", host, path);
    if (answer->code == 0 && strcmp(answer->header, "Google") != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: the answer lacks the header \"" FLAVOR
                            ": Google\": something else answers there",
                            what);
    return mu__answer_check(answer, what, ret_error);
}

/* The answer, when it is from a metadata server and has status 200. */
static int request_metadata(struct mu__requests *requests, const char *path, bool probes,
                            unsigned again, mu_error *ret_error,
                            const struct mu__answer **ret_answer)
{
    static const char *const headers[] = {FLAVOR ": Google", NULL};
    const char *host = mu__google_metadata_host(requests);
    const struct mu__answer *answer;
    char url[512];
    int rv;

    host = host == NULL ? METADATA_HOST : host;
    rv = check_metadata_host(host, ret_error);
    if (rv != 0)
        return rv;
    (void)snprintf(url, sizeof url, "http://%s/computeMetadata/v1/%.200s", host, path);
    answer = mu__requests_get(requests, &(struct mu__request){
                                            .kind = MU__REQUEST_HTTP,
                                            .name = url,
                                            .again = again,
                                            .headers = headers,
                                            .header = FLAVOR,
                                            .timeout_ms = probes ? PROBE_TIMEOUT_MS
                                                                 : METADATA_TIMEOUT_MS,
                                            .tries = probes ? 1 : METADATA_TRIES,
                                            .bytes_max = METADATA_BYTES_MAX,
                                        });
    rv = check_metadata(answer, host, path, ret_error);
    if (rv == 0)
        *ret_answer = answer;
    return rv;
}

static bool is_metadata_blank(char c)
{
    return c > 0 && c <= ' ';
}

/* Keep the answer's text without blanks at its ends, as what was parsed of it. */
static int trim_metadata(const struct mu__answer *answer, mu_error *ret_error)
{
    const char *from = answer->data;
    size_t size;
    char *text;

    while (is_metadata_blank(*from))
        from++;
    size = strlen(from);
    while (size > 0 && is_metadata_blank(from[size - 1]))
        size--;
    text = strndup(from, size);
    if (text != NULL)
        mu__answer_set_parsed(answer, text, free);
    if (answer->parsed == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    return 0;
}

int mu__google_metadata(struct mu__requests *requests, const char *path, bool probes,
                        mu_error *ret_error, const char **ret_text)
{
    const struct mu__answer *answer;
    int rv = request_metadata(requests, path, probes, 0, ret_error, &answer);

    if (rv == 0 && answer->parsed == NULL)
        rv = trim_metadata(answer, ret_error);
    if (rv == 0)
        *ret_text = answer->parsed;
    return rv;
}

int mu__google_metadata_json(struct mu__requests *requests, const char *path,
                             unsigned again, mu_error *ret_error, const cJSON **ret_root)
{
    const struct mu__answer *answer;
    int rv = request_metadata(requests, path, false, again, ret_error, &answer);

    return rv != 0 ? rv : mu__google_json(answer, path, ret_error, ret_root);
}

/* ---- Names ---- */

int mu__google_name_check(const char *what, const char *name, mu_error *ret_error)
{
    if (name[0] != '\0' && strlen(name) < MU__GOOGLE_NAME_BYTES &&
        name[strspn(name, NAME_CHARACTERS)] == '\0')
        return 0;
    return mu__refuse(
        ret_error, name, strlen(name),
        "%s: expected a name of letters, digits and -._: alone, with at most %d bytes",
        what, MU__GOOGLE_NAME_BYTES - 1);
}

static int take_google_name(const char *what, const char *name, mu_error *ret_error,
                            char *ret_name)
{
    int rv = mu__google_name_check(what, name, ret_error);

    if (rv == 0)
        (void)snprintf(ret_name, MU__GOOGLE_NAME_BYTES, "%s", name);
    return rv;
}

/* Used if neither setting nor variable has a value; `name` is the setting, `path` the
 * entry of the metadata. */
static int request_name_metadata(const struct mu__google *google, const char *name,
                                 const char *path, mu_error *ret_error,
                                 const char **ret_text)
{
    mu_error inner;
    int rv = mu__google_here(google->pass->requests, &inner);

    if (rv == 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "resolver %s: the %s is not known: set \"%s\"; %s",
                            google->pass->settings->resolver, name, name, inner.message);
    if (rv == 1)
        rv = mu__google_metadata(google->pass->requests, path, false, &inner, ret_text);
    if (rv < 0)
        return mu_error_set(ret_error, rv, "resolver %s: the %s is not known: %s",
                            google->pass->settings->resolver, name, inner.message);
    return rv;
}

int mu__google_project(const struct mu__google *google, const char *given,
                       mu_error *ret_error, char *ret_name)
{
    const char *name = given;
    int rv;

    if (name != NULL && name[0] != '\0')
        return take_google_name("setting project", name, ret_error, ret_name);
    name = mu__request_variable(google->pass->requests, "GOOGLE_CLOUD_PROJECT");
    if (name != NULL)
        return take_google_name("GOOGLE_CLOUD_PROJECT", name, ret_error, ret_name);
    rv = request_name_metadata(google, "project", "project/project-id", ret_error, &name);
    return rv != 0 ? rv
                   : take_google_name("metadata project/project-id", name, ret_error,
                                      ret_name);
}

/* The entry of the metadata is "projects/123/zones/europe-west4-a". */
int mu__google_zone(const struct mu__google *google, const char *given,
                    mu_error *ret_error, char *ret_name)
{
    const char *name = given;
    int rv;

    if (name != NULL && name[0] != '\0')
        return take_google_name("setting zone", name, ret_error, ret_name);
    rv = request_name_metadata(google, "zone", "instance/zone", ret_error, &name);
    if (rv != 0)
        return rv;
    name = strrchr(name, '/') == NULL ? name : strrchr(name, '/') + 1;
    return take_google_name("metadata instance/zone", name, ret_error, ret_name);
}

/* ---- Requests ---- */

bool mu__google_url_has_user(const char *url)
{
    const char *host = strstr(url, "://");

    host = host == NULL ? url : host + 3;
    return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

int mu__google_endpoint(const struct mu__google *google, const char *url,
                        mu_error *ret_error, char *ret_base, size_t size)
{
    bool has_user = mu__google_url_has_user(url);
    char shown[MU__QUOTE_BYTES];
    size_t length = strlen(url);

    while (length > 0 && url[length - 1] == '/')
        length--;
    if (length < size && !has_user && strpbrk(url, " \t\r\n\\") == NULL &&
        ((strncmp(url, "https://", 8) == 0 && length > 8) || mu__is_loopback_url(url))) {
        memcpy(ret_base, url, length);
        ret_base[length] = '\0';
        return 0;
    }
    mu__quote(shown, sizeof shown, url, strcspn(url, "?#"));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "resolver %s: expected a url that begins with https://, since a "
                        "token is sent there, got %s",
                        google->pass->settings->resolver,
                        has_user ? "one with a user" : shown);
}

int mu__google_tls(const struct mu__google *google, mu_error *ret_error,
                   struct mu__request_tls *ret_tls)
{
    const struct mu__answer *answer;

    *ret_tls = (struct mu__request_tls){0};
    if (google->ca_file == NULL || google->ca_file[0] == '\0')
        return 0;
    answer = mu__requests_get(google->pass->requests,
                              &(struct mu__request){.kind = MU__REQUEST_FILE,
                                                    .name = google->ca_file,
                                                    .bytes_max = CA_BYTES_MAX});
    if (answer->code == 0)
        ret_tls->ca = answer->data;
    return mu__answer_check(answer, "setting ca_file", ret_error);
}

/* Certificates and headers of one request. */
struct sent {
    struct mu__request_tls tls;
    struct mu__build bearer;
    char charged[MU__GOOGLE_NAME_BYTES + 32];
};

static int prepare_google_headers(const struct mu__google *google, unsigned again,
                                  mu_error *ret_error, struct sent *sent)
{
    char project[MU__GOOGLE_NAME_BYTES];
    char *token = NULL;
    int rv = mu__google_tls(google, ret_error, &sent->tls);

    if (rv == 0)
        rv = mu__google_quota_project(google, ret_error, project);
    if (rv == 0)
        rv = mu__google_token(google, again, ret_error, &token);
    if (rv != 0)
        return rv;
    if (project[0] != '\0')
        (void)snprintf(sent->charged, sizeof sent->charged, "X-Goog-User-Project: %s",
                       project);
    if (token[0] != '\0') {
        mu__build_add(&sent->bearer, "Authorization: Bearer ");
        mu__build_add(&sent->bearer, token);
    }
    mu__google_token_free(token);
    if (sent->bearer.failed)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    return 0;
}

/* One try, with the token number `again`. */
static int request_google_once(const struct mu__google *google,
                               const struct mu__google_request *request, unsigned again,
                               mu_error *ret_error, const struct mu__answer **ret_answer)
{
    const char *headers[5] = {"Accept: application/json"};
    struct sent sent = {0};
    int count = 1;
    int rv = prepare_google_headers(google, again, ret_error, &sent);

    if (sent.bearer.size > 0)
        headers[count++] = sent.bearer.text;
    if (sent.charged[0] != '\0')
        headers[count++] = sent.charged;
    if (request->body != NULL)
        headers[count++] = "Content-Type: application/json";
    if (rv == 0)
        *ret_answer = mu__requests_get(
            google->pass->requests,
            &(struct mu__request){
                .kind = MU__REQUEST_HTTP,
                .name = request->url,
                .again = again,
                .method = request->method,
                .headers = headers,
                .body = request->body,
                .body_size = request->body == NULL ? 0 : strlen(request->body),
                .tls = sent.tls.ca == NULL ? NULL : &sent.tls,
                .uses_proxy = true,
                .tries = request->tries,
            });
    mu__build_done(&sent.bearer);
    return rv;
}

int mu__google_send(const struct mu__google *google,
                    const struct mu__google_request *request, mu_error *ret_error,
                    const cJSON **ret_root)
{
    const struct mu__answer *answer = NULL;
    unsigned own = 0;
    unsigned *refused = request->refused == NULL ? &own : request->refused;
    mu_error inner;
    int rv = request_google_once(google, request, *refused, &inner, &answer);

    if (rv == 0 && answer->code == 0 && answer->status == 401 && *refused == 0)
        rv = request_google_once(google, request, ++*refused, &inner, &answer);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "%s: %s", request->what, inner.message);
    rv = mu__answer_check(answer, request->what, ret_error);
    return rv != 0 ? rv : mu__google_json(answer, request->what, ret_error, ret_root);
}

/* ---- Answers ---- */

static void root_free(void *root)
{
    cJSON_Delete(root);
}

/* Parse the answer. The part of the parser's message that quotes the text is cut off. */
static int parse_google_json(const struct mu__answer *answer, const char *what,
                             mu_error *ret_error, cJSON **ret_root)
{
    mu_error inner;
    char *shown;
    int rv = mu__json_parse(answer->data, answer->size, "JSON", &inner, ret_root);

    if (rv == 0)
        return 0;
    shown = strstr(inner.message, ", got ");
    if (shown != NULL)
        *shown = '\0';
    return mu_error_set(ret_error, rv, "%s: %s", what, inner.message);
}

int mu__google_parse(const struct mu__answer *answer, const char *what,
                     mu_error *ret_error, const cJSON **ret_root)
{
    cJSON *root;
    int rv;

    if (answer->parsed == NULL) {
        rv = parse_google_json(answer, what, ret_error, &root);
        if (rv != 0)
            return rv;
        mu__answer_set_parsed(answer, root, root_free);
    }
    *ret_root = answer->parsed;
    return 0;
}

int mu__google_json(const struct mu__answer *answer, const char *what,
                    mu_error *ret_error, const cJSON **ret_root)
{
    const char *type = answer->content_type;

    if (answer->status != 0 && strcmp(type, "application/json") != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected an answer of type application/json, got %.64s",
                            what, type[0] == '\0' ? "none" : type);
    return mu__google_parse(answer, what, ret_error, ret_root);
}

int mu__google_text(const cJSON *object, const char *key, const char *what,
                    mu_error *ret_error, const char **ret_text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (item != NULL && !cJSON_IsString(item))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: %s: expected a text", what,
                            key);
    *ret_text = item == NULL ? NULL : item->valuestring;
    return 0;
}
