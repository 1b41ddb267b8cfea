/* nng under the links. docs/decisions/0001 and 0003 say what was seen of nng 1.5.2 and
 * what was chosen because of it. The parts:
 *
 *   frames    nng messages in the clothes of a mu__buf; nothing is copied
 *   news      what nng's threads tell the loop: the only part with a lock
 *   incoming  the connections of the PULL socket
 *   outs      what the links dial, and channels: a PUSH socket that lives for one
 *             connection, so that nothing queued for one peer can reach its successor
 *
 * Order. A connection's last message has been taken from the PULL socket before nng says
 * that the connection is gone (a PULL reads nothing, not even the end, while a message
 * waits). A message is told in the same breath as it is taken, and news are told from a
 * loop callback of their own: so in_down comes after the last frame without more ado.
 *
 * Memory. Events may call back into the wire. What they can free (outs and channels) is
 * not touched after an event; incoming connections are freed by handling news only. */
#include "transport/wire_nng.h"

#include <assert.h>
#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 256,                  /* of either table; chains beyond */
    BURST_FRAMES_MAX = 256,         /* told before others on the loop get their chance */
    BURST_BYTES_MAX = 8 << 20,
    FRAMES_KEPT_MAX = 256,          /* frames without a message, kept for the next one */
    SEND_AHEAD = 8,                 /* messages that nng queues behind the one it writes */
    DIAL_BACKOFF_MIN_MS = 50,       /* nng waits a random time up to a value that grows */
    DIAL_BACKOFF_MAX_MS = 2000,     /* from one to the other */
    STABLE_MS = 1000,               /* what was up for so long is dialled again at once */
    PORT_MAX = 65535,
    IPC_PATH_MAX = 107
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

/* ---- Types ---- */

/* Counts the frames that are out in the world: they may outlive the wire. */
struct frames {
    struct frame *kept;
    unsigned kept_count;
    uint64_t live;
    bool closed;                    /* the last frame to come back frees this */
};

struct frame {
    struct mu__buf buf;             /* first: release casts */
    struct frames *frames;
    struct frame *next;             /* in frames->kept */
    nng_msg *msg;
};

/* Something that nng's threads have told and the loop has not handled yet. Embedded in
 * what it is about. Guarded by the wire's lock, all of it. */
struct news {
    struct news *next;
    void (*handle)(struct mu__wire_nng *wire, struct news *news, bool came, bool went);
    bool queued;
    bool came;
    bool went;
};

struct incoming {
    struct news news;               /* first: handle casts */
    struct incoming *next;          /* in its bucket; guarded by the lock */
    uint32_t pipe;
    uint32_t in;                    /* 0 until it is first told to the links */
    bool dropped;
};

struct channel {
    struct news news;               /* first: handle casts */
    struct mu__wire_nng *wire;
    struct out *out;                /* NULL once given up */
    nng_socket socket;
    nng_dialer dialer;
    uv_poll_t writable;
};

struct out {
    struct out *next;               /* in its bucket */
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

struct mu__wire_nng {
    struct mu__wire door;           /* first: operations cast */
    struct mu__wire_events events;
    void *owner;
    uv_loop_t *loop;
    struct frames *frames;

    uv_mutex_t lock;                /* guards the next three, and what says so above */
    struct news *news_first;
    struct news *news_last;
    struct incoming *incoming[BUCKETS];
    uv_async_t news_wake;

    nng_socket pull;
    uv_poll_t readable;
    char *url;
    uint32_t last_in;

    struct out *outs[BUCKETS];

