/* Tokens for Google's APIs: from settings, credentials files and the metadata server. */
#include "resolver/cloud/google/token.h"

#include "resolver/cloud/token_command.h"

#include <stdio.h>
#include <string.h>

#define METADATA_TOKEN "instance/service-accounts/default/token"

enum { TOKEN_BYTES_MAX = 16384 }; /* Google's own have up to 12 KiB */

/* ---- A token as text ---- */

void mu__google_token_free(char *token)
{
    struct mu__build build = {.text = token, .size = token == NULL ? 0 : strlen(token)};

    mu__build_done(&build);
}

/* A token goes into a header: it must have no blanks and no line ends. */
int mu__google_token_take(const char *source, const char *text, mu_error *ret_error,
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
int mu__google_token_read(const cJSON *root, const char *source, mu_error *ret_error,
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
    return mu__google_token_take(source, token, ret_error, ret_token);
}

static int from_file(const struct mu__google *google, unsigned again, mu_error *ret_error,
                     char **ret_token)
{
    const struct mu__answer *answer =
        mu__requests_get(google->pass->requests,
                         &(struct mu__request){.kind = MU__REQUEST_FILE,
                                               .name = google->access_token_file,
                                               .again = again,
                                               .bytes_max = MU__GOOGLE_FILE_BYTES});
    int rv;

    rv = mu__answer_check(answer, "setting access_token_file", ret_error);
    return rv != 0 ? rv
                   : mu__google_token_take("setting access_token_file", answer->data,
                                           ret_error, ret_token);
}

static int from_command(const struct mu__google *google, unsigned again,
                        mu_error *ret_error, char **ret_token)
{
    char *printed;
    int rv = mu__token_command(google->pass->requests, google->token_command, again,
                               ret_error, &printed);

    if (rv != 0)
        return rv;
    rv = mu__google_token_take("setting token_command", printed, ret_error, ret_token);
    mu__google_token_free(printed);
    return rv;
}

static int request_metadata_token(const struct mu__google *google, unsigned again,
                                  mu_error *ret_error, char **ret_token)
{
    const cJSON *root;
    mu_error inner;
    int rv = mu__google_here(google->pass->requests, &inner);

    if (rv == 0)
        return mu_error_set(ret_error, -MU_EUNAUTHENTICATED,
                            "there are no credentials: neither a setting nor "
                            "GOOGLE_APPLICATION_CREDENTIALS nor a file of \"gcloud auth "
                            "application-default login\" says who we are, and %s",
                            inner.message);
    if (rv < 0)
        return mu_error_set(ret_error, rv, "%s", inner.message);
    rv = mu__google_metadata_json(google->pass->requests, METADATA_TOKEN, again,
                                  ret_error, &root);
    return rv != 0 ? rv
                   : mu__google_token_read(root, "metadata " METADATA_TOKEN, ret_error,
                                           ret_token);
}

/* ---- Sources of a token ---- */

/* The path of gcloud's file of a user's credentials; false: there is none. */
static bool gcloud_path(struct mu__requests *requests, char *out, size_t size)
{
    const char *config = mu__request_variable(requests, "CLOUDSDK_CONFIG");
    const char *home = mu__request_variable(requests, "HOME");
    int used;

    if (config == NULL && home == NULL)
        return false;
    used =
        snprintf(out, size, "%s%s/application_default_credentials.json",
                 config == NULL ? home : config, config == NULL ? "/.config/gcloud" : "");
    return used > 0 && (size_t)used < size;
}

/* The credentials file that was found; `what` begins messages. */
struct found_file {
    const cJSON *root; /* NULL: there is none, and the metadata server is asked */
    char what[256];
};

/* A file that was named must be there; gcloud's may be absent. */
static int find_file(const struct mu__google *google, mu_error *ret_error,
                     struct found_file *ret_found)
{
    const char *path = google->credentials;
    const struct mu__answer *answer;
    char own[1024];
    bool named = true;
    int rv;

    *ret_found = (struct found_file){0};
    if (path == NULL || path[0] == '\0' || strcmp(path, "default") == 0)
        path = mu__request_variable(google->pass->requests,
                                    "GOOGLE_APPLICATION_CREDENTIALS");
    if (path == NULL) {
        named = false;
        if (!gcloud_path(google->pass->requests, own, sizeof own))
            return 0;
        path = own;
    }
    answer = mu__requests_get(google->pass->requests,
                              &(struct mu__request){.kind = MU__REQUEST_FILE,
                                                    .name = path,
                                                    .bytes_max = MU__GOOGLE_FILE_BYTES});
    if (!named && answer->code == -MU_ENOTFOUND)
        return 0;
    (void)snprintf(ret_found->what, sizeof ret_found->what, "credentials %.200s", path);
    rv = mu__answer_check(answer, ret_found->what, ret_error);
    return rv != 0
               ? rv
               : mu__google_json(answer, ret_found->what, ret_error, &ret_found->root);
}

static int from_credentials(const struct mu__google *google, unsigned again,
                            mu_error *ret_error, char **ret_token)
{
    struct found_file found;
    int rv = find_file(google, ret_error, &found);

    if (rv != 0)
        return rv;
    if (found.root == NULL)
        return request_metadata_token(google, again, ret_error, ret_token);
    return mu__google_file_token(
        &(struct mu__google_file){
            .google = google, .root = found.root, .what = found.what, .again = again},
        ret_error, ret_token);
}

static int give_no_token(mu_error *ret_error, char **ret_token)
{
    char *token = strdup("");

    if (token == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    *ret_token = token;
    return 0;
}

static bool is_token_setting_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* A setting gives the token, or says that there is none. */
static bool is_token_given(const struct mu__google *google)
{
    return is_token_setting_set(google->access_token) ||
           is_token_setting_set(google->access_token_file) ||
           is_token_setting_set(google->token_command) ||
           (google->credentials != NULL && strcmp(google->credentials, "none") == 0);
}

int mu__google_token(const struct mu__google *google, unsigned again, mu_error *ret_error,
                     char **ret_token)
{
    if (!is_token_given(google))
        return from_credentials(google, again, ret_error, ret_token);
    if (is_token_setting_set(google->access_token)) {
        if (again > 0)
            return mu_error_set(ret_error, -MU_EUNAUTHENTICATED,
                                "setting access_token is not accepted: it may have "
                                "expired");
        return mu__google_token_take("setting access_token", google->access_token,
                                     ret_error, ret_token);
    }
    if (is_token_setting_set(google->access_token_file))
        return from_file(google, again, ret_error, ret_token);
    if (is_token_setting_set(google->token_command))
        return from_command(google, again, ret_error, ret_token);
    return give_no_token(ret_error, ret_token);
}

int mu__google_quota_project(const struct mu__google *google, mu_error *ret_error,
                             char *ret_name)
{
    const char *name;
    struct found_file found;
    char what[320] = "GOOGLE_CLOUD_QUOTA_PROJECT";
    int rv = 0;

    ret_name[0] = '\0';
    if (is_token_given(google))
        return 0;
    name = mu__request_variable(google->pass->requests, what);
    if (name == NULL) {
        rv = find_file(google, ret_error, &found);
        if (rv == 0 && found.root != NULL)
            rv = mu__google_text(found.root, "quota_project_id", found.what, ret_error,
                                 &name);
        (void)snprintf(what, sizeof what, "%s: quota_project_id", found.what);
    }
    if (rv == 0 && name != NULL && name[0] != '\0') {
        rv = mu__google_name_check(what, name, ret_error);
        if (rv == 0)
            (void)snprintf(ret_name, MU__GOOGLE_NAME_BYTES, "%s", name);
    }
    return rv;
}
