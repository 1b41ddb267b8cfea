/* Sending messages with borrowed views. A message to another node is packed when it is
 * sent; one to an actor of the same node waits in the mailbox with its views, so that
 * what they borrow must live until then, or be copied. */
#ifndef MU_ACTORS_KEEP_H
#define MU_ACTORS_KEEP_H

#include "runtime/kernel/kernel.h"

/* Copy what the views of `msg` borrow to a backing buffer of its own, so that it may
 * outlive the lenders. A local message borrows nothing. -MU_ENOMEM: nothing changed. */
int mu__msg_keep(const struct mu__schema *schema, struct mu__msg *msg);

/* mu__send for a message whose views borrow from something that lives until the call
 * returns, but perhaps no longer. Takes msg; NULL gives -MU_ENOMEM. */
int mu__send_borrowed(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg);

/* The same with a new message that gets a copy of `body`, the struct of its kind, which
 * has `size` bytes. */
int mu__send_body(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                  size_t size);

/* A new message with a copy of `body`, whose views borrow from `backing`, of which the
 * message takes a reference (NULL: none), or from what outlives the message. NULL: out of
 * memory. */
struct mu__msg *mu__msg_backed(struct mu__ctx *ctx, uint16_t kind, const void *body,
                               size_t size, struct mu__buf *backing);

/* The same, and mu__send. */
int mu__send_backed(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                    size_t size, struct mu__buf *backing);

/* Whether sending again later may succeed. -MU_EUNAVAILABLE counts as transient: if the
 * node is lost, NODE_DOWN will say so. */
bool mu__send_is_transient(int rv);

#endif
