/* What a node hands to its agent and to the coordination service that it may host: texts
 * of its own, the store's storage, the machine's devices. */
#ifndef MU_NODE_SERVICE_HOST_H
#define MU_NODE_SERVICE_HOST_H

#include "node/etcd_access.h"
#include "node/member/member.h"
#include "node/member/service_options.h"
#include "resolver/engine/uv/http_client.h"

#include "muster/node.h"

struct mu__service_host {
    char *hosts; /* a set of tasks, "": there is no service */
    char *tasks; /* the coordinated ones */
    char recoverable[MU__SERVICE_TYPES_BYTES];
    bool is_host; /* this task is one of them */
    char *store;  /* the option's text: `store_location` points into it */
    const struct mu__store_kind *kind;
    const char *store_location;
    bool sync;
    struct mu__storage *kept;       /* the file of kept actors, beside it */
    struct mu__storage *storage;    /* a journal's, while the node is open */
    struct mu__http_client *http;   /* of a store that is elsewhere, while it is open */
    struct mu__store_access access; /* how that is reached */
    mu_value *devices;
};

/* Read the options, and look at the machine. -MU_EINVALID names the option that is wrong;
 * `host` is then done with. Zeroed memory may be done with, too. */
int mu__service_host_init(struct mu__service_host *host, const mu_node_options *options,
                          mu_error *ret_error);
void mu__service_host_done(struct mu__service_host *host);

/* What the store of a host needs: the file of a journal, or an HTTP client for a store
 * that is elsewhere, which posts MU__HTTP_DONE with `post` and `owner`. On failure
 * nothing is open. */
int mu__service_host_open_file(struct mu__service_host *host, mu_error *ret_error);
int mu__service_host_open_http(struct mu__service_host *host, uv_loop_t *loop,
                               int (*post)(void *owner, struct mu__msg *msg), void *owner,
                               mu_error *ret_error);

/* Once no actor uses them. `closed` is called on the loop when the HTTP client is closed;
 * false: there was none. */
void mu__service_host_close_file(struct mu__service_host *host);
bool mu__service_host_close_http(struct mu__service_host *host, void (*closed)(void *arg),
                                 void *arg);

/* Fill in the member's part; it points into `host`. */
void mu__service_host_config(const struct mu__service_host *host,
                             const mu_node_options *options,
                             struct mu__member_config *config);

#endif
