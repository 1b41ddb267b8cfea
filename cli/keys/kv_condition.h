/* What the verbs of `muster kv` share: which keys are meant, and what has to hold for a
 * change (--if-absent, --if-revision, --if-value). */
#ifndef MU_CLI_KV_CONDITION_H
#define MU_CLI_KV_CONDITION_H

#include "cli/service_client.h"

/* The exit code for what a call came to: wrong arguments are usage. */
int cmd_kv_code(int rv);

/* Whether the first operand means all that is below a key: it ends with "/", or --prefix
 * says so. */
bool cmd_kv_is_directory(const struct cmd_client *client);

bool cmd_kv_has_condition(const struct cmd_options *options);

/* Make a change if the conditions hold. 0 with the new revision, CMD_COMPARED when one of
 * them does not, or negative; with words. */
int cmd_kv_change_if(struct cmd_client *client, const mu_kv_change *change,
                     mu_error *error, uint64_t *ret_revision);

/* A whole number without a sign. */
bool cmd_kv_read_revision(const char *text, uint64_t *ret_revision);

#endif