    bool closing;
    unsigned open_handles;          /* holds of the memory */
    void (*closed)(void *arg);
    void *closed_arg;
};

static struct mu__wire_nng *from_door(struct mu__wire *door)
{
    return (struct mu__wire_nng *)door;
}

/* The end of every uv handle that a wire has. */
static void drop_hold(struct mu__wire_nng *wire)
{
    void (*closed)(void *arg) = wire->closed;
    void *arg = wire->closed_arg;

    assert(wire->open_handles > 0);
    if (--wire->open_handles > 0)
        return;
    uv_mutex_destroy(&wire->lock);
    nng_strfree(wire->url);
    free(wire);
    closed(arg);
}

/* ---- Frames ---- */

static void frames_free(struct frames *frames)
{
    while (frames->kept != NULL) {
        struct frame *frame = frames->kept;

        frames->kept = frame->next;
        free(frame);
    }
    free(frames);
}

static void frames_close(struct frames *frames)
{
    frames->closed = true;
    if (frames->live == 0)
        frames_free(frames);
}

/* The struct only: its message is gone or was never there. */
static void frame_free(struct frame *frame)
{
    struct frames *frames = frame->frames;

    frames->live--;
    if (frames->kept_count < FRAMES_KEPT_MAX && !frames->closed) {
        frame->next = frames->kept;
        frames->kept = frame;
        frames->kept_count++;
    } else {
        free(frame);
    }
    if (frames->closed && frames->live == 0)
        frames_free(frames);
}

static void frame_release(struct mu__buf *buf)
{
    struct frame *frame = (struct frame *)buf;

    nng_msg_free(frame->msg);
    frame_free(frame);
}

/* Takes `msg` unless it returns NULL, which is: out of memory. `size` of the frame is 0. */
static struct mu__buf *frame_new(struct frames *frames, nng_msg *msg)
{
    struct frame *frame = frames->kept;

    if (frame != NULL) {
        frames->kept = frame->next;
        frames->kept_count--;
    } else {
        frame = malloc(sizeof *frame);
        if (frame == NULL)
            return NULL;
    }
    frames->live++;
    *frame = (struct frame){.frames = frames, .msg = msg};
    frame->buf.data = nng_msg_body(msg);
    frame->buf.capacity = (uint32_t)nng_msg_len(msg);
    frame->buf.refs = 1;
    frame->buf.release = frame_release;
    assert((uintptr_t)frame->buf.data % 16 == 0);
    return &frame->buf;
}

static struct mu__buf *op_buffer(struct mu__wire *door, size_t capacity)
{
    nng_msg *msg;
    struct mu__buf *buf;

    if (capacity > MU__FRAME_BYTES_MAX || nng_msg_alloc(&msg, capacity) != 0)
        return NULL;
    buf = frame_new(from_door(door)->frames, msg);
    if (buf == NULL)
        nng_msg_free(msg);
    return buf;
}

/* Is it an nng message inside, and nobody else's? Then it needs no copy. */
static bool frame_is_ours_alone(const struct mu__buf *buf)
{
    return buf->release == frame_release && buf->refs == 1;
}

/* The message to send for `buf`, NULL when out of memory. */
static nng_msg *frame_to_msg(struct mu__buf *buf)
{
    nng_msg *msg;

    if (frame_is_ours_alone(buf)) {
        msg = ((struct frame *)buf)->msg;
        (void)nng_msg_chop(msg, buf->capacity - buf->size);
        return msg;
    }
    if (nng_msg_alloc(&msg, buf->size) != 0)
        return NULL;
    if (buf->size > 0)
        memcpy(nng_msg_body(msg), buf->data, buf->size);
    return msg;
}

/* `msg` of frame_to_msg was not sent: the caller keeps the frame as it was. Growing back
 * to the capacity moves no memory and so cannot fail. */
static void frame_take_back(struct mu__buf *buf, nng_msg *msg)
{
    if (!frame_is_ours_alone(buf)) {
        nng_msg_free(msg);
        return;
    }
    (void)nng_msg_realloc(msg, buf->capacity);
    assert(nng_msg_body(msg) == buf->data && nng_msg_len(msg) == buf->capacity);
}

/* `msg` of frame_to_msg belongs to nng now. */
static void frame_give_away(struct mu__buf *buf)
{
    if (frame_is_ours_alone(buf))
        frame_free((struct frame *)buf);
    else
        mu__buf_unref(buf);
}

/* ---- News ---- */

/* Queue it, unless it waits already. Any thread, without the lock. */
static void tell_news(struct mu__wire_nng *wire, struct news *news, bool came, bool went)
{
    bool first = false;

    uv_mutex_lock(&wire->lock);
    news->came = news->came || came;
    news->went = news->went || went;
    if (!news->queued) {
        first = wire->news_first == NULL;
        news->queued = true;
        news->next = NULL;
        if (first)
            wire->news_first = news;
        else
            wire->news_last->next = news;
        wire->news_last = news;
    }
    uv_mutex_unlock(&wire->lock);

    /* Safe without the lock: the handle is closed after nng_close, which waits for the
     * callbacks of nng that we are in. */
    if (first)
        (void)uv_async_send(&wire->news_wake);
}

static struct news *take_news(struct mu__wire_nng *wire, bool *ret_came, bool *ret_went)
{
    struct news *news;

