/* What becomes of an attempt: its result, another attempt, a timeout, a backup beside it.
 *
 * An attempt that its worker gave back does not count as a run: see recall.h.
 *
 * What to do is decided from the code, the kind and the task of an error. An attempt that
 * is given up while its worker is alive stays in that worker's account as an abandoned
 * attempt until the worker answers for it: a stuck function takes its thread with it. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/begun.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/stragglers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKOFF_FIRST_MS = 10, BACKOFF_MAX_MS = 5000 };

/* ---- Abandoned attempts ---- */

/* Of an abandoned attempt that has begun nobody knows how long it runs. */
static void recharge_abandoned(struct supervisor *s, uint32_t number,
                               struct abandoned_attempt *abandoned)
{
    const struct mu__charge lasting = {0, MU__STAGE_LASTING};

    mu__membership_recharge(&s->members, number, abandoned->charge, lasting);
    abandoned->charge = lasting;
}

static void abandon_attempt(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                            struct abandoned_attempt *was)
{
    struct worker_state *worker_state = &s->worker_states.items[number];
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    mu__sup_send_cancel(ctx, worker->node, was->closure, was->attempt);
    if (was->charge.stage == MU__STAGE_BEGUN)
        recharge_abandoned(s, number, was);
    if (!mu__abandoned_add(worker_state, was))
        mu__sup_unload(ctx, s, number, was);
}

static void end_abandoned(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                          struct abandoned_attempt *abandoned)
{
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);
    struct worker_state *worker_state = &s->worker_states.items[number];
    struct abandoned_attempt was = mu__abandoned_remove(worker_state, abandoned);

    if ((worker->holds & MU__HOLD_STUCK) != 0 &&
        worker_state->abandoned_count < mu__member_threads(worker))
        mu__membership_release(&s->members, number, MU__HOLD_STUCK);
    mu__sup_unload(ctx, s, number, &was);
}

static bool abandoned_answered(struct mu__ctx *ctx, struct supervisor *s, uint32_t node,
                               const struct mu__result *body)
{
    const struct mu__member_worker *worker = mu__membership_by_node(&s->members, node);
    struct abandoned_attempt *abandoned =
        worker == NULL ? NULL
                       : mu__abandoned_find(&s->worker_states.items[worker->number],
                                            body->closure, body->attempt);

    if (abandoned != NULL)
        end_abandoned(ctx, s, worker->number, abandoned);
    return abandoned != NULL;
}

bool mu__sup_abandoned_reported(struct mu__ctx *ctx, struct supervisor *s,
                                uint32_t number, uint64_t closure, uint32_t attempt,
                                bool returned)
{
    struct abandoned_attempt *abandoned =
        mu__abandoned_find(&s->worker_states.items[number], closure, attempt);

    if (abandoned == NULL)
        return false;
    if (returned) {
        end_abandoned(ctx, s, number, abandoned);
    } else {
        recharge_abandoned(s, number, abandoned);
    }
    return true;
}

void mu__sup_finish_attempts(struct mu__ctx *ctx, struct supervisor *s,
                             struct mu__closure *closure, uint32_t answered)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    uint32_t number = mu__list_worker(closure->list);
    struct abandoned_attempt was = mu__sup_charge(closure);

    closure->marks &= (uint8_t)~MU__MARKS_RUNNING;
    if (extra != NULL && extra->backup.worker != 0) {
        struct abandoned_attempt backup_was = mu__sup_backup_charge(closure, extra);
        uint32_t backup = extra->backup.worker;

        mu__sup_forget_backup(s, extra);
        if (backup == answered) {
            closure->attempt = (uint16_t)extra->backup.attempt;
            mu__sup_unload(ctx, s, backup, &backup_was);
        } else {
            abandon_attempt(ctx, s, backup, &backup_was);
        }
    }
    if (number == 0)
        return;
    if (number == answered)
        mu__sup_unload(ctx, s, number, &was);
    else
        abandon_attempt(ctx, s, number, &was);
}

