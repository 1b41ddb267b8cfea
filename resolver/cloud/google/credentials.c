/* Tokens for Google's credentials files: that of a service account, which signs a claim
 * with its key, and that of a user, with a refresh token. */
#include "resolver/cloud/google/token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_URI "https://oauth2.googleapis.com/token"

enum { UNBROKEN_MAX = 24 }; /* bytes without a blank: longer words may be secrets */

/* ---- Members ---- */

static int get_credential(const struct mu__google_file *file, const char *key,
                          mu_error *ret_error, const char **ret_text)
{
    const char *text = NULL;
    int rv = mu__google_text(file->root, key, file->what, ret_error, &text);

    if (rv != 0)
        return rv;
    if (text == NULL || text[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID, "%s: %s is missing", file->what,
                            key);
    *ret_text = text;
    return 0;
}

static int member_url(const struct mu__google_file *file, const char *key,
                      const char *initial, mu_error *ret_error, char *ret_url)
{
    const char *text = NULL;
    mu_error inner;
    int rv = initial == NULL
                 ? get_credential(file, key, ret_error, &text)
                 : mu__google_text(file->root, key, file->what, ret_error, &text);

    if (rv != 0)
        return rv;
    rv = mu__google_endpoint(file->google, text == NULL ? initial : text, &inner, ret_url,
                             MU__GOOGLE_URL_BYTES);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "%s: %s: %s", file->what, key, inner.message);
    return 0;
}

/* ---- Asking the token server ---- */

/* A member of {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}.
 * "" when it has a word that could be the secret that was sent. */
static const char *get_oauth_error_text(const cJSON *root, const char *key)
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

static int refuse_credential(const struct mu__answer *answer, const char *what,
                             mu_error *ret_error)
{
    const cJSON *root = NULL;
    mu_error inner;
    int rv = mu__answer_check(answer, what, &inner);

    rv = answer->status == 400 ? -MU_EUNAUTHENTICATED : rv != 0 ? rv : -MU_EINVALID;
    (void)mu__google_json(answer, "", &inner, &root);
    return mu_error_set(ret_error, rv,
                        "%s: the token server answers with status %d: %s %s", what,
                        answer->status, get_oauth_error_text(root, "error"),
                        get_oauth_error_text(root, "error_description"));
}

static int exchange_form(const struct mu__google_file *file, const char *url,
                         const struct mu__build *form, mu_error *ret_error,
                         char **ret_token)
{
    static const char *const headers[] = {
        "Content-Type: application/x-www-form-urlencoded", "Accept: application/json",
        NULL};
    const struct mu__answer *answer;
    struct mu__request_tls tls;
    const cJSON *root;
    char source[320];
    int rv = mu__google_tls(file->google, ret_error, &tls);

    if (rv != 0)
        return rv;
    answer = mu__requests_get(file->google->pass->requests,
                              &(struct mu__request){
                                  .kind = MU__REQUEST_HTTP,
                                  .name = url,
                                  .again = file->again,
                                  .method = "POST",
                                  .headers = headers,
                                  .body = form->text,
                                  .body_size = form->size,
                                  .bytes_max = MU__GOOGLE_FILE_BYTES,
                                  .tls = tls.ca == NULL ? NULL : &tls,
                                  .uses_proxy = true,
                              });
    (void)snprintf(source, sizeof source, "%.280s: token server", file->what);
    if (answer->code != 0 || answer->status / 100 == 3)
        return mu__answer_check(answer, source, ret_error);
    if (answer->status != 200)
        return refuse_credential(answer, file->what, ret_error);
    rv = mu__google_json(answer, source, ret_error, &root);
    return rv != 0 ? rv : mu__google_token_read(root, source, ret_error, ret_token);
}

/* ---- Service accounts ---- */

struct account {
    const char *email;
    const char *key;
    const char *key_id; /* NULL: it has none */
};

/* header.claims, the text that is signed. The audience is Google's token server, whatever
 * host it is reached at. */
static void build_claims(const struct account *account, int64_t now,
                         struct mu__build *header, struct mu__build *claims)
{
    mu__build_add(header, "{\"alg\":\"RS256\",\"typ\":\"JWT\"");
    if (account->key_id != NULL) {
        mu__build_add(header, ",\"kid\":");
        mu__build_json(header, account->key_id, strlen(account->key_id));
    }
    mu__build_add(header, "}");
    mu__build_add(claims, "{\"iss\":");
    mu__build_json(claims, account->email, strlen(account->email));
    mu__build_add(claims,
                  ",\"scope\":\"" MU__GOOGLE_SCOPE "\",\"aud\":\"" TOKEN_URI "\"");
    mu__build_format(claims, ",\"iat\":%" PRId64 ",\"exp\":%" PRId64 "}", now,
                     now + MU__GOOGLE_VALIDITY_S);
}