    uv_mutex_lock(&wire->lock);
    news = wire->news_first;
    if (news != NULL) {
        wire->news_first = news->next;
        news->queued = false;
        *ret_came = news->came;
        *ret_went = news->went;
        news->came = false;
        news->went = false;
    }
    uv_mutex_unlock(&wire->lock);
    return news;
}

/* Take it out of the queue; what it is about goes away. */
static void forget_news(struct mu__wire_nng *wire, struct news *news)
{
    struct news *before = NULL;

    uv_mutex_lock(&wire->lock);
    if (news->queued) {
        for (struct news *n = wire->news_first; n != news; n = n->next)
            before = n;
        if (before == NULL)
            wire->news_first = news->next;
        else
            before->next = news->next;
        if (wire->news_last == news)
            wire->news_last = before;
        news->queued = false;
    }
    uv_mutex_unlock(&wire->lock);
}

static void on_news(uv_async_t *wake)
{
    struct mu__wire_nng *wire = wake->data;
    bool any = false;

    while (!wire->closing) {
        bool came = false;
        bool went = false;
        struct news *news = take_news(wire, &came, &went);

        if (news == NULL)
            break;
        any = true;
        news->handle(wire, news, came, went);
    }
    if (any && !wire->closing)
        wire->events.burst_end(wire->owner);
}

/* ---- Incoming connections ---- */

/* The youngest of that pipe number: nng may use a number again before the loop has heard
 * of the end of its last owner. With the lock held. */
static struct incoming *find_pipe(struct mu__wire_nng *wire, uint32_t pipe)
{
    struct incoming *incoming = wire->incoming[pipe % BUCKETS];

    while (incoming != NULL && incoming->pipe != pipe)
        incoming = incoming->next;
    return incoming;
}

static void remove_incoming(struct mu__wire_nng *wire, struct incoming *incoming)
{
    struct incoming **link = &wire->incoming[incoming->pipe % BUCKETS];

    uv_mutex_lock(&wire->lock);
    while (*link != incoming)
        link = &(*link)->next;
    *link = incoming->next;
    uv_mutex_unlock(&wire->lock);
}

static uint32_t number_of(struct mu__wire_nng *wire, struct incoming *incoming)
{
    if (incoming->in == 0)
        incoming->in = ++wire->last_in;
    return incoming->in;
}

static void handle_incoming(struct mu__wire_nng *wire, struct news *news, bool came,
                            bool went)
{
    struct incoming *incoming = (struct incoming *)news;
    uint32_t in = number_of(wire, incoming);
    bool dropped = incoming->dropped;

    (void)came;
    assert(went);
    remove_incoming(wire, incoming);
    free(incoming);
    if (!dropped)
        wire->events.in_down(wire->owner, in, "connection lost");
}

/* A thread of nng's, before the connection can deliver anything. */
static void on_incoming_begins(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct mu__wire_nng *wire = arg;
    struct incoming *incoming = calloc(1, sizeof *incoming);
    struct incoming **bucket;

    (void)event;
    if (incoming == NULL) {
        (void)nng_pipe_close(pipe);
        return;
    }
    incoming->news.handle = handle_incoming;
    incoming->pipe = (uint32_t)nng_pipe_id(pipe);
    bucket = &wire->incoming[incoming->pipe % BUCKETS];

    uv_mutex_lock(&wire->lock);
    incoming->next = *bucket;
    *bucket = incoming;
    uv_mutex_unlock(&wire->lock);
}

/* A thread of nng's, after the connection's last message was taken. */
static void on_incoming_ends(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct mu__wire_nng *wire = arg;
    struct incoming *incoming;

    (void)event;
    uv_mutex_lock(&wire->lock);
    incoming = find_pipe(wire, (uint32_t)nng_pipe_id(pipe));
    uv_mutex_unlock(&wire->lock);

    if (incoming != NULL)
        tell_news(wire, &incoming->news, false, true);
}

static void free_all_incoming(struct mu__wire_nng *wire)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (wire->incoming[i] != NULL) {
            struct incoming *incoming = wire->incoming[i];

            wire->incoming[i] = incoming->next;
            free(incoming);
        }
    }
}