/* ---- Times ---- */

void mu__sup_arm(struct mu__ctx *ctx, struct supervisor *s, struct mu__closure *closure)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t next_ms = extra->deadline_ms == 0 ? UINT64_MAX : extra->deadline_ms;

    if (extra->held_until_ms != 0 && extra->held_until_ms < next_ms)
        next_ms = extra->held_until_ms;
    if (extra->options.run_timeout_ms != 0 && mu__list_worker(closure->list) != 0) {
        uint64_t ran_ms = (uint32_t)((uint32_t)now_ms - closure->started_ms);
        uint64_t end_ms = now_ms + (ran_ms < extra->options.run_timeout_ms
                                        ? extra->options.run_timeout_ms - ran_ms
                                        : 0);

        if (end_ms < next_ms)
            next_ms = end_ms;
    }
    mu__timer_cancel(ctx, extra->timer);
    extra->timer = 0;
    if (next_ms != UINT64_MAX)
        extra->timer = mu__timer_set(ctx, next_ms > now_ms ? next_ms - now_ms : 0,
                                     timer_token(TIMER_CLOSURE, closure->extra - 1));
}

static uint64_t backoff_ms(uint32_t tries)
{
    uint64_t delay_ms = BACKOFF_FIRST_MS;

    while (tries-- > 0 && delay_ms < BACKOFF_MAX_MS)
        delay_ms *= 2;
    return delay_ms < BACKOFF_MAX_MS ? delay_ms : BACKOFF_MAX_MS;
}

static void hold_for(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure, uint64_t delay_ms)
{
    struct closure_extra *extra =
        delay_ms == 0 ? NULL : mu__closure_extras_take(&s->extras, closure);

    if (extra == NULL) {
        mu__sup_queue_first(ctx, s, closure);
        return;
    }
    extra->held_until_ms = mu__now_ms(ctx) + delay_ms;
    mu__sup_hold(s, closure);
    mu__sup_arm(ctx, s, closure);
}

/* ---- Trying again ---- */

static void give_up_closure(struct mu__ctx *ctx, struct supervisor *s,
                            struct mu__closure *closure,
                            const struct closure_outcome *outcome)
{
    char text[MU__ERROR_TEXT_MAX + 1];
    struct closure_outcome last = *outcome;

    (void)snprintf(text, sizeof text, "%.*s (given up after %u runs)",
                   (int)outcome->message.size, (const char *)outcome->message.data,
                   mu__sup_runs(s, closure));
    last.message = mu__view_str(text);
    /* Its program did not cancel it, so that the program sees a failure. */
    if (last.code == -MU_ECANCELLED)
        last.code = -MU_EABORTED;
    mu__sup_resolve(ctx, s, closure, &last);
}

/* For status requests. Out of memory: the task is not named. */
static void note_failure(struct closure_extra *extra,
                         const struct closure_outcome *outcome)
{
    extra->failed_code = (uint8_t)-outcome->code;
    mu__free_array(extra->failed_task);
    extra->failed_task = outcome->task.size > 0 ? mu__view_dup(outcome->task) : NULL;
}

/* The attempts of the closure have ended. `outcome` resolves it if it may not run
 * again. */
static void retry_closure(struct mu__ctx *ctx, struct supervisor *s,
                          struct mu__closure *closure,
                          const struct closure_outcome *outcome, uint64_t delay_ms)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    uint32_t max = extra == NULL ? 0 : extra->options.attempts_max;

    if ((closure->marks & (MU__MARK_CANCELLED | MU__MARK_UNWANTED)) != 0 ||
        !mu__sup_is_awaited(s, closure)) {
        mu__sup_resolve_error(ctx, s, closure, -MU_ECANCELLED, MU_ERROR_OTHER,
                              "cancelled while it ran");
        return;
    }
    if (mu__sup_runs(s, closure) >= (max == 0 ? s->config.retries_max : max) ||
        (max == 0 && extra != NULL && extra->stuck >= s->config.attempts_max)) {
        give_up_closure(ctx, s, closure, outcome);
        return;
    }
    s->counts.retried++;
    if (delay_ms > 0)
        extra = mu__closure_extras_take(&s->extras, closure);
    if (extra != NULL)
        note_failure(extra, outcome);
    hold_for(ctx, s, closure, delay_ms);
}

