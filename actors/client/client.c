#include "actors/client/actions.h"

#include "actors/client/holds.h"
#include "actors/keep.h"
#include "actors/packing.h"
#include "runtime/base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS_FIRST = 1024 };

#define QUEUE_BYTES_DEFAULT (UINT64_C(1) << 30)

/* ---- slots ---- */

static bool make_slots(struct client_actor *c)
{
    uint32_t count = c->slots.count == 0 ? SLOTS_FIRST : c->slots.count * 2;

    if (!mu__grow_array((void **)&c->slots.items, count, sizeof *c->slots.items))
        return false;
    for (uint32_t i = count; i-- > c->slots.count;) {
        c->slots.items[i] =
            (struct closure_slot){.next_free = c->slots.free_first, .state = SLOT_FREE};
        c->slots.free_first = i + 1;
    }
    c->slots.count = count;
    return true;
}

uint64_t mu__client_add_slot(struct client_actor *c, const struct closure_slot *slot)
{
    mu_remote_value *future;
    uint32_t i;

    if (c->slots.free_first == 0 && !make_slots(c))
        return 0;
    i = c->slots.free_first - 1;
    c->slots.free_first = c->slots.items[i].next_free;
    c->slots.items[i] = *slot;
    future = mu__slot_future(&c->slots.items[i]);
    if (future != NULL)
        future->token = i + 1;
    return (uint64_t)i + 1;
}

static bool is_slot_taken(const struct client_actor *c, uint64_t token)
{
    return token > 0 && token <= c->slots.count &&
           c->slots.items[token - 1].state != SLOT_FREE;
}

struct closure_slot mu__client_take_slot(struct mu__ctx *ctx, struct client_actor *c,
                                         uint64_t token)
{
    uint32_t i = (uint32_t)(token - 1);
    struct closure_slot slot = c->slots.items[i];

    if (slot.state == SLOT_SENT)
        mu__room_sent_done(&c->room, slot.bytes);
    else if (slot.state == SLOT_WAITS)
        mu__client_room_drop(ctx, c, i);
    c->slots.items[i].next_free = c->slots.free_first;
    c->slots.items[i].state = SLOT_FREE;
    c->slots.free_first = i + 1;
    return slot;
}

/* ---- scheduling ---- */

/* Abort a closure that is not counted by an open session. */
static void abort_slot(struct mu__ctx *ctx, struct client_actor *c,
                       const struct closure_slot *slot, const char *words)
{
    struct mu__pending_closure *closure = mu__slot_pending(slot);
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECLOSED, "%s", words);
    mu__client_resolve_error(ctx, c, mu__slot_future(slot), MU_REMOTE_ABORTED, &error);
    if (closure != NULL)
        mu__client_forget_pending(ctx, c, closure);
}

/* Cancel a closure that cannot be scheduled. The cause will refuse the next ones, too:
 * only the first one's error is noted for the program. */
static void refuse_closure(struct mu__ctx *ctx, struct client_actor *c,
                           const struct closure_slot *slot, const mu_error *error)
{
    if (mu__client_phase(c) == MU__SESSION_FINE && !slot->own_error)
        mu__client_note_error(c, error);
    mu__client_cancelled(ctx, c, slot, error);
}

static void refuse_no_chief(struct mu__ctx *ctx, struct client_actor *c,
                            const struct closure_slot *slot, const char *why)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s %s", c->config.chief, why);
    error.kind = MU_ERROR_CHIEF;
    (void)snprintf(error.task, sizeof error.task, "/job:chief/task:0");
    refuse_closure(ctx, c, slot, &error);
}

/* Functions with a mu_error, which is large, are kept apart from the common path. */
static void refuse_cancelled(struct mu__ctx *ctx, struct client_actor *c,
                             const struct closure_slot *slot)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECANCELLED, "cancelled after another closure's error");
    mu__client_cancelled(ctx, c, slot, &error);
}

