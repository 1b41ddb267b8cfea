/* Connections that this node has dialled. nng tries until there is one; where it comes
 * back without, another socket does, with a back-off. nng has no queue: it takes one
 * message, or none. */
#include "transport/wire/nng/dialers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 2000 };

struct mu__nng_out {
    struct mu__wire_nng *wire;
    uint32_t number;
    struct mu__nng_dialer *dialer; /* NULL: it waits */
    bool is_up;
    bool is_blocked; /* `writable` follows */
    unsigned backoff_ms;
    uv_timer_t timer; /* until the next attempt */
    char url[MU__NNG_URL_BYTES];
};

static struct mu__nng_out *out_of(struct mu__wire_nng *wire, uint32_t number)
{
    return mu__map_get(&wire->out.outs, number);
}

/* ---- dialling ---- */

static void on_nng_dial_retry(uv_timer_t *timer);

static int begin_nng_dial(struct mu__nng_out *out)
{
    int rv = 0;

    out->dialer = mu__nng_dialer_new(out->wire, out, out->url, &rv);
    return out->dialer != NULL ? 0 : rv;
}

static void retry_later(struct mu__nng_out *out)
{
    (void)uv_timer_start(&out->timer, on_nng_dial_retry, out->backoff_ms, 0);
    out->backoff_ms *= 2;
    if (out->backoff_ms > BACKOFF_MAX_MS)
        out->backoff_ms = BACKOFF_MAX_MS;
}

static void on_nng_dial_retry(uv_timer_t *timer)
{
    struct mu__nng_out *out = timer->data;

    if (begin_nng_dial(out) != 0)
        retry_later(out);
}

int mu__nng_dial(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;
    struct mu__url parsed;
    struct mu__nng_out *out;
    int rv;

    if (out_of(wire, number) != NULL)
        return -MU_EEXISTS;
    if (mu__url_parse_any(url, false, &parsed) != NULL ||
        strlen(url) >= MU__NNG_URL_BYTES)
        return -MU_EINVALID;
    out = calloc(1, sizeof *out);
    if (out == NULL || mu__map_set(&wire->out.outs, number, out) != 0) {
        free(out);
        return -MU_ENOMEM;
    }
    out->wire = wire;
    out->number = number;
    out->backoff_ms = BACKOFF_MIN_MS;
    (void)snprintf(out->url, sizeof out->url, "%s", url);
    (void)uv_timer_init(wire->loop, &out->timer);
    out->timer.data = out;
    mu__wire_nng_hold(wire);
    rv = begin_nng_dial(out);
    if (rv != 0)
        mu__nng_out_hangup(wire, number);
    return rv;
}

/* ---- hanging up ---- */

static void on_nng_dial_timer_closed(uv_handle_t *handle)
{
    struct mu__nng_out *out = handle->data;
    struct mu__wire_nng *wire = out->wire;

    free(out);
    mu__wire_nng_drop_hold(wire);
}

void mu__nng_out_hangup(struct mu__wire_nng *wire, uint32_t number)
{
    struct mu__nng_out *out = mu__map_remove(&wire->out.outs, number);

    if (out == NULL)
        return;
    if (out->dialer != NULL)
        mu__nng_dialer_retire(out->dialer);
    uv_close((uv_handle_t *)&out->timer, on_nng_dial_timer_closed);
}

void mu__nng_out_hangup_all(struct mu__wire_nng *wire)
{
    for (size_t i = 0; wire->out.outs.count > 0; i = (i + 1) % wire->out.outs.capacity)
        if (wire->out.outs.entries[i].key != 0)
            mu__nng_out_hangup(wire, (uint32_t)wire->out.outs.entries[i].key);
}

static void end_dialled(struct mu__nng_out *out, const char *reason)
{
    struct mu__wire_nng *wire = out->wire;
    uint32_t number = out->number;

    mu__nng_out_hangup(wire, number);
    wire->news = true;
    wire->events.down(wire->owner, number, reason);
}

/* ---- sending ---- */

static int send_to_dialled(const struct mu__nng_dialer *dialer, nng_msg *message)
{
    return mu__nng_pipe_send(dialer->wire->news_of, dialer->pipe, dialer->socket,
                             message);
}

static void on_dialled_writable(uv_poll_t *poll, int status, int happened);

/* Takes the message if 0 is returned. One message is nng's, and one waits here; so the
 * next is made while the first goes out. */
static int send_or_keep(struct mu__nng_dialer *dialer, nng_msg *message)
{
    int rv = send_to_dialled(dialer, message);

    if (rv == 0)
        return 0;
    if (rv == NNG_ECLOSED || !mu__nng_dialer_poll_send(dialer, on_dialled_writable)) {
        nng_msg_free(message);
        return rv == NNG_ECLOSED ? -MU_EUNAVAILABLE : -MU_ENOMEM;
    }
    dialer->pending = message;
    return 0;
}

/* The peer waits to hear that what it has sent was taken. */
static void send_note(struct mu__nng_dialer *dialer)
{
    struct mu__sp_preface preface = {.is_note = true};
    nng_msg *message;

    dialer->owes_note = dialer->pending != NULL;
    if (dialer->owes_note)
        return;
    mu__sp_say(&dialer->taken, &preface);
    message = mu__nng_message_of(NULL, &preface);
    if (message == NULL || send_or_keep(dialer, message) == -MU_ENOMEM)
        end_dialled(dialer->out, "out of memory");
}

