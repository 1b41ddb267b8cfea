#include "actors/supervisor/supervisor.h"

#include "actors/supervisor/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What it hears. */
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__SCHEDULE, mu__sup_on_schedule},
    {MU__ROOM_ASK, mu__sup_on_room_ask},
    {MU__RESULT, mu__sup_on_result},
    {MU__BEGUN, mu__sup_on_begun},
    {MU__RECALLED, mu__sup_on_recalled},
    {MU__CANCEL_ALL, mu__sup_on_cancel_all},
    {MU__CANCEL_CLOSURE, mu__sup_on_cancel_closure},
    {MU__REGISTER, mu__sup_on_register},
    {MU__DRAIN, mu__sup_on_drain},
    {MU__PER_WORKER_MAKE, mu__sup_on_per_worker_make},
    {MU__FETCH, mu__sup_on_fetch},
    {MU__RELEASE, mu__sup_on_release},
    {MU__PULLED, mu__sup_on_pulled},
    {MU__FORGET, mu__sup_on_forget},
    {MU__REPORT, mu__sup_on_report},
    {MU__STATUS_GET, mu__sup_on_status_get},
    {MU__STATUS, mu__sup_on_status},
    {MU__CALL, mu__sup_on_call},
    {MU__CLUSTER_ADDED, mu__sup_on_cluster_added},
    {MU__CLUSTER_REMOVED, mu__sup_on_cluster_removed},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
    {MU__TIMER, on_timer},
};

/* ---- The end of a closure ---- */

static void count_outcome(struct supervisor *s, int code)
{
    if (code == 0)
        s->finished++;
    else if (code == -MU_ECANCELLED)
        s->cancelled++;
    else
        s->failed++;
}

/* Words of an error that are not in a backing buffer of their own get one. */
static void copy_text(struct mu__msg *msg, struct mu__resolved *body,
                       const struct outcome *outcome)
{
    size_t size = (size_t)body->message.size + body->task.size + body->function.size +
                  body->detail.size;
    uint8_t *at;

    if (outcome->backing != NULL)
        msg->backing = mu__buf_ref(outcome->backing);
    if (size == 0)
        return;
    if (msg->backing != NULL)
        mu__buf_unref(msg->backing);
    msg->backing = mu__buf_new(size);
    if (msg->backing == NULL) {
        body->message.size = body->task.size = body->function.size = 0;
        body->detail.size = 0;
        return;
    }
    at = msg->backing->data;
    at = mu__pack_view(at, &body->message);
    at = mu__pack_view(at, &body->task);
    at = mu__pack_view(at, &body->detail);
    (void)mu__pack_view(at, &body->function);
}

void mu__sup_remove(struct supervisor *s, struct mu__closure *closure)
{
    mu__names_release(&s->functions, closure->function);
    mu__closures_remove(&s->closures, closure);
}

static void answer(struct mu__ctx *ctx, struct supervisor *s,
                   const struct mu__closure *closure, const struct outcome *outcome)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESOLVED);

    if (msg != NULL) {
        struct mu__resolved *body = mu__body(msg);

        body->token = closure->token;
        body->closure = mu__closure_id(closure);
        body->attempt = mu__sup_runs(s, closure);
        body->code = (uint32_t)-outcome->code;
        body->kept = outcome->pinned;
        if (outcome->code == 0 && (closure->marks & MU__MARK_DROP_RESULT) == 0)
            body->result = outcome->result;
        if (outcome->code != 0) {
            body->error_kind = outcome->kind;
            body->message = outcome->message;
            body->task = outcome->task;
            body->detail = outcome->detail;
            body->function = mu__names_view(&s->functions, closure->function);
        }
        if (body->result.head != NULL || outcome->code != 0)
            copy_text(msg, body, outcome);
    }
    if (mu__send(ctx, s->clients[closure->client].pid, msg) != 0)
        mu__log(ctx, MU__LOG_WARN, "an answer could not be sent to its client");
}

/* Its number among effects is finished with: no attempt of it will come any more. */
static void settle_effect(struct supervisor *s, const struct closure_extra *extra)
{
    if (extra == NULL || extra->effect == 0)
        return;
    (void)mu__id_window_add(&s->effects, extra->effect);
    (void)mu__id_window_settle(&s->effects);
}

