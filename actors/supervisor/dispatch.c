/* Which closure goes to which worker.
 *
 * Most closures are plain: the first of the most urgent queue goes to the least loaded
 * worker with room. A closure that may not run everywhere, and finds no worker, steps
 * aside into the list of constrained closures, which are tried first from then on. One
 * that is for one worker alone waits in a list of that worker.
 *
 * A quarantined closure has been in flight at several workers that were lost. It runs
 * with nothing beside it, so that it can be told from what died with it: one worker at
 * a time is kept free for it. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/begun.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/journaling.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/stragglers.h"
#include "actors/supervisor/unread.h"

enum {
    CONSTRAINED_LOOKS = 8, /* constrained closures that are tried at a time */
    EFFECTS_OUT_MAX = MU__ID_WINDOW_SPAN_MAX - (1 << 17), /* unsettled numbers */
    EFFECTS_WAIT_MS = 20 /* before a closure without a number is tried again */
};

/* ---- Queues ---- */

uint32_t mu__sup_queue_of(struct supervisor *s, const struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    const struct closure_options *options;
    uint32_t number;

    if (extra == NULL)
        return MU__LIST_QUEUE;
    options = &extra->options;
    if (options->worker == 0)
        return options->role == 0
                   ? MU__LIST_QUEUES + options->priority
                   : mu__list_of_role(options->role - 1U, options->priority);
    number = mu__membership_enroll(&s->members,
                                   mu__sup_named_worker(s, extra, options->worker - 1));
    if (number == 0 || !mu__sup_need_worker_state(s, number))
        return MU__LIST_NONE;
    return mu__list_affine(number);
}

static void after_queueing(struct mu__ctx *ctx, struct supervisor *s, uint32_t list)
{
    uint32_t number = list > MU__LIST_WORKERS ? (list - MU__LIST_WORKERS) / 2 : 0;

    if (number == 0)
        return;
    if (mu__membership_get(&s->members, number) == NULL)
        mu__sup_await_worker(ctx, s, number);
    else
        mu__sup_dispatch_affine(ctx, s, number);
}

static uint32_t queue_for(struct supervisor *s, const struct mu__closure *closure)
{
    uint32_t list = mu__sup_queue_of(s, closure);

    if (list == MU__LIST_NONE)
        return MU__LIST_QUEUE;
    if (list != MU__LIST_QUEUE) {
        bool of_role = list >= MU__LIST_ROLES && list < MU__LIST_PINNED;

        s->roles.has_queued = s->roles.has_queued || of_role;
        s->recalls.has_ranks = s->recalls.has_ranks || !of_role ||
                               mu__list_priority(list) != MU__PRIORITY_DEFAULT;
    }
    return list;
}

void mu__sup_queue_first(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure)
{
    uint32_t list = queue_for(s, closure);

    mu__closures_move_first(&s->closures, closure, list);
    after_queueing(ctx, s, list);
}

void mu__sup_queue_last(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure)
{
    uint32_t list = queue_for(s, closure);

    mu__closures_move_last(&s->closures, closure, list);
    after_queueing(ctx, s, list);
}

void mu__sup_hold(struct supervisor *s, struct mu__closure *closure)
{
    mu__closures_move_last(&s->closures, closure, MU__LIST_HELD);
}

/* Each goes to the front, from the last one on, so that they keep their order. */
void mu__sup_queue_read(struct mu__ctx *ctx, struct supervisor *s)
{
    struct mu__closure *closure = mu__closures_last(&s->closures, MU__LIST_UNREAD);

    while (closure != NULL) {
        struct mu__closure *before = mu__closures_prev(&s->closures, closure);

        if (!s->clients.items[closure->client].unread.is_full)
            mu__closures_move_first(&s->closures, closure, queue_for(s, closure));
        closure = before;
    }
    for (uint32_t i = 1; i < s->worker_states.size; i++)
        if (mu__closures_count(&s->closures, mu__list_affine(i)) > 0)
            after_queueing(ctx, s, mu__list_affine(i));
}

/* ---- Messages ---- */

static void name_effect(const struct supervisor *s, const struct closure_extra *extra,
                        struct mu__run *body)
{
    body->flags = extra->options.flags;
    if (extra->name != NULL)
        body->name = mu__view_str(extra->name);
    if (extra->inputs.count > 0)
        body->inputs =
            (struct mu__view){mu__closure_extra_inputs(extra), 8U * extra->inputs.count};
    if (extra->effect != 0) {
        body->origin = s->effects.origin;
        body->effect = extra->effect;
        body->effects_done = s->effects.window.base;
    }
}

