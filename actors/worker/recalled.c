#include "actors/worker/recalled.h"

/* ---- The answer to a RECALL ---- */

bool mu__recall_answer_begin(struct mu__ctx *ctx, struct mu__recall_answer *answer,
                             uint32_t count)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RECALLED);

    if (msg == NULL)
        return false;
    msg->backing =
        mu__buf_new((size_t)count * (MU__ATTEMPT_BYTES + MU__ATTEMPT_TIMED_BYTES));
    if (msg->backing == NULL) {
        mu__msg_free(ctx, msg);
        return false;
    }
    answer->msg = msg;
    answer->returned = msg->backing->data;
    answer->begun_first = msg->backing->data + (size_t)count * MU__ATTEMPT_BYTES;
    answer->begun = answer->begun_first;
    return true;
}

static struct mu__attempt get_run_attempt(const struct mu_run *run, uint64_t now_ms)
{
    uint64_t begun_ms = atomic_load_explicit(&run->work.begun_ms, memory_order_relaxed);

    return (struct mu__attempt){
        .closure = run->closure,
        .attempt = run->attempt,
        .for_ms = begun_ms == 0 || begun_ms > now_ms ? 0 : now_ms - begun_ms,
    };
}

void mu__recall_answer_returned(struct mu__recall_answer *answer,
                                const struct mu_run *run)
{
    struct mu__attempt attempt = get_run_attempt(run, 0);

    answer->returned = mu__attempts_put(answer->returned, MU__ATTEMPT_BYTES, &attempt);
}

void mu__recall_answer_begun(struct mu__recall_answer *answer, struct mu_run *run,
                             uint64_t now_ms)
{
    struct mu__attempt attempt = get_run_attempt(run, now_ms);

    run->reported_begun = true;
    answer->begun = mu__attempts_put(answer->begun, MU__ATTEMPT_TIMED_BYTES, &attempt);
}

int mu__recall_answer_send(struct mu__ctx *ctx, struct mu__recall_answer *answer,
                           mu__pid to)
{
    struct mu__recalled *body = mu__body(answer->msg);
    const uint8_t *first = answer->msg->backing->data;

    if (answer->returned > first)
        body->returned = (struct mu__view){first, (uint32_t)(answer->returned - first)};
    if (answer->begun > answer->begun_first)
        body->begun = (struct mu__view){answer->begun_first,
                                        (uint32_t)(answer->begun - answer->begun_first)};
    return mu__send(ctx, to, answer->msg);
}

static bool is_run_attempt(const struct mu_run *run, mu__pid requester,
                           const struct mu__attempt *target)
{
    return run->closure == target->closure && run->attempt == target->attempt &&
           mu__pid_equal(run->requester, requester);
}

struct mu_run *mu__recall_find(const struct mu__list *list, struct mu_run **at,
                               mu__pid requester, const struct mu__attempt *target)
{
    struct mu_run *first = *at != NULL ? *at : mu__run_first(list);
    struct mu_run *run = first;

    while (run != NULL && !is_run_attempt(run, requester, target))
        run = mu__run_next(run);
    if (run == NULL) {
        run = mu__run_first(list);
        while (run != first && !is_run_attempt(run, requester, target))
            run = mu__run_next(run);
    }
    if (run == NULL || !is_run_attempt(run, requester, target))
        return NULL;
    *at = mu__run_next(run);
    return run;
}

/* ---- Runs that have begun ---- */

static bool is_run_reportable(const struct mu_run *run, uint64_t now_ms,
                              uint64_t least_ms)
{
    return !run->reported_begun && get_run_attempt(run, now_ms).for_ms >= least_ms;
}

/* How many runs of one chief may be reported, from `run` on. */
static uint32_t count_reportable_runs(const struct mu_run *run, mu__pid requester,
                                      uint64_t now_ms, uint64_t least_ms)
{
    uint32_t count = 0;

    for (; run != NULL && mu__run_has_begun(run) && count < MU__RECALL_MAX;
         run = mu__run_next(run))
        count += mu__pid_equal(run->requester, requester) &&
                 is_run_reportable(run, now_ms, least_ms);
    return count;
}

/* Report the runs of one chief from `run` on. False: out of memory. */
static bool report_begun_runs(struct mu__ctx *ctx, struct mu_run *run, uint64_t now_ms,
                              uint64_t least_ms)
{
    mu__pid requester = run->requester;
    uint32_t count = count_reportable_runs(run, requester, now_ms, least_ms);
    struct mu__msg *msg = mu__msg_new(ctx, MU__BEGUN);
    struct mu__buf *buf =
        msg == NULL ? NULL : mu__buf_new((size_t)count * MU__ATTEMPT_TIMED_BYTES);
    uint8_t *at;

    if (buf == NULL) {
        if (msg != NULL)
            mu__msg_free(ctx, msg);
        return false;
    }
    msg->backing = buf;
    at = buf->data;
    for (; count > 0; run = mu__run_next(run)) {
        struct mu__attempt attempt = get_run_attempt(run, now_ms);

        if (!mu__pid_equal(run->requester, requester) ||
            !is_run_reportable(run, now_ms, least_ms))
            continue;
        at = mu__attempts_put(at, MU__ATTEMPT_TIMED_BYTES, &attempt);
        run->reported_begun = true;
        count--;
    }
    ((struct mu__begun *)mu__body(msg))->begun =
        (struct mu__view){buf->data, (uint32_t)(at - buf->data)};
    (void)mu__send(ctx, requester, msg);
    return true;
}

bool mu__recall_report_begun(struct mu__ctx *ctx, const struct mu__list *running,
                             uint32_t threads, uint64_t least_ms)
{
    uint64_t now_ms = mu__now_ms(ctx);
    struct mu_run *run = mu__run_first(running);
    bool some_left = false;
    uint32_t begun = 0;

    for (; run != NULL && mu__run_has_begun(run); run = mu__run_next(run)) {
        if (is_run_reportable(run, now_ms, least_ms) &&
            !report_begun_runs(ctx, run, now_ms, least_ms))
            return true;
        some_left = some_left || !run->reported_begun;
        begun++;
    }
    return some_left || (run != NULL && begun < threads);
}
