#include "actors/call.h"

void mu__call_hold(struct mu__ctx *ctx, struct mu__call **list, struct mu__call *call)
{
    call->timer = 0;
    if (call->timeout_ms >= 0)
        call->timer = mu__timer_set(ctx, (uint64_t)call->timeout_ms, 0);
    call->next = *list;
    *list = call;
}
