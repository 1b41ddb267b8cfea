#include "actors/supervisor/recall.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/begun.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/stragglers.h"

enum {
    LOOK_MS = 5,        /* between checks while closures may move, */
    LOOK_MAX_MS = 40,   /* and at most, while none did */
    LATE_MS = 500,      /* an attempt that has not begun by then has no thread */
    STEALS_MAX = 16,    /* workers that are asked in one check */
    ANSWER_MS = 1000,   /* a worker that has not answered is asked again */
    RETURNS_MAX = 10000 /* of one closure: attempts have 16 bits */
};

uint32_t mu__sup_runs(const struct supervisor *s, const struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    uint32_t returns = extra == NULL ? 0 : extra->returns;

    return closure->attempt > returns ? closure->attempt - returns : 0;
}

/* ---- Asking ---- */

/* Whether a closure in flight may be taken back: it has not begun, and may run
 * elsewhere. */
static bool may_recall_closure(const struct supervisor *s,
                               const struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    return (closure->marks & MU__MARK_BEGUN) == 0 &&
           closure->crashes < QUARANTINE_CRASHES &&
           (extra == NULL || (extra->options.worker == 0 && extra->backup.worker == 0 &&
                              extra->returns < RETURNS_MAX));
}

/* A RECALL in the making, filled from its last entry to its first. */
struct request {
    struct mu__msg *msg;
    uint8_t *first;
    const uint8_t *end;
    uint32_t room; /* entries that fit before `first` */
};

static bool request_begin(struct mu__ctx *ctx, struct request *request, uint32_t room)
{
    *request = (struct request){.msg = mu__msg_new(ctx, MU__RECALL)};
    if (request->msg == NULL)
        return false;
    request->room = room < MU__RECALL_MAX ? room : MU__RECALL_MAX;
    request->msg->backing = mu__buf_new((size_t)request->room * MU__ATTEMPT_BYTES);
    if (request->msg->backing == NULL) {
        mu__msg_free(ctx, request->msg);
        return false;
    }
    request->first =
        request->msg->backing->data + (size_t)request->room * MU__ATTEMPT_BYTES;
    request->end = request->first;
    return true;
}

static void request_add(struct request *request, const struct mu__closure *closure)
{
    const struct mu__attempt attempt = {mu__closure_id(closure), closure->attempt, 0};

    request->first -= MU__ATTEMPT_BYTES;
    request->room--;
    (void)mu__attempts_put(request->first, MU__ATTEMPT_BYTES, &attempt);
}

/* Returns how many were asked for. */
static uint32_t request_send(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                             struct request *request)
{
    struct mu__recall *body = mu__body(request->msg);
    uint32_t size = (uint32_t)(request->end - request->first);

    if (size == 0) {
        mu__msg_free(ctx, request->msg);
        return 0;
    }
    body->attempts = (struct mu__view){request->first, size};
    s->worker_states.items[number].recalled_ms = mu__now_ms(ctx);
    s->recalls.sent++;
    (void)mu__send(ctx,
                   (mu__pid){mu__membership_get(&s->members, number)->node, MU__WORKER},
                   request->msg);
    return size / MU__ATTEMPT_BYTES;
}

static bool is_recall_pending(const struct supervisor *s, uint32_t number,
                              uint64_t now_ms)
{
    uint64_t recalled_ms = s->worker_states.items[number].recalled_ms;

    return recalled_ms != 0 && now_ms - recalled_ms < ANSWER_MS;
}

/* The first closure in flight at a worker behind `stay` others, not counting those that
 * are known to have begun. NULL: there is none. */
static const struct mu__closure *find_closure_behind(const struct supervisor *s,
                                                     uint32_t number, uint32_t stay)
{
    const struct mu__closure *closure =
        mu__closures_first(&s->closures, mu__list_in_flight(number));

    while (closure != NULL && ((closure->marks & MU__MARK_BEGUN) != 0 || stay > 0)) {
        stay -= (closure->marks & MU__MARK_BEGUN) == 0;
        closure = mu__closures_next(&s->closures, closure);
    }
    return closure;
}

typedef bool (*suits_fn)(const struct supervisor *s, const struct mu__closure *closure,
                         void *arg);

/* Ask a worker for the last ones, at most `most`, of the closures in flight there from
 * `first` on that `suits` accepts. Returns how many were asked for. `first` (none) and
 * `suits` (all) may be NULL. */
