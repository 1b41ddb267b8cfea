/* Mailboxes. They are not the kernel's: what waits here does not count among what stops
 * the links of the node, a full one refuses at its sender, and when an actor ends its
 * callers hear of it. */
#include "actors/user/actions.h"

#include "actors/user/batch.h"
#include "actors/user/clear.h"
#include "runtime/message/codec.h"
#include "runtime/message/pack.h"
#include "runtime/message/value_layout.h"
#include "runtime/message/value_references.h"

#include <stdlib.h>

/* ---- mail ---- */

struct mail *mu__mail_new(struct office *office, enum mail_kind kind)
{
    struct mail *mail = office->spare;

    if (mail != NULL)
        office->spare = (struct mail *)(void *)mail->node.next;
    else
        mail = malloc(sizeof *mail);
    if (mail == NULL)
        return NULL;
    mu__mail_fetch(office->spare);
    mu__clear(mail, offsetof(struct mail, address));
    mail->kind = (uint16_t)kind;
    return mail;
}

void mu__mail_free(struct office *office, struct mail *mail)
{
    if (mail->value != NULL)
        mu_value_free(mail->value);
    if (mail->error != NULL)
        free(mail->error);
    if (mail->kept != NULL)
        free(mail->kept);
    mu__chain_unref(mail->chain);
    if (mail->msg != NULL)
        mu__msg_free(&office->ctx, mail->msg);
    mail->node.next = (struct mu__list_node *)(void *)office->spare;
    office->spare = mail;
}

/* ---- mailboxes ---- */

void mu__mail_put(mu_actor *actor, struct mail *mail)
{
    mail->came_ms = (uint32_t)mu__office_now_ms(actor->office);
    mu__list_append(&actor->mail, &mail->node);
    mu__actor_poke(actor);
}

static void count_taken(mu_actor *actor, const struct mail *mail)
{
    if (mail->kind != MAIL_MESSAGE)
        return;
    actor->mail_count--;
    actor->mail_bytes -= mail->bytes;
    if (mail->from_node != MU__NODE_SELF)
        mu__way_taken(actor->office, mail);
}

struct mail *mu__mail_take(mu_actor *actor)
{
    struct mail *mail = MU__LIST_ENTRY(mu__list_pop(&actor->mail), struct mail, node);

    mu__mail_fetch(actor->mail.first);
    count_taken(actor, mail);
    if (mail->call != NULL)
        mail->call->waiting = NULL;
    mail->call = NULL;
    return mail;
}

void mu__mail_remove(mu_actor *actor, struct mail *mail)
{
    mu__list_remove(&actor->mail, &mail->node);
    count_taken(actor, mail);
    mu__mail_free(actor->office, mail);
    mu__room_review(actor);
}

/* ---- room ---- */

bool mu__mail_has_room(const mu_actor *actor, uint32_t bytes)
{
    return actor->mail_count < actor->mailbox_max &&
           (actor->mail_bytes == 0 ||
            (actor->mail_bytes <= actor->mailbox_bytes_max &&
             bytes <= actor->mailbox_bytes_max - actor->mail_bytes));
}

void mu__room_add(struct mu__list *rooms, uint32_t actor)
{
    struct room_wait *wait = MU__LIST_FIRST(rooms, struct room_wait, node);

    while (wait != NULL && wait->actor != actor)
        wait = MU__LIST_NEXT(wait, struct room_wait, node);
    if (wait != NULL)
        return;
    wait = calloc(1, sizeof *wait);
    if (wait == NULL)
        return;
    wait->actor = actor;
    mu__list_append(rooms, &wait->node);
}

void mu__room_notify(struct office *office, struct mu__list *rooms,
                     const mu_address *address)
{
    while (!mu__list_is_empty(rooms)) {
        struct room_wait *wait =
            MU__LIST_ENTRY(mu__list_pop(rooms), struct room_wait, node);

        (void)mu__mail_notice(office, wait->actor, MU_NOTICE_ROOM, 0, address);
        free(wait);
    }
}

/* Half of the mailbox is free, so that who waits sends many messages for one notice. */
void mu__room_review(mu_actor *actor)
{
    mu_address address;

    if (actor->ties == NULL || mu__list_is_empty(&actor->ties->rooms) ||
        actor->mail_count > actor->mailbox_max / 2 ||
        actor->mail_bytes > actor->mailbox_bytes_max / 2)
        return;
    address = mu__actor_address(actor->office, actor->number);
    mu__room_notify(actor->office, &actor->ties->rooms, &address);
}

static bool has_references(const mu_value *value)
{
    if (mu_value_type(value) == MU_VALUE_REFERENCE)
        return true;
    for (size_t i = 0; i < mu_value_count(value); i++)
        if (has_references(mu_value_at(value, i)))
            return true;
    return false;
}

int mu__mail_measure(const mu_value *value, uint32_t *ret_bytes)
{
    uint32_t head;
    uint32_t tail;
    int rv;

    if (value->type == MU_VALUE_INT) {
        *ret_bytes =
            (uint32_t)mu__pack_i64_size(((const struct mu__scalar *)value)->as.integer);
        return 0;
    }
    rv = mu__value_measure(value, &head, &tail);
    if (rv != 0)
        return rv;
    if ((uint64_t)head + tail > MU__VALUE_BYTES_MAX)
        return -MU_ERANGE;
    if (has_references(value))
        return -MU_EINVALID;
    *ret_bytes = head + tail;
    return 0;
}

/* ---- notices ---- */

struct mail *mu__mail_notice(struct office *office, uint32_t actor, int notice,
                             uint64_t token, const mu_address *address)
{
    mu_actor *to = mu__actor_find(office, actor);
    struct mail *mail = to == NULL ? NULL : mu__mail_new(office, MAIL_NOTICE);

    if (mail == NULL)
        return NULL;
    mail->notice = (uint16_t)notice;
    mail->token = token;
    if (address != NULL)
        mail->address = *address;
    else
        mail->address = (mu_address){.number = 0};
    mu__mail_put(to, mail);
    return mail;
}
