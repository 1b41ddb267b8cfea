/* Which closure goes to which worker.
 *
 * Most closures are plain: the first of the most urgent queue goes to the least loaded
 * worker with room. A closure that may not run everywhere, and finds no worker, steps
 * aside into the list of the picky ones, which are tried first from then on. One that is
 * for one worker alone waits in a list of that worker.
 *
 * A suspect has been in flight at several workers that were lost. It runs with nothing
 * beside it, so that it can be told from what died with it: one worker at a time is kept
 * free for it. */
#include "actors/supervisor/internal.h"

#include <stdio.h>

enum {
    PICKY_LOOKS = 8,            /* picky closures that are tried in one go */
    EFFECTS_OUT_MAX = MU__ID_WINDOW_SPAN_MAX - (1 << 17),
    EFFECTS_WAIT_MS = 20
};

/* ---- Queues ---- */

uint32_t mu__sup_home(struct supervisor *s, const struct mu__closure *closure)
{
    const struct more *more = mu__sup_more(s, closure);
    uint32_t number;

    if (more == NULL)
        return MU__LIST_QUEUE;
    if (more->worker == 0)
        return more->role == 0 ? MU__LIST_QUEUES + more->priority
                               : mu__list_of_role(more->role - 1U, more->priority);
    number = mu__membership_know(&s->members,
                                 mu__sup_named_worker(s, more, more->worker - 1));
    if (number == 0 || !mu__sup_need_station(s, number))
        return MU__LIST_NONE;
    return mu__list_pinned(number);
}

static void after_queueing(struct mu__ctx *ctx, struct supervisor *s, uint32_t list)
{
    uint32_t number = list > MU__LIST_WORKERS ? (list - MU__LIST_WORKERS) / 2 : 0;

    if (number == 0)
        return;
    if (mu__membership_get(&s->members, number) == NULL)
        mu__sup_await_worker(ctx, s, number);
    else
        mu__sup_dispatch_pinned(ctx, s, number);
}

static uint32_t home_or_usual(struct supervisor *s, const struct mu__closure *closure)
{
    uint32_t list = mu__sup_home(s, closure);

    if (list == MU__LIST_NONE)
        return MU__LIST_QUEUE;
    if (list != MU__LIST_QUEUE) {
        bool of_role = list >= MU__LIST_ROLES && list < MU__LIST_KEPT;

        s->roles.has_queued = s->roles.has_queued || of_role;
        s->recalls.has_ranks = s->recalls.has_ranks || !of_role ||
                               mu__list_priority(list) != MU__PRIORITY_DEFAULT;
    }
    return list;
}

void mu__sup_queue_first(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure)
{
    uint32_t list = home_or_usual(s, closure);

    mu__closures_move_first(&s->closures, closure, list);
    after_queueing(ctx, s, list);
}

void mu__sup_queue_last(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure)
{
    uint32_t list = home_or_usual(s, closure);

    mu__closures_move_last(&s->closures, closure, list);
    after_queueing(ctx, s, list);
}

void mu__sup_hold(struct supervisor *s, struct mu__closure *closure)
{
    mu__closures_move_last(&s->closures, closure, MU__LIST_HELD);
}

/* ---- Messages ---- */

static void name_effect(const struct supervisor *s, const struct more *more,
                        struct mu__run *body)
{
    body->flags = more->flags;
    body->name = mu__view_str(more->name == NULL ? "" : more->name);
    if (more->name == NULL)
        body->name = (struct mu__view){NULL, 0};
    if (more->inputs_count > 0)
        body->inputs = (struct mu__view){mu__more_inputs(more), 8U * more->inputs_count};
    if (more->effect != 0) {
        body->origin = s->origin;
        body->effect = more->effect;
        body->effects_done = s->effects.base;
    }
}

