/* Actors that are wanted under a name, and monitors of names. */
#include "actors/names/naming.h"
#include "actors/packing.h"
#include "actors/user/actions.h"
#include "runtime/message/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- wishes ---- */

static struct name_wish *first_wish(const struct name_entry *entry)
{
    return MU__LIST_FIRST(&entry->wishes, struct name_wish, node);
}

static struct name_wish *next_wish(const struct name_wish *wish)
{
    return MU__LIST_NEXT(wish, struct name_wish, node);
}

static void end_with_wish(struct name_entry *entry, struct name_wish *wish)
{
    mu__list_remove(&entry->wishes, &wish->node);
    mu__wish_free(wish);
}

static void send_wish(struct office *office, const struct name_entry *entry,
                      const struct name_wish *wish)
{
    struct mu__msg *msg =
        mu__naming_msg(office, MU__NAME_MAKE, sizeof(struct mu__name_make),
                       3 * (MU__ACTOR_NAME_MAX + 1));
    struct mu__name_make *body;
    uint8_t *at;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = wish->token;
    body->name = mu__view_str(entry->text);
    body->type = mu__view_str(wish->type);
    body->task_type = mu__view_str(wish->task_type);
    at = mu__pack_view((uint8_t *)(body + 1), &body->name);
    at = mu__pack_view(at, &body->type);
    (void)mu__pack_view(at, &body->task_type);
    body->flags = wish->options.flags;
    body->mailbox_max = wish->options.mailbox_max;
    body->mailbox_bytes_max = wish->options.mailbox_bytes_max;
    body->policy = (uint32_t)wish->options.restart;
    body->restarts = wish->options.restarts;
    body->within_ms = wish->options.restarts_within_ms;
    if (wish->args != NULL) {
        msg->backing = mu__pack_value(wish->args, &body->args);
        if (msg->backing == NULL) {
            mu__msg_free(&office->ctx, msg);
            return;
        }
    }
    mu__naming_post(office, msg);
}

static void end_wish(struct office *office, struct name_entry *entry,
                     struct name_wish *wish, const mu_error *error)
{
    struct pending_call *call =
        wish->call == 0 ? NULL : mu__map_get(&office->calls, wish->call);
    mu_address address = mu__name_entry_address(entry);

    if (call != NULL)
        mu__call_end(office, call, error == NULL ? mu_value_actor(&address) : NULL,
                     error);
    else if (error != NULL && wish->call == 0)
        mu__log(&office->ctx, MU__LOG_WARN, "an actor \"%s\" cannot be made: %s",
                entry->text, error->message);
    end_with_wish(entry, wish);
}

void mu__wishes_end(struct office *office, struct name_entry *entry,
                    const mu_error *error)
{
    struct name_wish *next;

    for (struct name_wish *wish = first_wish(entry); wish != NULL; wish = next) {
        next = next_wish(wish);
        if (wish->is_answered)
            end_wish(office, entry, wish, error);
    }
}

struct name_wish *mu__wish_new(const char *type, const mu_value *args,
                               const mu_actor_options *options)
{
    struct name_wish *wish = calloc(1, sizeof *wish);

    if (wish == NULL)
        return NULL;
    wish->args = args == NULL ? NULL : mu_value_ref(args);
    wish->options = *options;
    (void)snprintf(wish->name, sizeof wish->name, "%s", options->name);
    (void)snprintf(wish->type, sizeof wish->type, "%s", type);
    (void)snprintf(wish->task_type, sizeof wish->task_type, "%.15s",
                   options->task_type == NULL ? "" : options->task_type);
    wish->options.name = wish->options.task_type = NULL;
    return wish;
}

void mu__wish_free(struct name_wish *wish)
{
    if (wish == NULL)
        return;
    mu_value_free(wish->args);
    free(wish);
}

void mu__wish_of_thread(struct name_wish *wish, uint64_t call)
{
    wish->call = call;
}

int mu__naming_wish(struct office *office, struct name_wish *wish, mu_error *ret_error)
{
    struct name_entry *entry = mu__name_entry_get(office, wish->name);

    if (entry == NULL) {
        mu__wish_free(wish);
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "no room for another name of an actor");
    }
    wish->token = ++office->number_next;
    mu__list_append(&entry->wishes, &wish->node);
    send_wish(office, entry, wish);
    return 0;
}

void mu__wishes_send(struct office *office, const struct name_entry *entry)
{
    for (const struct name_wish *wish = first_wish(entry); wish != NULL;
         wish = next_wish(wish))
        send_wish(office, entry, wish);
}

void mu__wishes_free(struct name_entry *entry)
{
    while (first_wish(entry) != NULL)
        end_with_wish(entry, first_wish(entry));
}

bool mu__wish_answered(struct office *office, struct name_entry *entry,
                       const struct mu__name_news *body)
{
    struct name_wish *wish = first_wish(entry);
    bool is_refused = body->state == MU__NAME_UNKNOWN && body->code != 0;
    mu_error error;

    if (entry->stop_token == body->token)
        entry->stop_token = 0;
    while (wish != NULL && wish->token != body->token)
        wish = next_wish(wish);
    if (wish == NULL)
        return is_refused;
    wish->is_answered = true;
    if (!is_refused)
        return false;
    error =
        (mu_error){.code = -(int)body->code, .kind = MU_ERROR_ACTOR, .ran = MU_RAN_NO};
    mu__view_copy(body->message, error.message, sizeof error.message);
    end_wish(office, entry, wish, &error);
    return true;
}

/* ---- monitors ---- */

void mu__name_entry_down(struct office *office, struct name_entry *entry,
                         const mu_error *why)
{
    mu_address address = mu__name_entry_address(entry);

    while (!mu__list_is_empty(&entry->watches)) {
        struct name_watch *watch =
            MU__LIST_ENTRY(mu__list_pop(&entry->watches), struct name_watch, node);
        struct mail *mail =
            mu__mail_notice(office, watch->actor, MU_NOTICE_DOWN, watch->token, &address);

        if (mail != NULL && why != NULL) {
            mail->error = mu__error_copy(why);
            mail->code = why->code;
        }
        free(watch);
    }
}

/* DOWN comes when a name has failed for good, or was stopped. */
void mu__naming_watch(struct office *office, struct user_watch *user)
{
    struct name_entry *entry = mu__name_entry_get(office, user->address.name);
    struct name_watch *watch = entry == NULL ? NULL : calloc(1, sizeof *watch);
    mu_error error;

    if (watch != NULL) {
        watch->actor = user->watcher->number;
        watch->token = user->token;
        mu__list_append(&entry->watches, &watch->node);
    }
    if (watch != NULL && entry->state == MU__NAME_FAILED) {
        mu__name_entry_failure(entry, &error);
        mu__name_entry_down(office, entry, &error);
    }
    free(user);
}

void mu__naming_unwatch(struct office *office, uint32_t actor, uint64_t token)
{
    const struct mu__text_map *entries = &office->names->entries;

    for (struct mu__text_node *node = mu__text_map_next(entries, NULL); node != NULL;
         node = mu__text_map_next(entries, node)) {
        struct name_entry *entry = (struct name_entry *)(void *)node;
        struct name_watch *next;

        for (struct name_watch *watch =
                 MU__LIST_FIRST(&entry->watches, struct name_watch, node);
             watch != NULL; watch = next) {
            next = MU__LIST_NEXT(watch, struct name_watch, node);
            if (watch->actor != actor || watch->token != token)
                continue;
            mu__list_remove(&entry->watches, &watch->node);
            free(watch);
        }
    }
}