static uint32_t recall_last_closures(struct mu__ctx *ctx, struct supervisor *s,
                                     uint32_t number, const struct mu__closure *first,
                                     uint32_t most, suits_fn suits, void *arg)
{
    uint32_t list = mu__list_in_flight(number);
    const struct mu__closure *closure =
        first == NULL ? NULL : mu__closures_last(&s->closures, list);
    uint32_t count = mu__closures_count(&s->closures, list);
    struct request request;

    if (closure == NULL || !request_begin(ctx, &request, most < count ? most : count))
        return 0;
    while (closure != NULL && request.room > 0) {
        if ((suits == NULL || suits(s, closure, arg)) && may_recall_closure(s, closure))
            request_add(&request, closure);
        closure = closure == first ? NULL : mu__closures_prev(&s->closures, closure);
    }
    return request_send(ctx, s, number, &request);
}

void mu__sup_recall_all(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    (void)recall_last_closures(ctx, s, number, find_closure_behind(s, number, 0),
                               MU__RECALL_MAX, NULL, NULL);
}

void mu__sup_recall_one(struct mu__ctx *ctx, struct supervisor *s,
                        const struct mu__closure *closure)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t delay_ms = ANSWER_MS;
    struct request request;

    if (request_begin(ctx, &request, 1)) {
        request_add(&request, closure);
        (void)request_send(ctx, s, mu__list_worker(closure->list), &request);
    }
    mu__timer_cancel(ctx, extra->timer);
    if (extra->deadline_ms != 0 && extra->deadline_ms < now_ms + delay_ms)
        delay_ms = extra->deadline_ms > now_ms ? extra->deadline_ms - now_ms : 0;
    extra->timer =
        mu__timer_set(ctx, delay_ms, timer_token(TIMER_CLOSURE, closure->extra - 1));
}

/* ---- Closures behind long runs ---- */

void mu__sup_recall_excess(struct mu__ctx *ctx, struct supervisor *s,
                           const struct mu__member_worker *worker)
{
    uint32_t list = mu__list_in_flight(worker->number);
    const struct mu__closure *closure = mu__closures_first(&s->closures, list);
    uint32_t threads = mu__member_soon_free_threads(worker);
    uint64_t may_us = (uint64_t)threads * worker->time_us;
    uint64_t before_us = 0;
    uint32_t running = 0;

    if (worker->time_us == 0 || worker->load <= worker->begun)
        return;
    for (; closure != NULL; closure = mu__closures_next(&s->closures, closure)) {
        if ((closure->marks & MU__MARK_LONG) != 0)
            continue;
        if ((closure->marks & MU__MARK_BEGUN) == 0 && running >= threads &&
            before_us >= may_us)
            break;
        running++;
        before_us += mu__sup_charge(closure).charge.cost_us;
    }
    (void)recall_last_closures(ctx, s, worker->number, closure, MU__RECALL_MAX, NULL,
                               NULL);
}

void mu__sup_on_begun(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__begun *body = mu__body(msg);
    const struct mu__member_worker *worker =
        mu__membership_by_node(&s->members, msg->from.node);

    if (worker == NULL)
        return;
    mu__sup_note_all_begun(ctx, s, worker->number, body->begun);
    mu__sup_recall_excess(ctx, s, worker);
}

/* ---- Closures that come back ---- */

/* The attempt did not run, and is not held against the closure. */
static void requeue_returned(struct mu__ctx *ctx, struct supervisor *s,
                             struct mu__closure *closure, uint32_t number)
{
    const struct abandoned_attempt was = mu__sup_charge(closure);
    struct closure_extra *extra;

    s->recalls.returned++;
    closure->marks &= (uint8_t)~MU__MARKS_RUNNING;
    mu__sup_unload(ctx, s, number, &was);
    if (mu__sup_promote_backup(s, closure))
        return;
    if ((closure->marks & (MU__MARK_CANCELLED | MU__MARK_UNWANTED)) != 0 ||
        !mu__sup_is_awaited(s, closure)) {
        mu__sup_resolve_error(ctx, s, closure, -MU_ECANCELLED, MU_ERROR_OTHER,
                              "cancelled before it ran");
        return;
    }
    extra = mu__closure_extras_take(&s->extras, closure);
    if (extra != NULL)
        extra->returns++;
    mu__sup_queue_first(ctx, s, closure);
}

