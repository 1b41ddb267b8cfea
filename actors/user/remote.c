/* What the offices of other nodes say. Nothing of it is believed: numbers are looked up,
 * answers are taken from the node that was called alone, and who sends more than it has
 * credit for is refused. */
#include "actors/keeper/hooks.h"
#include "actors/names/owner_marks.h"
#include "actors/names/relays.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse_remote(struct office *office, const struct answer_to *to,
                          const mu_actor_type *type, struct mu__view method, int code,
                          const char *words)
{
    char name[64];
    mu_error error;

    mu__view_copy(method, name, sizeof name);
    (void)mu_error_set(&error, code, "%s", words);
    mu__answer_error(office, type, name, MU_RAN_NO, &error);
    if (code == -MU_ENOTFOUND && type == NULL)
        error.kind = MU__ERROR_NO_ACTOR;
    mu__answer(office, to, NULL, &error);
}

/* ---- messages ---- */

/* What the message is as mail; NULL: it was answered with an error. */
static struct mail *read_message(struct office *office, const struct peer *peer,
                                 const struct mu__msg *msg, const mu_actor *actor,
                                 const struct answer_to *answer)
{
    const struct mu__actor_message *body = (const void *)msg->body;
    const mu_actor_method *method = mu__method_find(actor->type, body->method);
    struct mail *mail = NULL;
    mu_value *args = NULL;
    char why[128] = "out of memory";
    mu_error error;
    const int rv = body->owner.size == 0
                       ? 0
                       : mu__owner_check(office, peer, body->owner, body->epoch, &error);

    if (rv != 0)
        refuse_remote(office, answer, actor->type, body->method, rv, error.message);
    else if (method == NULL)
        refuse_remote(office, answer, actor->type, body->method, -MU_ENOTFOUND,
                      "the actor has no such method");
    else if (body->args.head_size > 0 &&
             mu__value_unpack(&body->args, why, sizeof why, &args) != 0)
        refuse_remote(office, answer, actor->type, body->method, -MU_EDATALOSS, why);
    else
        mail = mu__mail_new(office, MAIL_MESSAGE);
    if (mail == NULL) {
        mu_value_free(args);
        return NULL;
    }
    mail->actor = body->actor;
    mail->method = method;
    mail->value = args;
    mail->bytes = body->args.head_size + body->args.tail_size;
    mail->answer = *answer;
    mail->from_node = answer->node;
    if (body->timeout_ms != 0)
        mail->due_ms = mu__now_ms(&office->ctx) + body->timeout_ms % (UINT64_C(1) << 32);
    if (body->chain.size > 0)
        mail->chain = mu__chain_copy(body->chain);
    return mail;
}

void mu__remote_on_message(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_message *body = mu__body(msg);
    struct office *office = state;
    const struct answer_to answer = {msg->from.node, body->call};
    struct peer *peer = mu__peer_of_node(office, msg->from.node);
    mu_actor *actor = mu__actor_find(office, body->actor);
    struct mail *mail;

    (void)ctx;
    if (peer == NULL)
        return;
    if (actor == NULL) {
        mu__way_say_ended(office, peer, body->actor);
        refuse_remote(office, &answer, NULL, body->method, -MU_ENOTFOUND,
                      "there is no such actor");
        return;
    }
    if (!mu__way_arrived(peer, body->actor,
                         body->args.head_size + body->args.tail_size)) {
        refuse_remote(office, &answer, actor->type, body->method, -MU_EEXHAUSTED,
                      "more messages than the actor has room for");
        return;
    }
    mail = read_message(office, peer, msg, actor, &answer);
    if (mail == NULL) {
        const struct mail taken = {
            .actor = body->actor,
            .bytes = body->args.head_size + body->args.tail_size,
            .from_node = msg->from.node,
        };

        mu__way_taken(office, &taken);
        return;
    }
    actor->mail_count++;
    actor->mail_bytes += mail->bytes;
    mu__message_deliver(office, mail);
}

struct pending_call *mu__remote_find_call(const struct office *office, uint64_t id,
                                          const struct mu__msg *msg)
{
    struct pending_call *call = id == 0 ? NULL : mu__map_get(&office->calls, id);

    if (call != NULL && call->peer != NULL && call->peer->number == msg->from.node)
        return call;
    call = mu__kept_call_find(office, id);
    return call != NULL && mu__kept_is_answer_from(office, call, msg->from.node) ? call
                                                                                 : NULL;
}

static void read_remote_error(const struct mu__actor_answer *body, mu_error *ret_error)
{
    *ret_error = (mu_error){
        .code = -(int)body->code,
        .kind = (int)body->error_kind,
        .ran = (int)body->ran,
    };
    mu__view_copy(body->task, ret_error->task, sizeof ret_error->task);
    mu__view_copy(body->function, ret_error->function, sizeof ret_error->function);
    mu__view_copy(body->message, ret_error->message, sizeof ret_error->message);
}

