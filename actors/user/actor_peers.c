/* The processes that this one's actors talk to. A peer is linked already, or is dialled
 * when the first message goes there; until it is up, messages to it wait, as far as there
 * is credit for them. When it is lost all that was to come from there ends. */
#include "actors/keeper/hooks.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include "actors/keep.h"
#include "actors/names/naming.h"
#include "actors/names/relays.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer *mu__peer_of_node(const struct office *office, uint32_t node)
{
    return node == MU__NODE_SELF ? NULL : mu__map_get(&office->nodes, node);
}

static struct peer *peer_new(struct office *office, const char *type, uint32_t index,
                             uint64_t incarnation)
{
    struct peer *peer = calloc(1, sizeof *peer);

    if (peer == NULL)
        return NULL;
    peer->incarnation = incarnation;
    peer->index = index;
    (void)snprintf(peer->type, sizeof peer->type, "%s", type);
    if (mu__map_set(&office->peers, incarnation, peer) != 0) {
        free(peer);
        return NULL;
    }
    mu__list_append(&office->peers_all, &peer->node);
    return peer;
}

/* ---- losing one ---- */

static void free_queue(struct office *office, struct peer *peer)
{
    while (peer->queue_first != NULL) {
        struct mu__msg *msg = peer->queue_first;

        peer->queue_first = msg->next;
        mu__msg_free(&office->ctx, msg);
    }
    peer->queue_last = NULL;
}

/* It is out of the tables, so that no notice makes anybody send to it. */
static void lose_peer(struct office *office, struct peer *peer, int code,
                      const char *words)
{
    mu_error error;

    (void)mu__map_remove(&office->peers, peer->incarnation);
    (void)mu__map_remove(&office->nodes, peer->number);
    mu__list_remove(&office->peers_all, &peer->node);
    free_queue(office, peer);
    (void)mu_error_set(&error, code, "%s", words);
    error.kind = MU_ERROR_ACTOR;
    (void)snprintf(error.task, sizeof error.task, "/job:%s/task:%" PRIu32, peer->type,
                   peer->index);
    error.ran = MU_RAN_NO;
    mu__kept_peer_lost(office, peer, &error);
    while (!mu__list_is_empty(&peer->calls)) {
        struct pending_call *call =
            MU__LIST_ENTRY(peer->calls.first, struct pending_call, of_peer);

        error.ran = call->is_sent ? MU_RAN_MAYBE : MU_RAN_NO;
        error.kind = call->is_sent ? MU_ERROR_ACTOR : MU__ERROR_NO_ACTOR;
        (void)snprintf(error.function, sizeof error.function, "%s", call->method);
        mu__call_end(office, call, NULL, &error);
    }
    error.ran = MU_RAN_UNKNOWN;
    error.kind = MU_ERROR_ACTOR;
    error.function[0] = '\0';
    while (!mu__list_is_empty(&peer->targets))
        mu__watch_down(office,
                       MU__LIST_ENTRY(peer->targets.first, struct user_watch, of_target),
                       &error);
    while (!mu__list_is_empty(&peer->watchers))
        mu__watch_free(office, MU__LIST_ENTRY(peer->watchers.first, struct user_watch,
                                              of_watcher));
    mu__relays_lose(office, peer);
    mu__streams_peer_lost(office, peer, &error);
    mu__ways_free(office, peer);
    free(peer);
}

void mu__peers_end(struct office *office)
{
    while (!mu__list_is_empty(&office->peers_all))
        lose_peer(office, MU__LIST_ENTRY(office->peers_all.first, struct peer, node),
                  -MU_ECLOSED, "this node is closing");
    mu__map_done(&office->peers);
    mu__map_done(&office->nodes);
}

/* ---- reaching one ---- */

/* Another process of the same task is up: the one with the address has ended. Clients
 * share their indices. */
static bool is_succeeded(const struct office *office, const mu_address *address)
{
    for (struct peer *peer = MU__LIST_FIRST(&office->peers_all, struct peer, node);
         peer != NULL; peer = MU__LIST_NEXT(peer, struct peer, node))
        if (peer->number != 0 && peer->index == address->index &&
            strcmp(peer->type, address->type) == 0 &&
            strcmp(peer->type, MU__CLIENT_TYPE) != 0)
            return true;
    return false;
}

static int dial_peer(struct office *office, const mu_address *address,
                     mu_error *ret_error)
{
    int rv;

    if (is_succeeded(office, address))
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "the process of /job:%s/task:%" PRIu32
                            " that had the actor has ended",
                            address->type, address->index);
    if (office->config.dial == NULL)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "/job:%s/task:%" PRIu32 " is not connected", address->type,
                            address->index);
    rv = office->config.dial(office->config.owner, address->type, address->index,
                             ret_error);
    return rv;
}