int mu__sup_send_run(struct mu__ctx *ctx, struct supervisor *s,
                     const struct mu__member_worker *worker,
                     const struct mu__closure *closure, uint32_t attempt)
{
    const struct more *more = mu__sup_more(s, closure);
    struct mu__msg *msg = mu__msg_new(ctx, MU__RUN);
    struct mu__run *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = mu__closure_id(closure);
    body->attempt = attempt;
    body->function = mu__names_view(&s->functions, closure->function);
    body->args = mu__closure_args(closure);
    if (more != NULL)
        name_effect(s, more, body);
    if (closure->backing != NULL)
        msg->backing = mu__buf_ref(closure->backing);
    return mu__send(ctx, (mu__pid){worker->node, MU__WORKER}, msg);
}

void mu__sup_send_cancel(struct mu__ctx *ctx, uint32_t node, uint64_t closure,
                         uint32_t attempt)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__CANCEL);
    struct mu__cancel *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->closure = closure;
    body->attempt = attempt;
    (void)mu__send(ctx, (mu__pid){node, MU__WORKER}, msg);
}

/* ---- Giving out ---- */

bool mu__sup_has_effect_number(const struct supervisor *s)
{
    return s->effect_last < s->effects.base + EFFECTS_OUT_MAX;
}

/* The number under which servers know its effects. False: it must wait for one, since so
 * many are out beside one that does not end, or the journal cannot be written. */
static bool number_effect(struct mu__ctx *ctx, struct supervisor *s,
                          struct mu__closure *closure, struct more *more)
{
    if ((more->flags & MU__CLOSURE_ONCE) == 0 || more->effect != 0)
        return true;
    if (mu__sup_has_effect_number(s) && mu__sup_journal_reserve(ctx, s) == 0) {
        more->effect = ++s->effect_last;
        return true;
    }
    more->held_until_ms = mu__now_ms(ctx) + EFFECTS_WAIT_MS;
    mu__sup_hold(s, closure);
    mu__sup_arm(ctx, s, closure);
    return false;
}

/* What is to be done before a closure with `more` can go to a worker. False: it waits
 * elsewhere now. */
static bool prepare(struct mu__ctx *ctx, struct supervisor *s,
                    struct mu__closure *closure, struct mu__member_worker *worker)
{
    struct more *more = mu__sup_more(s, closure);

    if (!number_effect(ctx, s, closure, more))
        return false;
    if (s->journal_dirty)
        mu__sup_journal_secure(ctx, s);
    return more->inputs_count == 0 ||
           mu__sup_bring_inputs(ctx, s, closure, worker) == 0;
}

/* Backups have numbers too. */
static uint16_t next_attempt(const struct more *more, const struct mu__closure *closure)
{
    uint32_t last = more != NULL && more->backup_attempt > closure->attempt
                        ? more->backup_attempt
                        : closure->attempt;

    return (uint16_t)(last + 1);
}

/* To a worker's list, and into its account. */
static void charge(struct mu__ctx *ctx, struct supervisor *s,
                   struct mu__closure *closure, uint32_t number)
{
    closure->attempt = next_attempt(mu__sup_more(s, closure), closure);
    closure->started_ms = (uint32_t)mu__now_ms(ctx);
    closure->marks &= (uint8_t)~MU__MARK_BEGUN;
    closure->cost_us = mu__function_times_cost_us(&s->times, closure->function);
    mu__closures_move_last(&s->closures, closure, mu__list_in_flight(number));
    mu__membership_load(&s->members, number, mu__closure_bytes(closure),
                        closure->cost_us);
}

/* False when the news that this worker has gone is on its way. */
static bool give(struct mu__ctx *ctx, struct supervisor *s, struct mu__closure *closure,
                 uint32_t number)
{
    struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    if (closure->more != 0 && !prepare(ctx, s, closure, worker))
        return true;
    charge(ctx, s, closure, number);
    if (mu__sup_send_run(ctx, s, worker, closure, closure->attempt) != 0) {
        mu__membership_unload(&s->members, number, mu__closure_bytes(closure),
                              closure->cost_us, false);
        closure->attempt--;
        mu__closures_move_first(&s->closures, closure, home_or_usual(s, closure));
        return false;
    }
    if (closure->more != 0)
        mu__sup_arm(ctx, s, closure);
    if (s->config.backup_percent != 0 && s->backup_timer == 0)
        mu__sup_backup_watch(ctx, s);
    return true;
}