static void handle_returned(struct mu__ctx *ctx, struct supervisor *s, uint32_t number,
                            const struct mu__attempt *reported)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, reported->closure);

    if (closure != NULL && mu__list_worker(closure->list) == number &&
        closure->attempt == reported->attempt)
        requeue_returned(ctx, s, closure, number);
    else if (!mu__sup_abandoned_reported(ctx, s, number, reported->closure,
                                         reported->attempt, true))
        s->counts.stale++;
}

void mu__sup_on_recalled(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__recalled *body = mu__body(msg);
    const struct mu__member_worker *worker =
        mu__membership_by_node(&s->members, msg->from.node);
    uint32_t number;

    if (worker == NULL)
        return;
    number = worker->number;
    s->worker_states.items[number].recalled_ms = 0;
    s->recalls.refused += mu__attempts_count(body->begun, MU__ATTEMPT_TIMED_BYTES);
    mu__sup_note_all_begun(ctx, s, number, body->begun);
    /* From the last to the first, so that they keep their order at the front of the
     * queue. */
    for (uint32_t i = mu__attempts_count(body->returned, MU__ATTEMPT_BYTES); i-- > 0;) {
        struct mu__attempt reported =
            mu__attempts_at(body->returned, MU__ATTEMPT_BYTES, i);

        handle_returned(ctx, s, number, &reported);
    }
    /* A large window is not emptied with one message. */
    if (body->returned.size == MU__RECALL_MAX * MU__ATTEMPT_BYTES &&
        (mu__membership_get(&s->members, number)->holds &
         (MU__HOLD_DRAIN | MU__HOLD_STUCK)) != 0)
        mu__sup_recall_all(ctx, s, number);
}

/* ---- Closures for idle workers ---- */

/* How many closures at a worker surely have no thread. */
static uint32_t waiting_at(const struct mu__member_worker *worker)
{
    uint32_t threads = mu__member_threads(worker);
    uint32_t running = worker->begun > threads ? worker->begun : threads;

    return worker->load > running ? worker->load - running : 0;
}

/* A worker of a role with a free thread; NULL: none, or a closure is queued for it. */
static const struct mu__member_worker *idle_worker(struct supervisor *s, uint32_t role)
{
    const struct mu__member_worker *worker;

    if (mu__closures_first_queued(&s->closures) != NULL ||
        (s->roles.has_queued && mu__sup_role_first(s, role) != NULL))
        return NULL;
    worker = mu__membership_get(&s->members, mu__membership_pick_role(&s->members, role));
    return worker != NULL && worker->load < mu__member_threads(worker) ? worker : NULL;
}

static bool has_idle_worker(struct supervisor *s)
{
    for (uint32_t role = 0; role < s->members.roles; role++)
        if (idle_worker(s, role) != NULL)
            return true;
    return false;
}

static uint32_t free_threads(const struct supervisor *s, uint32_t role)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker != NULL && worker->role == role && mu__membership_has_room(worker) &&
            worker->load < mu__member_threads(worker))
            count += mu__member_threads(worker) - worker->load;
    }
    return count;
}

/* Whether more waits at `a`; of two where as much does, the one that came first. */
static bool has_more_waiting(const struct mu__member_worker *a,
                             const struct mu__member_worker *b)
{
    return waiting_at(a) != waiting_at(b) ? waiting_at(a) > waiting_at(b)
                                          : a->number < b->number;
}

/* The worker where most closures wait, of those after `last` in this order; `last` NULL:
 * of all. */
static const struct mu__member_worker *find_fullest_worker(
    const struct supervisor *s, const struct mu__member_worker *last, uint64_t now_ms)
{
    const struct mu__member_worker *best = NULL;

    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);

        if (worker != NULL && waiting_at(worker) > 0 &&
            !is_recall_pending(s, i, now_ms) &&
            (last == NULL || has_more_waiting(last, worker)) &&
            (best == NULL || has_more_waiting(worker, best)))
            best = worker;
    }
    return best;
}

struct steal {
    const struct mu__member_worker *idle;
    bool is_stuck; /* no thread is free where it waits */
};

/* A closure with inputs stays where it is, unless no thread is free there. */
static bool suits_idle(const struct supervisor *s, const struct mu__closure *closure,
                       void *arg)
{
    const struct steal *steal_from_to = arg;
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    return extra == NULL || (mu__sup_role_suits(s, extra, steal_from_to->idle) &&
                             (extra->inputs.count == 0 ||
                              (steal_from_to->is_stuck &&
                               mu__sup_builds_suit(s, extra, steal_from_to->idle))));
}

