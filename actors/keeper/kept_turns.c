/* Turns of kept actors: what they record, and what waits until that is kept. */
#include "actors/keep.h"
#include "actors/keeper/kept_state.h"
#include "actors/names/naming.h"

#include "actors/packing.h"
#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A record of the turn that is being taken. */
struct kept_record {
    struct mu__list_node node;
    mu_value *value;
};

/* ---- recording ---- */

int mu_actor_record(mu_actor *self, const mu_value *record)
{
    struct turn *turn;
    struct kept *kept;
    struct kept_record *one;
    int rv;

    if (self == NULL)
        return -MU_EINVALID;
    turn = mu__turn_of(self);
    kept = self->kept;
    if (turn == NULL || kept == NULL ||
        (record == NULL ? kept->own.type->save == NULL : kept->own.type->replay == NULL))
        return -MU_EPRECONDITION;
    turn->kept.saves |= record == NULL;
    if (record == NULL)
        return 0;
    one = calloc(1, sizeof *one);
    if (one == NULL)
        return -MU_ENOMEM;
    one->value = mu_value_ref(record);
    mu__list_append(&turn->kept.records, &one->node);
    rv = kept->own.type->replay(self->state, record);
    turn->kept.is_spoilt |= rv != 0;
    return rv;
}

void mu__kept_records_done(struct turn *turn)
{
    while (!mu__list_is_empty(&turn->kept.records)) {
        struct kept_record *one =
            MU__LIST_ENTRY(mu__list_pop(&turn->kept.records), struct kept_record, node);

        mu_value_free(one->value);
        free(one);
    }
}

/* ---- items ---- */

/* The items of a turn, before they are sent. */
struct turn_items {
    struct kept *kept;
    struct mu__msg *first;
    struct mu__msg *last;
    uint64_t count;
    uint64_t bytes;
};

static void free_turn_items(struct turn_items *items)
{
    while (items->first != NULL) {
        struct mu__msg *msg = items->first;

        items->first = msg->next;
        mu__msg_free(&items->kept->office->ctx, msg);
    }
}

/* The name is in the message, which may be handled after this life. */
static int add_item(struct turn_items *items, const struct mu__keep_item *from,
                    const mu_value *value)
{
    struct office *office = items->kept->office;
    size_t room = items->kept->named.text.size + from->message.size;
    struct mu__msg *msg = mu__pool_get(mu__kernel_pool(office->ctx.kernel), MU__KEEP_ITEM,
                                       sizeof *from + room);
    struct mu__keep_item *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    *body = *from;
    body->name = items->kept->named.text;
    body->epoch = items->kept->own.epoch;
    body->number = items->kept->number + ++items->count;
    (void)mu__pack_view(mu__pack_view((uint8_t *)(body + 1), &body->name),
                        &body->message);
    if (value != NULL)
        msg->backing = mu__pack_to_send(value, true, &body->value);
    msg->next = NULL;
    if (items->first == NULL)
        items->first = msg;
    else
        items->last->next = msg;
    items->last = msg;
    items->bytes += body->value.head_size + body->value.tail_size;
    return value != NULL && msg->backing == NULL ? -MU_ERANGE : 0;
}

static int add_whole(struct turn_items *items)
{
    const mu_actor_type *type = items->kept->own.type;
    const struct mu__keep_item item = {.kind = MU__KEPT_SNAPSHOT,
                                       .version = type->version};
    mu_value *saved = NULL;
    int rv = type->save(items->kept->actor->state, &saved);

    if (rv == 0)
        rv = add_item(items, &item, saved);
    mu_value_free(saved);
    return rv;
}

static int add_records(struct turn_items *items, const struct turn *turn)
{
    const struct mu__keep_item item = {.kind = MU__KEPT_RECORD};
    int rv = 0;

    for (const struct kept_record *one =
             MU__LIST_FIRST(&turn->kept.records, struct kept_record, node);
         one != NULL && rv == 0; one = MU__LIST_NEXT(one, struct kept_record, node))
        rv = add_item(items, &item, one->value);
    return rv;
}

