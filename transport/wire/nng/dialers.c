/* Sockets of one connection that is dialled, and their end. nng may stop for ever when a
 * connection is closed while bytes of it are on their way: so a retired one is closed
 * when it was left alone for MU__NNG_REST_MS. Its dialer hardly tries any more, and what
 * it reaches is refused. When there are many, the oldest are closed on another thread;
 * if nng does not come back from that, it is not asked again, and sockets stay, up to
 * MU__NNG_SOCKETS_MAX. */
#include "transport/wire/nng/dialers.h"

#include <nng/protocol/reqrep0/req.h>
#include <stdlib.h>

enum { CLOSE_MS = 10000 };

/* ---- memory ---- */

static struct mu__nng_dialer *socket_new(struct mu__wire_nng *wire)
{
    struct mu__nng_dialer *dialer = calloc(1, sizeof *dialer);

    if (dialer == NULL)
        return NULL;
    dialer->wire = wire;
    dialer->end = mu__nng_end_new(wire->news_of, dialer);
    if (dialer->end == NULL || mu__nng_open(nng_req0_open_raw, &dialer->socket) != 0) {
        if (dialer->end != NULL)
            mu__nng_end_free(dialer->end);
        free(dialer);
        return NULL;
    }
    (void)mu__nng_end_watch(dialer->end, dialer->socket);
    (void)nng_socket_set_int(dialer->socket, NNG_OPT_RECVBUF, 0);
    return dialer;
}

/* A socket whose dialer cannot be made is kept for the next one. */
struct mu__nng_dialer *mu__nng_dialer_new(
    struct mu__wire_nng *wire, struct mu__nng_out *out, const char *url, int *ret_code)
{
    struct mu__nng_dialer *dialer = wire->out.spare;
    char at[MU__NNG_URL_BYTES];
    int rv;

    *ret_code = -MU_EINVALID;
    if (!mu__nng_tls_url(wire->tls, url, at, sizeof at))
        return NULL;
    *ret_code = -MU_ENOMEM;
    if (dialer == NULL && wire->out.count < MU__NNG_SOCKETS_MAX)
        dialer = socket_new(wire);
    if (dialer == NULL)
        return NULL;
    wire->out.spare = NULL;
    rv = nng_dialer_create(&dialer->nng, dialer->socket, at);
    if (rv == 0)
        rv = mu__nng_tls_dial(wire->tls, at, dialer->nng);
    if (rv == 0)
        rv = nng_dialer_set_size(dialer->nng, NNG_OPT_RECVMAXSZ, MU__NNG_MESSAGE_MAX);
    if (rv == NNG_ENOTSUP)
        rv = 0; /* inproc has no bound */
    if (rv != 0) {
        wire->out.spare = dialer;
        *ret_code = rv == NNG_ENOMEM ? -MU_ENOMEM : -MU_EINVALID;
        return NULL;
    }
    dialer->out = out;
    dialer->is_secured = mu__nng_tls_is(at);
    mu__list_append(&wire->out.dialers, &dialer->node);
    wire->out.count++;
    mu__nng_end_open(dialer->end, true);
    (void)nng_dialer_set_ms(dialer->nng, NNG_OPT_RECONNMINT, MU__NNG_RECONNECT_MIN_MS);
    (void)nng_dialer_set_ms(dialer->nng, NNG_OPT_RECONNMAXT, MU__NNG_RECONNECT_MAX_MS);
    (void)nng_dialer_start(dialer->nng, NNG_FLAG_NONBLOCK);
    return dialer;
}

static void free_if_closed(struct mu__nng_dialer *dialer)
{
    if (dialer->is_freed && dialer->closing == 0)
        free(dialer);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct mu__nng_dialer *dialer = handle->data;
    struct mu__wire_nng *wire = dialer->wire;

    dialer->closing--;
    free_if_closed(dialer);
    mu__wire_nng_drop_hold(wire);
}

static void close_poll(struct mu__nng_dialer *dialer, uv_poll_t *poll, bool *has)
{
    if (!*has)
        return;
    *has = false;
    dialer->closing++;
    mu__wire_nng_hold(dialer->wire);
    uv_close((uv_handle_t *)poll, on_poll_closed);
}

/* Nothing is written or read any more. The poll handles are closed before nng closes its
 * descriptors: libuv takes a handle out of the loop by the descriptor's number, which may
 * be another's then. */
static void stop_dialer(struct mu__nng_dialer *dialer)
{
    if (dialer->pending != NULL)
        nng_msg_free(dialer->pending);
    dialer->pending = NULL;
    close_poll(dialer, &dialer->writable, &dialer->has_writable);
    close_poll(dialer, &dialer->readable, &dialer->has_readable);
}

void mu__nng_dialer_free(struct mu__nng_dialer *dialer)
{
    stop_dialer(dialer);
    dialer->is_freed = true;
    free_if_closed(dialer);
}

