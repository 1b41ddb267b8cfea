/* Turns. What a function of an actor wants done is listed, and done in that order when it
 * has ended well; when it has failed, what was set aside for it is given back. Nothing is
 * copied for that: a value that is sent is held, and packed bytes are spliced. */
#include "actors/keeper/hooks.h"
#include "actors/names/naming.h"
#include "actors/names/owner_marks.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include "actors/user/batch.h"
#include "actors/user/clear.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const mu_error no_memory = {
    .code = -MU_ENOMEM,
    .kind = MU_ERROR_ACTOR,
    .message = "an error, for which there was no memory",
    .ran = MU_RAN_MAYBE,
};

/* ---- adding ---- */

struct turn *mu__turn_of(const mu_actor *self)
{
    struct turn *turn = self->office->turn;

    return turn != NULL && turn->actor == self && !turn->is_over ? turn : NULL;
}

struct mail *mu__turn_add(struct turn *turn, enum mail_kind kind)
{
    struct mail *mail = mu__mail_new(turn->actor->office, kind);

    if (mail != NULL)
        mu__list_append(&turn->out, &mail->node);
    return mail;
}

/* ---- its end ---- */

/* The chain of the calls that a turn makes: that of the message it has not answered. */
static void set_chain(struct turn *turn, struct pending_call *call)
{
    mu_reply *later = turn->later;

    if (later != NULL && later->chain == NULL)
        later->chain = mu__chain_add(turn->mail->chain, turn->actor, later->method->name);
    if (later != NULL)
        call->chain = mu__chain_ref(later->chain);
    else if (turn->chain != NULL && !turn->chain->is_closed)
        call->chain = mu__chain_ref(turn->chain);
}

static void mark_output(struct turn *turn, struct mail *mail)
{
    mu__owner_mark(turn->actor, mail);
    if (mail->call != NULL && !mail->call->is_send)
        set_chain(turn, mail->call);
}

static void mark_held(struct turn *turn)
{
    for (struct mail *mail = MU__LIST_FIRST(&turn->out, struct mail, node); mail != NULL;
         mail = MU__LIST_NEXT(mail, struct mail, node))
        mark_output(turn, mail);
    mu__kept_hold(turn);
}

static void commit_turn(struct office *office, struct turn *turn)
{
    bool is_kept = turn->actor->kept != NULL;

    turn->is_over = true;
    if (is_kept)
        mark_held(turn);
    while (!mu__list_is_empty(&turn->out)) {
        struct mail *mail = MU__LIST_ENTRY(mu__list_pop(&turn->out), struct mail, node);

        mu__mail_fetch(turn->out.first);
        if (!is_kept)
            mark_output(turn, mail);
        mu__turn_do(office, mail);
    }
}

/* A state that a kept actor has changed by records is loaded anew. */
static void abort_turn(struct office *office, struct turn *turn)
{
    turn->is_over = true;
    mu__turn_undo(office, &turn->out);
    turn->kept.is_spoilt |= turn->kept.saves || !mu__list_is_empty(&turn->kept.records);
}

/* Its items are made, or it has failed. */
static int keep_turn(struct turn *turn)
{
    turn->is_over = true;
    return turn->actor->kept == NULL ? 0 : mu__kept_commit(turn);
}

/* ---- taking one ---- */

static struct turn *begin_turn(mu_actor *actor, struct mail *mail, struct turn *turn)
{
    mu__clear(turn, sizeof *turn);
    turn->actor = actor;
    turn->mail = mail;
    assert(actor->office->turn == NULL);
    actor->office->turn = turn;
    return turn;
}

static void end_turn(struct turn *turn)
{
    struct kept *kept = turn->actor->kept;

    turn->actor->office->turn = NULL;
    if (turn->reply != NULL)
        mu_value_free(turn->reply);
    if (turn->failure != NULL)
        free(turn->failure);
    if (!mu__list_is_empty(&turn->kept.records))
        mu__kept_records_done(turn);
    if (turn->kept.is_spoilt && kept != NULL && !turn->actor->ends)
        mu__kept_spoil(kept);
}

/* The answer of the message leaves with the turn: of a kept actor, when all is kept that
 * it may have seen. Takes `value`. */
static void answer_turn(struct turn *turn, mu_value *value, const mu_error *error)
{
    struct office *office = turn->actor->office;
    struct mail *mail;

    if (turn->actor->kept == NULL) {
        mu__answer(office, &turn->mail->answer, value, error);
        return;
    }
    mail = mu__mail_new(office, OUT_ANSWER);
    if (mail == NULL) {
        mu_value_free(value); /* it asks again, or hears that its time is over */
        return;
    }
    mail->answer = turn->mail->answer;
    mail->value = value;
    mail->error = error == NULL ? NULL : mu__error_copy(error);
    mu__list_append(&turn->out, &mail->node);
}

