/* What turns do at their ends, and how it is undone: a row for each kind. */
#include "actors/keeper/hooks.h"
#include "actors/names/naming.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include <stdlib.h>

/* ---- doing it ---- */

/* The call begins; false: it has ended, and the mail is freed. */
static bool begin_call(struct office *office, struct mail *mail)
{
    struct pending_call *call = mail->call;
    mu_error error;
    int rv = call == NULL ? 0 : mu__call_begin(office, call);

    if (rv == 0)
        return true;
    (void)mu_error_set(&error, rv, "no memory for a call");
    mu__answer_error(office, NULL, call->method, MU_RAN_NO, &error);
    mu__call_end(office, call, NULL, &error);
    mail->call = NULL;
    mu__mail_free(office, mail);
    return false;
}

static void do_message(struct office *office, struct mail *mail)
{
    struct pending_call *call = mail->call;

    if (call != NULL && !begin_call(office, mail))
        return;
    if (call != NULL) {
        call->waiting = mail;
        mail->answer = (struct answer_to){MU__NODE_SELF, call->id};
        mail->due_ms = call->deadline.due_ms;
        mail->chain = mu__chain_ref(call->chain);
    }
    mu__message_deliver(office, mail);
}

static void pack_chain(struct mu__msg *msg, const struct chain *chain)
{
    const struct mu__view text = {chain->text, chain->size};

    if (msg->kind == MU__ACTOR_RELAY)
        ((struct mu__actor_relay *)mu__body(msg))->chain = text;
    else
        ((struct mu__actor_message *)mu__body(msg))->chain = text;
}

static void do_remote(struct office *office, struct mail *mail)
{
    struct mu__msg *msg = mail->msg;
    struct chain *chain = mail->call == NULL ? NULL : mail->call->chain;

    if (!begin_call(office, mail))
        return;
    mail->msg = NULL;
    if (chain != NULL && !chain->is_closed)
        pack_chain(msg, chain);
    if (mail->call != NULL)
        mail->call->is_sent = mail->peer->number != 0;
    mu__peer_send(office, mail->peer, msg);
    mu__mail_free(office, mail);
}

static void do_kept_call(struct office *office, struct mail *mail)
{
    mu__kept_call_unmake(office, mail->call);
    if (begin_call(office, mail))
        mu__mail_free(office, mail);
}

static void do_start(struct office *office, struct mail *mail)
{
    mu_actor *actor = mu__actor_find(office, mail->actor);

    if (actor == NULL)
        mu__answer_refused(office, mail, NULL, -MU_ENOTFOUND, "the actor has ended");
    else
        mu__mail_put(actor, mail);
}

static void do_answer(struct office *office, struct mail *mail)
{
    mu_value *value = mail->value;

    mail->value = NULL;
    mu__answer(office, &mail->answer, value, mail->error);
    mu__mail_free(office, mail);
}

static void do_failed(struct office *office, struct mail *mail)
{
    if (begin_call(office, mail)) {
        mu__call_end(office, mail->call, NULL, mail->error);
        mu__mail_free(office, mail);
    }
}

static void do_monitor(struct office *office, struct mail *mail)
{
    if (mail->of.watch->address.name[0] != '\0')
        mu__naming_watch(office, mail->of.watch);
    else
        mu__watch_begin(office, mail->of.watch);
    mu__mail_free(office, mail);
}

static void do_unmonitor(struct office *office, struct mail *mail)
{
    mu__watch_drop(office, mu__actor_any(office, mail->actor), mail->token);
    mu__naming_unwatch(office, mail->actor, mail->token);
    mu__mail_free(office, mail);
}

static void do_timer(struct office *office, struct mail *mail)
{
    mu__mail_free(office, mail);
}

static void do_timer_cancel(struct office *office, struct mail *mail)
{
    mu__actor_timers_drop(mu__actor_any(office, mail->actor), mail->token);
    mu__mail_free(office, mail);
}

static void do_work(struct office *office, struct mail *mail)
{
    mu__actor_work_submit(office, mail->of.work);
    mu__mail_free(office, mail);
}

static void do_reply(struct office *office, struct mail *mail)
{
    mu_reply *reply = mail->of.reply;
    mu_value *value = mail->value;

    mail->value = NULL;
    if (mail->error != NULL)
        mu__naming_pass_on(reply->actor, mail->error);
    if (reply->chain != NULL)
        reply->chain->is_closed = true;
    mu__answer(office, &reply->answer, value, mail->error);
    mu__list_remove(&reply->actor->replies, &reply->node);
    mu__chain_unref(reply->chain);
    free(reply);
    mu__mail_free(office, mail);
}

static void send_actor_stop(struct office *office, struct mail *mail)
{
    struct peer *peer = mu__peer_reach(office, &mail->address, NULL);
    struct mu__msg *msg = peer == NULL ? NULL : mu__msg_new(&office->ctx, MU__ACTOR_STOP);
    struct mu__actor_stop *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->actor = mail->address.number;
    body->how = (uint32_t)mail->code;
    mu__peer_send(office, peer, msg);
}

