#include "actors/client/internal.h"

#include "actors/client/admission.h"
#include "actors/client/holds.h"
#include "actors/packing.h"
#include "runtime/message/value_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it hears. */
static void on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_cancel_closure(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_resolved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_fault(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__SCHEDULE, on_schedule},
    {MU__SCHEDULE_PENDING, mu__client_on_pending},
    {MU__CANCEL_CLOSURE, on_cancel_closure},
    {MU__RESOLVED, on_resolved},
    {MU__FETCHED, mu__client_on_fetched},
    {MU__RELEASE, mu__client_on_release},
    {MU__FAULT, on_fault},
    {MU__REPORT, on_report},
    {MU__STATUS, mu__client_on_status},
    {MU__PER_WORKER_MADE, mu__client_on_made},
    {MU__DRAINED, mu__client_on_drained},
    {MU__ROOM_ALLOW, mu__client_on_allow},
    {MU__CALL, on_call},
    {MU__TIMER, on_timer},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
};

enum { SLOTS_FIRST = 1024 };

#define QUEUE_BYTES_DEFAULT (UINT64_C(1) << 30)

/* ---- slots ---- */

static uintptr_t link_to(uint32_t slot)
{
    return ((uintptr_t)slot + 1) * 2 + SLOT_FREE;
}

static bool make_slots(struct client *c)
{
    uint32_t count = c->slots_count == 0 ? SLOTS_FIRST : c->slots_count * 2;

    if (!mu__grow_array((void **)&c->slots, count, sizeof *c->slots))
        return false;
    for (uint32_t i = count; i-- > c->slots_count;) {
        c->slots[i].of = c->free_first;
        c->free_first = link_to(i);
    }
    c->slots_count = count;
    return true;
}

uint64_t mu__client_add_slot(struct client *c, const struct slot *slot)
{
    mu_remote_value *future;
    uint32_t i;

    if (c->free_first == SLOT_FREE && !make_slots(c))
        return 0;
    i = (uint32_t)(c->free_first / 2 - 1);
    c->free_first = c->slots[i].of;
    c->slots[i] = *slot;
    future = mu__slot_future(&c->slots[i]);
    if (future != NULL)
        future->place = i + 1;
    return (uint64_t)i + 1;
}

static bool is_taken(const struct client *c, uint64_t token)
{
    return token > 0 && token <= c->slots_count &&
           (c->slots[token - 1].of & SLOT_FREE) == 0;
}

struct slot mu__client_take_slot(struct mu__ctx *ctx, struct client *c, uint64_t token)
{
    uint32_t i = (uint32_t)(token - 1);
    struct slot slot = c->slots[i];

    if (slot.state == SLOT_SENT)
        mu__room_sent_done(&c->room, slot.bytes);
    else if (slot.state == SLOT_WAITS)
        mu__client_room_drop(ctx, c, i);
    c->slots[i].of = c->free_first;
    c->free_first = link_to(i);
    return slot;
}

/* ---- scheduling ---- */

/* One that no session counts. */
static void abort_slot(struct mu__ctx *ctx, struct client *c, const struct slot *slot,
                        const char *words)
{
    struct mu__pending_closure *closure = mu__slot_pending(slot);
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECLOSED, "%s", words);
    mu__client_resolve_error(ctx, c, mu__slot_future(slot), MU_REMOTE_ABORTED, &error);
    if (closure != NULL)
        mu__client_forget_pending(ctx, c, closure);
}

/* What keeps one closure from being scheduled keeps the others: only the first one tells
 * the program. */
static void refuse(struct mu__ctx *ctx, struct client *c, const struct slot *slot,
                   const mu_error *error)
{
    if (mu__client_phase(c) == MU__SESSION_FINE && !slot->own_error)
        mu__client_note_error(c, error);
    mu__client_cancelled(ctx, c, slot, error);
}

