/* Monitors. Of two nodes each has one half of a monitor, under the number that the
 * watcher's node gave it; each half ends once. */
#include "actors/user/actions.h"

#include <stdlib.h>

/* ---- halves ---- */

static void unlist_target(struct user_watch *watch)
{
    if (watch->target != NULL)
        mu__list_remove(&watch->target->ties->watchers, &watch->of_target);
    else if (watch->target_peer != NULL)
        mu__list_remove(&watch->target_peer->targets, &watch->of_target);
    watch->target = NULL;
    watch->target_peer = NULL;
}

void mu__watch_free(struct office *office, struct user_watch *watch)
{
    unlist_target(watch);
    if (watch->watcher != NULL) {
        (void)mu__map_remove(&office->watches, watch->id);
        mu__list_remove(&watch->watcher->ties->watches, &watch->of_watcher);
    }
    if (watch->watcher_peer != NULL) {
        watch->watcher_peer->watchers_count--;
        mu__list_remove(&watch->watcher_peer->watchers, &watch->of_watcher);
    }
    free(watch);
}

/* ---- DOWN ---- */

static void send_down(struct office *office, const struct user_watch *watch,
                      const mu_error *why)
{
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_DOWN);
    struct mu__actor_down *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->monitor = watch->id;
    if (why != NULL) {
        body->code = (uint32_t)-why->code;
        body->error_kind = (uint32_t)why->kind;
        body->task = mu__view_str(why->task);
        body->function = mu__view_str(why->function);
        body->message = mu__view_str(why->message);
    }
    (void)mu__send(&office->ctx, (mu__pid){watch->watcher_peer->number, MU__ACTORS}, msg);
}

void mu__watch_down(struct office *office, struct user_watch *watch, const mu_error *why)
{
    struct mail *mail;

    if (watch->watcher_peer != NULL) {
        send_down(office, watch, why);
    } else {
        mail = mu__mail_notice(office, watch->watcher->number, MU_NOTICE_DOWN,
                               watch->token, &watch->address);
        if (mail != NULL && why != NULL) {
            mail->error = mu__error_copy(why);
            mail->code = why->code;
        }
    }
    mu__watch_free(office, watch);
}

/* ---- beginning and dropping ---- */

static void send_user_watch(struct office *office, const struct user_watch *watch,
                            uint16_t kind)
{
    struct mu__msg *msg = mu__msg_new(&office->ctx, kind);
    struct mu__actor_watch *body;

    if (msg == NULL)
        return;
    body = mu__body(msg); /* ACTOR_UNWATCH has the same fields */
    body->actor = watch->address.number;
    body->monitor = watch->id;
    mu__peer_send(office, watch->target_peer, msg);
}

static void refuse_new_watch(struct office *office, struct user_watch *watch, int code,
                             const char *words)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s", words);
    mu__answer_error(office, NULL, NULL, MU_RAN_UNKNOWN, &error);
    mu__watch_down(office, watch, &error);
}

static void watch_remote(struct office *office, struct user_watch *watch)
{
    mu_error error;
    struct peer *peer = mu__peer_reach(office, &watch->address, &error);

    if (peer == NULL) {
        mu__watch_down(office, watch, &error);
        return;
    }
    watch->target_peer = peer;
    mu__list_append(&peer->targets, &watch->of_target);
    send_user_watch(office, watch, MU__ACTOR_WATCH);
}

void mu__watch_begin(struct office *office, struct user_watch *watch)
{
    struct actor_ties *ties;
    mu_actor *target;

    if (watch->watcher != NULL) {
        if (mu__map_set(&office->watches, watch->id, watch) != 0) {
            free(watch);
            return;
        }
        mu__list_append(&watch->watcher->ties->watches, &watch->of_watcher);
    }
    if (watch->address.incarnation != office->config.incarnation) {
        watch_remote(office, watch);
        return;
    }
    target = mu__actor_find(office, watch->address.number);
    ties = target == NULL ? NULL : mu__actor_ties_get(target);
    if (target == NULL)
        refuse_new_watch(office, watch, -MU_ENOTFOUND, "there is no such actor");
    else if (ties == NULL)
        refuse_new_watch(office, watch, -MU_ENOMEM, "no memory to watch the actor");
    if (ties == NULL)
        return;
    watch->target = target;
    mu__list_append(&ties->watchers, &watch->of_target);
}

static void end_user_watch(struct office *office, struct user_watch *watch)
{
    if (watch->target_peer != NULL)
        send_user_watch(office, watch, MU__ACTOR_UNWATCH);
    mu__watch_free(office, watch);
}

void mu__watch_drop(struct office *office, mu_actor *watcher, uint64_t token)
{
    struct user_watch *next;

    for (struct user_watch *watch = MU__LIST_FIRST(&mu__actor_ties(watcher)->watches,
                                                   struct user_watch, of_watcher);
         watch != NULL; watch = next) {
        next = MU__LIST_NEXT(watch, struct user_watch, of_watcher);
        if (watch->token != token)
            continue;
        end_user_watch(office, watch);
    }
}

/* The actor has ended: whoever watches it hears of it, and it watches nobody. */
void mu__watch_actor_ended(mu_actor *actor)
{
    struct office *office = actor->office;

    while (!mu__list_is_empty(&actor->ties->watchers))
        mu__watch_down(office,
                       MU__LIST_ENTRY(actor->ties->watchers.first, struct user_watch,
                                      of_target),
                       actor->why);
    while (!mu__list_is_empty(&actor->ties->watches))
        end_user_watch(office, MU__LIST_ENTRY(actor->ties->watches.first,
                                              struct user_watch, of_watcher));
}