static bool is_suspect(const struct mu__closure *closure)
{
    return closure->crashes >= SUSPECT_CRASHES;
}

struct wish {
    const struct supervisor *supervisor;
    const struct more *more;        /* not NULL */
};

static bool suits(const struct mu__member_worker *worker, const void *arg)
{
    const struct wish *wish = arg;

    return mu__sup_role_suits(wish->supervisor, wish->more, worker) &&
           mu__sup_builds_suit(wish->supervisor, wish->more, worker);
}

/* The least loaded worker with room that a closure may run on. `more` may be NULL. */
static uint32_t pick_suiting(struct supervisor *s, const struct more *more)
{
    const struct wish wish = {s, more};

    if (more != NULL && (more->not_worker != 0 ||
                         (s->slow_builds != 0 && more->inputs_count != 0)))
        return mu__membership_pick_fitting(&s->members, mu__sup_role(more), suits, &wish);
    return more == NULL || more->role == 0
               ? mu__membership_pick(&s->members)
               : mu__membership_pick_role(&s->members, more->role - 1U);
}

/* A worker that has nothing to do and gets nothing else; 0 while there is none. */
static uint32_t pick_alone(struct supervisor *s, const struct more *more)
{
    const struct mu__member_worker *worker;
    const struct wish wish = {s, more};

    if (s->reserved == 0) {
        s->reserved = pick_suiting(s, more);
        if (s->reserved == 0)
            return 0;
        mu__membership_hold(&s->members, s->reserved, MU__HOLD_ALONE);
    }
    worker = mu__membership_get(&s->members, s->reserved);
    return worker != NULL && worker->load == 0 && worker->holds == MU__HOLD_ALONE &&
                   (more == NULL || suits(worker, &wish))
               ? s->reserved
               : 0;
}

/* Whether a worker that has a closure's inputs should run it: not behind what is long,
 * and not if it was taken back once because it waited. */
static bool is_near_enough(const struct mu__member_worker *near, const struct more *more)
{
    return mu__membership_has_room(near) &&
           (near->load < mu__member_threads(near) ||
            (more->returns == 0 && mu__member_free_threads(near) > 0));
}

static uint32_t pick_for(struct supervisor *s, const struct mu__closure *closure)
{
    const struct more *more = mu__sup_more(s, closure);
    const struct wish wish = {s, more};
    const struct mu__member_worker *near;

    if (is_suspect(closure))
        return pick_alone(s, more);
    near = mu__membership_get(&s->members, mu__sup_inputs_worker(s, more));
    if (near != NULL && is_near_enough(near, more) && suits(near, &wish))
        return near->number;
    return pick_suiting(s, more);
}

/* False as give(). */
static bool try_picky(struct mu__ctx *ctx, struct supervisor *s)
{
    struct mu__closure *closure = mu__closures_first(&s->closures, MU__LIST_PICKY);
    bool given = true;

    for (unsigned i = 0; given && closure != NULL && i < PICKY_LOOKS; i++) {
        struct mu__closure *next = mu__closures_next(&s->closures, closure);
        uint32_t number = pick_for(s, closure);

        if (number != 0)
            given = give(ctx, s, closure, number);
        else
            mu__closures_move_last(&s->closures, closure, MU__LIST_PICKY);
        closure = next;
    }
    return given;
}

/* True when the worker that was kept free is not needed for it any more. */
static bool release_unused(struct mu__ctx *ctx, struct supervisor *s)
{
    uint32_t number = s->reserved;
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    if (number == 0 || (worker != NULL && worker->load > 0))
        return false;
    s->reserved = 0;
    if (worker == NULL)
        return false;
    mu__membership_release(&s->members, number, MU__HOLD_ALONE);
    mu__sup_dispatch_pinned(ctx, s, number);
    return true;
}

/* The closure that is given out next, and a worker with room; NULL: there is none. */
static inline struct mu__closure *next_queued(struct supervisor *s, uint32_t *ret_number)
{
    if (s->roles.has_queued)
        return mu__sup_next_of_roles(s, ret_number);
    *ret_number = mu__membership_pick(&s->members);
    return *ret_number == 0 ? NULL : mu__closures_first_queued(&s->closures);
}

