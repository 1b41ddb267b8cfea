/* Tasks that come to the coordinated jobs, or leave them. */
#ifndef MU_ACTORS_COORDINATION_CLUSTER_CHANGES_H
#define MU_ACTORS_COORDINATION_CLUSTER_CHANGES_H

#include "actors/coordination/internal.h"

void mu__coord_on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__coord_on_cluster_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

#endif