/* Takes `msg`. Returns false when the links ask for a pause. */
static bool tell_frame(struct mu__wire_nng *wire, nng_msg *msg)
{
    nng_pipe pipe = nng_msg_get_pipe(msg);
    struct incoming *incoming;
    struct mu__buf *frame;
    bool go_on;

    uv_mutex_lock(&wire->lock);
    incoming = find_pipe(wire, pipe.id);
    uv_mutex_unlock(&wire->lock);
    if (incoming == NULL || incoming->dropped) {
        nng_msg_free(msg);
        return true;
    }
    frame = frame_new(wire->frames, msg);
    if (frame == NULL) {
        /* A connection delivers every frame or breaks. */
        nng_msg_free(msg);
        (void)nng_pipe_close(pipe);
        return true;
    }
    frame->size = frame->capacity;
    go_on = wire->events.frame(wire->owner, number_of(wire, incoming), frame);
    mu__buf_unref(frame);
    return go_on;
}

/* The descriptor stays readable while messages wait, so leaving early for a pause or for
 * the bounds only means to be called again after everybody else had a turn. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct mu__wire_nng *wire = poll->data;
    size_t bytes = 0;
    bool go_on = true;

    (void)status;   /* an eventfd or a pipe of our own process: no error is possible */
    (void)events;
    for (unsigned i = 0; go_on && i < BURST_FRAMES_MAX && bytes < BURST_BYTES_MAX; i++) {
        nng_msg *msg;

        if (nng_recvmsg(wire->pull, &msg, NNG_FLAG_NONBLOCK) != 0)
            break;
        bytes += nng_msg_len(msg);
        go_on = tell_frame(wire, msg) && !wire->closing;
    }
    if (!wire->closing)
        wire->events.burst_end(wire->owner);
}

static struct incoming *find_in(struct mu__wire_nng *wire, uint32_t in)
{
    struct incoming *found = NULL;

    uv_mutex_lock(&wire->lock);
    for (unsigned i = 0; i < BUCKETS && found == NULL; i++) {
        found = wire->incoming[i];
        while (found != NULL && found->in != in)
            found = found->next;
    }
    uv_mutex_unlock(&wire->lock);
    return found;
}

static void op_drop(struct mu__wire *door, uint32_t in)
{
    struct incoming *incoming = in == 0 ? NULL : find_in(from_door(door), in);
    nng_pipe pipe = NNG_PIPE_INITIALIZER;

    if (incoming == NULL || incoming->dropped)
        return;
    incoming->dropped = true;
    pipe.id = incoming->pipe;
    (void)nng_pipe_close(pipe);
}

/* ---- Addresses ---- */

static bool is_port(const char *text, bool listening)
{
    unsigned long port = 0;

    if (text == NULL || text[0] == '\0' || strlen(text) > 5)
        return false;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9')
            return false;
        port = port * 10 + (unsigned long)(*c - '0');
    }
    return port <= PORT_MAX && (port > 0 || listening);
}

static bool is_host(const char *text)
{
    if (text == NULL || text[0] == '\0')
        return false;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return true;
}

static const char *tcp_fault(const nng_url *url, bool listening)
{
    if (!is_host(url->u_hostname))
        return "a host is missing";
    if (!is_port(url->u_port, listening))
        return "the port must be a number up to 65535";
    if (url->u_path != NULL && url->u_path[0] != '\0')
        return "nothing may follow the port";
    return NULL;
}

static const char *ipc_fault(const nng_url *url, bool listening)
{
    (void)listening;
    if (url->u_path == NULL || url->u_path[0] != '/')
        return "an absolute path must follow";
    if (strlen(url->u_path) > IPC_PATH_MAX)
        return "the path of a socket has at most 107 bytes";
    return NULL;
}

