/* Parts of servers that `muster node` uses for itself, since it has a node and signals of
 * its own; and opening sessions, for api/ only. */
#ifndef MU_COMPAT_H
#define MU_COMPAT_H

#include "node/discovery/discover.h"

#include "muster/compat/server.h"
#include "muster/compat/session.h"

#include <stdatomic.h>

/* ---- server ---- */

/* What a server was told by a client. */
struct mu__server_offered {
    mu_cluster *cluster;
    char type[16];
    int index;
    mu_session_config config;
    char address[280];          /* where it waited */
};

/* A node at the bind_address of `options` that speaks only with clients that offer a
 * cluster spec. */
int mu__server_wait_open(const mu_node_options *options, mu_error *ret_error,
                         mu_node **ret_node);

/* Wait there for the first offer that fits. Then that node is to be closed, and the real
 * one opened with mu__server_apply; it borrows what `offered` has. */
int mu__server_take(mu_node *waiting, int64_t timeout_ms, mu_error *ret_error,
                    struct mu__server_offered *ret_offered);
void mu__server_apply(const struct mu__server_offered *offered, mu_node_options *options);
void mu__server_offered_done(struct mu__server_offered *offered);

/* Wait for a cluster at the options' bind_address, with a node for that alone. */
int mu__server_wait_for_cluster(const mu_server_options *options, mu_error *ret_error,
                                struct mu__server_offered *ret_offered);

/* Start one with what mu__discover has found for options->node, which may be nothing. The
 * caller calls mu__discovered_done. */
int mu__server_start_discovered(const mu_server_options *options,
                                struct mu__discovered *found, mu_error *ret_error,
                                mu_server **ret_server);

/* The parts of a session config that are settings of the node. */
int mu__server_settings(mu_node *node, const mu_session_config *config);

/* ---- session ---- */

/* mu_session_open_worker that ends with -MU_EABORTED once *over is true: the run that it
 * is for has failed. NULL: there is none. */
int mu__session_open_worker(mu_node *node, const mu_session_options *options,
                            const atomic_bool *over, mu_error *ret_error,
                            mu_session **ret_session);

#endif
