/* The half of the nng wire that dials. An out is what the links dial; it has one channel
 * at a time: a PUSH socket that lives for one connection, so that nothing queued for one
 * peer can reach its successor. When a connection is lost, its channel goes and a new one
 * is made after a pause of our own; before the first connection, nng tries again by
 * itself, resolving the name each time.
 *
 * Memory. Events may call back and free outs and channels: neither is touched after an
 * event. */
#include "transport/inner_nng.h"
#include "transport/url_nng.h"

#include <assert.h>
#include <nng/protocol/pipeline0/push.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEND_AHEAD = 8,                 /* messages that nng queues behind the one in work */
    DIAL_BACKOFF_MIN_MS = 50,       /* nng waits a random time up to a value that grows */
    DIAL_BACKOFF_MAX_MS = 2000,     /* from one to the other */
    STABLE_MS = 1000                /* what was up for so long is dialled again at once */
};

/* What nng's dialers count, in the order of preference where several have moved. */
static const struct {
    const char *counter;
    const char *words;
} failures[] = {
    {"refused", "connection refused"},
    {"timeout", "the attempt to connect timed out"},
    {"disconnect", "the connection broke during the greeting"},
    {"proto", "what answers there is not a muster node"},
    {"auth", "the peer's certificate or ours was refused"},
    {"oom", "out of memory"},
    {"other", "no such host or address, or no way to it"},
};

enum { FAILURES_COUNT = sizeof failures / sizeof failures[0] };

struct channel {
    struct mu__news news;               /* first: handle casts */
    struct mu__wire_nng *wire;
    struct mu__out *out;                /* NULL once given up */
    nng_socket socket;
    nng_dialer dialer;
    atomic_bool used;                   /* it has had its one connection */
    uv_poll_t writable;
};

struct mu__out {
    struct mu__out *next;               /* in its bucket */
    struct mu__wire_nng *wire;
    uint32_t number;
    bool up;
    bool blocked;                   /* `writable` follows */
    struct channel *channel;        /* NULL while waiting to dial again */
    uv_timer_t redial;
    unsigned redial_ms;
    uint64_t up_since_ms;
    const char *last_error;
    uint64_t failures_seen[FAILURES_COUNT];
    char url[];
};

static struct mu__wire_nng *from_door(struct mu__wire *door)
{
    return (struct mu__wire_nng *)door;
}

/* ---- Channels ---- */

static void handle_channel(struct mu__wire_nng *wire, struct mu__news *news, bool came,
                           bool went);

static void on_channel_up(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct channel *channel = arg;

    (void)pipe;
    (void)event;
    mu__news_tell(channel->wire, &channel->news, true, false);
}

/* A thread of nng's. When a connection has ended, nng dials again by itself, before the
 * loop can close the socket. What it brings is refused here, so that nothing that was left
 * in the socket goes to somebody else. (Closing the dialer instead, in the callback of the
 * end, now and then left nng_close waiting for ever.) */
static void on_channel_begins(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct channel *channel = arg;

    (void)event;
    if (atomic_exchange(&channel->used, true))
        (void)nng_pipe_close(pipe);
}

static void on_channel_ends(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct channel *channel = arg;

    (void)pipe;
    (void)event;
    mu__news_tell(channel->wire, &channel->news, false, true);
}

static int start_dialer(struct channel *channel, const char *url)
{
    nng_dialer dialer;
    int rv = nng_dialer_create(&dialer, channel->socket, url);

    if (rv == 0)
        rv = mu__nodelay_result(nng_dialer_set_bool(dialer, NNG_OPT_TCP_NODELAY, true));
    if (rv == 0)
        rv = nng_dialer_set_ms(dialer, NNG_OPT_RECONNMINT, DIAL_BACKOFF_MIN_MS);
    if (rv == 0)
        rv = nng_dialer_set_ms(dialer, NNG_OPT_RECONNMAXT, DIAL_BACKOFF_MAX_MS);
    if (rv != 0)
        return rv;
    channel->dialer = dialer;
    return nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
}

static int connect_channel(struct channel *channel, const char *url)
{
    int fd = -1;
    nng_socket socket = channel->socket;
    int rv = nng_pipe_notify(socket, NNG_PIPE_EV_ADD_PRE, on_channel_begins, channel);

    if (rv == 0)
        rv = nng_pipe_notify(socket, NNG_PIPE_EV_ADD_POST, on_channel_up, channel);
    if (rv == 0)
        rv = nng_pipe_notify(socket, NNG_PIPE_EV_REM_POST, on_channel_ends, channel);
    if (rv == 0)
        rv = nng_socket_set_int(socket, NNG_OPT_SENDBUF, SEND_AHEAD);
    if (rv == 0)
        rv = nng_socket_get_int(socket, NNG_OPT_SENDFD, &fd);
    if (rv == 0)
        rv = start_dialer(channel, url);
    if (rv == 0 && uv_poll_init(channel->wire->loop, &channel->writable, fd) != 0)
        rv = NNG_ENOMEM;
    return rv;
}