static void refuse_no_memory(struct mu__ctx *ctx, struct client_actor *c,
                             const struct closure_slot *slot)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ENOMEM, "out of memory");
    refuse_closure(ctx, c, slot, &error);
}

/* This node has not proven that it may schedule. */
static void refuse_forbidden(struct mu__ctx *ctx, struct client_actor *c,
                             const struct closure_slot *slot)
{
    mu_error error = {0};

    (void)mu__send_is_forbidden(ctx, c->chief.pid.node, MU__SCHEDULE, &error);
    refuse_closure(ctx, c, slot, &error);
}

bool mu__client_admits(struct mu__ctx *ctx, struct client_actor *c,
                       const struct closure_slot *slot)
{
    if (c->session.shared == NULL) {
        abort_slot(ctx, c, slot, "the coordinator was closed");
        return false;
    }
    c->session.arrived++;
    if (mu__client_phase(c) >= MU__SESSION_CANCELLING)
        refuse_cancelled(ctx, c, slot);
    else if (!c->chief.connected)
        refuse_no_chief(ctx, c, slot, "is not connected");
    else if (mu__send_is_forbidden(ctx, c->chief.pid.node, MU__SCHEDULE, NULL))
        refuse_forbidden(ctx, c, slot);
    else
        return true;
    return false;
}

void mu__client_not_sent(struct mu__ctx *ctx, struct client_actor *c, uint64_t token,
                         int code)
{
    struct closure_slot slot = mu__client_take_slot(ctx, c, token);
    char why[96];

    (void)snprintf(why, sizeof why, "could not be sent a closure: %s", mu_strerror(code));
    refuse_no_chief(ctx, c, &slot, why);
}

void mu__client_not_stored(struct mu__ctx *ctx, struct client_actor *c, uint64_t token)
{
    struct closure_slot slot = mu__client_take_slot(ctx, c, token);

    refuse_no_memory(ctx, c, &slot);
}

struct closure_slot mu__client_make_slot(struct mu__schedule *body, uint64_t bytes)
{
    struct closure_slot slot = {.bytes = (uint32_t)bytes, .state = SLOT_BLOCKED};

    slot.own_error = (body->flags & MU__CLOSURE_OWN_ERROR) != 0;
    slot.has_holds = (body->flags & MU__CLOSURE_HOLDS) != 0;
    body->flags &= ~(uint32_t)(MU__CLOSURE_OWN_ERROR | MU__CLOSURE_HOLDS);
    return slot;
}

static void fail_lost(struct mu__ctx *ctx, struct client_actor *c,
                      const struct closure_slot *slot, const struct mu__schedule *body,
                      uint32_t lost)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s", mu__client_lost_input);
    error.kind = MU_ERROR_INPUT;
    mu__client_name_failure(body, lost, &error);
    mu__client_failed(ctx, c, slot, &error);
}

/* Give a new closure a slot, and its message the token. False: it was resolved. */
static bool admit_new_closure(struct mu__ctx *ctx, struct client_actor *c,
                              struct mu__schedule *body, const struct closure_slot *slot)
{
    uint32_t lost;

    if (!mu__client_admits(ctx, c, slot))
        return false;
    lost = slot->has_holds ? mu__holds_lost(body, c->chief.epoch) : 0;
    if (lost > 0) {
        fail_lost(ctx, c, slot, body, lost);
        return false;
    }
    body->drop_result = slot->future == NULL;
    body->token = mu__client_add_slot(c, slot);
    if (body->token == 0)
        refuse_no_memory(ctx, c, slot);
    return body->token != 0;
}

static void on_submit(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__schedule *body = mu__body(msg);
    struct closure_slot slot =
        mu__client_make_slot(body, (uint64_t)body->args.head_size + body->args.tail_size);

    slot.future = ((struct mu__submit *)mu__body(msg))->future;
    if (admit_new_closure(ctx, c, body, &slot))
        mu__client_dispatch(ctx, c, body->token, mu__claim(ctx));
    else if (slot.has_holds)
        mu__holds_drop(body);
}

