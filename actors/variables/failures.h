/* How an operation fails: each of these ends one, but for the first. */
#ifndef MU_ACTORS_VARIABLES_FAILURES_H
#define MU_ACTORS_VARIABLES_FAILURES_H

#include "actors/variables/internal.h"

/* Whether its server is to blame when the operation ends without an answer: one that is
 * missing for what will be asked of it too. */
bool mu__vars_needs_server(const struct variables *v, const struct op_part *part);

/* Servers that the operation needs are lost. */
void mu__vars_fail_by_loss(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op);

/* With an error from `server`: "variable w: add: <words>". */
void mu__vars_fail(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                   uint32_t server, int code, const char *reason);

/* A server has said that it cannot; has answered something else than was asked; was lost
 * before it answered what cannot be asked again. */
void mu__vars_fail_by_answer(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part, uint32_t code, struct mu__view reason);
void mu__vars_fail_bad_answer(struct mu__ctx *ctx, struct variables *v,
                              struct op_part *part);
void mu__vars_fail_unknown(struct mu__ctx *ctx, struct variables *v,
                           struct op_part *part);

/* What was asked of it is not the variable's any more. */
void mu__vars_fail_replaced(struct mu__ctx *ctx, struct variables *v,
                            struct op_part *part);

/* Its server does not have the shard. */
void mu__vars_fail_forgotten(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part);

/* As another operation has failed: an inner one. */
void mu__vars_fail_as(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      const struct mu__variable_call *inner);

/* Some servers have their shards of what is opened and others have not. */
void mu__vars_fail_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* The limit has passed. */
void mu__vars_fail_by_timeout(struct mu__ctx *ctx, struct variables *v,
                              struct operation *op);

#endif
