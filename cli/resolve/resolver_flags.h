/* The resolver of the flags --resolver and --resolver-set. */
#ifndef MU_NODE_CMD_RESOLVER_H
#define MU_NODE_CMD_RESOLVER_H

#include "cli/options/flags.h"

#include "muster/resolver.h"

/* Whether --resolver or its variable was given, also as "auto". */
bool cmd_resolver_is_given(const struct cmd_options *options);

/* Make the resolver of --resolver with the settings of --resolver-set; several become a
 * union. Its progress is printed on standard error. The caller frees *ret_resolver.
 * -MU_EINVALID and -MU_ENOTFOUND name the flag. */
int cmd_resolver_open(const struct cmd_options *options, mu_error *ret_error,
                      mu_resolver **ret_resolver);

/* The timeout of resolvers that the command itself runs: --resolve-ms, or a default of
 * the verb. */
int64_t cmd_resolve_timeout_ms(const struct cmd_options *options);

#endif
