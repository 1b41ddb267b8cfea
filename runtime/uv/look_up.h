/* Synchronous look-ups of host names, for a node that starts and cannot go on without the
 * address. A look-up cannot be cancelled, so it is a blocking job (blocking.h), which is
 * left to its thread when the timeout has passed. */
#ifndef MU_RUNTIME_LOOK_UP_UV_H
#define MU_RUNTIME_LOOK_UP_UV_H

#include "muster/error.h"

#include <netinet/in.h>
#include <stdint.h>

enum { MU__ADDRESSES_MAX = 16 };

struct mu__addresses {
    unsigned count;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } items[MU__ADDRESSES_MAX];
};

/* The addresses of `name`, IPv4 and IPv6, each once and in the system's order; at most
 * the first MU__ADDRESSES_MAX. A numeric address needs no look-up.
 *
 * Returns: 0, and there is one at least; -MU_EDEADLINE: no answer within `timeout_ms`;
 *          -MU_ENOTFOUND: there is no such name, or it has no address; -MU_EUNAVAILABLE:
 * the system's resolver fails now; -MU_ENOMEM; -MU_EEXHAUSTED. The message has the
 *          reason only, as part of a sentence.
 * Thread:  any; blocks a loop's. */
int mu__look_up(const char *name, uint16_t port, unsigned timeout_ms, mu_error *ret_error,
                struct mu__addresses *ret_addresses);

/* A failure of getaddrinfo as a code: -MU_ENOTFOUND, -MU_ENOMEM or -MU_EUNAVAILABLE. */
int mu__look_up_code(int status);

#endif
