/* What the two halves of the nng wire share: wire_nng.c, which listens, and out_nng.c,
 * which dials. Nobody else includes this. */
#ifndef MU_TRANSPORT_INNER_NNG_H
#define MU_TRANSPORT_INNER_NNG_H

#include "transport/frame_nng.h"
#include "transport/wire_nng.h"

#include <nng/nng.h>

enum { MU__WIRE_BUCKETS = 256 };    /* of either table; chains beyond */

/* Something that nng's threads have told and the loop has not handled yet. Embedded in
 * what it is about. Guarded by the wire's lock, all of it. */
struct mu__news {
    struct mu__news *next;
    void (*handle)(struct mu__wire_nng *wire, struct mu__news *news, bool came,
                   bool went);
    bool queued;
    bool came;
    bool went;
};

struct mu__wire_nng {
    struct mu__wire door;           /* first: operations cast */
    struct mu__wire_events events;
    void *owner;
    uv_loop_t *loop;
    struct mu__frames *frames;

    uv_mutex_t lock;                /* guards the next three, and what says so above */
    struct mu__news *news_first;
    struct mu__news *news_last;
    struct mu__incoming *incoming[MU__WIRE_BUCKETS];
    uv_async_t news_wake;

    nng_socket pull;
    uv_poll_t readable;
    char *url;
    uint32_t last_in;

    struct mu__out *outs[MU__WIRE_BUCKETS];

    bool closing;
    unsigned open_handles;          /* holds of the memory */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* The end of every uv handle that a wire has; each was counted in open_handles. */
void mu__wire_drop_hold(struct mu__wire_nng *wire);

/* Queue news, unless they wait already. Any thread, without the lock. */
void mu__news_tell(struct mu__wire_nng *wire, struct mu__news *news, bool came,
                   bool went);

/* Take news out of the queue: what they are about goes away. */
void mu__news_forget(struct mu__wire_nng *wire, struct mu__news *news);

/* nng's code for "this transport has no such option" is fine: ipc has no Nagle. */
int mu__nodelay_result(int rv);

/* The operations that are about outs. */
int mu__out_dial(struct mu__wire *door, uint32_t number, const char *url);
void mu__out_hangup(struct mu__wire *door, uint32_t number);
int mu__out_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame);

void mu__out_hangup_all(struct mu__wire_nng *wire);

#endif
