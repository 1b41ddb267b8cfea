/* Without a user each request is sent once. With one, a token is requested first, from
 * the same endpoint; it may come from the requester's cache. When etcd refuses a token
 * (it is too old, or etcd has restarted), another one is requested, once in a run; the
 * requests after that have other numbers in `again`, to be sent anew. */
#include "resolver/source/etcd_talk.h"

#include "resolver/spec/address.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <string.h>

enum {
    REQUEST_MS = 3000,
    NEXT_MS = 1000,          /* timeout where there is another endpoint */
    TOKEN_VALID_MS = 240000, /* etcd's simple tokens end 5 minutes after their last use */
    TOKEN_BYTES = 4096,      /* a JWT has some hundreds */
    PASSWORD_BYTES_MAX = 4096,
    PATH_ROOM = 40,
    RENEWED = 1000 /* added to `again` with a new token */
};

/* ---- Settings ---- */

static const char *get_etcd_setting(const struct mu__etcd_talk *talk, unsigned number)
{
    return mu__setting(talk->pass, number);
}

static int add_talk_endpoint(struct mu__etcd_talk *talk, const char *text, size_t size)
{
    char shown[MU__QUOTE_BYTES];
    char *out = talk->endpoints[talk->endpoints_count];

    mu__quote(shown, sizeof shown, text, size);
    if (talk->endpoints_count == MU__TALK_ENDPOINTS_MAX)
        return mu_error_set(talk->error, -MU_EINVALID,
                            "etcd: endpoints: expected at most %d",
                            (int)MU__TALK_ENDPOINTS_MAX);
    while (size > 0 && text[size - 1] == '/')
        size--;
    if (size + PATH_ROOM >= MU__TALK_URL_BYTES ||
        (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) ||
        memchr(text, '@', size) != NULL)
        return mu_error_set(talk->error, -MU_EINVALID,
                            "etcd: endpoints: expected urls with commas between, as in "
                            "\"http://127.0.0.1:2379\", got %s",
                            memchr(text, '@', size) != NULL
                                ? "one with a user: that is setting user"
                                : shown);
    memcpy(out, text, size);
    out[size] = '\0';
    talk->endpoints_count++;
    return 0;
}

static int read_endpoints(struct mu__etcd_talk *talk)
{
    const char *at = get_etcd_setting(talk, MU__TALK_ENDPOINTS);
    int rv = 0;

    if (at == NULL)
        return mu_error_set(talk->error, -MU_EINVALID,
                            "etcd: setting endpoints (variable MUSTER_ETCD) is not set, "
                            "expected urls with commas between");
    while (rv == 0) {
        size_t size = strcspn(at, ",");

        rv = add_talk_endpoint(talk, at, size);
        if (at[size] == '\0')
            break;
        at += size + 1;
    }
    return rv;
}

/* The content of a file that a setting names; *ret_text stays NULL when none is set. */
static int read_etcd_file(struct mu__etcd_talk *talk, unsigned number,
                          const char **ret_text)
{
    const char *path = get_etcd_setting(talk, number);
    const struct mu__request request = {
        .kind = MU__REQUEST_FILE, .name = path, .bytes_max = 1 << 20};
    const struct mu__answer *answer;
    char what[64];

    if (path == NULL)
        return 0;
    answer = mu__requests_get(talk->pass->requests, &request);
    *ret_text = answer->data;
    (void)snprintf(what, sizeof what, "etcd: %s",
                   talk->pass->settings->specs[number].name);
    return mu__answer_check(answer, what, talk->error);
}

static int read_password_file(struct mu__etcd_talk *talk)
{
    const char *text = NULL;
    int rv = read_etcd_file(talk, MU__TALK_PASSWORD_FILE, &text);

    if (rv != 0 || text == NULL)
        return rv;
    talk->password = text;
    talk->password_size = strcspn(text, "\r\n");
    return 0;
}

static int read_talk_user(struct mu__etcd_talk *talk)
{
    int rv = 0;

    talk->user = get_etcd_setting(talk, MU__TALK_USER);
    talk->password = get_etcd_setting(talk, MU__TALK_PASSWORD);
    if (talk->password != NULL)
        talk->password_size = strlen(talk->password);
    else
        rv = read_password_file(talk);
    if (rv != 0)
        return rv;
    if ((talk->user == NULL) != (talk->password == NULL))
        return mu_error_set(talk->error, -MU_EINVALID,
                            talk->user == NULL
                                ? "etcd: a password is set, and no user; expected "
                                  "setting user (variable MUSTER_ETCD_USER)"
                                : "etcd: a user is set, and no password; expected "
                                  "setting password_file or password (variables "
                                  "MUSTER_ETCD_PASSWORD_FILE, MUSTER_ETCD_PASSWORD)");
    if (talk->user != NULL &&
        (talk->password_size == 0 || talk->password_size > PASSWORD_BYTES_MAX))
        return mu_error_set(talk->error, -MU_EINVALID,
                            "etcd: password: expected 1 to %d bytes, got %zu",
                            (int)PASSWORD_BYTES_MAX, talk->password_size);
    return 0;
}

