/* The session of the client actor: counts, its phase, its errors, waiting calls. */
#include "actors/client/actions.h"
#include "actors/packing.h"

/* ---- counting ---- */

uint64_t mu__client_outstanding(const struct client_actor *c)
{
    return c->session.shared == NULL ? 0 : c->session.arrived - c->session.resolved;
}

int mu__client_phase(const struct client_actor *c)
{
    return c->session.shared == NULL
               ? MU__SESSION_FINE
               : atomic_load_explicit(&c->session.shared->phase, memory_order_relaxed);
}

void mu__client_set_phase(struct client_actor *c, int phase)
{
    atomic_store_explicit(&c->session.shared->phase, phase, memory_order_release);
}

void mu__client_add(atomic_uint_fast64_t *counter, uint64_t number)
{
    uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, was + number, memory_order_relaxed);
}

void mu__client_count_resolved(struct mu__ctx *ctx, struct client_actor *c,
                               uint64_t bytes)
{
    if (bytes > 0) {
        c->session.bytes_resolved += bytes;
        atomic_store_explicit(&c->session.shared->bytes_resolved,
                              c->session.bytes_resolved, memory_order_release);
    }
    c->session.resolved++;
    atomic_store_explicit(&c->session.shared->resolved, c->session.resolved,
                          memory_order_release);
    if (!mu__list_is_empty(&c->room.calls))
        mu__client_room_review(ctx, c);
    /* While no closure has failed, calls wait only for the last closure. */
    if (mu__client_phase(c) != MU__SESSION_FINE ||
        (c->calls.waiting != NULL && mu__client_outstanding(c) == 0))
        mu__client_review(ctx, c);
}

/* ---- errors ---- */

static struct mu__error_entry *error_entry_new(struct mu__session *session)
{
    struct mu__error_entry *entry = NULL;

    if (atomic_load_explicit(&session->errors_stored, memory_order_relaxed) >=
        MU__ERRORS_STORED_MAX)
        return NULL;
    return mu__grow_array((void **)&entry, 1, sizeof *entry) ? entry : NULL;
}

/* Stores an error for the program, which may take it at any time. */
static void store_session_error(struct mu__session *session, const mu_error *error)
{
    struct mu__error_entry *entry = error_entry_new(session);

    if (entry == NULL) {
        (void)atomic_fetch_add_explicit(&session->errors_lost, 1, memory_order_relaxed);
        return;
    }
    (void)atomic_fetch_add_explicit(&session->errors_stored, 1, memory_order_relaxed);
    entry->error = *error;
    entry->next = atomic_load_explicit(&session->errors, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&session->errors, &entry->next, entry,
                                                  memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

void mu__client_note_error(struct client_actor *c, const mu_error *error)
{
    if (c->session.shared == NULL)
        return;
    store_session_error(c->session.shared, error);
    if (mu__client_phase(c) != MU__SESSION_FINE)
        return;
    c->session.error = *error;
    mu__client_set_phase(c, MU__SESSION_FAILED);
}

void mu__client_note_notice(struct client_actor *c, const mu_error *error)
{
    if (c->session.shared == NULL)
        return;
    store_session_error(c->session.shared, error);
    c->session.notice = *error;
}

/* Whether a notice is to be raised now: it is moved to the session's error. */
static bool raise_notice(struct client_actor *c)
{
    if (c->session.notice.code == 0 || mu__client_phase(c) != MU__SESSION_FINE ||
        mu__client_outstanding(c) > 0)
        return false;
    c->session.error = c->session.notice;
    c->session.notice.code = 0;
    return true;
}

void mu__client_start_cancelling(struct mu__ctx *ctx, struct client_actor *c)
{
    if (mu__client_phase(c) != MU__SESSION_FAILED)
        return;
    if (mu__client_outstanding(c) == 0) {
        mu__client_set_phase(c, MU__SESSION_RAISABLE);
        return;
    }
    mu__client_set_phase(c, MU__SESSION_CANCELLING);
    if (c->chief.connected)
        (void)mu__send(ctx, c->chief.pid, mu__msg_new(ctx, MU__CANCEL_ALL));
    mu__client_cancel_pending(ctx, c);
    mu__client_room_cancel_all(ctx, c);
}

static void complete_raised(struct mu__ctx *ctx, struct client_actor *c,
                            struct mu__call *call)
{
    call->error = c->session.error;
    mu__client_complete(ctx, c, call, call->error.code);
}

static bool is_raising_call(const struct mu__call *call)
{
    return call->operation == MU__CLIENT_JOIN || call->operation == MU__CLIENT_RAISE;
}

/* Completes `call` with the error, and all others that wait now: closures of each of
 * these threads may have been cancelled. The session is fine again. */
static void raise_session_error(struct mu__ctx *ctx, struct client_actor *c,
                                struct mu__call *call)
{
    struct mu__call **at = &c->calls.waiting;

    mu__client_set_phase(c, MU__SESSION_FINE);
    complete_raised(ctx, c, call);
    while (*at != NULL) {
        struct mu__call *other = *at;

        if (!is_raising_call(other)) {
            at = &other->next;
            continue;
        }
        *at = other->next;
        complete_raised(ctx, c, other);
    }
}

/* ---- calls about the session ---- */

/* For JOIN and RAISE. */
static bool try_raise(struct mu__ctx *ctx, struct client_actor *c, struct mu__call *call)
{
    bool had_error = mu__client_phase(c) != MU__SESSION_FINE;
    int phase;

    mu__client_start_cancelling(ctx, c);
    if (raise_notice(c)) {
        raise_session_error(ctx, c, call);
        return true;
    }
    phase = mu__client_phase(c);
    /* The last cancelled closure may have raised the error to other calls just now. */
    if (phase == MU__SESSION_FINE && had_error)
        complete_raised(ctx, c, call);
    else if (phase == MU__SESSION_FINE)
        mu__client_complete(ctx, c, call, 0);
    else if (phase == MU__SESSION_RAISABLE)
        raise_session_error(ctx, c, call);
    else
        return false;
    return true;
}

bool mu__client_try(struct mu__ctx *ctx, struct client_actor *c, struct mu__call *call)
{
    bool is_fine = mu__client_phase(c) == MU__SESSION_FINE;

    switch (call->operation) {
    case MU__CLIENT_OPEN:
    case MU__CLIENT_REACH:
        if (!c->chief.connected)
            return false;
        break;
    case MU__CLIENT_CLOSE:
        if (mu__client_outstanding(c) > 0)
            return false;
        mu__client_room_close(ctx, c);
        c->session.shared = NULL;
        break;
    case MU__CLIENT_JOIN:
        return (is_fine && mu__client_outstanding(c) > 0) ? false
                                                          : try_raise(ctx, c, call);
    case MU__CLIENT_RAISE:
        return try_raise(ctx, c, call);
    default:
        return false;
    }
    mu__client_complete(ctx, c, call, 0);
    return true;
}

void mu__client_review(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__call *left = NULL;

    if (mu__client_phase(c) == MU__SESSION_CANCELLING && mu__client_outstanding(c) == 0)
        mu__client_set_phase(c, MU__SESSION_RAISABLE);
    mu__client_room_review(ctx, c);
    while (c->calls.waiting != NULL) {
        struct mu__call *call = c->calls.waiting;

        c->calls.waiting = call->next;
        if (mu__client_try(ctx, c, call))
            continue;
        call->next = left;
        left = call;
    }
    c->calls.waiting = left;
}
