/* Nothing comes out of a connection that was sent to another one: a socket has one
 * connection at most, the next is accepted when the loop knows the end of the former, and
 * nng has no queue: it takes one message, or none. */
#include "transport/wire/nng/peers.h"

#include <nng/protocol/pipeline0/push.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static void on_poll_closed(uv_handle_t *handle)
{
    struct mu__nng_peer *peer = handle->data;
    struct mu__wire_nng *wire = peer->wire;

    free(peer);
    mu__wire_nng_drop_hold(wire);
}

static void forget_messages(struct mu__nng_peer *peer)
{
    if (peer->pending != NULL)
        nng_msg_free(peer->pending);
    peer->pending = NULL;
    peer->is_blocked = false;
    if (peer->is_polled)
        (void)uv_poll_stop(&peer->writable);
}

void mu__nng_peer_free(struct mu__nng_peer *peer)
{
    forget_messages(peer);
    if (!peer->is_polled) {
        free(peer);
        return;
    }
    mu__wire_nng_hold(peer->wire);
    uv_close((uv_handle_t *)&peer->writable, on_poll_closed);
}

static struct mu__nng_peer *socket_new(struct mu__wire_nng *wire)
{
    struct mu__nng_peer *peer = calloc(1, sizeof *peer);

    if (peer == NULL)
        return NULL;
    peer->wire = wire;
    peer->end = mu__nng_end_new(wire->news_of, peer);
    if (peer->end == NULL || nng_push0_open(&peer->socket) != 0) {
        if (peer->end != NULL)
            mu__nng_end_free(peer->end);
        free(peer);
        return NULL;
    }
    (void)mu__nng_end_watch(peer->end, peer->socket);
    return peer;
}

/* A socket whose dialer cannot be made is kept for the next one. */
struct mu__nng_peer *mu__nng_peer_new(struct mu__wire_nng *wire, const char *url,
                                      int *ret_code)
{
    struct mu__nng_peer *peer = wire->spare;
    int rv = 0;

    *ret_code = -MU_ENOMEM;
    if (peer == NULL && wire->peers_count < MU__NNG_PEERS_MAX)
        peer = socket_new(wire);
    if (peer == NULL)
        return NULL;
    wire->spare = NULL;
    rv = nng_dialer_create(&peer->dialer, peer->socket, url);
    if (rv != 0) {
        wire->spare = peer;
        *ret_code = rv == NNG_ENOMEM ? -MU_ENOMEM : -MU_EINVALID;
        return NULL;
    }
    (void)snprintf(peer->url, sizeof peer->url, "%s", url);
    (void)nng_dialer_set_ms(peer->dialer, NNG_OPT_RECONNMINT, MU__NNG_RECONNECT_MIN_MS);
    (void)nng_dialer_set_ms(peer->dialer, NNG_OPT_RECONNMAXT, MU__NNG_RECONNECT_MAX_MS);
    (void)nng_dialer_start(peer->dialer, NNG_FLAG_NONBLOCK);
    mu__list_append(&wire->peers, &peer->in_all);
    wire->peers_count++;
    return peer;
}

/* ---- dialling and hanging up ---- */

static void attach(struct mu__nng_peer *peer, uint32_t number)
{
    peer->number = number;
    mu__nng_end_open(peer->end, true);
}

/* nng may have stopped for ever in the end of its last connection. */
static bool is_late(const struct mu__nng_peer *peer)
{
    return peer->ending != 0 &&
           uv_now(peer->wire->loop) - peer->ending_since_ms >= MU__NNG_LATE_MS;
}

static struct mu__nng_peer *find_parked(struct mu__wire_nng *wire, const char *url)
{
    for (struct mu__nng_peer *peer =
             MU__LIST_FIRST(&wire->parked, struct mu__nng_peer, in_parked);
         peer != NULL; peer = MU__LIST_NEXT(peer, struct mu__nng_peer, in_parked))
        if (!peer->is_slow && !is_late(peer) && strcmp(peer->url, url) == 0)
            return peer;
    return NULL;
}

