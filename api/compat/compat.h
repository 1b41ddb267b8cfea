/* Parts of servers that `muster node` uses for itself, since it has a node and signals of
 * its own; and opening sessions, for api/ only. */
#ifndef MU_COMPAT_H
#define MU_COMPAT_H

#include "node/discovery/discover.h"

#include "muster/compat/server.h"
#include "muster/compat/session.h"

#include <stdatomic.h>
#include <stdbool.h>

/* ---- server ---- */

/* The options of a server as they were read, with those that they point to. */
struct mu__server_request {
    mu_node_options node;
    mu_session_config config;
    const char *rpc_layer;
    const char *environment;
    int64_t timeout_ms;
};

/* `options` NULL: the defaults. */
int mu__server_request_read(const mu_server_options *options, mu_error *ret_error,
                            struct mu__server_request *ret_request);

/* mu_server_start and mu_server_matches; the former changes the request. */
int mu__server_start(struct mu__server_request *request, mu_error *ret_error,
                     mu_server **ret_server);
bool mu__server_matches(const mu_server *server,
                        const struct mu__server_request *request);

/* What a client has assigned to a server that waited. */
struct mu__server_offered {
    mu_cluster *cluster;
    char type[16];
    int index;
    mu_session_config config;
    char address[280]; /* where it waited: the server's bind_address */
};

/* A node at the bind_address of `options` that speaks only with clients that offer a
 * cluster spec. */
int mu__server_wait_open(const mu_node_options *options, mu_error *ret_error,
                         mu_node **ret_node);

/* Wait there for the first offer that fits. The caller then closes that node, and opens
 * the server's with the options of mu__server_apply, which borrow from `offered`. */
int mu__server_take(mu_node *waiting, int64_t timeout_ms, mu_error *ret_error,
                    struct mu__server_offered *ret_offered);
void mu__server_apply(const struct mu__server_offered *offered, mu_node_options *options);
void mu__server_offered_done(struct mu__server_offered *offered);

/* Open such a node at the request's bind_address, wait for an offer, close the node. */
int mu__server_wait_for_cluster(const struct mu__server_request *request,
                                mu_error *ret_error,
                                struct mu__server_offered *ret_offered);

/* Start a server with what mu__discover has found for request->node, which may be
 * nothing. The caller calls mu__discovered_done. */
int mu__server_start_discovered(const struct mu__server_request *request,
                                struct mu__discovered *found, mu_error *ret_error,
                                mu_server **ret_server);

/* Set those settings of the node that a session config has. */
int mu__server_settings(mu_node *node, const mu_session_config *config);

/* ---- session ---- */

/* mu_session_open_worker that ends with -MU_EABORTED once *over is true: the run that it
 * is for has failed. NULL: there is none. */
int mu__session_open_worker(mu_node *node, const mu_session_options *options,
                            const atomic_bool *over, mu_error *ret_error,
                            mu_session **ret_session);

#endif
