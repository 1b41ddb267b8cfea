/* Futures: resolving them, their waiters, and pinned results. */
#include "actors/client/actions.h"
#include "actors/keep.h"
#include "actors/packing.h"

#include <inttypes.h>

/* ---- waiters ---- */

void mu__client_waiter_add(mu_remote_value *future, struct mu__waiter *waiter)
{
    waiter->next = future->waiters;
    waiter->link = &future->waiters;
    if (waiter->next != NULL)
        waiter->next->link = &waiter->next;
    future->waiters = waiter;
}

void mu__client_waiter_remove(struct mu__waiter *waiter)
{
    if (waiter->link == NULL)
        return;
    *waiter->link = waiter->next;
    if (waiter->next != NULL)
        waiter->next->link = waiter->link;
    waiter->link = NULL;
}

static void finish_one_waiter(struct mu__ctx *ctx, struct client_actor *c,
                              struct mu__client_call *call)
{
    bool failed = call->error_at < call->waiters_count;

    if (--call->missing == 0)
        mu__client_complete(ctx, c, &call->call, failed ? call->call.error.code : 0);
}

/* `error` NULL: the error, if there is one, is in the future, where the caller finds it.
 * Of several errors the call has that of the first waiter by index. */
static void wake_waiter(struct mu__ctx *ctx, struct client_actor *c,
                        struct mu__waiter *waiter, const mu_error *error)
{
    struct mu__client_call *call = waiter->call;

    mu__client_waiter_remove(waiter);
    if (call == NULL) {
        mu__client_input_ready(c, waiter->closure);
        return;
    }
    if (error != NULL && (size_t)(waiter - call->waiters) < call->error_at) {
        call->call.error = *error;
        call->error_at = (size_t)(waiter - call->waiters);
    }
    finish_one_waiter(ctx, c, call);
}

/* Whether a waiter needs the result itself: a pinned one must be fetched. */
static bool needs_content(const struct mu__waiter *waiter)
{
    return waiter->call != NULL && !waiter->call->until_ready;
}

static void wake_all_waiters(struct mu__ctx *ctx, struct client_actor *c,
                             mu_remote_value *future, const mu_error *error)
{
    while (future->waiters != NULL)
        wake_waiter(ctx, c, future->waiters, error);
}

/* Wake the waiters for which a pinned result is enough. */
static void wake_pinned(struct mu__ctx *ctx, struct client_actor *c,
                        mu_remote_value *future)
{
    struct mu__waiter *waiter = future->waiters;

    while (waiter != NULL) {
        struct mu__waiter *next = waiter->next;

        if (!needs_content(waiter))
            wake_waiter(ctx, c, waiter, NULL);
        waiter = next;
    }
}

/* ---- pinned results ---- */

static void set_future_state(mu_remote_value *future, int state)
{
    atomic_store_explicit(&future->state, state, memory_order_release);
}

/* Without memory for a copy the future has mu__error_lost, so that it never looks as if
 * the closure had succeeded. */
static void copy_future_error(mu_remote_value *future, const mu_error *error)
{
    mu_error *copy = NULL;

    future->error = &mu__error_lost;
    if (!mu__grow_array((void **)&copy, 1, sizeof *copy))
        return;
    *copy = *error;
    future->error = copy;
}

/* The pinned result cannot be fetched any more. */
static void lose_content(struct mu__ctx *ctx, struct client_actor *c,
                         mu_remote_value *future, const mu_error *error)
{
    copy_future_error(future, error);
    set_future_state(future, MU_REMOTE_READY);
    wake_all_waiters(ctx, c, future, error);
}

static int send_fetch(struct mu__ctx *ctx, struct client_actor *c, uint64_t number)
{
    const struct mu__fetch body = {.token = number, .input = number};

    return mu__send_body(ctx, c->chief.pid, MU__FETCH, &body, sizeof body);
}