void mu__sup_resolve(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure, const struct outcome *outcome)
{
    struct client *client = &s->clients[closure->client];
    struct closure_extra *extra = mu__sup_extra(s, closure);

    s->progress_ms = mu__now_ms(ctx);
    if ((closure->marks & MU__MARK_RESOLVED) != 0) {
        (void)mu__sup_recomputed(ctx, s, closure, outcome, 0);
        return;
    }
    s->args_bytes -= mu__closure_bytes(closure);
    mu__sup_disown(ctx, s, closure);
    if (extra == NULL || extra->number == 0 ||
        mu__sup_journal_resolved(ctx, s, closure, outcome))
        settle_effect(s, extra);
    if (client->present) {
        count_outcome(s, outcome->code);
        answer(ctx, s, closure, outcome);
    } else {
        s->forgotten++;
    }
    if (outcome->pinned) {
        /* It had been asked to stop, perhaps; computing it again is another matter. */
        closure->marks &= (uint8_t)~MU__MARK_CANCELLED;
        closure->marks |= MU__MARK_RESOLVED;
        mu__closures_move_last(&s->closures, closure, MU__LIST_PINNED);
        return;
    }
    if (extra == NULL) {
        mu__sup_remove(s, closure);
        return;
    }
    mu__sup_inputs_pause(s);
    mu__sup_drop_extra(ctx, s, closure);
    mu__sup_remove(s, closure);
    mu__sup_inputs_resume(ctx, s);
}

void mu__sup_resolve_error(struct mu__ctx *ctx, struct supervisor *s,
                           struct mu__closure *closure, int code, uint32_t kind,
                           const char *text)
{
    const struct outcome outcome = {
        .code = code,
        .kind = kind,
        .message = mu__view_str(text),
        .task = mu__view_str("/job:chief/task:0"),
    };

    mu__sup_resolve(ctx, s, closure, &outcome);
}

/* ---- Node news ---- */

struct peer *mu__sup_peer(const struct supervisor *s, uint32_t node)
{
    uintptr_t place = node == 0 ? 0 : (uintptr_t)mu__map_get(&s->peer_index, node);

    return place == 0 ? NULL : &s->peers[place - 1];
}

static int index_peer(struct supervisor *s, const struct peer *peer)
{
    return mu__map_set(&s->peer_index, peer->node,
                       (void *)(uintptr_t)(peer - s->peers + 1));
}

static bool make_room(struct supervisor *s)
{
    uint32_t size = s->peers_size == 0 ? 16 : s->peers_size * 2;

    if (s->peers_count < s->peers_size)
        return true;
    if (!mu__grow_array((void **)&s->peers, size, sizeof *s->peers))
        return false;
    s->peers_size = size;
    return true;
}

/* Another one takes its place. */
static void forget_peer(struct supervisor *s, struct peer *peer)
{
    const struct peer *last = &s->peers[--s->peers_count];

    (void)mu__map_remove(&s->peer_index, peer->node);
    if (peer == last)
        return;
    *peer = *last;
    /* That takes no memory: one has just gone. */
    (void)index_peer(s, peer);
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__node_up *body = mu__body(msg);
    struct peer *peer = make_room(s) ? &s->peers[s->peers_count] : NULL;

    if (peer != NULL)
        *peer = (struct peer){.node = body->node, .index = body->index,
                              .since_ms = mu__now_ms(ctx)};
    if (peer == NULL || index_peer(s, peer) != 0) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a node goes unnoticed");
        return;
    }
    s->peers_count++;
    mu__view_copy(body->type, peer->type, sizeof peer->type);
    mu__view_copy(body->address, peer->address, sizeof peer->address);
    if (mu__view_is(body->type, "ps"))
        mu__sup_fence(ctx, s, body->node);
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__node_down *body = mu__body(msg);
    struct peer *peer = mu__sup_peer(s, body->node);
    struct mu__member_worker *worker = mu__membership_by_node(&s->members, body->node);

    if (peer != NULL)
        forget_peer(s, peer);
    for (uint32_t i = 0; i < s->clients_count; i++)
        if (s->clients[i].present && s->clients[i].pid.node == body->node)
            mu__sup_forget_client(ctx, s, &s->clients[i]);
    if (worker != NULL)
        mu__sup_lose_worker(ctx, s, worker);
}

/* Whoever waits for a link says why it is not up; this actor waits for none. */
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

/* ---- Timers ---- */

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__timer *body = mu__body(msg);
    uint64_t rest = body->token & ((UINT64_C(1) << 56) - 1);
    struct closure_extra *extra;

    switch ((enum timer_purpose)(body->token >> 56)) {
    case TIMER_STATUS:
        mu__sup_status_timer(ctx, s, rest);
        break;
    case TIMER_CLOSURE:
        extra = mu__sup_extra_at(s, (uint32_t)rest);
        if (extra != NULL && extra->timer == body->timer)
            mu__sup_closure_timer(ctx, s, extra);
        break;
    case TIMER_BUILD:
        if (rest < s->worker_states_size &&
            s->worker_states[rest].build_timer == body->timer)
            mu__sup_builds_timer(ctx, s, (uint32_t)rest);
        break;
    case TIMER_WORKER:
        if (rest < s->worker_states_size && s->worker_states[rest].timer == body->timer)
            mu__sup_worker_timer(ctx, s, (uint32_t)rest);
        break;
    case TIMER_WATCHDOG:
        mu__sup_watchdog(ctx, s);
        break;
    case TIMER_JOURNAL:
        mu__sup_journal_tick(ctx, s);
        break;
    case TIMER_RECALL:
        mu__sup_recall_tick(ctx, s);
        break;
    case TIMER_BACKUP:
        mu__sup_backup_tick(ctx, s);
        break;
    case TIMER_ROOM:
        if (s->admission.timer == body->timer)
            mu__sup_room_timer(ctx, s);
        break;
    }
}