int mu__sup_send_run(struct mu__ctx *ctx, struct supervisor *s,
                     const struct mu__member_worker *worker,
                     const struct mu__closure *closure, uint32_t attempt)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    struct mu__msg *msg = mu__msg_new(ctx, MU__RUN);
    struct mu__run *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = mu__closure_id(closure);
    body->attempt = attempt;
    body->function = mu__names_view(&s->functions, closure->function);
    body->args = mu__closure_args(closure);
    if (extra != NULL)
        name_effect(s, extra, body);
    if (closure->backing != NULL)
        msg->backing = mu__buf_ref(closure->backing);
    return mu__send(ctx, (mu__pid){worker->node, MU__WORKER}, msg);
}

void mu__sup_send_cancel(struct mu__ctx *ctx, uint32_t node, uint64_t closure,
                         uint32_t attempt)
{
    const struct mu__cancel body = {.closure = closure, .attempt = attempt};

    (void)mu__send_body(ctx, (mu__pid){node, MU__WORKER}, MU__CANCEL, &body, sizeof body);
}

/* ---- Giving out ---- */

bool mu__sup_has_effect_number(const struct supervisor *s)
{
    return s->effects.last < s->effects.window.base + EFFECTS_OUT_MAX;
}

/* Give a closure its effect number, if its effects are applied once. False: it is held,
 * since too many numbers are unsettled or the journal cannot be written. */
static bool assign_effect_number(struct mu__ctx *ctx, struct supervisor *s,
                                 struct mu__closure *closure, struct closure_extra *extra)
{
    if ((extra->options.flags & MU__CLOSURE_ONCE) == 0 || extra->effect != 0)
        return true;
    if (mu__sup_has_effect_number(s) && mu__sup_journal_reserve(ctx, s) == 0) {
        extra->effect = ++s->effects.last;
        return true;
    }
    extra->held_until_ms = mu__now_ms(ctx) + EFFECTS_WAIT_MS;
    mu__sup_hold(s, closure);
    mu__sup_arm(ctx, s, closure);
    return false;
}

/* Prepare a closure that has an extra for its worker. False: it is held, or was resolved
 * with an error. */
static bool prepare_attempt(struct mu__ctx *ctx, struct supervisor *s,
                            struct mu__closure *closure, struct mu__member_worker *worker)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);

    if (!assign_effect_number(ctx, s, closure, extra))
        return false;
    if (s->journal.is_dirty)
        mu__sup_journal_secure(ctx, s);
    return extra->inputs.count == 0 || mu__sup_bring_inputs(ctx, s, closure, worker) == 0;
}

/* Move a closure to a worker's list, and add it to the worker's load. */
static void charge_worker(struct mu__ctx *ctx, struct supervisor *s,
                          struct mu__closure *closure, uint32_t number)
{
    closure->attempt = (uint16_t)(mu__sup_last_attempt(s, closure) + 1U);
    closure->started_ms = (uint32_t)mu__now_ms(ctx);
    closure->marks &= (uint8_t)~MU__MARKS_RUNNING;
    closure->cost = mu__function_times_cost(&s->times, closure->function);
    mu__closures_move_last(&s->closures, closure, mu__list_in_flight(number));
    mu__membership_load(&s->members, number, mu__closure_bytes(closure),
                        mu__sup_charge(closure).charge.cost_us);
}

/* False: the worker could not be reached; its NODE_DOWN is on its way. */
static bool assign_to_worker(struct mu__ctx *ctx, struct supervisor *s,
                             struct mu__closure *closure, uint32_t number)
{
    struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    if (mu__sup_waits_for_reader(s, closure) ||
        (closure->extra != 0 && !prepare_attempt(ctx, s, closure, worker)))
        return true;
    charge_worker(ctx, s, closure, number);
    if (mu__sup_send_run(ctx, s, worker, closure, closure->attempt) != 0) {
        mu__membership_unload(&s->members, number, mu__closure_bytes(closure),
                              mu__sup_charge(closure).charge);
        closure->attempt--;
        mu__closures_move_first(&s->closures, closure, queue_for(s, closure));
        return false;
    }
    if (closure->extra != 0)
        mu__sup_arm(ctx, s, closure);
    if (s->config.backup_percent != 0 && s->backups.timer == 0)
        mu__sup_backup_watch(ctx, s);
    return true;
}

static bool is_closure_quarantined(const struct mu__closure *closure)
{
    return closure->crashes >= QUARANTINE_CRASHES;
}

struct requirements {
    const struct supervisor *supervisor;
    const struct closure_extra *extra; /* not NULL */
};

