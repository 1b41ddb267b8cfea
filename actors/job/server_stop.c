/* Stopping one task. A client has no link to workers: the chief relays its request. A
 * worker drains first: the supervisor sends it no more closures, and it stops when it has
 * finished those it has. */
#include "actors/job/internal.h"

#include "actors/keep.h"
#include "actors/task_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct job_relay *first_relay(const struct job *job)
{
    return MU__LIST_FIRST(&job->relays.list, struct job_relay, list_node);
}

static struct job_relay *next_relay(const struct job_relay *relay)
{
    return MU__LIST_NEXT(relay, struct job_relay, list_node);
}

/* Copy another task's text for the log, with control characters replaced: it is one
 * line. */
static void copy_line(struct mu__view view, char *out, size_t size)
{
    mu__view_copy(view, out, size);
    for (; *out != '\0'; out++)
        if ((unsigned char)*out < ' ' || *out == 0x7F)
            *out = ' ';
}

/* ---- requesting a stop ---- */

static int send_stop(struct mu__ctx *ctx, uint32_t node,
                     const struct mu__server_stop *stop)
{
    return mu__send_body(ctx, (mu__pid){node, MU__JOB}, MU__SERVER_STOP, stop,
                         sizeof *stop);
}

/* To the task itself where there is a link, else to the chief. */
static void try_stop(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call)
{
    const struct job_peer *peer = mu__job_peer(job, call->type, call->index);
    char task[MU__TASK_NAME_MAX + 1];
    struct mu__server_stop stop = {
        .token = ++job->token_last,
        .reason = mu__view_str(call->message == NULL ? "" : call->message),
        .timeout_ms = call->call.timeout_ms < 0 ? 0 : (uint64_t)call->call.timeout_ms,
    };

    call->over_chief = peer == NULL;
    if (peer == NULL && !mu__job_is_chief(job))
        peer = mu__job_chief(job);
    if (peer == NULL)
        return;
    if (call->over_chief) {
        mu__job_name(task, sizeof task, call->type, call->index);
        stop.task = mu__view_str(task);
    }
    if (mu__job_fail_forbidden(ctx, job, call, peer->node, MU__SERVER_STOP) ||
        send_stop(ctx, peer->node, &stop) != 0)
        return;
    call->node = peer->node;
    call->token = stop.token;
}

static const char *find_stop_refusal(const struct job *job,
                                     const struct mu__job_call *call)
{
    if (call->index == job->config.index && strcmp(call->type, job->config.type) == 0)
        return "a task does not stop itself by a request: use mu_server_stop";
    if (strcmp(call->type, "client") == 0)
        return "a client serves nobody, so it cannot be stopped";
    return NULL;
}

void mu__job_request_stop(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call)
{
    const char *why = find_stop_refusal(job, call);

    if (why != NULL) {
        mu__call_complete(&call->call,
                          mu_error_set(&call->call.error, -MU_EINVALID, "%s", why));
        return;
    }
    mu__call_hold(ctx, &job->calls.requested, &call->call);
    try_stop(ctx, job, call);
}

/* The task or the chief that the call waits for, and its state. */
static void describe_missing_stop(const struct job *job, const struct mu__job_call *call,
                                  char *out, size_t size)
{
    const char *colon = job->reported_error[0] == '\0' ? "" : ": ";

    if (call->node != 0 && call->over_chief)
        (void)snprintf(out, size, "%s got the request to stop it, and has not answered",
                       job->config.chief);
    else if (call->node != 0)
        (void)snprintf(out, size, "it got the request, and has not finished its work");
    else if (call->was_lost)
        (void)snprintf(out, size, "the link to %s was lost before the answer came%s%s",
                       call->over_chief ? job->config.chief : "it", colon,
                       job->reported_error);
    else if (mu__job_is_chief(job))
        (void)snprintf(out, size, "it is not connected");
    else
        (void)snprintf(out, size, "neither it nor %s is connected%s%s", job->config.chief,
                       colon, job->reported_error);
}

void mu__job_stop_missing(const struct job *job, struct mu__job_call *call)
{
    char task[MU__TASK_NAME_MAX + 1];
    char why[MU__JOB_ERROR_BYTES + 160];

    describe_missing_stop(job, call, why, sizeof why);
    mu__job_name(task, sizeof task, call->type, call->index);
    (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                       "%s was not stopped within %" PRId64 " ms: %s", task,
                       call->call.timeout_ms, why);
}

/* ---- stopping this task ---- */

