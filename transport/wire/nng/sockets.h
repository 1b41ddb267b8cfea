/* The other real wire: nng's own sockets. The same bytes as of the libuv wire on tcp and
 * unix sockets, so nodes on both mix in one cluster; and nng's other schemes.
 *
 * One raw REP socket listens; each peer that this node dials has a raw REQ socket with a
 * dialer. nng's close stops for ever now and then (docs/decisions/0030): nothing
 * is closed on the loop's thread, and next to nothing while the wire is open.
 *
 * Threads: everything here is for the loop thread. nng has threads of its own. */
#ifndef MU_TRANSPORT_WIRE_NNG_H
#define MU_TRANSPORT_WIRE_NNG_H

#include "muster/error.h"
#include "transport/wire/tls/tls_identity.h"
#include "transport/wire/wire.h"

#include <uv.h>

struct mu__wire_nng;

/* Listen at `bind_url`: "tcp://host:port" or "ipc:///path" as mu__wire_uv_open,
 * "ws://host:port", or "inproc://name"; NULL: nowhere, it only dials. `events` is
 * copied; `loop` outlives the wire, and the wire keeps it alive until it is closed.
 *
 * `pem`: of the TLS that tcp and ws are spoken over, as "tls+tcp://" and "wss://", which
 * need it; NULL: they are plain. Returns as mu__wire_uv_open, and as mu__nng_tls_new. */
int mu__wire_nng_open(uv_loop_t *loop, const char *bind_url,
                      const struct mu__tls_pem *pem, const struct mu__wire_events *events,
                      void *owner, mu_error *ret_error, struct mu__wire_nng **ret_wire);

/* The operations for the links. Valid until the wire is closed. */
struct mu__wire *mu__wire_nng_wire(struct mu__wire_nng *wire);

/* The url where it listens, with the port that was taken in place of 0. Valid until
 * closed. */
const char *mu__wire_nng_url(const struct mu__wire_nng *wire);

/* As mu__wire_uv_close. The sockets are closed on a thread of its own; one that does not
 * come back is left behind after MU__NNG_CLOSE_MS. */
enum { MU__NNG_CLOSE_MS = 2000 };
void mu__wire_nng_close(struct mu__wire_nng *wire, void (*closed)(void *arg), void *arg);

#endif
