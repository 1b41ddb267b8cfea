/* The frames that wait to be sent on one link: the frame being filled, closed frames in
 * order, and records too large for a frame, which go out in pieces between them. */
#ifndef MU_TRANSPORT_OUTBOX_H
#define MU_TRANSPORT_OUTBOX_H

#include "runtime/base/list.h"
#include "transport/link/frames.h"
#include "transport/wire/wire.h"

struct mu__outbox {
    struct mu__buf *open;     /* being filled; NULL when empty */
    uint32_t open_count;      /* records in it */
    uint32_t open_bytes_hint; /* how large the last one became */
    struct mu__buf **ring;    /* closed frames */
    uint32_t ring_size;       /* a power of two, or 0 */
    uint32_t ring_first;
    uint32_t ring_count;
    struct mu__list larges; /* records too large for a frame, in order */
    uint64_t waiting_bytes; /* closed frames and large records */
    bool blocked;           /* the wire is full; its event `writable` follows */
};

/* The connection of a link, and the fields of its frames' headers. */
struct mu__outbox_route {
    struct mu__wire *wire;
    uint32_t connection;
    uint64_t from;
    uint64_t to;
};

/* Zeroed memory is an empty outbox. Drops everything. */
void mu__outbox_clear(struct mu__outbox *outbox);

/* Clears, and frees its memory. */
void mu__outbox_done(struct mu__outbox *outbox);

/* Put a message's record into the open frame. `msg` stays the caller's. -MU_ERANGE (a
 * field beyond its bound), -MU_ENOMEM. */
int mu__outbox_add(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                   const struct mu__schema *schema, const struct mu__msg *msg);

/* Queue a frame of the protocol itself; `msg` NULL: without a record. */
int mu__outbox_control(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                       uint8_t type, const struct mu__msg *msg);

/* Close the open frame and send all that the wire takes. `ret_frames` and `ret_bytes`
 * count what was sent. 0, also when some waits for `writable`; else the wire's error. */
int mu__outbox_send(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                    uint64_t *ret_frames, uint64_t *ret_bytes);

/* From this many bytes on, closed frames are sent while a turn still adds messages, so
 * that the peer reads them meanwhile. */
enum { MU__OUTBOX_EARLY_BYTES = 64 << 10 };

/* Whether enough bytes wait in closed frames, and the wire takes more. */
static inline bool mu__outbox_may_send_early(const struct mu__outbox *outbox)
{
    return outbox->waiting_bytes >= MU__OUTBOX_EARLY_BYTES && !outbox->blocked &&
           outbox->ring_count > 0;
}

/* mu__outbox_send for closed frames only, if mu__outbox_may_send_early. */
int mu__outbox_send_early(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                          uint64_t *ret_frames, uint64_t *ret_bytes);

static inline bool mu__outbox_is_empty(const struct mu__outbox *outbox)
{
    return outbox->open == NULL && outbox->ring_count == 0 &&
           mu__list_is_empty(&outbox->larges);
}

/* Whether no more than one large record and one frame wait, however large. */
static inline bool mu__outbox_has_one(const struct mu__outbox *outbox)
{
    return outbox->larges.first == outbox->larges.last && outbox->ring_count <= 1;
}

#endif
