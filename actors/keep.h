/* Messages to an actor of the same node wait in its mailbox with the views they were sent
 * with, while those to another node are packed at once. */
#ifndef MU_ACTORS_KEEP_H
#define MU_ACTORS_KEEP_H

#include "runtime/kernel/kernel.h"

/* Copy what the views of `msg` borrow to a backing buffer of its own, so that it may
 * outlive the lenders. A local message borrows nothing. -MU_ENOMEM: nothing changed. */
int mu__msg_keep(const struct mu__schema *schema, struct mu__msg *msg);

/* mu__send for a message whose views borrow from something that lives until the call
 * returns, but perhaps no longer. Takes msg; NULL gives -MU_ENOMEM. */
int mu__send_borrowed(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg);

/* The same with a new message, whose body is a copy of `body`: of the struct of its kind,
 * which has `size` bytes. */
int mu__send_body(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                  size_t size);

/* The same, and mu__send: the views of `body` borrow from `backing`, of which the message
 * takes a reference (NULL: none), or from what outlives the message. */
int mu__send_backed(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                    size_t size, struct mu__buf *backing);

/* Whether a message that was refused may be accepted later. The loss of a node is told
 * soon. */
bool mu__send_is_transient(int rv);

#endif
