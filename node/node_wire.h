/* The wire of a node: libuv's streams, or nng's sockets; which one its options say, or
 * the addresses that it listens at and dials, where only nng has a scheme of them. */
#ifndef MU_NODE_NODE_WIRE_H
#define MU_NODE_NODE_WIRE_H

#include "muster/node.h"
#include "transport/wire/nng/sockets.h"
#include "transport/wire/uv/streams.h"

/* One of both. */
struct mu__node_wire {
    struct mu__wire_uv *uv;
    struct mu__wire_nng *nng;
};

/* Where a node listens, and what it dials beside the tasks of its cluster. */
struct mu__node_wire_urls {
    const char *bind;              /* NULL: nowhere, it only dials */
    const char *dials_any;         /* NULL: none */
    const char *const *dials_each; /* ended by NULL; may be NULL */
};

/* Whether a node has nng's sockets. -MU_EINVALID: an unknown wire; one that does not have
 * the scheme at which it listens; nng with a key, which its TLS does not know, or with
 * certificates of single tasks, which it does not report. */
int mu__node_wire_choose(const mu_node_options *options,
                         const struct mu__node_wire_urls *urls, mu_error *ret_error,
                         bool *ret_is_nng);

/* Where this task was announced, a socket listens already: it is taken, and with nng
 * replaced by one of nng's. `pem`: of nng's TLS; NULL: plain. Returns as the wire's
 * open. */
int mu__node_wire_open(bool is_nng, const char *bind_url, struct mu__listening *listening,
                       const struct mu__tls_pem *pem, uv_loop_t *loop,
                       const struct mu__wire_events *events, void *owner,
                       mu_error *ret_error, struct mu__node_wire *ret_wire);

/* As mu__wire_uv_secure; NULL: plain. */
void mu__node_wire_secure(const struct mu__node_wire *wire,
                          const struct mu__tls_source *source);

struct mu__wire *mu__node_wire_door(const struct mu__node_wire *wire);

/* Where it listens; "": nowhere. */
const char *mu__node_wire_url(const struct mu__node_wire *wire);
void mu__node_wire_close(struct mu__node_wire *wire, void (*closed)(void *arg),
                         void *arg);

#endif
