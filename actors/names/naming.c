/* What an office knows of names: entries, news, and what waits for an owner. */
#include "actors/names/naming.h"
#include "actors/keeper/kept.h"
#include "actors/names/name_rules.h"
#include "actors/names/owner_marks.h"
#include "actors/names/relays.h"
#include "actors/packing.h"
#include "actors/user/actions.h"
#include "actors/user/looking.h"
#include "runtime/message/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- to the service ---- */

struct mu__msg *mu__naming_msg(struct office *office, uint16_t kind, size_t body,
                               size_t texts)
{
    return office->names->has_service
               ? mu__pool_get(mu__kernel_pool(office->ctx.kernel), kind, body + texts)
               : NULL;
}

/* What is lost with the link, or for want of a right, is sent again in the next session.
 */
void mu__naming_post(struct office *office, struct mu__msg *msg)
{
    (void)mu__send(&office->ctx, (mu__pid){office->names->service, MU__COORDINATION},
                   msg);
}

void mu__naming_arm(struct office *office, uint64_t due_ms)
{
    struct naming *names = office->names;
    uint64_t now_ms = mu__now_ms(&office->ctx);

    if (names->timer != 0 && names->timer_ms <= due_ms)
        return;
    mu__timer_cancel(&office->ctx, names->timer);
    names->timer_ms = due_ms;
    names->timer = mu__timer_set(&office->ctx, due_ms > now_ms ? due_ms - now_ms : 0,
                                 OFFICE_TIMER_NAMES);
}

static void send_find(struct office *office, const struct name_entry *entry)
{
    size_t size = strlen(entry->text);
    struct mu__msg *msg =
        mu__naming_msg(office, MU__NAME_FIND, sizeof(struct mu__name_find), size);
    struct mu__name_find *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->name = mu__view_str(entry->text);
    (void)mu__pack_view((uint8_t *)(body + 1), &body->name);
    mu__naming_post(office, msg);
}

static void send_end(struct office *office, const struct name_entry *entry)
{
    size_t size = strlen(entry->text);
    struct mu__msg *msg =
        mu__naming_msg(office, MU__NAME_STOP, sizeof(struct mu__name_stop), size);
    struct mu__name_stop *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->name = mu__view_str(entry->text);
    body->token = entry->stop_token;
    body->how = entry->stop_how;
    (void)mu__pack_view((uint8_t *)(body + 1), &body->name);
    mu__naming_post(office, msg);
}

/* ---- entries ---- */

struct name_entry *mu__name_entry_find(const struct office *office, struct mu__view name)
{
    return (struct name_entry *)(void *)mu__text_map_find(&office->names->entries, name);
}

/* The entry of a name that was checked; a new one is followed. NULL: no room. */
struct name_entry *mu__name_entry_get(struct office *office, const char *name)
{
    struct naming *names = office->names;
    struct name_entry *entry = mu__name_entry_find(office, mu__view_str(name));

    if (entry != NULL)
        return entry;
    entry = names->count < NAMES_MAX ? calloc(1, sizeof *entry) : NULL;
    if (entry == NULL)
        return NULL;
    (void)snprintf(entry->text, sizeof entry->text, "%s", name);
    entry->named.text = mu__view_str(entry->text);
    entry->state = MU__NAME_WAITS;
    if (mu__text_map_add(&names->entries, &entry->named) != 0) {
        free(entry);
        return NULL;
    }
    names->count++;
    send_find(office, entry);
    return entry;
}

static struct name_message *first_name_message(const struct name_entry *entry)
{
    return MU__LIST_FIRST(&entry->waiting, struct name_message, node);
}

static void free_name_message(struct name_message *message)
{
    if (message->waits)
        mu__list_remove(&message->entry->waiting, &message->node);
    message->entry->waiting_count--;
    message->entry->waiting_bytes -= message->bytes;
    if (message->call != NULL)
        message->call->named = NULL;
    mu_value_free(message->args);
    free(message);
}