/* Only memory and descriptors can be short here: the url has been looked at. */
static struct channel *channel_new(struct mu__out *out)
{
    struct channel *channel = calloc(1, sizeof *channel);

    if (channel == NULL)
        return NULL;
    channel->wire = out->wire;
    channel->out = out;
    channel->news.handle = handle_channel;
    if (nng_push0_open(&channel->socket) != 0)
        goto err_channel;
    if (connect_channel(channel, out->url) != 0)
        goto err_socket;
    channel->writable.data = channel;
    out->wire->open_handles++;
    return channel;

err_socket:
    (void)nng_close(channel->socket);
    mu__news_forget(out->wire, &channel->news);
err_channel:
    free(channel);
    return NULL;
}

static void on_channel_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;
    struct mu__wire_nng *wire = channel->wire;

    free(channel);
    mu__wire_drop_hold(wire);
}

/* After nng_close no callback of it runs any more, so what is left is the queued news. */
static void channel_close(struct channel *channel)
{
    channel->out = NULL;
    uv_close((uv_handle_t *)&channel->writable, on_channel_closed);
    (void)nng_close(channel->socket);
    mu__news_forget(channel->wire, &channel->news);
}

/* ---- Outs ---- */

static struct mu__out *find_out(struct mu__wire_nng *wire, uint32_t number)
{
    struct mu__out *out = wire->outs[number % MU__WIRE_BUCKETS];

    while (out != NULL && out->number != number)
        out = out->next;
    return out;
}

static void redial_later(struct mu__out *out, unsigned delay_ms);

static void redial_now(struct mu__out *out)
{
    memset(out->failures_seen, 0, sizeof out->failures_seen);
    out->channel = channel_new(out);
    if (out->channel == NULL)
        redial_later(out, DIAL_BACKOFF_MAX_MS);
}

static void on_redial(uv_timer_t *timer)
{
    redial_now(timer->data);
}

static void redial_later(struct mu__out *out, unsigned delay_ms)
{
    (void)uv_timer_start(&out->redial, on_redial, delay_ms, 0);
}

/* A connection that held is dialled again at once; one that did not, later and later, so
 * that a peer that refuses us is not stormed. */
static unsigned next_redial_ms(struct mu__out *out, bool was_stable)
{
    unsigned delay_ms = was_stable ? 0 : out->redial_ms;

    out->redial_ms = delay_ms == 0 ? DIAL_BACKOFF_MIN_MS : delay_ms * 2;
    if (out->redial_ms > DIAL_BACKOFF_MAX_MS)
        out->redial_ms = DIAL_BACKOFF_MAX_MS;
    return delay_ms;
}

static void handle_up(struct mu__wire_nng *wire, struct mu__out *out)
{
    out->up = true;
    out->up_since_ms = uv_now(wire->loop);
    out->last_error = NULL;
    wire->events.out_up(wire->owner, out->number);
}

static void handle_lost(struct mu__wire_nng *wire, struct mu__out *out)
{
    bool was_up = out->up;
    bool was_stable = was_up && uv_now(wire->loop) - out->up_since_ms >= STABLE_MS;

    out->last_error = was_up ? "connection lost"
                             : "what answers there is not a muster node";
    out->up = false;
    out->blocked = false;
    channel_close(out->channel);
    out->channel = NULL;
    redial_later(out, next_redial_ms(out, was_stable));
    if (was_up)
        wire->events.out_down(wire->owner, out->number, "connection lost");
}

/* A connection that came and went before the loop looked is as if it had failed. */
static void handle_channel(struct mu__wire_nng *wire, struct mu__news *news, bool came,
                           bool went)
{
    struct mu__out *out = ((struct channel *)news)->out;

    if (went)
        handle_lost(wire, out);
    else if (came)
        handle_up(wire, out);
}

int mu__out_dial(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_nng *wire = from_door(door);
    struct mu__out **bucket = &wire->outs[number % MU__WIRE_BUCKETS];
    size_t url_size = strlen(url) + 1;
    struct mu__out *out;

    if (find_out(wire, number) != NULL)
        return -MU_EEXISTS;
    if (mu__url_fault(url, false) != NULL)
        return -MU_EINVALID;
    out = calloc(1, sizeof *out + url_size);
    if (out == NULL)
        return -MU_ENOMEM;
    out->wire = wire;
    out->number = number;
    out->redial_ms = DIAL_BACKOFF_MIN_MS;
    memcpy(out->url, url, url_size);
    out->channel = channel_new(out);
    if (out->channel == NULL) {
        free(out);
        return -MU_ENOMEM;
    }

    (void)uv_timer_init(wire->loop, &out->redial);
    out->redial.data = out;
    wire->open_handles++;
    out->next = *bucket;
    *bucket = out;
    return 0;
}

