/* Admission of closures: by the threads that schedule them, or, for threads that wait for
 * room, by the actor in the order of their calls, so that no thread overtakes another. */
#include "actors/client/actions.h"

/* ---- any thread ---- */

/* `resolved` only grows, and is read before `taken`: if `taken` is unchanged when it is
 * swapped, there is at least as much room as was computed. */
static bool reserve_admission(atomic_uint_fast64_t *taken,
                              const atomic_uint_fast64_t *resolved, uint64_t size,
                              uint64_t max)
{
    uint64_t done = atomic_load_explicit(resolved, memory_order_acquire);
    uint64_t seen = atomic_load_explicit(taken, memory_order_acquire);

    for (;;) {
        if (!mu__admission_fits(seen - done, size, max)) {
            uint64_t now = atomic_load_explicit(resolved, memory_order_acquire);

            if (now == done)
                return false;
            done = now;
            seen = atomic_load_explicit(taken, memory_order_acquire);
            continue;
        }
        if (atomic_compare_exchange_weak_explicit(
                taken, &seen, seen + size, memory_order_acq_rel, memory_order_acquire))
            return true;
    }
}

bool mu__admission_take(struct mu__session *session, uint64_t bytes)
{
    if (bytes > 0 &&
        !reserve_admission(&session->bytes_scheduled, &session->bytes_resolved, bytes,
                           session->bytes_max))
        return false;
    if (reserve_admission(&session->scheduled, &session->resolved, 1,
                          session->closures_max))
        return true;
    if (bytes > 0)
        (void)atomic_fetch_sub(&session->bytes_scheduled, bytes);
    return false;
}

void mu__admission_withdraw(struct mu__session *session, uint64_t bytes)
{
    (void)atomic_fetch_sub(&session->scheduled, 1);
    if (bytes > 0)
        (void)atomic_fetch_sub(&session->bytes_scheduled, bytes);
}

/* ---- the actor: waiting threads ---- */

enum { REVIEW_MS = 5 };

static struct mu__client_call *first_call(const struct client_actor *c)
{
    return MU__LIST_FIRST(&c->room.calls, struct mu__client_call, node);
}

static void complete_admission(struct mu__ctx *ctx, struct client_actor *c,
                               struct mu__client_call *call, bool admitted)
{
    call->admitted = admitted;
    mu__client_complete(ctx, c, &call->call, 0);
}

/* Room is given in steps of an eighth of the bound, so that not each resolved closure
 * wakes a thread; room of less than a step is given after REVIEW_MS. */
static bool has_room_step(const struct client_actor *c)
{
    uint64_t max = c->session.shared->closures_max;
    uint64_t used = mu__admission_closures(c->session.shared);

    return max == 0 || used <= max - max / 8 - (max < 8 ? 1 : 0);
}

static bool has_admission_room(const struct client_actor *c,
                               const struct mu__client_call *call)
{
    const struct mu__session *s = c->session.shared;

    return mu__admission_fits(mu__admission_closures(s), 1, s->closures_max) &&
           (call->bytes == 0 ||
            mu__admission_fits(mu__admission_bytes(s), call->bytes, s->bytes_max));
}

/* Whether some admitted closure has not reached the actor: its thread is about to send or
 * to withdraw it, and no message will say that it has withdrawn. */
static bool has_unsettled_admission(const struct client_actor *c)
{
    return mu__admission_closures(c->session.shared) != mu__client_outstanding(c);
}

bool mu__client_room_unlist(struct client_actor *c, const struct mu__call *call)
{
    struct mu__client_call *at = first_call(c);

    while (at != NULL && &at->call != call)
        at = MU__LIST_NEXT(at, struct mu__client_call, node);
    if (at != NULL)
        mu__list_remove(&c->room.calls, &at->node);
    return at != NULL;
}

/* Whether a call can be completed now; then *ret_admitted is its answer. */
static bool can_answer_admission(struct client_actor *c,
                                 const struct mu__client_call *call, bool *ret_admitted)
{
    bool is_fine = mu__client_phase(c) == MU__SESSION_FINE;

    *ret_admitted = is_fine && call->admits;
    return !is_fine ||
           (has_admission_room(c, call) &&
            (!call->admits || mu__admission_take(c->session.shared, call->bytes)));
}

/* A closure has failed: from now on the call waits for its error. */
static void wait_for_error(struct client_actor *c, struct mu__client_call *call)
{
    call->call.operation = MU__CLIENT_RAISE;
    call->call.next = c->calls.waiting;
    c->calls.waiting = &call->call;
}

static void answer_admission_calls(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__client_call *call;
    bool admitted;

    while ((call = first_call(c)) != NULL && can_answer_admission(c, call, &admitted)) {
        mu__list_remove(&c->room.calls, &call->node);
        if (call->raises && mu__client_phase(c) != MU__SESSION_FINE)
            wait_for_error(c, call);
        else
            complete_admission(ctx, c, call, admitted);
    }
}

/* Set the review timer if no message may say that there is room for the first call. */
static void arm_review_timer(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__room *room = &c->room;

    if (room->review_timer != 0 || first_call(c) == NULL ||
        !(has_unsettled_admission(c) || has_admission_room(c, first_call(c))))
        return;
    room->review_timer = mu__timer_set(ctx, REVIEW_MS, 0);
}

void mu__client_room_review(struct mu__ctx *ctx, struct client_actor *c)
{
    if (first_call(c) == NULL || c->session.shared == NULL)
        return;
    if (has_room_step(c) || mu__client_phase(c) != MU__SESSION_FINE)
        answer_admission_calls(ctx, c);
    arm_review_timer(ctx, c);
}

void mu__client_room_late(struct mu__ctx *ctx, struct client_actor *c)
{
    c->room.review_timer = 0;
    if (c->session.shared == NULL)
        return;
    answer_admission_calls(ctx, c);
    arm_review_timer(ctx, c);
}

void mu__client_room_wait(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__client_call *call)
{
    bool admitted;

    if (first_call(c) == NULL && can_answer_admission(c, call, &admitted)) {
        complete_admission(ctx, c, call, admitted);
        return;
    }
    if (!mu__client_start_timeout(ctx, c, &call->call, call->call.timeout_ms))
        return;
    mu__list_append(&c->room.calls, &call->node);
    arm_review_timer(ctx, c);
}

void mu__client_room_end(struct mu__ctx *ctx, struct client_actor *c, const char *words)
{
    struct mu__client_call *call;

    while ((call = first_call(c)) != NULL) {
        mu__list_remove(&c->room.calls, &call->node);
        mu__client_complete(ctx, c, &call->call,
                            mu_error_set(&call->call.error, -MU_ECLOSED, "%s", words));
    }
}
