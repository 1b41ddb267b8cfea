/* nng under the links: the half that listens, and what both halves stand on (the other is
 * out_nng.c). docs/decisions/0001 and 0003 say what was seen of nng 1.5.2 and what was
 * chosen because of it.
 *
 * News are what nng's threads tell the loop: connections that came and went. They are the
 * only part with a lock.
 *
 * Order. A connection's last message has been taken from the PULL socket before nng says
 * that the connection is gone (a PULL reads nothing, not even the end, while a message
 * waits). A message is told in the same breath as it is taken, and news are told from a
 * loop callback of their own: so in_down comes after the last frame without more ado. */
#include "transport/inner_nng.h"
#include "transport/url_nng.h"

#include <assert.h>
#include <nng/protocol/pipeline0/pull.h>
#include <stdlib.h>
#include <string.h>

enum {
    BURST_FRAMES_MAX = 256,         /* told before others on the loop get their chance */
    BURST_BYTES_MAX = 8 << 20
};

struct mu__incoming {
    struct mu__news news;               /* first: handle casts */
    struct mu__incoming *next;          /* in its bucket; guarded by the lock */
    uint32_t pipe;
    uint32_t in;                    /* 0 until it is first told to the links */
    bool dropped;
};

static struct mu__wire_nng *from_door(struct mu__wire *door)
{
    return (struct mu__wire_nng *)door;
}

void mu__wire_drop_hold(struct mu__wire_nng *wire)
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

/* ---- News ---- */

void mu__news_tell(struct mu__wire_nng *wire, struct mu__news *news, bool came, bool went)
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