/* Fetch a pinned result for its waiters, unless that is being done. */
static void fetch_future_content(struct mu__ctx *ctx, struct client_actor *c,
                                 mu_remote_value *future)
{
    uint64_t number = future->held.number;
    mu_error error = {0};
    int rv;

    if (!c->chief.connected || future->held.chief_epoch != c->chief.epoch) {
        (void)mu_error_set(&error, -MU_EUNAVAILABLE,
                           "the result was kept for a chief that is lost");
        error.kind = MU_ERROR_CHIEF;
        lose_content(ctx, c, future, &error);
        return;
    }
    if (mu__map_get(&c->fetching, number) != NULL)
        return;
    rv = mu__map_set(&c->fetching, number, future);
    if (rv == 0) {
        mu__held_ref(&future->held);
        rv = send_fetch(ctx, c, number);
    }
    if (rv == 0)
        return;
    (void)mu_error_set(&error, rv, "failed to request a pinned result: %s",
                       mu_strerror(rv));
    error.closure = number;
    if (mu__map_remove(&c->fetching, number) != NULL)
        mu__held_unref(&future->held);
    wake_all_waiters(ctx, c, future, &error);
}

static void read_fetched(const struct mu__fetched *body, mu_error *ret_error)
{
    *ret_error = (mu_error){
        .code = -(int)body->code,
        .kind = (int)body->error_kind,
        .closure = body->input,
    };
    mu__view_copy(body->task, ret_error->task, sizeof ret_error->task);
    mu__view_copy(body->message, ret_error->message, sizeof ret_error->message);
}

/* An error with a kind, about the closure or the cluster, is final. One without a kind
 * may pass: the result stays pinned and can be fetched again. */
void mu__client_on_fetched(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__fetched *body = mu__body(msg);
    mu_remote_value *future;
    mu_error error = {0};
    char why[128] = "out of memory";

    if (!mu__client_is_from_chief(c, msg) || body->input == 0)
        return;
    future = mu__map_remove(&c->fetching, body->input);
    if (future == NULL)
        return;
    if (body->code != 0)
        read_fetched(body, &error);
    else if (mu__value_unpack(&body->content, why, sizeof why, &future->result) != 0)
        (void)mu_error_set(&error, -MU_EDATALOSS, "the result cannot be read: %s", why);
    if (error.code != 0 && error.kind != MU_ERROR_OTHER) {
        lose_content(ctx, c, future, &error);
    } else if (error.code != 0) {
        wake_all_waiters(ctx, c, future, &error);
    } else {
        set_future_state(future, MU_REMOTE_READY);
        wake_all_waiters(ctx, c, future, NULL);
    }
    mu__held_unref(&future->held);
}

void mu__client_forget_pinned(struct mu__ctx *ctx, struct client_actor *c,
                              const mu_error *error)
{
    struct mu__map fetching = c->fetching;

    c->fetching = (struct mu__map){0};
    for (size_t i = 0; i < fetching.capacity; i++) {
        mu_remote_value *future = fetching.entries[i].value;

        if (fetching.entries[i].key == 0)
            continue;
        lose_content(ctx, c, future, error);
        mu__held_unref(&future->held);
    }
    mu__map_done(&fetching);
}

void mu__client_release(struct mu__ctx *ctx, struct client_actor *c, uint64_t number)
{
    const struct mu__release body = {.input = number};

    if (mu__send_body(ctx, c->chief.pid, MU__RELEASE, &body, sizeof body) != 0)
        mu__log(ctx, MU__LOG_WARN, "failed to send the release of a result to the chief");
}

void mu__client_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__held *held = ((struct mu__release_held *)mu__body(msg))->held;

    if (c->chief.connected && held->chief_epoch == c->chief.epoch)
        mu__client_release(ctx, c, held->number);
    mu__held_free(held);
}

/* ---- resolving ---- */

