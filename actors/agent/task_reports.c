/* An error of another task that this one reports or resets, and the reset of this task by
 * another. */
#include "actors/agent/call_handlers.h"

#include <stdio.h>

static void name_mark(const struct mu__agent_request *pending, char *out, size_t size)
{
    const struct mu__agent_call *call = agent_call_in(pending);

    (void)snprintf(out, size, "the %s of %.100s",
                   call->failure.code == 0 ? "reset" : "error", call->tasks);
}

static struct mu__msg *make_mark(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_MARK);
    struct mu__task_mark *body;

    (void)a;
    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    *body = (struct mu__task_mark){
        .token = pending->token,
        .task = mu__view_str(call->tasks),
        .code = (uint32_t)-call->failure.code,
        .message = mu__view_str(call->failure.message),
    };
    return mu__agent_copy_views(ctx, msg, &body->task, &body->message);
}

const struct mu__agent_request_kind mu__agent_marking = {
    .make_message = make_mark,
    .on_answer = mu__agent_answered,
    .name = name_mark,
    .fail = mu__agent_call_fail,
    .late = "was not answered",
    .changes = true,
};

/* Others' resets are for those whose program does not do it: the task comes back. */
void mu__agent_cleared(struct mu__ctx *ctx, struct agent *a,
                       const struct mu__task_cleared *body)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EABORTED, "this task was reset by %.*s",
                       (int)body->by.size, (const char *)body->by.data);
    mu__log(ctx, MU__LOG_WARN, "%s", error.message);
    a->error = (mu_error){.code = 0};
    mu__agent_withdraw(ctx, a, &error);
    a->registration.is_requested = true;
    mu__agent_register(ctx, a);
}
