/* What the verbs `muster vars ...` have in common: the variables and tables, as the
 * status has them, and a node that reaches their servers. */
#ifndef MU_CLI_VARS_VARS_H
#define MU_CLI_VARS_VARS_H

#include "cli/chief_client.h"

#include "muster/table.h"

/* A map, as `muster vars -o json` prints it. NULL: out of memory. */
mu_value *cmd_vars_value(const mu_value *status);

/* Print where the shards of a list of variables are. */
void cmd_vars_print_shards(const mu_value *variables);

/* The map of the variable with this name, or else of the table. -MU_ENOTFOUND. */
int cmd_vars_find(const mu_value *value, const char *name, mu_error *error,
                  const mu_value **ret_found);

/* Whether it is a table. */
bool cmd_vars_is_table(const mu_value *found);

/* The same, asked of the chief. With `reaches` the client's node becomes one that reaches
 * the servers, too. */
int cmd_vars_request(struct cmd_client *client, bool reaches, mu_error *error,
                     mu_value **ret_value);

int cmd_vars_open_variable(const struct cmd_client *client, const mu_value *found,
                           mu_error *error, mu_variable **ret_variable);
int cmd_vars_open_table(const struct cmd_client *client, const mu_value *found,
                        mu_error *error, mu_table **ret_table);

#endif