static void on_out_closed(uv_handle_t *handle)
{
    struct mu__out *out = handle->data;
    struct mu__wire_nng *wire = out->wire;

    free(out);
    mu__wire_drop_hold(wire);
}

void mu__out_hangup(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_nng *wire = from_door(door);
    struct mu__out **link = &wire->outs[number % MU__WIRE_BUCKETS];
    struct mu__out *out = find_out(wire, number);

    if (out == NULL)
        return;
    while (*link != out)
        link = &(*link)->next;
    *link = out->next;
    if (out->channel != NULL)
        channel_close(out->channel);
    uv_close((uv_handle_t *)&out->redial, on_out_closed);
}

void mu__out_hangup_all(struct mu__wire_nng *wire)
{
    for (unsigned i = 0; i < MU__WIRE_BUCKETS; i++) {
        while (wire->outs[i] != NULL)
            mu__out_hangup(&wire->door, wire->outs[i]->number);
    }
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct channel *channel = poll->data;
    struct mu__wire_nng *wire = channel->wire;

    (void)status;   /* as in on_readable */
    (void)events;
    (void)uv_poll_stop(poll);
    channel->out->blocked = false;
    wire->events.writable(wire->owner, channel->out->number);
    if (!wire->closing)
        wire->events.burst_end(wire->owner);
}

static int block(struct mu__out *out)
{
    out->blocked = true;
    (void)uv_poll_start(&out->channel->writable, UV_READABLE, on_writable);
    return -MU_EAGAIN;
}

int mu__out_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct mu__out *out = find_out(from_door(door), number);
    nng_msg *msg;
    int rv;

    assert(frame->size <= frame->capacity && frame->size <= MU__FRAME_BYTES_MAX);
    if (out == NULL || !out->up)
        return -MU_EUNAVAILABLE;
    if (out->blocked)
        return -MU_EAGAIN;
    msg = mu__frame_to_msg(frame);
    if (msg == NULL)
        return -MU_ENOMEM;
    rv = nng_sendmsg(out->channel->socket, msg, NNG_FLAG_NONBLOCK);
    if (rv == 0) {
        mu__frame_give_away(frame);
        return 0;
    }
    mu__frame_take_back(frame, msg);
    return rv == NNG_EAGAIN ? block(out) : -MU_EUNAVAILABLE;
}

/* ---- Why not connected ---- */

static uint64_t counter_value(nng_stat *dialer, const char *name)
{
    for (nng_stat *stat = nng_stat_child(dialer); stat != NULL;
         stat = nng_stat_next(stat)) {
        if (strcmp(nng_stat_name(stat), name) == 0)
            return nng_stat_value(stat);
    }
    return 0;
}

/* nng_stat_find_dialer of nng 1.5.2 finds the first dialer there is, whatever it is asked
 * for. */
static nng_stat *find_dialer_stat(nng_stat *all, nng_dialer dialer)
{
    uint64_t id = (uint64_t)nng_dialer_id(dialer);

    for (nng_stat *stat = nng_stat_child(all); stat != NULL; stat = nng_stat_next(stat)) {
        if (strcmp(nng_stat_name(stat), "dialer") == 0 && counter_value(stat, "id") == id)
            return stat;
    }
    return NULL;
}

static void note_failures(struct mu__out *out, nng_stat *dialer)
{
    const char *moved = NULL;

    for (size_t i = 0; i < FAILURES_COUNT; i++) {
        uint64_t value = counter_value(dialer, failures[i].counter);

        if (value > out->failures_seen[i] && moved == NULL)
            moved = failures[i].words;
        out->failures_seen[i] = value;
    }
    if (moved != NULL)
        out->last_error = moved;
}

const char *mu__wire_nng_last_error(struct mu__wire_nng *wire, uint32_t number)
{
    struct mu__out *out = find_out(wire, number);
    nng_stat *all;
    nng_stat *dialer;

    if (out == NULL || out->up)
        return NULL;
    if (out->channel == NULL || nng_stats_get(&all) != 0)
        return out->last_error;
    dialer = find_dialer_stat(all, out->channel->dialer);
    if (dialer != NULL)
        note_failures(out, dialer);
    nng_stats_free(all);
    return out->last_error;
}