/* Half of what waits there, or all of it if no thread is free to begin it. */
static uint32_t steal_from(struct mu__ctx *ctx, struct supervisor *s,
                           const struct mu__member_worker *worker,
                           const struct mu__member_worker *idle)
{
    uint32_t waiting = waiting_at(worker);
    uint32_t threads = mu__member_free_threads(worker);
    bool is_stuck = mu__member_soon_free_threads(worker) == 0;
    uint32_t most = is_stuck ? waiting : (waiting + 1) / 2;
    struct steal steal_from_to = {idle, is_stuck};

    return recall_last_closures(ctx, s, worker->number,
                                find_closure_behind(s, worker->number, threads), most,
                                suits_idle, &steal_from_to);
}

/* Sent so long ago that its worker would have reported its begin. */
static bool is_begin_overdue(const struct supervisor *s,
                             const struct mu__closure *closure, void *arg)
{
    (void)s;
    return (uint32_t)(*(uint32_t *)arg - closure->started_ms) >= LATE_MS;
}

/* A worker's threads may be taken by runs unknown to this chief: from before its link
 * broke, or of an earlier chief. Take back what waits there. Returns how many were asked
 * for. */
static uint32_t recall_overdue(struct mu__ctx *ctx, struct supervisor *s)
{
    uint64_t now_ms = mu__now_ms(ctx);
    uint32_t low_ms = (uint32_t)now_ms;
    uint32_t sent = 0;

    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);
        const struct mu__closure *first;

        if (worker == NULL || worker->load == worker->begun ||
            is_recall_pending(s, i, now_ms))
            continue;
        first = find_closure_behind(s, i, 0);
        if (first != NULL && is_begin_overdue(s, first, &low_ms))
            sent += recall_last_closures(ctx, s, i, first, MU__RECALL_MAX,
                                         is_begin_overdue, &low_ms);
    }
    return sent;
}

/* Take back closures for the free threads of the role of `idle`. Returns how many were
 * asked for. */
static uint32_t steal_for(struct mu__ctx *ctx, struct supervisor *s,
                          const struct mu__member_worker *idle)
{
    const struct mu__member_worker *worker = NULL;
    uint64_t now_ms = mu__now_ms(ctx);
    uint32_t free = free_threads(s, idle->role);
    uint32_t sent = 0;

    for (unsigned i = 0; i < STEALS_MAX && sent < free; i++) {
        worker = find_fullest_worker(s, worker, now_ms);
        if (worker == NULL)
            break;
        sent += steal_from(ctx, s, worker, idle);
    }
    return sent;
}

/* How many were asked for. */
static uint32_t steal_for_idle(struct mu__ctx *ctx, struct supervisor *s)
{
    bool has_idle = false;
    uint32_t sent = 0;

    for (uint32_t role = 0; role < s->members.roles; role++) {
        const struct mu__member_worker *idle = idle_worker(s, role);

        if (idle == NULL)
            continue;
        has_idle = true;
        sent += steal_for(ctx, s, idle);
    }
    return has_idle ? sent + recall_overdue(ctx, s) : 0;
}

/* ---- Closures in front of more urgent ones ---- */

/* The lower, the more urgent. At the same priority closures for one worker alone come
 * first. */
static uint32_t get_urgency_rank(const struct supervisor *s,
                                 const struct mu__closure *closure)
{
    const struct closure_extra *extra = mu__sup_extra(s, closure);

    if (extra == NULL)
        return 2 * MU__PRIORITY_DEFAULT + 1;
    return 2u * extra->options.priority + (extra->options.worker == 0);
}

/* Whether a closure further behind, or one not sent yet, is more urgent. `arg`: the
 * lowest rank so far. */
static bool is_in_front(const struct supervisor *s, const struct mu__closure *closure,
                        void *arg)
{
    uint32_t *best = arg;
    uint32_t rank = get_urgency_rank(s, closure);

    if (rank > *best)
        return true;
    if ((closure->marks & MU__MARK_BEGUN) == 0)
        *best = rank;
    return false;
}

/* The lowest rank of the closures that wait to be sent to a worker. `left`: how many of
 * the common queue no other worker has threads for. */
