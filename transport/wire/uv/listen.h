/* Sockets that listen before there is a wire to accept connections: a task can announce
 * its address before it knows the other tasks. Connections wait in the system's queue
 * meanwhile. Any thread; blocks during a look-up of a name, up to a timeout. */
#ifndef MU_TRANSPORT_LISTEN_UV_H
#define MU_TRANSPORT_LISTEN_UV_H

#include "muster/error.h"
#include "transport/wire/url.h"

enum { MU__LISTEN_LOOK_UP_MS = 10000 };

struct mu__listening {
    int fd;
    struct mu__url url; /* as requested */
    char text[280];     /* the same, with the real port */
};

/* Listen at `bind_url`; messages and codes as of mu__wire_uv_open. A name with several
 * addresses stands for the first that this machine has. The caller closes *ret_listening,
 * or passes it to mu__wire_uv_adopt. */
int mu__listen(const char *bind_url, mu_error *ret_error,
               struct mu__listening *ret_listening);

/* The same, with another timeout than MU__LISTEN_LOOK_UP_MS for the look-up of a name. */
int mu__listen_within(const char *bind_url, unsigned timeout_ms, mu_error *ret_error,
                      struct mu__listening *ret_listening);

/* Close a socket that no wire took. The socket file of an ipc address is removed. */
void mu__listening_close(struct mu__listening *listening);

/* The error for a libuv status with which the system refused to listen at `url`. */
int mu__listen_refused(const char *url, int status, mu_error *ret_error);

#endif
