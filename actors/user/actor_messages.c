/* Messages to actors, of this node and of others. */
#include "actors/names/naming.h"
#include "actors/user/actions.h"
#include "actors/user/looking.h"

#include "actors/packing.h"
#include "runtime/message/pool.h"

#include <stdio.h>
#include <string.h>

const mu_actor_method *mu__method_find(const mu_actor_type *type, struct mu__view name)
{
    for (const mu_actor_method *m = type->methods; m != NULL && m->name != NULL; m++)
        if (mu__view_is(name, m->name))
            return m;
    return mu__method_built_in(name);
}

/* Most often the name is the text that the type has. */
static const mu_actor_method *find_local_method(const mu_actor_type *type,
                                                const char *name)
{
    for (const mu_actor_method *m = type->methods; m != NULL && m->name != NULL; m++)
        if (m->name == name)
            return m;
    return mu__method_find(type, mu__view_str(name));
}

/* ---- to this node ---- */

/* A call to what is not there is answered when the turn has ended, as all calls are. */
__attribute__((cold)) static int refuse_at_sender(
    struct office *office, const mu_actor_type *type, int code, const char *words,
    struct pending_call *call, mu_error *ret_error, struct mail **ret_mail)
{
    struct mail *mail;
    mu_error error;

    (void)mu_error_set(&error, code, "%s", words);
    mu__answer_error(office, type, call == NULL ? NULL : call->method, MU_RAN_NO, &error);
    if (code == -MU_ENOTFOUND && type == NULL)
        error.kind = MU__ERROR_NO_ACTOR;
    if (ret_error != NULL)
        *ret_error = error;
    if (call == NULL)
        return code;
    mail = mu__mail_new(office, OUT_FAILED);
    if (mail == NULL)
        return -MU_ENOMEM;
    mail->call = call;
    mail->error = mu__error_copy(&error);
    mail->code = code;
    *ret_mail = mail;
    return 0;
}

int mu__refuse_at_sender(struct office *office, int code, const char *words,
                         struct pending_call *call, mu_error *ret_error,
                         struct mail **ret_mail)
{
    return refuse_at_sender(office, NULL, code, words, call, ret_error, ret_mail);
}

__attribute__((cold)) static int refuse_method(
    struct office *office, const mu_actor_type *type, const char *name,
    struct pending_call *call, mu_error *ret_error, struct mail **ret_mail)
{
    char words[160];

    (void)snprintf(words, sizeof words, "an actor \"%.63s\" has no method \"%.63s\"",
                   type->name, name);
    return refuse_at_sender(office, type, -MU_ENOTFOUND, words, call, ret_error,
                            ret_mail);
}

static int make_local(struct office *office, const mu_address *to, const char *name,
                      const mu_value *args, uint32_t bytes, struct pending_call *call,
                      uint32_t waits, mu_error *ret_error, struct mail **ret_mail)
{
    mu_actor *actor = mu__actor_find(office, to->number);
    const mu_actor_method *method =
        actor == NULL ? NULL : find_local_method(actor->type, name);
    struct mail *mail;

    if (actor == NULL)
        return refuse_at_sender(office, NULL, -MU_ENOTFOUND, "there is no such actor",
                                call, ret_error, ret_mail);
    if (method == NULL)
        return refuse_method(office, actor->type, name, call, ret_error, ret_mail);
    if (!mu__mail_has_room(actor, bytes)) {
        if (waits != 0 && mu__actor_ties_get(actor) != NULL)
            mu__room_add(&actor->ties->rooms, waits);
        return mu_error_set(ret_error, -MU_EAGAIN, "the mailbox of the actor is full");
    }
    mail = mu__mail_new(office, MAIL_MESSAGE);
    if (mail == NULL)
        return -MU_ENOMEM;
    mail->actor = actor->number;
    mail->method = method;
    mail->value = args == NULL ? NULL : mu_value_ref(args);
    mail->bytes = bytes;
    mail->call = call;
    actor->mail_count++;
    actor->mail_bytes += bytes;
    *ret_mail = mail;
    return 0;
}

/* It does not stay in the mailbox. */
static void take_room(mu_actor *actor, const struct mail *mail)
{
    actor->mail_count--;
    actor->mail_bytes -= mail->bytes;
    if (mail->from_node != MU__NODE_SELF)
        mu__way_taken(actor->office, mail);
}

static void refuse_delivery(struct office *office, struct mail *mail, mu_actor *actor,
                            int code, const char *words)
{
    if (mail->call != NULL)
        mail->call->waiting = NULL;
    mail->call = NULL;
    mu__answer_refused(office, mail, actor == NULL ? NULL : actor->type, code, words);
}

