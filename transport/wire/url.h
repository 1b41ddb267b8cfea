/* A parser of wire addresses: "tcp://host:port", "tcp://[v6]:port", "ipc:///path". */
#ifndef MU_TRANSPORT_URL_H
#define MU_TRANSPORT_URL_H

#include <stdbool.h>
#include <stdint.h>

enum { MU__URL_HOST_MAX = 253, MU__URL_PATH_MAX = 107 };

struct mu__url {
    bool ipc;
    uint16_t port;                      /* tcp; 0: any free one, to listen at */
    char host[MU__URL_HOST_MAX + 1];    /* tcp; without brackets */
    char path[MU__URL_PATH_MAX + 1];    /* ipc; absolute */
};

/* What is wrong with an address, as part of a sentence; NULL when nothing is, and then
 * *ret_url is written. Port 0 is accepted only for `listening`. */
const char *mu__url_parse(const char *text, bool listening, struct mu__url *ret_url);

#endif
