/* Workers join, are lost, are waited for, and leave, each independently of the others. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/stragglers.h"

#include <inttypes.h>
#include <stdio.h>

enum { WINDOW_LARGE = 256 };

bool mu__sup_need_worker_state(struct supervisor *s, uint32_t number)
{
    uint32_t size = mu__worker_states_size_for(&s->worker_states, number);

    return mu__closures_make_list(&s->closures, mu__list_affine(size - 1)) == 0 &&
           mu__worker_states_grow(&s->worker_states, size);
}

static bool expect_type(struct mu__ctx *ctx, struct supervisor *s, uint32_t role)
{
    for (uint32_t i = 0; i < s->config.types.rows[role].tasks; i++) {
        const struct mu__worker_id id = {role, i};
        uint32_t number = mu__membership_enroll(&s->members, id);

        if (number == 0 || !mu__sup_need_worker_state(s, number))
            return false;
        s->worker_states.items[number].lost_ms = mu__now_ms(ctx);
    }
    return true;
}

bool mu__sup_expect_workers(struct mu__ctx *ctx, struct supervisor *s)
{
    for (uint32_t role = 0; role < s->config.types.count; role++)
        if (!expect_type(ctx, s, role))
            return false;
    return true;
}

/* ---- Joining ---- */

static void stop_timer(struct mu__ctx *ctx, struct worker_state *worker_state)
{
    mu__timer_cancel(ctx, worker_state->timer);
    worker_state->timer = 0;
}

/* Workers begin one after the other, if the configuration has a start delay. */
static void delay_start(struct mu__ctx *ctx, struct supervisor *s,
                        const struct mu__member_worker *worker)
{
    uint64_t delay_ms = s->config.start_delay_ms * worker->index;

    if (s->config.start_delay_max_ms != 0 && delay_ms > s->config.start_delay_max_ms)
        delay_ms = s->config.start_delay_max_ms;
    if (delay_ms == 0)
        return;
    mu__membership_hold(&s->members, worker->number, MU__HOLD_START);
    s->worker_states.items[worker->number].timer =
        mu__timer_set(ctx, delay_ms, timer_token(TIMER_WORKER, worker->number));
}

static void settle_joined_worker(struct mu__ctx *ctx, struct supervisor *s,
                                 uint32_t number)
{
    struct worker_state *worker_state = &s->worker_states.items[number];
    struct mu__member_worker *worker = mu__membership_get(&s->members, number);
    uint64_t now_ms = mu__now_ms(ctx);

    stop_timer(ctx, worker_state);
    if (worker_state->lost_ms != 0 && worker_state->was_here && s->config.measure)
        mu__histogram_add(&s->counts.recovery,
                          (double)(now_ms - worker_state->lost_ms) / 1000);
    worker_state->lost_ms = 0;
    s->worker_states.none_left[0] = '\0';
    worker_state->was_here = true;
    worker_state->has_estimate = false;
    worker_state->round_trip_ms = UINT32_MAX;
    worker_state->recalled_ms = 0;
    worker_state->abandoned_count = 0;
    worker_state->drained_by_itself = false;
    worker->since_ms = now_ms;
    delay_start(ctx, s, worker);
    mu__sup_builds_begin(ctx, s, number);
}

/* In closures; a large one if the window follows run times, which then are the bound. */
static uint32_t window_of(const struct supervisor *s, uint32_t threads)
{
    if (s->config.window != 0)
        return s->config.window;
    return threads < WINDOW_LARGE ? WINDOW_LARGE : threads;
}

