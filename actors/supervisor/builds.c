#include "actors/supervisor/builds.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/roles.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SLOW_MS = 1000,           /* closures run beside a build that takes longer; */
    SLOW_EXCLUSIVE_MS = 30000 /* beside a quarantined one after this */
};

/* ---- The builds of a value ---- */

static struct build *build_at(const struct per_worker *pw, uint32_t number)
{
    return number < pw->builds_size ? &pw->builds[number] : NULL;
}

static enum build_state state_at(const struct per_worker *pw, uint32_t number)
{
    const struct build *build = build_at(pw, number);

    return build == NULL ? ABSENT : build->state;
}

/* NULL: out of memory. */
static struct build *need_build(struct per_worker *pw,
                                const struct mu__member_worker *worker)
{
    uint32_t size = pw->builds_size == 0 ? 8 : pw->builds_size;
    struct build *build;

    while (size <= worker->number)
        size *= 2;
    if (!mu__grow_zeroed((void **)&pw->builds, &pw->builds_size, size,
                         sizeof *pw->builds))
        return NULL;
    build = &pw->builds[worker->number];
    if (build->id.index != worker->index || build->id.role != worker->role)
        *build = (struct build){.id = mu__member_id(worker)};
    return build;
}

static bool is_value_quarantined(const struct per_worker *pw)
{
    return pw->losses >= QUARANTINE_CRASHES;
}

static bool is_given_up(const struct supervisor *s, const struct per_worker *pw,
                        const struct build *build)
{
    return build->losses > 0 && pw->losses >= s->config.attempts_max;
}

/* ---- Holding a worker back ---- */

/* The builds on one worker, by state. */
struct sums {
    uint32_t first; /* closures wait for them */
    uint32_t waiting;
    uint32_t running;
    uint32_t slow;    /* of the running ones */
    bool quarantined; /* one that runs and is not slow */
};

static struct sums sum_builds(const struct supervisor *s, uint32_t number)
{
    struct sums sums = {0};

    for (const struct per_worker *pw = first_value(s); pw != NULL; pw = next_value(pw)) {
        enum build_state state = state_at(pw, number);

        sums.waiting += state == WAITING;
        sums.running += state == UNDER_WAY || state == SLOW;
        sums.slow += state == SLOW;
        if (state == UNDER_WAY) {
            sums.first += pw->builds[number].first;
            sums.quarantined = sums.quarantined || is_value_quarantined(pw);
        }
    }
    return sums;
}

/* Closures wait for the builds of a worker that has joined, for a quarantined build, and
 * when slow builds have all of its threads. */
static void update_hold(struct supervisor *s, uint32_t number)
{
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);
    const struct sums sums = sum_builds(s, number);
    uint32_t threads = worker->threads == 0 ? 1 : worker->threads;
    bool holds = sums.first + sums.waiting > 0 || sums.slow >= threads;

    if (holds && (worker->holds & MU__HOLD_BUILD) == 0)
        mu__membership_hold(&s->members, number, MU__HOLD_BUILD);
    if (!holds && (worker->holds & MU__HOLD_BUILD) != 0)
        mu__membership_release(&s->members, number, MU__HOLD_BUILD);
}

static void watch_slow_builds(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    if (s->worker_states.items[number].build_timer == 0)
        s->worker_states.items[number].build_timer =
            mu__timer_set(ctx, SLOW_MS, timer_token(TIMER_BUILD, number));
}

/* ---- Sending ---- */

static int send_build(struct mu__ctx *ctx, const struct supervisor *s,
                      const struct per_worker *pw, uint32_t node)
{
    const struct mu__run body = {
        .closure = pw->number,
        .attempt = 1,
        .flags = MU__CLOSURE_BUILD,
        .function = mu__names_view(&s->functions, pw->function),
        .args = pw->args,
    };

    return mu__send_backed(ctx, (mu__pid){node, MU__WORKER}, MU__RUN, &body, sizeof body,
                           pw->backing);
}

