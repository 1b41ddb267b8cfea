/* Calls to kept actors, in the office of the caller: numbered for each name, and sent
 * again, in order, when the owner or the link to it changes, until they are answered or
 * their time is over. */
#include "actors/keep.h"
#include "actors/keeper/kept_state.h"

#include "actors/packing.h"
#include "actors/user/looking.h"

#include <stdlib.h>
#include <string.h>

enum { ROUND_SHIFT = 48 };

static struct pending_call *oldest_call(const struct kept_way *way)
{
    return MU__LIST_FIRST(&way->calls, struct pending_call, of_peer);
}

/* ---- ways ---- */

static struct kept_way *find_kept_way(const struct office *office, const char *name)
{
    return (struct kept_way *)mu__text_map_find(&office->kept.ways, mu__view_str(name));
}

static struct kept_way *get_kept_way(struct office *office, const char *name)
{
    struct kept_way *way = find_kept_way(office, name);
    size_t size = strlen(name);

    if (way != NULL || office->kept.ways_count >= MU__KEPT_WAYS_MAX)
        return way;
    way = calloc(1, sizeof *way + size + 1);
    if (way == NULL)
        return NULL;
    memcpy(way->name, name, size);
    way->named.text = mu__view_str(way->name);
    if (mu__text_map_add(&office->kept.ways, &way->named) != 0) {
        free(way);
        return NULL;
    }
    office->kept.ways_count++;
    return way;
}

void mu__kept_ways_done(struct office *office)
{
    struct mu__text_node *next = mu__text_map_next(&office->kept.ways, NULL);

    while (next != NULL) {
        struct kept_way *way = (struct kept_way *)next;

        next = mu__text_map_next(&office->kept.ways, next);
        mu__room_notify(office, &way->rooms, NULL);
        free(way);
    }
    mu__text_map_done(&office->kept.ways);
    mu__text_map_done(&office->kept.owned);
}

/* From the oldest call that has not ended on, and with those of turns under way. */
static bool has_room(const struct kept_way *way)
{
    const struct pending_call *first = oldest_call(way);
    uint64_t span = first == NULL ? 0 : way->last - first->kept.number + 1;

    return span + way->making < MU__KEPT_CALLS_SPAN;
}

static void review_kept_way(struct office *office, struct kept_way *way)
{
    if (has_room(way))
        mu__room_notify(office, &way->rooms, NULL);
}

/* ---- making ---- */

int mu__kept_call_make(struct office *office, const char *name, const char *method,
                       const mu_value *args, struct pending_call *call, uint32_t waits,
                       mu_error *ret_error, struct mail **ret_mail)
{
    struct kept_way *way = get_kept_way(office, name);
    uint32_t bytes = 0;
    int rv = args == NULL ? 0 : mu__mail_measure(args, &bytes);

    if (rv == 0)
        rv = mu__actors_check_called(method, ret_error);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "the method or its arguments cannot be sent");
    if (way == NULL)
        return mu_error_set(ret_error, -MU_EEXHAUSTED, "no room for a way to \"%.100s\"",
                            name);
    if (!has_room(way)) {
        if (waits != 0)
            mu__room_add(&way->rooms, waits);
        return mu_error_set(ret_error, -MU_EAGAIN,
                            "too many calls to \"%.100s\" have not ended", name);
    }
    *ret_mail = mu__mail_new(office, OUT_KEPT_CALL);
    if (*ret_mail == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a call");
    way->making++;
    call->kept.way = way;
    if (call->args == NULL && args != NULL)
        call->args = mu_value_ref(args);
    call->kept.bytes = bytes;
    (*ret_mail)->call = call;
    return 0;
}

int mu__kept_send_make(struct office *office, const mu_address *to, const char *method,
                       const mu_value *args, uint32_t waits, mu_error *ret_error,
                       struct mail **ret_mail)
{
    struct pending_call *call = mu__call_new(office, to, method, MU__KEPT_SEND_MS);
    int rv;

    if (call == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a message");
    call->is_send = true;
    rv = mu__kept_call_make(office, to->name, method, args, call, waits, ret_error,
                            ret_mail);
    if (rv != 0)
        mu__call_free(office, call);
    return rv;
}

void mu__kept_call_unmake(struct office *office, struct pending_call *call)
{
    call->kept.way->making--;
    review_kept_way(office, call->kept.way);
}

/* ---- sending ---- */

/* Its number with the round: a process may own the actor again, and what it has answered
 * in the life before may still be on its way. */
static uint64_t mark_call(const struct pending_call *call)
{
    return call->id | (uint64_t)call->kept.way->round << ROUND_SHIFT;
}

struct pending_call *mu__kept_call_find(const struct office *office, uint64_t marked)
{
    struct pending_call *call =
        mu__map_get(&office->calls, marked & ((UINT64_C(1) << ROUND_SHIFT) - 1));

    return call != NULL && call->kept.way != NULL && mark_call(call) == marked ? call
                                                                               : NULL;
}

static struct mu__kept_call kept_body(const struct pending_call *call, uint64_t now_ms)
{
    const struct pending_call *before =
        call->of_peer.prev == NULL
            ? NULL
            : MU__LIST_ENTRY(call->of_peer.prev, struct pending_call, of_peer);

    const struct chain *chain =
        call->chain == NULL || call->chain->is_closed ? NULL : call->chain;