void mu__sup_on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__register *body = mu__body(msg);
    struct live_node *peer = mu__live_nodes_find(&s->nodes, msg->from.node);
    uint32_t window = window_of(s, body->threads);
    struct mu__worker_id id;
    uint32_t number;

    if (peer == NULL || mu__membership_by_node(&s->members, msg->from.node) != NULL)
        return;
    id = (struct mu__worker_id){
        mu__worker_types_find(&s->config.types, mu__view_str(peer->type)), peer->index};
    if (id.role == MU__ROLE_NONE) {
        if (!peer->is_refused)
            mu__sup_refuse_worker(ctx, s, msg->from, peer->type, peer->index);
        peer->is_refused = true;
        return;
    }
    number = mu__membership_add(&s->members, msg->from.node, id, body->threads, window);
    if (number == 0 || !mu__sup_need_worker_state(s, number)) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: %s gets no closures",
                mu__sup_task_of(s, id).text);
        if (number != 0)
            mu__membership_remove(&s->members, number);
        return;
    }
    if (mu__sup_is_adaptive(s))
        mu__membership_set_time(&s->members, number, MU__WINDOW_TIME_US);
    settle_joined_worker(ctx, s, number);
    mu__log(ctx, MU__LOG_INFO,
            "%s takes closures (%" PRIu32 " threads, window %" PRIu32 ")",
            mu__sup_task_of(s, id).text, body->threads,
            mu__sup_window(s, mu__membership_get(&s->members, number)));
    mu__sup_dispatch_affine(ctx, s, number);
}

/* ---- Loss ---- */

void mu__sup_await_worker(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    struct worker_state *worker_state = &s->worker_states.items[number];

    if (worker_state->lost_ms == 0)
        worker_state->lost_ms = mu__now_ms(ctx);
    if (worker_state->timer == 0 && s->config.recovery_ms != 0)
        worker_state->timer =
            mu__timer_set(ctx, s->config.recovery_ms, timer_token(TIMER_WORKER, number));
}

static const char *describe_fate(enum mu__loss loss, bool left, uint32_t in_flight)
{
    if (loss == MU__LOSS_REMOVED)
        return "was removed from the cluster";
    return left || (loss == MU__LOSS_DRAINED && in_flight == 0) ? "has left" : "is lost";
}

static void log_lost(struct mu__ctx *ctx, const char *task, uint32_t count,
                     enum mu__loss loss, bool left)
{
    const char *how = describe_fate(loss, left, count);

    if (count == 0)
        mu__log(ctx, MU__LOG_INFO, "%s %s; nothing was in flight", task, how);
    else
        mu__log(ctx, loss == MU__LOSS_REMOVED ? MU__LOG_INFO : MU__LOG_WARN,
                "%s %s with %" PRIu32 " closure%s in flight: %s again elsewhere", task,
                how, count, count == 1 ? "" : "s", count == 1 ? "it runs" : "they run");
}

static void log_ended(struct mu__ctx *ctx, const char *task, uint32_t count)
{
    mu__log(ctx, MU__LOG_INFO,
            "%s has left as the job is done; %" PRIu32 " closure%s had not ended there",
            task, count, count == 1 ? "" : "s");
}

static void answer_requester(struct mu__ctx *ctx, struct drain_requester *requester,
                             int code, const char *text)
{
    if (requester->token != 0)
        mu__sup_answer_drain(ctx, requester->pid, requester->token, code, text);
    requester->token = 0;
}

/* A draining worker has left: answer all who asked for that. */
static void answer_drained(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    struct worker_state *worker_state = &s->worker_states.items[number];

    for (uint32_t i = 0; i < MU__DRAIN_REQUESTERS_MAX; i++)
        answer_requester(ctx, &worker_state->drain_requesters[i], 0, "");
}

/* Keeps the last MU__DRAIN_REQUESTERS_MAX. The oldest gives way, since the chief does not
 * hear which of them have given up. */
static void add_requester(struct mu__ctx *ctx, struct worker_state *worker_state,
                          mu__pid pid, uint64_t token)
{
    struct drain_requester *requesters = worker_state->drain_requesters;

    answer_requester(
        ctx, &requesters[0], -MU_EEXISTS,
        "the worker is being drained, and later requests have replaced this one");
    for (uint32_t i = 1; i < MU__DRAIN_REQUESTERS_MAX; i++)
        requesters[i - 1] = requesters[i];
    requesters[MU__DRAIN_REQUESTERS_MAX - 1] = (struct drain_requester){pid, token};
}

/* An absent worker is not waited for any more; another one may get its number. */
static void forget_worker(struct supervisor *s, uint32_t number)
{
    s->worker_states.items[number].lost_ms = 0;
    s->worker_states.items[number].was_here = false;
    mu__membership_forget(&s->members, number);
}

/* A worker that was drained or removed from the cluster is not expected back, unless
 * closures wait for it alone: it may be listed again. */
