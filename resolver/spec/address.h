/* The syntax of a task's address. Pure: no name is looked up here. */
#ifndef MU_RESOLVER_ADDRESS_H
#define MU_RESOLVER_ADDRESS_H

#include <muster/error.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    MU__URL_BYTES = 320 /* room for any normalised url */
};

/* Check an address and write the url that it stands for into `ret_url`, which has
 * MU__URL_BYTES: "tcp://host:port" (host in small letters, IPv6 in its shortest form) or
 * "ipc:///path"; or, of nng's sockets alone, "tls+tcp://host:port", "ws://host:port",
 * "wss://host:port" and "inproc://name".
 * Returns -MU_EINVALID with the address and what was expected. */
int mu__address_url(const char *address, mu_error *ret_error, char *ret_url);

/* The form of a url by which addresses are compared: a dot behind the host's name, which
 * only says that the name is complete, is left out. ret_url has MU__URL_BYTES. */
void mu__url_canonical(const char *url, char *ret_url);
bool mu__urls_are_same(const char *a, const char *b);

/* Whether it is a host of an address: a name, or a number (of IPv6 in brackets). */
bool mu__address_is_host(const char *host);

/* Write "host:port", "[host]:port" of an IPv6 address without brackets. Returns the size
 * that it has, or would have. */
size_t mu__address_join(const char *host, unsigned port, char *out, size_t size);

/* True for a url with port 0: the port is chosen at start, so that several tasks may
 * have the same one. */
bool mu__url_has_any_port(const char *url);

#endif
