/* What a name stands for, for who cannot go on before it is known: a node that begins. A
 * look-up cannot be ended, so it is made on a job's thread (blocking.h); who has
 * waited until the limit leaves it to that thread. */
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

/* The addresses of `name`, IPv4 and IPv6, each once and in the system's order; of more
 * than MU__ADDRESSES_MAX the first. A number is its own address, at once.
 *
 * Returns: 0, and there is one at least; -MU_EDEADLINE: no answer within `timeout_ms`;
 *          -MU_ENOTFOUND: there is no such name, or it has no address; -MU_EUNAVAILABLE:
 *          it cannot be known now; -MU_ENOMEM; -MU_EEXHAUSTED. The words say why alone,
 *          as part of a sentence.
 * Thread:  any, also a loop's, which stands still. */
int mu__look_up(const char *name, uint16_t port, unsigned timeout_ms, mu_error *ret_error,
                struct mu__addresses *ret_addresses);

/* A failure of getaddrinfo as a code: -MU_ENOTFOUND, -MU_ENOMEM or -MU_EUNAVAILABLE. */
int mu__look_up_code(int status);

#endif
