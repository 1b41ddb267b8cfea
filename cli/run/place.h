/* Free addresses on this machine for the tasks of `muster run`. */
#ifndef MU_NODE_CMD_PLACE_H
#define MU_NODE_CMD_PLACE_H

#include "muster/cluster.h"

enum { CMD_FOLDER_BYTES = 64 };

/* How many tasks of a type are wanted. */
struct cmd_wanted {
    const char *type;
    int count;
};

/* A cluster of these tasks (NULL as type ends them), at free ports of 127.0.0.1, or at
 * sockets in a fresh folder whose path is written to `ret_folder` ("" otherwise). The
 * caller frees the cluster, and removes the folder with cmd_place_done. */
int cmd_place(const struct cmd_wanted *wanted, int ipc, mu_error *ret_error,
              char *ret_folder, mu_cluster **ret_cluster);

/* Remove the folder and the sockets in it; "" is fine. */
void cmd_place_done(const char *folder, const mu_cluster *cluster);

#endif
