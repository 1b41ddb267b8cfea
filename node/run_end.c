#include "node/run_end.h"

#include "actors/messages.h"
#include "node/node.h"

#include <stdlib.h>

int mu__agent_call_and_wait(mu_node *node, struct mu__agent_call *call, int operation,
                            int64_t timeout_ms, mu_error *ret_error)
{
    call->call.operation = operation;
    call->call.timeout_ms = timeout_ms;
    return mu__node_call(node, MU__AGENT, &call->call, ret_error);
}

void mu__node_leave_run(mu_node *node)
{
    struct mu__agent_call call = {.below = true};

    (void)mu__agent_call_and_wait(node, &call, MU__AGENT_RUN_END, MU__RUN_END_MS, NULL);
}

struct leaving {
    struct mu__pending pending; /* first */
    struct mu__agent_call call;
};

static void on_left(struct mu__pending *pending)
{
    (void)uv_async_send(&pending->node->lifecycle.stop);
    free(pending);
}

bool mu__node_leave_run_later(mu_node *node)
{
    struct leaving *leaving;

    if (!node->service_host.is_host || !node->service_host.kind->lasting)
        return false;
    leaving = calloc(1, sizeof *leaving);
    if (leaving == NULL)
        return false;
    leaving->call.call.operation = MU__AGENT_RUN_END;
    leaving->call.call.timeout_ms = MU__RUN_END_MS;
    leaving->call.below = true;
    leaving->call.name = "";
    if (mu__node_call_later(node, MU__AGENT, &leaving->pending, &leaving->call.call,
                            on_left) == 0)
        return true;
    free(leaving);
    return false;
}