void mu__sup_take_back(struct mu__ctx *ctx, struct supervisor *s,
                       struct mu__closure *closure, struct mu__worker_id worker,
                       enum mu__loss loss)
{
    struct mu__view name = mu__names_view(&s->functions, closure->function);
    const struct task_text task = mu__sup_task_of(s, worker);
    char text[256];
    struct closure_outcome outcome = {.code = -MU_EABORTED, .kind = MU_ERROR_WORKER};

    if (mu__sup_promote_backup(s, closure))
        return;
    if (loss == MU__LOSS_REMOVED) {
        outcome.message = mu__view_str("its worker was removed from the cluster");
        retry_closure(ctx, s, closure, &outcome, 0);
        return;
    }
    if (closure->crashes < UINT8_MAX)
        closure->crashes++;
    (void)snprintf(text, sizeof text,
                   "function \"%.*s\" lost its worker %u times, last %s", (int)name.size,
                   (const char *)name.data, closure->crashes, task.text);
    outcome.message = mu__view_str(text);
    outcome.task = mu__view_str(task.text);
    if (closure->crashes >= s->config.attempts_max &&
        (closure->marks & MU__MARK_CANCELLED) == 0 && mu__sup_is_awaited(s, closure)) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "; given up");
        outcome.message = mu__view_str(text);
        mu__sup_resolve(ctx, s, closure, &outcome);
        return;
    }
    retry_closure(ctx, s, closure, &outcome,
                  closure->crashes < 2 ? 0 : backoff_ms(closure->crashes - 2U));
}

/* The run's own process was lost, and its worker lives: no other closure was affected, so
 * this one is not quarantined. Its attempts have ended. */
static void lost_process(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure,
                         const struct closure_outcome *outcome)
{
    struct mu__view name = mu__names_view(&s->functions, closure->function);
    struct closure_extra *extra = mu__closure_extras_take(&s->extras, closure);
    uint32_t lost = extra == NULL ? s->config.attempts_max : ++extra->processes_lost;
    char text[MU__ERROR_TEXT_MAX + 1];
    struct closure_outcome last = *outcome;

    if (lost < s->config.attempts_max || (closure->marks & MU__MARK_CANCELLED) != 0) {
        retry_closure(ctx, s, closure, outcome, lost < 2 ? 0 : backoff_ms(lost - 2));
        return;
    }
    (void)snprintf(text, sizeof text,
                   "function \"%.*s\" lost its process %" PRIu32 " times, last on %.*s: "
                   "%.*s; given up",
                   (int)name.size, (const char *)name.data, lost, (int)last.task.size,
                   (const char *)last.task.data, (int)last.message.size,
                   (const char *)last.message.data);
    last.message = mu__view_str(text);
    mu__sup_resolve(ctx, s, closure, &last);
}

/* ---- Results ---- */

/* The closure that a result is of, and the worker that ran it; NULL when the attempt is
 * not its present one, nor its backup. */
static struct mu__closure *find_result_attempt(struct supervisor *s,
                                               const struct mu__msg *msg,
                                               const struct mu__result *body,
                                               uint32_t *ret_number)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, body->closure);
    uint32_t number = closure == NULL ? 0 : mu__list_worker(closure->list);
    const struct mu__member_worker *worker;
    const struct closure_extra *extra;

    if (number == 0)
        return NULL;
    if (closure->attempt != body->attempt) {
        extra = mu__sup_extra(s, closure);
        if (extra == NULL || extra->backup.worker == 0 ||
            extra->backup.attempt != body->attempt)
            return NULL;
        number = extra->backup.worker;
    }
    worker = mu__membership_get(&s->members, number);
    *ret_number = number;
    return worker != NULL && worker->node == msg->from.node ? closure : NULL;
}