    return (struct mu__kept_call){
        .name = call->kept.way->named.text,
        .number = call->kept.number,
        .base = oldest_call(call->kept.way)->kept.number,
        .before = before == NULL ? 0 : before->kept.number,
        .call = mark_call(call),
        .method = mu__view_str(call->method),
        .chain = {chain == NULL ? NULL : chain->text, chain == NULL ? 0 : chain->size},
        .timeout_ms = call->deadline.due_ms > now_ms ? call->deadline.due_ms - now_ms : 0,
    };
}

static void send_remote(struct office *office, const struct peer *peer,
                        const struct mu__kept_call *body, const struct pending_call *call)
{
    struct mu__msg *msg =
        mu__msg_backed(&office->ctx, MU__KEPT_CALL, body, sizeof *body, NULL);

    if (msg != NULL && call->args != NULL)
        msg->backing = mu__pack_to_send(call->args, true,
                                        &((struct mu__kept_call *)mu__body(msg))->args);
    if (msg != NULL && (call->args == NULL || msg->backing != NULL)) {
        (void)mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg);
        return;
    }
    mu__msg_free(&office->ctx, msg);
    mu__kept_call_away(office, (struct pending_call *)call);
}

static void send_one(struct office *office, struct pending_call *call)
{
    struct mu__kept_call body = kept_body(call, mu__now_ms(&office->ctx));
    const struct answer_to to = {MU__NODE_SELF, body.call};
    const mu_address *owner = &call->kept.way->owner;
    const struct peer *peer;

    if (owner->incarnation == 0 || body.timeout_ms == 0)
        return;
    if (owner->incarnation == office->config.incarnation) {
        body.args.head_size = call->kept.bytes;
        call->is_sent = true;
        mu__kept_call_came(office, &body, owner->incarnation, &to,
                           call->args == NULL ? NULL : mu_value_ref(call->args));
        return;
    }
    peer = mu__peer_reach(office, owner, NULL);
    if (peer == NULL) {
        mu__kept_call_away(office, call); /* it is dialled again */
    } else if (peer->number != 0) {
        call->is_sent = true;
        send_remote(office, peer, &body, call);
    }
}

void mu__kept_send_way(struct office *office, struct kept_way *way)
{
    struct pending_call *next;

    way->is_away = false;
    for (struct pending_call *call = oldest_call(way); call != NULL && !way->is_away;
         call = next) {
        next = MU__LIST_NEXT(call, struct pending_call, of_peer);
        send_one(office, call);
    }
}

void mu__kept_call_begin(struct office *office, struct pending_call *call)
{
    struct kept_way *way = call->kept.way;

    call->kept.number = ++way->last;
    mu__list_append(&way->calls, &call->of_peer);
    if (!way->is_away)
        send_one(office, call);
}

void mu__kept_call_ended(struct office *office, struct pending_call *call)
{
    struct kept_way *way = call->kept.way;

    if (call->kept.number == 0)
        return;
    mu__list_remove(&way->calls, &call->of_peer);
    call->kept.number = 0;
    review_kept_way(office, way);
}

/* ---- again ---- */

void mu__kept_arm(struct office *office)
{
    if (!office->kept.is_armed &&
        mu__timer_set(&office->ctx, MU__KEPT_AGAIN_MS, OFFICE_TIMER_KEPT) != 0)
        office->kept.is_armed = true;
}

void mu__kept_call_away(struct office *office, struct pending_call *call)
{
    call->kept.way->is_away = true;
    mu__kept_arm(office);
}

void mu__kept_on_timer(struct office *office)
{
    struct mu__text_node *node = NULL;

    office->kept.is_armed = false;
    while ((node = mu__text_map_next(&office->kept.ways, node)) != NULL)
        if (((struct kept_way *)node)->is_away)
            mu__kept_send_way(office, (struct kept_way *)node);
    mu__kept_keepers_report(office, NULL);
}

void mu__kept_on_away(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__kept_away *body = mu__body(msg);
    struct office *office = state;
    struct pending_call *call = mu__kept_call_find(office, body->call);

    (void)ctx;
    if (call != NULL && mu__kept_is_answer_from(office, call, msg->from.node))
        mu__kept_call_away(office, call);
}

bool mu__kept_is_answer_from(const struct office *office, const struct pending_call *call,
                             uint32_t node)
{
    const struct peer *peer = mu__peer_of_node(office, node);

    return call->kept.way != NULL && peer != NULL &&
           peer->incarnation == call->kept.way->owner.incarnation;
}

/* ---- where the owner is ---- */

void mu__kept_route(struct office *office, const char *name, const mu_address *owner)
{
    struct kept_way *way = get_kept_way(office, name);

    if (way == NULL)
        return;
    way->owner = *owner;
    way->round++;
    mu__kept_send_way(office, way);
}

void mu__kept_way_fail(struct office *office, const char *name, const mu_error *why)
{
    struct kept_way *way = find_kept_way(office, name);
    struct pending_call *call;

    while (way != NULL && (call = oldest_call(way)) != NULL) {
        mu_error error = *why;

        error.ran = call->is_sent ? MU_RAN_MAYBE : MU_RAN_NO;
        mu__call_end(office, call, NULL, &error);
    }
}

/* A peer is up: what it is to have is sent, again perhaps. */
void mu__kept_peer_up(struct office *office, const struct peer *peer)
{
    struct mu__text_node *node = NULL;

    mu__kept_keepers_report(office, peer);
    while ((node = mu__text_map_next(&office->kept.ways, node)) != NULL)
        if (((struct kept_way *)node)->owner.incarnation == peer->incarnation)
            mu__kept_send_way(office, (struct kept_way *)node);
}

void mu__kept_ways_lost(struct office *office, const struct peer *peer)
{
    struct mu__text_node *node = NULL;

    while ((node = mu__text_map_next(&office->kept.ways, node)) != NULL) {
        struct pending_call *oldest = oldest_call((struct kept_way *)node);

        if (oldest != NULL &&
            ((struct kept_way *)node)->owner.incarnation == peer->incarnation)
            mu__kept_call_away(office, oldest);
    }
}