static int add_answer(struct turn_items *items, const struct kept_window *window,
                      const struct kept_answer *answer)
{
    uint64_t now_ms = mu__now_ms(&items->kept->office->ctx);
    struct mu__keep_item item = {
        .kind = MU__KEPT_ANSWER,
        .sender = window->id,
        .call = answer->number,
        .base = window->base,
        .timeout_ms = window->until_ms > now_ms ? window->until_ms - now_ms : 0};

    if (answer->error != NULL) {
        item.code = (uint32_t)-answer->error->code;
        item.message = mu__view_str(answer->error->message);
    } else if (answer->given == KEPT_OWED) {
        item.code = MU_EABORTED;
        item.message = mu__view_str("the life of the actor that was to answer has ended");
    }
    return add_item(items, &item, item.code == 0 ? answer->value : NULL);
}

/* Answers of one sender that are no items, up to that of this turn: they were given
 * before it, and are to be the same after it. */
static int add_answers(struct turn_items *items, struct kept_window *window)
{
    int rv = 0;

    for (struct kept_answer *answer =
             MU__LIST_FIRST(&window->fresh, struct kept_answer, node);
         answer != NULL && rv == 0;
         answer = MU__LIST_NEXT(answer, struct kept_answer, node))
        if (answer->given != KEPT_PUT_OFF)
            rv = add_answer(items, window, answer);
    return rv;
}

static void settle_answers(struct kept_window *window)
{
    window->is_kept = true;
    while (!mu__list_is_empty(&window->fresh))
        MU__LIST_ENTRY(mu__list_pop(&window->fresh), struct kept_answer, node)->is_new =
            false;
}

static struct mu__msg *copy_message(struct kept *kept, const struct mu__msg *msg)
{
    const struct mu__keep_item *body = (const void *)msg->body;
    struct mu__msg *copy =
        mu__pool_get(mu__kernel_pool(kept->office->ctx.kernel), MU__KEEP_ITEM,
                     sizeof *body + body->name.size + body->message.size);
    struct mu__keep_item *to;

    if (copy == NULL)
        return NULL;
    to = mu__body(copy);
    *to = *body;
    (void)mu__pack_view(mu__pack_view((uint8_t *)(to + 1), &to->name), &to->message);
    if (msg->backing != NULL)
        copy->backing = mu__buf_ref(msg->backing);
    return copy;
}

/* A link sends what is too large for a frame in pieces, between other messages. */
static bool is_large(const struct mu__keep_item *item)
{
    return (uint64_t)item->value.head_size + item->value.tail_size >
           MU__ENCODED_BYTES_MAX / 2;
}

static void report_from(struct kept *kept, const struct mu__msg *msg)
{
    for (; msg != NULL && kept->large == 0; msg = msg->next) {
        const struct mu__keep_item *body = (const void *)msg->body;
        struct mu__msg *copy = copy_message(kept, msg);

        if (copy == NULL) {
            mu__kept_again(kept);
            return;
        }
        mu__kept_report(kept, copy);
        if (is_large(body))
            kept->large = body->number;
    }
}

void mu__kept_report_items(struct kept *kept)
{
    kept->large = 0;
    report_from(kept, kept->items_first);
}

/* They are sent, and stay here until they are flushed. */
static void keep_items(struct turn_items *items)
{
    struct kept *kept = items->kept;

    if (items->first == NULL)
        return;
    for (struct mu__msg *msg = items->first; msg->next != NULL; msg = msg->next)
        ((struct mu__keep_item *)mu__body(msg))->more = true;
    if (kept->items_first == NULL)
        kept->items_first = items->first;
    else
        kept->items_last->next = items->first;
    kept->items_last = items->last;
    kept->number += items->count;
    kept->items_bytes += items->bytes;
    if (kept->number - kept->flushed > MU__KEPT_UNFLUSHED_MAX ||
        kept->items_bytes > MU__KEPT_UNFLUSHED_BYTES)
        kept->is_held = true;
    report_from(kept, items->first);
}

void mu__kept_drop_items(struct kept *kept)
{
    while (kept->items_first != NULL) {
        struct mu__msg *msg = kept->items_first;

        kept->items_first = msg->next;
        mu__msg_free(&kept->office->ctx, msg);
    }
    kept->items_last = NULL;
    kept->items_bytes = 0;
}

/* ---- what waits ---- */

static void do_all(struct office *office, struct mu__list *out)
{
    while (!mu__list_is_empty(out))
        mu__turn_do(office, MU__LIST_ENTRY(mu__list_pop(out), struct mail, node));
}