static void answer_look(struct office *office, struct mail *mail, mu_actor *actor)
{
    if (mail->call != NULL)
        mail->call->waiting = NULL;
    mail->call = NULL;
    take_room(actor, mail);
    mu__answer(office, &mail->answer, mu__explain_actor(actor), NULL);
    mu__mail_free(office, mail);
}

void mu__message_deliver(struct office *office, struct mail *mail)
{
    mu_actor *actor = mu__actor_find(office, mail->actor);
    char words[MU__CHAIN_WORDS];

    if (actor == NULL) {
        refuse_delivery(office, mail, NULL, -MU_ENOTFOUND, "the actor has ended");
        return;
    }
    if (mu__chain_comes_back(actor, mail)) {
        mu__chain_refusal(actor, mail, words);
        take_room(actor, mail);
        refuse_delivery(office, mail, actor, -MU_EPRECONDITION, words);
        return;
    }
    if (mu__is_look(mail))
        answer_look(office, mail, actor);
    else
        mu__mail_put(actor, mail);
}

/* ---- to other nodes ---- */

static struct mu__msg *pack_message(struct office *office, const mu_address *to,
                                    const char *method, const mu_value *args,
                                    const struct pending_call *call)
{
    size_t name = strlen(method);
    struct mu__msg *msg =
        mu__pool_get(mu__kernel_pool(office->ctx.kernel), MU__ACTOR_MESSAGE,
                     sizeof(struct mu__actor_message) + name);
    struct mu__actor_message *body;

    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    body->actor = to->number;
    body->method = (struct mu__view){method, (uint32_t)name};
    (void)mu__pack_view((uint8_t *)(body + 1), &body->method);
    if (call != NULL) {
        body->call = call->id;
        body->timeout_ms = (uint64_t)call->timeout_ms;
    }
    if (args == NULL)
        return msg;
    msg->backing = mu__pack_to_send(args, true, &body->args);
    if (msg->backing != NULL)
        return msg;
    mu__msg_free(&office->ctx, msg);
    return NULL;
}

static bool lacks_right(const struct office *office, const struct peer *peer,
                        mu_error *ret_error)
{
    return peer->number != 0 && mu__send_is_forbidden(&office->ctx, peer->number,
                                                      MU__ACTOR_MESSAGE, ret_error);
}

/* Not inline: messages to this node have no room for an error on their stack. */
__attribute__((noinline)) static int make_remote(
    struct office *office, const mu_address *to, const char *method, const mu_value *args,
    uint32_t bytes, struct pending_call *call, uint32_t waits, mu_error *ret_error,
    struct mail **ret_mail)
{
    mu_error error;
    struct peer *peer = mu__peer_reach(office, to, &error);
    struct mail *mail;
    int rv = mu__actors_check_called(method, ret_error);

    if (rv != 0)
        return rv;
    if (peer == NULL || lacks_right(office, peer, &error))
        return refuse_at_sender(office, NULL, error.code, error.message, call, ret_error,
                                ret_mail);
    if (to->number == 0) /* nobody's, whoever wrote the address */
        return refuse_at_sender(office, NULL, -MU_ENOTFOUND, "there is no such actor",
                                call, ret_error, ret_mail);
    rv = mu__way_take(peer, to->number, bytes, waits);
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "too many messages are on their way to the actor");
    mail = mu__mail_new(office, OUT_REMOTE);
    if (mail != NULL)
        mail->msg = pack_message(office, to, method, args, call);
    if (mail == NULL || mail->msg == NULL) {
        mu__way_untake(office, peer, to->number, bytes);
        if (mail != NULL)
            mu__mail_free(office, mail);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a message");
    }
    mail->peer = peer;
    mail->actor = to->number;
    mail->bytes = bytes;
    mail->call = call;
    if (call != NULL)
        call->peer = peer;
    *ret_mail = mail;
    return 0;
}

int mu__message_make(struct office *office, const mu_address *to, const char *method,
                     const mu_value *args, struct pending_call *call, uint32_t waits,
                     mu_error *ret_error, struct mail **ret_mail)
{
    uint32_t bytes = 0;
    int rv = args == NULL ? 0 : mu__mail_measure(args, &bytes);

    if (rv == -MU_ERANGE)
        return mu_error_set(ret_error, rv, "the arguments are too deep or too large");
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "an actor's message cannot have references to remote or "
                            "per-worker values, nor objects");
    if (to->name[0] != '\0')
        return mu__naming_make(office, to, method, args, bytes, call, waits, ret_error,
                               ret_mail);
    return to->incarnation == office->config.incarnation
               ? make_local(office, to, method, args, bytes, call, waits, ret_error,
                            ret_mail)
               : make_remote(office, to, method, args, bytes, call, waits, ret_error,
                             ret_mail);
}
