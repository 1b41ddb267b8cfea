/* Sockets that listen, before there is a wire to accept what comes: a task can tell the
 * others where it is before it knows who they are. What connects meanwhile waits in the
 * system's queue. Any thread; blocks while a name is looked up, but not for ever. */
#ifndef MU_TRANSPORT_LISTEN_UV_H
#define MU_TRANSPORT_LISTEN_UV_H

#include "muster/error.h"
#include "transport/wire/url.h"

enum { MU__LISTEN_LOOK_UP_MS = 10000 };

struct mu__listening {
    int fd;
    struct mu__url url;         /* as it was asked for */
    char text[280];             /* the same, with the real port */
};

/* Listen at `bind_url`; words and codes as of mu__wire_uv_open. Of a name with several
 * addresses it is the first that this machine has. The caller closes *ret_listening, or
 * has a wire take it. */
int mu__listen(const char *bind_url, mu_error *ret_error,
               struct mu__listening *ret_listening);

/* The same, with another limit than MU__LISTEN_LOOK_UP_MS for a name's look-up. */
int mu__listen_within(const char *bind_url, unsigned timeout_ms, mu_error *ret_error,
                      struct mu__listening *ret_listening);

/* Nobody took it. The socket file of an ipc address is removed. */
void mu__listening_close(struct mu__listening *listening);

/* What the system says about listening at `url`, a libuv status, as an error. */
int mu__listen_refused(const char *url, int status, mu_error *ret_error);

#endif