static bool parse_server_index(struct mu__view task, uint32_t *ret_index)
{
    char text[MU__TASK_NAME_MAX + 1];
    char *end;
    unsigned long index;

    mu__view_copy(task, text, sizeof text);
    if (strncmp(text, "/job:ps/task:", 13) != 0)
        return false;
    index = strtoul(text + 13, &end, 10);
    *ret_index = (uint32_t)index;
    return end != text + 13 && *end == '\0' && index < UINT32_MAX;
}

/* What a result leads to. */
enum verdict {
    FINAL,      /* it resolves the closure */
    AGAIN,      /* another attempt, after a delay */
    ELSEWHERE,  /* on another worker; the first time without a delay */
    AGAIN_SOON, /* the first time without one */
    LOST        /* the run's process was lost */
};

static bool reaches_server(const struct supervisor *s, uint32_t server)
{
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (s->nodes.items[i].index == server &&
            strcmp(s->nodes.items[i].type, "ps") == 0)
            return true;
    return false;
}

/* Whether another worker may run the closure, and none has reported the server. */
static bool others_reach(const struct supervisor *s,
                         const struct mu__member_worker *worker, uint32_t server,
                         uint64_t now_ms)
{
    bool are_here = false;

    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct worker_state *state = &s->worker_states.items[i];

        if (i == worker->number || mu__membership_get(&s->members, i) == NULL ||
            s->members.workers[i].role != worker->role)
            continue;
        are_here = true;
        if (state->cut_off_server == server + 1 &&
            now_ms - state->cut_off_ms < s->config.server_failures_ms)
            return false;
    }
    return are_here;
}

/* Whether a worker that reports a server seems to be cut off from it: the chief reaches
 * the server, and so do other workers. Then it is no failure of the server's. A closure
 * is sent elsewhere for that once. */
static bool is_cut_off(struct mu__ctx *ctx, struct supervisor *s,
                       const struct mu__closure *closure,
                       const struct mu__member_worker *worker, uint32_t server)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    struct worker_state *state = &s->worker_states.items[worker->number];
    uint64_t now_ms = mu__now_ms(ctx);
    bool is_news = state->cut_off_server != server + 1 ||
                   now_ms - state->cut_off_ms >= s->config.server_failures_ms;

    state->cut_off_server = server + 1;
    state->cut_off_ms = now_ms;
    if (worker->number > UINT16_MAX ||
        (extra != NULL && (extra->options.worker != 0 || extra->avoided != 0)) ||
        !reaches_server(s, server) || !others_reach(s, worker, server, now_ms))
        return false;
    if (is_news)
        mu__log(ctx, MU__LOG_WARN,
                "%s does not reach /job:ps/task:%" PRIu32 ", which "
                "this chief does: its closures that need the server run elsewhere",
                mu__sup_task(s, worker).text, server);
    return true;
}

