/* The syntax of a task's address. Pure: no name is looked up here. */
#ifndef MU_RESOLVER_ADDRESS_H
#define MU_RESOLVER_ADDRESS_H

#include <muster/error.h>

#include <stdbool.h>

enum {
    MU__URL_BYTES = 320 /* room for any normalised url */
};

/* Check an address and write the url that it stands for into `ret_url`, which has
 * MU__URL_BYTES: "tcp://host:port" (host in small letters, IPv6 in its shortest form) or
 * "ipc:///path". Two addresses with the same url are the same address.
 * Returns -MU_EINVALID with the address and what was expected. */
int mu__address_url(const char *address, mu_error *ret_error, char *ret_url);

/* Whether it is a host of an address: a name, or a number (of IPv6 in brackets). */
bool mu__address_is_host(const char *host);

/* True for a url with port 0: the port is chosen at start, so that several tasks may
 * have the same one. */
bool mu__url_has_any_port(const char *url);

#endif
