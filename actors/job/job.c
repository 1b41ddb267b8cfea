#include "actors/job/internal.h"

#include "actors/keep.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    WAIT_LOG_FIRST_MS = 5000,
    WAIT_LOG_STEP_MAX_MS = 60000,
    NAMED_MAX = 5 /* tasks that an error names */
};

/* ---- peers ---- */

void mu__job_name(char *out, size_t size, const char *type, uint32_t index)
{
    (void)snprintf(out, size, "/job:%s/task:%" PRIu32, type, index);
}

const struct job_peer *mu__job_peer(const struct job *job, const char *type,
                                    uint32_t index)
{
    for (uint32_t i = 0; i < job->peers.count; i++)
        if (job->peers.items[i].index == index &&
            strcmp(job->peers.items[i].type, type) == 0)
            return &job->peers.items[i];
    return NULL;
}

const struct job_peer *mu__job_peer_at(const struct job *job, uint32_t node)
{
    size_t position = (uintptr_t)mu__map_get(&job->peers.by_node, (uint64_t)node + 1);

    return position == 0 ? NULL : &job->peers.items[position - 1];
}

const struct job_peer *mu__job_chief(const struct job *job)
{
    return mu__job_peer(job, job->config.chief_type, job->config.chief_index);
}

/* ---- calls ---- */

static void complete_wait(struct mu__ctx *ctx, const struct job *job,
                          struct mu__call *call)
{
    mu__timer_cancel(ctx, call->timer);
    call->error = (mu_error){0};
    if (job->end.code != 0)
        (void)mu_error_set(&call->error, job->end.code, "%s", job->end.message);
    mu__call_complete(call, 0);
}

static void complete_call_list(struct mu__ctx *ctx, struct mu__call **list, int code,
                               const char *words)
{
    while (*list != NULL) {
        struct mu__call *call = *list;

        *list = call->next;
        mu__timer_cancel(ctx, call->timer);
        mu__call_complete(call,
                          code == 0 ? 0 : mu_error_set(&call->error, code, "%s", words));
    }
}

void mu__job_complete(struct mu__ctx *ctx, struct mu__call **list, struct mu__call *call,
                      int code, const char *words)
{
    while (*list != call)
        list = &(*list)->next;
    *list = call->next;
    mu__timer_cancel(ctx, call->timer);
    if (code != 0)
        (void)mu_error_set(&call->error, code, "%s", words);
    mu__call_complete(call, code);
}

bool mu__job_fail_forbidden(struct mu__ctx *ctx, struct job *job,
                            struct mu__job_call *call, uint32_t node, uint16_t kind)
{
    mu_error error = {0};

    if (!mu__send_is_forbidden(ctx, node, kind, &error))
        return false;
    mu__job_complete(ctx, &job->calls.requested, &call->call, -MU_EPERMISSION,
                     error.message);
    return true;
}

/* ---- the end ---- */

static void send_job_done(struct mu__ctx *ctx, const struct job *job, uint32_t node)
{
    const struct mu__job_done body = {
        .code = (uint32_t)-job->end.code,
        .message = mu__view_str(job->end.message),
    };

    (void)mu__send_body(ctx, (mu__pid){node, MU__JOB}, MU__JOB_DONE, &body, sizeof body);
}

void mu__job_finish(struct mu__ctx *ctx, struct job *job, int code, struct mu__view words)
{
    job->end.done = true;
    job->end.code = code;
    mu__view_copy(words, job->end.message, sizeof job->end.message);
    while (job->calls.waiting != NULL) {
        struct mu__call *call = job->calls.waiting;

        job->calls.waiting = call->next;
        complete_wait(ctx, job, call);
    }
}

/* The chief's supervisor hears it, too: workers that leave now are not lost. */
static void begin_job_end(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call)
{
    job->end.is_own = true;
    if (strcmp(job->config.type, "chief") == 0)
        (void)mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__SUPERVISOR},
                       mu__msg_new(ctx, MU__JOB_DONE));
    mu__job_finish(ctx, job, call->job_code,
                   mu__view_str(call->message == NULL ? "" : call->message));
    for (uint32_t i = 0; i < job->peers.count; i++)
        send_job_done(ctx, job, job->peers.items[i].node);
    if (job->peers.count == 0)
        mu__call_complete(&call->call, 0);
    else
        mu__call_hold(ctx, &job->calls.ending, &call->call);
}