static void await_or_forget(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                            enum mu__loss loss)
{
    if (loss == MU__LOSS ||
        mu__closures_count(&s->closures, mu__list_affine(number)) > 0) {
        mu__sup_await_worker(ctx, s, number);
        return;
    }
    stop_timer(ctx, &s->worker_states.items[number]);
    forget_worker(s, number);
}

/* No worker is present: those that never were get as long to come as one that was. */
static void await_all_workers(struct mu__ctx *ctx, struct supervisor *s)
{
    for (uint32_t i = 1; i < s->members.workers_size; i++)
        if (mu__membership_get(&s->members, i) != NULL)
            return;
    for (uint32_t i = 1; i < s->members.workers_size; i++)
        if (s->members.workers[i].known)
            mu__sup_await_worker(ctx, s, i);
}

static void lose_worker(struct mu__ctx *ctx, struct supervisor *s,
                        const struct mu__member_worker *worker, enum mu__loss loss,
                        bool left)
{
    const struct mu__member_worker lost = *worker;
    const struct task_text task = mu__sup_task(s, worker);
    uint32_t list = mu__list_in_flight(lost.number);
    struct worker_state *worker_state = &s->worker_states.items[lost.number];
    uint32_t count = mu__closures_count(&s->closures, list);
    struct mu__closure *closure;

    s->counts.workers_lost += loss == MU__LOSS || (loss == MU__LOSS_DRAINED && count > 0);
    mu__membership_remove(&s->members, lost.number);
    if (s->exclusive_worker == lost.number)
        s->exclusive_worker = 0;
    stop_timer(ctx, worker_state);
    worker_state->lost_ms = mu__now_ms(ctx);
    worker_state->abandoned_count = 0;
    mu__sup_builds_lost(ctx, s, lost.number, loss);
    mu__sup_pinned_lost(ctx, s, lost.number);
    if (s->worker_states.job_is_done)
        log_ended(ctx, task.text, count);
    else
        log_lost(ctx, task.text, count, loss, left);
    mu__sup_backups_lost(s, lost.number);
    /* From the last to the first, so that they keep their order at the front of the
     * queue. */
    while ((closure = mu__closures_last(&s->closures, list)) != NULL)
        mu__sup_take_back(ctx, s, closure, mu__member_id(&lost), loss);
    await_or_forget(ctx, s, lost.number, loss);
    await_all_workers(ctx, s);
    if ((lost.holds & MU__HOLD_DRAIN) != 0)
        answer_drained(ctx, s, lost.number);
}

void mu__sup_lose_worker(struct mu__ctx *ctx, struct supervisor *s,
                         const struct mu__member_worker *worker, bool left)
{
    bool is_drained = (worker->holds & MU__HOLD_DRAIN) != 0;

    lose_worker(ctx, s, worker, is_drained ? MU__LOSS_DRAINED : MU__LOSS, left);
}

static bool has_known_workers(const struct supervisor *s)
{
    for (uint32_t i = 1; i < s->members.workers_size; i++)
        if (s->members.workers[i].known)
            return true;
    return false;
}

/* End what waits for a worker; the errors of these closures tell their clients. */
static void none_is_left(struct mu__ctx *ctx, struct supervisor *s, const char *task,
                         const char *what)
{
    char *reason = s->worker_states.none_left;

    (void)snprintf(reason, sizeof s->worker_states.none_left, "no worker is left: %s %s",
                   task, what);
    mu__log(ctx, mu__sup_waiting(s) > 0 ? MU__LOG_ERROR : MU__LOG_INFO, "%s", reason);
    mu__sup_fail_waiting(ctx, s);
}

/* An absent worker is not waited for any more: what is for it alone ends, and with the
 * last worker all that waits. `what` says what became of it. */
static void give_up_worker(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                           const char *what)
{
    uint32_t list = mu__list_affine(number);
    struct mu__closure *closure;
    const struct task_text task = mu__sup_task(s, &s->members.workers[number]);
    char text[320];

    (void)snprintf(text, sizeof text, "the closure is for %s alone, which %s", task.text,
                   what);
    while ((closure = mu__closures_first(&s->closures, list)) != NULL)
        mu__sup_resolve_error(ctx, s, closure, -MU_EUNAVAILABLE, MU_ERROR_WORKER, text);
    forget_worker(s, number);
    if (has_known_workers(s))
        mu__log(ctx, MU__LOG_INFO, "%s %s: the other workers go on", task.text, what);
    else
        none_is_left(ctx, s, task.text, what);
}