/* ---- Life ---- */

void mu__supervisor_counts(const void *state, uint32_t *ret_queued,
                           uint32_t *ret_in_flight)
{
    const struct supervisor *s = state;

    *ret_queued = mu__sup_waiting(s);
    *ret_in_flight = mu__sup_in_flight(s);
}

static void take_defaults(struct mu__supervisor_config *config)
{
    if (config->queue_bytes_max == 0)
        config->queue_bytes_max = UINT64_C(1) << 30;
    if (config->retries_max == 0)
        config->retries_max = 1000;
    if (config->server_failures_ms == 0)
        config->server_failures_ms = 600 * 1000;
    if (config->types.count == 0)
        (void)mu__worker_types_parse(NULL, NULL, &config->types);
    assert(config->origin != 0 && config->attempts_max > 0 &&
           config->attempts_max < UINT16_MAX && config->retries_max < UINT16_MAX &&
           config->queue_max > 0 && config->window <= MU__WINDOW_MAX);
}

/* Client 0 is nobody: closures that are run although nobody waits for them are his. */
static bool init_sentinel_client(struct supervisor *s)
{
    if (!mu__grow_array((void **)&s->clients, 1, sizeof *s->clients))
        return false;
    s->clients[0] = (struct client){.closures = 1};
    s->clients_count = 1;
    return true;
}

static void done(struct mu__ctx *ctx, void *state)
{
    struct supervisor *s = state;

    (void)ctx;
    for (uint32_t i = 0; i < STATUS_REQUESTS_MAX; i++)
        mu_value_free(s->status_requests[i].variables);
    mu__sup_journal_close(s);
    mu__sup_inputs_done(s);
    for (uint32_t i = 0; i < s->extras_chunks * EXTRAS_CHUNK; i++) {
        struct closure_extra *extra = mu__sup_extra_at(s, i);

        if (extra->has_many)
            mu__free_array(extra->inputs.many);
        mu__free_array(extra->name);
        mu__free_array(extra->failed_task);
    }
    for (uint32_t i = 0; i < s->extras_chunks; i++)
        mu__free_array(s->extras[i]);
    mu__free_array(s->extras);
    mu__closures_done(&s->closures);
    mu__membership_done(&s->members);
    for (uint32_t i = 0; i < s->worker_states_size; i++)
        mu__free_array(s->worker_states[i].abandoned);
    mu__free_array(s->worker_states);
    for (uint32_t i = 0; i < s->clients_count; i++) {
        mu__free_array(s->clients[i].slots);
        mu__map_done(&s->clients[i].tokens);
    }
    mu__free_array(s->clients);
    mu__sup_room_done(s);
    mu__free_array(s->peers);
    mu__map_done(&s->peer_index);
    mu__function_times_done(&s->times);
    mu__free_array(s->backups);
    mu__names_done(&s->functions);
    mu__server_failures_free(s->server_failures);
    mu__server_failures_free(s->timeouts);
    mu__id_window_done(&s->effects);
}

static bool make_counters(struct supervisor *s)
{
    const struct mu__server_failures_options servers = {
        .ignored = s->config.server_failures,
        .decay_ms = s->config.server_failures_ms,
        .same_ms = SAME_TROUBLE_MS,
    };
    const struct mu__server_failures_options timeouts = {
        .ignored = s->config.timeouts,
        .decay_ms = s->config.server_failures_ms,
    };

    s->server_failures = mu__server_failures_new(&servers);
    s->timeouts = mu__server_failures_new(&timeouts);
    return s->server_failures != NULL && s->timeouts != NULL;
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct supervisor *s = state;
    int rv = -MU_ENOMEM;

    s->config = *(const struct mu__supervisor_config *)arg;
    take_defaults(&s->config);
    mu__sup_room_init(s);
    s->origin = s->config.origin;
    s->functions.secret = mu__secret(ctx);
    mu__id_window_init(&s->effects, 1);
    s->progress_ms = mu__now_ms(ctx);
    if (mu__closures_init(&s->closures) == 0 && init_sentinel_client(s) &&
        make_counters(s) && mu__sup_expect_workers(ctx, s))
        rv = mu__sup_journal_open(ctx, s);
    if (rv == 0)
        rv = mu__watch_nodes(ctx);
    if (rv != 0)
        done(ctx, s);
    return rv;
}

const struct mu__behavior mu__supervisor = {
    .name = "supervisor",
    .state_size = sizeof(struct supervisor),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* a lost SCHEDULE would be a lost closure */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