static void wait_for_job_end(struct mu__ctx *ctx, struct job *job,
                             struct mu__job_call *call)
{
    if (job->end.done)
        complete_wait(ctx, job, &call->call);
    else
        mu__call_hold(ctx, &job->calls.waiting, &call->call);
}

/* WAIT calls are not logged: most tasks wait for the end of the job all the time. */
static void arm_wait_log(struct mu__ctx *ctx, struct job *job)
{
    if (job->wait_log.timer != 0 ||
        (job->calls.requested == NULL && job->calls.ending == NULL &&
         job->calls.taking == NULL))
        return;
    job->wait_log.ms = WAIT_LOG_FIRST_MS;
    job->wait_log.timer = mu__timer_set(ctx, job->wait_log.ms, 0);
}

static void on_job_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    static void (*const begin[])(struct mu__ctx * ctx, struct job * job,
                                 struct mu__job_call * call) = {
        [MU__JOB_WAIT] = wait_for_job_end,     [MU__JOB_END] = begin_job_end,
        [MU__JOB_STOP] = mu__job_request_stop, [MU__JOB_OFFER] = mu__job_make_offer,
        [MU__JOB_TAKE] = mu__job_take,
    };
    struct mu__call_msg *body = mu__body(msg);
    struct mu__job_call *call = body->call;
    struct job *job = state;

    call->call.timer = 0;
    call->began_ms = mu__now_ms(ctx);
    begin[call->call.operation](ctx, job, call);
    arm_wait_log(ctx, job);
    mu__job_watch_orphan(ctx, job);
}

/* Ignored unless the chief sends it. */
static void on_job_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__job_done *body = mu__body(msg);
    const struct job_peer *chief = mu__job_chief(job);

    if (chief != NULL && chief->node == msg->from.node && !job->end.done)
        mu__job_finish(ctx, job, -(int)body->code, body->message);
}

/* ---- answers ---- */

void mu__job_answer(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                    const char *words)
{
    const struct mu__server_stopped body = {
        .token = token,
        .code = (uint32_t)-code,
        .message = mu__view_str(words),
    };

    (void)mu__send_body(ctx, to, MU__SERVER_STOPPED, &body, sizeof body);
}

static void on_server_stopped(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__server_stopped *body = mu__body(msg);
    char words[MU__ERROR_TEXT_MAX + 1];

    if (mu__job_relay_answered(ctx, job, msg))
        return;
    for (struct mu__call *call = job->calls.requested; call != NULL; call = call->next) {
        struct mu__job_call *pending = (struct mu__job_call *)call;

        if (pending->token != body->token || pending->node != msg->from.node)
            continue;
        mu__view_copy(body->message, words, sizeof words);
        mu__job_complete(ctx, &job->calls.requested, call, -(int)body->code, words);
        return;
    }
}

/* ---- node news ---- */

static int index_peer(struct job *job, uint32_t node, uint32_t position)
{
    return mu__map_set(&job->peers.by_node, (uint64_t)node + 1,
                       (void *)((uintptr_t)position + 1));
}

static struct job_peer *new_peer(struct job *job, uint32_t node)
{
    if (!mu__grow_for_one((void **)&job->peers.items, &job->peers.size, job->peers.count,
                          sizeof *job->peers.items) ||
        index_peer(job, node, job->peers.count) != 0)
        return NULL;
    return &job->peers.items[job->peers.count++];
}

static void forget_peer(struct job *job, uint32_t node)
{
    const struct job_peer *peer = mu__job_peer_at(job, node);
    uint32_t position;

    if (peer == NULL)
        return;
    position = (uint32_t)(peer - job->peers.items);
    job->peers.items[position] = job->peers.items[--job->peers.count];
    /* Takes no memory, as the map has an entry for that node. */
    (void)index_peer(job, job->peers.items[position].node, position);
    (void)mu__map_remove(&job->peers.by_node, (uint64_t)node + 1);
}

static void lose_node(struct mu__ctx *ctx, struct job *job, uint32_t node)
{
    forget_peer(job, node);
    for (struct mu__call *call = job->calls.requested; call != NULL; call = call->next) {
        struct mu__job_call *pending = (struct mu__job_call *)call;

        if (pending->node == node) {
            pending->node = 0;
            pending->was_lost = true;
        }
    }
    mu__job_stop_node_down(ctx, job, node);
}

