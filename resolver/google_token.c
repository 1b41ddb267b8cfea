/* Tokens for Google's APIs, from what a process or machine is given to show who it is. */
#include "resolver/build.h"
#include "resolver/google.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCOPE "https://www.googleapis.com/auth/cloud-platform"
#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define METADATA_TOKEN "instance/service-accounts/default/token"

enum {
    TOKEN_BYTES_MAX = 8192,
    FILE_BYTES_MAX = 64 << 10,
    LIFE_S = 3600,          /* of an assertion: the longest that is accepted */
    UNBROKEN_MAX = 24       /* letters without a blank: longer ones may be secrets */
};

/* ---- A token as text ---- */

void mu__google_token_free(char *token)
{
    struct mu__build build = {.text = token, .size = token == NULL ? 0 : strlen(token)};

    mu__build_done(&build);
}

/* What goes into a header has no blanks and no ends of lines. */
static int take_token(const char *source, const char *text, mu_error *ret_error,
                      char **ret_token)
{
    size_t size;
    char *token;

    text += strspn(text, " \t\r\n");
    size = strcspn(text, " \t\r\n");
    if (size == 0 || size > TOKEN_BYTES_MAX ||
        text[size + strspn(text + size, " \t\r\n")] != '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected a token: one word of at most %d bytes", source,
                            TOKEN_BYTES_MAX);
    for (size_t i = 0; i < size; i++)
        if (text[i] < '!' || text[i] > '~')
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: expected a token of printable ASCII: byte %zu is "
                                "another",
                                source, i + 1);
    token = strndup(text, size);
    if (token == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    *ret_token = token;
    return 0;
}

/* {"access_token": "...", "expires_in": 3599, "token_type": "Bearer"} */
static int read_token(const cJSON *root, const char *source, mu_error *ret_error,
                      char **ret_token)
{
    const char *token;
    const char *type;
    int rv = mu__google_text(root, "access_token", source, ret_error, &token);

    if (rv == 0)
        rv = mu__google_text(root, "token_type", source, ret_error, &type);
    if (rv != 0)
        return rv;
    if (token == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: access_token is missing",
                            source);
    if (type != NULL && strcmp(type, "Bearer") != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: token_type: expected \"Bearer\"", source);
    return take_token(source, token, ret_error, ret_token);
}

static int from_file(const struct mu__google *google, unsigned again, mu_error *ret_error,
                     char **ret_token)
{
    const struct mu__answer *answer =
        mu__ask(google->notes, &(struct mu__question){.kind = MU__ASK_FILE,
                                                      .name = google->access_token_file,
                                                      .again = again,
                                                      .bytes_max = FILE_BYTES_MAX});
    int rv;

    if (answer == NULL)
        return MU__LATER;
    rv = mu__answer_check(answer, "setting access_token_file", ret_error);
    return rv != 0 ? rv : take_token("setting access_token_file", answer->data, ret_error,
                                     ret_token);
}

static int from_metadata(const struct mu__google *google, unsigned again,
                         mu_error *ret_error, char **ret_token)
{
    const cJSON *root;
    mu_error inner;
    int rv = mu__google_here(google->notes, &inner);

    if (rv == MU__LATER)
        return rv;
    if (rv == 0)
        return mu_error_set(ret_error, -MU_EUNAUTHENTICATED,
                            "there are no credentials: neither a setting nor "
                            "GOOGLE_APPLICATION_CREDENTIALS nor a file of \"gcloud auth "
                            "application-default login\" says who we are, and %s",
                            inner.message);
    if (rv < 0)
        return mu_error_set(ret_error, rv, "%s", inner.message);
    rv = mu__google_metadata_json(google->notes, METADATA_TOKEN, again, ret_error, &root);
    return rv != 0 ? rv
                   : read_token(root, "metadata " METADATA_TOKEN, ret_error, ret_token);
}

/* ---- Exchanging ---- */

/* {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}: shown unless
 * it has words that could be what we have sent. */
