/* The interface between links and sockets: frames out, frames and connection news in.
 *
 * There are three wires. transport/wire/uv/streams.c speaks an SP protocol of nng's over
 * libuv's streams; transport/wire/nng/ has nng's sockets themselves; tests/sim/ has a
 * network with virtual time. The links above are the same. Everything runs on the loop
 * thread.
 *
 * A connection goes both ways, and is a number: one that is dialled has the number that
 * the links have chosen for it, one that is accepted a number of the wire's, with the bit
 * MU__WIRE_ACCEPTED. It delivers frames whole and in order, until it breaks; what was
 * under way then is lost. */
#ifndef MU_TRANSPORT_WIRE_H
#define MU_TRANSPORT_WIRE_H

#include "runtime/message/buf.h"
#include "runtime/message/rights.h"
#include "transport/wire/dial_plan.h"

struct mu__wire {
    const struct mu__wire_ops *ops;
};

/* Most bytes of one frame. A wire breaks an incoming connection that sends more. */
enum { MU__FRAME_BYTES_MAX = 4 << 20 };

enum { MU__WIRE_ACCEPTED_BIT = 31 };
#define MU__WIRE_ACCEPTED (UINT32_C(1) << MU__WIRE_ACCEPTED_BIT)

static inline bool mu__wire_is_accepted(uint32_t connection)
{
    return (connection & MU__WIRE_ACCEPTED) != 0;
}

struct mu__wire_ops {
    /* Frames of `buffer` can have splices. */
    bool splices;

    /* Memory for a frame to send on this wire; size 0. NULL when out of memory. */
    struct mu__buf *(*buffer)(struct mu__wire *wire, size_t capacity);

    /* Connect `connection` (not 0, below MU__WIRE_ACCEPTED) to `url`
     * ("tcp://host:port", "ipc:///path"): tries again, with back-off, until there is a
     * connection (event `up`) or it is hung up, resolving the name anew each time. The
     * addresses of a name are tried in parallel, each a moment after the last. A number
     * in use, or a url that cannot be parsed, is refused with an error. */
    int (*dial)(struct mu__wire *wire, uint32_t connection, const char *url);

    /* The attempts of a dialled connection that have not begun yet try these addresses of
     * its name last. `tried` is borrowed until there is a connection, or it is hung up.
     * NULL, like address_number, on a wire without names. */
    void (*avoid)(struct mu__wire *wire, uint32_t connection,
                  const struct mu__dial_tried *tried);

    /* The number of the address that a dialled connection leads to, the same after each
     * look-up of its name; 0: it is not connected. `ret_count`: how many addresses the
     * name has. */
    uint32_t (*address_number)(struct mu__wire *wire, uint32_t connection,
                               unsigned *ret_count);

    /* End a connection, or the attempts to make it. Its number is free again. Frames
     * accepted for sending may be lost. No event of it follows. */
    void (*hangup)(struct mu__wire *wire, uint32_t connection);

    /* Send one frame. Takes it when 0 is returned; otherwise (-MU_EAGAIN: `writable`
     * follows; -MU_EUNAVAILABLE: not connected) the caller keeps it. */
    int (*send)(struct mu__wire *wire, uint32_t connection, struct mu__buf *frame);

    /* Read nothing of a connection until it is called with false. Frames that were read
     * already may still come. NULL on a wire that cannot. */
    void (*hold)(struct mu__wire *wire, uint32_t connection, bool is_held);

    /* The HELLO that came on a connection was accepted. Before that the other end may
     * send frames of at most a few kilobytes; an accepted connection is ended when it
     * takes too long, or too many others come. NULL on a wire without such bounds. */
    void (*member)(struct mu__wire *wire, uint32_t connection);

    /* Write what the other end has proven. NULL on a wire where everybody may do
     * everything. */
    void (*proof)(struct mu__wire *wire, uint32_t connection,
                  struct mu__proof *ret_proof);

    /* The right that this node proves on a connection. NULL: all of them. */
    enum mu__right (*own_right)(struct mu__wire *wire, uint32_t connection);

    /* Write the other end's address, for messages: "10.0.0.1:5000", "unix"; "" when
     * that is not known. NULL: it never is. */
    void (*peer)(struct mu__wire *wire, uint32_t connection, char *ret_address,
                 size_t size);

    /* Why a dialled connection is not there yet, for messages: of a name with several
     * addresses, why each of them failed. Valid until the loop's next iteration. NULL
     * when it is connected, or when nothing is known. */
    const char *(*last_error)(struct mu__wire *wire, uint32_t connection);
};

/* The events of a wire, passed when it is opened. */
struct mu__wire_events {
    /* A dialled connection is there. One that was accepted is not announced: its first
     * frame, or its end, tells of it. */
    void (*up)(void *owner, uint32_t connection);

    /* A connection has ended: the last event of it, and its number is free again. */
    void (*down)(void *owner, uint32_t connection, const char *reason);
    void (*writable)(void *owner, uint32_t connection);

    /* `frame` is borrowed: take a reference to keep it. Returns false to request a pause:
     * the wire reads on in the loop's next iteration. */
    bool (*frame)(void *owner, uint32_t connection, struct mu__buf *frame);

    /* After each burst of the events above: take a turn. */
    void (*burst_end)(void *owner);

    /* An accepted connection was ended before it was a member's: where it came from, as
     * of `peer`, and why. May be NULL. `down` follows if it had greeted. */
    void (*refused)(void *owner, const char *address, const char *reason);

    /* Connections cannot be accepted for now: why, and what to do. Once a minute at most.
     * May be NULL. */
    void (*short_of)(void *owner, const char *words);
};

#endif