static const struct {
    const char *scheme;
    const char *(*fault)(const nng_url *url, bool listening);
} schemes[] = {{"tcp", tcp_fault}, {"ipc", ipc_fault}};

/* What is wrong with a url, NULL for nothing. nng alone would accept port 99999 and try
 * for ever. */
static const char *url_fault(const char *text, bool listening)
{
    const char *fault = "it must begin with tcp:// or ipc://";
    nng_url *url;

    if (nng_url_parse(&url, text) != 0)
        return "it must read tcp://host:port or ipc:///path";
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(url->u_scheme, schemes[i].scheme) == 0)
            fault = schemes[i].fault(url, listening);
    }
    nng_url_free(url);
    return fault;
}

/* ---- Channels ---- */

static void handle_channel(struct mu__wire_nng *wire, struct news *news, bool came,
                           bool went);

static void on_channel_up(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct channel *channel = arg;

    (void)pipe;
    (void)event;
    tell_news(channel->wire, &channel->news, true, false);
}

/* A thread of nng's. nng would dial again by itself as soon as this returns: the peer would
 * see a connection that nobody wanted, and it would carry what the first one left in the
 * socket. So the dialer goes first. */
static void on_channel_ends(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct channel *channel = arg;

    (void)event;
    (void)nng_dialer_close(nng_pipe_dialer(pipe));
    tell_news(channel->wire, &channel->news, false, true);
}

/* nng's code for "this transport has no such option" is fine: ipc has no Nagle. */
static int set_nodelay(int rv)
{
    return rv == NNG_ENOTSUP ? 0 : rv;
}

static int start_dialer(struct channel *channel, const char *url)
{
    nng_dialer dialer;
    int rv = nng_dialer_create(&dialer, channel->socket, url);

    if (rv == 0)
        rv = set_nodelay(nng_dialer_set_bool(dialer, NNG_OPT_TCP_NODELAY, true));
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
    int rv = nng_pipe_notify(socket, NNG_PIPE_EV_ADD_POST, on_channel_up, channel);

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
static struct channel *channel_new(struct out *out)
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
    forget_news(out->wire, &channel->news);
err_channel:
    free(channel);
    return NULL;
}

static void on_channel_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;
    struct mu__wire_nng *wire = channel->wire;

    free(channel);
    drop_hold(wire);
}

/* After nng_close no callback of it runs any more, so what is left is the queued news. */
static void channel_close(struct channel *channel)
{
    channel->out = NULL;
    uv_close((uv_handle_t *)&channel->writable, on_channel_closed);
    (void)nng_close(channel->socket);
    forget_news(channel->wire, &channel->news);
}

/* ---- Outs ---- */

static struct out *find_out(struct mu__wire_nng *wire, uint32_t number)
{
    struct out *out = wire->outs[number % BUCKETS];

    while (out != NULL && out->number != number)
        out = out->next;
    return out;
}

static void redial_later(struct out *out, unsigned delay_ms);

static void redial_now(struct out *out)
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

static void redial_later(struct out *out, unsigned delay_ms)
{
    (void)uv_timer_start(&out->redial, on_redial, delay_ms, 0);
}

/* A connection that held is dialled again at once; one that did not, later and later, so
 * that a peer that refuses us is not stormed. */
static unsigned next_redial_ms(struct out *out, bool was_stable)
{
    unsigned delay_ms = was_stable ? 0 : out->redial_ms;

    out->redial_ms = delay_ms == 0 ? DIAL_BACKOFF_MIN_MS : delay_ms * 2;
    if (out->redial_ms > DIAL_BACKOFF_MAX_MS)
        out->redial_ms = DIAL_BACKOFF_MAX_MS;
    return delay_ms;
}

static void handle_up(struct mu__wire_nng *wire, struct out *out)
{
    out->up = true;
    out->up_since_ms = uv_now(wire->loop);
    out->last_error = NULL;
    wire->events.out_up(wire->owner, out->number);
}

static void handle_lost(struct mu__wire_nng *wire, struct out *out)
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
static void handle_channel(struct mu__wire_nng *wire, struct news *news, bool came,
                           bool went)
{
    struct out *out = ((struct channel *)news)->out;

    if (went)
        handle_lost(wire, out);
    else if (came)
        handle_up(wire, out);
}