/* Whether an error is the closure's own, or transient trouble of what it ran on. */
static enum verdict judge_outcome(struct mu__ctx *ctx, struct supervisor *s,
                                  const struct mu__closure *closure,
                                  const struct mu__member_worker *worker,
                                  const struct closure_outcome *outcome)
{
    uint64_t now_ms;
    uint32_t server;

    if (outcome->code == 0 || (closure->marks & MU__MARK_CANCELLED) != 0 ||
        outcome->kind == MU_ERROR_INPUT)
        return FINAL;
    now_ms = mu__now_ms(ctx);
    if ((outcome->code == -MU_EUNAVAILABLE || outcome->code == -MU_EABORTED) &&
        parse_server_index(outcome->task, &server)) {
        if (is_cut_off(ctx, s, closure, worker, server))
            return ELSEWHERE;
        if (mu__server_failures_report(s->failures.servers, server, worker->number,
                                       now_ms))
            return FINAL;
        mu__log(ctx, MU__LOG_WARN,
                "%s reports that /job:ps/task:%" PRIu32
                " fails: treated as transient, %" PRIu32 " of %" PRIu32,
                mu__sup_task(s, worker).text, server,
                mu__server_failures_count(s->failures.servers, server, now_ms),
                s->config.server_failures);
        return AGAIN;
    }
    if (outcome->code == -MU_EDEADLINE && s->config.timeouts > 0)
        return mu__server_failures_report(s->failures.timeouts, 0, worker->number, now_ms)
                   ? FINAL
                   : AGAIN;
    if (outcome->code == -MU_EUNKNOWN && s->config.unknown_is_worker)
        return AGAIN;
    /* It was not asked to stop: its node is ending, or what it called was cancelled. */
    if (outcome->code == -MU_ECANCELLED)
        return AGAIN_SOON;
    return FINAL;
}

/* Update the worker's estimate, which only the status shows, and the function's mean. */
static void note_time(struct supervisor *s, const struct mu__closure *closure,
                      const struct mu__member_worker *worker, uint32_t ran_us)
{
    struct worker_state *worker_state = &s->worker_states.items[worker->number];

    worker_state->estimate_us = worker_state->has_estimate
                                    ? (7 * worker_state->estimate_us + ran_us) / 8
                                    : ran_us;
    worker_state->has_estimate = true;
    mu__function_times_note(&s->times, closure->function, ran_us);
}

static void note_result(struct mu__ctx *ctx, struct supervisor *s,
                        const struct mu__closure *closure,
                        struct mu__member_worker *worker, const struct mu__result *body)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    uint32_t started_ms = closure->started_ms;

    if (extra != NULL && extra->backup.worker == worker->number)
        started_ms = extra->backup.started_ms;
    if (body->code == 0)
        worker->finished++;
    else
        worker->failed++;
    if (s->config.measure)
        mu__histogram_add(&s->counts.execution,
                          ((uint32_t)mu__now_ms(ctx) - started_ms) / 1000.0);
    if (s->worker_states.items[worker->number].round_trip_ms > 0 &&
        mu__list_worker(closure->list) == worker->number &&
        (closure->marks & MU__MARK_BEGUN) == 0)
        mu__sup_note_round_trip(s, worker->number, (uint32_t)mu__now_ms(ctx) - started_ms,
                                body->ran_us);
    if (body->code == 0)
        note_time(s, closure, worker, body->ran_us);
}

/* Resolve a closure whose attempts have ended, by a worker's answer. */
static void settle_closure(struct mu__ctx *ctx, struct supervisor *s,
                           struct mu__closure *closure, struct closure_outcome *outcome,
                           uint32_t number)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    if ((closure->marks & MU__MARK_RESOLVED) != 0) {
        (void)mu__sup_recomputed(ctx, s, closure, outcome, number);
        return;
    }
    if ((closure->marks & MU__MARK_UNWANTED) != 0) {
        mu__sup_resolve_error(ctx, s, closure, -MU_ECANCELLED, MU_ERROR_OTHER,
                              "cancelled while it ran");
        return;
    }
    if (outcome->code == 0 && extra != NULL &&
        (extra->options.flags & MU__CLOSURE_KEEP) != 0 &&
        s->clients.items[closure->client].present) {
        outcome->pinned = mu__sup_pin_result(s, closure, number);
        if (!outcome->pinned) {
            mu__sup_resolve_error(ctx, s, closure, -MU_ENOMEM, MU_ERROR_OTHER,
                                  "the result could not be kept: out of memory");
            return;
        }
    }
    mu__sup_resolve(ctx, s, closure, outcome);
}

