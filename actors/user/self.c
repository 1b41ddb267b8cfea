/* What an actor may do in its turn: the public calls with `self`. */
#include "actors/names/naming.h"
#include "actors/user/actions.h"

#include "runtime/base/printable.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

int mu_actor_send(mu_actor *self, const mu_address *to, const char *method,
                  const mu_value *args)
{
    MU__REQUIRE(NULL, self, to, method);

    struct turn *turn = mu__turn_of(self);
    struct mail *mail;
    int rv;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    rv =
        mu__message_make(self->office, to, method, args, NULL, self->number, NULL, &mail);
    if (rv == 0)
        mu__list_append(&turn->out, &mail->node);
    return rv;
}

int mu_actor_call(mu_actor *self, const mu_address *to, const char *method,
                  const mu_value *args, int64_t timeout_ms, uint64_t token)
{
    MU__REQUIRE(NULL, self, to, method);

    struct turn *turn = mu__turn_of(self);
    struct pending_call *call;
    struct mail *mail;
    int rv;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (timeout_ms < 1 || timeout_ms > MU_ACTOR_TIMEOUT_MAX)
        return -MU_EINVALID;
    if (self->calls_count >= MU__ACTOR_CALLS_MAX)
        return -MU_EEXHAUSTED;
    call = mu__call_new(self->office, to, method, timeout_ms);
    if (call == NULL)
        return -MU_ENOMEM;
    call->owner = self;
    call->token = token;
    rv =
        mu__message_make(self->office, to, method, args, call, self->number, NULL, &mail);
    if (rv != 0) {
        mu__call_free(self->office, call);
        return rv;
    }
    self->calls_count++;
    mu__list_append(&turn->out, &mail->node);
    return 0;
}

/* ---- answers ---- */

void mu_actor_reply(mu_actor *self, mu_value *value)
{
    struct turn *turn = self == NULL ? NULL : mu__turn_of(self);

    if (turn == NULL) {
        mu_value_free(value);
        return;
    }
    mu_value_free(turn->reply);
    turn->reply = value;
}

static void set_turn_failure(struct turn *turn, const mu_error *error)
{
    free(turn->failure);
    turn->failure = mu__error_copy(error);
}

int mu_actor_fail(mu_actor *self, int code, const char *format, ...)
{
    MU__REQUIRE(NULL, self, format);

    struct turn *turn = mu__turn_of(self);
    mu_error error;
    char words[sizeof error.message];
    va_list arguments;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    va_start(arguments, format);
    (void)vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    (void)mu_error_set(&error, code < 0 ? code : -MU_EUNKNOWN, "%s", words);
    set_turn_failure(turn, &error);
    return error.code;
}

int mu_actor_die(mu_actor *self, const mu_error *error)
{
    MU__REQUIRE(NULL, self, error);

    struct turn *turn = mu__turn_of(self);
    mu_error own = *error;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (own.code >= 0)
        own.code = -MU_EUNKNOWN;
    set_turn_failure(turn, &own);
    turn->dies = turn->failure != NULL;
    return own.code;
}

static const mu_actor_method method_start = {"start", NULL};

/* Whoever waits for an actor with a name hears of it by the service of names. */
static bool may_answer_later(const struct turn *turn)
{
    return turn->mail->kind == MAIL_MESSAGE ||
           (turn->mail->kind == MAIL_START && turn->actor->owned == NULL &&
            turn->mail->answer.call != 0);
}

static mu_reply *answer_later(mu_actor *self, bool is_put_off)
{
    struct turn *turn = mu__turn_of(self);
    mu_reply *reply;

    if (turn == NULL || turn->mail == NULL || !may_answer_later(turn) ||
        turn->later != NULL || turn->stream != NULL)
        return turn == NULL ? NULL : turn->later;
    reply = calloc(1, sizeof *reply);
    if (reply == NULL)
        return NULL;
    reply->actor = self;
    reply->answer = turn->mail->answer;
    reply->method = turn->mail->kind == MAIL_START ? &method_start : turn->mail->method;
    reply->is_put_off = is_put_off;
    if (turn->mail->kept != NULL)
        reply->origin = *turn->mail->kept;
    mu__list_append(&self->replies, &reply->node);
    turn->later = reply;
    return reply;
}

mu_reply *mu_actor_reply_later(mu_actor *self)
{
    MU__REQUIRE_OR(NULL, self);

    return answer_later(self, false);
}

mu_reply *mu_actor_put_off(mu_actor *self)
{
    MU__REQUIRE_OR(NULL, self);

    return answer_later(self, true);
}

/* An answer in the turn that it was put off in is none that is given later. */
int mu_reply_give(mu_reply *reply, mu_value *value, const mu_error *error)
{
    struct turn *turn = reply == NULL ? NULL : mu__turn_of(reply->actor);
    struct mail *mail = NULL;

    if (turn != NULL && !reply->is_given)
        mail = mu__turn_add(turn, OUT_REPLY);
    if (mail == NULL) {
        mu_value_free(value);
        return reply == NULL || (turn != NULL && reply->is_given) ? -MU_EINVALID
               : turn == NULL                                     ? -MU_EPRECONDITION
                                                                  : -MU_ENOMEM;
    }
    mail->of.reply = reply;
    mail->value = error == NULL ? value : NULL;
    reply->is_given = true;
    if (error == NULL)
        return 0;
    mu_value_free(value);
    mail->error = mu__error_copy(error);
    if (mail->error != NULL && error->ran == MU_RAN_UNKNOWN)
        mu__answer_error(reply->actor->office, reply->actor->type, reply->method->name,
                         MU_RAN_YES, mail->error);
    return 0;
}