/* ---- cancelling ---- */

static void cancel_at_chief(struct mu__ctx *ctx, struct client_actor *c, uint64_t token)
{
    const struct mu__cancel_closure body = {.token = token};

    if (mu__send_body(ctx, c->chief.pid, MU__CANCEL_CLOSURE, &body, sizeof body) != 0)
        mu__log(ctx, MU__LOG_WARN, "failed to send a cancellation to the chief");
}

static void cancel_closure_slot(struct mu__ctx *ctx, struct client_actor *c,
                                uint64_t token)
{
    struct closure_slot slot;
    mu_error error = {0};

    if (c->slots.items[token - 1].state == SLOT_SENT) {
        cancel_at_chief(ctx, c, token);
        return;
    }
    slot = mu__client_take_slot(ctx, c, token);
    (void)mu_error_set(&error, -MU_ECANCELLED, "cancelled before it ran");
    mu__client_cancelled(ctx, c, &slot, &error);
}

static void cancel_request(struct mu__ctx *ctx, uint64_t request)
{
    const struct mu__actor_request_cancel body = {.request = request};

    (void)mu__send_body(ctx, (mu__pid){MU__NODE_SELF, MU__ACTORS},
                        MU__ACTOR_REQUEST_CANCEL, &body, sizeof body);
}

static void on_cancel_future(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    mu_remote_value *future = ((struct mu__cancel_future *)mu__body(msg))->future;

    if (future->request != 0)
        cancel_request(ctx, future->request);
    else if (future->token != 0)
        cancel_closure_slot(ctx, c, future->token);
    mu__held_unref(&future->held);
}

/* A call to an actor has ended. */
static void on_future_resolved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    mu_remote_value *future = ((struct mu__future_resolved *)mu__body(msg))->future;

    mu__client_resolve(ctx, state, future, MU_REMOTE_READY);
}

/* ---- results and errors of closures ---- */

static void read_resolved_error(const struct mu__resolved *body, mu_error *ret_error)
{
    *ret_error = (mu_error){
        .code = -(int)body->code,
        .attempt = body->attempt,
        .kind = (int)body->error_kind,
        .closure = body->closure,
    };
    mu__view_copy(body->task, ret_error->task, sizeof ret_error->task);
    mu__view_copy(body->function, ret_error->function, sizeof ret_error->function);
    mu__view_copy(body->message, ret_error->message, sizeof ret_error->message);
    mu__view_copy(body->detail, ret_error->detail, sizeof ret_error->detail);
    mu__make_utf8(ret_error->message);
    mu__make_utf8(ret_error->detail);
}

/* Hand the bytes that came with an error to the program; returns their number. */
static uint32_t keep_data(struct client_actor *c, const struct mu__resolved *body)
{
    struct mu__session *session = c->session.shared;
    mu_value *data;

    if (body->error_data.size == 0 || session == NULL || session->keep_data == NULL)
        return 0;
    data = mu_value_bytes(body->error_data.data, body->error_data.size);
    if (data == NULL)
        return 0;
    c->error_data_last = c->error_data_last == UINT32_MAX ? 1 : c->error_data_last + 1;
    session->keep_data(session, c->error_data_last, data);
    return c->error_data_last;
}

static void finish_closure_slot(struct mu__ctx *ctx, struct client_actor *c,
                                const struct closure_slot *slot,
                                const struct mu__resolved *body)
{
    mu_remote_value *future = mu__slot_future(slot);
    bool pinned = body->pinned && body->closure != 0;

    mu__client_add(&c->session.shared->finished, 1);
    if (future != NULL) {
        future->closure = body->closure;
        future->attempt = body->attempt;
    }
    if (future != NULL && pinned) {
        future->held.number = body->closure;
        future->held.chief_epoch = c->chief.epoch;
    }
    if (future != NULL)
        mu__client_resolve(ctx, c, future, pinned ? MU__REMOTE_PINNED : MU_REMOTE_READY);
    else if (pinned)
        mu__client_release(ctx, c, body->closure);
    mu__client_count_resolved(ctx, c, slot->bytes);
}

