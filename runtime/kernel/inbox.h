/* A lock-free inbox of messages from other threads: many producers, one consumer.
 *
 * A push links the message in front of a list; the consumer takes the whole list with one
 * exchange and reverses it. Only the producer that finds the inbox empty wakes the
 * consumer: one wake for each burst. */
#ifndef MU_RUNTIME_INBOX_H
#define MU_RUNTIME_INBOX_H

#include "runtime/message/message.h"

#include <stdatomic.h>
#include <stdbool.h>

struct mu__inbox {
    _Atomic(struct mu__msg *) newest;
};

void mu__inbox_init(struct mu__inbox *inbox);

/* Owns:    takes `msg` unless the inbox is closed.
 * Returns: 1 when the inbox was empty: the caller has to wake the consumer. 0 when it was
 *          not. -MU_ECLOSED.
 * Thread:  any. */
int mu__inbox_push(struct mu__inbox *inbox, struct mu__msg *msg);

/* All messages pushed so far, linked by `next`, the oldest first; NULL when there are
 * none. Consumer's thread only. */
struct mu__msg *mu__inbox_drain(struct mu__inbox *inbox);

/* Whether a drain now would find nothing. Pushes and this are in one order that all
 * threads agree on (seq_cst). Consumer's thread only. */
bool mu__inbox_is_empty(const struct mu__inbox *inbox);

/* The last drain: every push from now on is refused. Once, by the consumer. */
struct mu__msg *mu__inbox_close(struct mu__inbox *inbox);

#endif