static void not_recovered(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    const struct worker_state *worker_state = &s->worker_states.items[number];
    char what[96];

    (void)snprintf(what, sizeof what, "has not come%s within %" PRIu64 " ms",
                   worker_state->was_here ? " back" : "",
                   mu__now_ms(ctx) - worker_state->lost_ms);
    give_up_worker(ctx, s, number, what);
}

/* Its process is known to have ended, whether its link is down yet or not. */
void mu__sup_on_task_ended(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__task_ended *body = mu__body(msg);
    const struct mu__worker_id id = {mu__worker_types_find(&s->config.types, body->type),
                                     body->index};
    uint32_t number = id.role == MU__ROLE_NONE ? 0 : mu__membership_find(&s->members, id);
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);
    char what[200];

    if (number == 0)
        return;
    mu__view_copy(body->what, what, sizeof what);
    if (worker != NULL)
        lose_worker(ctx, s, worker, MU__LOSS, false);
    stop_timer(ctx, &s->worker_states.items[number]);
    give_up_worker(ctx, s, number, what);
}

void mu__sup_worker_timer(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    s->worker_states.items[number].timer = 0;
    if (mu__membership_get(&s->members, number) == NULL) {
        not_recovered(ctx, s, number);
        return;
    }
    mu__membership_release(&s->members, number, MU__HOLD_START);
    mu__sup_dispatch_affine(ctx, s, number);
}

/* ---- Leaving ---- */

/* From the node's own program: others do not end the job. */
void mu__sup_on_job_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;

    (void)ctx;
    s->worker_states.job_is_done |= msg->from.node == MU__NODE_SELF;
}

void mu__sup_answer_drain(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                          const char *text)
{
    struct mu__drained body = {.token = token, .code = (uint32_t)-code};

    if (code != 0)
        body.message = mu__view_str(text);
    (void)mu__send_body(ctx, to, MU__DRAINED, &body, sizeof body);
}

/* Answers the worker's own DRAIN: it leaves then. Other requesters are answered when it
 * has left. */
static void answer_itself(struct mu__ctx *ctx, struct worker_state *worker_state,
                          uint32_t node)
{
    for (uint32_t i = 0; i < MU__DRAIN_REQUESTERS_MAX; i++)
        if (worker_state->drain_requesters[i].pid.node == node)
            answer_requester(ctx, &worker_state->drain_requesters[i], 0, "");
}

void mu__sup_leave_if_idle(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);
    struct worker_state *worker_state = &s->worker_states.items[number];

    if (worker == NULL || (worker->holds & MU__HOLD_DRAIN) == 0 || worker->load > 0)
        return;
    if (worker_state->drained_by_itself) {
        answer_itself(ctx, worker_state, worker->node);
        return;
    }
    (void)mu__send(ctx, (mu__pid){worker->node, MU__JOB}, mu__msg_new(ctx, MU__JOB_DONE));
}

static struct mu__member_worker *worker_to_drain(struct supervisor *s,
                                                 const struct mu__msg *msg,
                                                 const struct mu__drain *body,
                                                 struct mu__view type)
{
    uint32_t role = mu__worker_types_find(&s->config.types, type);

    if (body->worker == 0)
        return mu__membership_by_node(&s->members, msg->from.node);
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker != NULL && worker->index == body->worker - 1 && worker->role == role)
            return worker;
    }
    return NULL;
}

static void log_drain(struct mu__ctx *ctx, const struct supervisor *s,
                      const struct mu__member_worker *worker)
{
    uint32_t running = worker->begun < worker->load ? worker->begun : worker->load;

    mu__log(ctx, MU__LOG_INFO,
            "%s finishes %" PRIu32 " closure%s (%" PRIu32 " running, %" PRIu32
            " sent) and leaves",
            mu__sup_task(s, worker).text, worker->load, worker->load == 1 ? "" : "s",
            running, worker->load - running);
}

