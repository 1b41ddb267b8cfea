/* A bearer token that a command prints: the setting token_command of the resolvers for
 * clouds. It names the cloud's own tool for signing in:
 * `gcloud auth print-access-token`, `aws eks get-token --cluster-name NAME`. Pure. */
#ifndef MU_RESOLVER_TOKEN_COMMAND_H
#define MU_RESOLVER_TOKEN_COMMAND_H

#include "resolver/engine/request_table.h"

enum {
    MU__TOKEN_COMMAND_TIMEOUT_MS = 60000,
    MU__TOKEN_COMMAND_BYTES_MAX = 1 << 20, /* of its output */
    MU__TOKEN_COMMAND_KEEP_MS = 600000     /* a token is used again for so long */
};

/* Have the shell run `command` and take the token that it prints: as text, or as
 * Kubernetes' ExecCredential in JSON, whose status.token it is. `again`: how often its
 * token was refused; then it is run anew.
 *
 * Owns:    the caller frees *ret_token, without blanks at its ends, and overwrites it
 *          first.
 * Returns: -MU_EINVALID: it prints something else; -MU_ENOMEM; the errors of
 *          MU__REQUEST_PROGRAM. Nothing of what it printed is in the words. */
int mu__token_command(struct mu__requests *requests, const char *command, unsigned again,
                      mu_error *ret_error, char **ret_token);

#endif