static void finish_stop(struct mu__ctx *ctx, struct job *job, const char *how)
{
    struct job_stop *stop = &job->stop;
    const char *colon = stop->reason[0] == '\0' ? "" : ": ";

    mu__timer_cancel(ctx, stop->timer);
    mu__log(ctx, MU__LOG_INFO, "stopped by %s%s%s%s", stop->by, colon, stop->reason, how);
    if (!job->end.done)
        mu__job_finish(ctx, job, 0, mu__view_str(""));
    for (uint32_t i = 0; i < stop->requesters_count; i++)
        mu__job_answer(ctx, stop->requesters[i], stop->tokens[i], 0, "");
    *stop = (struct job_stop){0};
}

/* False: the task runs no closures, or has no supervisor to drain from. */
static bool begin_drain(struct mu__ctx *ctx, struct job *job)
{
    const struct job_peer *chief = mu__job_chief(job);
    struct mu__drain body = {0};

    if (!job->config.runs_closures || chief == NULL || strcmp(chief->type, "chief") != 0)
        return false;
    body.token = ++job->token_last;
    job->stop.chief = chief->node;
    job->stop.token = body.token;
    return mu__send_body(ctx, (mu__pid){chief->node, MU__SUPERVISOR}, MU__DRAIN, &body,
                         sizeof body) == 0;
}

static void begin_server_stop(struct mu__ctx *ctx, struct job *job,
                              const struct job_peer *peer,
                              const struct mu__server_stop *body)
{
    struct job_stop *stop = &job->stop;

    stop->active = true;
    mu__job_name(stop->by, sizeof stop->by, peer->type, peer->index);
    copy_line(body->reason, stop->reason, sizeof stop->reason);
    if (!begin_drain(ctx, job)) {
        finish_stop(ctx, job, "");
        return;
    }
    if (body->timeout_ms > 0)
        stop->timer = mu__timer_set(ctx, body->timeout_ms / 2, 0);
    mu__log(ctx, MU__LOG_INFO, "%s requests this task to stop: it finishes its work",
            stop->by);
}

static void stop_this_task(struct mu__ctx *ctx, struct job *job,
                           const struct mu__msg *msg, const struct job_peer *peer,
                           const struct mu__server_stop *body)
{
    struct job_stop *stop = &job->stop;

    if (mu__job_is_chief(job)) {
        mu__job_answer(ctx, msg->from, body->token, -MU_EPRECONDITION,
                       "the chief is not stopped: it ends the job");
        return;
    }
    if (job->end.done) {
        mu__job_answer(ctx, msg->from, body->token, 0, "");
        return;
    }
    if (stop->requesters_count == MU__JOB_REQUESTERS_MAX) {
        mu__job_answer(ctx, msg->from, body->token, -MU_EEXHAUSTED,
                       "too many wait for this task to stop");
        return;
    }
    stop->requesters[stop->requesters_count] = msg->from;
    stop->tokens[stop->requesters_count++] = body->token;
    if (!stop->active)
        begin_server_stop(ctx, job, peer, body);
}

void mu__job_on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__drained *body = mu__body(msg);

    if (job->stop.active && job->stop.token == body->token &&
        job->stop.chief == msg->from.node)
        finish_stop(ctx, job, "");
}

/* A worker that is removed from the cluster drains, and then ends as if the job was done.
 * Tasks of other types go on: what they serve may still be needed. */
void mu__job_on_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__cluster_change *body = mu__body(msg);
    struct job_stop *stop = &job->stop;

    if (!body->own || !job->config.runs_closures || job->end.done || stop->active)
        return;
    stop->active = true;
    (void)snprintf(stop->by, sizeof stop->by, "its cluster");
    (void)snprintf(stop->reason, sizeof stop->reason, "this task is not in it any more");
    if (!begin_drain(ctx, job))
        finish_stop(ctx, job, "");
}

/* ---- relaying a stop ---- */

enum {
    UNREACHED_MS = 5000, /* wait for a task whose link went down, without a timeout */
    EARLY_MS = 500       /* time for an answer to arrive, on a busy machine */
};

/* The link to a requested task is down. It may have been restarted; if it does not come
 * back within UNREACHED_MS, no answer will come. */
static void arm_unreached(struct mu__ctx *ctx, struct job_relay *relay)
{
    if (relay->was_sent && relay->timeout_ms == 0 && relay->timer == 0)
        relay->timer = mu__timer_set(ctx, UNREACHED_MS, 0);
}

/* The chief answers before the requester's timeout passes, as its error says more: half a
 * second before it, but at most a `part` and at least an eighth of the timeout. */
