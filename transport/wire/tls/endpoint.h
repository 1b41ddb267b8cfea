/* TLS on one connection, without its socket: bytes that came from the peer are given to
 * it, bytes for the peer are taken from it.
 *
 *     receive() -> read() until it gives 0     what came
 *     write()   -> output()                    what goes
 *
 * After each call of any of these there may be output.
 *
 * Thread: the loop's. */
#ifndef MU_TRANSPORT_TLS_ENDPOINT_H
#define MU_TRANSPORT_TLS_ENDPOINT_H

#include "runtime/message/buf.h"
#include "transport/wire/tls/tls_identity.h"

struct mu__tls;

/* A session of the side that connected, or of the one that listens. NULL: out of
 * memory. */
struct mu__tls *mu__tls_new(struct mu__tls_identity *identity, bool listens);
void mu__tls_free(struct mu__tls *tls);

/* Begin, on the side that connected: there is output. */
int mu__tls_begin(struct mu__tls *tls);

/* Bytes that have come; borrowed until read() has given 0, or keep_input() is called.
 * Behind bytes that were kept and not read they are copied. False: out of memory. */
bool mu__tls_receive(struct mu__tls *tls, const void *data, size_t size);

/* Copy what read() has not taken; false when out of memory. */
bool mu__tls_keep_input(struct mu__tls *tls);

/* Up to `size` bytes of what the peer has said. 0: nothing more for now. Negative: the
 * session has failed (mu__tls_why), or the peer has ended it (-MU_ECANCELLED). */
int mu__tls_read(struct mu__tls *tls, void *out, size_t size);

/* Say it. Negative: it has failed, or the handshake is not over. */
int mu__tls_write(struct mu__tls *tls, const void *data, size_t size);

/* The bytes to be sent, NULL: none. The caller owns them. */
struct mu__buf *mu__tls_output(struct mu__tls *tls);

/* Bytes of output that wait. */
size_t mu__tls_output_bytes(const struct mu__tls *tls);

/* The handshake is over, and the peer has proven what `proof` says. On the side that
 * connected, the peer has not accepted this side before it has said something. On the
 * side that listens with a derived key, a peer with the same one is taken for one that
 * may do everything: of a right beyond its own such a node can check nothing. */
bool mu__tls_is_open(const struct mu__tls *tls);
void mu__tls_proof(const struct mu__tls *tls, struct mu__proof *ret_proof);

/* The right that this side can prove, that of its identity. */
enum mu__right mu__tls_own_right(const struct mu__tls *tls);

/* Why it has failed, in words, with what to do. */
const char *mu__tls_why(const struct mu__tls *tls);

#endif
