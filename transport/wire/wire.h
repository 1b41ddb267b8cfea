/* The interface between links and sockets: frames out, frames and connection news in.
 *
 * There are three wires. transport/wire/uv/streams.c speaks the protocol of nng's PUSH
 * and PULL sockets over libuv's streams; transport/wire/nng/ has those sockets
 * themselves; tests/sim/ has a network with virtual time.
 * The links above are the same. Everything runs on the loop thread.
 *
 * An outgoing connection is a number chosen by the links; an incoming one is a number
 * chosen by the wire. Both are one-way: frames are sent on outgoing connections and
 * arrive on incoming ones. A connection delivers frames whole and in order, until it
 * breaks; what was under way then is lost. */
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

struct mu__wire_ops {
    /* Frames of `buffer` can have splices. */
    bool splices;

    /* Memory for a frame to send on this wire; size 0. NULL when out of memory. */
    struct mu__buf *(*buffer)(struct mu__wire *wire, size_t capacity);

    /* Connect `out` to `url` ("tcp://host:port", "ipc:///path") and keep it connected:
     * tries again, with back-off, at each loss, resolving the name anew, until hangup.
     * The addresses of a name are tried in parallel, each a moment after the last. Each
     * success is reported as out_up, each loss as out_down. An `out` in use, or a url
     * that cannot be parsed, is refused with an error. */
    int (*dial)(struct mu__wire *wire, uint32_t out, const char *url);

    /* The attempts of `out` that have not begun yet try these addresses of its name last.
     * `tried` is borrowed until hangup. NULL, like address_number, on a wire without
     * names. */
    void (*avoid)(struct mu__wire *wire, uint32_t out,
                  const struct mu__dial_tried *tried);

    /* The number of the address that `out` is connected to, the same after each look-up
     * of its name; 0: it is not connected. `ret_count`: how many addresses the name
     * has. */
    uint32_t (*address_number)(struct mu__wire *wire, uint32_t out, unsigned *ret_count);

    /* Forget `out`. Frames accepted for sending may be lost. No event of it follows. */
    void (*hangup)(struct mu__wire *wire, uint32_t out);

    /* Send one frame. Takes it when 0 is returned; otherwise (-MU_EAGAIN: `writable`
     * follows; -MU_EUNAVAILABLE: not connected) the caller keeps it. */
    int (*send)(struct mu__wire *wire, uint32_t out, struct mu__buf *frame);

    /* Break an incoming connection. No event of it follows. */
    void (*drop)(struct mu__wire *wire, uint32_t in);

    /* Read nothing of an incoming connection until it is called with false. Frames that
     * were read already may still come. NULL on a wire that cannot. */
    void (*hold)(struct mu__wire *wire, uint32_t in, bool is_held);

    /* The HELLO that came on `in` was accepted. Before that a connection may send frames
     * of at most a few kilobytes, and is ended when it takes too long, or too many others
     * come. NULL on a wire without such bounds. */
    void (*member)(struct mu__wire *wire, uint32_t in);

    /* What the other end of an incoming connection has proven. NULL, as `show`, on a wire
     * where everybody may do everything. */
    void (*proof)(struct mu__wire *wire, uint32_t in, struct mu__proof *ret_proof);

    /* The attempts of `out` that have not begun yet show the key of this right, if this
     * node can derive it: to a peer that has no other. */
    void (*show)(struct mu__wire *wire, uint32_t out, enum mu__right right);

    /* What this node proves on `out`, which is connected. NULL: everything. */
    enum mu__right (*own_right)(struct mu__wire *wire, uint32_t out);

    /* Where an incoming connection comes from, for messages: "10.0.0.1:5000", "unix"; ""
     * when that is not known. NULL: it never is. */
    void (*peer)(struct mu__wire *wire, uint32_t in, char *ret_address, size_t size);

    /* Whether the other end of an incoming connection is on this machine, by the
     * addresses of both ends. NULL: that is not known, and counts as yes. */
    bool (*is_near)(struct mu__wire *wire, uint32_t in);

    /* Why `out` is not connected, for messages: of a name with several addresses, why
     * each of them failed. Valid until the loop's next iteration. NULL when it is
     * connected, or when nothing is known. */
    const char *(*last_error)(struct mu__wire *wire, uint32_t out);
};

/* The events of a wire, passed when it is opened. */
struct mu__wire_events {
    void (*out_up)(void *owner, uint32_t out);
    void (*out_down)(void *owner, uint32_t out, const char *reason);
    void (*writable)(void *owner, uint32_t out);

    /* `frame` is borrowed: take a reference to keep it. Returns false to request a pause:
     * the wire reads on in the loop's next iteration. */
    bool (*frame)(void *owner, uint32_t in, struct mu__buf *frame);

    /* After the last frame of `in`, also for connections that have sent no frame. */
    void (*in_down)(void *owner, uint32_t in, const char *reason);

    /* After each burst of the events above: take a turn. */
    void (*burst_end)(void *owner);

    /* An incoming connection was ended before it was a member's: where it came from, as
     * of `peer`, and why. May be NULL. in_down follows if it had greeted. */
    void (*refused)(void *owner, const char *address, const char *reason);

    /* Connections cannot be accepted for now: why, and what to do. Once a minute at most.
     * May be NULL. */
    void (*short_of)(void *owner, const char *words);
};

#endif
