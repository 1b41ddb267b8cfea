/* Synchronous look-ups of host names, for a node that starts and cannot go on without the
 * address. A look-up cannot be cancelled, so it is a blocking job (blocking.h), which is
 * left to its thread when the timeout has passed. */
#ifndef MU_RUNTIME_LOOK_UP_UV_H
#define MU_RUNTIME_LOOK_UP_UV_H

#include "muster/error.h"
#include "runtime/uv/blocking.h"

#include <netinet/in.h>
#include <stdint.h>

enum { MU__ADDRESSES_MAX = 16 };

union mu__address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Addresses of a name, IPv4 and IPv6, each once and in the system's order; at most the
 * first MU__ADDRESSES_MAX. */
struct mu__addresses {
    unsigned count;
    union mu__address items[MU__ADDRESSES_MAX];
};

/* A look-up as a blocking job, for a loop that goes on meanwhile. Its owner starts it,
 * and frees it with free() in done(), unless it was dropped. */
struct mu__look_up_job {
    struct mu__blocking_job job; /* first: it casts */
    void *owner;
    int status;                     /* of getaddrinfo */
    int system_error;               /* errno, when the status is EAI_SYSTEM */
    struct mu__addresses addresses; /* when the status is 0; may be none */
    uint16_t port;
    char name[];
};

/* NULL: out of memory. */
struct mu__look_up_job *mu__look_up_job_new(const char *name, uint16_t port,
                                            void (*done)(struct mu__blocking_job *job),
                                            void *owner);

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
