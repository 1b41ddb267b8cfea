/* One outgoing connection, made again and again until hangup.
 *
 * Each attempt has a channel of its own: a stream that lives for one connection. Where a
 * name has several addresses, they are tried one after the other. An out whose channel
 * has gone, and which has no address left, waits, with a back-off, and looks the name up
 * anew.
 *
 * Memory. A channel outlives its out until its handle is closed; requests under way (a
 * look-up, writes) hold what they need. After an event neither is touched. */
#include "transport/inner_uv.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 2000,
    STABLE_MS = 1000,           /* what was up for so long is dialled again at once */
    CONNECT_MS = 10000,         /* for a connection and the greeting */
    ADDRESSES_MAX = 16,         /* of one look-up that are tried; the rest is not */
    ERROR_BYTES = 256,
    WAITING_BYTES_MAX = 4 << 20, /* written and not taken by the system: EAGAIN */
    WAITING_BYTES_LOW = 1 << 20 /* then `writable` comes */
};

struct channel {
    union mu__stream stream;    /* first: handles cast */
    struct mu__out *out;        /* NULL once given up */
    struct mu__wire_uv *wire;
    uv_connect_t connect;
    uv_write_t greeting_request;
    uint8_t said[MU__SP_GREETING_BYTES];
    uint8_t heard[MU__SP_GREETING_BYTES];
    unsigned heard_size;
};

struct mu__out {
    struct mu__wire_uv *wire;
    uint32_t number;
    struct mu__url url;
    bool up;
    bool blocked;               /* `writable` follows */
    struct channel *channel;    /* NULL while looking up or waiting */
    struct look_up *look_up;
    uv_timer_t timer;           /* until the next attempt, or of the present one */
    unsigned backoff_ms;
    uint64_t up_since_ms;
    struct addrinfo *found;     /* owned, until up or the next look-up; NULL: none */
    const struct addrinfo *at;  /* of these: the last that was tried; NULL: none */
    unsigned tried;
    char failing[ERROR_BYTES];  /* what came of those that were tried */
    char last_error[ERROR_BYTES];   /* the same of all; "": nothing is known */
};

struct look_up {
    uv_getaddrinfo_t request;   /* first: the request casts */
    struct mu__out *out;        /* NULL once given up */
    struct mu__wire_uv *wire;
};

/* A frame that the system did not take at once. */
struct write {
    uv_write_t request;         /* first: the request casts */
    struct channel *channel;
    struct mu__buf *frame;
};

/* ---- channels ---- */

static void on_channel_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;
    struct mu__wire_uv *wire = channel->wire;

    free(channel);
    mu__wire_uv_drop_hold(wire);
}

static void channel_close(struct channel *channel)
{
    channel->out = NULL;
    uv_close(&channel->stream.handle, on_channel_closed);
}

/* ---- the addresses of a name ---- */

static void forget_addresses(struct mu__out *out)
{
    uv_freeaddrinfo(out->found);
    out->found = NULL;
    out->at = NULL;
    out->tried = 0;
}

/* The one to try now; NULL: a new look-up is due. */
static const struct addrinfo *next_address(const struct mu__out *out)
{
    if (out->tried >= ADDRESSES_MAX)
        return NULL;
    return out->at == NULL ? out->found : out->at->ai_next;
}

/* Told when all addresses have failed: of several each with its name. */
static void note_failure(struct mu__out *out, const char *reason)
{
    char name[INET6_ADDRSTRLEN] = "";
    size_t used = out->tried <= 1 ? 0 : strlen(out->failing);
    bool is_only = out->at == NULL || (out->tried == 1 && out->at->ai_next == NULL);

    if (!is_only)
        (void)uv_ip_name(out->at->ai_addr, name, sizeof name);
    (void)snprintf(out->failing + used, sizeof out->failing - used, "%s%s%s%s",
                   used == 0 ? "" : "; ", name, is_only ? "" : ": ", reason);
    if (next_address(out) == NULL)
        (void)snprintf(out->last_error, sizeof out->last_error, "%s", out->failing);
}

/* ---- failing ---- */

static void attempt(struct mu__out *out);

static void on_retry(uv_timer_t *timer)
{
    attempt(timer->data);
}

/* What held is dialled again at once, and so is the next address of a name; what did not,
 * later and later, so that a peer that refuses us is not stormed. */
