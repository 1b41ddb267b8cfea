/* Does a node answer at an address? Looks the name up, connects, and hears the greeting,
 * as a wire does when it dials; then hangs up. No node notices more than a connection
 * that comes and goes.
 *
 * Thread: runs a loop of its own on the thread of the call. */
#ifndef MU_TRANSPORT_PROBE_UV_H
#define MU_TRANSPORT_PROBE_UV_H

#include <stddef.h>
#include <stdint.h>

enum mu__probe_state {
    MU__PROBE_GREETS,   /* a node of muster, by its greeting */
    MU__PROBE_NO_NAME,  /* the name does not resolve */
    MU__PROBE_REFUSED,  /* nothing listens there */
    MU__PROBE_SILENT,   /* no answer to the attempt to connect */
    MU__PROBE_MUTE,     /* it is connected, and says nothing */
    MU__PROBE_OTHER,    /* what answers is not muster */
    MU__PROBE_NO_WAY    /* any other failure: `why` has the system's words */
};

struct mu__probe {
    const char *url;            /* "tcp://host:port" or "ipc:///path"; the caller's */
    enum mu__probe_state state;
    char found[256];            /* what the name stands for, "10.0.0.7, ::1"; the first is
                                   the one that is dialled. "" for a path */
    char first[80];             /* where it was dialled: "10.0.0.7:4000", or the path */
    char why[128];
    uint32_t took_ms;
};

enum { MU__PROBES_AT_ONCE = 64 };   /* more wait for their turn */

/* Try all, each within `limit_ms` of its begin; a look-up that the system has begun and
 * not given up is waited for, as nothing can end it. -MU_ENOMEM: the loop could not be
 * made. */
int mu__probe_all(struct mu__probe *probes, size_t count, unsigned limit_ms);

#endif
