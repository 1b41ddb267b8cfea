/* Tokens for those who are known to somebody else (workload identity federation), and for
 * those who act as a service account.
 *
 * An external account's own token comes from a file, url or program, is given to Google's
 * security token service for one of Google's, and that, where the file says so, to the
 * service account's credentials service for one of the service account. */
#include "resolver/cloud/google/token.h"

#include "runtime/base/json.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADERS_MAX = 8,  /* that a url is asked with */
    LIFE_MIN_S = 600, /* of a service account's token */
    LIFE_MAX_S = 43200,
    DELEGATES_MAX = 16
};

/* ---- Acting as a service account ---- */

/* {"scope": [...], "lifetime": "3600s", "delegates": [...]} */
static int build_wish(const struct mu__google_file *file, const cJSON *delegates,
                      int life_s, mu_error *ret_error, struct mu__build *body)
{
    const cJSON *item = cJSON_IsArray(delegates) ? delegates->child : NULL;
    size_t count = 0;

    if (delegates != NULL && !cJSON_IsArray(delegates))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: delegates: expected a list",
                            file->what);
    mu__build_format(body, "{\"scope\":[\"%s\"],\"lifetime\":\"%ds\"", MU__GOOGLE_SCOPE,
                     life_s);
    if (item != NULL)
        mu__build_add(body, ",\"delegates\":[");
    for (; item != NULL; item = item->next) {
        if (!cJSON_IsString(item) || count == DELEGATES_MAX)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: delegates[%zu]: expected a text, and at most %d of "
                                "them",
                                file->what, count, DELEGATES_MAX);
        mu__build_add(body, count++ == 0 ? "" : ",");
        mu__build_json(body, item->valuestring);
    }
    mu__build_add(body, count > 0 ? "]}" : "}");
    return mu__build_whole(body) ? 0
                                 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

static int request_wish(const struct mu__google_file *file, const char *url,
                        const struct mu__build *body, const char *token,
                        mu_error *ret_error, const struct mu__answer **ret_answer)
{
    struct mu__build bearer = {0};
    const char *headers[] = {"Accept: application/json", "Content-Type: application/json",
                             NULL, NULL};
    struct mu__request_tls tls;
    int rv = mu__google_tls(file->google, ret_error, &tls);

    mu__build_add(&bearer, "Authorization: Bearer ");
    mu__build_add(&bearer, token);
    if (rv == 0 && !mu__build_whole(&bearer))
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    headers[2] = bearer.text;
    if (rv == 0) {
        *ret_answer = mu__requests_get(file->google->requests,
                                       &(struct mu__request){
                                           .kind = MU__REQUEST_HTTP,
                                           .name = url,
                                           .again = file->again,
                                           .method = "POST",
                                           .headers = headers,
                                           .body = body->text,
                                           .body_size = body->size,
                                           .bytes_max = MU__GOOGLE_FILE_BYTES,
                                           .tls = tls.ca == NULL ? NULL : &tls,
                                           .uses_proxy = true,
                                       });
        rv = *ret_answer == NULL ? MU__LATER : 0;
    }
    mu__build_done(&bearer);
    return rv;
}

/* Give `token` for one of the service account in the url; the answer is
 * {"accessToken": "...", "expireTime": "..."}. */
