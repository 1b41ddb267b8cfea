/* What was opened on a server that has forgotten it is looked for by its name. */
#ifndef MU_ACTORS_VARIABLES_REOPEN_H
#define MU_ACTORS_VARIABLES_REOPEN_H

#include "actors/variables/internal.h"

/* The server does not know the shard: look for the variable by its name, and go on. */
void mu__vars_reopen(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* True: the shard that has answered for a write is not the variable's any more, and the
 * operation has failed. */
bool mu__vars_fail_if_replaced(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part);

/* An operation that reopens for another one, or for a VAR_REOPEN, is over, and out of all
 * lists. */
void mu__vars_reopened(struct mu__ctx *ctx, struct variables *v,
                       const struct operation *op, int code);
void mu__vars_on_reopen(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

#endif