static void do_stop(struct office *office, struct mail *mail)
{
    if (mail->address.name[0] != '\0')
        mu__naming_end(office, mail->address.name, mail->code);
    else if (mail->address.incarnation == office->config.incarnation)
        mu__actor_request_stop(office, mu__actor_find(office, mail->address.number),
                               mail->code);
    else
        send_actor_stop(office, mail);
    mu__mail_free(office, mail);
}

static void do_named(struct office *office, struct mail *mail)
{
    struct name_message *message = mail->of.named;

    if (!begin_call(office, mail))
        return;
    mu__mail_free(office, mail);
    mu__naming_send(office, message);
}

/* A thread has no turn: only an actor's wish is done here. */
static void do_wish(struct office *office, struct mail *mail)
{
    mu_error error;

    if (mu__naming_wish(office, mail->of.wish, &error) != 0)
        mu__log(&office->ctx, MU__LOG_WARN, "an actor cannot be made: %s", error.message);
    mu__mail_free(office, mail);
}

/* ---- undoing what was set aside ---- */

static void undo_message(struct office *office, struct mail *mail)
{
    mu_actor *actor = mu__actor_find(office, mail->actor);

    if (actor != NULL) {
        actor->mail_count--;
        actor->mail_bytes -= mail->bytes;
        mu__room_review(actor);
    }
}

static void undo_remote(struct office *office, struct mail *mail)
{
    mu__way_untake(office, mail->peer, mail->actor, mail->bytes);
}

static void undo_kept_call(struct office *office, struct mail *mail)
{
    mu__kept_call_unmake(office, mail->call);
}

static void undo_start(struct office *office, struct mail *mail)
{
    mu_actor *actor = mu__actor_find(office, mail->actor);

    if (actor != NULL)
        mu__actor_end(actor, NULL);
}

static void undo_monitor(struct office *office, struct mail *mail)
{
    (void)office;
    free(mail->of.watch);
}

static void undo_timer(struct office *office, struct mail *mail)
{
    mu__actor_timer_free(office, mail->of.timer);
}

static void undo_work(struct office *office, struct mail *mail)
{
    (void)office;
    free(mail->of.work);
}

static void undo_reply(struct office *office, struct mail *mail)
{
    (void)office;
    mail->of.reply->is_given = false;
}

static void undo_named(struct office *office, struct mail *mail)
{
    mu__naming_drop(office, mail->of.named);
}

static void undo_wish(struct office *office, struct mail *mail)
{
    (void)office;
    mu__wish_free(mail->of.wish);
}

static const struct {
    void (*run)(struct office *office, struct mail *mail);  /* takes it */
    void (*undo)(struct office *office, struct mail *mail); /* NULL: nothing */
} effects[MAIL_KINDS] = {
    [MAIL_START] = {do_start, undo_start},
    [MAIL_MESSAGE] = {do_message, undo_message},
    [OUT_REMOTE] = {do_remote, undo_remote},
    [OUT_KEPT_CALL] = {do_kept_call, undo_kept_call},
    [OUT_ANSWER] = {do_answer, NULL},
    [OUT_FAILED] = {do_failed, NULL},
    [OUT_MONITOR] = {do_monitor, undo_monitor},
    [OUT_UNMONITOR] = {do_unmonitor, NULL},
    [OUT_TIMER] = {do_timer, undo_timer},
    [OUT_TIMER_CANCEL] = {do_timer_cancel, NULL},
    [OUT_WORK] = {do_work, undo_work},
    [OUT_REPLY] = {do_reply, undo_reply},
    [OUT_STOP] = {do_stop, NULL},
    [OUT_NAMED] = {do_named, undo_named},
    [OUT_WISH] = {do_wish, undo_wish},
    [OUT_STREAM] = {mu__producer_do_begin, NULL},
    [OUT_ITEM] = {mu__producer_do_item, mu__producer_undo_item},
    [OUT_END] = {mu__producer_do_end, mu__producer_undo_end},
    [OUT_READ] = {mu__consumer_do_read, NULL},
};

void mu__turn_do(struct office *office, struct mail *mail)
{
    effects[mail->kind].run(office, mail);
}

void mu__turn_undo(struct office *office, struct mu__list *out)
{
    while (!mu__list_is_empty(out)) {
        struct mail *mail = MU__LIST_ENTRY(mu__list_pop(out), struct mail, node);

        if (effects[mail->kind].undo != NULL)
            effects[mail->kind].undo(office, mail);
        if (mail->call != NULL) {
            if (mail->call->owner != NULL)
                mail->call->owner->calls_count--;
            mu__call_free(office, mail->call);
        }
        mail->call = NULL;
        mu__mail_free(office, mail);
    }
}
