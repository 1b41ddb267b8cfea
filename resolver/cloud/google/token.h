/* Shared by token.c, which finds the source of a token, and credentials.c, which makes a
 * token of each type of credentials file. As with mu__google_token() the caller frees
 * *ret_token. */
#ifndef MU_RESOLVER_GOOGLE_TOKEN_H
#define MU_RESOLVER_GOOGLE_TOKEN_H

#include "resolver/cloud/google/metadata.h"
#include "runtime/base/build.h"

#define MU__GOOGLE_SCOPE "https://www.googleapis.com/auth/cloud-platform"

enum {
    MU__GOOGLE_FILE_BYTES = 64 << 10, /* of a credentials file, and of a token's file */
    MU__GOOGLE_URL_BYTES = 512,
    MU__GOOGLE_VALIDITY_S = 3600 /* of a token that is asked for */
};

/* A file of credentials. All is borrowed. */
struct mu__google_file {
    const struct mu__google *google;
    const cJSON *root;
    const char *what; /* begins messages: "credentials /path" */
    unsigned again;
};

/* The token of a credentials file, by the file's type. */
int mu__google_file_token(const struct mu__google_file *file, mu_error *ret_error,
                          char **ret_token);

/* The token of {"access_token": "...", "token_type": "Bearer"}. */
int mu__google_token_read(const cJSON *root, const char *source, mu_error *ret_error,
                          char **ret_token);

/* A copy of a token, checked to be fit for a header: one word; blanks at its ends are
 * cut. */
int mu__google_token_take(const char *source, const char *text, mu_error *ret_error,
                          char **ret_token);

#endif
