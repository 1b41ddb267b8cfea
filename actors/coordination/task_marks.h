/* What one task says of another, an operator's client say: that it is in error, or is not
 * any more; for actors/coordination*.c only. */
#ifndef MU_ACTORS_COORDINATION_MARK_H
#define MU_ACTORS_COORDINATION_MARK_H

#include "actors/coordination/internal.h"

void mu__coord_on_task_mark(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

#endif