static bool poll_it(struct mu__nng_dialer *dialer, const char *option, uv_poll_t *poll,
                    bool *has, uv_poll_cb call)
{
    int fd;

    if (!*has) {
        if (nng_socket_get_int(dialer->socket, option, &fd) != 0 ||
            uv_poll_init(dialer->wire->loop, poll, fd) != 0)
            return false;
        poll->data = dialer;
        *has = true;
    }
    return uv_poll_start(poll, UV_READABLE, call) == 0;
}

bool mu__nng_dialer_poll_send(struct mu__nng_dialer *dialer, uv_poll_cb call)
{
    return poll_it(dialer, NNG_OPT_SENDFD, &dialer->writable, &dialer->has_writable,
                   call);
}

bool mu__nng_dialer_poll_receive(struct mu__nng_dialer *dialer, uv_poll_cb call)
{
    return poll_it(dialer, NNG_OPT_RECVFD, &dialer->readable, &dialer->has_readable,
                   call);
}

/* ---- retiring ---- */

/* Closed together, on another thread. */
struct mu__nng_batch {
    struct mu__wire_nng *wire;
    unsigned count;
    struct mu__nng_dialer *dialers[MU__NNG_RETIRED_MAX / 2];
};

/* Those that nng did not close stay with the wire. */
static void on_batch_closed(void *owner, bool is_closed)
{
    struct mu__nng_batch *batch = owner;
    struct mu__wire_nng *wire = batch->wire;

    wire->out.is_stuck = wire->out.is_stuck || !is_closed;
    for (unsigned i = 0; i < batch->count; i++) {
        if (is_closed) {
            mu__nng_end_free(batch->dialers[i]->end);
            wire->out.count--;
        }
        mu__nng_dialer_free(batch->dialers[i]);
    }
    wire->out.batch = NULL;
    free(batch);
    mu__wire_nng_drop_hold(wire);
}

static void collect_retired(struct mu__nng_batch *batch, struct mu__nng_closer *closer)
{
    struct mu__wire_nng *wire = batch->wire;

    while (batch->count < MU__NNG_RETIRED_MAX / 2) {
        struct mu__nng_dialer *dialer =
            MU__LIST_FIRST(&wire->out.retired, struct mu__nng_dialer, node);

        mu__list_remove(&wire->out.retired, &dialer->node);
        wire->out.retired_count--;
        batch->dialers[batch->count++] = dialer;
        mu__nng_closer_add(closer, dialer->socket);
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
    collect_retired(batch, closer);
    wire->out.batch = batch;
    mu__wire_nng_hold(wire);
    if (!mu__nng_closer_start(closer, wire->loop, CLOSE_MS, on_batch_closed, batch))
        on_batch_closed(batch, false);
}

void mu__nng_dialer_retire(struct mu__nng_dialer *dialer)
{
    struct mu__wire_nng *wire = dialer->wire;

    dialer->out = NULL;
    dialer->retired_ms = uv_now(wire->loop);
    stop_dialer(dialer);
    mu__nng_end_open(dialer->end, false);
    (void)nng_dialer_set_ms(dialer->nng, NNG_OPT_RECONNMINT, MU__NNG_RECONNECT_NEVER_MS);
    (void)nng_dialer_set_ms(dialer->nng, NNG_OPT_RECONNMAXT, MU__NNG_RECONNECT_NEVER_MS);
    mu__list_remove(&wire->out.dialers, &dialer->node);
    mu__list_append(&wire->out.retired, &dialer->node);
    wire->out.retired_count++;
    mu__wire_nng_rest(wire);
}

bool mu__nng_dialers_rested(struct mu__wire_nng *wire)
{
    uint64_t now_ms = uv_now(wire->loop);
    struct mu__nng_dialer *dialer;
    bool are_all = true;

    for (dialer = MU__LIST_LAST(&wire->out.retired, struct mu__nng_dialer, node);
         dialer != NULL && now_ms - dialer->retired_ms < MU__NNG_REST_LONG_MS;
         dialer = dialer->node.prev == NULL
                      ? NULL
                      : MU__LIST_ENTRY(dialer->node.prev, struct mu__nng_dialer, node)) {
        if (now_ms - dialer->retired_ms < MU__NNG_REST_MS) {
            are_all = false;
        } else if (dialer->pipe != 0) {
            mu__nng_pipe_end(wire->news_of, dialer->pipe);
            dialer->pipe = 0;
        }
    }
    if (are_all && wire->out.retired_count > MU__NNG_RETIRED_MAX)
        close_some(wire);
    return are_all;
}

void mu__nng_dialers_close(struct mu__wire_nng *wire, struct mu__nng_closer *closer)
{
    struct mu__nng_dialer *dialer;

    if (wire->out.spare != NULL)
        mu__list_append(&wire->out.dialers, &wire->out.spare->node);
    wire->out.spare = NULL;
    mu__list_append_all(&wire->out.dialers, &wire->out.retired);
    while ((dialer = MU__LIST_FIRST(&wire->out.dialers, struct mu__nng_dialer, node)) !=
           NULL) {
        mu__list_remove(&wire->out.dialers, &dialer->node);
        if (closer != NULL)
            mu__nng_closer_add(closer, dialer->socket);
        mu__nng_dialer_free(dialer);
    }
}
