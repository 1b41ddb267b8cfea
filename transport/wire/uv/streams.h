/* The real wire: libuv streams over tcp and over unix sockets, on the node's own loop.
 *
 * Connections speak an SP protocol of nng's (transport/wire/sp.h), so nng's sockets can
 * be at the other end. docs/decisions/0006 says why nng itself is not used.
 *
 * Threads: everything here is for the loop thread; only names are looked up on others. */
#ifndef MU_TRANSPORT_WIRE_UV_H
#define MU_TRANSPORT_WIRE_UV_H

#include "muster/error.h"
#include "transport/wire/uv/listen.h"
#include "transport/wire/wire.h"

#include <uv.h>

struct mu__wire_uv;

/* Listen at `bind_url`: "tcp://host:port" (an address of this machine, a name of one,
 * "0.0.0.0", "[::]"; port 0 takes a free one) or "ipc:///path". The socket file of a dead
 * process is taken over, that of a living one is not. `events` is copied; `loop` outlives
 * the wire, and the wire keeps it alive until it is closed.
 *
 * Returns: 0; -MU_EINVALID for an address that is malformed, or not of this machine;
 * -MU_EEXISTS when it is in use; -MU_EPERMISSION; -MU_EUNAVAILABLE for other refusals
 *          of the system; -MU_ENOMEM. `ret_error`, which may be NULL, names the url.
 *          After a failure the loop must be run once before it is closed. */
int mu__wire_uv_open(uv_loop_t *loop, const char *bind_url,
                     const struct mu__wire_events *events, void *owner,
                     mu_error *ret_error, struct mu__wire_uv **ret_wire);

/* The same with a socket that listens already. Takes the socket, whatever is returned. */
int mu__wire_uv_adopt(uv_loop_t *loop, struct mu__listening *listening,
                      const struct mu__wire_events *events, void *owner,
                      mu_error *ret_error, struct mu__wire_uv **ret_wire);

/* Over tcp, connections that are made or accepted from now on speak TLS with the identity
 * that `source` has then; over unix sockets, which are plain always, the other end has to
 * be a process of the same user, or of root. NULL: plain and open, as in the beginning.
 * `source` is borrowed until the wire is closed. */
struct mu__tls_source;
void mu__wire_uv_secure(struct mu__wire_uv *wire, const struct mu__tls_source *source);

/* A wire that only dials: nobody can connect to it, and mu__wire_uv_url is "". */
int mu__wire_uv_open_deaf(uv_loop_t *loop, const struct mu__wire_events *events,
                          void *owner, mu_error *ret_error,
                          struct mu__wire_uv **ret_wire);

/* The operations for the links. Valid until the wire is closed. */
struct mu__wire *mu__wire_uv_wire(struct mu__wire_uv *wire);

/* The url where it listens, with the port that was taken in place of 0. Valid until
 * closed. */
const char *mu__wire_uv_url(const struct mu__wire_uv *wire);

/* Break every connection, stop listening. No event follows; frames accepted for sending
 * may be lost; frames with other references stay valid. `closed` is called once, from the
 * loop, when the wire's memory has been freed. To be called once; allowed inside an
 * event. */
void mu__wire_uv_close(struct mu__wire_uv *wire, void (*closed)(void *arg), void *arg);

#endif
