#include "actors/user/looking.h"

#include "actors/names/naming.h"
#include "actors/user/actions.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 16 }; /* of calls and messages, each */

/* ---- maps ---- */

static void put_look(mu_value *map, const char *key, mu_value *value, int *rv)
{
    if (*rv == 0)
        *rv = mu_value_set(map, key, value);
    else
        mu_value_free(value);
}

static void put_look_number(mu_value *map, const char *key, uint64_t number, int *rv)
{
    put_look(map, key, mu_value_int((int64_t)number), rv);
}

/* Texts of other nodes may be no UTF-8. */
static void put_look_text(mu_value *map, const char *key, const char *text, int *rv)
{
    mu_value *value = mu_value_string(text);

    put_look(map, key, value == NULL ? mu_value_string("?") : value, rv);
}

static mu_value *finish_look(mu_value *map, int rv)
{
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

/* ---- what it waits for ---- */

static mu_value *look_at_call(const struct pending_call *call, uint64_t now_ms)
{
    mu_value *map = mu_value_map();
    char to[MU__ADDRESS_TEXT_MAX];
    uint64_t left_ms =
        call->deadline.due_ms > now_ms ? call->deadline.due_ms - now_ms : 0;
    uint64_t timeout_ms = (uint64_t)call->timeout_ms;
    int rv = map == NULL ? -MU_ENOMEM : 0;

    mu__address_write(&call->to, to);
    put_look_text(map, "to", to, &rv);
    put_look_text(map, "method", call->method, &rv);
    put_look_number(map, "for_ms", timeout_ms > left_ms ? timeout_ms - left_ms : 0, &rv);
    put_look_number(map, "left_ms", left_ms, &rv);
    return finish_look(map, rv);
}

static mu_value *look_at_calls(const mu_actor *actor, uint64_t now_ms)
{
    mu_value *list = mu_value_list();
    size_t shown = 0;
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (const struct pending_call *call =
             MU__LIST_FIRST(&mu__actor_ties(actor)->calls, struct pending_call, of_owner);
         call != NULL && rv == 0 && shown++ < SHOWN_MAX;
         call = MU__LIST_NEXT(call, struct pending_call, of_owner))
        rv = mu_value_append(list, look_at_call(call, now_ms));
    return finish_look(list, rv);
}

/* ---- who waits for it ---- */

static mu_value *look_at_waiter(const char *method, const struct chain *chain)
{
    mu_value *map = mu_value_map();
    int rv = map == NULL ? -MU_ENOMEM : 0;

    put_look_text(map, "method", method, &rv);
    put_look_text(map, "chain", chain == NULL ? "" : chain->text, &rv);
    return finish_look(map, rv);
}

static mu_value *look_at_mail(const struct mail *mail, uint64_t now_ms)
{
    mu_value *map = look_at_waiter(mail->method->name, mail->chain);
    int rv = map == NULL ? -MU_ENOMEM : 0;

    put_look_number(map, "for_ms", (uint32_t)now_ms - mail->came_ms, &rv);
    return finish_look(map, rv);
}

static mu_value *look_at_queue(const mu_actor *actor, uint64_t now_ms)
{
    mu_value *list = mu_value_list();
    size_t shown = 0;
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (const struct mail *mail = MU__LIST_FIRST(&actor->mail, struct mail, node);
         mail != NULL && rv == 0 && shown < SHOWN_MAX;
         mail = MU__LIST_NEXT(mail, struct mail, node))
        if (mail->kind == MAIL_MESSAGE) {
            rv = mu_value_append(list, look_at_mail(mail, now_ms));
            shown++;
        }
    return finish_look(list, rv);
}

/* Answers that it has put off. */
static mu_value *look_at_replies(const mu_actor *actor)
{
    mu_value *list = mu_value_list();
    size_t shown = 0;
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (const mu_reply *reply = MU__LIST_FIRST(&actor->replies, mu_reply, node);
         reply != NULL && rv == 0 && shown++ < SHOWN_MAX;
         reply = MU__LIST_NEXT(reply, mu_reply, node))
        rv = mu_value_append(list, look_at_waiter(reply->method->name, reply->chain));
    return finish_look(list, rv);
}

/* ---- all ---- */

uint64_t mu__oldest_mail_ms(const mu_actor *actor)
{
    const struct mail *oldest = MU__LIST_FIRST(&actor->mail, struct mail, node);

    return oldest == NULL ? 0
                          : (uint32_t)mu__now_ms(&actor->office->ctx) - oldest->came_ms;
}

mu_value *mu__explain_actor(mu_actor *actor)
{
    uint64_t now_ms = mu__now_ms(&actor->office->ctx);
    mu_address address = mu__actor_address(actor->office, actor->number);
    mu_value *map = mu_value_map();
    char own[MU__ADDRESS_TEXT_MAX];
    int rv = map == NULL ? -MU_ENOMEM : 0;

    mu__address_write(&address, own);
    put_look_text(map, "name", actor->owned == NULL ? "" : actor->owned->text, &rv);
    put_look_text(map, "actor", own, &rv);
    put_look_text(map, "type", actor->type->name, &rv);
    put_look_text(map, "task", actor->office->config.task, &rv);
    put_look_number(map, "mailbox", actor->mail_count, &rv);
    put_look_number(map, "mailbox_bytes", actor->mail_bytes, &rv);
    put_look_number(map, "oldest_ms", mu__oldest_mail_ms(actor), &rv);
    put_look_number(map, "calls", actor->calls_count, &rv);
    put_look(map, "waits_for", look_at_calls(actor, now_ms), &rv);
    put_look(map, "owes", look_at_replies(actor), &rv);
    put_look(map, "queue", look_at_queue(actor, now_ms), &rv);
    return finish_look(map, rv);
}

/* ---- methods ---- */

static int give_state(mu_actor *self, void *state, const mu_value *args)
{
    mu_value *saved = NULL;
    int rv;

    (void)args;
    if (self->type->save == NULL)
        return mu_actor_fail(self, -MU_EPRECONDITION, "the type \"%s\" has no `save`",
                             self->type->name);
    rv = self->type->save(state, &saved);
    if (rv != 0)
        return rv;
    mu_actor_reply(self, saved);
    return 0;
}

/* A kept actor's calls all go through its mailbox. */
static int give_explanation(mu_actor *self, void *state, const mu_value *args)
{
    mu_value *map = mu__explain_actor(self);

    (void)state;
    (void)args;
    if (map == NULL)
        return -MU_ENOMEM;
    mu_actor_reply(self, map);
    return 0;
}

static const mu_actor_method built_in[] = {
    {.name = MU__METHOD_STATE, .call = give_state},
    {.name = MU__METHOD_EXPLAIN, .call = give_explanation},
};

const mu_actor_method *mu__method_built_in(struct mu__view name)
{
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
        if (mu__view_is(name, built_in[i].name))
            return &built_in[i];
    return NULL;
}

int mu__actors_check_called(const char *method, mu_error *ret_error)
{
    return mu__method_built_in(mu__view_str(method)) != NULL
               ? 0
               : mu__actors_check_name("method", method, ret_error);
}

bool mu__is_look(const struct mail *mail)
{
    return mail->method == &built_in[1] && mail->kept == NULL;
}