static void free_name_entry(struct office *office, struct name_entry *entry)
{
    mu__wishes_free(entry);
    while (first_name_message(entry) != NULL)
        free_name_message(first_name_message(entry));
    while (!mu__list_is_empty(&entry->watches))
        free(MU__LIST_ENTRY(mu__list_pop(&entry->watches), struct name_watch, node));
    while (!mu__list_is_empty(&entry->rooms))
        free(MU__LIST_ENTRY(mu__list_pop(&entry->rooms), struct room_wait, node));
    mu__text_map_remove(&office->names->entries, &entry->named);
    office->names->count--;
    free(entry);
}

/* ---- messages that wait ---- */

static bool is_name_full(const struct name_entry *entry, uint32_t bytes)
{
    return entry->waiting_count >= NAME_WAITING_MAX ||
           (entry->waiting_bytes > 0 &&
            entry->waiting_bytes + bytes > NAME_WAITING_BYTES);
}

mu_address mu__name_entry_address(const struct name_entry *entry)
{
    mu_address address = entry->owner;

    memcpy(address.name, entry->text, sizeof address.name);
    return address;
}

static void review_rooms(struct office *office, struct name_entry *entry)
{
    mu_address address = mu__name_entry_address(entry);

    if (entry->waiting_count <= NAME_WAITING_MAX / 2 &&
        entry->waiting_bytes <= NAME_WAITING_BYTES / 2)
        mu__room_notify(office, &entry->rooms, &address);
}

static void note_sent(struct name_entry *entry, uint64_t number)
{
    if (number > entry->last)
        entry->last = number;
}

/* To a kept actor: the keeper's part of the office sends it, and sends it again. */
static int make_kept_call(struct office *office, const struct name_entry *entry,
                          const char *method, const mu_value *args,
                          struct pending_call *call, uint32_t waits, mu_error *ret_error,
                          struct mail **ret_mail)
{
    const mu_address to = mu__name_entry_address(entry);

    if (call == NULL)
        return mu__kept_send_make(office, &to, method, args, waits, ret_error, ret_mail);
    call->to = to;
    return mu__kept_call_make(office, entry->text, method, args, call, waits, ret_error,
                              ret_mail);
}

/* To an owner that runs. */
static int make_for_owner(struct office *office, struct name_entry *entry,
                          const char *method, const mu_value *args, uint32_t bytes,
                          struct pending_call *call, uint32_t waits, mu_error *ret_error,
                          struct mail **ret_mail)
{
    if (mu__relay_is_needed(office, entry))
        return mu__relay_make(office, entry, method, args, bytes, call, waits, ret_error,
                              ret_mail);
    if (entry->is_kept)
        return make_kept_call(office, entry, method, args, call, waits, ret_error,
                              ret_mail);
    return mu__message_make(office, &entry->owner, method, args, call, waits, ret_error,
                            ret_mail);
}

/* False: it has to wait. */
static bool forward_name_message(struct office *office, struct name_message *message)
{
    struct name_entry *entry = message->entry;
    struct pending_call *call = message->call;
    const struct owner_mark mark = message->mark;
    struct mail *mail = NULL;
    mu_error error = {0};
    int rv;

    if (call != NULL) {
        call->to = mu__name_entry_address(entry);
        call->epoch = entry->epoch;
    }
    rv = make_for_owner(office, entry, message->method, message->args, message->bytes,
                        call, 0, &error, &mail);
    if (rv == -MU_EAGAIN) {
        mu__naming_arm(office, mu__now_ms(&office->ctx) + NAME_AGAIN_MS);
        return false;
    }
    note_sent(entry, message->number);
    free_name_message(message);
    if (rv == 0) {
        mu__owner_mark_forwarded(&mark, mail);
        mu__turn_do(office, mail);
    } else if (call != NULL) {
        mu__call_fail(office, call, rv, error.message);
    }
    return true;
}