static int op_dial(struct mu__wire *door, uint32_t number, const char *url)
{
    struct mu__wire_nng *wire = from_door(door);
    struct out **bucket = &wire->outs[number % BUCKETS];
    size_t url_size = strlen(url) + 1;
    struct out *out;

    if (find_out(wire, number) != NULL)
        return -MU_EEXISTS;
    if (url_fault(url, false) != NULL)
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
    struct out *out = handle->data;
    struct mu__wire_nng *wire = out->wire;

    free(out);
    drop_hold(wire);
}

static void op_hangup(struct mu__wire *door, uint32_t number)
{
    struct mu__wire_nng *wire = from_door(door);
    struct out **link = &wire->outs[number % BUCKETS];
    struct out *out = find_out(wire, number);

    if (out == NULL)
        return;
    while (*link != out)
        link = &(*link)->next;
    *link = out->next;
    if (out->channel != NULL)
        channel_close(out->channel);
    uv_close((uv_handle_t *)&out->redial, on_out_closed);
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

static int block(struct out *out)
{
    out->blocked = true;
    (void)uv_poll_start(&out->channel->writable, UV_READABLE, on_writable);
    return -MU_EAGAIN;
}

static int op_send(struct mu__wire *door, uint32_t number, struct mu__buf *frame)
{
    struct out *out = find_out(from_door(door), number);
    nng_msg *msg;
    int rv;

    assert(frame->size <= frame->capacity && frame->size <= MU__FRAME_BYTES_MAX);
    if (out == NULL || !out->up)
        return -MU_EUNAVAILABLE;
    if (out->blocked)
        return -MU_EAGAIN;
    msg = frame_to_msg(frame);
    if (msg == NULL)
        return -MU_ENOMEM;
    rv = nng_sendmsg(out->channel->socket, msg, NNG_FLAG_NONBLOCK);
    if (rv == 0) {
        frame_give_away(frame);
        return 0;
    }
    frame_take_back(frame, msg);
    return rv == NNG_EAGAIN ? block(out) : -MU_EUNAVAILABLE;
}

static const struct mu__wire_ops ops = {
    .buffer = op_buffer,
    .dial = op_dial,
    .hangup = op_hangup,
    .send = op_send,
    .drop = op_drop,
};

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

static void note_failures(struct out *out, nng_stat *dialer)
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
    struct out *out = find_out(wire, number);
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

/* ---- Opening and closing ---- */

static const struct {
    int nng;
    int code;
    const char *words;
} refusals[] = {
    {NNG_EADDRINUSE, -MU_EEXISTS, "somebody listens there already"},
    {NNG_EADDRINVAL, -MU_EINVALID, "it is not an address of this machine"},
    {NNG_ENOENT, -MU_EINVALID, "its directory does not exist"},
    {NNG_EPERM, -MU_EPERMISSION, "the system does not permit it"},
    {NNG_ENOMEM, -MU_ENOMEM, "out of memory"},
};

static int refuse(mu_error *error, const char *url, int rv)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].nng == rv)
            return mu_error_set(error, refusals[i].code, "cannot listen at \"%s\": %s",
                                url, refusals[i].words);
    }
    return mu_error_set(error, -MU_EUNAVAILABLE, "cannot listen at \"%s\": %s", url,
                        nng_strerror(rv));
}

/* Returns nng's code. */
static int listen_at(struct mu__wire_nng *wire, const char *url)
{
    nng_listener listener;
    int rv = nng_pipe_notify(wire->pull, NNG_PIPE_EV_ADD_PRE, on_incoming_begins, wire);

    if (rv == 0)
        rv = nng_pipe_notify(wire->pull, NNG_PIPE_EV_REM_POST, on_incoming_ends, wire);
    if (rv == 0)
        rv = nng_listener_create(&listener, wire->pull, url);
    if (rv == 0)
        rv = nng_listener_set_size(listener, NNG_OPT_RECVMAXSZ, MU__FRAME_BYTES_MAX);
    if (rv == 0)
        rv = set_nodelay(nng_listener_set_bool(listener, NNG_OPT_TCP_NODELAY, true));
    if (rv == 0)
        rv = nng_listener_start(listener, 0);
    if (rv == 0)
        rv = nng_listener_get_string(listener, NNG_OPT_URL, &wire->url);
    return rv;
}

