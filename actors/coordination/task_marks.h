/* Marks: one task, an operator's client for instance, reports that another one is in
 * error, or is not any more. */
#ifndef MU_ACTORS_COORDINATION_MARK_H
#define MU_ACTORS_COORDINATION_MARK_H

#include "actors/coordination/internal.h"

void mu__coord_on_task_mark(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

#endif