/* Set the future's result; false with an error: it cannot be read. */
static bool read_result(const struct mu__resolved *body, mu_remote_value *future,
                        mu_error *ret_error)
{
    char why[128] = "out of memory";

    if (future == NULL || body->result.head_size == 0 ||
        mu__value_unpack(&body->result, why, sizeof why, &future->result) == 0)
        return true;
    read_resolved_error(body, ret_error);
    (void)mu_error_set(ret_error, -MU_EDATALOSS, "the result cannot be read: %s", why);
    return false;
}

void mu__client_ended(struct mu__ctx *ctx, struct client_actor *c,
                      const struct closure_slot *slot, const mu_error *error)
{
    if (error->code == -MU_ECANCELLED)
        mu__client_cancelled(ctx, c, slot, error);
    else
        mu__client_failed(ctx, c, slot, error);
}

static void on_closure_resolved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__resolved *body = mu__body(msg);
    struct closure_slot slot;
    mu_error error;

    if (!mu__client_is_from_chief(c, msg) || !is_slot_taken(c, body->token) ||
        c->slots.items[body->token - 1].state != SLOT_SENT)
        return;
    slot = mu__client_take_slot(ctx, c, body->token);
    if (body->attempt > 1)
        mu__client_add(&c->session.shared->retried, body->attempt - 1);
    if (body->code != 0) {
        read_resolved_error(body, &error);
        error.data = keep_data(c, body);
        mu__client_ended(ctx, c, &slot, &error);
    } else if (read_result(body, mu__slot_future(&slot), &error)) {
        finish_closure_slot(ctx, c, &slot, body);
    } else {
        mu__client_ended(ctx, c, &slot, &error);
    }
}

/* An error of no closure. After an error of the chief itself (MU_ERROR_CHIEF) the chief
 * goes on, and closures are not cancelled. */
static void on_fault(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__fault *body = mu__body(msg);
    mu_error error = {.code = -(int)body->code, .kind = (int)body->error_kind};

    if (!mu__client_is_from_chief(c, msg) || body->code == 0)
        return;
    mu__view_copy(body->task, error.task, sizeof error.task);
    mu__view_copy(body->message, error.message, sizeof error.message);
    if (error.kind == MU_ERROR_CHIEF)
        mu__client_note_notice(c, &error);
    else
        mu__client_note_error(c, &error);
    mu__client_review(ctx, c);
}

/* ---- calls of the program ---- */

static bool begin_client_session(struct mu__ctx *ctx, struct client_actor *c,
                                 struct mu__client_call *call)
{
    if (c->session.shared != NULL) {
        mu__call_complete(&call->call,
                          mu_error_set(&call->call.error, -MU_EEXISTS,
                                       "this node's coordinator is open already"));
        return false;
    }
    c->session = (struct client_session){.shared = call->session};
    atomic_store(&call->session->chief_epoch, c->chief.epoch);
    if (c->chief.connected)
        mu__client_room_open(ctx, c);
    return true;
}

static bool is_about_session(const struct mu__call *call)
{
    return call->operation == MU__CLIENT_JOIN || call->operation == MU__CLIENT_RAISE ||
           call->operation == MU__CLIENT_ROOM;
}

static void complete_closed(struct mu__ctx *ctx, struct client_actor *c,
                            struct mu__call *call)
{
    mu__client_complete(ctx, c, call,
                        mu_error_set(&call->error, -MU_ECLOSED,
                                     "the coordinator is being closed"));
}

/* Cancel all closures of the session, as after an error. Waiting calls about the session
 * fail before the CLOSE call is completed. */
