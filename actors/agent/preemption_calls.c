/* Preemption: the tasks agree on one step to stop at, in rounds.
 *
 * A program's thread stores the step it reaches and then loads the gate; the agent stores
 * the gate and then loads the step. So if a step begins while a round goes on, either the
 * agent counts it in its vote, or the thread sees the closed gate and waits for the
 * agent. */
#include "actors/agent/call_handlers.h"

#include "actors/keep.h"

#include <stdio.h>

static void set_gate(struct agent *a, enum mu__agent_gate gate)
{
    atomic_store(&a->shared->gate, (int)gate);
}

static bool is_step_requested(const struct agent *a)
{
    return atomic_load(&a->shared->gate) == MU__GATE_REQUESTED;
}

/* ---- calls that wait for a round or its end ---- */

static void name_round(struct mu__agent_request *pending, char *out, size_t size)
{
    const struct mu__agent_call *call = agent_call_of(pending);

    (void)snprintf(out, size, "%s after %llu",
                   call->number != 0 ? "the step to stop at in a round of preemption"
                                     : "a round of preemption",
                   (unsigned long long)call->version);
}

static void name_step(struct mu__agent_request *pending, char *out, size_t size)
{
    (void)snprintf(out, size, "step %llu",
                   (unsigned long long)agent_call_of(pending)->version);
}

static const struct mu__agent_request_kind waiting_for_round = {
    .name = name_round,
    .fail = mu__agent_call_fail,
    .late = "did not come",
    .is_open = true,
};

static const struct mu__agent_request_kind waiting_at_step = {
    .name = name_step,
    .fail = mu__agent_call_fail,
    .late = "was not agreed about",
};

static void copy_preemption(struct mu__ctx *ctx, const struct agent *a,
                            struct mu__agent_call *call)
{
    uint64_t spent_ms = mu__now_ms(ctx) - a->preemption.since_ms;
    uint64_t left_ms = (uint64_t)a->preemption.last.left_ms;

    call->preemption = a->preemption.last;
    call->preemption.left_ms = spent_ms >= left_ms ? 0 : (int64_t)(left_ms - spent_ms);
}

/* Whether the round that a PREEMPTION call waits for has begun, or is agreed on if it
 * waits for that. */
static bool has_preemption_round(const struct agent *a, const struct mu__agent_call *call)
{
    return a->preemption.rounds > call->version &&
           (call->number == 0 || a->preemption.last.agreed != 0);
}

/* The first call of the kind that the round completes. With an error, also one that waits
 * for an agreement of this round. */
static struct mu__agent_request *next_waiting(const struct agent *a,
                                              const struct mu__agent_request_kind *kind,
                                              const mu_error *error)
{
    struct mu__agent_request *pending = agent_first_request(a);

    for (; pending != NULL; pending = agent_next_request(pending)) {
        const struct mu__agent_call *call = agent_call_of(pending);

        if (pending->kind != kind)
            continue;
        if (kind == &waiting_at_step || has_preemption_round(a, call) ||
            (error != NULL && call->number != 0 && a->preemption.rounds > call->version))
            return pending;
    }
    return NULL;
}