static void drop_later(struct turn *turn)
{
    if (turn->stream != NULL)
        mu__producer_drop(turn->stream);
    turn->stream = NULL;
    if (turn->later == NULL)
        return;
    mu__list_remove(&turn->actor->replies, &turn->later->node);
    mu__chain_unref(turn->later->chain);
    free(turn->later);
    turn->later = NULL;
}

/* The error of a method, or of `start`, that has returned `code`. */
static void answer_failed(struct turn *turn, const char *method, int code)
{
    const mu_actor_type *type = turn->actor->type;
    mu_error error = {0};

    if (turn->failure != NULL)
        error = *turn->failure;
    else
        (void)mu_error_set(&error, code, "%s.%s returned %s", type->name, method,
                           mu_err_name(code));
    error.code = code < 0 ? code : -MU_EUNKNOWN;
    mu__answer_error(turn->actor->office, type, method, MU_RAN_YES, &error);
    if (turn->actor->kept != NULL)
        mu__kept_note_failure(turn, &error);
    if (turn->dies || turn->mail->kind == MAIL_START)
        mu__actor_end(turn->actor, &error);
    answer_turn(turn, NULL, &error);
}

__attribute__((cold)) static void fail_message(struct turn *turn, const char *method,
                                               int code)
{
    struct office *office = turn->actor->office;

    abort_turn(office, turn);
    drop_later(turn);
    answer_failed(turn, method, code);
    commit_turn(office, turn);
}

/* What is to be answered at the end of the turn, if not later. */
static void answer_message(struct turn *turn, const char *method)
{
    if (turn->later != NULL || turn->stream != NULL)
        return;
    if (turn->failure == NULL && turn->mail->answer.call == 0)
        return;
    if (turn->failure != NULL) {
        mu__answer_error(turn->actor->office, turn->actor->type, method, MU_RAN_YES,
                         turn->failure);
        answer_turn(turn, NULL, turn->failure);
        return;
    }
    answer_turn(turn, turn->reply, NULL);
    turn->reply = NULL;
}

static void finish_message(struct turn *turn, const char *method, int code)
{
    if (code == 0 && turn->dies)
        code = turn->failure->code;
    if (code == 0)
        code = keep_turn(turn);
    if (code != 0) {
        fail_message(turn, method, code);
        return;
    }
    if (turn->actor->kept != NULL)
        answer_message(turn, method);
    commit_turn(turn->actor->office, turn);
    if (turn->actor->kept == NULL)
        answer_message(turn, method);
}

static void take_message(struct turn *turn)
{
    mu_actor *actor = turn->actor;
    struct mail *mail = turn->mail;

    finish_message(turn, mail->method->name,
                   mail->method->call(actor, actor->state, mail->value));
}

/* The answer is the address. */
static void take_start(struct turn *turn)
{
    mu_actor *actor = turn->actor;
    mu_address address = mu__actor_address(actor->office, actor->number);
    int code = 0;

    if (actor->type->start != NULL)
        code = actor->type->start(actor, actor->state, turn->mail->value);
    actor->is_started = code == 0 && !turn->dies;
    mu_value_free(turn->reply);
    turn->reply = mu_value_actor(&address);
    finish_message(turn, "start", code);
    if (actor->owned != NULL && actor->is_started)
        mu__naming_started(actor);
}

__attribute__((cold)) static void fail_notice(struct turn *turn, int rv)
{
    mu_error error;

    abort_turn(turn->actor->office, turn);
    if (rv != 0) {
        (void)mu_error_set(&error, rv, "the records of a notice cannot be kept");
        mu__answer_error(turn->actor->office, turn->actor->type, "notice", MU_RAN_YES,
                         &error);
        mu__actor_end(turn->actor, &error);
        return;
    }
    mu__answer_error(turn->actor->office, turn->actor->type, "notice", MU_RAN_YES,
                     turn->failure);
    mu__actor_end(turn->actor, turn->failure);
}

static void end_notice(struct turn *turn)
{
    int rv = turn->dies ? 0 : keep_turn(turn);

    if (rv == 0 && !turn->dies)
        commit_turn(turn->actor->office, turn);
    else
        fail_notice(turn, rv);
}

