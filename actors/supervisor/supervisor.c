#include "actors/supervisor/supervisor.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/journaling.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/unread.h"

#include <assert.h>
#include <string.h>

enum { SAME_REPORT_MS = 1000 }; /* a reporter's reports of a server count once in it */

/* ---- The end of a closure ---- */

void mu__sup_count_outcome(struct supervisor *s, int code)
{
    if (code == 0)
        s->counts.finished++;
    else if (code == -MU_ECANCELLED)
        s->counts.cancelled++;
    else
        s->counts.failed++;
}

/* Texts of an error get a backing buffer of the message's own. */
static void copy_error_texts(struct mu__msg *msg, struct mu__resolved *body,
                             const struct closure_outcome *outcome)
{
    size_t size = (size_t)body->message.size + body->task.size + body->function.size +
                  body->detail.size + body->error_data.size;
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
        body->detail.size = body->error_data.size = 0;
        return;
    }
    at = msg->backing->data;
    at = mu__pack_view(at, &body->message);
    at = mu__pack_view(at, &body->task);
    at = mu__pack_view(at, &body->detail);
    at = mu__pack_view(at, &body->error_data);
    (void)mu__pack_view(at, &body->function);
}

void mu__sup_remove(struct supervisor *s, struct mu__closure *closure)
{
    mu__names_release(&s->functions, closure->function);
    mu__closures_remove(&s->closures, closure);
}

void mu__sup_answer(struct mu__ctx *ctx, struct supervisor *s,
                    const struct mu__closure *closure, mu__pid to, uint64_t token,
                    const struct closure_outcome *outcome, bool has_result)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESOLVED);

    if (msg != NULL) {
        struct mu__resolved *body = mu__body(msg);

        body->token = token;
        body->closure = mu__closure_id(closure);
        body->attempt = mu__sup_runs(s, closure);
        body->code = (uint32_t)-outcome->code;
        body->pinned = outcome->pinned;
        if (outcome->code == 0 && has_result)
            body->result = outcome->result;
        if (outcome->code != 0) {
            body->error_kind = outcome->kind;
            body->message = outcome->message;
            body->task = outcome->task;
            body->detail = outcome->detail;
            body->error_data = outcome->error_data;
            body->function = mu__names_view(&s->functions, closure->function);
        }
        if (body->result.head != NULL || outcome->code != 0)
            copy_error_texts(msg, body, outcome);
    }
    if (mu__sup_send_result(ctx, s, to, msg) != 0)
        mu__log(ctx, MU__LOG_WARN, "an answer could not be sent to its client");
}

/* Settle the closure's effect number: no attempt will use it any more. */
static void settle_effect(struct supervisor *s, const struct closure_extra *extra)
{
    if (extra == NULL || extra->effect == 0)
        return;
    (void)mu__id_window_add(&s->effects.window, extra->effect);
    (void)mu__id_window_settle(&s->effects.window);
}

void mu__sup_resolve(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure, const struct closure_outcome *outcome)
{
    struct supervisor_client *client = &s->clients.items[closure->client];
    struct closure_extra *extra = mu__sup_extra(s, closure);

    s->watchdog.progress_ms = mu__now_ms(ctx);
    if ((closure->marks & MU__MARK_RESOLVED) != 0) {
        (void)mu__sup_recomputed(ctx, s, closure, outcome, 0);
        return;
    }
    s->counts.args_bytes -= mu__closure_bytes(closure);
    mu__sup_disown(ctx, s, closure);
    if (extra == NULL || extra->number == 0 ||
        mu__sup_journal_resolved(ctx, s, closure, outcome))
        settle_effect(s, extra);
    if (client->present) {
        mu__sup_count_outcome(s, outcome->code);
        mu__sup_answer(ctx, s, closure, client->pid, closure->token, outcome,
                       (closure->marks & MU__MARK_DROP_RESULT) == 0);
    } else {
        s->counts.forgotten++;
    }
    if (outcome->pinned) {
        /* A CANCEL that came too late is not for a later recomputation. */
        closure->marks &= (uint8_t)~MU__MARK_CANCELLED;
        closure->marks |= MU__MARK_RESOLVED;
        mu__closures_move_last(&s->closures, closure, MU__LIST_PINNED);
        return;
    }
    if (extra != NULL)
        mu__sup_drop_extra(ctx, s, closure);
    mu__sup_remove(s, closure);
}

void mu__sup_resolve_error(struct mu__ctx *ctx, struct supervisor *s,
                           struct mu__closure *closure, int code, uint32_t kind,
                           const char *text)
{
    const struct closure_outcome outcome = {
        .code = code,
        .kind = kind,
        .message = mu__view_str(text),
        .task = mu__view_str("/job:chief/task:0"),
    };

    mu__sup_resolve(ctx, s, closure, &outcome);
}

/* ---- Node news ---- */