static bool suits_requirements(const struct mu__member_worker *worker, const void *arg)
{
    const struct requirements *requirements = arg;

    return mu__sup_role_suits(requirements->supervisor, requirements->extra, worker) &&
           mu__sup_builds_suit(requirements->supervisor, requirements->extra, worker);
}

/* The least loaded worker with room that a closure may run on. `extra` may be NULL. */
static uint32_t pick_suiting(struct supervisor *s, const struct closure_extra *extra)
{
    const struct requirements requirements = {s, extra};

    if (extra != NULL && (extra->options.not_worker != 0 || extra->avoided != 0 ||
                          (s->per_worker.slow_builds != 0 && extra->inputs.count != 0)))
        return mu__membership_pick_fitting(&s->members, mu__sup_role(extra),
                                           suits_requirements, &requirements);
    return extra == NULL || extra->options.role == 0
               ? mu__membership_pick(&s->members)
               : mu__membership_pick_role(&s->members, extra->options.role - 1U);
}

/* The idle worker that is reserved for quarantined closures; 0 while there is none. */
static uint32_t pick_exclusive(struct supervisor *s, const struct closure_extra *extra)
{
    const struct mu__member_worker *worker;
    const struct requirements requirements = {s, extra};

    if (s->exclusive_worker == 0) {
        s->exclusive_worker = pick_suiting(s, extra);
        if (s->exclusive_worker == 0)
            return 0;
        mu__membership_hold(&s->members, s->exclusive_worker, MU__HOLD_EXCLUSIVE);
    }
    worker = mu__membership_get(&s->members, s->exclusive_worker);
    return worker != NULL && worker->load == 0 && worker->holds == MU__HOLD_EXCLUSIVE &&
                   (extra == NULL || suits_requirements(worker, &requirements))
               ? s->exclusive_worker
               : 0;
}

/* Whether the worker that has a closure's inputs should run it: not behind long runs, and
 * not if the closure was recalled before because it waited. */
static bool is_near_enough(const struct mu__member_worker *near,
                           const struct closure_extra *extra)
{
    return mu__membership_has_room(near) &&
           (near->load < mu__member_threads(near) ||
            (extra->returns == 0 && mu__member_soon_free_threads(near) > 0));
}

static uint32_t pick_for(struct supervisor *s, const struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    const struct requirements requirements = {s, extra};
    const struct mu__member_worker *near;

    if (is_closure_quarantined(closure))
        return pick_exclusive(s, extra);
    near = mu__membership_get(&s->members, mu__sup_inputs_worker(s, extra));
    if (near != NULL && is_near_enough(near, extra) &&
        suits_requirements(near, &requirements))
        return near->number;
    return pick_suiting(s, extra);
}

/* False as assign_to_worker(). */
static bool dispatch_constrained(struct mu__ctx *ctx, struct supervisor *s)
{
    struct mu__closure *closure = mu__closures_first(&s->closures, MU__LIST_CONSTRAINED);
    bool given = true;

    for (unsigned i = 0; given && closure != NULL && i < CONSTRAINED_LOOKS; i++) {
        struct mu__closure *next = mu__closures_next(&s->closures, closure);
        uint32_t number = pick_for(s, closure);

        if (number != 0)
            given = assign_to_worker(ctx, s, closure, number);
        else
            mu__closures_move_last(&s->closures, closure, MU__LIST_CONSTRAINED);
        closure = next;
    }
    return given;
}

/* True: the worker that was reserved for a quarantined closure was released. */
static bool release_unused(struct mu__ctx *ctx, struct supervisor *s)
{
    uint32_t number = s->exclusive_worker;
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    if (number == 0 || (worker != NULL && worker->load > 0))
        return false;
    s->exclusive_worker = 0;
    if (worker == NULL)
        return false;
    mu__membership_release(&s->members, number, MU__HOLD_EXCLUSIVE);
    mu__sup_dispatch_affine(ctx, s, number);
    return true;
}

static inline struct next_closure next_queued(struct supervisor *s)
{
    uint32_t number;

    if (s->roles.has_queued)
        return mu__sup_next_of_roles(s);
    number = mu__membership_pick(&s->members);
    return (struct next_closure){
        number == 0 ? NULL : mu__closures_first_queued(&s->closures), number};
}

/* False as assign_to_worker(). */
static bool dispatch_queued(struct mu__ctx *ctx, struct supervisor *s)
{
    struct next_closure next;

    while ((next = next_queued(s)).closure != NULL) {
        struct mu__closure *closure = next.closure;

        if (closure->extra != 0 || is_closure_quarantined(closure)) {
            next.number = pick_for(s, closure);
            if (next.number == 0) {
                mu__closures_move_last(&s->closures, closure, MU__LIST_CONSTRAINED);
                continue;
            }
        }
        if (!assign_to_worker(ctx, s, closure, next.number))
            return false;
    }
    return true;
}