static const char *described(const cJSON *root, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
    const char *text = cJSON_IsString(item) ? item->valuestring : "";

    if (strlen(text) > 160)
        return "";
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~' || strcspn(at, " ") > UNBROKEN_MAX)
            return "";
    }
    return text;
}

static int refused(const struct mu__answer *answer, const char *path, mu_error *ret_error)
{
    const cJSON *root = NULL;
    mu_error inner;
    int rv = mu__answer_check(answer, path, &inner);

    rv = answer->status == 400 ? -MU_EUNAUTHENTICATED : rv != 0 ? rv : -MU_EINVALID;
    (void)mu__google_json(answer, "", &inner, &root);
    return mu_error_set(ret_error, rv,
                        "credentials %.150s: the token server answers with status %d: %s "
                        "%s",
                        path, answer->status, described(root, "error"),
                        described(root, "error_description"));
}

/* POST a form to where tokens are given. */
static int exchange(const struct mu__google *google, const char *uri,
                    const struct mu__build *form, const char *path, unsigned again,
                    mu_error *ret_error, char **ret_token)
{
    static const char *const headers[] = {
        "Content-Type: application/x-www-form-urlencoded", "Accept: application/json",
        NULL};
    const struct mu__answer *answer;
    struct mu__ask_tls tls;
    const cJSON *root;
    char source[256];
    int rv = mu__google_tls(google, ret_error, &tls);

    if (rv != 0)
        return rv;
    answer = mu__ask(google->notes, &(struct mu__question){
                                        .kind = MU__ASK_HTTP,
                                        .name = uri,
                                        .again = again,
                                        .method = "POST",
                                        .headers = headers,
                                        .body = form->text,
                                        .body_size = form->size,
                                        .bytes_max = FILE_BYTES_MAX,
                                        .tls = tls.ca == NULL ? NULL : &tls,
                                        .takes_proxy = true,
                                    });
    if (answer == NULL)
        return MU__LATER;
    (void)snprintf(source, sizeof source, "credentials %.150s: token server", path);
    if (answer->code != 0 || answer->status / 100 == 3)
        return mu__answer_check(answer, source, ret_error);
    if (answer->status != 200)
        return refused(answer, path, ret_error);
    rv = mu__google_json(answer, source, ret_error, &root);
    return rv != 0 ? rv : read_token(root, source, ret_error, ret_token);
}

/* ---- Files of credentials ---- */

/* Members that must be there, or may be. */
struct credentials {
    const char *path;
    const char *token_uri;
    const char *client_email;
    const char *private_key;
    const char *private_key_id;
    const char *client_id;
    const char *client_secret;
    const char *refresh_token;
};

static int missing(const struct credentials *c, const char *key, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "credentials %.200s: %s is missing",
                        c->path, key);
}

