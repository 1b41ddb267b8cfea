/* Results that a client does not read for now. While its node is behind they wait here,
 * in their order, and not in its link, which would be lost with too much in it. When
 * these are full (MU__UNREAD_BYTES), no closure of the client begins: so what it makes
 * the chief hold is bounded by this and by the results of what was in flight at its
 * workers. Part of the supervisor. */
#ifndef MU_ACTORS_SUPERVISOR_UNREAD_H
#define MU_ACTORS_SUPERVISOR_UNREAD_H

#include "actors/supervisor/internal.h"

/* mu__send for a RESOLVED or a FETCHED, which borrow from their backing alone; or it is
 * kept, which is 0. */
int mu__sup_send_result(struct mu__ctx *ctx, struct supervisor *s, mu__pid to,
                        struct mu__msg *msg);

/* Whether a closure may not begin because its client does not read: then it has been
 * moved to MU__LIST_UNREAD. */
bool mu__sup_wait_for_reader(struct supervisor *s, struct mu__closure *closure);

/* The same, for each closure: while the timer is not set nothing is kept. */
static inline bool mu__sup_waits_for_reader(struct supervisor *s,
                                            struct mu__closure *closure)
{
    return s->clients.unread_timer != 0 && mu__sup_wait_for_reader(s, closure);
}

/* Send what clients take by now. */
void mu__sup_unread_tick(struct mu__ctx *ctx, struct supervisor *s);

/* The client is gone, and so is what was kept for it; closures of the journal go on. */
void mu__sup_unread_drop(struct mu__ctx *ctx, struct supervisor *s,
                         struct supervisor_client *client);

/* Drop what is kept. */
void mu__sup_unread_free(struct mu__ctx *ctx, struct mu__unread_results *unread);

/* Bytes kept for all clients, for the status. */
uint64_t mu__sup_unread_bytes(const struct supervisor *s);

#endif