static void flush_entry(struct office *office, struct name_entry *entry)
{
    while (entry->state == MU__NAME_RUNS && first_name_message(entry) != NULL)
        if (!forward_name_message(office, first_name_message(entry)))
            break;
    review_rooms(office, entry);
}

static void insert_name_message(struct name_entry *entry, struct name_message *message)
{
    struct mu__list_node *at = entry->waiting.last;
    struct mu__list_node *later = NULL;

    for (; at != NULL &&
           MU__LIST_ENTRY(at, struct name_message, node)->number > message->number;
         at = at->prev)
        later = at;
    message->waits = true;
    mu__list_insert(&entry->waiting, later, &message->node);
}

static struct name_message *new_name_message(struct office *office,
                                             struct name_entry *entry, const char *method,
                                             const mu_value *args, uint32_t bytes,
                                             struct pending_call *call)
{
    struct name_message *message = calloc(1, sizeof *message);

    if (message == NULL)
        return NULL;
    message->entry = entry;
    message->number = call == NULL ? ++office->number_next : call->id;
    message->due_ms = mu__now_ms(&office->ctx) + NAME_SEND_MS;
    message->args = args == NULL ? NULL : mu_value_ref(args);
    message->call = call;
    message->bytes = bytes;
    (void)snprintf(message->method, sizeof message->method, "%s", method);
    if (call != NULL)
        call->named = message;
    entry->waiting_count++;
    entry->waiting_bytes += bytes;
    return message;
}

void mu__naming_send(struct office *office, struct name_message *message)
{
    struct name_entry *entry = message->entry;

    insert_name_message(entry, message);
    if (message->call == NULL)
        mu__naming_arm(office, message->due_ms);
    flush_entry(office, entry);
}

void mu__naming_drop(struct office *office, struct name_message *message)
{
    struct name_entry *entry = message->entry;

    free_name_message(message);
    review_rooms(office, entry);
}

/* The entry's owner is gone, as far as this node knows, until the service says more. */
static bool has_owner_here_ended(const struct office *office,
                                 const struct name_entry *entry)
{
    return entry->owner.incarnation == office->config.incarnation &&
           mu__actor_find(office, entry->owner.number) == NULL;
}

static int make_waiting(struct office *office, struct name_entry *entry,
                        const char *method, const mu_value *args, uint32_t bytes,
                        struct pending_call *call, uint32_t waits, mu_error *ret_error,
                        struct mail **ret_mail)
{
    struct mail *mail;

    if (is_name_full(entry, bytes)) {
        if (waits != 0)
            mu__room_add(&entry->rooms, waits);
        return mu_error_set(ret_error, -MU_EAGAIN,
                            "too many messages wait for the actor \"%s\"", entry->text);
    }
    mail = mu__mail_new(office, OUT_NAMED);
    if (mail != NULL)
        mail->of.named = new_name_message(office, entry, method, args, bytes, call);
    if (mail == NULL || mail->of.named == NULL) {
        if (mail != NULL)
            mu__mail_free(office, mail);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a message");
    }
    mail->call = call;
    *ret_mail = mail;
    return 0;
}

int mu__naming_make(struct office *office, const mu_address *to, const char *method,
                    const mu_value *args, uint32_t bytes, struct pending_call *call,
                    uint32_t waits, mu_error *ret_error, struct mail **ret_mail)
{
    struct name_entry *entry;
    int rv = mu__name_check(mu__view_str(to->name), ret_error);

    if (rv == 0)
        rv = mu__actors_check_called(method, ret_error);
    if (rv != 0)
        return rv;
    entry = mu__name_entry_get(office, to->name);
    if (entry == NULL)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "no room for another name of an actor");
    if (call != NULL && call->args == NULL && args != NULL)
        call->args = mu_value_ref(args);
    if (entry->state == MU__NAME_FAILED)
        return mu__refuse_at_sender(office, entry->code, entry->why, call, ret_error,
                                    ret_mail);
    if (entry->is_kept && entry->waiting_count == 0 &&
        !mu__relay_is_needed(office, entry))
        return make_kept_call(office, entry, method, args, call, waits, ret_error,
                              ret_mail);
    if (entry->state != MU__NAME_RUNS || entry->waiting_count > 0 ||
        (entry->is_relayed && !office->names->has_service) ||
        has_owner_here_ended(office, entry))
        return make_waiting(office, entry, method, args, bytes, call, waits, ret_error,
                            ret_mail);
    note_sent(entry, call == NULL ? ++office->number_next : call->id);
    if (call != NULL) {
        call->to = mu__name_entry_address(entry);
        call->epoch = entry->epoch;
    }
    return make_for_owner(office, entry, method, args, bytes, call, waits, ret_error,
                          ret_mail);
}

