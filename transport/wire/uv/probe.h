/* Finds out whether a node answers at an address: dials it as a wire does (dialling.h),
 * and hangs up after the greeting. The node sees only a connection that opens and
 * closes.
 *
 * Thread: runs a loop of its own on the thread of the call. */
#ifndef MU_TRANSPORT_PROBE_UV_H
#define MU_TRANSPORT_PROBE_UV_H

#include <stddef.h>
#include <stdint.h>

enum mu__probe_state {
    MU__PROBE_GREETS,  /* a node of muster, by its greeting */
    MU__PROBE_NO_NAME, /* the name does not resolve */
    MU__PROBE_REFUSED, /* nothing listens there */
    MU__PROBE_SILENT,  /* no answer to the attempt to connect */
    MU__PROBE_MUTE,    /* it is connected, and says nothing */
    MU__PROBE_OTHER,   /* what answers is not muster: `why` names it, if known */
    MU__PROBE_NO_WAY   /* any other failure: `why` has the system's words */
};

struct mu__probe {
    const char *url;            /* "tcp://host:port" or "ipc:///path"; the caller's */
    enum mu__probe_state state; /* of the address `at`; if it does not greet, all others
                                   have failed, too */
    char found[256];            /* addresses of the name, "10.0.0.7, ::1", as they were
                                   tried. "" for a path */
    char at[80];                /* the address where a node greets, "10.0.0.7:4000", or a
                                   path; else one that answered, or the first of all */
    char why[256];
    char others[512]; /* the other addresses that did not answer as a node, and
                         why, "10.0.0.8, ::1: no answer"; "": there are none */
    uint32_t took_ms;
};

enum { MU__PROBES_AT_ONCE = 64 }; /* further ones wait */

/* Probe all, each within `timeout_ms` of its begin, with TLS over tcp where `tls` is not
 * NULL. A look-up that hangs is left to its thread. -MU_ENOMEM: the loop could not be
 * created. */
struct mu__tls_source;
int mu__probe_all(struct mu__probe *probes, size_t count, unsigned timeout_ms,
                  const struct mu__tls_source *tls);

#endif