/* The views actor drains servers, and answers. */
static void drain_server(struct mu__ctx *ctx, const struct mu__msg *msg,
                         const struct mu__drain *body)
{
    struct mu__msg *request = mu__msg_new(ctx, MU__SERVER_DRAIN);

    if (request != NULL)
        *(struct mu__server_drain *)mu__body(request) =
            (struct mu__server_drain){body->worker - 1, msg->from, body->token};
    if (mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__VIEWS}, request) != 0)
        mu__sup_answer_drain(ctx, msg->from, body->token, -MU_ENOTFOUND,
                             "there are no parameter servers");
}

void mu__sup_on_server_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__server_drained *body = mu__body(msg);

    (void)state;
    mu__sup_answer_drain(ctx, body->drain.requester, body->drain.token, body->code,
                         body->code == -MU_ENOTFOUND
                             ? "there is no such parameter server"
                             : "the server is being drained, and later requests have "
                               "replaced this one");
}

void mu__sup_on_drain(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__drain *body = mu__body(msg);
    struct mu__view type =
        body->worker_type.size > 0 ? body->worker_type : mu__view_str(MU__WORKER_TYPES);
    struct mu__member_worker *worker = worker_to_drain(s, msg, body, type);
    struct worker_state *worker_state;
    char text[128];

    if (body->worker != 0 && mu__view_is(type, "ps")) {
        drain_server(ctx, msg, body);
        return;
    }
    if (worker == NULL && body->worker == 0) {
        mu__sup_answer_drain(ctx, msg->from, body->token, 0, "");
        return;
    }
    if (worker == NULL) {
        (void)snprintf(text, sizeof text,
                       "there is no /job:%.*s/task:%" PRIu32 " that takes closures",
                       (int)type.size, (const char *)type.data, body->worker - 1);
        mu__sup_answer_drain(ctx, msg->from, body->token, -MU_ENOTFOUND, text);
        return;
    }
    worker_state = &s->worker_states.items[worker->number];
    worker_state->drained_by_itself =
        worker_state->drained_by_itself || body->worker == 0;
    add_requester(ctx, worker_state, msg->from, body->token);
    log_drain(ctx, s, worker);
    (void)mu__send_body(ctx, (mu__pid){worker->node, MU__ACTORS}, MU__DRAIN, body,
                        sizeof *body);
    mu__membership_hold(&s->members, worker->number, MU__HOLD_DRAIN);
    mu__sup_recall_all(ctx, s, worker->number);
    mu__sup_leave_if_idle(ctx, s, worker->number);
}

void mu__sup_fence(struct mu__ctx *ctx, const struct supervisor *s, uint32_t node)
{
    const struct mu__fence body = {.origin = s->effects.origin,
                                   .epoch = s->effects.epoch};

    if (mu__send_body(ctx, (mu__pid){node, MU__PS}, MU__FENCE, &body, sizeof body) != 0)
        mu__log(ctx, MU__LOG_WARN,
                "failed to send the fence for effects to a parameter server");
}

/* ---- The cluster changes ---- */

/* A new worker is waited for as those listed at the start: without a timeout until it has
 * joined once. */
void mu__sup_on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__cluster_change *body = mu__body(msg);
    const struct mu__worker_id id = {mu__worker_types_find(&s->config.types, body->type),
                                     body->index};
    uint32_t number;

    if (id.role == MU__ROLE_NONE || mu__membership_find(&s->members, id) != 0)
        return;
    number = mu__membership_enroll(&s->members, id);
    if (number == 0 || !mu__sup_need_worker_state(s, number)) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: %s is not waited for",
                mu__sup_task_of(s, id).text);
        if (number != 0)
            mu__membership_forget(&s->members, number);
        return;
    }
    s->worker_states.items[number].lost_ms = mu__now_ms(ctx);
}

/* The link layer closes the worker's link: its later messages do not arrive. */
void mu__sup_on_cluster_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__cluster_change *body = mu__body(msg);
    const struct mu__worker_id id = {mu__worker_types_find(&s->config.types, body->type),
                                     body->index};
    uint32_t number = mu__membership_find(&s->members, id);
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    if (id.role == MU__ROLE_NONE || number == 0)
        return;
    if (worker != NULL)
        lose_worker(ctx, s, worker, MU__LOSS_REMOVED, false);
    else
        await_or_forget(ctx, s, number, MU__LOSS_REMOVED);
}