static int act_as(const struct mu__google_file *file, const char *url,
                  const struct mu__build *body, const char *token, mu_error *ret_error,
                  char **ret_token)
{
    const struct mu__answer *answer = NULL;
    const char *text = NULL;
    const cJSON *root;
    char what[360];
    int rv = request_wish(file, url, body, token, ret_error, &answer);

    if (rv != 0)
        return rv;
    (void)snprintf(what, sizeof what, "%.280s: service_account_impersonation_url",
                   file->what);
    rv = mu__answer_check(answer, what, ret_error);
    if (rv == 0)
        rv = mu__google_json(answer, what, ret_error, &root);
    if (rv == 0)
        rv = mu__google_text(root, "accessToken", what, ret_error, &text);
    if (rv != 0)
        return rv;
    if (text == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: accessToken is missing", what);
    return mu__google_token_take(what, text, ret_error, ret_token);
}

/* ---- Who somebody else says we are ---- */

/* What stands in the file or url: the token itself, or JSON with it. */
static int take_subject(const struct mu__google_file *file, const cJSON *format,
                        const struct mu__answer *answer, mu_error *ret_error,
                        char **ret_subject)
{
    const struct mu__google_file form = {.root = format, .what = file->what};
    const char *type = NULL;
    const char *field = NULL;
    const char *text = answer->data;
    const cJSON *root;
    int rv = mu__google_text(format, "type", file->what, ret_error, &type);

    if (rv != 0)
        return rv;
    if (type == NULL || strcmp(type, "text") == 0)
        return mu__google_token_take(file->what, text, ret_error, ret_subject);
    if (strcmp(type, "json") != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: format: type: expected \"text\" or \"json\"",
                            file->what);
    rv = mu__google_member(&form, "subject_token_field_name", ret_error, &field);
    if (rv == 0)
        rv = mu__google_parse(answer, file->what, ret_error, &root);
    if (rv == 0)
        rv = mu__google_text(root, field, file->what, ret_error, &text);
    if (rv == 0 && text == NULL)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "%s: %.80s is missing in what is there", file->what, field);
    return rv != 0 ? rv : mu__google_token_take(file->what, text, ret_error, ret_subject);
}

/* A secret is sent to https alone, or to this machine. */
static int check_secrets(const struct mu__google_file *file, const cJSON *headers,
                         const char *url, mu_error *ret_error)
{
    if (cJSON_GetObjectItem(headers, "Authorization") == NULL ||
        strncmp(url, "https://", 8) == 0 || mu__is_loopback_url(url))
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: url: expected one that begins with https://, since the "
                        "header Authorization is sent there",
                        file->what);
}

/* "Name: value" of each member of an object. */
static int build_headers(const struct mu__google_file *file, const cJSON *object,
                         mu_error *ret_error, struct mu__build *lines, size_t *ret_count)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_";
    size_t count = 0;

    for (const cJSON *item = object == NULL ? NULL : object->child; item != NULL;
         item = item->next) {
        const char *value = cJSON_IsString(item) ? item->valuestring : "\n";

        if (count == HEADERS_MAX || item->string[0] == '\0' ||
            item->string[strspn(item->string, letters)] != '\0' ||
            strpbrk(value, "\r\n") != NULL)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: headers: expected at most %d names of letters, "
                                "digits and -_ alone, each with a text of one line",
                                file->what, HEADERS_MAX);
        mu__build_format(&lines[count++], "%s: %s", item->string, value);
        if (!mu__build_whole(&lines[count - 1]))
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    *ret_count = count;
    return 0;
}

/* Machines of other clouds ask an address of their own network, without TLS. */
static int check_url(const struct mu__google_file *file, const char *url,
                     mu_error *ret_error)
{
    bool is_web = strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;

    if (is_web && !mu__google_url_has_user(url) && strpbrk(url, " \t\r\n\\") == NULL)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: url: expected one that begins with https:// or http://, "
                        "without a user",
                        file->what);
}

static int request_url(const struct mu__google_file *file, const char *url,
                       mu_error *ret_error, const struct mu__answer **ret_answer)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(file->root, "headers");
    struct mu__build lines[HEADERS_MAX] = {{0}};
    const char *headers[HEADERS_MAX + 1] = {NULL};
    struct mu__request_tls tls;
    size_t count = 0;
    int rv = check_url(file, url, ret_error);

    if (rv == 0)
        rv = mu__google_tls(file->google, ret_error, &tls);
    if (rv == 0)
        rv = check_secrets(file, object, url, ret_error);
    if (rv == 0)
        rv = build_headers(file, object, ret_error, lines, &count);
    for (size_t i = 0; i < count; i++)
        headers[i] = lines[i].text;
    if (rv == 0) {
        *ret_answer = mu__requests_get(file->google->requests,
                                       &(struct mu__request){
                                           .kind = MU__REQUEST_HTTP,
                                           .name = url,
                                           .again = file->again,
                                           .headers = headers,
                                           .bytes_max = MU__GOOGLE_FILE_BYTES,
                                           .tls = tls.ca == NULL ? NULL : &tls,
                                           .uses_proxy = strncmp(url, "https://", 8) == 0,
                                       });
        rv = *ret_answer == NULL ? MU__LATER : 0;
    }
    for (size_t i = 0; i < HEADERS_MAX; i++)
        mu__build_done(&lines[i]);
    return rv;
}