/* A task has one link: a former one must be down, even if there was no memory for the
 * news of that. Clients and nodes that offer a cluster spec may share an index. */
static void replace_peer(struct mu__ctx *ctx, struct job *job,
                         const struct mu__node_up *body)
{
    const struct job_peer *former;
    char type[16];

    mu__view_copy(body->type, type, sizeof type);
    if (strcmp(type, "client") == 0 || strcmp(type, MU__OFFER_TYPE) == 0)
        return;
    former = mu__job_peer(job, type, body->index);
    if (former != NULL)
        lose_node(ctx, job, former->node);
}

static void on_job_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__node_up *body = mu__body(msg);
    struct job_peer *peer;

    replace_peer(ctx, job, body);
    peer = new_peer(job, body->node);
    if (peer == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a node goes unnoticed");
        return;
    }
    *peer = (struct job_peer){.node = body->node, .index = body->index};
    mu__view_copy(body->type, peer->type, sizeof peer->type);
    if (job->end.is_own)
        send_job_done(ctx, job, body->node);
    mu__job_stop_node_up(ctx, job);
    mu__job_offer_node_up(ctx, job, body->node);
    mu__job_watch_orphan(ctx, job);
}

static void on_job_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__node_down *body = mu__body(msg);
    const struct job_peer *peer = mu__job_peer_at(job, body->node);

    /* That a client has left does not say why the chief is not connected. */
    if (peer == NULL || strcmp(peer->type, "client") != 0)
        mu__view_copy(body->reason, job->reported_error, sizeof job->reported_error);
    lose_node(ctx, job, body->node);
    if (job->peers.count == 0)
        complete_call_list(ctx, &job->calls.ending, 0, "");
    mu__job_watch_orphan(ctx, job);
}

static void on_job_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__node_trouble *body = mu__body(msg);

    (void)ctx;
    if (body->type.size == 0 || (body->index == job->config.chief_index &&
                                 mu__view_is(body->type, job->config.chief_type)))
        mu__view_copy(body->reason, job->reported_error, sizeof job->reported_error);
}

/* ---- timeouts: what each kind of call waits for ---- */

static void wait_missing(const struct job *job, struct mu__job_call *call)
{
    int64_t timeout_ms = call->call.timeout_ms;
    const char *colon = job->reported_error[0] == '\0' ? "" : ": ";

    if (mu__job_is_chief(job))
        (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                           "the job is not done after %" PRId64 " ms: this task, %s, has "
                           "not ended it",
                           timeout_ms, job->config.task);
    else if (mu__job_chief(job) != NULL)
        (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                           "the job is not done after %" PRId64 " ms: %s has not ended "
                           "it",
                           timeout_ms, job->config.chief);
    else
        (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                           "the job is not done after %" PRId64 " ms: %s is not "
                           "connected%s%s",
                           timeout_ms, job->config.chief, colon, job->reported_error);
}

static void end_missing(const struct job *job, struct mu__job_call *call)
{
    char names[NAMED_MAX * (MU__TASK_NAME_MAX + 2) + 16] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < job->peers.count && i < NAMED_MAX; i++)
        used += (size_t)snprintf(names + used, sizeof names - used,
                                 "%s/job:%s/task:%" PRIu32, i == 0 ? "" : ", ",
                                 job->peers.items[i].type, job->peers.items[i].index);
    if (job->peers.count > NAMED_MAX)
        (void)snprintf(names + used, sizeof names - used, " and others");
    (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                       "%" PRIu32 " tasks have not hung up after %" PRId64 " ms: %s",
                       job->peers.count, call->call.timeout_ms, names);
}

static void offer_missing(const struct job *job, struct mu__job_call *call)
{
    (void)mu_error_set(&call->call.error, -MU_EDEADLINE,
                       "no client has offered a cluster spec to %s within %" PRId64 " ms",
                       job->config.task, call->call.timeout_ms);
}

static void request_missing(const struct job *job, struct mu__job_call *call)
{
    if (call->call.operation == MU__JOB_STOP)
        mu__job_stop_missing(job, call);
    else
        mu__job_offer_missing(job, call);
}