/* All files are requested before any is waited for. */
static int read_talk_tls(struct mu__etcd_talk *talk)
{
    struct mu__request_tls *tls = &talk->tls;
    int rvs[] = {
        read_etcd_file(talk, MU__TALK_CA_FILE, &tls->ca),
        read_etcd_file(talk, MU__TALK_CERTIFICATE_FILE, &tls->certificate),
        read_etcd_file(talk, MU__TALK_KEY_FILE, &tls->key),
    };

    tls->server_name = get_etcd_setting(talk, MU__TALK_SERVER_NAME);
    for (size_t i = 0; i < sizeof rvs / sizeof rvs[0]; i++)
        if (rvs[i] != 0)
            return rvs[i];
    if (tls->server_name != NULL && !mu__address_is_host(tls->server_name))
        return mu_error_set(talk->error, -MU_EINVALID,
                            "etcd: server_name: expected the name of a host");
    if ((tls->certificate == NULL) != (tls->key == NULL))
        return mu_error_set(talk->error, -MU_EINVALID,
                            "etcd: %s is set alone, expected %s with it",
                            tls->key == NULL ? "certificate_file" : "key_file",
                            tls->key == NULL ? "key_file" : "certificate_file");
    return 0;
}

int mu__etcd_talk_begin(const struct mu__pass *pass, mu_error *ret_error,
                        struct mu__etcd_talk *talk)
{
    int rv;

    *talk = (struct mu__etcd_talk){
        .pass = pass, .error = ret_error, .request_ms = REQUEST_MS};
    rv = read_endpoints(talk);
    if (rv == 0)
        rv = read_talk_tls(talk);
    return rv == 0 ? read_talk_user(talk) : rv;
}

/* ---- One request ---- */

static int fail_etcd_request(struct mu__etcd_talk *talk, const char *endpoint, int code,
                             const char *words)
{
    return mu_error_set(talk->error, code, "etcd at %s: %.400s", endpoint, words);
}

/* Errors that etcd or its gateway return while etcd starts, stops, or stands still. */
static bool is_passing_etcd_code(int code)
{
    return code == -MU_EDEADLINE || code == -MU_ECANCELLED;
}

static uint32_t timeout_ms(const struct mu__etcd_talk *talk)
{
    return talk->has_next && talk->request_ms > NEXT_MS ? NEXT_MS : talk->request_ms;
}

/* Messages in `inner` do not name the endpoint. */
static int post_etcd_form(struct mu__etcd_talk *talk, const char *endpoint,
                          const char *path, const struct mu__request *form,
                          mu_error *inner, struct mu__etcd_answer **ret_answer)
{
    struct mu__request request = *form;
    char url[MU__TALK_URL_BYTES];
    const struct mu__answer *answer;
    int rv;

    (void)snprintf(url, sizeof url, "%.*s%s", (int)(MU__TALK_URL_BYTES - PATH_ROOM),
                   endpoint, path);
    request.kind = MU__REQUEST_HTTP;
    request.name = url;
    request.method = "POST";
    request.timeout_ms = timeout_ms(talk);
    request.tries = 1;
    request.tls = &talk->tls;
    answer = mu__requests_get(talk->pass->requests, &request);
    if (answer->code != 0)
        return mu_error_set(
            inner, is_passing_etcd_code(answer->code) ? -MU_EUNAVAILABLE : answer->code,
            "%s", answer->error.message);
    rv = mu__etcd_answer_read(answer->status, answer->data, answer->size, inner,
                              ret_answer);
    if (!is_passing_etcd_code(rv))
        return rv;
    inner->code = -MU_EUNAVAILABLE;
    return inner->code;
}

/* ---- Refusals ---- */

static int explain_etcd_refusal(struct mu__etcd_talk *talk, const char *endpoint,
                                int code, const mu_error *inner)
{
    if (talk->user == NULL && mu__etcd_needs_user(inner))
        return mu_error_set(talk->error, -MU_EUNAUTHENTICATED,
                            "etcd at %s has users; expected settings user and "
                            "password_file (variables MUSTER_ETCD_USER, "
                            "MUSTER_ETCD_PASSWORD_FILE)",
                            endpoint);
    /* etcd's gateway takes no user from a client whose certificate has a CommonName. */
    if (strstr(inner->message, "CommonName of client") != NULL)
        return mu_error_set(talk->error, -MU_EUNAUTHENTICATED,
                            "etcd at %s has users, and takes none from a client whose "
                            "certificate has a CommonName; expected one without it in "
                            "certificate_file",
                            endpoint);
    return fail_etcd_request(talk, endpoint, code, inner->message);
}