static void finish_rounds(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
{
    struct mu__agent_request *pending;

    while ((pending = next_waiting(a, &waiting_for_round, error)) != NULL) {
        if (error == NULL)
            copy_preemption(ctx, a, agent_call_of(pending));
        mu__agent_call_fail(ctx, a, pending, error);
    }
}

/* Complete the REACHED calls: their threads go on, or stop. */
static void finish_steps(struct mu__ctx *ctx, struct agent *a)
{
    const mu_preemption *last = &a->preemption.last;
    struct mu__agent_request *pending;

    while ((pending = next_waiting(a, &waiting_at_step, NULL)) != NULL) {
        struct mu__agent_call *call = agent_call_of(pending);

        call->number = last->agreed != 0 && call->version == last->step;
        mu__agent_call_fail(ctx, a, pending, NULL);
    }
}

/* ---- rounds ---- */

static void end_agent_round(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
{
    if (error != NULL) {
        set_gate(a, MU__GATE_OPEN);
        mu__log(ctx, MU__LOG_WARN, "the tasks have not agreed on a step to stop at: %s",
                error->message);
    }
    finish_steps(ctx, a);
    finish_rounds(ctx, a, error);
}

/* The gate is closed before: steps that begin later are not in the vote, and wait. */
static void set_vote(struct agent *a)
{
    uint64_t step = atomic_load(&a->shared->step);

    a->preemption.vote = (struct mu__preempt_step){
        .round = a->preemption.number,
        .counts = step > 0,
        .step = step == 0 ? 0 : step - 1,
    };
}

static void send_vote(struct mu__ctx *ctx, struct agent *a)
{
    (void)mu__send_body(ctx, mu__agent_service(a), MU__PREEMPT_STEP, &a->preemption.vote,
                        sizeof a->preemption.vote);
}

static void begin_agent_round(struct mu__ctx *ctx, struct agent *a,
                              const struct mu__preempt_request *body)
{
    struct agent_preemption *p = &a->preemption;
    uint64_t now_ms = mu__now_ms(ctx);

    p->rounds++;
    p->store = a->hosts.store;
    p->since_ms = now_ms;
    p->due_ms = now_ms + AGENT_ROUND_MS;
    p->last = (mu_preemption){
        .round = p->rounds,
        .left_ms = body->grace_ms > INT64_MAX ? INT64_MAX : (int64_t)body->grace_ms,
    };
    mu__view_copy(body->task, p->last.task, sizeof p->last.task);
    mu__view_copy(body->reason, p->last.reason, sizeof p->last.reason);
    set_gate(a, MU__GATE_REQUESTED);
    mu__log(ctx, MU__LOG_INFO, "%s is about to be preempted, in %lld ms%s%.200s",
            p->last.task, (long long)p->last.left_ms,
            p->last.reason[0] == '\0' ? "" : ": ", p->last.reason);
}

/* Whether this task has heard the outcome of the round already. The service asks again
 * when it does not know that. */
static bool has_round_outcome(const struct agent *a, uint64_t round)
{
    return a->preemption.last.agreed != 0 && a->preemption.number == round &&
           a->preemption.store == a->hosts.store;
}

/* A request for the same round, by the same service or the next host's, begins no new
 * round. A task that has left or was reset does not vote, though the service may not know
 * of that yet: it would never hear the outcome. */
void mu__agent_on_preempt_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__preempt_request *body = mu__body(msg);
    bool is_same = is_step_requested(a) && a->preemption.number == body->round;

    if (!a->registration.is_requested || !mu__agent_is_from_host(a, msg))
        return;
    if (has_round_outcome(a, body->round)) {
        send_vote(ctx, a);
        return;
    }
    a->preemption.number = body->round;
    if (!is_step_requested(a))
        begin_agent_round(ctx, a, body);
    if (!is_same)
        set_vote(a);
    send_vote(ctx, a);
    finish_rounds(ctx, a, NULL);
}

void mu__agent_on_preempt_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__preempt_stop *body = mu__body(msg);
    mu_error error;

    if (!mu__agent_is_from_host(a, msg) || !is_step_requested(a) ||
        body->round != a->preemption.number)
        return;
    if (body->code != 0) {
        error = mu__agent_error_of(body->code, body->message, (struct mu__view){0}, 0);
        end_agent_round(ctx, a, &error);
        return;
    }
    a->preemption.last.step = body->step;
    a->preemption.last.agreed = 1;
    atomic_store(&a->shared->stop, body->step);
    set_gate(a, MU__GATE_AGREED);
    mu__log(ctx, MU__LOG_INFO, "all tasks stop at step %llu",
            (unsigned long long)body->step);
    end_agent_round(ctx, a, NULL);
}

void mu__agent_preempt_session(struct mu__ctx *ctx, struct agent *a)
{
    if (is_step_requested(a))
        send_vote(ctx, a);
}

void mu__agent_preempt_tick(struct mu__ctx *ctx, struct agent *a)
{
    char words[AGENT_WORDS_MAX];
    mu_error error = {0};

    if (!is_step_requested(a) || mu__now_ms(ctx) < a->preemption.due_ms)
        return;
    mu__agent_host_words(ctx, a, words, sizeof words);
    (void)mu_error_set(&error, -MU_EDEADLINE,
                       "the coordination service did not say where to stop: %s", words);
    end_agent_round(ctx, a, &error);
}

void mu__agent_preempt_forget(struct agent *a)
{
    if (is_step_requested(a))
        set_gate(a, MU__GATE_OPEN);
}

/* ---- calls ---- */

static struct mu__msg *make_notice(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    const struct mu__preempt_notice body = {
        .token = pending->token,
        .grace_ms = call->version,
        .reason = agent_text(call->name),
        .timeout_ms = mu__agent_left_ms(ctx, pending),
    };

    return mu__agent_message(ctx, a, MU__PREEMPT_NOTICE, &body, sizeof body);
}

const struct mu__agent_request_kind mu__agent_noticing = {
    .make_message = make_notice,
    .on_answer = mu__agent_answered,
    .what = "the notice of this task's preemption",
    .fail = mu__agent_call_fail,
    .late = "was not answered",
    .changes = true,
    .is_limited = true,
};

void mu__agent_call_reached(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call)
{
    const mu_preemption *last = &a->preemption.last;

    if (is_step_requested(a)) {
        (void)mu__agent_submit(ctx, a, &call->pending, &waiting_at_step,
                               call->call.timeout_ms, 0);
        return;
    }
    call->number = last->agreed != 0 && call->version == last->step;
    mu__agent_complete(call, NULL);
}

void mu__agent_call_preemption(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call)
{
    if (!has_preemption_round(a, call)) {
        (void)mu__agent_submit(ctx, a, &call->pending, &waiting_for_round,
                               call->call.timeout_ms, 0);
        return;
    }
    copy_preemption(ctx, a, call);
    mu__agent_complete(call, NULL);
}