/* {"file": PATH} or {"url": URL, "headers": {...}}, each with a format; or {"executable":
 * {...}}. */
static int find_subject(const struct mu__google_file *account,
                        const struct mu__google_file *source, mu_error *ret_error,
                        char **ret_subject)
{
    bool runs = cJSON_GetObjectItemCaseSensitive(source->root, "executable") != NULL;
    const struct mu__answer *answer = NULL;
    const char *path = NULL;
    const char *url = NULL;
    int rv = mu__google_text(source->root, "file", source->what, ret_error, &path);

    if (rv == 0)
        rv = mu__google_text(source->root, "url", source->what, ret_error, &url);
    if (rv != 0)
        return rv;
    if ((path != NULL) + (url != NULL) + runs != 1)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected one of \"file\", \"url\" and \"executable\"",
                            source->what);
    if (runs)
        return mu__google_executable(account, source, ret_error, ret_subject);
    if (url != NULL) {
        rv = request_url(source, url, ret_error, &answer);
    } else {
        answer =
            mu__requests_get(source->google->requests,
                             &(struct mu__request){.kind = MU__REQUEST_FILE,
                                                   .name = path,
                                                   .again = source->again,
                                                   .bytes_max = MU__GOOGLE_FILE_BYTES});
        rv = answer == NULL ? MU__LATER : 0;
    }
    if (rv == 0)
        rv = mu__answer_check(answer, source->what, ret_error);
    return rv != 0
               ? rv
               : take_subject(source,
                              cJSON_GetObjectItemCaseSensitive(source->root, "format"),
                              answer, ret_error, ret_subject);
}

/* Sources that would need more than a file, a request or a program. */
static int check_source(const struct mu__google_file *file,
                        const struct mu__google_file *source, mu_error *ret_error)
{
    static const struct {
        const char *key;
        const char *words;
    } refused[] = {{"environment_id", "sources of AWS"},
                   {"certificate", "certificates"}};

    if (!cJSON_IsObject(source->root))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected an object",
                            source->what);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (cJSON_GetObjectItemCaseSensitive(source->root, refused[i].key) != NULL)
            return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                                "%s: %s: %s are not supported: expected \"file\", "
                                "\"url\" or \"executable\"",
                                source->what, refused[i].key, refused[i].words);
    if (cJSON_GetObjectItemCaseSensitive(file->root, "client_id") != NULL)
        return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                            "%s: client_id: accounts with a client's secret are not "
                            "supported",
                            file->what);
    return 0;
}

/* ---- One of Google's for it ---- */

/* {"userProject": "p"}, escaped once as it is JSON and once as part of the form. */
static void add_options(const char *project, struct mu__build *form)
{
    struct mu__build json = {0};
    struct mu__build escaped = {0};

    mu__build_add(&json, "{\"userProject\": ");
    mu__build_json(&json, project);
    mu__build_add(&json, "}");
    if (mu__build_whole(&json))
        mu__build_escaped(&escaped, json.text);
    mu__build_add(form, "&options=");
    if (mu__build_whole(&escaped) && !json.failed)
        mu__build_escaped(form, escaped.text);
    else
        form->failed = true;
    mu__build_done(&escaped);
    mu__build_done(&json);
}

