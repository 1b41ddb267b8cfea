/* Which tasks `muster run` is asked for, and which of them it starts again. */
#ifndef MU_CLI_WANTED_H
#define MU_CLI_WANTED_H

#include "cli/options/options.h"
#include "cli/run/child.h"
#include "cli/run/place.h"

/* The cluster of these tasks, at free addresses; see cmd_place. -MU_EINVALID names the
 * flag that makes no sense. */
int cli_wanted_place(const struct cmd_options *options, mu_error *ret_error,
                     char *ret_folder, mu_cluster **ret_cluster);

/* One for each task of the cluster, not started. The caller frees the array, also after a
 * failure. */
int cli_wanted_children(const struct cmd_options *options, const mu_cluster *cluster,
                        mu_error *ret_error, struct cmd_child **ret_children,
                        size_t *ret_count);

#endif
