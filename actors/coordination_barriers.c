/* Minimal: replaced by the real part. */
#include "actors/coordination_inner.h"

int mu__coord_barriers_init(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
    return 0;
}

void mu__coord_barriers_done(struct coordination *c)
{
    (void)c;
}

void mu__coord_on_arrive(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_barrier_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_barriers_tick(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
}

void mu__coord_barriers_lost(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
}

void mu__coord_alive(struct mu__ctx *ctx, struct coordination *c, struct mu__roster_task *task, const struct mu__tasks_get *ask)
{
    (void)ctx;
    (void)c;
    (void)task;
    (void)ask;
}

void mu__coord_barriers_task_gone(struct mu__ctx *ctx, struct coordination *c, struct mu__roster_task *task, bool failed)
{
    (void)ctx;
    (void)c;
    (void)task;
    (void)failed;
}

void mu__coord_barriers_task_here(struct mu__ctx *ctx, struct coordination *c, struct mu__roster_task *task)
{
    (void)ctx;
    (void)c;
    (void)task;
}

void mu__coord_barriers_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node)
{
    (void)ctx;
    (void)c;
    (void)node;
}