/* Behind all that was decided so far. Without memory for a list it joins the last one. */
static void hold_out(struct kept *kept, struct mu__list *out)
{
    struct held_turn *last = MU__LIST_LAST(&kept->held, struct held_turn, node);
    struct held_turn *held;

    if (kept->flushed >= kept->number && last == NULL) {
        do_all(kept->office, out);
        return;
    }
    if (last != NULL && last->number == kept->number) {
        mu__list_append_all(&last->out, out);
        return;
    }
    held = calloc(1, sizeof *held);
    if (held == NULL) {
        mu__turn_undo(kept->office, out);
        mu__kept_spoil(kept);
        return;
    }
    held->number = kept->number;
    held->out = *out;
    *out = (struct mu__list){0};
    mu__list_append(&kept->held, &held->node);
}

void mu__kept_do_later(struct kept *kept, struct mail *mail)
{
    struct mu__list out = {0};

    mu__list_append(&out, &mail->node);
    hold_out(kept, &out);
}

void mu__kept_drop_held(struct kept *kept)
{
    while (!mu__list_is_empty(&kept->held)) {
        struct held_turn *held =
            MU__LIST_ENTRY(mu__list_pop(&kept->held), struct held_turn, node);

        mu__turn_undo(kept->office, &held->out);
        free(held);
    }
}

static void drop_flushed(struct kept *kept, uint64_t number)
{
    while (kept->items_first != NULL) {
        struct mu__msg *msg = kept->items_first;
        const struct mu__keep_item *body = mu__body(msg);

        if (body->number > number)
            break;
        kept->items_bytes -= body->value.head_size + body->value.tail_size;
        kept->items_first = msg->next;
        mu__msg_free(&kept->office->ctx, msg);
    }
    if (kept->items_first == NULL)
        kept->items_last = NULL;
}

void mu__kept_flushed(struct kept *kept, uint64_t number)
{
    if (number > kept->flushed)
        kept->flushed = number;
    drop_flushed(kept, kept->flushed);
    if (kept->large != 0 && kept->large <= kept->flushed)
        mu__kept_report_items(kept);
    while (!mu__list_is_empty(&kept->held)) {
        struct held_turn *held = MU__LIST_ENTRY(kept->held.first, struct held_turn, node);

        if (held->number > kept->flushed)
            return;
        mu__list_remove(&kept->held, &held->node);
        do_all(kept->office, &held->out);
        free(held);
    }
    mu__kept_ready(kept);
}

void mu__kept_spoil(struct kept *kept)
{
    if (kept->phase == KEPT_LIVE)
        kept->phase = KEPT_SPOILT;
    kept->is_held = true;
    mu__kept_ready(kept);
}

bool mu__kept_is_held(const struct kept *kept)
{
    return kept->is_held;
}

bool mu__kept_is_cut(const struct kept *kept)
{
    return kept->is_cut;
}

bool mu__kept_is_busy(const struct kept *kept)
{
    return !kept->is_cut && !mu__list_is_empty(&kept->held);
}

/* Turns may go on, as far as this life has to wait for nothing else. */
void mu__kept_ready(struct kept *kept)
{
    mu_actor *actor = kept->actor;

    if (actor->ends) {
        if (mu__list_is_empty(&kept->held))
            mu__actor_poke(actor);
        return;
    }
    if (kept->phase == KEPT_SPOILT && kept->flushed >= kept->number &&
        kept->office->turn == NULL) {
        mu__turn_clear_state(actor);
        mu__kept_refuse_put_off(kept);
        mu__kept_load(kept);
    } else if (kept->phase == KEPT_LIVE &&
               kept->number - kept->flushed <= MU__KEPT_UNFLUSHED_MAX / 2 &&
               kept->items_bytes <= MU__KEPT_UNFLUSHED_BYTES / 2 && kept->is_held) {
        kept->is_held = false;
        mu__actor_poke(actor);
    }
}

/* ---- the end of a turn ---- */

/* Answers to calls that were put off are none by themselves: these may have read only. */
static bool has_effect(const struct turn *turn)
{
    const struct mail *mail = MU__LIST_FIRST(&turn->out, struct mail, node);

    while (mail != NULL && mail->kind == OUT_REPLY && mail->of.reply->is_put_off)
        mail = MU__LIST_NEXT(mail, struct mail, node);
    return mail != NULL || turn->kept.saves || !mu__list_is_empty(&turn->kept.records);
}

