/* Sockets that send, and their end. nng may stop for ever when a connection is closed
 * while bytes of it are on their way: so a retired one is closed when it was left alone
 * for MU__NNG_REST_MS. Its dialer hardly tries any more, and what it reaches is refused.
 * When there are many, the oldest are closed on another thread; if nng does not come back
 * from that, it is not asked again, and sockets stay, up to MU__NNG_SOCKETS_MAX. */
#include "transport/wire/nng/outgoing.h"

#include <nng/protocol/pipeline0/push.h>
#include <stdlib.h>

enum { CLOSE_MS = 10000 };

/* ---- memory ---- */

static struct mu__nng_sender *socket_new(struct mu__wire_nng *wire)
{
    struct mu__nng_sender *sender = calloc(1, sizeof *sender);

    if (sender == NULL)
        return NULL;
    sender->wire = wire;
    sender->end = mu__nng_end_new(wire->news_of, sender);
    if (sender->end == NULL || nng_push0_open(&sender->socket) != 0) {
        if (sender->end != NULL)
            mu__nng_end_free(sender->end);
        free(sender);
        return NULL;
    }
    (void)mu__nng_end_watch(sender->end, sender->socket);
    return sender;
}

/* A socket whose dialer cannot be made is kept for the next one. */
struct mu__nng_sender *mu__nng_sender_new(struct mu__wire_nng *wire,
                                          struct mu__nng_out *out, const char *url,
                                          int *ret_code)
{
    struct mu__nng_sender *sender = wire->out.spare;
    char at[MU__NNG_URL_BYTES];
    int rv;

    *ret_code = -MU_EINVALID;
    if (!mu__nng_tls_url(wire->tls, url, at, sizeof at))
        return NULL;
    *ret_code = -MU_ENOMEM;
    if (sender == NULL && wire->out.count < MU__NNG_SOCKETS_MAX)
        sender = socket_new(wire);
    if (sender == NULL)
        return NULL;
    wire->out.spare = NULL;
    rv = nng_dialer_create(&sender->dialer, sender->socket, at);
    if (rv == 0)
        rv = mu__nng_tls_dial(wire->tls, at, sender->dialer);
    if (rv != 0) {
        wire->out.spare = sender;
        *ret_code = rv == NNG_ENOMEM ? -MU_ENOMEM : -MU_EINVALID;
        return NULL;
    }
    sender->out = out;
    mu__list_append(&wire->out.senders, &sender->node);
    wire->out.count++;
    mu__nng_end_open(sender->end, true);
    (void)nng_dialer_set_ms(sender->dialer, NNG_OPT_RECONNMINT, MU__NNG_RECONNECT_MIN_MS);
    (void)nng_dialer_set_ms(sender->dialer, NNG_OPT_RECONNMAXT, MU__NNG_RECONNECT_MAX_MS);
    (void)nng_dialer_start(sender->dialer, NNG_FLAG_NONBLOCK);
    return sender;
}

static void free_if_closed(struct mu__nng_sender *sender)
{
    if (sender->is_freed && !sender->is_poll_closing)
        free(sender);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct mu__nng_sender *sender = handle->data;
    struct mu__wire_nng *wire = sender->wire;

    sender->is_poll_closing = false;
    free_if_closed(sender);
    mu__wire_nng_drop_hold(wire);
}

/* Nothing is written any more. The poll handle is closed before nng closes its
 * descriptor: libuv takes a handle out of the loop by the descriptor's number, which may
 * be another's then. */
static void stop_writing(struct mu__nng_sender *sender)
{
    if (sender->pending != NULL)
        nng_msg_free(sender->pending);
    sender->pending = NULL;
    if (!sender->is_polled)
        return;
    sender->is_polled = false;
    sender->is_poll_closing = true;
    mu__wire_nng_hold(sender->wire);
    uv_close((uv_handle_t *)&sender->writable, on_poll_closed);
}

void mu__nng_sender_free(struct mu__nng_sender *sender)
{
    stop_writing(sender);
    sender->is_freed = true;
    free_if_closed(sender);
}

bool mu__nng_sender_poll(struct mu__nng_sender *sender, uv_poll_cb on_writable)
{
    int fd;

    if (!sender->is_polled) {
        if (nng_socket_get_int(sender->socket, NNG_OPT_SENDFD, &fd) != 0 ||
            uv_poll_init(sender->wire->loop, &sender->writable, fd) != 0)
            return false;
        sender->writable.data = sender;
        sender->is_polled = true;
    }
    return uv_poll_start(&sender->writable, UV_READABLE, on_writable) == 0;
}

/* ---- retiring ---- */