static struct mu__news *take_news(struct mu__wire_nng *wire, bool *ret_came,
                                  bool *ret_went)
{
    struct mu__news *news;

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

void mu__news_forget(struct mu__wire_nng *wire, struct mu__news *news)
{
    struct mu__news *before = NULL;

    uv_mutex_lock(&wire->lock);
    if (news->queued) {
        for (struct mu__news *n = wire->news_first; n != news; n = n->next)
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
        struct mu__news *news = take_news(wire, &came, &went);

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
static struct mu__incoming *find_pipe(struct mu__wire_nng *wire, uint32_t pipe)
{
    struct mu__incoming *incoming = wire->incoming[pipe % MU__WIRE_BUCKETS];

    while (incoming != NULL && incoming->pipe != pipe)
        incoming = incoming->next;
    return incoming;
}

static void remove_incoming(struct mu__wire_nng *wire, struct mu__incoming *incoming)
{
    struct mu__incoming **link = &wire->incoming[incoming->pipe % MU__WIRE_BUCKETS];

    uv_mutex_lock(&wire->lock);
    while (*link != incoming)
        link = &(*link)->next;
    *link = incoming->next;
    uv_mutex_unlock(&wire->lock);
}

static uint32_t number_of(struct mu__wire_nng *wire, struct mu__incoming *incoming)
{
    if (incoming->in == 0)
        incoming->in = ++wire->last_in;
    return incoming->in;
}

static void handle_incoming(struct mu__wire_nng *wire, struct mu__news *news, bool came,
                            bool went)
{
    struct mu__incoming *incoming = (struct mu__incoming *)news;
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
    struct mu__incoming *incoming = calloc(1, sizeof *incoming);
    struct mu__incoming **bucket;

    (void)event;
    if (incoming == NULL) {
        (void)nng_pipe_close(pipe);
        return;
    }
    incoming->news.handle = handle_incoming;
    incoming->pipe = (uint32_t)nng_pipe_id(pipe);
    bucket = &wire->incoming[incoming->pipe % MU__WIRE_BUCKETS];

    uv_mutex_lock(&wire->lock);
    incoming->next = *bucket;
    *bucket = incoming;
    uv_mutex_unlock(&wire->lock);
}

/* A thread of nng's, after the connection's last message was taken. */
static void on_incoming_ends(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct mu__wire_nng *wire = arg;
    struct mu__incoming *incoming;

    (void)event;
    uv_mutex_lock(&wire->lock);
    incoming = find_pipe(wire, (uint32_t)nng_pipe_id(pipe));
    uv_mutex_unlock(&wire->lock);

    if (incoming != NULL)
        mu__news_tell(wire, &incoming->news, false, true);
}

static void free_all_incoming(struct mu__wire_nng *wire)
{
    for (unsigned i = 0; i < MU__WIRE_BUCKETS; i++) {
        while (wire->incoming[i] != NULL) {
            struct mu__incoming *incoming = wire->incoming[i];

            wire->incoming[i] = incoming->next;
            free(incoming);
        }
    }
}

/* Takes `msg`. Returns false when the links ask for a pause. */
static bool tell_frame(struct mu__wire_nng *wire, nng_msg *msg)
{
    nng_pipe pipe = nng_msg_get_pipe(msg);
    struct mu__incoming *incoming;
    struct mu__buf *frame;
    bool go_on;

    uv_mutex_lock(&wire->lock);
    incoming = find_pipe(wire, pipe.id);
    uv_mutex_unlock(&wire->lock);
    if (incoming == NULL || incoming->dropped) {
        nng_msg_free(msg);
        return true;
    }
    frame = mu__frame_of_msg(wire->frames, msg);
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

static struct mu__incoming *find_in(struct mu__wire_nng *wire, uint32_t in)
{
    struct mu__incoming *found = NULL;

    uv_mutex_lock(&wire->lock);
    for (unsigned i = 0; i < MU__WIRE_BUCKETS && found == NULL; i++) {
        found = wire->incoming[i];
        while (found != NULL && found->in != in)
            found = found->next;
    }
    uv_mutex_unlock(&wire->lock);
    return found;
}

static void op_drop(struct mu__wire *door, uint32_t in)
{
    struct mu__incoming *incoming = in == 0 ? NULL : find_in(from_door(door), in);
    nng_pipe pipe = NNG_PIPE_INITIALIZER;

    if (incoming == NULL || incoming->dropped)
        return;
    incoming->dropped = true;
    pipe.id = incoming->pipe;
    (void)nng_pipe_close(pipe);
}

/* ---- Operations ---- */

static struct mu__buf *op_buffer(struct mu__wire *door, size_t capacity)
{
    if (capacity > MU__FRAME_BYTES_MAX)
        return NULL;
    return mu__frame_new(from_door(door)->frames, capacity);
}

static const struct mu__wire_ops ops = {
    .buffer = op_buffer,
    .dial = mu__out_dial,
    .hangup = mu__out_hangup,
    .send = mu__out_send,
    .drop = op_drop,
};

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

int mu__nodelay_result(int rv)
{
    return rv == NNG_ENOTSUP ? 0 : rv;
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
        rv = nng_listener_set_bool(listener, NNG_OPT_TCP_NODELAY, true);
    rv = mu__nodelay_result(rv);
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
    mu__wire_drop_hold(handle->data);
}

static void close_listening(struct mu__wire_nng *wire)
{
    (void)nng_close(wire->pull);
    free_all_incoming(wire);
    uv_close((uv_handle_t *)&wire->news_wake, on_handle_closed);
    mu__frames_close(wire->frames);
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
    wire->frames = mu__frames_new();
    if (wire->frames == NULL)
        goto err_wire;
    if (uv_mutex_init(&wire->lock) != 0)
        goto err_frames;
    return wire;

err_frames:
    mu__frames_close(wire->frames);
err_wire:
    free(wire);
    return NULL;
}

int mu__wire_nng_open(uv_loop_t *loop, const char *bind_url,
                      const struct mu__wire_events *events, void *owner,
                      mu_error *ret_error, struct mu__wire_nng **ret_wire)
{
    const char *fault = mu__url_fault(bind_url, true);
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
    mu__frames_close(wire->frames);
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
    mu__out_hangup_all(wire);
    uv_close((uv_handle_t *)&wire->readable, on_handle_closed);
    close_listening(wire);
}
