/* The cluster and the task, from the flags and TF_CONFIG. */
#ifndef MU_NODE_CMD_SPEC_H
#define MU_NODE_CMD_SPEC_H

#include "node/cmd_options.h"

#include "muster/cluster.h"
#include "muster/distribute.h"

struct cmd_spec {
    mu_cluster *cluster;
    char type[16];
    int index;
};

/* The cluster: --cluster, or else that of TF_CONFIG; *ret_cluster is NULL when neither is
 * given. Errors name the source. */
int cmd_spec_cluster(const struct cmd_options *options, mu_error *ret_error,
                     mu_cluster **ret_cluster);

/* --mode, as one of enum mu_mode. */
int cmd_mode(const struct cmd_options *options);

/* Cluster and task of a node; the caller frees spec->cluster. In local mode they are a
 * cluster of nobody else, in standalone mode the task is a client unless it is said. */
int cmd_spec_read(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec);

#endif
