/* The resolver that the flags ask for. */
#ifndef MU_NODE_CMD_RESOLVER_H
#define MU_NODE_CMD_RESOLVER_H

#include "cli/options/flags.h"

#include "muster/resolver.h"

/* Whether --resolver (or its variable) was given, "auto" too. */
bool cmd_resolver_is_given(const struct cmd_options *options);

/* Make it: --resolver with all of --resolver-set; several are a union. The progress of
 * its calls goes to standard error. The caller frees *ret_resolver. -MU_EINVALID and
 * -MU_ENOTFOUND name the flag. */
int cmd_resolver_open(const struct cmd_options *options, mu_error *ret_error,
                      mu_resolver **ret_resolver);

/* --resolve-ms, where this program itself waits. */
int64_t cmd_resolve_timeout_ms(const struct cmd_options *options);

#endif