void mu__remote_on_answer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_answer *body = mu__body(msg);
    struct office *office = state;
    struct pending_call *call = mu__remote_find_call(office, body->call, msg);
    mu_value *value = NULL;
    mu_error error;
    char why[128] = "out of memory";

    (void)ctx;
    if (call == NULL) {
        office->late_answers++;
        return;
    }
    if (body->code != 0) {
        read_remote_error(body, &error);
        mu__call_end(office, call, NULL, &error);
    } else if (body->result.head_size > 0 &&
               mu__value_unpack(&body->result, why, sizeof why, &value) != 0) {
        read_remote_error(body, &error);
        (void)mu_error_set(&error, -MU_EDATALOSS, "the answer cannot be read: %s", why);
        error.kind = MU_ERROR_ACTOR;
        error.ran = MU_RAN_YES;
        mu__call_end(office, call, NULL, &error);
    } else {
        mu__call_end(office, call, value, NULL);
    }
}

void mu__remote_on_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_cancel *body = mu__body(msg);
    mu_actor *actor = mu__actor_find(state, body->actor);
    struct mail *mail =
        actor == NULL ? NULL : MU__LIST_FIRST(&actor->mail, struct mail, node);

    (void)ctx;
    if (body->actor == MU__ACTORS)
        mu__relay_cancel(state, msg->from.node, body->call);
    while (mail != NULL &&
           (mail->kind != MAIL_MESSAGE || mail->answer.call != body->call ||
            mail->answer.node != msg->from.node))
        mail = MU__LIST_NEXT(mail, struct mail, node);
    if (mail != NULL)
        mu__mail_remove(actor, mail);
}

/* ---- actors ---- */

void mu__remote_on_start(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_start *body = mu__body(msg);
    struct office *office = state;
    const struct answer_to answer = {msg->from.node, body->call};
    const mu_actor_options given = {
        .size = sizeof given,
        .flags = body->flags,
        .mailbox_max = body->mailbox_max,
        .mailbox_bytes_max = body->mailbox_bytes_max,
    };
    mu_actor_options options;
    struct mail *start = NULL;
    mu_value *args = NULL;
    mu_error error;
    int rv = mu__actors_read_options(&given, &error, &options);

    (void)ctx;
    if (rv == 0 && body->args.head_size > 0) {
        rv = mu__value_unpack(&body->args, error.message, sizeof error.message, &args);
        error.code = -MU_EDATALOSS;
    }
    if (rv == 0)
        rv = mu__spawn_user(office, body->type, NULL, args, &options, &error, &start);
    if (rv != 0) {
        refuse_remote(office, &answer, NULL, mu__view_str("start"), error.code,
                      error.message);
        return;
    }
    start->answer = answer;
    mu__turn_do(office, start);
}

void mu__remote_on_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_stop *body = mu__body(msg);

    (void)ctx;
    mu__actor_request_stop(state, mu__actor_find(state, body->actor), (int)body->how);
}

/* ---- monitors ---- */

static void refuse_watch(struct office *office, struct user_watch *watch)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EEXHAUSTED, "a node may have %d monitors on %s",
                       MU__ACTOR_WATCHERS_MAX, office->config.task);
    mu__answer_error(office, NULL, NULL, MU_RAN_UNKNOWN, &error);
    mu__watch_down(office, watch, &error);
}

void mu__remote_on_watch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_watch *body = mu__body(msg);
    struct office *office = state;
    struct peer *peer = mu__peer_of_node(office, msg->from.node);
    struct user_watch *watch = peer == NULL ? NULL : calloc(1, sizeof *watch);

    (void)ctx;
    if (watch == NULL)
        return;
    watch->id = body->monitor;
    watch->watcher_peer = peer;
    watch->address = mu__actor_address(office, body->actor);
    peer->watchers_count++;
    mu__list_append(&peer->watchers, &watch->of_watcher);
    if (peer->watchers_count <= MU__ACTOR_WATCHERS_MAX)
        mu__watch_begin(office, watch);
    else
        refuse_watch(office, watch);
}

void mu__remote_on_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_unwatch *body = mu__body(msg);
    struct peer *peer = mu__peer_of_node(state, msg->from.node);
    struct user_watch *watch =
        peer == NULL ? NULL
                     : MU__LIST_FIRST(&peer->watchers, struct user_watch, of_watcher);

    (void)ctx;
    while (watch != NULL && watch->id != body->monitor)
        watch = MU__LIST_NEXT(watch, struct user_watch, of_watcher);
    if (watch != NULL)
        mu__watch_free(state, watch);
}

void mu__remote_on_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_down *body = mu__body(msg);
    struct office *office = state;
    struct user_watch *watch =
        body->monitor == 0 ? NULL : mu__map_get(&office->watches, body->monitor);
    mu_error error = {.code = -(int)body->code, .kind = (int)body->error_kind};

    (void)ctx;
    if (watch == NULL || watch->target_peer == NULL ||
        watch->target_peer->number != msg->from.node)
        return;
    mu__view_copy(body->task, error.task, sizeof error.task);
    mu__view_copy(body->function, error.function, sizeof error.function);
    mu__view_copy(body->message, error.message, sizeof error.message);
    mu__watch_down(office, watch, error.code == 0 ? NULL : &error);
}