static int set_reply(struct kept *kept, const struct mail *mail)
{
    const struct kept_origin *origin = &mail->of.reply->origin;
    struct kept_window *window = mu__kept_window_find(kept, origin->sender);

    if (window == NULL)
        return 0; /* nobody waits for it any more */
    window->is_added = false;
    return mu__kept_answer_set(kept, origin,
                               mail->value == NULL ? NULL : mu_value_ref(mail->value),
                               mail->error, KEPT_GIVEN);
}

/* Those of its sender, once in a turn. */
static int add_reply(struct turn_items *items, const struct mail *mail)
{
    struct kept_window *window =
        mu__kept_window_find(items->kept, mail->of.reply->origin.sender);

    if (window == NULL || window->is_added)
        return 0;
    window->is_added = true;
    return add_answers(items, window);
}

static bool is_given_later(const struct mail *mail)
{
    return mail->kind == OUT_REPLY && mail->of.reply->origin.sender != 0;
}

/* Answers that were put off, and are given now. */
static int add_given(struct turn_items *items, const struct turn *turn)
{
    const struct mail *first = MU__LIST_FIRST(&turn->out, struct mail, node);
    int rv = 0;

    for (const struct mail *mail = first; mail != NULL && rv == 0;
         mail = MU__LIST_NEXT(mail, struct mail, node))
        if (is_given_later(mail))
            rv = set_reply(items->kept, mail);
    if (rv != 0 || !has_effect(turn))
        return rv;
    for (const struct mail *mail = first; mail != NULL && rv == 0;
         mail = MU__LIST_NEXT(mail, struct mail, node))
        if (is_given_later(mail))
            rv = add_reply(items, mail);
    return rv;
}

/* The turn was kept, and with it what was answered in it; or it was not, and they are put
 * off as before. */
static void settle_given(struct kept *kept, const struct turn *turn, bool is_kept)
{
    bool has_read = !has_effect(turn);

    for (const struct mail *mail = MU__LIST_FIRST(&turn->out, struct mail, node);
         mail != NULL; mail = MU__LIST_NEXT(mail, struct mail, node)) {
        struct kept_window *window =
            mail->kind == OUT_REPLY
                ? mu__kept_window_find(kept, mail->of.reply->origin.sender)
                : NULL;

        if (window != NULL && !is_kept)
            (void)mu__kept_answer_set(kept, &mail->of.reply->origin, NULL, NULL,
                                      mail->of.reply->is_put_off ? KEPT_PUT_OFF
                                                                 : KEPT_OWED);
        else if (window != NULL && !has_read)
            settle_answers(window);
    }
}

static struct kept_window *window_of_message(const struct kept *kept,
                                             const struct turn *turn)
{
    return turn->mail == NULL || turn->mail->kept == NULL
               ? NULL
               : mu__kept_window_find(kept, turn->mail->kept->sender);
}

/* A stream is of one life, and of one link: it is no answer to a repeat of its call. */
static const mu_error stream_is_over = {
    .code = -MU_EABORTED,
    .kind = MU_ERROR_ACTOR,
    .ran = MU_RAN_YES,
    .message = "the call was answered by a stream, which was lost",
};

static enum kept_given given_in(const struct turn *turn)
{
    if (turn->later == NULL)
        return KEPT_GIVEN;
    return turn->later->is_put_off ? KEPT_PUT_OFF : KEPT_OWED;
}

/* Whether what the message is answered is an item. */
static bool keeps_answer(const struct turn *turn)
{
    return given_in(turn) == KEPT_OWED ||
           (given_in(turn) == KEPT_GIVEN && has_effect(turn));
}

static int add_of_message(struct turn_items *items, const struct turn *turn)
{
    struct kept_window *window = window_of_message(items->kept, turn);
    int rv;

    if (window == NULL)
        return 0;
    rv = mu__kept_answer_set(items->kept, turn->mail->kept,
                             turn->reply == NULL ? NULL : mu_value_ref(turn->reply),
                             turn->stream == NULL ? turn->failure : &stream_is_over,
                             given_in(turn));
    return rv != 0 || !keeps_answer(turn) ? rv : add_answers(items, window);
}

static bool needs_whole(const struct kept *kept, const struct turn *turn)
{
    bool starts = turn->mail != NULL && turn->mail->kind == MAIL_START;

    return turn->kept.saves || (kept->own.type->save != NULL &&
                                ((starts && mu__list_is_empty(&turn->kept.records)) ||
                                 kept->records >= MU__KEPT_SNAPSHOT_RECORDS));
}