static void retry_after_failure(struct mu__ctx *ctx, struct supervisor *s,
                                struct mu__closure *closure,
                                const struct closure_outcome *outcome,
                                enum verdict verdict, uint32_t number)
{
    uint32_t runs = mu__sup_runs(s, closure);
    struct closure_extra *extra =
        verdict == ELSEWHERE ? mu__closure_extras_take(&s->extras, closure) : NULL;

    if (extra != NULL)
        extra->avoided = (uint16_t)number;
    retry_closure(ctx, s, closure, outcome,
                  verdict != AGAIN && runs < 2 ? 0 : backoff_ms(runs - 1U));
}

static void handle_result(struct mu__ctx *ctx, struct supervisor *s, struct mu__msg *msg,
                          struct mu__closure *closure, uint32_t number)
{
    const struct mu__result *body = mu__body(msg);
    struct mu__member_worker *worker = mu__membership_get(&s->members, number);
    struct task_text task;
    struct closure_outcome outcome = {
        .code = -(int)body->code,
        .kind = body->error_kind == 0 ? MU_ERROR_FUNCTION : body->error_kind,
        .result = body->result,
        .backing = msg->backing,
    };
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    bool keeps = extra != NULL && (extra->options.flags & MU__CLOSURE_KEEP) != 0;
    bool lost = outcome.code == -MU_EABORTED && outcome.kind == MU_ERROR_WORKER &&
                body->origin.size == 0;
    enum verdict verdict;

    if (body->code != 0) {
        outcome.message = body->message;
        outcome.task = body->origin;
        outcome.detail = body->detail;
        outcome.error_data = body->error_data;
        if (body->origin.size == 0) {
            task = mu__sup_task(s, worker);
            outcome.task = mu__view_str(task.text);
        }
    }
    note_result(ctx, s, closure, worker, body);
    verdict = lost ? LOST : judge_outcome(ctx, s, closure, worker, &outcome);
    mu__sup_finish_attempts(ctx, s, closure, number);
    if (verdict == FINAL)
        settle_closure(ctx, s, closure, &outcome, number);
    else if (verdict == LOST)
        lost_process(ctx, s, closure, &outcome);
    else
        retry_after_failure(ctx, s, closure, &outcome, verdict, number);
    /* The worker has kept the result, perhaps for a closure that no longer needs it. */
    if (keeps && body->code == 0)
        mu__sup_drop_stale(ctx, s, msg->from.node, body->closure);
}

void mu__sup_on_result(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__result *body = mu__body(msg);
    struct mu__closure *closure;
    uint32_t number = 0;

    if ((body->closure & MU__PER_WORKER_BIT) != 0) {
        mu__sup_built(ctx, s, msg);
        return;
    }
    closure = find_result_attempt(s, msg, body, &number);
    if (closure != NULL)
        handle_result(ctx, s, msg, closure, number);
    else if (!abandoned_answered(ctx, s, msg->from.node, body))
        s->counts.stale++;
    if (closure == NULL && body->code == 0)
        mu__sup_drop_stale(ctx, s, msg->from.node, body->closure);
}

/* ---- Deadlines and timeouts of runs ---- */

static void describe_attempt_worker(const struct supervisor *s,
                                    const struct mu__closure *closure, uint32_t now_ms,
                                    char *out, size_t size)
{
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, mu__list_worker(closure->list));

    if (worker == NULL)
        (void)snprintf(out, size, "it has not been given to a worker%s",
                       closure->attempt == 0 ? "" : " again");
    else
        (void)snprintf(out, size, "it %s %s for %" PRIu32 " ms",
                       (closure->marks & MU__MARK_BEGUN) != 0 ? "runs on"
                                                              : "has been with",
                       mu__sup_task(s, worker).text, now_ms - closure->started_ms);
}

/* Give up a closure's attempt. If abandoned attempts have all threads of the worker, what
 * was sent there later would wait for ever: it is recalled, and the worker gets nothing
 * until it has answered for one of them. */
