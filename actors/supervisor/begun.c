#include "actors/supervisor/begun.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/recall.h"

enum {
    ROUND_TRIPS = 4,            /* sent ahead: a filled window is refilled when it is half
                                   empty, and results may wait for parameter servers */
    AHEAD_MAX_US = 1000 * 1000, /* what is unknown costs more, and is not sent ahead */
    REVIEW_MIN_MS = 5,
    REVIEW_MAX_MS = 500
};

/* ---- Round trips ---- */

/* Work that each thread of a worker may have ahead. */
static uint32_t ahead_us(const struct worker_state *worker_state)
{
    uint64_t us = MU__WINDOW_TIME_US;

    if (worker_state->round_trip_ms != UINT32_MAX)
        us += UINT64_C(1000) * ROUND_TRIPS * worker_state->round_trip_ms;
    return us < AHEAD_MAX_US ? (uint32_t)us : AHEAD_MAX_US;
}

void mu__sup_note_round_trip(struct supervisor *s, uint32_t number, uint32_t elapsed_ms,
                             uint32_t ran_us)
{
    struct worker_state *worker_state = &s->worker_states.items[number];
    uint32_t ran_ms = ran_us / 1000 + (ran_us % 1000 != 0);
    uint32_t trip_ms = elapsed_ms > ran_ms ? elapsed_ms - ran_ms : 0;

    if (trip_ms >= worker_state->round_trip_ms)
        return;
    worker_state->round_trip_ms = trip_ms;
    if (mu__sup_is_adaptive(s))
        mu__membership_set_time(&s->members, number, ahead_us(worker_state));
}

/* ---- What is left ---- */

/* Whether a run takes so much longer than its function's mean that more than the time for
 * its result to arrive has passed. */
static bool is_run_lasting(const struct worker_state *worker_state,
                           const struct mu__function_time *time, uint64_t ran_us)
{
    return time == NULL || ran_us > 2 * (uint64_t)time->mean_us + ahead_us(worker_state);
}

/* When to look at it again. */
static uint64_t review_after_ms(const struct worker_state *worker_state, uint64_t mean_us,
                                uint64_t ran_us)
{
    uint64_t ms = mean_us > ran_us
                      ? (mean_us - ran_us) / 4000
                      : (2 * mean_us + ahead_us(worker_state) - ran_us) / 1000 + 1;

    ms = ms < REVIEW_MIN_MS ? REVIEW_MIN_MS : ms;
    return ms < REVIEW_MAX_MS ? ms : REVIEW_MAX_MS;
}

/* Charge a worker for what is left of a closure that runs there. Returns after how many
 * ms to look again; UINT64_MAX: not at all. */
static uint64_t recharge_running(struct supervisor *s, uint32_t number,
                                 struct mu__closure *closure, uint64_t now_ms)
{
    const struct worker_state *worker_state = &s->worker_states.items[number];
    const struct mu__function_time *time =
        mu__function_times_find(&s->times, closure->function);
    const struct mu__charge was = mu__sup_charge(closure).charge;
    uint64_t ran_us = UINT64_C(1000) * (uint32_t)((uint32_t)now_ms - closure->started_ms);
    bool lasting = is_run_lasting(worker_state, time, ran_us);

    closure->marks |= lasting ? MU__MARKS_RUNNING : MU__MARK_BEGUN;
    closure->cost =
        lasting || time->mean_us < ran_us ? 0 : mu__cost_of_us(time->mean_us - ran_us);
    mu__membership_recharge(&s->members, number, was, mu__sup_charge(closure).charge);
    return lasting ? UINT64_MAX : review_after_ms(worker_state, time->mean_us, ran_us);
}

static void review_within(struct mu__ctx *ctx, struct supervisor *s, uint64_t delay_ms)
{
    if (delay_ms != UINT64_MAX)
        mu__sup_recall_look_within(ctx, s, delay_ms);
}

/* ---- Reports ---- */

/* Of a closure's present attempt. */
static void note_primary(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                         struct mu__closure *closure, uint64_t for_ms)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    uint64_t now_ms = mu__now_ms(ctx);
    uint32_t for_us = for_ms < UINT32_MAX / 1000 ? (uint32_t)for_ms * 1000 : UINT32_MAX;

    if ((closure->marks & MU__MARK_BEGUN) != 0)
        return;
    mu__sup_note_round_trip(s, number, (uint32_t)now_ms - closure->started_ms, for_us);
    closure->started_ms = (uint32_t)(now_ms - for_ms);
    review_within(ctx, s, recharge_running(s, number, closure, now_ms));
    if (extra != NULL && extra->options.run_timeout_ms != 0)
        mu__sup_arm(ctx, s, closure);
}

static void note_backup(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                        struct closure_extra *extra, uint64_t for_ms)
{
    if (extra->backup.begun)
        return;
    mu__membership_recharge(&s->members, number, (struct mu__charge){0},
                            (struct mu__charge){0, MU__STAGE_LASTING});
    extra->backup.begun = true;
    extra->backup.started_ms = (uint32_t)(mu__now_ms(ctx) - for_ms);
}

static void note_begun(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                       const struct mu__attempt *reported)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, reported->closure);
    struct closure_extra *extra = closure == NULL ? NULL : mu__sup_extra(s, closure);

    if (closure != NULL && mu__list_worker(closure->list) == number &&
        closure->attempt == reported->attempt)
        note_primary(ctx, s, number, closure, reported->for_ms);
    else if (extra != NULL && extra->backup.worker == number &&
             extra->backup.attempt == reported->attempt)
        note_backup(ctx, s, number, extra, reported->for_ms);
    else
        (void)mu__sup_abandoned_reported(ctx, s, number, reported->closure,
                                         reported->attempt, false);
}

void mu__sup_note_all_begun(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                            struct mu__view begun)
{
    uint32_t count = mu__attempts_count(begun, MU__ATTEMPT_TIMED_BYTES);

    for (uint32_t i = 0; i < count; i++) {
        struct mu__attempt reported = mu__attempts_at(begun, MU__ATTEMPT_TIMED_BYTES, i);

        note_begun(ctx, s, number, &reported);
    }
}

/* ---- Time passes ---- */

/* Of one worker. Returns as recharge_running() does. */
static uint64_t review_worker(struct mu__ctx *ctx, struct supervisor *s,
                              const struct mu__member_worker *worker)
{
    uint32_t lasting = worker->lasting;
    uint32_t left = worker->begun - lasting;
    uint64_t next_ms = UINT64_MAX;
    struct mu__closure *closure =
        mu__closures_first(&s->closures, mu__list_in_flight(worker->number));

    while (closure != NULL && left > 0) {
        if ((closure->marks & MU__MARKS_RUNNING) == MU__MARK_BEGUN) {
            uint64_t delay_ms =
                recharge_running(s, worker->number, closure, mu__now_ms(ctx));

            next_ms = delay_ms < next_ms ? delay_ms : next_ms;
            left--;
        }
        closure = mu__closures_next(&s->closures, closure);
    }
    if (worker->lasting > lasting)
        mu__sup_recall_excess(ctx, s, worker);
    return next_ms;
}

void mu__sup_review_begun(struct mu__ctx *ctx, struct supervisor *s)
{
    uint64_t next_ms = UINT64_MAX;

    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);
        uint64_t delay_ms;

        if (worker == NULL || worker->begun == worker->lasting)
            continue;
        delay_ms = review_worker(ctx, s, worker);
        next_ms = delay_ms < next_ms ? delay_ms : next_ms;
        mu__sup_dispatch_affine(ctx, s, i);
    }
    review_within(ctx, s, next_ms);
}
