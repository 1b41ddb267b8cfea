/* How a file of Google's credentials becomes a token: what token.c, which knows where
 * to look, and credentials.c, which knows the kinds of files, share. Functions are as
 * mu__google_token(): the caller frees *ret_token, MU__LATER. */
#ifndef MU_RESOLVER_GOOGLE_TOKEN_H
#define MU_RESOLVER_GOOGLE_TOKEN_H

#include "resolver/cloud/google/metadata.h"
#include "runtime/base/build.h"

#define MU__GOOGLE_SCOPE "https://www.googleapis.com/auth/cloud-platform"

enum {
    MU__GOOGLE_FILE_BYTES = 64 << 10, /* of a file of credentials, and of a token's */
    MU__GOOGLE_URL_BYTES = 512,
    MU__GOOGLE_VALIDITY_S = 3600 /* of what is asked for */
};

/* A file of credentials. All is borrowed. */
struct mu__google_file {
    const struct mu__google *google;
    const cJSON *root;
    const char *what; /* begins messages: "credentials /path" */
    unsigned again;
};

/* By its type. */
int mu__google_file_token(const struct mu__google_file *file, mu_error *ret_error,
                          char **ret_token);

/* The token of {"access_token": "...", "token_type": "Bearer"}. */
int mu__google_token_read(const cJSON *root, const char *source, mu_error *ret_error,
                          char **ret_token);

/* A copy of what may be part of a header: one word, blanks at its ends apart. */
int mu__google_token_take(const char *source, const char *text, mu_error *ret_error,
                          char **ret_token);

#endif