/* False as give(). */
static bool give_queued(struct mu__ctx *ctx, struct supervisor *s)
{
    struct mu__closure *closure;
    uint32_t number;

    while ((closure = next_queued(s, &number)) != NULL) {
        if (closure->more != 0 || is_suspect(closure)) {
            number = pick_for(s, closure);
            if (number == 0) {
                mu__closures_move_last(&s->closures, closure, MU__LIST_PICKY);
                continue;
            }
        }
        if (!give(ctx, s, closure, number))
            return false;
    }
    return true;
}

/* A worker that could not be told is still there until the news of its end has come:
 * whoever tried again at once would choose it again. */
void mu__sup_dispatch(struct mu__ctx *ctx, struct supervisor *s)
{
    do {
        bool goes_on = true;

        if (mu__closures_count(&s->closures, MU__LIST_PICKY) > 0) {
            mu__sup_inputs_pause(s);
            goes_on = try_picky(ctx, s);
            mu__sup_inputs_resume(ctx, s);
        }
        if (!goes_on || !give_queued(ctx, s))
            return;
    } while (s->reserved != 0 && release_unused(ctx, s));
    if (s->recalls.timer == 0 ||
        (s->recalls.is_late && s->members.crowded > 0 &&
         (s->recalls.has_ranks || mu__membership_may_idle(&s->members))))
        mu__sup_recall_watch(ctx, s);
}

/* Whether the next closure for one worker alone may go to it; NULL: there is none. A
 * suspect among them has the worker to itself, too: it holds it until it has landed. */
static bool may_give_pinned(struct supervisor *s, const struct mu__member_worker *worker,
                            const struct mu__closure *closure)
{
    bool is_held = (worker->holds & MU__HOLD_ALONE) != 0;

    if (is_held && s->reserved == worker->number)
        return false;
    if (closure == NULL || !is_suspect(closure)) {
        if (is_held && worker->load == 0)
            mu__membership_release(&s->members, worker->number, MU__HOLD_ALONE);
        return closure != NULL && mu__membership_has_room(worker);
    }
    if ((worker->holds & ~MU__HOLD_ALONE) != 0)
        return false;
    if (!is_held)
        mu__membership_hold(&s->members, worker->number, MU__HOLD_ALONE);
    return worker->load == 0;
}

void mu__sup_dispatch_pinned(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    const struct mu__member_worker *worker;
    struct mu__closure *closure;

    while ((worker = mu__membership_get(&s->members, number)) != NULL) {
        closure = mu__closures_first(&s->closures, mu__list_pinned(number));
        if (!may_give_pinned(s, worker, closure) || !give(ctx, s, closure, number))
            return;
    }
}

/* A backup is given to a worker that begins it at once, and costs it nothing. */
struct orphan mu__sup_backup_charge(const struct mu__closure *closure,
                                    const struct more *more)
{
    return (struct orphan){
        .closure = mu__closure_id(closure),
        .attempt = more->backup_attempt,
        .bytes = mu__closure_bytes(closure),
        .begun = more->backup_begun,
    };
}

void mu__sup_unload(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                    const struct orphan *was)
{
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    mu__membership_unload(&s->members, number, was->bytes, was->cost_us, was->begun);
    if (mu__closures_count(&s->closures, mu__list_pinned(number)) > 0 ||
        (worker->holds & MU__HOLD_ALONE) != 0)
        mu__sup_dispatch_pinned(ctx, s, number);
    if (worker->holds != 0)
        mu__sup_leave_if_idle(ctx, s, number);
}

uint32_t mu__sup_window(const struct supervisor *s,
                        const struct mu__member_worker *worker)
{
    const struct station *station = &s->stations[worker->number];
    uint32_t threads = mu__member_threads(worker);
    uint64_t window;

    if (!mu__sup_is_adaptive(s))
        return worker->window;
    if (!station->has_estimate)
        return threads;
    window = threads;
    window += (uint64_t)MU__WINDOW_TIME_US * threads / (station->estimate_us + 4);
    return window < worker->window ? (uint32_t)window : worker->window;
}
