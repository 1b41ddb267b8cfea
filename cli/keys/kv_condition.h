/* Helpers of the verbs of `muster kv`: exit codes, directories, and conditions of changes
 * (--if-absent, --if-revision, --if-value). */
#ifndef MU_CLI_KV_CONDITION_H
#define MU_CLI_KV_CONDITION_H

#include "cli/service_client.h"

/* The exit code for a call's code; -MU_EINVALID is a usage error. */
int cmd_kv_code(int rv);

/* Whether the first operand stands for all keys below it: it ends with "/", or --prefix
 * is given. */
bool cmd_kv_is_directory(const struct cmd_client *client);

bool cmd_kv_has_condition(const struct cmd_options *options);

/* Make a change if the condition holds. Returns 0 with the new revision, CMD_COMPARED
 * when it does not hold, or a negative code; both with `error`. */
int cmd_kv_change_if(struct cmd_client *client, const mu_kv_change *change,
                     mu_error *error, uint64_t *ret_revision);

/* Parse a decimal number without a sign. */
bool cmd_kv_read_revision(const char *text, uint64_t *ret_revision);

#endif
