/* Calls that come to a kept actor: numbered by their senders, so that a repeat is known,
 * and gets the answer that it has got. */
#include "actors/keep.h"
#include "actors/keeper/kept_state.h"

#include "runtime/message/codec.h"

#include <stdlib.h>
#include <string.h>

/* ---- windows ---- */

static void free_answer(struct kept_window *window, struct kept_answer *answer)
{
    if (answer->is_new)
        mu__list_remove(&window->fresh, &answer->node);
    mu_value_free(answer->value);
    free(answer->error);
    free(answer);
}

void mu__kept_window_raise(struct kept_window *window, uint64_t base)
{
    for (; window->base < base && window->base < window->end; window->base++) {
        struct kept_answer *answer = mu__map_remove(&window->answers, window->base);

        if (answer != NULL)
            free_answer(window, answer);
    }
    if (window->base < base)
        window->base = base;
}

static void free_window(struct kept_window *window)
{
    mu__kept_window_raise(window, window->end);
    mu__map_done(&window->answers);
    free(window);
}

void mu__kept_windows_done(struct kept *kept)
{
    for (size_t i = 0; i < kept->windows.capacity; i++)
        if (kept->windows.entries[i].key != 0)
            free_window(kept->windows.entries[i].value);
    mu__map_done(&kept->windows);
}

struct kept_window *mu__kept_window_find(const struct kept *kept, uint64_t sender)
{
    return mu__map_get(&kept->windows, sender);
}

struct kept_window *mu__kept_window_get(struct kept *kept, uint64_t sender)
{
    struct kept_window *window = mu__kept_window_find(kept, sender);

    if (window != NULL || kept->windows.count >= MU__KEPT_SENDERS_MAX)
        return window;
    window = calloc(1, sizeof *window);
    if (window == NULL)
        return NULL;
    window->id = sender;
    window->base = 1;
    if (mu__map_set(&kept->windows, sender, window) == 0)
        return window;
    free(window);
    return NULL;
}

static struct kept_answer *get_answer(struct kept_window *window, uint64_t number)
{
    struct kept_answer *answer = mu__map_get(&window->answers, number);

    if (answer != NULL)
        return answer;
    answer = calloc(1, sizeof *answer);
    if (answer == NULL)
        return NULL;
    answer->number = number;
    if (mu__map_set(&window->answers, number, answer) == 0)
        return answer;
    free(answer);
    return NULL;
}

int mu__kept_answer_set(struct kept *kept, const struct kept_origin *origin,
                        mu_value *value, const mu_error *error, enum kept_given given)
{
    struct kept_window *window = mu__kept_window_find(kept, origin->sender);
    struct kept_answer *answer;

    if (window == NULL || origin->number < window->base) {
        mu_value_free(value);
        return 0;
    }
    answer = get_answer(window, origin->number);
    if (answer == NULL) {
        mu_value_free(value);
        return -MU_ENOMEM;
    }
    mu_value_free(answer->value);
    free(answer->error);
    answer->value = error == NULL ? value : NULL;
    answer->error = error == NULL ? NULL : mu__error_copy(error);
    answer->given = given;
    if (error != NULL)
        mu_value_free(value);
    if (!answer->is_new)
        mu__list_append(&window->fresh, &answer->node);
    answer->is_new = true;
    if (window->end <= origin->number)
        window->end = origin->number + 1;
    return 0;
}

/* The sender may ask for so long from now on. */
static void raise_until(const struct kept *kept, struct kept_window *window,
                        uint64_t for_ms)
{
    uint64_t until_ms = mu__now_ms(&kept->office->ctx) + for_ms;

    if (until_ms > window->until_ms)
        window->until_ms = until_ms;
}

static void read_kept_error(const struct kept *kept, const struct mu__keep_item *item,
                            mu_error *ret_error)
{
    char words[sizeof ret_error->message];

    mu__view_copy(item->message, words, sizeof words);
    (void)mu_error_set(ret_error, -(int)item->code, "%s", words);
    mu__answer_error(kept->office, kept->own.type, NULL, MU_RAN_YES, ret_error);
}

