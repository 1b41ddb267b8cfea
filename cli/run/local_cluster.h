/* The cluster of `muster run`: tasks by the flags, at free addresses of this machine. */
#ifndef MU_CLI_LOCAL_CLUSTER_H
#define MU_CLI_LOCAL_CLUSTER_H

#include "cli/options/flags.h"

#include "muster/cluster.h"

enum { CMD_FOLDER_BYTES = 64 };

/* The tasks that --workers, --ps, --counts and so on say, at free ports of 127.0.0.1, or
 * with --transport ipc at sockets in a fresh folder, whose path is written to
 * `ret_folder` ("" otherwise). Raises the limit of open files to what they need.
 * -MU_EINVALID names the flag that makes no sense. The caller frees the cluster, and
 * removes the folder with cmd_local_cluster_done. */
int cmd_local_cluster_new(const struct cmd_options *options, mu_error *ret_error,
                          char *ret_folder, mu_cluster **ret_cluster);

/* Remove the folder and the sockets in it; "" is fine. */
void cmd_local_cluster_done(const char *folder, const mu_cluster *cluster);

#endif