static void refuse_no_chief(struct mu__ctx *ctx, struct client *c,
                            const struct slot *slot, const char *why)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s %s", c->config.chief, why);
    error.kind = MU_ERROR_CHIEF;
    (void)snprintf(error.task, sizeof error.task, "/job:chief/task:0");
    refuse(ctx, c, slot, &error);
}

/* An error is large: every function that has one is off the way of those that go well. */
static void refuse_cancelled(struct mu__ctx *ctx, struct client *c,
                             const struct slot *slot)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECANCELLED, "cancelled after another closure's error");
    mu__client_cancelled(ctx, c, slot, &error);
}

static void refuse_no_memory(struct mu__ctx *ctx, struct client *c,
                             const struct slot *slot)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ENOMEM, "out of memory");
    refuse(ctx, c, slot, &error);
}

bool mu__client_admits(struct mu__ctx *ctx, struct client *c, const struct slot *slot)
{
    if (c->session == NULL) {
        abort_slot(ctx, c, slot, "the coordinator was closed");
        return false;
    }
    c->arrived++;
    if (mu__client_phase(c) >= MU__SESSION_CANCELLING)
        refuse_cancelled(ctx, c, slot);
    else if (!c->has_chief)
        refuse_no_chief(ctx, c, slot, "is not connected");
    else
        return true;
    return false;
}

void mu__client_not_sent(struct mu__ctx *ctx, struct client *c, uint64_t token, int code)
{
    struct slot slot = mu__client_take_slot(ctx, c, token);
    char why[96];

    (void)snprintf(why, sizeof why, "could not be sent a closure: %s", mu_strerror(code));
    refuse_no_chief(ctx, c, &slot, why);
}

void mu__client_not_kept(struct mu__ctx *ctx, struct client *c, uint64_t token)
{
    struct slot slot = mu__client_take_slot(ctx, c, token);

    refuse_no_memory(ctx, c, &slot);
}

struct slot mu__client_make_slot(struct mu__schedule *body, uintptr_t of, uint64_t bytes)
{
    struct slot slot = {.of = of, .bytes = (uint32_t)bytes, .state = SLOT_BLOCKED};

    slot.own_error = (body->flags & MU__CLOSURE_OWN_ERROR) != 0;
    slot.has_holds = (body->flags & MU__CLOSURE_HOLDS) != 0;
    body->flags &= ~(uint32_t)(MU__CLOSURE_OWN_ERROR | MU__CLOSURE_HOLDS);
    return slot;
}

static void fail_lost(struct mu__ctx *ctx, struct client *c, const struct slot *slot,
                      const struct mu__schedule *body, uint32_t lost)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s", mu__client_lost_input);
    error.kind = MU_ERROR_INPUT;
    mu__client_name_failure(body, lost, &error);
    mu__client_failed(ctx, c, slot, &error);
    mu__client_settle(ctx, c);
}

/* Whether the closure has a slot: then its token stands in the message. */
static bool take_in(struct mu__ctx *ctx, struct client *c, struct mu__schedule *body,
                    const struct slot *slot)
{
    uint32_t lost;

    if (!mu__client_admits(ctx, c, slot))
        return false;
    lost = slot->has_holds ? mu__holds_lost(body, c->life) : 0;
    if (lost > 0) {
        fail_lost(ctx, c, slot, body, lost);
        return false;
    }
    body->drop_result = slot->of == 0;
    body->token = mu__client_add_slot(c, slot);
    if (body->token == 0)
        refuse_no_memory(ctx, c, slot);
    return body->token != 0;
}

/* From the program, which put its future where the token goes, and holds where the
 * numbers of inputs go. */
static void on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__schedule *body = mu__body(msg);
    struct slot slot;

    if (msg->from.node != MU__NODE_SELF)
        return;
    slot = mu__client_make_slot(body, (uintptr_t)body->token,
                                (uint64_t)body->args.head_size + body->args.tail_size);
    if (take_in(ctx, c, body, &slot))
        mu__client_dispatch(ctx, c, body->token, mu__claim(ctx));
    else if (slot.has_holds)
        mu__holds_drop(body);
}

