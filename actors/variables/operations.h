/* Operations of the variables actor: planned, sent, answered, completed. */
#ifndef MU_ACTORS_VARIABLES_OPERATIONS_H
#define MU_ACTORS_VARIABLES_OPERATIONS_H

#include "actors/variables/internal.h"

/* A new operation, which is to be begun. -MU_ERANGE, -MU_ENOMEM, -MU_EEXHAUSTED. */
int mu__vars_plan(struct mu__ctx *ctx, struct variables *v,
                  struct mu__variable_call *call, struct operation **ret_op);

/* It may be over, and gone, when this returns. */
void mu__vars_begin(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Whether a refused message may be accepted later. The loss of a server is told soon. */
bool mu__vars_is_transient(int rv);
void mu__vars_retry_later(struct mu__ctx *ctx, struct variables *v);

/* A part has nothing left to do in this phase, or at all. */
void mu__vars_rest(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* The operation is over, and gone. */
void mu__vars_complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       int code);

/* Send to all servers what their windows have room for. */
void mu__vars_pump_all(struct mu__ctx *ctx, struct variables *v);

#endif