static void end_client_session(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__call **at = &c->calls.waiting;

    if (c->session.shared != NULL && mu__client_phase(c) == MU__SESSION_FINE)
        mu__client_set_phase(c, MU__SESSION_FAILED);
    while (*at != NULL) {
        struct mu__call *call = *at;

        if (!is_about_session(call)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        complete_closed(ctx, c, call);
    }
    mu__client_room_end(ctx, c, "the coordinator is being closed");
    c->session.ending = true;
    mu__client_start_cancelling(ctx, c);
}

static void call_session(struct mu__ctx *ctx, struct client_actor *c,
                         struct mu__client_call *call)
{
    call->call.timer = 0;
    if (is_about_session(&call->call) && (c->session.shared == NULL || c->session.ending))
        complete_closed(ctx, c, &call->call);
    else if (call->call.operation == MU__CLIENT_ROOM)
        mu__client_room_wait(ctx, c, call);
    else if (mu__client_try(ctx, c, &call->call))
        return;
    else if (call->at_once)
        mu__call_complete(&call->call, -MU_EAGAIN);
    else
        mu__client_call_wait(ctx, c, &c->calls.waiting, &call->call,
                             call->call.timeout_ms);
}

static void on_client_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__client_call *call = body->call;

    switch (call->call.operation) {
    case MU__CLIENT_FETCH:
        mu__client_fetch(ctx, c, call);
        break;
    case MU__CLIENT_STATUS:
    case MU__CLIENT_EXPLAIN:
    case MU__CLIENT_REQUEST:
        mu__client_request(ctx, c, call);
        break;
    case MU__CLIENT_OPEN:
        if (begin_client_session(ctx, c, call))
            call_session(ctx, c, call);
        break;
    case MU__CLIENT_CLOSE:
        end_client_session(ctx, c);
        call_session(ctx, c, call);
        break;
    default:
        call_session(ctx, c, call);
        break;
    }
}

static void on_client_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;

    if (msg->from.node == MU__NODE_SELF && c->chief.connected)
        (void)mu__send(ctx, c->chief.pid, mu__claim(ctx));
}

static void on_client_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__timer *body = mu__body(msg);

    if (!mu__client_timeout_passed(ctx, c, body->timer) &&
        !mu__client_room_timer(ctx, c, body->timer))
        mu__client_over_deadline(ctx, c, body->timer);
}

/* ---- node news ---- */

static void on_client_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__node_up *body = mu__body(msg);

    if (c->config.is_chief || !mu__view_is(body->type, "chief"))
        return;
    c->chief.connected = true;
    c->chief.pid = (mu__pid){body->node, MU__SUPERVISOR};
    c->chief.reported_error[0] = '\0';
    if (c->session.shared != NULL)
        mu__client_room_open(ctx, c);
    mu__client_send_waiting(ctx, c);
    mu__client_review(ctx, c);
}

/* Cancel all outstanding closures, sent or not; the error is noted once. */
static void abort_all_slots(struct mu__ctx *ctx, struct client_actor *c,
                            const mu_error *error)
{
    bool is_reported = false;

    for (uint32_t i = 0; i < c->slots.count; i++) {
        struct closure_slot slot;

        if (!is_slot_taken(c, (uint64_t)i + 1))
            continue;
        if (!is_reported)
            mu__client_note_error(c, error);
        is_reported = true;
        slot = mu__client_take_slot(ctx, c, (uint64_t)i + 1);
        mu__client_cancelled(ctx, c, &slot, error);
    }
}

static void on_client_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__node_down *body = mu__body(msg);
    char words[CHIEF_ERROR_BYTES_MAX];
    mu_error error = {0};

    if (!c->chief.connected || c->chief.pid.node != body->node)
        return;
    c->chief.connected = false;
    c->chief.epoch++;
    if (c->session.shared != NULL)
        atomic_store(&c->session.shared->chief_epoch, c->chief.epoch);
    mu__view_copy(body->reason, words, sizeof words);
    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s is lost: %s", c->config.chief,
                       words);
    error.kind = MU_ERROR_CHIEF;
    (void)snprintf(error.task, sizeof error.task, "/job:chief/task:0");
    abort_all_slots(ctx, c, &error);
    mu__client_room_forget(c);
    mu__client_forget_pinned(ctx, c, &error);
    mu__client_fail_requests(ctx, c, &error);
}

