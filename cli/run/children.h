/* The processes of `muster run` as a table: which there are, when each is started again,
 * and the file that shows them. */
#ifndef MU_CLI_CHILDREN_H
#define MU_CLI_CHILDREN_H

#include "cli/options/flags.h"
#include "cli/run/child.h"

#include "muster/cluster.h"

/* One row for each task of the cluster, not started, with its policy of --restart. The
 * caller frees the array, also after a failure. */
int cmd_children_new(const struct cmd_options *options, const mu_cluster *cluster,
                     mu_error *ret_error, struct cmd_child **ret_children,
                     size_t *ret_count);

/* Write --status-file. Returns 0 or an errno. */
int cmd_children_write(const struct cmd_child *children, size_t count, const char *path);

#endif
