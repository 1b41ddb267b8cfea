/* The addresses by which other machines reach this one. */
#ifndef MU_NODE_OWN_ADDRESS_H
#define MU_NODE_OWN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    MU__OWN_HOST_BYTES = 64,
    MU__OWN_ADDRESS_BYTES = 288,
    MU__OWN_LOOK_UP_MS = 2000 /* of the host's own name */
};

/* A numeric address: what the host's own name stands for, if it is one of an interface's;
 * else that of the first interface that is up; IPv4 before IPv6, and never loopback
 * (unless there is nothing else) nor link-local. Blocks while the name is looked up.
 * NULL, or a line for the log: the lookup took too long, and the name does not count. */
const char *mu__own_host(char ret_host[MU__OWN_HOST_BYTES]);

/* The address at which peers reach a socket that listens at `url`
 * ("tcp://0.0.0.0:40123"), if `advertise` (may be NULL) says so: "host" and "host:0"
 * are that host with the socket's port, another text stands as it is; without one it is
 * the url, with this machine's address in place of "any". `out` has
 * MU__OWN_ADDRESS_BYTES. Returns what mu__own_host does. */
const char *mu__advertised(const char *url, const char *advertise, char *out);

#endif