static void give_up_on(struct mu__ctx *ctx, struct supervisor *s,
                       struct mu__closure *closure)
{
    uint32_t number = mu__list_worker(closure->list);
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    mu__sup_finish_attempts(ctx, s, closure, 0);
    if (worker == NULL ||
        s->worker_states.items[number].abandoned_count < mu__member_threads(worker))
        return;
    mu__membership_hold(&s->members, number, MU__HOLD_STUCK);
    mu__sup_recall_all(ctx, s, number);
}

static void expire_closure(struct mu__ctx *ctx, struct supervisor *s,
                           struct mu__closure *closure)
{
    char where[128];
    char text[256];

    describe_attempt_worker(s, closure, (uint32_t)mu__now_ms(ctx), where, sizeof where);
    (void)snprintf(text, sizeof text, "the closure's deadline has passed: %s", where);
    give_up_on(ctx, s, closure);
    mu__sup_resolve_error(ctx, s, closure, -MU_EDEADLINE, MU_ERROR_LIMIT, text);
}

static void give_up_stuck(struct mu__ctx *ctx, struct supervisor *s,
                          struct mu__closure *closure)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, mu__list_worker(closure->list));
    const struct task_text task = mu__sup_task(s, worker);
    char text[256];
    struct closure_outcome outcome = {.code = -MU_EDEADLINE, .kind = MU_ERROR_LIMIT};

    (void)snprintf(text, sizeof text,
                   "it ran for %" PRIu32 " ms on %s, which is the limit of one run",
                   extra->options.run_timeout_ms, task.text);
    outcome.message = mu__view_str(text);
    outcome.task = mu__view_str(task.text);
    mu__log(ctx, MU__LOG_WARN, "closure %" PRIu64 ": %s", extra->closure, text);
    s->counts.stuck++;
    if (extra->stuck < UINT8_MAX)
        extra->stuck++;
    give_up_on(ctx, s, closure);
    retry_closure(ctx, s, closure, &outcome, 0);
}

static bool is_run_stuck(struct mu__ctx *ctx, const struct closure_extra *extra,
                         const struct mu__closure *closure)
{
    return extra->options.run_timeout_ms != 0 && mu__list_worker(closure->list) != 0 &&
           (uint32_t)((uint32_t)mu__now_ms(ctx) - closure->started_ms) >=
               extra->options.run_timeout_ms;
}

/* If the attempt is not known to have begun, its worker is asked first: it gives it back,
 * or says for how long it has run. */
static void give_up_stuck_or_request(struct mu__ctx *ctx, struct supervisor *s,
                                     struct mu__closure *closure)
{
    if ((closure->marks & MU__MARK_BEGUN) != 0)
        give_up_stuck(ctx, s, closure);
    else
        mu__sup_recall_one(ctx, s, closure);
}

void mu__sup_closure_timer(struct mu__ctx *ctx, struct supervisor *s,
                           struct closure_extra *extra)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, extra->closure);
    uint64_t now_ms = mu__now_ms(ctx);
    bool is_resolved = (closure->marks & MU__MARK_RESOLVED) != 0;

    extra->timer = 0;
    if (extra->deadline_ms != 0 && now_ms >= extra->deadline_ms) {
        extra->deadline_ms = 0;
        if (!is_resolved) {
            expire_closure(ctx, s, closure);
            return;
        }
    }
    if (extra->held_until_ms != 0 && now_ms >= extra->held_until_ms) {
        extra->held_until_ms = 0;
        if (closure->list == MU__LIST_HELD && extra->inputs.missing == 0)
            mu__sup_queue_first(ctx, s, closure);
    } else if (is_run_stuck(ctx, extra, closure)) {
        give_up_stuck_or_request(ctx, s, closure);
        return;
    }
    mu__sup_arm(ctx, s, closure);
}
