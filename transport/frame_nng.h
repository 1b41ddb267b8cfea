/* nng messages in the clothes of a mu__buf: what is received and what is sent is not
 * copied on its way. Loop thread only. */
#ifndef MU_TRANSPORT_FRAME_NNG_H
#define MU_TRANSPORT_FRAME_NNG_H

#include "runtime/buf.h"

#include <nng/nng.h>

/* Where frames come from. Keeps the structs of some for the next ones, and counts those
 * that are out in the world: they may outlive the wire. */
struct mu__frames;

struct mu__frames *mu__frames_new(void);

/* Frees it, at once or with the last frame that comes back. */
void mu__frames_close(struct mu__frames *frames);

/* A frame around `msg`: capacity is the message's length, size 0. Takes `msg` unless it
 * returns NULL, which is: out of memory. */
struct mu__buf *mu__frame_of_msg(struct mu__frames *frames, nng_msg *msg);

/* A frame around a new message; NULL when out of memory. */
struct mu__buf *mu__frame_new(struct mu__frames *frames, size_t capacity);

/* The message to send for `buf`: its own, cut to size, when it is a frame that nobody
 * else holds, otherwise a copy. NULL when out of memory. Exactly one of the two functions
 * below must follow. */
nng_msg *mu__frame_to_msg(struct mu__buf *buf);

/* The message was not sent: `buf` is as it was. */
void mu__frame_take_back(struct mu__buf *buf, nng_msg *msg);

/* The message belongs to nng now: the reference to `buf` is gone. */
void mu__frame_give_away(struct mu__buf *buf);

#endif
