/* One round of dialling a url: its name is looked up, its addresses are tried in the
 * order of dial_plan.h, and each connection begins with the SP greeting. The first that
 * greets as a node does has won, and the others are closed; or all have failed.
 *
 * Thread: the loop's. */
#ifndef MU_TRANSPORT_DIALLING_UV_H
#define MU_TRANSPORT_DIALLING_UV_H

#include "runtime/uv/look_up.h"
#include "transport/wire/dial_plan.h"
#include "transport/wire/uv/internal.h"

enum mu__dial_state {
    MU__DIAL_UNTRIED,
    MU__DIAL_CONNECTING,
    MU__DIAL_CONNECTED, /* it has not greeted yet */
    MU__DIAL_GREETS,    /* a node of muster, by its greeting */
    MU__DIAL_REFUSED,   /* nothing listens there */
    MU__DIAL_SILENT,    /* no answer to the attempt to connect */
    MU__DIAL_MUTE,      /* it is connected, and says nothing */
    MU__DIAL_ENDED,     /* it hangs up instead of a greeting */
    MU__DIAL_OTHER,     /* what answers is not muster */
    MU__DIAL_UNPROVEN,  /* one end does not accept what the other has shown */
    MU__DIAL_NO_WAY     /* any other failure: `why` has the system's words */
};

/* One address. */
struct mu__dial_try {
    union mu__address address; /* a path has none */
    enum mu__dial_state state;
    const char *why; /* once it has failed: a constant text, or `words`; else
                        NULL */
    char words[256];
    struct mu__connection *connection; /* while it is under way */
};

/* "10.0.0.7"; "" for a path. */
void mu__dial_name(const struct mu__dial_try *try, char *out, size_t size);

/* The number of its address: the same in each look-up, and never 0. */
uint32_t mu__dial_address_number(const struct mu__dial_try *try);

/* Until mu__dialling_cancel, and inside the events `won` and `lost`, the dialling can be
 * read. The receiver of `won` owns the connection: its handle is closed before it is
 * freed by mu__connection_free. */
struct mu__dialling_events {
    void (*won)(void *owner, const struct mu__dialling *dialling,
                struct mu__connection *connection);
    void (*lost)(void *owner, const struct mu__dialling *dialling);

    /* Its memory has been freed, some iterations of the loop after the end. */
    void (*closed)(void *arg);
};

struct mu__dial_request {
    uv_loop_t *loop;
    struct mu__blocking_jobs *blocking_jobs;  /* of the loop: look-ups are theirs */
    const struct mu__url *url;                /* copied */
    const struct mu__tls_source *tls;         /* borrowed; NULL: tcp is spoken plain */
    const struct mu__dial_tried *tried;       /* borrowed; NULL: none */
    uint32_t timeout_ms;                      /* of the look-up, and of one address */
    const struct mu__dialling_events *events; /* outlives it */
    void *owner;
    void *arg; /* of `closed` */
};

/* No event comes before the loop's next iteration. After `won` or `lost` the dialling has
 * ended, and frees itself. -MU_ENOMEM: no event comes, not even `closed`. */
int mu__dialling_start(const struct mu__dial_request *request,
                       struct mu__dialling **ret_dialling);

/* Cancel before the end: neither `won` nor `lost` comes. */
void mu__dialling_cancel(struct mu__dialling *dialling);

/* The addresses, in the order in which they are tried; none (0) when the name was not
 * found, or not yet. */
const struct mu__dial_try *mu__dialling_tries(const struct mu__dialling *dialling,
                                              unsigned *ret_count);

/* Why there are no addresses; NULL: not known. */
const char *mu__dialling_no_name(const struct mu__dialling *dialling);

#endif