static void retry_later(struct mu__out *out, bool was_stable)
{
    unsigned delay_ms = was_stable ? 0 : out->backoff_ms;

    if (next_address(out) != NULL) {
        (void)uv_timer_start(&out->timer, on_retry, 0, 0);
        return;
    }
    out->backoff_ms = delay_ms == 0 ? BACKOFF_MIN_MS : delay_ms * 2;
    if (out->backoff_ms > BACKOFF_MAX_MS)
        out->backoff_ms = BACKOFF_MAX_MS;
    (void)uv_timer_start(&out->timer, on_retry, delay_ms, 0);
}

/* The attempt failed, or the connection is lost. */
static void fail(struct mu__out *out, const char *reason)
{
    struct mu__wire_uv *wire = out->wire;
    bool was_up = out->up;
    bool was_stable = was_up && uv_now(wire->loop) - out->up_since_ms >= STABLE_MS;

    if (out->channel != NULL)
        channel_close(out->channel);
    out->channel = NULL;
    out->up = false;
    out->blocked = false;
    note_failure(out, reason);
    retry_later(out, was_stable);
    if (!was_up)
        return;
    wire->news = true;
    wire->events.out_down(wire->owner, out->number, reason);
}

static void on_attempt_limit(uv_timer_t *timer)
{
    fail(timer->data, "the attempt to connect timed out");
}

/* ---- the greeting ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct channel *channel = (struct channel *)handle;

    (void)suggested;
    *buf = uv_buf_init((char *)channel->heard + channel->heard_size,
                       MU__SP_GREETING_BYTES - channel->heard_size);
    if (buf->len == 0)
        *buf = uv_buf_init((char *)channel->wire->scratch, 1);
}

static void come_up(struct mu__out *out)
{
    struct mu__wire_uv *wire = out->wire;

    (void)uv_timer_stop(&out->timer);
    out->up = true;
    out->up_since_ms = uv_now(wire->loop);
    out->last_error[0] = '\0';
    forget_addresses(out);
    wire->news = true;
    wire->events.out_up(wire->owner, out->number);
}

/* The peer says its greeting and nothing else; after that only its end is of interest. */
static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct channel *channel = (struct channel *)stream;
    struct mu__out *out = channel->out;

    (void)buf;
    if (out == NULL || size == 0)
        return;
    if (size < 0) {
        fail(out, out->up ? "connection lost"
                          : "the connection broke during the greeting");
        return;
    }
    if (channel->heard_size == MU__SP_GREETING_BYTES) {
        fail(out, "it speaks where it should listen");
        return;
    }
    channel->heard_size += (unsigned)size;
    if (channel->heard_size < MU__SP_GREETING_BYTES)
        return;
    if (mu__greeting_is(channel->heard, MU__SP_PULL))
        come_up(out);
    else
        fail(out, "what answers there is not a muster node");
}

static void on_greeting_written(uv_write_t *request, int status)
{
    (void)request;
    (void)status;   /* the reading side sees a broken connection too */
}

static const char *words_of(int status)
{
    if (status == UV_ECONNREFUSED)
        return "connection refused";
    if (status == UV_ENOENT)
        return "no such socket";
    if (status == UV_ETIMEDOUT)
        return "the attempt to connect timed out";
    return "no way to it";
}

static void on_connected(uv_connect_t *request, int status)
{
    struct channel *channel = request->data;
    uv_buf_t buf = uv_buf_init((char *)channel->said, sizeof channel->said);

    if (channel->out == NULL)
        return;
    if (status != 0) {
        fail(channel->out, words_of(status));
        return;
    }
    if (!channel->out->url.ipc)
        (void)uv_tcp_nodelay(&channel->stream.tcp, 1);
    mu__greeting_write(channel->said, MU__SP_PUSH);
    if (uv_write(&channel->greeting_request, &channel->stream.stream, &buf, 1,
                 on_greeting_written) != 0 ||
        uv_read_start(&channel->stream.stream, on_alloc, on_read) != 0)
        fail(channel->out, "out of memory");
}

/* ---- attempts ---- */

static struct channel *channel_new(struct mu__out *out)
{
    struct channel *channel = calloc(1, sizeof *channel);

