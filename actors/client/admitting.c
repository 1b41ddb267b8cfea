/* Admission of closures: by the threads that schedule them, or, for those that wait for
 * room, by the actor in the order in which they came, so that nobody can be faster. */
#include "actors/client/admitting.h"
#include "actors/client/internal.h"

/* ---- any thread ---- */

/* `resolved` only grows, and is read before `taken`: if that has not changed when it is
 * swapped, there is at least as much room as was seen. */
static bool take(atomic_uint_fast64_t *taken, const atomic_uint_fast64_t *resolved,
                 uint64_t size, uint64_t max)
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
        if (atomic_compare_exchange_weak_explicit(taken, &seen, seen + size,
                                                  memory_order_acq_rel,
                                                  memory_order_acquire))
            return true;
    }
}

bool mu__admission_take(struct mu__session *session, uint64_t bytes)
{
    if (bytes > 0 && !take(&session->bytes_scheduled, &session->bytes_resolved, bytes,
                           session->bytes_max))
        return false;
    if (take(&session->scheduled, &session->resolved, 1, session->closures_max))
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

/* ---- the actor: threads that wait ---- */

enum { REVIEW_MS = 5 };

static struct mu__client_call *client_call(struct mu__call *call)
{
    return (struct mu__client_call *)call;
}

static void complete(struct mu__ctx *ctx, struct client_actor *c, struct mu__call *call,
                     bool admitted)
{
    client_call(call)->admitted = admitted;
    mu__client_complete(ctx, c, call, 0);
}

/* Room is made in steps, so that a full queue does not wake its threads each time; what
 * is left below a step is given after REVIEW_MS. */
static bool has_step(const struct client_actor *c)
{
    uint64_t max = c->session.shared->closures_max;
    uint64_t used = mu__admission_closures(c->session.shared);

    return max == 0 || used <= max - max / 8 - (max < 8 ? 1 : 0);
}

static bool has_room(const struct client_actor *c, const struct mu__client_call *call)
{
    const struct mu__session *s = c->session.shared;

    return mu__admission_fits(mu__admission_closures(s), 1, s->closures_max) &&
           (call->bytes == 0 ||
            mu__admission_fits(mu__admission_bytes(s), call->bytes, s->bytes_max));
}

/* Somebody is between being admitted and sending, or withdraws: nothing tells when. */
static bool is_settling(const struct client_actor *c)
{
    return mu__admission_closures(c->session.shared) != mu__client_outstanding(c);
}

static void remove_first(struct mu__room *room)
{
    room->first = room->first->next;
    if (room->first == NULL)
        room->last = NULL;
}

static void add_last(struct mu__room *room, struct mu__call *call)
{
    call->next = NULL;
    if (room->last == NULL)
        room->first = call;
    else
        room->last->next = call;
    room->last = call;
}

bool mu__client_room_unlist(struct client_actor *c, const struct mu__call *call)
{
    struct mu__call *before = NULL;
    struct mu__call *at = c->room.first;

    while (at != NULL && at != call) {
        before = at;
        at = at->next;
    }
    if (at == NULL)
        return false;
    if (before == NULL)
        c->room.first = at->next;
    else
        before->next = at->next;
    if (c->room.last == at)
        c->room.last = before;
    return true;
}

/* True when the call was answered. */
static bool try_answer(struct mu__ctx *ctx, struct client_actor *c, struct mu__call *call)
{
    struct mu__client_call *waiting = client_call(call);

    if (mu__client_phase(c) != MU__SESSION_FINE) {
        complete(ctx, c, call, false);
        return true;
    }
    if (!has_room(c, waiting) ||
        (waiting->admits && !mu__admission_take(c->session.shared, waiting->bytes)))
        return false;
    complete(ctx, c, call, waiting->admits);
    return true;
}

static void answer_all(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__room *room = &c->room;

    while (room->first != NULL) {
        struct mu__call *call = room->first;

        remove_first(room);
        if (try_answer(ctx, c, call))
            continue;
        call->next = room->first;
        room->first = call;
        if (room->last == NULL)
            room->last = call;
        return;
    }
}

/* When nothing else will tell that there is room for the first one. */
static void arm(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__room *room = &c->room;

    if (room->review_timer != 0 || room->first == NULL ||
        !(is_settling(c) || has_room(c, client_call(room->first))))
        return;
    room->review_timer = mu__timer_set(ctx, REVIEW_MS, 0);
}

void mu__client_room_review(struct mu__ctx *ctx, struct client_actor *c)
{
    if (c->room.first == NULL || c->session.shared == NULL)
        return;
    if (has_step(c) || mu__client_phase(c) != MU__SESSION_FINE)
        answer_all(ctx, c);
    arm(ctx, c);
}

void mu__client_room_late(struct mu__ctx *ctx, struct client_actor *c)
{
    c->room.review_timer = 0;
    if (c->session.shared == NULL)
        return;
    answer_all(ctx, c);
    arm(ctx, c);
}

void mu__client_room_wait(struct mu__ctx *ctx, struct client_actor *c,
                          struct mu__client_call *call)
{
    if (c->room.first == NULL && try_answer(ctx, c, &call->call))
        return;
    if (!mu__client_start_timeout(ctx, c, &call->call, call->call.timeout_ms))
        return;
    add_last(&c->room, &call->call);
    arm(ctx, c);
}

void mu__client_room_end(struct mu__ctx *ctx, struct client_actor *c, const char *words)
{
    while (c->room.first != NULL) {
        struct mu__call *call = c->room.first;

        remove_first(&c->room);
        mu__client_complete(ctx, c, call,
                            mu_error_set(&call->error, -MU_ECLOSED, "%s", words));
    }
}