static int build_unsigned(const struct mu__google_file *file,
                          const struct account *account, mu_error *ret_error,
                          struct mu__build *out)
{
    const struct mu__answer *clock = mu__requests_get(
        file->google->pass->requests,
        &(struct mu__request){.kind = MU__REQUEST_CLOCK, .again = file->again});
    struct mu__build header = {0};
    struct mu__build claims = {0};
    bool whole;

    if (clock == NULL || clock->code != 0)
        return mu_error_set(ret_error, -MU_EINTERNAL, "the time is not known");
    build_claims(account, strtoll(clock->data, NULL, 10), &header, &claims);
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
static int sign_jwt(const struct mu__google_file *file, const struct account *account,
                    mu_error *ret_error, struct mu__build *jwt)
{
    const struct mu__answer *signature = mu__requests_get(
        file->google->pass->requests, &(struct mu__request){.kind = MU__REQUEST_SIGNATURE,
                                                            .name = "RS256",
                                                            .body = jwt->text,
                                                            .body_size = jwt->size,
                                                            .secret = account->key});
    int rv;

    rv = mu__answer_check(signature, file->what, ret_error);
    if (rv != 0)
        return rv;
    mu__build_add(jwt, ".");
    mu__build_base64url(jwt, signature->data, signature->size);
    return mu__build_whole(jwt) ? 0
                                : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

/* A service account proves who it is by a signature with its key. */
static int from_service_account(const struct mu__google_file *file, mu_error *ret_error,
                                char **ret_token)
{
    struct account account = {0};
    struct mu__build form = {0};
    struct mu__build jwt = {0};
    char url[MU__GOOGLE_URL_BYTES];
    int rv = member_url(file, "token_uri", TOKEN_URI, ret_error, url);

    if (rv == 0)
        rv = get_credential(file, "client_email", ret_error, &account.email);
    if (rv == 0)
        rv = get_credential(file, "private_key", ret_error, &account.key);
    if (rv == 0)
        rv = mu__google_text(file->root, "private_key_id", file->what, ret_error,
                             &account.key_id);
    if (rv == 0)
        rv = build_unsigned(file, &account, ret_error, &jwt);
    if (rv == 0)
        rv = sign_jwt(file, &account, ret_error, &jwt);
    if (rv == 0) {
        mu__build_add(&form, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3A"
                             "jwt-bearer&assertion=");
        mu__build_add(&form, jwt.text);
        rv = mu__build_whole(&form)
                 ? exchange_form(file, url, &form, ret_error, ret_token)
                 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    mu__build_done(&form);
    mu__build_done(&jwt);
    return rv;
}

/* ---- Users ---- */

/* A user's credentials, as gcloud writes them. */
static int from_user(const struct mu__google_file *file, mu_error *ret_error,
                     char **ret_token)
{
    static const char *const keys[] = {"client_id", "client_secret", "refresh_token"};
    struct mu__build form = {0};
    char url[MU__GOOGLE_URL_BYTES];
    int rv = member_url(file, "token_uri", TOKEN_URI, ret_error, url);

    mu__build_add(&form, "grant_type=refresh_token");
    for (size_t i = 0; i < 3 && rv == 0; i++) {
        const char *text = NULL;

        rv = get_credential(file, keys[i], ret_error, &text);
        if (rv != 0)
            break;
        mu__build_format(&form, "&%s=", keys[i]);
        mu__build_escaped(&form, text);
    }
    if (rv == 0 && !mu__build_whole(&form))
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    if (rv == 0)
        rv = exchange_form(file, url, &form, ret_error, ret_token);
    mu__build_done(&form);
    return rv;
}

/* ---- Type of a file ---- */

/* Google's own cloud is the only one whose addresses are known here. */
static int check_universe(const struct mu__google_file *file, mu_error *ret_error)
{
    const char *universe = NULL;
    int rv =
        mu__google_text(file->root, "universe_domain", file->what, ret_error, &universe);

    if (rv != 0 || universe == NULL || universe[0] == '\0' ||
        strcmp(universe, "googleapis.com") == 0)
        return rv;
    return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                        "%s: universe_domain: expected \"googleapis.com\": clouds of "
                        "others are not supported",
                        file->what);
}

int mu__google_file_token(const struct mu__google_file *file, mu_error *ret_error,
                          char **ret_token)
{
    static const struct {
        const char *type;
        int (*token)(const struct mu__google_file *, mu_error *, char **);
    } kinds[] = {
        {"service_account", from_service_account},
        {"authorized_user", from_user},
    };
    const char *type = NULL;
    int rv = mu__google_text(file->root, "type", file->what, ret_error, &type);

    if (rv == 0)
        rv = check_universe(file, ret_error);
    if (rv != 0)
        return rv;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && type != NULL; i++)
        if (strcmp(kinds[i].type, type) == 0)
            return kinds[i].token(file, ret_error, ret_token);
    return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                        "%s: type: expected \"service_account\" or \"authorized_user\"; "
                        "for others (external_account, impersonated_service_account) set "
                        "token_command to a command that prints a token, as in \"gcloud "
                        "auth print-access-token\"",
                        file->what);
}