static void on_client_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__node_trouble *body = mu__body(msg);
    mu_error error;

    if (!mu__view_is(body->type, "chief"))
        return;
    mu__view_copy(body->reason, c->chief.reported_error, sizeof c->chief.reported_error);
    if (!body->final || c->chief.connected)
        return;
    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s: %s", c->config.chief,
                       c->chief.reported_error);
    mu__client_fail_calls(ctx, c, &c->calls.waiting, &error);
}

/* ---- beginning and end ---- */

static int init_client(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct client_actor *c = state;

    c->config = *(const struct mu__client_config *)arg;
    assert(c->config.queue_max > 0);
    if (c->config.queue_bytes_max == 0)
        c->config.queue_bytes_max = QUEUE_BYTES_DEFAULT;
    if (c->config.is_chief) {
        c->chief.connected = true;
        c->chief.pid = (mu__pid){MU__NODE_SELF, MU__SUPERVISOR};
    }
    return mu__watch_nodes(ctx);
}

/* Futures are aborted and calls fail with -MU_ECLOSED. Closures whose inputs are aborted
 * here are not launched: they are aborted, too. */
static void end_client(struct mu__ctx *ctx, void *state)
{
    struct client_actor *c = state;
    mu_error error = {0};

    c->chief.connected = false;
    for (uint32_t i = 0; i < c->slots.count; i++)
        if (is_slot_taken(c, (uint64_t)i + 1)) {
            struct closure_slot slot = mu__client_take_slot(ctx, c, (uint64_t)i + 1);

            abort_slot(ctx, c, &slot, "the node was closed");
        }
    (void)mu_error_set(&error, -MU_ECLOSED, "the node was closed");
    mu__client_forget_pinned(ctx, c, &error);
    (void)mu_error_set(&error, -MU_ECLOSED, "the node is being closed");
    mu__client_fail_calls(ctx, c, &c->calls.waiting, &error);
    mu__client_fail_calls(ctx, c, &c->calls.requested, &error);
    mu__client_room_end(ctx, c, "the node is being closed");
    mu__client_room_done(c);
    mu__map_done(&c->calls.timeouts);
    mu__map_done(&c->pending.deadlines);
    mu__map_done(&c->fetching);
    mu__free_array(c->slots.items);
}

static const struct mu__handler handlers[] = {
    {MU__SUBMIT, on_submit},
    {MU__SCHEDULE_PENDING, mu__client_on_pending},
    {MU__CANCEL_FUTURE, on_cancel_future},
    {MU__FUTURE_RESOLVED, on_future_resolved},
    {MU__RESOLVED, on_closure_resolved},
    {MU__FETCHED, mu__client_on_fetched},
    {MU__RELEASE_HELD, mu__client_on_release},
    {MU__FAULT, on_fault},
    {MU__REPORT, on_client_report},
    {MU__STATUS, mu__client_on_status},
    {MU__PER_WORKER_MADE, mu__client_on_made},
    {MU__DRAINED, mu__client_on_drained},
    {MU__ROOM_ALLOW, mu__client_on_allow},
    {MU__CALL, on_client_call},
    {MU__TIMER, on_client_timer},
    {MU__NODE_UP, on_client_node_up},
    {MU__NODE_DOWN, on_client_node_down},
    {MU__NODE_TROUBLE, on_client_node_trouble},
};

const struct mu__behavior mu__client = {
    .name = "client",
    .state_size = sizeof(struct client_actor),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* queue_max bounds scheduled closures */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_client,
    .after_batch = mu__client_after_batch,
    .done = end_client,
};
