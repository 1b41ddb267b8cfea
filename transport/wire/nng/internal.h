/* Shared by the files of the nng wire: sockets.c listens and owns everything, accepted.c
 * has the connections that peers have made, dialled.c and dialers.c those of this node,
 * each with a socket of its own, closer.c ends them. */
#ifndef MU_TRANSPORT_WIRE_NNG_INTERNAL_H
#define MU_TRANSPORT_WIRE_NNG_INTERNAL_H

#include "transport/wire/nng/closer.h"
#include "transport/wire/nng/news.h"
#include "transport/wire/nng/nng_tls.h"
#include "transport/wire/nng/sockets.h"
#include "transport/wire/sp.h"
#include "transport/wire/unproven.h"
#include "transport/wire/url.h"

#include "runtime/base/list.h"
#include "runtime/base/map.h"

enum {
    MU__NNG_REST_MS = 20,        /* how long a connection is left alone before its
                                       close, */
    MU__NNG_REST_LONG_MS = 1000, /* and at most, if its peer goes on sending */
    MU__NNG_URL_BYTES = 300,
    MU__NNG_FRAMES_MAX = 256, /* taken at a time */
    MU__NNG_PEER_BYTES = 80,  /* where a connection comes from, as text */
    MU__NNG_MESSAGE_MAX = MU__SP_PREFACE_BYTES + MU__FRAME_BYTES_MAX
};

/* The connections that peers have dialled. */
struct mu__nng_accepting {
    nng_socket socket; /* that listens, of all of them, */
    bool has_socket;   /* if there is one */
    bool has_polls;
    uv_poll_t readable; /* its descriptors */
    uv_poll_t writable;
    struct mu__map ins;      /* struct mu__nng_in, by number */
    struct mu__map pipes;    /* the same, and those that were dropped, by pipe */
    struct mu__list dropped; /* to be closed */
    struct mu__list waiting; /* with a message that the socket did not take */
    struct mu__unproven unproven;
    uv_timer_t sweep; /* until the oldest of those has to be ended */
    uint32_t next;
};

/* The connections that this node has dialled. */
struct mu__nng_dialling {
    struct mu__map outs;          /* struct mu__nng_out, by number */
    struct mu__list dialers;      /* struct mu__nng_dialer, of the outs */
    struct mu__list retired;      /* the others, oldest first */
    struct mu__nng_dialer *spare; /* a socket without a dialer; NULL: none */
    struct mu__nng_batch *batch;  /* some that are being closed; NULL: none */
    unsigned count;               /* of all sockets */
    unsigned retired_count;
    bool is_stuck; /* nng did not come back from a close */
};

struct mu__wire_nng {
    struct mu__wire door; /* first: operations cast */
    uv_loop_t *loop;
    struct mu__wire_events events;
    void *owner;
    char text[MU__NNG_URL_BYTES];    /* where it listens */
    char path[MU__URL_PATH_MAX + 1]; /* of its unix socket; "": none */
    struct mu__nng_news *news_of;
    uv_prepare_t before_poll; /* both call burst_end, once for all that happened */
    uv_check_t after_poll;
    uv_async_t wake;         /* by the news */
    uv_timer_t rest;         /* until the next connection is closed */
    struct mu__nng_tls *tls; /* NULL: plain */
    bool is_secured;         /* it listens over TLS */
    struct mu__nng_accepting in;
    struct mu__nng_dialling out;
    bool news; /* there were events since the last burst_end */
    bool closing;
    unsigned holds; /* handles that must be closed first */
    void (*closed)(void *arg);
    void *closed_arg;
};

void mu__wire_nng_hold(struct mu__wire_nng *wire);
void mu__wire_nng_drop_hold(struct mu__wire_nng *wire);

/* ---- accepted.c ---- */

/* Take what has arrived, up to MU__NNG_FRAMES_MAX, or until somebody wants a pause. */
void mu__nng_receive(struct mu__wire_nng *wire);

/* Hand over what the socket did not take before. */
void mu__nng_send_waiting(struct mu__wire_nng *wire);
int mu__nng_in_send(struct mu__wire_nng *wire, uint32_t number, struct mu__buf *frame);
void mu__nng_in_event(struct mu__wire_nng *wire, const struct mu__nng_event *event);
void mu__nng_in_hangup(struct mu__wire_nng *wire, uint32_t number);
void mu__nng_in_member(struct mu__wire_nng *wire, uint32_t number);
void mu__nng_in_free_all(struct mu__wire_nng *wire);

/* Its pipe; 0: there is no such connection. */
uint32_t mu__nng_in_pipe(struct mu__wire_nng *wire, uint32_t number);

/* Close those that were dropped and left alone; false: there are more. */
bool mu__nng_ins_rested(struct mu__wire_nng *wire);

/* ---- framing.c ---- */

/* Memory of a frame to send. */
struct mu__buf *mu__nng_frame_buffer(struct mu__wire *door, size_t capacity);

/* A message with the content of a frame, NULL: of none; NULL: out of memory. */
nng_msg *mu__nng_message_of(const struct mu__buf *frame,
                            const struct mu__sp_preface *preface);

/* What is left of the message is the frame. False: it has no preface. */
bool mu__nng_take_preface(nng_msg *message, struct mu__sp_preface *ret_preface);

/* A frame with the content of a message, which it takes; NULL: out of memory, and the
 * message is freed. */
struct mu__buf *mu__nng_frame_of(nng_msg *message);

/* ---- dialled.c ---- */

int mu__nng_dial(struct mu__wire *door, uint32_t number, const char *url);
void mu__nng_out_hangup(struct mu__wire_nng *wire, uint32_t number);
void mu__nng_out_hangup_all(struct mu__wire_nng *wire);
int mu__nng_out_send(struct mu__wire_nng *wire, uint32_t number, struct mu__buf *frame);
uint32_t mu__nng_out_pipe(struct mu__wire_nng *wire, uint32_t number);
bool mu__nng_out_is_secured(struct mu__wire_nng *wire, uint32_t number);
const char *mu__nng_last_error(struct mu__wire *door, uint32_t number);
void mu__nng_out_event(struct mu__wire_nng *wire, const struct mu__nng_event *event);

/* ---- dialers.c ---- */

/* Close those that were retired and left alone; false: there are more. */
bool mu__nng_dialers_rested(struct mu__wire_nng *wire);

/* Hand the sockets to `closer`, NULL: leave them as they are; and free the dialers, some
 * iterations of the loop later. All outs are hung up. */
void mu__nng_dialers_close(struct mu__wire_nng *wire, struct mu__nng_closer *closer);

/* ---- sockets.c ---- */

/* Open a socket by one of nng's functions; as it returns. */
int mu__nng_open(int (*open)(nng_socket *socket), nng_socket *ret_socket);

/* Something was retired or dropped: close it in a moment. */
void mu__wire_nng_rest(struct mu__wire_nng *wire);

#endif
