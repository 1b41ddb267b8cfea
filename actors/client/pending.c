/* Closures with references among their arguments. They wait for their futures, and are
 * sent with the results in the place of references; for pinned results and per-worker
 * values with their numbers. */
#include "actors/client/actions.h"

#include "actors/client/holds.h"
#include "actors/packing.h"
#include "actors/references.h"
#include "runtime/message/value_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory; any thread ---- */

struct mu__pending_closure *mu__pending_new(struct mu__held *const *held, uint32_t count,
                                            const mu_value *args)
{
    struct mu__pending_closure *closure = NULL;
    size_t bytes = sizeof *closure + count * sizeof closure->inputs[0];

    if (!mu__grow_array((void **)&closure, 1, bytes))
        return NULL;
    memset(closure, 0, bytes);
    closure->args = mu_value_ref(args);
    closure->inputs_count = count;
    for (uint32_t i = 0; i < count; i++) {
        closure->inputs[i].held = held[i];
        mu__held_ref(held[i]);
    }
    return closure;
}

static void drop_inputs(struct mu__pending_closure *closure)
{
    for (uint32_t i = 0; i < closure->inputs_count; i++)
        mu__held_unref(closure->inputs[i].held);
    closure->inputs_count = 0;
}

void mu__pending_free(struct mu__pending_closure *closure)
{
    mu_value_free(closure->args);
    drop_inputs(closure);
    if (closure->msg != NULL) {
        mu__buf_unref(closure->msg->backing);
        free(closure->msg);
    }
    mu__free_array(closure);
}

/* ---- lists ---- */

/* `list` NULL: to none. */
static void move_to(struct mu__list *list, struct mu__pending_closure *closure)
{
    if (closure->list != NULL)
        mu__list_remove(closure->list, &closure->node);
    closure->list = list;
    if (list != NULL)
        mu__list_append(list, &closure->node);
}

static struct mu__pending_closure *first_pending_closure(const struct mu__list *list)
{
    return MU__LIST_FIRST(list, struct mu__pending_closure, node);
}

static void stop_waiting(struct mu__ctx *ctx, struct client_actor *c,
                         struct mu__pending_closure *closure)
{
    move_to(NULL, closure);
    for (uint32_t i = 0; i < closure->inputs_count; i++)
        mu__client_waiter_remove(&closure->inputs[i].waiter);
    if (closure->timer != 0) {
        mu__timer_cancel(ctx, closure->timer);
        (void)mu__map_remove(&c->pending.deadlines, closure->timer);
        closure->timer = 0;
    }
}

void mu__client_forget_pending(struct mu__ctx *ctx, struct client_actor *c,
                               struct mu__pending_closure *closure)
{
    stop_waiting(ctx, c, closure);
    mu__pending_free(closure);
}

void mu__client_input_ready(struct client_actor *c, struct mu__pending_closure *closure)
{
    if (--closure->missing == 0)
        move_to(&c->pending.ready, closure);
}

/* ---- inputs that are errors ---- */

const char mu__client_lost_input[] = "an input was kept for a chief that is lost";

/* Whether workers keep the value, known to the present chief. */
static bool is_held_pinned(const struct client_actor *c, const struct mu__held *held)
{
    return held->number != 0 && held->chief_epoch == c->chief.epoch;
}

/* The error of a closure whose input failed with `cause`. The error of an input's own
 * input is passed on as it is. */
static void word_failure(const mu_error *cause, mu_error *ret_error)
{
    char id[24] = "";

    *ret_error = *cause;
    if (cause->kind == MU_ERROR_INPUT)
        return;
    if (cause->closure != 0)
        (void)snprintf(id, sizeof id, " %" PRIu64, cause->closure);
    (void)snprintf(ret_error->message, sizeof ret_error->message,
                   "input closure%s \"%s\" failed: %.400s", id, cause->function,
                   cause->message);
    ret_error->kind = MU_ERROR_INPUT;
}

/* Whether an input failed; then *ret_error is the closure's error. */
static bool input_error(const struct client_actor *c, const struct mu__held *held,
                        mu_error *ret_error)
{
    const mu_remote_value *future = (const mu_remote_value *)held;
    mu_error lost = {0};

    if (is_held_pinned(c, held))
        return false;
    if (held->is_per_worker || mu__future_is(future, MU__REMOTE_PINNED)) {
        (void)mu_error_set(&lost, -MU_EUNAVAILABLE, "%s", mu__client_lost_input);
        lost.kind = MU_ERROR_INPUT;
        word_failure(&lost, ret_error);
        return true;
    }
    if (future->error != NULL) {
        word_failure(future->error, ret_error);
        return true;
    }
    if (!mu__future_is(future, MU_REMOTE_ABORTED))
        return false;
    (void)mu_error_set(&lost, -MU_ECANCELLED, "it was aborted");
    word_failure(&lost, ret_error);
    return true;
}