/* The owner seems gone. If it is, the service says so; else it is only this node that
 * does not reach it now. */
static void doubt_owner(struct office *office, struct name_entry *entry)
{
    entry->state = MU__NAME_WAITS;
    entry->request_ms = mu__now_ms(&office->ctx) + NAME_REQUEST_MS;
    mu__naming_arm(office, entry->request_ms);
}

/* What would come behind later messages of its sender is not sent again. */
bool mu__naming_again(struct office *office, struct pending_call *call)
{
    struct name_entry *entry = mu__name_entry_find(office, mu__view_str(call->to.name));
    struct name_message *message;
    uint32_t bytes = 0;

    if (entry == NULL || call->named != NULL || call->kept.way != NULL ||
        entry->state == MU__NAME_FAILED ||
        (entry->epoch != call->epoch && entry->last > call->id))
        return false;
    if (entry->epoch == call->epoch && entry->state == MU__NAME_RUNS)
        doubt_owner(office, entry);
    if (call->args != NULL)
        (void)mu__mail_measure(call->args, &bytes);
    message = new_name_message(office, entry, call->method, call->args, bytes, call);
    if (message == NULL)
        return false;
    mu__call_leave_peer(call);
    if (call->owner != NULL)
        mu__owner_mark_again(call->owner, message);
    insert_name_message(entry, message);
    flush_entry(office, entry);
    return true;
}

void mu__naming_end(struct office *office, const char *name, int how)
{
    struct name_entry *entry = mu__name_entry_get(office, name);

    if (entry == NULL)
        return;
    entry->stop_token = ++office->number_next;
    entry->stop_how = (uint32_t)how;
    send_end(office, entry);
}

/* ---- news ---- */

void mu__name_entry_failure(const struct name_entry *entry, mu_error *ret_error)
{
    (void)mu_error_set(ret_error, entry->code < 0 ? entry->code : -MU_EUNAVAILABLE,
                       "the actor \"%s\" is not started any more: %s", entry->text,
                       entry->why);
    ret_error->kind = MU_ERROR_ACTOR;
    ret_error->ran = MU_RAN_NO;
}

void mu__naming_say_failure(struct office *office, const char *name, mu_error *error)
{
    const struct name_entry *entry =
        name[0] == '\0' ? NULL : mu__name_entry_find(office, mu__view_str(name));

    if (entry != NULL && entry->state == MU__NAME_FAILED)
        mu__name_entry_failure(entry, error);
}

static void fail_name_messages(struct office *office, struct name_entry *entry,
                               const mu_error *error)
{
    while (first_name_message(entry) != NULL) {
        struct pending_call *call = first_name_message(entry)->call;

        free_name_message(first_name_message(entry));
        if (call != NULL)
            mu__call_end(office, call, NULL, error);
    }
}

static void read_owner_address(const struct mu__name_news *body, mu_address *ret_owner)
{
    *ret_owner = (mu_address){
        .index = body->index,
        .number = body->actor,
        .incarnation = body->incarnation,
    };
    mu__view_copy(body->task_type, ret_owner->type, sizeof ret_owner->type);
}

