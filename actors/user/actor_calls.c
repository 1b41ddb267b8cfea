/* Calls, of actors and of threads: each ends once, by its answer, its timeout, the loss
 * of the other node, or the end of who waits for it. */
#include "actors/keeper/hooks.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include "actors/client/future.h"
#include "actors/names/naming.h"
#include "actors/names/relays.h"
#include "actors/user/batch.h"
#include "actors/user/clear.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the timer of all deadlines ---- */

static void arm_deadlines(struct office *office, uint64_t due_ms)
{
    uint64_t now_ms;

    if (office->timer != 0 && office->timer_ms <= due_ms)
        return;
    now_ms = mu__office_now_ms(office);
    mu__timer_cancel(&office->ctx, office->timer);
    office->timer = mu__timer_set(&office->ctx, due_ms > now_ms ? due_ms - now_ms : 0,
                                  OFFICE_TIMER_DEADLINES);
    office->timer_ms = due_ms;
}

static void say_timeout(struct office *office, struct pending_call *call)
{
    char words[400];
    char to[MU__ADDRESS_TEXT_MAX];

    mu__address_write(&call->to, to);
    if (call->to.name[0] != '\0' && call->peer == NULL && call->waiting == NULL)
        mu__naming_explain(office, call, words, sizeof words);
    else if (call->to.incarnation == 0)
        (void)snprintf(words, sizeof words,
                       "/job:%s/task:%" PRIu32 " was not connected within %" PRId64 " ms",
                       call->to.type, call->to.index, call->timeout_ms);
    else
        (void)snprintf(words, sizeof words,
                       "%s of %s was not answered within %" PRId64 " ms", call->method,
                       to, call->timeout_ms);
    mu__call_fail(office, call, -MU_EDEADLINE, words);
}

void mu__calls_on_timer(struct office *office)
{
    struct mu__deadline *due;
    uint64_t next_ms;

    office->timer = 0;
    while ((due = mu__deadlines_pop(&office->deadlines, mu__now_ms(&office->ctx))) !=
           NULL) {
        struct pending_call *call = (struct pending_call *)due;

        call->is_begun = false;
        say_timeout(office, call);
    }
    next_ms = mu__deadlines_next_ms(&office->deadlines);
    if (next_ms != UINT64_MAX)
        arm_deadlines(office, next_ms);
}

/* ---- making and freeing ---- */

struct pending_call *mu__call_new(struct office *office, const mu_address *to,
                                  const char *method, int64_t timeout_ms)
{
    struct pending_call *call = office->spare_calls;
    size_t size = strlen(method);

    if (call != NULL)
        office->spare_calls = (struct pending_call *)(void *)call->of_owner.next;
    else
        call = malloc(sizeof *call);
    if (call == NULL)
        return NULL;
    mu__clear(call, offsetof(struct pending_call, to));
    call->id = ++office->number_next;
    call->to = *to;
    call->timeout_ms = timeout_ms;
    size = size < sizeof call->method ? size : sizeof call->method - 1;
    memcpy(call->method, method, size);
    call->method[size] = '\0';
    return call;
}

void mu__call_free(struct office *office, struct pending_call *call)
{
    mu__chain_unref(call->chain);
    mu_value_free(call->args);
    call->of_owner.next = (struct mu__list_node *)(void *)office->spare_calls;
    office->spare_calls = call;
}

void mu__calls_done(struct office *office)
{
    while (office->spare_calls != NULL) {
        struct pending_call *next =
            (struct pending_call *)(void *)office->spare_calls->of_owner.next;

        free(office->spare_calls);
        office->spare_calls = next;
    }
    mu__map_done(&office->calls);
}

int mu__call_begin(struct office *office, struct pending_call *call)
{
    uint64_t now_ms = mu__office_now_ms(office);
    uint64_t due_ms = now_ms + (uint64_t)call->timeout_ms;
    int rv;

    if (call->is_begun) { /* it goes to the next owner of a name */
        if (call->peer != NULL)
            mu__list_append(&call->peer->calls, &call->of_peer);
        if (call->kept.way != NULL)
            mu__kept_call_begin(office, call);
        return 0;
    }
    if (call->owner != NULL && mu__actor_ties_get(call->owner) == NULL)
        return -MU_ENOMEM;
    rv = mu__map_set(&office->calls, call->id, call);
    if (rv != 0)
        return rv;
    call->is_begun = true;
    mu__deadlines_add(&office->deadlines, now_ms, &call->deadline, due_ms);
    arm_deadlines(office, due_ms);
    if (call->owner != NULL)
        mu__list_append(&call->owner->ties->calls, &call->of_owner);
    else
        mu__list_append(&office->requests, &call->of_owner);
    if (call->peer != NULL)
        mu__list_append(&call->peer->calls, &call->of_peer);
    if (call->kept.way != NULL)
        mu__kept_call_begin(office, call);
    return 0;
}

/* Its message, if it waits here, is not answered any more. */
void mu__call_unlist(struct office *office, struct pending_call *call)
{
    if (mu__map_remove(&office->calls, call->id) == NULL)
        return;
    if (call->is_begun)
        mu__deadlines_remove(&office->deadlines, &call->deadline);
    call->is_begun = false;
    if (call->owner != NULL) {
        mu__list_remove(&call->owner->ties->calls, &call->of_owner);
        call->owner->calls_count--;
    } else {
        mu__list_remove(&office->requests, &call->of_owner);
    }
    if (call->peer != NULL)
        mu__list_remove(&call->peer->calls, &call->of_peer);
    if (call->kept.way != NULL)
        mu__kept_call_ended(office, call);
    if (call->waiting != NULL)
        call->waiting->call = NULL;
    call->waiting = NULL;
    if (call->named != NULL)
        mu__naming_drop(office, call->named);
}