/* The error of the turn; without memory for it, that which its code has. */
static int refuse_items(struct turn *turn)
{
    const struct mu__kept_own *own = &turn->actor->kept->own;
    mu_error error;

    (void)mu_error_set(&error, -MU_EEXHAUSTED,
                       "/job:%s/task:%" PRIu32
                       " keeps no more of actors: it has all bytes that it may have, "
                       "until some of them are stopped",
                       own->keeper_type, own->keeper_index);
    free(turn->failure);
    turn->failure = mu__error_copy(&error);
    return error.code;
}

int mu__kept_commit(struct turn *turn)
{
    struct kept *kept = turn->actor->kept;
    struct turn_items items = {.kept = kept};
    bool is_whole = needs_whole(kept, turn);
    int rv = is_whole ? add_whole(&items) : add_records(&items, turn);

    if (rv == 0)
        rv = add_given(&items, turn);
    if (rv == 0)
        rv = add_of_message(&items, turn);
    if (rv == 0 && items.count > 0 && kept->is_full)
        rv = refuse_items(turn);
    settle_given(kept, turn, rv == 0);
    if (rv != 0) {
        free_turn_items(&items);
        turn->kept.is_spoilt = true; /* perhaps only in part */
        return rv;
    }
    if (window_of_message(kept, turn) != NULL && keeps_answer(turn))
        settle_answers(window_of_message(kept, turn));
    kept->records = is_whole ? 0 : kept->records + (items.count > 0);
    keep_items(&items);
    return 0;
}

void mu__kept_note_failure(const struct turn *turn, const mu_error *error)
{
    if (turn->mail != NULL && turn->mail->kept != NULL)
        (void)mu__kept_answer_set(turn->actor->kept, turn->mail->kept, NULL, error,
                                  KEPT_GIVEN);
}

/* What concerns the actor alone is done now. */
static void do_own(mu_actor *actor, struct mu__list *out)
{
    struct mail *next;

    for (struct mail *mail = MU__LIST_FIRST(out, struct mail, node); mail != NULL;
         mail = next) {
        next = MU__LIST_NEXT(mail, struct mail, node);
        if (mail->kind == OUT_UNMONITOR) {
            mu__watch_drop(actor->office, actor, mail->token);
            mu__naming_unwatch(actor->office, actor->number, mail->token);
        }
        if (mail->kind != OUT_TIMER && mail->kind != OUT_TIMER_CANCEL)
            continue;
        mu__list_remove(out, &mail->node);
        mu__turn_do(actor->office, mail);
    }
}

void mu__kept_hold(struct turn *turn)
{
    do_own(turn->actor, &turn->out);
    hold_out(turn->actor->kept, &turn->out);
}

/* A message to a node that was lost meanwhile: a send is lost with it. */
static void lose_mail(struct office *office, struct mu__list *out, struct mail *mail,
                      const mu_error *why)
{
    if (mail->call == NULL) {
        mu__list_remove(out, &mail->node);
        mu__mail_free(office, mail);
        return;
    }
    mail->kind = OUT_FAILED;
    mail->call->peer = NULL;
    mail->error = mu__error_copy(why);
}

static void lose_held(struct office *office, struct mu__list *out,
                      const struct peer *peer, const mu_error *why)
{
    struct mail *next;

    for (struct mail *mail = MU__LIST_FIRST(out, struct mail, node); mail != NULL;
         mail = next) {
        next = MU__LIST_NEXT(mail, struct mail, node);
        if (mail->kind == OUT_REMOTE && mail->peer == peer)
            lose_mail(office, out, mail, why);
    }
}

void mu__kept_peer_lost(struct office *office, const struct peer *peer,
                        const mu_error *why)
{
    struct mu__text_node *node = NULL;

    while ((node = mu__text_map_next(&office->kept.owned, node)) != NULL)
        for (struct held_turn *held =
                 MU__LIST_FIRST(&((struct kept *)node)->held, struct held_turn, node);
             held != NULL; held = MU__LIST_NEXT(held, struct held_turn, node))
            lose_held(office, &held->out, peer, why);
    mu__kept_ways_lost(office, peer);
}

void mu__kept_forget(struct kept *kept, uint64_t sender)
{
    const struct mu__keep_item item = {.kind = MU__KEPT_FORGET, .sender = sender};
    struct turn_items items = {.kept = kept};

    if (kept->phase != KEPT_LOADING && add_item(&items, &item, NULL) == 0)
        keep_items(&items);
    else
        free_turn_items(&items);
}