/* ---- A user's token ---- */

static int refuse_user(struct mu__etcd_talk *talk, const char *endpoint, int code,
                       const mu_error *inner)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, talk->user, strlen(talk->user));
    if (strstr(inner->message, "CommonName of client") != NULL)
        return explain_etcd_refusal(talk, endpoint, code, inner);
    if (code == -MU_EINVALID || code == -MU_EUNAUTHENTICATED)
        return mu_error_set(talk->error, -MU_EUNAUTHENTICATED,
                            "etcd at %s does not take user %s with this password: %.300s",
                            endpoint, shown, inner->message);
    return fail_etcd_request(talk, endpoint, code, inner->message);
}

/* "Authorization: TOKEN" into `out`, "" when none is needed. */
static int write_token(struct mu__etcd_talk *talk, const char *endpoint, char *out)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    struct mu__build body = {0};
    struct mu__etcd_answer *answer = NULL;
    struct mu__request request = {
        .again = talk->is_renewed ? RENEWED : 0,
        .headers = headers,
        .cache_ms = TOKEN_VALID_MS,
    };
    mu_error inner = {0};
    int rv;

    out[0] = '\0';
    mu__etcd_authenticate(&body, mu__view_str(talk->user),
                          (struct mu__view){talk->password,
                                            (uint32_t)talk->password_size});
    request.body = body.text;
    request.body_size = body.size;
    rv = body.failed ? mu_error_set(&inner, -MU_ENOMEM, "out of memory")
                     : post_etcd_form(talk, endpoint, MU__ETCD_AUTHENTICATE, &request,
                                      &inner, &answer);
    mu__build_done(&body);
    if (rv != 0 && mu__etcd_lacks_users(&inner))
        return 0;
    if (rv == 0)
        rv = mu__etcd_token(answer, &inner, "Authorization: ", out, TOKEN_BYTES);
    mu__etcd_answer_free(answer);
    if (rv != 0)
        mu__etcd_hide(&inner);
    return rv == 0 ? 0 : refuse_user(talk, endpoint, rv, &inner);
}

static int post_to_endpoint(struct mu__etcd_talk *talk, const char *endpoint,
                            const char *path, const struct mu__build *body,
                            unsigned again, struct mu__etcd_answer **ret_answer)
{
    char token[TOKEN_BYTES];
    const char *headers[] = {"Content-Type: application/json", NULL, NULL};
    struct mu__request request = {
        .headers = headers,
        .body = body->text,
        .body_size = body->size,
        .cache_ms = talk->cache_ms,
    };
    mu_error inner = {0};
    int rv;

    for (;;) {
        bool was_renewed = talk->is_renewed;

        rv = talk->user == NULL ? 0 : write_token(talk, endpoint, token);
        if (rv != 0)
            return rv;
        headers[1] = talk->user == NULL || token[0] == '\0' ? NULL : token;
        request.again = again + (was_renewed ? RENEWED : 0);
        rv = post_etcd_form(talk, endpoint, path, &request, &inner, ret_answer);
        if (rv == 0)
            return 0;
        if (headers[1] == NULL || was_renewed || !mu__etcd_needs_new_token(rv, &inner))
            return explain_etcd_refusal(talk, endpoint, rv, &inner);
        talk->is_renewed = true;
    }
}

int mu__etcd_talk_post(struct mu__etcd_talk *talk, const char *path,
                       struct mu__build *body, unsigned again,
                       struct mu__etcd_answer **ret_answer)
{
    unsigned first = talk->first;
    int rv = body->failed ? mu_error_set(talk->error, -MU_ENOMEM, "etcd: out of memory")
                          : -MU_EUNAVAILABLE;

    /* A certificate may have expired on one of several endpoints only: the next is
     * tried. */
    for (unsigned i = 0;
         i < talk->endpoints_count &&
         (rv == -MU_EUNAVAILABLE || (i > 0 && rv == -MU_EUNAUTHENTICATED));
         i++) {
        unsigned number = (first + i) % talk->endpoints_count;

        talk->has_next = i + 1 < talk->endpoints_count;
        rv = post_to_endpoint(talk, talk->endpoints[number], path, body, again,
                              ret_answer);
        if (rv != -MU_EUNAVAILABLE)
            talk->first = number;
    }
    mu__build_done(body);
    return rv;
}