static void unpark(struct mu__nng_peer *peer)
{
    mu__list_remove(&peer->wire->parked, &peer->in_parked);
    peer->wire->parked_count--;
}

static void end_pipe(struct mu__nng_peer *peer, uint32_t pipe)
{
    peer->ending = pipe;
    peer->ending_since_ms = uv_now(peer->wire->loop);
    mu__nng_pipe_end(peer->wire->news_of, pipe);
}

static void park(struct mu__nng_peer *peer)
{
    struct mu__wire_nng *wire = peer->wire;

    mu__nng_end_open(peer->end, false);
    peer->number = 0;
    peer->parked_since_ms = uv_now(wire->loop);
    forget_messages(peer);
    if (peer->pipe != 0)
        end_pipe(peer, peer->pipe);
    peer->pipe = 0;
    mu__list_append(&wire->parked, &peer->in_parked);
    wire->parked_count++;
    mu__wire_nng_start_tick(wire);
}

int mu__nng_dial(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;
    struct mu__nng_peer *peer;
    struct mu__url parsed;
    int rv = -MU_ENOMEM;

    if (mu__map_get(&wire->outs, number) != NULL)
        return -MU_EEXISTS;
    if (mu__url_parse_any(url, false, &parsed) != NULL ||
        strlen(url) >= MU__NNG_URL_BYTES)
        return -MU_EINVALID;
    peer = find_parked(wire, url);
    if (peer != NULL)
        unpark(peer);
    else
        peer = mu__nng_peer_new(wire, url, &rv);
    if (peer == NULL)
        return rv;
    if (mu__map_set(&wire->outs, number, peer) != 0) {
        park(peer);
        return -MU_ENOMEM;
    }
    attach(peer, number);
    return 0;
}

void mu__nng_hangup(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;
    struct mu__nng_peer *peer = mu__map_remove(&wire->outs, number);

    if (peer == NULL)
        return;
    park(peer);
    if (wire->parked_count > MU__NNG_PARKED_MAX)
        mu__nng_retire(wire);
}

/* ---- news ---- */

void mu__nng_peer_event(struct mu__wire_nng *wire, const struct mu__nng_event *event)
{
    struct mu__nng_peer *peer = event->end->peer;

    if (event->begun && !event->ended && peer->number == 0) {
        end_pipe(peer, event->pipe);
    } else if (event->begun && !event->ended) {
        peer->pipe = event->pipe;
        wire->news = true;
        wire->events.out_up(wire->owner, peer->number);
    } else if (event->ended && peer->ending == event->pipe) {
        peer->ending = 0;
    } else if (event->ended && peer->pipe == event->pipe) {
        peer->pipe = 0;
        forget_messages(peer);
        wire->news = true;
        wire->events.out_down(wire->owner, peer->number, "connection lost");
    }
}

/* What nng does not come back to is left, and dialled anew with another socket. */
static void replace(struct mu__nng_peer *peer)
{
    struct mu__wire_nng *wire = peer->wire;
    uint32_t number = peer->number;
    int rv;
    struct mu__nng_peer *other = mu__nng_peer_new(wire, peer->url, &rv);

    if (other == NULL)
        return;     /* tried again by the next tick */
    park(peer);
    peer->is_slow = true;
    if (mu__map_set(&wire->outs, number, other) == 0)   /* replaces: cannot fail */
        attach(other, number);
}

static void slow_down(struct mu__nng_peer *peer)
{
    peer->is_slow = true;
    (void)nng_dialer_set_ms(peer->dialer, NNG_OPT_RECONNMINT, MU__NNG_RECONNECT_SLOW_MS);
    (void)nng_dialer_set_ms(peer->dialer, NNG_OPT_RECONNMAXT, MU__NNG_RECONNECT_SLOW_MS);
}