static uint32_t best_waiting(struct supervisor *s, const struct mu__member_worker *worker,
                             uint32_t *left)
{
    const struct mu__closure *closure = mu__closures_first_queued(&s->closures);
    uint32_t best = UINT32_MAX;
    uint32_t threads = mu__member_threads(worker);

    if (closure != NULL && *left > 0)
        best = get_urgency_rank(s, closure);
    closure = s->roles.has_queued ? mu__sup_role_first(s, worker->role) : NULL;
    if (closure != NULL && get_urgency_rank(s, closure) < best)
        return get_urgency_rank(s, closure);
    closure = mu__closures_first(&s->closures, mu__list_affine(worker->number));
    if (closure != NULL && get_urgency_rank(s, closure) < best)
        return get_urgency_rank(s, closure);
    if (best != UINT32_MAX)
        *left -= *left < threads ? *left : threads;
    return best;
}

/* Whether a worker's load takes long enough for the order to matter. */
static bool is_load_long(const struct mu__member_worker *worker)
{
    return worker->load_us >
           (uint64_t)MU__WINDOW_TIME_US * mu__member_soon_free_threads(worker);
}

/* How many were asked for. */
static uint32_t recall_for_urgent(struct mu__ctx *ctx, struct supervisor *s)
{
    const struct mu__closure *first = mu__closures_first_queued(&s->closures);
    uint32_t left = first == NULL ? 0 : mu__closures_count(&s->closures, first->list);
    uint64_t now_ms = mu__now_ms(ctx);
    uint32_t sent = 0;

    for (uint32_t i = 1; s->recalls.has_ranks && i < s->members.workers_size; i++) {
        const struct mu__member_worker *worker = mu__membership_get(&s->members, i);
        uint32_t best;

        if (worker == NULL || waiting_at(worker) == 0 || !is_load_long(worker) ||
            is_recall_pending(s, i, now_ms))
            continue;
        best = best_waiting(s, worker, &left);
        sent += recall_last_closures(
            ctx, s, i, find_closure_behind(s, i, mu__member_free_threads(worker)),
            MU__RECALL_MAX, is_in_front, &best);
    }
    return sent;
}

/* ---- The timer ---- */

static bool may_move_closures(struct supervisor *s)
{
    return s->members.crowded > 0 && (s->recalls.has_ranks || has_idle_worker(s));
}

static void set_timer(struct mu__ctx *ctx, struct recalls *recalls, uint64_t delay_ms)
{
    mu__timer_cancel(ctx, recalls->timer);
    recalls->timer = mu__timer_set(ctx, delay_ms, timer_token(TIMER_RECALL, 0));
    recalls->due_ms = mu__now_ms(ctx) + delay_ms;
}

void mu__sup_recall_look_within(struct mu__ctx *ctx, struct supervisor *s,
                                uint64_t delay_ms)
{
    if (s->recalls.timer == 0 || s->recalls.due_ms > mu__now_ms(ctx) + delay_ms)
        set_timer(ctx, &s->recalls, delay_ms);
}

static void schedule_next_check(struct mu__ctx *ctx, struct supervisor *s,
                                uint64_t delay_ms)
{
    struct recalls *recalls = &s->recalls;

    recalls->is_late = !may_move_closures(s);
    if (recalls->is_late && s->members.load == 0)
        return;
    set_timer(ctx, recalls, recalls->is_late ? LATE_MS : delay_ms);
}

void mu__sup_recall_watch(struct mu__ctx *ctx, struct supervisor *s)
{
    if (s->recalls.timer != 0) {
        if (!may_move_closures(s))
            return;
        mu__timer_cancel(ctx, s->recalls.timer);
        s->recalls.timer = 0;
    }
    s->recalls.delay_ms = 0;
    schedule_next_check(ctx, s, LOOK_MS);
}

void mu__sup_recall_tick(struct mu__ctx *ctx, struct supervisor *s)
{
    uint32_t sent = steal_for_idle(ctx, s) + recall_for_urgent(ctx, s);

    s->recalls.timer = 0;
    s->recalls.delay_ms = sent > 0 ? LOOK_MS : 2 * s->recalls.delay_ms + LOOK_MS;
    if (s->recalls.delay_ms > LOOK_MAX_MS)
        s->recalls.delay_ms = LOOK_MAX_MS;
    schedule_next_check(ctx, s, s->recalls.delay_ms);
    mu__sup_review_begun(ctx, s);
}
