/* The real wire: nng sockets polled by a libuv loop. One PULL socket listens; each `out`
 * has a PUSH socket of its own.
 *
 * Threads: everything here is for the loop thread. What nng tells on its own threads
 * (connections that come and go) is brought to the loop inside.
 *
 * Forking: nng's threads do not survive fork(); a child must exec, or fork before the
 * first wire is opened. */
#ifndef MU_TRANSPORT_WIRE_NNG_H
#define MU_TRANSPORT_WIRE_NNG_H

#include "muster/error.h"
#include "transport/wire.h"

#include <uv.h>

struct mu__wire_nng;

/* Listen at `bind_url`: "tcp://host:port" (an address of this machine, a name of one,
 * "0.0.0.0", "[::]"; port 0 takes a free one) or "ipc:///path". The socket file of a dead
 * process is taken over, that of a living one is not. `events` is copied; `loop` outlives
 * the wire, and the wire keeps it alive until it is closed.
 *
 * Returns: 0; -MU_EINVALID for an address that is none, or is not ours; -MU_EEXISTS when
 *          somebody listens there; -MU_EPERMISSION; -MU_EUNAVAILABLE for other refusals
 *          of the system; -MU_ENOMEM. `ret_error`, which may be NULL, names the url.
 *          After a failure the loop has a handle left to close: run it before it is
 *          closed itself. */
int mu__wire_nng_open(uv_loop_t *loop, const char *bind_url,
                      const struct mu__wire_events *events, void *owner,
                      mu_error *ret_error, struct mu__wire_nng **ret_wire);

/* The door. Valid until the wire is closed. */
struct mu__wire *mu__wire_nng_wire(struct mu__wire_nng *wire);

/* Where it listens, with the port that was taken in place of 0. Valid until closed. */
const char *mu__wire_nng_url(const struct mu__wire_nng *wire);

/* Why `out` is not connected, as far as nng tells: it counts failures by kind, so this is
 * the kind that was counted last. NULL when it is connected, or none was counted, or
 * there is no such `out`. The string is static. Not for a hot path. */
const char *mu__wire_nng_last_error(struct mu__wire_nng *wire, uint32_t out);

/* Break every connection, stop listening. No event follows; frames accepted for sending
 * may be lost; frames that somebody keeps stay valid. `closed` is called once, from the
 * loop, when the wire's memory has been freed. To be called once; allowed inside an
 * event. */
void mu__wire_nng_close(struct mu__wire_nng *wire, void (*closed)(void *arg), void *arg);

#endif