/* ---- log lines about pending calls ---- */

static bool log_waiting_calls(
    struct mu__ctx *ctx, const struct job *job, struct mu__call *list,
    void (*missing)(const struct job *job, struct mu__job_call *call))
{
    for (struct mu__call *call = list; call != NULL; call = call->next) {
        struct mu__job_call *pending = (struct mu__job_call *)call;
        int64_t timeout_ms = call->timeout_ms;

        /* The message of the timeout, as if it were now. */
        call->timeout_ms = (int64_t)(mu__now_ms(ctx) - pending->began_ms);
        missing(job, pending);
        mu__log(ctx, MU__LOG_WARN, "waiting: %s", call->error.message);
        call->timeout_ms = timeout_ms;
        call->error = (mu_error){0};
    }
    return list != NULL;
}

static void log_all_waiting_calls(struct mu__ctx *ctx, struct job *job)
{
    bool waits = log_waiting_calls(ctx, job, job->calls.requested, request_missing);

    waits = log_waiting_calls(ctx, job, job->calls.ending, end_missing) || waits;
    waits = log_waiting_calls(ctx, job, job->calls.taking, offer_missing) || waits;
    job->wait_log.ms = job->wait_log.ms * 2 < WAIT_LOG_STEP_MAX_MS ? job->wait_log.ms * 2
                                                                   : WAIT_LOG_STEP_MAX_MS;
    job->wait_log.timer = waits ? mu__timer_set(ctx, job->wait_log.ms, 0) : 0;
}

static bool expire_job_call(struct job *job, struct mu__call **list, uint64_t timer,
                            void (*missing)(const struct job *job,
                                            struct mu__job_call *call))
{
    for (struct mu__call **at = list; *at != NULL; at = &(*at)->next) {
        struct mu__call *call = *at;

        if (call->timer != timer)
            continue;
        *at = call->next;
        missing(job, (struct mu__job_call *)call);
        mu__call_complete(call, -MU_EDEADLINE);
        return true;
    }
    return false;
}

static void on_job_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct job *job = state;
    const struct mu__timer *body = mu__body(msg);
    uint64_t timer = body->timer;

    if (timer == job->wait_log.timer)
        log_all_waiting_calls(ctx, job);
    else if (timer == job->orphan_timer)
        mu__job_orphan_timer(ctx, job);
    else if (!expire_job_call(job, &job->calls.waiting, timer, wait_missing) &&
             !expire_job_call(job, &job->calls.ending, timer, end_missing) &&
             !expire_job_call(job, &job->calls.requested, timer, request_missing) &&
             !expire_job_call(job, &job->calls.taking, timer, offer_missing))
        (void)mu__job_stop_timer(ctx, job, timer);
}

/* ---- beginning and end ---- */

static int init_job(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct job *job = state;

    job->config = *(const struct mu__job_config *)arg;
    return mu__watch_nodes(ctx);
}

static void end_job_actor(struct mu__ctx *ctx, void *state)
{
    struct job *job = state;
    struct mu__call **lists[] = {&job->calls.waiting, &job->calls.ending,
                                 &job->calls.requested, &job->calls.taking};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        complete_call_list(ctx, lists[i], -MU_ECLOSED, "the node is being closed");
    mu__job_stop_done(job);
    mu__job_offer_done(job);
    mu__free_array(job->peers.items);
    mu__map_done(&job->peers.by_node);
}

static const struct mu__handler handlers[] = {
    {MU__CALL, on_job_call},
    {MU__JOB_DONE, on_job_done},
    {MU__SERVER_STOP, mu__job_on_stop},
    {MU__SERVER_STOPPED, on_server_stopped},
    {MU__CLUSTER_OFFER, mu__job_on_offer},
    {MU__DRAINED, mu__job_on_drained},
    {MU__NODE_UP, on_job_node_up},
    {MU__NODE_DOWN, on_job_node_down},
    {MU__NODE_TROUBLE, on_job_node_trouble},
    {MU__CLUSTER_REMOVED, mu__job_on_removed},
    {MU__TIMER, on_job_timer},
};

const struct mu__behavior mu__job = {
    .name = "job",
    .state_size = sizeof(struct job),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_job,
    .done = end_job_actor,
};