int mu__kept_window_load(struct kept *kept, const struct mu__keep_item *item)
{
    const struct kept_origin origin = {item->sender, item->call};
    struct kept_window *window = mu__kept_window_get(kept, item->sender);
    mu_value *value = NULL;
    mu_error error;
    char why[64];
    int rv = window == NULL ? -MU_ENOMEM : 0;

    if (rv == 0 && item->code == 0 && item->value.head_size > 0)
        rv = mu__value_unpack(&item->value, why, sizeof why, &value);
    if (rv != 0)
        return rv;
    if (item->code != 0)
        read_kept_error(kept, item, &error);
    mu__kept_window_raise(window, item->base);
    raise_until(kept, window, item->timeout_ms);
    window->is_kept = true;
    rv = mu__kept_answer_set(kept, &origin, value, item->code == 0 ? NULL : &error,
                             KEPT_GIVEN);
    while (!mu__list_is_empty(&window->fresh))
        MU__LIST_ENTRY(mu__list_pop(&window->fresh), struct kept_answer, node)->is_new =
            false;
    return rv;
}

/* ---- repeats ---- */

static void answer_again(struct kept *kept, const struct mail *mail,
                         const struct kept_answer *answer)
{
    struct mail *out = mu__mail_new(kept->office, OUT_ANSWER);

    if (out == NULL)
        return; /* it asks again */
    out->answer = mail->answer;
    out->value = answer->value == NULL ? NULL : mu_value_ref(answer->value);
    out->error = answer->error == NULL ? NULL : mu__error_copy(answer->error);
    mu__kept_do_later(kept, out);
}

/* The answer will be given to who asks now. */
static void redirect_reply(mu_actor *actor, const struct mail *mail)
{
    for (mu_reply *reply = MU__LIST_FIRST(&actor->replies, mu_reply, node); reply != NULL;
         reply = MU__LIST_NEXT(reply, mu_reply, node))
        if (reply->origin.sender == mail->kept->sender &&
            reply->origin.number == mail->kept->number)
            reply->answer = mail->answer;
}

bool mu__kept_is_repeat(mu_actor *actor, const struct mail *mail)
{
    struct kept *kept = actor->kept;
    const struct kept_window *window =
        kept == NULL || mail->kept == NULL
            ? NULL
            : mu__map_get(&kept->windows, mail->kept->sender);
    const struct kept_answer *answer =
        window == NULL ? NULL : mu__map_get(&window->answers, mail->kept->number);

    if (window != NULL && mail->kept->number < window->base)
        return true;
    if (answer == NULL)
        return false;
    if (answer->given == KEPT_GIVEN)
        answer_again(kept, mail, answer);
    else
        redirect_reply(actor, mail);
    return true;
}

/* ---- senders that are gone ---- */

static void forget_window(struct kept *kept, struct kept_window *window)
{
    (void)mu__map_remove(&kept->windows, window->id);
    if (window->is_kept)
        mu__kept_forget(kept, window->id);
    free_window(window);
}

/* A sender that lives and calls again begins a new window: it asks for nothing that the
 * former one had. One that is passed over while others are removed is seen next time. */
static void review_windows(struct kept *kept)
{
    uint64_t now_ms = mu__now_ms(&kept->office->ctx);
    unsigned dropped = 0;

    if (now_ms < kept->review_ms || kept->phase != KEPT_LIVE)
        return;
    kept->review_ms = now_ms + MU__KEPT_REVIEW_MS;
    for (size_t i = 0; i < kept->windows.capacity && dropped < MU__KEPT_REVIEW_MAX; i++) {
        struct kept_window *window =
            kept->windows.entries[i].key == 0 ? NULL : kept->windows.entries[i].value;

        if (window == NULL || window->until_ms > now_ms)
            continue;
        forget_window(kept, window);
        dropped++;
    }
}

/* ---- answers that nobody can give any more ---- */

