/* One request put to servers of DNS, over UDP and, where the answer is larger, TCP.
 *
 * Blocks, on a thread of its own, until there is an answer, `due_ns` is there, or it is
 * cancelled. */
#ifndef MU_RESOLVER_DNS_EXCHANGE_UV_H
#define MU_RESOLVER_DNS_EXCHANGE_UV_H

#include "resolver/engine/dns_answer.h"

#include <stdatomic.h>
#include <sys/socket.h>

enum { MU__DNS_SERVERS_MAX = 4 };

struct mu__dns_servers {
    struct sockaddr_storage items[MU__DNS_SERVERS_MAX];
    unsigned count;
};

struct mu__dns_exchange {
    const struct mu__dns_servers *servers;
    const char *name;
    int type;
    uint64_t due_ns;            /* of uv_hrtime() */
    const atomic_bool *cancelled;
};

/* Read "127.0.0.1", "127.0.0.1:5353", "::1" or "[::1]:5353" as the only server.
 * -MU_EINVALID. */
int mu__dns_server_parse(const char *text, mu_error *ret_error,
                         struct mu__dns_servers *ret_servers);

/* Ask the servers in their order; one that does not answer is asked again later, the
 * others come first. Adds what is found to `records`, maybe nothing: *ret_code tells
 * MU__DNS_FINE and MU__DNS_NO_SUCH_NAME apart. -MU_EUNAVAILABLE: each server has refused
 * or failed; -MU_EDEADLINE: one of them was silent; -MU_EINVALID, -MU_ENOMEM,
 * -MU_ECANCELLED. Words name the server, not the name. */
int mu__dns_exchange(const struct mu__dns_exchange *exchange, mu_error *ret_error,
                     struct mu__dns_records *records, int *ret_code);

#endif