/* Ends with the first message that cannot be sent: until its NODE_DOWN the worker stays
 * in the lists, and would be picked again. */
static void dispatch_all_closures(struct mu__ctx *ctx, struct supervisor *s)
{
    do {
        if (mu__closures_count(&s->closures, MU__LIST_CONSTRAINED) > 0 &&
            !dispatch_constrained(ctx, s))
            return;
        if (!dispatch_queued(ctx, s))
            return;
    } while (s->exclusive_worker != 0 && release_unused(ctx, s));
    if (s->recalls.timer == 0 ||
        (s->recalls.is_late && s->members.crowded > 0 &&
         (s->recalls.has_ranks || mu__membership_may_idle(&s->members))))
        mu__sup_recall_watch(ctx, s);
}

/* A removed result may have made room at a worker; a closure that was resolved instead of
 * being given out may have been the last one to use a result. */
void mu__sup_after_batch(struct mu__ctx *ctx, void *state)
{
    struct supervisor *s = state;

    do {
        mu__sup_remove_unused_results(ctx, s);
        dispatch_all_closures(ctx, s);
    } while (s->pinned.unused != NULL);
}

/* Whether the next closure for one worker alone may go to it; NULL: there is none. A
 * quarantined one among them has the worker to itself, too, until it has ended. */
static bool may_assign_affine(struct supervisor *s,
                              const struct mu__member_worker *worker,
                              const struct mu__closure *closure)
{
    bool is_held = (worker->holds & MU__HOLD_EXCLUSIVE) != 0;

    if (is_held && s->exclusive_worker == worker->number)
        return false;
    if (closure == NULL || !is_closure_quarantined(closure)) {
        if (is_held && worker->load == 0)
            mu__membership_release(&s->members, worker->number, MU__HOLD_EXCLUSIVE);
        return closure != NULL && mu__membership_has_room(worker);
    }
    if ((worker->holds & ~MU__HOLD_EXCLUSIVE) != 0)
        return false;
    if (!is_held)
        mu__membership_hold(&s->members, worker->number, MU__HOLD_EXCLUSIVE);
    return worker->load == 0;
}

void mu__sup_dispatch_affine(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    const struct mu__member_worker *worker;
    struct mu__closure *closure;

    while ((worker = mu__membership_get(&s->members, number)) != NULL) {
        closure = mu__closures_first(&s->closures, mu__list_affine(number));
        if (!may_assign_affine(s, worker, closure) ||
            !assign_to_worker(ctx, s, closure, number))
            return;
    }
}

/* A backup is given to a worker that begins it at once, and costs it nothing. */
struct abandoned_attempt mu__sup_backup_charge(const struct mu__closure *closure,
                                               const struct closure_extra *extra)
{
    return (struct abandoned_attempt){
        .closure = mu__closure_id(closure),
        .attempt = extra->backup.attempt,
        .bytes = mu__closure_bytes(closure),
        .charge.stage = extra->backup.begun ? MU__STAGE_LASTING : MU__STAGE_SENT,
    };
}

void mu__sup_unload(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                    const struct abandoned_attempt *was)
{
    const struct mu__member_worker *worker = mu__membership_get(&s->members, number);

    s->members.turn = mu__turn(ctx);
    mu__membership_unload(&s->members, number, was->bytes, was->charge);
    if (mu__closures_count(&s->closures, mu__list_affine(number)) > 0 ||
        (worker->holds & MU__HOLD_EXCLUSIVE) != 0)
        mu__sup_dispatch_affine(ctx, s, number);
    if (worker->holds != 0)
        mu__sup_leave_if_idle(ctx, s, number);
}

uint32_t mu__sup_last_attempt(const struct supervisor *s,
                              const struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    return extra != NULL && extra->backup.attempt > closure->attempt
               ? extra->backup.attempt
               : closure->attempt;
}

uint32_t mu__sup_window(const struct supervisor *s,
                        const struct mu__member_worker *worker)
{
    const struct worker_state *worker_state = &s->worker_states.items[worker->number];
    uint32_t threads = mu__member_threads(worker);
    uint64_t window;

    if (!mu__sup_is_adaptive(s))
        return worker->window;
    if (!worker_state->has_estimate)
        return threads;
    window = threads;
    window += (uint64_t)worker->time_us * threads / (worker_state->estimate_us + 4);
    return window < worker->window ? (uint32_t)window : worker->window;
}
