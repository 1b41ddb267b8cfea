/* Runs of the job: the one that this process takes part in, its end, and the runs in the
 * store. */
#include "actors/agent/call_handlers.h"

#include <string.h>

/* ---- this process's run ---- */

uint64_t mu__agent_run(const struct agent *a)
{
    return a->job_run.own.store == a->hosts.store ? a->job_run.own.number : 0;
}

void mu__agent_note_run(struct agent *a, uint64_t number)
{
    a->job_run.own =
        (struct mu__own_run){.store = a->registration.store, .number = number};
    if (a->config.own_run != NULL)
        *a->config.own_run = a->job_run.own;
}

/* ---- the end of the run ---- */

static struct mu__msg *make_end(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    const struct mu__run_end body = {
        .token = pending->token,
        .closing = call->below,
        .code = (uint32_t)-call->failure.code,
        .message = mu__view_str(call->failure.message),
    };

    return mu__agent_message(ctx, a, MU__RUN_END, &body, sizeof body);
}

static const struct mu__agent_request_kind ending = {
    .make_message = make_end,
    .on_answer = mu__agent_answered,
    .what = "the end of the job's run",
    .fail = mu__agent_call_fail,
    .late = "was not stored",
    .changes = true,
};

/* The closing of a host. Its task may have left, or be in error: the message is not one
 * of a session. */
static const struct mu__agent_request_kind closing = {
    .on_answer = mu__agent_answered,
    .what = "the end of the job's run",
    .fail = mu__agent_call_fail,
    .late = "was not stored",
};

/* The closing of a node is of interest only if it hosts the service. */
static void close_host(struct mu__ctx *ctx, struct agent *a, struct mu__agent_call *call)
{
    if (a->hosts.followed == NULL || a->hosts.followed->node != MU__NODE_SELF)
        mu__agent_complete(call, NULL);
    else if (mu__agent_submit(ctx, a, &call->pending, &closing, call->call.timeout_ms, 0))
        (void)mu__send(ctx, mu__agent_service(a), make_end(ctx, a, &call->pending));
}

void mu__agent_call_run_end(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call)
{
    mu_error error = {0};

    if (call->below) {
        close_host(ctx, a, call);
        return;
    }
    if (!mu__agent_admits(a, &error)) {
        mu__agent_complete(call, &error);
        return;
    }
    if (a->registration.registered) {
        (void)mu__agent_submit(ctx, a, &call->pending, &ending, call->call.timeout_ms, 0);
        return;
    }
    (void)mu_error_set(&error, -MU_EUNAVAILABLE,
                       "the end of the job's run is not stored: ");
    mu__agent_host_words(ctx, a, error.message + strlen(error.message), AGENT_WORDS_MAX);
    mu__agent_complete(call, &error);
}

/* ---- the runs in the store ---- */

static struct mu__msg *make_runs(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *pending)
{
    const struct mu__runs_get body = {.token = pending->token};

    return mu__agent_message(ctx, a, MU__RUNS_GET, &body, sizeof body);
}

const struct mu__agent_request_kind mu__agent_runs_query = {
    .make_message = make_runs,
    .on_answer = mu__agent_answered_content,
    .what = "what the store has",
    .fail = mu__agent_call_fail,
    .late = "was not answered",
};

static struct mu__msg *make_clear(struct mu__ctx *ctx, struct agent *a,
                                  struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    const struct mu__runs_clear body = {
        .token = pending->token,
        .what = call->what,
        .name = agent_text(call->name),
    };

    return mu__agent_message(ctx, a, MU__RUNS_CLEAR, &body, sizeof body);
}

static void answered_clear(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_request *pending,
                           const struct mu__tasks_answer *body, const mu_error *error)
{
    agent_call_of(pending)->version = body->version;
    mu__agent_call_fail(ctx, a, pending, error);
}

const struct mu__agent_request_kind mu__agent_runs_clearing = {
    .make_message = make_clear,
    .on_answer = answered_clear,
    .what = "what the store has",
    .fail = mu__agent_call_fail,
    .late = "was not cleared",
    .changes = true,
};