static int build_form(const struct mu__google_file *file, const char *subject,
                      mu_error *ret_error, struct mu__build *form)
{
    const char *audience = NULL;
    const char *type = NULL;
    const char *project = NULL;
    int rv = mu__google_member(file, "audience", ret_error, &audience);

    if (rv == 0)
        rv = mu__google_member(file, "subject_token_type", ret_error, &type);
    if (rv == 0)
        rv = mu__google_text(file->root, "workforce_pool_user_project", file->what,
                             ret_error, &project);
    if (rv != 0)
        return rv;
    mu__build_add(form, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3A"
                        "token-exchange&audience=");
    mu__build_escaped(form, audience);
    mu__build_add(form, "&scope=");
    mu__build_escaped(form, MU__GOOGLE_SCOPE);
    mu__build_add(form, "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3A"
                        "token-type%3Aaccess_token&subject_token=");
    mu__build_escaped(form, subject);
    mu__build_add(form, "&subject_token_type=");
    mu__build_escaped(form, type);
    if (project != NULL && project[0] != '\0')
        add_options(project, form);
    return mu__build_whole(form) ? 0
                                 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

static int exchange(const struct mu__google_file *file, mu_error *ret_error,
                    char **ret_token)
{
    struct mu__google_file source = *file;
    struct mu__build form = {0};
    char url[MU__GOOGLE_URL_BYTES];
    char *subject = NULL;
    char what[320];
    int rv = mu__google_member_url(file, "token_url", NULL, ret_error, url);

    (void)snprintf(what, sizeof what, "%.280s: credential_source", file->what);
    source.root = cJSON_GetObjectItemCaseSensitive(file->root, "credential_source");
    source.what = what;
    if (rv == 0)
        rv = check_source(file, &source, ret_error);
    if (rv == 0)
        rv = find_subject(file, &source, ret_error, &subject);
    if (rv == 0)
        rv = build_form(file, subject, ret_error, &form);
    if (rv == 0)
        rv = mu__google_exchange(file, url, &form, ret_error, ret_token);
    mu__google_token_free(subject);
    mu__build_done(&form);
    return rv;
}

/* {"token_lifetime_seconds": 3600} */
static int read_life(const struct mu__google_file *file, mu_error *ret_error, int *ret_s)
{
    const cJSON *options =
        cJSON_GetObjectItemCaseSensitive(file->root, "service_account_impersonation");
    const cJSON *item =
        cJSON_GetObjectItemCaseSensitive(options, "token_lifetime_seconds");
    int life_s = MU__GOOGLE_LIFE_S;

    if (item != NULL && (mu__json_index(item, &life_s) != 0 || life_s < LIFE_MIN_S ||
                         life_s > LIFE_MAX_S))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: token_lifetime_seconds: expected a number of %d to %d",
                            file->what, LIFE_MIN_S, LIFE_MAX_S);
    *ret_s = life_s;
    return 0;
}

int mu__google_external(const struct mu__google_file *file, mu_error *ret_error,
                        char **ret_token)
{
    static const char key[] = "service_account_impersonation_url";
    struct mu__build body = {0};
    char url[MU__GOOGLE_URL_BYTES];
    char *token = NULL;
    int life_s = 0;
    int rv;

    if (cJSON_GetObjectItemCaseSensitive(file->root, key) == NULL)
        return exchange(file, ret_error, ret_token);
    rv = mu__google_member_url(file, key, NULL, ret_error, url);
    if (rv == 0)
        rv = read_life(file, ret_error, &life_s);
    if (rv == 0)
        rv = build_wish(file, NULL, life_s, ret_error, &body);
    if (rv == 0)
        rv = exchange(file, ret_error, &token);
    if (rv == 0)
        rv = act_as(file, url, &body, token, ret_error, ret_token);
    mu__google_token_free(token);
    mu__build_done(&body);
    return rv;
}

/* ---- A file that says as whom to act ---- */

int mu__google_impersonated(const struct mu__google_file *file, mu_error *ret_error,
                            char **ret_token)
{
    struct mu__google_file source = *file;
    struct mu__build body = {0};
    char url[MU__GOOGLE_URL_BYTES];
    char *token = NULL;
    char what[320];
    int rv = mu__google_member_url(file, "service_account_impersonation_url", NULL,
                                   ret_error, url);

    (void)snprintf(what, sizeof what, "%.280s: source_credentials", file->what);
    source.root = cJSON_GetObjectItemCaseSensitive(file->root, "source_credentials");
    source.what = what;
    source.is_inner = true;
    if (rv == 0 && (file->is_inner || !cJSON_IsObject(source.root)))
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "%s: expected credentials that act as nobody else",
                          file->is_inner ? file->what : what);
    if (rv == 0)
        rv = build_wish(file, cJSON_GetObjectItemCaseSensitive(file->root, "delegates"),
                        MU__GOOGLE_LIFE_S, ret_error, &body);
    if (rv == 0)
        rv = mu__google_file_token(&source, ret_error, &token);
    if (rv == 0)
        rv = act_as(file, url, &body, token, ret_error, ret_token);
    mu__google_token_free(token);
    mu__build_done(&body);
    return rv;
}