    if (channel == NULL)
        return NULL;
    channel->wire = out->wire;
    channel->out = out;
    if (mu__stream_init(out->wire, out->url.ipc, &channel->stream) != 0) {
        free(channel);
        return NULL;
    }
    channel->stream.handle.data = channel;
    channel->connect.data = channel;
    mu__wire_uv_hold(out->wire);
    return channel;
}

static void connect_to(struct mu__out *out, const struct sockaddr *address)
{
    int rv = 0;

    out->channel = channel_new(out);
    if (out->channel == NULL) {
        fail(out, "out of memory");
        return;
    }
    (void)uv_timer_start(&out->timer, on_attempt_limit, CONNECT_MS, 0);
    if (out->url.ipc)
        uv_pipe_connect(&out->channel->connect, &out->channel->stream.pipe, out->url.path,
                        on_connected);
    else
        rv = uv_tcp_connect(&out->channel->connect, &out->channel->stream.tcp, address,
                            on_connected);
    if (rv != 0)
        fail(out, words_of(rv));
}

static void try_next_address(struct mu__out *out)
{
    out->at = next_address(out);
    out->tried++;
    connect_to(out, out->at->ai_addr);
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct look_up *look_up = (struct look_up *)request;
    struct mu__wire_uv *wire = look_up->wire;
    struct mu__out *out = look_up->out;

    if (out != NULL) {
        out->look_up = NULL;
        out->found = found;
        found = NULL;
        if (status == 0)
            try_next_address(out);
        else
            fail(out, "no such host");
    }
    uv_freeaddrinfo(found);
    free(look_up);
    mu__wire_uv_drop_hold(wire);
}

static int start_look_up(struct mu__out *out)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct look_up *look_up = calloc(1, sizeof *look_up);
    char port[8] = "";
    unsigned number = out->url.port;

    if (look_up == NULL)
        return -MU_ENOMEM;
    for (size_t i = 5; i-- > 0; number /= 10)
        port[i] = (char)('0' + number % 10);
    look_up->out = out;
    look_up->wire = out->wire;
    if (uv_getaddrinfo(out->wire->loop, &look_up->request, on_looked_up, out->url.host,
                       port, &hints) != 0) {
        free(look_up);
        return -MU_ENOMEM;
    }
    out->look_up = look_up;
    mu__wire_uv_hold(out->wire);
    return 0;
}

/* The addresses of the last look-up first. Numbers need none, which would start libuv's
 * threads. */
static void attempt(struct mu__out *out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (next_address(out) != NULL) {
        try_next_address(out);
        return;
    }
    forget_addresses(out);
    if (out->url.ipc)
        connect_to(out, NULL);
    else if (uv_ip4_addr(out->url.host, out->url.port, &v4) == 0)
        connect_to(out, (const struct sockaddr *)&v4);
    else if (uv_ip6_addr(out->url.host, out->url.port, &v6) == 0)
        connect_to(out, (const struct sockaddr *)&v6);
    else if (start_look_up(out) != 0)
        fail(out, "out of memory");
}

int mu__out_dial(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_uv *wire = (struct mu__wire_uv *)door;
    struct mu__url parsed;
    struct mu__out *out;

    if (mu__map_get(&wire->outs, number) != NULL)
        return -MU_EEXISTS;
    if (mu__url_parse(url, false, &parsed) != NULL)
        return -MU_EINVALID;
    out = calloc(1, sizeof *out);
    if (out == NULL || mu__map_set(&wire->outs, number, out) != 0) {
        free(out);
        return -MU_ENOMEM;
    }
    out->wire = wire;
    out->number = number;
    out->url = parsed;
    out->backoff_ms = BACKOFF_MIN_MS;
    (void)uv_timer_init(wire->loop, &out->timer);
    out->timer.data = out;
    mu__wire_uv_hold(wire);
    (void)uv_timer_start(&out->timer, on_retry, 0, 0);
    return 0;
}

static void on_out_closed(uv_handle_t *handle)
{
    struct mu__out *out = handle->data;
    struct mu__wire_uv *wire = out->wire;

    forget_addresses(out);
    free(out);
    mu__wire_uv_drop_hold(wire);
}