static void on_supervisor_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__node_up *body = mu__body(msg);
    struct live_node node = {
        .node = body->node, .index = body->index, .since_ms = mu__now_ms(ctx)};

    mu__view_copy(body->type, node.type, sizeof node.type);
    mu__view_copy(body->address, node.address, sizeof node.address);
    if (mu__live_nodes_add(&s->nodes, &node) == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a node goes unnoticed");
        return;
    }
    if (mu__view_is(body->type, "ps") && mu__sup_journal_is_open(s))
        mu__sup_fence(ctx, s, body->node);
}

static void on_supervisor_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__node_down *body = mu__body(msg);
    struct mu__member_worker *worker = mu__membership_by_node(&s->members, body->node);

    mu__live_nodes_remove(&s->nodes, body->node);
    for (uint32_t i = 0; i < s->clients.count; i++)
        if (s->clients.items[i].present && s->clients.items[i].pid.node == body->node)
            mu__sup_forget_client(ctx, s, &s->clients.items[i]);
    if (worker != NULL)
        mu__sup_lose_worker(ctx, s, worker, body->left);
}

/* ---- Timers ---- */

static void on_supervisor_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
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
        extra = mu__closure_extras_at(&s->extras, (uint32_t)rest);
        if (extra != NULL && extra->closure != 0 && extra->timer == body->timer)
            mu__sup_closure_timer(ctx, s, extra);
        break;
    case TIMER_BUILD:
        if (rest < s->worker_states.size &&
            s->worker_states.items[rest].build_timer == body->timer)
            mu__sup_builds_timer(ctx, s, (uint32_t)rest);
        break;
    case TIMER_WORKER:
        if (rest < s->worker_states.size &&
            s->worker_states.items[rest].timer == body->timer)
            mu__sup_worker_timer(ctx, s, (uint32_t)rest);
        break;
    case TIMER_WATCHDOG:
        mu__sup_watchdog(ctx, s);
        break;
    case TIMER_JOURNAL:
        mu__sup_journal_tick(ctx, s);
        break;
    case TIMER_OPENING:
        mu__sup_journal_opening(ctx, s);
        break;
    case TIMER_COMPACTION:
        mu__sup_journal_step(ctx, s);
        break;
    case TIMER_RECALL:
        mu__sup_recall_tick(ctx, s);
        break;
    case TIMER_BACKUP:
        mu__sup_backup_tick(ctx, s);
        break;
    case TIMER_UNREAD:
        mu__sup_unread_tick(ctx, s);
        break;
    case TIMER_ROOM:
        if (s->admission.timer == body->timer)
            mu__sup_room_timer(ctx, s);
        break;
    }
}

/* ---- Start and end ---- */

void mu__supervisor_counts(const void *state, uint32_t *ret_queued,
                           uint32_t *ret_in_flight)
{
    const struct supervisor *s = state;

    *ret_queued = mu__sup_waiting(s);
    *ret_in_flight = mu__sup_in_flight(s);
}

static void set_config_defaults(struct mu__supervisor_config *config)
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

/* Client 0, the owner of closures that nobody waits for. */
static bool init_sentinel_client(struct supervisor *s)
{
    if (!mu__grow_array((void **)&s->clients.items, 1, sizeof *s->clients.items))
        return false;
    s->clients.items[0] = (struct supervisor_client){.closures = 1};
    s->clients.count = 1;
    return true;
}

static void end_supervisor(struct mu__ctx *ctx, void *state)
{
    struct supervisor *s = state;

    for (uint32_t i = 0; i < STATUS_REQUESTS_MAX; i++)
        mu_value_free(s->status.requests[i].variables);
    mu__journal_read_drop(s->opening.reading);
    mu__closure_journal_done(&s->journal);
    mu__sup_inputs_done(s);
    mu__closure_extras_done(&s->extras);
    mu__closures_done(&s->closures);
    mu__membership_done(&s->members);
    mu__worker_states_done(&s->worker_states);
    for (uint32_t i = 0; i < s->clients.count; i++) {
        mu__free_array(s->clients.items[i].slots);
        mu__map_done(&s->clients.items[i].tokens);
        mu__sup_unread_free(ctx, &s->clients.items[i].unread);
    }
    mu__free_array(s->clients.items);
    mu__free_array(s->admission.list);
    mu__live_nodes_done(&s->nodes);
    mu__function_times_done(&s->times);
    mu__backups_done(&s->backups);
    mu__names_done(&s->functions);
    mu__server_failures_free(s->failures.servers);
    mu__server_failures_free(s->failures.timeouts);
    mu__id_window_done(&s->effects.window);
}

static bool make_counters(struct supervisor *s)
{
    const struct mu__server_failures_options servers = {
        .ignored = s->config.server_failures,
        .decay_ms = s->config.server_failures_ms,
        .same_ms = SAME_REPORT_MS,
    };
    const struct mu__server_failures_options timeouts = {
        .ignored = s->config.timeouts,
        .decay_ms = s->config.server_failures_ms,
    };

    s->failures.servers = mu__server_failures_new(&servers);
    s->failures.timeouts = mu__server_failures_new(&timeouts);
    return s->failures.servers != NULL && s->failures.timeouts != NULL;
}