/* A call that has not begun is as if it had not come. */
static void return_call(struct kept *kept, const mu_reply *reply)
{
    struct kept_window *window = mu__kept_window_find(kept, reply->origin.sender);
    struct kept_answer *answer =
        window == NULL ? NULL : mu__map_remove(&window->answers, reply->origin.number);

    if (answer != NULL)
        free_answer(window, answer);
    mu__kept_send_away(kept->office, &reply->answer);
}

static void refuse_reply_of(struct kept *kept, const mu_reply *reply)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EABORTED,
                       "the actor was loaded anew before it answered");
    mu__answer_error(kept->office, kept->own.type, reply->method->name, MU_RAN_YES,
                     &error);
    (void)mu__kept_answer_set(kept, &reply->origin, NULL, &error, KEPT_GIVEN);
    mu__answer(kept->office, &reply->answer, NULL, &error);
}

void mu__kept_refuse_put_off(struct kept *kept)
{
    struct mu__list *replies = &kept->actor->replies;

    while (!mu__list_is_empty(replies)) {
        mu_reply *reply = MU__LIST_ENTRY(mu__list_pop(replies), mu_reply, node);

        if (reply->is_put_off && reply->origin.sender != 0)
            return_call(kept, reply);
        else
            refuse_reply_of(kept, reply);
        mu__chain_unref(reply->chain);
        free(reply);
    }
}

/* ---- calls that come ---- */

/* Whether it is the next of its sender, as far as that is known, or a repeat. */
static bool is_in_order(const struct kept_window *window,
                        const struct mu__kept_call *call)
{
    return call->before <= window->seen || call->before < call->base;
}

static bool is_sane(const struct mu__kept_call *call)
{
    return call->base > 0 && call->number >= call->base &&
           call->number - call->base < MU__KEPT_CALLS_SPAN &&
           call->before < call->number && call->call != 0 && call->timeout_ms > 0 &&
           call->timeout_ms <= MU_ACTOR_TIMEOUT_MAX;
}

void mu__kept_send_away(struct office *office, const struct answer_to *to)
{
    const struct mu__kept_away body = {.call = to->call};
    struct pending_call *call;

    if (to->node != MU__NODE_SELF) {
        (void)mu__send_body(&office->ctx, (mu__pid){to->node, MU__ACTORS}, MU__KEPT_AWAY,
                            &body, sizeof body);
        return;
    }
    call = mu__kept_call_find(office, to->call);
    if (call != NULL)
        mu__kept_call_away(office, call);
}

static void refuse_kept(struct kept *kept, const struct answer_to *to, int code,
                        const char *words)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s", words);
    mu__answer_error(kept->office, kept->own.type, NULL, MU_RAN_NO, &error);
    mu__answer(kept->office, to, NULL, &error);
}

static struct mail *make_kept_mail(struct kept *kept, const struct mu__kept_call *call,
                                   uint64_t sender, const struct answer_to *to,
                                   mu_value *args)
{
    struct mail *mail = mu__mail_new(kept->office, MAIL_MESSAGE);

    if (mail != NULL)
        mail->kept = calloc(1, sizeof *mail->kept);
    if (mail == NULL || mail->kept == NULL) {
        if (mail != NULL)
            mu__mail_free(kept->office, mail);
        mu_value_free(args);
        return NULL;
    }
    *mail->kept = (struct kept_origin){sender, call->number};
    mail->actor = kept->actor->number;
    mail->method = mu__method_find(kept->own.type, call->method);
    mail->value = args;
    mail->bytes = call->args.head_size + call->args.tail_size;
    if (call->chain.size > 0)
        mail->chain = mu__chain_copy(call->chain);
    mail->answer = *to;
    mail->due_ms = mu__now_ms(&kept->office->ctx) + call->timeout_ms;
    return mail;
}

/* The same call waits already: who asks now gets its answer. */
static bool is_waiting(const struct kept *kept, const struct kept_window *window,
                       const struct mu__kept_call *call, const struct answer_to *to)
{
    struct mail *mail = call->number > window->seen
                            ? NULL
                            : MU__LIST_FIRST(&kept->actor->mail, struct mail, node);

    while (mail != NULL && (mail->kept == NULL || mail->kept->sender != window->id ||
                            mail->kept->number != call->number))
        mail = MU__LIST_NEXT(mail, struct mail, node);
    if (mail != NULL)
        mail->answer = *to;
    return mail != NULL;
}