static void on_dialled_writable(uv_poll_t *poll, int status, int happened)
{
    struct mu__nng_dialer *dialer = poll->data;
    struct mu__wire_nng *wire = dialer->wire;
    struct mu__nng_out *out = dialer->out;

    (void)status;
    (void)happened;
    if (dialer->pending != NULL && send_to_dialled(dialer, dialer->pending) != 0)
        return;
    dialer->pending = NULL;
    (void)uv_poll_stop(poll);
    if (out == NULL)
        return;
    if (dialer->owes_note)
        send_note(dialer);
    if (dialer->out == NULL || dialer->pending != NULL || !out->is_blocked)
        return;
    out->is_blocked = false;
    wire->news = true;
    wire->events.writable(wire->owner, out->number);
}

int mu__nng_out_send(struct mu__wire_nng *wire, uint32_t number, struct mu__buf *frame)
{
    struct mu__nng_out *out = out_of(wire, number);
    struct mu__sp_preface preface = {.counts = false};
    nng_msg *message;
    int rv;

    if (out == NULL || !out->is_up)
        return -MU_EUNAVAILABLE;
    if (out->dialer->pending != NULL) {
        out->is_blocked = true;
        return -MU_EAGAIN;
    }
    mu__sp_say(&out->dialer->taken, &preface);
    message = mu__nng_message_of(frame, &preface);
    if (message == NULL)
        return -MU_ENOMEM;
    rv = send_or_keep(out->dialer, message);
    if (rv == 0)
        mu__buf_unref(frame);
    return rv;
}

/* ---- receiving ---- */

/* False: a pause is wanted, or the connection has ended. */
static bool deliver_dialled(struct mu__nng_dialer *dialer, nng_msg *message)
{
    struct mu__wire_nng *wire = dialer->wire;
    struct mu__sp_preface preface;
    struct mu__buf *frame;
    bool more;

    if (!mu__nng_take_preface(message, &preface)) {
        nng_msg_free(message);
        end_dialled(dialer->out, "it sent bytes that are no message");
        return false;
    }
    mu__sp_take(&dialer->taken, &preface, nng_msg_len(message));
    if (preface.is_note) {
        nng_msg_free(message);
        return true;
    }
    frame = mu__nng_frame_of(message);
    if (frame == NULL) {
        end_dialled(dialer->out, "out of memory for its frame");
        return false;
    }
    wire->news = true;
    more = wire->events.frame(wire->owner, dialer->out->number, frame);
    mu__buf_unref(frame);
    if (dialer->out != NULL && mu__sp_owes_note(&dialer->taken))
        send_note(dialer);
    return more && dialer->out != NULL;
}

static void on_dialled_readable(uv_poll_t *poll, int status, int happened)
{
    struct mu__nng_dialer *dialer = poll->data;

    (void)status;
    (void)happened;
    for (unsigned i = 0; i < MU__NNG_FRAMES_MAX && dialer->out != NULL; i++) {
        nng_msg *message;

        if (nng_recvmsg(dialer->socket, &message, NNG_FLAG_NONBLOCK) != 0 ||
            !deliver_dialled(dialer, message))
            return; /* the descriptor tells of the rest in the next iteration */
    }
}

/* ---- news ---- */

static void lose_dialled(struct mu__nng_out *out)
{
    if (out->is_up) {
        end_dialled(out, "connection lost");
        return;
    }
    mu__nng_dialer_retire(out->dialer);
    out->dialer = NULL;
    retry_later(out);
}

static void bring_dialled_up(struct mu__nng_out *out, uint32_t pipe)
{
    struct mu__wire_nng *wire = out->wire;
    struct mu__nng_dialer *dialer = out->dialer;

    dialer->pipe = pipe;
    (void)nng_dialer_set_ms(dialer->nng, NNG_OPT_RECONNMINT, MU__NNG_RECONNECT_NEVER_MS);
    (void)nng_dialer_set_ms(dialer->nng, NNG_OPT_RECONNMAXT, MU__NNG_RECONNECT_NEVER_MS);
    out->is_up = true;
    wire->news = true;
    if (mu__nng_dialer_poll_receive(dialer, on_dialled_readable))
        wire->events.up(wire->owner, out->number);
    else
        end_dialled(out, "out of memory");
}

void mu__nng_out_event(struct mu__wire_nng *wire, const struct mu__nng_event *event)
{
    struct mu__nng_dialer *dialer = event->end->owner;

    if (event->ended)
        dialer->pipe = 0;
    if (dialer->out == NULL && !event->ended)
        mu__nng_pipe_end(wire->news_of, event->pipe);
    else if (dialer->out != NULL && event->ended)
        lose_dialled(dialer->out);
    else if (dialer->out != NULL)
        bring_dialled_up(dialer->out, event->pipe);
}

/* ---- what is known ---- */

uint32_t mu__nng_out_pipe(struct mu__wire_nng *wire, uint32_t number)
{
    const struct mu__nng_out *out = out_of(wire, number);

    return out == NULL || !out->is_up ? 0 : out->dialer->pipe;
}

bool mu__nng_out_is_secured(struct mu__wire_nng *wire, uint32_t number)
{
    const struct mu__nng_out *out = out_of(wire, number);

    return out != NULL && out->dialer != NULL && out->dialer->is_secured;
}

const char *mu__nng_last_error(struct mu__wire *door, uint32_t number)
{
    const struct mu__nng_out *out = out_of((struct mu__wire_nng *)door, number);

    if (out == NULL || out->is_up)
        return NULL;
    return out->dialer == NULL ? "it waits to connect again"
                               : mu__nng_dialer_why(out->dialer);
}
