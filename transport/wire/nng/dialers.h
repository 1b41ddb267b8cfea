/* A connection of this node's to a peer: a raw REQ socket with a dialer, for one
 * connection. What was sent to a socket may go over its next one: so a socket that had a
 * connection is not used again, but retired, and the next has a socket of its own. */
#ifndef MU_TRANSPORT_NNG_DIALERS_H
#define MU_TRANSPORT_NNG_DIALERS_H

#include "transport/wire/nng/internal.h"

enum {
    MU__NNG_SOCKETS_MAX = 4096,
    MU__NNG_RETIRED_MAX = 64, /* with more of them the oldest half is closed */
    MU__NNG_RECONNECT_MIN_MS = 20,
    MU__NNG_RECONNECT_MAX_MS = 2000,
    MU__NNG_RECONNECT_NEVER_MS = 24 * 3600000
};

struct mu__nng_out;

struct mu__nng_dialer {
    struct mu__wire_nng *wire;
    struct mu__list_node node; /* among all, or the retired ones */
    struct mu__nng_out *out;   /* NULL: retired */
    nng_socket socket;
    nng_dialer nng;
    struct mu__nng_end *end;
    uint32_t pipe; /* 0: not connected */
    uint64_t retired_ms;
    nng_msg *pending; /* accepted, goes out next; NULL: none */
    bool owes_note;   /* behind that */
    struct mu__sp_taken taken;
    uv_poll_t writable; /* its descriptors, */
    uv_poll_t readable;
    bool has_writable; /* if these are so */
    bool has_readable;
    bool is_secured;
    unsigned closing; /* of these handles */
    bool is_freed;    /* once they are closed */
};

/* NULL: out of memory, or a url that nng refuses, or that needs TLS; *ret_code says
 * which. */
struct mu__nng_dialer *mu__nng_dialer_new(
    struct mu__wire_nng *wire, struct mu__nng_out *out, const char *url, int *ret_code);

/* Why it is not connected. */
const char *mu__nng_dialer_why(const struct mu__nng_dialer *dialer);

/* It sends nothing more, and hears nothing. Its connection is closed a moment later. */
void mu__nng_dialer_retire(struct mu__nng_dialer *dialer);

/* Poll its send descriptor, or the other one, and call `call`; false: out of memory. */
bool mu__nng_dialer_poll_send(struct mu__nng_dialer *dialer, uv_poll_cb call);
bool mu__nng_dialer_poll_receive(struct mu__nng_dialer *dialer, uv_poll_cb call);

/* Its memory, some iterations of the loop later. It is in no list. */
void mu__nng_dialer_free(struct mu__nng_dialer *dialer);

#endif