/* ---- spawning and stopping ---- */

/* An actor with a name is made when the turn has ended. */
static int wish_for(struct turn *turn, const char *type, const mu_value *args,
                    const mu_actor_options *options, mu_address *ret_address)
{
    struct name_wish *wish;
    struct mail *mail;
    uint32_t bytes = 0;
    int rv = mu__actors_check_name("type", type, NULL);

    if (rv == 0 && args != NULL)
        rv = mu__mail_measure(args, &bytes);
    if (rv == 0 && bytes > MU__NAME_ARGS_MAX)
        rv = -MU_ERANGE;
    if (rv != 0)
        return rv;
    wish = mu__wish_new(type, args, options);
    mail = wish == NULL ? NULL : mu__turn_add(turn, OUT_WISH);
    if (mail == NULL) {
        mu__wish_free(wish);
        return -MU_ENOMEM;
    }
    mail->of.wish = wish;
    *ret_address = (mu_address){.number = 0};
    mu__view_copy(mu__view_str(options->name), ret_address->name,
                  sizeof ret_address->name);
    return 0;
}

int mu_actor_spawn(mu_actor *self, const char *type, const mu_value *args,
                   const mu_actor_options *options, mu_address *ret_address)
{
    MU__REQUIRE(NULL, self, type, ret_address);

    struct turn *turn = mu__turn_of(self);
    mu_actor_options own;
    struct mail *start;
    uint32_t bytes;
    int rv = mu__actors_read_options(options, NULL, &own);

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (rv == 0 && own.name != NULL)
        return wish_for(turn, type, args, &own, ret_address);
    if (rv == 0 && own.task_type != NULL)
        rv = -MU_EINVALID;
    if (rv == 0 && args != NULL)
        rv = mu__mail_measure(args, &bytes);
    if (rv == 0)
        rv = mu__spawn_user(self->office, mu__view_str(type), self,
                            args == NULL ? NULL : mu_value_ref(args), &own, NULL, &start);
    if (rv != 0)
        return rv;
    mu__list_append(&turn->out, &start->node);
    *ret_address = mu__actor_address(self->office, start->actor);
    return 0;
}

int mu_actor_stop(mu_actor *self, const mu_address *who, int how)
{
    MU__REQUIRE(NULL, self, who);

    struct turn *turn = mu__turn_of(self);
    struct mail *mail;

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (how != MU_STOP_AFTER_QUEUE && how != MU_STOP_NOW)
        return -MU_EINVALID;
    mail = mu__turn_add(turn, OUT_STOP);
    if (mail == NULL)
        return -MU_ENOMEM;
    mail->address = *who;
    mail->code = how;
    return 0;
}

/* ---- notices ---- */

int mu_actor_monitor(mu_actor *self, const mu_address *who, uint64_t token)
{
    MU__REQUIRE(NULL, self, who);

    struct turn *turn = mu__turn_of(self);
    struct actor_ties *ties = turn == NULL ? NULL : mu__actor_ties_get(self);
    struct user_watch *watch = ties == NULL ? NULL : calloc(1, sizeof *watch);
    struct mail *mail = watch == NULL ? NULL : mu__turn_add(turn, OUT_MONITOR);

    if (turn == NULL)
        return -MU_EPRECONDITION;
    if (mail == NULL) {
        free(watch);
        return -MU_ENOMEM;
    }
    watch->id = ++self->office->number_next;
    watch->token = token;
    watch->watcher = self;
    watch->address = *who;
    mail->of.watch = watch;
    return 0;
}

static void add_token(mu_actor *self, enum mail_kind kind, uint64_t token)
{
    struct turn *turn = mu__turn_of(self);
    struct mail *mail = turn == NULL ? NULL : mu__turn_add(turn, kind);

    if (mail == NULL)
        return;
    mail->actor = self->number;
    mail->token = token;
}

void mu_actor_unmonitor(mu_actor *self, uint64_t token)
{
    if (self != NULL)
        add_token(self, OUT_UNMONITOR, token);
}

void mu_actor_timer_cancel(mu_actor *self, uint64_t token)
{
    if (self != NULL)
        add_token(self, OUT_TIMER_CANCEL, token);
}

/* ---- what an actor knows ---- */

uint64_t mu_actor_now_ms(mu_actor *self)
{
    MU__REQUIRE_OR(0, self);
    return mu__now_ms(&self->office->ctx);
}

uint64_t mu_actor_random(mu_actor *self)
{
    MU__REQUIRE_OR(0, self);
    return mu__random(&self->office->ctx);
}

void mu_actor_log(mu_actor *self, const char *format, ...)
{
    char line[512];
    va_list arguments;

    MU__REQUIRE_OR(, self, format);
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    mu__log(&self->office->ctx, MU__LOG_INFO, "%s %" PRIu32 ": %s", self->type->name,
            self->number, line);
}

int mu_actor_self(const mu_actor *self, mu_address *ret_address)
{
    MU__REQUIRE(NULL, self, ret_address);
    *ret_address = mu__actor_address(self->office, self->number);
    if (self->owned != NULL)
        memcpy(ret_address->name, self->owned->text, sizeof ret_address->name);
    return 0;
}