/* ---- cancelling ---- */

static void cancel_at_chief(struct mu__ctx *ctx, struct client *c, uint64_t token)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__CANCEL_CLOSURE);
    struct mu__cancel_closure *body;

    if (msg != NULL) {
        body = mu__body(msg);
        body->token = token;
    }
    if (mu__send(ctx, c->chief, msg) != 0)
        mu__log(ctx, MU__LOG_WARN, "the chief was not told to cancel a closure");
}

static void cancel(struct mu__ctx *ctx, struct client *c, uint64_t token)
{
    struct slot slot;
    mu_error error = {0};

    if (c->slots[token - 1].state == SLOT_SENT) {
        cancel_at_chief(ctx, c, token);
        return;
    }
    slot = mu__client_take_slot(ctx, c, token);
    (void)mu_error_set(&error, -MU_ECANCELLED, "cancelled before it ran");
    mu__client_cancelled(ctx, c, &slot, &error);
    mu__client_settle(ctx, c);
}

/* From the program, which put its future where the token goes, with a reference. */
static void on_cancel_closure(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__cancel_closure *body = mu__body(msg);
    mu_remote_value *future;

    if (msg->from.node != MU__NODE_SELF)
        return;
    future = (mu_remote_value *)(uintptr_t)body->token;
    if (future->place != 0)
        cancel(ctx, c, future->place);
    mu__held_unref(&future->held);
}

/* ---- what becomes of closures ---- */

static void read_error(const struct mu__resolved *body, mu_error *ret_error)
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

static void finish(struct mu__ctx *ctx, struct client *c, const struct slot *slot,
                   const struct mu__resolved *body)
{
    mu_remote_value *future = mu__slot_future(slot);
    bool kept = body->kept && body->closure != 0;

    mu__client_add(&c->session->finished, 1);
    if (future != NULL) {
        future->closure = body->closure;
        future->attempt = body->attempt;
    }
    if (future != NULL && kept) {
        future->held.number = body->closure;
        future->held.life = c->life;
    }
    if (future != NULL)
        mu__client_resolve(ctx, c, future, kept ? MU__REMOTE_KEPT : MU_REMOTE_READY);
    else if (kept)
        mu__client_release(ctx, c, body->closure);
    mu__client_count_resolved(ctx, c, slot->bytes);
}

/* Fills in the future's result; false when it cannot be read. */
static bool read_result(const struct mu__resolved *body, mu_remote_value *future,
                        mu_error *ret_error)
{
    char why[128] = "out of memory";

    if (future == NULL || body->result.head_size == 0 ||
        mu__value_unpack(&body->result, why, sizeof why, &future->result) == 0)
        return true;
    read_error(body, ret_error);
    (void)mu_error_set(ret_error, -MU_EDATALOSS, "the result cannot be read: %s", why);
    return false;
}

static void fail(struct mu__ctx *ctx, struct client *c, const struct slot *slot,
                 const mu_error *error)
{
    if (error->code == -MU_ECANCELLED)
        mu__client_cancelled(ctx, c, slot, error);
    else
        mu__client_failed(ctx, c, slot, error);
}

static void on_resolved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__resolved *body = mu__body(msg);
    struct slot slot;
    mu_error error;

    if (!c->has_chief || !mu__pid_equal(msg->from, c->chief) ||
        !is_taken(c, body->token) || c->slots[body->token - 1].state != SLOT_SENT)
        return;
    slot = mu__client_take_slot(ctx, c, body->token);
    if (body->attempt > 1)
        mu__client_add(&c->session->retried, body->attempt - 1);
    if (body->code != 0) {
        read_error(body, &error);
        fail(ctx, c, &slot, &error);
    } else if (read_result(body, mu__slot_future(&slot), &error)) {
        finish(ctx, c, &slot, body);
    } else {
        fail(ctx, c, &slot, &error);
    }
    mu__client_settle(ctx, c);
}

