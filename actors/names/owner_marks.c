#include "actors/names/owner_marks.h"

#include "actors/names/name_rules.h"
#include "actors/user/actions.h"
#include "runtime/message/rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known_owner {
    struct mu__text_node named; /* first */
    struct mu__list_node node;  /* by time, the oldest first */
    uint64_t heard_ms;
    uint64_t epoch;
    char text[MU__ACTOR_NAME_MAX + 1];
};

/* ---- marking ---- */

static void mark_message(const char *name, uint64_t epoch, const struct mail *mail)
{
    struct mu__actor_message *body;

    if (mail->kind != OUT_REMOTE || mail->msg->kind != MU__ACTOR_MESSAGE)
        return;
    body = mu__body(mail->msg);
    body->owner = mu__view_str(name);
    body->epoch = epoch;
}

static bool is_marked(const mu_actor *actor)
{
    return actor->owned != NULL && actor->kept == NULL;
}

void mu__owner_mark_again(const mu_actor *actor, struct name_message *message)
{
    if (!is_marked(actor))
        return;
    message->mark.epoch = actor->owned->epoch;
    memcpy(message->mark.name, actor->owned->text, sizeof message->mark.name);
}

void mu__owner_mark(const mu_actor *actor, const struct mail *mail)
{
    if (!is_marked(actor))
        return;
    if (mail->kind == OUT_NAMED)
        mu__owner_mark_again(actor, mail->of.named);
    else
        mark_message(actor->owned->text, actor->owned->epoch, mail);
}

void mu__owner_mark_forwarded(const struct owner_mark *mark, const struct mail *mail)
{
    if (mark->epoch != 0)
        mark_message(mark->name, mark->epoch, mail);
}

/* ---- knowing ---- */

static struct known_owner *oldest_known(const struct naming *names)
{
    return MU__LIST_FIRST(&names->known, struct known_owner, node);
}

static void forget_known(struct naming *names, struct known_owner *known)
{
    mu__text_map_remove(&names->known_map, &known->named);
    mu__list_remove(&names->known, &known->node);
    names->known_count--;
    free(known);
}

static struct known_owner *add_known(struct naming *names, struct mu__view name)
{
    struct known_owner *known;

    if (names->known_count == OWNER_MARKS_MAX)
        forget_known(names, oldest_known(names));
    known = calloc(1, sizeof *known);
    if (known == NULL)
        return NULL;
    mu__view_copy(name, known->text, sizeof known->text);
    known->named.text = mu__view_str(known->text);
    if (mu__text_map_add(&names->known_map, &known->named) != 0) {
        free(known);
        return NULL;
    }
    mu__list_append(&names->known, &known->node);
    names->known_count++;
    return known;
}

/* By the service, which is right whatever the epochs were before. */
static bool is_former_by_news(const struct office *office, struct mu__view name,
                              uint64_t epoch)
{
    const struct name_entry *entry = mu__name_entry_find(office, name);

    return entry != NULL && !entry->takes_any && entry->epoch > epoch;
}

bool mu__owner_is_former(struct office *office, struct mu__view name, uint64_t epoch)
{
    struct naming *names = office->names;
    uint64_t now_ms = mu__now_ms(&office->ctx);
    struct known_owner *known;

    if (is_former_by_news(office, name, epoch))
        return true;
    while (oldest_known(names) != NULL &&
           oldest_known(names)->heard_ms + OWNER_MARKS_MS <= now_ms)
        forget_known(names, oldest_known(names));
    known = (struct known_owner *)(void *)mu__text_map_find(&names->known_map, name);
    if (known != NULL && known->epoch > epoch)
        return true;
    if (known == NULL)
        known = add_known(names, name);
    if (known == NULL)
        return false;
    known->epoch = epoch;
    known->heard_ms = now_ms;
    mu__list_remove(&names->known, &known->node);
    mu__list_append(&names->known, &known->node);
    return false;
}

int mu__owner_check(struct office *office, const struct peer *peer, struct mu__view name,
                    uint64_t epoch, mu_error *ret_error)
{
    int rv = mu__name_check(name, ret_error);

    if (rv != 0)
        return rv;
    if (mu__right_to_be(peer->type) < MU__RIGHT_TASK)
        return mu_error_set(ret_error, -MU_EPERMISSION,
                            "a %s does not own the name of an actor", peer->type);
    if (!mu__owner_is_former(office, name, epoch))
        return 0;
    office->names->dropped++;
    return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                        "the sender's name has a later owner");
}

void mu__owner_marks_done(struct naming *names)
{
    while (oldest_known(names) != NULL)
        forget_known(names, oldest_known(names));
    mu__text_map_done(&names->known_map);
}