void mu__client_resolve(struct mu__ctx *ctx, struct client_actor *c,
                        mu_remote_value *future, int state)
{
    future->token = 0;
    set_future_state(future, state);
    if (future->waiters != NULL) {
        if (state == MU__REMOTE_PINNED)
            wake_pinned(ctx, c, future);
        else
            wake_all_waiters(ctx, c, future, NULL);
    }
    if (future->waiters != NULL)
        fetch_future_content(ctx, c, future);
    if (future->notify != NULL)
        future->notify(future, future->notify_user);
    mu__held_unref(&future->held);
}

void mu__client_resolve_error(struct mu__ctx *ctx, struct client_actor *c,
                              mu_remote_value *future, int state, const mu_error *error)
{
    if (future == NULL)
        return;
    copy_future_error(future, error);
    mu__client_resolve(ctx, c, future, state);
}

static void resolve_slot(struct mu__ctx *ctx, struct client_actor *c,
                         const struct closure_slot *slot, int state,
                         const mu_error *error)
{
    struct mu__pending_closure *closure = mu__slot_pending(slot);

    mu__client_resolve_error(ctx, c, mu__slot_future(slot), state, error);
    if (closure != NULL)
        mu__client_forget_pending(ctx, c, closure);
    mu__client_count_resolved(ctx, c, slot->bytes);
}

void mu__client_failed(struct mu__ctx *ctx, struct client_actor *c,
                       const struct closure_slot *slot, const mu_error *error)
{
    mu__client_add(&c->session.shared->failed, 1);
    if (!slot->own_error)
        mu__client_note_error(c, error);
    resolve_slot(ctx, c, slot, MU_REMOTE_READY, error);
}

void mu__client_cancelled(struct mu__ctx *ctx, struct client_actor *c,
                          const struct closure_slot *slot, const mu_error *error)
{
    mu__client_add(&c->session.shared->cancelled, 1);
    resolve_slot(ctx, c, slot, MU_REMOTE_ABORTED, error);
}

/* ---- fetching ---- */

/* Whether the future has what the waiter needs. */
static bool is_waiter_satisfied(const struct mu__waiter *waiter)
{
    int state = atomic_load_explicit(&waiter->future->state, memory_order_relaxed);

    return state != MU_REMOTE_NOT_READY &&
           (state != MU__REMOTE_PINNED || !needs_content(waiter));
}

/* `missing` begins with 1, so that the call is not completed inside the loop. */
void mu__client_fetch(struct mu__ctx *ctx, struct client_actor *c,
                      struct mu__client_call *call)
{
    if (call->waiters == NULL) {
        call->one.future = call->future;
        call->waiters = &call->one;
        call->waiters_count = 1;
    }
    call->error_at = call->waiters_count;
    call->missing = 1;
    if (!mu__client_start_timeout(ctx, c, &call->call, call->call.timeout_ms))
        return;
    for (size_t i = 0; i < call->waiters_count; i++) {
        struct mu__waiter *waiter = &call->waiters[i];

        waiter->call = call;
        waiter->link = NULL;
        if (is_waiter_satisfied(waiter))
            continue;
        mu__client_waiter_add(waiter->future, waiter);
        call->missing++;
        if (mu__future_is(waiter->future, MU__REMOTE_PINNED))
            fetch_future_content(ctx, c, waiter->future);
    }
    finish_one_waiter(ctx, c, call);
}

void mu__client_fetch_late(struct mu__ctx *ctx, struct client_actor *c,
                           struct mu__client_call *call)
{
    size_t first = call->waiters_count;

    for (size_t i = call->waiters_count; i-- > 0;) {
        if (call->waiters[i].link != NULL)
            first = i;
        mu__client_waiter_remove(&call->waiters[i]);
    }
    if (call->error_at < first) {
        mu__client_complete(ctx, c, &call->call, call->call.error.code);
        return;
    }
    call->error_at = first;
    mu__client_explain_timeout(ctx, c, call);
}
