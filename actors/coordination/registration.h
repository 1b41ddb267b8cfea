/* Tasks that register, are heard, report errors, and are reset. */
#ifndef MU_ACTORS_COORDINATION_REGISTRATION_H
#define MU_ACTORS_COORDINATION_REGISTRATION_H

#include "actors/coordination/internal.h"

/* Each part has init, and done, which also undoes an init that failed or was not
 * called. */
int mu__coord_tasks_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_done(struct coordination *c);
void mu__coord_on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_heartbeat(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_reset(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_tasks_node_up(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__node_up *news);
void mu__coord_tasks_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                               const char *reason);
void mu__coord_tasks_tick(struct mu__ctx *ctx, struct coordination *c);

/* The service begins to lead: no task has registered yet. Or it has stopped leading. */
void mu__coord_tasks_lead(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_tasks_lost(struct mu__ctx *ctx, struct coordination *c);

/* The service ends while it leads: requests that wait are answered, unless another host
 * may take over and answer them. */
void mu__coord_tasks_stop(struct mu__ctx *ctx, struct coordination *c);

/* The task at the other end of a link; NULL when that one has not registered here. What
 * its message asks is answered, when it has a token, with FAILED_PRECONDITION or with the
 * task's error, and NULL returned, unless it is CONNECTED. */
struct mu__roster_task *mu__coord_requester(struct mu__ctx *ctx, struct coordination *c,
                                            uint32_t node, uint64_t token);

/* From ERROR, its own or that of others, to DISCONNECTED. */
void mu__coord_reset(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task);

/* A process leaves, or resets its task, at a host where it is not registered: another one
 * had registered it, and its leases are those of then. `task` may be NULL. */
void mu__coord_end_former_leases(struct mu__ctx *ctx, struct coordination *c,
                                 const struct coord_peer *peer,
                                 const struct mu__roster_task *task);

#endif