static int watch_pull(struct mu__wire_nng *wire)
{
    int fd = -1;
    int rv = nng_socket_get_int(wire->pull, NNG_OPT_RECVFD, &fd);

    if (rv == 0 && uv_poll_init(wire->loop, &wire->readable, fd) != 0)
        rv = NNG_ENOMEM;
    return rv;
}

/* The wake must be there before nng's threads may need it, and a uv handle is closed by
 * the loop only: so once it is there, failing means to close. */
static void ignore_closed(void *arg)
{
    (void)arg;
}

static void on_handle_closed(uv_handle_t *handle)
{
    drop_hold(handle->data);
}

static void close_listening(struct mu__wire_nng *wire)
{
    (void)nng_close(wire->pull);
    free_all_incoming(wire);
    uv_close((uv_handle_t *)&wire->news_wake, on_handle_closed);
    frames_close(wire->frames);
}

static int open_sockets(struct mu__wire_nng *wire, const char *bind_url, mu_error *error)
{
    int rv = nng_pull0_open(&wire->pull);

    if (rv != 0)
        return refuse(error, bind_url, rv);
    if (uv_async_init(wire->loop, &wire->news_wake, on_news) != 0) {
        (void)nng_close(wire->pull);
        return refuse(error, bind_url, NNG_ENOMEM);
    }
    return 0;
}

static struct mu__wire_nng *wire_new(uv_loop_t *loop,
                                     const struct mu__wire_events *events, void *owner)
{
    struct mu__wire_nng *wire = calloc(1, sizeof *wire);

    if (wire == NULL)
        return NULL;
    wire->door.ops = &ops;
    wire->events = *events;
    wire->owner = owner;
    wire->loop = loop;
    wire->frames = calloc(1, sizeof *wire->frames);
    if (wire->frames == NULL)
        goto err_wire;
    if (uv_mutex_init(&wire->lock) != 0)
        goto err_frames;
    return wire;

err_frames:
    free(wire->frames);
err_wire:
    free(wire);
    return NULL;
}

int mu__wire_nng_open(uv_loop_t *loop, const char *bind_url,
                      const struct mu__wire_events *events, void *owner,
                      mu_error *ret_error, struct mu__wire_nng **ret_wire)
{
    const char *fault = url_fault(bind_url, true);
    struct mu__wire_nng *wire;
    int rv;

    if (fault != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "cannot listen at \"%s\": %s",
                            bind_url, fault);
    wire = wire_new(loop, events, owner);
    if (wire == NULL)
        return refuse(ret_error, bind_url, NNG_ENOMEM);
    rv = open_sockets(wire, bind_url, ret_error);
    if (rv != 0)
        goto err_wire;
    wire->news_wake.data = wire;
    wire->open_handles = 1;

    rv = listen_at(wire, bind_url);
    if (rv == 0)
        rv = watch_pull(wire);
    if (rv != 0) {
        rv = refuse(ret_error, bind_url, rv);
        wire->closing = true;
        wire->closed = ignore_closed;
        close_listening(wire);
        return rv;
    }
    wire->readable.data = wire;
    wire->open_handles++;
    (void)uv_poll_start(&wire->readable, UV_READABLE, on_readable);
    *ret_wire = wire;
    return 0;

err_wire:
    frames_close(wire->frames);
    uv_mutex_destroy(&wire->lock);
    free(wire);
    return rv;
}

struct mu__wire *mu__wire_nng_wire(struct mu__wire_nng *wire)
{
    return &wire->door;
}

const char *mu__wire_nng_url(const struct mu__wire_nng *wire)
{
    return wire->url;
}

void mu__wire_nng_close(struct mu__wire_nng *wire, void (*closed)(void *arg), void *arg)
{
    assert(!wire->closing);
    wire->closing = true;
    wire->closed = closed;
    wire->closed_arg = arg;
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (wire->outs[i] != NULL)
            op_hangup(&wire->door, wire->outs[i]->number);
    }
    uv_close((uv_handle_t *)&wire->readable, on_handle_closed);
    close_listening(wire);
}
