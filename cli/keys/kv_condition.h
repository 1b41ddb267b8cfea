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

/* Make a change if the condition holds. Returns CMD_FINE with the new revision, or the
 * exit code, CMD_COMPARED when it does not hold, with `error`. */
int cmd_kv_change_if(struct cmd_client *client, const mu_kv_change *change,
                     mu_error *error, uint64_t *ret_revision);

/* The same for a change that puts a key, which may be without a condition. */
int cmd_kv_put_if(struct cmd_client *client, const mu_kv_change *change, mu_error *error,
                  uint64_t *ret_revision);

/* Parse a decimal number: without a sign, and with one. */
bool cmd_kv_read_revision(const char *text, uint64_t *ret_revision);
bool cmd_kv_read_number(const char *text, int64_t *ret_number);

/* Read all of standard input, at most `max` bytes, with a zero byte behind them; the
 * caller frees *ret_text. */
int cmd_kv_read_input(size_t max, mu_error *error, char **ret_text, size_t *ret_size);

#endif