/* header.claims, which is what is signed. */
static int build_claims(const struct mu__google *google, const struct credentials *c,
                        unsigned again, mu_error *ret_error, struct mu__build *out)
{
    const struct mu__answer *clock = mu__ask(
        google->notes, &(struct mu__question){.kind = MU__ASK_CLOCK, .again = again});
    struct mu__build header = {0};
    struct mu__build claims = {0};
    int64_t now;
    bool whole;

    if (clock == NULL || clock->code != 0)
        return mu_error_set(ret_error, -MU_EINTERNAL, "the time is not known");
    now = strtoll(clock->data, NULL, 10);
    mu__build_add(&header, "{\"alg\":\"RS256\",\"typ\":\"JWT\"");
    if (c->private_key_id != NULL) {
        mu__build_add(&header, ",\"kid\":");
        mu__build_json(&header, c->private_key_id);
    }
    mu__build_add(&header, "}");
    mu__build_add(&claims, "{\"iss\":");
    mu__build_json(&claims, c->client_email);
    mu__build_add(&claims, ",\"scope\":\"" SCOPE "\",\"aud\":");
    mu__build_json(&claims, c->token_uri);
    mu__build_format(&claims, ",\"iat\":%" PRId64 ",\"exp\":%" PRId64 "}", now,
                     now + LIFE_S);
    whole = mu__build_whole(&header) && mu__build_whole(&claims);
    if (whole) {
        mu__build_base64url(out, header.text, header.size);
        mu__build_add(out, ".");
        mu__build_base64url(out, claims.text, claims.size);
        whole = mu__build_whole(out);
    }
    mu__build_done(&header);
    mu__build_done(&claims);
    return whole ? 0 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

/* Add the signature: header.claims.signature. */
static int sign(const struct mu__google *google, const struct credentials *c,
                mu_error *ret_error, struct mu__build *jwt)
{
    const struct mu__answer *signature =
        mu__ask(google->notes, &(struct mu__question){.kind = MU__ASK_SIGNATURE,
                                                      .name = "RS256",
                                                      .body = jwt->text,
                                                      .body_size = jwt->size,
                                                      .secret = c->private_key});
    char source[256];
    int rv;

    if (signature == NULL)
        return MU__LATER;
    (void)snprintf(source, sizeof source, "credentials %.200s", c->path);
    rv = mu__answer_check(signature, source, ret_error);
    if (rv != 0)
        return rv;
    mu__build_add(jwt, ".");
    mu__build_base64url(jwt, signature->data, signature->size);
    return mu__build_whole(jwt) ? 0
                                : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

/* A service account signs with its key that it is itself. */
static int from_service_account(const struct mu__google *google,
                                const struct credentials *c, unsigned again,
                                mu_error *ret_error, char **ret_token)
{
    struct mu__build form = {0};
    struct mu__build jwt = {0};
    int rv;

    if (c->client_email == NULL)
        return missing(c, "client_email", ret_error);
    if (c->private_key == NULL)
        return missing(c, "private_key", ret_error);
    rv = build_claims(google, c, again, ret_error, &jwt);
    if (rv == 0)
        rv = sign(google, c, ret_error, &jwt);
    if (rv == 0) {
        mu__build_add(&form, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3A"
                             "jwt-bearer&assertion=");
        mu__build_add(&form, jwt.text);
        rv = mu__build_whole(&form)
                 ? exchange(google, c->token_uri, &form, c->path, again, ret_error,
                            ret_token)
                 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    mu__build_done(&form);
    mu__build_done(&jwt);
    return rv;
}

/* A person's, as gcloud writes it. */
static int from_user(const struct mu__google *google, const struct credentials *c,
                     unsigned again, mu_error *ret_error, char **ret_token)
{
    const struct {
        const char *key;
        const char *text;
    } members[] = {{"client_id", c->client_id},
                   {"client_secret", c->client_secret},
                   {"refresh_token", c->refresh_token}};
    struct mu__build form = {0};
    int rv = 0;

    mu__build_add(&form, "grant_type=refresh_token");
    for (size_t i = 0; i < 3 && rv == 0; i++) {
        if (members[i].text == NULL) {
            rv = missing(c, members[i].key, ret_error);
            break;
        }
        mu__build_format(&form, "&%s=", members[i].key);
        mu__build_escaped(&form, members[i].text);
    }
    if (rv == 0 && !mu__build_whole(&form))
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    if (rv == 0)
        rv = exchange(google, c->token_uri, &form, c->path, again, ret_error, ret_token);
    mu__build_done(&form);
    return rv;
}

static int read_members(const cJSON *root, const char *what, mu_error *ret_error,
                        struct credentials *c)
{
    const struct {
        const char *key;
        const char **text;
    } members[] = {{"token_uri", &c->token_uri},
                   {"client_email", &c->client_email},
                   {"private_key", &c->private_key},
                   {"private_key_id", &c->private_key_id},
                   {"client_id", &c->client_id},
                   {"client_secret", &c->client_secret},
                   {"refresh_token", &c->refresh_token}};
    int rv = 0;

    for (size_t i = 0; i < sizeof members / sizeof members[0] && rv == 0; i++)
        rv = mu__google_text(root, members[i].key, what, ret_error, members[i].text);
    return rv;
}

static int from_json(const struct mu__google *google, const cJSON *root, const char *path,
                     unsigned again, mu_error *ret_error, char **ret_token)
{
    struct credentials c = {.path = path};
    const char *type = NULL;
    char what[256];
    char uri[512];
    int rv;

    (void)snprintf(what, sizeof what, "credentials %.200s", path);
    rv = mu__google_text(root, "type", what, ret_error, &type);
    if (rv == 0)
        rv = read_members(root, what, ret_error, &c);
    if (rv == 0)
        rv = mu__google_endpoint(google, c.token_uri == NULL ? TOKEN_URI : c.token_uri,
                                 ret_error, uri, sizeof uri);
    if (rv != 0)
        return rv;
    c.token_uri = uri;
    if (type != NULL && strcmp(type, "service_account") == 0)
        return from_service_account(google, &c, again, ret_error, ret_token);
    if (type != NULL && strcmp(type, "authorized_user") == 0)
        return from_user(google, &c, again, ret_error, ret_token);
    return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                        "%s: type: expected \"service_account\" or \"authorized_user\"",
                        what);
}

static int from_credentials(const struct mu__google *google,
                            const struct mu__answer *answer, const char *path,
                            unsigned again, mu_error *ret_error, char **ret_token)
{
    const cJSON *root;
    char what[256];
    int rv;

    (void)snprintf(what, sizeof what, "credentials %.200s", path);
    rv = mu__answer_check(answer, what, ret_error);
    if (rv == 0)
        rv = mu__google_json(answer, what, ret_error, &root);
    return rv != 0 ? rv : from_json(google, root, path, again, ret_error, ret_token);
}

/* ---- Which of them ---- */

/* Where gcloud leaves a person's credentials; false: nowhere. */
static bool gcloud_path(struct mu__notes *notes, char *out, size_t size)
{
    const char *config = mu__ask_variable(notes, "CLOUDSDK_CONFIG");
    const char *home = mu__ask_variable(notes, "HOME");
    int used;

    if (config == NULL && home == NULL)
        return false;
    used = snprintf(out, size, "%s%s/application_default_credentials.json",
                    config == NULL ? home : config,
                    config == NULL ? "/.config/gcloud" : "");
    return used > 0 && (size_t)used < size;
}

/* A file that was named must be there; gcloud's may be absent. */
static int from_somewhere(const struct mu__google *google, unsigned again,
                          mu_error *ret_error, char **ret_token)
{
    const char *path = google->credentials;
    const struct mu__answer *answer;
    char own[1024];
    bool named = true;

    if (path == NULL || path[0] == '\0' || strcmp(path, "default") == 0)
        path = mu__ask_variable(google->notes, "GOOGLE_APPLICATION_CREDENTIALS");
    if (path == NULL) {
        named = false;
        if (!gcloud_path(google->notes, own, sizeof own))
            return from_metadata(google, again, ret_error, ret_token);
        path = own;
    }
    answer = mu__ask(google->notes, &(struct mu__question){.kind = MU__ASK_FILE,
                                                           .name = path,
                                                           .bytes_max = FILE_BYTES_MAX});
    if (answer == NULL)
        return MU__LATER;
    if (!named && answer->code == -MU_ENOTFOUND)
        return from_metadata(google, again, ret_error, ret_token);
    return from_credentials(google, answer, path, again, ret_error, ret_token);
}

static int no_token(mu_error *ret_error, char **ret_token)
{
    char *token = strdup("");

    if (token == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    *ret_token = token;
    return 0;
}

int mu__google_token(const struct mu__google *google, unsigned again, mu_error *ret_error,
                     char **ret_token)
{
    if (google->access_token != NULL && google->access_token[0] != '\0') {
        if (again > 0)
            return mu_error_set(ret_error, -MU_EUNAUTHENTICATED,
                                "setting access_token is not accepted: it may have "
                                "expired");
        return take_token("setting access_token", google->access_token, ret_error,
                          ret_token);
    }
    if (google->access_token_file != NULL && google->access_token_file[0] != '\0')
        return from_file(google, again, ret_error, ret_token);
    if (google->credentials != NULL && strcmp(google->credentials, "none") == 0)
        return no_token(ret_error, ret_token);
    return from_somewhere(google, again, ret_error, ret_token);
}