static void route_kept(struct office *office, struct name_entry *entry,
                       const mu_error *ends)
{
    const mu_address none = {.index = 0};

    if (!entry->is_kept)
        return;
    mu__kept_route(office, entry->text,
                   entry->state == MU__NAME_RUNS ? &entry->owner : &none);
    if (ends == NULL)
        return;
    mu__kept_way_fail(office, entry->text, ends);
    entry->is_kept = false; /* it is found out again */
}

static void enter_name_state(struct office *office, struct name_entry *entry,
                             enum mu__name_phase before)
{
    mu_error error;

    if (entry->state == MU__NAME_RUNS) {
        entry->is_kept = entry->owner.number == 0;
        route_kept(office, entry, NULL);
        mu__wishes_end(office, entry, NULL);
        flush_entry(office, entry);
    } else if (entry->state == MU__NAME_FAILED) {
        mu__name_entry_failure(entry, &error);
        route_kept(office, entry, &error);
        mu__wishes_end(office, entry, &error);
        fail_name_messages(office, entry, &error);
        mu__name_entry_down(office, entry, &error);
    } else if (entry->state == MU__NAME_UNKNOWN && before != MU__NAME_UNKNOWN) {
        (void)mu_error_set(&error, -MU_ENOTFOUND, "the actor \"%s\" was stopped",
                           entry->text);
        error.kind = MU_ERROR_ACTOR;
        route_kept(office, entry, &error);
        mu__wishes_end(office, entry, &error);
        mu__name_entry_down(office, entry, NULL);
    } else {
        route_kept(office, entry, NULL);
    }
}

/* What has not left for the former owner, which is being dialled, goes to the next. */
static void recall_unsent(struct office *office, const struct name_entry *entry,
                          const mu_address *former)
{
    struct peer *peer = former->incarnation == 0
                            ? NULL
                            : mu__map_get(&office->peers, former->incarnation);
    struct pending_call *next;

    if (peer == NULL || peer->number != 0)
        return;
    for (struct pending_call *call =
             MU__LIST_FIRST(&peer->calls, struct pending_call, of_peer);
         call != NULL; call = next) {
        next = MU__LIST_NEXT(call, struct pending_call, of_peer);
        if (call->is_sent || strcmp(call->to.name, entry->text) != 0)
            continue;
        mu__peer_unqueue(office, peer, call->id);
        (void)mu__naming_again(office, call);
    }
}

/* Of a lower epoch it is old. */
static void take_name_news(struct office *office, struct name_entry *entry,
                           const struct mu__name_news *body)
{
    enum mu__name_phase before = entry->state;
    const mu_address former = entry->owner;
    bool is_next;

    if (body->state != MU__NAME_UNKNOWN && body->epoch < entry->epoch &&
        !entry->takes_any)
        return;
    entry->takes_any = false;
    is_next = body->epoch != entry->epoch;
    entry->epoch = body->epoch;
    if (is_next)
        entry->last = 0;
    entry->request_ms = 0;
    entry->state = (enum mu__name_phase)body->state;
    entry->code = -(int)body->code;
    mu__view_copy(body->message, entry->why, sizeof entry->why);
    if (entry->state == MU__NAME_RUNS)
        read_owner_address(body, &entry->owner);
    if (is_next)
        recall_unsent(office, entry, &former);
    enter_name_state(office, entry, before);
}

void mu__naming_on_news(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__name_news *body = mu__body(msg);
    struct office *office = state;
    struct name_entry *entry;

    (void)ctx;
    if (msg->from.node != office->names->service || msg->from.actor != MU__COORDINATION)
        return;
    entry = mu__name_entry_find(office, body->name);
    if (entry != NULL && (body->token == 0 || !mu__wish_answered(office, entry, body)))
        take_name_news(office, entry, body);
}

