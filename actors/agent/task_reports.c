/* The error or reset of another task, reported by this one, and the reset of this task by
 * another one. */
#include "actors/agent/call_handlers.h"

#include <stdio.h>

static void name_mark(struct mu__agent_request *pending, char *out, size_t size)
{
    const struct mu__agent_call *call = agent_call_of(pending);

    (void)snprintf(out, size, "the %s of %.100s",
                   call->failure.code == 0 ? "reset" : "error", call->tasks);
}

static struct mu__msg *make_mark(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    const struct mu__task_mark body = {
        .token = pending->token,
        .task = mu__view_str(call->tasks),
        .code = (uint32_t)-call->failure.code,
        .message = mu__view_str(call->failure.message),
    };

    return mu__agent_message(ctx, a, MU__TASK_MARK, &body, sizeof body);
}

const struct mu__agent_request_kind mu__agent_marking = {
    .make_message = make_mark,
    .on_answer = mu__agent_answered,
    .name = name_mark,
    .fail = mu__agent_call_fail,
    .late = "was not answered",
    .changes = true,
};

/* Another task has reset this one. As its program may not register it again, the agent
 * does. */
void mu__agent_on_cleared(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__task_cleared *body = mu__body(msg);
    mu_error error;

    if (!mu__agent_is_from_host(a, msg))
        return;
    (void)mu_error_set(&error, -MU_EABORTED, "this task was reset by %.*s",
                       (int)body->by.size, (const char *)body->by.data);
    mu__log(ctx, MU__LOG_WARN, "%s", error.message);
    a->error = (mu_error){.code = 0};
    mu__agent_withdraw(ctx, a, &error);
    a->registration.is_requested = true;
    mu__agent_register(ctx, a);
}
