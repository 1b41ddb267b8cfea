/* How a file of Google's credentials becomes a token: what google_token.c, which knows
 * where to look, and those that know the kinds of files share. Functions are as
 * mu__google_token(): the caller frees *ret_token, MU__LATER. */
#ifndef MU_RESOLVER_GOOGLE_TOKEN_H
#define MU_RESOLVER_GOOGLE_TOKEN_H

#include "resolver/cloud/google/metadata.h"
#include "resolver/engine/build.h"

#define MU__GOOGLE_SCOPE "https://www.googleapis.com/auth/cloud-platform"

enum {
    MU__GOOGLE_FILE_BYTES = 64 << 10, /* of a file of credentials, and of a token's */
    MU__GOOGLE_URL_BYTES = 512,
    MU__GOOGLE_LIFE_S = 3600 /* of what is asked for */
};

/* A file of credentials, or the credentials inside another's. All is borrowed. */
struct mu__google_file {
    const struct mu__google *google;
    const cJSON *root;
    const char *what; /* begins messages: "credentials /path" */
    unsigned again;
    bool is_inner;
};

/* By its type. */
int mu__google_file_token(const struct mu__google_file *file, mu_error *ret_error,
                          char **ret_token);

/* The kinds that need more than one step: google_federation.c. */
int mu__google_external(const struct mu__google_file *file, mu_error *ret_error,
                        char **ret_token);
int mu__google_impersonated(const struct mu__google_file *file, mu_error *ret_error,
                            char **ret_token);

/* The token that a program of an external account prints; `source` is the account's
 * credential_source: google_executable.c. */
int mu__google_executable(const struct mu__google_file *account,
                          const struct mu__google_file *source, mu_error *ret_error,
                          char **ret_subject);

/* A text that somebody else has written about an error; "" when there is none, or when it
 * has words that could be a secret. */
const char *mu__google_described(const cJSON *root, const char *key);

/* A member that must be a text, and not an empty one. */
int mu__google_member(const struct mu__google_file *file, const char *key,
                      mu_error *ret_error, const char **ret_text);

/* A member that is a url where secrets may be sent; `initial` when it is absent, NULL: it
 * must be there. ret_url has MU__GOOGLE_URL_BYTES. */
int mu__google_member_url(const struct mu__google_file *file, const char *key,
                          const char *initial, mu_error *ret_error, char *ret_url);

/* POST a form to where tokens are given. */
int mu__google_exchange(const struct mu__google_file *file, const char *url,
                        const struct mu__build *form, mu_error *ret_error,
                        char **ret_token);

/* The token of {"access_token": "...", "token_type": "Bearer"}. */
int mu__google_token_read(const cJSON *root, const char *source, mu_error *ret_error,
                          char **ret_token);

/* A copy of what may be part of a header: one word, blanks at its ends apart. */
int mu__google_token_take(const char *source, const char *text, mu_error *ret_error,
                          char **ret_token);

#endif
