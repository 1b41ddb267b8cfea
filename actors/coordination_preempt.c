/* Minimal: replaced by the real part. */
#include "actors/coordination_inner.h"

int mu__coord_preempt_init(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
    return 0;
}

void mu__coord_preempt_done(struct coordination *c)
{
    (void)c;
}

void mu__coord_on_preempt_notice(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_on_preempt_step(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

void mu__coord_preempt_tick(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
}

void mu__coord_preempt_lost(struct mu__ctx *ctx, struct coordination *c)
{
    (void)ctx;
    (void)c;
}

void mu__coord_preempt_task_gone(struct mu__ctx *ctx, struct coordination *c, struct mu__roster_task *task)
{
    (void)ctx;
    (void)c;
    (void)task;
}

void mu__coord_preempt_task_here(struct mu__ctx *ctx, struct coordination *c, struct mu__roster_task *task)
{
    (void)ctx;
    (void)c;
    (void)task;
}

void mu__coord_preempt_key(struct mu__ctx *ctx, struct coordination *c, uint32_t node, struct mu__view value)
{
    (void)ctx;
    (void)c;
    (void)node;
    (void)value;
}
