/* What partition_calls.c does for other files of this actor, about calls with a struct
 * mu__snapshot_call. */
#ifndef MU_ACTORS_VARIABLES_PARTITION_ACTIONS_H
#define MU_ACTORS_VARIABLES_PARTITION_ACTIONS_H

#include "runtime/kernel/kernel.h"

struct flight;
struct op_part;
struct operation;
struct variables;

/* Plan the one part of such a call; send it; the kind of its answer. */
void mu__vars_plan_snapshot(struct operation *op);
int mu__vars_send_snapshot(struct mu__ctx *ctx, const struct variables *v,
                           const struct op_part *part, const struct flight *flight);
uint16_t mu__vars_snapshot_answer(const struct op_part *part);
void mu__vars_on_snapshot_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Tell the server of a partition that a snapshot is not needed any more. */
void mu__vars_close_snapshot(struct mu__ctx *ctx, struct variables *v, uint32_t partition,
                             uint64_t number);

#endif