/* Clocks may differ by an eighth. */
static void note_call(const struct kept *kept, struct kept_window *window,
                      const struct mu__kept_call *call)
{
    mu__kept_window_raise(window, call->base);
    raise_until(kept, window,
                call->timeout_ms + call->timeout_ms / 8 + MU__KEPT_STRAY_MS +
                    kept->office->config.silence_ms);
    if (window->seen < call->number)
        window->seen = call->number;
}

/* It fails as one whose turn has failed, so that a repeat does, too. */
static void refuse_cycle(struct kept *kept, struct mail *mail)
{
    char words[MU__CHAIN_WORDS];
    mu_error error;

    mu__chain_refusal(kept->actor, mail, words);
    (void)mu_error_set(&error, -MU_EPRECONDITION, "%s", words);
    mu__answer_error(kept->office, kept->own.type, mail->method->name, MU_RAN_NO, &error);
    (void)mu__kept_answer_set(kept, mail->kept, NULL, &error, KEPT_GIVEN);
    mu__answer(kept->office, &mail->answer, NULL, &error);
    mu__mail_free(kept->office, mail);
}

static void take_kept_call(struct kept *kept, struct kept_window *window,
                           const struct mu__kept_call *call, const struct answer_to *to,
                           mu_value *args)
{
    uint32_t bytes = call->args.head_size + call->args.tail_size;
    struct mail *mail = NULL;

    if (mu__mail_has_room(kept->actor, bytes))
        mail = make_kept_mail(kept, call, window->id, to, args);
    else
        mu_value_free(args);
    if (mail == NULL) {
        mu__kept_send_away(kept->office, to);
        return;
    }
    note_call(kept, window, call);
    if (mu__chain_comes_back(kept->actor, mail)) {
        refuse_cycle(kept, mail);
        return;
    }
    kept->actor->mail_count++;
    kept->actor->mail_bytes += mail->bytes;
    mu__mail_put(kept->actor, mail);
}

void mu__kept_call_came(struct office *office, const struct mu__kept_call *call,
                        uint64_t sender, const struct answer_to *to, mu_value *args)
{
    struct kept *kept = mu__kept_find(office, call->name);
    struct kept_window *window;

    if (kept == NULL || kept->actor->ends) {
        mu_value_free(args);
        mu__kept_send_away(office, to);
        return;
    }
    review_windows(kept);
    window = mu__kept_window_get(kept, sender);
    if (window == NULL || !is_sane(call) ||
        mu__method_find(kept->own.type, call->method) == NULL) {
        mu_value_free(args);
        refuse_kept(kept, to, window == NULL ? -MU_EEXHAUSTED : -MU_ENOTFOUND,
                    window == NULL
                        ? "too many processes call the actor"
                        : "the actor has no such method, or the call no number");
        return;
    }
    if (!is_in_order(window, call)) {
        mu_value_free(args);
        mu__kept_send_away(office, to);
        return;
    }
    if (is_waiting(kept, window, call, to)) {
        mu_value_free(args);
        note_call(kept, window, call);
        return;
    }
    take_kept_call(kept, window, call, to, args);
}

void mu__kept_on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__kept_call *body = mu__body(msg);
    struct office *office = state;
    const struct answer_to to = {msg->from.node, body->call};
    struct peer *peer = mu__peer_of_node(office, msg->from.node);
    mu_value *args = NULL;
    char why[128];
    mu_error error;

    (void)ctx;
    if (peer == NULL)
        return;
    if (body->args.head_size > 0 &&
        mu__value_unpack(&body->args, why, sizeof why, &args) != 0) {
        (void)mu_error_set(&error, -MU_EDATALOSS, "%s", why);
        mu__answer_error(office, NULL, NULL, MU_RAN_NO, &error);
        mu__answer(office, &to, NULL, &error);
        return;
    }
    mu__kept_call_came(office, body, peer->incarnation, &to, args);
}
