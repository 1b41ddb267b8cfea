/* Tasks that leave, alone or together. */
#ifndef MU_ACTORS_COORDINATION_LEAVE_H
#define MU_ACTORS_COORDINATION_LEAVE_H

#include "actors/coordination/internal.h"

void mu__coord_leave_init(struct coordination *c);

/* A task that shared the others' fate, or did not, is one of the coordinated jobs now, or
 * is not any more: those who leave may be all. */
void mu__coord_leave_cluster(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task, bool shared);
void mu__coord_leave_tick(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_on_leave(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Whether it has left by its own wish, and has not come again. */
void mu__coord_leave_left(struct coordination *c, struct mu__roster_task *task,
                          bool left);

/* It does not wait for others any more; or only if it has asked to. */
void mu__coord_leave_drop(struct coordination *c, struct mu__roster_task *task);
void mu__coord_leave_update(struct coordination *c, struct mu__roster_task *task);

/* Something has happened to it, without which tasks cannot leave together. */
void mu__coord_leave_fail(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__roster_task *task, const char *what);

#endif