/* An error of no closure. A chief that tells of itself goes on, and so do closures. */
static void on_fault(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__fault *body = mu__body(msg);
    mu_error error = {.code = -(int)body->code, .kind = (int)body->error_kind};

    if (!c->has_chief || !mu__pid_equal(msg->from, c->chief) || body->code == 0)
        return;
    mu__view_copy(body->task, error.task, sizeof error.task);
    mu__view_copy(body->message, error.message, sizeof error.message);
    if (error.kind == MU_ERROR_CHIEF)
        mu__client_note_notice(c, &error);
    else
        mu__client_note_error(c, &error);
    mu__client_review(ctx, c);
    mu__client_settle(ctx, c);
}

/* ---- calls of the program ---- */

static bool begin_session(struct mu__ctx *ctx, struct client *c,
                          struct mu__client_call *call)
{
    if (c->session != NULL) {
        mu__call_complete(&call->call,
                          mu_error_set(&call->call.error, -MU_EEXISTS,
                                       "this node's coordinator is open already"));
        return false;
    }
    c->session = call->session;
    c->ending = false;
    c->arrived = 0;
    c->notice.code = 0;
    c->resolved = 0;
    c->bytes_resolved = 0;
    if (c->has_chief)
        mu__client_room_open(ctx, c);
    return true;
}

static bool is_about_session(const struct mu__call *call)
{
    return call->operation == MU__CLIENT_JOIN || call->operation == MU__CLIENT_RAISE ||
           call->operation == MU__CLIENT_ROOM;
}

static void complete_closed(struct mu__ctx *ctx, struct client *c, struct mu__call *call)
{
    mu__client_complete(ctx, c, call,
                        mu_error_set(&call->error, -MU_ECLOSED,
                                     "the coordinator is being closed"));
}

/* An open session is cancelled as a whole, as after an error. Those who wait for it hear
 * so, and nobody hears of it later than the one who ends it. */
static void end_session(struct mu__ctx *ctx, struct client *c)
{
    struct mu__call **at = &c->waiting;

    if (c->session != NULL && mu__client_phase(c) == MU__SESSION_FINE)
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
    c->ending = true;
    mu__client_start_cancelling(ctx, c);
    mu__client_settle(ctx, c);
}

/* Calls that are about the session as a whole. */
static void ask_session(struct mu__ctx *ctx, struct client *c,
                        struct mu__client_call *call)
{
    call->call.timer = 0;
    if (is_about_session(&call->call) && (c->session == NULL || c->ending))
        complete_closed(ctx, c, &call->call);
    else if (call->call.operation == MU__CLIENT_ROOM)
        mu__client_room_wait(ctx, c, call);
    else if (mu__client_try(ctx, c, &call->call))
        return;
    else if (call->at_once)
        mu__call_complete(&call->call, -MU_EAGAIN);
    else
        mu__client_hold(ctx, c, &c->waiting, &call->call);
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__client_call *call = body->call;

    switch (call->call.operation) {
    case MU__CLIENT_FETCH:
        mu__client_fetch(ctx, c, call);
        break;
    case MU__CLIENT_STATUS:
    case MU__CLIENT_EXPLAIN:
    case MU__CLIENT_ASK:
        mu__client_ask(ctx, c, call);
        break;
    case MU__CLIENT_OPEN:
        if (begin_session(ctx, c, call))
            ask_session(ctx, c, call);
        break;
    case MU__CLIENT_CLOSE:
        end_session(ctx, c);
        ask_session(ctx, c, call);
        break;
    default:
        ask_session(ctx, c, call);
        break;
    }
    mu__client_settle(ctx, c);
}

static void on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;

    if (msg->from.node == MU__NODE_SELF && c->has_chief)
        (void)mu__send(ctx, c->chief, mu__claim(ctx));
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__timer *body = mu__body(msg);

    if (!mu__client_over_limit(ctx, c, body->timer) &&
        !mu__client_room_timer(ctx, c, body->timer))
        mu__client_over_deadline(ctx, c, body->timer);
    mu__client_settle(ctx, c);
}