/* If a build cannot be sent, the worker's NODE_DOWN is on its way. */
static void begin_build(struct mu__ctx *ctx, struct supervisor *s, struct per_worker *pw,
                        uint32_t number)
{
    struct build *build = &pw->builds[number];

    if (send_build(ctx, s, pw, s->members.workers[number].node) != 0) {
        build->state = ABSENT;
        return;
    }
    build->state = UNDER_WAY;
    build->since_ms = mu__now_ms(ctx);
    build->first = build->first || is_value_quarantined(pw);
    watch_slow_builds(ctx, s, number);
}

/* Begins all waiting builds; a quarantined one only when nothing else runs. */
static void begin_waiting(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    struct sums sums = sum_builds(s, number);
    struct per_worker *pw = first_value(s);

    for (; pw != NULL && !sums.quarantined; pw = next_value(pw)) {
        if (state_at(pw, number) != WAITING)
            continue;
        if (is_value_quarantined(pw) && sums.running > sums.slow)
            continue;
        begin_build(ctx, s, pw, number);
        sums = sum_builds(s, number);
    }
}

void mu__sup_builds_begin(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    for (struct per_worker *pw = first_value(s); pw != NULL; pw = next_value(pw)) {
        struct build *build;

        if (pw->function == MU__NAME_NONE) {
            mu__sup_send_item(ctx, s, pw, worker);
            continue;
        }
        build = need_build(pw, worker);
        if (build == NULL) {
            mu__log(ctx, MU__LOG_ERROR,
                    "out of memory: a per-worker value is not built on %s",
                    mu__sup_task(s, worker).text);
            continue;
        }
        build->first = true;
        build->state = is_given_up(s, pw, build) ? GIVEN_UP : WAITING;
    }
    begin_waiting(ctx, s, number);
    update_hold(s, number);
}

void mu__sup_builds_make(struct mu__ctx *ctx, struct supervisor *s, struct per_worker *pw)
{
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker == NULL)
            continue;
        if (pw->function == MU__NAME_NONE)
            mu__sup_send_item(ctx, s, pw, worker);
        else if (need_build(pw, worker) != NULL)
            begin_build(ctx, s, pw, i);
    }
}

/* ---- Answers ---- */

static void leave_build_state(struct supervisor *s, struct build *build,
                              enum build_state state)
{
    s->per_worker.slow_builds -= build->state == SLOW;
    build->state = state;
    build->first = false;
}

static void continue_builds(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    begin_waiting(ctx, s, number);
    update_hold(s, number);
    mu__sup_dispatch_affine(ctx, s, number);
}

void mu__sup_built(struct mu__ctx *ctx, struct supervisor *s, const struct mu__msg *msg)
{
    const struct mu__result *body = (const void *)msg->body;
    const struct mu__member_worker *worker =
        mu__membership_by_node(&s->members, msg->from.node);
    struct per_worker *pw = mu__map_get(&s->per_worker.by_number, body->closure);
    struct build *build;

    if (pw == NULL)
        s->counts.stale++;
    if (worker == NULL || pw == NULL)
        return;
    if (body->code != 0) {
        pw->failures++;
        mu__log(ctx, MU__LOG_WARN, "a per-worker value could not be built on %s: %.*s",
                mu__sup_task(s, worker).text, (int)body->message.size,
                (const char *)body->message.data);
    }
    build = build_at(pw, worker->number);
    if (build == NULL || (build->state != UNDER_WAY && build->state != SLOW))
        return;
    leave_build_state(s, build, ENDED);
    continue_builds(ctx, s, worker->number);
}

void mu__sup_builds_drop(struct mu__ctx *ctx, struct supervisor *s,
                         const struct per_worker *pw)
{
    for (uint32_t i = 0; i < pw->builds_size; i++) {
        if (mu__membership_get(&s->members, i) == NULL)
            continue;
        leave_build_state(s, &pw->builds[i], ABSENT);
        begin_waiting(ctx, s, i);
        update_hold(s, i);
    }
}

/* ---- Losses ---- */

bool mu__sup_build_given_up(const struct supervisor *s, const struct per_worker *pw,
                            uint32_t number, char *text, size_t size)
{
    const struct build *build = build_at(pw, number);
    struct mu__view name;

    if (build == NULL || build->state != GIVEN_UP)
        return false;
    name = mu__names_view(&s->functions, pw->function);
    (void)snprintf(text, size,
                   "per-worker value %" PRIu64 ", made by function "
                   "\"%.*s\", lost its worker %" PRIu32 " times, of these %" PRIu32
                   " %s; given up there",
                   pw->number & ~MU__PER_WORKER_BIT, (int)name.size,
                   (const char *)name.data, pw->losses, build->losses,
                   mu__sup_task_of(s, build->id).text);
    return true;
}