void mu__naming_explain(const struct office *office, const struct pending_call *call,
                        char *out, size_t size)
{
    const struct name_entry *entry =
        mu__name_entry_find(office, mu__view_str(call->to.name));
    const char *why = "it is not running";

    if (!office->names->has_service)
        why = "this node is not registered with the coordination service";
    else if (entry != NULL && entry->why[0] != '\0')
        why = entry->why;
    else if (entry != NULL && entry->state == MU__NAME_RUNS)
        why = "its owner has not answered";
    else if (entry != NULL && entry->state == MU__NAME_UNKNOWN)
        why = "nobody has made it";
    (void)snprintf(out, size,
                   "%s of the actor \"%s\" was not answered within %" PRId64 " ms: %s",
                   call->method, call->to.name, call->timeout_ms, why);
}

/* ---- sessions ---- */

/* The epochs of another service's store may be lower. */
static void renew_entry(struct office *office, struct name_entry *entry)
{
    entry->takes_any = true;
    send_find(office, entry);
    mu__wishes_send(office, entry);
    if (entry->stop_token != 0)
        send_end(office, entry);
}

void mu__naming_on_session(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__service_session *body = mu__body(msg);
    struct office *office = state;
    struct naming *names = office->names;

    (void)ctx;
    names->has_service = true;
    names->service = body->node;
    mu__naming_begin_session(office);
    for (struct mu__text_node *node = mu__text_map_next(&names->entries, NULL);
         node != NULL; node = mu__text_map_next(&names->entries, node))
        renew_entry(office, (struct name_entry *)(void *)node);
}

void mu__naming_node_down(struct office *office, uint32_t node)
{
    if (node == office->names->service)
        office->names->has_service = false;
}

/* ---- time ---- */

static void lose_send(struct office *office, struct name_message *message)
{
    mu__log(&office->ctx, MU__LOG_WARN,
            "what was sent to the actor \"%s\" is lost: %s: it had no owner for %d ms",
            message->entry->text, message->method, NAME_SEND_MS);
    free_name_message(message);
}

static void review_entry(struct office *office, struct name_entry *entry)
{
    uint64_t now_ms = mu__now_ms(&office->ctx);
    struct name_message *next;

    flush_entry(office, entry);
    if (entry->request_ms != 0 && entry->request_ms <= now_ms) {
        entry->request_ms = now_ms + NAME_REQUEST_MS;
        send_find(office, entry);
    }
    if (entry->request_ms != 0)
        mu__naming_arm(office, entry->request_ms);
    for (struct name_message *message = first_name_message(entry); message != NULL;
         message = next) {
        next = MU__LIST_NEXT(message, struct name_message, node);
        if (message->call != NULL)
            continue;
        if (message->due_ms <= now_ms)
            lose_send(office, message);
        else
            mu__naming_arm(office, message->due_ms);
    }
    review_rooms(office, entry);
}

void mu__naming_on_timer(struct office *office)
{
    const struct mu__text_map *entries = &office->names->entries;

    office->names->timer = 0;
    for (struct mu__text_node *node = mu__text_map_next(entries, NULL); node != NULL;
         node = mu__text_map_next(entries, node))
        if (((struct name_entry *)(void *)node)->waiting_count > 0)
            review_entry(office, (struct name_entry *)(void *)node);
    mu__naming_own_timer(office);
}

/* ---- its life ---- */

int mu__naming_init(struct office *office)
{
    office->names = calloc(1, sizeof *office->names);
    if (office->names == NULL)
        return -MU_ENOMEM;
    office->names->entries.secret = mu__secret(&office->ctx);
    office->names->known_map.secret = mu__secret(&office->ctx);
    return 0;
}

void mu__naming_done(struct office *office)
{
    struct mu__text_node *node;

    if (office->names == NULL)
        return;
    while ((node = mu__text_map_next(&office->names->entries, NULL)) != NULL)
        free_name_entry(office, (struct name_entry *)(void *)node);
    mu__text_map_done(&office->names->entries);
    mu__owner_marks_done(office->names);
    free(office->names);
    office->names = NULL;
}