struct peer *mu__peer_reach(struct office *office, const mu_address *address,
                            mu_error *ret_error)
{
    struct peer *peer = mu__map_get(&office->peers, address->incarnation);
    mu_error error;

    if (peer != NULL)
        return peer;
    if (address->incarnation == 0 ||
        memchr(address->type, '\0', sizeof address->type) == NULL)
        (void)mu_error_set(&error, -MU_EINVALID, "the address is none of an actor");
    else if (dial_peer(office, address, &error) == 0) {
        peer = peer_new(office, address->type, address->index, address->incarnation);
        if (peer != NULL)
            return peer;
        (void)mu_error_set(&error, -MU_ENOMEM, "no memory for another node");
    }
    if (ret_error != NULL)
        *ret_error = error;
    return NULL;
}

void mu__peer_send(struct office *office, struct peer *peer, struct mu__msg *msg)
{
    if (peer->number != 0) {
        (void)mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg);
        return;
    }
    if (mu__msg_keep(mu__kernel_schema(office->ctx.kernel), msg) != 0) {
        mu__msg_free(&office->ctx, msg);
        return;
    }
    msg->next = NULL;
    if (peer->queue_first == NULL)
        peer->queue_first = msg;
    else
        peer->queue_last->next = msg;
    peer->queue_last = msg;
}

static bool is_of_call(const struct mu__msg *msg, uint64_t call)
{
    const struct mu__actor_message *body = (const void *)msg->body;

    return msg->kind == MU__ACTOR_MESSAGE && body->call == call;
}

void mu__peer_unqueue(struct office *office, struct peer *peer, uint64_t call)
{
    struct mu__msg **link = &peer->queue_first;
    struct mu__msg *before = NULL;
    struct mu__msg *msg;
    const struct mu__actor_message *body;

    while (*link != NULL && !is_of_call(*link, call)) {
        before = *link;
        link = &(*link)->next;
    }
    msg = *link;
    if (msg == NULL)
        return;
    *link = msg->next;
    if (msg == peer->queue_last)
        peer->queue_last = before;
    body = mu__body(msg);
    mu__way_untake(office, peer, body->actor,
                   body->args.head_size + body->args.tail_size);
    mu__msg_free(&office->ctx, msg);
}

/* ---- news ---- */

static void flush_queue(struct office *office, struct peer *peer)
{
    while (peer->queue_first != NULL) {
        struct mu__msg *msg = peer->queue_first;

        peer->queue_first = msg->next;
        (void)mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg);
    }
    for (struct pending_call *call =
             MU__LIST_FIRST(&peer->calls, struct pending_call, of_peer);
         call != NULL; call = MU__LIST_NEXT(call, struct pending_call, of_peer))
        call->is_sent = true;
}

/* Those of a task that are being dialled, but for the process `but`. */
static void fail_dialled(struct office *office, struct mu__view type, uint32_t index,
                         uint64_t but, int code, const char *words)
{
    struct peer *next;

    for (struct peer *peer = MU__LIST_FIRST(&office->peers_all, struct peer, node);
         peer != NULL; peer = next) {
        next = MU__LIST_NEXT(peer, struct peer, node);
        if (peer->number == 0 && peer->incarnation != but && peer->index == index &&
            mu__view_is(type, peer->type))
            lose_peer(office, peer, code, words);
    }
}

void mu__peer_on_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__node_up *body = mu__body(msg);
    struct office *office = state;
    struct peer *peer = mu__map_get(&office->peers, body->incarnation);
    char type[16];

    (void)ctx;
    mu__view_copy(body->type, type, sizeof type);
    if (peer != NULL && (peer->number != 0 || peer->index != body->index ||
                         strcmp(peer->type, type) != 0))
        return; /* two processes say that they are one */
    if (peer == NULL)
        peer = peer_new(office, type, body->index, body->incarnation);
    if (peer == NULL || mu__map_set(&office->nodes, body->node, peer) != 0)
        return;
    peer->number = body->node;
    flush_queue(office, peer);
    mu__spawn_at_peer(office, peer);
    mu__kept_peer_up(office, peer);
    if (!mu__view_is(body->type, MU__CLIENT_TYPE))
        fail_dialled(office, body->type, body->index, body->incarnation, -MU_ENOTFOUND,
                     "the process that had the actor has ended, and another one runs");
}

void mu__peer_on_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__node_down *body = mu__body(msg);
    struct office *office = state;
    struct peer *peer = mu__peer_of_node(office, body->node);
    char words[384];

    (void)ctx;
    mu__naming_node_down(office, body->node);
    if (peer == NULL)
        return;
    (void)snprintf(words, sizeof words, "/job:%s/task:%" PRIu32 " was lost: %.*s",
                   peer->type, peer->index,
                   body->reason.size > 256 ? 256 : (int)body->reason.size,
                   body->reason.size == 0 ? "" : (const char *)body->reason.data);
    lose_peer(office, peer, -MU_EUNAVAILABLE, words);
}

void mu__peer_on_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__node_trouble *body = mu__body(msg);
    char words[384];

    (void)ctx;
    (void)snprintf(words, sizeof words, "the node cannot be reached: %.*s",
                   body->reason.size > 300 ? 300 : (int)body->reason.size,
                   body->reason.size == 0 ? "" : (const char *)body->reason.data);
    fail_dialled(state, body->type, body->index, 0, -MU_EUNAVAILABLE, words);
}