static void arm_timeout(struct mu__ctx *ctx, struct job_relay *relay, uint64_t part)
{
    uint64_t early_ms = relay->timeout_ms / part;
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t due_ms;

    if (early_ms > EARLY_MS)
        early_ms = EARLY_MS;
    if (early_ms < relay->timeout_ms / 8)
        early_ms = relay->timeout_ms / 8;
    due_ms = relay->began_ms + relay->timeout_ms - early_ms;
    mu__timer_cancel(ctx, relay->timer);
    relay->timer = mu__timer_set(ctx, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void try_relay(struct mu__ctx *ctx, struct job *job, struct job_relay *relay)
{
    const struct job_peer *peer = mu__job_peer(job, relay->type, relay->index);
    const struct mu__server_stop stop = {
        .token = relay->token,
        .reason = mu__view_str(relay->reason),
        .timeout_ms = relay->timeout_ms,
    };

    if (peer == NULL || send_stop(ctx, peer->node, &stop) != 0) {
        arm_unreached(ctx, relay);
        return;
    }
    relay->node = peer->node;
    relay->was_sent = true;
    if (relay->timeout_ms != 0) {
        arm_timeout(ctx, relay, 4); /* the task itself stops after half of it */
        return;
    }
    mu__timer_cancel(ctx, relay->timer);
    relay->timer = 0;
}

static void end_relay(struct mu__ctx *ctx, struct job *job, struct job_relay *relay)
{
    mu__list_remove(&job->relays.list, &relay->list_node);
    mu__timer_cancel(ctx, relay->timer);
    job->relays.count--;
    free(relay);
}

/* The reason for the task to stop names the requester. */
static void copy_reason(struct job_relay *relay, const struct job_peer *peer,
                        struct mu__view reason)
{
    char line[MU__ERROR_TEXT_MAX + 1];

    copy_line(reason, line, sizeof line);
    (void)snprintf(relay->reason, sizeof relay->reason,
                   "requested by /job:%s/task:%" PRIu32 "%s%.400s", peer->type,
                   peer->index, line[0] == '\0' ? "" : ": ", line);
}

static struct job_relay *new_relay(struct mu__ctx *ctx, struct job *job,
                                   const struct mu__msg *msg, const struct job_peer *peer,
                                   const struct mu__server_stop *body)
{
    struct job_relay *relay;

    if (job->relays.count == MU__JOB_RELAYS_MAX)
        return NULL;
    relay = calloc(1, sizeof *relay);
    if (relay == NULL)
        return NULL;
    relay->from = msg->from;
    relay->from_token = body->token;
    relay->token = ++job->token_last;
    relay->timeout_ms = body->timeout_ms;
    relay->began_ms = mu__now_ms(ctx);
    copy_reason(relay, peer, body->reason);
    if (body->timeout_ms > 0)
        arm_timeout(ctx, relay, 2);
    mu__list_prepend(&job->relays.list, &relay->list_node);
    job->relays.count++;
    return relay;
}

static void stop_other(struct mu__ctx *ctx, struct job *job, const struct mu__msg *msg,
                       const struct job_peer *peer, const struct mu__task_range *task)
{
    const struct mu__server_stop *body = mu__body((struct mu__msg *)msg);
    struct job_relay *relay;

    if (!mu__job_is_chief(job)) {
        mu__job_answer(ctx, msg->from, body->token, -MU_EINVALID,
                       "only the chief has other tasks stopped");
        return;
    }
    relay = new_relay(ctx, job, msg, peer, body);
    if (relay == NULL) {
        mu__job_answer(ctx, msg->from, body->token, -MU_EEXHAUSTED,
                       "the chief has too many tasks to stop");
        return;
    }
    memcpy(relay->type, task->type, sizeof relay->type);
    relay->index = task->first;
    try_relay(ctx, job, relay);
}

bool mu__job_relay_answered(struct mu__ctx *ctx, struct job *job,
                            const struct mu__msg *msg)
{
    const struct mu__server_stopped *body = mu__body((struct mu__msg *)msg);
    char words[MU__ERROR_TEXT_MAX + 1];

    for (struct job_relay *relay = first_relay(job); relay != NULL;
         relay = next_relay(relay)) {
        if (relay->token != body->token || relay->node != msg->from.node)
            continue;
        mu__view_copy(body->message, words, sizeof words);
        mu__job_answer(ctx, relay->from, relay->from_token, -(int)body->code, words);
        end_relay(ctx, job, relay);
        return true;
    }
    return false;
}

/* ---- the message ---- */

static bool is_this_task(const struct job *job, const struct mu__task_range *task)
{
    return task->first == job->config.index && strcmp(task->type, job->config.type) == 0;
}

/* -MU_EINVALID: the text does not name exactly one task. */
static int read_single_task(struct mu__view text, struct mu__task_range *ret_task)
{
    struct mu__task_set set;
    int rv = mu__task_set_parse(text, NULL, &set);

    if (rv != 0)
        return rv;
    if (mu__task_set_count(&set) == 1)
        *ret_task = set.ranges[0];
    else
        rv = -MU_EINVALID;
    mu__task_set_done(&set);
    return rv;
}

void mu__job_on_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__server_stop *body = mu__body(msg);
    const struct job_peer *peer = mu__job_peer_at(job, msg->from.node);
    struct mu__task_range task;
    int rv = body->task.size == 0 ? 0 : read_single_task(body->task, &task);

    if (peer == NULL) {
        mu__job_answer(ctx, msg->from, body->token, -MU_EUNAVAILABLE,
                       MU__JOB_UNKNOWN_REQUESTER);
        return;
    }
    if (strcmp(peer->type, "client") != 0 && peer != mu__job_chief(job)) {
        mu__job_answer(ctx, msg->from, body->token, -MU_EPERMISSION,
                       "only the chief and clients may stop a task");
        return;
    }
    if (rv != 0) {
        mu__job_answer(
            ctx, msg->from, body->token, rv == -MU_ENOMEM ? -MU_EEXHAUSTED : -MU_EINVALID,
            rv == -MU_ENOMEM ? "out of memory" : "expected one task, as /job:ps/task:0");
        return;
    }
    if (body->task.size == 0 || is_this_task(job, &task))
        stop_this_task(ctx, job, msg, peer, body);
    else
        stop_other(ctx, job, msg, peer, &task);
}

/* ---- node news, timeouts, the end ---- */

void mu__job_stop_node_up(struct mu__ctx *ctx, struct job *job)
{
    struct mu__call *next;

    for (struct mu__call *call = job->calls.requested; call != NULL; call = next) {
        next = call->next;
        if (call->operation == MU__JOB_STOP && ((struct mu__job_call *)call)->node == 0)
            try_stop(ctx, job, (struct mu__job_call *)call);
    }
    for (struct job_relay *relay = first_relay(job); relay != NULL;
         relay = next_relay(relay))
        if (relay->node == 0)
            try_relay(ctx, job, relay);
}

void mu__job_stop_node_down(struct mu__ctx *ctx, struct job *job, uint32_t node)
{
    struct job_relay *next;

    if (job->stop.active && job->stop.chief == node)
        finish_stop(ctx, job, " (the chief was lost)");
    for (struct job_relay *relay = first_relay(job); relay != NULL; relay = next) {
        next = next_relay(relay);
        if (relay->node == node) {
            relay->node = 0;
            arm_unreached(ctx, relay);
        }
        if (relay->from.node == node)
            end_relay(ctx, job, relay);
    }
}

static void relay_expired(struct mu__ctx *ctx, struct job *job, struct job_relay *relay)
{
    char task[MU__TASK_NAME_MAX + 1];
    char words[MU__ERROR_TEXT_MAX + 1];

    mu__job_name(task, sizeof task, relay->type, relay->index);
    if (relay->timeout_ms == 0) {
        (void)snprintf(words, sizeof words,
                       "%s got the request to stop, has not answered, and is no longer "
                       "connected to the chief",
                       task);
        mu__job_answer(ctx, relay->from, relay->from_token, -MU_EUNAVAILABLE, words);
        end_relay(ctx, job, relay);
        return;
    }
    (void)snprintf(words, sizeof words, "%s was not stopped within %" PRIu64 " ms: it %s",
                   task, relay->timeout_ms,
                   relay->node == 0 ? "is not connected to the chief"
                                    : "got the request, and has not finished its work");
    mu__job_answer(ctx, relay->from, relay->from_token, -MU_EDEADLINE, words);
    end_relay(ctx, job, relay);
}

bool mu__job_stop_timer(struct mu__ctx *ctx, struct job *job, uint64_t timer)
{
    if (job->stop.active && job->stop.timer == timer) {
        finish_stop(ctx, job, " (its work was not finished)");
        return true;
    }
    for (struct job_relay *relay = first_relay(job); relay != NULL;
         relay = next_relay(relay))
        if (relay->timer == timer) {
            relay_expired(ctx, job, relay);
            return true;
        }
    return false;
}

void mu__job_stop_done(struct job *job)
{
    struct mu__list_node *node;

    while ((node = mu__list_pop(&job->relays.list)) != NULL)
        free(MU__LIST_ENTRY(node, struct job_relay, list_node));
}