/* ---- node news ---- */

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__node_up *body = mu__body(msg);

    if (c->config.is_chief || !mu__view_is(body->type, "chief"))
        return;
    c->has_chief = true;
    c->chief = (mu__pid){body->node, MU__SUPERVISOR};
    c->trouble[0] = '\0';
    if (c->session != NULL)
        mu__client_room_open(ctx, c);
    mu__client_ask_waiting(ctx, c);
    mu__client_review(ctx, c);
}

/* What was scheduled there is aborted, and so is what waits here for that. */
static void abort_all(struct mu__ctx *ctx, struct client *c, const mu_error *error)
{
    bool is_told = false;

    for (uint32_t i = 0; i < c->slots_count; i++) {
        struct slot slot;

        if (!is_taken(c, (uint64_t)i + 1))
            continue;
        if (!is_told)
            mu__client_note_error(c, error);
        is_told = true;
        slot = mu__client_take_slot(ctx, c, (uint64_t)i + 1);
        mu__client_cancelled(ctx, c, &slot, error);
    }
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__node_down *body = mu__body(msg);
    char words[TROUBLE_BYTES_MAX];
    mu_error error = {0};

    if (!c->has_chief || c->chief.node != body->node)
        return;
    c->has_chief = false;
    c->life++;
    mu__view_copy(body->reason, words, sizeof words);
    (void)mu_error_set(&error, -MU_EUNAVAILABLE, "%s is lost: %s", c->config.chief,
                       words);
    error.kind = MU_ERROR_CHIEF;
    (void)snprintf(error.task, sizeof error.task, "/job:chief/task:0");
    abort_all(ctx, c, &error);
    mu__client_room_forget(c);
    mu__client_forget_kept(ctx, c, &error);
    mu__client_end_questions(ctx, c, &error);
    mu__client_settle(ctx, c);
}

static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client *c = state;
    struct mu__node_trouble *body = mu__body(msg);

    (void)ctx;
    if (mu__view_is(body->type, "chief"))
        mu__view_copy(body->reason, c->trouble, sizeof c->trouble);
}

/* ---- life ---- */

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct client *c = state;

    c->config = *(const struct mu__client_config *)arg;
    assert(c->config.queue_max > 0);
    if (c->config.queue_bytes_max == 0)
        c->config.queue_bytes_max = QUEUE_BYTES_DEFAULT;
    c->free_first = SLOT_FREE;
    if (c->config.is_chief) {
        c->has_chief = true;
        c->chief = (mu__pid){MU__NODE_SELF, MU__SUPERVISOR};
    }
    return mu__watch_nodes(ctx);
}

/* Whoever waits hears why; a closure that waits for another one hears nothing more. */
static void done(struct mu__ctx *ctx, void *state)
{
    struct client *c = state;
    mu_error error = {0};

    c->has_chief = false;
    for (uint32_t i = 0; i < c->slots_count; i++)
        if (is_taken(c, (uint64_t)i + 1)) {
            struct slot slot = mu__client_take_slot(ctx, c, (uint64_t)i + 1);

            abort_slot(ctx, c, &slot, "the node was closed");
        }
    (void)mu_error_set(&error, -MU_ECLOSED, "the node was closed");
    mu__client_forget_kept(ctx, c, &error);
    mu__client_close_calls(ctx, c, &c->waiting);
    mu__client_close_calls(ctx, c, &c->asking);
    mu__client_room_end(ctx, c, "the node is being closed");
    mu__client_room_done(c);
    mu__map_done(&c->limits);
    mu__map_done(&c->deadlines);
    mu__map_done(&c->fetching);
    mu__free_array(c->slots);
}

const struct mu__behavior mu__client = {
    .name = "client",
    .state_size = sizeof(struct client),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* queue_max bounds what is scheduled */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