void mu__client_name_failure(const struct mu__schedule *body, uint32_t failed,
                             mu_error *error)
{
    size_t size = strlen(error->message);

    error->closure = 0;
    error->attempt = 0;
    mu__view_copy(body->function, error->function, sizeof error->function);
    if (failed > 1)
        (void)snprintf(error->message + size, sizeof error->message - size,
                       " (and %" PRIu32 " more of its inputs failed)", failed - 1);
}

/* Whether inputs failed; the error is that of the first one by position, and says how
 * many more there are. */
static bool inputs_failed(const struct client_actor *c,
                          const struct mu__pending_closure *closure, mu_error *ret_error)
{
    const struct mu__schedule *body = mu__body(closure->msg);
    uint32_t failed = 0;
    mu_error other;

    for (uint32_t i = 0; i < closure->inputs_count; i++)
        if (input_error(c, closure->inputs[i].held, failed == 0 ? ret_error : &other))
            failed++;
    if (failed > 0)
        mu__client_name_failure(body, failed, ret_error);
    return failed > 0;
}

/* ---- sending ---- */

/* The value that replaces a reference: its number if workers keep the input, else the
 * result. */
static mu_value *substitute_reference(void *arg, const mu_value *reference)
{
    const struct client_actor *c = arg;
    const struct mu__held *held = mu__reference_held(reference);
    const mu_remote_value *future = (const mu_remote_value *)held;

    if (is_held_pinned(c, held))
        return mu__value_reference(held->number, NULL, NULL);
    return future->result == NULL ? mu_value_nil() : mu_value_ref(future->result);
}

static int pack_closure_inputs(struct client_actor *c,
                               struct mu__pending_closure *closure)
{
    struct mu__schedule *body = mu__body(closure->msg);
    mu_value *args = mu__references_replace(closure->args, substitute_reference, c);
    uint32_t head_size = 0;
    uint32_t tail_size = 0;
    int rv = args == NULL ? -MU_ENOMEM : mu__value_measure(args, &head_size, &tail_size);

    if (rv == 0 && (uint64_t)head_size + tail_size > MU__VALUE_BYTES_MAX)
        rv = -MU_ERANGE;
    if (rv == 0) {
        closure->msg->backing = mu__pack_value(args, &body->args);
        rv = closure->msg->backing == NULL ? -MU_ENOMEM : 0;
    }
    mu_value_free(args);
    return rv;
}