void mu__out_hangup(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_uv *wire = (struct mu__wire_uv *)door;
    struct mu__out *out = mu__map_remove(&wire->outs, number);

    if (out == NULL)
        return;
    if (out->channel != NULL)
        channel_close(out->channel);
    if (out->look_up != NULL) {
        out->look_up->out = NULL;
        (void)uv_cancel((uv_req_t *)&out->look_up->request);
    }
    uv_close((uv_handle_t *)&out->timer, on_out_closed);
}

void mu__out_hangup_all(struct mu__wire_uv *wire)
{
    for (size_t i = 0; wire->outs.count > 0; i = (i + 1) % wire->outs.capacity)
        if (wire->outs.entries[i].key != 0)
            mu__out_hangup(&wire->door, (uint32_t)wire->outs.entries[i].key);
}

const char *mu__out_last_error(struct mu__wire *door, uint32_t number)
{
    const struct mu__out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);

    return out == NULL || out->last_error[0] == '\0' ? NULL : out->last_error;
}

/* ---- sending ---- */

static void on_written(uv_write_t *request, int status)
{
    struct write *write = (struct write *)request;
    struct channel *channel = write->channel;
    struct mu__out *out = channel->out;

    mu__buf_unref(write->frame);
    free(write);
    if (out == NULL || status != 0)
        return;     /* the reading side sees a broken connection too */
    if (!out->blocked ||
        uv_stream_get_write_queue_size(&channel->stream.stream) > WAITING_BYTES_LOW)
        return;
    out->blocked = false;
    out->wire->news = true;
    out->wire->events.writable(out->wire->owner, out->number);
}

/* The header stands right before the frame's bytes, in the headroom. */
static uv_buf_t with_header(const struct mu__out *out, struct mu__buf *frame)
{
    size_t header = out->url.ipc ? MU__SP_HEADER_MAX : MU__SP_HEADER_MAX - 1;
    uint8_t *at = frame->data - header;
    uint64_t size = frame->size;

    if (out->url.ipc)
        *at++ = 1;
    for (int i = 7; i >= 0; i--) {
        at[i] = (uint8_t)size;
        size >>= 8;
    }
    return uv_buf_init((char *)frame->data - header, (unsigned)(header + frame->size));
}

static void on_out_of_memory(uv_timer_t *timer)
{
    fail(timer->data, "out of memory");
}

static int write_rest(struct channel *channel, struct mu__buf *frame, uv_buf_t rest)
{
    struct write *write = malloc(sizeof *write);

    if (write == NULL)
        return -MU_ENOMEM;
    write->channel = channel;
    write->frame = frame;
    if (uv_write(&write->request, &channel->stream.stream, &rest, 1, on_written) == 0)
        return 0;
    free(write);
    return -MU_ENOMEM;
}

/* What the system does not take at once is written later, in order. Takes `frame` when 0
 * is returned. */
static int write_frame(struct mu__out *out, struct mu__buf *frame)
{
    uv_buf_t bytes = with_header(out, frame);
    int written = uv_try_write(&out->channel->stream.stream, &bytes, 1);

    if (written < 0)
        written = 0;    /* full, or broken, which the reading side will see */
    if ((size_t)written == bytes.len) {
        mu__buf_unref(frame);
        return 0;
    }
    if (write_rest(out->channel, frame,
                   uv_buf_init(bytes.base + written,
                               (unsigned)bytes.len - (unsigned)written)) == 0)
        return 0;
    /* Half a frame may be on its way: this connection has ended. */
    (void)uv_timer_start(&out->timer, on_out_of_memory, 0, 0);
    return -MU_ENOMEM;
}

int mu__out_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct mu__out *out = mu__map_get(&((struct mu__wire_uv *)door)->outs, number);
    struct mu__buf *sent;
    int rv;

    assert(frame->size <= MU__FRAME_BYTES_MAX);
    if (out == NULL || !out->up)
        return -MU_EUNAVAILABLE;
    if (uv_stream_get_write_queue_size(&out->channel->stream.stream) >
        WAITING_BYTES_MAX) {
        out->blocked = true;
        return -MU_EAGAIN;
    }
    sent = mu__frame_with_headroom(frame);
    if (sent == NULL)
        return -MU_ENOMEM;
    rv = write_frame(out, sent);
    if (sent != frame)
        mu__buf_unref(rv == 0 ? frame : sent);
    return rv;
}