void mu__call_leave_peer(struct pending_call *call)
{
    if (call->peer != NULL && call->is_begun)
        mu__list_remove(&call->peer->calls, &call->of_peer);
    call->peer = NULL;
    call->is_sent = false;
    if (call->waiting != NULL)
        call->waiting->call = NULL;
    call->waiting = NULL;
}

/* ---- ending ---- */

static void notify_owner(struct office *office, struct pending_call *call,
                         mu_value *value, const mu_error *error)
{
    struct mail *mail = mu__mail_notice(office, call->owner->number, MU_NOTICE_ANSWER,
                                        call->token, &call->to);

    if (mail == NULL) {
        mu_value_free(value);
        return;
    }
    mail->value = value;
    mail->error = error == NULL ? NULL : mu__error_copy(error);
    mail->code = error == NULL ? 0 : error->code;
    mail->chain = mu__chain_ref(call->chain);
}

static bool post_resolved(struct office *office, mu_remote_value *future)
{
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__FUTURE_RESOLVED);

    if (msg != NULL)
        ((struct mu__future_resolved *)mu__body(msg))->future = future;
    return mu__send(&office->ctx, (mu__pid){MU__NODE_SELF, MU__CLIENT}, msg) == 0;
}

/* The client, which has the waiters, resolves it. Without a client there are none. */
static void settle_future(struct office *office, mu_remote_value *future, mu_value *value,
                          const mu_error *error)
{
    future->result = value;
    if (error != NULL)
        future->error = mu__error_copy(error);
    if (error != NULL && future->error == NULL)
        future->error = &mu__error_lost;
    if (post_resolved(office, future))
        return;
    atomic_store_explicit(&future->state, MU_REMOTE_READY, memory_order_release);
    mu__held_unref(&future->held);
}

/* What was sent to a kept actor is not lost without a word. */
static void end_send(struct office *office, const struct pending_call *call,
                     mu_value *value, const mu_error *error)
{
    mu_value_free(value);
    if (error != NULL)
        mu__log(&office->ctx, MU__LOG_WARN,
                "what was sent to the actor \"%s\" %s: %s: %s", call->to.name,
                error->ran == MU_RAN_YES  ? "has failed"
                : error->ran == MU_RAN_NO ? "is lost"
                                          : "is perhaps lost",
                call->method, error->message);
}

static void free_thread_request(struct mu__thread_request *request)
{
    mu_value_free(request->args);
    free(request->spawned);
    free(request);
}

/* A call to a name whose owner was gone waits for the next one. */
static bool is_sent_again(struct office *office, struct pending_call *call,
                          const mu_error *error)
{
    return call->is_begun && error != NULL && error->kind == MU__ERROR_NO_ACTOR &&
           call->to.name[0] != '\0' && mu__naming_again(office, call);
}

void mu__call_end(struct office *office, struct pending_call *call, mu_value *value,
                  const mu_error *error)
{
    mu_error own;

    if (is_sent_again(office, call, error))
        return;
    if (error != NULL && error->kind == MU__ERROR_NO_ACTOR) {
        own = *error;
        own.kind = MU_ERROR_ACTOR;
        mu__naming_say_failure(office, call->to.name, &own);
        error = &own;
    }
    mu__call_unlist(office, call);
    if (call->owner != NULL) {
        notify_owner(office, call, value, error);
    } else if (call->request != NULL) {
        settle_future(office, call->request->future, value, error);
        free_thread_request(call->request);
    } else if (call->is_send) {
        end_send(office, call, value, error);
    } else if (call->relay != NULL) {
        mu__relay_end(office, call->relay, value, error);
    } else {
        mu__reader_answer(office, call->reader, value, error);
    }
    mu__call_free(office, call);
}

/* Nobody waits for it any more: its method is not begun if it has not. Returns what is
 * known of that. */
static int recall_message(struct office *office, struct pending_call *call)
{
    struct mail *waiting = call->waiting;
    struct mu__msg *msg;
    struct mu__actor_cancel *body;

    if (call->named != NULL)
        return MU_RAN_NO;
    if (call->kept.way != NULL)
        return call->is_sent ? MU_RAN_MAYBE : MU_RAN_NO;
    if (waiting != NULL) {
        mu_actor *at = mu__actor_any(office, waiting->actor);

        call->waiting = NULL;
        mu__mail_remove(at, waiting);
        return MU_RAN_NO;
    }
    if (call->peer == NULL)
        return call->to.incarnation == 0 ? MU_RAN_NO : MU_RAN_MAYBE;
    if (!call->is_sent) {
        mu__peer_unqueue(office, call->peer, call->id);
        return MU_RAN_NO;
    }
    msg = mu__msg_new(&office->ctx, MU__ACTOR_CANCEL);
    if (msg != NULL) {
        body = mu__body(msg);
        body->actor = call->to.number;
        body->call = call->id;
        mu__peer_send(office, call->peer, msg);
    }
    return MU_RAN_MAYBE;
}

void mu__call_fail(struct office *office, struct pending_call *call, int code,
                   const char *words)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s", words);
    error.kind = MU_ERROR_ACTOR;
    error.ran = recall_message(office, call);
    (void)snprintf(error.task, sizeof error.task, "/job:%s/task:%" PRIu32, call->to.type,
                   call->to.index);
    (void)snprintf(error.function, sizeof error.function, "%s", call->method);
    mu__call_end(office, call, NULL, &error);
}

void mu__call_forget(struct office *office, struct pending_call *call)
{
    (void)recall_message(office, call);
    mu__call_unlist(office, call);
    mu__call_free(office, call);
}