static void take_notice(struct turn *turn)
{
    mu_actor *actor = turn->actor;
    struct mail *mail = turn->mail;
    const mu_notice notice = {
        .kind = mail->notice,
        .code = mail->notice == MU_NOTICE_WORK ? mail->code : 0,
        .token = mail->token,
        .address = mail->address,
        .value = mail->value,
        .error = mail->error != NULL                                 ? mail->error
                 : mail->code != 0 && mail->notice != MU_NOTICE_WORK ? &no_memory
                                                                     : NULL,
    };

    turn->chain = mail->chain;
    if (actor->type->notice != NULL)
        actor->type->notice(actor, actor->state, &notice);
    end_notice(turn);
}

/* Its time may be over without the timer having fired, in a long turn. */
static bool is_expired(const mu_actor *actor, const struct mail *mail)
{
    return mail->due_ms != 0 && mail->due_ms <= mu__office_now_ms(actor->office);
}

/* What is left of a stream's item once its turn is over. */
struct handled {
    uint64_t consumer; /* 0: it was none */
    uint32_t bytes;
};

/* NULL: it takes no turn, and the mail is taken. */
static struct mail *take_rare(mu_actor *actor, struct mail *mail, struct handled *handled)
{
    if (mail->kind == MAIL_STREAM)
        return mu__producer_take(actor->office, mail);
    if (mail->kind == MAIL_ITEM) {
        handled->bytes = mail->bytes;
        return mu__consumer_take(actor, mail, &handled->consumer);
    }
    mu__actor_end(actor, NULL);
    mu__mail_free(actor->office, mail);
    return NULL;
}

void mu__turn_take(mu_actor *actor, struct mail *mail)
{
    struct office *office = actor->office;
    struct handled handled = {0, 0};
    struct turn memory;
    struct turn *turn;

    if (mail->kind > MAIL_NOTICE)
        mail = take_rare(actor, mail, &handled);
    if (mail == NULL)
        return;
    /* What a sender of a kept actor waits for no longer may still be on its way a second
     * time: that it did not run is not for this process to say. */
    if (mail->kept != NULL &&
        (is_expired(actor, mail) || mu__kept_is_repeat(actor, mail))) {
        mu__mail_free(office, mail);
        return;
    }
    if (mail->kind == MAIL_MESSAGE && is_expired(actor, mail)) {
        mu__answer_refused(office, mail, actor->type, -MU_EDEADLINE,
                           "its time was over before it began");
        return;
    }
    turn = begin_turn(actor, mail, &memory);
    if (mail->kind == MAIL_MESSAGE)
        take_message(turn);
    else if (mail->kind == MAIL_START)
        take_start(turn);
    else
        take_notice(turn);
    end_turn(turn);
    mu__mail_free(office, mail);
    if (handled.consumer != 0)
        mu__consumer_handled(office, handled.consumer, handled.bytes);
}

void mu__turn_notify(mu_actor *actor, const mu_notice *notice)
{
    struct turn memory;
    struct turn *turn = begin_turn(actor, NULL, &memory);

    if (actor->type->notice != NULL)
        actor->type->notice(actor, actor->state, notice);
    end_notice(turn);
    end_turn(turn);
}

void mu__turn_end_actor(mu_actor *actor)
{
    struct turn memory;
    struct turn *turn;

    if (actor->type->stop == NULL)
        return;
    turn = begin_turn(actor, NULL, &memory);
    actor->type->stop(actor, actor->state, actor->why);
    if (actor->kept != NULL && mu__kept_is_cut(actor->kept))
        abort_turn(actor->office, turn);
    else
        commit_turn(actor->office, turn);
    end_turn(turn);
}

int mu__turn_load(mu_actor *actor, mu_error *ret_error)
{
    struct turn memory;
    struct turn *turn = begin_turn(actor, NULL, &memory);
    int rv = mu__kept_take_loaded(actor->kept, ret_error);

    if (rv == 0)
        commit_turn(actor->office, turn);
    else
        abort_turn(actor->office, turn);
    turn->kept.is_spoilt = false; /* it was not the state of a turn */
    end_turn(turn);
    return rv;
}

void mu__turn_clear_state(mu_actor *actor)
{
    struct turn memory;
    struct turn *turn = begin_turn(actor, NULL, &memory);

    if (actor->type->stop != NULL)
        actor->type->stop(actor, actor->state, NULL);
    mu__producer_actor_ended(actor);
    abort_turn(actor->office, turn);
    turn->kept.is_spoilt = false;
    end_turn(turn);
    memset(actor->state, 0, actor->type->state_size);
}
