/* A peer that is sent to: a PUSH socket with a dialer, for one url. Hanging up closes the
 * connection and parks the peer, which refuses connections then, until the same url is
 * dialled again. Of many that are parked the oldest are closed (retiring.c). */
#ifndef MU_TRANSPORT_NNG_PEERS_H
#define MU_TRANSPORT_NNG_PEERS_H

#include "transport/wire/nng/internal.h"

enum {
    MU__NNG_PEERS_MAX = 4096,
    MU__NNG_PARKED_MAX = 256,       /* with more of them the oldest half is closed */
    MU__NNG_SLOW_MS = 60000,        /* parked so long it hardly dials any more */
    MU__NNG_LATE_MS = 2000,         /* after which the end of a connection, which was
                                       closed here, should have been told */
    MU__NNG_RECONNECT_MIN_MS = 20,
    MU__NNG_RECONNECT_MAX_MS = 2000,
    MU__NNG_RECONNECT_SLOW_MS = 3600000
};

struct mu__nng_peer {
    struct mu__wire_nng *wire;
    struct mu__list_node in_all;
    struct mu__list_node in_parked;
    uint32_t number;                /* 0: parked */
    nng_socket socket;
    nng_dialer dialer;
    struct mu__nng_end *end;        /* of the news; theirs */
    uint32_t pipe;                  /* 0: not connected */
    uint32_t ending;                /* closed here, and not told to have ended; 0: none */
    uint64_t ending_since_ms;
    uint64_t parked_since_ms;
    bool is_slow;                   /* not for use any more */
    bool is_closing;                /* its socket is some closer's */
    bool is_blocked;                /* `writable` follows */
    nng_msg *pending;               /* accepted, goes out next; NULL: none */
    uv_poll_t writable;             /* its send descriptor, */
    bool is_polled;                 /* if this is so */
    char url[MU__NNG_URL_BYTES];
};

/* NULL: out of memory, or nng refuses the url; *ret_code says which. */
struct mu__nng_peer *mu__nng_peer_new(struct mu__wire_nng *wire, const char *url,
                                      int *ret_code);

/* Its memory, some iterations of the loop later. It is in no list. */
void mu__nng_peer_free(struct mu__nng_peer *peer);

/* Close the oldest half of the parked peers, on another thread. */
void mu__nng_retire(struct mu__wire_nng *wire);

#endif
