/* A parser of wire addresses: "tcp://host:port", "tcp://[v6]:port", "ipc:///path"; and of
 * those that only nng's sockets have: "tls+tcp://host:port", "ws://host:port",
 * "wss://host:port", "inproc://name". */
#ifndef MU_TRANSPORT_URL_H
#define MU_TRANSPORT_URL_H

#include <stdbool.h>
#include <stdint.h>

enum { MU__URL_HOST_MAX = 253, MU__URL_PATH_MAX = 107 };

enum mu__scheme {
    MU__SCHEME_TCP,
    MU__SCHEME_IPC,
    MU__SCHEME_TLS_TCP,
    MU__SCHEME_WS,
    MU__SCHEME_WSS,
    MU__SCHEME_INPROC,
    MU__SCHEMES_END
};

struct mu__url {
    enum mu__scheme scheme;
    bool ipc;
    uint16_t port;                   /* tcp; 0: any free one, to listen at */
    char host[MU__URL_HOST_MAX + 1]; /* tcp; without brackets */
    char path[MU__URL_PATH_MAX + 1]; /* ipc: absolute; inproc: the name */
};

/* What is wrong with an address, as part of a sentence; NULL when nothing is, and then
 * *ret_url is written. Port 0 is accepted only for `listening`. Of tcp and ipc alone. */
const char *mu__url_parse(const char *text, bool listening, struct mu__url *ret_url);

/* The same, of each scheme. */
const char *mu__url_parse_any(const char *text, bool listening, struct mu__url *ret_url);

/* "tls+tcp" */
const char *mu__scheme_name(enum mu__scheme scheme);

/* Whether only nng's sockets have this address's scheme. NULL is fine. */
bool mu__url_is_of_nng(const char *text);

#endif
