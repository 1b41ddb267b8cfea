/* Runs of the job: which one this process takes part in, its end, and what the store has
 * of all of them. */
#include "actors/agent/call_handlers.h"

#include <string.h>

/* ---- which one ---- */

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

/* ---- its end ---- */

static struct mu__msg *make_end(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    struct mu__msg *msg = mu__msg_new(ctx, MU__RUN_END);
    struct mu__run_end *body;

    (void)a;
    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    *body = (struct mu__run_end){
        .token = pending->token,
        .closing = call->below,
        .code = (uint32_t)-call->failure.code,
        .message = mu__view_str(call->failure.message),
    };
    return mu__agent_copy_views(ctx, msg, &body->message, NULL);
}

static const struct mu__agent_request_kind ending = {
    .make_message = make_end,
    .on_answer = mu__agent_answered,
    .what = "the end of the job's run",
    .fail = mu__agent_call_fail,
    .late = "was not stored",
    .changes = true,
};

static bool hosts_service(const struct agent *a)
{
    return a->registration.registered && a->hosts.followed != NULL &&
           a->hosts.followed->node == MU__NODE_SELF;
}

/* A node that is closed has nothing to say unless it hosts the service. */
void mu__agent_call_run_end(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call)
{
    mu_error error = {0};

    if (call->below && !hosts_service(a)) {
        mu__agent_complete(call, NULL);
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

/* ---- what the store has ---- */

static struct mu__msg *make_runs(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_request *pending)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RUNS_GET);

    (void)a;
    if (msg != NULL)
        ((struct mu__runs_get *)mu__body(msg))->token = pending->token;
    return msg;
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
    struct mu__msg *msg = mu__msg_new(ctx, MU__RUNS_CLEAR);
    struct mu__runs_clear *body;

    (void)a;
    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    *body = (struct mu__runs_clear){
        .token = pending->token,
        .what = call->what,
        .name = mu__view_str(call->name),
    };
    return mu__agent_copy_views(ctx, msg, &body->name, NULL);
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
