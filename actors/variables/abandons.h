/* Telling servers what is not wanted any more. */
#ifndef MU_ACTORS_VARIABLES_ABANDONS_H
#define MU_ACTORS_VARIABLES_ABANDONS_H

#include "actors/variables/internal.h"

/* Without this, others would wait for what we gave up for as long as this node lives. */
void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, mu__pid to,
                           uint64_t variable, uint64_t transfer);

/* What a part has begun and will not finish is given up on its server too. */
void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct op_part *part);

/* Try again what found no room in its link; give that up. */
void mu__vars_retry_abandons(struct mu__ctx *ctx, struct variables *v);
void mu__vars_drop_abandons(struct variables *v);

#endif