static const struct mu__behavior while_reading;

void mu__sup_opened(struct mu__ctx *ctx, struct supervisor *s)
{
    (void)mu__become(ctx, &mu__supervisor);
    mu__release_held(ctx);
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (strcmp(s->nodes.items[i].type, "ps") == 0)
            mu__sup_fence(ctx, s, s->nodes.items[i].node);
}

bool mu__supervisor_reads(const void *state)
{
    return !mu__sup_journal_is_open(state);
}

static int init_supervisor(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct supervisor *s = state;
    int rv = -MU_ENOMEM;

    s->config = *(const struct mu__supervisor_config *)arg;
    set_config_defaults(&s->config);
    mu__sup_room_init(s);
    s->effects.origin = s->config.origin;
    s->functions.secret = mu__secret(ctx);
    mu__id_window_init(&s->effects.window, 1);
    mu__sup_journal_init(s);
    s->watchdog.progress_ms = mu__now_ms(ctx);
    if (mu__closures_init(&s->closures) == 0 && init_sentinel_client(s) &&
        make_counters(s) && mu__sup_expect_workers(ctx, s))
        rv = mu__sup_journal_open(ctx, s);
    if (rv == 0 && s->opening.is_late)
        rv = mu__become(ctx, &while_reading);
    if (rv == 0)
        rv = mu__watch_nodes(ctx);
    if (rv != 0)
        end_supervisor(ctx, s);
    return rv;
}

static const struct mu__handler handlers[] = {
    {MU__SCHEDULE, mu__sup_on_schedule},
    {MU__ROOM_REQUEST, mu__sup_on_room_request},
    {MU__RESULT, mu__sup_on_result},
    {MU__BEGUN, mu__sup_on_begun},
    {MU__RECALLED, mu__sup_on_recalled},
    {MU__CANCEL_ALL, mu__sup_on_cancel_all},
    {MU__CANCEL_CLOSURE, mu__sup_on_cancel_closure},
    {MU__REGISTER, mu__sup_on_register},
    {MU__DRAIN, mu__sup_on_drain},
    {MU__SERVER_DRAINED, mu__sup_on_server_drained},
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
    {MU__TASK_ENDED, mu__sup_on_task_ended},
    {MU__JOB_DONE, mu__sup_on_job_done},
    {MU__NODE_UP, on_supervisor_node_up},
    {MU__NODE_DOWN, on_supervisor_node_down},
    {MU__NODE_TROUBLE, mu__ignore},
    {MU__TIMER, on_supervisor_timer},
};

/* ---- While the journal is read ---- */

static void hold_message(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)state;
    (void)msg;
    mu__hold(ctx);
}

/* What it has said before is held, so the rest of it is as well. */
static void on_node_down_early(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__node_down *body = mu__body(msg);

    mu__live_nodes_remove(&s->nodes, body->node);
    mu__hold(ctx);
}

static const struct mu__handler handlers_while_reading[] = {
    {MU__SCHEDULE, hold_message},
    {MU__ROOM_REQUEST, hold_message},
    {MU__RESULT, hold_message},
    {MU__BEGUN, hold_message},
    {MU__RECALLED, hold_message},
    {MU__CANCEL_ALL, hold_message},
    {MU__CANCEL_CLOSURE, hold_message},
    {MU__REGISTER, hold_message},
    {MU__DRAIN, hold_message},
    {MU__PER_WORKER_MAKE, hold_message},
    {MU__FETCH, hold_message},
    {MU__RELEASE, hold_message},
    {MU__PULLED, hold_message},
    {MU__FORGET, hold_message},
    {MU__REPORT, mu__sup_on_report},
    {MU__STATUS_GET, mu__sup_on_status_get},
    {MU__STATUS, mu__sup_on_status},
    {MU__CALL, mu__sup_on_call},
    {MU__CLUSTER_ADDED, hold_message},
    {MU__CLUSTER_REMOVED, hold_message},
    {MU__TASK_ENDED, hold_message},
    {MU__JOB_DONE, hold_message},
    {MU__NODE_UP, on_supervisor_node_up},
    {MU__NODE_DOWN, on_node_down_early},
    {MU__NODE_TROUBLE, mu__ignore},
    {MU__TIMER, on_supervisor_timer},
};

static const struct mu__behavior while_reading = {
    .name = "supervisor",
    .state_size = sizeof(struct supervisor),
    .handlers = handlers_while_reading,
    .handlers_count = sizeof handlers_while_reading / sizeof handlers_while_reading[0],
    .done = end_supervisor,
};

const struct mu__behavior mu__supervisor = {
    .name = "supervisor",
    .state_size = sizeof(struct supervisor),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* a lost SCHEDULE would be a lost closure */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_supervisor,
    .after_batch = mu__sup_after_batch,
    .done = end_supervisor,
};