void mu__sup_builds_lost(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                         enum mu__loss loss)
{
    for (struct per_worker *pw = first_value(s); pw != NULL; pw = next_value(pw)) {
        struct build *build = build_at(pw, number);
        bool ran;

        if (build == NULL)
            continue;
        ran = build->state == UNDER_WAY || build->state == SLOW;
        leave_build_state(s, build, ABSENT);
        if (!ran || loss == MU__LOSS_REMOVED)
            continue;
        build->losses++;
        pw->losses++;
        if (is_given_up(s, pw, build))
            mu__log(ctx, MU__LOG_ERROR,
                    "%" PRIu32 " workers were lost while they built "
                    "per-worker value %" PRIu64 ": it is given up on %s",
                    pw->losses, pw->number & ~MU__PER_WORKER_BIT,
                    mu__sup_task_of(s, build->id).text);
    }
    mu__timer_cancel(ctx, s->worker_states.items[number].build_timer);
    s->worker_states.items[number].build_timer = 0;
}

/* ---- Builds that take long ---- */

static bool uses_slow(const struct supervisor *s, const struct closure_extra *extra,
                      uint32_t number)
{
    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        const struct per_worker *pw =
            mu__map_get(&s->per_worker.by_number, mu__closure_extra_inputs(extra)[i]);

        if (pw != NULL && state_at(pw, number) == SLOW)
            return true;
    }
    return false;
}

bool mu__sup_builds_suit(const struct supervisor *s, const struct closure_extra *extra,
                         const struct mu__member_worker *worker)
{
    return s->per_worker.slow_builds == 0 || !uses_slow(s, extra, worker->number);
}

/* Closures there that use a slow build have not begun: they are queued again, so that
 * others get their places. Those for this worker alone stay. */
static void take_back_users(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    uint32_t list = mu__list_in_flight(number);
    struct mu__closure *closure = mu__closures_last(&s->closures, list);
    uint32_t left = mu__closures_count(&s->closures, list);

    for (; closure != NULL && left > 0; left--) {
        const struct closure_extra *extra = mu__sup_extra(s, closure);

        if (extra != NULL && extra->options.worker == 0 && uses_slow(s, extra, number)) {
            mu__sup_finish_attempts(ctx, s, closure, 0);
            s->counts.retried++;
            mu__sup_queue_first(ctx, s, closure);
        } else {
            mu__closures_move_first(&s->closures, closure, list);
        }
        closure = mu__closures_last(&s->closures, list);
    }
}

static void note_slow(struct mu__ctx *ctx, struct supervisor *s, struct per_worker *pw,
                      uint32_t number)
{
    struct build *build = &pw->builds[number];
    uint64_t timeout_ms = is_value_quarantined(pw) ? SLOW_EXCLUSIVE_MS : SLOW_MS;

    if (build->state != UNDER_WAY || mu__now_ms(ctx) - build->since_ms < timeout_ms)
        return;
    mu__log(ctx, MU__LOG_INFO,
            "%s still builds per-worker value %" PRIu64 ": closures "
            "that do not use it go on",
            mu__sup_task_of(s, build->id).text, pw->number & ~MU__PER_WORKER_BIT);
    build->state = SLOW;
    build->first = false;
    s->per_worker.slow_builds++;
}

void mu__sup_builds_timer(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    struct sums sums;

    s->worker_states.items[number].build_timer = 0;
    if (mu__membership_get(&s->members, number) == NULL)
        return;
    for (struct per_worker *pw = first_value(s); pw != NULL; pw = next_value(pw))
        if (build_at(pw, number) != NULL)
            note_slow(ctx, s, pw, number);
    take_back_users(ctx, s, number);
    sums = sum_builds(s, number);
    if (sums.running > sums.slow)
        watch_slow_builds(ctx, s, number);
    continue_builds(ctx, s, number);
}