/* Closed together, on another thread. */
struct mu__nng_batch {
    struct mu__wire_nng *wire;
    unsigned count;
    struct mu__nng_sender *senders[MU__NNG_RETIRED_MAX / 2];
};

/* Those that nng did not close stay with the wire. */
static void on_done(void *owner, bool is_closed)
{
    struct mu__nng_batch *batch = owner;
    struct mu__wire_nng *wire = batch->wire;

    wire->out.is_stuck = wire->out.is_stuck || !is_closed;
    for (unsigned i = 0; i < batch->count; i++) {
        if (is_closed) {
            mu__nng_end_free(batch->senders[i]->end);
            wire->out.count--;
        }
        mu__nng_sender_free(batch->senders[i]);
    }
    wire->out.batch = NULL;
    free(batch);
    mu__wire_nng_drop_hold(wire);
}

static void collect(struct mu__nng_batch *batch, struct mu__nng_closer *closer)
{
    struct mu__wire_nng *wire = batch->wire;

    while (batch->count < MU__NNG_RETIRED_MAX / 2) {
        struct mu__nng_sender *sender =
            MU__LIST_FIRST(&wire->out.retired, struct mu__nng_sender, node);

        mu__list_remove(&wire->out.retired, &sender->node);
        wire->out.retired_count--;
        batch->senders[batch->count++] = sender;
        mu__nng_closer_add(closer, sender->socket);
    }
}

static void close_some(struct mu__wire_nng *wire)
{
    struct mu__nng_batch *batch;
    struct mu__nng_closer *closer;

    if (wire->out.batch != NULL || wire->out.is_stuck)
        return;
    batch = calloc(1, sizeof *batch);
    closer = mu__nng_closer_new(wire->news_of, MU__NNG_RETIRED_MAX / 2);
    if (batch == NULL || closer == NULL) {
        mu__nng_closer_free(closer);
        free(batch);
        return;
    }
    batch->wire = wire;
    collect(batch, closer);
    wire->out.batch = batch;
    mu__wire_nng_hold(wire);
    if (!mu__nng_closer_start(closer, wire->loop, CLOSE_MS, on_done, batch))
        on_done(batch, false);
}

void mu__nng_sender_retire(struct mu__nng_sender *sender)
{
    struct mu__wire_nng *wire = sender->wire;

    sender->out = NULL;
    sender->retired_ms = uv_now(wire->loop);
    stop_writing(sender);
    mu__nng_end_open(sender->end, false);
    (void)nng_dialer_set_ms(sender->dialer, NNG_OPT_RECONNMINT,
                            MU__NNG_RECONNECT_NEVER_MS);
    (void)nng_dialer_set_ms(sender->dialer, NNG_OPT_RECONNMAXT,
                            MU__NNG_RECONNECT_NEVER_MS);
    mu__list_remove(&wire->out.senders, &sender->node);
    mu__list_append(&wire->out.retired, &sender->node);
    wire->out.retired_count++;
    mu__wire_nng_rest(wire);
}

bool mu__nng_senders_rested(struct mu__wire_nng *wire)
{
    uint64_t now_ms = uv_now(wire->loop);
    struct mu__nng_sender *sender;
    bool are_all = true;

    for (sender = MU__LIST_LAST(&wire->out.retired, struct mu__nng_sender, node);
         sender != NULL && now_ms - sender->retired_ms < MU__NNG_REST_LONG_MS;
         sender = sender->node.prev == NULL
                      ? NULL
                      : MU__LIST_ENTRY(sender->node.prev, struct mu__nng_sender, node)) {
        if (now_ms - sender->retired_ms < MU__NNG_REST_MS) {
            are_all = false;
        } else if (sender->pipe != 0) {
            mu__nng_pipe_end(wire->news_of, sender->pipe);
            sender->pipe = 0;
        }
    }
    if (are_all && wire->out.retired_count > MU__NNG_RETIRED_MAX)
        close_some(wire);
    return are_all;
}

void mu__nng_senders_close(struct mu__wire_nng *wire, struct mu__nng_closer *closer)
{
    struct mu__nng_sender *sender;

    if (wire->out.spare != NULL)
        mu__list_append(&wire->out.senders, &wire->out.spare->node);
    wire->out.spare = NULL;
    mu__list_append_all(&wire->out.senders, &wire->out.retired);
    while ((sender = MU__LIST_FIRST(&wire->out.senders, struct mu__nng_sender, node)) !=
           NULL) {
        mu__list_remove(&wire->out.senders, &sender->node);
        if (closer != NULL)
            mu__nng_closer_add(closer, sender->socket);
        mu__nng_sender_free(sender);
    }
}
