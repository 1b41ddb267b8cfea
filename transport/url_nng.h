/* Addresses of the nng wire: "tcp://host:port" and "ipc:///path". */
#ifndef MU_TRANSPORT_URL_NNG_H
#define MU_TRANSPORT_URL_NNG_H

#include <stdbool.h>

/* What is wrong with an address, as part of a sentence; NULL for nothing. Only who
 * listens may have port 0. nng alone would accept port 99999 and try for ever. */
const char *mu__url_fault(const char *url, bool listening);

#endif
