/* Outgoing connections, dialled again after each loss until hangup. nng tries until there
 * is a connection; after its end another socket does, with a back-off where peers hang up
 * early. nng has no queue: it takes one message, or none. */
#include "transport/wire/nng/outgoing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 2000, STABLE_MS = 1000 };

struct mu__nng_out {
    struct mu__wire_nng *wire;
    uint32_t number;
    struct mu__nng_sender *sender; /* NULL: it waits */
    bool is_up;
    bool is_blocked; /* `writable` follows */
    uint64_t up_since_ms;
    unsigned backoff_ms;
    uv_timer_t timer; /* until the next attempt */
    char url[MU__NNG_URL_BYTES];
};

/* ---- dialling ---- */

static void on_retry(uv_timer_t *timer);

static int attempt(struct mu__nng_out *out)
{
    int rv = 0;

    out->sender = mu__nng_sender_new(out->wire, out, out->url, &rv);
    return out->sender != NULL ? 0 : rv;
}

static void retry_later(struct mu__nng_out *out, bool was_stable)
{
    unsigned delay_ms = was_stable ? 0 : out->backoff_ms;

    out->backoff_ms = delay_ms == 0 ? BACKOFF_MIN_MS : delay_ms * 2;
    if (out->backoff_ms > BACKOFF_MAX_MS)
        out->backoff_ms = BACKOFF_MAX_MS;
    (void)uv_timer_start(&out->timer, on_retry, delay_ms, 0);
}

static void on_retry(uv_timer_t *timer)
{
    struct mu__nng_out *out = timer->data;

    if (attempt(out) != 0)
        retry_later(out, false);
}

int mu__nng_dial(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_nng *wire = (struct mu__wire_nng *)door;
    struct mu__url parsed;
    struct mu__nng_out *out;
    int rv;

    if (mu__map_get(&wire->out.outs, number) != NULL)
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
    rv = attempt(out);
    if (rv != 0)
        mu__nng_hangup(door, number);
    return rv;
}

/* ---- hanging up ---- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct mu__nng_out *out = handle->data;
    struct mu__wire_nng *wire = out->wire;

    free(out);
    mu__wire_nng_drop_hold(wire);
}

void mu__nng_hangup(struct mu__wire *door, uint32_t number)
{
    struct mu__nng_out *out =
        mu__map_remove(&((struct mu__wire_nng *)door)->out.outs, number);

    if (out == NULL)
        return;
    if (out->sender != NULL)
        mu__nng_sender_retire(out->sender);
    uv_close((uv_handle_t *)&out->timer, on_timer_closed);
}

void mu__nng_hangup_all(struct mu__wire_nng *wire)
{
    for (size_t i = 0; wire->out.outs.count > 0; i = (i + 1) % wire->out.outs.capacity)
        if (wire->out.outs.entries[i].key != 0)
            mu__nng_hangup(&wire->door, (uint32_t)wire->out.outs.entries[i].key);
}

/* ---- news ---- */

static void lose(struct mu__nng_out *out)
{
    struct mu__wire_nng *wire = out->wire;
    bool was_stable = out->is_up && uv_now(wire->loop) - out->up_since_ms >= STABLE_MS;
    bool was_up = out->is_up;

    mu__nng_sender_retire(out->sender);
    out->sender = NULL;
    out->is_up = false;
    out->is_blocked = false;
    retry_later(out, was_stable);
    if (!was_up)
        return;
    wire->news = true;
    wire->events.out_down(wire->owner, out->number, "connection lost");
}

static void come_up(struct mu__nng_out *out, uint32_t pipe)
{
    struct mu__wire_nng *wire = out->wire;

    out->sender->pipe = pipe;
    (void)nng_dialer_set_ms(out->sender->dialer, NNG_OPT_RECONNMINT,
                            MU__NNG_RECONNECT_NEVER_MS);
    (void)nng_dialer_set_ms(out->sender->dialer, NNG_OPT_RECONNMAXT,
                            MU__NNG_RECONNECT_NEVER_MS);
    out->is_up = true;
    out->up_since_ms = uv_now(wire->loop);
    wire->news = true;
    wire->events.out_up(wire->owner, out->number);
}

void mu__nng_out_event(struct mu__wire_nng *wire, const struct mu__nng_event *event)
{
    struct mu__nng_sender *sender = event->end->owner;

    if (event->ended)
        sender->pipe = 0;
    if (sender->out == NULL && !event->ended)
        mu__nng_pipe_end(wire->news_of, event->pipe);
    else if (sender->out != NULL && event->ended)
        lose(sender->out);
    else if (sender->out != NULL)
        come_up(sender->out, event->pipe);
}

/* ---- sending ---- */

static int give(const struct mu__nng_sender *sender, nng_msg *message)
{
    return mu__nng_pipe_send(sender->wire->news_of, sender->pipe, sender->socket,
                             message);
}

static void on_writable(uv_poll_t *poll, int status, int happened)
{
    struct mu__nng_sender *sender = poll->data;
    struct mu__wire_nng *wire = sender->wire;
    struct mu__nng_out *out = sender->out;

    (void)status;
    (void)happened;
    if (sender->pending != NULL && give(sender, sender->pending) != 0)
        return;
    sender->pending = NULL;
    (void)uv_poll_stop(poll);
    if (out == NULL || !out->is_blocked)
        return;
    out->is_blocked = false;
    wire->news = true;
    wire->events.writable(wire->owner, out->number);
}

/* One message is nng's, and one waits here; so the next is made while the first goes
 * out. */
int mu__nng_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct mu__nng_out *out =
        mu__map_get(&((struct mu__wire_nng *)door)->out.outs, number);
    nng_msg *message;
    int rv;

    if (out == NULL || !out->is_up)
        return -MU_EUNAVAILABLE;
    if (out->sender->pending != NULL) {
        out->is_blocked = true;
        return -MU_EAGAIN;
    }
    message = mu__nng_message_of(frame);
    if (message == NULL)
        return -MU_ENOMEM;
    rv = give(out->sender, message);
    if (rv != 0 && rv != NNG_ECLOSED && mu__nng_sender_poll(out->sender, on_writable)) {
        out->sender->pending = message;
    } else if (rv != 0) {
        nng_msg_free(message);
        return rv == NNG_ECLOSED ? -MU_EUNAVAILABLE : -MU_ENOMEM;
    }
    mu__buf_unref(frame);
    return 0;
}

const char *mu__nng_last_error(struct mu__wire *door, uint32_t number)
{
    const struct mu__nng_out *out =
        mu__map_get(&((struct mu__wire_nng *)door)->out.outs, number);

    if (out == NULL || out->is_up)
        return NULL;
    return out->sender == NULL ? "it waits to connect again"
                               : mu__nng_sender_why(out->sender);
}
