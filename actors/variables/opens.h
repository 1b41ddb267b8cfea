/* How an open goes from phase to phase. */
#ifndef MU_ACTORS_VARIABLES_OPENS_H
#define MU_ACTORS_VARIABLES_OPENS_H

#include "actors/variables/internal.h"

/* Begin an open, perhaps anew: in place of the shard 0 with the id `replaces`, if that is
 * not 0. */
void mu__vars_begin_open(struct variables *v, struct operation *op, uint64_t replaces);

/* After anything happened to a part of an open. */
void mu__vars_go_through(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Whether a part of an open leaves it to others to create its shard: it may wait long. */
bool mu__vars_requests_existing(const struct op_part *part);
bool mu__vars_has_absent(const struct operation *op);
void mu__vars_take_opened(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                          const struct mu__var_opened *body);

/* Not an answer yet, and perhaps none before the limit. `flight` may be NULL. */
void mu__vars_take_absent(struct mu__ctx *ctx, struct variables *v,
                          struct flight *flight);

/* A server is lost that the open may need. */
void mu__vars_lose_in_open(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op, uint32_t server);

#endif
