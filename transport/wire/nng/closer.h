/* Closes nng's sockets on a thread of its own, which is left behind when nng does not
 * come back (docs/decisions/0030).
 *
 * Thread: the loop's. */
#ifndef MU_TRANSPORT_NNG_CLOSER_H
#define MU_TRANSPORT_NNG_CLOSER_H

#include <nng/nng.h>
#include <stdbool.h>
#include <uv.h>

struct mu__nng_news;
struct mu__nng_closer;

/* With room for `count` sockets, whose notifications need `news`. NULL: out of memory. */
struct mu__nng_closer *mu__nng_closer_new(struct mu__nng_news *news, unsigned count);
/* One that was not started; NULL is fine. */
void mu__nng_closer_free(struct mu__nng_closer *closer);
void mu__nng_closer_add(struct mu__nng_closer *closer, nng_socket socket);

/* `done` is called once, from the loop: when all are closed, or after `timeout_ms`. Takes
 * the closer. False: out of memory, the sockets stay open, and `done` is not called. */
bool mu__nng_closer_start(struct mu__nng_closer *closer, uv_loop_t *loop,
                          unsigned timeout_ms, void (*done)(void *owner, bool is_closed),
                          void *owner);

/* How a socket is closed; tests put something else in its place. */
extern int (*mu__nng_close_socket)(nng_socket socket);

#endif
