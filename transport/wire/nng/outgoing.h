/* What sends: a PUSH socket with a dialer, for one connection. nng 1.5 may keep a
 * connection that has ended among those that it sends on: so a socket that had one is not
 * used again, but retired, and the next connection has a socket of its own. */
#ifndef MU_TRANSPORT_NNG_OUTGOING_H
#define MU_TRANSPORT_NNG_OUTGOING_H

#include "transport/wire/nng/internal.h"

enum {
    MU__NNG_SOCKETS_MAX = 4096,
    MU__NNG_RETIRED_MAX = 64, /* with more of them the oldest half is closed */
    MU__NNG_RECONNECT_MIN_MS = 20,
    MU__NNG_RECONNECT_MAX_MS = 2000,
    MU__NNG_RECONNECT_NEVER_MS = 24 * 3600000
};

struct mu__nng_out;

struct mu__nng_sender {
    struct mu__wire_nng *wire;
    struct mu__list_node node; /* among all, or the retired ones */
    struct mu__nng_out *out;   /* NULL: retired */
    nng_socket socket;
    nng_dialer dialer;
    struct mu__nng_end *end;
    uint32_t pipe; /* 0: not connected */
    uint64_t retired_ms;
    nng_msg *pending;   /* accepted, goes out next; NULL: none */
    uv_poll_t writable; /* its send descriptor, */
    bool is_polled;     /* if this is so */
    bool is_poll_closing;
    bool is_freed;      /* once its poll handle is closed */
};

/* NULL: out of memory, or a url that nng refuses, or that needs TLS; *ret_code says
 * which. */
struct mu__nng_sender *mu__nng_sender_new(struct mu__wire_nng *wire,
                                          struct mu__nng_out *out, const char *url,
                                          int *ret_code);

/* Why it is not connected. */
const char *mu__nng_sender_why(const struct mu__nng_sender *sender);

/* It sends nothing more. Its connection is closed a moment later. */
void mu__nng_sender_retire(struct mu__nng_sender *sender);

/* Poll its send descriptor, and call `on_writable`; false: out of memory. */
bool mu__nng_sender_poll(struct mu__nng_sender *sender, uv_poll_cb on_writable);

/* Its memory, some iterations of the loop later. It is in no list. */
void mu__nng_sender_free(struct mu__nng_sender *sender);

#endif