static void store_input_number(uint8_t *out, uint64_t number)
{
    for (unsigned i = 0; i < sizeof number; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

/* The numbers of pinned inputs go into the message; the references to them are kept until
 * it is sent. */
static void list_numbers(struct client_actor *c, struct mu__pending_closure *closure)
{
    struct mu__schedule *body = mu__body(closure->msg);
    uint32_t count = 0;

    for (uint32_t i = 0; i < closure->inputs_count; i++)
        if (is_held_pinned(c, closure->inputs[i].held))
            store_input_number(closure->numbers + 8 * (size_t)count++,
                               closure->inputs[i].held->number);
    if (count > 0)
        body->inputs = (struct mu__view){closure->numbers, 8 * count};
}

static void count_bytes(struct client_actor *c, struct mu__pending_closure *closure)
{
    const struct mu__schedule *body = mu__body(closure->msg);
    uint64_t bytes = (uint64_t)body->args.head_size + body->args.tail_size;

    (void)atomic_fetch_add_explicit(&c->session.shared->bytes_scheduled,
                                    bytes - closure->bytes, memory_order_relaxed);
    closure->bytes = bytes;
    c->slots.items[closure->slot].bytes = (uint32_t)bytes;
}

static void send_pending_closure(struct mu__ctx *ctx, struct client_actor *c,
                                 struct mu__pending_closure *closure)
{
    struct mu__msg *msg = closure->msg;
    struct mu__schedule *body = mu__body(msg);
    uint32_t slot = closure->slot;

    stop_waiting(ctx, c, closure);
    count_bytes(c, closure);
    mu__client_shorten_deadline(body, mu__now_ms(ctx) - closure->since_ms);
    body->token = (uint64_t)slot + 1;
    body->drop_result = closure->future == NULL;
    mu_value_free(closure->args);
    closure->args = NULL;
    list_numbers(c, closure);
    closure->msg = NULL;
    mu__client_dispatch(ctx, c, (uint64_t)slot + 1, msg);
}

static void fail_pending_closure(struct mu__ctx *ctx, struct client_actor *c,
                                 struct mu__pending_closure *closure,
                                 const mu_error *error)
{
    struct closure_slot slot = mu__client_take_slot(ctx, c, (uint64_t)closure->slot + 1);

    mu__client_ended(ctx, c, &slot, error);
}

static void launch_pending_closure(struct mu__ctx *ctx, struct client_actor *c,
                                   struct mu__pending_closure *closure)
{
    const struct mu__schedule *body = mu__body(closure->msg);
    mu_error error = {0};
    int rv;

    if (inputs_failed(c, closure, &error)) {
        fail_pending_closure(ctx, c, closure, &error);
        return;
    }
    rv = pack_closure_inputs(c, closure);
    if (rv == 0) {
        send_pending_closure(ctx, c, closure);
        return;
    }
    (void)mu_error_set(&error, rv, "%s",
                       rv == -MU_ENOMEM
                           ? "no memory for the arguments with their inputs"
                           : "the arguments with their inputs are too deep or too large");
    error.kind = MU_ERROR_INPUT;
    mu__view_copy(body->function, error.function, sizeof error.function);
    fail_pending_closure(ctx, c, closure, &error);
}

void mu__client_hand_over(struct client_actor *c, uint32_t slot, struct mu__msg *msg)
{
    struct closure_slot *of = &c->slots.items[slot];
    struct mu__pending_closure *closure = mu__slot_pending(of);

    msg->kind = MU__SCHEDULE;
    if (of->has_holds)
        mu__holds_become_numbers(mu__body(msg));
    of->has_holds = false;
    if (closure == NULL)
        return;
    of->is_pending = false;
    of->future = closure->future;
    mu__pending_free(closure);
}

/* What cannot be sent fails, and then others that need its result do. */
void mu__client_after_batch(struct mu__ctx *ctx, void *state)
{
    struct client_actor *c = state;
    struct mu__pending_closure *closure;

    do {
        while ((closure = first_pending_closure(&c->pending.ready)) != NULL)
            launch_pending_closure(ctx, c, closure);
        if (c->room.waiting > 0 || c->room.lacks_reported != 0)
            mu__client_room_use(ctx, c);
    } while (first_pending_closure(&c->pending.ready) != NULL);
}

void mu__client_cancel_pending(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__pending_closure *closure;
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECANCELLED,
                       "cancelled before it ran, after another closure's error");
    while ((closure = first_pending_closure(&c->pending.ready)) != NULL ||
           (closure = first_pending_closure(&c->pending.blocked)) != NULL)
        fail_pending_closure(ctx, c, closure, &error);
}

void mu__client_over_deadline(struct mu__ctx *ctx, struct client_actor *c, uint64_t timer)
{
    struct mu__pending_closure *closure = mu__map_remove(&c->pending.deadlines, timer);
    const struct mu__schedule *body;
    mu_error error = {0};

    if (closure == NULL)
        return;
    closure->timer = 0;
    if (closure->missing == 0) /* it is about to be sent */
        return;
    body = mu__body(closure->msg);
    (void)mu_error_set(&error, -MU_EDEADLINE,
                       "the closure waited for %" PRIu32 " of its inputs until its "
                       "deadline of %" PRIu64 " ms",
                       closure->missing, body->deadline_ms);
    error.kind = MU_ERROR_LIMIT;
    mu__view_copy(body->function, error.function, sizeof error.function);
    fail_pending_closure(ctx, c, closure, &error);
}

/* ---- arriving ---- */

static void wait_for_inputs(struct client_actor *c, struct mu__pending_closure *closure)
{
    for (uint32_t i = 0; i < closure->inputs_count; i++) {
        struct mu__closure_input *input = &closure->inputs[i];
        mu_remote_value *future = (mu_remote_value *)input->held;

        if (input->held->is_per_worker || !mu__future_is(future, MU_REMOTE_NOT_READY))
            continue;
        input->waiter.future = future;
        input->waiter.closure = closure;
        mu__client_waiter_add(future, &input->waiter);
        closure->missing++;
    }
    if (closure->missing > 0)
        move_to(&c->pending.blocked, closure);
}

static void begin_pending_deadline(struct mu__ctx *ctx, struct client_actor *c,
                                   struct mu__pending_closure *closure)
{
    const struct mu__schedule *body = mu__body(closure->msg);

    closure->since_ms = mu__now_ms(ctx);
    if (body->deadline_ms != 0 && closure->missing > 0)
        closure->timer = mu__client_start_timer(ctx, &c->pending.deadlines,
                                                body->deadline_ms, closure);
}

void mu__client_on_pending(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__pending_closure *closure =
        ((struct mu__schedule_pending *)mu__body(msg))->pending;
    struct closure_slot slot =
        mu__client_make_slot(mu__body(closure->msg), closure->bytes);
    mu_error error = {0};
    uint64_t token;

    slot.is_pending = true;
    slot.pending = closure;
    if (!mu__client_admits(ctx, c, &slot))
        return;
    token = mu__client_add_slot(c, &slot);
    if (token == 0) {
        (void)mu_error_set(&error, -MU_ENOMEM, "out of memory");
        mu__client_failed(ctx, c, &slot, &error);
        return;
    }
    closure->slot = (uint32_t)(token - 1);
    wait_for_inputs(c, closure);
    begin_pending_deadline(ctx, c, closure);
    if (closure->missing == 0)
        launch_pending_closure(ctx, c, closure);
}