bool mu__nng_peers_tick(struct mu__wire_nng *wire)
{
    bool goes_on = false;
    struct mu__nng_peer *next;

    for (struct mu__nng_peer *peer =
             MU__LIST_FIRST(&wire->peers, struct mu__nng_peer, in_all);
         peer != NULL; peer = next) {
        next = MU__LIST_NEXT(peer, struct mu__nng_peer, in_all);
        if (peer->number == 0 && !peer->is_slow &&
            uv_now(wire->loop) - peer->parked_since_ms >= MU__NNG_SLOW_MS)
            slow_down(peer);
        else if (peer->number != 0 && is_late(peer))
            replace(peer);
        goes_on = goes_on || (peer->number == 0 && !peer->is_slow) || peer->ending != 0;
    }
    return goes_on;
}

/* ---- sending ---- */

static void on_writable(uv_poll_t *poll, int status, int happened);

/* Wait until nng takes the next message. */
static bool wait_writable(struct mu__nng_peer *peer)
{
    int fd;

    if (!peer->is_polled) {
        if (nng_socket_get_int(peer->socket, NNG_OPT_SENDFD, &fd) != 0 ||
            uv_poll_init(peer->wire->loop, &peer->writable, fd) != 0)
            return false;
        peer->writable.data = peer;
        peer->is_polled = true;
    }
    return uv_poll_start(&peer->writable, UV_READABLE, on_writable) == 0;
}

static void on_writable(uv_poll_t *poll, int status, int happened)
{
    struct mu__nng_peer *peer = poll->data;
    struct mu__wire_nng *wire = peer->wire;

    (void)status;
    (void)happened;
    if (peer->pending != NULL) {
        if (nng_sendmsg(peer->socket, peer->pending, NNG_FLAG_NONBLOCK) != 0)
            return;
        peer->pending = NULL;
    }
    if (!peer->is_blocked) {
        (void)uv_poll_stop(poll);
        return;
    }
    peer->is_blocked = false;
    (void)uv_poll_stop(poll);
    wire->news = true;
    wire->events.writable(wire->owner, peer->number);
}

/* One message is nng's, and one waits here; so the next is made while the first goes
 * out. */
int mu__nng_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct mu__nng_peer *peer =
        mu__map_get(&((struct mu__wire_nng *)door)->outs, number);
    nng_msg *message;

    if (peer == NULL || peer->pipe == 0)
        return -MU_EUNAVAILABLE;
    if (peer->pending != NULL) {
        peer->is_blocked = true;
        return -MU_EAGAIN;
    }
    message = mu__nng_message_of(frame);
    if (message == NULL)
        return -MU_ENOMEM;
    if (nng_sendmsg(peer->socket, message, NNG_FLAG_NONBLOCK) != 0) {
        if (!wait_writable(peer)) {
            nng_msg_free(message);
            return -MU_ENOMEM;
        }
        peer->pending = message;
    }
    mu__buf_unref(frame);
    return 0;
}

const char *mu__nng_last_error(struct mu__wire *door, uint32_t number)
{
    const struct mu__nng_peer *peer =
        mu__map_get(&((struct mu__wire_nng *)door)->outs, number);

    return peer == NULL || peer->pipe != 0 ? NULL : "nng has not connected to it yet";
}

/* ---- the end ---- */

void mu__nng_peers_close(struct mu__wire_nng *wire, struct mu__nng_closer *closer)
{
    struct mu__nng_peer *peer;

    if (wire->spare != NULL)
        mu__list_append(&wire->peers, &wire->spare->in_all);
    wire->spare = NULL;
    while ((peer = MU__LIST_FIRST(&wire->peers, struct mu__nng_peer, in_all)) != NULL) {
        mu__list_remove(&wire->peers, &peer->in_all);
        if (closer != NULL && !peer->is_closing)
            mu__nng_closer_add(closer, peer->socket);
        mu__nng_peer_free(peer);
    }
}
