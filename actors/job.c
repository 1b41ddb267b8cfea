#include "actors/job.h"

#include "actors/messages.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it hears. */
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_job_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__CALL, on_call},
    {MU__JOB_DONE, on_job_done},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__TIMER, on_timer},
};

/* What it remembers. */
struct peer {
    uint32_t node;
    uint32_t index;
    bool chief;
    char type[16];
};

struct job {
    bool done;
    bool ended_here;            /* by END: whoever comes later is told, too */
    int code;
    char message[MU__ERROR_TEXT_MAX + 1];
    struct mu__call *waiting;   /* WAIT */
    struct mu__call *ending;    /* END */
    struct peer *peers;
    uint32_t peers_count;
    uint32_t peers_size;
};

/* ---- calls ---- */

static void complete_wait(struct mu__ctx *ctx, const struct job *job,
                          struct mu__call *call)
{
    mu__timer_cancel(ctx, call->timer);
    call->error = (mu_error){0};
    if (job->code != 0)
        (void)mu_error_set(&call->error, job->code, "%s", job->message);
    mu__call_complete(call, 0);
}

static void complete_all(struct mu__ctx *ctx, struct mu__call **list, int code,
                         const char *words)
{
    while (*list != NULL) {
        struct mu__call *call = *list;

        *list = call->next;
        mu__timer_cancel(ctx, call->timer);
        mu__call_complete(call, code == 0 ? 0 : mu_error_set(&call->error, code, "%s",
                                                             words));
    }
}

/* ---- the end ---- */

static int tell(struct mu__ctx *ctx, const struct job *job, uint32_t node)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__JOB_DONE);
    struct mu__job_done *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->code = (uint32_t)-job->code;
    body->message = mu__view_str(job->message);
    return mu__send(ctx, (mu__pid){node, MU__JOB}, msg);
}

static void finish(struct mu__ctx *ctx, struct job *job, int code, struct mu__view words)
{
    job->done = true;
    job->code = code;
    mu__view_copy(words, job->message, sizeof job->message);
    while (job->waiting != NULL) {
        struct mu__call *call = job->waiting;

        job->waiting = call->next;
        complete_wait(ctx, job, call);
    }
}

static void end_job(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call)
{
    job->ended_here = true;
    finish(ctx, job, call->job_code,
           mu__view_str(call->message == NULL ? "" : call->message));
    for (uint32_t i = 0; i < job->peers_count; i++)
        (void)tell(ctx, job, job->peers[i].node);
    if (job->peers_count == 0)
        mu__call_complete(&call->call, 0);
    else
        mu__call_hold(ctx, &job->ending, &call->call);
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__job_call *call = body->call;

    call->call.timer = 0;
    if (call->call.operation == MU__JOB_END)
        end_job(ctx, job, call);
    else if (job->done)
        complete_wait(ctx, job, &call->call);
    else
        mu__call_hold(ctx, &job->waiting, &call->call);
}

/* Only the chief's word counts. */
static void on_job_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    struct mu__job_done *body = mu__body(msg);

    for (uint32_t i = 0; i < job->peers_count; i++)
        if (job->peers[i].node == msg->from.node && job->peers[i].chief && !job->done)
            finish(ctx, job, -(int)body->code, body->message);
}

/* ---- node news ---- */

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    struct mu__node_up *body = mu__body(msg);
    struct peer *peer;

    if (job->peers_count == job->peers_size) {
        uint32_t size = job->peers_size == 0 ? 16 : job->peers_size * 2;

        if (!mu__grow_array((void **)&job->peers, size, sizeof *job->peers)) {
            mu__log(ctx, MU__LOG_ERROR, "out of memory: a node goes unnoticed");
            return;
        }
        job->peers_size = size;
    }
    peer = &job->peers[job->peers_count++];
    *peer = (struct peer){.node = body->node, .index = body->index,
                          .chief = mu__view_is(body->type, "chief")};
    mu__view_copy(body->type, peer->type, sizeof peer->type);
    if (job->ended_here)
        (void)tell(ctx, job, body->node);
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    struct mu__node_down *body = mu__body(msg);

    for (uint32_t i = 0; i < job->peers_count; i++)
        if (job->peers[i].node == body->node) {
            job->peers[i] = job->peers[--job->peers_count];
            break;
        }
    if (job->peers_count == 0)
        complete_all(ctx, &job->ending, 0, "");
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    struct mu__timer *body = mu__body(msg);
    struct mu__call **lists[] = {&job->waiting, &job->ending};
    const struct peer *first = job->peers;

    for (size_t i = 0; i < 2; i++)
        for (struct mu__call **at = lists[i]; *at != NULL; at = &(*at)->next) {
            struct mu__call *call = *at;

            if (call->timer != body->timer)
                continue;
            *at = call->next;
            if (i == 0 || first == NULL || job->peers_count == 0)
                mu__call_complete(call, mu_error_set(&call->error, -MU_EDEADLINE,
                                                     "the job is not done after %" PRId64
                                                     " ms", call->limit_ms));
            else
                mu__call_complete(call, mu_error_set(&call->error, -MU_EDEADLINE,
                                                     "%" PRIu32 " tasks have not hung up "
                                                     "after %" PRId64 " ms, first "
                                                     "/job:%s/task:%" PRIu32,
                                                     job->peers_count, call->limit_ms,
                                                     first->type, first->index));
            (void)ctx;
            return;
        }
}

/* ---- life ---- */

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    (void)state;
    (void)arg;
    return mu__watch_nodes(ctx);
}

static void done(struct mu__ctx *ctx, void *state)
{
    struct job *job = state;

    complete_all(ctx, &job->waiting, -MU_ECLOSED, "the node is being closed");
    complete_all(ctx, &job->ending, -MU_ECLOSED, "the node is being closed");
    mu__free_array(job->peers);
}

const struct mu__behavior mu__job = {
    .name = "job",
    .state_size = sizeof(struct job),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
